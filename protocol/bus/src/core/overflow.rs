//! Durable subscriptions that are full, and those whose clients do not come back.

use std::collections::{BTreeMap, BTreeSet};

use pillarbox_messages::{Destination, wording::count as count_of};

use super::{
    Core,
    attributes::QueueAttributes,
    directory::definition_of,
    durable::{Gap, OnLimit, Subscriber, away_share, lanes_by, limits_by},
    message::{MessageId, QueuedMessage},
    queue::{Held, Queue, QueueKind, State},
    unit::{Entry, QueueId},
};
use crate::error::BusError;

/// Something happened to a durable subscription that somebody should know of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubscriptionTrouble {
    /// Whose it is.
    pub client_id: String,
    /// Its name.
    pub name: String,
    /// The topic that it is a subscription to.
    pub topic: Destination,
    /// How many messages stand in it, or stood.
    pub messages: u64,
    /// Their size, in bytes.
    pub bytes: u64,
    /// What happened.
    pub what: Trouble,
}

/// What happened to a durable subscription.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// It is full. Told at most once an hour.
    Full {
        /// The limit that it has reached, in words.
        limit: String,
        /// What becomes of the messages that are too much.
        on_limit: OnLimit,
        /// Since when its client is away (ms since 1970), if it is.
        away_since: Option<i64>,
        /// How many messages it has missed since this was last told.
        missed: u64,
    },
    /// It was cancelled because its client had been away for so long, in milliseconds.
    Abandoned {
        /// How long.
        away_ms: i64,
    },
}

/// Whoever is away has at least so long from the bus's start to come back, in milliseconds, or as long as it may be away
/// if that is less.
const GRACE: i64 = 86_400_000;

/// Messages that a subscription is to get in the same unit before the one in question.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ahead {
    pub(super) messages: u64,
    pub(super) bytes: u64,
    /// What all subscriptions whose clients are away are to get, in bytes.
    pub(super) away: u64,
}

/// The same of all subscriptions.
#[derive(Clone, Debug, Default)]
pub(super) struct AllAhead {
    pub(super) queues: BTreeMap<QueueId, Ahead>,
    /// See [`Ahead::away`].
    pub(super) away: u64,
}

impl Core {
    /// The limit that one more message of this size would break, in words.
    pub(super) fn limit_reached(&self, id: QueueId, size: u64, ahead: Ahead) -> Option<String> {
        let queue = self.queues.get(&id)?;
        let subscriber = queue.subscriber.as_ref()?;
        let (limits, capacity) = (&subscriber.limits, self.limits.capacity_bytes);
        let standing = (queue.messages.len() as u64).saturating_add(ahead.messages);
        if let Some(most) = limits.max_messages.filter(|most| standing >= *most) {
            let most = usize::try_from(most).unwrap_or(usize::MAX);
            return Some(count_of(most, "message").to_string());
        }
        let more = ahead.bytes.saturating_add(size);
        let most = limits.bytes_of(capacity);
        if queue.bytes.saturating_add(more) > most {
            return Some(format!("{most} bytes"));
        }
        let share = away_share(capacity);
        let away = ahead.away.saturating_add(size);
        let is_over = self.away_bytes.saturating_add(away) > share;
        (is_over && subscriber.away_since.is_some())
            .then(|| format!("{share} bytes of all subscriptions whose clients are away"))
    }

    /// What a durable subscription does with what is too much.
    pub(super) fn on_limit(&self, id: QueueId) -> Option<OnLimit> {
        let subscriber = self.queues.get(&id)?.subscriber.as_ref()?;
        Some(subscriber.limits.on_limit)
    }

