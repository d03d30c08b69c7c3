//! What the owner of the connection knows: subscriptions, and everything whose receipt has not come.
//!
//! No I/O: frames are written into a buffer, and what comes of them is told through the requests' answers.

mod giving_back;
mod leaving;
mod subscriptions;
mod units;
mod work;
mod write;

use std::{collections::BTreeMap, collections::VecDeque, mem, sync::Arc};

use bytes::BytesMut;
use tokio::time::Instant;

pub(super) use self::work::Work;
use self::{
    giving_back::{Later, keeps},
    leaving::Leaving,
    subscriptions::{HandedOver, Subscriptions},
    units::Units,
};
use super::{
    Answer, Request, StompOptions, decode,
    dialect::{Dialect, PILLARBOX},
    encode,
};
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
    Refused(Refusal),
}

/// Why the bus closes the connection.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) error: BusError,
    /// Whether it has said over what: nothing else is to blame then.
    pub(super) named: bool,
}

impl Refusal {
    const fn unnamed(error: BusError) -> Self {
        Self {
            error,
            named: false,
        }
    }
}

/// Written, receipt not come.
#[derive(Debug)]
struct Sent {
    work: Work,
    since: Instant,
}

#[derive(Debug)]
pub(super) struct Core {
    options: Arc<StompOptions>,
    client_id: String,
    /// Number of the connection, from 1; 0 before the first.
    session: u64,
    connected: bool,
    /// Of the broker of the last connection.
    dialect: &'static Dialect,
    subscriptions: Subscriptions,
    /// What takes the place of transactions.
    units: Units,
    /// What is to be given back after a pause.
    later: Later,
    /// What is being unsubscribed from.
    leaving: Leaving,
    /// By the number of the receipt, which grows.
    sent: BTreeMap<u64, Sent>,
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
            dialect: &PILLARBOX,
            subscriptions: Subscriptions::default(),
            units: Units::default(),
            later: Later::default(),
            leaving: Leaving::default(),
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
    pub(super) fn connected(&mut self, dialect: &'static Dialect, out: &mut BytesMut) {
        self.session += 1;
        self.connected = true;
        self.dialect = dialect;
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
        self.subscriptions.disconnected();
        self.later.clear();
        self.leaving.disconnected();
        for sent in mem::take(&mut self.sent).into_values() {
            match sent.work {
                Work::Send(mut send) => {
                    send.attempts += u32::from(refusal.is_some());
                    match refusal {
                        Some(error) if send.attempts >= MAX_ATTEMPTS => {
                            reply(send.answer, Err(error.clone()));
                        }
                        _ => self.unsent.push_back(Work::Send(send)),
                    }
                }
                work @ Work::Cancel { .. } => self.unsent.push_back(work),
                // What was subscribed ended with the connection.
                Work::Unsubscribe { answer } => reply(answer, Ok(())),
                // What it was for has been given back by the bus.
                Work::Ack { answer } => reply(answer, Err(BusError::StaleAck)),
                Work::Commit { answer, .. } => reply(Some(answer), Err(lost.clone())),
                Work::Part(unit) => self.units.fail(unit, lost),
                // Subscribing is done again, and its waiter waits on; whoever left has been told.
                Work::Subscribe(_) | Work::Leaving(_) | Work::Disconnect => {}
            }
        }
    }

    /// Tells everybody who waits that nothing will come of it.
    pub(super) fn fail_all(&mut self, error: &BusError) {
        let sent = mem::take(&mut self.sent).into_values();
        let sent = sent.map(|sent| sent.work);
        for work in sent.chain(mem::take(&mut self.unsent)) {
            work.fail(error);
        }
        self.units.fail_all(error);
        self.leaving.fail_all(error);
        self.subscriptions.fail_all(error);
    }

    /// Since when the oldest receipt has been waited for.
    pub(super) fn owed_since(&self) -> Option<Instant> {
        self.sent.values().next().map(|sent| sent.since)
    }

    /// Whether something waits that [`Core::expire`] could end.
    pub(super) fn has_timed_work(&self) -> bool {
        !(self.sent.is_empty() && self.unsent.is_empty()) || self.has_pauses()
    }

    /// Gives up the volatile messages that have waited too long, those whose time to live has passed, and what
    /// is not yet written and nobody waits for any more.
    pub(super) fn expire(&mut self, error: &BusError, out: &mut BytesMut) {
        let now = Instant::now();
        self.end_pauses(now, out);
        let late = |work: &Work| matches!(work, Work::Send(send) if send.is_late(now));
        let numbers: Vec<u64> = self
            .sent
            .iter()
            .filter(|(_, sent)| late(&sent.work))
            .map(|(number, _)| *number)
            .collect();
        for number in numbers {
            if let Some(sent) = self.sent.remove(&number) {
                sent.work.fail(error);
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
                self.ack(&handle, answer, out);
            }
            Request::Nack { handle, answer } => {
                self.give_back(&handle, Some(answer), out);
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
                Step::Refused(Refusal::unnamed(BusError::invalid(detail)))
            }
        }
    }

