//! A message: as it is sent, and as the queue manager keeps it.

mod address;
mod fields;
mod queued;

use std::{fmt, num::ParseIntError, str::FromStr};

use bytes::Bytes;
use pillarbox_messages::Destination;
use serde::{Deserialize, Serialize};

pub use self::queued::QueuedMessage;
pub(crate) use self::{
    address::{Address, Addresses},
    queued::Parts,
};
use crate::error::BusError;

/// The priority of a message that names none.
pub(crate) const DEFAULT_PRIORITY: u8 = 4;
/// The highest priority.
pub(crate) const MAX_PRIORITY: u8 = 9;

/// The longest correlation id, in bytes.
const MAX_CORRELATION_ID: usize = 255;

/// Refuses a number that is no priority.
pub(crate) fn check_priority(priority: u8) -> Result<(), BusError> {
    if priority > MAX_PRIORITY {
        return Err(BusError::invalid("a priority is 0 to 9"));
    }
    Ok(())
}

/// Refuses a correlation id that is too long.
pub(crate) fn check_correlation_id(id: Option<&str>) -> Result<(), BusError> {
    if id.is_some_and(|id| id.len() > MAX_CORRELATION_ID) {
        return Err(BusError::TooLarge {
            what: "a correlation id".to_owned(),
            limit: MAX_CORRELATION_ID as u64,
        });
    }
    Ok(())
}

/// A message's identity, unique in its queue space for ever: `<boot>-<seq>`. Survives redelivery and moves.
///
/// Ordered by the time of the commit that brought the message in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct MessageId {
    /// How often the queue space had been opened when the message came.
    pub boot: u64,
    /// The message's number since then.
    pub seq: u64,
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.boot, self.seq)
    }
}

impl FromStr for MessageId {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        // Without a dash the second number is empty, and so none.
        let (boot, seq) = text.split_once('-').unwrap_or((text, ""));
        Ok(Self {
            boot: boot.parse()?,
            seq: seq.parse()?,
        })
    }
}

impl From<MessageId> for String {
    fn from(id: MessageId) -> Self {
        id.to_string()
    }
}

impl TryFrom<String> for MessageId {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let refused = |_| format!("'{text}' is no message's id, which looks like 3-17");
        text.parse().map_err(refused)
    }
}

/// One handing-out of one message to one subscription. A message that comes again has a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeliveryId(pub u64);

impl fmt::Display for DeliveryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for DeliveryId {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        text.parse().map(Self)
    }
}

/// A message that a connection sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewMessage {
    /// Where to.
    pub destination: Destination,
    /// How the sender spelled the destination; receivers see exactly this.
    pub destination_text: String,
    /// The sender's own headers, in its order.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Bytes,
    /// Whether it must survive a restart; `None`: as the destination does by default (queues and durable
    /// subscriptions: yes).
    pub persistent: Option<bool>,
    /// 0 to 9, higher goes first.
    pub priority: u8,
    /// Not to be delivered before this time (ms since 1970).
    pub not_before: Option<i64>,
    /// Not to be delivered from this time on (ms since 1970).
    pub expires_at: Option<i64>,
    /// The sender's correlation id.
    pub correlation_id: Option<String>,
    /// Where the sender wants answers, in STOMP spelling.
    pub reply_to: Option<String>,
    /// The message group (`JMSXGroupID`).
    pub group: Option<String>,
    /// Not to be delivered before so many milliseconds after its commit.
    pub delay: Option<i64>,
    /// Before everything that is in the queue; the queue has to allow it.
    pub top: bool,
    /// Directly before this message in the queue; the queue has to allow it.
    pub before: Option<MessageId>,
    /// What the sender calls it, so that it is kept once though it be sent again; up to 255 bytes.
    pub dedup: Option<Box<str>>,
}

impl NewMessage {
    /// A message without headers, of default priority, that never expires.
    #[must_use]
    pub fn new(destination: Destination, body: Bytes) -> Self {
        Self {
            destination_text: crate::spelling::to_stomp(&destination),
            destination,
            headers: Vec::new(),
            body,
            persistent: None,
            priority: DEFAULT_PRIORITY,
            not_before: None,
            expires_at: None,
            correlation_id: None,
            reply_to: None,
            group: None,
            delay: None,
            top: false,
            before: None,
            dedup: None,
        }
    }

    /// What the message costs in memory and in the log, in bytes (about).
    #[must_use]
    pub fn size(&self) -> u64 {
        let texts = [&self.correlation_id, &self.reply_to, &self.group];
        size_of_parts(&self.destination_text, texts, &self.headers, &self.body)
    }
}

