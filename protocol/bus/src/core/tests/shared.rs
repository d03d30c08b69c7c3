//! What subscriptions to topics may want: to be another one, to be shared, and not everything.

use pillarbox_messages::Destination;

use super::{World, news};
use crate::{
    BusError, Lanes, QueueAttributes, QueueDefinition,
    core::{
        Input, Limits,
        durable::{OnLimit, SubscriptionRule},
        message::NewMessage,
    },
    embedded::connection::{AckMode, Command, ConnectionId, SubscribeOptions},
};

const SHARED: SubscribeOptions = SubscribeOptions {
    shared: true,
    no_local: false,
    replace: false,
};
const NO_LOCAL: SubscribeOptions = SubscribeOptions {
    shared: false,
    no_local: true,
    replace: false,
};
const REPLACE: SubscribeOptions = SubscribeOptions {
    shared: false,
    no_local: false,
    replace: true,
};
const USUAL: SubscribeOptions = SubscribeOptions {
    shared: false,
    no_local: false,
    replace: false,
};

/// What is subscribed to: the durable subscription, the topic, and which messages of it.
type What<'a> = (Option<&'a str>, &'a str, Option<&'a str>);

impl World {
    fn unsubscribe(
        &mut self,
        connection: ConnectionId,
        subscription: u64,
    ) -> Result<bool, BusError> {
        self.ask(connection, |token| Command::Unsubscribe {
            subscription,
            token,
        })
    }

    fn subscribe_to(
        &mut self,
        (connection, subscription): (ConnectionId, u64),
        (durable, topic, selector): What<'_>,
        options: SubscribeOptions,
    ) -> Result<bool, BusError> {
        self.ask(connection, |token| Command::Subscribe {
            subscription,
            destination: Destination::topic(topic),
            durable: durable.map(str::to_owned),
            ack: AckMode::Individual,
            prefetch: 1,
            selector: selector.map(|text| text.parse().unwrap()),
            options,
            ack_timeout: None,
            token,
        })
    }
}

fn colored(body: &str, color: &str) -> NewMessage {
    NewMessage {
        headers: vec![("color".to_owned(), color.to_owned())],
        ..news(body)
    }
}

const MINE: What<'_> = (Some("mine"), "news", None);

#[test]
fn e13_another_selector_is_another_subscription_and_takes_its_place_only_if_that_is_said() {
    let mut world = World::new();
    let (a, d) = (world.open(1, "a"), world.open(2, "d"));
    let red: What<'_> = (Some("mine"), "news", Some("color = 'red'"));
    world.subscribe_to((d, 1), red, USUAL).unwrap();
    world.lose(d);
    world.send(a, colored("1", "red")).unwrap();
    world.send(a, colored("2", "blue")).unwrap();
    assert_eq!(world.core.held_messages(), 1);
    world.restart();
    let (a, d) = (world.open(1, "a"), world.open(2, "d"));
    for other in [
        MINE,
        (Some("mine"), "client.other", red.2),
        (Some("mine"), "news", Some("color = 'blue'")),
    ] {
        let refused = world.subscribe_to((d, 1), other, USUAL).unwrap_err();
        assert_eq!(refused.name(), "SUBSCRIPTION-MISMATCH", "{refused}");
    }
    let refused = world.subscribe_to((d, 1), red, NO_LOCAL).unwrap_err();
    assert_eq!(refused.name(), "SUBSCRIPTION-MISMATCH", "{refused}");
    assert_eq!(world.core.held_messages(), 1, "nothing is lost");
    world.subscribe_to((d, 1), red, REPLACE).unwrap();
    assert_eq!(world.bodies(), ["1"], "it is the same");
    let in_use = world.subscribe_to((d, 2), MINE, REPLACE).unwrap_err();
    assert_eq!(in_use.name(), "SUBSCRIPTION-IN-USE");
    world.lose(d);
    let d = world.open(3, "d");
    world.subscribe_to((d, 1), MINE, REPLACE).unwrap();
    assert_eq!(world.core.held_messages(), 0);
    world.send(a, colored("3", "blue")).unwrap();
    assert_eq!(world.bodies(), ["3"]);
    assert_eq!(world.core.durable_count(), 1);
}

