//! Sending: from a message to the queues that keep it.

use std::sync::Arc;

use pillarbox_messages::{Destination, DestinationKind};

use super::{
    Core, Counters,
    admin::is_administration,
    dedup::check_dedup_id,
    durable::OnLimit,
    message::{
        Failure, MessageId, NewMessage, Parts, QueuedMessage, Reason, check_correlation_id,
        check_priority,
    },
    overflow::{Ahead, AllAhead},
    position::Wanted,
    queue::{Held, QueueKind, State},
    selector::Selector,
    unit::{Entry, Place, QueueId},
};
use crate::{
    embedded::connection::{ConnectionId, Event, Token},
    error::BusError,
    spelling,
};

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sent {
    id: MessageId,
    unroutable: bool,
}

impl Core {
    pub(super) fn send(
        &mut self,
        connection: ConnectionId,
        message: NewMessage,
        transaction: Option<u64>,
        token: Token,
    ) {
        if transaction.is_some() {
            let done = self.stage_send(connection, transaction, message);
            return self.answer_within(connection, transaction, token, done);
        }
        let done = self.check_new(&message).and_then(|is_new| match is_new {
            true => self.check_space(connection, &[&message], 0),
            false => Ok(()),
        });
        if let Err(error) = done {
            self.tell_refusal(&error);
            return self.answer(connection, token, Err(error));
        }
        let Sent { id, unroutable } = self.route(connection, message);
        if token != 0 {
            let event = Event::Done {
                token,
                message_id: Some(id),
                unroutable,
            };
            self.draft.post(connection, event);
        }
    }

    /// Refuses what could never be sent; `false` if it has been: then it may be what it likes.
    pub(super) fn check_new(&self, message: &NewMessage) -> Result<bool, BusError> {
        check_dedup_id(message.dedup.as_deref())?;
        let is_new = self.duplicate_of(message).is_none();
        if is_new {
            self.check_message(message)?;
        }
        Ok(is_new)
    }

    /// Refuses what could never be sent.
    pub(super) fn check_message(&self, message: &NewMessage) -> Result<(), BusError> {
        if message.size() > self.limits.message_bytes {
            return Err(BusError::TooLarge {
                what: "a message with its headers".to_owned(),
                limit: self.limits.message_bytes,
            });
        }
        check_priority(message.priority)?;
        check_correlation_id(message.correlation_id.as_deref())?;
        if message.delay.is_some_and(|delay| delay < 0) {
            return Err(BusError::invalid("a delay is not below 0"));
        }
        let delayed = message.delay.map(|delay| self.now.saturating_add(delay));
        match (message.expires_at, message.not_before.max(delayed)) {
            (Some(expires), Some(from)) if expires <= from => Err(BusError::invalid(
                "the message would expire before it may be delivered",
            )),
            _ => self
                .check_key(message)
                .and_then(|()| self.check_part(message))
                .and_then(|()| self.check_position(message)),
        }
    }

