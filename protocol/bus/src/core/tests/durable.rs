//! Durable subscriptions: their limits, what they miss, and clients that never come back.

use std::collections::BTreeSet;

use pillarbox_messages::Destination;

use super::{World, message, news, work};
use crate::{
    BusError, ClientTemplates,
    core::{
        Core, Input, Limits, Wanted,
        durable::{Gap, OnLimit, SubscriptionRule},
        message::NewMessage,
        overflow::Trouble,
        tests::invariants,
    },
    embedded::connection::{AckMode, Command, ConnectionId, DeliveryId, Event, SubscribeOptions},
};

/// How many were missed, and since when.
type Missed = Option<(u64, i64)>;

const DAY: i64 = 86_400_000;

/// What is said about the subscription `mine`.
fn mine(max_messages: u64, on_limit: OnLimit) -> SubscriptionRule {
    SubscriptionRule {
        name: Some("mine".to_owned()),
        max_messages: Some(max_messages),
        on_limit: Some(on_limit),
        ..SubscriptionRule::default()
    }
}

/// With the durable subscription `mine` of client `d`, who is away, and `a` who sends.
fn world(rule: SubscriptionRule) -> (World, ConnectionId) {
    let mut world = World::new();
    world.rules = vec![rule];
    world.restart();
    let (a, d) = (world.open(1, "a"), world.open(2, "d"));
    world.subscribe_durable(d, "news", "mine").unwrap();
    world.lose(d);
    (world, a)
}

fn come_back(world: &mut World) -> ConnectionId {
    let d = world.open(u64::try_from(world.now).unwrap() + 1_000, "d");
    world.subscribe_durable(d, "news", "mine").unwrap();
    d
}

/// The deliveries since the last call: body and what was missed before it.
fn told(world: &mut World) -> Vec<(String, DeliveryId, Missed)> {
    let mut deliveries = Vec::new();
    world.told.retain(|(_, event)| {
        let Event::Deliver {
            delivery,
            message,
            gap,
            ..
        } = event
        else {
            return true;
        };
        let body = String::from_utf8(message.body().to_vec()).unwrap();
        let gap = gap.map(|Gap { count, since }| (count, since));
        deliveries.push((body, *delivery, gap));
        false
    });
    deliveries
}

/// Bodies and gaps only.
fn came(world: &mut World) -> Vec<(String, Missed)> {
    told(world)
        .into_iter()
        .map(|(body, _, gap)| (body, gap))
        .collect()
}

fn send_all(world: &mut World, a: ConnectionId, bodies: &[&str]) {
    for body in bodies {
        world.send(a, news(body)).unwrap();
    }
}

fn body(text: &str, gap: Missed) -> (String, Missed) {
    (text.to_owned(), gap)
}

#[test]
fn what_is_too_much_is_left_out_and_the_gap_told_in_its_place() {
    let (mut world, a) = world(mine(2, OnLimit::Gap));
    world.now = 10;
    send_all(&mut world, a, &["1", "2", "3", "4"]);
    assert_eq!(world.core.counters().missed, 2);
    world.now = 20;
    world.restart();
    let a = world.open(5, "a");
    let d = come_back(&mut world);
    let first = told(&mut world);
    assert_eq!(
        first.iter().map(|it| it.2).collect::<Vec<_>>(),
        [None, None],
        "nothing was missed before these"
    );
    world.ack(d, first[0].1).unwrap();
    world.now = 30;
    send_all(&mut world, a, &["5", "6"]);
    assert_eq!(came(&mut world), [body("5", Some((2, 10)))]);
    assert_eq!(world.core.counters().missed, 1, "6");
    // Until it is acknowledged, it is told again; also after a restart.
    world.restart();
    come_back(&mut world);
    let again = told(&mut world);
    let gaps: Vec<_> = again.iter().map(|it| (it.0.as_str(), it.2)).collect();
    assert_eq!(gaps, [("2", None), ("5", Some((2, 10)))]);
}

