//! Time and room: what ends with them.

use pillarbox_messages::Destination;

use super::{World, message, news, queue, work};
use crate::{
    BusError,
    core::{Input, Limits, message::NewMessage},
    embedded::connection::{Command, Event},
};

#[test]
fn e08_messages_expire_by_themselves_but_not_in_somebodys_hands() {
    let mut world = World::new();
    let a = world.open(1, "a");
    let brief = |body: &str| NewMessage {
        expires_at: Some(1000),
        ..work(body)
    };
    world.send(a, brief("in flight, consumed")).unwrap();
    world.send(a, brief("in flight, refused")).unwrap();
    world.subscribe(a, 1, queue(), 2).unwrap();
    world.send(a, brief("waiting")).unwrap();
    world.send(a, work("lasting")).unwrap();
    let delivered = world.delivered();
    assert_eq!(world.core.next_deadline(), Some(1000));
    world.pass(1000);
    assert_eq!(world.core.counters().expired, 1);
    assert_eq!(world.core.held_messages(), 3);
    world.ack(a, delivered[0].1).unwrap();
    assert_eq!(world.bodies(), ["lasting"]);
    world.nack(a, delivered[1].1).unwrap();
    assert_eq!(world.core.counters().expired, 2);
    assert_eq!(world.core.held_messages(), 1);
    world.send(a, brief("too late")).unwrap();
    assert_eq!(world.core.counters().expired, 3);
}

#[test]
fn e26_a_clock_set_back_brings_nothing_back() {
    let mut world = World::new();
    let a = world.open(1, "a");
    world
        .send(
            a,
            NewMessage {
                expires_at: Some(1000),
                ..work("x")
            },
        )
        .unwrap();
    world.pass(2000);
    world.now = 0;
    world
        .send(
            a,
            NewMessage {
                expires_at: Some(1500),
                ..work("y")
            },
        )
        .unwrap();
    world.subscribe(a, 1, queue(), 2).unwrap();
    assert!(world.delivered().is_empty());
}

#[test]
fn a_message_waits_for_its_time_and_passes_nobody() {
    let mut world = World::new();
    let a = world.open(1, "a");
    world.subscribe(a, 1, queue(), 10).unwrap();
    world
        .send(
            a,
            NewMessage {
                not_before: Some(500),
                ..work("later")
            },
        )
        .unwrap();
    world.send(a, work("now")).unwrap();
    assert_eq!(world.bodies(), ["now"]);
    world.pass(500);
    assert_eq!(world.bodies(), ["later"]);
    let never = NewMessage {
        not_before: Some(900),
        expires_at: Some(900),
        ..work("never")
    };
    assert_eq!(world.send(a, never).unwrap_err().name(), "INVALID");
}

#[test]
fn b44_a_plain_subscriber_that_does_not_keep_up_loses_its_subscription_and_nobody_else() {
    let mut world = World::with_limits(Limits {
        plain_messages: 5,
        ..Limits::default()
    });
    let (a, b) = (world.open(1, "a"), world.open(2, "b"));
    world
        .subscribe(a, 1, Destination::topic("news"), 1)
        .unwrap();
    world
        .subscribe(b, 1, Destination::topic("news"), 100)
        .unwrap();
    for _ in 0..6 {
        world.send(b, news("x")).unwrap();
        for (_, delivery, ..) in world.delivered_to(b) {
            world.ack(b, delivery).unwrap();
        }
    }
    let closed = world
        .told
        .iter()
        .find_map(|(connection, event)| match event {
            Event::SubscriptionClosed {
                subscription: 1,
                reason,
            } => Some((*connection, reason.name())),
            _ => None,
        });
    assert_eq!(closed, Some((a, "SLOW-CONSUMER")));
    assert_eq!(world.core.held_messages(), 0);
    assert_eq!(world.core.counters().slow_consumers, 1);
}

#[test]
fn of_many_slow_subscribers_the_slowest_goes_when_all_together_hold_too_much() {
    let mut world = World::with_limits(Limits {
        plain_total_bytes: 10_000,
        ..Limits::default()
    });
    let names = ["client.1", "client.2", "client.3"];
    for (number, name) in (1..).zip(names) {
        let connection = world.open(number, name);
        world
            .subscribe(connection, 1, Destination::topic(name), 1)
            .unwrap();
    }
    let sender = world.open(9, "sender");
    // Nobody comes near a limit of its own.
    for (name, messages) in [("client.1", 2), ("client.2", 4), ("client.3", 3)] {
        let to = Destination::topic(name);
        for _ in 0..messages {
            let body = "x".repeat(950);
            world.send(sender, message(to.clone(), &body)).unwrap();
        }
    }
    let closed: Vec<_> = world
        .told
        .iter()
        .filter(|(_, event)| matches!(event, Event::SubscriptionClosed { .. }))
        .map(|(connection, _)| connection.0)
        .collect();
    assert_eq!(closed, [2]);
    assert_eq!(world.core.held_messages(), 2 + 3);
}

#[test]
fn a_full_space_refuses_sends_and_goes_on_consuming() {
    let mut world = World::with_limits(Limits {
        capacity_bytes: 1000,
        ..Limits::default()
    });
    let a = world.open(1, "a");
    while world.send(a, work("x")).is_ok() {}
    assert_eq!(world.send(a, work("x")).unwrap_err().name(), "NO-SPACE");
    world
        .subscribe(a, 1, Destination::topic("news"), 10)
        .unwrap();
    world
        .send(a, news("plain subscriptions have their own limit"))
        .unwrap();
    world.subscribe(a, 2, queue(), 1).unwrap();
    let first = world.delivered()[1].1;
    world.ack(a, first).unwrap();
    world.send(a, work("there is room again")).unwrap();
}

