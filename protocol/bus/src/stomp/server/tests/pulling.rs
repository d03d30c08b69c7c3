//! Queues with attributes, single messages and looks, as clients on the wire have them.

use super::{
    Site,
    sessions::{ack, message, quiet, send, subscribe},
};
use crate::{
    LaneHash, Lanes, OutOfOrder, QueueAttributes, QueueDefinition, StompLimits,
    stomp::{
        frame::{Frame, StompCommand},
        testing::Peer,
    },
};

fn get(id: &str, destination: &str) -> Frame {
    subscribe(id, destination, "client-individual").with("q-get", "1")
}

fn body(frame: &Frame) -> &str {
    std::str::from_utf8(&frame.body).unwrap()
}

async fn nack(peer: &mut Peer, message: &Frame) {
    let id = message.header("ack").unwrap().to_owned();
    peer.ask(Frame::new(StompCommand::Nack).with("id", id))
        .await;
}

fn queue(name: &str, attributes: QueueAttributes) -> QueueDefinition {
    QueueDefinition {
        name: name.to_owned(),
        attributes,
        drain: false,
    }
}

#[tokio::test]
async fn one_message_is_got_and_the_id_is_free_again() {
    let site = Site::start(StompLimits::default()).await;
    let mut peer = site.connect("").await;
    peer.ask(get("g", "/queue/q")).await;
    let none = message(&mut peer).await;
    assert_eq!(none.header("q-get"), Some("none"));
    assert_eq!(none.header("subscription"), Some("g"));
    assert_eq!(none.header("destination"), Some("/queue/q"));
    assert_eq!(none.header("ack"), None);
    for (text, color) in [("1", "red"), ("2", "blue"), ("3", "red")] {
        let sent = send("/queue/q", text).with("color", color);
        peer.ask(sent.with("correlation-id", color)).await;
    }
    peer.ask(get("g", "/queue/q").with("selector", "color = 'blue'"))
        .await;
    let second = message(&mut peer).await;
    assert_eq!(body(&second), "2");
    peer.ask(get("g", "/queue/q").with("selector", "JMSCorrelationID = 'red'"))
        .await;
    let first = message(&mut peer).await;
    assert_eq!(body(&first), "1");
    peer.ask(get("g", "/queue/q").with("selector", "color = 'blue'"))
        .await;
    let held = message(&mut peer).await;
    assert_eq!(held.header("q-in-use"), Some("true"), "it is in hand");
    peer.ask(ack(&second)).await;
    nack(&mut peer, &first).await;
    quiet(&mut peer).await;
    assert_eq!(site.broker.stats().messages, 2);
}

#[tokio::test]
async fn a_get_waits_for_its_message_and_not_longer_than_it_may() {
    let site = Site::start(StompLimits::default()).await;
    let (mut one, mut other) = (site.connect("").await, site.connect("").await);
    one.ask(get("short", "/queue/q").with("q-wait", "20")).await;
    assert_eq!(message(&mut one).await.header("q-get"), Some("none"));
    one.ask(get("long", "/queue/q").with("q-wait", "600000"))
        .await;
    other.ask(send("/queue/q", "came")).await;
    let came = message(&mut one).await;
    assert_eq!(
        (body(&came), came.header("subscription")),
        ("came", Some("long"))
    );
    one.ask(ack(&came)).await;
    one.ask(get("gone", "/queue/q").with("q-wait", "600000"))
        .await;
    one.ask(Frame::new(StompCommand::Unsubscribe).with("id", "gone"))
        .await;
    other.ask(send("/queue/q", "stays")).await;
    quiet(&mut one).await;
    assert_eq!(site.broker.stats().messages, 1);
}

#[tokio::test]
async fn looking_takes_nothing() {
    let site = Site::start(StompLimits::default()).await;
    let mut peer = site.connect("").await;
    for text in ["1", "2", "3"] {
        peer.ask(send("/queue/q", text)).await;
    }
    for _ in 0..2 {
        peer.ask(subscribe("b", "/queue/q", "auto").with("browser", "true"))
            .await;
        for text in ["1", "2", "3"] {
            let seen = message(&mut peer).await;
            assert_eq!((body(&seen), seen.header("ack")), (text, None));
        }
        let end = message(&mut peer).await;
        assert_eq!(end.header("browser"), Some("end"));
        assert_eq!(end.header("subscription"), Some("b"));
    }
    assert_eq!(site.broker.stats().messages, 3);
}

