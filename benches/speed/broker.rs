//! Over a broker that was not written here, against the embedded bus: puts, what they cost this program, which frames
//! one put is on the wire, how often it waits for the broker, and what a node does that has nothing to do.

use std::{
    fs,
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use futures_util::future::join_all;

use crate::{
    delay::{DelayedBroker, Seen},
    rounds::{compare, median, speed, timed},
    site::{Inside, Outside, Site, processor_time},
    support::{
        brokers::{ActiveMq, Broker},
        pause,
    },
};

const PILLARS: [&str; 3] = ["north", "south", "west"];
const PUTS_PER_ROUND: usize = 48;
/// Identification and its answers; request, progress and end for each pillar.
const MESSAGES_PER_PUT: usize = 4 + 3 * PILLARS.len();

pub(crate) fn run() {
    let broker = ActiveMq::start();
    for clients in [1, 8] {
        puts(&broker, clients);
    }
    hops(&broker);
    idle(&broker);
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap()
}

/// Exchange, pillars and a client in this process, whose bus is elsewhere, or here.
fn start(runtime: &tokio::runtime::Runtime, site: &Site, more: &str) -> Inside {
    fs::write(site.path("source"), [b'x'; 1024]).unwrap();
    let roles = site.exchange_role() + &site.pillar_roles() + more;
    runtime.block_on(Inside::start(&site.settings("up", &roles)))
}

fn puts(broker: &Broker, clients: usize) {
    let runtime = runtime();
    let (here, there) = (
        Site::new(&PILLARS, true),
        Site::at(&PILLARS, broker.port(), &format!("puts-{clients}")),
    );
    let (embedded, activemq) = (start(&runtime, &here, ""), start(&runtime, &there, ""));
    let next = AtomicUsize::new(0);
    let mut spent = [Duration::ZERO; 2];
    let [of_embedded, of_activemq] = &mut spent;
    let source = here.path("source");
    let mut measured = |inside: &Inside, spent: &mut Duration| {
        let before = processor_time(std::process::id());
        let time = timed(|| runtime.block_on(several(inside, &source, clients, &next)));
        *spent += processor_time(std::process::id()) - before;
        time
    };
    let mut rounds = 0;
    let (peer, ours) = {
        let measured = std::cell::RefCell::new(&mut measured);
        compare(
            || {
                rounds += 1;
                measured.borrow_mut()(&activemq, of_activemq)
            },
            || measured.borrow_mut()(&embedded, of_embedded),
        )
    };
    let puts = u32::try_from(PUTS_PER_ROUND).unwrap();
    let what = format!("put, {clients} at once (peer: over ActiveMQ)");
    speed(&what, peer / puts, ours / puts, "more than 1");
    for (bus, spent) in [("embedded bus", spent[0]), ("ActiveMQ", spent[1])] {
        let messages = rounds * PUTS_PER_ROUND * MESSAGES_PER_PUT;
        let each = spent.as_secs_f64() * 1e6 / f64::from(u32::try_from(messages).unwrap());
        println!(
            "  {bus}: {:.0} puts/s, {each:.0} microseconds of processor time in this process per message, pillars and files included",
            f64::from(puts) / if bus == "ActiveMQ" { peer } else { ours }.as_secs_f64(),
        );
    }
    for inside in [embedded, activemq] {
        runtime.block_on(inside.stop());
    }
}

async fn several(inside: &Inside, source: &Path, clients: usize, next: &AtomicUsize) {
    let client = || async {
        for _ in 0..PUTS_PER_ROUND / clients {
            let name = format!("file-{}", next.fetch_add(1, Ordering::Relaxed));
            inside.put(&name, source).await;
        }
    };
    join_all((0..clients).map(|_| client())).await;
}

/// With every frame held up on its way, what a put waits for can be counted.
fn hops(broker: &Broker) {
    const HELD_UP: Duration = Duration::from_millis(40);
    /// One way to the broker and one from there, for identification, its answer, the request, and the end.
    const NEEDED: u32 = 8;
    let runtime = runtime();
    let proxy = runtime.block_on(DelayedBroker::before(broker.port()));
    let site = Site::at(&PILLARS, proxy.port(), "hops");
    let inside = start(&runtime, &site, "");
    let source = site.path("source");
    // The first one makes the client's subscriptions.
    runtime.block_on(inside.put("first", &source));
    let put = |name: String| timed(|| runtime.block_on(inside.put(&name, &source)));
    let mut undelayed: Vec<Duration> = (0..9).map(|n| put(format!("fast-{n}"))).collect();
    proxy.hold_up(HELD_UP);
    let mut delayed: Vec<Duration> = (0..9).map(|n| put(format!("slow-{n}"))).collect();
    proxy.clear();
    put("watched".to_owned());
    pause(HELD_UP * 4);
    println!(
        "the frames of one put, in milliseconds since the first, each way to the broker or from it taking 40:"
    );
    for Seen {
        at,
        client,
        to_broker,
        what,
    } in proxy.seen()
    {
        let arrow = if to_broker { "->" } else { "<-" };
        println!(
            "  {:>6.1}  {client:<28} {arrow} {what}",
            at.as_secs_f64() * 1e3
        );
    }
    let waited = median(&mut delayed).saturating_sub(median(&mut undelayed));
    println!(
        "a put waits {:.1} times for a frame to or from the broker (the protocol needs {NEEDED})",
        waited.as_secs_f64() / HELD_UP.as_secs_f64(),
    );
    runtime.block_on(inside.stop());
}

/// A node with three pillars, exchange and alarm service that nobody asks for anything.
fn idle(broker: &Broker) {
    const WATCHED: Duration = Duration::from_secs(30);
    let site = Site::at(&PILLARS, broker.port(), "idle");
    let roles = site.exchange_role() + &site.pillar_roles() + "[alarms]\nid = \"alarms-idle\"\n";
    let node = Outside::node(&site.settings("up", &roles));
    // Its first look at disk and index.
    pause(Duration::from_secs(5));
    let (before, since) = (processor_time(node.id()), Instant::now());
    pause(WATCHED);
    let spent = processor_time(node.id()) - before;
    println!(
        "an idle node takes {:.2} % of a core (wanted: less than 1)",
        spent.as_secs_f64() * 100.0 / since.elapsed().as_secs_f64(),
    );
}
