//! Taking one message, looking without taking, and choosing.

use pillarbox_messages::Destination;

use super::{World, message, queue, work};
use crate::{
    BusError, LaneHash, Lanes, QueueAttributes, Selector, Wait,
    core::{Input, message::NewMessage},
    embedded::connection::{AckMode, Command, ConnectionId, DeliveryId, Event, SubscribeOptions},
};

/// What a pull came to.
#[derive(Debug, PartialEq, Eq)]
enum Got {
    Message(String, DeliveryId),
    Nothing,
    InUse,
    Waits,
}

fn selector(text: &str) -> Option<Selector> {
    (!text.is_empty()).then(|| text.parse().unwrap())
}

fn ask(
    world: &mut World,
    connection: ConnectionId,
    number: u64,
    (from, wanted, wait): (Destination, &str, Wait),
) -> Result<Got, BusError> {
    let selector = selector(wanted);
    world.ask(connection, |token| Command::Get {
        subscription: number,
        destination: from,
        selector,
        wait,
        ack: AckMode::Individual,
        token,
    })?;
    Ok(answer(world, number))
}

fn answer(world: &mut World, number: u64) -> Got {
    let at = world.told.iter().position(|(_, event)| match event {
        Event::Deliver { subscription, .. } | Event::NoMessage { subscription, .. } => {
            *subscription == number
        }
        _ => false,
    });
    match at.map(|at| world.told.remove(at).1) {
        Some(Event::Deliver {
            delivery, message, ..
        }) => Got::Message(
            String::from_utf8(message.body().to_vec()).unwrap(),
            delivery,
        ),
        Some(Event::NoMessage { in_use: false, .. }) => Got::Nothing,
        Some(Event::NoMessage { in_use: true, .. }) => Got::InUse,
        _ => Got::Waits,
    }
}

fn get(world: &mut World, number: u64, wanted: &str) -> Got {
    let what = (queue(), wanted, Wait::No);
    ask(world, ConnectionId(1), number, what).unwrap()
}

fn body(got: Got) -> String {
    match got {
        Got::Message(body, _) => body,
        other => panic!("{other:?}"),
    }
}

fn colored(body: &str, color: &str) -> NewMessage {
    NewMessage {
        headers: vec![("color".to_owned(), color.to_owned())],
        correlation_id: Some(format!("c-{color}")),
        ..work(body)
    }
}

/// Six messages, red and blue in turn, sent by connection 1.
fn six(world: &mut World) {
    world.open(1, "a");
    for number in 1..=6 {
        let color = ["blue", "red"][number % 2];
        world
            .send(ConnectionId(1), colored(&number.to_string(), color))
            .unwrap();
    }
}

fn browse(
    world: &mut World,
    from: Destination,
    wanted: &str,
    limit: usize,
    all: bool,
) -> (String, bool) {
    let selector = selector(wanted);
    world
        .ask(ConnectionId(1), |token| Command::Browse {
            subscription: 500,
            destination: from,
            selector,
            limit,
            all,
            token,
        })
        .unwrap();
    let at = world
        .told
        .iter()
        .position(|(_, event)| matches!(event, Event::Browsed { .. }));
    let Event::Browsed { messages, more, .. } = world.told.remove(at.unwrap()).1 else {
        unreachable!()
    };
    let bodies = messages.iter().map(|seen| {
        let body = String::from_utf8(seen.message.body().to_vec()).unwrap();
        match (seen.in_hand, seen.waits_until) {
            (true, _) => format!("{body}!"),
            (false, Some(_)) => format!("{body}?"),
            (false, None) => body,
        }
    });
    (bodies.collect::<Vec<_>>().join(" "), more)
}

