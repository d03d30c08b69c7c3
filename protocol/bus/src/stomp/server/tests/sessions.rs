//! What a well-behaved client of any make relies on.

use std::time::Duration;

use super::Site;
use crate::{
    StompLimits,
    embedded::Command,
    stomp::{
        frame::{Frame, StompCommand},
        testing::Peer,
    },
};

pub(super) fn subscribe(id: &str, destination: &str, ack: &str) -> Frame {
    Frame::new(StompCommand::Subscribe)
        .with("id", id)
        .with("destination", destination)
        .with("ack", ack)
}

pub(super) fn send(destination: &str, body: &str) -> Frame {
    let frame = Frame::new(StompCommand::Send).with("destination", destination);
    Frame {
        body: body.to_owned().into(),
        ..frame
    }
}

pub(super) fn ack(message: &Frame) -> Frame {
    Frame::new(StompCommand::Ack).with("id", message.header("ack").unwrap())
}

pub(super) async fn message(peer: &mut Peer) -> Frame {
    peer.expect(StompCommand::Message).await
}

/// That nothing has been told to the client but what it has read.
pub(super) async fn quiet(peer: &mut Peer) {
    peer.ask(send("/topic/nobody", "")).await;
}

#[tokio::test]
async fn a_message_arrives_as_it_was_sent() {
    let site = Site::start(StompLimits::default()).await;
    let mut peer = site.connect("").await;
    let destination = "topic://t";
    peer.ask(subscribe("my:sub", destination, "client-individual"))
        .await;
    let sent = send(destination, "æøå \0 <xml/>")
        .with("zebra", "1: \\ \n")
        .with("org.bitrepository.messages.signature", "null")
        .with("correlation-id", "c-1")
        .with("reply-to", "/topic/kim's reading desk")
        .with("JMSXGroupID", "g")
        .with("priority", "7")
        .with("amq-msg-type", "text")
        .with("alpha", "2");
    peer.ask(sent).await;
    let got = message(&mut peer).await;
    for (name, value) in [
        ("subscription", "my:sub"),
        ("destination", destination),
        ("correlation-id", "c-1"),
        ("reply-to", "/topic/kim's reading desk"),
        ("JMSXGroupID", "g"),
        ("priority", "7"),
        ("zebra", "1: \\ \n"),
        ("org.bitrepository.messages.signature", "null"),
        ("q-delivery-count", "1"),
        ("q-backout-count", "0"),
    ] {
        assert_eq!(got.header(name), Some(value), "{name}");
    }
    assert_eq!(got.header("redelivered"), None);
    assert!(got.header("timestamp").is_some() && got.header("message-id").is_some());
    let order: Vec<_> = got.headers.iter().map(|(name, _)| name.as_str()).collect();
    assert!(order.ends_with(&[
        "zebra",
        "org.bitrepository.messages.signature",
        "amq-msg-type",
        "alpha"
    ]));
    assert_eq!(got.body, "æøå \0 <xml/>");
}

#[tokio::test]
async fn subscribed_comes_before_the_first_message() {
    let site = Site::start(StompLimits::default()).await;
    let mut peer = site.connect("").await;
    peer.ask(send("/queue/q", "waiting").with("persistent", "true"))
        .await;
    // `ask` accepts nothing but the receipt as the next frame.
    peer.ask(subscribe("1", "/queue/q", "client")).await;
    message(&mut peer).await;
}

#[tokio::test]
async fn receipts_come_in_the_order_of_their_frames() {
    let site = Site::start(StompLimits::default()).await;
    let mut peer = site.connect("").await;
    for number in 0..100 {
        let persistent = (number % 2 == 0).to_string();
        let frame = send("/queue/q", "x").with("persistent", persistent);
        peer.send(frame.with("receipt", number.to_string())).await;
    }
    for number in 0..100 {
        let receipt = peer.expect(StompCommand::Receipt).await;
        assert_eq!(
            receipt.header("receipt-id"),
            Some(number.to_string().as_str())
        );
        assert!(receipt.header("message-id").is_some());
    }
}

