//! Lanes: what belongs together is dealt with in order, by one consumer at a time.

use pillarbox_messages::Destination;

use super::{World, message, queue, work};
use crate::{
    BusError, LaneHash, Lanes, QueueAttributes,
    core::{Input, message::NewMessage},
    embedded::connection::{
        AckMode, Command, ConnectionId, DeliveryId, Event, SubscribeOptions, USUAL_PREFETCH,
    },
};

fn like(lanes: Lanes) -> QueueAttributes {
    QueueAttributes {
        lanes,
        backout_limit: None,
        ..QueueAttributes::default()
    }
}

fn keyed() -> World {
    World::with_work(like(Lanes::Key))
}

fn hashed(count: u32) -> World {
    let hash = LaneHash::JavaString;
    World::with_work(like(Lanes::Hashed { count, hash }))
}

/// A message of the group that its first letter names.
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

/// Opens the sender's connection and so many consumers, numbered from 11 on.
fn consumers(world: &mut World, count: u64, prefetch: u32) -> Vec<ConnectionId> {
    world.open(1, "sender");
    let ids = 11..11 + count;
    let opened = ids.map(|number| {
        let consumer = world.open(number, &format!("c{number}"));
        world.subscribe(consumer, 1, queue(), prefetch).unwrap();
        consumer
    });
    opened.collect()
}

fn ack_all(world: &mut World, consumer: ConnectionId, got: &[(String, DeliveryId, u32, u32)]) {
    for (_, delivery, ..) in got {
        world.ack(consumer, *delivery).unwrap();
    }
}

fn texts(got: &[(String, DeliveryId, u32, u32)]) -> Vec<&str> {
    got.iter().map(|(body, ..)| body.as_str()).collect()
}

#[test]
fn one_of_a_lane_is_in_hand_at_a_time_whatever_the_prefetch() {
    let mut world = keyed();
    let c = consumers(&mut world, 1, 10)[0];
    send(&mut world, &["a1", "a2", "b1", "a3", "b2"]);
    let got = world.delivered();
    assert_eq!(texts(&got), ["a1", "b1"]);
    world.ack(c, got[0].1).unwrap();
    assert_eq!(world.bodies(), ["a2"]);
    world.ack(c, got[1].1).unwrap();
    assert_eq!(world.bodies(), ["b2"]);
}

#[test]
fn b38_groups_stay_with_their_owner_and_go_side_by_side() {
    let mut world = keyed();
    let c = consumers(&mut world, 2, 1);
    send(&mut world, &["a1", "b1", "a2", "b2", "a3"]);
    let first = world.delivered_to(c[0]);
    let second = world.delivered_to(c[1]);
    assert_eq!((texts(&first), texts(&second)), (vec!["a1"], vec!["b1"]));
    ack_all(&mut world, c[1], &second);
    let second = world.delivered_to(c[1]);
    assert_eq!(texts(&second), ["b2"], "a2 waits for its owner");
    ack_all(&mut world, c[1], &second);
    assert!(world.delivered().is_empty());
    ack_all(&mut world, c[0], &first);
    assert_eq!(texts(&world.delivered_to(c[0])), ["a2"]);
}

#[test]
fn a_single_lane_has_one_consumer_and_the_next_takes_over() {
    let mut world = World::with_work(like(Lanes::Single));
    let c = consumers(&mut world, 2, 5);
    send(&mut world, &["a1", "b1", "c1"]);
    let got = world.delivered();
    assert_eq!(texts(&got), ["a1"]);
    world.ack(c[0], got[0].1).unwrap();
    assert_eq!(texts(&world.delivered_to(c[0])), ["b1"]);
    world.lose(c[0]);
    let got = world.delivered_to(c[1]);
    assert_eq!((got[0].0.as_str(), got[0].3), ("b1", 1));
    world.ack(c[1], got[0].1).unwrap();
    assert_eq!(world.bodies(), ["c1"]);
}

