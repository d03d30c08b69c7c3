//! Messages that fail: counted, moved aside, told about, and sent back.

use pillarbox_messages::Destination;

use super::{World, message, news, queue, work};
use crate::{
    BusError, ClientTemplates, Lanes, OnExpiry, OnLanePoison, QueueAttributes, QueueDefinition,
    core::{
        Core, Input, Limits, Wanted,
        message::{Cause, MessageId, NewMessage},
    },
    embedded::connection::{AckMode, Command, ConnectionId, DeliveryId, Event, Wait},
};

fn like(lanes: Lanes) -> QueueAttributes {
    QueueAttributes {
        lanes,
        backout_queue: Some("aside".to_owned()),
        ..QueueAttributes::default()
    }
}

fn aside() -> Destination {
    Destination::queue("aside")
}

fn of(body: &str) -> NewMessage {
    NewMessage {
        group: Some(body.split_at(1).0.to_owned()),
        ..work(body)
    }
}

/// Gives back whatever comes with this body until it comes no more; returns how often that was.
fn fail(world: &mut World, consumer: ConnectionId, body: &str) -> usize {
    let mut times = 0;
    for _ in 0..10 {
        for (text, delivery, ..) in world.delivered_to(consumer) {
            if text == body {
                times += 1;
                world.nack(consumer, delivery).unwrap();
            } else {
                world.ack(consumer, delivery).unwrap();
            }
        }
        world.pass(60_000);
    }
    times
}

/// What stands in a queue, in order.
fn standing(world: &World, name: &str) -> Vec<String> {
    let id = world.core.directory.queue(name).expect("no such queue");
    let queue = &world.core.queues[&id];
    let mut held: Vec<_> = queue.messages.values().collect();
    held.sort_by_key(|held| queue.key(held));
    let bodies = held.iter().map(|held| held.message.body().to_vec());
    bodies
        .map(|body| String::from_utf8(body).unwrap())
        .collect()
}

fn id_of(world: &World, body: &str) -> MessageId {
    let held = world
        .core
        .queues
        .values()
        .flat_map(|it| it.messages.values());
    let mut held = held.filter(|held| held.message.body() == body.as_bytes());
    held.next().expect("no such message").message.id
}

fn retry(
    world: &mut World,
    from: Destination,
    ids: &[MessageId],
) -> Result<(usize, usize), BusError> {
    world.token += 1;
    let token = world.token;
    let admin = ConnectionId(77);
    if !world.core.sessions.contains_key(&admin) {
        world.open(77, "admin");
    }
    let command = Command::Retry {
        queue: from,
        messages: ids.to_vec(),
        token,
    };
    world.step(Input::Command {
        connection: admin,
        command,
    });
    let answer = world.told.iter().find_map(|(_, event)| match event {
        Event::Returned {
            token: of,
            returned,
            skipped,
        } if *of == token => Some(Ok((*returned, *skipped))),
        Event::Failed { token: of, error } if *of == token => Some(Err(error.clone())),
        _ => None,
    });
    answer.expect("no answer")
}

#[test]
fn b29_at_the_limit_a_message_is_in_the_backout_queue_in_the_same_unit() {
    let mut world = World::with_work(like(Lanes::None));
    let a = world.open(1, "a");
    world.subscribe(a, 1, queue(), 1).unwrap();
    let sent = NewMessage {
        correlation_id: Some("c".to_owned()),
        headers: vec![("x".to_owned(), "1".to_owned())],
        ..work("bad")
    };
    let id = world.send_id(a, sent);
    for round in 1..=3 {
        let delivery = world.delivered()[0].1;
        world.units.clear();
        world.nack(a, delivery).unwrap();
        if round < 3 {
            assert_eq!(standing(&world, "work"), ["bad"]);
            world.pass(60_000);
        }
    }
    // Out and in, together.
    assert_eq!(world.units, [(true, 2)]);
    assert_eq!(standing(&world, "work"), [""; 0]);
    assert_eq!(standing(&world, "aside"), ["bad"]);
    world.restart();
    let a = world.open(1, "a");
    world.subscribe(a, 1, aside(), 1).unwrap();
    let told = world.told.iter().find_map(|(_, event)| match event {
        Event::Deliver {
            message,
            backout_count,
            ..
        } => Some((message.clone(), *backout_count)),
        _ => None,
    });
    let (moved, backouts) = told.unwrap();
    assert_eq!((moved.id, backouts), (id, 3));
    assert_eq!(moved.correlation_id(), Some("c"));
    assert!(moved.headers().eq([("x", "1")]));
    assert_eq!(moved.original_destination(), Some("/queue/work"));
    assert_eq!(moved.reason().unwrap().as_str(), "backout");
    let failure = moved.failure().unwrap();
    assert_eq!(
        (failure.failed_at, failure.cause),
        (120_000, Cause::Refused)
    );
    // A backout queue never moves anything on.
    assert_eq!(fail(&mut world, a, "bad"), 10);
    assert_eq!(standing(&world, "aside"), ["bad"]);
}

