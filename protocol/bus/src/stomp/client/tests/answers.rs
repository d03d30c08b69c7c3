//! Answers that the bus owes: refusals, whom they are about, and what never comes.

use super::*;
use crate::{Delivery, Subscription};

#[tokio::test]
async fn what_is_refused_by_name_is_no_fault_of_what_is_in_hand_beside_it() {
    for named in [true, false] {
        let (listener, options) = listen().await;
        let bus = connect(options);
        let mut peer = Peer::accept(&listener).await;
        peer.welcome().await;
        let (_subscription, delivery) = delivered(&bus, &mut peer).await;
        let mut transaction = bus.transaction();
        transaction.send(persistent("answer"));
        transaction.ack(delivery);
        let committing = tokio::spawn(transaction.commit());
        for command in ["Begin", "Send", "Ack", "Commit"] {
            let frame = peer.next().await.expect("a frame");
            assert_eq!(format!("{:?}", frame.command), command);
        }
        let publishing = tokio::spawn(async move { bus.publish(persistent("x")).await });
        let refused = peer.expect(StompCommand::Send).await;
        peer.refuse("NO-WAY", named.then_some(&refused)).await;
        let error = committing.await.unwrap().unwrap_err();
        let expected = if named { "UNREACHABLE" } else { "NO-WAY" };
        assert_eq!(error.name(), expected, "{error}");
        if named {
            let error = publishing.await.unwrap().unwrap_err();
            assert_eq!(error.name(), "NO-WAY", "{error}");
        }
    }
}

async fn delivered(bus: &Bus, peer: &mut Peer) -> (Subscription, Delivery) {
    let subscribing = tokio::spawn({
        let bus = bus.clone();
        async move { bus.subscribe(request(AckMode::Individual)).await }
    });
    let frame = peer.expect(StompCommand::Subscribe).await;
    peer.confirm(&frame).await;
    let mut subscription = subscribing.await.unwrap().unwrap();
    peer.send(message("1")).await;
    let delivery = subscription.next().await.unwrap();
    (subscription, delivery)
}

#[tokio::test]
async fn a_bus_that_lives_and_confirms_nothing_is_told_of_and_left_at_last() {
    let (listener, mut options) = listen().await;
    options.answer_timeout = Duration::from_secs(2);
    let bus = connect(options);
    let mut overdue = bus.overdue();
    let mut peer = Peer::accept(&listener).await;
    peer.welcome().await;
    bus.ready(DEADLINE).await.unwrap();
    let publishing = tokio::spawn({
        let bus = bus.clone();
        async move { bus.publish(persistent("x")).await }
    });
    peer.expect(StompCommand::Send).await;
    assert!(overdue.borrow_and_update().is_none());
    let since = tokio::time::timeout(DEADLINE, overdue.wait_for(Option::is_some));
    assert!(since.await.unwrap().is_ok());
    assert_eq!(*bus.state().borrow(), BusState::Connected);
    // It beats on all the time.
    let mut again = tokio::select! {
        again = Peer::accept(&listener) => again,
        () = async { loop {
            peer.raw(b"\n").await;
            tokio::time::sleep(Duration::from_millis(1)).await;
        } } => unreachable!(),
    };
    again.welcome().await;
    let frame = again.expect(StompCommand::Send).await;
    again.confirm(&frame).await;
    publishing.await.unwrap().unwrap();
    assert!(bus.overdue().borrow().is_none());
}

/// Messages without end must not keep a connection from looking at the clock.
#[tokio::test]
async fn what_has_waited_too_long_is_told_while_messages_come_without_end() {
    let (listener, mut options) = listen().await;
    options.volatile_timeout = Duration::from_millis(100);
    let bus = connect(options);
    let mut peer = Peer::accept(&listener).await;
    peer.welcome().await;
    bus.ready(DEADLINE).await.unwrap();
    let publishing = bus.publish(Outgoing::new(Destination::topic("t"), "x"));
    let flooding = async {
        loop {
            peer.raw(&[b'\n'; 1 << 16]).await;
        }
    };
    let result = tokio::select! {
        result = publishing => result,
        () = flooding => unreachable!(),
        () = tokio::time::sleep(DEADLINE) => panic!("it waits for ever"),
    };
    assert_eq!(result.unwrap_err().name(), "UNREACHABLE");
}

#[tokio::test]
async fn a_volatile_message_waits_for_room_no_longer_than_for_the_bus() {
    let (listener, mut options) = listen().await;
    options.volatile_timeout = Duration::from_millis(100);
    drop(listener);
    let bus = connect(options);
    let large = vec![b'x'; 16 << 20];
    for _ in 0..5 {
        let bus = bus.clone();
        let message = Outgoing {
            body: large.clone().into(),
            ..persistent("")
        };
        tokio::spawn(async move { bus.publish(message).await });
    }
    // Those take all the room, or wait for it.
    tokio::task::yield_now().await;
    let volatile = Outgoing::new(Destination::topic("t"), "x");
    let result = tokio::time::timeout(DEADLINE, bus.publish(volatile)).await;
    assert_eq!(result.unwrap().unwrap_err().name(), "UNREACHABLE");
}

#[tokio::test]
async fn what_a_broker_carries_is_known_once_it_is_connected_to() {
    for (server, largest) in [
        ("Pillarbox/1", 16 << 20),
        ("ActiveMQ/5.17.2", 16 << 20),
        ("RabbitMQ/3.10.8", (4 << 20) - (64 << 10)),
    ] {
        let (listener, options) = listen().await;
        let bus = connect(options);
        let mut peer = Peer::accept(&listener).await;
        peer.welcome_as(server).await;
        bus.ready(DEADLINE).await.unwrap();
        assert_eq!(bus.largest_body(), largest, "{server}");
        let fits = |body: usize| {
            bus.accepts(&Outgoing {
                body: vec![b'x'; body].into(),
                ..persistent("")
            })
        };
        assert_eq!(fits(largest), Ok(()), "{server}");
        assert_eq!(fits(largest + 1).unwrap_err().name(), "LIMIT", "{server}");
    }
}
