//! What has been, or is to be, written and waits for its receipt.

use std::time::Duration;

use tokio::{sync::OwnedSemaphorePermit, time::Instant};

use super::{Answer, reply, subscriptions::Removed};
use crate::{
    error::BusError,
    handle::{Outgoing, delivery::AckHandle},
};

#[derive(Debug)]
pub(in crate::stomp::client) enum Work {
    Send(Box<Send>),
    Subscribe(u64),
    Unsubscribe {
        answer: Option<Answer>,
    },
    /// Ends a subscription from which not all has returned.
    Leaving(u64),
    /// Deletes a durable subscription.
    Cancel {
        removed: Removed,
        /// The connection that had it.
        session: u64,
        answer: Option<Answer>,
    },
    Ack {
        answer: Option<Answer>,
    },
    Commit {
        sends: Vec<Outgoing>,
        acks: Vec<AckHandle>,
        answer: Answer,
    },
    /// One message of what takes the place of a transaction.
    Part(u64),
    Disconnect,
}

/// A message that the bus is to have.
#[derive(Debug)]
pub(in crate::stomp::client) struct Send {
    pub(super) message: Outgoing,
    /// Who waits until the bus has it.
    pub(super) answer: Option<Answer>,
    pub(super) attempts: u32,
    /// When its time to live ends.
    expires: Option<Instant>,
    /// When its sender is told that it failed.
    give_up: Option<Instant>,
    /// Its part of what may be in flight.
    _permit: OwnedSemaphorePermit,
}

impl Work {
    pub(super) fn send(
        message: Outgoing,
        permit: OwnedSemaphorePermit,
        answer: Option<Answer>,
        volatile_timeout: Duration,
    ) -> Self {
        let now = Instant::now();
        // A time to live too long for the clock is none.
        let expires = message.ttl.and_then(|ttl| now.checked_add(ttl));
        let give_up = if message.persistent {
            None
        } else {
            now.checked_add(volatile_timeout)
        };
        let attempts = 0;
        Self::Send(Box::new(Send {
            message,
            answer,
            attempts,
            expires,
            give_up,
            _permit: permit,
        }))
    }

    /// Tells whoever waits for it.
    pub(super) fn fail(self, error: &BusError) {
        match self {
            Self::Send(send) => reply(send.answer, Err(error.clone())),
            Self::Unsubscribe { answer } | Self::Cancel { answer, .. } | Self::Ack { answer } => {
                reply(answer, Err(error.clone()));
            }
            Self::Commit { answer, .. } => reply(Some(answer), Err(error.clone())),
            // Of a part, the whole is told: see `Core::fail`.
            Self::Subscribe(_) | Self::Part(_) | Self::Leaving(_) | Self::Disconnect => {}
        }
    }

    /// Whether it should not be written any more because who asked has stopped waiting.
    pub(super) fn is_abandoned(&self) -> bool {
        match self {
            Self::Send(send) => send.answer.as_ref().is_some_and(Answer::is_closed),
            Self::Commit { answer, .. } => answer.is_closed(),
            _ => false,
        }
    }
}

impl Send {
    pub(super) fn is_late(&self, now: Instant) -> bool {
        self.give_up.is_some_and(|at| at <= now) || self.expires.is_some_and(|at| at <= now)
    }

    pub(super) fn ttl_left(&self) -> Option<Duration> {
        match self.expires {
            Some(at) => Some(at.saturating_duration_since(Instant::now())),
            None => self.message.ttl,
        }
    }
}
