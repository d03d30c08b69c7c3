//! What the administration answers.

use serde::{Deserialize, Serialize};

use super::{Cause, MessageId, Reason};
use crate::error::BusError;

/// What came of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Answer {
    /// To `queue-list`.
    Queues(Queues),
    /// To `queue-show`.
    Queue(Box<QueueDetail>),
    /// To `msg-list`.
    Messages(Messages),
    /// To `msg-show`.
    Message(Box<MessageDetail>),
    /// To `msg-retry` and `msg-delete`.
    Done(Done),
    /// Nothing was done.
    Error {
        /// The error's short name, as in [`BusError::name`].
        name: String,
        /// The error in words.
        text: String,
    },
}

impl Answer {
    pub(crate) fn of(done: Result<Self, BusError>) -> Self {
        done.unwrap_or_else(|error| {
            let name = error.name().to_owned();
            let text = match error {
                BusError::Refused { detail, .. } => detail,
                other => other.to_string(),
            };
            Self::Error { name, text }
        })
    }

    pub(crate) fn write(&self) -> Vec<u8> {
        // Texts and numbers always have a JSON form.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

/// A page of queues.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queues {
    /// The queues.
    pub queues: Vec<QueueRow>,
    /// Where to go on, if there are more.
    pub after: Option<u64>,
}

/// What a queue is to its users.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// One that everybody can name.
    Queue,
    /// What a durable subscription has not taken yet.
    DurableSubscription,
    /// What a plain subscription to a topic has not taken yet.
    Subscription,
    /// One connection's own.
    Temporary,
}

impl Kind {
    /// The kind in words, as in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::DurableSubscription => "durable-subscription",
            Self::Subscription => "subscription",
            Self::Temporary => "temporary",
        }
    }
}

/// A queue's figures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueRow {
    /// Given once, when the queue is made.
    pub number: u64,
    /// Its name in STOMP spelling; of a plain subscription that of its topic.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// The topic of a subscription.
    pub topic: Option<String>,
    /// Whether it and its persistent messages outlive a restart.
    pub lasting: bool,
    /// All messages in it.
    pub messages: u64,
    /// Those that could be handed out. Where there are lanes, some of them stand behind others.
    pub ready: u64,
    /// Those that wait for a time.
    pub scheduled: u64,
    /// Those in consumers' hands.
    pub in_flight: u64,
    /// The size of all messages with their headers (about), in bytes.
    pub bytes: u64,
    /// Who takes from it.
    pub consumers: u64,
    /// How many lanes there are; of a queue whose lanes are message groups, those with messages. `None`: it has none.
    pub lanes: Option<u64>,
    /// When the message came that has been there for longest.
    pub oldest_at: Option<i64>,
    /// How long that is ago, in milliseconds.
    pub oldest_age_ms: Option<i64>,
    /// With so many failures a message is moved aside; `None`: never.
    pub backout_limit: Option<u32>,
    /// Where it is moved to then, in STOMP spelling.
    pub backout_queue: Option<String>,
    /// How many messages were moved out of it because they had failed, since the bus was started.
    pub backed_out: u64,
    /// How many messages became too old in it, since the bus was started.
    pub expired: u64,
}

/// One queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueDetail {
    /// Its figures.
    pub queue: QueueRow,
    /// What it is like.
    pub attributes: Attributes,
    /// What is emptied first, if its lanes were changed while messages were in it.
    pub drain: Option<DrainRow>,
    /// What it is besides, if it is a durable subscription.
    pub subscription: Option<SubscriptionRow>,
    /// Its lanes, 100 at most: those with messages or an owner.
    pub lanes: Vec<LaneRow>,
    /// How many more there are.
    pub more_lanes: u64,
    /// Who takes from it, 100 at most.
    pub consumers: Vec<ConsumerRow>,
    /// How many more there are.
    pub more_consumers: u64,
}

/// What of a queue has other lanes than it is to have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrainRow {
    /// Its lanes, as in [`Attributes::lanes`].
    pub lanes: String,
    /// How many messages there still are that have those.
    pub messages: u64,
}

/// A durable subscription's limits, and what it has missed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubscriptionRow {
    /// How many messages it may hold; `None`: as many as fit.
    pub max_messages: Option<u64>,
    /// How many bytes.
    pub max_bytes: u64,
    /// How long its client may be away, in milliseconds; `None`: for ever.
    pub max_offline_ms: Option<i64>,
    /// What becomes of a message that is too much, as in node.toml.
    pub on_limit: String,
    /// Since when its client is away; `None`: it is there.
    pub away_since: Option<i64>,
    /// How many messages it has missed since the latest that it has kept.
    pub missed: u64,
    /// When it missed the first of them.
    pub missed_since: Option<i64>,
}