#[test]
fn one_message_at_a_time_in_the_queues_order() {
    let mut world = World::new();
    six(&mut world);
    let urgent = NewMessage {
        priority: 9,
        ..work("0")
    };
    world.send(ConnectionId(1), urgent).unwrap();
    let first = get(&mut world, 1, "");
    let Got::Message(text, delivery) = first else {
        panic!("{first:?}");
    };
    assert_eq!(text, "0");
    assert_eq!(body(get(&mut world, 2, "")), "1");
    // The number is in use until the message is dealt with.
    let again = (queue(), "", Wait::No);
    assert!(ask(&mut world, ConnectionId(1), 1, again.clone()).is_err());
    world.ack(ConnectionId(1), delivery).unwrap();
    assert_eq!(
        body(ask(&mut world, ConnectionId(1), 1, again).unwrap()),
        "2"
    );
    assert_eq!(world.core.in_flight(), 2);
    world.lose(ConnectionId(1));
    assert_eq!((world.core.in_flight(), world.core.held_messages()), (0, 6));
    world.open(1, "a");
    assert_eq!(body(get(&mut world, 1, "")), "1", "back in its place");
}

#[test]
fn by_what_it_says_by_its_id_and_by_its_correlation_id() {
    let mut world = World::new();
    six(&mut world);
    let id = world.send_id(ConnectionId(1), work("7"));
    assert_eq!(body(get(&mut world, 1, "color = 'blue'")), "2");
    assert_eq!(
        body(get(&mut world, 2, &format!("JMSMessageID = '{id}'"))),
        "7"
    );
    assert_eq!(body(get(&mut world, 3, "JMSCorrelationID = 'c-blue'")), "4");
    world.send(ConnectionId(1), colored("8", "green")).unwrap();
    assert_eq!(
        body(get(&mut world, 4, "JMSCorrelationID = 'c-green'")),
        "8"
    );
    assert_eq!(
        get(&mut world, 5, &format!("JMSMessageID = '{id}'")),
        Got::InUse
    );
    assert_eq!(get(&mut world, 5, "JMSMessageID = '99-99'"), Got::Nothing);
    assert_eq!(get(&mut world, 5, "JMSMessageID = 'mine'"), Got::Nothing);
    assert_eq!(
        get(&mut world, 5, "JMSCorrelationID = 'c-none'"),
        Got::Nothing
    );
    assert_eq!(get(&mut world, 5, "color = 'green'"), Got::InUse);
    assert_eq!(get(&mut world, 5, "color = 'white'"), Got::Nothing);
}

#[test]
fn a_pull_waits_until_its_deadline() {
    let mut world = World::new();
    let a = world.open(1, "a");
    let waits = |world: &mut World, number, wanted, wait| {
        ask(world, ConnectionId(1), number, (queue(), wanted, wait)).unwrap()
    };
    assert_eq!(waits(&mut world, 1, "", Wait::For(100)), Got::Waits);
    assert_eq!(
        waits(&mut world, 2, "color = 'red'", Wait::For(200)),
        Got::Waits
    );
    assert_eq!(
        waits(&mut world, 3, "color = 'blue'", Wait::Forever),
        Got::Waits
    );
    assert_eq!(world.core.next_deadline(), Some(100));
    world.send(a, colored("1", "red")).unwrap();
    let first = answer(&mut world, 1);
    assert_eq!(body(first), "1", "the first who takes it");
    world.send(a, colored("2", "green")).unwrap();
    assert_eq!(answer(&mut world, 2), Got::Waits);
    world.pass(199);
    assert_eq!(answer(&mut world, 2), Got::Waits);
    world.pass(1);
    assert_eq!(answer(&mut world, 2), Got::InUse, "the red one is in hand");
    world.pass(1_000_000);
    assert_eq!(answer(&mut world, 3), Got::Waits);
    world.send(a, colored("3", "blue")).unwrap();
    assert_eq!(body(answer(&mut world, 3)), "3");
    assert_eq!(world.core.next_deadline(), None);
    assert_eq!(
        waits(&mut world, 4, "color = 'white'", Wait::For(0)),
        Got::Waits
    );
    world.pass(0);
    assert_eq!(answer(&mut world, 4), Got::Nothing);
    // Who goes while it waits leaves nothing behind.
    assert_eq!(
        waits(&mut world, 5, "color = 'white'", Wait::For(50)),
        Got::Waits
    );
    world.lose(a);
    assert_eq!(world.core.next_deadline(), None);
}

