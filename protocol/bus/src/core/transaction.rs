//! Transactions: sends and acknowledgements that are one unit, or never were.

use pillarbox_messages::{Destination, DestinationKind};

use super::{
    Core,
    consume::{Back, Flight},
    destroy::gone,
    message::{Cause, DeliveryId, NewMessage},
    unit::QueueId,
};
use crate::{
    embedded::connection::{ConnectionId, Token},
    error::BusError,
};

/// This part of the capacity is kept for what is sent together with acknowledgements.
const RESERVE: u64 = 50;

/// What an open transaction has gathered.
#[derive(Debug, Default)]
pub(super) struct Transaction {
    sends: Vec<Staged>,
    acks: Vec<DeliveryId>,
    /// Each with whether it goes to the error queue.
    nacks: Vec<(DeliveryId, bool)>,
    bytes: u64,
    pub(super) deadline: i64,
    /// Something in it has failed: its commit will fail with this.
    doom: Option<BusError>,
}

/// A message to be sent.
#[derive(Debug)]
struct Staged {
    message: NewMessage,
    /// The lasting queue that it was for when it came.
    queue: Option<QueueId>,
    /// It repeated one that was remembered when it came, so nobody has looked at what it says.
    unchecked: bool,
}

impl Transaction {
    fn actions(&self) -> usize {
        self.sends.len() + self.acks.len() + self.nacks.len()
    }

    /// Whether it has something to send to this queue.
    pub(super) fn sends_to(&self, queue: QueueId) -> bool {
        self.sends.iter().any(|it| it.queue == Some(queue))
    }
}

impl Core {
    pub(super) fn begin(&mut self, connection: ConnectionId, number: u64) -> Result<(), BusError> {
        let session = self.sessions.get_mut(&connection).ok_or(BusError::Closed)?;
        if session.transactions.contains_key(&number) {
            return Err(BusError::invalid(
                "there is an open transaction of this name already",
            ));
        }
        if session.transactions.len() >= self.limits.transactions {
            let detail = format!(
                "a connection has at most {} open transactions",
                self.limits.transactions
            );
            return Err(BusError::Refused {
                name: "LIMIT".to_owned(),
                detail,
            });
        }
        let deadline = self.now.saturating_add(self.limits.transaction_ms);
        session.transactions.insert(
            number,
            Transaction {
                deadline,
                ..Transaction::default()
            },
        );
        self.timeouts.insert((deadline, connection, number));
        Ok(())
    }

    pub(super) fn stage_send(
        &mut self,
        connection: ConnectionId,
        number: Option<u64>,
        message: NewMessage,
    ) -> Result<(), BusError> {
        let unchecked = !self.check_new(&message)?;
        let limit = self.limits.unit_bytes;
        let queue = self.lasting_queue(&message);
        let staged = self.staged_bytes(connection);
        let transaction = self.extend(connection, number.unwrap_or_default(), 1)?;
        if staged.saturating_add(message.size()) > limit {
            return Err(BusError::TooLarge {
                what: "what a connection's transactions hold".to_owned(),
                limit,
            });
        }
        transaction.bytes = transaction.bytes.saturating_add(message.size());
        transaction.sends.push(Staged {
            message,
            queue,
            unchecked,
        });
        Ok(())
    }

    /// The lasting queue that a message is for, if it is for one.
    fn lasting_queue(&self, message: &NewMessage) -> Option<QueueId> {
        if message.destination.kind() != DestinationKind::Queue {
            return None;
        }
        let found = self.directory.resolve(message.destination.name());
        found.map(|(id, _)| id).filter(|id| self.is_lasting(*id))
    }

    /// What all open transactions of a connection hold.
    fn staged_bytes(&self, connection: ConnectionId) -> u64 {
        let session = self.sessions.get(&connection);
        let open = session.into_iter().flat_map(|s| s.transactions.values());
        open.map(|transaction| transaction.bytes).sum()
    }

