//! The bus handle over STOMP, with this server at the other end.

use std::{collections::BTreeSet, time::Duration};

use futures_util::future::join_all;
use pillarbox_messages::{Destination, DestinationKind};
use tokio::time::timeout;

use super::Site;
use crate::{
    AckMode, Bus, BusError, BusState, ConnectOptions, Delivery, Outgoing, StompLimits,
    StompOptions, SubscribeRequest, Subscription, stomp::testing::DEADLINE,
};

fn options(site: &Site) -> StompOptions {
    StompOptions {
        shortest_pause: Duration::from_millis(10),
        longest_pause: Duration::from_millis(100),
        ..StompOptions::new(site.address().to_string())
    }
}

pub(super) fn client(site: &Site, id: &str) -> Bus {
    Bus::stomp(
        options(site),
        ConnectOptions {
            client_id: id.to_owned(),
        },
    )
}

fn request(destination: Destination) -> SubscribeRequest {
    SubscribeRequest {
        ack_timeout: None,
        destination,
        durable: None,
        ack: AckMode::Individual,
        prefetch: 8,
    }
}

fn durable() -> SubscribeRequest {
    SubscribeRequest {
        durable: Some("alarms".to_owned()),
        ..request(Destination::topic("t"))
    }
}

pub(super) fn persistent(destination: Destination, body: impl Into<bytes::Bytes>) -> Outgoing {
    Outgoing {
        persistent: true,
        ..Outgoing::new(destination, body)
    }
}

async fn next(subscription: &mut Subscription) -> Delivery {
    timeout(DEADLINE, subscription.next())
        .await
        .expect("no message in time")
        .unwrap()
}

async fn nothing(subscription: &mut Subscription) {
    let next = timeout(Duration::from_millis(50), subscription.next()).await;
    assert!(next.is_err(), "unexpected: {next:?}");
}

async fn connected(bus: &Bus) {
    bus.ready(DEADLINE).await.unwrap();
}

#[tokio::test]
async fn publish_subscribe_acknowledge() {
    let site = Site::start(StompLimits::default()).await;
    let bus = client(&site, "a");
    let mut subscription = bus
        .subscribe(request(Destination::topic("t")))
        .await
        .unwrap();
    let sent = Outgoing {
        properties: vec![("type".to_owned(), "PutFileRequest".to_owned())],
        correlation_id: Some("c".to_owned()),
        reply_to: Some(Destination::topic("client a")),
        ttl: Some(Duration::from_secs(60)),
        ..Outgoing::new(Destination::topic("t"), "body")
    };
    bus.publish(sent.clone()).await.unwrap();
    let delivery = next(&mut subscription).await;
    let got = &delivery.message;
    assert_eq!(got.properties, sent.properties);
    assert_eq!(
        (&*got.body, &got.destination),
        (&b"body"[..], &sent.destination)
    );
    assert_eq!(got.correlation_id, sent.correlation_id);
    assert_eq!(got.reply_to.as_deref(), Some("/topic/client a"));
    assert_eq!(
        (got.persistent, got.redelivered, got.delivery_count),
        (false, false, 1)
    );
    delivery.ack().await.unwrap();
    bus.close().await.unwrap();
    assert!(subscription.next().await.is_none());
}

/// Whether it comes from within the process or over STOMP.
#[tokio::test]
async fn e03_a_message_with_an_id_of_its_senders_own_is_kept_once() {
    let site = Site::start(StompLimits::default()).await;
    let connect = ConnectOptions {
        client_id: "near".to_owned(),
    };
    let near = Bus::embedded(&site.broker, connect).unwrap();
    let far = client(&site, "far");
    let named = |body: &'static str| Outgoing {
        dedup: Some("my own".to_owned()),
        ..persistent(Destination::queue("q"), body)
    };
    near.publish(named("1")).await.unwrap();
    far.publish(named("2")).await.unwrap();
    let mut transaction = near.transaction();
    transaction.send(named("3"));
    transaction.commit().await.unwrap();
    assert_eq!(site.broker.stats().messages, 1);
    assert_eq!(site.broker.stats().duplicates, 2);
    let mut at_near = near
        .subscribe(request(Destination::queue("q")))
        .await
        .unwrap();
    let delivery = next(&mut at_near).await;
    assert_eq!(delivery.message.body, "1");
    assert_eq!(delivery.message.properties, []);
}

