//! One part is killed while clients put files, and comes back: every put completes, and each is done once.

use std::{ffi::OsStr, path::PathBuf, time::Duration};

use crate::support::{
    Random, md5, noise, number_from_environment, pause, process,
    process::Running,
    site::{Site, files_below},
};

/// A put is killed this much later than one of its events, at most.
const LATEST_MICROSECONDS: u64 = 10_000;
/// From here on a lost part is waited for.
const EVENTS: [&str; 4] = [
    "IDENTIFICATION_COMPLETE",
    ": REQUEST_SENT",
    "PROGRESS",
    "COMPONENT_COMPLETE",
];

/// How many puts, and kills.
fn puts() -> u64 {
    let puts = number_from_environment("PILLARBOX_TEST_KILLS", EVENTS.len());
    u64::try_from(puts).unwrap()
}

/// Puts as a named client, and kills the part in the middle of each.
fn put_and_kill(site: &Site, part: &str, mut running: Running, seed: u64, puts: u64) -> Running {
    let mut random = Random::new(seed);
    let events = EVENTS.iter().cycle();
    for (number, event) in (0..puts).zip(events) {
        let name = format!("file-{number}");
        let length = usize::try_from(random.below(200_000)).unwrap();
        let content = noise(random.next(), length);
        let path = site.file(&name, &content);
        let args = ["-v", "--client-id", "ingest-1", "-f"].map(OsStr::new);
        let args = args.into_iter().chain([path.as_os_str()]);
        let mut client = site.start_client("put-file", args);
        client.wait_for_error(event);
        pause(Duration::from_micros(random.below(LATEST_MICROSECONDS)));
        running.kill();
        running = site.start_again(part);
        client.wait_for_success();
        println!("seed {seed}, {name}: killed after {event}");
        let listed = process::until_success("all pillars are back", || {
            site.run("get-checksums", ["-i", &name])
        });
        assert!(
            listed.contains(&format!("2 \t{} \tAll", md5(&content))),
            "{name}: {listed}"
        );
    }
    running
}

/// The audit trail's numbers of a pillar, and the files that it tells of, in order.
pub(super) fn audit_trail(site: &Site, pillar: &str) -> Vec<(i64, String)> {
    let path = site.part(pillar).join("var/pillars").join(pillar);
    let index = rusqlite::Connection::open(path.join("index.sqlite")).unwrap();
    let mut query = index
        .prepare("SELECT number, file_id FROM audit ORDER BY number")
        .unwrap();
    let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
    rows.unwrap().map(Result::unwrap).collect()
}

#[track_caller]
fn assert_done_once(site: &Site, puts: u64) {
    for pillar in ["north", "south"] {
        let mut trail = audit_trail(site, pillar);
        let numbers: Vec<i64> = trail.iter().map(|(number, _)| *number).collect();
        let count = i64::try_from(puts).unwrap();
        assert_eq!(numbers, (1..=count).collect::<Vec<_>>(), "{trail:?}");
        trail.sort_by(|one, other| one.1.cmp(&other.1));
        trail.dedup_by(|one, other| one.1 == other.1);
        assert_eq!(trail.len(), numbers.len(), "{trail:?}");
        assert_eq!(site.half_received(pillar), Vec::<PathBuf>::new());
    }
    for part in ["hub", "exchange"] {
        let exchange = site.part(part).join("var").join("exchange");
        assert_eq!(files_below(&exchange), Vec::<PathBuf>::new());
    }
}

#[test]
fn puts_complete_once_though_a_pillar_is_killed_in_each() {
    let puts = puts();
    let site = Site::new(&["north", "south"]);
    let _hub = site.start("hub");
    let mut south = site.start("south");
    let north = site.start("north");
    let mut north = put_and_kill(&site, "north", north, 60, puts);
    for pillar in [&mut north, &mut south] {
        pillar.terminate();
        pillar.wait_for_success();
    }
    assert_done_once(&site, puts);
}

#[test]
fn puts_complete_once_though_the_bus_is_killed_in_each() {
    let puts = puts();
    let site = Site::with_restless_bus(&["north", "south"]);
    let _exchange = site.start("exchange");
    let bus = site.start("bus");
    let mut pillars = ["north", "south"].map(|part| site.start(part));
    let _bus = put_and_kill(&site, "bus", bus, 61, puts);
    for pillar in &mut pillars {
        pillar.terminate();
        pillar.wait_for_success();
    }
    assert_done_once(&site, puts);
}
