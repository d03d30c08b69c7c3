//! A broker that is killed and comes back.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use futures_util::{StreamExt as _, stream};
use pillarbox_client::{EventKind, PutFile, Source};
use pillarbox_messages::FileId;
use tokio::time::timeout;

use crate::support::{
    PATIENCE,
    brokers::ActiveMq,
    joined::{Joined, LibraryClient, PILLARS, Scheme},
    md5, noise,
    process::succeed,
    stomp::Stomp,
    until,
};

const PUTS: usize = 200;
const KILLS: usize = 3;
/// Puts under way at once.
const AT_ONCE: usize = 8;
/// How long the puts after the last kill may take: much less than anybody's timeout.
const REST: Duration = Duration::from_secs(240);
/// Tries of one put: the first, and one for each kill.
const TRIES: usize = 1 + KILLS;

/// U55, as the names of the Java system have it: everything over topics.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn u55_a_broker_that_is_killed_during_puts_with_the_java_systems_names() {
    killed_during_puts(Scheme::Reference).await;
}

/// U55, with queues for the pillars' requests.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn u55_a_broker_that_is_killed_during_puts_with_names_of_the_collection() {
    killed_during_puts(Scheme::Collection).await;
}

async fn killed_during_puts(scheme: Scheme) {
    let mut broker = ActiveMq::start();
    // A try that loses something in silence would wait for these.
    let site = Joined::with_timeouts(&broker, scheme, ["10m", "1h"]);
    let _node = site.start("node");
    let client = LibraryClient::of(&site).await;
    let [ended, retries] = [(); 2].map(|()| AtomicUsize::new(0));
    let puts = (0..PUTS).map(|number| {
        let (client, ended, retries, site) = (&client, &ended, &retries, &site);
        async move {
            let tries = put_until_it_is_there(client, site, number).await;
            retries.fetch_add(tries - 1, Ordering::Relaxed);
            ended.fetch_add(1, Ordering::Relaxed);
        }
    });
    let mut puts = stream::iter(puts).buffer_unordered(AT_ONCE);
    for kill in 1..=KILLS {
        // In the middle of what goes on.
        while ended.load(Ordering::Relaxed) < kill * PUTS / (KILLS + 1) {
            let next = timeout(REST, puts.next()).await;
            let next = next.expect("somebody waits for an answer that does not come");
            next.expect("not all have ended");
        }
        broker = tokio::task::block_in_place(|| {
            broker.kill();
            broker.restart();
            broker
        });
    }
    let rest = timeout(REST, puts.collect::<Vec<()>>()).await;
    rest.expect("somebody waits for an answer that does not come");
    client.close().await;
    let retries = retries.into_inner();
    println!("{PUTS} puts, {KILLS} kills, {retries} retries");
    // None but of what was under way when the broker went, or began while it was away.
    assert!(retries <= KILLS * AT_ONCE, "{retries} retries");
    assert_each_once(&site);
}

/// Puts a file, and again if the outage has made that fail; gives how often it was tried. Every try ends with exactly
/// one last event.
async fn put_until_it_is_there(client: &LibraryClient, site: &Joined, number: usize) -> usize {
    let name = format!("{number}.bin");
    let file = site.file(&name, &content(number));
    for tries in 1..=TRIES {
        let put = PutFile::new(
            client.collection.clone(),
            FileId::from(&*name),
            Source::Path(file.clone()),
        );
        let mut ends = 0;
        let running = client.client.put_file(put).await.expect("starts");
        let outcome = running
            .outcome_with(|event| {
                let last = matches!(
                    event.kind,
                    EventKind::Complete { .. } | EventKind::Failed { .. }
                );
                ends += usize::from(last);
            })
            .await;
        assert_eq!(ends, 1, "{name}");
        if outcome.complete {
            return tries;
        }
        println!("{name}: {}", outcome.last_event);
        let late = outcome.last_event.contains("in time");
        assert!(!late, "{name} was waited for in vain");
        client.bus_is_there().await;
    }
    panic!("{name} is never there");
}

fn content(number: usize) -> Vec<u8> {
    noise(u64::try_from(number).expect("small"), 2000)
}

