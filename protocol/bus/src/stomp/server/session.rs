//! What a client of the server has told and asked: frames to commands, events to frames. No I/O.

use std::collections::{BTreeMap, VecDeque};

use bytes::BytesMut;
use pillarbox_messages::Destination;

use super::{
    StompLimits,
    message::{self, Delivered},
    refusal::Refusal,
    send,
    subscribe::{self, Kind, Subscribe},
};
use crate::{
    embedded::connection::{AckMode, Command, DeliveryId, Event, MessageId, Token},
    error::BusError,
    stomp::frame::{Frame, FrameWriter, StompCommand},
};

/// How many commands of one connection may wait for their answers before no more of its frames are read.
const MAX_PENDING: usize = 4096;
/// How long the names may be that clients make up and the session has to remember, in bytes.
const MAX_NAME: usize = 1024;

/// Whether the session goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    Continue,
    /// The client's DISCONNECT is done.
    Disconnected,
}

/// The state of one connected client.
pub(super) struct Session {
    limits: StompLimits,
    has_client_id: bool,
    /// The full name of one of the connection's own temporary queues.
    own: Box<dyn Fn(&str) -> Destination + Send + Sync>,
    /// By the client's id.
    subscriptions: BTreeMap<String, u64>,
    /// By number; with the ones whose UNSUBSCRIBE is not yet done.
    by_number: BTreeMap<u64, Subscription>,
    transactions: BTreeMap<String, u64>,
    /// Commands that must be answered, in their order.
    pending: VecDeque<Pending>,
    last_number: u64,
    last_token: Token,
    disconnecting: bool,
}

struct Subscription {
    id: String,
    durable: Option<String>,
    auto: bool,
    /// Where one message, or a look, was asked for: it ends with the answer.
    asked: Option<Destination>,
}

struct Pending {
    token: Token,
    receipt: Option<String>,
    /// The subscription that has ended with it.
    ends: Vec<u64>,
    disconnects: bool,
}

impl Session {
    pub(super) fn new(
        limits: StompLimits,
        has_client_id: bool,
        own: impl Fn(&str) -> Destination + Send + Sync + 'static,
    ) -> Self {
        Self {
            limits,
            has_client_id,
            own: Box::new(own),
            subscriptions: BTreeMap::new(),
            by_number: BTreeMap::new(),
            transactions: BTreeMap::new(),
            pending: VecDeque::new(),
            last_number: 0,
            last_token: 0,
            disconnecting: false,
        }
    }

    /// Whether another frame may be taken on now.
    pub(super) fn has_room(&self) -> bool {
        self.pending.len() < MAX_PENDING
    }

    /// Takes a frame; the command it leads to is appended. Frames after DISCONNECT are ignored.
    pub(super) fn on_frame(
        &mut self,
        frame: Frame,
        now_ms: i64,
        commands: &mut Vec<Command>,
    ) -> Result<(), Refusal> {
        if self.disconnecting {
            return Ok(());
        }
        check_names(&frame)?;
        let receipt = frame.header("receipt").map(str::to_owned);
        let command = self.command(frame, now_ms).map_err(|refusal| Refusal {
            receipt: refusal.receipt.or(receipt),
            ..refusal
        })?;
        commands.push(command);
        Ok(())
    }

    fn command(&mut self, frame: Frame, now_ms: i64) -> Result<Command, Refusal> {
        match frame.command {
            StompCommand::Send => self.send(frame, now_ms),
            StompCommand::Subscribe => self.subscribe(&frame),
            StompCommand::Unsubscribe => self.unsubscribe(&frame),
            StompCommand::Ack => {
                let (delivery, transaction, token) = self.delivery(&frame)?;
                Ok(Command::Ack {
                    delivery,
                    transaction,
                    token,
                })
            }
            StompCommand::Nack => {
                let reject = frame.header("reject");
                let reject = reject.map_or(Ok(false), |value| send::boolean("reject", value))?;
                let (delivery, transaction, token) = self.delivery(&frame)?;
                Ok(Command::Nack {
                    delivery,
                    reject,
                    transaction,
                    token,
                })
            }
            StompCommand::Begin => self.begin(&frame),
            StompCommand::Commit => {
                let transaction = self.end_transaction(&frame)?;
                Ok(Command::Commit {
                    transaction,
                    token: self.token(&frame),
                })
            }
            StompCommand::Abort => {
                let transaction = self.end_transaction(&frame)?;
                Ok(Command::Abort {
                    transaction,
                    token: self.token(&frame),
                })
            }
            StompCommand::Disconnect => {
                self.disconnecting = true;
                let token = self.ask(Pending {
                    disconnects: true,
                    ..Pending::of(&frame)
                });
                Ok(Command::Disconnect { token })
            }
            StompCommand::Connect => Err(Refusal::invalid("CONNECT on an open connection")),
            StompCommand::Connected
            | StompCommand::Message
            | StompCommand::Receipt
            | StompCommand::Error => Err(Refusal::invalid(format!(
                "{} is not for servers",
                frame.command
            ))),
        }
    }