#[test]
fn a_consumer_that_acknowledges_by_taking_may_be_ahead_in_its_own_lane_only() {
    let mut world = keyed();
    world.open(1, "sender");
    for number in [11, 12] {
        let c = world.open(number, &format!("c{number}"));
        let subscribed = world.ask(c, |token| Command::Subscribe {
            options: SubscribeOptions::default(),
            ack_timeout: None,
            selector: None,
            subscription: 1,
            destination: queue(),
            durable: None,
            ack: AckMode::Auto,
            prefetch: 3,
            token,
        });
        subscribed.unwrap();
    }
    send(&mut world, &["a1", "a2", "a3", "a4", "b1"]);
    assert_eq!(
        texts(&world.delivered_to(ConnectionId(11))),
        ["a1", "a2", "a3"]
    );
    assert_eq!(texts(&world.delivered_to(ConnectionId(12))), ["b1"]);
    world.lose(ConnectionId(11));
    assert_eq!(texts(&world.delivered_to(ConnectionId(12))), ["a1", "a2"]);
}

#[test]
fn b33_a_message_that_returns_is_first_again_and_its_lane_waits_for_its_pause() {
    let mut world = keyed();
    let c = consumers(&mut world, 1, 10)[0];
    send(&mut world, &["a1", "a2", "b1", "b2"]);
    let got = world.delivered();
    world.nack(c, got[0].1).unwrap();
    world.ack(c, got[1].1).unwrap();
    assert_eq!(world.bodies(), ["b2"], "other lanes go on");
    world.pass(999);
    assert!(world.delivered().is_empty());
    world.restart();
    let c = consumers(&mut world, 1, 1)[0];
    assert_eq!(world.bodies(), ["b2"], "also after a restart");
    world.pass(1);
    world.open(12, "other");
    world.subscribe(ConnectionId(12), 1, queue(), 1).unwrap();
    let got = world.delivered_to(ConnectionId(12));
    assert_eq!((got[0].0.as_str(), got[0].3), ("a1", 1));
    world.lose(c);
    assert_eq!(world.core.in_flight(), 1);
}

#[test]
fn e09_a_lane_goes_on_when_what_it_waits_for_expires() {
    let mut world = keyed();
    let c = consumers(&mut world, 1, 10)[0];
    let mortal = NewMessage {
        expires_at: Some(500),
        ..of("a1")
    };
    world.send(ConnectionId(1), mortal).unwrap();
    send(&mut world, &["a2"]);
    let got = world.delivered();
    world.nack(c, got[0].1).unwrap();
    world.pass(499);
    assert!(world.delivered().is_empty());
    world.pass(1);
    assert_eq!(world.bodies(), ["a2"]);
}

#[test]
fn a_message_that_its_sender_wants_later_does_not_hold_up_its_lane() {
    let mut world = keyed();
    let c = consumers(&mut world, 1, 10)[0];
    let later = NewMessage {
        not_before: Some(100),
        ..of("a1")
    };
    world.send(ConnectionId(1), later).unwrap();
    send(&mut world, &["a2", "a3"]);
    let got = world.delivered();
    assert_eq!(texts(&got), ["a2"]);
    world.pass(100);
    world.ack(c, got[0].1).unwrap();
    assert_eq!(world.bodies(), ["a1"], "now it is first");
}

#[test]
fn e28_a_lane_moves_to_a_new_consumer_only_when_it_is_quiet() {
    let mut world = hashed(4);
    let c = consumers(&mut world, 1, 10)[0];
    // The groups fall into lanes 1, 2, 3 and 0.
    send(
        &mut world,
        &["a1", "b1", "c1", "d1", "a2", "b2", "c2", "d2"],
    );
    let got = world.delivered();
    assert_eq!(texts(&got), ["a1", "b1", "c1", "d1"]);
    // Two lanes are to move, and all are busy.
    let other = world.open(12, "late");
    world.subscribe(other, 1, queue(), 10).unwrap();
    assert!(world.delivered().is_empty());
    let mut moved = Vec::new();
    for delivery in &got {
        world.ack(c, delivery.1).unwrap();
        moved.extend(world.delivered_to(other));
    }
    assert_eq!(moved.len(), 2, "half of the lanes");
    assert_eq!(world.delivered_to(c).len(), 2);
    // Whoever goes leaves its lanes to the others, with what it had in hand first.
    world.lose(other);
    let mut again = texts(&world.delivered_to(c)).join(" ");
    again.push(' ');
    for (body, ..) in moved {
        assert!(again.contains(&format!("{body} ")), "{again}");
    }
}

