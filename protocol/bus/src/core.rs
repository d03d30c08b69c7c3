//! The queue manager's rules, as a state machine: `step(now, input) -> effects`. No I/O, no clock.
//!
//! A step changes the state at once, and hands out what must be written (at most one unit) and what must be told
//! to whom after which unit. So the state runs ahead of the disk, but nobody sees anything of it before its unit
//! is written. If a unit can't be written, the whole state is thrown away with the connections.

mod admin;
mod alter;
pub(crate) mod attributes;
pub(crate) mod backout;
mod consume;
mod correlations;
pub(crate) mod dedup;
mod destroy;
mod directory;
mod draft;
pub(crate) mod durable;
pub(crate) mod epoch;
mod held;
mod lanes;
pub(crate) mod message;
mod moving;
mod names;
pub(crate) mod notice;
mod overdue;
pub(crate) mod overflow;
mod position;
mod pull;
pub(crate) mod queue;
pub(crate) mod rank;
mod ranks;
mod restore;
mod room;
pub(crate) mod selector;
mod send;
mod session;
mod subscribe;
#[cfg(test)]
mod tests;
mod time;
mod transaction;
pub(crate) mod unit;
mod wanting;

use std::collections::{BTreeMap, BTreeSet};

pub use self::pull::Browsed;
pub(crate) use self::subscribe::check_ack_timeout;
use self::{
    dedup::Remembered,
    directory::Directory,
    draft::Draft,
    durable::SubscriptionRule,
    message::{Addresses, DeliveryId, MessageId},
    queue::Queue,
    session::Session,
    unit::QueueId,
};
pub(crate) use self::{
    draft::{Effects, Posted},
    restore::Wanted,
};
use crate::{
    ClientTemplates,
    embedded::connection::{Command, ConnectionId, Event, SubscribeOptions, Token},
    error::BusError,
};

/// The queue for what has no other place. Always there.
pub(crate) const ERROR_QUEUE: &str = "~error";

/// What the state machine is told.
#[derive(Debug)]
pub(crate) enum Input {
    /// A connection has come. Its client id is empty, or no live connection's.
    Open {
        connection: ConnectionId,
        client_id: String,
        /// Its consumers run within this process: when one ends it, the queue manager ends, too.
        in_process: bool,
    },
    /// A connection wants something.
    Command {
        connection: ConnectionId,
        command: Command,
    },
    /// A connection has gone without a word, or must go for this reason.
    Lost {
        connection: ConnectionId,
        reason: BusError,
    },
    /// A delivery of an `Auto` subscription has been handed to its consumer.
    Handed {
        connection: ConnectionId,
        delivery: DeliveryId,
    },
    /// A delivery was not handed over, because its message had expired before its turn came.
    Missed {
        connection: ConnectionId,
        delivery: DeliveryId,
    },
    /// Time has passed.
    Tick,
    /// The log wants these messages written again, so that it can let go of an old segment.
    Relocate { places: Vec<(MessageId, QueueId)> },
    /// The log has (or has no) room for new messages.
    Room(bool),
    /// The log can't be written any more.
    Failed(String),
    /// The queue manager is being shut down.
    Shutdown,
}

