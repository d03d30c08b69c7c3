//! What can go wrong on the bus, in one list for the in-process handle, STOMP ERROR frames and administration.

use std::path::PathBuf;

use pillarbox_messages::Destination;
use thiserror::Error;

/// Why the bus did not do what it was asked for.
///
/// Cheap to clone: one failure often has to be told to several waiters.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BusError {
    /// Nobody answers at the bus's address.
    #[error("no bus answers at {address}: {reason}")]
    Unreachable {
        /// Host and port that were tried.
        address: String,
        /// What the operating system or the peer said.
        reason: String,
    },
    /// Something that is no bus of STOMP answers at the bus's address.
    #[error(
        "what answers at {address} speaks {protocol}, not STOMP{}",
        remedy_of(protocol)
    )]
    OtherProtocol {
        /// Host and port that were tried.
        address: String,
        /// What is spoken there.
        protocol: &'static str,
    },
    /// Another live connection has this client id.
    #[error("client id '{0}' is in use by another live connection")]
    ClientIdInUse(String),
    /// There is no such destination and its name fits no client template.
    #[error("there is no {destination}; {remedy}")]
    UnknownDestination {
        /// What was asked for.
        destination: Destination,
        /// What to do about it.
        remedy: String,
    },
    /// Another connection uses this durable subscription.
    #[error(
        "durable subscription '{name}' of client '{client_id}' is in use by another connection"
    )]
    SubscriptionInUse {
        /// The client.
        client_id: String,
        /// The subscription's name.
        name: String,
    },
    /// The durable subscription exists, but for another topic.
    #[error(
        "durable subscription '{name}' of client '{client_id}' is for {existing}, not {requested}"
    )]
    SubscriptionMismatch {
        /// The client.
        client_id: String,
        /// The subscription's name.
        name: String,
        /// The topic it was made for.
        existing: Destination,
        /// The topic it was asked for.
        requested: Destination,
    },
    /// The durable subscription exists, but is another than the one that was asked for.
    #[error("durable subscription '{name}' of client '{client_id}' {detail}")]
    SubscriptionDiffers {
        /// The client; empty if it is shared.
        client_id: String,
        /// The subscription's name.
        name: String,
        /// In what way, as in `is shared, not its own`.
        detail: String,
    },
    /// A durable subscription is full, and wants senders to be refused rather than to miss anything.
    #[error(
        "durable subscription '{name}' of client '{client_id}' has reached its limit of {limit}, and lets nobody send \
         what it would miss"
    )]
    SubscriptionFull {
        /// The client.
        client_id: String,
        /// The subscription's name.
        name: String,
        /// The limit, in words.
        limit: String,
    },
    /// A plain subscriber did not keep up and its subscription was closed.
    #[error("subscription to {destination} closed: more than {limit} wait for it")]
    SlowConsumer {
        /// What was subscribed to.
        destination: Destination,
        /// The limit that was passed, in words.
        limit: String,
    },
    /// A consumer had a message in hand for longer than it had said; its subscription was closed.
    #[error("a message was in hand for {limit_ms} ms without being acknowledged")]
    AckTimeout {
        /// How long it may be, in milliseconds.
        limit_ms: i64,
    },
    /// There is no message of the kind that somebody wanted to take.
    #[error("there is no such message")]
    NoMessage,
    /// There are such messages, but all of them are in consumers' hands.
    #[error("all such messages are in consumers' hands")]
    InUse,
    /// This bus is administered with its own tools.
    #[error("this bus is not administered from here: it is {broker}; {remedy}")]
    AdministeredElsewhere {
        /// What it is.
        broker: &'static str,
        /// What to use.
        remedy: &'static str,
    },
    /// What fails or gets too old would go round for ever.
    #[error(
        "the queues '{}' move messages from one to the next in a circle; let one of them move its messages elsewhere",
        queues.join("', '")
    )]
    QueueCircle {
        /// The queues' names, each moving to the next, the last to the first.
        queues: Vec<String>,
    },
    /// The acknowledged delivery is not (or no longer) this connection's.
    #[error("this delivery is not in flight here any more")]
    StaleAck,
    /// A transaction that isn't open.
    #[error("there is no open transaction of this name")]
    TransactionUnknown,
    /// The transaction was open for too long and has been aborted.
    #[error("the transaction was aborted because it was open for too long")]
    TransactionTimedOut,
    /// A message, header or transaction over a limit.
    #[error("{what} is larger than {limit} bytes")]
    TooLarge {
        /// What was too large.
        what: String,
        /// The limit, in bytes.
        limit: u64,
    },
    /// The queue space is full. Consuming goes on.
    #[error("the queue space is full: {0}")]
    NoSpace(String),
    /// The log could not be written. Nothing is accepted until a restart has recovered it.
    #[error("the queue space has failed and needs a restart: {0}")]
    SpaceFailed(String),
    /// The queue space is damaged.
    #[error("{file} is damaged at offset {offset}: {reason}")]
    Corrupt {
        /// The damaged file.
        file: PathBuf,
        /// Where, in bytes from its start.
        offset: u64,
        /// What is wrong there.
        reason: String,
    },
    /// Another process has the queue space open.
    #[error("the queue space {dir} is in use by another process")]
    Locked {
        /// The queue space's directory.
        dir: String,
    },
    /// A queue can't be changed so, or can't go, while it has messages or somebody uses it.
    #[error("{detail}")]
    QueueNotEmpty {
        /// What is in the way, and what to do about it.
        detail: String,
    },
    /// A queue's lanes are being changed already.
    #[error(
        "queue '{queue}' is being drained for its new lanes ({left} messages to go); leave it as it is, with {lanes} in its \
         [[bus_server.queues]], until that is done"
    )]
    Draining {
        /// The queue's name.
        queue: String,
        /// How many messages are still in the earlier lanes.
        left: usize,
        /// The new lanes, as node.toml has them.
        lanes: String,
    },
    /// The operating system refused.
    #[error("{what}: {reason}")]
    Io {
        /// What was being done.
        what: String,
        /// What the operating system said.
        reason: String,
    },
    /// Refused for any other reason.
    #[error("{}", refused(name, detail))]
    Refused {
        /// The short name of the reason, as in [`BusError::name`].
        name: String,
        /// The reason in words.
        detail: String,
    },
    /// The connection or the bus is closed.
    #[error("the bus connection is closed")]
    Closed,
}

