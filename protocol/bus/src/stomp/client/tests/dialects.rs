//! The client against brokers of other makers, as their manuals and sources say that they behave.

use std::time::SystemTime;

use tokio::task::JoinHandle;

use super::*;
use crate::{Delivery, Passcode, Subscription};

const ACTIVEMQ: &str = "ActiveMQ/5.17.2";
const ARTEMIS: &str = "ActiveMQ-Artemis/2.33.0 ActiveMQ Artemis Messaging Engine";
const RABBITMQ: &str = "RabbitMQ/3.10.8";

async fn connected(server: &str) -> (Bus, Peer) {
    let (listener, options) = listen().await;
    let bus = connect(options);
    let mut peer = Peer::accept(&listener).await;
    peer.welcome_as(server).await;
    bus.ready(DEADLINE).await.unwrap();
    (bus, peer)
}

fn publishing(bus: &Bus, message: Outgoing) -> JoinHandle<Result<(), BusError>> {
    let bus = bus.clone();
    tokio::spawn(async move { bus.publish(message).await })
}

fn from(destination: Destination, durable: Option<&str>) -> SubscribeRequest {
    SubscribeRequest {
        ack_timeout: None,
        destination,
        durable: durable.map(str::to_owned),
        ack: AckMode::Individual,
        prefetch: 4,
    }
}

fn subscribing(bus: &Bus, request: SubscribeRequest) -> JoinHandle<Subscription> {
    let bus = bus.clone();
    tokio::spawn(async move { bus.subscribe(request).await.unwrap() })
}

async fn subscribed(
    bus: &Bus,
    peer: &mut Peer,
    request: SubscribeRequest,
) -> (Subscription, Frame) {
    let subscribing = subscribing(bus, request);
    let frame = peer.expect(StompCommand::Subscribe).await;
    peer.confirm(&frame).await;
    (subscribing.await.unwrap(), frame)
}

async fn delivered(
    peer: &mut Peer,
    subscription: &mut Subscription,
    id: &str,
    ack: &str,
) -> Delivery {
    let frame = Frame::new(StompCommand::Message)
        .with("subscription", id)
        .with("message-id", format!("m{ack}"))
        .with("destination", "/queue/q")
        .with("ack", ack);
    peer.send(frame).await;
    subscription.next().await.unwrap()
}

fn expiring() -> Outgoing {
    Outgoing {
        ttl: Some(Duration::from_secs(60)),
        ..persistent("body")
    }
}