/// What may be held, and for how long.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    /// Messages in lasting and passing queues, in bytes.
    pub(crate) capacity_bytes: u64,
    /// Messages waiting for one plain subscription.
    pub(crate) plain_messages: usize,
    /// The same in bytes.
    pub(crate) plain_bytes: u64,
    /// The same for all plain subscriptions together.
    pub(crate) plain_total_bytes: u64,
    /// One message.
    pub(crate) message_bytes: u64,
    /// The messages in one connection's open transactions together, so also one transaction.
    pub(crate) unit_bytes: u64,
    /// Sends and acknowledgements in one transaction.
    pub(crate) transaction_actions: usize,
    /// Open transactions of one connection.
    pub(crate) transactions: usize,
    /// How long a transaction may be open, in milliseconds.
    pub(crate) transaction_ms: i64,
    /// Queues, the ones behind subscriptions included.
    pub(crate) queues: usize,
    /// Durable subscriptions.
    pub(crate) durables: usize,
    /// Subscriptions of one connection.
    pub(crate) subscriptions: usize,
    /// Unacknowledged deliveries of one subscription.
    pub(crate) prefetch: u32,
    /// How long a sender's own id of a message is remembered, in milliseconds.
    pub(crate) dedup_ms: i64,
    /// Such ids of one destination.
    pub(crate) dedup_ids: usize,
    /// Such ids of all destinations together, in bytes.
    pub(crate) dedup_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            capacity_bytes: 512 << 20,
            plain_messages: 10_000,
            plain_bytes: 64 << 20,
            plain_total_bytes: 512 << 20,
            message_bytes: 17 << 20,
            unit_bytes: 32 << 20,
            transaction_actions: 100_000,
            transactions: 64,
            transaction_ms: 60_000,
            queues: 20_000,
            durables: 10_000,
            subscriptions: 1_000,
            prefetch: 65_536,
            dedup_ms: 600_000,
            dedup_ids: 100_000,
            dedup_bytes: 64 << 20,
        }
    }
}

/// What has been counted since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    /// Messages sent.
    pub(crate) sent: u64,
    /// Deliveries.
    pub(crate) delivered: u64,
    /// Messages acknowledged.
    pub(crate) acknowledged: u64,
    /// Sends that repeated one that is remembered.
    pub(crate) duplicates: u64,
    /// Messages without a place to go.
    pub(crate) unroutable: u64,
    /// Messages that expired.
    pub(crate) expired: u64,
    /// Messages moved aside because they had failed.
    pub(crate) backed_out: u64,
    /// Subscriptions closed because they did not keep up.
    pub(crate) slow_consumers: u64,
    /// Messages that durable subscriptions have missed because they were full.
    pub(crate) missed: u64,
    /// Durable subscriptions cancelled because their clients had been away for too long.
    pub(crate) abandoned: u64,
    /// Durable subscriptions cancelled because they were full.
    pub(crate) cancelled_full: u64,
}

/// The queue manager's state.
#[derive(Debug)]
pub(crate) struct Core {
    limits: Limits,
    templates: ClientTemplates,
    boot: u64,
    next_seq: u64,
    next_queue: u64,
    next_delivery: u64,
    next_unit: u64,
    next_subscription: u64,
    /// The time of the latest step; never goes back, so that nothing un-expires.
    now: i64,
    directory: Directory,
    addresses: Addresses,
    remembered: Remembered,
    /// Topics that are for durable subscriptions: what none of them gets goes to the error queue.
    durable_topics: BTreeSet<String>,
    /// What an administrator says about durable subscriptions.
    rules: Vec<SubscriptionRule>,
    queues: BTreeMap<QueueId, Queue>,
    sessions: BTreeMap<ConnectionId, Session>,
    /// Queues where some messages wait until the others are gone.
    draining: BTreeSet<QueueId>,
    /// When messages expire. Those in flight may be missing.
    expiry: BTreeSet<(i64, QueueId, MessageId)>,
    /// When scheduled messages become ready.
    due: BTreeSet<(i64, QueueId, MessageId)>,
    /// When those have waited long enough who wait for one message.
    waits: BTreeSet<(i64, ConnectionId, u64)>,
    /// When transactions time out.
    timeouts: BTreeSet<(i64, ConnectionId, u64)>,
    /// When deliveries must have been dealt with.
    ack_deadlines: BTreeSet<(i64, ConnectionId, DeliveryId)>,
    /// When durable subscriptions end whose clients are away.
    absences: BTreeSet<(i64, QueueId)>,
    /// The sizes of all messages in lasting and passing queues.
    held_bytes: u64,
    /// Of these, the ones in durable subscriptions whose clients are away.
    away_bytes: u64,
    /// The sizes of all messages that wait for plain subscriptions, or are in their hands.
    plain_bytes: u64,
    held_messages: usize,
    in_flight: usize,
    /// Whether the latest unit was one that nobody waited for.
    unsynced: bool,
    room: bool,
    failed: Option<String>,
    counters: Counters,
    draft: Draft,
}

