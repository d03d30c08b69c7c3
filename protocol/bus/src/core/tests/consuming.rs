//! Order, credit, acknowledgement, and how messages come back.

use pillarbox_messages::Destination;

use super::{World, news, queue, work};
use crate::{
    BusError,
    core::{Input, Wanted, message::NewMessage},
    embedded::connection::{AckMode, Command, Event, SubscribeOptions},
};

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
            options: SubscribeOptions::default(),
            ack_timeout: None,
            selector: None,
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

/// Also what nobody had asked a receipt for.
#[test]
fn a_disconnect_is_confirmed_after_everything_sent_before_it_is_written() {
    let mut world = World::new();
    let a = world.open(1, "a");
    let mut step = |command| {
        let connection = a;
        let input = Input::Command {
            connection,
            command,
        };
        world.core.step(0, input)
    };
    let sent = step(Command::Send {
        message: work("1"),
        transaction: None,
        token: 0,
    });
    let unit = sent.unit.expect("a persistent message is written");
    let ended = step(Command::Disconnect { token: 1 });
    assert!(ended.unit.is_none(), "one sync is enough");
    assert_eq!(ended.events.len(), 2);
    for posted in ended.events {
        assert_eq!(posted.after, unit.number, "{:?}", posted.event);
    }
}

#[test]
fn an_automatic_delivery_holds_its_credit_until_it_is_handed_over() {
    let mut world = World::new();
    let a = world.open(1, "a");
    world
        .ask(a, |token| Command::Subscribe {
            options: SubscribeOptions::default(),
            ack_timeout: None,
            selector: None,
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
fn a_subscription_is_confirmed_before_its_first_message_and_ends_after_its_last() {
    let mut world = World::new();
    let a = world.open(1, "a");
    world.send(a, work("1")).unwrap();
    world.told.clear();
    world.subscribe(a, 1, queue(), 1).unwrap();
    world
        .ask(a, |token| Command::Unsubscribe {
            subscription: 1,
            token,
        })
        .unwrap();
    world.send(a, work("2")).unwrap();
    let told: Vec<_> = world.told.iter().map(|(_, event)| event).collect();
    let expected = matches!(
        told[..],
        [
            Event::Done { .. },
            Event::Deliver { .. },
            Event::Done { .. },
            Event::Done { .. }
        ]
    );
    assert!(expected, "{told:?}");
}

#[test]
fn no_acknowledgement_of_an_earlier_life_fits_a_delivery_of_this_one() {
    let mut named = Vec::new();
    for again in 0..2 {
        let mut world = World::new();
        for _ in 0..again {
            world.core.start(0, &Wanted::default()).unwrap();
        }
        let a = world.open(1, "a");
        world.subscribe(a, 1, queue(), 10).unwrap();
        world.send(a, work("1")).unwrap();
        named.push(world.delivered()[0].1);
    }
    assert_ne!(named[0], named[1]);
}
