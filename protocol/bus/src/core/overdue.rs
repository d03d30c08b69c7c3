//! Consumers that have a message in hand for longer than they said they would (`q-ack-timeout`).
//!
//! The message may still be worked on. So nobody else has it before its consumer knows that it is its no more: within
//! the process when it has been told, over a connection when that has ended, which telling it does.

use std::collections::BTreeSet;

use super::{
    Core,
    consume::Back,
    message::{Cause, DeliveryId},
};
use crate::{
    embedded::connection::{ConnectionId, Event},
    error::BusError,
};

impl Core {
    /// When a message must have been dealt with that is handed out now, if that is so.
    pub(super) fn ack_deadline(&self, connection: ConnectionId, subscription: u64) -> Option<i64> {
        let session = self.sessions.get(&connection)?;
        let known = session.subscriptions.get(&subscription)?;
        Some(self.now.saturating_add(known.ack_timeout?))
    }

    /// What is acknowledged within a transaction has that one's time.
    pub(super) fn stop_watching(&mut self, connection: ConnectionId, delivery: DeliveryId) {
        let session = self.sessions.get_mut(&connection);
        let flight = session.and_then(|session| session.flights.get_mut(&delivery));
        if let Some(at) = flight.and_then(|flight| flight.deadline.take()) {
            self.ack_deadlines.remove(&(at, connection, delivery));
        }
    }

    pub(super) fn time_out_deliveries(&mut self) {
        while let Some(&(at, connection, delivery)) = self.ack_deadlines.first()
            && at <= self.now
        {
            self.stop_watching(connection, delivery);
            self.end_consumer(connection, delivery);
        }
    }

    /// Tells a consumer that it is none any more. It is given nothing more.
    fn end_consumer(&mut self, connection: ConnectionId, delivery: DeliveryId) {
        let Some(session) = self.sessions.get_mut(&connection) else {
            return;
        };
        let Some(flight) = session.flights.get(&delivery).copied() else {
            return;
        };
        let others = session.flights_of(flight.subscription);
        let Some(known) = session.subscriptions.get_mut(&flight.subscription) else {
            return;
        };
        known.overdue = Some(delivery);
        let limit_ms = known.ack_timeout.unwrap_or_default();
        if let Some(queue) = self.queues.get_mut(&flight.queue)
            && let Some(consumer) = queue.consumer(connection, flight.subscription)
        {
            consumer.prefetch = 0;
        }
        for other in others {
            self.stop_watching(connection, other);
        }
        let closed = Event::SubscriptionClosed {
            subscription: flight.subscription,
            reason: BusError::AckTimeout { limit_ms },
        };
        self.draft.post(connection, closed);
    }

    /// A subscription's end has been told.
    pub(super) fn told(&mut self, connection: ConnectionId, subscription: u64) {
        let session = self.sessions.get(&connection);
        if session.is_some_and(|session| session.in_process) {
            self.end_overdue(connection, subscription);
        }
    }

    /// What its consumers have had for too long returns with everything else of theirs; only that counts.
    pub(super) fn end_all_overdue(&mut self, connection: ConnectionId) {
        let session = self.sessions.get(&connection);
        let known = session.into_iter().flat_map(|it| &it.subscriptions);
        let overdue = known.filter(|(_, known)| known.overdue.is_some());
        let overdue: Vec<u64> = overdue.map(|(number, _)| *number).collect();
        for subscription in overdue {
            self.end_overdue(connection, subscription);
        }
    }

    fn end_overdue(&mut self, connection: ConnectionId, subscription: u64) {
        let session = self.sessions.get(&connection);
        let known = session.and_then(|session| session.subscriptions.get(&subscription));
        if let Some(delivery) = known.and_then(|known| known.overdue) {
            // Unless it has been dealt with at the last moment.
            self.give_back(connection, delivery, Back::Counted(Cause::AckTimedOut));
            self.detach(connection, subscription, &BTreeSet::new());
        }
    }
}
