//! [`Component`]: an identity on the bus, and what all components do with it.

mod options;

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use pillarbox_bus::{Bus, BusError, Incoming, Outgoing};
use pillarbox_messages::{
    CollectionId, ComponentId, CorrelationId, Destination, Header, Message, ProtocolVersion,
    ResponseCode, ResponseInfo, Timestamp, clock::SharedClock,
};
use pillarbox_settings::{AlarmLevel, Repository, Timeouts};
use tracing::{debug, warn};

pub use self::options::ComponentOptions;
use crate::{
    alarms::{Admission, AlarmRequest, AlarmSender, Limiter, Raised},
    incoming::{self, Filter, Received, Refusal},
    outgoing::{DeliveryOptions, Expiry, delivery_for, outgoing, reply_destination},
    reading::read_options,
    rejection::Rejection,
    responses::{Subject, refusal},
    security::MessageSecurity,
};

/// A component: its id, repository, connection and clock, and how it signs, sends, receives and raises
/// alarms. Clones share everything.
#[derive(Clone)]
pub struct Component {
    shared: Arc<Shared>,
}

struct Shared {
    options: ComponentOptions,
    collections: Vec<CollectionId>,
    security: MessageSecurity,
    expiry: Expiry,
    /// Locked for a look-up only.
    limiter: Mutex<Limiter>,
}

