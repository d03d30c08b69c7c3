//! What an operator asks, and what comes of it.

mod asking;
mod changing;

use bytes::Bytes;
use pillarbox_messages::{Destination, DestinationKind};

use super::{World, message, news, queue, work};
use crate::{
    BusError, LaneHash, Lanes, QueueAttributes, QueueDefinition,
    admin::{Answer, Done, Filter, Kind, Messages, QueueRow, Reason, Request, Skipped, State},
    core::{
        Input, Limits,
        message::{MessageId, NewMessage},
    },
    embedded::connection::{Command, ConnectionId, Event},
};

const ADMIN: ConnectionId = ConnectionId(77);

/// The queue `work` with lanes by key, which fails to `aside`.
fn site() -> World {
    World::with_work(QueueAttributes {
        lanes: Lanes::Key,
        backout_queue: Some("aside".to_owned()),
        ..QueueAttributes::default()
    })
}

fn ask(world: &mut World, request: Request) -> Result<Answer, BusError> {
    if !world.core.sessions.contains_key(&ADMIN) {
        world.open(ADMIN.0, "operator");
    }
    world.token += 1;
    let token = world.token;
    let request = Box::new(request);
    world.step(Input::Command {
        connection: ADMIN,
        command: Command::Administer { request, token },
    });
    let answer = world.told.iter().find_map(|(_, event)| match event {
        Event::Administered { token: of, answer } if *of == token => Some(Ok((**answer).clone())),
        Event::Failed { token: of, error } if *of == token => Some(Err(error.clone())),
        _ => None,
    });
    answer.expect("no answer")
}

fn queues(world: &mut World) -> Vec<QueueRow> {
    let (mut rows, mut after) = (Vec::new(), None);
    loop {
        let request = Request::QueueList {
            after,
            limit: Some(2),
        };
        let Answer::Queues(page) = ask(world, request).unwrap() else {
            panic!("no queues");
        };
        assert!(page.queues.len() <= 2);
        rows.extend(page.queues);
        after = page.after;
        if after.is_none() {
            return rows;
        }
    }
}

fn row(world: &mut World, name: &str) -> QueueRow {
    let mut rows = queues(world).into_iter();
    rows.find(|row| row.name == name).expect("no such queue")
}

fn listed(world: &mut World, queue: &str, filter: Filter) -> Messages {
    let request = Request::MsgList {
        queue: queue.to_owned(),
        filter,
        after: None,
        limit: None,
    };
    match ask(world, request) {
        Ok(Answer::Messages(messages)) => messages,
        other => panic!("{other:?}"),
    }
}

fn ids(messages: &Messages) -> Vec<MessageId> {
    messages.messages.iter().map(|it| it.id).collect()
}

fn retry(queue: &str, ids: Option<Vec<MessageId>>, filter: Option<Filter>) -> Request {
    Request::MsgRetry {
        queue: queue.to_owned(),
        ids,
        filter,
        after: None,
    }
}

fn delete(queue: &str, ids: Option<Vec<MessageId>>, filter: Option<Filter>) -> Request {
    Request::MsgDelete {
        queue: queue.to_owned(),
        ids,
        filter,
        after: None,
    }
}

fn done(world: &mut World, request: Request) -> Done {
    match ask(world, request) {
        Ok(Answer::Done(done)) => done,
        other => panic!("{other:?}"),
    }
}

fn keyed(key: &str, body: &str) -> NewMessage {
    NewMessage {
        group: Some(key.to_owned()),
        correlation_id: Some(format!("c-{body}")),
        ..work(body)
    }
}

/// Brings messages of these bodies, each of its own key, into `aside`.
fn failed(world: &mut World, bodies: &[&str]) {
    let consumer = world.open(50, "fails");
    for body in bodies {
        world.send(consumer, keyed(body, body)).unwrap();
    }
    let prefetch = u32::try_from(bodies.len()).unwrap();
    world.subscribe(consumer, 1, queue(), prefetch).unwrap();
    for _ in 0..3 {
        for (_, delivery, ..) in world.delivered_to(consumer) {
            world.nack(consumer, delivery).unwrap();
        }
        world.pass(60_000);
    }
    world.lose(consumer);
}

