//! The client against a scripted bus.

mod dialects;

use std::time::Duration;

use pillarbox_messages::{Destination, DestinationKind};
use tokio::net::TcpListener;

use crate::{
    AckMode, Bus, BusError, BusState, ConnectOptions, Outgoing, SubscribeRequest,
    stomp::{
        StompOptions,
        frame::{Frame, StompCommand},
        testing::{DEADLINE, Peer},
    },
};

async fn listen() -> (TcpListener, StompOptions) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut options = StompOptions::new(listener.local_addr().unwrap().to_string());
    options.shortest_pause = Duration::from_millis(10);
    options.longest_pause = Duration::from_millis(50);
    (listener, options)
}

fn connect(options: StompOptions) -> Bus {
    Bus::stomp(
        options,
        ConnectOptions {
            client_id: "pillar 1".to_owned(),
        },
    )
}

fn persistent(body: &'static str) -> Outgoing {
    Outgoing {
        persistent: true,
        ..Outgoing::new(Destination::queue("q"), body)
    }
}

fn request(ack: AckMode) -> SubscribeRequest {
    let destination = Destination::topic("t");
    SubscribeRequest {
        destination,
        durable: Some("sub".to_owned()),
        ack,
        prefetch: 4,
    }
}

fn message(ack: &str) -> Frame {
    let frame = Frame::new(StompCommand::Message)
        .with("subscription", "1")
        .with("message-id", format!("m{ack}"))
        .with("destination", "/topic/t")
        .with("ack", ack);
    Frame {
        body: "hello".into(),
        ..frame
    }
}

#[tokio::test]
async fn sends_everything_a_message_has() {
    let (listener, options) = listen().await;
    let bus = connect(options);
    let mut peer = Peer::accept(&listener).await;
    let hello = peer.welcome().await;
    assert_eq!(hello.header("client-id"), Some("pillar 1"));
    assert_eq!(hello.header("accept-version"), Some("1.2"));
    bus.ready(DEADLINE).await.unwrap();
    let message = Outgoing {
        properties: vec![(
            "org.bitrepository.messages.type".to_owned(),
            "a:b".to_owned(),
        )],
        ttl: Some(Duration::from_secs(60)),
        correlation_id: Some("c".to_owned()),
        reply_to: Some(Destination::topic("root's client")),
        group: Some("g".to_owned()),
        ..persistent("body")
    };
    let publishing = tokio::spawn({
        let bus = bus.clone();
        async move { bus.publish(message).await }
    });
    let frame = peer.expect(StompCommand::Send).await;
    for (name, value) in [
        ("destination", "/queue/q"),
        ("persistent", "true"),
        ("priority", "4"),
        ("correlation-id", "c"),
        ("reply-to", "/topic/root's client"),
        ("JMSXGroupID", "g"),
        ("amq-msg-type", "text"),
        ("org.bitrepository.messages.type", "a:b"),
    ] {
        assert_eq!(frame.header(name), Some(value), "{name}");
    }
    let ttl: u64 = frame.header("q-ttl").unwrap().parse().unwrap();
    assert!((50_000..=60_000).contains(&ttl), "{ttl}");
    assert_eq!(frame.body, "body");
    assert!(!publishing.is_finished());
    peer.confirm(&frame).await;
    publishing.await.unwrap().unwrap();
}

#[tokio::test]
async fn publishing_many_waits_for_nothing_in_between() {
    let (listener, options) = listen().await;
    let bus = connect(options);
    let mut peer = Peer::accept(&listener).await;
    peer.welcome().await;
    let messages = vec![persistent("1"), persistent("2"), persistent("3")];
    let publishing = tokio::spawn(async move { bus.publish_all(messages).await });
    let mut frames = Vec::new();
    for _ in 0..3 {
        frames.push(peer.expect(StompCommand::Send).await);
    }
    for frame in &frames {
        peer.confirm(frame).await;
    }
    publishing.await.unwrap().unwrap();
}

#[tokio::test]
async fn one_message_that_can_not_be_sent_is_no_harm_to_the_others() {
    let (listener, options) = listen().await;
    let bus = connect(options);
    let mut peer = Peer::accept(&listener).await;
    peer.welcome().await;
    let mut odd = persistent("2");
    odd.properties.push((String::new(), "no name".to_owned()));
    let messages = vec![persistent("1"), odd, persistent("3")];
    let publishing = tokio::spawn(async move { bus.publish_each(messages).await });
    for body in ["1", "3"] {
        let frame = peer.expect(StompCommand::Send).await;
        assert_eq!(frame.body, body);
        peer.confirm(&frame).await;
    }
    let results = publishing.await.unwrap();
    let taken: Vec<bool> = results.iter().map(Result::is_ok).collect();
    assert_eq!(taken, [true, false, true], "{results:?}");
}