    /// Refuses a message without a group where the queue wants one. The address of one lane will do.
    fn check_key(&self, message: &NewMessage) -> Result<(), BusError> {
        if message.group.is_some() || message.destination.kind() != DestinationKind::Queue {
            return Ok(());
        }
        let found = self.directory.resolve(message.destination.name());
        let queue = match found {
            Some((queue, None)) => self.queues.get(&queue),
            _ => None,
        };
        if queue.is_some_and(|queue| queue.attributes.require_key) {
            let destination = &message.destination;
            let detail = format!("{destination} takes messages of a message group only");
            return Err(BusError::invalid(detail));
        }
        Ok(())
    }

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
            let wanting = self.wanting(sender, message, after);
            let keepers = self.keepers(message, &wanting);
            self.check_subscribers(message, &wanting, &mut ahead)?;
            if (keepers > 0 || self.is_to_last(message))
                && !self.room
                && message.persistent != Some(false)
            {
                return Err(BusError::NoSpace(
                    "the disk has no room for the next 64 MiB of its log".to_owned(),
                ));
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
    fn keepers(&self, message: &NewMessage, wanting: &[QueueId]) -> u64 {
        if is_administration(&message.destination) {
            return 0;
        }
        if !self.directory.knows(&message.destination) {
            return u64::from(message.destination.kind() == DestinationKind::Queue);
        }
        let targets = self.directory.targets(&message.destination);
        let lost = u64::from(self.is_missed_by_all(&message.destination, &targets));
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
    fn is_missed_by_all(&self, destination: &Destination, targets: &[QueueId]) -> bool {
        destination.kind() == DestinationKind::Topic
            && self.durable_topics.contains(destination.name())
            && !targets.iter().any(|id| self.is_lasting(*id))
    }

    /// Whether the log must take note of the message, even if it is only that it was missed.
    fn is_to_last(&self, message: &NewMessage) -> bool {
        let mut targets = self.directory.targets(&message.destination).into_iter();
        targets.any(|id| self.is_lasting(id))
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

    fn counts_for_capacity(&self, id: QueueId) -> bool {
        let kind = self.queues.get(&id).map(|queue| &queue.kind);
        kind.is_some_and(|kind| !matches!(kind, QueueKind::Plain { .. }))
    }

    /// What a message in a queue takes of the capacity.
    pub(super) fn held_size(&self, queue: QueueId, id: MessageId) -> u64 {
        let held = self.queues.get(&queue).and_then(|q| q.messages.get(&id));
        held.filter(|_| self.counts_for_capacity(queue))
            .map_or(0, |held| held.message.size())
    }

    /// Brings a checked message to where it belongs, unless it is there already.
    pub(super) fn route(&mut self, connection: ConnectionId, mut new: NewMessage) -> Sent {
        if let Some(id) = self.duplicate_of(&new) {
            self.counters.duplicates += 1;
            // Whoever asks may believe that it is on the disk.
            self.draft.need_barrier();
            let unroutable = !self.directory.knows(&new.destination);
            return Sent { id, unroutable };
        }
        let id = self.take_message_id();
        self.counters.sent += 1;
        if is_administration(&new.destination) {
            let unroutable = !self.administer_by_message(id, &new);
            self.counters.unroutable += u64::from(unroutable);
            return Sent { id, unroutable };
        }
        let known = self.directory.knows(&new.destination);
        let lost_queue = !known && new.destination.kind() == DestinationKind::Queue;
        let targets = match (known, lost_queue) {
            (true, _) => self.directory.targets(&new.destination),
            (false, true) => vec![self.error_queue()],
            (false, false) => Vec::new(),
        };
        let missed_by_all = self.is_missed_by_all(&new.destination, &targets);
        if !known || targets.is_empty() || missed_by_all {
            self.counters.unroutable += 1;
        }
        let sent = Sent {
            id,
            unroutable: !known || missed_by_all,
        };
        if targets.is_empty() && !missed_by_all {
            return sent;
        }
        if new.expires_at.is_some_and(|at| at <= self.now) {
            self.counters.expired += 1;
            return sent;
        }
        let lasting = missed_by_all || targets.iter().any(|queue| self.is_lasting(*queue));
        let dedup = new.dedup.take();
        let wanted = Wanted::of(&new).filter(|_| !lost_queue);
        let session = self.sessions.get(&connection);
        let origin = session.map_or("", |session| &session.client_id);
        let mut parts = Parts::of(&new, id, origin, self.now, lasting);
        let original = spelling::to_stomp(&new.destination);
        if lost_queue {
            to_error_queue(&mut parts, Reason::Unroutable, &original);
        }
        let message = Arc::new(parts.pack(&mut self.addresses));
        let lost = missed_by_all.then(|| {
            let changed = message
                .clone()
                .changed(|parts| to_error_queue(parts, Reason::Unroutable, &original));
            Arc::new(changed)
        });
        let mut stored = self.place(message, (connection, &targets), wanted);
        if let Some(lost) = lost {
            let error_queue = self.error_queue();
            stored |= self.place(lost, (connection, &[error_queue]), None);
        }
        if let Some(dedup) = dedup {
            self.remember((id, stored), &new.destination, &dedup);
        }
        sent
    }

    /// What the next message that is sent will be called.
    pub(super) const fn next_message_id(&self) -> MessageId {
        MessageId {
            boot: self.boot,
            seq: self.next_seq,
        }
    }

    pub(super) fn is_lasting(&self, id: QueueId) -> bool {
        self.queues
            .get(&id)
            .is_some_and(|queue| queue.kind.is_lasting())
    }

    /// Puts a message into queues, and into the log where it must outlive a restart; returns whether it was to do so
    /// anywhere, be it that it was missed there.
    fn place(
        &mut self,
        message: Arc<QueuedMessage>,
        (sender, targets): (ConnectionId, &[QueueId]),
        wanted: Option<Wanted>,
    ) -> bool {
        let lasts = message.persistent && targets.iter().any(|queue| self.is_lasting(*queue));
        let mut stored = Vec::new();
        for &queue in targets {
            if !self.is_wanted(queue, &message, sender) || !self.make_way(queue, &message) {
                continue;
            }
            let is_stored = message.persistent && self.is_lasting(queue);
            let place = Place {
                position: self.position(queue, message.id, wanted),
                gap: self.take_gap(queue, is_stored),
                ..Place::fresh(queue)
            };
            if is_stored {
                stored.push(place);
            }
            self.hold(&message, place, is_stored);
        }
        if !stored.is_empty() {
            self.draft.write_synced(Entry::Put {
                message,
                places: stored,
            });
        }
        lasts
    }

    /// Whether the subscription behind a queue wants the message.
    pub(super) fn is_wanted(
        &self,
        id: QueueId,
        message: &QueuedMessage,
        sender: ConnectionId,
    ) -> bool {
        let Some(queue) = self.queues.get(&id) else {
            return false;
        };
        let selects = |selector: &Option<Selector>| {
            let selector = selector.as_ref();
            selector.is_none_or(|selector| selector.selects(message))
        };
        if let Some(filter) = &queue.filter {
            return filter.not_from != Some(sender) && selects(&filter.selector);
        }
        let (
            Some(subscriber),
            QueueKind::Durable {
                client_id: owner, ..
            },
        ) = (&queue.subscriber, &queue.kind)
        else {
            return true;
        };
        let is_own = || {
            let session = self.sessions.get(&sender);
            session.is_some_and(|session| session.client_id == *owner)
        };
        selects(&subscriber.selector) && !(subscriber.no_local && is_own())
    }

    /// Puts a message into a queue, where it may be somebody's.
    pub(super) fn hold(&mut self, message: &Arc<QueuedMessage>, place: Place, stored: bool) {
        self.keep(message, place, stored);
        self.draft.placed(place.queue, message.id);
    }

    /// Puts a message into a queue.
    pub(super) fn keep(&mut self, message: &Arc<QueuedMessage>, place: Place, stored: bool) {
        let mut held = Held::new(Arc::clone(message), place, stored);
        let id = message.id;
        if let Some(at) = held.waits_until(self.now) {
            held.state = State::Scheduled(at);
            self.due.insert((at, place.queue, id));
        }
        if let Some(at) = message.expires_at() {
            self.expiry.insert((at, place.queue, id));
        }
        if let Some(queue) = self.queues.get_mut(&place.queue) {
            queue.insert(held);
            self.held_messages += 1;
            let bytes = self.account(place.queue);
            *bytes = bytes.saturating_add(message.size());
            if self.is_away(place.queue) {
                self.away_bytes = self.away_bytes.saturating_add(message.size());
            }
        }
    }

    /// Takes a message out of a queue, and out of the log there.
    pub(super) fn remove_message(&mut self, queue_id: QueueId, id: MessageId) -> Option<Held> {
        let held = self.take_out(queue_id, id)?;
        if held.is_stored() {
            self.draft.write_ack(queue_id, id);
        }
        if held.lane.is_some() {
            // What is behind it may have waited for it.
            self.draft.dirty.insert(queue_id);
        }
        Some(held)
    }

    /// Takes a message out of a queue.
    pub(super) fn take_out(&mut self, queue_id: QueueId, id: MessageId) -> Option<Held> {
        let held = self.queues.get_mut(&queue_id)?.remove(id)?;
        self.held_messages = self.held_messages.saturating_sub(1);
        if let Some(at) = held.message.expires_at() {
            self.expiry.remove(&(at, queue_id, id));
        }
        if let State::Scheduled(at) = held.state {
            self.due.remove(&(at, queue_id, id));
        }
        let bytes = self.account(queue_id);
        *bytes = bytes.saturating_sub(held.message.size());
        if self.is_away(queue_id) {
            self.away_bytes = self.away_bytes.saturating_sub(held.message.size());
        }
        self.forget_gap(queue_id, &held);
        Some(held)
    }

    /// Takes a message out of a queue that nobody has dealt with: what it had to tell, the next one tells.
    pub(super) fn discard(&mut self, queue: QueueId, id: MessageId) -> Option<Held> {
        let held = self.remove_message(queue, id)?;
        self.pass_gap(queue, id, held.gap());
        Some(held)
    }

    pub(super) fn is_away(&self, id: QueueId) -> bool {
        let queue = self.queues.get(&id);
        let subscriber = queue.and_then(|queue| queue.subscriber.as_ref());
        subscriber.is_some_and(|it| it.away_since.is_some())
    }

    /// Moves a message to the queue of this name, in the same unit as whatever else this step does. Without such a
    /// queue the error queue takes it.
    pub(super) fn move_message(
        &mut self,
        queue: QueueId,
        id: MessageId,
        reason: Reason,
        target: Option<&str>,
        failure: Option<Failure>,
    ) -> Option<(Arc<QueuedMessage>, QueueId)> {
        let held = self.discard(queue, id)?;
        let original = self.original_destination(queue, &held.message);
        let target = target.and_then(|name| self.directory.queue(name));
        let target = target.unwrap_or_else(|| self.error_queue());
        let id = self.id_in(target, id);
        let message = held.message.changed(|parts| {
            parts.id = id;
            to_error_queue(parts, reason, &original);
            parts.failure = failure;
        });
        // A queue with a limit of its own counts by itself; elsewhere it is seen how often it has failed.
        let backout_count = match self.backout_limit(target) {
            Some(_) => 0,
            None => held.backout_count,
        };
        let place = Place {
            delivery_count: held.delivery_count,
            backout_count,
            ..Place::fresh(target)
        };
        let message = Arc::new(message);
        let stored = message.persistent && self.is_lasting(target);
        self.hold(&message, place, stored);
        if stored {
            self.draft.write_synced(Entry::Put {
                message: Arc::clone(&message),
                places: vec![place],
            });
        }
        Some((message, target))
    }

    /// What a message is called where it comes to from another queue: as before, unless it is there already, out of the
    /// hands of another subscriber to its topic.
    pub(super) fn id_in(&mut self, target: QueueId, id: MessageId) -> MessageId {
        let queue = self.queues.get(&target);
        if queue.is_none_or(|queue| queue.messages.get(&id).is_none()) {
            return id;
        }
        self.take_message_id()
    }

    /// The next message's identity.
    pub(super) const fn take_message_id(&mut self) -> MessageId {
        let id = self.next_message_id();
        self.next_seq += 1;
        id
    }

    /// The sum that a queue's messages are counted in.
    fn account(&mut self, queue: QueueId) -> &mut u64 {
        if self.counts_for_capacity(queue) {
            &mut self.held_bytes
        } else {
            &mut self.plain_bytes
        }
    }

    /// Closes plain subscriptions that do not keep up, and does what durable ones want that are full; `false` if the
    /// message has no place any more.
    fn make_way(&mut self, id: QueueId, message: &QueuedMessage) -> bool {
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

fn to_error_queue<'a>(message: &mut Parts<'a>, reason: Reason, original: &'a str) {
    message.original_destination.get_or_insert(original);
    message.reason = Some(reason);
    message.expires_at = None;
    message.not_before = None;
}