#[test]
fn e28_idle_lanes_go_to_a_new_consumer_first() {
    let mut world = hashed(4);
    let c = consumers(&mut world, 1, 10)[0];
    send(&mut world, &["a1", "b1"]);
    let got = world.delivered_to(c);
    let other = world.open(12, "late");
    world.subscribe(other, 1, queue(), 10).unwrap();
    send(&mut world, &["c1", "d1", "a2", "b2"]);
    assert_eq!(texts(&world.delivered_to(other)), ["c1", "d1"]);
    ack_all(&mut world, c, &got);
    assert_eq!(texts(&world.delivered_to(c)), ["a2", "b2"]);
}

#[test]
fn every_lane_has_one_of_as_many_consumers_and_all_agree_with_an_outside_router() {
    let mut world = hashed(4);
    world.open(1, "sender");
    for lane in 0..4 {
        let c = world.open(11 + lane, &format!("c{lane}"));
        let part = Destination::queue(&format!("work.{lane}"));
        world.subscribe(c, 1, part, 1).unwrap();
    }
    for key in ["a", "hello", "polygenelubricants", "ORDER-1", "\u{1F600}"] {
        let lane = crate::core::lanes::hash::lane_of(key, LaneHash::JavaString, 4);
        let ours = NewMessage {
            group: Some(key.to_owned()),
            ..work("ours")
        };
        let theirs = message(Destination::queue(&format!("work.{lane}")), "theirs");
        for sent in [ours, theirs] {
            world.send(ConnectionId(1), sent).unwrap();
            let c = ConnectionId(11 + u64::from(lane));
            let got = world.delivered_to(c);
            assert_eq!(got.len(), 1, "{key}");
            world.ack(c, got[0].1).unwrap();
        }
    }
    assert!(world.delivered().is_empty());
    assert_eq!(world.core.held_messages(), 0);
}

#[test]
fn only_lanes_that_there_are_can_be_addressed() {
    let mut world = hashed(4);
    let a = world.open(1, "a");
    for name in ["work.4", "work.01", "work.+1", "work.", "work.x"] {
        let to = message(Destination::queue(name), "x");
        assert_eq!(world.send(a, to), Ok(true), "{name} is no queue");
        assert!(world.subscribe(a, 1, Destination::queue(name), 1).is_err());
    }
    let mut world = keyed();
    let a = world.open(1, "a");
    let to = message(Destination::queue("work.0"), "x");
    assert_eq!(world.send(a, to), Ok(true), "these lanes have no numbers");
}

#[test]
fn a_lane_addressed_keeps_its_messages_over_a_restart() {
    let mut world = hashed(4);
    world.open(1, "sender");
    for body in ["1", "2"] {
        let sent = message(Destination::queue("work.3"), body);
        world.send(ConnectionId(1), sent).unwrap();
    }
    world.restart();
    let c = consumers(&mut world, 1, 10)[0];
    let got = world.delivered();
    assert_eq!(texts(&got), ["1"]);
    world.ack(c, got[0].1).unwrap();
    assert_eq!(world.bodies(), ["2"]);
}

