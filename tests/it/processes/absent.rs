//! Durable subscribers that are away, for a while or for ever, with a bus in a process of its own.

use std::{fs, time::Duration};

use crate::support::{
    PATIENCE,
    process::{Running, resident_memory},
    site::Site,
    stomp::{Frame, Next, Stomp},
};

const ALARMS: &str = "/topic/books.alarms";
const PERSISTENT: (&str, &str) = ("persistent", "true");

/// With this said about all durable subscriptions.
fn site_with(limits: &str) -> Site {
    let site = Site::new(&["north"]);
    let file = site.part("bus").join("node.toml");
    let text = fs::read_to_string(&file).expect("can be read");
    let limits = format!("{text}\n[[bus_server.subscriptions]]\n{limits}\n");
    fs::write(&file, limits).expect("can be written");
    site
}

/// Subscribes durably, one message at a time.
#[track_caller]
fn listen(stomp: &mut Stomp) {
    let headers = [
        ("destination", ALARMS),
        ("id", "alarms"),
        ("ack", "client-individual"),
        ("durable-subscription-name", "alarms"),
        ("activemq.prefetchSize", "1"),
        ("receipt", "subscribed"),
    ];
    stomp
        .frame("SUBSCRIBE", &headers, b"")
        .expect("the bus reads");
    match stomp.next(PATIENCE) {
        Next::Frame(frame) if frame.header("receipt-id") == Some("subscribed") => {}
        other => panic!("not subscribed: {other:?}"),
    }
}

/// The next message, acknowledged; receipts of earlier acknowledgements are passed over.
#[track_caller]
fn next_alarm(stomp: &mut Stomp) -> Frame {
    loop {
        match stomp.next(PATIENCE) {
            Next::Frame(frame) if frame.command == "RECEIPT" => {}
            Next::Frame(frame) if frame.command == "MESSAGE" => {
                let id = frame.header("ack").expect("to be acknowledged").to_owned();
                let ack = [("id", id.as_str()), ("receipt", "acknowledged")];
                stomp.frame("ACK", &ack, b"").expect("the bus reads");
                return frame;
            }
            other => panic!("instead of an alarm: {other:?}"),
        }
    }
}

/// 1 for the alarm that a subscription is full.
#[track_caller]
fn is_about_the_limit(alarm: &Frame) -> usize {
    let text = alarm.text();
    assert!(
        text.contains("has reached its limit of 20 messages"),
        "{text}"
    );
    1
}

#[track_caller]
fn leave(mut stomp: Stomp) {
    stomp
        .frame("DISCONNECT", &[("receipt", "bye")], b"")
        .expect("the bus reads");
    while let Next::Frame(frame) = stomp.next(PATIENCE) {
        if frame.header("receipt-id") == Some("bye") {
            return;
        }
    }
    panic!("no receipt of the end");
}

#[test]
fn both_listeners_get_every_alarm_though_one_was_away_and_the_bus_was_killed() {
    let site = Site::new(&["north"]);
    let mut bus: Running = site.start("bus");
    let mut there = Stomp::connect(site.bus_port, Some("desk"));
    listen(&mut there);
    let mut away = Stomp::connect(site.bus_port, Some("night-watch"));
    listen(&mut away);
    let mut sender = Stomp::connect(site.bus_port, None);
    sender.send(ALARMS, &[PERSISTENT], b"0");
    assert_eq!(next_alarm(&mut away).text(), "0");
    leave(away);
    for alarm in ["1", "2", "3"] {
        sender.send(ALARMS, &[PERSISTENT], alarm.as_bytes());
    }
    assert_eq!(next_alarm(&mut there).text(), "0");
    bus.kill();
    let _bus = site.start("bus");
    // Sent before anybody is back.
    let mut sender = Stomp::connect(site.bus_port, None);
    for alarm in ["4", "5"] {
        sender.send(ALARMS, &[PERSISTENT], alarm.as_bytes());
    }
    for client in ["desk", "night-watch"] {
        let mut back = Stomp::connect(site.bus_port, Some(client));
        listen(&mut back);
        let mut came: Vec<String> = Vec::new();
        while came.last().is_none_or(|last| last != "5") {
            let alarm = next_alarm(&mut back);
            assert_eq!(alarm.header("q-gap"), None);
            came.push(alarm.text());
        }
        // What was acknowledged just before the kill may come again.
        came.retain(|alarm| alarm != "0");
        assert_eq!(came, ["1", "2", "3", "4", "5"], "{client}");
    }
}

#[test]
fn e15_a_subscriber_that_stays_away_costs_others_nothing_and_is_told_what_it_missed() {
    const KEPT: usize = 20;
    const SENT: usize = 1_500;
    let site = site_with(&format!("max_messages = {KEPT}"));
    let mut bus: Running = site.start("bus");
    let mut gone = Stomp::connect(site.bus_port, Some("gone"));
    listen(&mut gone);
    leave(gone);
    let mut there = Stomp::connect(site.bus_port, Some("there"));
    listen(&mut there);
    let mut sender = Stomp::connect(site.bus_port, None);
    let body = vec![b'x'; 40_000];
    let before = resident_memory(bus.id());
    let mut alarms = 0;
    for number in 0..SENT {
        let number = number.to_string();
        sender.send(ALARMS, &[PERSISTENT, ("number", &number)], &body);
        let mut came = next_alarm(&mut there);
        while came.header("number").is_none() {
            alarms += is_about_the_limit(&came);
            came = next_alarm(&mut there);
        }
        assert_eq!(came.header("number"), Some(number.as_str()));
        assert_eq!(came.header("q-gap"), None, "who is there misses nothing");
    }
    while alarms == 0 {
        alarms += is_about_the_limit(&next_alarm(&mut there));
    }
    assert_eq!(alarms, 1);
    // 60 MB went through, of which 20 messages stay.
    let grown = resident_memory(bus.id()).saturating_sub(before);
    assert!(grown < 40 << 20, "{grown} bytes more");
    bus.kill();
    let _bus = site.start("bus");
    let mut back = Stomp::connect(site.bus_port, Some("gone"));
    listen(&mut back);
    for number in 0..KEPT {
        let alarm = next_alarm(&mut back);
        assert_eq!(alarm.header("number"), Some(number.to_string().as_str()));
        assert_eq!(alarm.header("q-gap"), None, "nothing is missing before it");
    }
    let mut sender = Stomp::connect(site.bus_port, None);
    sender.send(ALARMS, &[PERSISTENT], b"after");
    let after = next_alarm(&mut back);
    assert_eq!(after.text(), "after");
    // The alarm that told of it would also have been for this one.
    let missed = (SENT - KEPT + alarms).to_string();
    assert_eq!(after.header("q-gap"), Some(missed.as_str()));
    assert!(after.header("q-gap-since").is_some());
    let silent = back.next(Duration::from_millis(100));
    assert!(
        !matches!(&silent, Next::Frame(frame) if frame.command == "MESSAGE"),
        "{silent:?}"
    );
}
