//! A message in the queue manager, packed: what a sender leaves out takes no room.

use std::{fmt, sync::Arc};

use bytes::Bytes;
use pillarbox_messages::{Destination, DestinationKind};

use super::{
    Address, Addresses, FIXED_SIZE, Failure, MessageId, NewMessage, Reason,
    fields::{Field, Fields, put_fields},
};

/// A message in the queue manager: never changed once it is there, and shared by all queues that hold it.
#[derive(Clone, PartialEq, Eq)]
pub struct QueuedMessage {
    /// Its identity.
    pub id: MessageId,
    /// When it was committed (ms since 1970).
    pub enqueued_at: i64,
    /// 0 to 9, higher goes first.
    pub priority: u8,
    /// Whether it survives a restart.
    pub persistent: bool,
    address: Arc<Address>,
    /// The fields, then the body.
    content: Bytes,
    /// Where in it the body is.
    body_at: usize,
}

/// What a message consists of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Parts<'a> {
    pub(crate) id: MessageId,
    pub(crate) enqueued_at: i64,
    pub(crate) priority: u8,
    pub(crate) persistent: bool,
    pub(crate) origin: &'a str,
    pub(crate) destination: (DestinationKind, &'a str),
    pub(crate) destination_text: &'a str,
    pub(crate) not_before: Option<i64>,
    pub(crate) expires_at: Option<i64>,
    pub(crate) correlation_id: Option<&'a str>,
    pub(crate) reply_to: Option<&'a str>,
    pub(crate) group: Option<&'a str>,
    pub(crate) original_destination: Option<&'a str>,
    pub(crate) reason: Option<Reason>,
    pub(crate) failure: Option<Failure>,
    pub(crate) headers: Vec<(&'a str, &'a str)>,
    pub(crate) body: &'a [u8],
}

impl<'a> Parts<'a> {
    /// What a sender's message becomes with its commit at this time.
    pub(crate) fn of(
        new: &'a NewMessage,
        id: MessageId,
        origin: &'a str,
        now_ms: i64,
        lasting: bool,
    ) -> Self {
        let delayed = new.delay.map(|delay| now_ms.saturating_add(delay));
        let headers = new.headers.iter();
        Self {
            id,
            origin,
            enqueued_at: now_ms,
            destination: (new.destination.kind(), new.destination.name()),
            destination_text: &new.destination_text,
            headers: headers.map(|(name, value)| (&**name, &**value)).collect(),
            body: &new.body,
            persistent: new.persistent.unwrap_or(lasting),
            priority: new.priority,
            not_before: new.not_before.max(delayed),
            expires_at: new.expires_at,
            correlation_id: new.correlation_id.as_deref(),
            reply_to: new.reply_to.as_deref(),
            group: new.group.as_deref(),
            original_destination: None,
            reason: None,
            failure: None,
        }
    }

    /// The message.
    pub(crate) fn pack(&self, addresses: &mut Addresses) -> QueuedMessage {
        let address = addresses.share(self.origin, self.destination, self.destination_text);
        self.pack_for(address)
    }

    fn pack_for(&self, address: Arc<Address>) -> QueuedMessage {
        let mut content = Vec::with_capacity(self.length());
        put_fields(&mut content, self);
        let body_at = content.len();
        content.extend_from_slice(self.body);
        QueuedMessage {
            id: self.id,
            enqueued_at: self.enqueued_at,
            priority: self.priority,
            persistent: self.persistent,
            address,
            content: content.into(),
            body_at,
        }
    }

    fn length(&self) -> usize {
        let mut fields = 0;
        let mut count = |field: Field<'_>| fields += field.length();
        self.each_field(&mut count);
        fields + self.body.len()
    }

    /// Hands out what is there of the fields, in the order in which they stand in a message.
    pub(super) fn each_field(&self, take: &mut dyn FnMut(Field<'a>)) {
        let times = [
            self.not_before.map(Field::NotBefore),
            self.expires_at.map(Field::ExpiresAt),
        ];
        let texts = [
            self.group.map(Field::Group),
            self.correlation_id.map(Field::CorrelationId),
            self.reply_to.map(Field::ReplyTo),
            self.original_destination.map(Field::OriginalDestination),
        ];
        let moved = [
            self.reason.map(Field::Reason),
            self.failure.map(Field::Failure),
        ];
        let fields = times.into_iter().chain(texts).chain(moved).flatten();
        fields.for_each(&mut *take);
        for (name, value) in &self.headers {
            take(Field::Header(name, value));
        }
    }
}

impl QueuedMessage {
    /// What the message consists of.
    pub(crate) fn parts(&self) -> Parts<'_> {
        let mut parts = Parts {
            id: self.id,
            enqueued_at: self.enqueued_at,
            priority: self.priority,
            persistent: self.persistent,
            origin: self.origin(),
            destination: (self.destination().kind(), self.destination().name()),
            destination_text: self.destination_text(),
            not_before: None,
            expires_at: None,
            correlation_id: None,
            reply_to: None,
            group: None,
            original_destination: None,
            reason: None,
            failure: None,
            headers: Vec::new(),
            body: self.body_bytes(),
        };
        for field in self.fields() {
            match field {
                Field::NotBefore(at) => parts.not_before = Some(at),
                Field::ExpiresAt(at) => parts.expires_at = Some(at),
                Field::Group(text) => parts.group = Some(text),
                Field::CorrelationId(text) => parts.correlation_id = Some(text),
                Field::ReplyTo(text) => parts.reply_to = Some(text),
                Field::OriginalDestination(text) => parts.original_destination = Some(text),
                Field::Reason(reason) => parts.reason = Some(reason),
                Field::Failure(failure) => parts.failure = Some(failure),
                Field::Header(name, value) => parts.headers.push((name, value)),
            }
        }
        parts
    }

