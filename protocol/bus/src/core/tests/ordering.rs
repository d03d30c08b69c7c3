//! Which message is first: the queue's order, sending out of order, times to deliver from and to expire.

use super::{World, message, queue, work};
use crate::{
    BusError, Criterion, OnExpiry, Order, OutOfOrder, QueueAttributes, RetryDelay,
    core::{Limits, message::NewMessage},
    embedded::connection::{Command, ConnectionId},
};
use pillarbox_messages::Destination;

fn ordered(criteria: &[Criterion], latest_first: bool) -> QueueAttributes {
    QueueAttributes {
        order: Order {
            criteria: criteria.to_vec(),
            latest_first,
        },
        out_of_order: OutOfOrder {
            top: true,
            before: true,
        },
        ..QueueAttributes::default()
    }
}

/// First in, first out; out of order is allowed.
fn fifo() -> World {
    World::with_work(ordered(&[], false))
}

fn top(body: &str) -> NewMessage {
    NewMessage {
        top: true,
        ..work(body)
    }
}

fn taken(world: &mut World) -> Vec<String> {
    let taker = world.open(99, "taker");
    world.subscribe(taker, 1, queue(), 1000).unwrap();
    let bodies = world.bodies();
    world
        .ask(taker, |token| Command::Disconnect { token })
        .unwrap();
    bodies
}

/// The four messages, in the order that a queue with these attributes gives them.
fn order_of(attributes: QueueAttributes) -> Vec<String> {
    let mut world = World::with_work(attributes);
    let a = world.open(1, "a");
    for (body, priority, not_before, expires_at) in [
        ("1", 4, Some(30), None),
        ("2", 9, Some(20), Some(2_000)),
        ("3", 4, Some(10), Some(1_000)),
        ("4", 9, Some(10), Some(1_000)),
    ] {
        let sent = NewMessage {
            priority,
            not_before,
            expires_at,
            ..work(body)
        };
        world.send(a, sent).unwrap();
    }
    world.pass(50);
    let before = taken(&mut world);
    world.restart();
    assert_eq!(taken(&mut world), before, "also after a restart");
    before
}

#[test]
fn queues_are_ordered_by_any_combination_of_criteria() {
    use Criterion::{Expiration, Priority, Time};
    for (criteria, latest_first, expected) in [
        (&[][..], false, "1234"),
        (&[], true, "4321"),
        (&[Priority], false, "2413"),
        (&[Priority], true, "4231"),
        (&[Time], false, "3421"),
        (&[Time], true, "4321"),
        (&[Expiration], false, "3421"),
        (&[Time, Priority], false, "4321"),
        (&[Priority, Time], false, "4231"),
        (&[Expiration, Priority], false, "4321"),
        (&[Priority, Expiration], true, "4231"),
        (&[Expiration, Time, Priority], false, "4321"),
    ] {
        let order = order_of(ordered(criteria, latest_first)).concat();
        assert_eq!(order, expected, "{criteria:?} {latest_first}");
    }
}

#[test]
fn the_order_is_kept_when_messages_come_back() {
    let mut world = World::with_work(ordered(&[Criterion::Priority], true));
    let a = world.open(1, "a");
    for (body, priority) in [("1", 4), ("2", 9), ("3", 4)] {
        let sent = NewMessage {
            priority,
            ..work(body)
        };
        world.send(a, sent).unwrap();
    }
    for _ in 0..3 {
        assert_eq!(taken(&mut world), ["2", "3", "1"]);
    }
}

#[test]
fn the_order_can_change_only_while_the_queue_is_empty() {
    let mut world = fifo();
    let a = world.open(1, "a");
    world.send(a, work("1")).unwrap();
    world.queues[0].attributes = ordered(&[], true);
    let refused = world.start().unwrap_err();
    assert_eq!(refused.name(), "QUEUE-NOT-EMPTY");
    assert!(refused.to_string().contains("'work'"), "{refused}");
    world.queues[0].attributes = QueueAttributes {
        retry_delay: RetryDelay {
            initial_ms: 5,
            max_ms: 5,
        },
        ..ordered(&[], false)
    };
    world.restart();
    let a = world.open(1, "a");
    world.subscribe(a, 1, queue(), 1).unwrap();
    let delivery = world.delivered()[0].1;
    world.nack(a, delivery).unwrap();
    world.pass(5);
    let delivery = world.delivered()[0].1;
    world.ack(a, delivery).unwrap();
    world.queues[0].attributes = ordered(&[], true);
    world.restart();
    let a = world.open(1, "a");
    for body in ["1", "2"] {
        world.send(a, work(body)).unwrap();
    }
    world.restart();
    assert_eq!(taken(&mut world), ["2", "1"]);
}

