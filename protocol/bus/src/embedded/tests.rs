//! The queue manager as its users see it, on a real directory; `faults`: on a disk that fails.

mod faults;
mod formats;
mod leaving;

use std::{path::Path, time::Duration};

use pillarbox_messages::{Destination, DestinationKind, clock::SystemClock};
use tempfile::TempDir;
use tokio::time::timeout;

use super::{
    Broker, BrokerOptions, ClientTemplates, Command, Event,
    connection::{NewMessage, Notice},
};
use crate::{
    AckMode, Bus, BusError, BusState, ConnectOptions, Delivery, GetRequest, LaneHash, Lanes,
    Outgoing, QueueAttributes, QueueDefinition, SubscribeRequest, Subscription, Wait, spelling,
};

const PATIENCE: Duration = Duration::from_secs(20);

fn options(directory: &Path) -> BrokerOptions {
    BrokerOptions {
        destinations: vec![Destination::queue("work"), Destination::topic("news")],
        client_templates: ClientTemplates::new(|destination| {
            destination.name().starts_with("client.")
        }),
        ..BrokerOptions::new(directory, SystemClock::shared())
    }
}

async fn broker(directory: &TempDir) -> Broker {
    Broker::open(options(directory.path())).await.unwrap()
}

fn bus(broker: &Broker, client_id: &str) -> Bus {
    Bus::embedded(
        broker,
        ConnectOptions {
            client_id: client_id.to_owned(),
        },
    )
    .unwrap()
}

fn persistent(destination: Destination, body: &'static str) -> Outgoing {
    Outgoing {
        persistent: true,
        ..Outgoing::new(destination, body)
    }
}

fn request(destination: Destination) -> SubscribeRequest {
    SubscribeRequest {
        ack_timeout: None,
        destination,
        durable: None,
        ack: AckMode::Individual,
        prefetch: 10,
    }
}

fn durable(destination: Destination, name: &str) -> SubscribeRequest {
    SubscribeRequest {
        durable: Some(name.to_owned()),
        ..request(destination)
    }
}

async fn next(subscription: &mut Subscription) -> Delivery {
    timeout(PATIENCE, subscription.next())
        .await
        .expect("nothing came")
        .expect("closed")
}

fn text(delivery: &Delivery) -> String {
    String::from_utf8(delivery.message.body.to_vec()).unwrap()
}

#[tokio::test]
async fn a_message_goes_through_a_queue_with_everything_on_it() {
    let directory = TempDir::new().unwrap();
    let broker = broker(&directory).await;
    let (sender, receiver) = (bus(&broker, "a"), bus(&broker, "b"));
    let mut subscription = receiver
        .subscribe(request(Destination::queue("work")))
        .await
        .unwrap();
    let message = Outgoing {
        properties: vec![
            ("x".to_owned(), "1".to_owned()),
            ("x".to_owned(), "2".to_owned()),
        ],
        correlation_id: Some("c".to_owned()),
        reply_to: Some(Destination::topic("client.a")),
        ..persistent(Destination::queue("work"), "hello")
    };
    sender.publish(message.clone()).await.unwrap();
    let delivery = next(&mut subscription).await;
    assert_eq!(delivery.message.body, message.body);
    assert_eq!(delivery.message.properties, message.properties);
    assert_eq!(delivery.message.correlation_id, message.correlation_id);
    assert_eq!(
        delivery.message.reply_to.as_deref(),
        Some("/topic/client.a")
    );
    assert_eq!(delivery.message.destination, Destination::queue("work"));
    assert!(delivery.message.persistent && !delivery.message.redelivered);
    assert_eq!(
        (
            delivery.message.delivery_count,
            delivery.message.backout_count
        ),
        (1, 0)
    );
    delivery.ack().await.unwrap();
    assert_eq!(broker.stats().messages, 0);
    broker.shutdown().await;
}

