//! The bus: over STOMP against ActiveMQ at the same work and durability (each receipt comes after its message is
//! synced), in this process against bare probes of the disk, and one of a million messages against a bare map.

mod load;
pub(crate) mod million;
mod named;
mod probes;

use std::time::Duration;

use pillarbox_bus::{Broker, BrokerOptions, Bus, ConnectOptions, Outgoing};
use pillarbox_messages::{Destination, clock::SystemClock};

use self::{
    load::{Client, FanOut, Producers},
    probes::{GroupLog, SyncProbe},
};
use crate::{
    rounds::{ROUNDS, compare_in_slices, duration, median, speed, timed},
    site::{Outside, Site, processor_time},
    support::brokers::ActiveMq,
};

const QUEUE: &str = "/queue/books.north";
const TOPIC: &str = "/topic/books";
/// The length of a body, in bytes.
const BODY: usize = 1024;

/// Slices of each round.
const SLICES: usize = 8;

/// The same work at both brokers.
struct Sides {
    peer: u16,
    ours: u16,
    /// Our process.
    node: u32,
}

pub(crate) fn run() {
    over_stomp();
    one_in_flight();
    many_in_flight();
    named::run();
}

fn over_stomp() {
    let activemq = ActiveMq::start();
    let site = Site::new(&["north"], false);
    let node = Outside::node(&site.settings("bus", &site.bus_role()));
    let sides = Sides {
        peer: activemq.port(),
        ours: site.bus_port(),
        node: node.id(),
    };
    for (producers, each, wanted) in [(1, 50, "2"), (8, 15, "8"), (64, 6, "15")] {
        let what = format!("durable queue, receipts, {producers} producers");
        sides.confirmed(&what, QUEUE, producers, each, wanted);
    }
    for port in [sides.peer, sides.ours] {
        load::make_durable_subscription(port, TOPIC);
    }
    for (producers, each, wanted) in [(1, 50, "3"), (8, 15, "8")] {
        let what = format!("durable topic, receipts, {producers} producers");
        sides.confirmed(&what, TOPIC, producers, each, wanted);
    }
    for port in [sides.peer, sides.ours] {
        load::end_durable_subscription(port, TOPIC);
    }
    sides.fan_out("non-persistent topic, 1 to 1", 1, 5_000, "4");
    sides.fan_out("non-persistent topic, 1 to 50", 50, 250, "3");
}

impl Sides {
    /// Persistent messages, each of which is confirmed before its producer sends the next.
    fn confirmed(&self, what: &str, to: &str, producers: usize, each: usize, wanted: &str) {
        let peer = Producers::connect(self.peer, to, producers);
        let ours = Producers::connect(self.ours, to, producers);
        let work = |side: &mut Producers| side.send(each);
        self.compare(what, [peer, ours], work, producers * each, wanted);
    }

    /// Messages from one sender to plain subscribers, until all have them.
    fn fan_out(&self, what: &str, subscribers: usize, messages: usize, wanted: &str) {
        let peer = FanOut::connect(self.peer, TOPIC, subscribers);
        let ours = FanOut::connect(self.ours, TOPIC, subscribers);
        let work = |side: &mut FanOut| side.send(messages);
        self.compare(what, [peer, ours], work, messages, wanted);
    }

    /// `work` sends so many messages.
    fn compare<S>(
        &self,
        what: &str,
        [mut peer, mut ours]: [S; 2],
        work: impl Fn(&mut S),
        messages: usize,
        wanted: &str,
    ) {
        // The Java machine compiles what it has seen often.
        for _ in 0..SLICES * 2 {
            work(&mut peer);
            work(&mut ours);
        }
        let before = processor_time(self.node);
        let (peer, ours) = compare_in_slices(
            SLICES,
            || timed(|| work(&mut peer)),
            || timed(|| work(&mut ours)),
        );
        let spent = processor_time(self.node) - before;
        row(what, peer, ours, messages, wanted);
        let all = u32::try_from(ROUNDS * SLICES * messages).unwrap();
        println!(
            "  processor time of our node: {:.1} microseconds for each message",
            spent.as_secs_f64() * 1e6 / f64::from(all)
        );
    }
}

