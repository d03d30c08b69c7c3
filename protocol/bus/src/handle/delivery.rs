//! Consuming: subscriptions, deliveries, and transactions that tie acknowledgements to sends.

use std::{collections::VecDeque, sync::Arc};

use tokio::sync::mpsc;

use super::{Bus, Incoming, Outgoing};
use crate::{embedded::connection::DeliveryId, error::BusError};

/// Which delivery an acknowledgement is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AckHandle {
    /// Which connection of the client delivered it, counted from the first; after a reconnect an
    /// acknowledgement for the one before is refused.
    pub(crate) session: u64,
    /// The subscription's number with its client.
    pub(crate) subscription: u64,
    /// The delivery's name.
    pub(crate) id: AckId,
}

/// A delivery's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AckId {
    /// With the embedded queue manager.
    Embedded(DeliveryId),
    /// Over STOMP.
    Stomp {
        /// The value of the MESSAGE's `ack` header.
        id: String,
        /// How often the subscription had been made anew on this connection.
        generation: u32,
    },
}

/// A message on its way from a client to its subscription.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub(crate) message: Arc<Incoming>,
    pub(crate) handle: AckHandle,
}

/// A message that is this consumer's until it says what became of it.
///
/// Dropping it says nothing: it stays in flight until the subscription or the connection ends, and then returns.
#[derive(Debug)]
pub struct Delivery {
    /// The message.
    pub message: Arc<Incoming>,
    bus: Bus,
    /// `None` if it counts as consumed already.
    handle: Option<AckHandle>,
}

impl Delivery {
    pub(super) fn pulled(bus: Bus, arrival: Arrival) -> Self {
        let Arrival { message, handle } = arrival;
        Self {
            message,
            bus,
            handle: Some(handle),
        }
    }

    /// The bus's identity of the message, if it is the same when the message comes again.
    #[must_use]
    pub fn lasting_id(&self) -> Option<&str> {
        let id = self.message.message_id.as_str();
        Some(id).filter(|id| !id.is_empty() && self.bus.names_messages())
    }

    /// The message is consumed; returns when the bus knows for good. Nothing to do on an `Auto` subscription.
    ///
    /// # Errors
    /// [`BusError::StaleAck`] if the message has been given back meanwhile, for example by a reconnect; within the process,
    /// if that is because the bus has closed the subscription: why, as [`BusError::AckTimeout`].
    pub async fn ack(self) -> Result<(), BusError> {
        match self.handle {
            Some(handle) => self.bus.ack(handle).await,
            None => Ok(()),
        }
    }

    /// The message could not be dealt with: counts a backout; it comes again after a delay.
    ///
    /// # Errors
    /// As [`Delivery::ack`]; [`BusError::StaleAck`] on an `Auto` subscription.
    pub async fn nack(self) -> Result<(), BusError> {
        let handle = self.handle.ok_or(BusError::StaleAck)?;
        self.bus.nack(handle).await
    }
}

/// A subscription: where its messages come out. Survives reconnects.
///
/// Dropping it unsubscribes.
#[derive(Debug)]
pub struct Subscription {
    bus: Bus,
    number: u64,
    auto: bool,
    arrivals: mpsc::Receiver<Arrival>,
    /// Acknowledgements of an `Auto` subscription that the connection had no room for yet.
    owed: VecDeque<AckHandle>,
    ended: bool,
}

impl Subscription {
    pub(super) fn new(
        bus: Bus,
        number: u64,
        auto: bool,
        arrivals: mpsc::Receiver<Arrival>,
    ) -> Self {
        Self {
            bus,
            number,
            auto,
            arrivals,
            owed: VecDeque::new(),
            ended: false,
        }
    }

    /// The next message; `None` when the subscription or the bus is closed for good.
    pub async fn next(&mut self) -> Option<Delivery> {
        // The bus may wait for what is owed before it delivers more.
        while !self.owed.is_empty() {
            if !self.bus.has_room().await {
                self.owed.clear();
            }
            self.settle();
        }
        let Arrival { message, handle } = self.arrivals.recv().await?;
        if self.bus.is_over(self.number, self.auto) {
            // Somebody else may have it by now, and what is behind it.
            return None;
        }
        let handle = if self.auto {
            self.owed.push_back(handle);
            self.settle();
            None
        } else {
            Some(handle)
        };
        Some(Delivery {
            message,
            bus: self.bus.clone(),
            handle,
        })
    }

    /// Ends the subscription: what is in flight returns, uncounted. A durable one stays and collects.
    ///
    /// # Errors
    /// [`BusError::Closed`] if the connection has ended.
    pub async fn unsubscribe(mut self) -> Result<(), BusError> {
        self.ended = true;
        self.bus.unsubscribe(self.number).await
    }

    /// Ends the subscription; a durable one is deleted with its backlog.
    ///
    /// # Errors
    /// [`BusError::Closed`] if the connection has ended.
    pub async fn cancel(mut self) -> Result<(), BusError> {
        self.ended = true;
        self.bus.cancel(self.number).await
    }

    /// Drops the subscription as a crash would.
    #[cfg(test)]
    pub(crate) fn lose_for_test(mut self) {
        self.ended = true;
    }

    fn settle(&mut self) {
        while let Some(handle) = self.owed.pop_front() {
            if let Err(handle) = self.bus.ack_soon(handle) {
                self.owed.push_front(handle);
                return;
            }
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if !self.ended {
            self.bus.unsubscribe_soon(self.number);
        }
    }
}

/// Sends and acknowledgements that happen together or not at all.
///
/// Dropping it is [`Transaction::abort`].
#[derive(Debug)]
#[must_use = "nothing happens before the commit"]
pub struct Transaction {
    bus: Bus,
    sends: Vec<Outgoing>,
    acks: Vec<Delivery>,
}

impl Transaction {
    pub(super) const fn new(bus: Bus) -> Self {
        Self {
            bus,
            sends: Vec::new(),
            acks: Vec::new(),
        }
    }

    /// Adds a message to send.
    pub fn send(&mut self, message: Outgoing) {
        self.sends.push(message);
    }

    /// Adds an acknowledgement.
    pub fn ack(&mut self, delivery: Delivery) {
        self.acks.push(delivery);
    }

    /// Does it all; returns when it is done for good.
    ///
    /// # Errors
    /// As [`Bus::publish`] and [`Delivery::ack`]; then nothing of it has happened, except that after a lost
    /// connection nobody here can know.
    pub async fn commit(self) -> Result<(), BusError> {
        let acks = self
            .acks
            .into_iter()
            .filter_map(|delivery| delivery.handle)
            .collect();
        self.bus.commit(self.sends, acks).await
    }

    /// Forgets the sends and gives the deliveries back, each counted as a backout.
    ///
    /// # Errors
    /// As [`Delivery::nack`].
    pub async fn abort(self) -> Result<(), BusError> {
        for delivery in self.acks {
            delivery.nack().await?;
        }
        Ok(())
    }
}