fn before(world: &mut World, body: &str, anchor: &str) -> Result<bool, BusError> {
    let queues = world.core.queues.values();
    let held: Vec<_> = queues.flat_map(|it| it.messages.values()).collect();
    let anchor = held
        .iter()
        .find(|it| it.message.body() == anchor.as_bytes());
    let anchor = anchor.map(|it| it.message.id);
    assert!(anchor.is_some(), "no such message");
    let sent = NewMessage {
        before: anchor,
        ..work(body)
    };
    world.send(ConnectionId(1), sent)
}

#[test]
fn a_message_goes_before_another_and_stays_there() {
    let mut world = fifo();
    let a = world.open(1, "a");
    for body in ["1", "2", "3"] {
        world.send(a, work(body)).unwrap();
    }
    before(&mut world, "1.5", "2").unwrap();
    before(&mut world, "1.8", "2").unwrap();
    before(&mut world, "1.4", "1.5").unwrap();
    before(&mut world, "0", "1").unwrap();
    world.send(a, top("first")).unwrap();
    before(&mut world, "very first", "first").unwrap();
    let expected = [
        "very first",
        "first",
        "0",
        "1",
        "1.4",
        "1.5",
        "1.8",
        "2",
        "3",
    ];
    assert_eq!(taken(&mut world), expected);
    world.restart();
    assert_eq!(taken(&mut world), expected);
}

#[test]
fn only_queues_that_allow_it_take_messages_out_of_order() {
    let mut world = World::new();
    let a = world.open(1, "a");
    let id = world.send_id(a, work("1"));
    let late = NewMessage {
        before: Some(id),
        ..work("0")
    };
    for refused in [
        top("0"),
        late.clone(),
        NewMessage {
            top: true,
            ..message(Destination::topic("news"), "n")
        },
    ] {
        assert_eq!(world.send(a, refused).unwrap_err().name(), "INVALID");
    }
    let mut world = fifo();
    let a = world.open(1, "a");
    world.send(a, work("1")).unwrap();
    let both = NewMessage { top: true, ..late };
    assert_eq!(world.send(a, both).unwrap_err().name(), "INVALID");
    assert_eq!(world.core.held_messages(), 1);
    let nowhere = NewMessage {
        top: true,
        ..message(Destination::queue("nowhere"), "lost")
    };
    assert_eq!(world.send(a, nowhere), Ok(true), "the sender is honest");
}

#[test]
fn e23_an_anchor_that_is_gone_or_in_flight_is_refused() {
    let mut world = fifo();
    let a = world.open(1, "a");
    let id = world.send_id(a, work("1"));
    world.subscribe(a, 1, queue(), 1).unwrap();
    let sent = NewMessage {
        before: Some(id),
        ..work("0")
    };
    assert_eq!(world.send(a, sent.clone()).unwrap_err().name(), "BAD-ID");
    let delivery = world.delivered()[0].1;
    world.ack(a, delivery).unwrap();
    assert_eq!(world.send(a, sent.clone()).unwrap_err().name(), "BAD-ID");
    // A transaction in which it goes meanwhile fails as a whole.
    let id = world.send_id(a, work("2"));
    let delivery = world.delivered()[0].1;
    world.nack(a, delivery).unwrap();
    world
        .ask(a, |token| Command::Begin {
            transaction: 1,
            token,
        })
        .unwrap();
    for message in [
        work("3"),
        NewMessage {
            before: Some(id),
            ..sent
        },
    ] {
        let transaction = Some(1);
        let staged = world.ask(a, |token| Command::Send {
            message,
            transaction,
            token,
        });
        staged.unwrap();
    }
    world.pass(1_000);
    assert_eq!(world.bodies(), ["2"]);
    let commit = |token| Command::Commit {
        transaction: 1,
        token,
    };
    assert_eq!(world.ask(a, commit).unwrap_err().name(), "BAD-ID");
    assert_eq!(world.core.held_messages(), 1);
}