/// What listens on a port of ActiveMQ that is not the one for STOMP.
pub(crate) const OPEN_WIRE: &str = "OpenWire";

fn remedy_of(protocol: &str) -> &'static str {
    match protocol {
        OPEN_WIRE => {
            "; ActiveMQ needs <transportConnector name=\"stomp\" uri=\"stomp://0.0.0.0:61613\"/>, and the address \
             of that"
        }
        _ => "",
    }
}

/// Some brokers say the same twice, and ActiveMQ has a name for whoever gives none.
fn refused(name: &str, detail: &str) -> String {
    if name.contains(NO_LOGIN) || detail.contains(NO_LOGIN) {
        return "it wants a login".to_owned();
    }
    match detail.starts_with(name) {
        true => detail.to_owned(),
        false => format!("{name}: {detail}"),
    }
}

const NO_LOGIN: &str = "User name [null]";

impl BusError {
    /// Refuses a request that makes no sense.
    #[must_use]
    pub fn invalid(detail: impl Into<String>) -> Self {
        Self::Refused {
            name: "INVALID".to_owned(),
            detail: detail.into(),
        }
    }

    /// Refuses an id that names nothing.
    #[must_use]
    pub fn bad_id(detail: impl Into<String>) -> Self {
        Self::Refused {
            name: "BAD-ID".to_owned(),
            detail: detail.into(),
        }
    }

    /// Wraps what the operating system said while doing `what`.
    #[must_use]
    pub fn io(what: impl Into<String>, error: &std::io::Error) -> Self {
        Self::Io {
            what: what.into(),
            reason: error.to_string(),
        }
    }

    /// Whether a name is one of those that our own bus gives to errors, which says nothing of who may come in.
    pub(crate) fn is_own_name(name: &str) -> bool {
        OWN_NAMES.contains(&name)
    }