#[test]
fn what_the_settings_have_registered_nobody_replaces() {
    let mut world = World::new();
    let topic = Destination::topic("news");
    world.registered = vec![("d".to_owned(), "mine".to_owned(), topic)];
    world.restart();
    let d = world.open(2, "d");
    let other = (Some("mine"), "client.other", None);
    let refused = world.subscribe_to((d, 1), other, REPLACE).unwrap_err();
    assert!(refused.to_string().contains("settings"), "{refused}");
    world.subscribe_to((d, 1), MINE, USUAL).unwrap();
}

#[test]
fn b42_what_is_sent_between_a_restart_and_the_return_of_a_subscriber_is_there() {
    let mut world = World::new();
    let (a, d) = (world.open(1, "a"), world.open(2, "d"));
    world.subscribe_to((d, 1), MINE, USUAL).unwrap();
    world
        .subscribe_to(
            (d, 2),
            (Some("other"), "news", Some("color = 'red'")),
            USUAL,
        )
        .unwrap();
    world.lose(d);
    world.send(a, news("before")).unwrap();
    world.restart();
    let a = world.open(1, "a");
    world.send(a, colored("between", "red")).unwrap();
    let d = world.open(2, "d");
    world
        .subscribe_to(
            (d, 2),
            (Some("other"), "news", Some("color = 'red'")),
            USUAL,
        )
        .unwrap();
    assert_eq!(world.bodies(), ["between"]);
    world.subscribe_to((d, 1), MINE, USUAL).unwrap();
    let first = world.delivered();
    assert_eq!(first[0].0, "before");
    world.ack(d, first[0].1).unwrap();
    assert_eq!(world.bodies(), ["between"]);
}

#[test]
fn several_consumers_of_a_shared_subscription_take_one_message_each() {
    let mut world = World::new();
    let consumers = [world.open(1, "a"), world.open(2, "b"), world.open(3, "")];
    for consumer in consumers {
        world.subscribe_to((consumer, 1), MINE, SHARED).unwrap();
    }
    for body in ["1", "2", "3", "4"] {
        world.send(consumers[0], news(body)).unwrap();
    }
    let mut first = Vec::new();
    for consumer in consumers {
        first.extend(world.delivered_to(consumer).into_iter().map(|it| it.0));
    }
    first.sort_unstable();
    assert_eq!(first, ["1", "2", "3"]);
    for consumer in consumers {
        world.lose(consumer);
    }
    world.restart();
    let d = world.open(4, "d");
    assert_eq!(world.core.held_messages(), 4);
    world.subscribe_to((d, 1), MINE, SHARED).unwrap();
    assert_eq!(world.bodies(), ["1"]);
}

#[test]
fn nobody_takes_a_shared_subscription_for_his_own_or_the_reverse() {
    let mut world = World::new();
    let (a, b) = (world.open(1, "a"), world.open(2, "b"));
    world.subscribe_to((a, 1), MINE, SHARED).unwrap();
    let own = world.subscribe_to((b, 1), MINE, USUAL).unwrap_err();
    assert_eq!(own.name(), "SUBSCRIPTION-MISMATCH");
    assert!(own.to_string().contains("is shared, not its own"), "{own}");
    let other = (Some("other"), "news", None);
    world.subscribe_to((b, 1), other, USUAL).unwrap();
    let shared = world.subscribe_to((b, 2), other, SHARED).unwrap_err();
    assert!(
        shared.to_string().contains("is its own, not shared"),
        "{shared}"
    );
    let plain = world.subscribe_to((a, 2), (None, "news", None), SHARED);
    assert_eq!(plain.unwrap_err().name(), "INVALID");
    let cancel = |name: &str| {
        let name = name.to_owned();
        |token| Command::CancelDurable { name, token }
    };
    let not_his = world.ask(b, cancel("mine")).unwrap_err();
    assert_eq!(not_his.name(), "INVALID");
    let c = world.open(3, "c");
    world.subscribe_to((c, 1), MINE, SHARED).unwrap();
    let in_use = world.ask(a, cancel("mine")).unwrap_err();
    assert_eq!(in_use.name(), "SUBSCRIPTION-IN-USE");
    world.lose(c);
    world.ask(a, cancel("mine")).unwrap();
    assert_eq!(world.core.durable_count(), 1);
}

