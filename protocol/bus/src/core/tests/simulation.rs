//! Random operations, a virtual clock, and a disk that loses power, writes short and fails: against a model that
//! knows only what was promised to whom.
//!
//! `PILLARBOX_SEEDS` sets how many seeds are tried; a failing one is printed, and `PILLARBOX_SEED` tries only it.

mod administration;
mod faults;
mod operations;
mod promises;

use std::collections::{BTreeMap, BTreeSet};

use pillarbox_messages::Destination;

use super::invariants;
use crate::{
    BusError, ClientTemplates, Lanes, OutOfOrder, QueueAttributes, QueueDefinition, admin,
    core::{
        Core, Effects, Input, Limits, Posted, Wanted,
        durable::{OnLimit, SubscriptionRule},
        message::{MessageId, QueuedMessage},
        unit::Unit,
    },
    embedded::connection::{Command, ConnectionId, DeliveryId, Event, Token},
    log::{Log, LogOptions, faulty::Disk},
};

const SEEDS: u64 = 250;
const STEPS: u64 = 400;
/// How long senders' own ids are remembered.
const WINDOW: i64 = 15_000;
const LOG: LogOptions = LogOptions {
    segment_bytes: 4096,
    few_segments: 3,
};
/// The places that last: two queues, and the durable subscription of client `d` to the topic.
const PLACES: [&str; 3] = ["work", "other", "d"];

#[test]
fn b30_random_operations_keep_every_promise() {
    let number = |name| {
        std::env::var(name)
            .ok()
            .and_then(|text: String| text.parse().ok())
    };
    let seeds = match number("PILLARBOX_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("PILLARBOX_SEEDS").unwrap_or(SEEDS),
    };
    let mut restarts = 0;
    for seed in seeds {
        let _print = PrintSeed(seed);
        restarts += Simulation::new(seed).run();
    }
    assert!(restarts > 0, "nothing was tested");
}

#[test]
fn b47_a_stop_in_order_changes_nothing() {
    for seed in 0..60 {
        let _print = PrintSeed(seed);
        let mut simulation = Simulation::new(seed);
        for _ in 0..STEPS / 4 {
            simulation.operation();
        }
        simulation.stop();
    }
}

struct PrintSeed(u64);

impl Drop for PrintSeed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("try it again with PILLARBOX_SEED={}", self.0);
        }
    }
}

/// What the model knows of a persistent message in a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// Sent, not promised yet.
    Sent,
    /// Promised.
    Promised,
    /// Acknowledged, not confirmed yet.
    Going,
    /// Consumed by being handed out; after a crash it may come again.
    Consumed,
}

#[derive(Clone, Debug)]
struct Expected {
    fate: Fate,
    expires_at: Option<i64>,
    /// Numbers what must happen together.
    together: u64,
}