/// The name is kept for as long as the subscription, and in the log: whoever makes it up must not fill either.
#[test]
fn durable_subscriptions_have_names_of_bounded_length() {
    let mut world = World::new();
    let a = world.open(1, "a");
    let error = world
        .subscribe_durable(a, "news", &"x".repeat(1025))
        .unwrap_err();
    assert!(
        matches!(error, BusError::TooLarge { limit: 1024, .. }),
        "{error}"
    );
    world
        .subscribe_durable(a, "news", &"x".repeat(1024))
        .unwrap();
}

#[test]
fn a_full_space_can_be_emptied_by_answering() {
    let mut world = World::with_limits(Limits {
        capacity_bytes: 100_000,
        ..Limits::default()
    });
    let (a, b) = (world.open(1, "a"), world.open(2, "b"));
    world.subscribe_durable(b, "news", "answers").unwrap();
    world.subscribe(a, 1, queue(), 1).unwrap();
    let body = "x".repeat(1_000);
    let mut requests = 0;
    while world.send(b, work(&body)).is_ok() {
        requests += 1;
    }
    let answer = "x".repeat(1_500);
    assert!(world.send(a, news(&answer)).is_err(), "on its own");
    for transaction in 0..requests {
        let delivery = world.delivered_to(a)[0].1;
        let within = Some(transaction);
        let answer = news(&answer);
        world
            .ask(a, |token| Command::Begin { transaction, token })
            .unwrap();
        world
            .ask(a, |token| Command::Ack {
                delivery,
                transaction: within,
                token,
            })
            .unwrap();
        world
            .ask(a, |token| Command::Send {
                message: answer,
                transaction: within,
                token,
            })
            .unwrap();
        world
            .ask(a, |token| Command::Commit { transaction, token })
            .unwrap();
        let answered = world.delivered_to(b)[0].1;
        world.ack(b, answered).unwrap();
    }
    assert_eq!(world.core.held_messages(), 0);
}

#[test]
fn without_room_for_the_log_only_volatile_messages_are_taken() {
    let mut world = World::new();
    let a = world.open(1, "a");
    world.send(a, work("before")).unwrap();
    world.subscribe(a, 1, queue(), 1).unwrap();
    world.step(Input::Room(false));
    assert_eq!(world.send(a, work("x")).unwrap_err().name(), "NO-SPACE");
    world
        .send(
            a,
            NewMessage {
                persistent: Some(false),
                ..work("volatile")
            },
        )
        .unwrap();
    let delivery = world.delivered()[0].1;
    world.ack(a, delivery).unwrap();
    world.step(Input::Room(true));
    world.send(a, work("after")).unwrap();
}

#[test]
fn a_failed_space_ends_all_connections_and_takes_no_more() {
    let mut world = World::new();
    let a = world.open(1, "a");
    world.step(Input::Failed("disk on fire".to_owned()));
    let b = world.open(2, "b");
    for connection in [a, b] {
        let closed = world.told.iter().any(|(of, event)| {
            let failed = |reason: &BusError| matches!(reason, BusError::SpaceFailed(_));
            *of == connection && matches!(event, Event::Closed { reason } if failed(reason))
        });
        assert!(closed, "{connection:?}");
    }
}

#[test]
fn subscriptions_are_limited_in_number() {
    let limits = Limits {
        subscriptions: 2,
        queues: 6,
        ..Limits::default()
    };
    let mut world = World::with_limits(limits);
    let (a, b) = (world.open(1, "a"), world.open(2, "b"));
    for subscription in 1..=2 {
        world
            .subscribe(a, subscription, Destination::topic("news"), 1)
            .unwrap();
    }
    let third = world
        .subscribe(a, 3, Destination::topic("news"), 1)
        .unwrap_err();
    assert_eq!(third.name(), "LIMIT");
    for subscription in 1..=2 {
        world
            .subscribe(b, subscription, Destination::topic("news"), 1)
            .unwrap();
    }
    let c = world.open(3, "c");
    let over = world
        .subscribe(c, 1, Destination::topic("news"), 1)
        .unwrap_err();
    assert_eq!(over.name(), "LIMIT");
    world
        .subscribe(c, 2, queue(), 1)
        .expect("a queue that is there");
    world.lose(a);
    world
        .subscribe(c, 1, Destination::topic("news"), 1)
        .unwrap();
}

#[test]
fn transactions_of_one_connection_share_one_limit() {
    let mut world = World::with_limits(Limits {
        unit_bytes: 1000,
        ..Limits::default()
    });
    let (a, b) = (world.open(1, "a"), world.open(2, "b"));
    let mut stage = |connection, transaction| {
        world.ask(connection, |token| Command::Begin { transaction, token })?;
        world.ask(connection, |token| Command::Send {
            message: work(&"x".repeat(400)),
            transaction: Some(transaction),
            token,
        })
    };
    stage(a, 1).unwrap();
    assert_eq!(stage(a, 2).unwrap_err().name(), "LIMIT");
    stage(b, 1).unwrap();
}
