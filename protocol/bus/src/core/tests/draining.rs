//! Changing a queue's lanes: at once while nothing is in it, else when what was in it is gone.

use pillarbox_messages::Destination;

use super::{World, message, queue, work};
use crate::{
    BusError, LaneHash, Lanes, OnLanePoison, QueueAttributes, QueueDefinition,
    core::{Input, message::NewMessage, queue::State},
    embedded::connection::{
        AckMode, Command, ConnectionId, DeliveryId, Event, MessageId, SubscribeOptions, Wait,
    },
};

const fn hashed(count: u32) -> Lanes {
    let hash = LaneHash::JavaString;
    Lanes::Hashed { count, hash }
}

fn like(lanes: Lanes) -> QueueAttributes {
    QueueAttributes {
        lanes,
        ..QueueAttributes::default()
    }
}

/// A queue of four lanes, with the connection of a sender.
fn four() -> (World, ConnectionId) {
    let mut world = World::with_work(like(hashed(4)));
    let sender = world.open(1, "sender");
    (world, sender)
}

/// Changes the lanes, and what the next start wants them to be.
fn alter(world: &mut World, lanes: Lanes, drain: bool) -> Result<bool, BusError> {
    let done = world.ask(ConnectionId(1), |token| Command::Alter {
        queue: queue(),
        lanes,
        drain,
        token,
    });
    if done.is_ok() {
        world.queues = vec![QueueDefinition {
            name: "work".to_owned(),
            attributes: like(lanes),
            drain,
        }];
    }
    done
}

/// A message of the group that its first letter names. In four lanes, a to d are in 1, 2, 3 and 0; in three, in 1, 2, 0
/// and 1.
fn of(body: &str) -> NewMessage {
    NewMessage {
        group: Some(body.split_at(1).0.to_owned()),
        ..work(body)
    }
}

fn send(world: &mut World, bodies: &[&str]) {
    for body in bodies {
        world.send(ConnectionId(1), of(body)).unwrap();
    }
}

fn consumer(world: &mut World, number: u64, to: &str) -> ConnectionId {
    let consumer = world.open(number, &format!("c{number}"));
    world
        .subscribe(consumer, 1, Destination::queue(to), 10)
        .unwrap();
    consumer
}

fn texts(got: &[(String, DeliveryId, u32, u32)]) -> Vec<&str> {
    got.iter().map(|(body, ..)| body.as_str()).collect()
}

fn begin(world: &mut World, connection: ConnectionId) -> u64 {
    let transaction = 7;
    world
        .ask(connection, |token| Command::Begin { transaction, token })
        .unwrap();
    transaction
}

fn commit(world: &mut World, connection: ConnectionId) -> Result<bool, BusError> {
    let transaction = 7;
    world.ask(connection, |token| Command::Commit { transaction, token })
}

fn is_draining(world: &World) -> bool {
    !world.core.draining.is_empty()
}

/// How the subscription of this connection was ended.
fn closed(world: &World, connection: ConnectionId) -> Option<String> {
    world.told.iter().find_map(|(to, event)| match event {
        Event::SubscriptionClosed { reason, .. } if *to == connection => Some(reason.to_string()),
        _ => None,
    })
}

#[test]
fn an_empty_queue_gets_other_lanes_at_once() {
    let (mut world, sender) = four();
    let c = consumer(&mut world, 11, "work");
    let d = consumer(&mut world, 12, "work.3");
    alter(&mut world, hashed(3), false).unwrap();
    assert!(
        closed(&world, d).unwrap().contains("no lane 3"),
        "it has gone"
    );
    let to = message(Destination::queue("work.2"), "pinned");
    world.send(sender, to).unwrap();
    send(&mut world, &["b1", "d1"]);
    assert_eq!(texts(&world.delivered_to(c)), ["pinned", "d1"]);
    world.restart();
    assert!(!is_draining(&world));
    assert_eq!(standing(&world), ["pinned", "b1", "d1"]);
    let sent = message(Destination::queue("work.3"), "x");
    world.open(1, "sender");
    assert_eq!(world.send(ConnectionId(1), sent), Ok(true), "no such lane");
}

/// The bodies in the queue, in the order in which they came.
fn standing(world: &World) -> Vec<String> {
    let id = world.core.directory.queue("work").unwrap();
    let held = world.core.queues[&id].messages.values();
    let bodies = held.map(|it| String::from_utf8(it.message.body().to_vec()).unwrap());
    bodies.collect()
}