    /// Makes room in a durable subscription, if that is its way; `false` if it does not keep the message.
    pub(super) fn make_room_for(&mut self, id: QueueId, message: &QueuedMessage) -> bool {
        let size = message.size();
        let Some(limit) = self.limit_reached(id, size, Ahead::default()) else {
            return true;
        };
        self.tell_full(id, &limit);
        match self.on_limit(id) {
            Some(OnLimit::Cancel) => {
                self.cancel_full(id, &limit);
                false
            }
            Some(OnLimit::DropOldest) if self.drop_oldest(id, size) => true,
            // Senders were refused if they were to be: what comes now comes from elsewhere.
            Some(OnLimit::DropOldest | OnLimit::Gap | OnLimit::RejectPublish) => {
                self.miss(id, message.persistent);
                false
            }
            None => false,
        }
    }

    /// Drops as many of the oldest messages as one of this size needs; none if that would not be enough.
    fn drop_oldest(&mut self, id: QueueId, size: u64) -> bool {
        let Some(old) = self.in_the_way(id, size) else {
            return false;
        };
        let Some(last) = old.last().copied() else {
            return false;
        };
        let since = self.now;
        let mut gap = None;
        for id_of_old in old {
            let Some(held) = self.remove_message(id, id_of_old) else {
                continue;
            };
            self.counters.missed += 1;
            self.note_untold(id);
            let missed = Some(Gap { count: 1, since });
            gap = Gap::joined(gap, Gap::joined(held.gap(), missed));
        }
        self.pass_gap(id, last, gap);
        true
    }

    /// The oldest messages in nobody's hands without which one of this size finds room; `None` if that is not enough.
    fn in_the_way(&self, id: QueueId, size: u64) -> Option<Vec<MessageId>> {
        let queue = self.queues.get(&id)?;
        let subscriber = queue.subscriber.as_ref()?;
        let (limits, capacity) = (&subscriber.limits, self.limits.capacity_bytes);
        let over = |standing: u64, more: u64, most: u64| {
            let wanted = standing.saturating_add(more);
            wanted.saturating_sub(most)
        };
        let most = limits.max_messages.unwrap_or(u64::MAX);
        let too_many = over(queue.messages.len() as u64, 1, most);
        let mut too_much = over(queue.bytes, size, limits.bytes_of(capacity));
        if subscriber.away_since.is_some() {
            too_much = too_much.max(over(self.away_bytes, size, away_share(capacity)));
        }
        let (mut old, mut bytes) = (Vec::new(), 0_u64);
        let mut free = queue.messages.iter().filter(|(_, held)| is_free(held));
        while (old.len() as u64) < too_many || bytes < too_much {
            let (id, held) = free.next()?;
            bytes = bytes.saturating_add(held.message.size());
            old.push(id);
        }
        Some(old)
    }

    /// A message is left out.
    fn miss(&mut self, id: QueueId, persistent: bool) {
        let since = self.now;
        let Some(subscriber) = self.subscriber(id) else {
            return;
        };
        subscriber.gap = Gap::joined(subscriber.gap, Some(Gap { count: 1, since }));
        self.counters.missed += 1;
        self.note_untold(id);
        // What nobody was promised is counted as well, but is not worth the last of the disk.
        if persistent || self.room {
            self.write_standing(id);
        }
        if persistent {
            self.draft.need_sync();
        }
    }

    /// What tells of a gap is gone without having been dealt with: the next message tells of it, in order.
    pub(super) fn pass_gap(&mut self, id: QueueId, after: MessageId, gap: Option<Gap>) {
        let Some(gap) = gap else { return };
        let Some(queue) = self.queues.get_mut(&id) else {
            return;
        };
        let next = queue.next_oldest(after);
        let Some(subscriber) = &mut queue.subscriber else {
            return;
        };
        match next.and_then(|next| queue.messages.get_mut(&next).map(|held| (next, held))) {
            Some((next, held)) => {
                held.set_gap(Gap::joined(held.gap(), Some(gap)));
                if held.is_stored() {
                    self.write_place(id, next);
                } else {
                    subscriber.note_unlogged(gap);
                    self.write_standing(id);
                }
            }
            None => {
                subscriber.gap = Gap::joined(subscriber.gap, Some(gap));
                self.write_standing(id);
            }
        }
    }

