//! Connections: their coming, and every way of going.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Core,
    consume::{Back, Flight},
    destroy::Orphan,
    message::{Cause, DeliveryId},
    transaction::Transaction,
    unit::QueueId,
};
use crate::{
    embedded::connection::{AckMode, ConnectionId, Event, Token},
    error::BusError,
};

/// A live connection.
#[derive(Debug, Default)]
pub(super) struct Session {
    pub(super) client_id: String,
    /// Its consumers run within this process.
    pub(super) in_process: bool,
    pub(super) subscriptions: BTreeMap<u64, SessionSubscription>,
    /// Shared subscriptions that it has taken from: these it may cancel. Some may be gone.
    pub(super) shared: BTreeSet<QueueId>,
    /// What it has not acknowledged, oldest first.
    pub(super) flights: BTreeMap<DeliveryId, Flight>,
    /// The same by subscription: looking at all of them for each subscription that ends would take too long.
    pub(super) by_subscription: BTreeSet<(u64, DeliveryId)>,
    /// Those of them whose queue has been destroyed.
    pub(super) orphans: BTreeMap<DeliveryId, Orphan>,
    pub(super) transactions: BTreeMap<u64, Transaction>,
}

/// A connection's subscription.
#[derive(Clone, Copy, Debug)]
pub(super) struct SessionSubscription {
    pub(super) queue: QueueId,
    /// Never another's in this life of the queue space.
    pub(super) number: u64,
    pub(super) ack: AckMode,
    /// It ends with the one message that it takes.
    pub(super) once: bool,
    /// Until when it waits for that.
    pub(super) deadline: Option<i64>,
    /// How long it may have a message in hand, in milliseconds.
    pub(super) ack_timeout: Option<i64>,
    /// What it has had for longer. It has been closed, and may not know it yet.
    pub(super) overdue: Option<DeliveryId>,
}

impl Session {
    /// A message comes into its hands.
    pub(super) fn take_off(&mut self, delivery: DeliveryId, flight: Flight) {
        self.by_subscription.insert((flight.subscription, delivery));
        self.flights.insert(delivery, flight);
    }

    /// A message leaves its hands.
    pub(super) fn touch_down(&mut self, delivery: DeliveryId) -> Option<Flight> {
        let flight = self.flights.remove(&delivery)?;
        self.by_subscription
            .remove(&(flight.subscription, delivery));
        Some(flight)
    }

    /// The deliveries of one subscription, oldest first.
    pub(super) fn flights_of(&self, subscription: u64) -> Vec<DeliveryId> {
        self.flights_until(subscription, DeliveryId(u64::MAX))
            .collect()
    }

    /// The same, up to this one.
    pub(super) fn flights_until(
        &self,
        subscription: u64,
        last: DeliveryId,
    ) -> impl Iterator<Item = DeliveryId> {
        let own = (subscription, DeliveryId(0))..=(subscription, last);
        self.by_subscription
            .range(own)
            .map(|(_, delivery)| *delivery)
    }
}

impl Core {
    pub(super) fn open(&mut self, connection: ConnectionId, client_id: String, in_process: bool) {
        if let Some(reason) = &self.failed {
            let reason = BusError::SpaceFailed(reason.clone());
            self.draft.post(connection, Event::Closed { reason });
            self.draft.close(connection);
            return;
        }
        self.sessions.insert(
            connection,
            Session {
                client_id,
                in_process,
                ..Session::default()
            },
        );
    }

    /// The connection is gone: what it had returns; the oldest delivery of each subscription counts, since that
    /// is the one its consumer was at. With lanes it was at one of each.
    pub(super) fn lost(&mut self, connection: ConnectionId, reason: BusError) {
        self.end_all_overdue(connection);
        let Some(session) = self.sessions.get(&connection) else {
            return;
        };
        let mut blamed = BTreeSet::new();
        let mut seen = BTreeSet::new();
        for (delivery, flight) in &session.flights {
            let subscription = session.subscriptions.get(&flight.subscription);
            let auto = subscription.is_some_and(|s| s.ack == AckMode::Auto);
            let queue = self.queues.get(&flight.queue);
            let held = queue.and_then(|queue| queue.messages.get(&flight.message));
            let lane = held.and_then(|held| held.lane);
            if !auto && seen.insert((flight.subscription, lane)) {
                blamed.insert(*delivery);
            }
        }
        self.end_session(connection, reason, &blamed);
    }

