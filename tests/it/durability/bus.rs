//! kill -9 of a bus that producers and consumers use: what it has confirmed is so, and nothing is half done.

mod consumer;
mod lanes;
mod ledger;
mod log_end;
mod producer;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use self::{
    ledger::{Ledger, content},
    producer::Producer,
};
use crate::support::{
    PATIENCE, Random, number_from_environment, pause,
    process::Running,
    site::Site,
    stomp::{Frame, Next, Stomp},
    until,
};

/// Where the work waits, and where it goes when it is done.
const WORK: &str = "/queue/books.in";
const DONE: &str = "/queue/books.out";

const PRODUCERS: u64 = 8;
const CONSUMERS: u64 = 4;
/// The bus is killed this much later than its latest confirmation, at most.
const LATEST_MICROSECONDS: u64 = 15_000;
/// A message that came back once is held back for less than this.
const LONGEST_PAUSE: Duration = Duration::from_secs(3);

/// A bus in a process of its own, which is killed over and over, and what all who use it share.
struct Stage {
    site: Site,
    bus: Running,
    shared: Arc<Shared>,
}

struct Shared {
    port: u16,
    ledger: Ledger,
    /// How often the bus has been killed.
    life: AtomicU64,
    over: AtomicBool,
}

impl Shared {
    fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }

    fn life(&self) -> u64 {
        self.life.load(Ordering::SeqCst)
    }

    /// A connection, and the life of the bus in which it was asked for; none when all is over.
    fn connect(&self) -> Option<(Stomp, u64)> {
        while !self.is_over() {
            let life = self.life();
            if let Some(stomp) = connect(self.port) {
                return Some((stomp, life));
            }
            pause(Duration::from_millis(2));
        }
        None
    }
}

/// A connection, if the bus is there and stays.
fn connect(port: u16) -> Option<Stomp> {
    let mut stomp = Stomp::try_open(port).ok()?;
    let headers = [("accept-version", "1.2"), ("host", "/")];
    stomp.frame("CONNECT", &headers, b"").ok()?;
    match stomp.next(PATIENCE) {
        Next::Frame(frame) if frame.command == "CONNECTED" => Some(stomp),
        Next::Closed => None,
        other => panic!("not connected: {other:?}"),
    }
}

/// A header that must be there.
fn header<'a>(frame: &'a Frame, name: &str) -> &'a str {
    frame.header(name).expect(name)
}

impl Stage {
    fn set() -> Self {
        let site = Site::new(&["in", "out"]);
        let bus = site.start("bus");
        let shared = Shared {
            port: site.bus_port,
            ledger: Ledger::default(),
            life: AtomicU64::new(0),
            over: AtomicBool::new(false),
        };
        Self {
            site,
            bus,
            shared: Arc::new(shared),
        }
    }

    fn kill(&mut self) {
        self.bus.kill();
        self.shared.life.fetch_add(1, Ordering::SeqCst);
        self.bus = self.site.start("bus");
    }

    fn start(&self, work: impl FnOnce(&Shared) + Send + 'static) -> JoinHandle<()> {
        let shared = Arc::clone(&self.shared);
        thread::spawn(move || work(&shared))
    }

    /// Waits until so much more has been confirmed.
    fn progress(&self, more: usize) {
        let goal = self.shared.ledger.confirmed() + more;
        until("the bus confirms", || {
            self.shared.ledger.confirmed() >= goal
        });
    }

    /// How many of one producer's messages wait, which must be the first ones, in order; the queue then is empty.
    fn count(&self, producer: u64) -> u64 {
        let mut stomp = Stomp::connect(self.site.bus_port, None);
        stomp.send(WORK, &[], b"end");
        stomp.subscribe(WORK);
        let mut there = 0;
        loop {
            let message = stomp.message(PATIENCE).expect("the end comes");
            if message.body == b"end" {
                return there;
            }
            assert!(
                message.body == content(producer, there),
                "{producer}: {there}"
            );
            there += 1;
        }
    }

    /// Everything in both queues, which then are empty.
    fn drain(&self) -> Vec<Found> {
        let mut stomp = Stomp::connect(self.site.bus_port, None);
        stomp.subscribe(WORK);
        stomp.subscribe(DONE);
        let mut found = Vec::new();
        while let Some(message) = stomp.message(LONGEST_PAUSE) {
            let unit = message.header("unit");
            found.push(Found {
                done: header(&message, "destination") == DONE,
                id: header(&message, "message-id").to_owned(),
                of: message.header("of").map(str::to_owned),
                unit: unit.map(|unit| unit.parse().expect("a number")),
                body: message.body,
            });
        }
        found
    }
}

