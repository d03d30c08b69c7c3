//! Sends that bear an id of their sender's own, and come again (row e03).

use super::{World, message, news, queue, work};
use crate::{
    BusError, LaneHash, Lanes, QueueAttributes, QueueDefinition,
    core::{Limits, message::NewMessage},
    embedded::connection::{Command, ConnectionId, Event, MessageId},
};
use pillarbox_messages::Destination;

const MINUTE: i64 = 60_000;

fn named(id: &str, message: NewMessage) -> NewMessage {
    NewMessage {
        dedup: Some(id.into()),
        ..message
    }
}

fn persistent(id: &str, body: &str) -> NewMessage {
    NewMessage {
        persistent: Some(true),
        ..named(id, work(body))
    }
}

/// Does this in one transaction.
fn commit(
    world: &mut World,
    connection: ConnectionId,
    sends: Vec<NewMessage>,
) -> Result<bool, BusError> {
    let transaction = 1;
    world.ask(connection, |token| Command::Begin { transaction, token })?;
    for message in sends {
        world.ask(connection, |token| Command::Send {
            message,
            transaction: Some(transaction),
            token,
        })?;
    }
    world.ask(connection, |token| Command::Commit { transaction, token })
}

#[test]
fn e03_a_send_that_comes_again_has_the_first_ones_receipt_and_is_kept_once() {
    let mut world = World::new();
    let sender = world.open(1, "a");
    let first = world.send_id(sender, persistent("x", "1"));
    let other = world.send_id(sender, persistent("y", "2"));
    assert_ne!(first, other);
    let again = world.open(2, "b");
    assert_eq!(world.send_id(again, persistent("x", "3")), first);
    world.restart();
    let sender = world.open(1, "a");
    assert_eq!(world.send_id(sender, persistent("x", "4")), first);
    world.subscribe(sender, 1, queue(), 10).unwrap();
    let deliveries = world.delivered();
    let bodies: Vec<_> = deliveries.iter().map(|(body, ..)| body.as_str()).collect();
    assert_eq!(bodies, ["1", "2"]);
    // Consumed or not, it has been sent.
    world.ack(sender, deliveries[0].1).unwrap();
    assert_eq!(world.send_id(sender, persistent("x", "5")), first);
    assert_eq!(world.bodies(), [""; 0]);
    assert_eq!(world.core.counters().duplicates, 2);
    assert_eq!(world.core.counters().sent, 0);
}

#[test]
fn e03_an_id_is_one_destinations() {
    let lanes = Lanes::Hashed {
        count: 3,
        hash: LaneHash::Fnv1a64,
    };
    let mut world = World::with_work(QueueAttributes {
        lanes,
        ..QueueAttributes::default()
    });
    let a = world.open(1, "a");
    world.subscribe_durable(a, "news", "n").unwrap();
    let first = world.send_id(a, persistent("x", "1"));
    let told = world.send_id(a, named("x", news("2")));
    assert_ne!(first, told, "another destination");
    assert_eq!(world.send_id(a, named("x", news("3"))), told);
    let lane = message(Destination::queue("work.2"), "4");
    assert_eq!(world.send_id(a, named("x", lane)), first);
    // To where there is nothing, it stands in the error queue, once.
    let nowhere = || named("x", message(Destination::queue("nowhere"), "5"));
    let astray = world.send_id(a, nowhere());
    assert_eq!(world.send(a, nowhere()), Ok(true), "and is told so");
    assert_eq!(world.send_id(a, nowhere()), astray);
    assert_eq!(world.core.held_messages(), 3);
}

#[test]
fn e03_what_was_kept_nowhere_is_not_remembered() {
    let mut world = World::new();
    let a = world.open(1, "a");
    let first = world.send_id(a, named("x", news("1")));
    world
        .subscribe(a, 1, Destination::topic("news"), 10)
        .unwrap();
    let second = world.send_id(a, named("x", news("2")));
    assert_ne!(first, second);
    assert_eq!(world.send_id(a, named("x", news("3"))), second);
    assert_eq!(world.bodies(), ["2"]);
}

#[test]
fn e03_an_id_lasts_ten_minutes_and_as_its_message_does() {
    let mut world = World::new();
    let a = world.open(1, "a");
    let volatile = NewMessage {
        persistent: Some(false),
        ..persistent("volatile", "1")
    };
    let kept = world.send_id(a, persistent("x", "2"));
    let lost = world.send_id(a, volatile.clone());
    assert_eq!(world.send_id(a, volatile.clone()), lost);
    world.restart();
    let a = world.open(1, "a");
    assert_ne!(world.send_id(a, volatile), lost, "it is not there any more");
    world.pass(10 * MINUTE - 1);
    assert_eq!(world.send_id(a, persistent("x", "3")), kept);
    world.pass(1);
    let anew = world.send_id(a, persistent("x", "4"));
    assert_ne!(anew, kept);
    world.restart();
    let a = world.open(1, "a");
    assert_eq!(world.send_id(a, persistent("x", "5")), anew);
    world.pass(10 * MINUTE);
    assert!(world.core.remembered.sends.is_empty(), "no memory is kept");
    world.restart();
    assert!(world.core.remembered.sends.is_empty(), "nor in the log");
}

