//! Unsubscribing where the broker keeps what is in flight for a subscription that is gone, as RabbitMQ does: it takes no
//! NACK for it any more, and a NACK before would only bring the message once more. Its acknowledgements go by the
//! subscription's id, though, whatever that is subscribed to. So the subscription is ended first; then the id is given
//! to one that nothing comes from, all is given back, and that one is ended too.

use std::{collections::BTreeMap, mem};

use bytes::BytesMut;
use pillarbox_messages::Destination;

use super::{Answer, Core, Work, reply, subscriptions::Removed};
use crate::{
    error::BusError,
    handle::{AckMode, SubscribeRequest},
    stomp::{client::encode, frame::StompCommand},
};

/// Where nobody sends anything.
const NOWHERE: &str = "pillarbox.nowhere";

/// The subscriptions whose end the bus has not confirmed, by their numbers. All of this connection.
#[derive(Debug, Default)]
pub(super) struct Leaving(BTreeMap<u64, Left>);

#[derive(Debug)]
struct Left {
    removed: Removed,
    /// What is to be given back: the values of `ack`.
    owed: Vec<String>,
    answer: Option<Answer>,
}

impl Leaving {
    /// The connection is gone, and all that was in flight has returned.
    pub(super) fn disconnected(&mut self) {
        for left in mem::take(&mut self.0).into_values() {
            reply(left.answer, Ok(()));
        }
    }

    pub(super) fn fail_all(&mut self, error: &BusError) {
        for left in mem::take(&mut self.0).into_values() {
            reply(left.answer, Err(error.clone()));
        }
    }

    /// Takes note of what has come though its subscription is being ended; `id` is the `id` header of its frames.
    pub(super) fn take(&mut self, id: &str, ack: Option<&str>) {
        let left = self.0.values_mut().find(|left| left.removed.id == id);
        if let (Some(left), Some(ack)) = (left, ack) {
            left.owed.push(ack.to_owned());
        }
    }
}

impl Core {
    /// Begins to leave; `resting` is what rests before it is given back.
    pub(super) fn leave(
        &mut self,
        number: u64,
        removed: Removed,
        resting: Vec<String>,
        answer: Option<Answer>,
        out: &mut BytesMut,
    ) {
        let receipt = self.note(Work::Leaving(number));
        encode::unsubscribe(
            out,
            self.named(&removed.id, &removed.request),
            false,
            Some(receipt),
        );
        let mut owed = resting;
        owed.extend(removed.in_flight.iter().cloned());
        let left = Left {
            removed,
            owed,
            answer,
        };
        self.leaving.0.insert(number, left);
    }

    /// The subscription is ended, and nothing more comes from it: gives back what has.
    pub(super) fn left(&mut self, number: u64, out: &mut BytesMut) {
        let Some(left) = self.leaving.0.remove(&number) else {
            return;
        };
        if left.owed.is_empty() {
            return reply(left.answer, Ok(()));
        }
        let nowhere = SubscribeRequest {
            ack_timeout: None,
            destination: Destination::topic(NOWHERE),
            durable: None,
            ack: AckMode::Individual,
            prefetch: 1,
        };
        let id = &left.removed.id;
        encode::subscribe(out, self.named(id, &nowhere), None);
        for ack in &left.owed {
            encode::ack(out, StompCommand::Nack, ack, None, None);
        }
        let answer = left.answer;
        let receipt = self.note(Work::Unsubscribe { answer });
        encode::unsubscribe(out, self.named(id, &nowhere), false, Some(receipt));
    }
}
