//! Ending queues that others may still use.

use pillarbox_messages::Destination;

use super::{World, message, queue, work};
use crate::{
    BusError,
    core::Input,
    embedded::connection::{AckMode, Command, ConnectionId, Event, Wait},
};

fn destroy(world: &mut World, force: bool) -> Result<bool, BusError> {
    world.ask(ConnectionId(1), |token| Command::Destroy {
        queue: queue(),
        force,
        token,
    })
}

/// A queue of two messages, the first of them in the hands of a consumer.
fn in_hand() -> (World, ConnectionId) {
    let mut world = World::new();
    let sender = world.open(1, "sender");
    for body in ["1", "2"] {
        world.send(sender, work(body)).unwrap();
    }
    let c = world.open(11, "c");
    world.subscribe(c, 1, queue(), 1).unwrap();
    (world, c)
}

fn begin(world: &mut World, connection: ConnectionId) -> Option<u64> {
    let transaction = 7;
    world
        .ask(connection, |token| Command::Begin { transaction, token })
        .unwrap();
    Some(transaction)
}

fn commit(world: &mut World, connection: ConnectionId) -> Result<bool, BusError> {
    let transaction = 7;
    world.ask(connection, |token| Command::Commit { transaction, token })
}

fn is_there(world: &World) -> bool {
    world.core.directory.queue("work").is_some()
}

#[test]
fn e38_a_queue_that_is_in_use_goes_by_force_only() {
    let (mut world, c) = in_hand();
    let refused = |world: &mut World| {
        let error = destroy(world, false).unwrap_err();
        assert_eq!(error.name(), "QUEUE-NOT-EMPTY", "{error}");
        assert!(is_there(world));
    };
    refused(&mut world);
    for _ in 0..2 {
        let delivery = world.delivered()[0].1;
        world.ack(c, delivery).unwrap();
    }
    // Empty, but somebody takes from it.
    refused(&mut world);
    let subscription = 1;
    world
        .ask(c, |token| Command::Unsubscribe {
            subscription,
            token,
        })
        .unwrap();
    // Or has something to send there.
    let transaction = begin(&mut world, c);
    let staged = world.ask(c, |token| Command::Send {
        message: work("3"),
        transaction,
        token,
    });
    staged.unwrap();
    refused(&mut world);
    let transaction = 7;
    world
        .ask(c, |token| Command::Abort { transaction, token })
        .unwrap();
    destroy(&mut world, false).unwrap();
    assert!(!is_there(&world));
    assert_eq!(destroy(&mut world, true).unwrap_err().name(), "NO-QUEUE");
    let own = world.ask(c, |token| Command::Destroy {
        queue: Destination::queue("~error"),
        force: true,
        token,
    });
    assert_eq!(own.unwrap_err().name(), "INVALID", "the bus's own stays");
}

#[test]
fn e38_by_force_its_messages_go_and_what_was_in_hand_is_acknowledged_for_nothing() {
    let (mut world, c) = in_hand();
    let delivery = world.delivered()[0].1;
    destroy(&mut world, true).unwrap();
    assert!(!is_there(&world));
    assert_eq!((world.core.held_messages(), world.core.in_flight()), (0, 0));
    let closed = world.told.iter().any(|(to, event)| match event {
        Event::SubscriptionClosed { reason, .. } => *to == c && reason.name() == "NO-QUEUE",
        _ => false,
    });
    assert!(closed, "its consumer is told");
    world.ack(c, delivery).unwrap();
    assert_eq!(world.ack(c, delivery), Err(BusError::StaleAck), "once");
    world.restart();
    // The start makes it again, as it is to be there.
    assert!(is_there(&world));
    assert_eq!(world.core.held_messages(), 0, "nothing comes back");
}

#[test]
fn e38_what_is_in_hand_may_also_be_refused_or_its_consumer_go() {
    for end in 0..3 {
        let (mut world, c) = in_hand();
        let delivery = world.delivered()[0].1;
        destroy(&mut world, true).unwrap();
        match end {
            0 => {
                world.nack(c, delivery).unwrap();
            }
            1 => world.lose(c),
            _ => {
                world.ask(c, |token| Command::Disconnect { token }).unwrap();
            }
        }
        assert_eq!(world.core.held_messages(), 0);
        let sent = world.send(ConnectionId(1), work("3"));
        assert_eq!(sent, Ok(true), "it goes to the error queue");
    }
}