#[tokio::test]
async fn expiry_is_written_as_each_broker_reads_it() {
    let now = || {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        u64::try_from(since.unwrap().as_millis()).unwrap()
    };
    for (server, header, absolute) in [
        ("Pillarbox/1", "q-ttl", false),
        (ACTIVEMQ, "expires", true),
        (ARTEMIS, "expires", true),
        (RABBITMQ, "expiration", false),
        ("Somebody/1", "expires", true),
    ] {
        let (bus, mut peer) = connected(server).await;
        let before = if absolute { now() } else { 0 };
        let sent = publishing(&bus, expiring());
        let frame = peer.expect(StompCommand::Send).await;
        let after = if absolute { now() } else { 0 };
        let at: u64 = frame.header(header).unwrap().parse().unwrap();
        assert!(
            (before + 50_000..=after + 60_000).contains(&at),
            "{server}: {at}"
        );
        let others = ["q-ttl", "expires", "expiration"];
        let written = others.iter().filter(|it| frame.header(it).is_some());
        assert_eq!(written.count(), 1, "{server}: {frame:?}");
        peer.confirm(&frame).await;
        sent.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn prefetch_and_durable_subscriptions_are_named_as_each_broker_reads_them() {
    let topic = || from(Destination::topic("books"), Some("south@topic"));
    for server in [ACTIVEMQ, ARTEMIS] {
        let (bus, mut peer) = connected(server).await;
        let (_subscription, frame) = subscribed(&bus, &mut peer, topic()).await;
        for header in ["activemq.subscriptionName", "durable-subscription-name"] {
            assert_eq!(frame.header(header), Some("south@topic"), "{server}");
        }
        assert_eq!(frame.header("x-queue-name"), None, "{server}");
        let prefetch = frame.header("activemq.prefetchSize");
        assert_eq!(prefetch.is_some(), server == ACTIVEMQ);
        let bytes = frame.header("consumer-window-size");
        assert_eq!(bytes, (server == ARTEMIS).then_some("65536"));
    }
    let (bus, mut peer) = connected(RABBITMQ).await;
    let (subscription, frame) = subscribed(&bus, &mut peer, topic()).await;
    for (header, value) in [
        ("prefetch-count", "4"),
        ("durable", "true"),
        ("auto-delete", "false"),
        ("x-queue-name", "pillar 1/south@topic/books"),
    ] {
        assert_eq!(frame.header(header), Some(value), "{header}");
    }
    assert_eq!(frame.header("activemq.subscriptionName"), None);
    let cancelling = tokio::spawn(subscription.cancel());
    let frame = peer.expect(StompCommand::Unsubscribe).await;
    assert_eq!(frame.header("durable"), Some("true"));
    peer.confirm(&frame).await;
    cancelling.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_durable_subscription_is_ended_before_it_is_deleted_where_that_is_not_one() {
    let topic = || from(Destination::topic("books"), Some("south@topic"));
    for (server, header, ended_before) in [
        ("Pillarbox/1", "activemq.subscriptionName", false),
        (ACTIVEMQ, "activemq.subscriptionName", true),
        (ARTEMIS, "durable-subscription-name", true),
        (RABBITMQ, "x-queue-name", false),
    ] {
        let (bus, mut peer) = connected(server).await;
        let (subscription, _) = subscribed(&bus, &mut peer, topic()).await;
        let cancelling = tokio::spawn(subscription.cancel());
        if ended_before {
            let frame = peer.expect(StompCommand::Unsubscribe).await;
            assert_eq!(frame.header("id"), Some("1"), "{server}");
            assert_eq!(frame.header(header), None, "{server}");
        }
        let frame = peer.expect(StompCommand::Unsubscribe).await;
        assert!(frame.header(header).is_some(), "{server}: {frame:?}");
        peer.confirm(&frame).await;
        cancelling.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn what_a_broker_passes_on_of_a_frame_is_no_property() {
    let (bus, mut peer) = connected(RABBITMQ).await;
    let queue = from(Destination::queue("q"), None);
    let (mut subscription, _) = subscribed(&bus, &mut peer, queue).await;
    let message = Frame::new(StompCommand::Message)
        .with("subscription", "1")
        .with("message-id", "m")
        .with("ack", "a")
        .with("receipt", "7")
        .with("transaction", "t1")
        .with("expiration", "60000")
        .with("amq-msg-type", "text")
        .with("org.bitrepository.messages.type", "PutFileRequest");
    peer.send(message).await;
    let delivery = subscription.next().await.unwrap();
    let own = (
        "org.bitrepository.messages.type".to_owned(),
        "PutFileRequest".to_owned(),
    );
    assert_eq!(delivery.message.properties, [own]);
}

#[tokio::test]
async fn what_names_a_delivery_names_no_message() {
    for (server, id) in [
        ("Pillarbox/1", Some("ma")),
        (ACTIVEMQ, Some("ma")),
        (ARTEMIS, Some("ma")),
        (RABBITMQ, None),
        ("Somebody/1", None),
    ] {
        let (bus, mut peer) = connected(server).await;
        let queue = from(Destination::queue("q"), None);
        let (mut subscription, _) = subscribed(&bus, &mut peer, queue).await;
        let delivery = delivered(&mut peer, &mut subscription, "1", "a").await;
        assert_eq!(delivery.lasting_id(), id, "{server}");
    }
}

#[tokio::test]
async fn b20_giving_back_over_activemq_ends_the_subscription_for_a_while() {
    for server in [ACTIVEMQ, ARTEMIS, "Somebody/1"] {
        let (bus, mut peer) = connected(server).await;
        let queue = from(Destination::queue("q"), None);
        let (mut subscription, frame) = subscribed(&bus, &mut peer, queue).await;
        assert_eq!(frame.header("id"), Some("1"));
        let first = delivered(&mut peer, &mut subscription, "1", "a").await;
        let second = delivered(&mut peer, &mut subscription, "1", "b").await;
        first.nack().await.unwrap();
        let frame = peer.expect(StompCommand::Unsubscribe).await;
        assert_eq!(frame.header("id"), Some("1"), "{server}");
        assert_eq!(second.ack().await, Err(BusError::StaleAck), "{server}");
        // What was on its way then is not this consumer's any more.
        let late = Frame::new(StompCommand::Message)
            .with("subscription", "1")
            .with("message-id", "late")
            .with("ack", "c");
        peer.send(late).await;
        let frame = peer.expect(StompCommand::Subscribe).await;
        assert_eq!(frame.header("id"), Some("1.1"), "{server}");
        peer.confirm(&frame).await;
        let again = delivered(&mut peer, &mut subscription, "1.1", "d").await;
        assert_eq!(again.message.message_id, "md", "{server}");
        let acked = tokio::spawn(again.ack());
        let frame = peer.expect(StompCommand::Ack).await;
        assert_eq!(frame.header("id"), Some("d"), "{server}");
        peer.confirm(&frame).await;
        acked.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_plain_topic_keeps_nothing_that_could_be_given_back() {
    let (bus, mut peer) = connected(ACTIVEMQ).await;
    let topic = from(Destination::topic("t"), None);
    let (mut subscription, _) = subscribed(&bus, &mut peer, topic).await;
    let delivery = delivered(&mut peer, &mut subscription, "1", "a").await;
    delivery.nack().await.unwrap();
    let frame = peer.expect(StompCommand::Ack).await;
    assert_eq!(frame.header("id"), Some("a"));
}

#[tokio::test]
async fn giving_back_over_rabbitmq_waits() {
    let (bus, mut peer) = connected(RABBITMQ).await;
    let queue = from(Destination::queue("q"), None);
    let (mut subscription, _) = subscribed(&bus, &mut peer, queue).await;
    let delivery = delivered(&mut peer, &mut subscription, "1", "a").await;
    delivery.nack().await.unwrap();
    peer.expect_nothing(Duration::from_millis(500)).await;
    let frame = peer.expect(StompCommand::Nack).await;
    assert_eq!(frame.header("id"), Some("a"));
}

/// RabbitMQ 3.10 answers a NACK for a subscription that is gone with an ERROR.
#[tokio::test]
async fn b37_what_unsubscribing_leaves_behind_is_given_back_under_the_same_id() {
    let (bus, mut peer) = connected(RABBITMQ).await;
    let queue = from(Destination::queue("q"), None);
    let (mut subscription, _) = subscribed(&bus, &mut peer, queue).await;
    let _kept = delivered(&mut peer, &mut subscription, "1", "kept").await;
    let rests = delivered(&mut peer, &mut subscription, "1", "rests").await;
    rests.nack().await.unwrap();
    let unsubscribing = tokio::spawn(subscription.unsubscribe());
    let unsubscribe = peer.expect(StompCommand::Unsubscribe).await;
    assert_eq!(unsubscribe.header("id"), Some("1"));
    let late = Frame::new(StompCommand::Message)
        .with("subscription", "1")
        .with("message-id", "m")
        .with("ack", "late");
    peer.send(late).await;
    // Longer than anything rests.
    peer.expect_nothing(Duration::from_millis(1500)).await;
    peer.confirm(&unsubscribe).await;
    let subscribe = peer.expect(StompCommand::Subscribe).await;
    assert_eq!(subscribe.header("id"), Some("1"));
    assert_ne!(subscribe.header("destination"), Some("/queue/q"));
    for ack in ["rests", "kept", "late"] {
        let frame = peer.expect(StompCommand::Nack).await;
        assert_eq!(frame.header("id"), Some(ack));
    }
    let frame = peer.expect(StompCommand::Unsubscribe).await;
    assert_eq!(frame.header("id"), Some("1"));
    assert!(!unsubscribing.is_finished());
    peer.confirm(&frame).await;
    unsubscribing.await.unwrap().unwrap();
}

#[tokio::test]
async fn what_rests_of_a_deleted_subscription_is_not_given_back() {
    let (bus, mut peer) = connected(RABBITMQ).await;
    let topic = from(Destination::topic("books"), Some("south@topic"));
    let (mut subscription, _) = subscribed(&bus, &mut peer, topic).await;
    let rests = delivered(&mut peer, &mut subscription, "1", "rests").await;
    rests.nack().await.unwrap();
    let cancelling = tokio::spawn(subscription.cancel());
    let frame = peer.expect(StompCommand::Unsubscribe).await;
    peer.confirm(&frame).await;
    cancelling.await.unwrap().unwrap();
    peer.expect_nothing(Duration::from_millis(1500)).await;
}

fn committing(
    bus: &Bus,
    deliveries: Vec<Delivery>,
    sends: Vec<Outgoing>,
) -> JoinHandle<Result<(), BusError>> {
    let mut transaction = bus.transaction();
    for message in sends {
        transaction.send(message);
    }
    for delivery in deliveries {
        transaction.ack(delivery);
    }
    tokio::spawn(transaction.commit())
}

#[tokio::test]
async fn where_acknowledgements_are_no_part_of_transactions_they_come_last() {
    for server in [ARTEMIS, RABBITMQ, "Somebody/1"] {
        let (bus, mut peer) = connected(server).await;
        let queue = from(Destination::queue("q"), None);
        let (mut subscription, _) = subscribed(&bus, &mut peer, queue).await;
        let delivery = delivered(&mut peer, &mut subscription, "1", "a").await;
        let sends = vec![persistent("1"), persistent("2")];
        let committed = committing(&bus, vec![delivery], sends);
        let first = peer.expect(StompCommand::Send).await;
        let second = peer.expect(StompCommand::Send).await;
        assert_eq!(first.header("transaction"), None, "{server}");
        peer.confirm(&second).await;
        peer.expect_nothing(Duration::from_millis(100)).await;
        peer.confirm(&first).await;
        let ack = peer.expect(StompCommand::Ack).await;
        assert_eq!(ack.header("id"), Some("a"), "{server}");
        assert!(!committed.is_finished());
        peer.confirm(&ack).await;
        committed.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn an_answer_that_was_not_confirmed_leaves_its_request_unacknowledged() {
    let (listener, options) = listen().await;
    let bus = connect(options);
    let mut peer = Peer::accept(&listener).await;
    peer.welcome_as(RABBITMQ).await;
    let queue = from(Destination::queue("q"), None);
    let (mut subscription, _) = subscribed(&bus, &mut peer, queue).await;
    let delivery = delivered(&mut peer, &mut subscription, "1", "a").await;
    let committed = committing(&bus, vec![delivery], vec![persistent("1"), persistent("2")]);
    let first = peer.expect(StompCommand::Send).await;
    peer.confirm(&first).await;
    peer.expect(StompCommand::Send).await;
    drop(peer);
    assert!(committed.await.unwrap().is_err());
    // On the next connection nothing of it is acknowledged or sent.
    let mut peer = Peer::accept(&listener).await;
    peer.welcome_as(RABBITMQ).await;
    let frame = peer.expect(StompCommand::Subscribe).await;
    peer.confirm(&frame).await;
    peer.expect_nothing(Duration::from_millis(300)).await;
}

#[tokio::test]
async fn rabbitmq_makes_a_temporary_queue_by_itself() {
    let (bus, mut peer) = connected(RABBITMQ).await;
    let mine = Destination::new(DestinationKind::TemporaryQueue, "answers");
    let mut subscription = bus.subscribe(from(mine.clone(), None)).await.unwrap();
    let question = Outgoing {
        reply_to: Some(mine),
        ..persistent("?")
    };
    let sent = publishing(&bus, question);
    let frame = peer.expect(StompCommand::Send).await;
    assert_eq!(frame.header("reply-to"), Some("/temp-queue/answers"));
    peer.confirm(&frame).await;
    sent.await.unwrap().unwrap();
    let answer = Frame::new(StompCommand::Message)
        .with("subscription", "/temp-queue/answers")
        .with("message-id", "m")
        .with("destination", "/queue/amq.gen-x");
    peer.send(answer).await;
    subscription.next().await.unwrap().ack().await.unwrap();
    subscription.unsubscribe().await.unwrap();
    peer.expect_nothing(Duration::from_millis(100)).await;
}

#[tokio::test]
async fn rabbitmqs_reply_queues_are_answered() {
    let (bus, mut peer) = connected(RABBITMQ).await;
    let queue = from(Destination::queue("100% q"), None);
    let (mut subscription, frame) = subscribed(&bus, &mut peer, queue).await;
    assert_eq!(frame.header("destination"), Some("/queue/100%25 q"));
    let question = Frame::new(StompCommand::Message)
        .with("subscription", "1")
        .with("message-id", "m")
        .with("reply-to", "/reply-queue/amq.gen-x")
        .with("ack", "a");
    peer.send(question).await;
    let delivery = subscription.next().await.unwrap();
    assert_eq!(delivery.message.destination, Destination::queue("100% q"));
    let reply_to = delivery.message.reply_to.clone().unwrap();
    let reply_to = crate::spelling::from_stomp(&reply_to).unwrap();
    let sent = publishing(&bus, Outgoing::new(reply_to, "!"));
    let frame = peer.expect(StompCommand::Send).await;
    assert_eq!(frame.header("destination"), Some("/reply-queue/amq.gen-x"));
    peer.confirm(&frame).await;
    sent.await.unwrap().unwrap();
}

#[tokio::test]
async fn artemis_is_not_told_the_length_of_text() {
    for (server, measured) in [(ARTEMIS, false), (ACTIVEMQ, true), (RABBITMQ, true)] {
        let (listener, options) = listen().await;
        let bus = connect(options);
        let mut peer = Peer::accept(&listener).await;
        peer.welcome_as(server).await;
        bus.ready(DEADLINE).await.unwrap();
        let sent = publishing(&bus, persistent("text"));
        let raw = peer.raw_frame().await;
        let head = String::from_utf8_lossy(&raw).to_string();
        assert_eq!(
            head.contains("\ncontent-length:4\n"),
            measured,
            "{server}: {head}"
        );
        assert!(head.ends_with("\n\ntext\0"), "{server}: {head}");
        assert!(head.contains("\namq-msg-type:text\n"), "{server}: {head}");
        drop(sent);
    }
    let (bus, _peer) = connected(ARTEMIS).await;
    let nul = bus.publish(persistent("a\0b")).await.unwrap_err();
    assert_eq!(nul.name(), "INVALID", "{nul}");
}

#[tokio::test]
async fn e42_a_header_too_long_for_the_broker_is_refused_here() {
    let (bus, mut peer) = connected(ACTIVEMQ).await;
    let long = |length: usize| Outgoing {
        properties: vec![("signature".to_owned(), "x".repeat(length))],
        ..persistent("body")
    };
    // The line is the name, a colon and the value.
    let refused = bus.publish(long((10 << 10) - 9)).await.unwrap_err();
    assert_eq!(refused.name(), "LIMIT", "{refused}");
    let sent = publishing(&bus, long((10 << 10) - 10));
    let frame = peer.expect(StompCommand::Send).await;
    peer.confirm(&frame).await;
    sent.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_login_is_said_to_the_broker_and_to_nobody_else() {
    let (listener, mut options) = listen().await;
    options.login = Some("north".to_owned());
    options.passcode = Some(Passcode::new("se:cret"));
    options.virtual_host = Some("archive".to_owned());
    assert!(!format!("{options:?}").contains("se:cret"));
    let _bus = connect(options);
    let mut peer = Peer::accept(&listener).await;
    let hello = peer.welcome_as(RABBITMQ).await;
    assert_eq!(hello.header("login"), Some("north"));
    assert_eq!(hello.header("passcode"), Some("se:cret"));
    assert_eq!(hello.header("host"), Some("archive"));
}

#[tokio::test]
async fn a_broker_without_a_host_of_the_addresss_name_is_asked_for_its_own() {
    let (listener, options) = listen().await;
    let bus = connect(options);
    let mut peer = Peer::accept(&listener).await;
    let hello = peer.expect(StompCommand::Connect).await;
    assert_eq!(hello.header("host"), Some("127.0.0.1"));
    assert_eq!(hello.header("login"), None);
    let mut error = Frame::new(StompCommand::Error).with("message", "Bad CONNECT");
    error.body = "Virtual host '127.0.0.1' access denied".into();
    peer.send(error).await;
    drop(peer);
    let mut peer = Peer::accept(&listener).await;
    let hello = peer.welcome_as(RABBITMQ).await;
    assert_eq!(hello.header("host"), Some("/"));
    bus.ready(DEADLINE).await.unwrap();
}

#[tokio::test]
async fn other_brokers_are_administered_with_their_own_tools() {
    for (server, told) in [
        (ACTIVEMQ, "it is ActiveMQ; use its web console"),
        (ARTEMIS, "it is Artemis; use its console"),
        (RABBITMQ, "'rabbitmqctl list_queues'"),
        ("Something/1", "it is a STOMP broker; use its own tools"),
        // One of ours that says nothing of it.
        (
            "Pillarbox/0.1.0",
            "it is an older Pillarbox; restart it with this version",
        ),
    ] {
        let (bus, mut peer) = connected(server).await;
        let error = bus.administration().await.unwrap_err();
        assert_eq!(error.name(), "NOT-HERE");
        assert!(error.to_string().contains(told), "{error}");
        // It has not been bothered.
        peer.expect_nothing(Duration::from_millis(20)).await;
    }
}