#[test]
fn queues_are_listed_with_their_figures() {
    let mut world = site();
    let d = world.open(2, "d");
    world.subscribe_durable(d, "news", "mine").unwrap();
    world.lose(d);
    let a = world.open(3, "a");
    let own = Destination::new(DestinationKind::TemporaryQueue, "1.3.own");
    world.subscribe(a, 1, own, 1).unwrap();
    world
        .subscribe(a, 2, Destination::topic("news"), 1)
        .unwrap();
    world.send(a, news("n")).unwrap();
    failed(&mut world, &["bad"]);
    world.send(a, keyed("k", "first")).unwrap();
    world.send(a, keyed("k", "second")).unwrap();
    let later = NewMessage {
        not_before: Some(world.now + 5_000),
        ..keyed("l", "later")
    };
    world.send(a, later).unwrap();
    world.subscribe(a, 3, queue(), 5).unwrap();
    world.pass(700);
    let rows = queues(&mut world);
    let kinds: Vec<_> = rows
        .iter()
        .map(|row| (row.name.as_str(), row.kind))
        .collect();
    assert_eq!(
        kinds,
        [
            ("/queue/~error", Kind::Queue),
            ("/queue/work", Kind::Queue),
            ("/queue/aside", Kind::Queue),
            ("/queue/~sub.d.mine", Kind::DurableSubscription),
            ("/remote-temp-queue/1.3.own", Kind::Temporary),
            ("/topic/news", Kind::Subscription),
        ]
    );
    let work = &rows[1];
    assert_eq!((work.messages, work.ready), (3, 1));
    assert_eq!((work.scheduled, work.in_flight), (1, 1));
    assert_eq!((work.consumers, work.lanes), (1, Some(2)));
    assert_eq!((work.backed_out, work.lasting), (1, true));
    assert_eq!(work.oldest_age_ms, Some(700));
    assert_eq!(work.oldest_at, Some(world.now - 700));
    assert_eq!(work.backout_limit, Some(3));
    assert_eq!(work.backout_queue.as_deref(), Some("/queue/aside"));
    let aside = &rows[2];
    assert_eq!((aside.messages, aside.ready, aside.lanes), (1, 1, None));
    // What others move to moves nothing itself.
    assert_eq!(
        (aside.backout_limit, aside.backout_queue.clone()),
        (None, None)
    );
    let sub = &rows[3];
    assert_eq!((sub.messages, sub.consumers), (1, 0));
    assert_eq!(sub.topic.as_deref(), Some("/topic/news"));
    assert_eq!(sub.backout_queue.as_deref(), Some("/queue/~error"));
    let held: u64 = rows.iter().map(|row| row.bytes).sum();
    assert_eq!(held, world.core.held_bytes + world.core.plain_bytes);
}

#[test]
fn a_queue_is_shown_with_lanes_owners_and_consumers() {
    let lanes = Lanes::Hashed {
        count: 3,
        hash: LaneHash::JavaString,
    };
    let orders = QueueDefinition {
        name: "orders".to_owned(),
        attributes: QueueAttributes {
            lanes,
            ..QueueAttributes::default()
        },
        drain: false,
    };
    let mut world = World::build(Limits::default(), &[orders]);
    let a = world.open(1, "a");
    for lane in [1, 1, 2] {
        let to = Destination::queue(&format!("orders.{lane}"));
        world.send(a, message(to, "x")).unwrap();
    }
    let show = |queue: &str| Request::QueueShow {
        queue: queue.to_owned(),
    };
    world
        .subscribe(a, 1, Destination::queue("orders.1"), 7)
        .unwrap();
    let Ok(Answer::Queue(shown)) = ask(&mut world, show("orders")) else {
        panic!("no queue");
    };
    assert_eq!(shown.attributes.lanes, "hashed(3)");
    assert_eq!(shown.attributes.lane_hash.as_deref(), Some("java-string"));
    assert_eq!(shown.attributes.order, ["priority", "fifo"]);
    let lanes: Vec<_> = shown
        .lanes
        .iter()
        .map(|it| {
            (
                it.lane.as_str(),
                it.messages,
                it.in_flight,
                it.owner.as_deref(),
            )
        })
        .collect();
    assert_eq!(lanes, [("1", 2, 1, Some("a")), ("2", 1, 0, None)]);
    let [consumer] = &shown.consumers[..] else {
        panic!("{shown:?}");
    };
    assert_eq!((consumer.client.as_str(), consumer.connection), ("a", 1));
    assert_eq!((consumer.prefetch, consumer.in_flight), (7, 1));
    for (name, error) in [
        ("none", "NO-QUEUE"),
        ("orders.1", "NO-QUEUE"),
        ("/topic/news", "NO-QUEUE"),
        ("~admin", "NO-QUEUE"),
        ("~sub.x.y", "NO-QUEUE"),
        ("/nonsense", "INVALID"),
        ("", "INVALID"),
    ] {
        let refused = ask(&mut world, show(name)).unwrap_err();
        assert_eq!(refused.name(), error, "{name}");
    }
}

