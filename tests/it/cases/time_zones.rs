//! The time zone that a process runs in changes nothing (U20).

use std::{path::Path, process::Command};

use chrono::SecondsFormat;
use pillarbox_messages::clock::{Clock as _, SystemClock};

use super::{
    P7,
    asking::{all, between, elsewhere},
};
use crate::support::{
    process::{Running, finish, pillarbox, succeed},
    raw_peer::{Answer, RawPeer, document, file_ids},
    site::Site,
};

const COPENHAGEN: &str = "Europe/Copenhagen";
/// Ahead of every other zone: most of the time it has another date than the rest of the world.
const KIRITIMATI: &str = "Pacific/Kiritimati";

const PILLARS: [&str; 2] = ["north", "south"];
const FILES: [&str; 3] = ["one.bin", "two.bin", "three.bin"];
const QUESTIONS: [&str; 3] = [
    "GetFileIDsRequest",
    "GetChecksumsRequest",
    "GetAuditTrailsRequest",
];
/// How far ahead of UTC the clocks are by which the tests ask.
const OFFSETS: [&str; 5] = ["+00:00", "+01:00", "+05:45", "+14:00", "-11:00"];

/// The same command by a process in this zone, which the machine must know.
fn in_zone(mut command: Command, zone: &str) -> Command {
    let known = Path::new("/usr/share/zoneinfo").join(zone);
    assert!(known.exists(), "this machine has no {known:?} (tzdata)");
    command.env("TZ", zone);
    command
}

/// The pillars, each in its zone, once they are ready.
fn start_in(zones: [&str; 2], site: &Site) -> [Running; 2] {
    [0, 1].map(|at| {
        let settings = site.part(PILLARS[at]);
        let node = pillarbox(["node".as_ref(), "-s".as_ref(), settings.as_os_str()]);
        let mut node = Running::spawn(in_zone(node, zones[at]));
        node.wait_for("ready");
        node
    })
}

fn stop(mut pillars: [Running; 2]) {
    for pillar in &mut pillars {
        pillar.terminate();
        pillar.wait_for_success();
    }
}

/// Puts the files one after the other, and gives the times between, in UTC.
fn put_all(site: &Site) -> [String; 2] {
    site.file("p7", P7);
    let times = FILES.map(|file| {
        succeed(&site.run("put-file", ["-f", "p7", "-i", file]));
        let now = SystemClock.now();
        now.to_rfc3339_opts(SecondsFormat::Millis, true)
    });
    let [first, second, _] = times;
    [first, second]
}

/// What one finds of the files up to the first time, between both, and after the second.
fn intervals(times: &[String; 2], offset: &str) -> [(String, &'static [&'static str]); 4] {
    let [first, second] = [0, 1].map(|at| elsewhere(&times[at], offset));
    let never = elsewhere("9998-10-26T02:30:00+02:00", offset);
    [
        (format!("<MaxTimestamp>{first}</MaxTimestamp>"), &FILES[..1]),
        (between(&first, &second), &FILES[1..2]),
        (
            format!("<MinTimestamp>{second}</MinTimestamp>"),
            &FILES[2..],
        ),
        (format!("<MinTimestamp>{never}</MinTimestamp>"), &[]),
    ]
}

fn ask(peer: &mut RawPeer, kind: &str, pillar: &str, correlation: &str, bounds: &str) -> Answer {
    let destination = format!("queue://books.{pillar}");
    let header = peer.header(correlation, &destination, Some(pillar));
    let (whom, files, spec) = match kind {
        "GetFileIDsRequest" => ("PillarID", file_ids(None), ""),
        "GetChecksumsRequest" => ("PillarID", file_ids(None), MD5_WANTED),
        _ => ("Contributor", String::new(), ""),
    };
    let content = format!("{header}<{whom}>{pillar}</{whom}>{files}{bounds}{spec}");
    peer.send_to(pillar, kind, document(kind, &content));
    let answer = peer.end_of(correlation);
    assert_eq!(answer.code(), "OPERATION_COMPLETED", "{}", answer.xml);
    answer
}

const MD5_WANTED: &str = "<ChecksumRequestForExistingFile><ChecksumType>MD5</ChecksumType></ChecksumRequestForExistingFile>";

/// Asks every pillar everything, by the clocks of every zone, and gives the texts of the answers, which must tell
/// of the right files.
fn ask_everything(peer: &mut RawPeer, times: &[String; 2]) -> Vec<String> {
    let mut texts = Vec::new();
    for (kind, offset) in QUESTIONS.iter().flat_map(|it| OFFSETS.map(|at| (it, at))) {
        for (number, (bounds, files)) in intervals(times, offset).into_iter().enumerate() {
            for pillar in PILLARS {
                let correlation = format!("{kind}{offset}-{number}-{pillar}");
                let answer = ask(peer, kind, pillar, &correlation, &bounds);
                assert_eq!(all(&answer, "FileID"), files, "{bounds}: {}", answer.xml);
                texts.push(answer.xml);
            }
        }
    }
    texts
}

#[test]
fn u20_a_pillars_time_zone_changes_no_result() {
    let site = Site::new(&PILLARS);
    let _hub = site.start("hub");
    let pillars = start_in([COPENHAGEN, KIRITIMATI], &site);
    let times = put_all(&site);
    let mut peer = RawPeer::connect(site.bus_port, "peer");
    let answers = ask_everything(&mut peer, &times);
    stop(pillars);
    // The same questions to the same pillars, which only run elsewhere now: the same bytes.
    let pillars = start_in([KIRITIMATI, COPENHAGEN], &site);
    for (before, after) in answers.iter().zip(ask_everything(&mut peer, &times)) {
        assert_eq!(*before, after);
    }
    stop(pillars);
}

#[test]
fn u20_a_clients_time_zone_changes_no_result() {
    let site = Site::new(&PILLARS);
    let _hub = site.start("hub");
    let _pillars = start_in([COPENHAGEN, KIRITIMATI], &site);
    let times = put_all(&site);
    for offset in OFFSETS {
        let [first, second] = [0, 1].map(|at| elsewhere(&times[at], offset));
        for pillar in PILLARS {
            let bounds = ["-p", pillar, "--min-time", &first, "--max-time", &second];
            for form in [&[][..], &["--json"]] {
                let told = ["UTC", COPENHAGEN, KIRITIMATI].map(|zone| {
                    let args = bounds.iter().chain(form);
                    let command = site.prepare("get-audit-trails", args);
                    succeed(&finish(in_zone(command, zone)))
                });
                assert!(told[0].contains(FILES[1]), "{}", told[0]);
                assert!(!told[0].contains(FILES[0]) && !told[0].contains(FILES[2]));
                assert_eq!([&told[1], &told[2]], [&told[0]; 2], "{bounds:?}");
            }
        }
    }
}
