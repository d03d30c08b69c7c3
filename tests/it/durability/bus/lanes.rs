//! kill -9 of a bus while the number of a queue's lanes changes, under load: each key keeps its order, and nothing of it
//! is in two hands.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use super::{Shared, header, ledger::Ledger};
use crate::support::{
    PATIENCE, Random, number_from_environment, pause,
    process::Running,
    site::Site,
    stomp::{Frame, Next, Stomp},
    until,
};

const QUEUE: &str = "/queue/keyed";
/// One consumer wants this lane only, which there always is.
const LANE: &str = "/queue/keyed.1";
const PRODUCERS: u64 = 3;
const CONSUMERS: u64 = 3;
/// So many keys has each producer.
const KEYS: u64 = 12;
/// The numbers of lanes, one after the other.
const LANES: [u32; 5] = [4, 7, 2, 5, 3];
/// No more than this waits to be consumed: several kills come before it is gone.
const MOST_WAITING: usize = 600;
/// So many sends of a producer are not confirmed yet.
const WINDOW: usize = 8;
const WORK: Duration = Duration::from_millis(1);

struct Load {
    shared: Shared,
    /// Nothing more is sent.
    quiet: AtomicBool,
    keys: Mutex<Keys>,
}

/// What is known of the messages, each of which is a key and a number that grows.
#[derive(Default)]
struct Keys {
    /// What the bus has confirmed.
    confirmed: BTreeSet<(u64, u64)>,
    sent: usize,
    processed: BTreeSet<(u64, u64)>,
    /// The latest number dealt with, and the life of the bus.
    latest: BTreeMap<u64, (u64, u64)>,
    /// Keys that somebody is at, and in which life of the bus he got the message.
    hands: BTreeMap<u64, u64>,
}

impl Load {
    fn keys(&self) -> MutexGuard<'_, Keys> {
        // Whoever found something wrong says so; the others need not.
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_quiet(&self) -> bool {
        self.quiet.load(Ordering::SeqCst)
    }

    /// A connection, and the life of the bus that it belongs to; none when all is over.
    fn connect(&self) -> Option<(Stomp, u64)> {
        loop {
            let (stomp, life) = self.shared.connect()?;
            if life == self.shared.life() {
                return Some((stomp, life));
            }
        }
    }

    /// Somebody takes a message. What he had from an earlier life of the bus is nobody's any more.
    fn begin(&self, (key, number): (u64, u64), life: u64) {
        let mut keys = self.keys();
        let other = keys.hands.insert(key, life);
        assert!(other.is_none_or(|other| other < life), "two are at {key}");
        let in_turn = keys
            .latest
            .get(&key)
            .is_none_or(|(latest, at)| number > *latest || (number == *latest && life > *at));
        let latest = keys.latest.get(&key);
        assert!(in_turn, "{key}: {number} in life {life} after {latest:?}");
    }

    /// He has dealt with it, if the bus has not been killed meanwhile: then the message may come again.
    fn end(&self, (key, number): (u64, u64), life: u64) {
        let mut keys = self.keys();
        if keys.hands.get(&key) == Some(&life) {
            keys.hands.remove(&key);
            keys.latest.insert(key, (number, life));
            keys.processed.insert((key, number));
        }
    }

    fn produce(&self, producer: u64, mut random: Random) {
        let mut numbers: BTreeMap<u64, u64> = BTreeMap::new();
        while !self.is_quiet()
            && let Some((mut stomp, _)) = self.connect()
        {
            let mut open = VecDeque::new();
            while !self.is_quiet() {
                let key = random.below(KEYS);
                let number = numbers.entry(key).or_default();
                *number += 1;
                let message = (producer * KEYS + key, *number);
                if self.send(&mut stomp, message, &mut open).is_none() {
                    break;
                }
            }
            while !open.is_empty() && self.confirm(&mut stomp, &mut open).is_some() {}
        }
    }

    /// Sends one more; none if the bus has gone.
    fn send(
        &self,
        stomp: &mut Stomp,
        message: (u64, u64),
        open: &mut VecDeque<(u64, u64)>,
    ) -> Option<()> {
        while self.keys().is_ahead() && !self.is_quiet() {
            pause(Duration::from_millis(1));
        }
        self.keys().sent += 1;
        open.push_back(message);
        let group = format!("key-{}", message.0);
        let headers = [
            ("destination", QUEUE),
            ("persistent", "true"),
            ("JMSXGroupID", &group),
            ("receipt", "sent"),
        ];
        let body = format!("{} {}", message.0, message.1);
        stomp.frame("SEND", &headers, body.as_bytes()).ok()?;
        if open.len() >= WINDOW {
            self.confirm(stomp, open)?;
        }
        Some(())
    }

    fn confirm(&self, stomp: &mut Stomp, open: &mut VecDeque<(u64, u64)>) -> Option<()> {
        match stomp.next(PATIENCE) {
            Next::Frame(frame) if frame.command == "RECEIPT" => {
                let message = open.pop_front();
                let message = message.unwrap_or_else(|| panic!("no receipt is waited for"));
                self.keys().confirmed.insert(message);
                Some(())
            }
            Next::Closed => None,
            other => panic!("instead of a receipt: {other:?}"),
        }
    }

