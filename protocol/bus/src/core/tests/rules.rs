//! One test for each rule.

use pillarbox_messages::{Destination, DestinationKind};

use super::{World, message, work};
use crate::{
    BusError,
    core::{Input, Limits, message::NewMessage},
    embedded::connection::{AckMode, Command, Event},
};

fn queue() -> Destination {
    Destination::queue("work")
}

fn news(body: &str) -> NewMessage {
    message(Destination::topic("news"), body)
}

#[test]
fn priority_first_then_the_order_of_sending() {
    let mut world = World::new();
    let a = world.open(1, "a");
    for (body, priority) in [("1", 4), ("2", 9), ("3", 4), ("4", 0), ("5", 9)] {
        world
            .send(
                a,
                NewMessage {
                    priority,
                    ..work(body)
                },
            )
            .unwrap();
    }
    world.subscribe(a, 1, queue(), 10).unwrap();
    assert_eq!(world.bodies(), ["2", "5", "1", "3", "4"]);
}

#[test]
fn consumers_take_turns_within_their_prefetch() {
    let mut world = World::new();
    let (a, b) = (world.open(1, "a"), world.open(2, "b"));
    world.subscribe(a, 1, queue(), 2).unwrap();
    world.subscribe(b, 1, queue(), 1).unwrap();
    for body in ["1", "2", "3", "4"] {
        world.send(a, work(body)).unwrap();
    }
    let takers: Vec<u64> = world
        .told
        .iter()
        .filter(|(_, event)| matches!(event, Event::Deliver { .. }))
        .map(|(connection, _)| connection.0)
        .collect();
    assert_eq!(takers, [1, 2, 1], "the fourth waits");
    let delivered = world.delivered();
    world.ack(b, delivered[1].1).unwrap();
    assert_eq!(world.bodies(), ["4"]);
}

#[test]
fn a_topic_reaches_who_listens_and_keeps_nothing_for_others() {
    let mut world = World::new();
    let (a, b) = (world.open(1, "a"), world.open(2, "b"));
    assert_eq!(
        world.send(a, news("nobody")),
        Ok(false),
        "the topic is known"
    );
    world
        .subscribe(a, 1, Destination::topic("news"), 5)
        .unwrap();
    world
        .subscribe(b, 1, Destination::topic("news"), 5)
        .unwrap();
    world.send(a, news("both")).unwrap();
    assert_eq!(world.bodies(), ["both", "both"]);
    assert_eq!(world.core.counters().unroutable, 1);
}

#[test]
fn volatile_effects_write_nothing() {
    let mut world = World::new();
    let a = world.open(1, "a");
    world
        .subscribe(a, 1, Destination::topic("news"), 5)
        .unwrap();
    world
        .send(
            a,
            NewMessage {
                persistent: Some(true),
                ..news("to a plain subscription")
            },
        )
        .unwrap();
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
    assert_eq!(world.units, []);
    world.send(a, work("persistent")).unwrap();
    assert_eq!(world.units, [(true, 1)]);
}

#[test]
fn a_durable_subscription_collects_while_its_client_is_away() {
    let mut world = World::new();
    let (a, d) = (world.open(1, "a"), world.open(2, "d"));
    world.subscribe_durable(d, "news", "mine").unwrap();
    world.lose(d);
    world.send(a, news("1")).unwrap();
    let d = world.open(3, "d");
    world.subscribe_durable(d, "news", "mine").unwrap();
    assert_eq!(world.bodies(), ["1"]);
    world
        .ask(d, |token| Command::Unsubscribe {
            subscription: 900,
            token,
        })
        .unwrap();
    world.send(a, news("2")).unwrap();
    world.subscribe_durable(d, "news", "mine").unwrap();
    assert_eq!(world.bodies(), ["1", "2"], "unacknowledged, so again");
    world
        .ask(d, |token| Command::CancelDurable {
            name: "mine".to_owned(),
            token,
        })
        .unwrap();
    assert_eq!(world.core.held_messages(), 0);
    world.send(a, news("3")).unwrap();
    world.subscribe_durable(d, "news", "mine").unwrap();
    assert_eq!(world.bodies(), Vec::<String>::new());
}

