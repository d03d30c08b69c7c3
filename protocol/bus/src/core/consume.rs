//! Consuming: handing messages out, and what becomes of them.

use std::sync::Arc;

use super::{
    Core,
    message::{Cause, DeliveryId, MessageId, Reason},
    pull::Taker,
    queue::State,
    unit::{Hand, QueueId},
};
use crate::{
    embedded::connection::{AckMode, ConnectionId, Event},
    error::BusError,
};

/// A message in a consumer's hands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Flight {
    pub(super) queue: QueueId,
    pub(super) message: MessageId,
    pub(super) subscription: u64,
    /// The open transaction that holds its acknowledgement.
    pub(super) transaction: Option<u64>,
    /// Until when it must have been dealt with, if that is so.
    pub(super) deadline: Option<i64>,
}

/// How a message comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Back {
    /// Nobody's fault.
    Uncounted,
    /// Nobody's fault, but trying at once would not help.
    Later,
    /// Its consumer failed, in this way; it comes again at once.
    Counted(Cause),
    /// Its consumer refused it: it counts, and comes again after a pause.
    Refused,
}

impl Back {
    /// What went wrong, if that counts.
    const fn cause(self) -> Option<Cause> {
        match self {
            Self::Uncounted | Self::Later => None,
            Self::Counted(cause) => Some(cause),
            Self::Refused => Some(Cause::Refused),
        }
    }
}

impl Core {
    /// Hands out whatever has a taker.
    pub(super) fn pump(&mut self) {
        while let Some(queue) = self.draft.dirty.pop_first() {
            while self.hand_out(queue) {}
        }
    }

    /// Hands out the queue's first message; `false` if there is none or nobody takes it.
    fn hand_out(&mut self, queue_id: QueueId) -> bool {
        let Some(queue) = self.queues.get_mut(&queue_id) else {
            return false;
        };
        let Some((id, consumer, first_of_group)) = queue.next_delivery() else {
            return false;
        };
        let taker = Taker {
            connection: consumer.connection,
            subscription: consumer.subscription,
            ack: consumer.ack,
        };
        let once = consumer.once;
        let size = queue
            .messages
            .get(&id)
            .map_or(0, |held| held.message.size());
        if let Some(consumer) = queue.consumer(taker.connection, taker.subscription) {
            consumer.in_flight += 1;
            consumer.bytes = consumer.bytes.saturating_add(size);
        }
        let handed = self.hand(queue_id, id, taker, first_of_group);
        if once {
            self.end_wait(queue_id, taker);
        }
        handed
    }

    /// Who has waited for one message has it, and is no consumer any more.
    fn end_wait(&mut self, queue_id: QueueId, taker: Taker) {
        let (connection, number) = (taker.connection, taker.subscription);
        if let Some(queue) = self.queues.get_mut(&queue_id) {
            queue.remove_consumer(connection, number);
        }
        let session = self.sessions.get_mut(&connection);
        let known = session.and_then(|session| session.subscriptions.get_mut(&number));
        if let Some(at) = known.and_then(|known| known.deadline.take()) {
            self.waits.remove(&(at, connection, number));
        }
    }

    /// Puts a message into somebody's hands.
    pub(super) fn hand(
        &mut self,
        queue_id: QueueId,
        id: MessageId,
        taker: Taker,
        first_of_group: bool,
    ) -> bool {
        let Taker {
            connection,
            subscription,
            ack,
        } = taker;
        let auto = ack == AckMode::Auto;
        let delivery = DeliveryId(self.next_delivery);
        self.next_delivery += 1;
        let Some(queue) = self.queues.get_mut(&queue_id) else {
            return false;
        };
        queue.set_state(id, State::InFlight(delivery));
        let Some(held) = queue.messages.get_mut(&id) else {
            return false;
        };
        let session = self.sessions.get(&connection);
        let in_process = session.is_some_and(|session| session.in_process);
        let known = session.and_then(|session| session.subscriptions.get(&subscription));
        let once = known.is_some_and(|known| known.once);
        if in_process && held.is_stored() && !auto {
            held.set_hand(Some(Hand {
                consumer: known.map_or(0, |known| known.number),
                delivery: delivery.0,
            }));
        }
        let redelivered = held.delivery_count > 0;
        held.delivery_count = held.delivery_count.saturating_add(1);
        let event = Event::Deliver {
            subscription,
            delivery,
            message: Arc::clone(&held.message),
            redelivered,
            delivery_count: held.delivery_count,
            backout_count: held.backout_count,
            first_of_group,
            gap: held.gap(),
        };
        let (after, place) = (held.unit(), held.place(queue_id));
        if held.is_stored() {
            self.draft.write_count(id, place);
        }
        let flight = Flight {
            queue: queue_id,
            message: id,
            subscription,
            transaction: None,
            deadline: self.ack_deadline(connection, subscription),
        };
        if let Some(at) = flight.deadline {
            self.ack_deadlines.insert((at, connection, delivery));
        }
        if let Some(session) = self.sessions.get_mut(&connection) {
            session.take_off(delivery, flight);
            self.in_flight += 1;
        }
        self.counters.delivered += 1;
        self.draft.deliver(connection, after, (auto, once), event);
        true
    }

