//! Messages on their way to a scripted bus, and what their senders are told.

use super::*;

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
        dedup: Some("my own".to_owned()),
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
        ("q-dedup", "my own"),
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

#[tokio::test]
async fn a_message_that_a_subscriber_has_no_room_for_is_told_to_its_sender_only() {
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
    peer.refuse("SUBSCRIPTION-FULL", Some(&refused)).await;
    let error = first.await.unwrap().unwrap_err();
    assert_eq!(error.name(), "SUBSCRIPTION-FULL");
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

/// The final response follows a progress response at once.
#[tokio::test]
async fn what_is_sent_soon_is_before_a_commit_that_does_not_wait_for_its_receipt() {
    let (listener, options) = listen().await;
    let bus = connect(options);
    let mut peer = Peer::accept(&listener).await;
    peer.welcome().await;
    bus.publish_soon(Outgoing::new(Destination::topic("t"), "progress"))
        .await
        .unwrap();
    let mut transaction = bus.transaction();
    transaction.send(persistent("final"));
    let committing = tokio::spawn(transaction.commit());
    assert_eq!(peer.expect(StompCommand::Send).await.body, "progress");
    peer.expect(StompCommand::Begin).await;
    assert_eq!(peer.expect(StompCommand::Send).await.body, "final");
    let commit = peer.expect(StompCommand::Commit).await;
    peer.confirm(&commit).await;
    committing.await.unwrap().unwrap();
}

/// Unlike what somebody has stopped waiting for.
#[tokio::test]
async fn what_is_sent_soon_is_sent_when_the_bus_is_there() {
    let (listener, options) = listen().await;
    let address = options.addresses[0].clone();
    drop(listener);
    let bus = connect(options);
    bus.publish_soon(Outgoing::new(Destination::topic("t"), "progress"))
        .await
        .unwrap();
    let listener = TcpListener::bind(address).await.unwrap();
    let mut peer = Peer::accept(&listener).await;
    peer.welcome().await;
    assert_eq!(peer.expect(StompCommand::Send).await.body, "progress");
}
