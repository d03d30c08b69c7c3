//! Random operations, a virtual clock, and a disk that loses power, writes short and fails: against a model that
//! knows only what was promised to whom.
//!
//! `PILLARBOX_SEEDS` sets how many seeds are tried; a failing one is printed, and `PILLARBOX_SEED` tries only it.

use std::collections::{BTreeMap, BTreeSet};

use pillarbox_messages::Destination;

use super::{invariants, message};
use crate::{
    BusError, ClientTemplates,
    core::{
        Core, Effects, Input, Limits, Posted,
        message::{MessageId, NewMessage},
        queue::{Queue, QueueKind},
        unit::{QueueId, Unit},
    },
    embedded::connection::{AckMode, Command, ConnectionId, DeliveryId, Event, Token},
    log::{Log, LogOptions, faulty::Disk},
};

const SEEDS: u64 = 300;
const STEPS: u64 = 400;
const LOG: LogOptions = LogOptions {
    segment_bytes: 4096,
    few_segments: 3,
};
/// The places that last: two queues, and the durable subscription of client `d` to the topic.
const PLACES: [&str; 3] = ["work", "other", "d"];

#[test]
fn random_operations_keep_every_promise() {
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

/// A question on its way.
#[derive(Clone, Debug)]
struct Asked {
    sent: Vec<(&'static str, u64)>,
    acked: Vec<(&'static str, u64)>,
}

#[derive(Clone, Debug)]
struct Delivered {
    connection: ConnectionId,
    delivery: DeliveryId,
    marker: u64,
    place: Option<&'static str>,
    staged: bool,
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
    latest: BTreeMap<(&'static str, u8), MessageId>,
    ids: BTreeSet<MessageId>,
    restarts: u64,
}

impl Simulation {
    fn new(seed: u64) -> Self {
        let disk = Disk::new();
        let (log, core) = open(&disk, 0);
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
            ids: BTreeSet::new(),
            restarts: 0,
        }
    }

    fn run(mut self) -> u64 {
        for _ in 0..STEPS {
            self.operation();
            invariants::check(&self.core);
        }
        self.restart(0);
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
        match self.below(100) {
            0..=7 => self.connect(),
            8..=17 => self.subscribe(),
            18..=42 => self.send(),
            43..=58 => self.acknowledge(),
            59..=64 => self.refuse(),
            65..=70 => self.transaction(),
            71..=75 => self.finish_transaction(),
            76..=79 => self.leave(),
            80..=84 => {
                self.now += i64::try_from(self.below(3000)).unwrap();
                self.step(Input::Tick);
            }
            85..=96 => self.write(),
            97 => self.disk.fail_write_after(self.random % 2000),
            98 => self.disk.fail_sync_after(self.random % 3),
            _ => {
                let survivors = self.below(1000);
                self.restart(usize::try_from(survivors).unwrap());
            }
        }
    }

    fn step(&mut self, input: Input) {
        let Effects {
            unit,
            events,
            closed,
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
            self.restart(0);
            return;
        }
        self.written = last;
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
            } => {
                let marker: u64 = String::from_utf8(message.body.to_vec())
                    .unwrap()
                    .parse()
                    .unwrap();
                let place = self.subscriptions.get(&(connection, subscription)).copied();
                let place = place.filter(|_| message.persistent);
                if message.is_expired(self.now) {
                    // It was handed out in time, but its unit took too long.
                    return self.step(Input::Missed {
                        connection,
                        delivery,
                    });
                }
                if let Some(place) = place {
                    let key = (place, message.priority);
                    let latest = self.latest.get(&key).copied();
                    if delivery_count == 1 {
                        assert!(
                            latest.is_none_or(|latest| latest < message.id),
                            "{marker} overtook"
                        );
                        self.latest.insert(key, message.id);
                    }
                }
                let staged = false;
                self.hands.push(Delivered {
                    connection,
                    delivery,
                    marker,
                    place,
                    staged,
                });
                if posted.auto {
                    self.hands.pop();
                    let expected = place.and_then(|place| self.expected.get_mut(&(place, marker)));
                    if let Some(expected) = expected {
                        expected.fate = Fate::Consumed;
                    }
                    let input = Input::Handed {
                        connection,
                        delivery,
                    };
                    self.step(input);
                }
            }
            Event::Done {
                token, message_id, ..
            } => {
                if let Some(id) = message_id {
                    assert!(self.ids.insert(id), "{id} twice");
                }
                if let Some(asked) = self.asked.remove(&token) {
                    self.done(&asked);
                }
            }
            Event::Failed { token, error } => {
                let honest = matches!(
                    error,
                    BusError::StaleAck | BusError::TransactionTimedOut | BusError::NoSpace(_)
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
            }
            Event::Closed { .. } => {}
        }
    }

    fn done(&mut self, asked: &Asked) {
        for key in &asked.sent {
            if let Some(expected) = self.expected.get_mut(key)
                && expected.fate == Fate::Sent
            {
                expected.fate = Fate::Promised;
            }
        }
        for key in &asked.acked {
            self.expected.remove(key);
            let held = held(&self.core, key.0);
            assert!(
                !held.contains(&key.1),
                "{key:?} was acknowledged and is still there"
            );
        }
    }

    fn undone(&mut self, asked: &Asked) {
        for key in &asked.sent {
            self.expected.remove(key);
        }
        for key in &asked.acked {
            // Somebody else may have acknowledged it meanwhile.
            let going = self.asked.values().any(|other| other.acked.contains(key));
            if let Some(expected) = self.expected.get_mut(key).filter(|_| !going)
                && expected.fate == Fate::Going
            {
                expected.fate = Fate::Promised;
            }
        }
    }

    fn connect(&mut self) {
        let free: Vec<&str> = ["a", "b", "d"]
            .into_iter()
            .filter(|name| !self.connections.values().any(|taken| taken == name))
            .collect();
        let Some(name) = self.pick(&free) else { return };
        let connection = ConnectionId(self.fresh());
        self.connections.insert(connection, name.to_owned());
        self.step(Input::Open {
            connection,
            client_id: name.to_owned(),
        });
    }

    fn connection(&mut self) -> Option<ConnectionId> {
        let connections: Vec<_> = self.connections.keys().copied().collect();
        self.pick(&connections)
    }

    fn subscribe(&mut self) {
        let Some(connection) = self.connection() else {
            return;
        };
        let is_d = self.connections[&connection] == "d";
        let durable = is_d && self.below(2) == 0;
        if durable && self.subscriptions.values().any(|place| *place == "d") {
            return;
        }
        let subscription = self.fresh();
        let (place, destination) = match self.below(3) {
            _ if durable => ("d", Destination::topic("news")),
            0 => ("work", Destination::queue("work")),
            1 => ("other", Destination::queue("other")),
            _ => ("plain", Destination::topic("news")),
        };
        if place != "plain" {
            self.subscriptions.insert((connection, subscription), place);
        }
        let ack = if self.below(6) == 0 {
            AckMode::Auto
        } else {
            AckMode::Individual
        };
        let prefetch = u32::try_from(1 + self.below(5)).unwrap();
        let (durable, token) = (durable.then(|| "n".to_owned()), self.fresh());
        let command = Command::Subscribe {
            subscription,
            destination,
            durable,
            ack,
            prefetch,
            token,
        };
        self.command(connection, command);
    }

    /// A new message, and the places that must keep it.
    fn new_message(&mut self, together: u64) -> (NewMessage, Vec<(&'static str, u64)>) {
        let marker = self.fresh();
        let (destination, place) = match self.below(4) {
            0 => (Destination::queue("work"), "work"),
            1 => (Destination::queue("other"), "other"),
            2 => (Destination::topic("news"), "d"),
            _ => (Destination::topic("nowhere"), ""),
        };
        let persistent = self.below(4) > 0;
        let expires = self.below(4) == 0;
        let lifetime = 1 + i64::try_from(self.below(4000)).unwrap();
        let expires_at = expires.then_some(self.now + lifetime);
        let priority = if self.below(3) == 0 { 9 } else { 4 };
        let mut keys = Vec::new();
        if persistent && !place.is_empty() {
            let expected = Expected {
                fate: Fate::Sent,
                expires_at,
                together,
            };
            self.expected.insert((place, marker), expected);
            keys.push((place, marker));
        } else {
            self.volatile.insert(marker);
        }
        let message = message(destination, &marker.to_string());
        let persistent = Some(persistent);
        (
            NewMessage {
                persistent,
                priority,
                expires_at,
                ..message
            },
            keys,
        )
    }

    fn send(&mut self) {
        let Some(connection) = self.connection() else {
            return;
        };
        let together = self.fresh();
        let (message, sent) = self.new_message(together);
        let token = self.fresh();
        self.asked.insert(
            token,
            Asked {
                sent,
                acked: Vec::new(),
            },
        );
        self.command(
            connection,
            Command::Send {
                message,
                transaction: None,
                token,
            },
        );
    }

    /// Takes something out of somebody's hands.
    fn hand(&mut self) -> Option<Delivered> {
        let free: Vec<_> = (0..self.hands.len())
            .filter(|at| !self.hands[*at].staged)
            .collect();
        let at = self.pick(&free)?;
        Some(self.hands.swap_remove(at))
    }

    fn going(&mut self, delivered: &Delivered) -> Vec<(&'static str, u64)> {
        let Some(place) = delivered.place else {
            return Vec::new();
        };
        let key = (place, delivered.marker);
        if let Some(expected) = self.expected.get_mut(&key)
            && expected.fate != Fate::Consumed
        {
            expected.fate = Fate::Going;
        }
        vec![key]
    }

    fn acknowledge(&mut self) {
        let Some(delivered) = self.hand() else { return };
        let acked = self.going(&delivered);
        let token = self.fresh();
        self.asked.insert(
            token,
            Asked {
                sent: Vec::new(),
                acked,
            },
        );
        let Delivered {
            connection,
            delivery,
            ..
        } = delivered;
        self.command(
            connection,
            Command::Ack {
                delivery,
                transaction: None,
                token,
            },
        );
    }

    fn refuse(&mut self) {
        let Some(Delivered {
            connection,
            delivery,
            ..
        }) = self.hand()
        else {
            return;
        };
        let token = self.fresh();
        let command = Command::Nack {
            delivery,
            reject: false,
            transaction: None,
            token,
        };
        self.command(connection, command);
    }

    /// Opens a transaction with an acknowledgement and a send or two.
    fn transaction(&mut self) {
        let Some(connection) = self.connection() else {
            return;
        };
        let number = self.fresh();
        self.command(
            connection,
            Command::Begin {
                transaction: number,
                token: 0,
            },
        );
        let transaction = Some(number);
        let mut asked = Asked {
            sent: Vec::new(),
            acked: Vec::new(),
        };
        for _ in 0..=self.below(2) {
            let (message, sent) = self.new_message(number);
            asked.sent.extend(sent);
            self.command(
                connection,
                Command::Send {
                    message,
                    transaction,
                    token: 0,
                },
            );
        }
        let own = self
            .hands
            .iter()
            .position(|d| d.connection == connection && !d.staged);
        if let Some(position) = own {
            self.hands[position].staged = true;
            let delivered = self.hands[position].clone();
            if let Some(place) = delivered.place {
                asked.acked.push((place, delivered.marker));
            }
            let delivery = delivered.delivery;
            self.command(
                connection,
                Command::Ack {
                    delivery,
                    transaction,
                    token: 0,
                },
            );
        }
        self.transactions.insert((connection, number), asked);
    }

    fn finish_transaction(&mut self) {
        let open: Vec<_> = self.transactions.keys().copied().collect();
        let Some((connection, number)) = self.pick(&open) else {
            return;
        };
        let Some(mut asked) = self.transactions.remove(&(connection, number)) else {
            return;
        };
        self.hands
            .retain(|d| d.connection != connection || !d.staged);
        let token = self.fresh();
        let others = self.transactions.keys().any(|(of, _)| *of == connection);
        if others || self.below(4) == 0 {
            // With several open the model would lose track of whose the staged ones are.
            asked.acked.clear();
            self.undone(&asked);
            self.command(
                connection,
                Command::Abort {
                    transaction: number,
                    token,
                },
            );
            return;
        }
        for key in &asked.acked {
            if let Some(expected) = self.expected.get_mut(key)
                && expected.fate != Fate::Consumed
            {
                expected.fate = Fate::Going;
            }
        }
        self.asked.insert(token, asked);
        self.command(
            connection,
            Command::Commit {
                transaction: number,
                token,
            },
        );
    }

    fn leave(&mut self) {
        let Some(connection) = self.connection() else {
            return;
        };
        let subscriptions: Vec<_> = self
            .subscriptions
            .keys()
            .filter(|(of, _)| *of == connection)
            .copied()
            .collect();
        match (self.below(3), self.pick(&subscriptions)) {
            (0, Some((_, subscription))) => {
                self.command(
                    connection,
                    Command::Unsubscribe {
                        subscription,
                        token: 0,
                    },
                );
                self.subscriptions.remove(&(connection, subscription));
            }
            (1, _) => self.command(connection, Command::Disconnect { token: 0 }),
            _ => self.step(Input::Lost {
                connection,
                reason: BusError::Closed,
            }),
        }
    }

    /// Nothing more is told to a connection that has gone, so its questions stay open.
    fn forget(&mut self, connection: ConnectionId) {
        self.connections.remove(&connection);
        self.unreleased
            .retain(|posted| posted.connection != connection);
        self.hands
            .retain(|delivered| delivered.connection != connection);
        self.subscriptions.retain(|(of, _), _| *of != connection);
        let transactions = std::mem::take(&mut self.transactions);
        for ((of, number), asked) in transactions {
            if of == connection {
                // Never committed, so none of it may ever be seen.
                asked
                    .sent
                    .iter()
                    .for_each(|key| drop(self.expected.remove(key)));
            } else {
                self.transactions.insert((of, number), asked);
            }
        }
    }

    /// A new process finds what the disk kept, and no promise broken.
    fn restart(&mut self, survivors: usize) {
        self.restarts += 1;
        for (connection, _) in std::mem::take(&mut self.connections) {
            self.forget(connection);
        }
        self.disk = match self.below(2) {
            0 => self.disk.after_crash(),
            _ => self.disk.after_power_loss(survivors),
        };
        let (log, core) = open(&self.disk, self.now);
        (self.log, self.core) = (log, core);
        (self.pending, self.unreleased, self.written) = (Vec::new(), Vec::new(), 1);
        self.asked.clear();
        self.latest.clear();
        self.compare();
    }

    fn compare(&mut self) {
        let mut found = BTreeSet::new();
        for place in PLACES {
            for marker in held(&self.core, place) {
                assert!(
                    found.insert((place, marker)),
                    "{marker} is twice in {place}"
                );
                assert!(
                    !self.volatile.contains(&marker),
                    "volatile {marker} survived"
                );
                assert!(
                    self.expected.contains_key(&(place, marker)),
                    "{marker} came back"
                );
            }
        }
        let mut together: BTreeMap<u64, BTreeSet<bool>> = BTreeMap::new();
        let now = self.now;
        for (key, expected) in &self.expected {
            let alive = expected.expires_at.is_none_or(|at| at > now);
            match expected.fate {
                Fate::Promised => assert!(!alive || found.contains(key), "{key:?} is lost"),
                Fate::Sent if alive => {
                    together
                        .entry(expected.together)
                        .or_default()
                        .insert(found.contains(key));
                }
                Fate::Sent | Fate::Going | Fate::Consumed => {}
            }
        }
        assert!(
            together.values().all(|fates| fates.len() == 1),
            "half a unit: {together:?}"
        );
        self.expected.retain(|key, expected| {
            // The first unit of the new life has made certain what there is.
            expected.fate = Fate::Promised;
            found.contains(key)
        });
        invariants::check(&self.core);
    }

    /// In the end everything promised comes out, once.
    fn drain(&mut self) {
        self.now += 60_000;
        self.step(Input::Tick);
        let connection = ConnectionId(self.fresh());
        self.step(Input::Open {
            connection,
            client_id: "d".to_owned(),
        });
        for place in PLACES {
            let subscription = self.fresh();
            let (destination, durable) = match place {
                "d" => (Destination::topic("news"), Some("n".to_owned())),
                name => (Destination::queue(name), None),
            };
            self.subscriptions.insert((connection, subscription), place);
            let (ack, prefetch, token) = (AckMode::Individual, 1000, self.fresh());
            let command = Command::Subscribe {
                subscription,
                destination,
                durable,
                ack,
                prefetch,
                token,
            };
            self.command(connection, command);
        }
        self.write();
        let came: BTreeSet<_> = self
            .hands
            .iter()
            .filter_map(|d| Some((d.place?, d.marker)))
            .collect();
        let expected: BTreeSet<_> = self.expected.keys().copied().collect();
        assert_eq!(came, expected);
        self.hands.clear();
    }
}

fn open(disk: &Disk, now: i64) -> (Log<Disk>, Core) {
    let templates = ClientTemplates::none();
    let mut core = Core::new(Limits::default(), templates);
    let mut log = Log::open(disk.clone(), LOG, &mut |entry| core.replay(entry)).unwrap();
    let destinations = [
        Destination::queue("work"),
        Destination::queue("other"),
        Destination::topic("news"),
    ];
    let durable = [("d".to_owned(), "n".to_owned(), Destination::topic("news"))];
    let effects = core.start(now, &destinations, &durable).unwrap();
    log.append(&[effects.unit.unwrap()]).unwrap();
    (log, core)
}

/// The markers in a place.
fn held(core: &Core, place: &str) -> Vec<u64> {
    let is_place = |(_, queue): &(&QueueId, &Queue)| match &queue.kind {
        QueueKind::Named { name, .. } => name == place,
        QueueKind::Durable { client_id, .. } => client_id == place,
        _ => false,
    };
    let (_, queue) = core.queues.iter().find(is_place).unwrap();
    let bodies = queue
        .messages
        .values()
        .map(|held| held.message.body.to_vec());
    bodies
        .map(|body| String::from_utf8(body).unwrap().parse().unwrap())
        .collect()
}
