//! How the brokers differ that this client speaks to: one value per broker, and what each value means for the
//! frames. Everything else in the client is the same for all of them.
//!
//! | | Pillarbox | ActiveMQ Classic | Artemis | RabbitMQ |
//! |---|---|---|---|---|
//! | time to live | `q-ttl`, relative | `expires`, absolute | `expires`, absolute | `expiration`, relative |
//! | prefetch | messages | messages | bytes | `prefetch-count`, messages |
//! | durable subscription | by client id and name | by client id and name | by client id and name | a queue of its own |
//! | deleting a durable subscription | ends it, too | after it was ended | after it was ended | ends it, too |
//! | send and acknowledge together | a transaction | a transaction | receipts, then acknowledgement | as Artemis |
//! | `NACK` | counts, and redelivers | would move to the dead letters | would consume | redelivers at once |
//! | `UNSUBSCRIBE` | returns what is in flight | the same | the same | does not, and ends its acknowledgements |
//! | own temporary queue | is subscribed to | the same | the same | is there with the first `reply-to` |
//! | `content-length` | yes | yes, with `amq-msg-type:text` | would make it bytes | yes |
//! | `message-id` | the message's | the same | the same | the delivery's |
//! | a second live client id | refused | refused | refused | not noticed |

use std::time::{Duration, SystemTime};

use pillarbox_messages::{Destination, DestinationKind};

use super::encode;
use crate::{
    error::BusError,
    handle::Outgoing,
    spelling,
    stomp::{codec::FrameLimits, destination::to_wire, frame::FrameWriter},
};

/// What a broker makes of STOMP.
#[derive(Debug)]
pub(super) struct Dialect {
    /// The broker, for people.
    pub(super) broker: &'static str,
    ttl: TimeToLive,
    prefetch: Prefetch,
    durable: Durable,
    /// Whether a durable subscription can be deleted only after it has been ended.
    pub(super) ended_before_deleted: bool,
    /// Whether acknowledgements belong to transactions.
    pub(super) transactional_ack: bool,
    /// What becomes of a delivery that is given back.
    pub(super) giving_back: GivingBack,
    /// Whether UNSUBSCRIBE returns what is in flight.
    pub(super) unsubscribe_returns: bool,
    /// Whether a connection's temporary queue is there, and subscribed to, with the first `reply-to` that names it.
    pub(super) implied_temporary: bool,
    /// Whether `message-id` is the same when a message comes again, and not the delivery's.
    pub(super) lasting_ids: bool,
    content_length: bool,
    percent: bool,
    limits: Limits,
    /// What its queues are administered with, if that is not our administration.
    pub(super) administered_with: Option<&'static str>,
}

/// How a message's time to live is written.
#[derive(Clone, Copy, Debug)]
enum TimeToLive {
    /// In milliseconds from now, in this header.
    Relative(&'static str),
    /// As milliseconds since 1970, by this machine's clock: `expires`.
    Absolute,
}

/// How the number of unacknowledged deliveries is written.
#[derive(Clone, Copy, Debug)]
struct Prefetch {
    header: &'static str,
    /// What one message counts for.
    each: u32,
    /// Whether no more are delivered than that.
    exact: bool,
}

/// How a durable subscription is named.
#[derive(Clone, Copy, Debug)]
enum Durable {
    /// With its name, under the connection's client id.
    Name,
    /// As a queue of this broker.
    Queue,
}

/// How a delivery is given back so that it comes again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GivingBack {
    /// With NACK.
    Nack,
    /// With NACK, after a pause: it would come again at once.
    NackLater,
    /// By ending the subscription for a while: NACK would lose it.
    Resubscribe,
}

/// What the broker refuses by closing the connection. In bytes.
#[derive(Clone, Copy, Debug)]
struct Limits {
    header_line: usize,
    headers: usize,
    frame: usize,
}

/// The embedded queue manager's server.
pub(super) static PILLARBOX: Dialect = Dialect {
    broker: "Pillarbox",
    ttl: TimeToLive::Relative("q-ttl"),
    prefetch: MESSAGES,
    durable: Durable::Name,
    ended_before_deleted: false,
    transactional_ack: true,
    giving_back: GivingBack::Nack,
    unsubscribe_returns: true,
    implied_temporary: false,
    lasting_ids: true,
    content_length: true,
    percent: false,
    limits: Limits {
        header_line: usize::MAX,
        headers: usize::MAX,
        frame: usize::MAX,
    },
    administered_with: None,
};