    fn consume(&self, from: &str) {
        while let Some((mut stomp, life)) = self.connect() {
            let _gone = self.serve(&mut stomp, from, life);
        }
    }

    /// Consumes until all is over; none if the bus has gone.
    fn serve(&self, stomp: &mut Stomp, from: &str, life: u64) -> Option<()> {
        let headers = [
            ("id", "1"),
            ("destination", from),
            ("ack", "client-individual"),
            ("activemq.prefetchSize", "4"),
        ];
        stomp.frame("SUBSCRIBE", &headers, b"").ok()?;
        while !self.shared.is_over() {
            let message = match stomp.next(Duration::from_millis(100)) {
                Next::Frame(frame) if frame.command == "MESSAGE" => frame,
                Next::Nothing => continue,
                Next::Closed => return None,
                other @ Next::Frame(_) => panic!("instead of a message: {other:?}"),
            };
            let name = read(&message);
            self.begin(name, life);
            pause(WORK);
            self.end(name, life);
            let ack = [("id", header(&message, "ack"))];
            stomp.frame("ACK", &ack, b"").ok()?;
        }
        stomp.frame("DISCONNECT", &[], b"").ok()
    }
}

impl Keys {
    /// Whether enough waits to be consumed.
    fn is_ahead(&self) -> bool {
        self.sent > self.processed.len() + MOST_WAITING
    }
}

/// The key of a message, and its number.
fn read(message: &Frame) -> (u64, u64) {
    let text = message.text();
    let (key, number) = text.split_once(' ').expect("two numbers");
    let parse = |text: &str| text.parse().expect("a number");
    (parse(key), parse(number))
}

/// A bus in a process of its own, with its queue of so many lanes.
struct Hub {
    site: Site,
    bus: Running,
    lanes: usize,
    /// How often the lanes were changed, and how often that was refused because an earlier change was under way.
    changes: usize,
    refused: usize,
}

impl Hub {
    fn settings(site: &Site, lanes: usize) {
        let (port, count) = (site.bus_port, LANES[lanes % LANES.len()]);
        let text = format!(
            r#"data = "var"
[bus_server]
listen = ["127.0.0.1:{port}"]
[[bus_server.queues]]
name = "keyed"
lanes = "hashed({count})"
drain = true
"#
        );
        site.settings("bus", &text);
    }

    fn start() -> Self {
        let site = Site::new(&["north"]);
        Self::settings(&site, 0);
        let bus = site.start("bus");
        Self {
            site,
            bus,
            lanes: 0,
            changes: 0,
            refused: 0,
        }
    }

    /// Starts it again, with other lanes if an earlier change is done.
    fn start_again(&mut self) {
        Self::settings(&self.site, self.lanes + 1);
        let mut bus = Running::starting_node(&self.site.part("bus"));
        if bus.gets_ready() {
            self.lanes += 1;
            self.changes += 1;
        } else {
            bus.wait();
            let told = bus.errors().join("\n");
            assert!(
                told.contains("is being drained for its new lanes"),
                "{told}"
            );
            self.refused += 1;
            Self::settings(&self.site, self.lanes);
            bus = self.site.start("bus");
        }
        self.bus = bus;
    }
}

#[test]
fn a_change_of_lanes_under_load_keeps_each_keys_order_however_often_the_bus_is_killed() {
    let seed = u64::try_from(number_from_environment("PILLARBOX_TEST_SEED", 1)).unwrap();
    let kills = number_from_environment("PILLARBOX_TEST_KILLS", 10);
    let mut random = Random::new(seed);
    let mut hub = Hub::start();
    let load = Arc::new(Load {
        shared: Shared {
            port: hub.site.bus_port,
            ledger: Ledger::default(),
            life: AtomicU64::new(0),
            over: AtomicBool::new(false),
        },
        quiet: AtomicBool::new(false),
        keys: Mutex::default(),
    });
    let start = |work: Box<dyn FnOnce(&Load) + Send>| {
        let load = Arc::clone(&load);
        thread::spawn(move || work(&load))
    };
    let mut threads = Vec::new();
    for producer in 0..PRODUCERS {
        let random = Random::new(random.next());
        threads.push(start(Box::new(move |load| load.produce(producer, random))));
    }
    for consumer in 0..CONSUMERS {
        let from = if consumer == 0 { LANE } else { QUEUE };
        threads.push(start(Box::new(move |load| load.consume(from))));
    }
    let processed = || load.keys().processed.len();
    for kill in 1..=kills {
        let goal = processed() + 30 + usize::try_from(random.below(500)).unwrap();
        until("messages are dealt with", || processed() >= goal);
        hub.bus.kill();
        load.shared.life.fetch_add(1, Ordering::SeqCst);
        hub.start_again();
        let (changes, refused) = (hub.changes, hub.refused);
        println!(
            "seed {seed}, kill {kill}: {} dealt with, {changes} changes, {refused} under way",
            processed()
        );
    }
    load.quiet.store(true, Ordering::SeqCst);
    until("everything confirmed is dealt with", || {
        let keys = load.keys();
        keys.confirmed.is_subset(&keys.processed)
    });
    load.shared.over.store(true, Ordering::SeqCst);
    for thread in threads {
        thread.join().expect("saw nothing wrong");
    }
    let between = hub.changes > 1 && hub.refused > 0;
    assert!(between || kills < 10, "no kill came in between");
}
