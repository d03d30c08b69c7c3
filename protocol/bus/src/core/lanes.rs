//! Lanes: messages that belong together are handed out one after the other, to one consumer at a time.
//!
//! Invariants
//! * A lane has at most one owner, and only the owner gets its messages.
//! * The next message of a lane goes out when the one before it has been dealt with. An owner that acknowledges by
//!   taking may be sent several; they are its own to take in order.
//! * A message that waits for another try blocks its lane; one that its sender wants later does not.
//! * A lane changes its owner only when nothing of it is in flight.

pub(crate) mod hash;
mod shown;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZeroU64,
};

use super::{attributes::Lanes, message::MessageId, queue::Consumer, rank::SortKey};
use crate::embedded::connection::{AckMode, ConnectionId};

/// A lane's number in its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LaneId(NonZeroU64);

/// A consumer's identity: its connection and its subscription there.
pub(crate) type ConsumerId = (ConnectionId, u64);

impl LaneId {
    /// The n-th of a fixed number of lanes.
    pub(crate) const fn nth(number: u32) -> Self {
        // Numbers start with 1, so that "no lane" takes no room.
        Self(NonZeroU64::MIN.saturating_add(number as u64))
    }
}

/// What a message is to its lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Can go out.
    Ready,
    /// Its sender wants it later.
    Later,
    /// Waits for another try.
    Retry,
    /// In the owner's hands.
    InFlight,
}

/// A queue's lanes, and who owns them.
#[derive(Clone, Debug)]
pub(crate) struct LaneTable {
    kind: Kind,
    lanes: BTreeMap<LaneId, Lane>,
    keys: BTreeMap<String, LaneId>,
    next: LaneId,
    /// Lanes that have something to hand out and no owner, by their first message.
    free: BTreeMap<SortKey, LaneId>,
    owners: BTreeMap<ConsumerId, Owner>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A fixed number of lanes, divided among the consumers there are.
    Fixed,
    /// A lane for each key, of whoever took its first message.
    Keyed,
}

#[derive(Clone, Debug, Default)]
struct Lane {
    key: Option<String>,
    /// Messages in any state.
    messages: usize,
    ready: BTreeMap<SortKey, MessageId>,
    later: BTreeSet<MessageId>,
    retrying: BTreeSet<MessageId>,
    in_flight: usize,
    owner: Option<ConsumerId>,
    /// Who is to own it as soon as nothing of it is in flight.
    heir: Option<ConsumerId>,
    /// The owner has got nothing of it yet.
    is_new: bool,
    /// Where it stands in [`LaneTable::free`] or [`Owner::heads`].
    listed: Option<(Option<ConsumerId>, SortKey)>,
}

#[derive(Clone, Debug, Default)]
struct Owner {
    lanes: BTreeSet<LaneId>,
    /// Those that have something to hand out, by their first message.
    heads: BTreeMap<SortKey, LaneId>,
    /// It acknowledges by taking.
    auto: bool,
    /// The one lane that it wants.
    pinned: Option<LaneId>,
}

impl LaneTable {
    /// The lanes of a queue of this kind; `None` if it has none.
    pub(crate) fn new(lanes: Lanes) -> Option<Self> {
        let (kind, count) = match lanes {
            Lanes::None => return None,
            Lanes::Single => (Kind::Fixed, 1),
            Lanes::Hashed { count, .. } => (Kind::Fixed, count),
            Lanes::Key => (Kind::Keyed, 0),
        };
        let fixed = (0..count).map(|number| (LaneId::nth(number), Lane::default()));
        Some(Self {
            kind,
            lanes: fixed.collect(),
            keys: BTreeMap::new(),
            next: LaneId::nth(count),
            free: BTreeMap::new(),
            owners: BTreeMap::new(),
        })
    }

