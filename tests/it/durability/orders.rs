//! A thousand orders at three consumers in processes of their own, one of which is killed every second; in one order of
//! each hundred there is an event that nobody can process.
//!
//! What the consumers do is written, line by line and at once, to one file that all append to, and looked at in the end:
//! the order of its lines is the order in which things happened.
//!
//! A kill counts as a failure of the event in hand, and with its third failure an event is moved aside, whoever's fault
//! it is. So that no good event can be, whatever the machine does, only a consumer is killed that is at a good event which
//! has not failed yet: it is halted first, and goes on if it is not. So no event is in hand at two kills, none that is
//! poison at any, and the three failures of those are their own.

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    fs::{File, OpenOptions},
    io::Write,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use crate::support::{
    PATIENCE, Random, pause,
    process::Running,
    site::Site,
    stomp::{Frame, Next, Stomp},
    until,
};

const ORDERS: u64 = 1_000;
/// The events of each order: opened, executed and closed.
const EVENTS: u64 = 3;
/// The second event of the first of so many orders is poison.
const HUNDRED: u64 = 100;
const CONSUMERS: usize = 3;
/// What it takes to process an event.
const WORK: Duration = Duration::from_millis(10);
const BETWEEN_KILLS: Duration = Duration::from_secs(1);
/// A message is moved aside with so many failures.
const LIMIT: usize = 3;
/// While a poisonous event waits for its next try, so many others are processed at least, unless there are fewer.
const MEANWHILE: usize = 20;

const QUEUE: &str = "/queue/orders";
const BACKOUT: &str = "/queue/orders.backout";
const PORT: &str = "PILLARBOX_TEST_BUS_PORT";
const RECORD: &str = "PILLARBOX_TEST_RECORD";

/// An order's event.
type Event = (u64, u64);

const fn is_poison((order, event): Event) -> bool {
    order.is_multiple_of(HUNDRED) && event == 1
}

/// What somebody did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Deed {
    /// Has an event in hand that has failed so often.
    Start(Event, usize),
    Done(Event),
    Failed(Event),
    /// The bus has confirmed that the event is dealt with.
    Over(Event),
}

/// Who did what, in order.
struct Record(PathBuf);

impl Record {
    /// All whole lines.
    fn read(&self) -> Vec<(u32, Deed)> {
        let text = fs::read_to_string(&self.0).expect("can be read");
        let lines = text.split_inclusive('\n').filter(|it| it.ends_with('\n'));
        lines.map(|line| parse(line.trim_end())).collect()
    }

    /// The latest that this process did.
    fn latest(&self, process: u32) -> Option<Deed> {
        let own = self.read().into_iter().rev();
        own.into_iter()
            .find(|(who, _)| *who == process)
            .map(|(_, deed)| deed)
    }
}

fn parse(line: &str) -> (u32, Deed) {
    let words: Vec<&str> = line.split(' ').collect();
    let [who, deed, order, event, failures] = words[..] else {
        panic!("{line}")
    };
    let number = |text: &str| text.parse::<u64>().expect("a number");
    let event = (number(order), number(event));
    let failures = usize::try_from(number(failures)).expect("small");
    let deed = match deed {
        "start" => Deed::Start(event, failures),
        "done" => Deed::Done(event),
        "failed" => Deed::Failed(event),
        "over" => Deed::Over(event),
        _ => panic!("{line}"),
    };
    (who.parse().expect("a process"), deed)
}

/// A consumer in a process of its own; see the test below.
struct Consumer {
    stomp: Stomp,
    record: File,
}

impl Consumer {
    fn note(&mut self, deed: &str, (order, event): Event, failures: usize) {
        let process = std::process::id();
        let line = format!("{process} {deed} {order} {event} {failures}\n");
        // In one piece: others write there too.
        self.record.write_all(line.as_bytes()).expect("writable");
    }