    pub(super) fn stage_acks(
        &mut self,
        connection: ConnectionId,
        number: u64,
        deliveries: &[DeliveryId],
    ) -> Result<(), BusError> {
        let transaction = self.extend(connection, number, deliveries.len())?;
        transaction.acks.extend_from_slice(deliveries);
        self.bind(connection, number, deliveries);
        Ok(())
    }

    pub(super) fn stage_nacks(
        &mut self,
        connection: ConnectionId,
        number: u64,
        deliveries: &[DeliveryId],
        reject: bool,
    ) -> Result<(), BusError> {
        let transaction = self.extend(connection, number, deliveries.len())?;
        transaction
            .nacks
            .extend(deliveries.iter().map(|delivery| (*delivery, reject)));
        self.bind(connection, number, deliveries);
        Ok(())
    }

    /// Does everything in the transaction in this one step, that is: in one unit.
    pub(super) fn commit(&mut self, connection: ConnectionId, number: u64) -> Result<(), BusError> {
        let mut transaction = self.take_transaction(connection, number)?;
        let checked = match transaction.doom.take() {
            Some(error) => Err(error),
            None => self.check_commit(connection, &transaction),
        };
        if let Err(error) = checked {
            self.tell_refusal(&error);
            let back = match error {
                BusError::TransactionTimedOut => Back::Counted(Cause::TimedOut),
                _ => Back::Later,
            };
            self.undo(connection, &transaction, back);
            return Err(error);
        }
        for Staged { message, .. } in transaction.sends {
            self.route(connection, message);
        }
        for delivery in transaction.acks {
            self.consume(connection, delivery);
        }
        for (delivery, reject) in transaction.nacks {
            self.refuse(connection, delivery, reject);
        }
        self.draft.need_sync();
        Ok(())
    }

    pub(super) fn abort(&mut self, connection: ConnectionId, number: u64) -> Result<(), BusError> {
        let transaction = self.take_transaction(connection, number)?;
        self.undo(connection, &transaction, Back::Counted(Cause::Aborted));
        match transaction.doom {
            Some(error @ BusError::TransactionTimedOut) => Err(error),
            _ => Ok(()),
        }
    }

    /// Tells what became of a command; a failure within a transaction dooms that.
    pub(super) fn answer_within(
        &mut self,
        connection: ConnectionId,
        transaction: Option<u64>,
        token: Token,
        done: Result<(), BusError>,
    ) {
        if let (Err(error), Some(number)) = (&done, transaction) {
            let open = self
                .sessions
                .get_mut(&connection)
                .map(|session| &mut session.transactions);
            if let Some(transaction) = open.and_then(|open| open.get_mut(&number)) {
                transaction.doom.get_or_insert_with(|| error.clone());
            }
        }
        self.answer(connection, token, done);
    }

    /// What was staged in transactions that are open for too long is undone. They stay as tombstones, so that
    /// whoever still works on one is told what happened.
    pub(super) fn time_out_transactions(&mut self) {
        while let Some(&(at, connection, number)) = self.timeouts.first()
            && at <= self.now
        {
            self.timeouts.pop_first();
            let open = self
                .sessions
                .get_mut(&connection)
                .map(|session| &mut session.transactions);
            let Some(transaction) = open.and_then(|open| open.get_mut(&number)) else {
                continue;
            };
            let doom = Some(BusError::TransactionTimedOut);
            let tombstone = Transaction {
                doom,
                ..Transaction::default()
            };
            let gathered = std::mem::replace(transaction, tombstone);
            self.undo(connection, &gathered, Back::Counted(Cause::TimedOut));
        }
    }