#[tokio::test]
async fn nobody_to_send_to_is_no_error() {
    let site = Site::start(StompLimits::default()).await;
    let mut peer = site.connect("").await;
    for destination in [
        "/topic/nobody",
        "/queue/nobody",
        "/remote-temp-queue/1.1.gone",
    ] {
        let receipt = peer.ask(send(destination, "x")).await;
        assert_eq!(
            receipt.header("q-unroutable"),
            Some("true"),
            "{destination}"
        );
    }
    peer.send(subscribe("1", "/topic/nobody", "auto")).await;
    let error = peer.expect_error("NO-QUEUE").await;
    assert!(String::from_utf8_lossy(&error.body).contains("nobody"));
}

#[tokio::test]
async fn client_mode_acknowledges_everything_before() {
    let site = Site::start(StompLimits::default()).await;
    let mut peer = site.connect("").await;
    peer.ask(subscribe("1", "/queue/q", "client")).await;
    for body in ["1", "2", "3"] {
        peer.send(send("/queue/q", body)).await;
    }
    message(&mut peer).await;
    let second = message(&mut peer).await;
    message(&mut peer).await;
    peer.ask(ack(&second)).await;
    peer.ask(Frame::new(StompCommand::Disconnect)).await;
    let mut peer = site.connect("").await;
    peer.ask(subscribe("1", "/queue/q", "client")).await;
    let third = message(&mut peer).await;
    assert_eq!(
        (&*third.body, third.header("redelivered")),
        (&b"3"[..], Some("true"))
    );
    // It came back in good order: that counts as nobody's failure.
    assert_eq!(third.header("q-backout-count"), Some("0"));
    assert_eq!(third.header("q-delivery-count"), Some("2"));
}

#[tokio::test]
async fn e01_a_client_lost_before_its_acknowledgement_is_given_the_message_again_and_counted() {
    let site = Site::start(StompLimits::default()).await;
    let mut peer = site.connect("").await;
    peer.ask(subscribe("1", "/queue/q", "client-individual"))
        .await;
    peer.ask(send("/queue/q", "1")).await;
    let first = message(&mut peer).await;
    drop(peer);
    let mut peer = site.connect("").await;
    peer.ask(subscribe("1", "/queue/q", "client-individual"))
        .await;
    let again = message(&mut peer).await;
    assert_eq!(again.header("message-id"), first.header("message-id"));
    assert_ne!(again.header("ack"), first.header("ack"));
    assert_eq!(again.header("redelivered"), Some("true"));
    assert_eq!(again.header("q-backout-count"), Some("1"));
    // What the first delivery was called acknowledges nothing now.
    peer.send(ack(&first)).await;
    peer.expect_error("STALE-ACK").await;
}

#[tokio::test]
async fn a_full_bus_is_not_its_consumers_fault() {
    let site = Site::small(3_000).await;
    let mut peer = site.connect("").await;
    peer.ask(subscribe("1", "/queue/q", "client-individual"))
        .await;
    peer.ask(send("/queue/q", "1")).await;
    message(&mut peer).await;
    let large = Frame {
        body: vec![b'x'; 3_000].into(),
        ..send("/queue/q", "")
    };
    peer.send(large).await;
    peer.expect_error("NO-SPACE").await;
    let mut peer = site.connect("").await;
    peer.ask(subscribe("1", "/queue/q", "client-individual"))
        .await;
    let again = message(&mut peer).await;
    assert_eq!(again.header("redelivered"), Some("true"));
    assert_eq!(again.header("q-backout-count"), Some("0"));
}

#[tokio::test]
async fn a_server_that_stops_confirms_what_it_has_kept() {
    let site = Site::start(StompLimits::default()).await;
    let mut peer = site.connect("").await;
    for _ in 0..100 {
        let frame = send("/queue/q", "x").with("persistent", "true");
        peer.send(frame.with("receipt", "s")).await;
    }
    while site.broker.stats().messages == 0 {
        tokio::task::yield_now().await;
    }
    site.server.shutdown().await;
    let mut receipts = 0;
    while let Some(frame) = peer.next().await {
        assert_eq!(frame.command, StompCommand::Receipt);
        receipts += 1;
    }
    assert_eq!(receipts, site.broker.stats().messages);
}