#[test]
fn the_number_of_lanes_can_change_only_while_the_queue_is_empty() {
    let mut world = hashed(4);
    let a = world.open(1, "a");
    send(&mut world, &["a1"]);
    let hash = LaneHash::JavaString;
    for lanes in [Lanes::Hashed { count: 5, hash }, Lanes::Key, Lanes::None] {
        world.queues[0].attributes.lanes = lanes;
        let refused = world.start().unwrap_err();
        assert_eq!(refused.name(), "QUEUE-NOT-EMPTY", "{lanes:?}");
    }
    world.subscribe(a, 1, queue(), 1).unwrap();
    let got = world.delivered();
    world.ack(a, got[0].1).unwrap();
    world.queues[0].attributes.lanes = Lanes::Hashed { count: 5, hash };
    world.restart();
    let to = message(Destination::queue("work.4"), "x");
    world.open(1, "a");
    assert_eq!(world.send(ConnectionId(1), to), Ok(false));
}

#[test]
fn a_queue_with_messages_gets_lanes_of_its_groups() {
    let mut world = World::new();
    world.open(1, "sender");
    send(&mut world, &["a1", "a2", "b1"]);
    let work = crate::QueueDefinition {
        name: "work".to_owned(),
        attributes: like(Lanes::Key),
        drain: false,
    };
    world.queues = vec![work];
    world.restart();
    consumers(&mut world, 1, 10);
    assert_eq!(world.bodies(), ["a1", "b1"]);
}

#[test]
fn a_queue_and_a_lane_never_have_one_name() {
    let mut world = hashed(4);
    let mut define = |name: &str, lanes| {
        world.queues.truncate(1);
        world.queues.push(crate::QueueDefinition {
            name: name.to_owned(),
            attributes: like(lanes),
            drain: false,
        });
        world.start()
    };
    let hash = LaneHash::Fnv1a64;
    assert_eq!(define("work.3", Lanes::None).unwrap_err().name(), "INVALID");
    define("work.4", Lanes::None).unwrap();
    define("more.2", Lanes::None).unwrap();
    let more = |count| Lanes::Hashed { count, hash };
    assert_eq!(define("more", more(3)).unwrap_err().name(), "INVALID");
    define("more", more(2)).unwrap();
}

#[test]
fn messages_without_a_group_go_to_anybody_or_are_refused() {
    let mut world = keyed();
    let c = consumers(&mut world, 2, 2);
    for body in ["1", "2", "3", "4"] {
        world.send(ConnectionId(1), work(body)).unwrap();
    }
    assert_eq!(world.delivered_to(c[0]).len(), 2);
    assert_eq!(world.delivered_to(c[1]).len(), 2);
    let mut strict = World::with_work(QueueAttributes {
        require_key: true,
        ..like(Lanes::Key)
    });
    let a = strict.open(1, "a");
    assert_eq!(strict.send(a, work("1")).unwrap_err().name(), "INVALID");
    strict.send(a, of("a1")).unwrap();
}

#[test]
fn a_group_that_is_closed_is_anybodys_again() {
    let mut world = keyed();
    let c = consumers(&mut world, 2, 1);
    let last = NewMessage {
        headers: vec![("JMSXGroupSeq".to_owned(), "-1".to_owned())],
        ..of("a1")
    };
    world.send(ConnectionId(1), last).unwrap();
    send(&mut world, &["b1", "a2"]);
    let first = world.delivered_to(c[0]);
    let second = world.delivered_to(c[1]);
    ack_all(&mut world, c[1], &second);
    assert!(world.delivered_to(c[1]).is_empty(), "not yet");
    // Both are free now, and the one that owns no lane gets it.
    send(&mut world, &["c1"]);
    let second = world.delivered_to(c[1]);
    assert_eq!(texts(&second), ["c1"]);
    ack_all(&mut world, c[1], &second);
    ack_all(&mut world, c[0], &first);
    let told = world.delivered();
    assert_eq!(texts(&told), ["a2"]);
    assert_eq!(world.core.in_flight(), 1);
}