#[test]
fn a_durable_subscription_is_one_topics_and_one_connections() {
    let mut world = World::new();
    let d = world.open(1, "d");
    world.subscribe_durable(d, "news", "mine").unwrap();
    let again = world.ask(d, |token| Command::Subscribe {
        subscription: 2,
        destination: Destination::topic("news"),
        durable: Some("mine".to_owned()),
        ack: AckMode::Individual,
        prefetch: 1,
        token,
    });
    assert_eq!(again.unwrap_err().name(), "SUBSCRIPTION-IN-USE");
    world
        .ask(d, |token| Command::Unsubscribe {
            subscription: 900,
            token,
        })
        .unwrap();
    let other = world.subscribe_durable(d, "client.d", "mine");
    assert_eq!(other.unwrap_err().name(), "SUBSCRIPTION-MISMATCH");
    let nobody = world.open(2, "");
    assert_eq!(
        world
            .subscribe_durable(nobody, "news", "mine")
            .unwrap_err()
            .name(),
        "INVALID"
    );
}

#[test]
fn only_topics_have_durable_subscriptions() {
    let mut world = World::new();
    let d = world.open(1, "d");
    let refused = world.ask(d, |token| Command::Subscribe {
        subscription: 1,
        destination: queue(),
        durable: Some("mine".to_owned()),
        ack: AckMode::Individual,
        prefetch: 1,
        token,
    });
    assert_eq!(refused.unwrap_err().name(), "INVALID");
}

#[test]
fn names_that_fit_a_template_come_with_their_first_subscriber_and_go_with_the_last() {
    let mut world = World::new();
    let (a, b) = (world.open(1, "a"), world.open(2, "b"));
    for destination in [
        Destination::topic("client.a"),
        Destination::queue("client.a"),
    ] {
        world.subscribe(a, 1, destination.clone(), 5).unwrap();
        assert_eq!(
            world.send(b, message(destination.clone(), "here")),
            Ok(false)
        );
        assert_eq!(world.bodies(), ["here"]);
        world
            .ask(a, |token| Command::Unsubscribe {
                subscription: 1,
                token,
            })
            .unwrap();
        assert_eq!(world.send(b, message(destination, "gone")), Ok(true));
    }
    assert_eq!(
        world.units.len(),
        1,
        "only what went to the error queue, and that made no queue"
    );
    for destination in [Destination::topic("other"), Destination::queue("other")] {
        let refused = world.subscribe(a, 1, destination, 5).unwrap_err();
        assert!(
            matches!(refused, BusError::UnknownDestination { .. }),
            "{refused}"
        );
    }
}

#[test]
fn nobody_can_send_to_the_systems_queues() {
    let mut world = World::new();
    let a = world.open(1, "a");
    let sent = world.send(a, message(Destination::queue("~error"), "x"));
    assert_eq!(sent, Ok(true), "kept, but as a message without a place");
    world
        .subscribe(a, 1, Destination::queue("~error"), 5)
        .unwrap();
    assert_eq!(world.bodies(), ["x"]);
}

#[test]
fn a_refused_message_comes_again_after_a_pause_in_its_old_place() {
    let mut world = World::new();
    let a = world.open(1, "a");
    world.subscribe(a, 1, queue(), 1).unwrap();
    for body in ["1", "2", "3"] {
        world.send(a, work(body)).unwrap();
    }
    let first = world.delivered()[0].1;
    world.nack(a, first).unwrap();
    let second = world.delivered();
    assert_eq!(second[0].0, "2", "others don't wait for it");
    world.pass(999);
    assert!(world.delivered().is_empty());
    world.pass(1);
    world.ack(a, second[0].1).unwrap();
    let again = world.delivered();
    assert_eq!(
        (again[0].0.as_str(), again[0].2, again[0].3),
        ("1", 2, 1),
        "before 3"
    );
    world.nack(a, again[0].1).unwrap();
    world.pass(1999);
    assert_eq!(world.bodies(), ["3"]);
    assert_eq!(world.core.next_deadline(), Some(3000));
}

