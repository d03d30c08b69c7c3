//! The client against a scripted bus.

mod answers;
mod dialects;
mod sending;

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
        ack_timeout: None,
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

/// The second address is tried long before the first attempt's time is over, and only the first is called silent.
#[tokio::test]
async fn one_mute_address_of_two_is_passed_over_soon() {
    let (mute, mut options) = listen().await;
    let (listener, other) = listen().await;
    options.addresses.extend(other.addresses);
    let (silent, healthy) = (options.addresses[0].clone(), options.addresses[1].clone());
    let patience = options.connect_timeout;
    let begun = tokio::time::Instant::now();
    let bus = connect(options);
    let error = bus.ready(Duration::from_millis(50)).await.unwrap_err();
    let told = error.to_string();
    assert!(told.contains(&silent) && !told.contains(&healthy), "{told}");
    let mut peer = Peer::accept(&listener).await;
    let error = bus.ready(Duration::from_millis(50)).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("no bus answers at {silent}: it does not answer in time")
    );
    peer.welcome().await;
    bus.ready(DEADLINE).await.unwrap();
    assert!(begun.elapsed() < patience / 2, "{:?}", begun.elapsed());
    drop(mute);
}

#[tokio::test]
async fn who_speaks_something_else_is_told_of() {
    let hello = [b"\0\0\x01\x46\x01ActiveMQ".as_slice(), &[0; 320]].concat();
    let web = b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec();
    for (says, protocol) in [(hello, "OpenWire"), (web, "HTTP")] {
        let (listener, options) = listen().await;
        let address = options.addresses[0].clone();
        let bus = connect(options);
        let mut peer = Peer::accept(&listener).await;
        peer.raw(&says).await;
        // Again, and so after the first has been told.
        drop(Peer::accept(&listener).await);
        let mut peer = Peer::accept(&listener).await;
        peer.raw(&says).await;
        let _next = Peer::accept(&listener).await;
        let error = bus.ready(Duration::from_millis(10)).await.unwrap_err();
        assert_eq!(error, BusError::OtherProtocol { address, protocol });
    }
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
async fn b23_deliveries_of_an_earlier_connection_are_stale() {
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

/// Nobody sends again what a plain topic has delivered.
#[tokio::test]
async fn what_waits_for_a_consumer_outlives_the_connection_of_a_plain_topic() {
    let (listener, options) = listen().await;
    let bus = connect(options);
    let plain = SubscribeRequest {
        durable: None,
        prefetch: 2,
        ..request(AckMode::Individual)
    };
    let mut subscription = None;
    for round in 0..3 {
        let mut peer = Peer::accept(&listener).await;
        peer.welcome().await;
        let subscribing = async {
            if subscription.is_none() {
                subscription = Some(bus.subscribe(plain.clone()).await.unwrap());
            }
        };
        let serving = async {
            let frame = peer.expect(StompCommand::Subscribe).await;
            peer.confirm(&frame).await;
            // The first two fill the channel, the next two wait before it.
            for number in 0..2 {
                peer.send(message(&format!("{round}.{number}"))).await;
            }
        };
        tokio::join!(subscribing, serving);
        let publishing = bus.publish(persistent("x"));
        let answering = async {
            let frame = peer.expect(StompCommand::Send).await;
            peer.confirm(&frame).await;
        };
        tokio::join!(answering, async { publishing.await.unwrap() });
    }
    let mut subscription = subscription.unwrap();
    let mut taken = Vec::new();
    while taken.len() < 6 {
        let next = tokio::time::timeout(DEADLINE, subscription.next()).await;
        taken.push(next.unwrap().unwrap().message.message_id.clone());
    }
    assert_eq!(taken, ["m0.0", "m0.1", "m1.0", "m1.1", "m2.0", "m2.1"]);
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

/// A broker allows its senders more than is taken in here; what it delivers is acknowledged all the same, or it would come
/// first again on every connection.
#[tokio::test]
async fn a_message_that_is_too_large_is_delivered_without_its_body() {
    let (listener, mut options) = listen().await;
    options.limits.body = 100;
    let bus = connect(options);
    let mut peer = Peer::accept(&listener).await;
    peer.welcome().await;
    let subscribing =
        tokio::spawn(async move { bus.subscribe(request(AckMode::Individual)).await });
    let frame = peer.expect(StompCommand::Subscribe).await;
    peer.confirm(&frame).await;
    let mut subscription = subscribing.await.unwrap().unwrap();
    let mut large = message("1");
    large
        .headers
        .extend((0..300).map(|n| (format!("h{n}"), "x".to_owned())));
    large.body = vec![b'x'; 101].into();
    peer.send(large).await;
    let delivery = subscription.next().await.unwrap();
    assert_eq!(delivery.message.left_out, Some(101));
    assert_eq!(delivery.message.body, "");
    let acknowledging = tokio::spawn(delivery.ack());
    let ack = peer.expect(StompCommand::Ack).await;
    assert_eq!(ack.header("id"), Some("1"));
    peer.confirm(&ack).await;
    acknowledging.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_bus_that_sends_what_is_no_frame_is_left() {
    let (listener, options) = listen().await;
    let bus = connect(options);
    let mut peer = Peer::accept(&listener).await;
    peer.welcome().await;
    bus.ready(DEADLINE).await.unwrap();
    peer.raw(b"MESSAGE\ncontent-length:many\n\n").await;
    Peer::accept(&listener).await;
}