#[test]
fn e24_many_messages_before_one_find_room_and_keep_their_order() {
    let mut world = fifo();
    let a = world.open(1, "a");
    for body in ["first", "anchor", "last"] {
        world.send(a, work(body)).unwrap();
    }
    let mut expected = vec!["first".to_owned()];
    for number in 0..200 {
        before(&mut world, &number.to_string(), "anchor").unwrap();
        expected.push(number.to_string());
    }
    for number in 200..400 {
        // Each before the one before.
        let anchor = expected[1].clone();
        before(&mut world, &number.to_string(), &anchor).unwrap();
        expected.insert(1, number.to_string());
    }
    expected.extend(["anchor".to_owned(), "last".to_owned()]);
    assert_eq!(taken(&mut world), expected);
    world.restart();
    assert_eq!(taken(&mut world), expected);
}

#[test]
fn e25_of_two_at_the_top_the_later_is_in_front() {
    let mut world = fifo();
    let a = world.open(1, "a");
    world.send(a, work("1")).unwrap();
    world
        .ask(a, |token| Command::Begin {
            transaction: 1,
            token,
        })
        .unwrap();
    for body in ["2", "3"] {
        let message = top(body);
        let transaction = Some(1);
        let staged = world.ask(a, |token| Command::Send {
            message,
            transaction,
            token,
        });
        staged.unwrap();
    }
    world
        .ask(a, |token| Command::Commit {
            transaction: 1,
            token,
        })
        .unwrap();
    assert_eq!(taken(&mut world), ["3", "2", "1"]);
    world.restart();
    let a = world.open(1, "a");
    world.send(a, top("4")).unwrap();
    assert_eq!(taken(&mut world), ["4", "3", "2", "1"]);
}

#[test]
fn e26_an_absolute_time_stays_whatever_the_clock_does() {
    let mut world = World::new();
    let a = world.open(1, "a");
    world.subscribe(a, 1, queue(), 10).unwrap();
    let ten_years = 10 * 366 * 86_400_000_i64;
    for not_before in [ten_years, i64::MAX] {
        let sent = NewMessage {
            not_before: Some(not_before),
            ..work(&not_before.to_string())
        };
        world.send(a, sent).unwrap();
    }
    assert_eq!(world.core.next_deadline(), Some(ten_years));
    // Set back for a start, and forward again.
    world.now = -86_400_000;
    world.restart();
    let a = world.open(1, "a");
    world.subscribe(a, 1, queue(), 10).unwrap();
    assert_eq!(world.core.next_deadline(), Some(ten_years));
    world.now = ten_years - 1;
    world.pass(0);
    assert_eq!(world.bodies(), [""; 0]);
    world.pass(1);
    assert_eq!(world.bodies(), [ten_years.to_string()]);
}

#[test]
fn e27_messages_overdue_at_a_restart_come_in_their_order_at_once() {
    let mut world = World::new();
    let a = world.open(1, "a");
    for (body, not_before) in [("1", 300), ("2", 100), ("3", 200), ("4", 90_000)] {
        let sent = NewMessage {
            not_before: Some(not_before),
            ..work(body)
        };
        world.send(a, sent).unwrap();
    }
    world.now = 1_000;
    world.restart();
    assert_eq!(taken(&mut world), ["1", "2", "3"]);
    assert_eq!(world.core.next_deadline(), Some(90_000), "no timer is lost");
}

#[test]
fn b55_a_delay_counts_from_the_commit_and_may_be_ten_years() {
    let mut world = World::new();
    let a = world.open(1, "a");
    let delayed = |delay| NewMessage {
        delay: Some(delay),
        ..work("later")
    };
    let begin = |token| Command::Begin {
        transaction: 1,
        token,
    };
    world.ask(a, begin).unwrap();
    let message = delayed(1_000);
    let staged = world.ask(a, |token| Command::Send {
        message,
        transaction: Some(1),
        token,
    });
    staged.unwrap();
    world.pass(10_000);
    let commit = |token| Command::Commit {
        transaction: 1,
        token,
    };
    world.ask(a, commit).unwrap();
    assert_eq!(world.core.next_deadline(), Some(11_000));
    world.subscribe(a, 1, queue(), 10).unwrap();
    world.pass(999);
    assert!(world.delivered().is_empty());
    world.pass(1);
    assert_eq!(world.bodies(), ["later"]);
    let ten_years = 10 * 366 * 86_400_000_i64;
    world.send(a, delayed(ten_years)).unwrap();
    assert_eq!(world.core.next_deadline(), Some(11_000 + ten_years));
    world.send(a, delayed(i64::MAX)).unwrap();
    assert!(world.send(a, delayed(-1)).is_err());
    let senseless = NewMessage {
        expires_at: Some(world.now + 5),
        ..delayed(5)
    };
    assert!(world.send(a, senseless).is_err());
}

