//! The frames of a client's work, and the receipts they ask for.

use bytes::BytesMut;

use super::{Core, Work};
use crate::{
    handle::{
        Outgoing,
        delivery::{AckHandle, AckId},
    },
    stomp::{
        client::encode::{self, SendContext},
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
        let receipt = self.last_receipt + 1;
        match &work {
            Work::Send(send) => {
                let ttl = send.ttl_left();
                let context = SendContext {
                    receipt: Some(receipt),
                    transaction: None,
                    ttl,
                };
                encode::send(out, &send.message, context);
            }
            Work::Cancel { number, name, .. } => {
                encode::unsubscribe(out, *number, Some(name), receipt);
            }
            Work::Commit { sends, acks, .. } => self.write_commit(sends, acks, receipt, out),
            Work::Subscribe(_) | Work::Unsubscribe { .. } | Work::Ack { .. } | Work::Disconnect => {
            }
        }
        self.note(work);
    }

    fn write_commit(
        &mut self,
        sends: &[Outgoing],
        acks: &[AckHandle],
        receipt: u64,
        out: &mut BytesMut,
    ) {
        self.last_transaction += 1;
        let name = format!("t{}", self.last_transaction);
        encode::transaction(out, StompCommand::Begin, &name, None);
        for message in sends {
            let context = SendContext {
                receipt: None,
                transaction: Some(&name),
                ttl: message.ttl,
            };
            encode::send(out, message, context);
        }
        for ack in acks {
            if let AckId::Stomp(id) = &ack.id {
                encode::ack(out, StompCommand::Ack, id, Some(&name), None);
            }
        }
        encode::transaction(out, StompCommand::Commit, &name, Some(receipt));
    }

    pub(super) fn write_subscribe(&mut self, number: u64, out: &mut BytesMut) {
        let receipt = self.last_receipt + 1;
        if let Some(request) = self.subscriptions.request(number) {
            encode::subscribe(out, number, request, receipt);
            self.note(Work::Subscribe(number));
        }
    }

    pub(super) fn note(&mut self, work: Work) -> u64 {
        self.last_receipt += 1;
        self.sent.insert(self.last_receipt, work);
        self.last_receipt
    }
}