#[test]
fn e03_too_many_ids_or_bytes_push_out_the_oldest() {
    let limits = Limits {
        dedup_ids: 2,
        dedup_bytes: 5 * (257 + "/queue/work".len() as u64),
        ..Limits::default()
    };
    let other = QueueDefinition {
        name: "other".to_owned(),
        attributes: QueueAttributes::default(),
        drain: false,
    };
    let mut world = World::build(limits, &[other]);
    let a = world.open(1, "a");
    let mut ids: Vec<MessageId> = Vec::new();
    for id in ["1", "2", "3"] {
        ids.push(world.send_id(a, persistent(id, id)));
    }
    assert_eq!(world.send_id(a, persistent("2", "")), ids[1]);
    assert_eq!(world.send_id(a, persistent("3", "")), ids[2]);
    assert_ne!(world.send_id(a, persistent("1", "")), ids[0], "forgotten");
    // Two of each are few enough for their destinations, but six are too many for all.
    for (place, id) in [("b", "1"), ("b", "2"), ("c", "1"), ("c", "2")] {
        let topic = Destination::topic(place);
        world.core.define(&topic).unwrap();
        let number = u64::from(id.as_bytes()[0]) + u64::from(place.as_bytes()[0]) * 1000;
        world.subscribe(a, number, topic.clone(), 1).unwrap();
        world.send(a, named(id, message(topic, ""))).unwrap();
    }
    assert_eq!(world.core.remembered.sends.len(), 5);
    let again = world.send_id(a, persistent("3", ""));
    assert_eq!(again, ids[2], "what lasts gives way to nothing volatile");
}

#[test]
fn e03_a_flood_of_ids_is_at_the_cost_of_its_own_destination() {
    let limits = Limits {
        dedup_bytes: 20 * 300,
        ..Limits::default()
    };
    let other = QueueDefinition {
        name: "other".to_owned(),
        attributes: QueueAttributes::default(),
        drain: false,
    };
    let mut world = World::build(limits, &[other]);
    let (good, bad) = (world.open(1, "a"), world.open(2, "b"));
    let volatile = |id: &str| NewMessage {
        persistent: Some(false),
        ..named(id, message(Destination::queue("other"), ""))
    };
    let stored = world.send_id(good, persistent("x", ""));
    let fleeting = world.send_id(good, volatile("x"));
    let own = Destination::new(pillarbox_messages::DestinationKind::TemporaryQueue, "1.2.q");
    world.subscribe(bad, 1, own.clone(), 1_000).unwrap();
    for number in 0..200 {
        let flood = named(&number.to_string(), message(own.clone(), ""));
        world.send(bad, flood).unwrap();
    }
    assert!(world.core.remembered.sends.len() > 15);
    assert_eq!(world.send_id(good, persistent("x", "")), stored);
    assert_eq!(world.send_id(good, volatile("x")), fleeting);
    // What lasts takes the place of what does not, and then of what most of is there.
    for number in 0..200 {
        let flood = named(
            &number.to_string(),
            message(Destination::queue("other"), ""),
        );
        world.send(bad, flood).unwrap();
    }
    assert_eq!(world.send_id(good, persistent("x", "")), stored);
    // Within one destination, too.
    let last = world.send_id(good, persistent("last", ""));
    for number in 0..200 {
        let flood = NewMessage {
            persistent: Some(false),
            ..persistent(&number.to_string(), "")
        };
        world.send(bad, flood).unwrap();
    }
    assert_eq!(world.send_id(good, persistent("last", "")), last);
}

#[test]
fn e03_a_repetition_of_what_is_forgotten_by_the_commit_is_checked_as_any_other() {
    let mut world = World::with_work(QueueAttributes {
        require_key: true,
        lanes: Lanes::Key,
        ..QueueAttributes::default()
    });
    let a = world.open(1, "a");
    let keyed = |id: &str| NewMessage {
        group: Some("g".to_owned()),
        ..persistent(id, "1")
    };
    let limit = usize::try_from(world.limits.message_bytes).unwrap();
    let bad = [
        NewMessage {
            priority: 77,
            ..keyed("x")
        },
        persistent("x", "without a group"),
        NewMessage {
            correlation_id: Some("c".repeat(70_000)),
            ..keyed("x")
        },
        NewMessage {
            delay: Some(-1),
            ..keyed("x")
        },
        NewMessage {
            body: vec![0; limit].into(),
            ..keyed("x")
        },
    ];
    for (round, message) in bad.into_iter().enumerate() {
        world.send(a, keyed("x")).unwrap();
        let held = world.core.held_messages();
        let transaction = round as u64;
        world
            .ask(a, |token| Command::Begin { transaction, token })
            .unwrap();
        let staged = world.ask(a, |token| Command::Send {
            message,
            transaction: Some(transaction),
            token,
        });
        staged.unwrap();
        // The transaction has its own time: the id is pushed out.
        let known = *world.core.remembered.sends.keys().next().unwrap();
        world.core.remembered.remove(known);
        let done = world.ask(a, |token| Command::Commit { transaction, token });
        assert!(done.is_err(), "{round}");
        assert_eq!(world.core.held_messages(), held, "{round}");
    }
    world.restart();
}