    /// What the next message that the subscription keeps has to tell.
    pub(super) fn take_gap(&mut self, id: QueueId, stored: bool) -> Option<Gap> {
        let subscriber = self.subscriber(id)?;
        let gap = subscriber.gap.take()?;
        if stored {
            self.write_standing(id);
        } else {
            subscriber.note_unlogged(gap);
        }
        Some(gap)
    }

    /// A message that is in no log is gone, with what it had to tell.
    pub(super) fn forget_gap(&mut self, id: QueueId, held: &Held) {
        if let Some(gap) = held.gap()
            && !held.is_stored()
            && let Some(subscriber) = self.subscriber(id)
        {
            subscriber.forget_unlogged(gap);
            self.write_standing(id);
        }
    }

    pub(super) fn write_standing(&mut self, queue: QueueId) {
        if let Some(subscriber) = self.subscriber(queue) {
            let standing = subscriber.standing();
            self.draft.write_standing(queue, standing);
        }
    }

    pub(super) fn subscriber(&mut self, id: QueueId) -> Option<&mut Subscriber> {
        self.queues.get_mut(&id)?.subscriber.as_deref_mut()
    }

    /// The last consumer of a durable subscription has gone.
    pub(super) fn note_away(&mut self, id: QueueId) {
        let now = self.now;
        let Some(queue) = self.queues.get_mut(&id) else {
            return;
        };
        let Some(subscriber) = &mut queue.subscriber else {
            return;
        };
        if subscriber.away_since.is_some() || !queue.consumers.is_empty() {
            return;
        }
        subscriber.away_since = Some(now);
        self.absences
            .extend(subscriber.deadline().map(|at| (at, id)));
        self.away_bytes = self.away_bytes.saturating_add(queue.bytes);
        self.write_standing(id);
    }

    /// A consumer has come back to a durable subscription.
    pub(super) fn note_back(&mut self, id: QueueId) {
        if self.end_absence(id) {
            self.write_standing(id);
        }
    }

    /// Whether there was an absence to end.
    fn end_absence(&mut self, id: QueueId) -> bool {
        let Some(queue) = self.queues.get_mut(&id) else {
            return false;
        };
        let Some(subscriber) = &mut queue.subscriber else {
            return false;
        };
        let deadline = subscriber.deadline();
        if subscriber.away_since.take().is_none() {
            return false;
        }
        self.away_bytes = self.away_bytes.saturating_sub(queue.bytes);
        if let Some(at) = deadline {
            self.absences.remove(&(at, id));
        }
        true
    }

    /// After a start: nobody is there yet, and settings may say something else than before.
    pub(super) fn settle_subscribers(&mut self, registered: &BTreeSet<QueueId>) {
        let ids: Vec<QueueId> = self.queues.keys().copied().collect();
        self.absences.clear();
        self.away_bytes = 0;
        for id in ids {
            self.settle_subscriber(id, registered.contains(&id));
        }
    }