#[tokio::test]
async fn messages_jump_a_queue_that_lets_them() {
    let out_of_order = OutOfOrder {
        top: true,
        before: true,
    };
    let attributes = QueueAttributes {
        out_of_order,
        ..QueueAttributes::default()
    };
    let site = Site::with_queues(vec![queue("tickets", attributes)]).await;
    let mut peer = site.connect("").await;
    let sent = send("/queue/tickets", "2").with("receipt", "r");
    peer.send(sent).await;
    let receipt = peer.expect(StompCommand::Receipt).await;
    let id = receipt.header("message-id").unwrap().to_owned();
    peer.ask(send("/queue/tickets", "3")).await;
    peer.ask(send("/queue/tickets", "1").with("q-before", &id))
        .await;
    peer.ask(send("/queue/tickets", "0").with("q-top", "true"))
        .await;
    peer.ask(subscribe("s", "/queue/tickets", "client")).await;
    for text in ["0", "1", "2", "3"] {
        assert_eq!(body(&message(&mut peer).await), text);
    }
    let mut other = site.connect("").await;
    other
        .send(send("/queue/tickets", "x").with("q-before", &id))
        .await;
    let error = other.expect(StompCommand::Error).await;
    assert_eq!(error.header("message"), Some("BAD-ID"), "it is in hand");
    let mut third = site.connect("").await;
    third
        .send(send("/queue/q", "x").with("q-top", "true"))
        .await;
    let error = third.expect(StompCommand::Error).await;
    assert_eq!(error.header("message"), Some("INVALID"));
}

/// A router outside sends to one of the lanes by itself; its consumers take one lane each.
#[tokio::test]
async fn lanes_are_addressed_from_outside() {
    let attributes = QueueAttributes {
        lanes: Lanes::Hashed {
            count: 4,
            hash: LaneHash::JavaString,
        },
        ..QueueAttributes::default()
    };
    let site = Site::with_queues(vec![queue("OMS.ORDER.EVENTS", attributes)]).await;
    let mut listeners = Vec::new();
    for lane in 0..4 {
        let mut listener = site.connect("").await;
        let lane = format!("/queue/OMS.ORDER.EVENTS.{lane}");
        listener
            .ask(subscribe("s", &lane, "client-individual"))
            .await;
        listeners.push(listener);
    }
    let mut router = site.connect("").await;
    // Java: Math.floorMod("ORDER-1".hashCode(), 4) is 2.
    router
        .ask(send("/queue/OMS.ORDER.EVENTS.2", "routed"))
        .await;
    router
        .ask(send("/queue/OMS.ORDER.EVENTS", "grouped").with("JMSXGroupID", "ORDER-1"))
        .await;
    let first = message(&mut listeners[2]).await;
    assert_eq!(body(&first), "routed");
    assert_eq!(
        first.header("destination"),
        Some("/queue/OMS.ORDER.EVENTS.2")
    );
    assert_eq!(first.header("JMSXGroupFirstForConsumer"), Some("true"));
    quiet(&mut listeners[2]).await;
    listeners[2].ask(ack(&first)).await;
    let second = message(&mut listeners[2]).await;
    assert_eq!(body(&second), "grouped");
    assert_eq!(
        second.header("destination"),
        Some("/queue/OMS.ORDER.EVENTS")
    );
    assert_eq!(second.header("JMSXGroupFirstForConsumer"), None);
    for listener in &mut listeners {
        quiet(listener).await;
    }
}

#[tokio::test]
async fn b24_how_often_a_message_came_and_failed_is_told_over_a_restart_too() {
    let site = Site::with_queues(Vec::new()).await;
    let mut sender = site.connect("").await;
    sender
        .ask(send("/queue/q", "x").with("persistent", "true"))
        .await;
    let told = |frame: &Frame| {
        ["redelivered", "q-delivery-count", "q-backout-count"]
            .map(|name| frame.header(name).map(str::to_owned))
    };
    let of = |values: [Option<&str>; 3]| values.map(|it| it.map(str::to_owned));
    let mut first = site.connect("").await;
    first
        .ask(subscribe("s", "/queue/q", "client-individual"))
        .await;
    let got = message(&mut first).await;
    assert_eq!(told(&got), of([None, Some("1"), Some("0")]));
    drop(first);
    let mut second = site.connect("").await;
    second
        .ask(subscribe("s", "/queue/q", "client-individual"))
        .await;
    let got = message(&mut second).await;
    assert_eq!(told(&got), of([Some("true"), Some("2"), Some("1")]));
    let site = site.restart().await;
    let mut third = site.connect("").await;
    third
        .ask(subscribe("s", "/queue/q", "client-individual"))
        .await;
    let got = message(&mut third).await;
    assert_eq!(told(&got), of([Some("true"), Some("3"), Some("1")]));
}