#[test]
fn a_gap_is_told_with_the_first_message_that_is_kept_again() {
    let (mut world, a) = world(mine(1, OnLimit::Gap));
    send_all(&mut world, a, &["1", "2"]);
    let d = come_back(&mut world);
    let first = told(&mut world)[0].1;
    world.now = 7;
    send_all(&mut world, a, &["3"]);
    world.ack(d, first).unwrap();
    assert!(
        told(&mut world).is_empty(),
        "there is nothing to tell it with yet"
    );
    send_all(&mut world, a, &["4"]);
    let told = told(&mut world);
    assert_eq!((told[0].0.as_str(), told[0].2), ("4", Some((2, 0))));
    world.ack(d, told[0].1).unwrap();
    send_all(&mut world, a, &["5"]);
    assert_eq!(came(&mut world), [body("5", None)]);
}

#[test]
fn the_oldest_make_room_and_are_counted() {
    let (mut world, a) = world(mine(2, OnLimit::DropOldest));
    send_all(&mut world, a, &["1", "2", "3", "4"]);
    world.restart();
    let d = come_back(&mut world);
    let first = told(&mut world);
    let seen: Vec<_> = first.iter().map(|it| (it.0.as_str(), it.2)).collect();
    assert_eq!(seen, [("3", Some((2, 0))), ("4", None)]);
    // Both are in hand, and nobody takes them away: what comes now is missed.
    let a = world.open(5, "a");
    world.now = 3;
    send_all(&mut world, a, &["5"]);
    world.ack(d, first[0].1).unwrap();
    send_all(&mut world, a, &["6"]);
    assert_eq!(came(&mut world), [body("6", Some((1, 3)))]);
}

/// A gap is told until somebody has dealt with the message that tells it: whatever becomes of that one otherwise.
#[test]
fn a_gap_outlives_the_message_that_would_have_told_it() {
    let (mut world, a) = world(mine(2, OnLimit::DropOldest));
    send_all(&mut world, a, &["1", "2"]);
    let brief = NewMessage {
        expires_at: Some(100),
        ..news("3")
    };
    world.send(a, brief.clone()).unwrap();
    world.send(a, brief).unwrap();
    world.now = 100;
    world.send(a, news("5")).unwrap();
    world.restart();
    come_back(&mut world);
    assert_eq!(came(&mut world), [body("5", Some((2, 0)))]);
}

#[test]
fn a_gap_before_a_message_that_no_restart_outlives_is_not_lost_with_it() {
    let (mut world, a) = world(mine(1, OnLimit::Gap));
    send_all(&mut world, a, &["1", "2"]);
    let d = come_back(&mut world);
    let first = told(&mut world)[0].1;
    world.ack(d, first).unwrap();
    let volatile = |body| NewMessage {
        persistent: Some(false),
        ..news(body)
    };
    world.send(a, volatile("3")).unwrap();
    assert_eq!(came(&mut world), [body("3", Some((1, 0)))]);
    world.restart();
    let a = world.open(5, "a");
    let d = come_back(&mut world);
    world.send(a, volatile("4")).unwrap();
    let told = told(&mut world);
    assert_eq!((told[0].0.as_str(), told[0].2), ("4", Some((1, 0))));
    world.ack(d, told[0].1).unwrap();
    world.restart();
    let a = world.open(6, "a");
    come_back(&mut world);
    world.send(a, news("5")).unwrap();
    assert_eq!(came(&mut world), [body("5", None)]);
}