    pub(super) fn disconnect(&mut self, connection: ConnectionId, token: Token) {
        self.give_everything_back(connection, &BTreeSet::new());
        self.draft.need_barrier();
        self.answer(connection, token, Ok(()));
        self.end_session(connection, BusError::Closed, &BTreeSet::new());
    }

    /// A bus that stops is nobody's fault.
    pub(super) fn shut_down(&mut self) {
        self.end_all(&BusError::Closed);
    }

    /// Nothing can be written any more: whoever waits is told, and everything ends. What is on the disk is what
    /// counts.
    pub(super) fn fail_space(&mut self, reason: String) {
        self.end_all(&BusError::SpaceFailed(reason.clone()));
        self.failed = Some(reason);
    }

    fn end_all(&mut self, reason: &BusError) {
        let connections: Vec<_> = self.sessions.keys().copied().collect();
        for connection in connections {
            self.end_session(connection, reason.clone(), &BTreeSet::new());
        }
    }

    fn end_session(
        &mut self,
        connection: ConnectionId,
        reason: BusError,
        blamed: &BTreeSet<DeliveryId>,
    ) {
        self.give_everything_back(connection, blamed);
        self.draft.post(connection, Event::Closed { reason });
        self.draft.close(connection);
        if let Some(session) = self.sessions.remove(&connection) {
            for (number, transaction) in &session.transactions {
                self.timeouts
                    .remove(&(transaction.deadline, connection, *number));
            }
        }
    }

    /// Ends all subscriptions, with everything in flight returned.
    fn give_everything_back(&mut self, connection: ConnectionId, blamed: &BTreeSet<DeliveryId>) {
        let Some(session) = self.sessions.get(&connection) else {
            return;
        };
        let subscriptions: Vec<_> = session.subscriptions.keys().copied().collect();
        let flights: Vec<_> = session.flights.keys().copied().collect();
        for delivery in flights {
            self.return_flight(connection, delivery, blamed);
        }
        for subscription in subscriptions {
            self.detach(connection, subscription, blamed);
        }
    }

    fn return_flight(
        &mut self,
        connection: ConnectionId,
        delivery: DeliveryId,
        blamed: &BTreeSet<DeliveryId>,
    ) {
        let back = if blamed.contains(&delivery) {
            Back::Counted(Cause::ConnectionLost)
        } else {
            Back::Uncounted
        };
        self.give_back(connection, delivery, back);
    }

    /// Ends a subscription: what it has in flight returns; a queue that only it kept alive ends.
    pub(super) fn detach(
        &mut self,
        connection: ConnectionId,
        subscription: u64,
        blamed: &BTreeSet<DeliveryId>,
    ) -> Option<QueueId> {
        let session = self.sessions.get_mut(&connection)?;
        let flights = session.flights_of(subscription);
        let known = session.subscriptions.remove(&subscription)?;
        let queue_id = known.queue;
        if let Some(at) = known.deadline {
            self.waits.remove(&(at, connection, subscription));
        }
        if let Some(queue) = self.queues.get_mut(&queue_id) {
            queue.remove_consumer(connection, subscription);
            // Its lanes are free for others.
            self.draft.dirty.insert(queue_id);
        }
        if !flights.is_empty() {
            self.draft.detached(connection, subscription);
        }
        for delivery in flights {
            self.return_flight(connection, delivery, blamed);
        }
        self.note_away(queue_id);
        let queue = self.queues.get(&queue_id)?;
        if queue.kind.ends_unused() && queue.consumers.is_empty() {
            self.drop_queue(queue_id);
        }
        Some(queue_id)
    }

    /// Ends a subscription against its owner's will.
    pub(super) fn close_subscription(
        &mut self,
        connection: ConnectionId,
        subscription: u64,
        reason: BusError,
    ) {
        self.detach(connection, subscription, &BTreeSet::new());
        self.draft.post(
            connection,
            Event::SubscriptionClosed {
                subscription,
                reason,
            },
        );
    }
}