/// One process uses the queue manager directly, another over STOMP: they see the same messages.
#[tokio::test]
async fn both_kinds_of_handle_meet() {
    let site = Site::start(StompLimits::default()).await;
    let near = Bus::embedded(
        &site.broker,
        ConnectOptions {
            client_id: "near".to_owned(),
        },
    )
    .unwrap();
    let far = client(&site, "far");
    let mut at_near = near
        .subscribe(request(Destination::topic("client near")))
        .await
        .unwrap();
    let mut at_far = far
        .subscribe(request(Destination::topic("client far")))
        .await
        .unwrap();
    let message = |to: &str| Outgoing {
        properties: vec![("p".to_owned(), "v".to_owned())],
        ..persistent(Destination::topic(to), "x")
    };
    near.publish(message("client far")).await.unwrap();
    far.publish(message("client near")).await.unwrap();
    let (near_got, far_got) = (next(&mut at_near).await, next(&mut at_far).await);
    // What the transport needs is not among the properties.
    let sent = [("p".to_owned(), "v".to_owned())];
    assert_eq!(near_got.message.properties, sent);
    assert_eq!(far_got.message.properties, sent);
    assert!(near_got.message.persistent && far_got.message.persistent);
}

#[tokio::test]
async fn nack_brings_a_message_back_counted() {
    let site = Site::start(StompLimits::default()).await;
    let bus = client(&site, "a");
    let mut subscription = bus
        .subscribe(request(Destination::queue("q")))
        .await
        .unwrap();
    bus.publish(persistent(Destination::queue("q"), "x"))
        .await
        .unwrap();
    next(&mut subscription).await.nack().await.unwrap();
    let again = next(&mut subscription).await;
    assert_eq!(
        (again.message.backout_count, again.message.redelivered),
        (1, true)
    );
    again.ack().await.unwrap();
}

#[tokio::test]
async fn a_transaction_answers_and_acknowledges_at_once() {
    let site = Site::start(StompLimits::default()).await;
    let bus = client(&site, "a");
    let mut requests = bus
        .subscribe(request(Destination::queue("q")))
        .await
        .unwrap();
    let mut answers = bus
        .subscribe(request(Destination::topic("client a")))
        .await
        .unwrap();
    bus.publish(persistent(Destination::queue("q"), "request"))
        .await
        .unwrap();
    let mut transaction = bus.transaction();
    transaction.ack(next(&mut requests).await);
    transaction.send(persistent(Destination::topic("client a"), "answer"));
    transaction.commit().await.unwrap();
    assert_eq!(next(&mut answers).await.message.body, "answer");
    bus.close().await.unwrap();
    let bus = client(&site, "a");
    let mut requests = bus
        .subscribe(request(Destination::queue("q")))
        .await
        .unwrap();
    nothing(&mut requests).await;
}

#[tokio::test]
async fn durable_subscriptions_wait_for_their_client() {
    let site = Site::start(StompLimits::default()).await;
    let bus = client(&site, "service");
    let subscription = bus.subscribe(durable()).await.unwrap();
    subscription.unsubscribe().await.unwrap();
    let sender = client(&site, "sender");
    sender
        .publish(persistent(Destination::topic("t"), "alarm"))
        .await
        .unwrap();
    let mut subscription = bus.subscribe(durable()).await.unwrap();
    assert_eq!(next(&mut subscription).await.message.body, "alarm");
    subscription.cancel().await.unwrap();
    sender
        .publish(persistent(Destination::topic("t"), "nobody"))
        .await
        .unwrap();
    let mut subscription = bus.subscribe(durable()).await.unwrap();
    nothing(&mut subscription).await;
}

