//! A client's subscriptions, which outlive its connections.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use pillarbox_messages::Destination;
use tokio::sync::mpsc::{self, error::TrySendError};

use super::{Answer, reply};
use crate::{
    error::BusError,
    handle::{
        Incoming, SubscribeRequest,
        delivery::{AckHandle, Arrival},
    },
};

#[derive(Debug, Default)]
pub(in crate::stomp::client) struct Subscriptions {
    by_number: BTreeMap<u64, Subscribed>,
}

/// How many deliveries beyond its prefetch a subscription may get: some buses don't count exactly.
const EXCESS: usize = 64;

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
        };
        self.by_number.insert(number, subscribed);
    }

    pub(super) fn remove(&mut self, number: u64) -> Option<SubscribeRequest> {
        self.by_number
            .remove(&number)
            .map(|subscribed| subscribed.request)
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
    ) -> HandedOver {
        let Some(subscribed) = self.by_number.get_mut(&number) else {
            return HandedOver::Nobody;
        };
        subscribed.overflow.push_back(Arrival {
            message: Arc::new(message),
            handle,
        });
        let prefetch = usize::try_from(subscribed.request.prefetch).unwrap_or(usize::MAX);
        if !subscribed.flush() {
            HandedOver::Nobody
        } else if subscribed.overflow.len() > prefetch.saturating_add(EXCESS) {
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

    /// What waits for room was delivered by a connection that is gone.
    pub(super) fn clear_waiting(&mut self) {
        for subscribed in self.by_number.values_mut() {
            subscribed.overflow.clear();
        }
    }

    pub(super) fn fail_all(&mut self, error: &BusError) {
        for subscribed in std::mem::take(&mut self.by_number).into_values() {
            reply(subscribed.waiter, Err(error.clone()));
        }
    }
}

impl Subscribed {
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