impl Core {
    pub(crate) fn new(limits: Limits, templates: ClientTemplates) -> Self {
        Self {
            limits,
            templates,
            boot: 0,
            next_seq: 1,
            next_queue: 1,
            next_delivery: 1,
            next_unit: 1,
            next_subscription: 1,
            now: i64::MIN,
            directory: Directory::default(),
            addresses: Addresses::default(),
            remembered: Remembered::default(),
            durable_topics: BTreeSet::new(),
            rules: Vec::new(),
            queues: BTreeMap::new(),
            sessions: BTreeMap::new(),
            draining: BTreeSet::new(),
            expiry: BTreeSet::new(),
            due: BTreeSet::new(),
            waits: BTreeSet::new(),
            timeouts: BTreeSet::new(),
            ack_deadlines: BTreeSet::new(),
            absences: BTreeSet::new(),
            held_bytes: 0,
            away_bytes: 0,
            plain_bytes: 0,
            held_messages: 0,
            in_flight: 0,
            unsynced: false,
            room: true,
            failed: None,
            counters: Counters::default(),
            draft: Draft::default(),
        }
    }

    /// Takes one input at this time (ms since 1970).
    pub(crate) fn step(&mut self, now_ms: i64, input: Input) -> Effects {
        self.now = self.now.max(now_ms);
        self.pass_time();
        match input {
            Input::Open {
                connection,
                client_id,
                in_process,
            } => self.open(connection, client_id, in_process),
            Input::Command {
                connection,
                command,
            } => self.command(connection, command),
            Input::Lost { connection, reason } => self.lost(connection, reason),
            Input::Handed {
                connection,
                delivery,
            } => self.handed(connection, delivery),
            Input::Missed {
                connection,
                delivery,
            } => {
                self.give_back(connection, delivery, consume::Back::Uncounted);
            }
            Input::Tick => {}
            Input::Relocate { places } => self.relocate(&places),
            Input::Room(room) => self.room = room,
            Input::Failed(reason) => self.fail_space(reason),
            Input::Shutdown => self.shut_down(),
        }
        self.end_drains();
        self.pump();
        self.finish()
    }

    /// When [`Input::Tick`] is due next (ms since 1970).
    pub(crate) fn next_deadline(&self) -> Option<i64> {
        let expiry = self.expiry.first().map(|(at, ..)| *at);
        let due = self.due.first().map(|(at, ..)| *at);
        let timeout = self.timeouts.first().map(|(at, ..)| *at);
        let wait = self.waits.first().map(|(at, ..)| *at);
        let ack = self.ack_deadlines.first().map(|(at, ..)| *at);
        let absence = self.absences.first().map(|(at, ..)| *at);
        let all = [expiry, due, timeout, wait, ack, absence];
        all.into_iter().flatten().min()
    }

    pub(crate) const fn boot(&self) -> u64 {
        self.boot
    }

    pub(crate) const fn counters(&self) -> Counters {
        self.counters
    }

    pub(crate) const fn held_bytes(&self) -> u64 {
        self.held_bytes
    }

    /// How many messages stand in all queues together.
    pub(crate) const fn held_messages(&self) -> usize {
        self.held_messages
    }

    /// How many of them are in consumers' hands.
    pub(crate) const fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// How many durable subscriptions there are.
    pub(crate) fn durable_count(&self) -> usize {
        self.directory.durable_count()
    }

    /// How many queues there are, the ones behind subscriptions included.
    pub(crate) fn queue_count(&self) -> usize {
        self.queues.len()
    }