#[test]
fn a_message_anything_in_hand_or_a_transaction_is_in_the_way() {
    let (mut world, sender) = four();
    let refused = |world: &mut World| {
        let error = alter(world, hashed(5), false).unwrap_err();
        assert_eq!(error.name(), "QUEUE-NOT-EMPTY");
        assert!(error.to_string().contains("drain = true"), "{error}");
    };
    send(&mut world, &["a1"]);
    refused(&mut world);
    let c = consumer(&mut world, 11, "work");
    let got = world.delivered();
    refused(&mut world);
    // Its acknowledgement waits for a commit.
    let transaction = Some(begin(&mut world, c));
    let delivery = got[0].1;
    let acked = world.ask(c, |token| Command::Ack {
        delivery,
        transaction,
        token,
    });
    acked.unwrap();
    refused(&mut world);
    commit(&mut world, c).unwrap();
    alter(&mut world, hashed(5), false).unwrap();
    // A message waits for a commit, and nothing else is there.
    let (mut world, sender) = (four().0, sender);
    let transaction = Some(begin(&mut world, sender));
    for message in [of("a1"), message(Destination::queue("work.3"), "pinned")] {
        let staged = world.ask(sender, |token| Command::Send {
            message,
            transaction,
            token,
        });
        staged.unwrap();
    }
    assert_eq!(world.core.held_messages(), 0);
    refused(&mut world);
    world
        .ask(sender, |token| Command::Abort {
            transaction: 7,
            token,
        })
        .unwrap();
    alter(&mut world, hashed(5), false).unwrap();
}

#[test]
fn what_comes_later_waits_until_what_was_there_is_gone() {
    let (mut world, _) = four();
    let c = consumer(&mut world, 11, "work");
    send(&mut world, &["a1", "d1", "a2"]);
    alter(&mut world, hashed(3), true).unwrap();
    // In three lanes a and d are in the same one, in four they are not.
    send(&mut world, &["d2", "a3", "b1"]);
    let got = world.delivered();
    assert_eq!(texts(&got), ["a1", "d1"]);
    let again = alter(&mut world, hashed(4), true).unwrap_err();
    assert_eq!(again.name(), "DRAINING");
    assert!(again.to_string().contains("3 messages to go"), "{again}");
    world.ack(c, got[1].1).unwrap();
    assert!(world.bodies().is_empty());
    world.nack(c, got[0].1).unwrap();
    world.pass(1_000);
    let got = world.delivered();
    assert_eq!(texts(&got), ["a1"], "what comes back is still before");
    world.restart();
    assert!(is_draining(&world));
    let d = consumer(&mut world, 12, "work");
    for body in ["a1", "a2"] {
        let got = world.delivered();
        assert_eq!(texts(&got), [body]);
        assert!(is_draining(&world));
        world.ack(d, got[0].1).unwrap();
    }
    assert!(!is_draining(&world));
    let got = world.delivered();
    assert_eq!(texts(&got), ["d2", "b1"], "a and d share a lane");
    world.ack(d, got[0].1).unwrap();
    assert_eq!(world.bodies(), ["a3"]);
    world.restart();
    assert!(!is_draining(&world));
    assert_eq!(standing(&world), ["a3", "b1"]);
}

#[test]
fn what_its_sender_wants_later_and_what_is_volatile_is_waited_for() {
    let (mut world, sender) = four();
    let later = NewMessage {
        not_before: Some(5_000),
        ..of("a1")
    };
    let volatile = NewMessage {
        persistent: Some(false),
        ..of("b1")
    };
    world.send(sender, later).unwrap();
    world.send(sender, volatile).unwrap();
    alter(&mut world, hashed(3), true).unwrap();
    send(&mut world, &["c1"]);
    world.restart();
    assert_eq!(standing(&world), ["a1", "c1"]);
    assert!(is_draining(&world));
    let c = consumer(&mut world, 11, "work");
    assert!(world.delivered().is_empty());
    world.pass(5_000);
    let got = world.delivered();
    assert_eq!(texts(&got), ["a1"]);
    world.ack(c, got[0].1).unwrap();
    assert_eq!(world.bodies(), ["c1"]);
    // A volatile one ends with the process, and there is nothing to wait for any more.
    let (mut world, sender) = four();
    let volatile = NewMessage {
        persistent: Some(false),
        ..of("b1")
    };
    world.send(sender, volatile).unwrap();
    alter(&mut world, hashed(3), true).unwrap();
    world.restart();
    assert!(!is_draining(&world));
}