#[tokio::test]
async fn temporary_queues_work_from_handle_to_handle() {
    let site = Site::start(StompLimits::default()).await;
    let (asking, answering) = (client(&site, "asking"), client(&site, "answering"));
    let own = Destination::new(DestinationKind::TemporaryQueue, "answers");
    let mut answers = asking.subscribe(request(own.clone())).await.unwrap();
    let mut questions = answering
        .subscribe(request(Destination::queue("q")))
        .await
        .unwrap();
    let question = Outgoing {
        reply_to: Some(own),
        ..persistent(Destination::queue("q"), "?")
    };
    asking.publish(question).await.unwrap();
    let reply_to = next(&mut questions).await.message.reply_to.clone().unwrap();
    let reply_to = crate::spelling::from_stomp(&reply_to).unwrap();
    answering
        .publish(Outgoing::new(reply_to, "!"))
        .await
        .unwrap();
    assert_eq!(next(&mut answers).await.message.body, "!");
}

#[tokio::test]
async fn everything_goes_on_after_the_bus_was_away() {
    let site = Site::start(StompLimits::default()).await;
    let bus = client(&site, "service");
    let mut alarms = bus.subscribe(durable()).await.unwrap();
    let mut plain = bus
        .subscribe(request(Destination::topic("client a")))
        .await
        .unwrap();
    bus.publish(persistent(Destination::topic("t"), "1"))
        .await
        .unwrap();
    let old = next(&mut alarms).await;
    let mut state = bus.state();
    let site = site.restart().await;
    // Whether it is noticed before or after: the message is not lost.
    bus.publish(persistent(Destination::topic("t"), "2"))
        .await
        .unwrap();
    timeout(
        DEADLINE,
        state.wait_for(|state| *state == BusState::Connected),
    )
    .await
    .unwrap()
    .unwrap();
    assert_eq!(old.ack().await, Err(BusError::StaleAck));
    let again = next(&mut alarms).await;
    assert_eq!(again.message.body, "1");
    again.ack().await.unwrap();
    assert_eq!(next(&mut alarms).await.message.body, "2");
    bus.publish(Outgoing::new(Destination::topic("client a"), "3"))
        .await
        .unwrap();
    assert_eq!(next(&mut plain).await.message.body, "3");
    drop(site);
}

/// Every message whose publishing was reported done is there, though the bus went away in the middle.
#[tokio::test]
async fn nothing_published_is_lost_over_restarts() {
    const MESSAGES: usize = 200;
    let mut site = Site::start(StompLimits::default()).await;
    let publisher = client(&site, "publisher");
    let consumer = client(&site, "consumer");
    let mut subscription = consumer
        .subscribe(request(Destination::queue("q")))
        .await
        .unwrap();
    let publishing = tokio::spawn(async move {
        for number in 0..MESSAGES {
            let message = persistent(Destination::queue("q"), number.to_string());
            publisher.publish(message).await.unwrap();
        }
    });
    let mut missing: BTreeSet<usize> = (0..MESSAGES).collect();
    let mut restarts = 0;
    while !missing.is_empty() {
        let delivery = next(&mut subscription).await;
        let number: usize = str::from_utf8(&delivery.message.body)
            .unwrap()
            .parse()
            .unwrap();
        missing.remove(&number);
        // Stale if the bus has been away since; then it comes again.
        let _ = delivery.ack().await;
        if restarts < 3 && number > restarts * 50 + 20 {
            restarts += 1;
            site = site.restart().await;
        }
    }
    publishing.await.unwrap();
    assert_eq!(restarts, 3);
}

#[tokio::test]
async fn a_second_process_of_one_client_id_is_told_so() {
    let site = Site::start(StompLimits::default()).await;
    let first = client(&site, "kim's reading desk");
    connected(&first).await;
    let second = client(&site, "kim's reading desk");
    let error = second.ready(DEADLINE).await.unwrap_err();
    assert_eq!(
        error,
        BusError::ClientIdInUse("kim's reading desk".to_owned())
    );
    first.close().await.unwrap();
    connected(&client(&site, "kim's reading desk")).await;
}

