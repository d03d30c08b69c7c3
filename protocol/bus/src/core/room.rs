//! Whether there is room for what is sent, and whose fault it is if not.

use pillarbox_messages::{Destination, DestinationKind};

use super::{
    Core, Counters,
    admin::is_administration,
    durable::OnLimit,
    message::{MessageId, NewMessage, QueuedMessage},
    overflow::{Ahead, AllAhead},
    queue::QueueKind,
    unit::QueueId,
};
use crate::{embedded::connection::ConnectionId, error::BusError};

impl Core {
    /// Refuses what there is no room for, with so many bytes more than everybody has. Plain subscriptions have
    /// their own limits.
    pub(super) fn check_space(
        &self,
        sender: ConnectionId,
        messages: &[&NewMessage],
        more: u64,
    ) -> Result<(), BusError> {
        if let Some(reason) = &self.failed {
            return Err(BusError::SpaceFailed(reason.clone()));
        }
        let mut wanted: u64 = 0;
        let mut ahead = AllAhead::default();
        for (after, message) in messages.iter().enumerate() {
            let targets = self.directory.targets(&message.destination);
            let wanting = self.wanting(sender, message, after, &targets);
            let keepers = self.keepers(message, &targets, &wanting);
            self.check_subscribers(message, &wanting, &mut ahead)?;
            if (keepers > 0 || self.is_to_last(message, &targets))
                && !self.room
                && message.persistent != Some(false)
            {
                return Err(no_room());
            }
            wanted = wanted.saturating_add(message.size().saturating_mul(keepers));
        }
        let capacity = self.limits.capacity_bytes;
        let held = self.held_bytes.saturating_add(wanted);
        if wanted > 0 && held > capacity.saturating_add(more) {
            let detail = format!("its {capacity} bytes are taken by messages not consumed yet");
            return Err(BusError::NoSpace(detail));
        }
        Ok(())
    }

    /// How many queues will keep the message, of those that want it.
    fn keepers(&self, message: &NewMessage, targets: &[QueueId], wanting: &[QueueId]) -> u64 {
        if is_administration(&message.destination) {
            return 0;
        }
        if !self.directory.knows(&message.destination) {
            return u64::from(message.destination.kind() == DestinationKind::Queue);
        }
        let lost = u64::from(self.is_missed_by_all(&message.destination, targets));
        let kept = wanting
            .iter()
            .filter(|id| self.counts_for_capacity(**id))
            .filter(|id| {
                let none_ahead = Ahead::default();
                let full = self.limit_reached(**id, message.size(), none_ahead);
                full.is_none()
            })
            .count() as u64;
        kept.saturating_add(lost)
    }

    /// Whether the topic is for durable subscriptions, and there is none.
    pub(super) fn is_missed_by_all(&self, destination: &Destination, targets: &[QueueId]) -> bool {
        destination.kind() == DestinationKind::Topic
            && self.durable_topics.contains(destination.name())
            && !targets.iter().any(|id| self.is_lasting(*id))
    }

    /// Whether the log must take note of the message, even if it is only that it was missed.
    fn is_to_last(&self, message: &NewMessage, targets: &[QueueId]) -> bool {
        targets.iter().any(|id| self.is_lasting(*id))
            || self.durable_topics.contains(message.destination.name())
    }

    /// Refuses a message that a full subscription does not let pass.
    fn check_subscribers(
        &self,
        message: &NewMessage,
        wanting: &[QueueId],
        ahead: &mut AllAhead,
    ) -> Result<(), BusError> {
        let size = message.size();
        for &id in wanting {
            let Some(on_limit) = self.on_limit(id) else {
                continue;
            };
            let before = Ahead {
                away: ahead.away,
                ..ahead.queues.get(&id).copied().unwrap_or_default()
            };
            if on_limit == OnLimit::RejectPublish {
                if let Some(limit) = self.limit_reached(id, size, before) {
                    return Err(self.subscription_full(id, limit));
                }
                let after = Ahead {
                    messages: before.messages.saturating_add(1),
                    bytes: before.bytes.saturating_add(size),
                    away: 0,
                };
                ahead.queues.insert(id, after);
            }
            // What all of them share the others take as well.
            if self.is_away(id) {
                ahead.away = ahead.away.saturating_add(size);
            }
        }
        Ok(())
    }

