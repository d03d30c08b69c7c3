//! A producer: sends numbered messages and notes which of them are confirmed. Nothing is sent a second time.

use std::{collections::VecDeque, time::Duration};

use super::{Shared, WORK, header, ledger::content};
use crate::support::{
    PATIENCE, Random, pause,
    stomp::{Next, Stomp},
};

/// Half of the producers wait for each receipt, the others for the first of so many.
const WINDOW: usize = 8;

pub(super) struct Producer {
    number: u64,
    window: usize,
    random: Random,
    next: u64,
    unconfirmed: VecDeque<u64>,
}

impl Producer {
    pub(super) fn new(number: u64, seed: u64) -> Self {
        Self {
            number,
            window: if number.is_multiple_of(2) { 1 } else { WINDOW },
            random: Random::new(seed),
            next: 0,
            unconfirmed: VecDeque::new(),
        }
    }

    pub(super) fn run(&mut self, shared: &Shared) {
        while let Some((mut stomp, _)) = shared.connect() {
            self.unconfirmed.clear();
            while !shared.is_over() && self.step(shared, &mut stomp).is_some() {}
            while !self.unconfirmed.is_empty() && self.confirm(shared, &mut stomp).is_some() {}
        }
    }

    /// Sends one more; none if the bus has gone.
    fn step(&mut self, shared: &Shared, stomp: &mut Stomp) -> Option<()> {
        if shared.ledger.is_ahead() {
            pause(Duration::from_millis(1));
            return Some(());
        }
        let number = self.next;
        self.next += 1;
        shared.ledger.sending((self.number, number));
        self.unconfirmed.push_back(number);
        let receipt = number.to_string();
        let headers = [
            ("destination", WORK),
            ("persistent", "true"),
            ("receipt", &receipt),
        ];
        let body = content(self.number, number);
        stomp.frame("SEND", &headers, &body).ok()?;
        if self.unconfirmed.len() >= self.window {
            self.confirm(shared, stomp)?;
        }
        // Not all in step with each other.
        pause(Duration::from_micros(self.random.below(300)));
        Some(())
    }

    /// Waits for the next receipt; none if the bus has gone.
    fn confirm(&mut self, shared: &Shared, stomp: &mut Stomp) -> Option<()> {
        match stomp.next(PATIENCE) {
            Next::Frame(frame) if frame.command == "RECEIPT" => {
                let number = self.unconfirmed.pop_front();
                let number = number.unwrap_or_else(|| panic!("no receipt is waited for"));
                assert_eq!(frame.header("receipt-id"), Some(&*number.to_string()));
                shared
                    .ledger
                    .sent((self.number, number), header(&frame, "message-id"));
                Some(())
            }
            Next::Closed => None,
            other => panic!("instead of a receipt: {other:?}"),
        }
    }
}