#[tokio::test]
async fn an_unknown_destination_is_named_with_its_remedy() {
    let site = Site::start(StompLimits::default()).await;
    let bus = client(&site, "a");
    let error = bus
        .subscribe(request(Destination::topic("nobody")))
        .await
        .unwrap_err();
    let near = Bus::embedded(
        &site.broker,
        ConnectOptions {
            client_id: "near".to_owned(),
        },
    )
    .unwrap();
    let expected = near
        .subscribe(request(Destination::topic("nobody")))
        .await
        .unwrap_err();
    assert_eq!(error, expected);
    // The handle is as good as new.
    bus.publish(persistent(Destination::queue("q"), "x"))
        .await
        .unwrap();
}

#[tokio::test]
async fn closing_keeps_what_was_published_and_returns_what_was_in_hand() {
    let site = Site::start(StompLimits::default()).await;
    let bus = client(&site, "a");
    let mut subscription = bus
        .subscribe(request(Destination::queue("q")))
        .await
        .unwrap();
    let messages = (0..50)
        .map(|n| persistent(Destination::queue("q"), n.to_string()))
        .collect();
    bus.publish_all(messages).await.unwrap();
    let in_hand = next(&mut subscription).await;
    bus.close().await.unwrap();
    assert_eq!(in_hand.ack().await, Err(BusError::Closed));
    let bus = client(&site, "a");
    let mut subscription = bus
        .subscribe(request(Destination::queue("q")))
        .await
        .unwrap();
    for number in 0..50 {
        let delivery = next(&mut subscription).await;
        assert_eq!(delivery.message.body, number.to_string());
        assert_eq!(delivery.message.backout_count, 0);
        delivery.ack().await.unwrap();
    }
}

/// The connection beats on its own, however long its user takes for a message.
#[tokio::test]
async fn b15_a_consumer_ten_times_slower_than_its_heart_stays_connected() {
    let limits = StompLimits {
        heart_beat: Duration::from_millis(300),
        ..StompLimits::default()
    };
    let site = Site::start(limits).await;
    let options = StompOptions {
        heart_beat: Duration::from_millis(300),
        ..options(&site)
    };
    let bus = Bus::stomp(
        options,
        ConnectOptions {
            client_id: "slow".to_owned(),
        },
    );
    let mut subscription = bus
        .subscribe(request(Destination::queue("q")))
        .await
        .unwrap();
    bus.publish(persistent(Destination::queue("q"), "x"))
        .await
        .unwrap();
    let delivery = next(&mut subscription).await;
    tokio::time::sleep(Duration::from_millis(3000)).await;
    delivery.ack().await.unwrap();
}

#[tokio::test]
async fn large_messages_and_many_of_them() {
    let site = Site::start(StompLimits::default()).await;
    let bus = client(&site, "a");
    let mut subscription = bus
        .subscribe(request(Destination::queue("q")))
        .await
        .unwrap();
    let large = vec![b'x'; 8 << 20];
    bus.publish(persistent(Destination::queue("q"), large.clone()))
        .await
        .unwrap();
    let delivery = next(&mut subscription).await;
    assert_eq!(delivery.message.body, large);
    delivery.ack().await.unwrap();
    let many = SubscribeRequest {
        prefetch: 200,
        ..request(Destination::topic("t"))
    };
    let mut subscription = bus.subscribe(many).await.unwrap();
    let sending = async {
        let message = || persistent(Destination::topic("t"), vec![b'y'; 2300]);
        bus.publish_all((0..2000).map(|_| message()).collect())
            .await
            .unwrap();
    };
    let receiving = async {
        for _ in 0..20 {
            let mut acks = Vec::new();
            for _ in 0..100 {
                acks.push(next(&mut subscription).await.ack());
            }
            for result in join_all(acks).await {
                result.unwrap();
            }
        }
    };
    tokio::join!(sending, receiving);
}