#[test]
fn expiry_deletion_and_backout_end_a_drain() {
    for end in 0..3 {
        let (mut world, sender) = four();
        let mortal = NewMessage {
            expires_at: (end == 0).then_some(500),
            ..of("a1")
        };
        let id = world.send_id(sender, mortal);
        alter(&mut world, hashed(3), true).unwrap();
        send(&mut world, &["a2"]);
        let c = consumer(&mut world, 11, "work");
        let got = world.delivered();
        assert_eq!(texts(&got), ["a1"]);
        match end {
            0 => {
                world.pass(600);
                assert!(is_draining(&world), "it is in hand");
                world.nack(c, got[0].1).unwrap();
            }
            1 => {
                world.nack(c, got[0].1).unwrap();
                delete(&mut world, &[id]);
            }
            _ => {
                let (delivery, token) = (got[0].1, 0);
                let command = Command::Nack {
                    delivery,
                    reject: true,
                    transaction: None,
                    token,
                };
                world.step(Input::Command {
                    connection: c,
                    command,
                });
            }
        }
        assert!(!is_draining(&world), "{end}");
        let got = world.delivered();
        assert_eq!(texts(&got), ["a2"]);
        world.restart();
        assert!(!is_draining(&world));
    }
}

fn delete(world: &mut World, ids: &[MessageId]) {
    let command = Command::Delete {
        queue: queue(),
        messages: ids.to_vec(),
        token: 99,
    };
    world.step(Input::Command {
        connection: ConnectionId(1),
        command,
    });
}

#[test]
fn what_waits_can_be_looked_at_deleted_and_can_expire_and_nobody_gets_it() {
    let (mut world, sender) = four();
    send(&mut world, &["a1"]);
    alter(&mut world, hashed(3), true).unwrap();
    let mortal = NewMessage {
        expires_at: Some(500),
        priority: 9,
        ..of("a2")
    };
    world.send(sender, mortal).unwrap();
    let b1 = world.send_id(sender, of("b1"));
    send(&mut world, &["b2"]);
    let browsed = |world: &mut World| -> Vec<String> {
        world.told.clear();
        world
            .ask(sender, |token| Command::Browse {
                subscription: 5,
                destination: queue(),
                selector: None,
                limit: 10,
                all: false,
                token,
            })
            .unwrap();
        let seen = world.told.iter().find_map(|(_, event)| match event {
            Event::Browsed { messages, .. } => Some(messages.clone()),
            _ => None,
        });
        let seen = seen.unwrap().into_iter();
        seen.map(|it| String::from_utf8(it.message.body().to_vec()).unwrap())
            .collect()
    };
    assert_eq!(browsed(&mut world), ["a1", "a2", "b1", "b2"]);
    // By its id, either.
    let selector = format!("JMSMessageID = '{b1}'").parse().ok();
    world
        .ask(sender, |token| Command::Get {
            subscription: 6,
            destination: queue(),
            selector,
            wait: Wait::No,
            ack: AckMode::Individual,
            token,
        })
        .unwrap();
    assert!(world.delivered().is_empty());
    delete(&mut world, &[b1]);
    world.pass(500);
    assert_eq!(browsed(&mut world), ["a1", "b2"]);
    assert_eq!(world.core.held_messages(), 2);
    world.restart();
    world.open(1, "sender");
    assert_eq!(browsed(&mut world), ["a1", "b2"]);
}