    /// An acknowledgement. `waited`: somebody wants to know when it is on the disk.
    pub(super) fn ack(
        &mut self,
        connection: ConnectionId,
        delivery: DeliveryId,
        transaction: Option<u64>,
        waited: bool,
    ) -> Result<(), BusError> {
        let covered = self.covered(connection, delivery)?;
        if let Some(transaction) = transaction {
            return self.stage_acks(connection, transaction, &covered);
        }
        if waited {
            self.wait_for(connection, delivery);
        }
        for delivery in covered {
            self.consume(connection, delivery);
        }
        Ok(())
    }

    pub(super) fn nack(
        &mut self,
        connection: ConnectionId,
        delivery: DeliveryId,
        reject: bool,
        transaction: Option<u64>,
    ) -> Result<(), BusError> {
        let covered = self.covered(connection, delivery)?;
        if let Some(transaction) = transaction {
            return self.stage_nacks(connection, transaction, &covered, reject);
        }
        self.wait_for(connection, delivery);
        for delivery in covered {
            self.refuse(connection, delivery, reject);
        }
        Ok(())
    }

    /// Somebody waits for the end of a delivery to be on the disk: if its queue has been destroyed, that of the queue.
    fn wait_for(&mut self, connection: ConnectionId, delivery: DeliveryId) {
        let session = self.sessions.get(&connection);
        if session.is_some_and(|session| session.orphans.contains_key(&delivery)) {
            self.draft.need_barrier();
        } else {
            self.draft.need_sync();
        }
    }

    /// A delivery of an `Auto` subscription has reached its consumer.
    pub(super) fn handed(&mut self, connection: ConnectionId, delivery: DeliveryId) {
        self.consume(connection, delivery);
    }

    /// The deliveries that an acknowledgement of this one covers.
    fn covered(
        &self,
        connection: ConnectionId,
        delivery: DeliveryId,
    ) -> Result<Vec<DeliveryId>, BusError> {
        if let Some(orphans) = self.covered_orphans(connection, delivery) {
            return orphans;
        }
        let session = self.sessions.get(&connection).ok_or(BusError::Closed)?;
        let flight = session.flights.get(&delivery).ok_or(BusError::StaleAck)?;
        if flight.transaction.is_some() {
            return Err(BusError::StaleAck);
        }
        let subscription = session.subscriptions.get(&flight.subscription);
        match subscription.map(|subscription| subscription.ack) {
            None | Some(AckMode::Auto) => Err(BusError::StaleAck),
            Some(AckMode::Individual) => Ok(vec![delivery]),
            Some(AckMode::Client) => {
                let free = |it: &DeliveryId| {
                    let flight = session.flights.get(it);
                    flight.is_some_and(|flight| flight.transaction.is_none())
                };
                let before = session.flights_until(flight.subscription, delivery);
                Ok(before.filter(free).collect())
            }
        }
    }

    /// The message is gone for good.
    pub(super) fn consume(&mut self, connection: ConnectionId, delivery: DeliveryId) {
        let Some(flight) = self.land(connection, delivery) else {
            return;
        };
        if let Some(held) = self.remove_message(flight.queue, flight.message) {
            self.counters.acknowledged += 1;
            if let Some(lane) = held.lane
                && held.message.closes_its_group()
                && let Some(queue) = self.queues.get_mut(&flight.queue)
                && let Some(lanes) = &mut queue.lanes
            {
                lanes.close(lane);
            }
        }
    }