#[test]
fn a_full_subscription_that_is_to_end_ends() {
    let (mut world, a) = world(mine(2, OnLimit::Cancel));
    send_all(&mut world, a, &["1", "2", "3"]);
    assert_eq!(world.core.held_messages(), 0);
    assert_eq!(world.core.durable_count(), 0);
    assert_eq!(world.core.counters().cancelled_full, 1);
    assert_eq!(world.troubles.len(), 1);
    let d = come_back(&mut world);
    assert_eq!(told(&mut world), []);
    // Also while its client is there, who is told.
    for _ in 0..3 {
        world.send(a, news("x")).unwrap();
    }
    let closed = world.told.iter().any(|(to, event)| {
        let slow = |reason: &BusError| reason.name() == "SLOW-CONSUMER";
        *to == d && matches!(event, Event::SubscriptionClosed { reason, .. } if slow(reason))
    });
    assert!(closed, "{:?}", world.told);
}

#[test]
fn senders_are_refused_rather_than_that_anything_is_missed() {
    let (mut world, a) = world(mine(2, OnLimit::RejectPublish));
    send_all(&mut world, a, &["1"]);
    let transaction = 1;
    world
        .ask(a, |token| Command::Begin { transaction, token })
        .unwrap();
    for body in ["2", "3"] {
        let message = news(body);
        world
            .ask(a, |token| Command::Send {
                message,
                transaction: Some(transaction),
                token,
            })
            .unwrap();
    }
    let together = world.ask(a, |token| Command::Commit { transaction, token });
    assert_eq!(together.unwrap_err().name(), "SUBSCRIPTION-FULL");
    assert_eq!(world.core.held_messages(), 1, "all or nothing");
    send_all(&mut world, a, &["2"]);
    let refused = world.send(a, news("3")).unwrap_err();
    assert!(
        matches!(&refused, BusError::SubscriptionFull { client_id, name, limit }
            if (client_id.as_str(), name.as_str(), limit.as_str()) == ("d", "mine", "2 messages")),
        "{refused}"
    );
    world.send(a, work("others are not refused")).unwrap();
    let d = come_back(&mut world);
    let first = told(&mut world)[0].1;
    world.ack(d, first).unwrap();
    send_all(&mut world, a, &["3"]);
    assert_eq!(came(&mut world), [body("3", None)]);
    assert_eq!(world.troubles.len(), 1);
}

#[test]
fn bytes_are_limited_to_a_tenth_of_the_space_if_nothing_else_is_said() {
    let mut world = World::with_limits(Limits {
        capacity_bytes: 100_000,
        ..Limits::default()
    });
    let (a, d) = (world.open(1, "a"), world.open(2, "d"));
    world.subscribe_durable(d, "news", "mine").unwrap();
    world.lose(d);
    for _ in 0..20 {
        world.send(a, news(&"x".repeat(1_000))).unwrap();
    }
    let (kept, bytes) = (world.core.held_messages() as u64, world.core.held_bytes());
    assert!(kept > 1 && bytes <= 10_000);
    assert!(bytes + bytes / kept > 10_000, "one more would have fitted");
    assert_eq!(world.core.counters().missed, 20 - kept);
    let oversized = "x".repeat(10_000);
    world.send(a, news(&oversized)).unwrap();
    assert_eq!(world.core.held_messages() as u64, kept);
}

#[test]
fn limits_are_remembered_and_follow_the_settings() {
    let (mut world, a) = world(mine(2, OnLimit::Gap));
    send_all(&mut world, a, &["1", "2", "3"]);
    world.rules = vec![mine(4, OnLimit::Gap)];
    world.restart();
    let a = world.open(5, "a");
    send_all(&mut world, a, &["4", "5", "6"]);
    assert_eq!(world.core.held_messages(), 4);
    come_back(&mut world);
    let came = came(&mut world);
    assert_eq!(came[2], body("4", Some((1, 0))));
    assert_eq!(came.len(), 4);
}

/// As [`World::open`], for one of many.
fn abandon(core: &mut Core, number: u64, now: i64) {
    let connection = ConnectionId(number);
    core.step(
        now,
        Input::Open {
            connection,
            client_id: format!("random-{number}"),
            in_process: false,
        },
    );
    core.step(
        now,
        Input::Command {
            connection,
            command: Command::Subscribe {
                options: SubscribeOptions::default(),
                subscription: 1,
                destination: Destination::topic("news"),
                durable: Some("mine".to_owned()),
                ack: AckMode::Individual,
                prefetch: 1,
                ack_timeout: None,
                selector: None,
                token: 1,
            },
        },
    );
    core.step(
        now,
        Input::Lost {
            connection,
            reason: BusError::Closed,
        },
    );
}