    fn command(&mut self, connection: ConnectionId, command: Command) {
        if !self.sessions.contains_key(&connection) {
            return;
        }
        match command {
            Command::Subscribe {
                subscription,
                destination,
                durable,
                ack,
                prefetch,
                selector,
                options,
                ack_timeout,
                token,
            } => {
                let wish = subscribe::Wish {
                    subscription,
                    destination,
                    durable,
                    ack,
                    prefetch,
                    selector,
                    options,
                    ack_timeout,
                };
                self.subscribe(connection, wish, token);
            }
            Command::Get {
                subscription,
                destination,
                selector,
                wait,
                ack,
                token,
            } => {
                let wish = subscribe::Wish {
                    subscription,
                    destination,
                    durable: None,
                    ack,
                    prefetch: 1,
                    selector,
                    options: SubscribeOptions::default(),
                    ack_timeout: None,
                };
                self.get(connection, wish, wait, token);
            }
            Command::Browse {
                subscription,
                destination,
                selector,
                limit,
                all,
                token,
            } => {
                let what = (&destination, selector.as_ref());
                self.browse(connection, subscription, what, (limit, all), token);
            }
            Command::Unsubscribe {
                subscription,
                token,
            } => {
                let done = self.unsubscribe(connection, subscription);
                self.answer(connection, token, done);
            }
            Command::CancelDurable { name, token } => {
                let done = self.cancel_durable(connection, name);
                self.answer(connection, token, done);
            }
            Command::Send {
                message,
                transaction,
                token,
            } => {
                self.send(connection, message, transaction, token);
            }
            other => self.finish_something(connection, other),
        }
    }

    /// What is about deliveries, transactions and the end.
    fn finish_something(&mut self, connection: ConnectionId, command: Command) {
        match command {
            Command::Ack {
                delivery,
                transaction,
                token,
            } => {
                let done = self.ack(connection, delivery, transaction, token != 0);
                self.answer_within(connection, transaction, token, done);
            }
            Command::Nack {
                delivery,
                reject,
                transaction,
                token,
            } => {
                let done = self.nack(connection, delivery, reject, transaction);
                self.answer_within(connection, transaction, token, done);
            }
            Command::Begin { transaction, token } => {
                let done = self.begin(connection, transaction);
                self.answer(connection, token, done);
            }
            Command::Commit { transaction, token } => {
                let done = self.commit(connection, transaction);
                self.answer(connection, token, done);
            }
            Command::Abort { transaction, token } => {
                let done = self.abort(connection, transaction);
                self.answer(connection, token, done);
            }
            Command::Retry {
                queue,
                messages,
                token,
            } => self.retry_for(connection, &queue, &messages, token),
            Command::Delete {
                queue,
                messages,
                token,
            } => self.delete_for(connection, &queue, &messages, token),
            Command::Administer { request, token } => {
                self.administer_for(connection, &request, token);
            }
            Command::Alter {
                queue,
                lanes,
                drain,
                token,
            } => {
                let done = self.alter(&queue, lanes, drain);
                self.answer(connection, token, done);
            }
            Command::Destroy {
                queue,
                force,
                token,
            } => {
                let done = self.destroy(&queue, force);
                self.answer(connection, token, done);
            }
            Command::Closed { subscription } => self.told(connection, subscription),
            Command::Disconnect { token } => self.disconnect(connection, token),
            Command::Subscribe { .. }
            | Command::Get { .. }
            | Command::Browse { .. }
            | Command::Unsubscribe { .. }
            | Command::CancelDurable { .. }
            | Command::Send { .. } => {}
        }
    }

    /// Tells what became of a command; a failure also if nobody asked.
    fn answer(&mut self, connection: ConnectionId, token: Token, done: Result<(), BusError>) {
        match done {
            Ok(()) if token == 0 => {}
            Ok(()) => {
                let event = Event::Done {
                    token,
                    message_id: None,
                    unroutable: false,
                };
                self.draft.post(connection, event);
            }
            Err(error) => self.draft.post(connection, Event::Failed { token, error }),
        }
    }
}
