//! Edge cases, each named after its row in the table of what must come of them (e01: crash before the
//! acknowledgement, and so on): transactions, receipts, acknowledgement.

use std::time::Duration;

use tokio::{task::yield_now, time::timeout};

use super::{
    Site,
    sessions::{ack, message, quiet, send, subscribe},
};
use crate::{
    StompLimits,
    stomp::{
        frame::{Frame, StompCommand},
        testing::{DEADLINE, Peer},
    },
};

const QUEUE: &str = "/queue/q";
const TOPIC: &str = "/topic/t";

fn within(frame: Frame) -> Frame {
    frame.with("transaction", "tx")
}

fn begin() -> Frame {
    within(Frame::new(StompCommand::Begin))
}

fn commit() -> Frame {
    within(Frame::new(StompCommand::Commit))
}

/// A client that has subscribed to the queue, acknowledging each message on its own.
async fn worker(site: &Site) -> Peer {
    let mut worker = site.connect("").await;
    worker.ask(subscribe("1", QUEUE, "client-individual")).await;
    worker
}

async fn listener(site: &Site) -> Peer {
    let mut listener = site.connect("").await;
    listener.ask(subscribe("1", TOPIC, "auto")).await;
    listener
}

/// Waits until so many clients are left.
async fn connections(site: &Site, left: usize) {
    let gone = async {
        while site.broker.stats().connections > left {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(DEADLINE, gone).await.expect("they go");
}

#[tokio::test]
async fn e02_an_answer_is_lost_only_if_its_request_was_acknowledged_before_it() {
    let site = Site::start(StompLimits::default()).await;
    let mut client = listener(&site).await;
    client.ask(send(QUEUE, "careless")).await;
    let mut careless = worker(&site).await;
    let request = message(&mut careless).await;
    careless.ask(ack(&request)).await;
    drop(careless);
    let mut careful = worker(&site).await;
    quiet(&mut careful).await;
    quiet(&mut client).await;

    client.ask(send(QUEUE, "careful")).await;
    let request = message(&mut careful).await;
    careful.ask(begin()).await;
    careful.ask(within(ack(&request))).await;
    careful.ask(within(send(TOPIC, "never"))).await;
    drop(careful);
    let mut other = worker(&site).await;
    let again = message(&mut other).await;
    assert_eq!(again.body, "careful");
    assert_eq!(again.header("redelivered"), Some("true"));
    other.ask(begin()).await;
    other.ask(within(ack(&again))).await;
    other.ask(within(send(TOPIC, "answer"))).await;
    other.ask(commit()).await;
    assert_eq!(message(&mut client).await.body, "answer");
    quiet(&mut client).await;
    assert_eq!(site.broker.stats().messages, 0);
}

/// The bus has decided; a client that did not hear of it and does it again has done it twice.
#[tokio::test]
async fn e03_a_commit_whose_receipt_nobody_read_counts_and_sent_again_it_counts_twice() {
    let site = Site::start(StompLimits::default()).await;
    let mut sender = site.connect("").await;
    sender.ask(begin()).await;
    sender.ask(within(send(QUEUE, "x"))).await;
    sender.send(commit().with("receipt", "unread")).await;
    while site.broker.stats().messages == 0 {
        yield_now().await;
    }
    drop(sender);
    let site = site.restart().await;
    let mut sender = site.connect("").await;
    sender.ask(send(QUEUE, "x")).await;
    let mut worker = worker(&site).await;
    let (first, second) = (message(&mut worker).await, message(&mut worker).await);
    assert_eq!((&*first.body, &*second.body), (&b"x"[..], &b"x"[..]));
    assert_ne!(first.header("message-id"), second.header("message-id"));
    assert_eq!(first.header("redelivered"), None);
    quiet(&mut worker).await;
}

/// Unless it says that it is the same.
#[tokio::test]
async fn e03_a_commit_whose_receipt_nobody_read_counts_once_if_what_is_sent_has_an_id() {
    let site = Site::start(StompLimits::default()).await;
    let named = |body| send(QUEUE, body).with("q-dedup", "my own id");
    let mut sender = site.connect("").await;
    sender.ask(begin()).await;
    sender.ask(within(named("x"))).await;
    sender.send(commit().with("receipt", "unread")).await;
    while site.broker.stats().messages == 0 {
        yield_now().await;
    }
    drop(sender);
    let site = site.restart().await;
    let mut sender = site.connect("").await;
    sender.ask(begin()).await;
    sender.ask(within(named("y"))).await;
    sender.ask(commit()).await;
    let receipt = sender.ask(named("z")).await;
    let mut worker = worker(&site).await;
    let first = message(&mut worker).await;
    assert_eq!(first.body, "x");
    assert_eq!(first.header("message-id"), receipt.header("message-id"));
    assert_eq!(first.header("q-dedup"), None, "it is the sender's");
    quiet(&mut worker).await;
    assert_eq!(site.broker.stats().duplicates, 2);
}

#[tokio::test]
async fn e10_who_vanishes_within_a_transaction_has_sent_nothing_and_returns_each_message_once() {
    let site = Site::start(StompLimits::default()).await;
    let mut client = listener(&site).await;
    for body in ["1", "2"] {
        client.ask(send(QUEUE, body)).await;
    }
    let mut doomed = worker(&site).await;
    let first = message(&mut doomed).await;
    message(&mut doomed).await;
    doomed.ask(begin()).await;
    doomed.ask(within(ack(&first))).await;
    doomed.ask(within(send(TOPIC, "never"))).await;
    let mut survivor = worker(&site).await;
    quiet(&mut survivor).await;
    drop(doomed);
    let mut seen = [message(&mut survivor).await, message(&mut survivor).await].map(|again| {
        assert_eq!(again.header("redelivered"), Some("true"));
        assert_eq!(again.header("q-delivery-count"), Some("2"));
        let count = again.header("q-backout-count").unwrap().to_owned();
        (again.body, count)
    });
    seen.sort();
    assert_eq!(
        seen,
        [("1".into(), "1".to_owned()), ("2".into(), "0".to_owned())],
        "the oldest is to blame"
    );
    quiet(&mut survivor).await;
    quiet(&mut client).await;
}

/// The client is cut off somewhere within its transaction, or after its COMMIT: either all has happened or nothing.
#[tokio::test]
async fn e11_a_commit_is_decided_once_wherever_its_connection_drops() {
    const ROUNDS: usize = 40;
    let site = Site::start(StompLimits::default()).await;
    let durable = subscribe("1", TOPIC, "auto").with("activemq.subscriptionName", "answers");
    let mut reader = site.connect("reader").await;
    reader.ask(durable.clone()).await;
    reader.ask(Frame::new(StompCommand::Disconnect)).await;
    let mut client = site.connect("").await;
    for round in 0..ROUNDS {
        let request = Frame {
            body: round.to_string().into(),
            ..send(QUEUE, "")
        };
        client.ask(request).await;
    }
    for round in 0..ROUNDS {
        let mut worker = site.connect("").await;
        let one = subscribe("1", QUEUE, "client-individual").with("activemq.prefetchSize", "1");
        worker.ask(one).await;
        let request = message(&mut worker).await;
        let (id, body) = (request.header("ack").unwrap(), &request.body);
        let bytes = format!(
            "BEGIN\ntransaction:tx\n\n\0ACK\nid:{id}\ntransaction:tx\n\n\0\
             SEND\ndestination:/topic/t\ntransaction:tx\n\n{}\0COMMIT\ntransaction:tx\nreceipt:r\n\n\0",
            str::from_utf8(body).unwrap()
        );
        // Each second one to its end.
        let cut = if round % 2 == 0 {
            bytes.len()
        } else {
            bytes.len() * round / ROUNDS
        };
        worker.raw(&bytes.as_bytes()[..cut]).await;
        drop(worker);
        connections(&site, 1).await;
    }
    assert_eq!(site.broker.stats().messages, ROUNDS);
    let mut reader = site.connect("reader").await;
    reader.ask(durable).await;
    reader
        .send(send("/topic/nobody", "").with("receipt", "all"))
        .await;
    let number = |found: &Frame| -> usize { str::from_utf8(&found.body).unwrap().parse().unwrap() };
    let mut rounds = Vec::new();
    loop {
        let found = reader.next().await.unwrap();
        if found.command == StompCommand::Receipt {
            break;
        }
        rounds.push(number(&found));
    }
    let answered = rounds.len();
    let mut worker = worker(&site).await;
    for _ in answered..ROUNDS {
        let found = message(&mut worker).await;
        rounds.push(number(&found));
        worker.send(ack(&found)).await;
    }
    rounds.sort_unstable();
    assert_eq!(rounds, (0..ROUNDS).collect::<Vec<_>>());
    assert!((1..ROUNDS).contains(&answered), "{answered}");
}

#[tokio::test]
async fn e31_an_acknowledgement_after_the_abort_does_not_reach_the_new_delivery() {
    let site = Site::start(StompLimits::default()).await;
    let mut late = worker(&site).await;
    late.send(send(QUEUE, "x")).await;
    let first = message(&mut late).await;
    late.ask(begin()).await;
    late.ask(within(ack(&first))).await;
    late.ask(within(Frame::new(StompCommand::Abort))).await;
    let again = message(&mut late).await;
    assert_ne!(again.header("ack"), first.header("ack"));
    late.send(ack(&first)).await;
    late.expect_error("STALE-ACK").await;
    let mut other = worker(&site).await;
    let kept = message(&mut other).await;
    assert_eq!(kept.header("message-id"), first.header("message-id"));
}

#[tokio::test]
async fn e32_unsubscribing_returns_what_is_in_hand_at_once_and_uncounted() {
    let site = Site::start(StompLimits::default()).await;
    let mut first = worker(&site).await;
    first.send(send(QUEUE, "x")).await;
    let held = message(&mut first).await;
    let mut second = worker(&site).await;
    first
        .ask(Frame::new(StompCommand::Unsubscribe).with("id", "1"))
        .await;
    let again = message(&mut second).await;
    assert_eq!(again.header("message-id"), held.header("message-id"));
    assert_eq!(again.header("q-backout-count"), Some("0"));
    first.send(ack(&held)).await;
    first.expect_error("STALE-ACK").await;
    second.ask(ack(&again)).await;
    assert_eq!(site.broker.stats().messages, 0);
}

#[tokio::test]
async fn e33_disconnecting_aborts_and_returns_uncounted() {
    let site = Site::start(StompLimits::default()).await;
    let mut client = listener(&site).await;
    for body in ["1", "2"] {
        client.ask(send(QUEUE, body)).await;
    }
    let mut first = worker(&site).await;
    let one = message(&mut first).await;
    message(&mut first).await;
    first.ask(begin()).await;
    first.ask(within(ack(&one))).await;
    first.ask(within(send(TOPIC, "never"))).await;
    first.ask(Frame::new(StompCommand::Disconnect)).await;
    assert_eq!(first.next().await, None);
    let mut second = worker(&site).await;
    for body in ["1", "2"] {
        let again = message(&mut second).await;
        assert_eq!(again.body, body);
        assert_eq!(again.header("q-backout-count"), Some("0"));
    }
    quiet(&mut client).await;
}

#[tokio::test]
async fn e34_the_same_receipt_id_twice_is_confirmed_twice() {
    let site = Site::start(StompLimits::default()).await;
    let mut peer = site.connect("").await;
    for _ in 0..2 {
        peer.send(send(QUEUE, "x").with("receipt", "same")).await;
    }
    let mut ids = Vec::new();
    for _ in 0..2 {
        let receipt = peer.expect(StompCommand::Receipt).await;
        assert_eq!(receipt.header("receipt-id"), Some("same"));
        ids.push(receipt.header("message-id").unwrap().to_owned());
    }
    assert_ne!(ids[0], ids[1]);
}

#[tokio::test]
async fn e35_a_transaction_too_large_ends_at_the_frame_that_makes_it_so() {
    const BODY: usize = 1 << 20;
    /// What one unit of the log may be.
    const MOST: usize = 32 << 20;
    let site = Site::start(StompLimits::default()).await;
    let mut greedy = site.connect("").await;
    greedy.ask(begin()).await;
    let mut taken = 0;
    let refused = loop {
        let large = Frame {
            body: vec![b'x'; BODY].into(),
            ..within(send(QUEUE, ""))
        };
        greedy.send(large.with("receipt", taken.to_string())).await;
        let answer = greedy.next().await.unwrap();
        assert_eq!(
            answer.header("receipt-id"),
            Some(taken.to_string().as_str())
        );
        if answer.command == StompCommand::Error {
            break answer;
        }
        taken += 1;
    };
    assert_eq!(refused.header("message"), Some("LIMIT"));
    assert_eq!(taken, MOST / BODY - 1, "with its head each takes more");
    assert_eq!(greedy.next().await, None);
    assert_eq!(site.broker.stats().messages, 0);
}