/// ActiveMQ Classic: `StompWireFormat` for the limits, `StompSubscription.onStompMessageNack` for NACK,
/// `ProtocolConverter.onStompUnsubscribe`.
static ACTIVEMQ: Dialect = Dialect {
    broker: "ActiveMQ",
    ttl: TimeToLive::Absolute,
    prefetch: MESSAGES,
    durable: Durable::Name,
    ended_before_deleted: true,
    transactional_ack: true,
    giving_back: GivingBack::Resubscribe,
    unsubscribe_returns: true,
    implied_temporary: false,
    lasting_ids: true,
    content_length: true,
    percent: false,
    limits: Limits {
        header_line: 10 << 10,
        headers: 1000,
        frame: 100 << 20,
    },
    administered_with: Some(
        "use its web console, or 'activemq dstat queues' and 'activemq browse'",
    ),
};

/// Artemis: its `StompFrameHandlerV11.onNack` acknowledges, and an ACK's `transaction` is not looked at.
static ARTEMIS: Dialect = Dialect {
    broker: "Artemis",
    ttl: TimeToLive::Absolute,
    prefetch: Prefetch {
        header: "consumer-window-size",
        each: 16 << 10,
        exact: false,
    },
    durable: Durable::Name,
    ended_before_deleted: true,
    transactional_ack: false,
    giving_back: GivingBack::Resubscribe,
    unsubscribe_returns: true,
    implied_temporary: false,
    lasting_ids: true,
    content_length: false,
    percent: false,
    limits: Limits {
        header_line: 10 << 10,
        headers: 1000,
        frame: 10 << 20,
    },
    administered_with: Some("use its console, or 'artemis queue stat' and 'artemis browser'"),
};

/// RabbitMQ: its STOMP plugin's manual, "Destinations", "Ack and Nack", "Temp Queue Destinations".
static RABBITMQ: Dialect = Dialect {
    broker: "RabbitMQ",
    ttl: TimeToLive::Relative("expiration"),
    prefetch: Prefetch {
        header: "prefetch-count",
        each: 1,
        exact: true,
    },
    durable: Durable::Queue,
    ended_before_deleted: false,
    transactional_ack: false,
    giving_back: GivingBack::NackLater,
    unsubscribe_returns: false,
    implied_temporary: true,
    lasting_ids: false,
    content_length: true,
    percent: true,
    limits: Limits {
        header_line: 64 << 10,
        headers: 100,
        frame: 4 << 20,
    },
    administered_with: Some("use its management page, or 'rabbitmqctl list_queues'"),
};

/// A broker that says nothing, or something unknown, about itself: what works everywhere.
static OTHER: Dialect = Dialect {
    broker: "a STOMP broker",
    ttl: TimeToLive::Absolute,
    prefetch: Prefetch {
        exact: false,
        ..MESSAGES
    },
    durable: Durable::Name,
    ended_before_deleted: false,
    transactional_ack: false,
    giving_back: GivingBack::Resubscribe,
    unsubscribe_returns: true,
    implied_temporary: false,
    lasting_ids: false,
    content_length: true,
    percent: false,
    limits: Limits {
        header_line: 10 << 10,
        headers: 100,
        frame: 4 << 20,
    },
    administered_with: Some("use its own tools"),
};

const MESSAGES: Prefetch = Prefetch {
    header: "activemq.prefetchSize",
    each: 1,
    exact: true,
};

/// The names of a durable subscription's name: ActiveMQ's, and Artemis's.
const DURABLE: [&str; 2] = ["activemq.subscriptionName", "durable-subscription-name"];
/// How RabbitMQ spells somebody else's temporary queue.
const REPLY_QUEUE: &str = "/reply-queue/";

