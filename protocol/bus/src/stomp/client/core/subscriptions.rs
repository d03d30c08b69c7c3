//! A client's subscriptions, which outlive its connections.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    mem,
    sync::Arc,
};

use pillarbox_messages::Destination;
use tokio::{
    sync::mpsc::{self, error::TrySendError},
    time::Instant,
};

use super::{Answer, reply};
use crate::{
    error::BusError,
    handle::{
        Incoming, SubscribeRequest,
        delivery::{AckHandle, AckId, Arrival},
    },
};

#[derive(Debug, Default)]
pub(in crate::stomp::client) struct Subscriptions {
    by_number: BTreeMap<u64, Subscribed>,
}

/// How many deliveries beyond its prefetch a subscription may get: some buses don't count exactly.
const EXCESS: usize = 64;
/// As [`EXCESS`], of a bus that counts bytes.
const LARGE_EXCESS: usize = 4096;

/// What came of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HandedOver {
    Done,
    /// Nobody listens any more.
    Nobody,
    /// The bus sends more than was asked for.
    TooMany,
}

#[derive(Debug)]
struct Subscribed {
    request: SubscribeRequest,
    arrivals: mpsc::Sender<Arrival>,
    /// Who waits for the subscription to exist; `None` once it has existed.
    waiter: Option<Answer>,
    /// What had no room in the channel because deliveries of an earlier connection are still in it.
    overflow: VecDeque<Arrival>,
    /// How often it has been made anew on one connection.
    generation: u32,
    /// What is delivered by this generation and not acknowledged, by the values of `ack`.
    in_flight: BTreeSet<String>,
    /// When it is made anew; `None` unless it has been ended for a while.
    again_at: Option<Instant>,
}

/// What is left of a subscription that was removed.
#[derive(Debug)]
pub(in crate::stomp::client) struct Removed {
    pub(super) request: SubscribeRequest,
    /// The `id` header of its frames.
    pub(super) id: String,
    pub(super) in_flight: BTreeSet<String>,
    /// Whether the bus knows it.
    pub(super) subscribed: bool,
}

impl Subscriptions {
    pub(super) fn insert(
        &mut self,
        number: u64,
        request: SubscribeRequest,
        arrivals: mpsc::Sender<Arrival>,
        waiter: Answer,
    ) {
        let overflow = VecDeque::new();
        let subscribed = Subscribed {
            request,
            arrivals,
            waiter: Some(waiter),
            overflow,
            generation: 0,
            in_flight: BTreeSet::new(),
            again_at: None,
        };
        self.by_number.insert(number, subscribed);
    }

    pub(super) fn remove(&mut self, number: u64) -> Option<Removed> {
        let subscribed = self.by_number.remove(&number)?;
        Some(Removed {
            id: subscribed.id(number),
            request: subscribed.request,
            in_flight: subscribed.in_flight,
            subscribed: subscribed.again_at.is_none(),
        })
    }

    /// Those to subscribe to on a new connection; whose waiter or consumer is gone is forgotten.
    pub(super) fn numbers(&mut self) -> Vec<u64> {
        self.by_number
            .retain(|_, subscribed| !subscribed.arrivals.is_closed());
        self.by_number.keys().copied().collect()
    }

    pub(super) fn request(&self, number: u64) -> Option<&SubscribeRequest> {
        self.by_number
            .get(&number)
            .map(|subscribed| &subscribed.request)
    }

    /// The `id` header of a subscription's frames: its number, and its generation behind the first.
    pub(super) fn id(&self, number: u64) -> Option<String> {
        Some(self.by_number.get(&number)?.id(number))
    }

    /// The subscription that an `id` header means, and its generation; `None` if it is of an earlier one.
    pub(super) fn by_id(&self, id: &str) -> Option<(u64, u32)> {
        let (number, generation) = id.split_once('.').unwrap_or((id, "0"));
        let number = number.parse().ok()?;
        let generation = generation.parse().ok()?;
        let subscribed = self.by_number.get(&number)?;
        let current = subscribed.generation == generation && subscribed.again_at.is_none();
        current.then_some((number, generation))
    }

    /// The subscription to a destination of one subscription only, and its generation.
    pub(super) fn by_destination(&self, destination: &Destination) -> Option<(u64, u32)> {
        let mut all = self.by_number.iter();
        let (number, found) = all.find(|(_, it)| it.request.destination == *destination)?;
        Some((*number, found.generation))
    }

    /// Whether a delivery of this generation is still to be acknowledged.
    pub(super) fn is_in_flight(&self, number: u64, id: &str, generation: u32) -> bool {
        let subscribed = self.by_number.get(&number);
        subscribed.is_some_and(|it| it.generation == generation && it.in_flight.contains(id))
    }

    /// A delivery has been acknowledged, or given back.
    pub(super) fn settled(&mut self, number: u64, id: &str) {
        if let Some(subscribed) = self.by_number.get_mut(&number) {
            subscribed.in_flight.remove(id);
        }
    }