    fn send(&mut self, frame: Frame, now_ms: i64) -> Result<Command, Refusal> {
        let transaction = self.named_transaction(&frame)?;
        let pending = Pending::of(&frame);
        let message = send::read(frame, now_ms, &self.own)?;
        Ok(Command::Send {
            message,
            transaction,
            token: self.ask_for_receipt(pending),
        })
    }

    fn subscribe(&mut self, frame: &Frame) -> Result<Command, Refusal> {
        let Subscribe {
            id,
            destination,
            durable,
            ack,
            prefetch,
            selector,
            options,
            ack_timeout,
            kind,
        } = Subscribe::read(frame, self.has_client_id, &self.own)?;
        if self.subscriptions.contains_key(&id) {
            return Err(Refusal::invalid(format!(
                "subscription id '{id}' is in use"
            )));
        }
        if self.by_number.len() >= self.limits.subscriptions {
            return Err(Refusal::new(
                "LIMIT",
                "too many subscriptions on one connection",
            ));
        }
        self.last_number += 1;
        let subscription = self.last_number;
        self.subscriptions.insert(id.clone(), subscription);
        let known = Subscription {
            id,
            durable: durable.clone(),
            auto: ack == AckMode::Auto,
            asked: (kind != Kind::Push).then(|| destination.clone()),
        };
        self.by_number.insert(subscription, known);
        let token = self.token(frame);
        Ok(match kind {
            Kind::Push => Command::Subscribe {
                subscription,
                destination,
                durable,
                ack,
                prefetch,
                selector,
                options,
                ack_timeout,
                token,
            },
            Kind::Get(wait) => Command::Get {
                subscription,
                destination,
                selector,
                wait,
                ack,
                token,
            },
            Kind::Browse => Command::Browse {
                subscription,
                destination,
                selector,
                limit: usize::MAX,
                all: false,
                token,
            },
        })
    }

    /// One message, or a look, has been given: the client's id for it is free again.
    fn answered_once(&mut self, subscription: u64) -> Option<(String, Destination)> {
        let known = self.by_number.get(&subscription)?;
        let destination = known.asked.clone()?;
        let known = self.by_number.remove(&subscription)?;
        if self.subscriptions.get(&known.id) == Some(&subscription) {
            self.subscriptions.remove(&known.id);
        }
        Some((known.id, destination))
    }

    /// With a durable subscription's name it is deleted, whether this connection uses it or not.
    fn unsubscribe(&mut self, frame: &Frame) -> Result<Command, Refusal> {
        let id = frame.header("id");
        if let Some(name) = subscribe::durable_name(frame) {
            // A shared one may have several consumers here.
            let used = self.by_number.iter();
            let used = used.filter(|(_, known)| known.durable.as_deref() == Some(name));
            let mut ends = Vec::new();
            for (number, known) in used {
                self.subscriptions.remove(&known.id);
                ends.push(*number);
            }
            let token = self.ask(Pending {
                ends,
                ..Pending::of(frame)
            });
            return Ok(Command::CancelDurable {
                name: name.to_owned(),
                token,
            });
        }
        let id = id.ok_or_else(|| Refusal::invalid("UNSUBSCRIBE without id"))?;
        let subscription = self
            .subscriptions
            .remove(id)
            .ok_or_else(|| Refusal::new("BAD-ID", format!("there is no subscription '{id}'")))?;
        let token = self.ask(Pending {
            ends: vec![subscription],
            ..Pending::of(frame)
        });
        Ok(Command::Unsubscribe {
            subscription,
            token,
        })
    }

    fn delivery(&mut self, frame: &Frame) -> Result<(DeliveryId, Option<u64>, Token), Refusal> {
        let id = frame
            .header("id")
            .ok_or_else(|| Refusal::invalid(format!("{} without id", frame.command)))?;
        // Nothing that this bus ever handed out.
        let delivery = id.parse().map_err(|_| Refusal::from(BusError::StaleAck))?;
        let transaction = self.named_transaction(frame)?;
        Ok((delivery, transaction, self.token(frame)))
    }

    fn begin(&mut self, frame: &Frame) -> Result<Command, Refusal> {
        let name = transaction_name(frame)?;
        if self.transactions.contains_key(name) {
            return Err(Refusal::invalid(format!("transaction '{name}' is open")));
        }
        if self.transactions.len() >= self.limits.transactions {
            return Err(Refusal::new(
                "LIMIT",
                "too many open transactions on one connection",
            ));
        }
        self.last_number += 1;
        let transaction = self.last_number;
        self.transactions.insert(name.to_owned(), transaction);
        Ok(Command::Begin {
            transaction,
            token: self.token(frame),
        })
    }

    fn end_transaction(&mut self, frame: &Frame) -> Result<u64, Refusal> {
        let name = transaction_name(frame)?;
        self.transactions
            .remove(name)
            .ok_or_else(|| BusError::TransactionUnknown.into())
    }

