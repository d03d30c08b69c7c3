//! A queue: messages in order, those in somebody's hands, and who wants more.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

pub(crate) use super::held::{Held, State};
use super::{
    attributes::{Lanes, QueueAttributes},
    correlations::Correlations,
    durable::{Filter, Subscriber},
    epoch::{Drain, Next},
    lanes::{ConsumerId, LaneId, LaneTable, hash},
    message::{MessageId, QueuedMessage},
    notice::Hourly,
    rank::SortKey,
    ranks::Ranks,
    selector::Selector,
};
use crate::{
    embedded::connection::{AckMode, ConnectionId},
    paged::Paged,
};

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

fn rank_of(held: &Held, attributes: &QueueAttributes) -> SortKey {
    let usual = || SortKey::of(&held.message, &attributes.order);
    held.position().unwrap_or_else(usual)
}

/// A subscription that takes from a queue.
#[derive(Clone, Debug)]
pub(crate) struct Consumer {
    pub(crate) connection: ConnectionId,
    pub(crate) subscription: u64,
    pub(crate) ack: AckMode,
    pub(crate) prefetch: u32,
    /// It takes no more while so many bytes are in its hands.
    pub(crate) prefetch_bytes: u64,
    pub(crate) in_flight: u32,
    /// The sizes of the messages in its hands.
    pub(crate) bytes: u64,
    /// It takes one message only.
    pub(crate) once: bool,
    /// The number of the one lane that it wants.
    pub(crate) part: Option<u32>,
    /// What it wants, if that is not everything.
    pub(crate) wants: Option<Box<Wants>>,
}

/// What a consumer wants of a queue without lanes, and what there is of it.
#[derive(Clone, Debug)]
pub(crate) struct Wants {
    pub(crate) selector: Selector,
    /// Those of [`Queue::ready`] that are wanted.
    pub(crate) matches: BTreeMap<SortKey, MessageId>,
}

impl Wants {
    pub(crate) const fn new(selector: Selector) -> Self {
        Self {
            selector,
            matches: BTreeMap::new(),
        }
    }

    /// Finds out which of those that can be handed out are wanted.
    fn look_through(&mut self, ready: &Ranks, messages: &Paged<Held>) {
        let ready = ready.iter().filter(|(_, id)| {
            let held = messages.get(id);
            held.is_some_and(|held| self.selector.selects(&held.message))
        });
        self.matches = ready.collect();
    }
}

impl Consumer {
    pub(crate) const fn id(&self) -> ConsumerId {
        (self.connection, self.subscription)
    }

    /// Whether it can take more.
    pub(crate) const fn is_eager(&self) -> bool {
        self.in_flight < self.prefetch && self.bytes < self.prefetch_bytes
    }

    /// Whether it can take what is in no lane, or in one that belongs to whoever takes it.
    pub(crate) const fn takes_loose(&self) -> bool {
        self.is_eager() && self.part.is_none()
    }
}

/// The number of a part of a queue, as it stands behind the dot; `None` if there are not so many.
pub(crate) fn part_number(text: &str, count: u32) -> Option<u32> {
    let number: u32 = text.parse().ok()?;
    // One spelling only.
    (number < count && number.to_string() == text).then_some(number)
}

/// A queue.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    pub(crate) kind: QueueKind,
    pub(crate) attributes: QueueAttributes,
    /// What it is besides, if it is the backlog of a durable subscription.
    pub(crate) subscriber: Option<Box<Subscriber>>,
    /// What a plain subscription wants, if not everything.
    pub(crate) filter: Option<Box<Filter>>,
    pub(crate) messages: Paged<Held>,
    /// The messages in [`State::Ready`] that are in no lane.
    pub(crate) ready: Ranks,
    /// All messages with a correlation id; made when somebody asks for one.
    pub(crate) by_correlation: Option<Correlations>,
    /// The messages that were sent directly before another one.
    pub(crate) inserted: BTreeMap<SortKey, MessageId>,
    /// The lanes, if there are any.
    pub(crate) lanes: Option<Box<LaneTable>>,
    /// Those that wait until all others are gone, because they have other lanes.
    pub(crate) next: Option<Box<Next>>,
    /// The one whose turn it is comes first.
    pub(crate) consumers: VecDeque<Consumer>,
    /// How many of them don't want everything.
    pub(crate) choosy: usize,
    /// The sizes of all messages.
    pub(crate) bytes: u64,
    /// How many messages are in [`State::Scheduled`].
    pub(crate) scheduled: usize,
    /// How many are in [`State::InFlight`].
    pub(crate) in_flight: usize,
    /// How many were moved out of it since the start because they had failed.
    pub(crate) backed_out: u64,
    /// How many have become too old in it since the start.
    pub(crate) expired: u64,
    /// That one was moved aside because it had failed.
    pub(crate) moves: Hourly,
}

