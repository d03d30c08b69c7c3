//! Durable subscriptions over STOMP: what they missed, and who may have them.

use super::{Site, options};
use crate::{
    Broker, BrokerOptions, OnLimit, StompLimits, SubscriptionRule,
    stomp::{
        frame::{Frame, StompCommand},
        server::tests::sessions::{message, send, subscribe},
    },
};
use tempfile::TempDir;

/// Where every durable subscription holds so many messages.
async fn site(max_messages: u64, on_limit: OnLimit) -> Site {
    let directory = TempDir::new().unwrap();
    let rule = SubscriptionRule {
        max_messages: Some(max_messages),
        on_limit: Some(on_limit),
        ..SubscriptionRule::default()
    };
    let options = BrokerOptions {
        subscription_rules: vec![rule],
        ..options(&directory)
    };
    let broker = Broker::open(options).await.unwrap();
    Site::serve(directory, broker, StompLimits::default()).await
}

fn durable(id: &str) -> Frame {
    subscribe(id, "/topic/t", "client-individual").with("durable-subscription-name", "mine")
}

#[tokio::test]
async fn a_gap_is_told_in_headers_that_nobody_can_forge() {
    let site = site(1, OnLimit::Gap).await;
    let mut peer = site.connect("d").await;
    peer.ask(durable("1")).await;
    let mut sender = site.connect("").await;
    for body in ["1", "2", "3"] {
        sender
            .ask(
                send("/topic/t", body)
                    .with("q-gap", "99")
                    .with("persistent", "true"),
            )
            .await;
    }
    assert_eq!(site.broker.stats().missed, 2);
    let first = message(&mut peer).await;
    assert_eq!(first.header("q-gap"), None);
    let ack = Frame::new(StompCommand::Ack).with("id", first.header("ack").unwrap());
    peer.ask(ack).await;
    sender.ask(send("/topic/t", "4")).await;
    let next = message(&mut peer).await;
    assert_eq!((&*next.body, next.header("q-gap")), (&b"4"[..], Some("2")));
    let since: i64 = next.header("q-gap-since").unwrap().parse().unwrap();
    assert!(since > 1_600_000_000_000, "{since}");
}

#[tokio::test]
async fn whoever_is_refused_for_a_full_subscription_is_told_its_name() {
    let site = site(1, OnLimit::RejectPublish).await;
    let mut peer = site.connect("d").await;
    peer.ask(durable("1")).await;
    let mut sender = site.connect("").await;
    sender.ask(send("/topic/t", "1")).await;
    sender.send(send("/topic/t", "2")).await;
    let error = sender.expect_error("SUBSCRIPTION-FULL").await;
    let told = String::from_utf8_lossy(&error.body).into_owned();
    assert!(told.contains("'mine' of client 'd'"), "{told}");
}
