//! Consumers that keep a message for longer than they said they would (row e29).

use super::{World, queue, work};
use crate::{
    BusError, Lanes, QueueAttributes,
    core::{Input, message::NewMessage},
    embedded::connection::{
        AckMode, Cause, Command, ConnectionId, DeliveryId, Event, Reason, SubscribeOptions,
    },
};

const LIMIT: i64 = 5_000;

fn patient(world: &mut World, connection: ConnectionId, prefetch: u32) -> Result<bool, BusError> {
    subscribe(world, connection, prefetch, AckMode::Individual, LIMIT)
}

fn subscribe(
    world: &mut World,
    connection: ConnectionId,
    prefetch: u32,
    ack: AckMode,
    limit: i64,
) -> Result<bool, BusError> {
    world.ask(connection, |token| Command::Subscribe {
        options: SubscribeOptions::default(),
        subscription: 1,
        destination: queue(),
        durable: None,
        ack,
        prefetch,
        selector: None,
        ack_timeout: Some(limit),
        token,
    })
}

/// Whether a subscription's end has been posted to this connection since the last call.
fn closed(world: &mut World, connection: ConnectionId) -> bool {
    let before = world.told.len();
    world.told.retain(|(to, event)| {
        let reason = match event {
            Event::SubscriptionClosed { reason, .. } if *to == connection => reason,
            _ => return true,
        };
        assert_eq!(*reason, BusError::AckTimeout { limit_ms: LIMIT });
        assert_eq!(reason.name(), "ACK-TIMEOUT");
        false
    });
    world.told.len() < before
}

fn told(world: &mut World, connection: ConnectionId) {
    let command = Command::Closed { subscription: 1 };
    world.step(Input::Command {
        connection,
        command,
    });
}

fn deliveries(world: &mut World, connection: ConnectionId) -> Vec<(String, DeliveryId, u32)> {
    let deliveries = world.delivered_to(connection).into_iter();
    deliveries
        .map(|(body, delivery, _, backouts)| (body, delivery, backouts))
        .collect()
}

#[test]
fn e29_the_oldest_counts_the_rest_return_and_another_has_them_when_the_first_knows() {
    let mut world = World::new();
    let (stuck, other) = (world.open_as(1, "a", true), world.open(2, "b"));
    patient(&mut world, stuck, 3).unwrap();
    for body in ["1", "2", "3", "4"] {
        world.send(other, work(body)).unwrap();
        world.pass(1_000);
    }
    assert_eq!(deliveries(&mut world, stuck).len(), 3);
    world.subscribe(other, 1, queue(), 1).unwrap();
    assert_eq!(deliveries(&mut world, other)[0].0, "4");
    assert_eq!(world.core.next_deadline(), Some(LIMIT));
    world.pass(LIMIT - world.now - 1);
    assert!(!closed(&mut world, stuck));
    world.pass(1);
    assert!(closed(&mut world, stuck));
    // It may not know it yet, and may be at work.
    assert_eq!(world.core.in_flight(), 4);
    assert_eq!(world.core.next_deadline(), None);
    told(&mut world, stuck);
    assert_eq!(world.core.in_flight(), 1);
    world.lose(other);
    let other = world.open(3, "b");
    world.subscribe(other, 1, queue(), 10).unwrap();
    let came = deliveries(&mut world, other);
    let came: Vec<_> = came
        .iter()
        .map(|(body, _, n)| (body.as_str(), *n))
        .collect();
    assert_eq!(came, [("1", 1), ("2", 0), ("3", 0), ("4", 1)]);
    told(&mut world, stuck);
}

#[test]
fn e29_over_a_connection_another_has_it_when_that_has_ended() {
    let mut world = World::new();
    let (stuck, other) = (world.open(1, "a"), world.open(2, "b"));
    patient(&mut world, stuck, 10).unwrap();
    world.subscribe(other, 1, queue(), 10).unwrap();
    for body in ["1", "2"] {
        world.send(other, work(body)).unwrap();
    }
    let held = deliveries(&mut world, stuck)[0].1;
    deliveries(&mut world, other);
    world.pass(LIMIT);
    assert!(closed(&mut world, stuck));
    told(&mut world, stuck);
    world.send(other, work("3")).unwrap();
    world.send(other, work("4")).unwrap();
    let bodies = deliveries(&mut world, other);
    assert_eq!(bodies.len(), 2, "nothing more comes to the first");
    world.lose(stuck);
    let again = deliveries(&mut world, other);
    assert_eq!((again[0].0.as_str(), again[0].2), ("1", 1));
    let late = world.ask(other, |token| Command::Ack {
        delivery: held,
        transaction: None,
        token,
    });
    assert_eq!(late, Err(BusError::StaleAck));
}