impl Queue {
    pub(crate) fn new(kind: QueueKind, attributes: QueueAttributes) -> Self {
        Self {
            kind,
            subscriber: None,
            filter: None,
            lanes: LaneTable::new(attributes.lanes).map(Box::new),
            ready: Ranks::new(attributes.order.latest_first),
            attributes,
            messages: Paged::new(),
            by_correlation: None,
            inserted: BTreeMap::new(),
            next: None,
            consumers: VecDeque::new(),
            choosy: 0,
            bytes: 0,
            scheduled: 0,
            in_flight: 0,
            backed_out: 0,
            expired: 0,
            moves: Hourly::default(),
        }
    }

    /// A message's rank here.
    pub(crate) fn key(&self, held: &Held) -> SortKey {
        rank_of(held, &self.attributes)
    }

    pub(crate) fn insert(&mut self, mut held: Held) {
        self.bytes = self.bytes.saturating_add(held.message.size());
        self.count_in(held.state);
        let (id, key) = (held.message.id, self.key(&held));
        held.lane = self.lane_of(&held.message);
        let waits = self.waits(&held.message);
        if let Some(next) = self.next.as_mut().filter(|_| waits) {
            next.count += 1;
        }
        match (held.lane, self.lane_table(waits)) {
            (Some(lane), Some(lanes)) => lanes.insert(lane, id, key, held.standing()),
            _ if held.state == State::Ready => self.offer(key, &held.message),
            _ => {}
        }
        if key.sub != 0 {
            self.inserted.insert(key, id);
        }
        if let Some(index) = &mut self.by_correlation {
            index.insert(&held.message);
        }
        self.messages.insert(id, held);
    }

    pub(crate) fn remove(&mut self, id: MessageId) -> Option<Held> {
        let held = self.messages.remove(&id)?;
        let key = self.key(&held);
        let waits = self.waits(&held.message);
        if let Some(next) = self.next.as_mut().filter(|_| waits) {
            next.count = next.count.saturating_sub(1);
        }
        match (held.lane, self.lane_table(waits)) {
            (Some(lane), Some(lanes)) => lanes.remove(lane, id, key, held.standing()),
            _ => self.withdraw(&key),
        }
        self.inserted.remove(&key);
        if let Some(index) = &mut self.by_correlation {
            index.remove(&held.message);
        }
        self.bytes = self.bytes.saturating_sub(held.message.size());
        self.count_out(held.state);
        Some(held)
    }

    const fn count_in(&mut self, state: State) {
        match state {
            State::Ready => {}
            State::Scheduled(_) => self.scheduled += 1,
            State::InFlight(_) => self.in_flight += 1,
        }
    }

    const fn count_out(&mut self, state: State) {
        match state {
            State::Ready => {}
            State::Scheduled(_) => self.scheduled = self.scheduled.saturating_sub(1),
            State::InFlight(_) => self.in_flight = self.in_flight.saturating_sub(1),
        }
    }

    /// Changes a message's state, and what goes with it.
    pub(crate) fn change(&mut self, id: MessageId, change: impl FnOnce(&mut Held)) {
        let Some(held) = self.messages.get_mut(&id) else {
            return;
        };
        let (old, before) = (held.state, held.standing());
        change(held);
        let (state, lane, after) = (held.state, held.lane, held.standing());
        let key = rank_of(held, &self.attributes);
        let message = Arc::clone(&held.message);
        let waits = self.waits(&message);
        match (lane, self.lane_table(waits)) {
            (Some(lane), Some(lanes)) => lanes.change(lane, id, key, (before, after)),
            _ if state == State::Ready => self.offer(key, &message),
            _ => self.withdraw(&key),
        }
        self.count_out(old);
        self.count_in(state);
    }