fn started(limits: Limits) -> Core {
    let mut core = Core::new(limits, ClientTemplates::none());
    let destinations = [Destination::topic("news"), Destination::queue("work")];
    let wanted = Wanted {
        destinations: &destinations,
        ..Wanted::default()
    };
    core.start(0, &wanted).unwrap();
    core
}

fn publish(core: &mut Core, now: i64, to: Destination, size: usize) -> Result<(), BusError> {
    let command = Command::Send {
        message: message(to, &"x".repeat(size)),
        transaction: None,
        token: 7,
    };
    let connection = ConnectionId(1_000_000);
    let effects = core.step(
        now,
        Input::Command {
            connection,
            command,
        },
    );
    let failed = effects.events.into_iter().find_map(|it| match it.event {
        Event::Failed { error, .. } => Some(error),
        _ => None,
    });
    failed.map_or(Ok(()), Err)
}

#[test]
fn b43_ten_thousand_abandoned_subscriptions_take_bounded_room_and_go() {
    let capacity = 64 << 20;
    let mut core = started(Limits {
        capacity_bytes: capacity,
        ..Limits::default()
    });
    core.step(
        0,
        Input::Open {
            connection: ConnectionId(1_000_000),
            client_id: "sender".to_owned(),
            in_process: false,
        },
    );
    for number in 1..=10_000 {
        abandon(&mut core, number, 0);
    }
    assert_eq!(core.durable_count(), 10_000);
    abandon(&mut core, 10_001, 0);
    assert_eq!(
        core.durable_count(),
        10_000,
        "there is a cap on their number"
    );
    for _ in 0..12 {
        publish(&mut core, 1, Destination::topic("news"), 1_000).unwrap();
        assert!(core.held_bytes() <= capacity / 2);
    }
    let counters = core.counters();
    assert_eq!(
        core.held_messages() as u64 + counters.missed,
        12 * 10_000,
        "whatever is not kept is counted"
    );
    assert!(counters.missed > 0);
    // Others have the other half.
    for _ in 0..100 {
        publish(&mut core, 1, Destination::queue("work"), 100_000).unwrap();
    }
    invariants::check(&core);
    core.step(7 * DAY, Input::Tick);
    assert_eq!(core.durable_count(), 0);
    assert_eq!(core.held_messages(), 100);
    assert_eq!(core.counters().abandoned, 10_000);
    invariants::check(&core);
}

#[test]
fn a_client_that_stays_away_loses_its_subscription_and_one_that_comes_does_not() {
    let (mut world, a) = world(SubscriptionRule::default());
    send_all(&mut world, a, &["1"]);
    world.pass(4 * DAY);
    // A restart is no return, and takes no time off.
    world.restart();
    world.pass(2 * DAY);
    let d = come_back(&mut world);
    assert_eq!(came(&mut world), [body("1", None)]);
    world.pass(30 * DAY);
    assert_eq!(world.core.durable_count(), 1, "its client is there");
    world.lose(d);
    world.pass(7 * DAY - 1);
    assert_eq!(world.core.durable_count(), 1);
    assert_eq!(world.core.next_deadline(), Some(world.now + 1));
    world.pass(1);
    assert_eq!(world.core.durable_count(), 0);
    assert_eq!(world.core.held_messages(), 0);
    let [trouble] = &world.troubles[..] else {
        panic!("{:?}", world.troubles);
    };
    assert_eq!(trouble.what, Trouble::Abandoned { away_ms: 7 * DAY });
    assert_eq!((trouble.messages, trouble.name.as_str()), (1, "mine"));
    world.restart();
    assert_eq!(world.core.durable_count(), 0);
}