#[test]
fn the_first_of_a_lane_for_a_consumer_says_so() {
    let mut world = keyed();
    let c = consumers(&mut world, 1, 10)[0];
    send(&mut world, &["a1", "a2"]);
    let firsts = |world: &World| -> Vec<bool> {
        let told = world.told.iter();
        let firsts = told.filter_map(|(_, event)| match event {
            Event::Deliver { first_of_group, .. } => Some(*first_of_group),
            _ => None,
        });
        firsts.collect()
    };
    assert_eq!(firsts(&world), [true]);
    let got = world.delivered();
    world.ack(c, got[0].1).unwrap();
    assert_eq!(firsts(&world), [false]);
    world.lose(c);
    let d = world.open(12, "d");
    world.delivered();
    world.subscribe(d, 1, queue(), 10).unwrap();
    assert_eq!(firsts(&world), [true], "of another consumer");
}

#[test]
fn a_connection_lost_blames_the_oldest_of_each_lane() {
    let mut world = keyed();
    let c = consumers(&mut world, 1, 10)[0];
    send(&mut world, &["a1", "a2", "b1"]);
    for body in ["1", "2"] {
        world.send(ConnectionId(1), work(body)).unwrap();
    }
    assert_eq!(world.delivered().len(), 4);
    world.lose(c);
    let d = world.open(12, "d");
    world.subscribe(d, 1, queue(), 10).unwrap();
    let mut counts: Vec<_> = world
        .delivered()
        .into_iter()
        .map(|it| (it.0, it.3))
        .collect();
    counts.sort();
    let count = |body: &str, count| (body.to_owned(), count);
    let expected = [count("1", 1), count("2", 0), count("a1", 1), count("b1", 1)];
    assert_eq!(counts, expected);
}

#[test]
fn e30_a_cumulative_acknowledgement_covers_several_lanes() {
    let mut world = keyed();
    world.open(1, "sender");
    let c = world.open(11, "c");
    let subscribed = world.ask(c, |token| Command::Subscribe {
        options: SubscribeOptions::default(),
        ack_timeout: None,
        selector: None,
        subscription: 1,
        destination: queue(),
        durable: None,
        ack: AckMode::Client,
        prefetch: 10,
        token,
    });
    subscribed.unwrap();
    send(&mut world, &["a1", "a2", "b1", "b2", "c1"]);
    let got = world.delivered();
    assert_eq!(texts(&got), ["a1", "b1", "c1"]);
    world.ack(c, got[1].1).unwrap();
    let next = world.delivered();
    assert_eq!(texts(&next), ["a2", "b2"]);
    // One that is acknowledged already acknowledges nothing more.
    for (_, delivery, ..) in &got[..2] {
        assert_eq!(world.ack(c, *delivery), Err(BusError::StaleAck));
    }
    assert_eq!(world.core.in_flight(), 3);
    world.ack(c, next[1].1).unwrap();
    assert_eq!(world.core.held_messages(), 0);
}

/// How many of these messages are in the hands of one who asks for nothing in particular.
fn usual(world: &mut World, ack: AckMode, messages: usize, size: usize) -> usize {
    let sender = world.open(1, "sender");
    let c = world.open(11, "c");
    let subscribed = world.ask(c, |token| Command::Subscribe {
        options: SubscribeOptions::default(),
        ack_timeout: None,
        selector: None,
        subscription: 1,
        destination: queue(),
        durable: None,
        ack,
        prefetch: USUAL_PREFETCH,
        token,
    });
    subscribed.unwrap();
    for number in 0..messages {
        let sent = NewMessage {
            group: Some(format!("g{number}")),
            persistent: Some(false),
            ..message(queue(), &"x".repeat(size))
        };
        world.send(sender, sent).unwrap();
    }
    world.core.in_flight()
}

#[test]
fn who_asks_for_no_number_has_what_is_usual_in_hand() {
    for ack in [AckMode::Individual, AckMode::Client] {
        assert_eq!(usual(&mut World::new(), ack, 40, 1), 32);
        assert_eq!(usual(&mut keyed(), ack, 40, 1), 1, "of many lanes");
        assert_eq!(usual(&mut hashed(4), ack, 40, 1), 1);
    }
    assert_eq!(usual(&mut World::new(), AckMode::Auto, 1100, 1), 1024);
    assert_eq!(usual(&mut keyed(), AckMode::Auto, 1100, 1), 1024);
    // Ten of 100 kB are less than 1 MiB, with eleven it is full.
    assert_eq!(usual(&mut World::new(), AckMode::Auto, 20, 100_000), 11);
    let mut world = World::new();
    assert_eq!(
        usual(&mut world, AckMode::Auto, 2, 2 << 20),
        1,
        "one in any case"
    );
    let delivery = world.delivered()[0].1;
    world.step(Input::Handed {
        connection: ConnectionId(11),
        delivery,
    });
    assert_eq!(world.delivered().len(), 1, "and then the next");
}