/// Messages among which the order is that of the commits: of a place, a lane and a priority.
type Line = (&'static str, Option<String>, u8);

/// A question on its way.
#[derive(Clone, Debug, Default)]
struct Asked {
    sent: Vec<(&'static str, u64)>,
    acked: Vec<(&'static str, u64)>,
    /// What a transaction would send with its sender's own ids, in order.
    staged: Vec<(u64, Original)>,
    /// What is to be remembered as soon as it is done.
    fresh: Vec<(u64, Original)>,
    /// The ids of its sender's own that are known when it is done, each with the marker of whom it means: another may have it
    /// by then, because it was too old.
    named: Vec<(u64, u64)>,
    /// It only repeats what was known.
    again: bool,
}

/// A message with an id of its sender's own, which the bus has to remember.
#[derive(Clone, Debug)]
struct Original {
    destination: Destination,
    sent: Vec<(&'static str, u64)>,
    marker: u64,
    at: i64,
    /// As its first receipt says it.
    message: Option<MessageId>,
    promised: bool,
}

impl Original {
    fn is_remembered(&self, now: i64) -> bool {
        now < self.at + WINDOW
    }
}

#[derive(Clone, Debug)]
struct Delivered {
    connection: ConnectionId,
    delivery: DeliveryId,
    marker: u64,
    place: Option<&'static str>,
    staged: bool,
    subscription: u64,
    /// The message group, where it makes a lane.
    group: Option<String>,
    /// Its subscription has ended: whatever becomes of it is too late.
    stale: bool,
}

struct Simulation {
    random: u64,
    disk: Disk,
    log: Log<Disk>,
    core: Core,
    now: i64,
    pending: Vec<Unit>,
    unreleased: Vec<Posted>,
    written: u64,
    next: u64,
    connections: BTreeMap<ConnectionId, String>,
    subscriptions: BTreeMap<(ConnectionId, u64), &'static str>,
    transactions: BTreeMap<(ConnectionId, u64), Asked>,
    /// What consumers have in their hands.
    hands: Vec<Delivered>,
    asked: BTreeMap<Token, Asked>,
    expected: BTreeMap<(&'static str, u64), Expected>,
    volatile: BTreeSet<u64>,
    /// The latest message first delivered, by place and priority: order is what has been sent earlier.
    latest: BTreeMap<Line, MessageId>,
    /// Messages with a time to live: one that was moved aside outlives it.
    mortal: BTreeSet<u64>,
    /// Connections that end with a subscription of theirs, as all do that are not within the process.
    ended: BTreeSet<ConnectionId>,
    /// Who takes a message of its choice.
    picky: BTreeSet<(ConnectionId, u64)>,
    /// Messages that were sent out of order, or back to where they had failed.
    jumped: BTreeSet<u64>,
    /// Connections that take answers of the administration.
    asking: BTreeSet<ConnectionId>,
    ids: BTreeSet<MessageId>,
    /// By the ids that their senders have given them.
    originals: BTreeMap<u64, Original>,
    /// Repetitions of what was known: nobody may ever see them.
    repetitions: BTreeSet<u64>,
    /// What is said about the durable subscription of `d`.
    rules: Vec<SubscriptionRule>,
    /// What it has missed because it was full, and whether the sender was told that it was sent.
    missed: BTreeMap<u64, (Expected, bool)>,
    /// How many were missed before a message, as it has told.
    told_missed: BTreeMap<u64, u64>,
    /// What was in it when it was cancelled.
    given_up: BTreeSet<u64>,
    /// The latest question that was answered by a failure.
    latest_failure: Token,
    restarts: u64,
    /// The change of lanes that is under way: where it begins, and what was there then.
    change: Option<(MessageId, BTreeSet<MessageId>)>,
}

impl Simulation {
    fn new(seed: u64) -> Self {
        let disk = Disk::new();
        let rules = rules(seed);
        let (log, core) = open(&disk, 0, None, &rules);
        Self {
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678_9abc_def1,
            disk,
            log,
            core,
            now: 0,
            pending: Vec::new(),
            unreleased: Vec::new(),
            written: 1,
            next: 1,
            connections: BTreeMap::new(),
            subscriptions: BTreeMap::new(),
            transactions: BTreeMap::new(),
            hands: Vec::new(),
            asked: BTreeMap::new(),
            expected: BTreeMap::new(),
            volatile: BTreeSet::new(),
            latest: BTreeMap::new(),
            mortal: BTreeSet::new(),
            ended: BTreeSet::new(),
            picky: BTreeSet::new(),
            jumped: BTreeSet::new(),
            asking: BTreeSet::new(),
            ids: BTreeSet::new(),
            originals: BTreeMap::new(),
            repetitions: BTreeSet::new(),
            rules,
            missed: BTreeMap::new(),
            told_missed: BTreeMap::new(),
            given_up: BTreeSet::new(),
            latest_failure: 0,
            restarts: 0,
            change: None,
        }
    }

    fn run(mut self) -> u64 {
        for _ in 0..STEPS {
            self.operation();
            self.note_missed();
            invariants::check(&self.core);
        }
        self.crash();
        self.drain();
        self.restarts
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random.wrapping_mul(0x2545_f491_4f6c_dd1d) % limit
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> Option<T> {
        let length = u64::try_from(from.len()).unwrap();
        (length > 0).then(|| from[usize::try_from(self.below(length)).unwrap()].clone())
    }

    fn fresh(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn operation(&mut self) {
        match self.below(111) {
            0..=7 => self.connect(),
            8..=17 => self.subscribe(),
            18..=20 => self.get(),
            21..=42 => self.send(),
            43..=58 => self.acknowledge(),
            59..=64 => self.refuse(),
            65..=70 => self.transaction(),
            71..=75 => self.finish_transaction(),
            76..=79 => self.leave(),
            80..=84 => {
                self.now += i64::try_from(self.below(3000)).unwrap();
                self.step(Input::Tick);
            }
            85 => self.subscribe_to_answers(),
            86..=87 => self.administer(),
            88..=96 => self.write(),
            97 => self.disk.fail_write_after(self.random % 2000),
            98 => self.disk.fail_sync_after(self.random % 3),
            100..=103 => self.alter(),
            104..=105 => self.browse(),
            106..=107 => self.fill(),
            108 => self.stop(),
            109..=110 => self.destroy(),
            _ => self.crash(),
        }
    }

    fn step(&mut self, input: Input) {
        let Effects {
            unit,
            events,
            closed,
            notices: _,
            detached: _,
        } = self.core.step(self.now, input);
        self.pending.extend(unit);
        for posted in &events {
            if let Event::Deliver { message, .. } = &posted.event {
                assert!(
                    !message.is_expired(self.now),
                    "{} delivered though expired",
                    message.id
                );
            }
        }
        self.unreleased.extend(events);
        self.note_left();
        for connection in closed {
            self.forget(connection);
        }
        self.release();
        // Messages that nobody may see have expired by now, or will when they come back.
        let now = self.now;
        self.expected
            .retain(|_, expected| expected.expires_at.is_none_or(|at| at > now));
    }

    fn command(&mut self, connection: ConnectionId, command: Command) {
        self.step(Input::Command {
            connection,
            command,
        });
    }

    /// Writes what there is to write; an error ends everything.
    fn write(&mut self) {
        let units = std::mem::take(&mut self.pending);
        let Some(last) = units.last().map(|unit| unit.number) else {
            return;
        };
        if self.log.append(&units).is_err() {
            self.crash();
            return;
        }
        self.written = last;
        self.note_room();
        self.release();
        let places = self.log.stale();
        if !places.is_empty() {
            self.step(Input::Relocate { places });
        }
    }

    /// Tells what may be told, to each connection in order.
    fn release(&mut self) {
        let mut blocked = BTreeSet::new();
        let (mut told, mut kept) = (Vec::new(), Vec::new());
        for posted in std::mem::take(&mut self.unreleased) {
            if posted.after > self.written || blocked.contains(&posted.connection) {
                blocked.insert(posted.connection);
                kept.push(posted);
            } else {
                told.push(posted);
            }
        }
        self.unreleased = kept;
        for posted in told {
            self.told(posted);
        }
        for connection in std::mem::take(&mut self.ended) {
            if !connection.0.is_multiple_of(3) {
                let reason = BusError::Closed;
                self.step(Input::Lost { connection, reason });
            }
        }
    }

    fn told(&mut self, posted: Posted) {
        let connection = posted.connection;
        match posted.event {
            Event::Deliver {
                subscription,
                delivery,
                message,
                delivery_count,
                ..
            } if message.origin() == admin::QUEUE => {
                self.answered(connection, subscription, delivery, &message);
                assert_eq!(delivery_count, 1);
            }
            Event::Deliver {
                subscription,
                delivery,
                message,
                delivery_count,
                gap,
                ..
            } => {
                self.note_gap(&message, gap);
                let count = delivery_count;
                self.delivered(
                    connection,
                    subscription,
                    delivery,
                    &message,
                    count,
                    posted.auto,
                );
            }
            Event::Done {
                token, message_id, ..
            } => {
                let asked = self.asked.remove(&token);
                let again = asked.as_ref().is_some_and(|it| it.again);
                if let Some(id) = message_id.filter(|_| !again) {
                    assert!(self.ids.insert(id), "{id} twice");
                }
                if let Some(asked) = asked {
                    self.done(&asked);
                    self.known(asked, message_id);
                }
            }
            Event::Failed { token, error } => {
                self.latest_failure = token;
                let honest = matches!(
                    error,
                    BusError::StaleAck
                        | BusError::TransactionTimedOut
                        | BusError::NoSpace(_)
                        | BusError::QueueNotEmpty { .. }
                        | BusError::Draining { .. }
                        // A lane that there is no more.
                        | BusError::UnknownDestination { .. }
                        | BusError::SubscriptionFull { .. }
                );
                assert!(
                    honest || matches!(error, BusError::Refused { .. }),
                    "{error}"
                );
                if let Some(asked) = self.asked.remove(&token) {
                    self.undone(&asked);
                }
            }
            Event::SubscriptionClosed { subscription, .. } => {
                self.subscriptions.remove(&(connection, subscription));
                self.closed(connection, subscription);
            }
            Event::NoMessage { subscription, .. } => {
                self.subscriptions.remove(&(connection, subscription));
            }
            Event::Administered { token, .. } => {
                if let Some(asked) = self.asked.remove(&token) {
                    self.done(&asked);
                }
            }
            Event::Browsed { messages, .. } => self.browsed(&messages),
            Event::Returned { .. } | Event::Closed { .. } => {}
        }
    }

    fn delivered(
        &mut self,
        connection: ConnectionId,
        subscription: u64,
        delivery: DeliveryId,
        message: &QueuedMessage,
        delivery_count: u32,
        auto: bool,
    ) {
        if message.is_expired(self.now) {
            // It was handed out in time, but its unit took too long.
            return self.step(Input::Missed {
                connection,
                delivery,
            });
        }
        let marker = String::from_utf8(message.body().to_vec())
            .unwrap()
            .parse()
            .unwrap();
        assert!(
            !self.repetitions.contains(&marker),
            "{marker} was a repetition"
        );
        let place = self.subscriptions.get(&(connection, subscription)).copied();
        let came_from = message.original_destination();
        let place = came_from
            .map_or(place, place_of)
            .filter(|_| message.persistent);
        let jumped = self.jumped.contains(&marker) || came_from.is_some();
        let jumped = jumped || self.picky.contains(&(connection, subscription));
        let in_turn = delivery_count == 1 && message.not_before().is_none() && !jumped;
        let group = message.group().map(str::to_owned);
        let group = group.filter(|_| place == Some("work") && came_from.is_none());
        let mut same = self.hands.iter().filter(|it| !it.staged && !it.stale);
        let twice = same.find(|it| place.is_some() && (it.place, it.marker) == (place, marker));
        assert!(twice.is_none(), "{marker} in two hands");
        if group.is_some() {
            let together = self.hands.iter().filter(|it| !it.staged && !it.stale);
            let mut together = together.filter(|it| it.group == group);
            assert!(together.next().is_none(), "two of lane {group:?} in hand");
        }
        if place == Some("work") && came_from.is_none() {
            self.check_change(message.id);
        }
        assert!(
            message.not_before().is_none_or(|at| at <= self.now),
            "{marker} came too early"
        );
        if let Some(place) = place.filter(|_| in_turn) {
            let line = (place, group.clone(), message.priority);
            let latest = self.latest.insert(line, message.id);
            assert!(
                latest.is_none_or(|latest| latest < message.id),
                "{marker} overtook"
            );
        }
        if !auto {
            let (staged, stale) = (false, false);
            self.hands.push(Delivered {
                subscription,
                group,
                stale,
                connection,
                delivery,
                marker,
                place,
                staged,
            });
            return;
        }
        if let Some(expected) = place.and_then(|place| self.expected.get_mut(&(place, marker))) {
            expected.fate = Fate::Consumed;
        }
        self.step(Input::Handed {
            connection,
            delivery,
        });
    }

    /// A consumer learns that it is none any more; from then on others may have what it had.
    fn closed(&mut self, connection: ConnectionId, subscription: u64) {
        for hand in &mut self.hands {
            hand.stale |= (hand.connection, hand.subscription) == (connection, subscription);
        }
        let command = Command::Closed { subscription };
        self.step(Input::Command {
            connection,
            command,
        });
        self.ended.insert(connection);
    }

    /// Nothing more is told to a connection that has gone, so its questions stay open.
    fn forget(&mut self, connection: ConnectionId) {
        self.connections.remove(&connection);
        self.asking.remove(&connection);
        self.unreleased
            .retain(|posted| posted.connection != connection);
        self.hands
            .retain(|delivered| delivered.connection != connection);
        self.subscriptions.retain(|(of, _), _| *of != connection);
        let transactions = std::mem::take(&mut self.transactions);
        for ((of, number), asked) in transactions {
            if of == connection {
                // Never committed, so none of it may ever be seen.
                self.expected.retain(|key, _| !asked.sent.contains(key));
            } else {
                self.transactions.insert((of, number), asked);
            }
        }
    }

    /// A new process finds what the disk has kept.
    fn begin_again(&mut self) {
        self.restarts += 1;
        self.note_missed();
        for (connection, _) in std::mem::take(&mut self.connections) {
            self.forget(connection);
        }
        let wish = (self.below(3) == 0).then(|| self.lanes());
        let (log, core) = open(&self.disk, self.now, wish, &self.rules);
        (self.log, self.core) = (log, core);
        self.change = None;
        self.note_change();
        (self.pending, self.unreleased, self.written) = (Vec::new(), Vec::new(), 1);
        self.asked.clear();
        self.latest.clear();
        // What had not been promised may be remembered or not; what is volatile is not.
        self.originals
            .retain(|_, original| original.promised && !original.sent.is_empty());
    }
}

/// The place that a message moved aside came from.
fn place_of(original: &str) -> Option<&'static str> {
    match original {
        lane if lane.starts_with("/queue/work") => Some("work"),
        "/queue/other" => Some("other"),
        "/queue/~sub.d.n" => Some("d"),
        _ => None,
    }
}

/// The queue with lanes that fails to a queue of its own, and the one that lets messages jump it.
fn queues(lanes: Lanes) -> [QueueDefinition; 2] {
    let work = QueueAttributes {
        lanes,
        backout_queue: Some("aside".to_owned()),
        ..QueueAttributes::default()
    };
    let out_of_order = OutOfOrder {
        top: true,
        before: true,
    };
    let other = QueueAttributes {
        out_of_order,
        ..QueueAttributes::default()
    };
    [("work", work), ("other", other)].map(|(name, attributes)| QueueDefinition {
        name: name.to_owned(),
        attributes,
        drain: true,
    })
}

/// What is said about the durable subscription: by seed, each way to be full, and a client that stays away for too long.
fn rules(seed: u64) -> Vec<SubscriptionRule> {
    let on_limit = match seed % 6 {
        0 => return Vec::new(),
        1 => Some(OnLimit::DropOldest),
        2 => Some(OnLimit::Cancel),
        3 => Some(OnLimit::RejectPublish),
        _ => Some(OnLimit::Gap),
    };
    let max_offline_ms = (seed % 6 == 5).then_some(Some(40_000));
    vec![SubscriptionRule {
        name: Some("n".to_owned()),
        max_messages: Some(3),
        on_limit,
        max_offline_ms,
        ..SubscriptionRule::default()
    }]
}

/// Opens the space; `lanes`: what the lanes of `work` are to be, if nothing is changed already.
fn open(
    disk: &Disk,
    now: i64,
    lanes: Option<Lanes>,
    rules: &[SubscriptionRule],
) -> (Log<Disk>, Core) {
    let templates = ClientTemplates::none();
    let limits = Limits {
        dedup_ms: WINDOW,
        ..Limits::default()
    };
    let mut core = Core::new(limits, templates);
    let mut log = Log::open(disk.clone(), LOG, &mut |entry| core.replay(entry)).unwrap();
    let work = core.directory.queue("work").map(|id| &core.queues[&id]);
    let lanes = match work {
        Some(queue) if queue.next.is_some() => queue.attributes.lanes,
        Some(queue) => lanes.unwrap_or(queue.attributes.lanes),
        None => Lanes::Key,
    };
    let destinations = [
        Destination::queue("work"),
        Destination::queue("other"),
        Destination::queue("extra"),
        Destination::topic("news"),
    ];
    let durable = [("d".to_owned(), "n".to_owned(), Destination::topic("news"))];
    let wanted = Wanted {
        destinations: &destinations,
        queues: &queues(lanes),
        durable_subscriptions: &durable,
        durable_topics: &[],
        subscription_rules: rules,
    };
    let effects = core.start(now, &wanted).unwrap();
    log.append(&[effects.unit.unwrap()]).unwrap();
    (log, core)
}
