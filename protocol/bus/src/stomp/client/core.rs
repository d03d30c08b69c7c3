//! What the owner of the connection knows: subscriptions, and everything whose receipt has not come.
//!
//! No I/O: frames are written into a buffer, and what comes of them is told through the requests' answers.

mod subscriptions;
mod work;
mod write;

use std::{collections::BTreeMap, collections::VecDeque, mem, sync::Arc};

use bytes::BytesMut;
use tokio::time::Instant;

use self::subscriptions::{HandedOver, Subscriptions};
pub(super) use self::work::Work;
use super::{Answer, Request, StompOptions, decode, encode};
use crate::{
    error::BusError,
    handle::delivery::{AckHandle, AckId},
    stomp::frame::{Frame, StompCommand},
};

/// How often a message may be among what the bus closed the connection over, before its sender is told.
const MAX_ATTEMPTS: u32 = 5;

/// What a frame from the bus means for the connection.
#[derive(Debug)]
pub(super) enum Step {
    /// It goes on.
    Continue,
    /// The bus has confirmed the DISCONNECT.
    Disconnected,
    /// The bus has refused something and closes.
    Refused(BusError),
}

#[derive(Debug)]
pub(super) struct Core {
    options: Arc<StompOptions>,
    client_id: String,
    /// Number of the connection, from 1; 0 before the first.
    session: u64,
    connected: bool,
    subscriptions: Subscriptions,
    /// Written, receipt not come. By the number of the receipt, which grows.
    sent: BTreeMap<u64, Work>,
    /// To be written on the next connection.
    unsent: VecDeque<Work>,
    last_receipt: u64,
    last_transaction: u64,
}

impl Core {
    pub(super) fn new(options: Arc<StompOptions>, client_id: String) -> Self {
        Self {
            options,
            client_id,
            session: 0,
            connected: false,
            subscriptions: Subscriptions::default(),
            sent: BTreeMap::new(),
            unsent: VecDeque::new(),
            last_receipt: 0,
            last_transaction: 0,
        }
    }

    /// The subscriptions, for handing over what had no room.
    pub(super) const fn subscriptions(&mut self) -> &mut Subscriptions {
        &mut self.subscriptions
    }

    /// A new connection stands: subscribes again, then writes what waits.
    pub(super) fn connected(&mut self, out: &mut BytesMut) {
        self.session += 1;
        self.connected = true;
        for number in self.subscriptions.numbers() {
            self.write_subscribe(number, out);
        }
        for work in mem::take(&mut self.unsent) {
            self.write(work, out);
        }
    }

    /// The connection is gone. `refusal` is what the bus said, if it said something.
    pub(super) fn disconnected(&mut self, refusal: Option<&BusError>, lost: &BusError) {
        self.connected = false;
        self.subscriptions.clear_waiting();
        for work in mem::take(&mut self.sent).into_values() {
            match work {
                Work::Send(mut send) => {
                    send.attempts += u32::from(refusal.is_some());
                    match refusal {
                        Some(error) if send.attempts >= MAX_ATTEMPTS => {
                            let _ = send.answer.send(Err(error.clone()));
                        }
                        _ => self.unsent.push_back(Work::Send(send)),
                    }
                }
                Work::Cancel { .. } => self.unsent.push_back(work),
                // What was subscribed ended with the connection.
                Work::Unsubscribe { answer } => reply(answer, Ok(())),
                // What it was for has been given back by the bus.
                Work::Ack { answer } => reply(answer, Err(BusError::StaleAck)),
                Work::Commit { answer, .. } => reply(Some(answer), Err(lost.clone())),
                // Subscribing is done again, and its waiter waits on.
                Work::Subscribe(_) | Work::Disconnect => {}
            }
        }
    }

    /// Tells everybody who waits that nothing will come of it.
    pub(super) fn fail_all(&mut self, error: &BusError) {
        let sent = mem::take(&mut self.sent).into_values();
        for work in sent.chain(mem::take(&mut self.unsent)) {
            work.fail(error);
        }
        self.subscriptions.fail_all(error);
    }

    /// Whether something waits that [`Core::expire`] could end.
    pub(super) fn has_timed_work(&self) -> bool {
        !(self.sent.is_empty() && self.unsent.is_empty())
    }

    /// Gives up the volatile messages that have waited too long, those whose time to live has passed, and what
    /// is not yet written and nobody waits for any more.
    pub(super) fn expire(&mut self, error: &BusError) {
        let now = Instant::now();
        let late = |work: &Work| matches!(work, Work::Send(send) if send.is_late(now));
        let numbers: Vec<u64> = self
            .sent
            .iter()
            .filter(|(_, work)| late(work))
            .map(|(number, _)| *number)
            .collect();
        for number in numbers {
            if let Some(work) = self.sent.remove(&number) {
                work.fail(error);
            }
        }
        let (over, unsent): (VecDeque<_>, _) = mem::take(&mut self.unsent)
            .into_iter()
            .partition(|work| late(work) || work.is_abandoned());
        self.unsent = unsent;
        for work in over {
            work.fail(error);
        }
    }

    /// Writes the last frame of the connection.
    pub(super) fn disconnect(&mut self, out: &mut BytesMut) {
        let receipt = self.note(Work::Disconnect);
        encode::disconnect(out, receipt);
    }