    /// The lanes of the messages that wait until others are gone, or of those others.
    fn lane_table(&mut self, waits: bool) -> Option<&mut LaneTable> {
        let lanes = match &mut self.next {
            Some(next) if waits => &mut next.lanes,
            _ => &mut self.lanes,
        };
        lanes.as_deref_mut()
    }

    /// A message in no lane can be handed out.
    pub(crate) fn offer(&mut self, key: SortKey, message: &QueuedMessage) {
        let waits = self.waits(message);
        if let Some(next) = self.next.as_mut().filter(|_| waits) {
            next.ready.insert(key, message.id);
            return;
        }
        self.ready.insert(key, message.id);
        if self.choosy == 0 {
            return;
        }
        for wants in self.consumers.iter_mut().filter_map(|it| it.wants.as_mut()) {
            if wants.selector.selects(message) {
                wants.matches.insert(key, message.id);
            }
        }
    }

    /// It can't be any more.
    pub(crate) fn withdraw(&mut self, key: &SortKey) {
        self.ready.remove(key);
        if let Some(next) = &mut self.next {
            next.ready.remove(key);
        }
        if self.choosy == 0 {
            return;
        }
        for wants in self.consumers.iter_mut().filter_map(|it| it.wants.as_mut()) {
            wants.matches.remove(key);
        }
    }

    /// Puts a message into another state.
    pub(crate) fn set_state(&mut self, id: MessageId, state: State) {
        self.change(id, |held| held.state = state);
    }

    /// The lane that a message belongs to. Without a message group it belongs to none where groups make the lanes.
    fn lane_of(&mut self, message: &QueuedMessage) -> Option<LaneId> {
        let waits = self.waits(message);
        let lanes = if waits {
            self.attributes.lanes
        } else {
            self.lanes_now()
        };
        let key = message.group();
        match lanes {
            Lanes::None => None,
            Lanes::Single => Some(LaneId::nth(0)),
            Lanes::Hashed { count, hash } => self
                .part_addressed(message, count)
                .or_else(|| key.map(|key| hash::lane_of(key, hash, count)))
                .map(LaneId::nth),
            Lanes::Key => Some(self.lane_table(waits)?.keyed(key?)),
        }
    }

    /// What of a message's group is behind it, in order, and in nobody's hands. What waits until it is gone is behind
    /// it, too.
    pub(crate) fn followers(&self, held: &Held) -> Vec<MessageId> {
        let Some(group) = held.message.group() else {
            return Vec::new();
        };
        let first = self.key(held);
        let lane = held.lane.zip(self.lanes.as_deref());
        let own = lane
            .into_iter()
            .flat_map(|(lane, lanes)| lanes.waiting(lane));
        let next = self.next.iter().filter_map(|next| next.lanes.as_deref());
        let next = next.flat_map(LaneTable::all_waiting);
        let members = own.chain(next).filter_map(|id| {
            let other = self.messages.get(&id)?;
            let (key, waits) = (self.key(other), self.waits(&other.message));
            let follows = waits || key > first;
            (follows && other.message.group() == Some(group)).then_some((waits, key, id))
        });
        let mut members: Vec<_> = members.collect();
        members.sort_unstable();
        members.into_iter().map(|(.., id)| id).collect()
    }

    /// The lane that the sender has addressed by itself.
    pub(crate) fn part_addressed(&self, message: &QueuedMessage, count: u32) -> Option<u32> {
        let QueueKind::Named { name, .. } = &self.kind else {
            return None;
        };
        let part = message.destination().name().strip_prefix(name.as_str())?;
        part_number(part.strip_prefix('.')?, count)
    }

    /// Whether the queue has its messages in hand: then its lanes can't be changed.
    pub(crate) const fn is_under_way(&self) -> bool {
        self.in_flight > 0
    }

    /// Makes the queue so. Nothing is under way.
    pub(crate) fn become_like(&mut self, attributes: QueueAttributes, drain: Option<Drain>) {
        self.next = drain.map(|drain| Box::new(Next::new(drain, &attributes)));
        self.attributes = attributes;
        self.lanes = LaneTable::new(self.lanes_now()).map(Box::new);
        self.ready = Ranks::new(self.attributes.order.latest_first);
        self.inserted.clear();
        self.by_correlation = None;
        (self.bytes, self.scheduled, self.in_flight) = (0, 0, 0);
        for (_, held) in std::mem::take(&mut self.messages) {
            self.insert(held);
        }
        self.join_again();
    }

