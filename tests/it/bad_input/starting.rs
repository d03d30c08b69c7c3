//! Places that a node can't have: ports, directories, ids.

use std::{
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::Output,
    time::{Duration, Instant},
};

use super::{OPERATION, USAGE};
use crate::support::{
    process::{self, Running},
    site::{Site, free_port},
    whole::Whole,
};

/// How long a node may take to find that it can't start.
const SOON: Duration = Duration::from_secs(50);

/// Asserts that the node of this part ends with this code and one line of its own with these parts; log lines may
/// come before.
#[track_caller]
pub(super) fn cannot_start(site: &Site, part: &str, code: i32, parts: &[&str]) {
    let start = Instant::now();
    let output = node(&site.part(part));
    assert!(start.elapsed() < SOON, "took {:?}", start.elapsed());
    let text = process::stderr(&output);
    assert_eq!(output.status.code(), Some(code), "stderr:\n{text}");
    assert_eq!(process::stdout(&output), "", "stderr:\n{text}");
    let own: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("pillarbox: "))
        .collect();
    let [line] = own[..] else {
        panic!("not one line:\n{text}")
    };
    assert_eq!(text.lines().last(), Some(line), "the line is not the last");
    for part in parts {
        assert!(line.contains(part), "'{part}' is not in: {line}");
    }
}

fn node(settings: &Path) -> Output {
    process::run(["node".as_ref(), "-s".as_ref(), settings.as_os_str()])
}

/// A hub's settings with one role, so that its part of the ports can be taken.
fn hub(data: &str, table: &str) -> String {
    format!("data = \"{data}\"\n{table}")
}

fn bus_server(port: u16) -> String {
    format!("[bus_server]\nlisten = [\"127.0.0.1:{port}\"]\n")
}

fn exchange_server(port: u16) -> String {
    let address = format!("127.0.0.1:{port}");
    format!("[exchange_server]\nlisten = \"{address}\"\npublic_url = \"http://{address}/\"\n")
}

#[test]
fn busy_ports() {
    let site = Site::new(&["north"]);
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("bound").port();
    let address = format!("127.0.0.1:{port}");
    site.settings("busy-bus", &hub("var", &bus_server(port)));
    cannot_start(&site, "busy-bus", USAGE, &[&address, "in use"]);
    let both = bus_server(free_port()) + &exchange_server(port);
    site.settings("busy-exchange", &hub("var", &both));
    cannot_start(&site, "busy-exchange", USAGE, &[&address, "in use"]);
    drop(taken);
    // Nothing of the failed start is in the way.
    drop(site.start("busy-bus"));
    drop(site.start("busy-exchange"));
}

#[test]
fn addresses_that_are_not_ours() {
    let site = Site::new(&["north"]);
    site.settings(
        "hub",
        &hub("var", "[bus_server]\nlisten = [\"192.0.2.1:61613\"]\n"),
    );
    cannot_start(&site, "hub", USAGE, &["192.0.2.1:61613"]);
}

#[test]
fn data_directories_that_cannot_be_written() {
    let site = Site::new(&["north"]);
    let role = bus_server(free_port());
    let plain = site.file("plain", b"no directory");
    for data in [
        plain.clone(),
        plain.join("below"),
        PathBuf::from("/proc/pillarbox"),
    ] {
        let data = data.to_str().expect("text");
        site.settings("hub", &hub(data, &role));
        cannot_start(&site, "hub", USAGE, &["data directory", data, "node.toml"]);
    }
    assert_eq!(fs::read(&plain).expect("is there"), b"no directory");
}

#[test]
fn a_data_directory_of_another_format() {
    let site = Site::new(&["north"]);
    site.settings("hub", &hub("var", &bus_server(free_port())));
    let data = site.part("hub").join("var");
    fs::create_dir(&data).expect("can be made");
    fs::write(data.join("format"), "pillarbox data 99\n").expect("can be written");
    cannot_start(&site, "hub", USAGE, &["pillarbox data 99", "version"]);
}

#[test]
fn a_second_process_on_one_data_directory() {
    let site = Site::new(&["north"]);
    site.settings("hub", &hub("var", &bus_server(free_port())));
    let mut first = site.start("hub");
    let data = site.part("hub").join("var");
    site.settings(
        "second",
        &hub(data.to_str().expect("text"), &bus_server(free_port())),
    );
    cannot_start(
        &site,
        "second",
        USAGE,
        &["in use by another process", "node.toml"],
    );
    assert!(first.lives());
    first.kill();
    // The lock goes with the process.
    drop(site.start("second"));
}

#[test]
fn archive_directories_that_cannot_be_written() {
    let site = Site::new(&["north"]);
    let plain = site.file("plain", b"no directory");
    let _hub = site.start("hub");
    for directory in [
        plain.clone(),
        plain.join("below"),
        PathBuf::from("/proc/pillarbox"),
    ] {
        let directory = directory.to_str().expect("text");
        let node = format!(
            "data = \"var\"\n[[pillars]]\nid = \"north\"\ntype = \"FILE\"\ndirectories = [\"{directory}\"]\n"
        );
        site.settings("north", &node);
        cannot_start(&site, "north", USAGE, &[directory]);
    }
    assert_eq!(fs::read(&plain).expect("is there"), b"no directory");
}

#[test]
fn a_pillar_that_is_on_the_bus_already() {
    let site = Site::new(&["north"]);
    let _hub = site.start("hub");
    let mut first = site.start("north");
    site.settings(
        "double",
        "data = \"var\"\n[[pillars]]\nid = \"north\"\ntype = \"FILE\"\ndirectories = [\"archive\"]\n",
    );
    cannot_start(
        &site,
        "double",
        OPERATION,
        &["'north' is in use", "stop that process", "another id"],
    );
    assert!(first.lives());
}