#[test]
fn lanes_are_addressed_by_their_numbers_before_and_after() {
    // From four lanes to two: what stands in lane 3 is drained by whoever wants lane 3, and nothing more comes there.
    let (mut world, sender) = four();
    let to = |part: u32, body: &str| message(Destination::queue(&format!("work.{part}")), body);
    world.send(sender, to(3, "3-1")).unwrap();
    world.send(sender, to(1, "1-1")).unwrap();
    alter(&mut world, hashed(2), true).unwrap();
    world.send(sender, to(1, "1-2")).unwrap();
    let refused = world.send(sender, to(3, "3-2")).unwrap_err();
    assert_eq!(refused.name(), "INVALID");
    assert!(
        refused
            .to_string()
            .contains("has no lane 3 any more; address 0 to 1"),
        "{refused}"
    );
    world.restart();
    let (one, three) = (
        consumer(&mut world, 11, "work.1"),
        consumer(&mut world, 13, "work.3"),
    );
    let first = world.delivered_to(one);
    assert_eq!(texts(&first), ["1-1"]);
    world.ack(one, first[0].1).unwrap();
    assert!(world.delivered_to(one).is_empty(), "1-2 waits for 3-1");
    let first = world.delivered_to(three);
    assert_eq!(texts(&first), ["3-1"]);
    world.ack(three, first[0].1).unwrap();
    assert!(closed(&world, three).unwrap().contains("no lane 3"));
    assert_eq!(texts(&world.delivered_to(one)), ["1-2"]);
    let late = world.open(14, "late");
    let name = Destination::queue("work.3");
    assert!(world.subscribe(late, 1, name, 1).is_err());
    // From two lanes to four: who wants lane 3 comes into its own when the two are empty.
    let mut world = World::with_work(like(hashed(2)));
    let sender = world.open(1, "sender");
    world.send(sender, to(1, "1-1")).unwrap();
    alter(&mut world, hashed(4), true).unwrap();
    let three = consumer(&mut world, 13, "work.3");
    world.send(sender, to(3, "3-1")).unwrap();
    world.send(sender, work("anybody's")).unwrap();
    assert!(world.delivered().is_empty());
    let one = consumer(&mut world, 11, "work");
    let got = world.delivered();
    assert_eq!(texts(&got), ["1-1"]);
    world.ack(one, got[0].1).unwrap();
    assert_eq!(texts(&world.delivered_to(three)), ["3-1"]);
    assert_eq!(texts(&world.delivered_to(one)), ["anybody's"]);
}

#[test]
fn a_transaction_that_was_open_when_the_change_began_has_the_new_lanes() {
    let (mut world, sender) = four();
    send(&mut world, &["a1"]);
    let transaction = Some(begin(&mut world, sender));
    let stage = |world: &mut World, message: NewMessage| {
        let staged = world.ask(sender, |token| Command::Send {
            message,
            transaction,
            token,
        });
        staged.unwrap();
    };
    stage(&mut world, of("d1"));
    alter(&mut world, hashed(3), true).unwrap();
    commit(&mut world, sender).unwrap();
    let c = consumer(&mut world, 11, "work");
    let got = world.delivered();
    assert_eq!(texts(&got), ["a1"]);
    begin(&mut world, sender);
    stage(&mut world, message(Destination::queue("work.2"), "fits"));
    world.ack(c, got[0].1).unwrap();
    commit(&mut world, sender).unwrap();
    assert_eq!(world.bodies(), ["d1", "fits"]);
    // A lane that is gone by the time of the commit undoes it as a whole.
    for drained in [false, true] {
        let (mut world, sender) = four();
        send(&mut world, &["a1"]);
        begin(&mut world, sender);
        stage(&mut world, of("b1"));
        stage(&mut world, message(Destination::queue("work.3"), "pinned"));
        alter(&mut world, hashed(3), true).unwrap();
        if drained {
            let c = consumer(&mut world, 11, "work");
            let got = world.delivered();
            world.ack(c, got[0].1).unwrap();
        }
        let refused = commit(&mut world, sender).unwrap_err();
        let name = if drained { "NO-QUEUE" } else { "INVALID" };
        assert_eq!(refused.name(), name);
        assert_eq!(world.core.held_messages(), usize::from(!drained));
    }
}

#[test]
fn a_parked_group_takes_what_waits_behind_it_along() {
    let mut world = World::with_work(QueueAttributes {
        on_lane_poison: OnLanePoison::Park,
        backout_limit: Some(1),
        ..like(hashed(4))
    });
    world.open(1, "sender");
    send(&mut world, &["a1", "a2", "b1"]);
    alter(&mut world, hashed(3), true).unwrap();
    send(&mut world, &["d1", "a3"]);
    let c = consumer(&mut world, 11, "work");
    let got = world.delivered();
    assert_eq!(texts(&got), ["a1", "b1"]);
    world.nack(c, got[0].1).unwrap();
    assert_eq!(standing(&world), ["b1", "d1"]);
    world.ack(c, got[1].1).unwrap();
    assert_eq!(world.bodies(), ["d1"]);
}