/// As over STOMP.
#[tokio::test]
async fn what_no_bus_takes_is_refused_alone_and_gives_its_deliveries_back() {
    let directory = TempDir::new().unwrap();
    let broker = broker(&directory).await;
    let bus = bus(&broker, "a");
    let work = || persistent(Destination::queue("work"), "work");
    let mut forged = work();
    let reason = ("q-reason".to_owned(), "expired".to_owned());
    forged.properties.push(reason);
    let results = bus.publish_each(vec![work(), forged.clone(), work()]).await;
    let taken: Vec<bool> = results.iter().map(Result::is_ok).collect();
    assert_eq!(taken, [true, false, true], "{results:?}");
    let mut subscription = bus
        .subscribe(request(Destination::queue("work")))
        .await
        .unwrap();
    let mut transaction = bus.transaction();
    transaction.ack(next(&mut subscription).await);
    transaction.send(forged);
    assert_eq!(transaction.commit().await.unwrap_err().name(), "INVALID");
    next(&mut subscription).await.ack().await.unwrap();
    // The first one, again.
    let again = next(&mut subscription).await;
    assert_eq!(again.message.backout_count, 1);
    again.ack().await.unwrap();
    assert_eq!(broker.stats().messages, 0);
    broker.shutdown().await;
}

#[tokio::test]
async fn several_messages_share_one_sync() {
    let directory = TempDir::new().unwrap();
    let broker = broker(&directory).await;
    let sender = bus(&broker, "a");
    let before = broker.stats().syncs;
    sender
        .publish(persistent(Destination::queue("work"), "1"))
        .await
        .unwrap();
    assert_eq!(broker.stats().syncs, before + 1);
    let three = ["2", "3", "4"].map(|body| persistent(Destination::queue("work"), body));
    sender.publish_all(three.to_vec()).await.unwrap();
    assert_eq!(broker.stats().syncs, before + 2);
    sender
        .publish(Outgoing::new(Destination::queue("work"), "5"))
        .await
        .unwrap();
    assert_eq!(
        broker.stats().syncs,
        before + 2,
        "a volatile message needs no log"
    );
    broker.shutdown().await;
}

#[tokio::test]
async fn one_refused_message_is_no_harm_to_the_others() {
    let directory = TempDir::new().unwrap();
    let broker = broker(&directory).await;
    let sender = bus(&broker, "a");
    let of = |priority| Outgoing {
        priority,
        ..persistent(Destination::queue("work"), "x")
    };
    let mixed = || vec![of(4), of(10), of(4)];
    let results = sender.publish_each(mixed()).await;
    let taken: Vec<bool> = results.iter().map(Result::is_ok).collect();
    assert_eq!(taken, [true, false, true], "{results:?}");
    assert_eq!(broker.stats().messages, 2);
    assert!(sender.publish_all(mixed()).await.is_err());
    broker.shutdown().await;
    let results = sender.publish_each(mixed()).await;
    assert_eq!(results.len(), 3);
    assert!(results.iter().all(Result::is_err), "{results:?}");
}

#[tokio::test]
async fn persistent_messages_outlive_the_queue_manager() {
    let directory = TempDir::new().unwrap();
    let first = broker(&directory).await;
    let sender = bus(&first, "a");
    let named = sender
        .subscribe(durable(Destination::topic("news"), "mine"))
        .await
        .unwrap();
    named.unsubscribe().await.unwrap();
    for destination in [Destination::queue("work"), Destination::topic("news")] {
        sender
            .publish(persistent(destination.clone(), "kept"))
            .await
            .unwrap();
        sender
            .publish(Outgoing::new(destination, "lost"))
            .await
            .unwrap();
    }
    first.shutdown().await;
    assert!(bus_is_closed(&sender).await);

    let second = broker(&directory).await;
    let receiver = bus(&second, "a");
    for wish in [
        request(Destination::queue("work")),
        durable(Destination::topic("news"), "mine"),
    ] {
        let mut subscription = receiver.subscribe(wish).await.unwrap();
        let delivery = next(&mut subscription).await;
        assert_eq!(text(&delivery), "kept");
        assert!(!delivery.message.redelivered, "it has never been delivered");
        delivery.ack().await.unwrap();
    }
    assert_eq!(second.stats().messages, 0);
    second.shutdown().await;
}

#[tokio::test]
async fn e45_a_second_opener_is_told_that_the_space_is_in_use() {
    let directory = TempDir::new().unwrap();
    let first = broker(&directory).await;
    let second = Broker::open(options(directory.path())).await;
    assert!(matches!(second, Err(BusError::Locked { .. })), "{second:?}");
    first.shutdown().await;
    broker(&directory).await.shutdown().await;
}