#[test]
fn e38_a_cumulative_acknowledgement_covers_what_was_in_hand_of_that_subscription() {
    let mut world = World::new();
    let sender = world.open(1, "sender");
    let c = world.open(11, "c");
    for (subscription, name) in [(1, "work"), (2, "~error")] {
        let subscribed = world.ask(c, |token| Command::Subscribe {
            options: crate::SubscribeOptions::default(),
            ack_timeout: None,
            selector: None,
            subscription,
            destination: Destination::queue(name),
            durable: None,
            ack: AckMode::Client,
            prefetch: 10,
            token,
        });
        subscribed.unwrap();
    }
    let lost = message(Destination::queue("nowhere"), "lost");
    world.send(sender, lost).unwrap();
    for body in ["1", "2", "3"] {
        world.send(sender, work(body)).unwrap();
    }
    let got = world.delivered();
    destroy(&mut world, true).unwrap();
    world.ack(c, got[2].1).unwrap();
    assert_eq!(world.ack(c, got[1].1), Err(BusError::StaleAck));
    world.ack(c, got[3].1).unwrap();
    assert_eq!(world.core.in_flight(), 1, "the other's is still in hand");
    world.ack(c, got[0].1).unwrap();
    assert_eq!(world.core.held_messages(), 0);
}

#[test]
fn e38_transactions_that_had_to_do_with_it_fail_as_a_whole() {
    // 0: acknowledged before, 1: acknowledged after, 2: sent before, 3: sent before, and it is there again.
    for case in 0..4 {
        let (mut world, c) = in_hand();
        let other = Destination::queue("other");
        let attributes = crate::QueueAttributes::default();
        world.queues.push(crate::QueueDefinition {
            name: "other".to_owned(),
            attributes,
            drain: false,
        });
        world.restart();
        let sender = world.open(1, "sender");
        world.open(11, "c");
        world.subscribe(c, 1, queue(), 1).unwrap();
        world.subscribe(c, 2, other.clone(), 1).unwrap();
        world.send(sender, message(other.clone(), "kept")).unwrap();
        let got = world.delivered();
        let transaction = begin(&mut world, c);
        let mut acks = vec![got[1].1];
        if case == 0 {
            acks.push(got[0].1);
        }
        let ack = |world: &mut World, delivery| {
            let acked = world.ask(c, |token| Command::Ack {
                delivery,
                transaction,
                token,
            });
            acked.unwrap();
        };
        for delivery in acks {
            ack(&mut world, delivery);
        }
        let mut sends = vec![message(other.clone(), "answer")];
        if case > 1 {
            sends.push(work("3"));
        }
        for message in sends {
            let staged = world.ask(c, |token| Command::Send {
                message,
                transaction,
                token,
            });
            staged.unwrap();
        }
        destroy(&mut world, true).unwrap();
        if case == 1 {
            ack(&mut world, got[0].1);
        }
        if case == 3 {
            let definition = crate::QueueDefinition {
                name: "work".to_owned(),
                attributes: crate::QueueAttributes::default(),
                drain: false,
            };
            world.core.define_queue(&definition).unwrap();
            world.pass(0);
        }
        assert_eq!(commit(&mut world, c).unwrap_err().name(), "NO-QUEUE");
        assert_eq!(world.core.held_messages(), 1, "{case}");
        // What else it had in hand comes again, without a count.
        world.pass(1_000);
        let again = world.delivered();
        assert_eq!((again[0].0.as_str(), again[0].3), ("kept", 0));
        assert_eq!(commit(&mut world, c), Err(BusError::TransactionUnknown));
    }
}

#[test]
fn e38_who_waits_for_a_message_of_it_is_told() {
    let mut world = World::new();
    let a = world.open(1, "a");
    world
        .ask(a, |token| Command::Get {
            subscription: 5,
            destination: queue(),
            selector: None,
            wait: Wait::Forever,
            ack: AckMode::Individual,
            token,
        })
        .unwrap();
    destroy(&mut world, true).unwrap();
    let told = world.told.iter().any(|(_, event)| {
        matches!(
            event,
            Event::SubscriptionClosed {
                subscription: 5,
                ..
            }
        )
    });
    assert!(told);
}

#[test]
fn e38_who_acknowledges_what_was_in_hand_waits_for_the_end_of_the_queue() {
    for refuse in [false, true] {
        let (mut world, a) = in_hand();
        let delivery = world.delivered()[0].1;
        destroy(&mut world, true).unwrap();
        let last = world.core.next_unit - 1;
        let command = if refuse {
            Command::Nack {
                delivery,
                reject: false,
                transaction: None,
                token: 999,
            }
        } else {
            Command::Ack {
                delivery,
                transaction: None,
                token: 999,
            }
        };
        let effects = world.core.step(
            world.now,
            Input::Command {
                connection: a,
                command,
            },
        );
        assert!(effects.unit.is_none());
        let after: Vec<u64> = effects.events.iter().map(|it| it.after).collect();
        assert_eq!(after, [last]);
    }
}
