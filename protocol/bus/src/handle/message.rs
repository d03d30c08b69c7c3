//! What goes in and out of the bus handle, the same over every kind of bus.

use std::time::Duration;

use bytes::Bytes;
use pillarbox_messages::{Destination, DestinationKind};

pub use crate::embedded::connection::{AckMode, Selector, Wait};
use crate::{
    core::{
        dedup::check_dedup_id,
        message::{DEFAULT_PRIORITY, check_correlation_id, check_priority},
    },
    error::BusError,
    stomp::destination::check_destination,
};

/// Who connects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectOptions {
    /// The component's id. A second live connection with it is refused.
    pub client_id: String,
}

/// A message to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// Where to. A temporary queue is this connection's own, or somebody's as [`Incoming::reply_to`] gave it.
    pub destination: Destination,
    /// Properties: STOMP headers of the same names, in this order.
    pub properties: Vec<(String, String)>,
    /// The body, carried unchanged.
    pub body: Bytes,
    /// Whether it must survive a restart of the bus.
    pub persistent: bool,
    /// How long it may wait; counted from now.
    pub ttl: Option<Duration>,
    /// The correlation id.
    pub correlation_id: Option<String>,
    /// Where answers go.
    pub reply_to: Option<Destination>,
    /// The message group (`JMSXGroupID`).
    pub group: Option<String>,
    /// 0 to 9, higher goes first; 4 is usual.
    pub priority: u8,
    /// What the sender calls the message (`q-dedup`), at most 255 bytes. The embedded bus keeps a message once, though it
    /// be sent to its destination again within ten minutes, over a restart too; only the last 100,000 of a destination are
    /// remembered. Other buses make nothing of it.
    pub dedup: Option<String>,
}

impl Outgoing {
    /// A volatile message of usual priority without properties, that may wait for ever.
    #[must_use]
    pub fn new(destination: Destination, body: impl Into<Bytes>) -> Self {
        Self {
            destination,
            properties: Vec::new(),
            body: body.into(),
            persistent: false,
            ttl: None,
            correlation_id: None,
            reply_to: None,
            group: None,
            priority: DEFAULT_PRIORITY,
            dedup: None,
        }
    }
}

impl Outgoing {
    /// Refuses what no bus takes: a destination, reply address or property without a fit name, a correlation id
    /// that is too long, a priority that is none.
    pub(crate) fn check(&self) -> Result<(), BusError> {
        check_destination(&self.destination)?;
        self.reply_to.as_ref().map_or(Ok(()), check_destination)?;
        check_correlation_id(self.correlation_id.as_deref())?;
        check_priority(self.priority)?;
        check_dedup_id(self.dedup.as_deref())?;
        self.properties
            .iter()
            .try_for_each(|(name, value)| check_property(name, value))
    }
}

fn check_property(name: &str, value: &str) -> Result<(), BusError> {
    let shown = name.escape_debug();
    if name.is_empty() || name.contains('\0') || value.contains('\0') {
        return Err(BusError::invalid(format!(
            "property '{shown}' can't be a STOMP header"
        )));
    }
    if TRANSPORT.contains(&name) || RESERVED.contains(&name) {
        return Err(BusError::invalid(format!(
            "property '{shown}' has the name of a header of the transport"
        )));
    }
    Ok(())
}

/// Headers of a message that are the transport's, not the sender's: they are no properties. The last ones are about a
/// frame or its time to live; RabbitMQ passes them on.
const TRANSPORT: [&str; 22] = [
    "destination",
    "subscription",
    "message-id",
    "ack",
    "redelivered",
    "persistent",
    "priority",
    "expires",
    "timestamp",
    "correlation-id",
    "reply-to",
    "JMSXGroupID",
    "amq-msg-type",
    "q-backout-count",
    "q-delivery-count",
    "q-client-id",
    "q-ttl",
    "q-dedup",
    "content-length",
    "expiration",
    "receipt",
    "transaction",
];

/// Further headers that no sender sets as a property: only the bus may say them.
const RESERVED: [&str; 5] = [
    "q-failed-at",
    "q-failure-cause",
    "original-destination",
    "q-reason",
    "JMSXGroupFirstForConsumer",
];

/// What of a message's headers its receiver sees as properties.
pub(crate) fn properties(mut headers: Vec<(String, String)>) -> Vec<(String, String)> {
    headers.retain(|(name, _)| !TRANSPORT.contains(&name.as_str()));
    headers
}