#[test]
fn nobody_shuts_another_client_out_of_its_own_subscription_by_sharing_its_name() {
    let mut world = World::new();
    let (a, b) = (world.open(1, "a"), world.open(2, "b"));
    world.subscribe_to((a, 1), MINE, USUAL).unwrap();
    world.lose(a);
    let shared = world.subscribe_to((b, 1), MINE, SHARED).unwrap_err();
    assert_eq!(shared.name(), "SUBSCRIPTION-MISMATCH", "{shared}");
    world.send(b, news("1")).unwrap();
    let a = world.open(3, "a");
    world.subscribe_to((a, 1), MINE, USUAL).unwrap();
    assert_eq!(world.bodies(), ["1"]);
}

#[test]
fn who_has_its_own_subscription_has_it_though_another_of_the_name_is_shared() {
    let mut world = World::new();
    let b = world.open(2, "b");
    world.subscribe_to((b, 1), MINE, SHARED).unwrap();
    let topic = Destination::topic("news");
    world.registered = vec![("a".to_owned(), "mine".to_owned(), topic)];
    world.restart();
    let a = world.open(1, "a");
    world.subscribe_to((a, 1), MINE, USUAL).unwrap();
    world.send(a, news("1")).unwrap();
    assert_eq!(world.bodies(), ["1"]);
}

#[test]
fn a_refused_replacement_takes_nothing() {
    let mut world = World::new();
    let (a, d) = (world.open(1, "a"), world.open(2, "d"));
    world.subscribe_to((d, 1), MINE, USUAL).unwrap();
    world.lose(d);
    world.send(a, news("kept")).unwrap();
    let d = world.open(3, "d");
    let long = format!("color = '{}'", "x".repeat(1_020));
    for (topic, selector, name) in [
        ("nowhere", None, "NO-QUEUE"),
        ("news", Some(long.as_str()), "LIMIT"),
    ] {
        let other = (Some("mine"), topic, selector);
        let refused = world.subscribe_to((d, 1), other, REPLACE).unwrap_err();
        assert_eq!(refused.name(), name, "{refused}");
        assert_eq!(world.core.held_messages(), 1);
    }
    world.step(Input::Room(false));
    let other = (Some("mine"), "news", Some("color = 'red'"));
    let full = world.subscribe_to((d, 1), other, REPLACE).unwrap_err();
    assert_eq!(full.name(), "NO-SPACE", "{full}");
    world.subscribe_to((d, 1), MINE, USUAL).unwrap();
    assert_eq!(world.bodies(), ["kept"]);
}

#[test]
fn a_replacement_needs_no_place_beside_what_it_replaces() {
    let mut world = World::with_limits(Limits {
        durables: 1,
        ..Limits::default()
    });
    let d = world.open(2, "d");
    world.subscribe_to((d, 1), MINE, USUAL).unwrap();
    world.lose(d);
    let d = world.open(3, "d");
    let other = (Some("mine"), "news", Some("color = 'red'"));
    world.subscribe_to((d, 1), other, REPLACE).unwrap();
    assert_eq!(world.core.durable_count(), 1);
}