#[test]
fn a_durable_subscription_is_shown_with_its_limits_and_since_when_its_client_is_away() {
    let mut world = World::new();
    let d = world.open(1, "d.x");
    world.subscribe_durable(d, "news", "mine.too").unwrap();
    let show = || Request::QueueShow {
        queue: "/queue/~sub.d%2Ex.mine.too".to_owned(),
    };
    world.pass(500);
    world.lose(d);
    let Ok(Answer::Queue(shown)) = ask(&mut world, show()) else {
        panic!("no queue");
    };
    assert_eq!(shown.queue.kind, Kind::DurableSubscription);
    let limits = shown.subscription.expect("it is one");
    assert_eq!(limits.max_bytes, Limits::default().capacity_bytes / 10);
    assert_eq!(limits.max_offline_ms, Some(7 * 86_400_000));
    assert_eq!((limits.on_limit.as_str(), limits.missed), ("gap", 0));
    assert_eq!(limits.away_since, Some(500));
}

#[test]
fn what_is_emptied_for_other_lanes_is_told() {
    let like = |lanes| QueueDefinition {
        name: "work".to_owned(),
        attributes: QueueAttributes {
            lanes,
            ..QueueAttributes::default()
        },
        drain: true,
    };
    let hash = LaneHash::JavaString;
    let mut world = World::build(Limits::default(), &[like(Lanes::Hashed { count: 2, hash })]);
    let a = world.open(1, "a");
    world.send(a, keyed("k", "old")).unwrap();
    world.queues = vec![like(Lanes::Hashed { count: 3, hash })];
    world.restart();
    let a = world.open(1, "a");
    world.send(a, keyed("k", "new")).unwrap();
    let queue = "work".to_owned();
    let Ok(Answer::Queue(shown)) = ask(&mut world, Request::QueueShow { queue }) else {
        panic!("no queue");
    };
    assert_eq!(shown.attributes.lanes, "hashed(3)");
    let drain = shown.drain.expect("it is being emptied");
    assert_eq!((drain.lanes.as_str(), drain.messages), ("hashed(2)", 1));
}

#[test]
fn lanes_and_consumers_are_shown_up_to_a_number() {
    let mut world = site();
    let a = world.open(1, "a");
    for number in 0..130 {
        world.send(a, keyed(&format!("k{number}"), "x")).unwrap();
        world
            .subscribe(a, number, Destination::queue("aside"), 1)
            .unwrap();
    }
    for (queue, lanes, consumers) in [("work", (100, 30), (0, 0)), ("aside", (0, 0), (100, 30))] {
        let queue = queue.to_owned();
        let Ok(Answer::Queue(shown)) = ask(&mut world, Request::QueueShow { queue }) else {
            panic!("no queue");
        };
        assert_eq!((shown.lanes.len(), shown.more_lanes), lanes);
        assert_eq!((shown.consumers.len(), shown.more_consumers), consumers);
    }
}