#[tokio::test]
async fn an_absent_bus_is_named_and_waited_for() {
    let (listener, options) = listen().await;
    let address = options.addresses[0].clone();
    drop(listener);
    let bus = connect(options);
    let error = bus.ready(Duration::from_millis(300)).await.unwrap_err();
    assert!(matches!(&error, BusError::Unreachable { .. }), "{error}");
    assert!(error.to_string().contains(&address), "{error}");
    let listener = TcpListener::bind(&address).await.unwrap();
    let mut peer = Peer::accept(&listener).await;
    peer.welcome().await;
    bus.ready(DEADLINE).await.unwrap();
}

#[tokio::test]
async fn a_client_id_in_use_is_final_at_first() {
    let (listener, options) = listen().await;
    let bus = connect(options);
    let mut peer = Peer::accept(&listener).await;
    peer.expect(StompCommand::Connect).await;
    peer.refuse("CLIENT-ID-IN-USE", None).await;
    let error = bus.ready(DEADLINE).await.unwrap_err();
    assert_eq!(error, BusError::ClientIdInUse("pillar 1".to_owned()));
    assert_eq!(bus.publish(persistent("x")).await.unwrap_err(), error);
    assert_eq!(*bus.state().borrow(), BusState::Failed(error));
}

#[tokio::test]
async fn a_client_id_in_use_is_tried_again_once_it_was_ours() {
    let (listener, options) = listen().await;
    let bus = connect(options);
    let mut peer = Peer::accept(&listener).await;
    peer.welcome().await;
    bus.ready(DEADLINE).await.unwrap();
    drop(peer);
    let mut peer = Peer::accept(&listener).await;
    peer.expect(StompCommand::Connect).await;
    peer.refuse("CLIENT-ID-IN-USE", None).await;
    let mut peer = Peer::accept(&listener).await;
    peer.welcome().await;
    bus.ready(DEADLINE).await.unwrap();
}

#[tokio::test]
async fn persistent_messages_without_receipt_are_sent_again() {
    let (listener, options) = listen().await;
    let bus = connect(options);
    let mut peer = Peer::accept(&listener).await;
    peer.welcome().await;
    let publishing = tokio::spawn(async move { bus.publish(persistent("x")).await });
    peer.expect(StompCommand::Send).await;
    drop(peer);
    let mut peer = Peer::accept(&listener).await;
    peer.welcome().await;
    let again = peer.expect(StompCommand::Send).await;
    assert_eq!(again.body, "x");
    peer.confirm(&again).await;
    publishing.await.unwrap().unwrap();
}

#[tokio::test]
async fn volatile_messages_fail_after_their_time() {
    let (listener, mut options) = listen().await;
    options.volatile_timeout = Duration::from_millis(50);
    drop(listener);
    let bus = connect(options);
    let error = bus
        .publish(Outgoing::new(Destination::topic("t"), "x"))
        .await
        .unwrap_err();
    assert!(matches!(error, BusError::Unreachable { .. }), "{error}");
}

#[tokio::test]
async fn a_refused_message_is_told_to_its_sender_only() {
    let (listener, options) = listen().await;
    let bus = connect(options);
    let mut peer = Peer::accept(&listener).await;
    peer.welcome().await;
    let first = tokio::spawn({
        let bus = bus.clone();
        async move { bus.publish(persistent("1")).await }
    });
    let refused = peer.expect(StompCommand::Send).await;
    let second = tokio::spawn(async move { bus.publish(persistent("2")).await });
    peer.expect(StompCommand::Send).await;
    peer.refuse("NO-SPACE", Some(&refused)).await;
    let error = first.await.unwrap().unwrap_err();
    assert!(matches!(error, BusError::NoSpace(_)), "{error}");
    let mut peer = Peer::accept(&listener).await;
    peer.welcome().await;
    let again = peer.expect(StompCommand::Send).await;
    assert_eq!(again.body, "2");
    peer.confirm(&again).await;
    second.await.unwrap().unwrap();
}

/// Without this a message that the bus can't take would be sent for ever.
#[tokio::test]
async fn a_message_that_always_closes_the_connection_fails_in_the_end() {
    let (listener, options) = listen().await;
    let bus = connect(options);
    let serving = async {
        loop {
            let mut peer = Peer::accept(&listener).await;
            peer.welcome().await;
            peer.expect(StompCommand::Send).await;
            peer.refuse("LIMIT", None).await;
        }
    };
    let result = tokio::select! {
        result = bus.publish(persistent("1")) => result,
        () = serving => unreachable!(),
    };
    assert!(matches!(result, Err(BusError::Refused { .. })));
}

