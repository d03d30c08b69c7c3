//! Transactions: all of it, in one unit, or nothing.

use pillarbox_messages::Destination;

use super::{World, news, queue, work};
use crate::{
    BusError, QueueAttributes,
    core::{Input, Limits, message::NewMessage},
    embedded::connection::{AckMode, Command, Event, SubscribeOptions},
};

#[test]
fn b32_order_survives_many_rollbacks_and_what_fails_at_last_leaves_the_rest_in_order() {
    let mut world = World::with_work(QueueAttributes {
        backout_limit: Some(11),
        ..QueueAttributes::default()
    });
    let a = world.open(1, "a");
    world.subscribe(a, 1, queue(), 500).unwrap();
    let bodies: Vec<String> = (0..200).map(|number| number.to_string()).collect();
    for body in &bodies {
        world.send(a, work(body)).unwrap();
    }
    for round in 0..10 {
        let delivered = world.delivered();
        let seen: Vec<&String> = delivered.iter().map(|(body, ..)| body).collect();
        assert_eq!(seen, bodies.iter().collect::<Vec<_>>(), "round {round}");
        world
            .ask(a, |token| Command::Begin {
                transaction: 1,
                token,
            })
            .unwrap();
        for (_, delivery, ..) in delivered {
            let ack = |token| Command::Ack {
                delivery,
                transaction: Some(1),
                token,
            };
            world.ask(a, ack).unwrap();
        }
        world
            .ask(a, |token| Command::Abort {
                transaction: 1,
                token,
            })
            .unwrap();
    }
    let delivered = world.delivered();
    world.nack(a, delivered[0].1).unwrap();
    world.lose(a);
    let b = world.open(2, "b");
    // The one that was refused and the oldest of the rest have failed for the eleventh time.
    world.subscribe(b, 1, queue(), 500).unwrap();
    assert_eq!(world.bodies(), bodies[2..]);
    world
        .subscribe(b, 2, Destination::queue("~error"), 500)
        .unwrap();
    assert_eq!(world.bodies(), bodies[..2]);
}

#[test]
fn a_transaction_is_seen_by_nobody_until_it_is_one_unit() {
    let mut world = World::new();
    let a = world.open(1, "a");
    world.subscribe(a, 1, queue(), 10).unwrap();
    world.send(a, work("in")).unwrap();
    let delivery = world.delivered()[0].1;
    world.units.clear();
    world
        .ask(a, |token| Command::Begin {
            transaction: 7,
            token,
        })
        .unwrap();
    let twice = world.ask(a, |token| Command::Begin {
        transaction: 7,
        token,
    });
    assert_eq!(twice.unwrap_err().name(), "INVALID");
    let transaction = Some(7);
    world
        .ask(a, |token| Command::Ack {
            delivery,
            transaction,
            token,
        })
        .unwrap();
    let stale = world.ack(a, delivery);
    assert_eq!(stale, Err(BusError::StaleAck), "the transaction has it");
    world
        .ask(a, |token| Command::Send {
            message: work("out"),
            transaction,
            token,
        })
        .unwrap();
    assert!(world.delivered().is_empty());
    assert_eq!(world.units, []);
}

#[test]
fn a_commit_is_one_unit() {
    let mut world = World::new();
    let a = world.open(1, "a");
    world.subscribe(a, 1, queue(), 10).unwrap();
    world.send(a, work("in")).unwrap();
    let delivery = world.delivered()[0].1;
    world.units.clear();
    let transaction = Some(7);
    world
        .ask(a, |token| Command::Begin {
            transaction: 7,
            token,
        })
        .unwrap();
    world
        .ask(a, |token| Command::Ack {
            delivery,
            transaction,
            token,
        })
        .unwrap();
    for body in ["out 1", "out 2"] {
        let message = work(body);
        world
            .ask(a, |token| Command::Send {
                message,
                transaction,
                token,
            })
            .unwrap();
    }
    world
        .ask(a, |token| Command::Commit {
            transaction: 7,
            token,
        })
        .unwrap();
    assert_eq!(world.units.len(), 1);
    assert_eq!(world.bodies(), ["out 1", "out 2"]);
    assert_eq!(world.core.held_messages(), 2);
    let unknown = world.ask(a, |token| Command::Commit {
        transaction: 7,
        token,
    });
    assert_eq!(unknown, Err(BusError::TransactionUnknown));
}

