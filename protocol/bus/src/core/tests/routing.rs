//! Where messages go: queues, topics, durable and temporary places, unknown names.

use pillarbox_messages::{Destination, DestinationKind};

use super::{World, message, news, queue, work};
use crate::{
    BusError,
    core::{Input, Limits, message::NewMessage, unit::Entry},
    embedded::connection::{AckMode, Command, Event, SubscribeOptions},
};

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
        options: SubscribeOptions::default(),
        ack_timeout: None,
        selector: None,
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
        options: SubscribeOptions::default(),
        ack_timeout: None,
        selector: None,
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
    assert_eq!(moved.original_destination(), Some("/queue/work"));
    assert_eq!(moved.reason().unwrap().as_str(), "rejected");
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

#[test]
fn messages_written_again_are_the_same_as_before() {
    let mut world = World::new();
    let (a, d) = (world.open(1, "a"), world.open(2, "d"));
    world.subscribe_durable(d, "news", "1").unwrap();
    world
        .ask(d, |token| Command::Unsubscribe {
            subscription: 900,
            token,
        })
        .unwrap();
    world.subscribe_durable(d, "news", "2").unwrap();
    world.send(a, news("both")).unwrap();
    let delivery = world.delivered()[0].1;
    world.nack(d, delivery).unwrap();
    world.send(a, work("gone")).unwrap();
    world
        .send(
            a,
            NewMessage {
                persistent: Some(false),
                ..work("volatile")
            },
        )
        .unwrap();
    world.subscribe(a, 1, queue(), 1).unwrap();
    let gone = world.delivered()[0].1;
    let places: Vec<_> = world
        .core
        .queues
        .iter()
        .flat_map(|(queue, held)| held.messages.keys().map(move |id| (id, *queue)))
        .collect();
    world.ack(a, gone).unwrap();
    let effects = world.core.step(0, Input::Relocate { places });
    let entries = effects.unit.unwrap().entries;
    let written: Vec<_> = entries
        .iter()
        .map(|entry| match entry {
            Entry::Put { message, places } => {
                let places = places
                    .iter()
                    .map(|p| (p.delivery_count, p.backout_count, p.retry_at));
                (
                    String::from_utf8(message.body().to_vec()).unwrap(),
                    places.collect::<Vec<_>>(),
                )
            }
            other => panic!("{other:?}"),
        })
        .collect();
    let places = vec![(0, 0, None), (1, 1, Some(1000))];
    assert_eq!(written, [("both".to_owned(), places)]);
}