    fn check_commit(
        &self,
        connection: ConnectionId,
        transaction: &Transaction,
    ) -> Result<(), BusError> {
        let session = self.sessions.get(&connection).ok_or(BusError::Closed)?;
        let flights = &session.flights;
        let nacks = transaction.nacks.iter().map(|(delivery, _)| delivery);
        for delivery in transaction.acks.iter().chain(nacks) {
            if let Some(orphan) = session.orphans.get(delivery) {
                return Err(gone(&orphan.queue));
            }
            if !flights.contains_key(delivery) {
                return Err(BusError::StaleAck);
            }
        }
        // What has been sent meanwhile needs neither place nor room.
        let sends = transaction.sends.iter();
        let sends = sends.filter(|it| self.duplicate_of(&it.message).is_none());
        let sends: Vec<&Staged> = sends.collect();
        for Staged {
            message,
            queue,
            unchecked,
        } in &sends
        {
            if queue.is_some() && self.lasting_queue(message) != *queue {
                return Err(no_queue(&message.destination));
            }
            if *unchecked {
                // What it repeated has been forgotten.
                self.check_message(message)?;
            }
            self.check_part(message)?;
            self.check_position(message)?;
        }
        let sends: Vec<&NewMessage> = sends.into_iter().map(|it| &it.message).collect();
        let consumed: Vec<&Flight> = transaction
            .acks
            .iter()
            .filter_map(|delivery| flights.get(delivery))
            .collect();
        self.check_space(connection, &sends, self.room_made(&consumed))
    }

    /// How much room there is for what is sent together with these acknowledgements, beyond what there is for
    /// everybody: the room they make and some more. A full space could not be emptied otherwise, since what is in
    /// it is answered as it is consumed.
    fn room_made(&self, consumed: &[&Flight]) -> u64 {
        if consumed.is_empty() {
            return 0;
        }
        let sizes = consumed
            .iter()
            .map(|flight| self.held_size(flight.queue, flight.message));
        sizes.fold(self.limits.capacity_bytes / RESERVE, u64::saturating_add)
    }

    /// An open transaction that may take so many more actions.
    fn extend(
        &mut self,
        connection: ConnectionId,
        number: u64,
        more: usize,
    ) -> Result<&mut Transaction, BusError> {
        let limit = self.limits.transaction_actions;
        let session = self.sessions.get_mut(&connection).ok_or(BusError::Closed)?;
        let transaction = session
            .transactions
            .get_mut(&number)
            .ok_or(BusError::TransactionUnknown)?;
        if let Some(error) = &transaction.doom {
            return Err(error.clone());
        }
        if transaction.actions().saturating_add(more) > limit {
            let detail = format!("a transaction has at most {limit} sends and acknowledgements");
            return Err(BusError::Refused {
                name: "LIMIT".to_owned(),
                detail,
            });
        }
        Ok(transaction)
    }

    /// Keeps the deliveries for the transaction.
    fn bind(&mut self, connection: ConnectionId, number: u64, deliveries: &[DeliveryId]) {
        for delivery in deliveries {
            self.stop_watching(connection, *delivery);
        }
        let Some(session) = self.sessions.get_mut(&connection) else {
            return;
        };
        for delivery in deliveries {
            if let Some(flight) = session.flights.get_mut(delivery) {
                flight.transaction = Some(number);
            }
            if let Some(orphan) = session.orphans.get_mut(delivery) {
                orphan.transaction = Some(number);
            }
        }
    }

    fn take_transaction(
        &mut self,
        connection: ConnectionId,
        number: u64,
    ) -> Result<Transaction, BusError> {
        let session = self.sessions.get_mut(&connection).ok_or(BusError::Closed)?;
        let transaction = session
            .transactions
            .remove(&number)
            .ok_or(BusError::TransactionUnknown)?;
        self.timeouts
            .remove(&(transaction.deadline, connection, number));
        Ok(transaction)
    }

    fn undo(&mut self, connection: ConnectionId, transaction: &Transaction, back: Back) {
        let nacks = transaction.nacks.iter().map(|(delivery, _)| delivery);
        for delivery in transaction.acks.iter().chain(nacks) {
            self.give_back(connection, *delivery, back);
        }
    }
}

/// A queue, or a lane of one, that was there when the transaction had to do with it.
fn no_queue(destination: &Destination) -> BusError {
    BusError::UnknownDestination {
        destination: destination.clone(),
        remedy: "it has gone since the transaction named it".to_owned(),
    }
}