#[test]
fn messages_are_listed_with_why_they_are_there() {
    let mut world = site();
    failed(&mut world, &["a", "b"]);
    let s = world.open(3, "s");
    let lost = message(Destination::queue("nowhere"), "lost");
    world.send(s, lost).unwrap();
    let aside = listed(&mut world, "/queue/aside", Filter::default());
    assert_eq!(aside.after, None);
    let [a, b] = &aside.messages[..] else {
        panic!("{aside:?}");
    };
    assert!(a.id < b.id);
    assert_eq!((a.state, a.key.as_deref()), (State::Ready, Some("a")));
    assert_eq!(a.correlation_id.as_deref(), Some("c-a"));
    assert_eq!((a.deliveries, a.backouts), (3, 3));
    assert_eq!(a.original_destination.as_deref(), Some("/queue/work"));
    assert_eq!(a.reason, Some(Reason::Backout));
    assert_eq!(a.cause.map(|cause| cause.as_str()), Some("refused"));
    assert_eq!((a.origin.as_str(), a.body_bytes), ("fails", 1));
    let error = listed(&mut world, "~error", Filter::default());
    assert_eq!(error.messages[0].reason, Some(Reason::Unroutable));
    for (filter, found) in [
        (of_key("a"), vec![a.id]),
        (of_key("c"), vec![]),
        (of_correlation("c-b"), vec![b.id]),
        (of_reason(Reason::Backout), vec![a.id, b.id]),
        (of_reason(Reason::Expired), vec![]),
    ] {
        assert_eq!(ids(&listed(&mut world, "aside", filter)), found);
    }
    // Somebody has one in hand.
    world
        .subscribe(s, 1, Destination::queue("aside"), 1)
        .unwrap();
    let states = listed(&mut world, "aside", Filter::default()).messages;
    let states: Vec<State> = states.iter().map(|it| it.state).collect();
    assert_eq!(states, [State::InFlight, State::Ready]);
}

fn of_key(key: &str) -> Filter {
    Filter {
        key: Some(key.to_owned()),
        ..Filter::default()
    }
}

fn of_correlation(id: &str) -> Filter {
    Filter {
        correlation_id: Some(id.to_owned()),
        ..Filter::default()
    }
}

fn of_reason(reason: Reason) -> Filter {
    Filter {
        reason: Some(reason),
        ..Filter::default()
    }
}

#[test]
fn pages_follow_each_other_whatever_happens_between_them() {
    let mut world = World::new();
    let a = world.open(1, "a");
    let sent: Vec<MessageId> = (0..25)
        .map(|number| {
            let priority = u8::try_from(number % 10).unwrap();
            let text = number.to_string();
            world.send_id(
                a,
                NewMessage {
                    priority,
                    ..work(&text)
                },
            )
        })
        .collect();
    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let request = Request::MsgList {
            queue: "work".to_owned(),
            filter: Filter::default(),
            after,
            limit: Some(10),
        };
        let Ok(Answer::Messages(page)) = ask(&mut world, request) else {
            panic!("no messages");
        };
        seen.extend(ids(&page));
        after = page.after;
        let Some(last) = after else { break };
        // The one that the next page begins behind goes meanwhile.
        let gone = done(&mut world, delete("work", Some(vec![last]), None));
        assert_eq!(gone.done, 1);
    }
    assert_eq!(seen, sent);
    let none = Request::MsgList {
        queue: "work".to_owned(),
        filter: Filter::default(),
        after: None,
        limit: Some(0),
    };
    assert_eq!(ask(&mut world, none).unwrap_err().name(), "INVALID");
}