#[test]
fn a_registered_subscription_waits_for_ever() {
    let mut world = World::new();
    let topic = Destination::topic("news");
    world.registered = vec![("d".to_owned(), "mine".to_owned(), topic)];
    world.restart();
    world.pass(3_650 * DAY);
    assert_eq!(world.core.durable_count(), 1);
    // Nobody registers it any more: it has a week from then on.
    world.registered.clear();
    world.restart();
    world.pass(7 * DAY - 1);
    assert_eq!(world.core.durable_count(), 1);
    world.pass(1);
    assert_eq!(world.core.durable_count(), 0);
}

#[test]
fn people_are_told_once_an_hour_that_a_subscription_is_full() {
    let (mut world, a) = world(mine(1, OnLimit::Gap));
    send_all(&mut world, a, &["1", "2", "3"]);
    world.pass(3_599_999);
    send_all(&mut world, a, &["4"]);
    assert_eq!(world.troubles.len(), 1);
    world.pass(1);
    send_all(&mut world, a, &["5"]);
    let missed: Vec<u64> = world
        .troubles
        .iter()
        .map(|trouble| match &trouble.what {
            Trouble::Full {
                missed,
                limit,
                away_since,
                ..
            } => {
                assert_eq!((limit.as_str(), *away_since), ("1 message", Some(0)));
                *missed
            }
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(missed, [0, 3]);
}

/// The client of `mine` and another one are away, and hold `more` messages of their own share together.
fn two_away(on_limit: OnLimit) -> (World, ConnectionId) {
    let mut world = World::with_limits(Limits {
        capacity_bytes: 20_000,
        ..Limits::default()
    });
    world.rules = vec![SubscriptionRule {
        max_bytes: Some(1 << 30),
        on_limit: Some(on_limit),
        ..SubscriptionRule::default()
    }];
    world.restart();
    let a = world.open(1, "a");
    for (number, client) in [(2, "d"), (3, "e")] {
        let away = world.open(number, client);
        world.subscribe_durable(away, "news", "mine").unwrap();
        world.lose(away);
    }
    (world, a)
}

#[test]
fn what_all_who_are_away_share_is_not_promised_twice() {
    let (mut world, a) = two_away(OnLimit::RejectPublish);
    let sent = (0..100)
        .filter(|_| world.send(a, news(&"x".repeat(1_000))).is_ok())
        .count();
    assert!(sent > 2);
    assert_eq!(
        world.core.held_messages(),
        2 * sent,
        "each kept it, or nobody"
    );
    assert_eq!(world.core.counters().missed, 0);
}

#[test]
fn nothing_is_dropped_for_a_message_that_finds_no_room_all_the_same() {
    let rule = SubscriptionRule {
        max_bytes: Some(5_000),
        ..mine(100, OnLimit::DropOldest)
    };
    let (mut world, a) = world(rule);
    let large = "large".repeat(300);
    send_all(&mut world, a, &[&large]);
    send_all(&mut world, a, &["x"; 9]);
    come_back(&mut world);
    assert_eq!(came(&mut world).len(), 10, "in hand");
    send_all(&mut world, a, &["free"]);
    send_all(&mut world, a, &[&large]);
    assert_eq!(world.core.held_messages(), 11, "only the last is missed");
    assert_eq!(world.core.counters().missed, 1);
}

#[test]
fn while_the_bus_was_away_nobody_could_come_back() {
    let (mut world, a) = world(SubscriptionRule::default());
    send_all(&mut world, a, &["1"]);
    world.now += 30 * DAY;
    world.restart();
    assert_eq!(world.core.durable_count(), 1);
    world.pass(DAY - 1);
    assert_eq!(world.core.durable_count(), 1, "there is a day to come back");
    world.pass(1);
    assert_eq!(world.core.durable_count(), 0);
}

#[test]
fn no_two_subscriptions_have_one_name_where_they_are_taken_for_queues() {
    let mut world = World::new();
    let pairs = [("a", "b.c"), ("a.b", "c"), ("a%2Eb", "c"), ("%", ".")];
    for (number, (client, name)) in (1..).zip(pairs) {
        let connection = world.open(number, client);
        world.subscribe_durable(connection, "news", name).unwrap();
    }
    let mut names = BTreeSet::new();
    for (client, name) in pairs {
        let id = world.core.directory.durable(client, name).unwrap();
        let shown = world.core.name_of(id);
        let bare = shown.strip_prefix("/queue/").unwrap();
        assert_eq!(world.core.subscription_named(bare), Some(id), "{shown}");
        names.insert(shown);
    }
    assert_eq!(names.len(), pairs.len());
    assert_eq!(world.core.subscription_named("~sub.a%2eb.c"), None);
}

#[test]
fn e17_what_no_registered_subscription_of_a_durable_topic_gets_goes_to_the_error_queue() {
    let mut world = World::new();
    world.durable_topics = vec![Destination::topic("alarms")];
    world.restart();
    let (a, b, d) = (world.open(1, "a"), world.open(2, "b"), world.open(3, "d"));
    let alarm = |body: &str| message(Destination::topic("alarms"), body);
    assert_eq!(
        world.send(a, news("to a topic of the usual kind")),
        Ok(false)
    );
    assert_eq!(world.core.held_messages(), 0);
    world
        .subscribe(b, 1, Destination::topic("alarms"), 9)
        .unwrap();
    assert_eq!(world.send(a, alarm("1")), Ok(true), "and says so");
    assert_eq!(world.bodies(), ["1"], "who listens hears it nevertheless");
    assert_eq!(world.core.counters().unroutable, 2);
    world.restart();
    let (a, d) = (world.open(1, "a"), {
        world.lose(d);
        world.open(3, "d")
    });
    world
        .subscribe(a, 1, Destination::queue("~error"), 9)
        .unwrap();
    let moved = world.delivered_messages();
    assert_eq!(moved[0].reason().map(|it| it.as_str()), Some("unroutable"));
    assert_eq!(moved[0].original_destination(), Some("/topic/alarms"));
    world.subscribe_durable(d, "alarms", "mine").unwrap();
    world.lose(d);
    assert_eq!(world.send(a, alarm("2")), Ok(false));
    assert_eq!(world.bodies(), Vec::<String>::new());
    let d = world.open(4, "d");
    world.subscribe_durable(d, "alarms", "mine").unwrap();
    assert_eq!(world.bodies(), ["2"]);
}

#[test]
fn e15_a_subscriber_that_never_returns_fills_nothing_and_holds_up_nobody() {
    let mut world = World::with_limits(Limits {
        capacity_bytes: 100_000,
        ..Limits::default()
    });
    let (a, b, d) = (world.open(1, "a"), world.open(2, "b"), world.open(3, "d"));
    world.subscribe_durable(d, "news", "gone").unwrap();
    world.lose(d);
    world.subscribe_durable(b, "news", "there").unwrap();
    for round in 0..500 {
        world.send(a, news(&"x".repeat(1_000))).unwrap();
        world.send(a, work("others' work")).unwrap();
        let came = world.delivered_to(b);
        assert_eq!(came.len(), 1, "round {round}");
        world.ack(b, came[0].1).unwrap();
        assert!(world.core.away_bytes <= 10_000);
        if round == 0 {
            world.subscribe(a, 1, super::queue(), 1).unwrap();
        }
        for (_, delivery, ..) in world.delivered_to(a) {
            world.ack(a, delivery).unwrap();
        }
    }
    assert_eq!(world.troubles.len(), 1);
    world.pass(7 * DAY);
    assert_eq!(world.troubles.len(), 2);
    assert_eq!(world.core.held_messages(), 0);
    assert_eq!(world.core.durable_count(), 1);
}