    fn settle_subscriber(&mut self, id: QueueId, registered: bool) {
        let now = self.now;
        let Some(queue) = self.queues.get_mut(&id) else {
            return;
        };
        let (
            Some(subscriber),
            QueueKind::Durable {
                client_id, name, ..
            },
        ) = (&mut queue.subscriber, &queue.kind)
        else {
            return;
        };
        let limits = limits_by(&self.rules, client_id, name, registered);
        // While the bus itself was away nobody could come back: so there is some time to do that now.
        subscriber.grace_until = limits
            .max_offline_ms
            .map(|longest| now.saturating_add(longest.min(GRACE)));
        let lanes = lanes_by(&self.rules, client_id, name);
        let old = std::mem::replace(&mut subscriber.limits, limits);
        subscriber.registered = registered;
        let was_away = subscriber.away_since;
        // Who had all the time in the world has a new limit from now on only.
        if was_away.is_none() || (old.max_offline_ms.is_none() && limits.max_offline_ms.is_some()) {
            subscriber.away_since = Some(now);
        }
        let (changed, moved) = (old != limits, subscriber.away_since != was_away);
        self.absences
            .extend(subscriber.deadline().map(|at| (at, id)));
        if queue.attributes.lanes != lanes {
            // Nobody consumes yet.
            let attributes = QueueAttributes {
                lanes,
                ..queue.attributes.clone()
            };
            queue.become_like(attributes, None);
        }
        self.away_bytes = self.away_bytes.saturating_add(queue.bytes);
        if changed && let Some(definition) = definition_of(queue) {
            self.draft.write_synced(Entry::Define {
                queue: id,
                definition,
            });
        }
        if moved {
            self.write_standing(id);
        }
    }

    /// Who has been away for too long does not come back.
    pub(super) fn cancel_abandoned(&mut self) {
        while let Some(&(at, id)) = self.absences.first()
            && at <= self.now
        {
            self.absences.pop_first();
            let subscriber = self.queues.get(&id).and_then(|it| it.subscriber.as_ref());
            let since = subscriber.and_then(|it| it.away_since);
            let away_ms = since.map_or(0, |since| self.now.saturating_sub(since));
            self.tell_trouble(id, Trouble::Abandoned { away_ms });
            self.counters.abandoned += 1;
            self.drop_queue(id);
        }
    }

    /// A durable subscription is no more: nobody waits for its client.
    pub(super) fn forget_subscriber(&mut self, id: QueueId) {
        self.end_absence(id);
    }

    fn cancel_full(&mut self, id: QueueId, limit: &str) {
        let Some(queue) = self.queues.get(&id) else {
            return;
        };
        let QueueKind::Durable { topic, .. } = &queue.kind else {
            return;
        };
        let reason = BusError::SlowConsumer {
            destination: Destination::topic(topic),
            limit: limit.to_owned(),
        };
        for consumer in queue.consumers.clone() {
            self.close_subscription(consumer.connection, consumer.subscription, reason.clone());
        }
        self.counters.cancelled_full += 1;
        self.drop_queue(id);
    }

    fn note_untold(&mut self, id: QueueId) {
        if let Some(subscriber) = self.subscriber(id) {
            subscriber.misses.note();
        }
    }

    /// Tells that a subscription is full, unless that was told within the last hour.
    pub(super) fn tell_full(&mut self, id: QueueId, limit: &str) {
        let now = self.now;
        let Some(subscriber) = self.subscriber(id) else {
            return;
        };
        let Some(missed) = subscriber.misses.due(now) else {
            return;
        };
        let what = Trouble::Full {
            limit: limit.to_owned(),
            on_limit: subscriber.limits.on_limit,
            away_since: subscriber.away_since,
            missed,
        };
        self.tell_trouble(id, what);
    }

    fn tell_trouble(&mut self, id: QueueId, what: Trouble) {
        let Some(queue) = self.queues.get(&id) else {
            return;
        };
        let QueueKind::Durable {
            client_id,
            name,
            topic,
        } = &queue.kind
        else {
            return;
        };
        let trouble = SubscriptionTrouble {
            client_id: client_id.clone(),
            name: name.clone(),
            topic: Destination::topic(topic),
            messages: queue.messages.len() as u64,
            bytes: queue.bytes,
            what,
        };
        self.draft.tell(trouble.into());
    }
}

impl Queue {
    /// The message that came first after this one, of those in nobody's hands.
    fn next_oldest(&self, after: MessageId) -> Option<MessageId> {
        let mut later = self.messages.behind(Some(after));
        later.find(|(_, held)| is_free(held)).map(|(id, _)| id)
    }
}

const fn is_free(held: &Held) -> bool {
    !matches!(held.state, State::InFlight(_))
}