#[test]
fn whoever_is_refused_for_its_id_says_so_once() {
    let site = Site::new(&["north"]);
    let _hub = site.start("hub");
    let mut first = ["north", "alarms"].map(|part| site.start(part));
    let pillar = "[[pillars]]\nid = \"north\"\ntype = \"FILE\"\ndirectories = [\"another\"]";
    for (id, table) in [
        ("north", pillar),
        ("alarm-service", "[alarms]\nid = \"alarm-service\""),
    ] {
        site.settings(id, &format!("data = \"other\"\n{table}\n"));
        let output = node(&site.part(id));
        assert_eq!(output.status.code(), Some(OPERATION));
        let text = process::stderr(&output);
        let told: Vec<&str> = text.lines().filter(|line| line.contains(id)).collect();
        let [waiting, refused] = told[..] else {
            panic!("not two lines:\n{text}")
        };
        let asking = "another process is connected under this id, or was just now";
        assert!(
            waiting.contains("WARN") && waiting.contains(asking),
            "{waiting}"
        );
        assert!(refused.contains("is in use"), "{refused}");
    }
    assert!(first.iter_mut().all(Running::lives));
}

/// The bus was away, and another process came first when it was back.
#[test]
fn a_pillar_whose_id_was_taken_meanwhile_says_so_once_and_gets_it_back() {
    let site = Site::new(&["north"]);
    let mut hub = site.start("hub");
    let settings = site.part("north");
    let args = ["node".as_ref(), "-s".as_ref(), settings.as_os_str()];
    let mut verbose = process::pillarbox(args);
    verbose.env("PILLARBOX_LOG", "debug");
    let mut first = Running::spawn(verbose);
    first.wait_for("ready");
    site.settings(
        "double",
        "data = \"var\"\n[[pillars]]\nid = \"north\"\ntype = \"FILE\"\ndirectories = [\"archive\"]\n",
    );
    first.halt();
    hub.kill();
    let _hub = site.start("hub");
    let mut second = site.start("double");
    first.go_on();
    let line = first.wait_for_error("another process is connected as 'north'");
    assert!(line.contains("give this one another id"), "{line}");
    for _ in 0..2 {
        let line = first.wait_for_error("'north' is in use");
        assert!(line.contains("DEBUG"), "{line}");
    }
    second.kill();
    first.wait_for_error("the bus is back");
}

#[test]
fn up_in_a_place_that_cannot_be_one() {
    let site = Site::new(&["north"]);
    let plain = site.file("plain", b"no directory");
    let up =
        |directory: &Path| process::run(["up".as_ref(), "--dir".as_ref(), directory.as_os_str()]);
    let line = process::fail_with_one_line(&up(&plain), USAGE);
    assert!(line.contains("plain"), "{line}");
    let line = process::fail_with_one_line(&up(Path::new("/proc/pillarbox")), USAGE);
    assert!(line.contains("/proc/pillarbox"), "{line}");
    let half = site.path().join("half");
    fs::create_dir(&half).expect("can be made");
    fs::write(half.join("node.toml"), "data = \"var\"\n").expect("can be written");
    let line = process::fail_with_one_line(&up(&half), USAGE);
    assert!(line.contains("repository.toml is missing"), "{line}");
    let demo = process::run(["demo", "nosuch.txt"]);
    let text = process::stderr(&demo);
    assert_eq!(demo.status.code(), Some(USAGE), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(text.contains("nosuch.txt"), "{text}");
}

#[test]
fn a_node_waits_for_an_absent_bus_until_it_is_told_to_stop() {
    let site = Site::new(&["north"]);
    let mut pillar = Running::starting_node(&site.part("north"));
    pillar.wait_for_error("waiting for the bus");
    pillar.terminate();
    pillar.wait_for_success();
}

/// Stores of a node below its data directory.
const STORES: [&str; 4] = [
    "pillars/north/index.sqlite",
    "alarms/alarms.sqlite",
    "bus",
    "exchange",
];

#[test]
fn stores_that_are_not_ours() {
    for store in STORES {
        let mut whole = Whole::start(&["north"]);
        whole.node.kill();
        let path = whole.site.part("whole").join("var").join(store);
        if path.is_dir() {
            fs::remove_dir_all(&path).expect("can be removed");
        } else {
            let wal = path.with_extension("sqlite-wal");
            let _ = fs::remove_file(wal);
        }
        fs::write(&path, "no store of ours\n".repeat(1000)).expect("can be written");
        let shown = path.to_str().expect("text").to_owned();
        cannot_start(&whole.site, "whole", USAGE, &[&shown]);
        // It is left as it is, for whoever wants to know what happened.
        assert!(
            fs::read_to_string(&path)
                .expect("is there")
                .starts_with("no store of ours")
        );
    }
}

#[test]
fn a_bus_log_that_was_damaged() {
    let mut whole = Whole::start(&["north"]);
    whole.site.file("p7.txt", b"pillar test 7\n");
    process::succeed(&whole.site.run("put-file", ["-f", "p7.txt"]));
    whole.node.kill();
    let log = whole.site.part("whole/var/bus").join("0000000001.log");
    let good = fs::read(&log).expect("is there");
    let end = good
        .iter()
        .rposition(|&byte| byte != 0)
        .expect("something was written");
    let mut damaged = good.clone();
    damaged[end / 2] ^= 0xff;
    fs::write(&log, &damaged).expect("can be written");
    // What had been promised would be lost without a word.
    let shown = log.to_str().expect("text");
    cannot_start(&whole.site, "whole", USAGE, &[shown, "damaged"]);
    assert!(
        fs::read(&log).expect("is there") == damaged,
        "it was changed"
    );
    fs::write(&log, &good).expect("can be written");
    drop(whole.site.start("whole"));
}