#[test]
fn pages_stay_small_and_end_also_where_little_is_found() {
    let mut world = World::new();
    let a = world.open(1, "a");
    for number in 0..10_500_u32 {
        let key = (number == 10_200).then(|| "rare".to_owned());
        let group = key.or_else(|| Some("x".repeat(3_000)));
        let message = NewMessage { group, ..work(".") };
        world.core.step(
            0,
            Input::Command {
                connection: a,
                command: Command::Send {
                    message,
                    transaction: None,
                    token: 0,
                },
            },
        );
    }
    let most = Request::MsgList {
        queue: "work".to_owned(),
        filter: Filter::default(),
        after: None,
        limit: Some(usize::MAX),
    };
    let Ok(Answer::Messages(page)) = ask(&mut world, most) else {
        panic!("no messages");
    };
    assert!(page.after.is_some() && page.messages.len() < 1_000);
    let size = Answer::Messages(page.clone()).write().len();
    assert!(size < 1 << 20, "{size}");
    let key = page.messages[0].key.as_deref().unwrap();
    assert!(key.ends_with('…') && key.chars().count() == 256);
    let first = listed(&mut world, "work", of_key("rare"));
    assert_eq!(first.messages, []);
    let next = Request::MsgList {
        queue: "work".to_owned(),
        filter: of_key("rare"),
        after: Some(first.after.expect("not all were looked at")),
        limit: None,
    };
    let Ok(Answer::Messages(second)) = ask(&mut world, next) else {
        panic!("no messages");
    };
    assert_eq!((second.messages.len(), second.after), (1, None));
    // A change takes no more at once, and says where to go on.
    let some = done(&mut world, delete("work", None, Some(Filter::default())));
    assert_eq!(some.done, 1_000);
    assert!(some.after.is_some());
}

#[test]
fn a_message_is_shown_with_its_headers_and_as_much_of_its_body_as_is_wanted() {
    let mut world = World::new();
    let a = world.open(1, "a");
    let mut send = |body: &[u8]| {
        let message = NewMessage {
            headers: vec![
                ("x".to_owned(), "1".to_owned()),
                ("y".to_owned(), String::new()),
            ],
            reply_to: Some("/topic/answers".to_owned()),
            ..NewMessage::new(queue(), Bytes::copy_from_slice(body))
        };
        world.send_id(a, message)
    };
    let bodies: [&[u8]; 5] = [
        b"<a>\n\xc3\xa6</a>",
        b"\x00\x01",
        b"\xc3\xa6\xc3\xa6",
        b"",
        &[b'x'; 70_000],
    ];
    let sent = bodies.map(&mut send);
    let mut show = |id, body| {
        let queue = "work".to_owned();
        ask(&mut world, Request::MsgShow { queue, id, body })
    };
    for (at, most, text, hex, cut) in [
        (0, None, Some("<a>\n\u{e6}</a>"), None, false),
        (1, None, None, Some("0001"), false),
        (1, Some(1), None, Some("00"), true),
        // A character is not cut in two.
        (2, Some(3), Some("\u{e6}"), None, true),
        (3, None, Some(""), None, false),
    ] {
        let Ok(Answer::Message(shown)) = show(sent[at], most) else {
            panic!("no message");
        };
        let body = &shown.body;
        assert_eq!(
            (body.text.as_deref(), body.hex.as_deref(), body.cut),
            (text, hex, cut)
        );
        assert_eq!(
            shown.headers,
            [
                ("x".to_owned(), "1".to_owned()),
                ("y".to_owned(), String::new())
            ]
        );
        assert_eq!(shown.reply_to.as_deref(), Some("/topic/answers"));
        assert_eq!(
            (shown.queue.as_str(), shown.destination.as_str()),
            ("/queue/work", "/queue/work")
        );
        assert_eq!(shown.holder, None);
    }
    let Ok(Answer::Message(long)) = show(sent[4], None) else {
        panic!("no message");
    };
    assert_eq!(long.body.text.map(|text| text.len()), Some(64 << 10));
    assert_eq!((long.body.cut, long.message.body_bytes), (true, 70_000));
    let missing = show(MessageId { boot: 9, seq: 9 }, None).unwrap_err();
    assert_eq!(missing.name(), "BAD-ID");
    world.subscribe(a, 1, queue(), 1).unwrap();
    let queue = "work".to_owned();
    let shown = ask(
        &mut world,
        Request::MsgShow {
            queue,
            id: sent[0],
            body: None,
        },
    );
    let Ok(Answer::Message(held)) = shown else {
        panic!("no message");
    };
    assert_eq!(
        (held.message.state, held.holder.as_deref()),
        (State::InFlight, Some("a"))
    );
}
