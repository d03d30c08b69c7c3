//! What users of other buses have reported, each named after its row in the table of such reports (b08: ids with
//! colons, and so on).

use std::time::Duration;

use super::{
    Site,
    logged::Logged,
    sessions::{ack, message, quiet, send, subscribe},
};
use crate::{
    StompLimits,
    stomp::{
        frame::{Frame, StompCommand},
        testing::Peer,
    },
};

const QUEUE: &str = "/queue/q";

async fn beating(site: &Site, heart_beat: &str) -> Peer {
    let mut peer = site.dial().await;
    let connect = Frame::new(StompCommand::Connect)
        .with("accept-version", "1.2")
        .with("heart-beat", heart_beat);
    peer.send(connect).await;
    peer.expect(StompCommand::Connected).await;
    peer
}

fn every(interval: Duration) -> StompLimits {
    StompLimits {
        heart_beat: interval,
        ..StompLimits::default()
    }
}

#[tokio::test]
async fn b08_names_with_colons_are_escaped_and_come_back_as_they_were() {
    let site = Site::start(StompLimits::default()).await;
    let mut asking = site.connect("").await;
    let own = "/temp-queue/an:swers";
    asking.ask(subscribe("s:1\\", own, "client")).await;
    let mut answering = site.connect("").await;
    answering.ask(subscribe("q", QUEUE, "client")).await;
    asking.ask(send(QUEUE, "?").with("reply-to", own)).await;
    let raw = String::from_utf8(answering.raw_frame().await).unwrap();
    let line = raw.lines().find(|line| line.starts_with("reply-to:"));
    let reply_to = line.unwrap().strip_prefix("reply-to:").unwrap();
    assert!(reply_to.ends_with("an\\cswers"), "{reply_to}");
    let reply_to = reply_to.replace("\\c", ":");
    answering.ask(send(&reply_to, "!")).await;
    let raw = String::from_utf8(asking.raw_frame().await).unwrap();
    assert!(raw.contains("\nsubscription:s\\c1\\\\\n"), "{raw}");
    let value = |name: &str| {
        let line = raw.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap().to_owned()
    };
    assert!(!value("message-id:").contains(':'));
    asking
        .ask(Frame::new(StompCommand::Ack).with("id", value("ack:")))
        .await;
}

#[tokio::test]
async fn b14_a_message_goes_to_another_only_when_its_consumers_connection_is_closed() {
    const INTERVAL: Duration = Duration::from_millis(500);
    let site = Site::start(every(INTERVAL)).await;
    let mut busy = beating(&site, "500,0").await;
    busy.ask(subscribe("1", QUEUE, "client-individual")).await;
    busy.send(send(QUEUE, "long work")).await;
    let held = message(&mut busy).await;
    let mut other = site.connect("").await;
    other.ask(subscribe("1", QUEUE, "client-individual")).await;
    for _ in 0..10 {
        tokio::time::sleep(INTERVAL / 2).await;
        busy.raw(b"\n").await;
        quiet(&mut other).await;
    }
    assert_eq!(busy.next().await, None, "it was silent in the end");
    let again = message(&mut other).await;
    assert_eq!(again.header("message-id"), held.header("message-id"));
    let mut late = site.connect("").await;
    late.send(ack(&held)).await;
    late.expect_error("STALE-ACK").await;
    other.ask(ack(&again)).await;
    assert_eq!(site.broker.stats().messages, 0);
}

#[tokio::test]
async fn e29_a_stuck_consumer_is_told_and_closed_before_another_has_its_message() {
    let site = Site::start(StompLimits::default()).await;
    let mut stuck = site.connect("").await;
    let limited = |frame: Frame| frame.with("q-ack-timeout", "300");
    stuck
        .ask(limited(subscribe("1", QUEUE, "client-individual")))
        .await;
    stuck.ask(send(QUEUE, "hard work")).await;
    let held = message(&mut stuck).await;
    let mut other = site.connect("").await;
    other.ask(subscribe("1", QUEUE, "client-individual")).await;
    quiet(&mut other).await;
    let error = stuck.expect_error("ACK-TIMEOUT").await;
    let told = String::from_utf8(error.body.to_vec()).unwrap();
    assert!(
        told.contains("subscription '1'") && told.contains("300 ms"),
        "{told}"
    );
    let again = message(&mut other).await;
    assert_eq!(again.header("message-id"), held.header("message-id"));
    assert_eq!(again.header("q-backout-count"), Some("1"));
    assert_eq!(site.broker.stats().connections, 1, "the first had gone");
    other.ask(ack(&again)).await;
}

#[tokio::test]
async fn b17_many_silent_clients_at_once_are_closed_with_one_warning_each() {
    const CLIENTS: usize = 200;
    let (logged, _guard) = Logged::start();
    let site = Site::start(every(Duration::from_millis(200))).await;
    let mut healthy = site.connect("").await;
    let mut silent = Vec::new();
    for _ in 0..CLIENTS {
        silent.push(beating(&site, "200,0").await);
    }
    for mut peer in silent {
        assert_eq!(peer.next().await, None);
    }
    quiet(&mut healthy).await;
    assert_eq!(site.broker.stats().connections, 1);
    assert_eq!(logged.warnings("bus client given up"), CLIENTS);
    assert_eq!(logged.warnings(""), CLIENTS);
}