#[tokio::test]
async fn no_acknowledgement_where_none_is_due() {
    let site = Site::start(StompLimits::default()).await;
    let mut peer = site.connect("").await;
    peer.ask(subscribe("1", "/queue/q", "auto")).await;
    peer.ask(send("/queue/q", "1")).await;
    assert_eq!(message(&mut peer).await.header("ack"), None);
    peer.ask(Frame::new(StompCommand::Disconnect)).await;
    let mut peer = site.connect("").await;
    peer.ask(subscribe("1", "/queue/q", "client")).await;
    peer.expect_nothing(Duration::from_millis(50)).await;
}

#[tokio::test]
async fn transactions_happen_whole_or_not_at_all() {
    let site = Site::start(StompLimits::default()).await;
    let mut peer = site.connect("").await;
    peer.ask(subscribe("1", "/topic/t", "auto")).await;
    let begin = Frame::new(StompCommand::Begin).with("transaction", "a");
    peer.ask(begin.clone()).await;
    peer.ask(send("/topic/t", "dropped").with("transaction", "a"))
        .await;
    peer.ask(Frame::new(StompCommand::Abort).with("transaction", "a"))
        .await;
    peer.ask(begin.clone()).await;
    peer.ask(send("/topic/t", "kept").with("transaction", "a"))
        .await;
    peer.expect_nothing(Duration::from_millis(50)).await;
    peer.send(Frame::new(StompCommand::Commit).with("transaction", "a"))
        .await;
    let got = message(&mut peer).await;
    assert_eq!(got.body, "kept");
    assert_eq!(got.header("transaction"), None);
    peer.ask(begin.clone()).await;
    peer.send(begin).await;
    peer.expect_error("INVALID").await;
}

#[tokio::test]
async fn durable_subscriptions_collect_and_can_be_deleted() {
    let site = Site::start(StompLimits::default()).await;
    let durable = subscribe("1", "/topic/t", "client").with("durable-subscription-name", "alarms");
    let mut sender = site.connect("").await;
    sender.send(durable.clone()).await;
    sender.expect_error("INVALID").await;

    let mut peer = site.connect("service").await;
    peer.ask(durable.clone()).await;
    peer.ask(Frame::new(StompCommand::Disconnect)).await;
    let mut sender = site.connect("").await;
    sender
        .ask(send("/topic/t", "alarm").with("persistent", "true"))
        .await;
    let mut peer = site.connect("service").await;
    peer.ask(durable.clone()).await;
    assert_eq!(message(&mut peer).await.header("persistent"), Some("true"));
    peer.send(subscribe("2", "/topic/t", "client").with("activemq.subscriptionName", "alarms"))
        .await;
    peer.expect_error("SUBSCRIPTION-IN-USE").await;

    let mut peer = site.connect("service").await;
    peer.ask(durable.clone()).await;
    message(&mut peer).await;
    let cancel = Frame::new(StompCommand::Unsubscribe).with("id", "1");
    peer.ask(cancel.with("activemq.subscriptionName", "alarms"))
        .await;
    peer.ask(durable).await;
    peer.expect_nothing(Duration::from_millis(50)).await;
}

#[tokio::test]
async fn b37_nothing_comes_after_the_receipt_of_unsubscribe() {
    let site = Site::start(StompLimits::default()).await;
    let mut peer = site.connect("").await;
    peer.ask(subscribe("1", "/topic/t", "auto")).await;
    let mut sender = site.connect("").await;
    for _ in 0..100 {
        sender.send(send("/topic/t", "x")).await;
    }
    peer.send(
        Frame::new(StompCommand::Unsubscribe)
            .with("id", "1")
            .with("receipt", "u"),
    )
    .await;
    while peer.next().await.unwrap().command == StompCommand::Message {}
    sender.ask(send("/topic/t", "y")).await;
    peer.expect_nothing(Duration::from_millis(50)).await;
    // The id can be used again.
    peer.ask(subscribe("1", "/topic/t", "auto")).await;
}