    fn process(&mut self, message: &Frame) {
        let text = message.text();
        let (order, event) = text.split_once(' ').expect("two numbers");
        let event = (order.parse().unwrap(), event.parse().unwrap());
        let failures = message.header("q-backout-count");
        let failures = failures.map_or(0, |count| count.parse().unwrap());
        self.note("start", event, failures);
        pause(WORK);
        let (deed, answer) = if is_poison(event) {
            ("failed", "NACK")
        } else {
            ("done", "ACK")
        };
        self.note(deed, event, failures);
        let id = message.header("ack").expect("an id");
        let headers = [("id", id), ("receipt", &text)];
        self.stomp.frame(answer, &headers, b"").unwrap();
    }
}

/// Run by the test below, as often as its predecessor is killed. The bus gives it one event at a time.
#[test]
#[ignore = "consumes until it is killed"]
fn a_consumer_of_orders() {
    let (Ok(port), Ok(record)) = (env::var(PORT), env::var(RECORD)) else {
        panic!("this is run by another test")
    };
    let record = OpenOptions::new().append(true).open(record).unwrap();
    let stomp = Stomp::connect(port.parse().unwrap(), None);
    let mut consumer = Consumer { stomp, record };
    let headers = [
        ("id", "1"),
        ("destination", QUEUE),
        ("ack", "client-individual"),
    ];
    consumer.stomp.frame("SUBSCRIBE", &headers, b"").unwrap();
    loop {
        match consumer.stomp.next(PATIENCE) {
            Next::Frame(frame) if frame.command == "MESSAGE" => consumer.process(&frame),
            Next::Frame(frame) if frame.command == "RECEIPT" => {
                let receipt = frame.header("receipt-id").unwrap();
                let (order, event) = receipt.split_once(' ').expect("two numbers");
                let event = (order.parse().unwrap(), event.parse().unwrap());
                consumer.note("over", event, 0);
            }
            Next::Nothing => {}
            other => panic!("instead of a message: {other:?}"),
        }
    }
}

fn start_consumer(port: u16, record: &Path) -> Running {
    let mut command = Command::new(env::current_exe().expect("this program"));
    let (_, module) = module_path!().split_once("::").expect("crate::module");
    command
        .args(["--exact", "--ignored", "--nocapture"])
        .arg(format!("{module}::a_consumer_of_orders"))
        .env(PORT, port.to_string())
        .env(RECORD, record);
    Running::spawn(command)
}

/// Whether all threads of a process have come to a halt.
fn stands_still(process: u32) -> bool {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).expect("a live process");
    tasks.flatten().all(|task| {
        let stat = fs::read_to_string(task.path().join("stat")).unwrap_or_default();
        // Behind the name, which is in parentheses.
        stat.rsplit_once(") ")
            .is_none_or(|(_, rest)| rest.starts_with('T'))
    })
}

/// Kills the consumer, if it is at a good event that has not failed yet.
fn kill_at_good_event(consumer: &mut Running, record: &Record) -> bool {
    consumer.halt();
    until("it stands still", || stands_still(consumer.id()));
    let latest = record.latest(consumer.id());
    let fits = matches!(latest, Some(Deed::Start(event, 0)) if !is_poison(event));
    if fits {
        consumer.kill();
    } else {
        consumer.go_on();
    }
    fits
}

fn settings(port: u16) -> String {
    format!(
        r#"data = "var"
[bus_server]
listen = ["127.0.0.1:{port}"]
[[bus_server.queues]]
name = "orders"
lanes = "key"
backout_limit = {LIMIT}
backout_queue = "orders.backout"
"#
    )
}

