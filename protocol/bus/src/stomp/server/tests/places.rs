//! Edge cases of places where messages go, each named after its row in the table of what must come of them: durable
//! subscriptions, topics, temporary queues, room.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

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
const TOPIC: &str = "/topic/t";

fn durable(ack: &str) -> Frame {
    subscribe("1", TOPIC, ack).with("activemq.subscriptionName", "kept")
}

/// Makes the durable subscription of `service`, and leaves.
async fn make_durable(site: &Site) {
    let mut service = site.connect("service").await;
    service.ask(durable("client-individual")).await;
    service.ask(Frame::new(StompCommand::Disconnect)).await;
}

fn connect(client_id: &str, heart_beat: &str) -> Frame {
    Frame::new(StompCommand::Connect)
        .with("accept-version", "1.2")
        .with("client-id", client_id)
        .with("heart-beat", heart_beat)
}

#[tokio::test]
async fn e12_of_two_subscribers_of_one_name_the_first_keeps_it_until_its_heart_stops() {
    let limits = StompLimits {
        heart_beat: Duration::from_millis(500),
        ..StompLimits::default()
    };
    let site = Site::start(limits).await;
    let mut first = site.dial().await;
    first.send(connect("service", "500,0")).await;
    first.expect(StompCommand::Connected).await;
    first.ask(durable("client-individual")).await;
    let mut second = site.dial().await;
    second.send(connect("service", "0,0")).await;
    second.expect_error("CLIENT-ID-IN-USE").await;
    first.send(send(TOPIC, "x")).await;
    message(&mut first).await;
    // The first is as good as dead now: within two intervals its id and its subscription are free.
    let mut second = loop {
        let mut second = site.dial().await;
        second.send(connect("service", "0,0")).await;
        let answer = second.next().await.unwrap();
        if answer.command == StompCommand::Connected {
            break second;
        }
        assert_eq!(answer.header("message"), Some("CLIENT-ID-IN-USE"));
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert_eq!(first.next().await, None);
    second.ask(durable("client-individual")).await;
    let again = message(&mut second).await;
    assert_eq!(again.header("redelivered"), Some("true"));
    second
        .send(durable("client-individual").with("id", "2"))
        .await;
    second.expect(StompCommand::Error).await;
}

#[tokio::test]
async fn e13_a_durable_subscription_of_another_topic_is_refused_and_keeps_its_backlog() {
    let site = Site::start(StompLimits::default()).await;
    make_durable(&site).await;
    let mut sender = site.connect("").await;
    sender.ask(send(TOPIC, "kept")).await;
    let mut service = site.connect("service").await;
    let other = subscribe("1", "/topic/client x", "client");
    service
        .send(other.with("activemq.subscriptionName", "kept"))
        .await;
    service.expect_error("SUBSCRIPTION-MISMATCH").await;
    let mut service = site.connect("service").await;
    service.ask(durable("client-individual")).await;
    assert_eq!(message(&mut service).await.body, "kept");
}

#[tokio::test]
async fn e14_a_durable_subscription_without_acknowledgement_loses_what_was_taken_and_that_is_logged()
 {
    let (logged, _guard) = Logged::start();
    let site = Site::start(StompLimits::default()).await;
    let mut service = site.connect("service").await;
    service.ask(durable("auto")).await;
    assert_eq!(logged.warnings("automatic acknowledgement"), 1);
    let mut sender = site.connect("").await;
    sender.ask(send(TOPIC, "taken")).await;
    message(&mut service).await;
    drop(service);
    while site.broker.stats().connections > 1 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    sender.ask(send(TOPIC, "not yet")).await;
    let mut service = site.connect("service").await;
    service.ask(durable("auto")).await;
    assert_eq!(message(&mut service).await.body, "not yet");
    quiet(&mut service).await;
}

#[tokio::test]
async fn e16_a_volatile_message_waits_for_an_absent_subscriber_but_not_for_the_bus() {
    let site = Site::start(StompLimits::default()).await;
    make_durable(&site).await;
    let volatile = |body| send(TOPIC, body).with("persistent", "false");
    let mut sender = site.connect("").await;
    sender.ask(volatile("1")).await;
    let mut service = site.connect("service").await;
    service.ask(durable("client-individual")).await;
    let first = message(&mut service).await;
    assert_eq!(
        (&*first.body, first.header("persistent")),
        (&b"1"[..], None)
    );
    service.ask(ack(&first)).await;
    service.ask(Frame::new(StompCommand::Disconnect)).await;
    sender.ask(volatile("2")).await;
    sender.ask(send(TOPIC, "3")).await;
    drop(sender);
    let site = site.restart().await;
    let mut service = site.connect("service").await;
    service.ask(durable("client-individual")).await;
    assert_eq!(message(&mut service).await.body, "3");
    quiet(&mut service).await;
}

#[tokio::test]
async fn e17_a_message_to_a_topic_that_nobody_listens_to_is_dropped_and_counted() {
    let site = Site::start(StompLimits::default()).await;
    let mut sender = site.connect("").await;
    let receipt = sender
        .ask(send(TOPIC, "x").with("persistent", "true"))
        .await;
    assert_eq!(receipt.header("q-unroutable"), None, "the topic is known");
    assert_eq!(site.broker.stats().unroutable, 1);
    let mut late = site.connect("").await;
    late.ask(subscribe("1", TOPIC, "auto")).await;
    quiet(&mut late).await;
}

/// What is sent after the receipt of SUBSCRIBE comes, all of it, whatever was sent before.
#[tokio::test]
async fn e18_the_receipt_of_a_subscription_is_the_border() {
    const MESSAGES: usize = 4000;
    let site = Site::start(StompLimits::default()).await;
    let begun = Arc::new(AtomicUsize::new(0));
    let mut sender = site.connect("").await;
    let counter = Arc::clone(&begun);
    let sending = tokio::spawn(async move {
        for number in 1..=MESSAGES {
            counter.store(number, Ordering::SeqCst);
            let frame = Frame {
                body: number.to_string().into(),
                ..send(TOPIC, "")
            };
            if number % 50 == 0 {
                sender.ask(frame).await;
            } else {
                sender.send(frame).await;
            }
        }
    });
    let mut between = 0;
    while begun.load(Ordering::SeqCst) < MESSAGES {
        let mut subscriber = site.connect("").await;
        subscriber.ask(subscribe("1", TOPIC, "auto")).await;
        let border = begun.load(Ordering::SeqCst);
        if border == MESSAGES {
            break;
        }
        between += 1;
        let first = number_of(&mut subscriber).await;
        assert!(first <= border + 1, "{first}, {border}");
        for expected in first + 1..=(first + 100).min(MESSAGES) {
            assert_eq!(number_of(&mut subscriber).await, expected);
        }
    }
    sending.await.unwrap();
    assert!(between > 3, "{between} subscriptions are no test");
}

async fn number_of(subscriber: &mut Peer) -> usize {
    let message = message(subscriber).await;
    str::from_utf8(&message.body).unwrap().parse().unwrap()
}

#[tokio::test]
async fn e19_an_answer_to_an_owner_who_has_gone_is_dropped_and_counted_and_its_request_is_done() {
    let site = Site::start(StompLimits::default()).await;
    let mut asking = site.connect("").await;
    asking
        .ask(subscribe("answers", "/temp-queue/here", "auto"))
        .await;
    asking
        .ask(send(QUEUE, "question").with("reply-to", "/temp-queue/here"))
        .await;
    asking.ask(Frame::new(StompCommand::Disconnect)).await;
    let mut answering = site.connect("").await;
    answering
        .ask(subscribe("1", QUEUE, "client-individual"))
        .await;
    let question = message(&mut answering).await;
    let reply_to = question.header("reply-to").unwrap();
    let within = |frame: Frame| frame.with("transaction", "tx");
    answering.ask(within(Frame::new(StompCommand::Begin))).await;
    answering.ask(within(ack(&question))).await;
    answering.ask(within(send(reply_to, "answer"))).await;
    answering
        .ask(within(Frame::new(StompCommand::Commit)))
        .await;
    let alone = answering.ask(send(reply_to, "answer")).await;
    assert_eq!(alone.header("q-unroutable"), Some("true"));
    assert_eq!(site.broker.stats().unroutable, 2);
    assert_eq!(site.broker.stats().messages, 0);
}

#[tokio::test]
async fn e22_a_full_space_refuses_sends_until_it_is_drained() {
    let site = Site::small(20_000).await;
    let mut sender = site.connect("").await;
    let large = || Frame {
        body: vec![b'x'; 1000].into(),
        ..send(QUEUE, "")
    };
    let mut sent = 0;
    loop {
        sender.send(large().with("receipt", "r")).await;
        let answer = sender.next().await.unwrap();
        if answer.command == StompCommand::Error {
            assert_eq!(answer.header("message"), Some("NO-SPACE"));
            break;
        }
        sent += 1;
    }
    assert!(sent > 10, "{sent}");
    let mut worker = site.connect("").await;
    worker.ask(subscribe("1", QUEUE, "client-individual")).await;
    for _ in 0..sent {
        let message = message(&mut worker).await;
        worker.send(ack(&message)).await;
    }
    quiet(&mut worker).await;
    assert_eq!(site.broker.stats().messages, 0);
    let mut sender = site.connect("").await;
    for _ in 0..sent {
        sender.ask(large()).await;
    }
}