#[test]
fn a_selector_that_is_written_down_is_short() {
    let mut world = World::new();
    let d = world.open(2, "d");
    let of = |length: usize| format!("color = '{}'", "x".repeat(length - 10));
    let (fits, long) = (of(1_024), of(1_025));
    assert_eq!(fits.len(), 1_024);
    let refused = world.subscribe_to((d, 1), (Some("mine"), "news", Some(&long)), USUAL);
    assert_eq!(refused.unwrap_err().name(), "LIMIT");
    world
        .subscribe_to((d, 1), (None, "news", Some(&long)), USUAL)
        .unwrap();
    world
        .subscribe_to((d, 2), (Some("mine"), "news", Some(&fits)), USUAL)
        .unwrap();
}

#[test]
fn who_cancels_its_own_again_does_not_cancel_what_others_share() {
    let mut world = World::new();
    let b = world.open(2, "b");
    world.subscribe_to((b, 1), MINE, SHARED).unwrap();
    world.lose(b);
    let topic = Destination::topic("news");
    world.registered = vec![("a".to_owned(), "mine".to_owned(), topic)];
    world.restart();
    let a = world.open(1, "a");
    world.send(a, news("1")).unwrap();
    let cancel = |token| Command::CancelDurable {
        name: "mine".to_owned(),
        token,
    };
    world.ask(a, cancel).unwrap();
    let again = world.ask(a, cancel).unwrap_err();
    assert_eq!(again.name(), "INVALID", "{again}");
    assert_eq!(world.core.held_messages(), 1);
    let b = world.open(3, "b");
    world.subscribe_to((b, 1), MINE, SHARED).unwrap();
    world.unsubscribe(b, 1).unwrap();
    world.ask(b, cancel).unwrap();
    assert_eq!(world.core.durable_count(), 0);
}

#[test]
fn who_joins_a_subscription_waits_until_it_is_on_the_disk() {
    let mut world = World::new();
    let (a, b) = (world.open(1, "a"), world.open(2, "b"));
    world.subscribe_to((a, 1), MINE, SHARED).unwrap();
    let effects = world.core.step(
        0,
        Input::Command {
            connection: b,
            command: Command::Subscribe {
                subscription: 1,
                destination: Destination::topic("news"),
                durable: Some("mine".to_owned()),
                ack: AckMode::Individual,
                prefetch: 1,
                selector: None,
                options: SHARED,
                ack_timeout: None,
                token: 999,
            },
        },
    );
    assert!(effects.unit.is_none());
    let last = world.core.next_unit - 1;
    assert!(last > 0);
    let after: Vec<u64> = effects.events.iter().map(|it| it.after).collect();
    assert_eq!(after, [last]);
}

#[test]
fn a_topics_name_may_be_a_queues_with_lanes() {
    let mut world = World::build(
        Limits::default(),
        &[QueueDefinition {
            name: "news".to_owned(),
            attributes: QueueAttributes {
                lanes: Lanes::Key,
                ..QueueAttributes::plain()
            },
            drain: false,
        }],
    );
    let a = world.open(1, "a");
    world
        .subscribe_to((a, 1), (None, "news", Some("color = 'red'")), USUAL)
        .unwrap();
}

#[test]
fn lanes_keep_the_order_of_each_group_among_those_who_share() {
    let mut world = World::new();
    world.rules = vec![SubscriptionRule {
        name: Some("mine".to_owned()),
        lanes: Some(Lanes::Key),
        ..SubscriptionRule::default()
    }];
    world.restart();
    let (a, b) = (world.open(1, "a"), world.open(2, "b"));
    world.subscribe_to((a, 1), MINE, SHARED).unwrap();
    world.subscribe_to((b, 1), MINE, SHARED).unwrap();
    let of = |group: &str, body: &str| NewMessage {
        group: Some(group.to_owned()),
        ..news(body)
    };
    for (group, body) in [("x", "x1"), ("x", "x2"), ("y", "y1")] {
        world.send(a, of(group, body)).unwrap();
    }
    let mut first = world.bodies();
    first.sort_unstable();
    assert_eq!(first, ["x1", "y1"], "x2 waits for x1");
    world.restart();
    let a = world.open(1, "a");
    world.subscribe_to((a, 1), MINE, SHARED).unwrap();
    assert_eq!(world.bodies(), ["x1"]);
}