/// A message received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incoming {
    /// The bus's identity of the message; the same when it comes again, except over RabbitMQ, which names deliveries.
    pub message_id: String,
    /// Where it was sent to.
    pub destination: Destination,
    /// The sender's properties, in its order.
    pub properties: Vec<(String, String)>,
    /// The body.
    pub body: Bytes,
    /// How many bytes the body had, if it was too long to be taken in; it is empty then.
    pub left_out: Option<usize>,
    /// The correlation id.
    pub correlation_id: Option<String>,
    /// Where answers go, as the transport says it; [`crate::spelling::from_stomp`] makes a destination of it.
    pub reply_to: Option<String>,
    /// Whether it survives a restart of the bus.
    pub persistent: bool,
    /// Whether it may have been delivered before.
    pub redelivered: bool,
    /// How often it has been handed out, this time included; 1 where the bus does not count.
    pub delivery_count: u32,
    /// How often it has come back counted; 0 where the bus does not count.
    pub backout_count: u32,
}

impl Incoming {
    /// The first property of this name.
    #[must_use]
    pub fn property(&self, name: &str) -> Option<&str> {
        self.properties
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }
}

/// What to subscribe to, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubscribeRequest {
    /// A queue, a topic, or an own temporary queue.
    pub destination: Destination,
    /// The name of a durable subscription; topics only.
    pub durable: Option<String>,
    /// When a message counts as consumed. [`AckMode::Client`] is for the STOMP server and refused here.
    pub ack: AckMode,
    /// How many deliveries may be unacknowledged; not 0.
    pub prefetch: u32,
    /// How long a delivery may be unacknowledged, from when the bus hands it out: also while it waits here for those
    /// before it. The embedded bus then takes the oldest one back, counted, and ends the subscription (over STOMP: the
    /// connection). Other buses make nothing of it. `None`: as long as it takes.
    pub ack_timeout: Option<Duration>,
}

impl SubscribeRequest {
    /// Whether what was delivered and not acknowledged comes again when the connection has broken: not from a plain
    /// topic, nor from a temporary queue, which ends with its connection.
    #[must_use]
    pub fn redelivers(&self) -> bool {
        self.durable.is_some() || self.destination.kind() == DestinationKind::Queue
    }
}

/// Which message to take, and whether to wait for it.
#[derive(Clone, Debug, PartialEq)]
pub struct GetRequest {
    /// The queue.
    pub destination: Destination,
    /// Which message; the first one that fits. Where there are lanes, that can only be the first of one.
    pub selector: Option<Selector>,
    /// How long to wait for it.
    pub wait: Wait,
}

/// The state of a bus connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BusState {
    /// Not connected (yet, or again); trying.
    Connecting,
    /// Connected.
    Connected,
    /// Not connected, and it will not become better by trying.
    Failed(BusError),
    /// Closed by this side.
    Closed,
}

#[cfg(test)]
mod tests {
    use pillarbox_messages::DestinationKind;

    use super::*;

    fn message() -> Outgoing {
        Outgoing::new(Destination::topic("kim's desk"), "body")
    }

    #[test]
    fn what_no_bus_takes_is_refused() {
        let fit = |message: Outgoing| message.check().map_err(|error| error.name().to_owned());
        let long = "x".repeat(256);
        let temporary = |name| Destination::new(DestinationKind::TemporaryQueue, name);
        assert_eq!(fit(message()), Ok(()));
        for destination in [
            Destination::queue("a,b"),
            Destination::topic(&long),
            temporary("a/b"),
            temporary("1.2.a/b"),
        ] {
            let to = Outgoing {
                destination: destination.clone(),
                ..message()
            };
            assert_eq!(fit(to), Err("INVALID".to_owned()), "{destination}");
            let reply_to = Outgoing {
                reply_to: Some(destination.clone()),
                ..message()
            };
            assert_eq!(fit(reply_to), Err("INVALID".to_owned()), "{destination}");
        }
        let correlated = |length| Outgoing {
            correlation_id: Some("c".repeat(length)),
            ..message()
        };
        assert_eq!(fit(correlated(255)), Ok(()));
        assert_eq!(fit(correlated(256)), Err("LIMIT".to_owned()));
        let named = |length| Outgoing {
            dedup: Some("d".repeat(length)),
            ..message()
        };
        assert_eq!(fit(named(255)), Ok(()));
        assert_eq!(fit(named(256)), Err("LIMIT".to_owned()));
        assert_eq!(fit(named(0)), Err("INVALID".to_owned()));
        let of_priority = |priority| Outgoing {
            priority,
            ..message()
        };
        assert_eq!(fit(of_priority(9)), Ok(()));
        assert_eq!(fit(of_priority(10)), Err("INVALID".to_owned()));
    }

    #[test]
    fn properties_with_names_of_the_transports_headers_are_refused() {
        for name in TRANSPORT.into_iter().chain(RESERVED).chain(["", "a\0"]) {
            let mut message = message();
            message.properties.push((name.to_owned(), "1".to_owned()));
            assert_eq!(message.check().unwrap_err().name(), "INVALID", "{name:?}");
        }
        for name in ["org.bitrepository.messages.type", "x", "Priority"] {
            let mut message = message();
            message.properties.push((name.to_owned(), "1".to_owned()));
            assert_eq!(message.check(), Ok(()), "{name}");
        }
    }
}
