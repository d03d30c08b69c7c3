//! A queue: messages in order, those in somebody's hands, and who wants more.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use super::{
    attributes::QueueAttributes,
    message::{DeliveryId, MessageId, QueuedMessage},
    rank::SortKey,
    unit::{Place, QueueId},
};
use crate::embedded::connection::{AckMode, ConnectionId};

/// What a queue is to its users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum QueueKind {
    /// A queue that everybody can name. A passing one ends with its last consumer and is never journaled.
    Named { name: String, passing: bool },
    /// The backlog of a durable subscription.
    Durable {
        client_id: String,
        name: String,
        topic: String,
    },
    /// The backlog of a plain subscription to a topic.
    Plain { topic: String },
    /// One connection's own queue.
    Temporary { name: String },
}

impl QueueKind {
    /// Whether the queue and its persistent messages outlive a restart.
    pub(crate) const fn is_lasting(&self) -> bool {
        matches!(
            self,
            Self::Named { passing: false, .. } | Self::Durable { .. }
        )
    }

    /// Whether the queue ends with its last consumer.
    pub(crate) const fn ends_unused(&self) -> bool {
        matches!(
            self,
            Self::Named { passing: true, .. } | Self::Plain { .. } | Self::Temporary { .. }
        )
    }
}

/// Where a message stands within its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Can be handed out.
    Ready,
    /// Waits for this time (ms since 1970).
    Scheduled(i64),
    /// In a consumer's hands.
    InFlight(DeliveryId),
}

/// A message in a queue.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) message: Arc<QueuedMessage>,
    /// Whether the log knows of it.
    pub(crate) stored: bool,
    pub(crate) delivery_count: u32,
    pub(crate) backout_count: u32,
    pub(crate) retry_at: Option<i64>,
    /// Its rank, if that is not the one that the queue's order gives it.
    pub(crate) position: Option<Box<SortKey>>,
    pub(crate) state: State,
    /// The unit that must be written before anybody may see the message; 0: none.
    pub(crate) unit: u64,
}

impl Held {
    pub(crate) fn place(&self, queue: QueueId) -> Place {
        Place {
            queue,
            delivery_count: self.delivery_count,
            backout_count: self.backout_count,
            retry_at: self.retry_at,
            position: self.position.as_deref().copied(),
        }
    }

    /// When it can be handed out, if that is not now.
    pub(crate) fn waits_until(&self, now: i64) -> Option<i64> {
        self.message
            .not_before
            .max(self.retry_at)
            .filter(|at| *at > now)
    }
}

/// A subscription that takes from a queue.
#[derive(Clone, Debug)]
pub(crate) struct Consumer {
    pub(crate) connection: ConnectionId,
    pub(crate) subscription: u64,
    pub(crate) ack: AckMode,
    pub(crate) prefetch: u32,
    pub(crate) in_flight: u32,
}

/// A queue.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    pub(crate) kind: QueueKind,
    pub(crate) attributes: QueueAttributes,
    pub(crate) messages: BTreeMap<MessageId, Held>,
    /// The messages in [`State::Ready`].
    pub(crate) ready: BTreeMap<SortKey, MessageId>,
    /// The messages that were sent directly before another one.
    pub(crate) inserted: BTreeMap<SortKey, MessageId>,
    /// The one whose turn it is comes first.
    pub(crate) consumers: VecDeque<Consumer>,
    /// The sizes of all messages.
    pub(crate) bytes: u64,
}

impl Queue {
    pub(crate) const fn new(kind: QueueKind, attributes: QueueAttributes) -> Self {
        Self {
            kind,
            attributes,
            messages: BTreeMap::new(),
            ready: BTreeMap::new(),
            inserted: BTreeMap::new(),
            consumers: VecDeque::new(),
            bytes: 0,
        }
    }

    /// A message's rank here.
    pub(crate) fn key(&self, held: &Held) -> SortKey {
        match &held.position {
            Some(position) => **position,
            None => SortKey::of(&held.message, &self.attributes.order),
        }
    }

    pub(crate) fn insert(&mut self, held: Held) {
        self.bytes = self.bytes.saturating_add(held.message.size());
        let (id, key) = (held.message.id, self.key(&held));
        if held.state == State::Ready {
            self.ready.insert(key, id);
        }
        if key.sub != 0 {
            self.inserted.insert(key, id);
        }
        self.messages.insert(id, held);
    }

    pub(crate) fn remove(&mut self, id: MessageId) -> Option<Held> {
        let held = self.messages.remove(&id)?;
        let key = self.key(&held);
        self.ready.remove(&key);
        self.inserted.remove(&key);
        self.bytes = self.bytes.saturating_sub(held.message.size());
        Some(held)
    }

    /// Puts a message into another state.
    pub(crate) fn set_state(&mut self, id: MessageId, state: State) {
        let Some(held) = self.messages.get_mut(&id) else {
            return;
        };
        held.state = state;
        let key = match &held.position {
            Some(position) => **position,
            None => SortKey::of(&held.message, &self.attributes.order),
        };
        if state == State::Ready {
            self.ready.insert(key, id);
        } else {
            self.ready.remove(&key);
        }
    }

    /// The consumer whose turn it is, moved to the end of the line; `None` if none can take more.
    pub(crate) fn next_consumer(&mut self) -> Option<&mut Consumer> {
        let position = self
            .consumers
            .iter()
            .position(|c| c.in_flight < c.prefetch)?;
        self.consumers.rotate_left(position + 1);
        self.consumers.back_mut()
    }

    pub(crate) fn consumer(
        &mut self,
        connection: ConnectionId,
        subscription: u64,
    ) -> Option<&mut Consumer> {
        self.consumers
            .iter_mut()
            .find(|c| c.connection == connection && c.subscription == subscription)
    }

    pub(crate) fn remove_consumer(&mut self, connection: ConnectionId, subscription: u64) {
        self.consumers
            .retain(|c| c.connection != connection || c.subscription != subscription);
    }
}