#[test]
fn what_fails_in_a_transaction_dooms_it() {
    let mut world = World::with_limits(Limits {
        unit_bytes: 1000,
        ..Limits::default()
    });
    let a = world.open(1, "a");
    world.subscribe(a, 1, queue(), 10).unwrap();
    world.send(a, work("in")).unwrap();
    let delivery = world.delivered()[0].1;
    let transaction = Some(7);
    world
        .ask(a, |token| Command::Begin {
            transaction: 7,
            token,
        })
        .unwrap();
    world
        .ask(a, |token| Command::Ack {
            delivery,
            transaction,
            token,
        })
        .unwrap();
    let large = || work(&"x".repeat(400));
    world
        .ask(a, |token| Command::Send {
            message: large(),
            transaction,
            token,
        })
        .unwrap();
    let over = world.ask(a, |token| Command::Send {
        message: large(),
        transaction,
        token,
    });
    assert_eq!(over.unwrap_err().name(), "LIMIT");
    let commit = world.ask(a, |token| Command::Commit {
        transaction: 7,
        token,
    });
    assert_eq!(commit.unwrap_err().name(), "LIMIT");
    assert!(
        world.delivered().is_empty(),
        "trying at once would not help"
    );
    world.pass(1000);
    let again = world.delivered();
    assert_eq!(
        (again[0].0.as_str(), again[0].3),
        ("in", 0),
        "nobody's fault"
    );
}

#[test]
fn a_transaction_open_for_too_long_is_undone_and_its_owner_told() {
    let mut world = World::new();
    let a = world.open(1, "a");
    world.subscribe(a, 1, queue(), 10).unwrap();
    world.send(a, work("in")).unwrap();
    let delivery = world.delivered()[0].1;
    world
        .ask(a, |token| Command::Begin {
            transaction: 7,
            token,
        })
        .unwrap();
    let transaction = Some(7);
    world
        .ask(a, |token| Command::Ack {
            delivery,
            transaction,
            token,
        })
        .unwrap();
    world.pass(60_000);
    let again = world.delivered();
    assert_eq!((again[0].2, again[0].3), (2, 1));
    let late = world.ask(a, |token| Command::Send {
        message: work("x"),
        transaction,
        token,
    });
    assert_eq!(late, Err(BusError::TransactionTimedOut));
    let commit = world.ask(a, |token| Command::Commit {
        transaction: 7,
        token,
    });
    assert_eq!(commit, Err(BusError::TransactionTimedOut));
    assert_eq!(world.core.held_messages(), 1);
}

#[test]
fn b34_a_connection_lost_with_an_open_transaction_redelivers_once() {
    let mut world = World::new();
    let (a, b) = (world.open(1, "a"), world.open(2, "b"));
    world.subscribe(a, 1, queue(), 10).unwrap();
    world.subscribe(b, 1, queue(), 10).unwrap();
    world.send(b, work("in")).unwrap();
    let delivery = world.delivered()[0].1;
    world
        .ask(a, |token| Command::Begin {
            transaction: 7,
            token,
        })
        .unwrap();
    let transaction = Some(7);
    world
        .ask(a, |token| Command::Ack {
            delivery,
            transaction,
            token,
        })
        .unwrap();
    world
        .ask(a, |token| Command::Send {
            message: work("never"),
            transaction,
            token,
        })
        .unwrap();
    world.lose(a);
    let again = world.delivered();
    assert_eq!(again.len(), 1);
    assert_eq!((again[0].0.as_str(), again[0].2, again[0].3), ("in", 2, 1));
    assert_eq!(world.core.next_deadline(), None, "no timeout is left");
}

#[test]
fn nobody_sees_a_volatile_message_before_the_unit_it_belongs_to_is_written() {
    let mut world = World::new();
    let a = world.open(1, "a");
    world
        .subscribe(a, 1, Destination::topic("news"), 1)
        .unwrap();
    world.send(a, news("first")).unwrap();
    let first = world.delivered()[0].1;
    let transaction = Some(7);
    world
        .ask(a, |token| Command::Begin {
            transaction: 7,
            token,
        })
        .unwrap();
    for message in [
        work("persistent"),
        NewMessage {
            persistent: Some(false),
            ..news("second")
        },
    ] {
        world
            .ask(a, |token| Command::Send {
                message,
                transaction,
                token,
            })
            .unwrap();
    }
    let commit = Command::Commit {
        transaction: 7,
        token: 0,
    };
    let effects = world.core.step(
        0,
        Input::Command {
            connection: a,
            command: commit,
        },
    );
    let unit = effects.unit.unwrap().number;
    let ack = Command::Ack {
        delivery: first,
        transaction: None,
        token: 0,
    };
    let effects = world.core.step(
        0,
        Input::Command {
            connection: a,
            command: ack,
        },
    );
    assert!(effects.unit.is_none());
    assert_eq!(effects.events.len(), 1);
    assert_eq!(effects.events[0].after, unit);
}