    /// The message with other fields; who sent it where stays.
    pub(crate) fn changed<'a>(&'a self, change: impl FnOnce(&mut Parts<'a>)) -> Self {
        let mut parts = self.parts();
        change(&mut parts);
        parts.pack_for(Arc::clone(&self.address))
    }

    /// The client id of the connection that sent it, stamped by the bus.
    #[must_use]
    pub fn origin(&self) -> &str {
        &self.address.origin
    }

    /// Where it was sent to.
    #[must_use]
    pub fn destination(&self) -> &Destination {
        &self.address.destination
    }

    /// How the sender spelled that.
    #[must_use]
    pub fn destination_text(&self) -> &str {
        &self.address.text
    }

    /// The body.
    #[must_use]
    pub fn body(&self) -> Bytes {
        self.content.slice(self.body_at..)
    }

    /// The body, where it stands.
    #[must_use]
    pub fn body_bytes(&self) -> &[u8] {
        self.content.get(self.body_at..).unwrap_or_default()
    }

    /// The sender's own headers, in its order.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        self.fields().filter_map(|field| match field {
            Field::Header(name, value) => Some((name, value)),
            _ => None,
        })
    }

    /// Not delivered before this time (ms since 1970).
    #[must_use]
    pub fn not_before(&self) -> Option<i64> {
        self.find(|field| match field {
            Field::NotBefore(at) => Some(at),
            _ => None,
        })
    }

    /// Not delivered from this time on (ms since 1970).
    #[must_use]
    pub fn expires_at(&self) -> Option<i64> {
        self.find(|field| match field {
            Field::ExpiresAt(at) => Some(at),
            _ => None,
        })
    }

    /// The sender's correlation id.
    #[must_use]
    pub fn correlation_id(&self) -> Option<&str> {
        self.find(|field| match field {
            Field::CorrelationId(text) => Some(text),
            _ => None,
        })
    }

    /// Where the sender wants answers, in STOMP spelling.
    #[must_use]
    pub fn reply_to(&self) -> Option<&str> {
        self.find(|field| match field {
            Field::ReplyTo(text) => Some(text),
            _ => None,
        })
    }

    /// The message group (`JMSXGroupID`).
    #[must_use]
    pub fn group(&self) -> Option<&str> {
        self.find(|field| match field {
            Field::Group(text) => Some(text),
            _ => None,
        })
    }

    /// Where it stood before it was moved to an error queue.
    #[must_use]
    pub fn original_destination(&self) -> Option<&str> {
        self.find(|field| match field {
            Field::OriginalDestination(text) => Some(text),
            _ => None,
        })
    }

    /// Why it was moved there.
    #[must_use]
    pub fn reason(&self) -> Option<Reason> {
        self.find(|field| match field {
            Field::Reason(reason) => Some(reason),
            _ => None,
        })
    }

    /// How it had failed, if that is why.
    #[must_use]
    pub fn failure(&self) -> Option<Failure> {
        self.find(|field| match field {
            Field::Failure(failure) => Some(failure),
            _ => None,
        })
    }

    /// What the message costs in memory and in the log, in bytes (about).
    #[must_use]
    pub fn size(&self) -> u64 {
        (FIXED_SIZE + self.destination_text().len() + self.content.len()) as u64
    }

    /// Whether its sender says that it is the last one of its message group (`JMSXGroupSeq:-1`).
    pub(crate) fn closes_its_group(&self) -> bool {
        self.headers().any(|it| it == ("JMSXGroupSeq", "-1"))
    }

    /// Whether it may no longer be delivered.
    #[must_use]
    pub fn is_expired(&self, now_ms: i64) -> bool {
        self.expires_at().is_some_and(|at| at <= now_ms)
    }

    fn fields(&self) -> Fields<'_> {
        Fields::new(self.content.get(..self.body_at).unwrap_or_default())
    }

    fn find<'a, T>(&'a self, wanted: impl FnMut(Field<'a>) -> Option<T>) -> Option<T> {
        self.fields().find_map(wanted)
    }
}

impl fmt::Debug for QueuedMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parts().fmt(f)
    }
}