/// What a queue is like, in the words of node.toml.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attributes {
    /// What is handed out first.
    pub order: Vec<String>,
    /// How a sender may jump that.
    pub out_of_order: Vec<String>,
    /// Which messages are dealt with one after the other.
    pub lanes: String,
    /// How message groups fall into a fixed number of lanes.
    pub lane_hash: Option<String>,
    /// Messages without a message group are refused.
    pub require_key: bool,
    /// What becomes of the messages behind one that is moved aside.
    pub on_lane_poison: String,
    /// The first pause before a refused message comes again; it doubles each time.
    pub retry_delay_ms: i64,
    /// The longest.
    pub retry_delay_max_ms: i64,
    /// Where messages go that are too old, in STOMP spelling; `None`: nowhere.
    pub expiry_queue: Option<String>,
}

/// A lane.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneRow {
    /// Its message group, or its number.
    pub lane: String,
    /// All messages in it.
    pub messages: u64,
    /// Those in its owner's hands.
    pub in_flight: u64,
    /// Those that wait for another try, and hold up the others.
    pub retrying: u64,
    /// The client that owns it.
    pub owner: Option<String>,
}

/// Who takes from a queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConsumerRow {
    /// Its client id; empty if it has none.
    pub client: String,
    /// Its connection's number.
    pub connection: u64,
    /// How many messages it may have in hand.
    pub prefetch: u32,
    /// How many it has.
    pub in_flight: u32,
    /// What it wants, if that is not everything.
    pub selector: Option<String>,
}

/// A page of messages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Messages {
    /// The messages.
    pub messages: Vec<MessageRow>,
    /// Where to go on, if there may be more. A page that has looked at 10,000 messages ends, with whatever it has found.
    pub after: Option<MessageId>,
}

/// Where a message stands within its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// It can be handed out, or stands behind others in its lane.
    Ready,
    /// It waits for a time.
    Scheduled,
    /// A consumer has it in hand.
    InFlight,
}

impl State {
    /// The state in words, as in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Scheduled => "scheduled",
            Self::InFlight => "in-flight",
        }
    }
}

/// A message in a list. Texts of its sender's are cut after 255 characters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageRow {
    /// Its identity.
    pub id: MessageId,
    /// Where it stands.
    pub state: State,
    /// Until when it waits.
    pub waits_until: Option<i64>,
    /// Its message group.
    pub key: Option<String>,
    /// Its correlation id.
    pub correlation_id: Option<String>,
    /// 0 to 9, higher goes first.
    pub priority: u8,
    /// Whether it survives a restart.
    pub persistent: bool,
    /// The client id of who sent it; empty if there was none.
    pub origin: String,
    /// When it was sent.
    pub sent_at: i64,
    /// When it will be too old.
    pub expires_at: Option<i64>,
    /// How long its body is, in bytes.
    pub body_bytes: u64,
    /// How often it has been handed out.
    pub deliveries: u32,
    /// How often it has come back as a failure.
    pub backouts: u32,
    /// Where it stood before it was moved aside, in STOMP spelling.
    pub original_destination: Option<String>,
    /// Why it was moved.
    pub reason: Option<Reason>,
    /// What went wrong the last time.
    pub cause: Option<Cause>,
    /// When that was.
    pub failed_at: Option<i64>,
}

/// One message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageDetail {
    /// The queue that it stands in, in STOMP spelling.
    pub queue: String,
    /// What a list says of it, with nothing cut.
    pub message: MessageRow,
    /// Where it was sent to, as its sender spelled it.
    pub destination: String,
    /// Where its sender wants answers.
    pub reply_to: Option<String>,
    /// Not to be delivered before this time.
    pub not_before: Option<i64>,
    /// The client that has it in hand.
    pub holder: Option<String>,
    /// Its sender's own headers, in its order.
    pub headers: Vec<(String, String)>,
    /// Its body.
    pub body: Body,
}

/// A body, or as much of it as was wanted: as text if all of it is printable UTF-8, else in hex.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Body {
    /// The body as text.
    pub text: Option<String>,
    /// The body in hex.
    pub hex: Option<String>,
    /// Whether there is more.
    pub cut: bool,
}

/// What was done to messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    /// How many went back, or are gone.
    pub done: u64,
    /// How many were left alone, and why.
    pub skipped: Skipped,
    /// Where to go on: the messages behind it have not been looked at.
    pub after: Option<MessageId>,
}

/// How many messages were left alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// Because a consumer has them in hand.
    pub in_hand: u64,
    /// Because they are not in the queue.
    pub not_there: u64,
    /// Because they were not moved there from anywhere.
    pub not_moved: u64,
    /// Because the queue that they came from is not there any more.
    pub no_way_back: u64,
}

impl Skipped {
    /// All of them.
    #[must_use]
    pub const fn total(self) -> u64 {
        self.in_hand + self.not_there + self.not_moved + self.no_way_back
    }

    /// These and those.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            in_hand: self.in_hand + other.in_hand,
            not_there: self.not_there + other.not_there,
            not_moved: self.not_moved + other.not_moved,
            no_way_back: self.no_way_back + other.no_way_back,
        }
    }
}