    /// Ends a subscription until `again_at`: what was delivered is not its any more.
    pub(super) fn pause(&mut self, number: u64, again_at: Instant) {
        if let Some(subscribed) = self.by_number.get_mut(&number) {
            subscribed.again_at = Some(again_at);
            subscribed.generation = subscribed.generation.wrapping_add(1);
            subscribed.in_flight.clear();
            subscribed.overflow.clear();
        }
    }

    /// The subscriptions to be made anew by now.
    pub(super) fn due(&mut self, now: Instant) -> Vec<u64> {
        let mut due = Vec::new();
        for (number, subscribed) in &mut self.by_number {
            if subscribed.again_at.is_some_and(|at| at <= now) {
                subscribed.again_at = None;
                due.push(*number);
            }
        }
        due
    }

    /// Whether a subscription is ended for a while.
    pub(super) fn is_paused(&self) -> bool {
        self.by_number.values().any(|it| it.again_at.is_some())
    }

    pub(super) fn destination(&self, number: u64) -> Option<&Destination> {
        self.request(number).map(|request| &request.destination)
    }

    /// The bus has made it; false if nobody wants it any more.
    pub(super) fn established(&mut self, number: u64) -> bool {
        let Some(subscribed) = self.by_number.get_mut(&number) else {
            return true;
        };
        reply(subscribed.waiter.take(), Ok(()));
        !subscribed.arrivals.is_closed()
    }

    /// The bus does not want it. One that somebody else uses is tried again, unless it is new.
    pub(super) fn refused(&mut self, number: u64, error: &BusError) {
        let Some(mut subscribed) = self.by_number.remove(&number) else {
            return;
        };
        let new = subscribed.waiter.is_some();
        reply(subscribed.waiter.take(), Err(error.clone()));
        if new {
            return;
        }
        let destination = &subscribed.request.destination;
        if error.name() == "SUBSCRIPTION-IN-USE" {
            tracing::warn!(%destination, %error, "subscribing again is refused; it is tried again");
            self.by_number.insert(number, subscribed);
        } else {
            tracing::error!(%destination, %error, "subscribing again is refused; the subscription has ended");
        }
    }

    /// Hands a message over.
    pub(super) fn deliver(
        &mut self,
        number: u64,
        message: Incoming,
        handle: AckHandle,
        counts_exactly: bool,
    ) -> HandedOver {
        let Some(subscribed) = self.by_number.get_mut(&number) else {
            return HandedOver::Nobody;
        };
        if let AckId::Stomp { id, .. } = &handle.id {
            subscribed.in_flight.insert(id.clone());
        }
        subscribed.overflow.push_back(Arrival {
            message: Arc::new(message),
            handle,
        });
        let prefetch = usize::try_from(subscribed.request.prefetch).unwrap_or(usize::MAX);
        let excess = if counts_exactly { EXCESS } else { LARGE_EXCESS };
        if !subscribed.flush() {
            HandedOver::Nobody
        } else if subscribed.overflow.len() > prefetch.saturating_add(excess) {
            HandedOver::TooMany
        } else {
            HandedOver::Done
        }
    }

    /// The channels of the subscriptions with messages that had no room.
    pub(in crate::stomp::client) fn without_room(&self) -> Vec<mpsc::Sender<Arrival>> {
        let waiting = self
            .by_number
            .values()
            .filter(|subscribed| !subscribed.overflow.is_empty());
        waiting
            .map(|subscribed| subscribed.arrivals.clone())
            .collect()
    }

    /// Hands over what had no room.
    pub(in crate::stomp::client) fn flush(&mut self) {
        for subscribed in self.by_number.values_mut() {
            subscribed.flush();
        }
    }

    /// The connection is gone, and with it what it delivered, but for what nobody would deliver again.
    pub(super) fn disconnected(&mut self) {
        for subscribed in self.by_number.values_mut() {
            subscribed.keep_only_copies();
            subscribed.in_flight.clear();
            subscribed.again_at = None;
            subscribed.generation = 0;
        }
    }

    pub(super) fn fail_all(&mut self, error: &BusError) {
        for subscribed in mem::take(&mut self.by_number).into_values() {
            reply(subscribed.waiter, Err(error.clone()));
        }
    }
}

impl Subscribed {
    fn id(&self, number: u64) -> String {
        match self.generation {
            0 => number.to_string(),
            generation => format!("{number}.{generation}"),
        }
    }

    /// Drops of what had no room all that comes again. Of the rest so much stays that the next connection may deliver
    /// as much again.
    fn keep_only_copies(&mut self) {
        let kept = if self.request.redelivers() {
            0
        } else {
            usize::try_from(self.request.prefetch).unwrap_or(usize::MAX)
        };
        self.overflow.truncate(kept);
    }

    /// Moves what it can to the channel; false if nobody listens.
    fn flush(&mut self) -> bool {
        while let Some(arrival) = self.overflow.pop_front() {
            match self.arrivals.try_send(arrival) {
                Ok(()) => {}
                Err(TrySendError::Full(arrival)) => {
                    self.overflow.push_front(arrival);
                    return true;
                }
                Err(TrySendError::Closed(_)) => {
                    self.overflow.clear();
                    return false;
                }
            }
        }
        true
    }
}
