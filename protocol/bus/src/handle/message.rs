//! What goes in and out of the bus handle, the same over every kind of bus.

use std::time::Duration;

use bytes::Bytes;
use pillarbox_messages::Destination;

pub use crate::embedded::connection::AckMode;

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
            priority: crate::core::message::DEFAULT_PRIORITY,
        }
    }
}

/// A message received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incoming {
    /// The bus's identity of the message; the same when it comes again.
    pub message_id: String,
    /// Where it was sent to.
    pub destination: Destination,
    /// The sender's properties, in its order.
    pub properties: Vec<(String, String)>,
    /// The body.
    pub body: Bytes,
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
}

/// The state of a bus connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BusState {
    /// Not connected (yet, or again); trying.
    Connecting,
    /// Connected.
    Connected,
    /// Not connected, and it will not become better by trying.
    Failed(crate::BusError),
    /// Closed by this side.
    Closed,
}