#[tokio::test]
async fn a_client_id_belongs_to_one_live_connection() {
    let directory = TempDir::new().unwrap();
    let broker = broker(&directory).await;
    let first = bus(&broker, "a");
    let options = ConnectOptions {
        client_id: "a".to_owned(),
    };
    let second = Bus::embedded(&broker, options.clone());
    assert_eq!(second.err(), Some(BusError::ClientIdInUse("a".to_owned())));
    first.close().await.unwrap();
    Bus::embedded(&broker, options).unwrap();
}

#[tokio::test]
async fn sends_and_acknowledgements_of_a_transaction_happen_together() {
    let directory = TempDir::new().unwrap();
    let broker = broker(&directory).await;
    let worker = bus(&broker, "w");
    let client = bus(&broker, "c");
    let mut work = worker
        .subscribe(request(Destination::queue("work")))
        .await
        .unwrap();
    let mut answers = client
        .subscribe(request(Destination::topic("client.c")))
        .await
        .unwrap();
    client
        .publish(persistent(Destination::queue("work"), "question"))
        .await
        .unwrap();
    let delivery = next(&mut work).await;
    let before = broker.stats().syncs;
    let mut transaction = worker.transaction();
    transaction.send(Outgoing::new(Destination::topic("client.c"), "answer"));
    transaction.ack(delivery);
    transaction.commit().await.unwrap();
    assert_eq!(broker.stats().syncs, before + 1);
    assert_eq!(text(&next(&mut answers).await), "answer");
    assert_eq!(broker.stats().in_flight, 1, "the answer");
    broker.shutdown().await;
}

#[tokio::test]
async fn an_aborted_transaction_sends_nothing_and_gives_back() {
    let directory = TempDir::new().unwrap();
    let broker = broker(&directory).await;
    let bus = bus(&broker, "w");
    let mut work = bus
        .subscribe(request(Destination::queue("work")))
        .await
        .unwrap();
    bus.publish(persistent(Destination::queue("work"), "once more"))
        .await
        .unwrap();
    let mut transaction = bus.transaction();
    transaction.send(persistent(Destination::queue("work"), "never"));
    transaction.ack(next(&mut work).await);
    transaction.abort().await.unwrap();
    let again = next(&mut work).await;
    assert_eq!(
        (text(&again).as_str(), again.message.backout_count),
        ("once more", 1)
    );
    again.ack().await.unwrap();
    assert_eq!(broker.stats().messages, 0);
}

#[tokio::test]
async fn unknown_names_harm_no_sender_and_tell_a_subscriber_what_to_do() {
    let directory = TempDir::new().unwrap();
    let broker = broker(&directory).await;
    let bus = bus(&broker, "a");
    bus.publish(persistent(Destination::topic("nowhere"), "dropped"))
        .await
        .unwrap();
    bus.publish(persistent(Destination::queue("nowhere"), "kept"))
        .await
        .unwrap();
    assert_eq!(broker.stats().unroutable, 2);
    let mut errors = bus
        .subscribe(request(Destination::queue("~error")))
        .await
        .unwrap();
    let delivery = next(&mut errors).await;
    assert_eq!(text(&delivery), "kept");
    assert_eq!(
        delivery.message.property("original-destination"),
        Some("/queue/nowhere")
    );
    assert_eq!(delivery.message.property("q-reason"), Some("unroutable"));
    let refused = bus
        .subscribe(request(Destination::topic("nowhere")))
        .await
        .unwrap_err();
    assert_eq!(refused.name(), "NO-QUEUE");
    assert!(refused.to_string().contains("repository.toml"), "{refused}");
}

