//! What users of other buses have reported, each named after its row in the table of such reports.

use super::{World, queue, work};
use crate::{
    BusError, QueueAttributes,
    core::message::NewMessage,
    embedded::connection::{Command, ConnectionId, DeliveryId, Event},
};
use pillarbox_messages::Destination;

fn persistent(body: &str) -> NewMessage {
    NewMessage {
        persistent: Some(true),
        ..work(body)
    }
}

fn begin(world: &mut World, connection: ConnectionId, transaction: u64) {
    world
        .ask(connection, |token| Command::Begin { transaction, token })
        .unwrap();
}

fn send_within(world: &mut World, connection: ConnectionId, transaction: u64, body: &str) {
    let message = persistent(body);
    let sent = world.ask(connection, |token| Command::Send {
        message,
        transaction: Some(transaction),
        token,
    });
    sent.unwrap();
}

fn ack_within(
    world: &mut World,
    connection: ConnectionId,
    transaction: u64,
    delivery: DeliveryId,
) -> Result<bool, BusError> {
    world.ask(connection, |token| Command::Ack {
        delivery,
        transaction: Some(transaction),
        token,
    })
}

#[test]
fn b21_a_refusal_says_whether_the_message_is_to_come_again() {
    let mut world = World::with_work(QueueAttributes {
        backout_queue: Some("aside".to_owned()),
        ..QueueAttributes::default()
    });
    let a = world.open(1, "a");
    world.subscribe(a, 1, queue(), 10).unwrap();
    world
        .subscribe(a, 2, Destination::queue("aside"), 10)
        .unwrap();
    for reject in [false, true] {
        world.send(a, persistent("x")).unwrap();
        let (_, delivery, ..) = world.delivered()[0];
        let refused = world.ask(a, |token| Command::Nack {
            delivery,
            reject,
            transaction: None,
            token,
        });
        refused.unwrap();
        world.pass(1_000);
        let came = world.told.iter().find_map(|(_, event)| match event {
            Event::Deliver { subscription, .. } => Some(*subscription),
            _ => None,
        });
        assert_eq!(came, Some(if reject { 2 } else { 1 }));
        let (_, delivery, ..) = world.delivered()[0];
        world.ack(a, delivery).unwrap();
    }
}

#[test]
fn b27_after_a_restart_only_what_was_handed_out_is_redelivered() {
    let mut world = World::new();
    let a = world.open(1, "a");
    for body in ["taken", "never taken", "scheduled"] {
        let not_before = (body == "scheduled").then_some(50);
        let message = NewMessage {
            not_before,
            ..persistent(body)
        };
        world.send(a, message).unwrap();
    }
    world.subscribe(a, 1, queue(), 1).unwrap();
    world.restart();
    world.pass(100);
    let a = world.open(1, "a");
    world.subscribe(a, 1, queue(), 10).unwrap();
    // `World` checks that the flag fits the number.
    let came = world.delivered().into_iter();
    let came: Vec<_> = came
        .map(|(body, _, n, backouts)| (body, n, backouts))
        .collect();
    let expected = [("taken", 2, 0), ("never taken", 1, 0), ("scheduled", 1, 0)];
    assert_eq!(
        came,
        expected.map(|(body, n, back)| (body.to_owned(), n, back))
    );
}

#[test]
fn b28_an_acknowledgement_of_whoever_has_the_message_is_final() {
    let mut world = World::new();
    let (a, b) = (world.open(1, "a"), world.open(2, "b"));
    world.send(a, persistent("x")).unwrap();
    world.subscribe(a, 1, queue(), 1).unwrap();
    world.lose(a);
    world.subscribe(b, 1, queue(), 1).unwrap();
    let deliveries = world.delivered();
    assert_eq!((deliveries.len(), deliveries[1].2), (2, 2));
    world.ack(b, deliveries[1].1).unwrap();
    world.restart();
    let c = world.open(3, "c");
    world.subscribe(c, 1, queue(), 1).unwrap();
    assert_eq!(world.bodies(), [""; 0]);
}