    /// Takes a request on.
    pub(super) fn on_request(&mut self, request: Request, out: &mut BytesMut) {
        match request {
            Request::Publish {
                message,
                permit,
                answer,
            } => {
                let work = Work::send(message, permit, answer, self.options.volatile_timeout);
                self.write_or_wait(work, out);
            }
            Request::Subscribe {
                number,
                request,
                arrivals,
                answer,
            } => {
                self.subscriptions.insert(number, request, arrivals, answer);
                if self.connected {
                    self.write_subscribe(number, out);
                }
            }
            Request::Unsubscribe {
                number,
                cancel,
                answer,
            } => {
                self.unsubscribe(number, cancel, answer, out);
            }
            Request::Ack { handle, answer } => {
                self.ack(StompCommand::Ack, &handle, answer, out);
            }
            Request::Nack { handle, answer } => {
                self.ack(StompCommand::Nack, &handle, Some(answer), out);
            }
            Request::Commit {
                sends,
                acks,
                answer,
            } => {
                if acks.iter().all(|ack| self.is_current(ack)) {
                    self.write_or_wait(
                        Work::Commit {
                            sends,
                            acks,
                            answer,
                        },
                        out,
                    );
                } else {
                    reply(Some(answer), Err(BusError::StaleAck));
                }
            }
        }
    }

    /// Takes a frame from the bus.
    pub(super) fn on_frame(&mut self, frame: Frame, out: &mut BytesMut) -> Step {
        match frame.command {
            StompCommand::Message => self.on_message(frame, out),
            StompCommand::Receipt => self.on_receipt(&frame, out),
            StompCommand::Error => Step::Refused(self.on_error(&frame)),
            other => {
                let detail = format!("the bus sent {other}, which is not for clients");
                Step::Refused(BusError::invalid(detail))
            }
        }
    }

    fn on_message(&mut self, frame: Frame, out: &mut BytesMut) -> Step {
        let number = frame
            .header("subscription")
            .and_then(|number| number.parse().ok());
        // A message on its way while its subscription ended: the bus has taken it back.
        let Some(number) = number else {
            return Step::Continue;
        };
        let Some(subscribed) = self.subscriptions.destination(number) else {
            return Step::Continue;
        };
        let (message, id) = decode::message(frame, subscribed);
        let handle = AckHandle {
            session: self.session,
            subscription: number,
            id,
        };
        match self.subscriptions.deliver(number, message, handle) {
            HandedOver::Done => {}
            HandedOver::Nobody => self.unsubscribe(number, false, None, out),
            HandedOver::TooMany => {
                let detail = "the bus delivers more than the subscription's prefetch";
                return Step::Refused(BusError::invalid(detail));
            }
        }
        Step::Continue
    }

    fn on_receipt(&mut self, frame: &Frame, out: &mut BytesMut) -> Step {
        let Some(work) = self.answered(frame) else {
            return Step::Continue;
        };
        match work {
            Work::Send(send) => reply(Some(send.answer), Ok(())),
            Work::Subscribe(number) => {
                if !self.subscriptions.established(number) {
                    self.unsubscribe(number, false, None, out);
                }
            }
            Work::Unsubscribe { answer } | Work::Ack { answer } | Work::Cancel { answer, .. } => {
                reply(answer, Ok(()));
            }
            Work::Commit { answer, .. } => reply(Some(answer), Ok(())),
            Work::Disconnect => return Step::Disconnected,
        }
        Step::Continue
    }

    /// Tells whoever asked for the refused frame; the others hear of it through [`Core::disconnected`].
    fn on_error(&mut self, frame: &Frame) -> BusError {
        let work = self.answered(frame);
        let destination = match &work {
            Some(Work::Subscribe(number)) => self.subscriptions.destination(*number),
            Some(Work::Send(send)) => Some(&send.message.destination),
            _ => None,
        };
        let error = decode::error(frame, &self.client_id, destination);
        match work {
            Some(Work::Subscribe(number)) => self.subscriptions.refused(number, &error),
            Some(work) => work.fail(&error),
            None => {}
        }
        error
    }

    fn answered(&mut self, frame: &Frame) -> Option<Work> {
        let number = frame.header("receipt-id")?.parse().ok()?;
        self.sent.remove(&number)
    }

    fn unsubscribe(
        &mut self,
        number: u64,
        cancel: bool,
        answer: Option<Answer>,
        out: &mut BytesMut,
    ) {
        let Some(request) = self.subscriptions.remove(number) else {
            reply(answer, Ok(()));
            return;
        };
        match request.durable.filter(|_| cancel) {
            Some(name) => self.write_or_wait(
                Work::Cancel {
                    number,
                    name,
                    answer,
                },
                out,
            ),
            None if self.connected => {
                let receipt = self.note(Work::Unsubscribe { answer });
                encode::unsubscribe(out, number, None, receipt);
            }
            None => reply(answer, Ok(())),
        }
    }

    fn ack(
        &mut self,
        command: StompCommand,
        handle: &AckHandle,
        answer: Option<Answer>,
        out: &mut BytesMut,
    ) {
        let AckId::Stomp(id) = &handle.id else {
            reply(answer, Err(BusError::StaleAck));
            return;
        };
        if !self.is_current(handle) {
            reply(answer, Err(BusError::StaleAck));
            return;
        }
        let receipt = answer.map(|answer| {
            self.note(Work::Ack {
                answer: Some(answer),
            })
        });
        encode::ack(out, command, id, None, receipt);
    }

    /// Whether a delivery is in flight on this connection.
    fn is_current(&self, handle: &AckHandle) -> bool {
        self.connected
            && handle.session == self.session
            && self
                .subscriptions
                .destination(handle.subscription)
                .is_some()
    }
}

fn reply(answer: Option<Answer>, result: Result<(), BusError>) {
    if let Some(answer) = answer {
        // Who asked may have stopped waiting.
        let _ = answer.send(result);
    }
}