#[test]
fn a_message_pulled_can_fail_like_any_other() {
    let mut world = World::new();
    let a = world.open(1, "a");
    world.send(a, work("bad")).unwrap();
    for round in 0..3 {
        let Got::Message(_, delivery) = get(&mut world, round, "") else {
            panic!("{round}");
        };
        world.nack(a, delivery).unwrap();
        assert_eq!(
            get(&mut world, 10, ""),
            Got::Nothing,
            "it waits for its pause"
        );
        world.pass(60_000);
    }
    assert_eq!(world.core.counters().backed_out, 1);
    let error = (Destination::queue("~error"), "", Wait::No);
    assert_eq!(body(ask(&mut world, a, 10, error).unwrap()), "bad");
}

#[test]
fn of_a_lane_only_the_first_can_be_pulled_and_nothing_of_anothers() {
    let of = |text: &str| NewMessage {
        group: Some(text.split_at(1).0.to_owned()),
        ..work(text)
    };
    let mut world = World::with_work(QueueAttributes {
        lanes: Lanes::Key,
        ..QueueAttributes::default()
    });
    let a = world.open(1, "a");
    let mut ids = Vec::new();
    for text in ["a1", "a2", "b1", "b2"] {
        ids.push(world.send_id(a, of(text)));
    }
    let by_id = |at: usize| format!("JMSMessageID = '{}'", ids[at]);
    assert_eq!(
        get(&mut world, 1, &by_id(1)),
        Got::Nothing,
        "a1 is before it"
    );
    let Got::Message(text, first) = get(&mut world, 1, &by_id(2)) else {
        panic!("not the first of its lane");
    };
    assert_eq!(text, "b1");
    assert_eq!(body(get(&mut world, 2, "")), "a1");
    assert_eq!(get(&mut world, 3, ""), Got::InUse, "one of each is in hand");
    let picky = (queue(), "JMSPriority = 4", Wait::Forever);
    assert_eq!(ask(&mut world, a, 3, picky).unwrap_err().name(), "INVALID");
    let waits = (queue(), "", Wait::Forever);
    assert_eq!(ask(&mut world, a, 3, waits), Ok(Got::Waits));
    world.ack(a, first).unwrap();
    assert_eq!(body(answer(&mut world, 3)), "b2");
    // A consumer that owns the lanes is not robbed of them.
    let hash = LaneHash::JavaString;
    let mut world = World::with_work(QueueAttributes {
        lanes: Lanes::Hashed { count: 2, hash },
        ..QueueAttributes::default()
    });
    let a = world.open(1, "a");
    world.subscribe(a, 1, queue(), 1).unwrap();
    for text in ["a1", "a2", "b1"] {
        world.send(a, of(text)).unwrap();
    }
    assert_eq!(world.bodies(), ["a1"]);
    assert_eq!(get(&mut world, 2, ""), Got::InUse);
    world.lose(a);
    let a = world.open(1, "a");
    let lane = (Destination::queue("work.0"), "", Wait::No);
    assert_eq!(body(ask(&mut world, a, 2, lane).unwrap()), "b1");
}

#[test]
fn looking_changes_nothing() {
    let mut world = World::new();
    six(&mut world);
    let later = NewMessage {
        not_before: Some(1_000),
        ..work("later")
    };
    world.send(ConnectionId(1), later).unwrap();
    world.units.clear();
    let taken = body(get(&mut world, 1, ""));
    assert_eq!(taken, "1");
    let before = world.units.len();
    let all = "2 3 4 5 6";
    for _ in 0..2 {
        assert_eq!(
            browse(&mut world, queue(), "", 100, false),
            (all.to_owned(), false)
        );
    }
    assert_eq!(
        browse(&mut world, queue(), "", 2, false),
        ("2 3".to_owned(), true)
    );
    let blue = browse(&mut world, queue(), "color = 'blue'", 100, false);
    assert_eq!(blue, ("2 4 6".to_owned(), false));
    let everything = browse(&mut world, queue(), "", 100, true);
    assert_eq!(everything, ("1! 2 3 4 5 6 later?".to_owned(), false));
    assert_eq!(world.units.len(), before, "nothing is written");
    let wrong = world.ask(ConnectionId(1), |token| Command::Browse {
        subscription: 1,
        destination: Destination::queue("none"),
        selector: None,
        limit: 1,
        all: false,
        token,
    });
    assert_eq!(wrong.unwrap_err().name(), "NO-QUEUE");
}