#[test]
fn b35_a_commit_has_what_named_it_and_an_abort_beside_it_takes_nothing_along() {
    let mut world = World::new();
    let (a, b) = (world.open(1, "a"), world.open(2, "b"));
    for body in ["1", "2"] {
        world.send(a, persistent(body)).unwrap();
    }
    world.subscribe(a, 1, queue(), 2).unwrap();
    let held: Vec<_> = world.delivered().into_iter().map(|it| it.1).collect();
    for transaction in [1, 2] {
        begin(&mut world, a, transaction);
    }
    send_within(&mut world, a, 1, "of 1");
    send_within(&mut world, a, 2, "of 2");
    ack_within(&mut world, a, 2, held[1]).unwrap();
    ack_within(&mut world, a, 1, held[0]).unwrap();
    send_within(&mut world, a, 2, "of 2 too");
    // What one has, another can't have.
    begin(&mut world, b, 1);
    assert!(ack_within(&mut world, b, 1, held[0]).is_err());
    world.units.clear();
    let abort = |token| Command::Abort {
        transaction: 1,
        token,
    };
    world.ask(a, abort).unwrap();
    let again = world.delivered();
    assert_eq!(again.len(), 1);
    assert_eq!((again[0].0.as_str(), again[0].3), ("1", 1));
    let commit = |token| Command::Commit {
        transaction: 2,
        token,
    };
    let before = world.units.len();
    world.ask(a, commit).unwrap();
    assert_eq!(world.units.len(), before + 1, "one unit");
    world.lose(b);
    world.restart();
    let c = world.open(3, "c");
    world.subscribe(c, 1, queue(), 10).unwrap();
    assert_eq!(world.bodies(), ["1", "of 2", "of 2 too"]);
}

#[test]
fn b56_each_message_comes_at_its_time_on_an_idle_bus_though_it_restarts() {
    let mut world = World::new();
    let a = world.open(1, "a");
    let mut random = 7_u64;
    let mut times: Vec<i64> = Vec::new();
    for _ in 0..100 {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let delay = i64::try_from(random >> 40).unwrap() % 1_000_000;
        times.push(delay);
        let message = NewMessage {
            delay: Some(delay),
            ..persistent(&delay.to_string())
        };
        world.send(a, message).unwrap();
    }
    times.sort_unstable();
    times.dedup();
    let mut a = a;
    world.subscribe(a, 1, queue(), 200).unwrap();
    let mut came = world.bodies();
    while let Some(at) = world.core.next_deadline() {
        // Nothing but the time that it asks to be woken at.
        assert!(at > world.now);
        world.now = at;
        world.step(super::Input::Tick);
        for body in world.bodies() {
            assert_eq!(body, at.to_string());
            came.push(body);
        }
        if came.len().is_multiple_of(10) {
            world.restart();
            a = world.open(1, "a");
            world.subscribe(a, 1, queue(), 200).unwrap();
            world.delivered();
        }
    }
    came.dedup();
    let expected: Vec<_> = times.iter().map(ToString::to_string).collect();
    assert_eq!(came, expected);
}

#[test]
fn b59_who_comes_after_a_message_has_expired_does_not_see_it_and_what_is_in_hand_is_counted_once() {
    let mut world = World::new();
    let (a, b) = (world.open(1, "a"), world.open(2, "b"));
    let brief = |body| NewMessage {
        expires_at: Some(1_000),
        ..persistent(body)
    };
    world.send(a, brief("in hand")).unwrap();
    world.subscribe(a, 1, queue(), 1).unwrap();
    assert_eq!(world.bodies(), ["in hand"]);
    world.send(a, brief("waiting")).unwrap();
    // The first that happens when it is time is that somebody comes.
    world.now = 1_000;
    world.subscribe(b, 1, queue(), 10).unwrap();
    assert_eq!(world.bodies(), [""; 0]);
    assert_eq!(world.core.counters().expired, 1);
    assert_eq!((world.core.held_messages(), world.core.in_flight()), (1, 1));
    world.lose(a);
    assert_eq!(world.bodies(), [""; 0]);
    assert_eq!(world.core.counters().expired, 2);
    assert_eq!((world.core.held_messages(), world.core.in_flight()), (0, 0));
    world.restart();
    assert_eq!(world.core.held_messages(), 0);
}

#[test]
fn e39_an_error_queue_takes_what_fails_though_the_space_is_full() {
    let mut world = World::build(
        crate::core::Limits {
            capacity_bytes: 1_000,
            ..crate::core::Limits::default()
        },
        &[crate::QueueDefinition {
            name: "work".to_owned(),
            attributes: QueueAttributes {
                backout_limit: Some(1),
                ..QueueAttributes::default()
            },
            drain: false,
        }],
    );
    let a = world.open(1, "a");
    let mut sent = 0;
    while world.send(a, persistent("x")).is_ok() {
        sent += 1;
    }
    world.step(super::Input::Room(false));
    world.subscribe(a, 1, queue(), 10).unwrap();
    let deliveries = world.delivered();
    assert_eq!(deliveries.len(), sent);
    for (_, delivery, ..) in deliveries {
        world.nack(a, delivery).unwrap();
    }
    world.restart();
    let error_queue = world.core.directory.queue("~error").unwrap();
    assert_eq!(world.core.queues[&error_queue].messages.len(), sent);
    let c = world.open(3, "c");
    world
        .subscribe(c, 1, Destination::queue("~error"), 10)
        .unwrap();
    // There they stay, however often they fail.
    for _ in 0..5 {
        for (_, delivery, ..) in world.delivered() {
            world.nack(c, delivery).unwrap();
        }
        world.pass(60_000);
    }
    assert_eq!(world.core.queues[&error_queue].messages.len(), sent);
}
