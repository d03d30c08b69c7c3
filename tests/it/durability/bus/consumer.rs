//! A consumer: acknowledges messages and answers them, in one transaction.

use std::{collections::VecDeque, time::Duration};

use super::{DONE, Shared, WORK, header, ledger::read};
use crate::support::{
    PATIENCE, Random,
    stomp::{Frame, Next, Stomp},
};

/// At most so many messages are consumed by one transaction.
const BATCH: u64 = 3;
/// One transaction in so many is given up by its owner.
const ABORTED: u64 = 10;

pub(super) fn run(shared: &Shared, random: Random) {
    let mut consumer = Consumer { random };
    while let Some((stomp, life)) = shared.connect() {
        let mut session = Session {
            shared,
            stomp,
            life,
            messages: VecDeque::new(),
        };
        let _gone = consumer.serve(&mut session);
    }
}

struct Consumer {
    random: Random,
}

/// A connection and the life of the bus that it belongs to, or an earlier one.
struct Session<'a> {
    shared: &'a Shared,
    stomp: Stomp,
    life: u64,
    /// Delivered, and not begun with.
    messages: VecDeque<Frame>,
}

impl Consumer {
    /// Consumes until all is over; none if the bus has gone.
    fn serve(&mut self, session: &mut Session<'_>) -> Option<()> {
        let headers = [
            ("id", "1"),
            ("destination", WORK),
            ("ack", "client-individual"),
            ("activemq.prefetchSize", "8"),
        ];
        session.stomp.frame("SUBSCRIBE", &headers, b"").ok()?;
        let mut messages = Vec::new();
        let mut wanted = 1;
        while !session.shared.is_over() {
            messages.extend(session.message()?);
            if messages.len() as u64 >= wanted {
                self.consume(session, &messages)?;
                messages.clear();
                wanted = 1 + self.random.below(BATCH);
            }
        }
        // What is in hand is nobody's failure.
        session.stomp.frame("DISCONNECT", &[], b"").ok()
    }

    fn consume(&mut self, session: &mut Session<'_>, messages: &[Frame]) -> Option<()> {
        let names = messages.iter().map(|message| read(&message.body)).collect();
        let fresh = messages.iter().all(|it| it.header("redelivered").is_none());
        // What has failed once is not made to fail again: after some failures it would be moved elsewhere.
        if fresh && self.random.below(ABORTED) == 0 {
            session.transaction(messages, "none")?;
            return session.end("ABORT");
        }
        let unit = session.shared.ledger.committing(names);
        session.transaction(messages, &unit.to_string())?;
        session.end("COMMIT")?;
        session.shared.ledger.committed(unit, session.shared.life());
        Some(())
    }
}

impl Session<'_> {
    /// The next message, if one comes soon; none at all if the bus has gone.
    fn message(&mut self) -> Option<Option<Frame>> {
        if let Some(message) = self.messages.pop_front() {
            return Some(Some(message));
        }
        match self.stomp.next(Duration::from_millis(100)) {
            Next::Frame(frame) if frame.command == "MESSAGE" => Some(Some(self.noted(frame))),
            Next::Nothing => Some(None),
            Next::Closed => None,
            other @ Next::Frame(_) => panic!("instead of a message: {other:?}"),
        }
    }

    fn noted(&self, message: Frame) -> Frame {
        let name = read(&message.body);
        self.shared.ledger.delivered(name, self.life);
        message
    }

    /// Acknowledges and answers each message.
    fn transaction(&mut self, messages: &[Frame], unit: &str) -> Option<()> {
        let within = ("transaction", "t");
        self.stomp.frame("BEGIN", &[within], b"").ok()?;
        for message in messages {
            let ack = header(message, "ack");
            self.stomp.frame("ACK", &[("id", ack), within], b"").ok()?;
            let id = header(message, "message-id");
            let headers = [
                ("destination", DONE),
                ("persistent", "true"),
                ("of", id),
                ("unit", unit),
                within,
            ];
            self.stomp.frame("SEND", &headers, &message.body).ok()?;
        }
        Some(())
    }

    /// Ends the transaction, and waits until that is confirmed.
    fn end(&mut self, how: &str) -> Option<()> {
        let headers = [("transaction", "t"), ("receipt", "end")];
        self.stomp.frame(how, &headers, b"").ok()?;
        loop {
            match self.stomp.next(PATIENCE) {
                Next::Frame(frame) if frame.command == "RECEIPT" => return Some(()),
                Next::Frame(frame) if frame.command == "MESSAGE" => {
                    let message = self.noted(frame);
                    self.messages.push_back(message);
                }
                Next::Closed => return None,
                other => panic!("instead of the receipt: {other:?}"),
            }
        }
    }
}