/// Every pillar has every file, and has added it once.
fn assert_each_once(site: &Joined) {
    let sums = succeed(&site.run("get-checksums", [""; 0]));
    for number in 0..PUTS {
        let row = format!("{} \t3 \t{number}.bin", md5(&content(number)));
        assert!(sums.lines().any(|line| line == row), "{row}\n{sums}");
    }
    let trail = succeed(&site.run("get-audit-trails", [""; 0]));
    let mut added: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for line in trail.lines().filter(|line| line.contains("PUT_FILE")) {
        let columns: Vec<&str> = line.split('\t').map(str::trim).collect();
        *added.entry((columns[0], columns[5])).or_default() += 1;
    }
    assert_eq!(added.len(), PUTS * PILLARS.len());
    let twice: Vec<_> = added.iter().filter(|(_, times)| **times != 1).collect();
    assert_eq!(twice, Vec::<(&(&str, &str), &usize)>::new());
}

#[test]
fn alarms_wait_for_the_service_also_when_the_broker_restarts() {
    let mut broker = ActiveMq::start();
    let site = Joined::new(&broker, Scheme::Reference);
    let mut alarms = site.start("alarms");
    let node = site.start("node");
    let file = site.file("a.txt", b"content\n");
    succeed(&site.run("put-file", ["-f".into(), file.into_os_string()]));
    alarms.terminate();
    alarms.wait_for_success();
    let mut listener = Stomp::connect(broker.port(), None);
    listener.subscribe(&format!("/topic/{}.alarms", site.name("base")));
    refused_delete(&site, "north");
    // What this broker gives to a listener, it has stored for those that are away.
    assert!(listener.message(PATIENCE).is_some());
    assert!(!site.alarms().contains(&site.name("north")));
    broker.kill();
    broker.restart();
    let mut alarms = site.start("alarms");
    until("the alarm is there", || {
        site.alarms().contains(&site.name("north"))
    });
    until("the pillars are there again", || {
        let ids = site.run("get-file-ids", ["-i", "a.txt"]);
        ids.status.success()
    });
    refused_delete(&site, "south");
    until("another alarm", || {
        site.alarms().contains(&site.name("south"))
    });
    drop(node);
    alarms.terminate();
    alarms.wait_for_success();
}

/// Nobody acknowledges for the service what it does not take in, and the broker would deliver it first again for ever.
#[test]
fn what_is_too_large_for_the_alarm_service_holds_up_no_alarm() {
    let broker = ActiveMq::shared();
    let site = Joined::new(broker, Scheme::Reference);
    let mut alarms = site.start("alarms");
    let _node = site.start("node");
    let file = site.file("a.txt", b"content\n");
    succeed(&site.run("put-file", ["-f".into(), file.into_os_string()]));
    let topic = format!("/topic/{}.alarms", site.name("base"));
    let mut stranger = Stomp::connect(broker.port(), None);
    let large = vec![b'x'; (16 << 20) + 1];
    stranger.send(
        &topic,
        &[("persistent", "true"), ("amq-msg-type", "text")],
        &large,
    );
    let names: Vec<String> = (0..300).map(|number| format!("property{number}")).collect();
    let many: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "1")).collect();
    stranger.send(&topic, &many, b"with many properties");
    stranger.send(
        &topic,
        &[("a\\q", "name that can't be decoded")],
        b"with a name",
    );
    refused_delete(&site, "north");
    until("the alarm is there", || {
        site.alarms().contains(&site.name("north"))
    });
    let listed = site.alarms();
    assert!(listed.contains("16777217 bytes"), "{listed}");
    // The other two are refused for the same reason, and counted together.
    let mut unreadable: Vec<&str> = listed
        .lines()
        .filter(|line| line.contains("INVALID_MESSAGE"))
        .filter_map(|line| line.split(" \t").nth(1))
        .collect();
    unreadable.sort_unstable();
    assert_eq!(unreadable, ["1", "2"], "{listed}");
    alarms.terminate();
    alarms.wait_for_success();
}

fn refused_delete(site: &Joined, pillar: &str) {
    let pillar = site.name(pillar);
    let delete = [
        "-i",
        "a.txt",
        "-p",
        &pillar,
        "-C",
        "00112233445566778899aabbccddeeff",
    ];
    let refused = site.run("delete-file", delete);
    assert_eq!(refused.status.code(), Some(255));
}