#[test]
fn without_a_backout_queue_the_error_queue_takes_it() {
    let mut world = World::new();
    let a = world.open(1, "a");
    world.subscribe(a, 1, queue(), 1).unwrap();
    world.send(a, work("bad")).unwrap();
    assert_eq!(fail(&mut world, a, "bad"), 3);
    assert_eq!(standing(&world, "~error"), ["bad"]);
}

#[test]
fn the_limit_is_the_queues_own() {
    for (limit, times) in [(Some(1), 1), (Some(5), 5), (None, 10)] {
        let mut world = World::with_work(QueueAttributes {
            backout_limit: limit,
            ..like(Lanes::None)
        });
        let a = world.open(1, "a");
        world.subscribe(a, 1, queue(), 1).unwrap();
        world.send(a, work("bad")).unwrap();
        assert_eq!(fail(&mut world, a, "bad"), times, "{limit:?}");
    }
}

#[test]
fn e05_poison_at_the_head_of_a_lane() {
    let mut world = World::with_work(like(Lanes::Key));
    let a = world.open(1, "a");
    world.subscribe(a, 1, queue(), 1).unwrap();
    for body in ["a1", "a2", "b1", "b2"] {
        world.send(a, of(body)).unwrap();
    }
    let mut seen = Vec::new();
    for _ in 0..9 {
        for (body, delivery, ..) in world.delivered() {
            seen.push(format!("{}@{}", body, world.now));
            if body == "a1" {
                world.nack(a, delivery).unwrap();
            } else {
                world.ack(a, delivery).unwrap();
            }
        }
        world.pass(500);
    }
    // The lane waits one second, then two; the other goes on; with the third failure the lane goes on at once.
    let expected = ["a1@0", "b1@500", "b2@1000", "a1@1500", "a1@3500", "a2@4000"];
    assert_eq!(seen, expected);
    assert_eq!(standing(&world, "aside"), ["a1"]);
}

#[test]
fn e05_a_parked_lane_goes_aside_as_a_whole_and_no_other() {
    for lanes in [
        Lanes::Key,
        Lanes::Single,
        Lanes::Hashed {
            count: 1,
            hash: crate::LaneHash::Fnv1a64,
        },
    ] {
        let mut world = World::with_work(QueueAttributes {
            on_lane_poison: OnLanePoison::Park,
            ..like(lanes)
        });
        let a = world.open(1, "a");
        for body in ["a1", "a2", "b1", "a3", "b2"] {
            world.send(a, of(body)).unwrap();
        }
        world.subscribe(a, 1, queue(), 1).unwrap();
        assert_eq!(fail(&mut world, a, "a1"), 3);
        assert_eq!(standing(&world, "aside"), ["a1", "a2", "a3"], "{lanes:?}");
        let id = world.core.directory.queue("aside").unwrap();
        let causes = world.core.queues[&id].messages.values();
        let causes: Vec<_> = causes
            .map(|it| it.message.failure().unwrap().cause)
            .collect();
        assert_eq!(causes, [Cause::Refused, Cause::Parked, Cause::Parked]);
        assert_eq!(world.core.counters().acknowledged, 2, "b1 and b2");
        // All of it comes back in its order.
        let ids: Vec<_> = ["a1", "a2", "a3"].map(|body| id_of(&world, body)).to_vec();
        assert_eq!(retry(&mut world, aside(), &ids), Ok((3, 0)));
        assert_eq!(standing(&world, "work"), ["a1", "a2", "a3"]);
    }
}