#[tokio::test]
async fn deliveries_of_an_earlier_connection_are_stale() {
    let (listener, options) = listen().await;
    let bus = connect(options);
    let mut peer = Peer::accept(&listener).await;
    peer.welcome().await;
    let subscribing = tokio::spawn({
        let bus = bus.clone();
        async move { bus.subscribe(request(AckMode::Individual)).await }
    });
    let frame = peer.expect(StompCommand::Subscribe).await;
    assert_eq!(frame.header("ack"), Some("client-individual"));
    assert_eq!(frame.header("activemq.subscriptionName"), Some("sub"));
    assert_eq!(frame.header("activemq.prefetchSize"), Some("4"));
    peer.confirm(&frame).await;
    let mut subscription = subscribing.await.unwrap().unwrap();
    peer.send(message("1")).await;
    let old = subscription.next().await.unwrap();
    drop(peer);

    let mut peer = Peer::accept(&listener).await;
    peer.welcome().await;
    let frame = peer.expect(StompCommand::Subscribe).await;
    peer.confirm(&frame).await;
    peer.send(message("1").with("redelivered", "true")).await;
    let new = subscription.next().await.unwrap();
    assert_eq!(
        (new.message.redelivered, new.message.delivery_count),
        (true, 2)
    );
    assert_eq!(old.ack().await, Err(BusError::StaleAck));
    let acking = tokio::spawn(new.ack());
    let ack = peer.expect(StompCommand::Ack).await;
    assert_eq!(ack.header("id"), Some("1"));
    peer.confirm(&ack).await;
    acking.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_consumer_that_stands_still_keeps_the_connection() {
    let (listener, options) = listen().await;
    let bus = connect(options);
    let mut subscription = None;
    // Each connection fills the window again; nothing of it is taken before the last.
    for round in 0..4 {
        let mut peer = Peer::accept(&listener).await;
        peer.welcome().await;
        let subscribing = async {
            if subscription.is_none() {
                subscription = Some(bus.subscribe(request(AckMode::Individual)).await.unwrap());
            }
        };
        let serving = async {
            let frame = peer.expect(StompCommand::Subscribe).await;
            peer.confirm(&frame).await;
        };
        tokio::join!(subscribing, serving);
        for number in 0..4 {
            peer.send(message(&format!("{round}.{number}"))).await;
        }
        // What was sent has arrived once this has been answered.
        let publishing = bus.publish(persistent("x"));
        let answering = async {
            let frame = peer.expect(StompCommand::Send).await;
            peer.confirm(&frame).await;
        };
        tokio::join!(answering, async { publishing.await.unwrap() });
        if round == 3 {
            let subscription = subscription.as_mut().unwrap();
            let mut last = String::new();
            while last != "m3.3" {
                let next = tokio::time::timeout(DEADLINE, subscription.next())
                    .await
                    .unwrap();
                last.clone_from(&next.unwrap().message.message_id);
            }
        }
    }
}

#[tokio::test]
async fn a_consumer_that_stands_still_holds_up_no_other() {
    let (listener, options) = listen().await;
    let bus = connect(options);
    let mut peer = Peer::accept(&listener).await;
    peer.welcome().await;
    let subscribing = tokio::spawn(async move {
        let still = bus.subscribe(request(AckMode::Individual)).await.unwrap();
        let moving = bus.subscribe(request(AckMode::Individual)).await.unwrap();
        (still, moving)
    });
    for _ in 0..2 {
        let frame = peer.expect(StompCommand::Subscribe).await;
        peer.confirm(&frame).await;
    }
    let (_still, mut moving) = subscribing.await.unwrap();
    // More than there is room for with either.
    for subscription in ["1", "2"] {
        for number in 0..8 {
            let mut message = message(&number.to_string());
            message.headers[0].1 = subscription.to_owned();
            peer.send(message).await;
        }
    }
    for number in 0..8 {
        let next = tokio::time::timeout(DEADLINE, moving.next()).await.unwrap();
        assert_eq!(next.unwrap().message.message_id, format!("m{number}"));
    }
}

#[tokio::test]
async fn a_subscription_that_is_refused_ends_alone() {
    let (listener, options) = listen().await;
    let bus = connect(options);
    let mut peer = Peer::accept(&listener).await;
    peer.welcome().await;
    let subscribing = tokio::spawn({
        let bus = bus.clone();
        async move { bus.subscribe(request(AckMode::Auto)).await }
    });
    let frame = peer.expect(StompCommand::Subscribe).await;
    peer.refuse("NO-QUEUE", Some(&frame)).await;
    let error = subscribing.await.unwrap().unwrap_err();
    let expected = BusError::UnknownDestination {
        destination: Destination::topic("t"),
        remedy: "of that".to_owned(),
    };
    assert_eq!(error, expected);
    let mut peer = Peer::accept(&listener).await;
    peer.welcome().await;
    peer.expect_nothing(Duration::from_millis(100)).await;
}

#[tokio::test]
async fn automatic_acknowledgement_happens_when_a_message_is_taken() {
    let (listener, options) = listen().await;
    let bus = connect(options);
    let mut peer = Peer::accept(&listener).await;
    peer.welcome().await;
    let subscribing = tokio::spawn(async move { bus.subscribe(request(AckMode::Auto)).await });
    let frame = peer.expect(StompCommand::Subscribe).await;
    peer.confirm(&frame).await;
    let mut subscription = subscribing.await.unwrap().unwrap();
    peer.send(message("7")).await;
    peer.expect_nothing(Duration::from_millis(50)).await;
    subscription.next().await.unwrap();
    assert_eq!(peer.expect(StompCommand::Ack).await.header("id"), Some("7"));
}

#[tokio::test]
async fn a_transaction_is_one_receipt() {
    let (listener, options) = listen().await;
    let bus = connect(options);
    let mut peer = Peer::accept(&listener).await;
    peer.welcome().await;
    let subscribing = tokio::spawn({
        let bus = bus.clone();
        async move { bus.subscribe(request(AckMode::Individual)).await }
    });
    let frame = peer.expect(StompCommand::Subscribe).await;
    peer.confirm(&frame).await;
    let mut subscription = subscribing.await.unwrap().unwrap();
    peer.send(message("1")).await;
    let mut transaction = bus.transaction();
    transaction.send(persistent("answer"));
    transaction.ack(subscription.next().await.unwrap());
    let committing = tokio::spawn(transaction.commit());
    let begin = peer.expect(StompCommand::Begin).await;
    let name = begin.header("transaction");
    for command in [StompCommand::Send, StompCommand::Ack] {
        let frame = peer.expect(command).await;
        assert_eq!(frame.header("transaction"), name);
        assert_eq!(frame.header("receipt"), None);
    }
    let commit = peer.expect(StompCommand::Commit).await;
    assert_eq!(commit.header("transaction"), name);
    peer.confirm(&commit).await;
    committing.await.unwrap().unwrap();
}

/// What its message would have acknowledged must not stay in nobody's hands.
#[tokio::test]
async fn a_transaction_that_can_not_be_sent_gives_its_deliveries_back() {
    let (listener, options) = listen().await;
    let bus = connect(options);
    let mut peer = Peer::accept(&listener).await;
    peer.welcome().await;
    let subscribing = tokio::spawn({
        let bus = bus.clone();
        async move { bus.subscribe(request(AckMode::Individual)).await }
    });
    let frame = peer.expect(StompCommand::Subscribe).await;
    peer.confirm(&frame).await;
    let mut subscription = subscribing.await.unwrap().unwrap();
    peer.send(message("1")).await;
    let mut transaction = bus.transaction();
    transaction.ack(subscription.next().await.unwrap());
    let temporary = Destination::new(DestinationKind::TemporaryQueue, "1.2.a,b");
    transaction.send(Outgoing::new(temporary, "answer"));
    let committing = tokio::spawn(transaction.commit());
    let nack = peer.expect(StompCommand::Nack).await;
    assert_eq!(nack.header("id"), Some("1"));
    assert_eq!(nack.header("transaction"), None);
    peer.confirm(&nack).await;
    let error = committing.await.unwrap().unwrap_err();
    assert_eq!(error.name(), "INVALID", "{error}");
}

#[tokio::test]
async fn closing_waits_for_the_receipt_but_not_for_ever() {
    let (listener, mut options) = listen().await;
    options.close_timeout = Duration::from_millis(100);
    for answers in [true, false] {
        let bus = connect(options.clone());
        let mut peer = Peer::accept(&listener).await;
        peer.welcome().await;
        bus.ready(DEADLINE).await.unwrap();
        let closing = tokio::spawn({
            let bus = bus.clone();
            async move { bus.close().await }
        });
        let disconnect = peer.expect(StompCommand::Disconnect).await;
        if answers {
            peer.confirm(&disconnect).await;
        }
        closing.await.unwrap().unwrap();
        assert_eq!(*bus.state().borrow(), BusState::Closed);
        assert_eq!(bus.publish(persistent("x")).await, Err(BusError::Closed));
    }
}

#[tokio::test]
async fn the_last_handle_closes_the_connection() {
    let (listener, options) = listen().await;
    let bus = connect(options);
    let mut peer = Peer::accept(&listener).await;
    peer.welcome().await;
    bus.ready(DEADLINE).await.unwrap();
    let other = bus.clone();
    drop(bus);
    peer.expect_nothing(Duration::from_millis(50)).await;
    drop(other);
    let disconnect = peer.expect(StompCommand::Disconnect).await;
    peer.confirm(&disconnect).await;
    assert_eq!(peer.next().await, None);
}

/// A sender that waits no longer neither fills the memory nor is served when it is too late.
#[tokio::test]
async fn what_nobody_waits_for_is_not_sent() {
    let (listener, options) = listen().await;
    let address = options.addresses[0].clone();
    drop(listener);
    let bus = connect(options);
    let waiting = Duration::from_millis(20);
    tokio::time::timeout(waiting, bus.publish(persistent("given up")))
        .await
        .unwrap_err();
    let listener = TcpListener::bind(address).await.unwrap();
    let mut peer = Peer::accept(&listener).await;
    peer.welcome().await;
    let publishing = tokio::spawn(async move { bus.publish(persistent("wanted")).await });
    let frame = peer.expect(StompCommand::Send).await;
    assert_eq!(frame.body, "wanted");
    peer.confirm(&frame).await;
    publishing.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_client_beats_and_leaves_a_silent_bus() {
    let (listener, mut options) = listen().await;
    options.heart_beat = Duration::from_millis(200);
    let bus = connect(options);
    let mut peer = Peer::accept(&listener).await;
    let hello = peer.expect(StompCommand::Connect).await;
    assert_eq!(hello.header("heart-beat"), Some("200,200"));
    peer.send(Frame::new(StompCommand::Connected).with("heart-beat", "200,200"))
        .await;
    bus.ready(DEADLINE).await.unwrap();
    // The client beats though nobody asks it for anything, until it has heard nothing for too long.
    assert_eq!(peer.byte().await, b'\n');
    let mut peer = Peer::accept(&listener).await;
    peer.expect(StompCommand::Connect).await;
}

#[tokio::test]
async fn what_can_not_be_sent_is_refused_before_it_is_tried() {
    let (listener, mut options) = listen().await;
    options.limits.body = 10;
    drop(listener);
    let bus = connect(options);
    let error = bus.publish(persistent("12345678901")).await.unwrap_err();
    assert!(matches!(error, BusError::TooLarge { .. }), "{error}");
    let mut message = persistent("1");
    message
        .properties
        .push(("name".to_owned(), "x".repeat(70 << 10)));
    assert!(matches!(
        bus.publish(message).await,
        Err(BusError::TooLarge { .. })
    ));
    for destination in [
        Destination::queue("a,b"),
        Destination::new(DestinationKind::TemporaryQueue, "a/b"),
        Destination::new(DestinationKind::TemporaryQueue, "1.2.a/b"),
    ] {
        let message = Outgoing::new(destination, "1");
        assert!(matches!(
            bus.publish(message).await,
            Err(BusError::Refused { .. })
        ));
    }
}

#[tokio::test]
async fn a_bus_that_delivers_more_than_asked_for_is_left() {
    let (listener, options) = listen().await;
    let bus = connect(options);
    let mut peer = Peer::accept(&listener).await;
    peer.welcome().await;
    let subscribing =
        tokio::spawn(async move { bus.subscribe(request(AckMode::Individual)).await });
    let frame = peer.expect(StompCommand::Subscribe).await;
    peer.confirm(&frame).await;
    let _subscription = subscribing.await.unwrap().unwrap();
    for number in 0..4 + 4 + 64 {
        peer.send(message(&number.to_string())).await;
    }
    peer.expect_nothing(Duration::from_millis(50)).await;
    peer.send(message("one more")).await;
    assert_eq!(peer.next().await, None);
    Peer::accept(&listener).await;
}

#[tokio::test]
async fn a_bus_that_sends_too_much_is_left() {
    let (listener, mut options) = listen().await;
    options.limits.body = 100;
    let bus = connect(options);
    let mut peer = Peer::accept(&listener).await;
    peer.welcome().await;
    bus.ready(DEADLINE).await.unwrap();
    peer.raw(b"MESSAGE\ncontent-length:9999999999\n\n").await;
    Peer::accept(&listener).await;
}