#[test]
fn e07_a_message_that_was_looked_at_can_expire() {
    let mut world = World::new();
    let a = world.open(1, "a");
    let mortal = NewMessage {
        expires_at: Some(100),
        ..work("1")
    };
    let id = world.send_id(a, mortal);
    assert_eq!(browse(&mut world, queue(), "", 1, false).0, "1");
    world.pass(100);
    assert_eq!(browse(&mut world, queue(), "", 1, true).0, "");
    assert_eq!(
        get(&mut world, 1, &format!("JMSMessageID = '{id}'")),
        Got::Nothing
    );
}

#[test]
fn nobody_sees_what_is_not_written_yet() {
    let mut world = World::new();
    let a = world.open(1, "a");
    let step = |world: &mut World, command| {
        let connection = a;
        world.core.step(
            0,
            Input::Command {
                connection,
                command,
            },
        )
    };
    let sent = step(
        &mut world,
        Command::Send {
            message: work("1"),
            transaction: None,
            token: 0,
        },
    );
    let unit = sent.unit.unwrap().number;
    let looked = step(
        &mut world,
        Command::Browse {
            subscription: 1,
            destination: queue(),
            selector: None,
            limit: 1,
            all: false,
            token: 0,
        },
    );
    assert_eq!(looked.events[0].after, unit);
}

#[test]
fn a_consumer_gets_what_its_selector_selects_and_others_the_rest() {
    let mut world = World::new();
    six(&mut world);
    let subscribe = |world: &mut World, number, wanted: &str, to| {
        let connection = world.open(number, &format!("c{number}"));
        let selector = selector(wanted);
        let done = world.ask(connection, |token| Command::Subscribe {
            options: SubscribeOptions::default(),
            ack_timeout: None,
            subscription: 1,
            destination: to,
            durable: None,
            ack: AckMode::Individual,
            prefetch: 2,
            selector,
            token,
        });
        done.map(|_| connection)
    };
    let blue = subscribe(&mut world, 11, "color = 'blue'", queue()).unwrap();
    let texts = |got: Vec<(String, DeliveryId, u32, u32)>| -> Vec<String> {
        got.into_iter().map(|it| it.0).collect()
    };
    let got = world.delivered_to(blue);
    assert_eq!(texts(got.clone()), ["2", "4"]);
    let all = subscribe(&mut world, 12, "", queue()).unwrap();
    let others = world.delivered_to(all);
    assert_eq!(texts(others.clone()), ["1", "3"]);
    world.ack(blue, got[0].1).unwrap();
    assert_eq!(texts(world.delivered_to(blue)), ["6"]);
    world.ack(all, others[0].1).unwrap();
    assert_eq!(texts(world.delivered_to(all)), ["5"]);
    world.nack(blue, got[1].1).unwrap();
    world.ack(all, others[1].1).unwrap();
    world.send(ConnectionId(1), colored("7", "blue")).unwrap();
    assert_eq!(texts(world.delivered_to(blue)), ["7"]);
    world.pass(1_000);
    assert_eq!(texts(world.delivered_to(all)), ["4"]);
    let mut world = World::with_work(QueueAttributes {
        lanes: Lanes::Single,
        ..QueueAttributes::default()
    });
    assert!(subscribe(&mut world, 13, "a = 1", queue()).is_err());
}

#[test]
fn only_queues_that_are_there_can_be_pulled_from() {
    let mut world = World::new();
    let a = world.open(1, "a");
    for (from, name) in [
        (Destination::queue("none"), "NO-QUEUE"),
        (Destination::topic("news"), "INVALID"),
    ] {
        let refused = ask(&mut world, a, 1, (from, "", Wait::Forever));
        assert_eq!(refused.unwrap_err().name(), name);
    }
    world.send(a, message(queue(), "x")).unwrap();
    assert_eq!(body(get(&mut world, 1, "")), "x");
}