#[test]
fn a_refusal_for_good_goes_aside_at_once() {
    let mut world = World::with_work(like(Lanes::None));
    let a = world.open(1, "a");
    world.subscribe(a, 1, queue(), 1).unwrap();
    world.send(a, work("bad")).unwrap();
    let delivery = world.delivered()[0].1;
    let reject = |token| Command::Nack {
        delivery,
        reject: true,
        transaction: None,
        token,
    };
    world.ask(a, reject).unwrap();
    assert_eq!(standing(&world, "aside"), ["bad"]);
    assert_eq!(world.moved[0].reason.as_str(), "rejected");
}

fn abort(world: &mut World, consumer: ConnectionId, delivery: DeliveryId) {
    let transaction = 1;
    world
        .ask(consumer, |token| Command::Begin { transaction, token })
        .unwrap();
    let acked = world.ask(consumer, |token| Command::Ack {
        delivery,
        transaction: Some(transaction),
        token,
    });
    acked.unwrap();
    world
        .ask(consumer, |token| Command::Abort { transaction, token })
        .unwrap();
}

/// Every way for a message to fail counts once, and tells how it was.
#[test]
fn every_kind_of_failure_counts_and_is_told() {
    for (cause, fails) in [
        (Cause::Refused, 0),
        (Cause::Aborted, 1),
        (Cause::ConnectionLost, 2),
        (Cause::TimedOut, 3),
    ] {
        let mut world = World::with_work(like(Lanes::None));
        world.open(1, "sender");
        world.send(ConnectionId(1), work("bad")).unwrap();
        for round in 0..3 {
            let c = world.open(10 + round, &format!("c{round}"));
            world.subscribe(c, 1, queue(), 1).unwrap();
            let got = world.delivered();
            assert_eq!(u64::from(got[0].3), round, "{cause:?}");
            let delivery = got[0].1;
            match fails {
                0 => drop(world.nack(c, delivery).unwrap()),
                1 => abort(&mut world, c, delivery),
                2 => world.lose(c),
                _ => {
                    let (transaction, begin) = (1, 1);
                    let opened = world.ask(c, |token| Command::Begin { transaction, token });
                    opened.unwrap();
                    let acked = world.ask(c, |token| Command::Ack {
                        delivery,
                        transaction: Some(begin),
                        token,
                    });
                    acked.unwrap();
                    world.pass(60_000);
                }
            }
            if fails != 2 {
                world.delivered();
                world.ask(c, |token| Command::Disconnect { token }).unwrap();
            }
            world.pass(60_000);
        }
        assert_eq!(standing(&world, "aside"), ["bad"], "{cause:?}");
        assert_eq!(world.moved[0].cause, cause);
    }
}

#[test]
fn e01_a_crash_before_the_acknowledgement_redelivers_and_counts() {
    let mut world = World::new();
    let a = world.open(1, "a");
    world.send(a, work("1")).unwrap();
    world.subscribe(a, 1, queue(), 1).unwrap();
    world.lose(a);
    world.delivered();
    let b = world.open(2, "b");
    world.subscribe(b, 1, queue(), 1).unwrap();
    let got = world.delivered();
    assert_eq!((got[0].2, got[0].3), (2, 1));
}

#[test]
fn e10_a_consumer_that_goes_inside_a_transaction_fails_once() {
    let mut world = World::with_work(like(Lanes::Key));
    let a = world.open(1, "a");
    world.subscribe(a, 1, queue(), 1).unwrap();
    world.send(a, of("a1")).unwrap();
    let delivery = world.delivered()[0].1;
    let transaction = 1;
    world
        .ask(a, |token| Command::Begin { transaction, token })
        .unwrap();
    let acked = world.ask(a, |token| Command::Ack {
        delivery,
        transaction: Some(transaction),
        token,
    });
    acked.unwrap();
    let message = work("never");
    let sent = world.ask(a, |token| Command::Send {
        message,
        transaction: Some(transaction),
        token,
    });
    sent.unwrap();
    world.lose(a);
    let b = world.open(2, "b");
    world.subscribe(b, 1, queue(), 5).unwrap();
    let got: Vec<_> = world
        .delivered()
        .into_iter()
        .map(|it| (it.0, it.2, it.3))
        .collect();
    assert_eq!(got, [("a1".to_owned(), 2, 1)]);
}