/// Lanes that are empty cost nothing.
#[test]
fn groups_are_forgotten_with_their_last_message() {
    let mut world = keyed();
    let c = consumers(&mut world, 1, 1)[0];
    for number in 0..5_000 {
        let sent = NewMessage {
            group: Some(format!("group {number}")),
            persistent: Some(false),
            ..work("x")
        };
        world.send(ConnectionId(1), sent).unwrap();
        let got = world.delivered();
        world.ack(c, got[0].1).unwrap();
        world.told.clear();
    }
    let lanes = world
        .core
        .queues
        .values()
        .filter_map(|it| it.lanes.as_ref());
    assert_eq!(lanes.map(|it| it.count()).sum::<usize>(), 0);
}

/// Consumers that come, go, fail and succeed as they like: the work on one group never overlaps and is in order.
#[test]
fn b38_consumers_come_and_go_and_the_work_on_a_group_never_overlaps() {
    for lanes in [
        Lanes::Key,
        Lanes::Single,
        Lanes::Hashed {
            count: 3,
            hash: LaneHash::JavaString,
        },
    ] {
        for seed in 1..9 {
            overlap(lanes, seed);
        }
    }
}

fn overlap(lanes: Lanes, seed: u64) {
    let mut world = World::with_work(like(lanes));
    world.open(1, "sender");
    let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut below = |limit: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        usize::try_from(random % 1_000_000).unwrap() % limit
    };
    let (mut live, mut next, mut sent) = (Vec::new(), 11, [0_usize; 4]);
    let mut hands: Vec<(ConnectionId, String, DeliveryId)> = Vec::new();
    let mut done = [0_usize; 4];
    for step in 0..600 {
        match below(10) {
            0 if live.len() < 4 && step < 500 => {
                let c = world.open(next, &format!("c{next}"));
                let prefetch = u32::try_from(1 + below(4)).unwrap();
                world.subscribe(c, 1, queue(), prefetch).unwrap();
                live.push(c);
                next += 1;
            }
            1 if live.len() > 1 => {
                let gone = live.swap_remove(below(live.len()));
                hands.retain(|(of, ..)| *of != gone);
                if below(2) == 0 {
                    world.lose(gone);
                } else {
                    world
                        .ask(gone, |token| Command::Disconnect { token })
                        .unwrap();
                }
            }
            2..=4 if step < 500 => {
                let key = below(4);
                sent[key] += 1;
                send(
                    &mut world,
                    &[&format!("{}{}", ["a", "b", "c", "d"][key], sent[key])],
                );
            }
            5 if !hands.is_empty() => {
                let (c, _, delivery) = hands.swap_remove(below(hands.len()));
                world.nack(c, delivery).unwrap();
            }
            6..=8 if !hands.is_empty() => {
                let (c, body, delivery) = hands.swap_remove(below(hands.len()));
                let key = usize::from(body.as_bytes()[0] - b'a');
                done[key] += 1;
                assert_eq!(body.split_at(1).1, done[key].to_string(), "in order");
                world.ack(c, delivery).unwrap();
            }
            _ => world.pass(500),
        }
        for c in &live {
            for (body, delivery, ..) in world.delivered_to(*c) {
                let group = body.split_at(1).0;
                assert!(
                    hands.iter().all(|(_, other, _)| !other.starts_with(group)),
                    "two of {group}"
                );
                hands.push((*c, body, delivery));
            }
        }
        world.told.clear();
    }
    assert!(done.iter().sum::<usize>() > 20, "{done:?}");
}