#[tokio::test]
async fn b61_a_temporary_queue_answers_to_the_transports_address_and_dies_with_its_owner() {
    let directory = TempDir::new().unwrap();
    let broker = broker(&directory).await;
    let (asker, server) = (bus(&broker, "a"), bus(&broker, "b"));
    let own = Destination::new(DestinationKind::TemporaryQueue, "answers");
    let mut answers = asker.subscribe(request(own.clone())).await.unwrap();
    let mut work = server
        .subscribe(request(Destination::queue("work")))
        .await
        .unwrap();
    let question = Outgoing {
        reply_to: Some(own),
        ..Outgoing::new(Destination::queue("work"), "?")
    };
    asker.publish(question).await.unwrap();
    let address = next(&mut work).await.message.reply_to.clone().unwrap();
    let address = spelling::from_stomp(&address).unwrap();
    server
        .publish(Outgoing::new(address.clone(), "!"))
        .await
        .unwrap();
    assert_eq!(text(&next(&mut answers).await), "!");
    assert!(
        server.subscribe(request(address.clone())).await.is_err(),
        "it is somebody else's"
    );
    let queues = broker.stats().queues;
    asker.close().await.unwrap();
    assert_eq!(broker.stats().queues, queues - 1);
    server
        .publish(Outgoing::new(address, "too late"))
        .await
        .unwrap();
    assert_eq!(broker.stats().unroutable, 1);
}

#[tokio::test]
async fn auto_means_consumed_when_handed_out() {
    let directory = TempDir::new().unwrap();
    let broker = broker(&directory).await;
    let bus = bus(&broker, "a");
    let wish = SubscribeRequest {
        ack: AckMode::Auto,
        ..request(Destination::queue("work"))
    };
    let mut work = bus.subscribe(wish).await.unwrap();
    for _ in 0..30 {
        bus.publish(Outgoing::new(Destination::queue("work"), "x"))
            .await
            .unwrap();
    }
    for _ in 0..30 {
        next(&mut work).await;
    }
    work.unsubscribe().await.unwrap();
    assert_eq!(broker.stats().messages, 0);
}

/// The acknowledgement that had no room is made up for, even if nothing more comes before it.
#[tokio::test]
async fn auto_goes_on_after_the_queue_manager_was_behind() {
    let directory = TempDir::new().unwrap();
    let broker = broker(&directory).await;
    let bus = bus(&broker, "a");
    let wish = SubscribeRequest {
        ack: AckMode::Auto,
        prefetch: 1,
        ..request(Destination::queue("work"))
    };
    let mut work = bus.subscribe(wish).await.unwrap();
    let message = Outgoing::new(Destination::queue("work"), "x");
    bus.publish_all(vec![message; 2]).await.unwrap();
    let (busy, _events) = broker.connect("busy").unwrap().split();
    while busy.try_submit(Command::Unsubscribe {
        subscription: 1,
        token: 0,
    }) {}
    next(&mut work).await;
    next(&mut work).await;
}

#[tokio::test]
async fn a_dropped_handle_is_a_lost_connection() {
    let directory = TempDir::new().unwrap();
    let broker = broker(&directory).await;
    let sender = bus(&broker, "s");
    for body in ["1", "2"] {
        sender
            .publish(persistent(Destination::queue("work"), body))
            .await
            .unwrap();
    }
    let doomed = bus(&broker, "d");
    let mut taken = doomed
        .subscribe(request(Destination::queue("work")))
        .await
        .unwrap();
    let held = [next(&mut taken).await, next(&mut taken).await];
    // Forgotten without a word, as by a crash: not even an UNSUBSCRIBE.
    drop(held);
    let mut survivor = sender
        .subscribe(request(Destination::queue("work")))
        .await
        .unwrap();
    taken.lose_for_test();
    drop(doomed);
    let counts = [next(&mut survivor).await, next(&mut survivor).await]
        .map(|delivery| (text(&delivery), delivery.message.backout_count));
    assert_eq!(
        counts,
        [("1".to_owned(), 1), ("2".to_owned(), 0)],
        "the oldest is to blame"
    );
}