    /// The message comes again after a pause, or goes to the error queue.
    pub(super) fn refuse(&mut self, connection: ConnectionId, delivery: DeliveryId, reject: bool) {
        if !reject {
            return self.give_back(connection, delivery, Back::Refused);
        }
        if let Some(flight) = self.land(connection, delivery) {
            let (reason, cause) = (Reason::Rejected, Cause::Refused);
            self.move_aside(flight.queue, flight.message, reason, cause);
        }
    }

    /// The message returns to its old place, unless it is too old by now.
    pub(super) fn give_back(&mut self, connection: ConnectionId, delivery: DeliveryId, back: Back) {
        let Some(Flight {
            queue: queue_id,
            message: id,
            ..
        }) = self.land(connection, delivery)
        else {
            return;
        };
        let now = self.now;
        let Some(queue) = self.queues.get_mut(&queue_id) else {
            return;
        };
        let delay = queue.attributes.retry_delay;
        let Some(held) = queue.messages.get_mut(&id) else {
            return;
        };
        if held.message.is_expired(now) {
            return self.expire_message(queue_id, id);
        }
        let was_marked = held.set_hand(None).is_some();
        if let Some(cause) = back.cause() {
            held.backout_count = held.backout_count.saturating_add(1);
            let backouts = held.backout_count;
            if self.is_poison(queue_id, backouts) {
                return self.move_aside(queue_id, id, Reason::Backout, cause);
            }
        }
        let waits = self.put_back(queue_id, id, |backouts| match back {
            Back::Uncounted | Back::Counted(_) => None,
            Back::Later => Some(now.saturating_add(delay.after(1))),
            Back::Refused => Some(now.saturating_add(delay.after(backouts))),
        });
        if back != Back::Uncounted || was_marked {
            self.write_place(queue_id, id);
        }
        if let Some(at) = waits {
            self.due.insert((at, queue_id, id));
        }
    }

    /// A message stands in its place again, until then waiting for a pause or a time; returns that.
    fn put_back(
        &mut self,
        queue_id: QueueId,
        id: MessageId,
        retry_at: impl FnOnce(u32) -> Option<i64>,
    ) -> Option<i64> {
        let (mut waits, now) = (None, self.now);
        self.queues.get_mut(&queue_id)?.change(id, |held| {
            held.set_retry_at(retry_at(held.backout_count));
            waits = held.waits_until(now);
            held.state = waits.map_or(State::Ready, State::Scheduled);
        });
        waits
    }

    /// Writes down what is known of a message in a queue.
    pub(super) fn write_place(&mut self, queue_id: QueueId, id: MessageId) {
        let queue = self.queues.get(&queue_id);
        let held = queue.and_then(|queue| queue.messages.get(&id));
        if let Some(held) = held.filter(|held| held.is_stored()) {
            self.draft.write_count(id, held.place(queue_id));
        }
    }

    /// Takes a message out of a consumer's hands, whose credit grows.
    pub(super) fn land(
        &mut self,
        connection: ConnectionId,
        delivery: DeliveryId,
    ) -> Option<Flight> {
        let session = self.sessions.get_mut(&connection)?;
        session.orphans.remove(&delivery);
        let flight = session.touch_down(delivery)?;
        if let Some(at) = flight.deadline {
            self.ack_deadlines.remove(&(at, connection, delivery));
        }
        self.in_flight = self.in_flight.saturating_sub(1);
        let queue = self.queues.get_mut(&flight.queue)?;
        let held = queue.messages.get(&flight.message);
        let size = held.map_or(0, |held| held.message.size());
        if let Some(consumer) = queue.consumer(connection, flight.subscription) {
            consumer.in_flight = consumer.in_flight.saturating_sub(1);
            consumer.bytes = consumer.bytes.saturating_sub(size);
        }
        self.draft.dirty.insert(flight.queue);
        if let Some(session) = self.sessions.get_mut(&connection) {
            let known = session.subscriptions.get(&flight.subscription);
            if known.is_some_and(|known| known.once) {
                session.subscriptions.remove(&flight.subscription);
            }
        }
        Some(flight)
    }
}