/// What expires in these queues goes to the queue `old`.
fn keeping() -> World {
    World::with_work(QueueAttributes {
        on_expiry: OnExpiry::Move("old".to_owned()),
        ..QueueAttributes::default()
    })
}

fn mortal(body: &str, expires_at: i64) -> NewMessage {
    NewMessage {
        expires_at: Some(expires_at),
        ..work(body)
    }
}

#[test]
fn what_is_too_old_goes_where_its_queue_wants_it() {
    let mut world = keeping();
    let a = world.open(1, "a");
    world.send(a, mortal("1", 100)).unwrap();
    world.pass(100);
    world.restart();
    assert_eq!(taken(&mut world), [""; 0]);
    let a = world.open(1, "a");
    world.subscribe(a, 1, Destination::queue("old"), 1).unwrap();
    let moved = world.delivered_messages();
    assert_eq!(moved.len(), 1);
    assert_eq!(moved[0].reason().map(|it| it.as_str()), Some("expired"));
    assert_eq!(moved[0].original_destination(), Some("/queue/work"));
    assert_eq!(moved[0].expires_at(), None, "and stays there");
}

#[test]
fn e08_a_message_that_expires_in_flight_is_not_disturbed() {
    let mut world = keeping();
    let a = world.open(1, "a");
    world.subscribe(a, 1, queue(), 10).unwrap();
    world.send(a, mortal("acknowledged", 100)).unwrap();
    world.send(a, mortal("returned", 100)).unwrap();
    let delivered = world.delivered();
    world.pass(200);
    assert_eq!(world.core.in_flight(), 2);
    world.ack(a, delivered[0].1).unwrap();
    assert_eq!(world.core.counters().expired, 0);
    world.nack(a, delivered[1].1).unwrap();
    assert_eq!(world.core.counters().expired, 1);
    world.pass(100_000);
    assert!(world.delivered().is_empty());
    world
        .subscribe(a, 2, Destination::queue("old"), 10)
        .unwrap();
    assert_eq!(world.bodies(), ["returned"]);
}

#[test]
fn e09_a_message_that_expires_while_it_waits_for_its_retry_has_expired() {
    let mut world = keeping();
    let a = world.open(1, "a");
    world.subscribe(a, 1, queue(), 10).unwrap();
    world.send(a, mortal("1", 500)).unwrap();
    let delivery = world.delivered()[0].1;
    world.nack(a, delivery).unwrap();
    world.pass(500);
    assert_eq!(world.core.counters().expired, 1);
    world.pass(500);
    assert!(world.delivered().is_empty());
    world
        .subscribe(a, 2, Destination::queue("old"), 10)
        .unwrap();
    let moved = world.delivered_messages();
    assert_eq!(moved[0].reason().map(|it| it.as_str()), Some("expired"));
}

/// Whether what is too old in the queue `old`, where `work` moves what is too old, comes to `older`.
fn moves_on(says: &[&str]) -> bool {
    let definition = |name: &str| crate::QueueDefinition {
        name: name.to_owned(),
        attributes: QueueAttributes {
            on_expiry: OnExpiry::Move(if name == "old" { "older" } else { "old" }.to_owned()),
            ..QueueAttributes::default()
        },
        drain: false,
    };
    let queues: Vec<_> = says.iter().map(|name| definition(name)).collect();
    let mut world = World::build(Limits::default(), &queues);
    let a = world.open(1, "a");
    let to_old = NewMessage {
        expires_at: Some(100),
        ..message(Destination::queue("old"), "sent there")
    };
    world.send(a, to_old).unwrap();
    world.pass(100);
    assert_eq!(world.core.counters().expired, 1);
    let older = world.core.directory.queue("older");
    older.is_some_and(|id| world.core.queues[&id].messages.keys().count() == 1)
}

#[test]
fn e39_error_queues_never_move_anything_on() {
    assert!(!moves_on(&["work"]));
    assert!(moves_on(&["old", "work"]), "it was said of this one");
}
