//! The example that ordered delivery is explained with: six messages of two orders, each opened, executed and closed, by
//! three consumers, one consumer, and three consumers with message groups; and when to acknowledge.

use super::{World, queue, work};
use crate::{
    Lanes, QueueAttributes,
    core::message::NewMessage,
    embedded::connection::{AckMode, Command, ConnectionId, DeliveryId, SubscribeOptions},
};

/// Order, and what is to be done with it.
type Work = (char, &'static str);

const EVENTS: [Work; 6] = [
    ('A', "open"),
    ('A', "execute"),
    ('A', "close"),
    ('B', "open"),
    ('B', "execute"),
    ('B', "close"),
];

/// Every round takes so long.
const ROUND: i64 = 1_000;

/// Lets so many consumers work in rounds: in each round everybody takes one message, and whoever connected later is
/// quicker with it. Returns what was done in which round, in the order in which it was done.
fn rounds(lanes: Lanes, consumers: u64) -> Vec<Vec<Work>> {
    let mut world = World::with_work(QueueAttributes {
        lanes,
        ..QueueAttributes::default()
    });
    let sender = world.open(1, "sender");
    for (order, event) in EVENTS {
        let sent = NewMessage {
            group: Some(order.to_string()),
            ..work(&format!("{order} {event}"))
        };
        world.send(sender, sent).unwrap();
    }
    let consumers: Vec<_> = (0..consumers)
        .map(|number| {
            let consumer = world.open(10 + number, &format!("c{number}"));
            world.subscribe(consumer, 1, queue(), 1).unwrap();
            consumer
        })
        .collect();
    let mut rounds = Vec::new();
    while world.core.held_messages() > 0 {
        let mut taken: Vec<(ConnectionId, Work, DeliveryId)> = Vec::new();
        for consumer in &consumers {
            for (body, delivery, ..) in world.delivered_to(*consumer) {
                let found = EVENTS
                    .into_iter()
                    .find(|(order, event)| body == format!("{order} {event}"));
                taken.push((*consumer, found.unwrap(), delivery));
            }
        }
        taken.reverse();
        world.pass(ROUND);
        rounds.push(taken.iter().map(|(_, work, _)| *work).collect());
        for (consumer, _, delivery) in taken {
            world.ack(consumer, delivery).unwrap();
        }
    }
    assert_eq!(world.now, ROUND * i64::try_from(rounds.len()).unwrap());
    rounds
}

fn of_order(rounds: &[Vec<Work>], order: char) -> Vec<&'static str> {
    let all = rounds.iter().flatten().filter(|(of, _)| *of == order);
    all.map(|(_, event)| *event).collect()
}

#[test]
fn three_consumers_need_two_rounds_and_execute_an_order_that_is_not_open() {
    let rounds = rounds(Lanes::None, 3);
    assert_eq!(rounds.len(), 2);
    let first: Vec<_> = rounds[0]
        .iter()
        .map(|(order, event)| format!("{order} {event}"))
        .collect();
    assert_eq!(first, ["A close", "A execute", "A open"]);
    assert_ne!(of_order(&rounds, 'A'), ["open", "execute", "close"]);
}

#[test]
fn one_consumer_needs_six_rounds_in_the_right_order() {
    let rounds = rounds(Lanes::None, 1);
    assert_eq!(rounds.len(), 6);
    let all: Vec<Work> = rounds.into_iter().flatten().collect();
    assert_eq!(all, EVENTS);
}

#[test]
fn three_consumers_with_groups_need_three_rounds_in_the_right_order() {
    let rounds = rounds(Lanes::Key, 3);
    assert_eq!(rounds.len(), 3);
    for order in ['A', 'B'] {
        assert_eq!(of_order(&rounds, order), ["open", "execute", "close"]);
    }
    assert!(rounds.iter().all(|round| round.len() == 2), "side by side");
}

/// Takes the message, and fails in working on it; what comes of it.
fn fail_in_the_work(ack: AckMode, transacted: bool) -> Vec<String> {
    let mut world = World::new();
    let consumer = world.open(1, "c");
    let subscribed = world.ask(consumer, |token| Command::Subscribe {
        options: SubscribeOptions::default(),
        ack_timeout: None,
        selector: None,
        subscription: 1,
        destination: queue(),
        durable: None,
        ack,
        prefetch: 1,
        token,
    });
    subscribed.unwrap();
    world.send(consumer, work("pay")).unwrap();
    let delivery = world.delivered()[0].1;
    let transaction = 1;
    if transacted {
        world
            .ask(consumer, |token| Command::Begin { transaction, token })
            .unwrap();
    }
    world
        .ask(consumer, |token| Command::Ack {
            delivery,
            transaction: transacted.then_some(transaction),
            token,
        })
        .unwrap();
    // The work fails here: a transacted consumer aborts, another has nothing left to take back.
    if transacted {
        world
            .ask(consumer, |token| Command::Abort { transaction, token })
            .unwrap();
    } else {
        world.lose(consumer);
    }
    let next = world.open(2, "d");
    world.subscribe(next, 1, queue(), 10).unwrap();
    world.lose(consumer);
    world.bodies()
}

#[test]
fn acknowledging_before_the_work_loses_the_message_when_the_work_fails() {
    assert_eq!(fail_in_the_work(AckMode::Individual, false), [""; 0]);
}

#[test]
fn a_transacted_consumer_loses_nothing_when_the_work_fails() {
    // It comes again to the one that failed, and when that is gone, to the next.
    assert_eq!(fail_in_the_work(AckMode::Individual, true), ["pay", "pay"]);
}