#[test]
fn a_topics_subscriptions_get_what_they_select_and_nothing_of_their_own_if_they_want_so() {
    let mut world = World::new();
    let (a, b, d) = (world.open(1, "a"), world.open(2, "b"), world.open(3, "d"));
    let red = Some("color = 'red'");
    world
        .subscribe_to((a, 1), (None, "news", red), NO_LOCAL)
        .unwrap();
    world
        .subscribe_to((b, 1), (None, "news", red), USUAL)
        .unwrap();
    world
        .subscribe_to((d, 1), (Some("mine"), "news", None), NO_LOCAL)
        .unwrap();
    world.send(a, colored("1", "red")).unwrap();
    world.send(a, colored("2", "blue")).unwrap();
    world.send(d, colored("3", "red")).unwrap();
    assert_eq!(world.core.held_messages(), 1 + 2 + 2);
    for (connection, expected) in [(a, ["3", ""]), (b, ["1", "3"]), (d, ["1", "2"])] {
        for body in expected.into_iter().filter(|body| !body.is_empty()) {
            let came = world.delivered_to(connection);
            assert_eq!(came[0].0, body);
            world.ack(connection, came[0].1).unwrap();
        }
        assert!(world.delivered_to(connection).is_empty());
    }
    assert_eq!(world.core.held_messages(), 0);
    let queue = world.ask(a, |token| Command::Subscribe {
        subscription: 2,
        destination: super::queue(),
        durable: None,
        ack: AckMode::Individual,
        prefetch: 1,
        selector: None,
        options: NO_LOCAL,
        ack_timeout: None,
        token,
    });
    assert_eq!(queue.unwrap_err().name(), "INVALID");
}

#[test]
fn a_full_subscription_refuses_nothing_that_it_does_not_want() {
    let mut world = World::new();
    world.rules = vec![SubscriptionRule {
        max_messages: Some(1),
        on_limit: Some(OnLimit::RejectPublish),
        ..SubscriptionRule::default()
    }];
    world.restart();
    let (a, d) = (world.open(1, "a"), world.open(2, "d"));
    let red = (Some("red"), "news", Some("color = 'red'"));
    world.subscribe_to((d, 1), red, USUAL).unwrap();
    let others = (Some("others"), "news", Some("color = 'green'"));
    world.subscribe_to((d, 2), others, NO_LOCAL).unwrap();
    world.send(a, colored("1", "red")).unwrap();
    world.send(a, colored("2", "green")).unwrap();
    world.send(a, colored("3", "blue")).unwrap();
    world.send(d, colored("4", "green")).unwrap();
    for (sender, color) in [(a, "red"), (d, "red"), (a, "green")] {
        let refused = world.send(sender, colored("5", color)).unwrap_err();
        assert_eq!(refused.name(), "SUBSCRIPTION-FULL", "{refused}");
    }
    assert_eq!(world.core.held_messages(), 2);
}

#[test]
fn copies_that_nobody_wants_need_no_room() {
    let mut world = World::with_limits(Limits {
        capacity_bytes: 3_000,
        ..Limits::default()
    });
    world.rules = vec![SubscriptionRule {
        max_bytes: Some(3_000),
        ..SubscriptionRule::default()
    }];
    world.restart();
    let (a, d) = (world.open(1, "a"), world.open(2, "d"));
    for (number, name) in [(1, "one"), (2, "two"), (3, "three"), (4, "four")] {
        let red = (Some(name), "news", Some("color = 'red'"));
        world.subscribe_to((d, number), red, USUAL).unwrap();
    }
    world.send(a, colored(&"x".repeat(1_000), "blue")).unwrap();
    let refused = world.send(a, colored(&"x".repeat(1_000), "red"));
    assert_eq!(refused.unwrap_err().name(), "NO-SPACE");
}
