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

fn shared(id: &str) -> Frame {
    durable(id).with("shared", "true")
}

#[tokio::test]
async fn b39_a_client_id_alone_makes_nothing_durable_and_what_is_not_understood_is_named() {
    let site = Site::start(StompLimits::default()).await;
    let mut peer = site.connect("d").await;
    peer.ask(subscribe("1", "/topic/t", "client")).await;
    peer.ask(subscribe("2", "/queue/q", "client")).await;
    assert_eq!(site.broker.stats().durables, 0);
    peer.send(subscribe("3", "/topic/t", "client").with("activemq.subscripionName", "mine"))
        .await;
    let error = peer.expect_error("INVALID").await;
    let told = String::from_utf8_lossy(&error.body).into_owned();
    assert!(told.contains("activemq.subscripionName"), "{told}");
}

#[tokio::test]
async fn b40_an_id_is_its_connections_own_and_a_cancel_ends_one_subscription_only() {
    let site = Site::start(StompLimits::default()).await;
    let (mut one, mut other) = (site.connect("one").await, site.connect("other").await);
    one.ask(durable("1")).await;
    other.ask(durable("1")).await;
    let cancel = Frame::new(StompCommand::Unsubscribe).with("id", "1");
    one.ask(cancel.with("durable-subscription-name", "mine"))
        .await;
    assert_eq!(site.broker.stats().durables, 1);
    one.ask(send("/topic/t", "x")).await;
    assert_eq!(&*message(&mut other).await.body, b"x");
}

#[tokio::test]
async fn b42_what_is_sent_between_a_restart_and_the_return_of_a_subscriber_is_there() {
    let site = Site::start(StompLimits::default()).await;
    let mut peer = site.connect("d").await;
    peer.ask(durable("1").with("selector", "color = 'red'"))
        .await;
    let site = site.restart().await;
    let mut sender = site.connect("").await;
    sender.ask(send("/topic/t", "not wanted")).await;
    sender
        .ask(
            send("/topic/t", "red")
                .with("color", "red")
                .with("persistent", "true"),
        )
        .await;
    let mut peer = site.connect("d").await;
    peer.ask(durable("1").with("selector", "color = 'red'"))
        .await;
    assert_eq!(&*message(&mut peer).await.body, b"red");
    let mut peer = {
        drop(peer);
        site.connect("e").await
    };
    peer.ask(durable("1")).await;
    peer.ask(Frame::new(StompCommand::Unsubscribe).with("id", "1"))
        .await;
    peer.send(durable("1").with("selector", "color = 'blue'"))
        .await;
    peer.expect_error("SUBSCRIPTION-MISMATCH").await;
    let mut peer = site.connect("e").await;
    peer.ask(
        durable("1")
            .with("selector", "color = 'blue'")
            .with("replace", "true"),
    )
    .await;
}

#[tokio::test]
async fn several_connections_share_a_subscription_without_names_of_their_own() {
    let site = Site::start(StompLimits::default()).await;
    let (mut one, mut other) = (site.connect("").await, site.connect("d").await);
    for peer in [&mut one, &mut other] {
        peer.ask(shared("1").with("activemq.prefetchSize", "1"))
            .await;
    }
    let mut sender = site.connect("").await;
    for body in ["1", "2"] {
        sender.ask(send("/topic/t", body)).await;
    }
    let (first, second) = (message(&mut one).await, message(&mut other).await);
    assert_ne!(first.body, second.body);
    other.send(durable("2")).await;
    other.expect_error("SUBSCRIPTION-MISMATCH").await;
}

#[tokio::test]
async fn all_of_a_connections_consumers_of_a_shared_subscription_end_with_it() {
    let site = Site::start(StompLimits::default()).await;
    let mut peer = site.connect("").await;
    for id in ["1", "2"] {
        peer.ask(shared(id)).await;
    }
    let cancel = Frame::new(StompCommand::Unsubscribe)
        .with("id", "2")
        .with("durable-subscription-name", "mine");
    peer.ask(cancel).await;
    // Both ids are free again.
    for id in ["1", "2"] {
        peer.ask(shared(id)).await;
    }
}

#[tokio::test]
async fn nobody_hears_himself_who_does_not_want_to() {
    let site = Site::start(StompLimits::default()).await;
    let mut peer = site.connect("").await;
    peer.ask(subscribe("1", "/topic/t", "auto").with("no-local", "true"))
        .await;
    peer.ask(send("/topic/t", "own")).await;
    let mut other = site.connect("").await;
    other.ask(send("/topic/t", "another's")).await;
    assert_eq!(&*message(&mut peer).await.body, b"another's");
}