    fn named_transaction(&self, frame: &Frame) -> Result<Option<u64>, Refusal> {
        let Some(name) = frame.header("transaction") else {
            return Ok(None);
        };
        let number = self.transactions.get(name).copied();
        number
            .map(Some)
            .ok_or_else(|| BusError::TransactionUnknown.into())
    }

    /// A token if the frame asks for a receipt, else 0: failures are told in any case.
    fn token(&mut self, frame: &Frame) -> Token {
        self.ask_for_receipt(Pending::of(frame))
    }

    fn ask_for_receipt(&mut self, pending: Pending) -> Token {
        if pending.receipt.is_none() {
            0
        } else {
            self.ask(pending)
        }
    }

    fn ask(&mut self, pending: Pending) -> Token {
        self.last_token += 1;
        self.pending.push_back(Pending {
            token: self.last_token,
            ..pending
        });
        self.last_token
    }

    /// Takes an event; the frame it leads to is appended to `out`.
    pub(super) fn on_event(&mut self, event: Event, out: &mut BytesMut) -> Result<Flow, Refusal> {
        match event {
            Event::Deliver {
                subscription,
                delivery,
                message,
                redelivered,
                delivery_count,
                backout_count,
                first_of_group,
                gap,
            } => {
                // After UNSUBSCRIBE's receipt nothing more may come.
                if let Some(known) = self.by_number.get(&subscription) {
                    let delivered = Delivered {
                        subscription: &known.id,
                        ack: (!known.auto).then_some(delivery),
                        redelivered,
                        delivery_count,
                        backout_count,
                        first_of_group,
                        gap,
                    };
                    message::write(out, &message, delivered);
                }
                self.answered_once(subscription);
                Ok(Flow::Continue)
            }
            Event::NoMessage {
                subscription,
                in_use,
            } => {
                if let Some((id, destination)) = self.answered_once(subscription) {
                    message::write_none(out, &id, &destination, in_use);
                }
                Ok(Flow::Continue)
            }
            Event::Browsed {
                subscription,
                messages,
                more,
            } => {
                if let Some((id, destination)) = self.answered_once(subscription) {
                    message::write_browsed(out, &id, &messages);
                    message::write_end(out, &id, &destination, more);
                }
                Ok(Flow::Continue)
            }
            Event::Done {
                token,
                message_id,
                unroutable,
            } => {
                let Some(pending) = self.answered(token) else {
                    return Ok(Flow::Continue);
                };
                Ok(self.done(pending, message_id, unroutable, out))
            }
            // No frame asks for these.
            Event::Returned { .. } | Event::Administered { .. } => Ok(Flow::Continue),
            Event::Failed { token, error } => {
                let receipt = self.answered(token).and_then(|pending| pending.receipt);
                Err(Refusal {
                    receipt,
                    ..Refusal::from(error)
                })
            }
            Event::SubscriptionClosed {
                subscription,
                reason,
            } => {
                let id = self
                    .by_number
                    .get(&subscription)
                    .map_or("", |known| known.id.as_str());
                let detail = format!("subscription '{id}': {reason}");
                Err(Refusal::new(reason.name(), detail))
            }
            Event::Closed { .. } if self.disconnecting => Ok(Flow::Disconnected),
            Event::Closed { reason } => Err(reason.into()),
        }
    }

    fn done(
        &mut self,
        pending: Pending,
        message_id: Option<MessageId>,
        unroutable: bool,
        out: &mut BytesMut,
    ) -> Flow {
        for ended in &pending.ends {
            self.by_number.remove(ended);
        }
        if let Some(receipt) = &pending.receipt {
            let mut frame = FrameWriter::new(out, StompCommand::Receipt);
            frame.header("receipt-id", receipt);
            if let Some(id) = message_id {
                frame.plain("message-id", id);
            }
            if unroutable {
                frame.plain("q-unroutable", true);
            }
            frame.finish(b"");
        }
        if pending.disconnects {
            Flow::Disconnected
        } else {
            Flow::Continue
        }
    }

    /// Answers come in the order of the commands.
    fn answered(&mut self, token: Token) -> Option<Pending> {
        if token == 0 {
            return None;
        }
        while let Some(pending) = self.pending.pop_front() {
            if pending.token == token {
                return Some(pending);
            }
        }
        None
    }
}

impl Pending {
    fn of(frame: &Frame) -> Self {
        let receipt = frame.header("receipt").map(str::to_owned);
        Self {
            token: 0,
            receipt,
            ends: Vec::new(),
            disconnects: false,
        }
    }
}

fn check_names(frame: &Frame) -> Result<(), Refusal> {
    for name in ["receipt", "id", "transaction"] {
        if frame
            .header(name)
            .is_some_and(|value| value.len() > MAX_NAME)
        {
            let detail = format!("header '{name}' is longer than {MAX_NAME} bytes");
            return Err(Refusal::new("LIMIT", detail));
        }
    }
    Ok(())
}

fn transaction_name(frame: &Frame) -> Result<&str, Refusal> {
    let name = frame.header("transaction");
    name.ok_or_else(|| Refusal::invalid(format!("{} without transaction", frame.command)))
}