#[tokio::test]
async fn e20_temporary_queues_carry_answers_to_their_owners_only() {
    let site = Site::start(StompLimits::default()).await;
    let mut asking = site.connect("").await;
    asking
        .ask(subscribe("answers", "/temp-queue/here", "auto"))
        .await;
    let mut answering = site.connect("").await;
    answering.ask(subscribe("1", "/topic/t", "auto")).await;
    asking
        .ask(send("/topic/t", "question").with("reply-to", "/temp-queue/here"))
        .await;
    let reply_to = message(&mut answering)
        .await
        .header("reply-to")
        .unwrap()
        .to_owned();
    assert!(reply_to.starts_with("/remote-temp-queue/"), "{reply_to}");
    answering.ask(send(&reply_to, "answer")).await;
    assert_eq!(message(&mut asking).await.body, "answer");
    // Only its owner may listen.
    answering.send(subscribe("2", &reply_to, "auto")).await;
    assert_eq!(answering.next().await.unwrap().command, StompCommand::Error);
    // And it ends with its owner.
    asking.ask(Frame::new(StompCommand::Disconnect)).await;
    let mut answering = site.connect("").await;
    let receipt = answering.ask(send(&reply_to, "too late")).await;
    assert_eq!(receipt.header("q-unroutable"), Some("true"));
}

#[tokio::test]
async fn a_client_id_is_for_one_live_connection() {
    let site = Site::start(StompLimits::default()).await;
    let mut first = site.connect("pillar 1").await;
    let mut second = site.dial().await;
    let connect = Frame::new(StompCommand::Connect)
        .with("accept-version", "1.2")
        .with("client-id", "pillar 1");
    second.send(connect).await;
    let error = second.expect_error("CLIENT-ID-IN-USE").await;
    assert!(String::from_utf8_lossy(&error.body).contains("pillar 1"));
    first.ask(Frame::new(StompCommand::Disconnect)).await;
    site.connect("pillar 1").await;
}

/// Also without heart-beats, when there is nothing to read, to write or to be reminded of for a while.
#[tokio::test]
async fn a_queue_manager_that_is_behind_is_waited_for() {
    let site = Site::start(StompLimits::default()).await;
    let mut peer = site.connect("").await;
    peer.ask(send("/queue/q", "x")).await;
    let (busy, _events) = site.broker.connect("busy").unwrap().split();
    let unsubscribe = Command::Unsubscribe {
        subscription: 1,
        token: 0,
    };
    peer.send(send("/queue/q", "x").with("receipt", "late"))
        .await;
    // The server's task finds the channel full whenever it looks.
    for _ in 0..100 {
        while busy.try_submit(unsubscribe.clone()) {}
        tokio::task::yield_now().await;
    }
    let receipt = peer.expect(StompCommand::Receipt).await;
    assert_eq!(receipt.header("receipt-id"), Some("late"));
}

/// The receipt comes before the end, with work pending and messages unread.
#[tokio::test]
async fn b18_disconnect_is_confirmed_after_everything_before_it() {
    let site = Site::start(StompLimits::default()).await;
    let mut peer = site.connect("").await;
    peer.ask(subscribe("1", "/queue/q", "client")).await;
    for _ in 0..200 {
        peer.send(
            send("/queue/q", "x")
                .with("persistent", "true")
                .with("receipt", "s"),
        )
        .await;
    }
    peer.send(Frame::new(StompCommand::Disconnect).with("receipt", "bye"))
        .await;
    let mut receipts = 0;
    let last = loop {
        let frame = peer.next().await.expect("closed before the receipt");
        match frame.header("receipt-id") {
            Some("s") => receipts += 1,
            Some(_) => break frame,
            None => assert_eq!(frame.command, StompCommand::Message),
        }
    };
    assert_eq!((last.header("receipt-id"), receipts), (Some("bye"), 200));
    assert_eq!(peer.next().await, None);
}

#[tokio::test]
async fn messages_expire_by_their_time_to_live() {
    let site = Site::start(StompLimits::default()).await;
    let mut peer = site.connect("").await;
    peer.ask(send("/queue/q", "gone").with("q-ttl", "1")).await;
    peer.ask(send("/queue/q", "kept").with("q-ttl", "60000"))
        .await;
    tokio::time::sleep(Duration::from_millis(20)).await;
    peer.ask(subscribe("1", "/queue/q", "auto")).await;
    let got = message(&mut peer).await;
    assert_eq!(got.body, "kept");
    assert!(got.header("expires").is_some());
}