#[test]
fn an_acknowledgement_works_once_and_only_for_its_owner() {
    let mut world = World::new();
    let (a, b) = (world.open(1, "a"), world.open(2, "b"));
    world.subscribe(a, 1, queue(), 1).unwrap();
    world.send(a, work("1")).unwrap();
    let delivery = world.delivered()[0].1;
    assert_eq!(world.ack(b, delivery), Err(BusError::StaleAck));
    world.nack(a, delivery).unwrap();
    world.pass(1000);
    let again = world.delivered()[0].1;
    assert_eq!(
        world.ack(a, delivery),
        Err(BusError::StaleAck),
        "it must not reach the new one"
    );
    world.ack(a, again).unwrap();
    assert_eq!(world.ack(a, again), Err(BusError::StaleAck));
}

#[test]
fn a_cumulative_acknowledgement_covers_its_subscription_up_to_it() {
    let mut world = World::new();
    let a = world.open(1, "a");
    for (subscription, destination) in [(1, queue()), (2, Destination::topic("news"))] {
        let ack = AckMode::Client;
        let prefetch = 10;
        let asked = world.ask(a, |token| Command::Subscribe {
            subscription,
            destination,
            durable: None,
            ack,
            prefetch,
            token,
        });
        asked.unwrap();
    }
    for sent in [work("1"), news("n"), work("2"), work("3")] {
        world.send(a, sent).unwrap();
    }
    let delivered = world.delivered();
    assert_eq!(delivered[2].0, "2");
    world.ack(a, delivered[2].1).unwrap();
    assert_eq!(world.core.in_flight(), 2, "n and 3");
    assert_eq!(world.ack(a, delivered[0].1), Err(BusError::StaleAck));
}

#[test]
fn a_lost_connection_blames_the_oldest_of_each_subscription() {
    let mut world = World::new();
    let a = world.open(1, "a");
    world.subscribe(a, 1, queue(), 10).unwrap();
    for body in ["1", "2", "3"] {
        world.send(a, work(body)).unwrap();
    }
    let delivered = world.delivered();
    world.ack(a, delivered[0].1).unwrap();
    world.lose(a);
    let b = world.open(2, "a");
    world.subscribe(b, 1, queue(), 10).unwrap();
    let again: Vec<_> = world
        .delivered()
        .into_iter()
        .map(|d| (d.0, d.2, d.3))
        .collect();
    assert_eq!(again, [("2".to_owned(), 2, 1), ("3".to_owned(), 2, 0)]);
}

#[test]
fn going_in_order_blames_nobody() {
    let mut world = World::new();
    let a = world.open(1, "a");
    world.send(a, work("1")).unwrap();
    world.subscribe(a, 1, queue(), 10).unwrap();
    world
        .ask(a, |token| Command::Unsubscribe {
            subscription: 1,
            token,
        })
        .unwrap();
    world.subscribe(a, 1, queue(), 10).unwrap();
    world.ask(a, |token| Command::Disconnect { token }).unwrap();
    let events: Vec<_> = world
        .told
        .iter()
        .rev()
        .take(2)
        .map(|(_, event)| event)
        .collect();
    assert!(
        matches!(events[..], [Event::Closed { .. }, Event::Done { .. }]),
        "{events:?}"
    );
    let b = world.open(2, "b");
    world.delivered();
    world.subscribe(b, 1, queue(), 10).unwrap();
    let again = world.delivered();
    assert_eq!((again[0].2, again[0].3), (3, 0));
}

