//! Giving a delivery back so that it comes again, whatever the broker makes of NACK.

use std::{mem, time::Duration};

use bytes::BytesMut;
use pillarbox_messages::DestinationKind;
use tokio::time::Instant;

use super::{Answer, Core, Work, reply};
use crate::{
    error::BusError,
    handle::{SubscribeRequest, delivery::AckHandle},
    stomp::{
        client::{dialect::GivingBack, encode},
        frame::StompCommand,
    },
};

/// How long a message rests that the broker would deliver again at once.
const PAUSE: Duration = Duration::from_secs(1);

/// What is given back after a pause. All of this connection.
#[derive(Debug, Default)]
pub(super) struct Later(Vec<Resting>);

#[derive(Debug)]
struct Resting {
    until: Instant,
    /// The subscription that it was delivered to.
    number: u64,
    /// The value of `ack`.
    id: String,
}

impl Later {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    fn take_due(&mut self, now: Instant) -> Vec<String> {
        self.take(|it| it.until <= now)
    }

    /// Of a subscription that ends.
    pub(super) fn take_all_of(&mut self, number: u64) -> Vec<String> {
        self.take(|it| it.number == number)
    }

    fn take(&mut self, which: impl Fn(&Resting) -> bool) -> Vec<String> {
        let (taken, waiting): (Vec<_>, _) = mem::take(&mut self.0).into_iter().partition(which);
        self.0 = waiting;
        taken.into_iter().map(|it| it.id).collect()
    }
}

/// Whether the messages of such a subscription are kept while nobody listens.
pub(super) fn keeps(request: &SubscribeRequest) -> bool {
    request.durable.is_some() || request.destination.kind() != DestinationKind::Topic
}

impl Core {
    /// Gives a delivery back. The answer is [`BusError::StaleAck`] if it is not in flight on this connection.
    pub(super) fn give_back(
        &mut self,
        handle: &AckHandle,
        answer: Option<Answer>,
        out: &mut BytesMut,
    ) {
        let Some(id) = self.settle(handle) else {
            reply(answer, Err(BusError::StaleAck));
            return;
        };
        if self.dialect.giving_back == GivingBack::Nack {
            let receipt = answer.map(|answer| {
                self.note(Work::Ack {
                    answer: Some(answer),
                })
            });
            encode::ack(out, StompCommand::Nack, &id, None, receipt);
            return;
        }
        if !self.is_implied_number(handle.subscription) {
            self.give_back_otherwise(handle.subscription, id, out);
        }
        reply(answer, Ok(()));
    }

    fn give_back_otherwise(&mut self, number: u64, id: String, out: &mut BytesMut) {
        match self.dialect.giving_back {
            GivingBack::Nack | GivingBack::NackLater => {
                let until = Instant::now() + PAUSE;
                self.later.0.push(Resting { until, number, id });
            }
            GivingBack::Resubscribe if self.keeps_messages(number) => self.resubscribe(number, out),
            GivingBack::Resubscribe => {
                // Nobody keeps it: ending the subscription would lose others as well.
                tracing::warn!(
                    broker = self.dialect.broker,
                    "a message of a plain topic can't be given back here; it is dropped"
                );
                encode::ack(out, StompCommand::Ack, &id, None, None);
            }
        }
    }

    /// Whether a subscription's messages are kept while nobody listens.
    fn keeps_messages(&self, number: u64) -> bool {
        let request = self.subscriptions.request(number);
        request.is_some_and(keeps)
    }

    /// Ends the subscription, so that everything in flight returns, and makes it anew after a pause.
    fn resubscribe(&mut self, number: u64, out: &mut BytesMut) {
        let (Some(id), Some(request)) = (
            self.subscriptions.id(number),
            self.subscriptions.request(number),
        ) else {
            return;
        };
        encode::unsubscribe(out, self.named(&id, request), false, None);
        self.subscriptions.pause(number, Instant::now() + PAUSE);
    }

    /// Gives back what has rested for long enough, and makes anew the subscriptions that were ended for a while.
    pub(super) fn end_pauses(&mut self, now: Instant, out: &mut BytesMut) {
        if !self.connected {
            return;
        }
        for id in self.later.take_due(now) {
            encode::ack(out, StompCommand::Nack, &id, None, None);
        }
        for number in self.subscriptions.due(now) {
            self.write_subscribe(number, out);
        }
    }

    /// Whether something rests.
    pub(super) fn has_pauses(&self) -> bool {
        !self.later.0.is_empty() || self.subscriptions.is_paused()
    }
}