/// Why a message stands in an error queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// Its destination does not exist.
    Unroutable,
    /// A consumer refused it for good.
    Rejected,
    /// It came back too often.
    Backout,
    /// It was too old.
    Expired,
    /// An administrator moved it.
    Admin,
}

impl Reason {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Unroutable,
        Self::Rejected,
        Self::Backout,
        Self::Expired,
        Self::Admin,
    ];

    /// The reason as a header value.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unroutable => "unroutable",
            Self::Rejected => "rejected",
            Self::Backout => "backout",
            Self::Expired => "expired",
            Self::Admin => "admin",
        }
    }
}

/// What went wrong with a message before it was moved aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// Its consumer gave it back as a failure.
    Refused,
    /// The transaction that acknowledged it was aborted.
    Aborted,
    /// The transaction that acknowledged it was open for too long.
    TimedOut,
    /// Its consumer's connection was lost.
    ConnectionLost,
    /// The process ended while a consumer within it had the message in hand.
    ProcessEnded,
    /// Nothing: it follows, in its lane, one that was moved.
    Parked,
    /// Its consumer had it in hand for longer than it had said.
    AckTimedOut,
}

impl Cause {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Refused,
        Self::Aborted,
        Self::TimedOut,
        Self::ConnectionLost,
        Self::ProcessEnded,
        Self::Parked,
        Self::AckTimedOut,
    ];

    /// The cause as a header value.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Aborted => "aborted",
            Self::TimedOut => "timed-out",
            Self::ConnectionLost => "connection-lost",
            Self::ProcessEnded => "process-ended",
            Self::Parked => "parked",
            Self::AckTimedOut => "ack-timeout",
        }
    }
}

/// How a message failed for the last time before it was moved aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// When (ms since 1970).
    pub failed_at: i64,
    /// What went wrong.
    pub cause: Cause,
}

/// Added to every message's size for its fixed parts and its place in the index.
const FIXED_SIZE: usize = 192;
/// The same before it is packed: more than packing adds for what is there.
const LOOSE_SIZE: usize = FIXED_SIZE + 64;
/// Added for every header, which costs memory even if it says nothing.
const HEADER_SIZE: usize = 64;

/// Counts everything whose length its sender chooses: what is not counted here is not limited anywhere.
fn size_of_parts(
    destination: &str,
    texts: [&Option<String>; 3],
    headers: &[(String, String)],
    body: &Bytes,
) -> u64 {
    let texts: usize = texts.into_iter().flatten().map(String::len).sum();
    let headers: usize = headers
        .iter()
        .map(|(name, value)| HEADER_SIZE + name.len() + value.len())
        .sum();
    (LOOSE_SIZE + destination.len() + texts + headers + body.len()) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(message: &NewMessage) -> QueuedMessage {
        let id = MessageId { boot: 1, seq: 1 };
        Parts::of(message, id, "", 1_000, true).pack(&mut Addresses::default())
    }

    #[test]
    fn a_packed_message_takes_little_beside_what_it_says() {
        assert!(size_of::<QueuedMessage>() <= 80);
        let plain = NewMessage::new(Destination::queue("q"), Bytes::from_static(b"body"));
        let packed = packed(&plain);
        assert_eq!(packed.body(), "body");
        assert_eq!(
            packed.size(),
            (FIXED_SIZE + "/queue/q".len() + "body".len()) as u64
        );
        let moved = packed.changed(|parts| parts.reason = Some(Reason::Admin));
        assert_eq!(
            (moved.reason(), moved.body()),
            (Some(Reason::Admin), packed.body())
        );
    }

    #[test]
    fn everything_a_sender_can_make_long_counts() {
        let plain = NewMessage::new(Destination::queue("q"), Bytes::new());
        let long = || "x".repeat(60_000);
        let mut messages = vec![plain.clone(); 6];
        messages[0].destination_text = long();
        messages[1].correlation_id = Some(long());
        messages[2].reply_to = Some(long());
        messages[3].group = Some(long());
        messages[4].body = long().into();
        messages[5].headers = vec![("a".to_owned(), String::new()); 1_000];
        for message in messages {
            assert!(message.size() > plain.size() + 59_000, "{message:?}");
            let packed = packed(&message);
            assert!(
                packed.size() <= message.size(),
                "so that what was checked has room"
            );
            assert!(packed.size() > message.size() / 8, "{message:?}");
        }
    }
}