    /// The lane of a key, made if it isn't there.
    pub(crate) fn keyed(&mut self, key: &str) -> LaneId {
        if let Some(lane) = self.keys.get(key) {
            return *lane;
        }
        let id = self.next;
        self.next = LaneId(id.0.saturating_add(1));
        self.keys.insert(key.to_owned(), id);
        let lane = Lane {
            key: Some(key.to_owned()),
            ..Lane::default()
        };
        self.lanes.insert(id, lane);
        id
    }

    /// A message comes into a lane.
    pub(crate) fn insert(&mut self, id: LaneId, message: MessageId, key: SortKey, as_a: Standing) {
        if let Some(lane) = self.lanes.get_mut(&id) {
            lane.messages += 1;
        }
        self.enter(id, message, key, as_a);
    }

    /// A message leaves its lane; a keyed one ends with its last message.
    pub(crate) fn remove(&mut self, id: LaneId, message: MessageId, key: SortKey, as_a: Standing) {
        self.leave(id, message, key, as_a);
        let Some(lane) = self.lanes.get_mut(&id) else {
            return;
        };
        lane.messages = lane.messages.saturating_sub(1);
        if self.kind == Kind::Keyed && lane.messages == 0 {
            self.set_owner(id, None);
            let key = self.lanes.remove(&id).and_then(|lane| lane.key);
            self.keys.remove(key.as_deref().unwrap_or_default());
        }
    }

    /// A message gets another standing in its lane.
    pub(crate) fn change(
        &mut self,
        id: LaneId,
        message: MessageId,
        key: SortKey,
        (from, to): (Standing, Standing),
    ) {
        self.leave(id, message, key, from);
        self.enter(id, message, key, to);
    }

    fn enter(&mut self, id: LaneId, message: MessageId, key: SortKey, as_a: Standing) {
        let Some(lane) = self.lanes.get_mut(&id) else {
            return;
        };
        match as_a {
            Standing::Ready => drop(lane.ready.insert(key, message)),
            Standing::Later => drop(lane.later.insert(message)),
            Standing::Retry => drop(lane.retrying.insert(message)),
            Standing::InFlight => lane.in_flight += 1,
        }
        self.list(id);
    }

    fn leave(&mut self, id: LaneId, message: MessageId, key: SortKey, as_a: Standing) {
        let Some(lane) = self.lanes.get_mut(&id) else {
            return;
        };
        match as_a {
            Standing::Ready => drop(lane.ready.remove(&key)),
            Standing::Later => drop(lane.later.remove(&message)),
            Standing::Retry => drop(lane.retrying.remove(&message)),
            Standing::InFlight => lane.in_flight = lane.in_flight.saturating_sub(1),
        }
        if lane.in_flight == 0 && self.kind == Kind::Fixed && lane.owner != lane.heir {
            let heir = lane.heir;
            self.set_owner(id, heir);
        }
        self.list(id);
    }

    /// Brings the lists of lanes that have something to hand out up to date.
    fn list(&mut self, id: LaneId) {
        let Some(lane) = self.lanes.get_mut(&id) else {
            return;
        };
        let auto = lane
            .owner
            .and_then(|owner| self.owners.get(&owner))
            .is_some_and(|owner| owner.auto);
        let moving = self.kind == Kind::Fixed && lane.owner != lane.heir;
        let open = lane.retrying.is_empty() && (lane.in_flight == 0 || (auto && !moving));
        let head = lane.ready.first_key_value().filter(|_| open);
        let wanted = head.map(|(key, _)| (lane.owner, *key));
        if lane.listed == wanted {
            return;
        }
        let old = std::mem::replace(&mut lane.listed, wanted);
        if let Some((list, key)) = old
            && let Some(list) = self.list_of(list)
        {
            list.remove(&key);
        }
        if let Some((list, key)) = wanted
            && let Some(list) = self.list_of(list)
        {
            list.insert(key, id);
        }
    }

    fn list_of(&mut self, owner: Option<ConsumerId>) -> Option<&mut BTreeMap<SortKey, LaneId>> {
        match owner {
            Some(owner) => self.owners.get_mut(&owner).map(|owner| &mut owner.heads),
            None => Some(&mut self.free),
        }
    }