#[test]
fn what_comes_back_from_where_it_was_moved_to_is_still_one_of_those_before() {
    let mut world = World::with_work(QueueAttributes {
        backout_limit: Some(1),
        ..like(hashed(4))
    });
    world.open(1, "sender");
    send(&mut world, &["a1", "b1"]);
    let c = consumer(&mut world, 11, "work");
    let got = world.delivered();
    world.nack(c, got[0].1).unwrap();
    alter(&mut world, hashed(3), true).unwrap();
    send(&mut world, &["a2"]);
    let error = world.core.directory.queue("~error").unwrap();
    let moved = world.core.queues[&error].messages.keys().collect();
    world.step(Input::Command {
        connection: ConnectionId(1),
        command: Command::Retry {
            queue: Destination::queue("~error"),
            messages: moved,
            token: 99,
        },
    });
    let again = world.delivered();
    assert_eq!(texts(&again), ["a1"]);
    world.ack(c, got[1].1).unwrap();
    assert!(world.bodies().is_empty());
    world.ack(c, again[0].1).unwrap();
    assert_eq!(world.bodies(), ["a2"]);
}

/// From every kind of lanes to every other.
#[test]
fn any_lanes_can_be_drained_for_any_others() {
    let kinds = [Lanes::None, Lanes::Single, Lanes::Key, hashed(2), hashed(5)];
    for from in kinds {
        for to in kinds.into_iter().filter(|to| *to != from) {
            let mut world = World::with_work(like(from));
            world.open(1, "sender");
            let c = consumer(&mut world, 11, "work");
            send(&mut world, &["a1", "a2", "b1"]);
            alter(&mut world, to, true).unwrap();
            send(&mut world, &["a3", "b2"]);
            let mut done = Vec::new();
            loop {
                let got = world.delivered();
                if got.is_empty() {
                    break;
                }
                for (body, delivery, ..) in got {
                    let drains = is_draining(&world);
                    assert_eq!(drains, done.len() < 3, "{from:?} {to:?} {done:?}");
                    done.push(body);
                    world.ack(c, delivery).unwrap();
                }
            }
            assert_eq!(done.len(), 5, "{from:?} {to:?} {done:?}");
            let of_a = done.iter().filter(|it| it.starts_with('a'));
            assert!(of_a.eq(["a1", "a2", "a3"].iter()), "{done:?}");
        }
    }
}

#[test]
fn a_start_that_wants_other_lanes_drains_if_it_may() {
    let (mut world, _) = four();
    send(&mut world, &["a1"]);
    world.queues[0].attributes.lanes = hashed(3);
    let refused = world.start().unwrap_err();
    assert_eq!(refused.name(), "QUEUE-NOT-EMPTY");
    assert!(refused.to_string().contains("drain = true"), "{refused}");
    world.queues[0].drain = true;
    world.restart();
    assert!(is_draining(&world));
    world.restart();
    assert!(is_draining(&world), "the same wish again");
    world.queues[0].attributes.backout_limit = Some(9);
    world.restart();
    assert!(
        is_draining(&world),
        "something else can be changed meanwhile"
    );
    world.queues[0].attributes.lanes = hashed(6);
    let refused = world.start().unwrap_err();
    assert_eq!(refused.name(), "DRAINING");
    // Only a bus that has started goes on with it.
    let remedy = refused.to_string();
    assert!(remedy.contains("with lanes = \"hashed(3)\""), "{remedy}");
    world.queues[0].attributes.lanes = hashed(3);
    world.restart();
    let c = consumer(&mut world, 11, "work");
    let got = world.delivered();
    world.ack(c, got[0].1).unwrap();
    assert!(!is_draining(&world));
    world.queues[0].attributes.lanes = hashed(6);
    world.restart();
    assert!(!is_draining(&world), "nothing was there");
}

#[test]
fn a_consumer_that_chooses_and_lanes_exclude_each_other() {
    let mut world = World::new();
    let a = world.open(1, "a");
    let subscribe = |world: &mut World| {
        world.ask(a, |token| Command::Subscribe {
            options: SubscribeOptions::default(),
            ack_timeout: None,
            selector: "JMSPriority > 4".parse().ok(),
            subscription: 1,
            destination: queue(),
            durable: None,
            ack: AckMode::Individual,
            prefetch: 1,
            token,
        })
    };
    subscribe(&mut world).unwrap();
    assert_eq!(
        alter(&mut world, Lanes::Key, true).unwrap_err().name(),
        "INVALID"
    );
    let unsubscribed = world.ask(a, |token| Command::Unsubscribe {
        subscription: 1,
        token,
    });
    unsubscribed.unwrap();
    send(&mut world, &["a1"]);
    alter(&mut world, hashed(2), true).unwrap();
    assert_eq!(subscribe(&mut world).unwrap_err().name(), "INVALID");
    let mut held = world
        .core
        .queues
        .values()
        .flat_map(|it| it.messages.values());
    assert!(held.all(|it| it.state == State::Ready));
}