    /// The error's short name: the `message` header of a STOMP ERROR frame.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::UnknownDestination { .. } => "NO-QUEUE",
            Self::ClientIdInUse(_) => "CLIENT-ID-IN-USE",
            Self::SubscriptionInUse { .. } => "SUBSCRIPTION-IN-USE",
            Self::SubscriptionMismatch { .. } | Self::SubscriptionDiffers { .. } => {
                "SUBSCRIPTION-MISMATCH"
            }
            Self::SubscriptionFull { .. } => "SUBSCRIPTION-FULL",
            Self::SlowConsumer { .. } => "SLOW-CONSUMER",
            Self::AckTimeout { .. } => "ACK-TIMEOUT",
            Self::NoMessage => "NO-MESSAGE",
            Self::InUse => "IN-USE",
            Self::AdministeredElsewhere { .. } => "NOT-HERE",
            Self::QueueCircle { .. } => "INVALID",
            Self::StaleAck => "STALE-ACK",
            Self::TransactionUnknown => "TX-UNKNOWN",
            Self::TransactionTimedOut => "TX-TIMEOUT",
            Self::TooLarge { .. } => "LIMIT",
            Self::NoSpace(_) => "NO-SPACE",
            Self::QueueNotEmpty { .. } => "QUEUE-NOT-EMPTY",
            Self::Draining { .. } => "DRAINING",
            Self::SpaceFailed(_) | Self::Corrupt { .. } | Self::Io { .. } => "SPACE-FAILED",
            Self::Locked { .. } => "LOCKED",
            Self::Refused { name, .. } => name,
            Self::Unreachable { .. } | Self::OtherProtocol { .. } => "UNREACHABLE",
            Self::Closed => "CLOSED",
        }
    }
}

/// All that [`BusError::name`] says of errors of our own bus, those included that have no variant of their own.
const OWN_NAMES: [&str; 25] = [
    "ACK-TIMEOUT",
    "BAD-ID",
    "CLIENT-ID-IN-USE",
    "CLOSED",
    "DRAINING",
    "IN-USE",
    "INVALID",
    "LIMIT",
    "LOCKED",
    "NO-MESSAGE",
    "NO-QUEUE",
    "NO-SPACE",
    "NOT-HERE",
    "QUEUE-NOT-EMPTY",
    "SLOW-CONSUMER",
    "SPACE-FAILED",
    "STALE-ACK",
    "SUBSCRIPTION-FULL",
    "SUBSCRIPTION-IN-USE",
    "SUBSCRIPTION-MISMATCH",
    "TIMEOUT",
    "TX-TIMEOUT",
    "TX-UNKNOWN",
    "UNREACHABLE",
    "VERSION",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_our_own_bus_says_is_known_to_be_its_word() {
        let text = || "x".to_owned();
        let destination = Destination::queue("q");
        let own = [
            BusError::ClientIdInUse(text()),
            BusError::SlowConsumer {
                destination: destination.clone(),
                limit: text(),
            },
            BusError::UnknownDestination {
                destination,
                remedy: text(),
            },
            BusError::SubscriptionFull {
                client_id: text(),
                name: text(),
                limit: text(),
            },
            BusError::AckTimeout { limit_ms: 1 },
            BusError::NoMessage,
            BusError::InUse,
            BusError::StaleAck,
            BusError::TransactionUnknown,
            BusError::TransactionTimedOut,
            BusError::NoSpace(text()),
            BusError::SpaceFailed(text()),
            BusError::QueueNotEmpty { detail: text() },
            BusError::invalid("x"),
            BusError::bad_id("x"),
            BusError::Closed,
        ];
        for error in own {
            assert!(BusError::is_own_name(error.name()), "{}", error.name());
        }
        let said = "User north is not authorized to read from: topic://books";
        for name in ["ERROR", said, "invalid", ""] {
            assert!(!BusError::is_own_name(name), "{name}");
        }
    }

    #[test]
    fn a_login_that_was_not_given_is_wanted() {
        let null = "User name [null] or password is invalid.";
        for (name, detail) in [(null, null), ("INVALID", null), (null, "")] {
            let (name, detail) = (name.to_owned(), detail.to_owned());
            let told = BusError::Refused { name, detail }.to_string();
            assert_eq!(told, "it wants a login");
        }
    }

    #[test]
    fn what_a_broker_says_twice_is_told_once() {
        let said = |name: &str, detail: &str| {
            let (name, detail) = (name.to_owned(), detail.to_owned());
            BusError::Refused { name, detail }.to_string()
        };
        assert_eq!(said("INVALID", "no such thing"), "INVALID: no such thing");
        let wrong = "User name [kim] or password is invalid.";
        assert_eq!(said(wrong, wrong), wrong);
    }
}
