//! Starting from a log, and writing messages again for its sake.

use std::{collections::BTreeSet, sync::Arc};

use pillarbox_messages::Destination;

use super::{
    Core, Effects,
    attributes::{QueueAttributes, QueueDefinition},
    dedup::Known,
    draft::Draft,
    durable::{Nature, Standing, Subscriber, SubscriptionLimits, SubscriptionRule},
    message::{MessageId, QueuedMessage},
    queue::{Queue, QueueKind},
    unit::{Definition, Entry, Place, QueueId, REMEMBERED},
};
use crate::error::BusError;

/// How many of a delivery's bits count the deliveries of one life of the queue space.
const DELIVERY_BITS: u32 = 40;

/// What must exist after a start.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wanted<'a> {
    /// Topics and queues; a queue that exists stays as it is.
    pub(crate) destinations: &'a [Destination],
    /// Queues, and what they are like.
    pub(crate) queues: &'a [QueueDefinition],
    /// Durable subscriptions, as client id, name and topic.
    pub(crate) durable_subscriptions: &'a [(String, String, Destination)],
    /// Topics that are for durable subscriptions; made if they aren't there.
    pub(crate) durable_topics: &'a [Destination],
    /// What is said about all durable subscriptions, and about single ones.
    pub(crate) subscription_rules: &'a [SubscriptionRule],
}

impl Core {
    /// Takes an entry of an earlier start's log, in the log's order. There is no time yet: whatever waits for one
    /// is looked at by [`Core::start`].
    pub(crate) fn replay(&mut self, entry: Entry) {
        match entry {
            Entry::Boot(boot) => self.boot = self.boot.max(boot),
            Entry::Define { queue, definition } => self.replay_definition(queue, definition),
            Entry::Remove { queue } => self.drop_queue(queue),
            Entry::Put { message, places } => {
                for place in places {
                    self.replay_place(&message, place);
                }
            }
            Entry::Remember {
                message,
                at,
                destination,
                id,
            } => self.remembered.insert(
                message,
                Known {
                    at,
                    destination: destination.into(),
                    id: id.into(),
                    stored: true,
                },
            ),
            Entry::Ack {
                queue: REMEMBERED,
                ids,
            } => {
                for id in ids {
                    self.remembered.remove(id);
                }
            }
            Entry::Ack { queue, ids } => {
                for id in ids {
                    self.take_out(queue, id);
                }
            }
            Entry::Count { id, place } => {
                let queue = self.queues.get(&place.queue);
                let message = queue.and_then(|queue| queue.messages.get(&id));
                if let Some(message) = message.map(|held| Arc::clone(&held.message)) {
                    self.replay_place(&message, place);
                }
            }
            Entry::Standing { queue, standing } => self.replay_standing(queue, standing),
        }
        // What replaying would write is written already.
        self.draft = Draft::default();
    }

    /// Begins a new life after the log has been replayed. The effects' unit comes before anything else.
    ///
    /// # Errors
    /// What is wrong with a destination or subscription that is to be made.
    pub(crate) fn start(&mut self, now_ms: i64, wanted: &Wanted<'_>) -> Result<Effects, BusError> {
        self.now = now_ms;
        self.boot += 1;
        // So that no acknowledgement of an earlier life names a delivery of this one.
        self.next_delivery = self.boot.wrapping_shl(DELIVERY_BITS) + 1;
        self.draft.write_synced(Entry::Boot(self.boot));
        self.error_queue();
        // What is volatile, and has been waited for, is gone.
        self.end_drains();
        self.note_described(wanted.queues)?;
        for definition in wanted.queues {
            self.define_queue(definition)?;
        }
        for destination in wanted.destinations.iter().chain(wanted.durable_topics) {
            self.define(destination)?;
        }
        let durable = wanted.durable_topics.iter().map(Destination::name);
        self.durable_topics = durable.map(str::to_owned).collect();
        self.rules = wanted.subscription_rules.to_vec();
        let mut registered = BTreeSet::new();
        for (client_id, name, topic) in wanted.durable_subscriptions {
            registered.insert(self.register_durable(client_id, name, topic)?);
        }
        self.settle_subscribers(&registered);
        self.blame_hands();
        self.pass_time();
        self.end_drains();
        Ok(self.finish())
    }

    /// Writes messages again, as they are now, where they still are.
    pub(super) fn relocate(&mut self, places: &[(MessageId, QueueId)]) {
        let mut group: Option<(Arc<QueuedMessage>, Vec<Place>)> = None;
        for (id, queue_id) in places {
            if *queue_id == REMEMBERED {
                self.write_remembered(*id);
                continue;
            }
            let queue = self.queues.get(queue_id);
            let Some(held) = queue.and_then(|queue| queue.messages.get(id)) else {
                continue;
            };
            if !held.is_stored() {
                continue;
            }
            let place = held.place(*queue_id);
            match &mut group {
                Some((message, places)) if Arc::ptr_eq(message, &held.message) => {
                    places.push(place);
                }
                _ => {
                    let next = (Arc::clone(&held.message), vec![place]);
                    if let Some((message, places)) = group.replace(next) {
                        self.draft.write_synced(Entry::Put { message, places });
                    }
                }
            }
        }
        if let Some((message, places)) = group {
            self.draft.write_synced(Entry::Put { message, places });
        }
    }

    fn replay_definition(&mut self, queue: QueueId, definition: Definition) {
        self.next_queue = self.next_queue.max(queue.0.saturating_add(1));
        let (kind, attributes, drain) = match definition {
            Definition::Topic { name } => {
                self.directory.topics.insert(name, queue);
                return;
            }
            Definition::Queue {
                name,
                attributes,
                drain,
            } => {
                let passing = false;
                (QueueKind::Named { name, passing }, attributes, drain)
            }
            Definition::Durable {
                client_id,
                name,
                topic,
                limits,
                nature,
            } => {
                let kind = QueueKind::Durable {
                    client_id,
                    name,
                    topic,
                };
                return self.replay_subscriber(queue, kind, limits, &nature);
            }
        };
        match self.queues.get_mut(&queue) {
            // Segments repeat the definitions, and a later one is how the queue is from then on.
            Some(known) if known.attributes == attributes && known.drain() == drain => return,
            Some(known) => known.become_like(attributes, drain),
            None => {
                let mut new = Queue::new(kind, QueueAttributes::plain());
                new.become_like(attributes, drain);
                self.insert_known(queue, new);
            }
        }
        if drain.is_some() {
            self.draining.insert(queue);
        } else {
            self.draining.remove(&queue);
        }
        self.note_names();
    }

    fn replay_subscriber(
        &mut self,
        id: QueueId,
        kind: QueueKind,
        limits: SubscriptionLimits,
        nature: &Nature,
    ) {
        match self.subscriber(id) {
            Some(known) => known.limits = limits,
            None => {
                let mut new = Queue::new(kind, QueueAttributes::plain());
                new.subscriber = Some(Box::new(Subscriber::new(limits, nature)));
                self.insert_known(id, new);
            }
        }
    }

    fn replay_standing(&mut self, queue: QueueId, standing: Standing) {
        if let Some(subscriber) = self.subscriber(queue) {
            subscriber.away_since = standing.away_since;
            subscriber.gap = standing.gap;
        }
    }

    fn replay_place(&mut self, message: &Arc<QueuedMessage>, place: Place) {
        if self.queues.contains_key(&place.queue) {
            self.take_out(place.queue, message.id);
            self.keep(message, place, true);
        }
    }
}