#[tokio::test]
async fn concurrent_publishers_share_syncs() {
    let directory = TempDir::new().unwrap();
    let broker = broker(&directory).await;
    let before = broker.stats().syncs;
    let tasks: Vec<_> = (0..64)
        .map(|number| {
            let bus = bus(&broker, &format!("p{number}"));
            tokio::spawn(async move {
                for _ in 0..4 {
                    bus.publish(persistent(Destination::queue("work"), "x"))
                        .await
                        .unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(broker.stats().messages, 256);
    let syncs = broker.stats().syncs - before;
    assert!(syncs < 128, "{syncs} syncs for 256 messages");
    broker.shutdown().await;
}

#[tokio::test]
async fn a_subscription_made_beforehand_collects_for_a_client_that_has_never_come() {
    let directory = TempDir::new().unwrap();
    let news = Destination::topic("news");
    let options = BrokerOptions {
        durable_subscriptions: vec![("d".to_owned(), "mine".to_owned(), news.clone())],
        ..options(directory.path())
    };
    let broker = Broker::open(options).await.unwrap();
    bus(&broker, "a")
        .publish(persistent(news.clone(), "early"))
        .await
        .unwrap();
    let client = bus(&broker, "d");
    let mut subscription = client
        .subscribe(durable(news.clone(), "mine"))
        .await
        .unwrap();
    assert_eq!(text(&next(&mut subscription).await), "early");
    let second = client.subscribe(durable(news.clone(), "mine")).await;
    assert_eq!(second.unwrap_err().name(), "SUBSCRIPTION-IN-USE");
    subscription.cancel().await.unwrap();
    assert_eq!(broker.stats().messages, 0);
    broker.shutdown().await;
    assert!(bus_is_closed(&client).await);
}

async fn bus_is_closed(bus: &Bus) -> bool {
    let mut state = bus.state();
    let closed = state.wait_for(|state| *state == BusState::Closed);
    let told = timeout(PATIENCE, closed)
        .await
        .is_ok_and(|told| told.is_ok());
    told && bus
        .publish(persistent(Destination::queue("work"), "x"))
        .await
        == Err(BusError::Closed)
}

#[tokio::test]
async fn the_queue_manager_ends_when_nobody_is_left_who_could_ask() {
    let directory = TempDir::new().unwrap();
    let first = broker(&directory).await;
    let sender = bus(&first, "a");
    drop(first);
    sender
        .publish(persistent(Destination::queue("work"), "kept"))
        .await
        .unwrap();
    drop(sender);
    let reopened = async {
        loop {
            match Broker::open(options(directory.path())).await {
                Ok(broker) => return broker,
                Err(BusError::Locked { .. }) => tokio::time::sleep(Duration::from_millis(5)).await,
                Err(error) => panic!("{error}"),
            }
        }
    };
    let second = timeout(PATIENCE, reopened).await.unwrap();
    assert_eq!(second.stats().messages, 1);
}

#[tokio::test]
async fn one_message_is_taken_looked_at_and_waited_for() {
    let directory = TempDir::new().unwrap();
    let broker = broker(&directory).await;
    let bus = bus(&broker, "a");
    let work = || Destination::queue("work");
    let get = |wanted: &str, wait| GetRequest {
        destination: work(),
        selector: (!wanted.is_empty()).then(|| wanted.parse().unwrap()),
        wait,
    };
    for body in ["1", "2"] {
        let correlation_id = Some(format!("c{body}"));
        let sent = Outgoing {
            correlation_id,
            ..persistent(work(), body)
        };
        bus.publish(sent).await.unwrap();
    }
    let seen = bus.browse(work(), None, 10).await.unwrap();
    let seen: Vec<_> = seen.iter().map(|it| it.body.as_ref()).collect();
    assert_eq!(seen, [b"1", b"2"]);
    let second = bus
        .get(get("JMSCorrelationID = 'c2'", Wait::No))
        .await
        .unwrap();
    assert_eq!(text(&second), "2");
    let again = bus.get(get("JMSCorrelationID = 'c2'", Wait::No)).await;
    assert_eq!(again.unwrap_err(), BusError::InUse);
    let none = bus.get(get("JMSCorrelationID = 'c3'", Wait::For(10))).await;
    assert_eq!(none.unwrap_err(), BusError::NoMessage);
    second.ack().await.unwrap();
    bus.get(get("", Wait::No))
        .await
        .unwrap()
        .ack()
        .await
        .unwrap();
    assert_eq!(broker.stats().messages, 0);
    // Whoever gives up waiting takes nothing from those who come later.
    {
        let mut given_up = std::pin::pin!(bus.get(get("", Wait::Forever)));
        assert!(futures_util::poll!(&mut given_up).is_pending());
        bus.publish(persistent(work(), "3")).await.unwrap();
        let in_hand = async {
            while broker.stats().in_flight == 0 {
                tokio::task::yield_now().await;
            }
        };
        timeout(PATIENCE, in_hand).await.expect("not handed out");
    }
    let third = timeout(PATIENCE, bus.get(get("", Wait::Forever))).await;
    assert_eq!(text(&third.unwrap().unwrap()), "3");
    assert!(
        bus.browse(Destination::topic("news"), None, 1)
            .await
            .is_err()
    );
    broker.shutdown().await;
}

#[tokio::test]
async fn e29_a_stuck_consumer_within_the_process_loses_its_subscription_and_another_has_the_message()
 {
    let directory = TempDir::new().unwrap();
    let broker = broker(&directory).await;
    let (stuck, other) = (bus(&broker, "a"), bus(&broker, "b"));
    let limited = SubscribeRequest {
        ack_timeout: Some(Duration::from_millis(200)),
        ..request(Destination::queue("work"))
    };
    let auto = SubscribeRequest {
        ack: AckMode::Auto,
        ..limited.clone()
    };
    assert_eq!(stuck.subscribe(auto).await.unwrap_err().name(), "INVALID");
    let mut its = stuck.subscribe(limited).await.unwrap();
    stuck
        .publish(persistent(Destination::queue("work"), "hard"))
        .await
        .unwrap();
    let held = next(&mut its).await;
    let mut others = other
        .subscribe(request(Destination::queue("work")))
        .await
        .unwrap();
    let again = next(&mut others).await;
    assert_eq!(again.message.backout_count, 1);
    assert!(timeout(PATIENCE, its.next()).await.unwrap().is_none());
    let reason = BusError::AckTimeout { limit_ms: 200 };
    assert_eq!(held.ack().await, Err(reason));
    again.ack().await.unwrap();
    stuck
        .publish(Outgoing::new(
            Destination::queue("work"),
            "its connection lives",
        ))
        .await
        .unwrap();
    broker.shutdown().await;
}

#[tokio::test]
async fn e29_what_a_stuck_consumer_has_not_begun_is_anothers_alone() {
    let directory = TempDir::new().unwrap();
    let broker = broker(&directory).await;
    let (stuck, other) = (bus(&broker, "a"), bus(&broker, "b"));
    let limited = SubscribeRequest {
        ack_timeout: Some(Duration::from_millis(200)),
        ..request(Destination::queue("work"))
    };
    for body in ["1", "2", "3"] {
        let message = persistent(Destination::queue("work"), body);
        other.publish(message).await.unwrap();
    }
    let mut its = stuck.subscribe(limited).await.unwrap();
    let held = next(&mut its).await;
    let mut others = other
        .subscribe(request(Destination::queue("work")))
        .await
        .unwrap();
    for body in ["1", "2", "3"] {
        let delivery = next(&mut others).await;
        assert_eq!(text(&delivery), body);
    }
    assert!(timeout(PATIENCE, its.next()).await.unwrap().is_none());
    assert!(timeout(PATIENCE, its.next()).await.unwrap().is_none());
    let mut together = stuck.transaction();
    together.ack(held);
    let reason = BusError::AckTimeout { limit_ms: 200 };
    assert_eq!(together.commit().await, Err(reason));
    broker.shutdown().await;
}

/// Whoever is told takes it in before others have anything of it.
#[tokio::test]
async fn e29_an_end_that_nobody_has_taken_notice_of_gives_nothing_to_others() {
    let directory = TempDir::new().unwrap();
    let broker = broker(&directory).await;
    let mut stuck = broker.connect("").unwrap();
    let subscribe = Command::Subscribe {
        subscription: 1,
        destination: Destination::queue("work"),
        durable: None,
        ack: AckMode::Individual,
        prefetch: 10,
        selector: None,
        ack_timeout: Some(50),
        options: crate::embedded::connection::SubscribeOptions::default(),
        token: 0,
    };
    stuck.submit(subscribe).await.unwrap();
    let other = bus(&broker, "b");
    let message = persistent(Destination::queue("work"), "1");
    other.publish(message).await.unwrap();
    let ended = async {
        while !matches!(
            stuck.next_event().await,
            Some(Event::SubscriptionClosed { .. })
        ) {}
    };
    timeout(PATIENCE, ended).await.unwrap();
    let get = |wait| GetRequest {
        destination: Destination::queue("work"),
        selector: None,
        wait,
    };
    let early = other.get(get(Wait::No)).await;
    assert_eq!(early.unwrap_err(), BusError::InUse);
    let (_, late) = tokio::join!(
        timeout(Duration::from_millis(500), stuck.next_event()),
        timeout(PATIENCE, other.get(get(Wait::Forever)))
    );
    assert_eq!(text(&late.unwrap().unwrap()), "1");
    broker.shutdown().await;
}

/// With nothing else going on that could wake the owner of the queues; in the middle the process starts again.
#[tokio::test]
async fn b56_messages_come_at_their_times_though_nothing_else_happens() {
    const MESSAGES: u64 = 20;
    let directory = TempDir::new().unwrap();
    let first = broker(&directory).await;
    let mut sender = first.connect("").unwrap();
    for number in 0..MESSAGES {
        let delay = i64::try_from(number * 7 % MESSAGES * 40).unwrap();
        let message = NewMessage {
            persistent: Some(true),
            delay: Some(delay),
            ..NewMessage::new(Destination::queue("work"), "x".into())
        };
        let (transaction, token) = (None, number + 1);
        let command = Command::Send {
            message,
            transaction,
            token,
        };
        sender.submit(command).await.unwrap();
        timeout(PATIENCE, sender.next_event()).await.unwrap();
    }
    let (mut late, mut broker) = (Vec::new(), first);
    for goal in [MESSAGES / 2, MESSAGES] {
        let mut taker = broker.connect("").unwrap();
        let command = Command::Subscribe {
            options: crate::SubscribeOptions::default(),
            subscription: 1,
            destination: Destination::queue("work"),
            durable: None,
            ack: AckMode::Individual,
            prefetch: 1,
            selector: None,
            ack_timeout: None,
            token: 0,
        };
        taker.submit(command).await.unwrap();
        while late.len() < usize::try_from(goal).unwrap() {
            let event = timeout(PATIENCE, taker.next_event()).await.unwrap();
            let Some(Event::Deliver {
                message, delivery, ..
            }) = event
            else {
                continue;
            };
            late.push(SystemClock::shared().now_ms() - message.not_before().unwrap());
            let (transaction, token) = (None, 0);
            let command = Command::Ack {
                delivery,
                transaction,
                token,
            };
            taker.submit(command).await.unwrap();
        }
        broker.shutdown().await;
        broker = Broker::open(options(directory.path())).await.unwrap();
    }
    late.sort_unstable();
    assert!(late[0] >= 0, "{late:?}");
    // Machines are shared: not each of them, but most.
    assert!(late[late.len() / 2] <= 50, "{late:?}");
    assert_eq!(broker.stats().messages, 0);
}

#[tokio::test]
async fn people_can_be_told_of_messages_moved_aside_and_send_them_back() {
    let directory = TempDir::new().unwrap();
    let mut options = options(directory.path());
    options.queues.push(QueueDefinition {
        name: "work".to_owned(),
        attributes: QueueAttributes {
            backout_limit: Some(1),
            backout_queue: Some("aside".to_owned()),
            ..QueueAttributes::default()
        },
        drain: false,
    });
    let broker = Broker::open(options).await.unwrap();
    let bus = bus(&broker, "a");
    bus.publish(persistent(Destination::queue("work"), "bad"))
        .await
        .unwrap();
    let mut work = bus
        .subscribe(request(Destination::queue("work")))
        .await
        .unwrap();
    next(&mut work).await.nack().await.unwrap();
    // Nobody has listened so far.
    let mut moved = broker.notices();
    bus.publish(persistent(Destination::queue("work"), "good"))
        .await
        .unwrap();
    let told = timeout(PATIENCE, moved.recv()).await.unwrap().unwrap();
    let Notice::Moved(told) = told else {
        panic!("{told:?}");
    };
    assert_eq!(
        (told.queue.as_str(), told.moved_to.as_str()),
        ("/queue/work", "/queue/aside")
    );
    assert_eq!(broker.stats().backed_out, 1);
    let mut admin = broker.connect("").unwrap();
    let command = Command::Retry {
        queue: Destination::queue("aside"),
        messages: vec![told.message_id],
        token: 7,
    };
    admin.submit(command).await.unwrap();
    let answer = timeout(PATIENCE, admin.next_event()).await.unwrap();
    let expected = matches!(
        answer,
        Some(Event::Returned {
            token: 7,
            returned: 1,
            skipped: 0
        })
    );
    assert!(expected, "{answer:?}");
    assert_eq!(text(&next(&mut work).await), "good");
    let again = next(&mut work).await;
    assert_eq!(
        (text(&again).as_str(), again.message.backout_count),
        ("bad", 0)
    );
    broker.shutdown().await;
}

#[tokio::test]
async fn lanes_change_while_everything_goes_on() {
    let directory = TempDir::new().unwrap();
    let hash = LaneHash::JavaString;
    let hashed = |count| Lanes::Hashed { count, hash };
    let options = |lanes, drain| {
        let mut options = options(directory.path());
        options.queues.push(QueueDefinition {
            name: "work".to_owned(),
            attributes: QueueAttributes {
                lanes,
                ..QueueAttributes::default()
            },
            drain,
        });
        options
    };
    let broker = Broker::open(options(hashed(4), false)).await.unwrap();
    let sender = bus(&broker, "a");
    let work = || Destination::queue("work");
    let of_a = |body| Outgoing {
        group: Some("a".to_owned()),
        ..persistent(work(), body)
    };
    sender.publish(of_a("1")).await.unwrap();
    let refused = sender.alter_lanes(work(), hashed(3), false).await;
    assert_eq!(refused.unwrap_err().name(), "QUEUE-NOT-EMPTY");
    sender.alter_lanes(work(), hashed(3), true).await.unwrap();
    let (queue, left) = ("work".to_owned(), 1);
    let again = sender.alter_lanes(work(), hashed(2), true).await;
    let lanes = "lanes = \"hashed(3)\", lane_hash = \"java-string\"".to_owned();
    assert_eq!(again, Err(BusError::Draining { queue, left, lanes }));
    sender.publish(of_a("2")).await.unwrap();
    broker.shutdown().await;
    let broker = Broker::open(options(hashed(3), true)).await.unwrap();
    let taker = bus(&broker, "b");
    let mut taken = taker.subscribe(request(work())).await.unwrap();
    for body in ["1", "2"] {
        let delivery = next(&mut taken).await;
        assert_eq!(text(&delivery), body);
        delivery.ack().await.unwrap();
    }
    let waiting = taker.get(GetRequest {
        destination: Destination::queue("work.2"),
        selector: None,
        wait: Wait::Forever,
    });
    // One connection's wishes are dealt with in their order.
    let altered = taker.alter_lanes(work(), hashed(2), false);
    let (told, altered) = tokio::join!(timeout(PATIENCE, waiting), altered);
    altered.unwrap();
    let reason = told.unwrap().unwrap_err().to_string();
    assert!(reason.contains("has no lane 2 any more"), "{reason}");
    let nowhere = Destination::queue("nowhere");
    let unknown = taker.alter_lanes(nowhere, Lanes::Key, false).await;
    assert_eq!(unknown.unwrap_err().name(), "NO-QUEUE");
    broker.shutdown().await;
}

#[tokio::test]
async fn e38_a_queue_destroyed_by_force_ends_what_waits_for_it() {
    let directory = TempDir::new().unwrap();
    let broker = broker(&directory).await;
    let (bus, other) = (bus(&broker, "a"), bus(&broker, "b"));
    let work = || Destination::queue("work");
    let mut taken = bus.subscribe(request(work())).await.unwrap();
    bus.publish(persistent(work(), "1")).await.unwrap();
    let delivery = next(&mut taken).await;
    let refused = other.destroy_queue(work(), false).await;
    assert_eq!(refused.unwrap_err().name(), "QUEUE-NOT-EMPTY");
    let selector = None;
    let wait = Wait::Forever;
    let waiting = other.get(GetRequest {
        destination: work(),
        selector,
        wait,
    });
    let mut waiting = std::pin::pin!(waiting);
    assert!(futures_util::poll!(&mut waiting).is_pending());
    bus.destroy_queue(work(), true).await.unwrap();
    let told = timeout(PATIENCE, waiting).await.unwrap();
    assert_eq!(told.unwrap_err().name(), "NO-QUEUE");
    assert!(timeout(PATIENCE, taken.next()).await.unwrap().is_none());
    delivery.ack().await.unwrap();
    assert_eq!((broker.stats().messages, broker.stats().in_flight), (0, 0));
    let gone = bus.destroy_queue(work(), true).await;
    assert_eq!(gone.unwrap_err().name(), "NO-QUEUE");
    broker.shutdown().await;
}