fn row(what: &str, peer: Duration, ours: Duration, messages: usize, wanted: &str) {
    let count = u32::try_from(messages).unwrap();
    speed(
        what,
        peer / count,
        ours / count,
        &format!("at least {wanted}"),
    );
    println!(
        "  messages/s: peer {:.0}, ours {:.0}",
        f64::from(count) / peer.as_secs_f64(),
        f64::from(count) / ours.as_secs_f64()
    );
}

/// The median time of one confirmed message after the other, against that of a write with a sync.
fn one_in_flight() {
    const MESSAGES: usize = 40;
    let directory = tempfile::tempdir().unwrap();
    let mut probe = SyncProbe::new(directory.path(), BODY);
    let mut probed = || median(&mut probe.several(MESSAGES));
    let site = Site::new(&["north"], false);
    let node = Outside::node(&site.settings("bus", &site.bus_role()));
    let mut client = Client::connect(site.bus_port(), None);
    let frame = load::send_frame(QUEUE, true, true);
    let mut over_stomp = || {
        let mut times: Vec<Duration> = (0..MESSAGES)
            .map(|_| timed(|| client.ask(&frame)))
            .collect();
        median(&mut times)
    };
    let (peer, ours) = compare_in_slices(SLICES, &mut probed, &mut over_stomp);
    let what = "one in flight, STOMP (peer: fdatasync)";
    duration(what, peer, ours, "at most 2");
    drop(node);

    let runtime = runtime();
    let space = tempfile::tempdir().unwrap();
    let (_broker, bus) = runtime.block_on(open(space.path()));
    let mut inside = || {
        let publish = || timed(|| runtime.block_on(bus.publish(message())).unwrap());
        let mut times: Vec<Duration> = (0..MESSAGES).map(|_| publish()).collect();
        median(&mut times)
    };
    let (peer, ours) = compare_in_slices(SLICES, &mut probed, &mut inside);
    let what = "one in flight, in process (peer: fdatasync)";
    duration(what, peer, ours, "at most 2");
}

/// Many at once in this process, against a log that does nothing but write groups and sync them.
fn many_in_flight() {
    const TASKS: usize = 256;
    const EACH: usize = 10;
    let runtime = runtime();
    let (space, directory) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (broker, bus) = runtime.block_on(open(space.path()));
    let log = GroupLog::start(directory.path());
    let before = broker.stats().syncs;
    let (peer, ours) = compare_in_slices(
        SLICES,
        || {
            let log = log.handle();
            let one = move || {
                let log = log.clone();
                async move {
                    for _ in 0..EACH {
                        log.append(vec![b'x'; BODY]).await;
                    }
                }
            };
            timed(|| runtime.block_on(at_once(TASKS, one)))
        },
        || {
            let bus = bus.clone();
            let one = move || {
                let bus = bus.clone();
                async move {
                    for _ in 0..EACH {
                        bus.publish(message()).await.unwrap();
                    }
                }
            };
            timed(|| runtime.block_on(at_once(TASKS, one)))
        },
    );
    let messages = TASKS * EACH;
    row(
        "256 in flight, in process (peer: bare log)",
        peer,
        ours,
        messages,
        "0.6",
    );
    let syncs = usize::try_from(broker.stats().syncs - before).unwrap();
    println!(
        "  messages per sync: bare log {}, ours {}",
        messages * SLICES * ROUNDS / log.syncs(),
        messages * SLICES * ROUNDS / syncs
    );
}

async fn at_once<F: Future<Output = ()> + Send + 'static>(tasks: usize, one: impl Fn() -> F) {
    let tasks: Vec<_> = (0..tasks).map(|_| tokio::spawn(one())).collect();
    for task in tasks {
        task.await.unwrap();
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap()
}

async fn open(space: &std::path::Path) -> (Broker, Bus) {
    let options = BrokerOptions {
        destinations: vec![Destination::queue("work")],
        ..BrokerOptions::new(space, SystemClock::shared())
    };
    let broker = Broker::open(options).await.unwrap();
    let client = ConnectOptions {
        client_id: "bench".to_owned(),
    };
    let bus = Bus::embedded(&broker, client).unwrap();
    (broker, bus)
}

fn message() -> Outgoing {
    static BYTES: [u8; BODY] = [b'x'; BODY];
    Outgoing {
        persistent: true,
        ..Outgoing::new(Destination::queue("work"), BYTES.as_slice())
    }
}