    fn set_owner(&mut self, id: LaneId, owner: Option<ConsumerId>) {
        let Some(lane) = self.lanes.get_mut(&id) else {
            return;
        };
        let old = std::mem::replace(&mut lane.owner, owner);
        lane.is_new = owner.is_some();
        if let Some(old) = old.and_then(|old| self.owners.get_mut(&old)) {
            old.lanes.remove(&id);
        }
        if let Some(new) = owner.and_then(|owner| self.owners.get_mut(&owner)) {
            new.lanes.insert(id);
        }
        self.list(id);
    }

    /// A consumer comes. Lanes of a fixed number are divided anew, with as few moves as possible.
    pub(crate) fn join(&mut self, consumer: &Consumer) {
        let owner = Owner {
            auto: consumer.ack == AckMode::Auto,
            pinned: consumer.part.map(LaneId::nth),
            ..Owner::default()
        };
        self.owners.insert(consumer.id(), owner);
        self.divide();
    }

    /// A consumer goes; what it has in its hands is about to come back.
    pub(crate) fn part(&mut self, consumer: ConsumerId) {
        let Some(owner) = self.owners.get(&consumer) else {
            return;
        };
        for lane in owner.lanes.clone() {
            self.set_owner(lane, None);
        }
        self.owners.remove(&consumer);
        self.divide();
    }

    /// The first message of a lane that belongs to whoever takes it.
    pub(crate) fn first_free(&self) -> Option<SortKey> {
        let keyed = self.kind == Kind::Keyed;
        self.free.keys().next().copied().filter(|_| keyed)
    }

    /// The first message of the lanes that a consumer owns.
    pub(crate) fn first_of(&self, consumer: ConsumerId) -> Option<SortKey> {
        self.owners.get(&consumer)?.heads.keys().next().copied()
    }

    /// The first messages of all lanes without an owner, or of this one of them.
    pub(crate) fn free_heads(
        &self,
        part: Option<u32>,
    ) -> impl Iterator<Item = (SortKey, MessageId)> {
        let wanted = self.free.iter();
        let wanted = wanted.filter(move |(_, id)| part.is_none_or(|part| self.is_part(part, **id)));
        wanted.filter_map(|(key, id)| {
            let head = self.lanes.get(id)?.ready.get(key)?;
            Some((*key, *head))
        })
    }

    /// Whether a message of this rank is the first of its lane, which has no owner.
    pub(crate) fn is_free_head(&self, id: LaneId, key: SortKey, part: Option<u32>) -> bool {
        let wanted = part.is_none_or(|part| self.is_part(part, id));
        wanted && self.free.get(&key) == Some(&id)
    }

    /// Whether this is the lane of this number, where lanes have any.
    fn is_part(&self, part: u32, id: LaneId) -> bool {
        self.kind == Kind::Fixed && LaneId::nth(part) == id
    }

    /// How many lanes a consumer owns.
    pub(crate) fn owned(&self, consumer: ConsumerId) -> usize {
        self.owners
            .get(&consumer)
            .map_or(0, |owner| owner.lanes.len())
    }

    /// Gives the first lane without an owner to a consumer.
    pub(crate) fn assign_first(&mut self, consumer: ConsumerId) {
        if let Some(lane) = self.free.values().next().copied() {
            self.set_owner(lane, Some(consumer));
        }
    }

    /// The message that is first of all that a consumer's lanes have, and whether it is the first of its lane that
    /// the consumer gets.
    pub(crate) fn take_first(&mut self, consumer: ConsumerId) -> Option<(MessageId, bool)> {
        let lane = self.owners.get(&consumer)?.heads.values().next()?;
        let lane = self.lanes.get_mut(lane)?;
        let message = lane.ready.values().next()?;
        Some((*message, std::mem::take(&mut lane.is_new)))
    }

