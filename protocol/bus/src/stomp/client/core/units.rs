//! What takes the place of a transaction where acknowledgements can't belong to one: the messages are sent with
//! receipts, and only when all have come, the acknowledgements follow. A crash in between lets the acknowledged
//! messages come again, so that answers may be sent twice, but never not at all.

use std::{collections::BTreeMap, mem};

use bytes::BytesMut;

use super::{Core, Work, reply};
use crate::{
    error::BusError,
    handle::{Outgoing, delivery::AckHandle},
    stomp::{
        client::{
            Answer,
            encode::{self, SendContext},
        },
        frame::StompCommand,
    },
};

/// The units whose messages have not all been confirmed.
#[derive(Debug, Default)]
pub(super) struct Units {
    last: u64,
    open: BTreeMap<u64, Unit>,
}

#[derive(Debug)]
struct Unit {
    /// How many of its messages wait for their receipt.
    unconfirmed: usize,
    acks: Vec<AckHandle>,
    answer: Answer,
}

impl Units {
    /// Ends a unit whose messages may not have arrived. A unit that has ended already is no matter.
    pub(super) fn fail(&mut self, unit: u64, error: &BusError) {
        if let Some(unit) = self.open.remove(&unit) {
            reply(Some(unit.answer), Err(error.clone()));
        }
    }

    pub(super) fn fail_all(&mut self, error: &BusError) {
        for unit in mem::take(&mut self.open).into_values() {
            reply(Some(unit.answer), Err(error.clone()));
        }
    }

    fn open(&mut self, unit: Unit) -> u64 {
        self.last += 1;
        self.open.insert(self.last, unit);
        self.last
    }

    /// Counts a receipt; gives the unit back when it was the last one.
    fn confirmed(&mut self, number: u64) -> Option<Unit> {
        let unit = self.open.get_mut(&number)?;
        unit.unconfirmed = unit.unconfirmed.saturating_sub(1);
        if unit.unconfirmed > 0 {
            return None;
        }
        self.open.remove(&number)
    }
}

impl Core {
    /// Sends the messages of a unit, each with a receipt.
    pub(super) fn write_unit(
        &mut self,
        sends: &[Outgoing],
        acks: Vec<AckHandle>,
        answer: Answer,
        out: &mut BytesMut,
    ) {
        let unit = Unit {
            unconfirmed: sends.len(),
            acks,
            answer,
        };
        if sends.is_empty() {
            self.write_acks(unit, out);
            return;
        }
        let number = self.units.open(unit);
        for message in sends {
            let receipt = self.note(Work::Part(number));
            let context = SendContext {
                dialect: self.dialect,
                receipt: Some(receipt),
                transaction: None,
                ttl: message.ttl,
            };
            encode::send(out, message, context);
        }
    }

    /// One message of a unit has arrived.
    pub(super) fn part_done(&mut self, number: u64, out: &mut BytesMut) {
        if let Some(unit) = self.units.confirmed(number) {
            self.write_acks(unit, out);
        }
    }

    /// Acknowledges; the last acknowledgement's receipt is the unit's. One that is stale meanwhile is left out: its
    /// message comes again, as after any crash between the answer and the acknowledgement.
    fn write_acks(&mut self, unit: Unit, out: &mut BytesMut) {
        let settled = unit.acks.iter().filter_map(|handle| self.settle(handle));
        let mut ids: Vec<String> = settled.collect();
        let Some(last) = ids.pop() else {
            reply(Some(unit.answer), Ok(()));
            return;
        };
        for id in ids {
            encode::ack(out, StompCommand::Ack, &id, None, None);
        }
        let receipt = self.note(Work::Ack {
            answer: Some(unit.answer),
        });
        encode::ack(out, StompCommand::Ack, &last, None, Some(receipt));
    }
}
