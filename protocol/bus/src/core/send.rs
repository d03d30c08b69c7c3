//! Sending: from a message to the queues that keep it.

use std::sync::Arc;

use pillarbox_messages::DestinationKind;

use super::{
    Core,
    admin::is_administration,
    dedup::check_dedup_id,
    message::{
        MessageId, NewMessage, Parts, QueuedMessage, Reason, check_correlation_id, check_priority,
    },
    moving::to_error_queue,
    position::Wanted,
    queue::{Held, State},
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
        let error_queue = missed_by_all.then(|| self.error_queue());
        let targets = self.those_who_want(targets, connection, |core, _| {
            Parts::of(&new, id, core.client_id(connection), core.now, lasting)
        });
        let session = self.sessions.get(&connection);
        let origin = session.map_or("", |session| &session.client_id);
        let mut parts = Parts::of(&new, id, origin, self.now, lasting);
        let original = spelling::to_stomp(&new.destination);
        if lost_queue {
            to_error_queue(&mut parts, Reason::Unroutable, &original);
        }
        let message = Arc::new(parts.pack(&mut self.addresses));
        let mut stored = self.place(Arc::clone(&message), &targets, wanted);
        if let Some(error_queue) = error_queue {
            let lost =
                message.changed(|parts| to_error_queue(parts, Reason::Unroutable, &original));
            stored |= self.place(Arc::new(lost), &[error_queue], None);
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

    /// The next message's identity.
    pub(super) const fn take_message_id(&mut self) -> MessageId {
        let id = self.next_message_id();
        self.next_seq += 1;
        id
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
        targets: &[QueueId],
        wanted: Option<Wanted>,
    ) -> bool {
        let lasts = message.persistent && targets.iter().any(|queue| self.is_lasting(*queue));
        let mut stored = Vec::new();
        for &queue in targets {
            if !self.make_way(queue, &message) {
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

    /// Puts a message into a queue, and into the log if it must outlive a restart there.
    pub(super) fn enter(&mut self, message: &Arc<QueuedMessage>, place: Place) {
        let stored = message.persistent && self.is_lasting(place.queue);
        self.hold(message, place, stored);
        if stored {
            self.draft.write_synced(Entry::Put {
                message: Arc::clone(message),
                places: vec![place],
            });
        }
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
}
