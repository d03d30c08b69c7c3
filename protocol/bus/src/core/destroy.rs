//! Ending a queue that others may still use.

use pillarbox_messages::Destination;

use super::{Core, message::DeliveryId, unit::QueueId};
use crate::{
    embedded::connection::{AckMode, ConnectionId},
    error::BusError,
};

/// A delivery whose queue has been destroyed: acknowledging it does nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Orphan {
    /// The queue.
    pub(super) queue: Destination,
    subscription: u64,
    ack: AckMode,
    /// The open transaction that holds its acknowledgement.
    pub(super) transaction: Option<u64>,
}

impl Core {
    /// Ends a queue. `force`: with the messages in it, though they be in consumers' hands, and its subscriptions.
    pub(super) fn destroy(
        &mut self,
        destination: &Destination,
        force: bool,
    ) -> Result<(), BusError> {
        let name = destination.name();
        let id = self.named_queue(destination)?;
        if !force {
            self.check_unused(id, name)?;
        }
        let queue = Destination::queue(name);
        self.orphan_flights(id, &queue);
        let consumers = self.queues.get(&id).map(|queue| queue.consumers.clone());
        for consumer in consumers.unwrap_or_default() {
            let reason = gone(&queue);
            self.close_subscription(consumer.connection, consumer.subscription, reason);
        }
        self.drop_queue(id);
        self.note_names();
        self.draft.need_sync();
        Ok(())
    }

    fn check_unused(&self, id: QueueId, name: &str) -> Result<(), BusError> {
        let Some(queue) = self.queues.get(&id) else {
            return Ok(());
        };
        let (messages, consumers) = (queue.messages.len(), queue.consumers.len());
        let why = if messages > 0 {
            format!("{messages} messages are in it")
        } else if consumers > 0 {
            format!("{consumers} consumers take from it")
        } else if self.is_staged_for(id) {
            "an open transaction has messages for it".to_owned()
        } else {
            return Ok(());
        };
        Err(BusError::QueueNotEmpty {
            detail: format!("queue '{name}' can't be destroyed while {why}; force it to lose them"),
        })
    }

    /// Takes everything of a queue out of its consumers' hands; they need not know.
    fn orphan_flights(&mut self, id: QueueId, queue: &Destination) {
        let mut flights = Vec::new();
        for (connection, session) in &self.sessions {
            let own = session.flights.iter().filter(|(_, it)| it.queue == id);
            flights.extend(own.map(|(delivery, flight)| (*connection, *delivery, *flight)));
        }
        for (connection, delivery, flight) in flights {
            let session = self.sessions.get(&connection);
            let known = session.and_then(|it| it.subscriptions.get(&flight.subscription));
            let ack = known.map_or(AckMode::Individual, |known| known.ack);
            self.land(connection, delivery);
            // Nobody acknowledges what counts as consumed when it is handed over.
            if ack == AckMode::Auto {
                continue;
            }
            let orphan = Orphan {
                queue: queue.clone(),
                subscription: flight.subscription,
                ack,
                transaction: flight.transaction,
            };
            if let Some(session) = self.sessions.get_mut(&connection) {
                session.orphans.insert(delivery, orphan);
            }
        }
    }

    /// The orphans that an acknowledgement of this one covers; `None` if it is none.
    pub(super) fn covered_orphans(
        &self,
        connection: ConnectionId,
        delivery: DeliveryId,
    ) -> Option<Result<Vec<DeliveryId>, BusError>> {
        let orphans = &self.sessions.get(&connection)?.orphans;
        let orphan = orphans.get(&delivery)?;
        if orphan.transaction.is_some() {
            return Some(Err(BusError::StaleAck));
        }
        if orphan.ack != AckMode::Client {
            return Some(Ok(vec![delivery]));
        }
        let before = orphans
            .range(..=delivery)
            .filter(|(_, it)| it.subscription == orphan.subscription && it.transaction.is_none());
        Some(Ok(before.map(|(delivery, _)| *delivery).collect()))
    }
}

/// A queue that was there until now.
pub(super) fn gone(queue: &Destination) -> BusError {
    BusError::UnknownDestination {
        destination: queue.clone(),
        remedy: "it has been destroyed".to_owned(),
    }
}