#[test]
fn cumulative_acknowledgements_and_refusals_wait_for_the_commit() {
    let mut world = World::new();
    let a = world.open(1, "a");
    let (destination, ack) = (queue(), AckMode::Client);
    let subscribe = |token| Command::Subscribe {
        options: SubscribeOptions::default(),
        ack_timeout: None,
        selector: None,
        subscription: 1,
        destination,
        durable: None,
        ack,
        prefetch: 10,
        token,
    };
    world.ask(a, subscribe).unwrap();
    for body in ["1", "2", "3", "4"] {
        world.send(a, work(body)).unwrap();
    }
    let delivered = world.delivered();
    let transaction = Some(7);
    world
        .ask(a, |token| Command::Begin {
            transaction: 7,
            token,
        })
        .unwrap();
    let delivery = delivered[1].1;
    world
        .ask(a, |token| Command::Ack {
            delivery,
            transaction,
            token,
        })
        .unwrap();
    let (delivery, reject) = (delivered[2].1, false);
    world
        .ask(a, |token| Command::Nack {
            delivery,
            reject,
            transaction,
            token,
        })
        .unwrap();
    let (delivery, reject) = (delivered[3].1, true);
    world
        .ask(a, |token| Command::Nack {
            delivery,
            reject,
            transaction,
            token,
        })
        .unwrap();
    assert_eq!(world.core.in_flight(), 4);
    world.units.clear();
    world
        .ask(a, |token| Command::Commit {
            transaction: 7,
            token,
        })
        .unwrap();
    assert_eq!(world.units.len(), 1);
    assert_eq!((world.core.in_flight(), world.core.held_messages()), (0, 2));
    world.pass(1000);
    assert_eq!(world.bodies(), ["3"]);
    world
        .subscribe(a, 2, Destination::queue("~error"), 1)
        .unwrap();
    assert_eq!(world.bodies(), ["4"]);
}

/// The units that the events of an answer with its acknowledgement, and these other sends, wait for: the
/// answer's delivery, and the commit's confirmation.
fn answered_with(others: Vec<NewMessage>) -> (u64, u64, u64) {
    let mut world = World::new();
    let (pillar, client) = (world.open(1, "pillar"), world.open(2, "client"));
    world.subscribe(pillar, 1, queue(), 10).unwrap();
    let replies = Destination::topic("news");
    world.subscribe(client, 1, replies, 10).unwrap();
    world.send(client, work("request")).unwrap();
    let (_, delivery, ..) = world.delivered()[0];
    let begin = |token| Command::Begin {
        transaction: 7,
        token,
    };
    world.ask(pillar, begin).unwrap();
    let ack = |token| Command::Ack {
        delivery,
        transaction: Some(7),
        token,
    };
    world.ask(pillar, ack).unwrap();
    let answer = NewMessage {
        persistent: Some(true),
        ..news("answer")
    };
    for message in std::iter::once(answer).chain(others) {
        let send = |token| Command::Send {
            message,
            transaction: Some(7),
            token,
        };
        world.ask(pillar, send).unwrap();
    }
    let commit = Command::Commit {
        transaction: 7,
        token: 99,
    };
    let effects = world.core.step(
        0,
        Input::Command {
            connection: pillar,
            command: commit,
        },
    );
    let after = |wanted: &dyn Fn(&Event) -> bool| {
        let found = effects.events.iter().find(|posted| wanted(&posted.event));
        found.unwrap().after
    };
    let delivered = after(
        &|event| matches!(event, Event::Deliver { message, .. } if message.body() == "answer"),
    );
    let confirmed = after(&|event| matches!(event, Event::Done { token: 99, .. }));
    (delivered, confirmed, effects.unit.unwrap().number)
}

#[test]
fn an_answer_that_lasts_no_longer_than_its_reader_does_not_wait_for_the_acknowledgement() {
    let (delivered, confirmed, unit) = answered_with(Vec::new());
    assert_eq!((delivered, confirmed), (0, unit));
    let (delivered, confirmed, unit) = answered_with(vec![work("to be kept")]);
    assert_eq!((delivered, confirmed), (unit, unit));
}