#[test]
fn order_survives_many_rollbacks() {
    let mut world = World::new();
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
fn a_connection_lost_with_an_open_transaction_redelivers_once() {
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
fn messages_expire_by_themselves_but_not_in_somebodys_hands() {
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
fn a_clock_set_back_brings_nothing_back() {
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
fn a_plain_subscriber_that_does_not_keep_up_loses_its_subscription_and_nobody_else() {
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
fn rejected_messages_go_to_the_error_queue_with_their_history() {
    let mut world = World::new();
    let a = world.open(1, "a");
    world.send(a, work("bad")).unwrap();
    world.subscribe(a, 1, queue(), 1).unwrap();
    let delivery = world.delivered()[0].1;
    let reject = |token| Command::Nack {
        delivery,
        reject: true,
        transaction: None,
        token,
    };
    world.ask(a, reject).unwrap();
    world
        .subscribe(a, 2, Destination::queue("~error"), 1)
        .unwrap();
    let moved = world.told.iter().find_map(|(_, event)| match event {
        Event::Deliver {
            message,
            subscription: 2,
            ..
        } => Some(message.clone()),
        _ => None,
    });
    let moved = moved.unwrap();
    assert_eq!(moved.original_destination.as_deref(), Some("/queue/work"));
    assert_eq!(moved.reason.unwrap().as_str(), "rejected");
    assert_eq!(world.core.held_messages(), 1);
}

#[test]
fn a_temporary_queue_belongs_to_one_connection() {
    let mut world = World::new();
    let (a, b) = (world.open(1, "a"), world.open(2, "b"));
    let boot = world.core.boot();
    let own = Destination::new(DestinationKind::TemporaryQueue, &format!("{boot}.1.x"));
    assert_eq!(world.send(b, message(own.clone(), "too early")), Ok(true));
    assert!(world.subscribe(b, 1, own.clone(), 1).is_err());
    world.subscribe(a, 1, own.clone(), 1).unwrap();
    assert!(
        world.subscribe(a, 2, own.clone(), 1).is_err(),
        "one consumer"
    );
    assert_eq!(world.send(b, message(own.clone(), "answer")), Ok(false));
    assert_eq!(world.bodies(), ["answer"]);
    assert_eq!(world.units, []);
    let queues = world.core.queue_count();
    world.lose(a);
    assert_eq!(world.core.queue_count(), queues - 1);
    assert_eq!(world.send(b, message(own, "too late")), Ok(true));
}

#[test]
fn an_automatic_delivery_holds_its_credit_until_it_is_handed_over() {
    let mut world = World::new();
    let a = world.open(1, "a");
    world
        .ask(a, |token| Command::Subscribe {
            subscription: 1,
            destination: queue(),
            durable: None,
            ack: AckMode::Auto,
            prefetch: 1,
            token,
        })
        .unwrap();
    for body in ["1", "2", "3"] {
        world.send(a, work(body)).unwrap();
    }
    let delivered = world.delivered();
    assert_eq!(delivered.len(), 1);
    assert_eq!(
        world.ack(a, delivered[0].1),
        Err(BusError::StaleAck),
        "not his to acknowledge"
    );
    world.step(Input::Handed {
        connection: a,
        delivery: delivered[0].1,
    });
    assert_eq!(world.bodies(), ["2"]);
    world.lose(a);
    let b = world.open(2, "b");
    world.subscribe(b, 1, queue(), 5).unwrap();
    let again: Vec<_> = world.delivered().into_iter().map(|d| (d.0, d.3)).collect();
    assert_eq!(
        again,
        [("2".to_owned(), 0), ("3".to_owned(), 0)],
        "never handed over"
    );
}

#[test]
fn senseless_messages_are_refused() {
    let mut world = World::with_limits(Limits {
        message_bytes: 1000,
        ..Limits::default()
    });
    let a = world.open(1, "a");
    let large = world.send(a, work(&"x".repeat(1000))).unwrap_err();
    assert!(
        matches!(large, BusError::TooLarge { limit: 1000, .. }),
        "{large}"
    );
    let urgent = NewMessage {
        priority: 10,
        ..work("x")
    };
    assert_eq!(world.send(a, urgent).unwrap_err().name(), "INVALID");
    let long = NewMessage {
        correlation_id: Some("x".repeat(256)),
        ..work("x")
    };
    assert!(world.send(a, long).is_err());
    assert!(world.subscribe(a, 1, queue(), 0).is_err());
    assert_eq!(world.core.held_messages(), 0);
}