#[tokio::test]
async fn b20_what_is_refused_comes_again_and_is_moved_aside_at_the_limit() {
    let mut attributes = QueueAttributes {
        backout_limit: Some(2),
        backout_queue: Some("aside".to_owned()),
        ..QueueAttributes::default()
    };
    attributes.retry_delay.initial_ms = 1;
    let site = Site::with_queues(vec![queue("work", attributes)]).await;
    let mut peer = site.connect("").await;
    peer.ask(subscribe("s", "/queue/work", "client-individual"))
        .await;
    peer.ask(send("/queue/work", "bad").with("persistent", "true"))
        .await;
    for count in ["0", "1"] {
        let got = message(&mut peer).await;
        assert_eq!(got.header("q-backout-count"), Some(count));
        nack(&mut peer, &got).await;
    }
    peer.ask(subscribe("aside", "/queue/aside", "client-individual"))
        .await;
    let moved = message(&mut peer).await;
    for (name, value) in [
        ("q-backout-count", "2"),
        ("q-reason", "backout"),
        ("q-failure-cause", "refused"),
        ("original-destination", "/queue/work"),
    ] {
        assert_eq!(moved.header(name), Some(value), "{name}");
    }
    assert!(moved.header("q-failed-at").is_some());
}

/// Four listeners, one for each lane. What the bus puts into a lane by its message group, and what a router outside sends
/// there by Java's `Math.floorMod(key.hashCode(), 4)`, comes to the same listener, and in order.
#[tokio::test]
async fn a_router_outside_and_the_bus_agree_message_by_message() {
    const ORDERS: &str = "/queue/OMS.ORDER.EVENTS";
    // With their hash codes, as Java has computed them.
    const KEYS: [(&str, i32); 8] = [
        ("a", 97),
        ("hello", 99_162_322),
        ("polygenelubricants", i32::MIN),
        ("ORDER-1", -489_127_598),
        ("4711", 1_603_555),
        ("order-20", 1_234_255_133),
        ("\u{1F600}", 1_772_899),
        ("a\u{1F600}z", 57_849_718),
    ];
    let hash = LaneHash::JavaString;
    let attributes = QueueAttributes {
        lanes: Lanes::Hashed { count: 4, hash },
        ..QueueAttributes::default()
    };
    let site = Site::with_queues(vec![queue("OMS.ORDER.EVENTS", attributes)]).await;
    let mut listeners = Vec::new();
    for lane in 0..4 {
        let mut listener = site.connect("").await;
        let from = format!("{ORDERS}.{lane}");
        listener
            .ask(subscribe("s", &from, "client-individual"))
            .await;
        listeners.push(listener);
    }
    let (mut router, mut sender) = (site.connect("").await, site.connect("").await);
    let mut expected: [Vec<String>; 4] = Default::default();
    for round in 0..3 {
        for (key, code) in KEYS {
            let lane = usize::try_from(code.rem_euclid(4)).unwrap();
            let (ours, theirs) = (
                format!("{key} {round} ours"),
                format!("{key} {round} theirs"),
            );
            sender
                .ask(send(ORDERS, &ours).with("JMSXGroupID", key))
                .await;
            router.ask(send(&format!("{ORDERS}.{lane}"), &theirs)).await;
            expected[lane].extend([ours, theirs]);
        }
    }
    for (listener, expected) in listeners.iter_mut().zip(expected) {
        assert!(!expected.is_empty());
        for text in expected {
            let came = message(listener).await;
            assert_eq!(body(&came), text);
            listener.ask(ack(&came)).await;
        }
        quiet(listener).await;
    }
    assert_eq!(site.broker.stats().messages, 0);
}

/// One of a queue with lanes, if the client asks for no number: others go to who else is there.
#[tokio::test]
async fn who_acknowledges_has_one_message_of_a_queue_with_lanes_at_a_time() {
    let attributes = QueueAttributes {
        lanes: Lanes::Key,
        ..QueueAttributes::default()
    };
    let site = Site::with_queues(vec![queue("keyed", attributes)]).await;
    let (mut one, mut other) = (site.connect("").await, site.connect("").await);
    let keyed = || subscribe("s", "/queue/keyed", "client");
    one.ask(keyed()).await;
    for key in ["a", "b", "c"] {
        let sent = send("/queue/keyed", key).with("JMSXGroupID", key);
        other.ask(sent).await;
    }
    assert_eq!(body(&message(&mut one).await), "a");
    quiet(&mut one).await;
    other.ask(keyed().with("activemq.prefetchSize", "5")).await;
    for key in ["b", "c"] {
        assert_eq!(body(&message(&mut other).await), key);
    }
    // Elsewhere it has 32.
    one.ask(subscribe("q", "/queue/q", "client-individual"))
        .await;
    for number in 0..33 {
        other.ask(send("/queue/q", &number.to_string())).await;
    }
    let mut came = Vec::new();
    for number in 0..32 {
        let next = message(&mut one).await;
        assert_eq!(body(&next), number.to_string());
        came.push(next);
    }
    quiet(&mut one).await;
    one.ask(ack(&came[0])).await;
    assert_eq!(body(&message(&mut one).await), "32");
}