/// A message that was in a queue at the end.
#[derive(Debug)]
struct Found {
    /// Which queue it was in.
    done: bool,
    id: String,
    /// The id of the message that it is the answer to.
    of: Option<String>,
    /// The transaction that sent it.
    unit: Option<u64>,
    body: Vec<u8>,
}

/// Sends so many numbered messages, with receipts that nobody waits for.
fn send(stomp: &mut Stomp, producer: u64, messages: u64) {
    for number in 0..messages {
        let receipt = number.to_string();
        let headers = [("destination", WORK), ("receipt", &receipt)];
        let sent = stomp.frame("SEND", &headers, &content(producer, number));
        sent.expect("the bus reads");
    }
}

#[test]
fn confirmed_work_is_done_once_however_often_the_bus_is_killed() {
    let seed = number_from_environment("PILLARBOX_TEST_SEED", 1);
    let kills = number_from_environment("PILLARBOX_TEST_KILLS", 10);
    let mut random = Random::new(u64::try_from(seed).unwrap());
    let mut stage = Stage::set();
    let producers = (0..PRODUCERS).map(|number| {
        let mut producer = Producer::new(number, random.next());
        stage.start(move |shared| producer.run(shared))
    });
    let mut threads: Vec<_> = producers.collect();
    threads.extend((0..CONSUMERS).map(|number| {
        let random = Random::new(u64::try_from(seed).unwrap() << 32 | number);
        stage.start(move |shared| consumer::run(shared, random))
    }));
    for kill in 1..=kills {
        stage.progress(20 + usize::try_from(random.below(400)).unwrap());
        pause(Duration::from_micros(random.below(LATEST_MICROSECONDS)));
        stage.kill();
        println!(
            "seed {seed}, kill {kill}: {}",
            stage.shared.ledger.summary()
        );
    }
    stage.progress(100);
    stage.shared.over.store(true, Ordering::SeqCst);
    for thread in threads {
        thread.join().expect("saw nothing wrong");
    }
    stage.kill();
    let found = stage.drain();
    stage.shared.ledger.audit(&found);
}

/// All on one connection, in one order: so what is there after a kill is everything up to some message.
#[test]
fn b19_what_was_confirmed_right_before_a_kill_is_there_and_nothing_is_half_there() {
    const MESSAGES: u64 = 100;
    let kills = u64::try_from(number_from_environment("PILLARBOX_TEST_KILLS", 10)).unwrap();
    let mut random = Random::new(1);
    let mut stage = Stage::set();
    for kill in 0..kills {
        let mut stomp = Stomp::connect(stage.site.bus_port, None);
        let last = random.below(MESSAGES / 2);
        send(&mut stomp, kill, MESSAGES);
        let mut confirmed = 0;
        while confirmed <= last {
            match stomp.next(PATIENCE) {
                Next::Frame(frame) => {
                    assert_eq!(frame.header("receipt-id"), Some(&*confirmed.to_string()));
                    confirmed += 1;
                }
                other => panic!("instead of a receipt: {other:?}"),
            }
        }
        stage.kill();
        // What it had confirmed by then, read or not.
        while let Next::Frame(_) = stomp.next(PATIENCE) {
            confirmed += 1;
        }
        let there = stage.count(kill);
        println!("kill {kill}: {confirmed} of {MESSAGES} confirmed, {there} there");
        assert!(there >= confirmed);
    }
}

#[test]
fn b65_a_bus_that_stands_still_in_the_middle_of_a_group_loses_nothing() {
    const MESSAGES: u64 = 100;
    let mut stage = Stage::set();
    let mut stomp = Stomp::connect(stage.site.bus_port, None);
    send(&mut stomp, 1, MESSAGES);
    let mut confirmed = 0;
    while confirmed < MESSAGES {
        match stomp.next(PATIENCE) {
            Next::Frame(frame) => assert_eq!(frame.command, "RECEIPT"),
            other => panic!("instead of a receipt: {other:?}"),
        }
        confirmed += 1;
        if confirmed == 1 {
            stage.bus.halt();
            pause(Duration::from_secs(10));
            stage.bus.go_on();
        }
    }
    stage.kill();
    assert_eq!(stage.count(1), MESSAGES);
}
