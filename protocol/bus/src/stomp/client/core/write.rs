//! The frames of a client's work, and the receipts they ask for.

use bytes::BytesMut;
use tokio::time::Instant;

use super::{Core, Sent, Work, reply, subscriptions::Removed, work::Send};
use crate::{
    handle::{Outgoing, SubscribeRequest, delivery::AckHandle},
    spelling,
    stomp::{
        client::{
            Answer,
            encode::{self, Named, SendContext},
        },
        frame::StompCommand,
    },
};

impl Core {
    pub(super) fn write_or_wait(&mut self, work: Work, out: &mut BytesMut) {
        if self.connected {
            self.write(work, out);
        } else {
            self.unsent.push_back(work);
        }
    }

    /// Writes the frames of a work that is not tied to an earlier connection.
    pub(super) fn write(&mut self, work: Work, out: &mut BytesMut) {
        if work.is_abandoned() {
            return;
        }
        match work {
            Work::Send(send) => self.write_send(send, out),
            Work::Cancel {
                removed,
                session,
                answer,
            } => self.write_cancel(removed, session, answer, out),
            Work::Commit {
                sends,
                acks,
                answer,
            } => self.write_commit(sends, acks, answer, out),
            Work::Subscribe(_)
            | Work::Unsubscribe { .. }
            | Work::Ack { .. }
            | Work::Part(_)
            | Work::Leaving(_)
            | Work::Disconnect => {
                self.note(work);
            }
        }
    }

    fn write_send(&mut self, send: Box<Send>, out: &mut BytesMut) {
        if let Err(error) = self.dialect.check(&send.message) {
            Work::Send(send).fail(&error);
            return;
        }
        let context = SendContext {
            dialect: self.dialect,
            receipt: Some(self.last_receipt + 1),
            transaction: None,
            ttl: send.ttl_left(),
        };
        encode::send(out, &send.message, context);
        self.note(Work::Send(send));
    }

    fn write_cancel(
        &mut self,
        removed: Removed,
        session: u64,
        answer: Option<Answer>,
        out: &mut BytesMut,
    ) {
        let named = self.named(&removed.id, &removed.request);
        if session != self.session || !removed.subscribed {
            // Some brokers delete only what this connection has subscribed to.
            encode::subscribe(out, named, None);
        }
        if self.dialect.ended_before_deleted {
            encode::unsubscribe(out, named, false, None);
        }
        encode::unsubscribe(out, named, true, Some(self.last_receipt + 1));
        self.note(Work::Cancel {
            removed,
            session,
            answer,
        });
    }

    fn write_commit(
        &mut self,
        sends: Vec<Outgoing>,
        acks: Vec<AckHandle>,
        answer: Answer,
        out: &mut BytesMut,
    ) {
        let checked = sends.iter().try_for_each(|it| self.dialect.check(it));
        if let Err(error) = checked {
            for handle in &acks {
                self.give_back(handle, None, out);
            }
            reply(Some(answer), Err(error));
        } else if self.dialect.transactional_ack {
            self.write_transaction(sends, acks, answer, out);
        } else {
            self.write_unit(&sends, acks, answer, out);
        }
    }

    fn write_transaction(
        &mut self,
        sends: Vec<Outgoing>,
        acks: Vec<AckHandle>,
        answer: Answer,
        out: &mut BytesMut,
    ) {
        self.last_transaction += 1;
        let name = format!("t{}", self.last_transaction);
        encode::transaction(out, StompCommand::Begin, &name, None);
        for message in &sends {
            let context = SendContext {
                dialect: self.dialect,
                receipt: None,
                transaction: Some(&name),
                ttl: message.ttl,
            };
            encode::send(out, message, context);
        }
        for ack in &acks {
            if let Some(id) = self.settle(ack) {
                encode::ack(out, StompCommand::Ack, &id, Some(&name), None);
            }
        }
        let receipt = self.note(Work::Commit {
            sends,
            acks,
            answer,
        });
        encode::transaction(out, StompCommand::Commit, &name, Some(receipt));
    }

    pub(super) fn write_subscribe(&mut self, number: u64, out: &mut BytesMut) {
        let Some(request) = self.subscriptions.request(number) else {
            return;
        };
        if self.is_implied(request) {
            self.subscriptions.established(number);
            return;
        }
        if let Some(id) = self.subscriptions.id(number) {
            encode::subscribe(out, self.named(&id, request), Some(self.last_receipt + 1));
            self.note(Work::Subscribe(number));
        }
    }

    /// A subscription as this connection's frames name it.
    pub(super) fn named<'a>(&'a self, id: &'a str, request: &'a SubscribeRequest) -> Named<'a> {
        Named {
            dialect: self.dialect,
            client: &self.client_id,
            id,
            request,
        }
    }

    /// Whether this is a subscription that the broker has made by itself.
    pub(super) fn is_implied(&self, request: &SubscribeRequest) -> bool {
        self.dialect.implied_temporary && spelling::is_own_temporary(&request.destination)
    }

    /// As [`Core::is_implied`], by the subscription's number.
    pub(super) fn is_implied_number(&self, number: u64) -> bool {
        let request = self.subscriptions.request(number);
        request.is_some_and(|request| self.is_implied(request))
    }

    pub(super) fn note(&mut self, work: Work) -> u64 {
        self.last_receipt += 1;
        let since = Instant::now();
        self.sent.insert(self.last_receipt, Sent { work, since });
        self.last_receipt
    }
}