#[test]
fn e06_poison_that_ends_the_process_is_moved_aside_after_as_many_restarts() {
    for lanes in [Lanes::None, Lanes::Key] {
        let mut world = World::with_work(like(lanes));
        world.open(1, "sender");
        for body in ["a1", "a2", "b1"] {
            world.send(ConnectionId(1), of(body)).unwrap();
        }
        for round in 0..3 {
            let c = world.open_as(10, "within", true);
            world.subscribe(c, 1, queue(), 10).unwrap();
            let first = &world.delivered()[0];
            assert_eq!((first.0.as_str(), first.3), ("a1", round), "{lanes:?}");
            world.restart();
        }
        assert!(standing(&world, "aside").contains(&"a1".to_owned()));
        assert!(
            standing(&world, "work").contains(&"a2".to_owned()),
            "{lanes:?}"
        );
        assert_eq!(world.moved[0].cause, Cause::ProcessEnded);
        // What nobody had in hand is as it was; so is all that in the end.
        let queue_id = world.core.directory.queue("work").unwrap();
        let held = world.core.queues[&queue_id].messages.values();
        assert!(held.into_iter().all(|held| held.hand().is_none()));
        world.restart();
        assert_eq!(world.moved.len(), 1);
    }
}

/// Written before its handler can see it.
#[test]
fn e06_who_has_a_message_in_hand_is_written_before_it_is_told() {
    let mut world = World::new();
    let c = world.open_as(1, "within", true);
    world.subscribe(c, 1, queue(), 1).unwrap();
    for persistent in [true, false] {
        let message = NewMessage {
            persistent: Some(persistent),
            ..work("1")
        };
        let command = Command::Send {
            message,
            transaction: None,
            token: 0,
        };
        let connection = c;
        let effects = world.core.step(
            0,
            Input::Command {
                connection,
                command,
            },
        );
        let delivery = effects.events.iter().find_map(|posted| match posted.event {
            Event::Deliver { delivery, .. } => Some((posted.after, delivery)),
            _ => None,
        });
        let (after, delivery) = delivery.unwrap();
        let unit = effects.unit.map_or(0, |unit| unit.number);
        assert_eq!((after, unit > 0), (unit, persistent));
        world.ack(c, delivery).unwrap();
    }
}

#[test]
fn a_process_that_ends_in_order_and_consumers_elsewhere_blame_nobody() {
    for (in_process, in_order) in [(true, true), (false, false)] {
        let mut world = World::with_work(like(Lanes::None));
        world.open(1, "sender");
        world.send(ConnectionId(1), work("1")).unwrap();
        for round in 1..6 {
            let c = world.open_as(10, "c", in_process);
            world.subscribe(c, 1, queue(), 10).unwrap();
            let got = world.delivered();
            assert_eq!((got[0].2, got[0].3), (round, 0));
            if in_order {
                world.step(Input::Shutdown);
            }
            world.restart();
        }
    }
}

#[test]
fn one_alarm_for_each_queue_and_hour() {
    let mut world = World::with_work(QueueAttributes {
        backout_limit: Some(1),
        ..like(Lanes::None)
    });
    let a = world.open(1, "a");
    world.subscribe(a, 1, queue(), 1).unwrap();
    let bad = |world: &mut World| {
        world.send(a, of("bad")).unwrap();
        let delivery = world.delivered()[0].1;
        world.nack(a, delivery).unwrap();
    };
    for _ in 0..5 {
        bad(&mut world);
        world.pass(60_000);
    }
    assert_eq!(world.moved.len(), 1);
    let told = &world.moved[0];
    assert_eq!(
        (told.queue.as_str(), told.moved_to.as_str()),
        ("/queue/work", "/queue/aside")
    );
    assert_eq!((told.others, told.backouts), (0, 1));
    assert_eq!(told.group.as_deref(), Some("b"));
    world.pass(3_600_000);
    bad(&mut world);
    assert_eq!(world.moved.len(), 2);
    assert_eq!(world.moved[1].others, 4);
    assert_eq!(world.core.counters().backed_out, 6);
}