impl Dialect {
    /// The dialect of a broker by the `server` header of its CONNECTED.
    pub(super) fn of_server(server: Option<&str>) -> &'static Self {
        let server = server.unwrap_or_default();
        let known = [
            ("Pillarbox/", &PILLARBOX),
            ("ActiveMQ/", &ACTIVEMQ),
            ("ActiveMQ-Artemis/", &ARTEMIS),
            ("apache-activemq-artemis", &ARTEMIS),
            ("RabbitMQ/", &RABBITMQ),
        ];
        let found = known.iter().find(|(name, _)| server.starts_with(name));
        found.map_or(&OTHER, |(_, dialect)| dialect)
    }

    /// How long a message may still wait.
    pub(super) fn write_ttl(&self, frame: &mut FrameWriter<'_>, ttl: Duration) {
        // A time to live of 0 would be none at all.
        let left = ttl.as_millis().max(1);
        match self.ttl {
            TimeToLive::Relative(header) => frame.plain(header, left),
            TimeToLive::Absolute => frame.plain("expires", since_1970().saturating_add(left)),
        };
    }

    /// What SUBSCRIBE says of how many deliveries may be unacknowledged.
    pub(super) fn write_prefetch(&self, frame: &mut FrameWriter<'_>, prefetch: u32) {
        let Prefetch { header, each, .. } = self.prefetch;
        frame.plain(header, u64::from(prefetch) * u64::from(each));
    }

    /// Whether the broker delivers no more than a subscription's prefetch.
    pub(super) const fn counts_exactly(&self) -> bool {
        self.prefetch.exact
    }

    /// The name of a durable subscription, for SUBSCRIBE, and for the UNSUBSCRIBE that deletes it.
    pub(super) fn write_durable(
        &self,
        frame: &mut FrameWriter<'_>,
        client: &str,
        name: &str,
        topic: &Destination,
    ) {
        match self.durable {
            Durable::Name => {
                for header in DURABLE {
                    frame.header(header, name);
                }
            }
            Durable::Queue => {
                frame.plain("durable", true).plain("auto-delete", false);
                let queue = format!("{client}/{name}/{}", topic.name());
                frame.header("x-queue-name", &queue);
            }
        }
    }

    /// A destination as the broker reads it.
    pub(super) fn spell(&self, destination: &Destination) -> String {
        if self.implied_temporary && is_reply_queue(destination) {
            return format!("{REPLY_QUEUE}{}", destination.name());
        }
        let plain = to_wire(destination);
        if self.percent {
            plain.replace('%', "%25")
        } else {
            plain
        }
    }

    /// The destination that the broker's spelling means; `None` if it is not known.
    pub(super) fn read(&self, text: &str) -> Option<Destination> {
        if !self.percent {
            return spelling::from_stomp(text);
        }
        match text.strip_prefix(REPLY_QUEUE) {
            Some(name) => Some(Destination::new(DestinationKind::TemporaryQueue, name)),
            None => spelling::from_stomp(&text.replace("%25", "%")),
        }
    }

    /// Ends a frame with a body.
    pub(super) fn finish(&self, frame: FrameWriter<'_>, body: &[u8]) {
        if self.content_length {
            frame.finish(body);
        } else {
            frame.finish_unmeasured(body);
        }
    }

    /// Refuses what this broker would answer by closing the connection.
    pub(super) fn check(&self, message: &Outgoing) -> Result<(), BusError> {
        if !self.content_length && message.body.contains(&0) {
            return Err(BusError::invalid(format!(
                "{} carries no text with a NUL character",
                self.broker
            )));
        }
        let limits = FrameLimits {
            header_line: self.limits.header_line,
            headers: self.limits.headers,
            head: self.limits.frame,
            body: self.largest_body(),
            ..FrameLimits::default()
        };
        encode::check_size(message, &limits)
    }

    /// How many bytes the body of a frame may have.
    pub(super) const fn largest_body(&self) -> usize {
        self.limits.frame.saturating_sub(ROOM)
    }
}

/// Of a frame with a limit as a whole, what its headers may take.
const ROOM: usize = 64 << 10;

/// RabbitMQ's own names of temporary queues.
fn is_reply_queue(destination: &Destination) -> bool {
    destination.kind() == DestinationKind::TemporaryQueue
        && destination.name().starts_with("amq.gen-")
}

fn since_1970() -> u128 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.map_or(0, |since| since.as_millis())
}