#[test]
fn e29_whoever_deals_with_a_message_in_time_or_at_the_last_moment_has_dealt_with_it() {
    let mut world = World::new();
    let slow = world.open_as(1, "a", true);
    patient(&mut world, slow, 1).unwrap();
    for body in ["1", "2", "3"] {
        world.send(slow, work(body)).unwrap();
    }
    // Each has its own time.
    for _ in 0..2 {
        world.pass(LIMIT - 1);
        let delivery = deliveries(&mut world, slow)[0].1;
        world.ack(slow, delivery).unwrap();
    }
    let last = deliveries(&mut world, slow)[0].1;
    world.pass(LIMIT);
    assert!(closed(&mut world, slow));
    world.ack(slow, last).unwrap();
    told(&mut world, slow);
    assert_eq!(world.core.held_messages(), 0);
    assert_eq!(world.core.counters().backed_out, 0);
}

#[test]
fn e29_what_is_acknowledged_in_an_open_transaction_has_the_transactions_time() {
    let mut world = World::new();
    let a = world.open(1, "a");
    patient(&mut world, a, 1).unwrap();
    world.send(a, work("1")).unwrap();
    let delivery = deliveries(&mut world, a)[0].1;
    let transaction = 1;
    world
        .ask(a, |token| Command::Begin { transaction, token })
        .unwrap();
    let staged = world.ask(a, |token| Command::Ack {
        delivery,
        transaction: Some(transaction),
        token,
    });
    staged.unwrap();
    world.pass(LIMIT * 2);
    assert!(!closed(&mut world, a));
    world
        .ask(a, |token| Command::Commit { transaction, token })
        .unwrap();
    assert_eq!(world.core.held_messages(), 0);
}

#[test]
fn e29_a_lane_whose_owner_is_stuck_goes_on_with_another_in_order() {
    let mut world = World::with_work(QueueAttributes {
        lanes: Lanes::Key,
        ..QueueAttributes::default()
    });
    let (stuck, other) = (world.open_as(1, "a", true), world.open(2, "b"));
    patient(&mut world, stuck, 10).unwrap();
    for body in ["1", "2", "3"] {
        let group = Some("g".to_owned());
        let message = NewMessage {
            group,
            ..work(body)
        };
        world.send(other, message).unwrap();
    }
    world.subscribe(other, 1, queue(), 10).unwrap();
    assert_eq!(deliveries(&mut world, stuck).len(), 1);
    world.pass(LIMIT);
    assert!(deliveries(&mut world, other).is_empty());
    told(&mut world, stuck);
    for (body, backouts) in [("1", 1), ("2", 0), ("3", 0)] {
        let came = deliveries(&mut world, other);
        assert_eq!((came[0].0.as_str(), came[0].2), (body, backouts));
        world.ack(other, came[0].1).unwrap();
    }
}

#[test]
fn e29_a_lane_of_a_closed_consumer_that_has_nothing_in_hand_goes_to_another_too() {
    let mut world = World::with_work(QueueAttributes {
        lanes: Lanes::Key,
        ..QueueAttributes::default()
    });
    let (slow, other) = (world.open_as(1, "a", true), world.open(2, "b"));
    patient(&mut world, slow, 1).unwrap();
    let of_group = |body| NewMessage {
        group: Some("g".to_owned()),
        ..work(body)
    };
    world.send(other, of_group("1")).unwrap();
    world.send(other, of_group("2")).unwrap();
    world.subscribe(other, 1, queue(), 10).unwrap();
    let first = deliveries(&mut world, slow)[0].1;
    world.pass(LIMIT);
    world.ack(slow, first).unwrap();
    assert!(deliveries(&mut world, other).is_empty(), "not told yet");
    told(&mut world, slow);
    assert_eq!(deliveries(&mut world, other)[0].0, "2");
}

#[test]
fn e29_who_is_always_stuck_fills_the_limit() {
    let mut world = World::with_work(QueueAttributes {
        backout_limit: Some(2),
        backout_queue: Some("aside".to_owned()),
        ..QueueAttributes::default()
    });
    let sender = world.open(1, "s");
    world.send(sender, work("poison")).unwrap();
    for number in 2..4 {
        let stuck = world.open_as(number, "a", true);
        patient(&mut world, stuck, 1).unwrap();
        world.pass(LIMIT);
        told(&mut world, stuck);
        world.lose(stuck);
    }
    assert_eq!(world.moved[0].cause, Cause::AckTimedOut);
    assert_eq!(world.moved[0].reason, Reason::Backout);
    world.restart();
    let aside = world.core.directory.queue("aside").unwrap();
    let held = &world.core.queues[&aside].messages;
    let failure = held.values().next().unwrap().message.failure().unwrap();
    assert_eq!(failure.cause, Cause::AckTimedOut);
}

#[test]
fn e29_times_that_are_none_are_refused() {
    let mut world = World::new();
    let a = world.open(1, "a");
    for (limit, ack) in [
        (0, AckMode::Individual),
        (-1, AckMode::Client),
        (1_000, AckMode::Auto),
    ] {
        let refused = subscribe(&mut world, a, 1, ack, limit).unwrap_err();
        assert_eq!(refused.name(), "INVALID");
    }
}