#[test]
fn messages_go_back_to_where_they_stood_as_if_nothing_had_happened() {
    let mut world = World::with_work(like(Lanes::Key));
    let a = world.open(1, "a");
    world.subscribe(a, 1, queue(), 5).unwrap();
    for body in ["a1", "b1"] {
        world.send(a, of(body)).unwrap();
    }
    let got = world.delivered();
    for _ in 0..3 {
        for (_, delivery, ..) in &got {
            let _ = world.nack(a, *delivery);
        }
        fail(&mut world, a, "a1");
    }
    assert_eq!(standing(&world, "aside"), ["a1"]);
    let id = id_of(&world, "a1");
    assert_eq!(retry(&mut world, aside(), &[id]), Ok((1, 0)));
    let got = world.delivered();
    assert_eq!((got[0].0.as_str(), got[0].2, got[0].3), ("a1", 1, 0));
    let unknown = retry(&mut world, aside(), &[id]).unwrap_err();
    assert_eq!(unknown.name(), "BAD-ID");
    world.restart();
    assert_eq!(standing(&world, "work"), ["a1"]);
    let queue_id = world.core.directory.queue("work").unwrap();
    let held = &world.core.queues[&queue_id].messages.get(&id).unwrap();
    assert_eq!(
        (&held.message.reason(), &held.message.original_destination()),
        (&None, &None)
    );
    assert_eq!(held.message.failure(), None);
    let nothing = retry(&mut world, Destination::queue("none"), &[id]).unwrap_err();
    assert_eq!(nothing.name(), "NO-QUEUE");
}

#[test]
fn a_subscriptions_message_goes_back_to_it_alone() {
    let mut world = World::new();
    let (a, d, e) = (world.open(1, "a"), world.open(2, "d"), world.open(3, "e"));
    world.subscribe_durable(d, "news", "mine").unwrap();
    world.subscribe_durable(e, "news", "hers").unwrap();
    world.send(a, news("n")).unwrap();
    let got = world.delivered_to(e);
    world.ack(e, got[0].1).unwrap();
    assert_eq!(fail(&mut world, d, "n"), 3);
    assert_eq!(standing(&world, "~error"), ["n"]);
    let error = Destination::queue("~error");
    let id = id_of(&world, "n");
    assert_eq!(retry(&mut world, error, &[id]), Ok((1, 0)));
    assert_eq!(world.bodies(), ["n"]);
    assert_eq!(world.core.held_messages(), 1);
}

#[test]
fn what_is_in_hand_or_came_from_nowhere_stays() {
    let mut world = World::new();
    let a = world.open(1, "a");
    world
        .send(a, message(Destination::queue("nowhere"), "lost"))
        .unwrap();
    let error = Destination::queue("~error");
    let id = id_of(&world, "lost");
    let refused = retry(&mut world, error.clone(), &[id]).unwrap_err();
    assert_eq!(refused.name(), "NO-QUEUE");
    assert!(refused.to_string().contains("nowhere"), "{refused}");
    world.queues.push(QueueDefinition {
        name: "nowhere".to_owned(),
        attributes: QueueAttributes::default(),
        drain: false,
    });
    world.restart();
    let a = world.open(1, "a");
    world.subscribe(a, 1, error.clone(), 1).unwrap();
    assert_eq!(retry(&mut world, error.clone(), &[id]), Ok((0, 1)));
    world.lose(a);
    assert_eq!(retry(&mut world, error, &[id]), Ok((1, 0)));
    assert_eq!(standing(&world, "nowhere"), ["lost"]);
    assert_eq!(
        retry(&mut world, Destination::queue("nowhere"), &[id]),
        Ok((0, 1))
    );
}