/// All first events, then all second ones, and so on, so that each order has others before, between and behind it.
fn send_all(port: u16) {
    let mut stomp = Stomp::connect(port, None);
    for event in 0..EVENTS {
        for order in 0..ORDERS {
            let group = format!("order-{order}");
            let headers = [
                ("destination", QUEUE),
                ("persistent", "true"),
                ("JMSXGroupID", &group),
            ];
            let body = format!("{order} {event}");
            stomp.frame("SEND", &headers, body.as_bytes()).unwrap();
        }
    }
    stomp
        .frame("DISCONNECT", &[("receipt", "end")], b"")
        .unwrap();
    let told = stomp.next(PATIENCE);
    let confirmed = matches!(&told, Next::Frame(frame) if frame.command == "RECEIPT");
    assert!(confirmed, "{told:?}");
}

/// How far an order has come.
#[derive(Default)]
struct Progress {
    /// Its next event.
    next: u64,
    failures: usize,
    /// Who is at which event.
    at: Option<(u32, u64)>,
}

/// Goes through the record: each order's events were processed one after the other, by one consumer at a time.
fn check_sequence(record: &[(u32, Deed)], killed: &BTreeSet<u32>) {
    let mut orders: BTreeMap<u64, Progress> = BTreeMap::new();
    let mut over = BTreeSet::new();
    for (line, (who, deed)) in record.iter().enumerate() {
        let (Deed::Start((order, event), _)
        | Deed::Done((order, event))
        | Deed::Failed((order, event))
        | Deed::Over((order, event))) = *deed;
        let progress = orders.entry(order).or_default();
        match *deed {
            Deed::Start(name, failures) => {
                if let Some((other, _)) = progress.at {
                    let later = record[line..].iter().any(|(who, _)| *who == other);
                    assert!(killed.contains(&other) && !later, "two are at {name:?}");
                }
                let repeated = event + 1 == progress.next && !over.contains(&name);
                assert!(event == progress.next || repeated, "{name:?} out of turn");
                let expected = if is_poison(name) {
                    failures == progress.failures
                } else {
                    failures < 2
                };
                assert!(expected, "{name:?} has failed {failures} times");
                progress.at = Some((*who, event));
            }
            Deed::Done(_) => {
                assert_eq!(progress.at.take(), Some((*who, event)));
                progress.next = event + 1;
            }
            Deed::Failed(name) => {
                assert_eq!(progress.at.take(), Some((*who, event)));
                progress.failures += 1;
                assert!(progress.failures <= LIMIT, "{name:?}");
                // With its last failure the queue goes on without it.
                progress.next = event + u64::from(progress.failures == LIMIT);
            }
            Deed::Over(name) => drop(over.insert(name)),
        }
    }
    let ends = orders.values().filter(|it| it.next == EVENTS).count();
    assert_eq!(
        ends as u64, ORDERS,
        "orders that were processed to their end"
    );
}

/// Between the tries of an event that fails, those of other orders are processed; returns how many at least.
fn check_others(record: &[(u32, Deed)]) -> usize {
    let mut least = usize::MAX;
    for order in (0..ORDERS).step_by(usize::try_from(HUNDRED).unwrap()) {
        let tries: Vec<usize> = record
            .iter()
            .enumerate()
            .filter(|(_, (_, deed))| *deed == Deed::Failed((order, 1)))
            .map(|(line, _)| line)
            .collect();
        assert_eq!(tries.len(), LIMIT, "order {order}");
        for gap in tries.windows(2) {
            let others = |lines: &[(u32, Deed)]| {
                let done = lines.iter().filter(|(_, deed)| match deed {
                    Deed::Done((other, _)) => other % HUNDRED != 0,
                    _ => false,
                });
                done.count()
            };
            let meanwhile = others(&record[gap[0]..gap[1]]);
            let left = others(&record[gap[1]..]);
            assert!(
                meanwhile >= MEANWHILE || left == 0,
                "others waited for order {order}: {meanwhile} meanwhile, {left} later"
            );
            if left > 0 {
                least = least.min(meanwhile);
            }
        }
    }
    least
}