#[test]
fn e03_within_a_transaction_it_is_decided_at_the_commit() {
    let mut world = World::new();
    let (a, b) = (world.open(1, "a"), world.open(2, "b"));
    let transaction = 7;
    world
        .ask(a, |token| Command::Begin { transaction, token })
        .unwrap();
    for (id, body) in [("x", "1"), ("x", "2"), ("y", "3")] {
        let message = persistent(id, body);
        let sent = world.ask(a, |token| Command::Send {
            message,
            transaction: Some(transaction),
            token,
        });
        sent.unwrap();
    }
    // What is only staged is not known: this one comes first.
    let first = world.send_id(b, persistent("y", "4"));
    world
        .ask(a, |token| Command::Commit { transaction, token })
        .unwrap();
    assert_eq!(world.send_id(b, persistent("y", "5")), first);
    world.subscribe(b, 1, queue(), 10).unwrap();
    assert_eq!(world.bodies(), ["4", "1"]);
    // A transaction that only repeats is done, and one that was aborted has not been.
    assert_eq!(commit(&mut world, a, vec![persistent("x", "6")]), Ok(false));
    let transaction = 8;
    world
        .ask(a, |token| Command::Begin { transaction, token })
        .unwrap();
    let message = persistent("z", "7");
    let sent = world.ask(a, |token| Command::Send {
        message,
        transaction: Some(transaction),
        token,
    });
    sent.unwrap();
    world
        .ask(a, |token| Command::Abort { transaction, token })
        .unwrap();
    world.send(b, persistent("z", "8")).unwrap();
    assert_eq!(world.bodies(), ["8"]);
}

#[test]
fn e03_a_repetition_needs_neither_room_nor_a_place() {
    let limits = Limits {
        capacity_bytes: 700,
        ..Limits::default()
    };
    let mut world = World::with_limits(limits);
    let a = world.open(1, "a");
    let id = world.send_id(a, persistent("x", &"1".repeat(300)));
    let full = world.send(a, persistent("y", &"2".repeat(300)));
    assert!(matches!(full, Err(BusError::NoSpace(_))), "{full:?}");
    assert_eq!(world.send_id(a, persistent("x", &"3".repeat(300))), id);
    let gone = NewMessage {
        before: Some(MessageId { boot: 1, seq: 999 }),
        ..persistent("x", "4")
    };
    assert_eq!(world.send_id(a, gone.clone()), id);
    assert_eq!(commit(&mut world, a, vec![gone]), Ok(false));
}

#[test]
fn e03_a_repetitions_receipt_waits_for_the_first_ones_unit() {
    let mut world = World::new();
    let a = world.open(1, "a");
    let step = |world: &mut World, token| {
        let command = Command::Send {
            message: persistent("x", "1"),
            transaction: None,
            token,
        };
        let input = super::Input::Command {
            connection: a,
            command,
        };
        world.core.step(world.now, input)
    };
    let first = step(&mut world, 100);
    let unit = first.unit.unwrap().number;
    let again = step(&mut world, 101);
    let done = |posted: &super::super::Posted| matches!(posted.event, Event::Done { .. });
    let receipt = again.events.iter().find(|it| done(it)).unwrap();
    assert_eq!(receipt.after, unit);
    assert!(again.unit.is_none());
}

#[test]
fn e03_an_id_that_is_none_is_refused() {
    let mut world = World::new();
    let a = world.open(1, "a");
    for id in [String::new(), "x".repeat(256)] {
        let refused = world.send(a, persistent(&id, "1"));
        assert!(refused.is_err(), "{refused:?}");
        let refused = commit(&mut world, a, vec![persistent(&id, "1")]);
        assert!(refused.is_err(), "{refused:?}");
        world
            .ask(a, |token| Command::Abort {
                transaction: 1,
                token,
            })
            .unwrap();
    }
    world.send(a, persistent(&"x".repeat(255), "1")).unwrap();
    assert_eq!(world.core.held_messages(), 1);
}

#[test]
fn e03_a_queue_that_ends_takes_its_ids_with_it() {
    let mut world = World::new();
    let (a, b) = (world.open(1, "a"), world.open(2, "b"));
    let place = Destination::new(pillarbox_messages::DestinationKind::TemporaryQueue, "1.2.q");
    world.subscribe(b, 1, place.clone(), 10).unwrap();
    world.send(a, named("x", message(place, "1"))).unwrap();
    assert_eq!(world.core.remembered.sends.len(), 1);
    world.lose(b);
    assert!(world.core.remembered.sends.is_empty());
}
