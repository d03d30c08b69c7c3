//! What a restart must remember, in units that happen as a whole or not at all.

use std::sync::Arc;

use super::{
    attributes::QueueAttributes,
    durable::{Gap, Nature, Standing, SubscriptionLimits},
    epoch::Drain,
    message::{MessageId, QueuedMessage},
    rank::SortKey,
};

/// A queue's number; a topic has one too. Given once, and never to two at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct QueueId(pub(crate) u64);

/// No queue: where the log counts the ids by which senders are remembered, as if they were messages.
pub(crate) const REMEMBERED: QueueId = QueueId(0);

/// Changes that belong together.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Unit {
    /// The unit's number since this start, from 1.
    pub(crate) number: u64,
    /// Whether somebody waits for it to be on the disk. What isn't synced survives a crash of the process only.
    pub(crate) sync: bool,
    /// The changes, in order.
    pub(crate) entries: Vec<Entry>,
}

/// One change.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Entry {
    /// The queue space was opened for the n-th time.
    Boot(u64),
    /// A lasting destination or durable subscription exists; replaces what was known about it.
    Define {
        queue: QueueId,
        definition: Definition,
    },
    /// It does not any more; it was empty.
    Remove { queue: QueueId },
    /// A message stands in these places; replaces what was known about it there.
    Put {
        message: Arc<QueuedMessage>,
        places: Vec<Place>,
    },
    /// Messages have left a queue: consumed, expired or moved.
    Ack { queue: QueueId, ids: Vec<MessageId> },
    /// A message's counters in a queue changed.
    Count { id: MessageId, place: Place },
    /// A message was sent there with this id of its sender's own, then (ms since 1970). Until it has left
    /// [`REMEMBERED`], what is sent with the same id is the same message.
    Remember {
        message: MessageId,
        at: i64,
        destination: String,
        id: String,
    },
    /// How a durable subscription stands; replaces what was known about that.
    Standing { queue: QueueId, standing: Standing },
}

/// What lasts over a restart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Definition {
    Topic {
        name: String,
    },
    Queue {
        name: String,
        attributes: QueueAttributes,
        drain: Option<Drain>,
    },
    Durable {
        client_id: String,
        name: String,
        topic: String,
        limits: SubscriptionLimits,
        nature: Nature,
    },
}

/// A message's place in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) queue: QueueId,
    /// How often it has been handed out from there.
    pub(crate) delivery_count: u32,
    /// How often it came back counted.
    pub(crate) backout_count: u32,
    /// Not to be handed out again before this time (ms since 1970).
    pub(crate) retry_at: Option<i64>,
    /// Its rank, if that is not the one that the queue's order gives it.
    pub(crate) position: Option<SortKey>,
    /// The consumer within this process that has it in hand. If the process ends so, the message may be why.
    pub(crate) hand: Option<Hand>,
    /// What was missed before it.
    pub(crate) gap: Option<Gap>,
}

/// A consumer within this process, with its delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hand {
    /// Numbers the consumers of one life of the queue space.
    pub(crate) consumer: u64,
    pub(crate) delivery: u64,
}

impl Place {
    /// The place of a message that has not been handed out.
    pub(crate) const fn fresh(queue: QueueId) -> Self {
        Self {
            queue,
            delivery_count: 0,
            backout_count: 0,
            retry_at: None,
            position: None,
            hand: None,
            gap: None,
        }
    }
}
