//! A bus that is not there: who waits, who gives up, and what is told of it afterwards.

use std::{
    net::TcpListener,
    time::{Duration, Instant},
};

use super::addresses::with_bus;
use crate::support::{
    process::{self, Running},
    site::{Site, free_port},
};

const OPERATION: i32 = 255;
/// How long each address may take to answer.
const ONE_TRY: Duration = Duration::from_secs(10);

fn listing(site: &Site) -> std::process::Output {
    site.run("get-file-ids", Vec::<String>::new())
}

#[test]
fn a_client_that_no_bus_answers_names_every_address_and_the_last_reason() {
    let site = Site::new(&["north"]);
    let addresses = [free_port(), free_port()].map(|port| format!("127.0.0.1:{port}"));
    let [one, other] = &addresses;
    with_bus(
        &site,
        "client",
        &format!("failover:(stomp://{one},stomp://{other})?maxReconnectDelay=1000"),
    );
    let start = Instant::now();
    let output = listing(&site);
    let took = start.elapsed();
    assert_eq!(output.status.code(), Some(OPERATION));
    let said = process::stderr(&output);
    let (waiting, line) = said.split_once('\n').expect("two lines");
    assert!(waiting.starts_with("waiting for the bus until "), "{said}");
    assert!(waiting.contains(&format!("{one}, {other}")), "{said}");
    assert_eq!(line.lines().count(), 1, "{said}");
    let beginning = format!("pillarbox: no bus answers at {one}, {other}: at 127.0.0.1:");
    assert!(line.starts_with(&beginning), "{said}");
    let place = site.part("client").join("repository.toml");
    let place = format!("[bus] url at {}:6", place.display());
    for words in ["refused", &place] {
        assert!(line.contains(words), "'{words}' is not in: {line}");
    }
    assert!(took >= 2 * ONE_TRY, "it gave up after {took:?}");
}

/// The first address takes its time, and says nothing.
#[test]
fn a_client_gets_to_the_second_address_of_a_list() {
    let site = Site::new(&["north"]);
    let _hub = site.start("hub");
    let _north = site.start("north");
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let silent = silent.local_addr().expect("bound");
    let url = format!(
        "failover:(stomp://{silent},stomp://127.0.0.1:{})",
        site.bus_port
    );
    with_bus(&site, "client", &url);
    process::succeed(&listing(&site));
}

#[test]
fn a_node_says_at_once_for_which_bus_it_waits() {
    let site = Site::new(&["north"]);
    let start = Instant::now();
    let mut north = Running::starting_node(&site.part("north"));
    let line = north.wait_for_error("waiting for the bus");
    assert!(start.elapsed() < ONE_TRY, "took {:?}", start.elapsed());
    let address = format!("no bus answers at 127.0.0.1:{}", site.bus_port);
    assert!(line.contains(&address), "{line}");
    let _hub = site.start("hub");
    north.wait_for("ready");
    north.terminate();
    north.wait_for_success();
}

#[test]
fn an_outage_is_logged_and_told_in_the_status_when_it_is_over() {
    let site = Site::with_restless_bus(&["north"]);
    let mut hub = site.start("hub");
    let mut parts = ["north", "alarms"].map(|part| site.start(part));
    let status = || site.without_collection("get-status", &[]);
    let text = process::succeed(&status());
    assert!(text.contains("bus: connected;"), "{text}");
    for times in ["(", "the last of 2 times"] {
        hub.kill();
        for part in &mut parts {
            let line = part.wait_for_error("the bus is away");
            assert!(line.contains(" WARN "), "{line}");
        }
        hub = site.start("hub");
        for part in &mut parts {
            let line = part.wait_for_error("the bus is back");
            assert!(line.contains("away_since=\"20"), "{line}");
        }
        let text = process::until_success("the pillar answers again", status);
        assert!(text.contains("bus: connected, was away from 20"), "{text}");
        assert!(
            text.contains(times) && text.contains("north \tOK \t"),
            "{text}"
        );
    }
    for part in &mut parts {
        part.terminate();
        part.wait_for_success();
    }
}