/// Everything in the queue of what was moved aside.
fn moved_aside(port: u16) -> Vec<Event> {
    let mut stomp = Stomp::connect(port, None);
    stomp.send(BACKOUT, &[], b"end");
    stomp.subscribe(BACKOUT);
    let mut moved = Vec::new();
    loop {
        let message = stomp.message(PATIENCE).expect("the end comes");
        let text = message.text();
        let Some((order, event)) = text.split_once(' ') else {
            return moved;
        };
        moved.push((order.parse().unwrap(), event.parse().unwrap()));
        for (name, value) in [
            ("q-backout-count", "3"),
            ("q-reason", "backout"),
            ("original-destination", QUEUE),
        ] {
            assert_eq!(message.header(name), Some(value), "{text}");
        }
    }
}

#[test]
fn a_thousand_orders_keep_their_sequence_though_consumers_are_killed_and_some_events_are_poison() {
    let site = Site::new(&["north"]);
    site.settings("bus", &settings(site.bus_port));
    let _bus = site.start("bus");
    let _alarms = site.start("alarms");
    send_all(site.bus_port);
    let record = Record(site.file("record", b""));
    let start = || start_consumer(site.bus_port, &record.0);
    let mut consumers: Vec<Running> = (0..CONSUMERS).map(|_| start()).collect();
    let mut killed = BTreeSet::new();
    let mut random = Random::new(1);
    let good = usize::try_from(ORDERS * EVENTS - ORDERS / HUNDRED).unwrap();
    let is_over = || {
        let record = record.read();
        let over: BTreeSet<Event> = record
            .iter()
            .filter_map(|(_, deed)| match deed {
                Deed::Over(event) if !is_poison(*event) => Some(*event),
                _ => None,
            })
            .collect();
        let failed = record
            .iter()
            .filter(|(_, deed)| matches!(deed, Deed::Over(event) if is_poison(*event)));
        over.len() == good && failed.count() == LIMIT * usize::try_from(ORDERS / HUNDRED).unwrap()
    };
    while !is_over() {
        pause(BETWEEN_KILLS);
        // Whoever is not at a good event may be the next time; in the end there is none left.
        for _ in 0..50 {
            let at = usize::try_from(random.below(CONSUMERS as u64)).unwrap();
            if kill_at_good_event(&mut consumers[at], &record) {
                killed.insert(consumers[at].id());
                consumers[at] = start();
                break;
            }
            pause(WORK / 3);
        }
        assert!(killed.len() < 200, "it does not come to an end");
    }
    let told = || {
        let alarms = site.alarms_list(&["--json"]);
        alarms.matches("has failed 3 times").count()
    };
    until("an alarm tells of it", || told() > 0);
    drop(consumers);
    let all = record.read();
    check_sequence(&all, &killed);
    let least = check_others(&all);
    let moved = moved_aside(site.bus_port);
    let expected: BTreeSet<Event> = (0..ORDERS)
        .step_by(usize::try_from(HUNDRED).unwrap())
        .map(|order| (order, 1))
        .collect();
    assert_eq!(moved.len(), expected.len());
    assert_eq!(moved.into_iter().collect::<BTreeSet<_>>(), expected);
    assert_eq!(told(), 1, "one alarm for the queue within the hour");
    assert!(killed.len() >= 3, "{} kills", killed.len());
    let counted = all
        .iter()
        .filter(|(_, deed)| matches!(deed, Deed::Start(event, 1) if !is_poison(*event)));
    assert_eq!(counted.count(), killed.len(), "each kill has counted once");
    println!(
        "{} kills, at least {least} events of other orders between two tries of a poisonous one",
        killed.len()
    );
    // Nothing is left.
    let mut stomp = Stomp::connect(site.bus_port, None);
    stomp.send(QUEUE, &[], b"end");
    stomp.subscribe(QUEUE);
    let last = stomp.message(PATIENCE).expect("the end comes");
    assert_eq!(last.body, b"end");
}