    fn on_message(&mut self, frame: Frame, out: &mut BytesMut) -> Step {
        let Some((number, generation)) = self.subscription_of(&frame) else {
            // It was on its way while its subscription ended: the bus has taken it back, or is still to be told so.
            let id = frame.header("subscription").unwrap_or_default();
            self.leaving.take(id, frame.header("ack"));
            return Step::Continue;
        };
        let Some(subscribed) = self.subscriptions.destination(number) else {
            return Step::Continue;
        };
        let (message, id) = decode::message(frame, subscribed, self.dialect);
        let handle = AckHandle {
            session: self.session,
            subscription: number,
            id: AckId::Stomp { id, generation },
        };
        let exact = self.dialect.counts_exactly();
        match self.subscriptions.deliver(number, message, handle, exact) {
            HandedOver::Done => {}
            HandedOver::Nobody => self.unsubscribe(number, false, None, out),
            HandedOver::TooMany => {
                let detail = "the bus delivers more than the subscription's prefetch";
                return Step::Refused(Refusal::unnamed(BusError::invalid(detail)));
            }
        }
        Step::Continue
    }

    /// The number and the generation of the subscription that a message is for.
    fn subscription_of(&self, frame: &Frame) -> Option<(u64, u32)> {
        let id = frame.header("subscription")?;
        if self.dialect.implied_temporary && id.starts_with('/') {
            return self.subscriptions.by_destination(&self.dialect.read(id)?);
        }
        self.subscriptions.by_id(id)
    }

    fn on_receipt(&mut self, frame: &Frame, out: &mut BytesMut) -> Step {
        let Some(work) = self.answered(frame) else {
            return Step::Continue;
        };
        match work {
            Work::Send(send) => reply(send.answer, Ok(())),
            Work::Subscribe(number) => {
                if !self.subscriptions.established(number) {
                    self.unsubscribe(number, false, None, out);
                }
            }
            Work::Unsubscribe { answer } | Work::Ack { answer } | Work::Cancel { answer, .. } => {
                reply(answer, Ok(()));
            }
            Work::Commit { answer, .. } => reply(Some(answer), Ok(())),
            Work::Part(unit) => self.part_done(unit, out),
            Work::Leaving(number) => self.left(number, out),
            Work::Disconnect => return Step::Disconnected,
        }
        Step::Continue
    }

    /// Tells whoever asked for the refused frame; the others hear of it through [`Core::disconnected`].
    fn on_error(&mut self, frame: &Frame) -> Refusal {
        let work = self.answered(frame);
        let named = work.is_some();
        let destination = match &work {
            Some(Work::Subscribe(number)) => self.subscriptions.destination(*number),
            Some(Work::Send(send)) => Some(&send.message.destination),
            _ => None,
        };
        let error = decode::error(frame, &self.client_id, destination);
        match work {
            Some(Work::Subscribe(number)) => self.subscriptions.refused(number, &error),
            Some(Work::Part(unit)) => self.units.fail(unit, &error),
            Some(work) => work.fail(&error),
            None => {}
        }
        Refusal { error, named }
    }

    fn answered(&mut self, frame: &Frame) -> Option<Work> {
        let number = frame.header("receipt-id")?.parse().ok()?;
        Some(self.sent.remove(&number)?.work)
    }

    fn unsubscribe(
        &mut self,
        number: u64,
        cancel: bool,
        answer: Option<Answer>,
        out: &mut BytesMut,
    ) {
        let Some(removed) = self.subscriptions.remove(number) else {
            reply(answer, Ok(()));
            return;
        };
        // The bus takes no NACK for a subscription that it does not know any more.
        let resting = self.later.take_all_of(number);
        if cancel && removed.request.durable.is_some() {
            let session = self.session;
            let work = Work::Cancel {
                removed,
                session,
                answer,
            };
            self.write_or_wait(work, out);
        } else if self.connected && removed.subscribed && !self.is_implied(&removed.request) {
            if !self.dialect.unsubscribe_returns && keeps(&removed.request) {
                return self.leave(number, removed, resting, answer, out);
            }
            let receipt = self.note(Work::Unsubscribe { answer });
            let named = self.named(&removed.id, &removed.request);
            encode::unsubscribe(out, named, false, Some(receipt));
        } else {
            reply(answer, Ok(()));
        }
    }

    fn ack(&mut self, handle: &AckHandle, answer: Option<Answer>, out: &mut BytesMut) {
        let Some(id) = self.settle(handle) else {
            reply(answer, Err(BusError::StaleAck));
            return;
        };
        if self.is_implied_number(handle.subscription) {
            reply(answer, Ok(()));
            return;
        }
        let receipt = answer.map(|answer| {
            self.note(Work::Ack {
                answer: Some(answer),
            })
        });
        encode::ack(out, StompCommand::Ack, &id, None, receipt);
    }

    /// Takes a delivery off what is in flight; `None` if it is not in flight on this connection.
    fn settle(&mut self, handle: &AckHandle) -> Option<String> {
        if !self.is_current(handle) {
            return None;
        }
        let AckId::Stomp { id, .. } = &handle.id else {
            return None;
        };
        self.subscriptions.settled(handle.subscription, id);
        Some(id.clone())
    }

    /// Whether a delivery is in flight on this connection.
    fn is_current(&self, handle: &AckHandle) -> bool {
        let AckId::Stomp { id, generation } = &handle.id else {
            return false;
        };
        let number = handle.subscription;
        self.connected
            && handle.session == self.session
            && self.subscriptions.is_in_flight(number, id, *generation)
    }
}

fn reply(answer: Option<Answer>, result: Result<(), BusError>) {
    if let Some(answer) = answer {
        // Who asked may have stopped waiting.
        let _ = answer.send(result);
    }
}