impl Component {
    /// A component that sends unsigned messages.
    #[must_use]
    pub fn new(options: ComponentOptions) -> Self {
        let collections = options.addresses.keys().cloned().collect();
        let expiry = if options.repository.has_reference_naming() {
            Expiry::Never
        } else {
            Expiry::WithTimeout
        };
        let security = MessageSecurity::default();
        let limiter = Mutex::new(Limiter::default());
        Self {
            shared: Arc::new(Shared {
                options,
                collections,
                security,
                expiry,
                limiter,
            }),
        }
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> &ComponentId {
        &self.shared.options.id
    }

    /// The repository it belongs to.
    #[must_use]
    pub fn repository(&self) -> &Arc<Repository> {
        &self.shared.options.repository
    }

    /// Its connection.
    #[must_use]
    pub fn bus(&self) -> &Bus {
        &self.shared.options.bus
    }

    /// Its time.
    #[must_use]
    pub fn clock(&self) -> &SharedClock {
        &self.shared.options.clock
    }

    /// The time now as messages carry it.
    #[must_use]
    pub fn timestamp(&self) -> Timestamp {
        Timestamp::from(self.clock().now())
    }

    /// How it signs and verifies.
    #[must_use]
    pub fn security(&self) -> &MessageSecurity {
        &self.shared.security
    }

    /// When its requests expire.
    #[must_use]
    pub fn timeouts(&self) -> Timeouts {
        self.shared.options.timeouts
    }

    /// The collections it serves.
    #[must_use]
    pub fn collections(&self) -> &[CollectionId] {
        &self.shared.collections
    }

    /// Whether it serves this collection.
    #[must_use]
    pub fn serves(&self, collection: &CollectionId) -> bool {
        self.shared.options.addresses.contains_key(collection)
    }

    /// Its own address in this collection: `ReplyTo` of what it sends. For a collection that it doesn't
    /// serve, or none, the address in its first one.
    #[must_use]
    pub fn address(&self, collection: Option<&CollectionId>) -> Destination {
        let addresses = &self.shared.options.addresses;
        collection
            .and_then(|id| addresses.get(id))
            .or_else(|| addresses.values().next())
            .cloned()
            .unwrap_or_else(|| Destination::topic(self.id().as_str()))
    }

    /// Its alarms.
    #[must_use]
    pub fn alarms(&self) -> AlarmSender {
        AlarmSender::new(self.clone())
    }

    /// The header of a request of this component.
    #[must_use]
    pub fn request_header(
        &self,
        correlation_id: CorrelationId,
        collection: &CollectionId,
        destination: Destination,
        to: Option<ComponentId>,
    ) -> Header {
        Header {
            version: ProtocolVersion::CURRENT,
            correlation_id,
            collection_id: Some(collection.clone()),
            destination,
            reply_to: self.address(Some(collection)),
            from: self.id().clone(),
            to,
        }
    }

    /// The header of a response: correlation id and collection are the request's, the destination is its
    /// `ReplyTo`, the receiver its `From`.
    #[must_use]
    pub fn response_header(&self, request: &Header) -> Header {
        Header {
            version: ProtocolVersion::CURRENT,
            correlation_id: request.correlation_id.clone(),
            collection_id: request.collection_id.clone(),
            destination: request.reply_to.clone(),
            reply_to: self.address(request.collection_id.as_ref()),
            from: self.id().clone(),
            to: Some(request.from.clone()),
        }
    }

    /// The response that refuses a request with this code and text; none if it is no request.
    #[must_use]
    pub fn refuse(&self, request: &Message, code: ResponseCode, text: &str) -> Option<Message> {
        let header = self.response_header(request.header());
        let info = ResponseInfo {
            response_code: code,
            response_text: Some(text.to_owned()),
        };
        let (kind, subject) = (request.message_type(), Subject::of(request));
        refusal(kind, header, info, self.id(), subject, self.timestamp())
    }

    /// How this message is delivered.
    #[must_use]
    pub fn delivery(&self, message: &Message) -> DeliveryOptions {
        delivery_for(message, &self.timeouts(), self.shared.expiry)
    }

    /// The message as the bus takes it, addressed by its own `Destination`.
    #[must_use]
    pub fn outgoing(&self, message: &Message) -> Outgoing {
        outgoing(message, self.security(), self.delivery(message))
    }

    /// A response as the bus takes it. Where `Destination` is a temporary queue it goes to the transport's
    /// reply address of the request, since the name in the document is no address.
    #[must_use]
    pub fn outgoing_reply(&self, response: &Message, reply_address: Option<&str>) -> Outgoing {
        let outgoing = self.outgoing(response);
        Outgoing {
            destination: reply_destination(&outgoing.destination, reply_address),
            ..outgoing
        }
    }

    /// Sends a message.
    ///
    /// # Errors
    /// What the bus has against it.
    pub async fn send(&self, message: &Message) -> Result<(), BusError> {
        self.bus().publish(self.outgoing(message)).await
    }

    /// Sends a response to a request that was [`Received`]; see [`Component::outgoing_reply`].
    ///
    /// # Errors
    /// What the bus has against it.
    pub async fn reply(
        &self,
        response: &Message,
        reply_address: Option<&str>,
    ) -> Result<(), BusError> {
        self.bus()
            .publish(self.outgoing_reply(response, reply_address))
            .await
    }

    /// Sends a response that whoever waits for it can do without; see [`Bus::publish_soon`].
    ///
    /// # Errors
    /// What can be known without waiting for the bus.
    pub async fn reply_soon(
        &self,
        response: &Message,
        reply_address: Option<&str>,
    ) -> Result<(), BusError> {
        self.bus()
            .publish_soon(self.outgoing_reply(response, reply_address))
            .await
    }

    /// Reads a message and checks all that is checked before a handler sees it.
    ///
    /// # Errors
    /// [`Refusal`]; a rejected one goes to [`Component::reject`].
    pub fn receive(&self, incoming: &Incoming) -> Result<Received, Refusal> {
        let filter = Filter {
            component: self.id(),
            collections: self.collections(),
        };
        incoming::receive(
            incoming,
            self.security(),
            read_options(self.shared.options.zoneless),
            filter,
        )
    }

    /// The answer that a refused request deserves: `REQUEST_NOT_UNDERSTOOD_FAILURE`, of its own type. None
    /// unless it is a request that says whom to answer.
    #[must_use]
    pub fn answer_to(&self, rejection: &Rejection) -> Option<Message> {
        let kind = rejection.answerable()?;
        let header = Header {
            version: ProtocolVersion::CURRENT,
            correlation_id: rejection.correlation_id.clone()?,
            collection_id: rejection.collection_id.clone(),
            destination: rejection.reply_to.clone()?,
            reply_to: self.address(rejection.collection_id.as_ref()),
            from: self.id().clone(),
            to: rejection.from.clone(),
        };
        let info = ResponseInfo {
            response_code: ResponseCode::RequestNotUnderstoodFailure,
            response_text: Some(rejection.reason.to_string()),
        };
        let subject = rejection
            .message
            .as_ref()
            .map(Subject::of)
            .unwrap_or_default();
        refusal(kind, header, info, self.id(), subject, self.timestamp())
    }

    /// Deals with a refused message: answers it if it deserves that, then raises the alarm, rate limited.
    /// Never fails: an answer that can't be delivered must not keep the message on the bus.
    pub async fn reject(&self, rejection: &Rejection) -> Raised {
        if let Some(answer) = self.answer_to(rejection)
            && let Err(error) = self
                .reply(&answer, rejection.reply_address.as_deref())
                .await
        {
            debug!(%error, "the refusal could not be delivered");
        }
        let request = AlarmRequest {
            level: AlarmLevel::Emergency,
            code: rejection.alarm_code(),
            text: rejection.alarm_text(),
            collection: rejection.collection_id.clone().filter(|id| self.serves(id)),
            file: None,
        };
        let raised = self
            .alarms()
            .raise_about(request, rejection.from.as_ref())
            .await;
        let correlation = rejection.correlation_id.as_ref().map(AsRef::as_ref);
        let from = rejection.from.as_ref().map(ComponentId::as_str);
        let collection = rejection.collection_id.as_ref().map(CollectionId::as_str);
        let op = rejection.message_type.as_deref();
        let reason = &rejection.reason;
        if raised == Raised::HeldBack {
            debug!(correlation, from, collection, op, %reason, "message refused");
        } else {
            warn!(correlation, from, collection, op, %reason, "message refused");
        }
        raised
    }

    pub(crate) fn alarm_level(&self) -> AlarmLevel {
        self.shared.options.alarm_level
    }

    pub(crate) fn admit(&self, request: &AlarmRequest, sender: Option<&ComponentId>) -> Admission {
        let now = self.clock().now_ms();
        let sender = sender.map(ComponentId::as_str);
        self.shared
            .limiter
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .admit(request, sender, now)
    }
}

impl fmt::Debug for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Component")
            .field("id", self.id())
            .field("collections", &self.collections())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