    /// All consumers come into lanes that know none yet.
    pub(crate) fn join_again(&mut self) {
        for consumer in &mut self.consumers {
            if let Some(wants) = &mut consumer.wants {
                wants.look_through(&self.ready, &self.messages);
            }
            if let Some(lanes) = &mut self.lanes {
                lanes.join(consumer);
            }
        }
    }

    /// A consumer comes.
    pub(crate) fn add_consumer(&mut self, mut consumer: Consumer) {
        if let Some(wants) = &mut consumer.wants {
            self.choosy += 1;
            wants.look_through(&self.ready, &self.messages);
        }
        if let Some(lanes) = &mut self.lanes {
            lanes.join(&consumer);
        }
        self.consumers.push_back(consumer);
    }

    /// The message to hand out next, to whom, and whether it is the first of its lane for that consumer; `None` if
    /// there is none, or nobody takes it.
    pub(crate) fn next_delivery(&mut self) -> Option<(MessageId, &mut Consumer, bool)> {
        if self.lanes.is_some() {
            return self.next_of_lanes();
        }
        if self.choosy > 0 {
            return self.next_of_choosy();
        }
        let (_, id) = self.ready.first()?;
        let consumer = self.next_consumer()?;
        Some((id, consumer, false))
    }

    /// The first message that anybody takes who can take more: not everybody takes everything.
    fn next_of_choosy(&mut self) -> Option<(MessageId, &mut Consumer, bool)> {
        let first = self.ready.first();
        let eager = self.consumers.iter().enumerate();
        let eager = eager.filter(|(_, it)| it.takes_loose());
        let takes = eager.filter_map(|(at, it)| {
            let wanted = match &it.wants {
                Some(wants) => wants.matches.first_key_value().map(|(key, id)| (*key, *id)),
                None => first,
            };
            wanted.map(|(key, id)| (key, at, id))
        });
        let (_, position, id) = takes.min()?;
        self.consumers.rotate_left(position + 1);
        Some((id, self.consumers.back_mut()?, false))
    }

    /// The smallest rank of all that may go out now decides: that of a message without a lane, which anybody takes; of
    /// a lane without an owner, which gets one; or of a lane whose owner takes more.
    fn next_of_lanes(&mut self) -> Option<(MessageId, &mut Consumer, bool)> {
        let lanes = self.lanes.as_mut()?;
        let eager = || self.consumers.iter().filter(|it| it.is_eager());
        let anybody = || eager().filter(|it| it.takes_loose()).map(Consumer::id);
        let loose = self.ready.first();
        let loose = loose.filter(|_| anybody().next().is_some());
        let free = lanes.first_free();
        let heir = free.and_then(|_| anybody().min_by_key(|it| lanes.owned(*it)));
        let owned = eager().filter_map(|it| Some((lanes.first_of(it.id())?, it.id())));
        let taken = owned.chain(free.zip(heir)).min_by_key(|(key, _)| *key);
        match (loose, taken) {
            (Some((key, id)), taken) if taken.is_none_or(|(other, _)| key < other) => {
                Some((id, self.next_consumer()?, false))
            }
            (_, Some((key, taker))) => {
                if free == Some(key) {
                    lanes.assign_first(taker);
                }
                let (id, is_first) = lanes.take_first(taker)?;
                let consumer = self.consumers.iter_mut().find(|it| it.id() == taker)?;
                Some((id, consumer, is_first))
            }
            _ => None,
        }
    }

    /// The consumer whose turn it is, moved to the end of the line; `None` if none can take more.
    pub(crate) fn next_consumer(&mut self) -> Option<&mut Consumer> {
        let position = self.consumers.iter().position(Consumer::takes_loose)?;
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
        self.choosy = self
            .consumers
            .iter()
            .filter(|it| it.wants.is_some())
            .count();
        if let Some(lanes) = &mut self.lanes {
            lanes.part((connection, subscription));
        }
    }
}