    /// The messages of a lane that are in nobody's hands.
    pub(crate) fn waiting(&self, id: LaneId) -> impl Iterator<Item = MessageId> {
        let lanes = self.lanes.get(&id).into_iter();
        lanes.flat_map(|lane| {
            let others = lane.later.iter().chain(&lane.retrying);
            lane.ready.values().chain(others).copied()
        })
    }

    /// The messages of all lanes that are in nobody's hands.
    pub(crate) fn all_waiting(&self) -> impl Iterator<Item = MessageId> {
        self.lanes.keys().flat_map(|id| self.waiting(*id))
    }

    /// The latest message of a keyed lane is done: whoever comes first owns what follows.
    pub(crate) fn close(&mut self, id: LaneId) {
        let quiet = self.lanes.get(&id).is_some_and(|lane| lane.in_flight == 0);
        if self.kind == Kind::Keyed && quiet {
            self.set_owner(id, None);
        }
    }

    /// Divides a fixed number of lanes among the consumers: those that want one lane own it before all others, the
    /// rest is shared evenly. Only lanes in excess move, the quiet ones first.
    fn divide(&mut self) {
        if self.kind != Kind::Fixed {
            return;
        }
        let mut loads: BTreeMap<ConsumerId, BTreeSet<LaneId>> = BTreeMap::new();
        for (id, owner) in &self.owners {
            if owner.pinned.is_none() {
                loads.insert(*id, BTreeSet::new());
            }
        }
        let mut open = Vec::new();
        for (id, lane) in &mut self.lanes {
            let mut pinned = self.owners.iter().filter(|(_, it)| it.pinned == Some(*id));
            let known = lane.heir.or(lane.owner);
            let mut keep = None;
            if let Some((first, _)) = pinned.next() {
                let stays = known.filter(|known| pinned.any(|(other, _)| other == known));
                keep = Some(stays.unwrap_or(*first));
            } else if let Some(load) = known.and_then(|known| loads.get_mut(&known)) {
                load.insert(*id);
                keep = known;
            } else {
                open.push(*id);
            }
            lane.heir = keep;
        }
        for id in open {
            let least = loads.iter_mut().min_by_key(|(_, load)| load.len());
            if let Some((consumer, load)) = least {
                load.insert(id);
                self.set_heir(id, *consumer);
            }
        }
        self.even_out(&mut loads);
        let lanes: Vec<LaneId> = self.lanes.keys().copied().collect();
        for id in lanes {
            self.settle(id);
        }
    }

    fn even_out(&mut self, loads: &mut BTreeMap<ConsumerId, BTreeSet<LaneId>>) {
        loop {
            let most = loads.iter().max_by_key(|(_, load)| load.len());
            let least = loads.iter().min_by_key(|(_, load)| load.len());
            let (Some((from, many)), Some((to, few))) = (most, least) else {
                return;
            };
            if many.len() <= few.len() + 1 {
                return;
            }
            let in_hand = |id: &LaneId| {
                let lane = self.lanes.get(id);
                lane.map_or((0, 0), |lane| (lane.in_flight, lane.messages))
            };
            let Some(lane) = many.iter().copied().min_by_key(in_hand) else {
                return;
            };
            let (from, to) = (*from, *to);
            if let Some(load) = loads.get_mut(&from) {
                load.remove(&lane);
            }
            if let Some(load) = loads.get_mut(&to) {
                load.insert(lane);
            }
            self.set_heir(lane, to);
        }
    }

    fn set_heir(&mut self, id: LaneId, heir: ConsumerId) {
        if let Some(lane) = self.lanes.get_mut(&id) {
            lane.heir = Some(heir);
        }
    }

    /// A quiet lane gets its new owner at once; another one is handed out no more until it is quiet.
    fn settle(&mut self, id: LaneId) {
        let Some(lane) = self.lanes.get(&id) else {
            return;
        };
        if lane.in_flight == 0 && lane.owner != lane.heir {
            let heir = lane.heir;
            self.set_owner(id, heir);
        } else {
            self.list(id);
        }
    }
}