#[test]
fn e37_what_is_in_hand_is_not_deleted_and_what_is_deleted_stays_so() {
    let mut world = World::with_work(like(Lanes::Key));
    let a = world.open(1, "a");
    world.subscribe(a, 1, queue(), 1).unwrap();
    for body in ["a1", "a2", "b1", "b2"] {
        world.send(a, of(body)).unwrap();
    }
    let ids = ["a1", "a2", "b1"].map(|body| id_of(&world, body));
    let delete = |world: &mut World, ids: &[MessageId]| {
        let command = Command::Delete {
            queue: queue(),
            messages: ids.to_vec(),
            token: 99,
        };
        world.step(Input::Command {
            connection: a,
            command,
        });
        let answers = world.told.iter().rev();
        let mut answers = answers.filter_map(|(_, event)| match event {
            Event::Returned {
                returned, skipped, ..
            } => Some((*returned, *skipped)),
            _ => None,
        });
        answers.next().unwrap()
    };
    assert_eq!(delete(&mut world, &ids), (2, 1), "a1 is in hand");
    assert_eq!(standing(&world, "work"), ["a1", "b2"]);
    assert_eq!(delete(&mut world, &ids), (0, 3));
    let delivery = world.delivered()[0].1;
    world.nack(a, delivery).unwrap();
    world.restart();
    assert_eq!(standing(&world, "work"), ["a1", "b2"], "it has come back");
    // The same, if the process ends while it is in hand.
    world.pass(1_000);
    let a = world.open(1, "a");
    world.subscribe(a, 1, queue(), 10).unwrap();
    assert_eq!(world.bodies(), ["a1", "b2"]);
    let ids = ["a1", "b2"].map(|body| id_of(&world, body));
    assert_eq!(delete(&mut world, &ids), (0, 2), "both are in hand");
    world.restart();
    let a = world.open(1, "a");
    world.subscribe(a, 1, queue(), 10).unwrap();
    assert_eq!(world.bodies(), ["a1", "b2"]);
}

/// Who takes a message holds nobody up but those behind it: transactions wait for none of each other's.
#[test]
fn e36_transactions_that_want_each_others_lanes_end() {
    let mut world = World::with_work(like(Lanes::Key));
    world.open(1, "sender");
    for body in ["a1", "a2", "b1", "b2"] {
        world.send(ConnectionId(1), of(body)).unwrap();
    }
    let consumers = [11, 12].map(|number| {
        let c = world.open(number, &format!("c{number}"));
        world.subscribe(c, 1, queue(), 1).unwrap();
        c
    });
    let transaction = 1;
    let mut taken = Vec::new();
    for c in consumers {
        let got = world.delivered_to(c);
        let delivery = got[0].1;
        taken.push(got[0].0.clone());
        world
            .ask(c, |token| Command::Begin { transaction, token })
            .unwrap();
        let acked = world.ask(c, |token| Command::Ack {
            delivery,
            transaction: Some(transaction),
            token,
        });
        acked.unwrap();
        assert!(
            world.delivered_to(c).is_empty(),
            "the other's lane is not to be had"
        );
        // Nor for one who waits for it: that ends by its time.
        let got = world.ask(c, |token| Command::Get {
            subscription: 2,
            destination: queue(),
            selector: None,
            wait: Wait::For(1_000),
            ack: AckMode::Individual,
            token,
        });
        got.unwrap();
    }
    world.pass(999);
    let ended = |world: &World| {
        let told = world.told.iter();
        let ended =
            told.filter(|(_, event)| matches!(event, Event::NoMessage { in_use: true, .. }));
        ended.count()
    };
    assert_eq!(ended(&world), 0);
    world.pass(1);
    assert_eq!(ended(&world), 2);
    assert_eq!(taken, ["a1", "b1"]);
    for c in consumers {
        world
            .ask(c, |token| Command::Commit { transaction, token })
            .unwrap();
        assert_eq!(world.delivered_to(c).len(), 1);
    }
}