    /// Tells of a subscription that senders are refused for.
    pub(super) fn tell_refusal(&mut self, error: &BusError) {
        if let BusError::SubscriptionFull {
            client_id,
            name,
            limit,
        } = error
            && let Some(id) = self.directory.durable(client_id, name)
        {
            self.tell_full(id, limit);
        }
    }

    fn subscription_full(&self, id: QueueId, limit: String) -> BusError {
        match self.queues.get(&id).map(|queue| &queue.kind) {
            Some(QueueKind::Durable {
                client_id, name, ..
            }) => BusError::SubscriptionFull {
                client_id: client_id.clone(),
                name: name.clone(),
                limit,
            },
            _ => BusError::NoSpace(limit),
        }
    }

    pub(super) fn counts_for_capacity(&self, id: QueueId) -> bool {
        let kind = self.queues.get(&id).map(|queue| &queue.kind);
        kind.is_some_and(|kind| !matches!(kind, QueueKind::Plain { .. }))
    }

    /// What a message in a queue takes of the capacity.
    pub(super) fn held_size(&self, queue: QueueId, id: MessageId) -> u64 {
        let held = self.queues.get(&queue).and_then(|q| q.messages.get(&id));
        held.filter(|_| self.counts_for_capacity(queue))
            .map_or(0, |held| held.message.size())
    }

    /// The sum that a queue's messages are counted in.
    pub(super) fn account(&mut self, queue: QueueId) -> &mut u64 {
        if self.counts_for_capacity(queue) {
            &mut self.held_bytes
        } else {
            &mut self.plain_bytes
        }
    }

    /// Closes plain subscriptions that do not keep up, and does what durable ones want that are full; `false` if the
    /// message has no place any more.
    pub(super) fn make_way(&mut self, id: QueueId, message: &QueuedMessage) -> bool {
        let Some(queue) = self.queues.get(&id) else {
            return false;
        };
        match queue.kind {
            QueueKind::Plain { .. } => {}
            QueueKind::Durable { .. } => return self.make_room_for(id, message),
            QueueKind::Named { .. } | QueueKind::Temporary { .. } => return true,
        }
        let limits = &self.limits;
        let bytes = queue.bytes.saturating_add(message.size());
        if queue.messages.len() >= limits.plain_messages || bytes > limits.plain_bytes {
            let (messages, bytes) = (limits.plain_messages, limits.plain_bytes);
            self.close_slow(id, format!("{messages} messages or {bytes} bytes"));
            return false;
        }
        let most = limits.plain_total_bytes.saturating_sub(message.size());
        while self.plain_bytes > most
            && let Some(slowest) = self.slowest()
        {
            let all = self.limits.plain_total_bytes;
            self.close_slow(slowest, format!("its share of {all} bytes"));
        }
        self.queues.contains_key(&id)
    }

    /// The plain subscription that most waits for.
    fn slowest(&self) -> Option<QueueId> {
        let plain = self.queues.iter().filter(|(_, queue)| {
            matches!(queue.kind, QueueKind::Plain { .. }) && !queue.messages.is_empty()
        });
        plain
            .max_by_key(|(_, queue)| queue.bytes)
            .map(|(id, _)| *id)
    }

    fn close_slow(&mut self, id: QueueId, limit: String) {
        let Some(queue) = self.queues.get(&id) else {
            return;
        };
        let QueueKind::Plain { topic } = &queue.kind else {
            return;
        };
        let Counters { slow_consumers, .. } = &mut self.counters;
        *slow_consumers += 1;
        let destination = Destination::topic(topic);
        let reason = BusError::SlowConsumer { destination, limit };
        for consumer in queue.consumers.clone() {
            self.close_subscription(consumer.connection, consumer.subscription, reason.clone());
        }
    }
}

/// The disk is full.
pub(super) fn no_room() -> BusError {
    BusError::NoSpace("the disk has no room for the next 64 MiB of its log".to_owned())
}