#[test]
fn b22_a_message_that_always_fails_keeps_nobody_busy() {
    let mut world = World::with_work(QueueAttributes {
        backout_limit: None,
        ..QueueAttributes::default()
    });
    let a = world.open(1, "a");
    world.subscribe(a, 1, queue(), 1).unwrap();
    world.send(a, work("bad")).unwrap();
    let mut times = 0;
    for _ in 0..600 {
        for (_, delivery, ..) in world.delivered() {
            world.nack(a, delivery).unwrap();
            times += 1;
        }
        world.pass(1_000);
    }
    assert!((10..20).contains(&times), "{times} times in ten minutes");
}

fn moving(name: &str, to: &str) -> QueueDefinition {
    QueueDefinition {
        name: name.to_owned(),
        attributes: QueueAttributes {
            backout_limit: Some(2),
            backout_queue: Some(to.to_owned()),
            ..QueueAttributes::default()
        },
        drain: false,
    }
}

fn described(queues: &[QueueDefinition]) -> Result<(), BusError> {
    let mut core = Core::new(Limits::default(), ClientTemplates::new(|_| false));
    let wanted = Wanted {
        queues,
        ..Wanted::default()
    };
    core.start(0, &wanted).map(drop)
}

#[test]
fn queues_that_move_to_each_other_in_a_circle_are_refused() {
    let mut by_age = moving("c", "~error");
    by_age.attributes.on_expiry = OnExpiry::Move("a".to_owned());
    let queues = [
        moving("z", "a"),
        moving("a", "b"),
        moving("b", "c"),
        by_age,
        moving("y", "plain"),
    ];
    let error = described(&queues).unwrap_err();
    let names = ["a", "b", "c"].map(str::to_owned).to_vec();
    assert_eq!(error, BusError::QueueCircle { queues: names });
    assert_eq!(error.name(), "INVALID");
    described(&[moving("a", "b"), moving("b", "c"), moving("z", "b")]).unwrap();
}

#[test]
fn what_is_said_of_a_queue_that_others_move_to_holds() {
    let queues = [moving("work", "aside"), moving("aside", "last")];
    let mut world = World::build(Limits::default(), &queues);
    let a = world.open(1, "a");
    world.subscribe(a, 1, queue(), 1).unwrap();
    world.send(a, work("bad")).unwrap();
    assert_eq!(fail(&mut world, a, "bad"), 2);
    assert_eq!(standing(&world, "aside"), ["bad"]);
    world.subscribe(a, 2, aside(), 1).unwrap();
    assert_eq!(fail(&mut world, a, "bad"), 2);
    assert_eq!(standing(&world, "last"), ["bad"]);
    // Nobody has said anything about this one.
    world
        .subscribe(a, 3, Destination::queue("last"), 1)
        .unwrap();
    assert_eq!(fail(&mut world, a, "bad"), 10);
    assert_eq!(standing(&world, "last"), ["bad"]);
}

/// The topic's message is one, but each subscriber has failed with its own.
#[test]
fn b29_a_message_that_fails_for_several_subscribers_stands_aside_for_each_of_them() {
    let mut world = World::new();
    let (a, b) = (world.open(1, "a"), world.open(2, "b"));
    world.subscribe_durable(a, "news", "n").unwrap();
    world.subscribe_durable(b, "news", "n").unwrap();
    let told = NewMessage {
        persistent: Some(true),
        ..news("x")
    };
    let id = world.send_id(b, told);
    for connection in [a, b] {
        let (_, delivery, ..) = world.delivered_to(connection)[0];
        let reject = |token| Command::Nack {
            delivery,
            reject: true,
            transaction: None,
            token,
        };
        world.ask(connection, reject).unwrap();
    }
    world.restart();
    let error_queue = world.core.directory.queue("~error").unwrap();
    let aside = world.core.queues[&error_queue].messages.values();
    let aside: Vec<_> = aside
        .map(|it| (it.message.id == id, it.message.original_destination()))
        .collect();
    let expected = [(true, "/queue/~sub.a.n"), (false, "/queue/~sub.b.n")];
    assert_eq!(aside, expected.map(|(same, from)| (same, Some(from))));
}
