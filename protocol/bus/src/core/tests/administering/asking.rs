//! Requests and answers that are messages.

use super::*;
use crate::SubscribeOptions;

/// A client of the administration that asks with messages.
struct Asking {
    world: World,
    to: Destination,
}

impl Asking {
    fn new(mut world: World) -> Self {
        let connection = world.open(5, "asks");
        let to = Destination::new(
            DestinationKind::TemporaryQueue,
            &format!("{}.5.own", world.core.boot()),
        );
        world
            .ask(connection, |token| Command::Subscribe {
                options: SubscribeOptions::default(),
                ack_timeout: None,
                selector: None,
                subscription: 1,
                destination: to.clone(),
                durable: None,
                ack: crate::AckMode::Individual,
                prefetch: 1_000,
                token,
            })
            .unwrap();
        Self { world, to }
    }

    fn request(&self, body: &str) -> NewMessage {
        NewMessage {
            reply_to: Some(crate::spelling::to_stomp(&self.to)),
            correlation_id: Some("c".to_owned()),
            ..message(Destination::queue("~admin"), body)
        }
    }

    /// Whether the request had no place for its answer, and the answers that came.
    fn send(&mut self, request: NewMessage) -> (bool, Vec<Answer>) {
        let unroutable = self.world.send(ConnectionId(5), request).unwrap();
        let came = self.world.delivered_messages();
        let answers = came.iter().map(|message| {
            assert_eq!(message.correlation_id(), Some("c"));
            assert_eq!(message.origin(), "~admin");
            serde_json::from_slice(message.body_bytes()).unwrap()
        });
        (unroutable, answers.collect())
    }

    fn answer(&mut self, body: &str) -> Answer {
        let (unroutable, mut answers) = self.send(self.request(body));
        assert!(!unroutable);
        assert_eq!(answers.len(), 1, "{body}: {answers:?}");
        answers.remove(0)
    }
}

#[test]
fn requests_come_as_messages_and_are_answered_to_their_senders_queue() {
    let mut world = site();
    failed(&mut world, &["a"]);
    let mut asking = Asking::new(world);
    let list = r#"{"op":"msg-list","queue":"aside","filter":{"key":"a"}}"#;
    let Answer::Messages(listed) = asking.answer(list) else {
        panic!("no messages");
    };
    let id = listed.messages[0].id;
    let retry = format!(r#"{{"op":"msg-retry","queue":"aside","ids":["{id}"]}}"#);
    let Answer::Done(done) = asking.answer(&retry) else {
        panic!("not done");
    };
    assert_eq!(done.done, 1);
    // Without a correlation id the answer has the request's own.
    let request = NewMessage {
        correlation_id: None,
        ..asking.request(list)
    };
    let id = asking.world.send_id(ConnectionId(5), request);
    let came = asking.world.delivered_messages();
    assert_eq!(came[0].correlation_id(), Some(id.to_string().as_str()));
    // Nothing of all that is kept anywhere.
    let rows = queues(&mut asking.world);
    assert!(rows.iter().all(|row| row.name != "/queue/~admin"));
    assert_eq!(row(&mut asking.world, "/queue/~error").messages, 0);
}

#[test]
fn what_can_not_be_read_or_done_is_answered_with_what_is_wrong() {
    let mut asking = Asking::new(site());
    let long = format!(r#"{{"op":"queue-show","queue":"{}"}}"#, "x".repeat(70_000));
    let deep = "[".repeat(10_000);
    let unknown = format!(r#"{{"op":"queue-list","{}":1}}"#, "x".repeat(60_000));
    for (body, name, part) in [
        ("", "INVALID", "no request"),
        ("\u{0}", "INVALID", "no request"),
        ("[]", "INVALID", "no request"),
        (deep.as_str(), "INVALID", "no request"),
        (unknown.as_str(), "INVALID", "unknown field"),
        (long.as_str(), "LIMIT", "65536"),
        (
            r#"{"op":"queue-burn"}"#,
            "INVALID",
            "unknown variant `queue-burn`",
        ),
        (r#"{"queue":"work"}"#, "INVALID", "missing field `op`"),
        (
            r#"{"op":"queue-list","limits":5}"#,
            "INVALID",
            "unknown field `limits`",
        ),
        (r#"{"op":"queue-list","limit":-5}"#, "INVALID", "-5"),
        (r#"{"op":"queue-list","limit":0}"#, "INVALID", "at least 1"),
        (r#"{"op":"queue-list"} {}"#, "INVALID", "trailing"),
        (r#"{"op":"queue-show","queue":"none"}"#, "NO-QUEUE", "none"),
        (
            r#"{"op":"msg-show","queue":"work","id":"17"}"#,
            "INVALID",
            "'17'",
        ),
        (
            r#"{"op":"msg-show","queue":"work","id":"9-9"}"#,
            "BAD-ID",
            "9-9",
        ),
        (
            r#"{"op":"msg-list","queue":"work","filter":{"reason":"bad"}}"#,
            "INVALID",
            "`unroutable`, `rejected`, `backout`, `expired`, `admin`",
        ),
        (
            r#"{"op":"msg-list","queue":"work","filter":{"color":"red"}}"#,
            "INVALID",
            "unknown field `color`",
        ),
        (
            r#"{"op":"msg-delete","queue":"work"}"#,
            "INVALID",
            "'ids' or 'filter'",
        ),
        (
            r#"{"op":"msg-retry","queue":"work","ids":["1-1"],"after":"1-2"}"#,
            "INVALID",
            "1-2",
        ),
    ] {
        let Answer::Error { name: told, text } = asking.answer(body) else {
            panic!("no error for {body}");
        };
        assert_eq!(told, name, "{text}");
        assert!(text.contains(part) && text.len() < 700, "{text}");
    }
    let later = NewMessage {
        delay: Some(5),
        ..asking.request(r#"{"op":"queue-list"}"#)
    };
    let (_, answers) = asking.send(later);
    assert!(
        matches!(&answers[..], [Answer::Error { .. }]),
        "{answers:?}"
    );
}

#[test]
fn without_a_place_for_the_answer_nothing_is_done() {
    let mut world = site();
    failed(&mut world, &["a"]);
    let mut asking = Asking::new(world);
    let all = r#"{"op":"msg-delete","queue":"aside","filter":{}}"#;
    for place in [
        None,
        Some("/queue/aside"),
        Some("/queue/~admin"),
        Some("/queue/~error"),
        Some("/topic/news"),
        Some("/remote-temp-queue/1.5.other"),
        Some("nonsense/"),
    ] {
        let request = NewMessage {
            reply_to: place.map(str::to_owned),
            ..asking.request(all)
        };
        assert_eq!(asking.send(request), (true, Vec::new()), "{place:?}");
    }
    let late = NewMessage {
        expires_at: Some(asking.world.now),
        ..asking.request(all)
    };
    assert_eq!(asking.send(late), (true, Vec::new()));
    assert_eq!(row(&mut asking.world, "/queue/aside").messages, 1);
    assert_eq!(asking.world.core.counters().unroutable, 8);
}

#[test]
fn nobody_takes_requests_from_the_administration() {
    let mut world = World::new();
    let a = world.open(1, "a");
    let admin = || Destination::queue("~admin");
    let refused = world.subscribe(a, 1, admin(), 1).unwrap_err();
    assert_eq!(refused.name(), "INVALID");
    let refused = world.ask(a, |token| Command::Get {
        subscription: 2,
        destination: admin(),
        selector: None,
        wait: crate::Wait::Forever,
        ack: crate::AckMode::Individual,
        token,
    });
    assert_eq!(refused.unwrap_err().name(), "INVALID");
    let refused = world.ask(a, |token| Command::Browse {
        subscription: 3,
        destination: admin(),
        selector: None,
        limit: 1,
        all: true,
        token,
    });
    assert!(refused.is_err());
}

/// A unit of acknowledgements keeps nobody waiting, but for the answer that tells of it.
#[test]
fn an_answer_is_seen_when_all_that_it_tells_of_is_written() {
    let mut world = site();
    failed(&mut world, &["a"]);
    let mut asking = Asking::new(world);
    let seen_after = |asking: &mut Asking, body: &str| {
        let message = asking.request(body);
        let command = Command::Send {
            message,
            transaction: None,
            token: 0,
        };
        let effects = asking.world.core.step(
            asking.world.now,
            Input::Command {
                connection: ConnectionId(5),
                command,
            },
        );
        let answer = effects
            .events
            .iter()
            .find(|it| matches!(it.event, Event::Deliver { .. }));
        (
            effects.unit.map(|unit| (unit.number, unit.sync)),
            answer.expect("no answer").after,
        )
    };
    let all = r#"{"op":"msg-delete","queue":"aside","filter":{}}"#;
    let (unit, after) = seen_after(&mut asking, all);
    let (number, sync) = unit.expect("nothing is written");
    assert!(sync);
    assert_eq!(after, number);
    // Whoever only looks sees no more than what is written.
    let (unit, after) = seen_after(&mut asking, r#"{"op":"queue-list"}"#);
    assert_eq!((unit, after), (None, number));
    asking.world.token += 1;
    let token = asking.world.token;
    let request = Request::QueueList {
        after: None,
        limit: None,
    };
    let request = Box::new(request);
    let effects = asking.world.core.step(
        asking.world.now,
        Input::Command {
            connection: ConnectionId(5),
            command: Command::Administer { request, token },
        },
    );
    assert_eq!(effects.events[0].after, number);
}

#[test]
fn a_full_bus_still_answers_whoever_makes_room() {
    let limits = Limits {
        capacity_bytes: 10_000,
        ..Limits::default()
    };
    let mut asking = Asking::new(World::with_limits(limits));
    while asking.world.send(ConnectionId(5), work("full")).is_ok() {}
    let all = r#"{"op":"msg-delete","queue":"work","filter":{}}"#;
    let Answer::Done(done) = asking.answer(all) else {
        panic!("not done");
    };
    assert!(done.done > 10);
    asking.world.send(ConnectionId(5), work("room")).unwrap();
    // But whoever takes no answers fills nothing with them.
    let big = NewMessage {
        body: Bytes::from(vec![b'x'; 9_000]),
        ..work("")
    };
    drop(asking.world.send(ConnectionId(5), big));
    let list = r#"{"op":"queue-list"}"#;
    let mut answered = 0;
    for _ in 0..20_000 {
        let unroutable = asking.world.core.step(
            0,
            Input::Command {
                connection: ConnectionId(5),
                command: Command::Send {
                    message: asking.request(list),
                    transaction: None,
                    token: 1,
                },
            },
        );
        let refused = unroutable.events.iter().any(|it| {
            matches!(
                it.event,
                Event::Done {
                    unroutable: true,
                    ..
                }
            )
        });
        if refused {
            break;
        }
        answered += 1;
    }
    assert!(answered < 20_000, "no limit");
    assert!(asking.world.core.held_bytes() < 5 << 20);
}

#[test]
fn a_request_in_a_transaction_is_done_with_it_or_not_at_all() {
    let mut world = site();
    failed(&mut world, &["a"]);
    let mut asking = Asking::new(world);
    let c = ConnectionId(5);
    let all = r#"{"op":"msg-delete","queue":"aside","filter":{}}"#;
    for commits in [false, true] {
        let transaction = u64::from(commits) + 1;
        let world = &mut asking.world;
        world
            .ask(c, |token| Command::Begin { transaction, token })
            .unwrap();
        let message = asking.request(all);
        let world = &mut asking.world;
        let staged = |token| Command::Send {
            message,
            transaction: Some(transaction),
            token,
        };
        world.ask(c, staged).unwrap();
        assert_eq!(row(world, "/queue/aside").messages, 1);
        let end = |token| match commits {
            true => Command::Commit { transaction, token },
            false => Command::Abort { transaction, token },
        };
        world.ask(c, end).unwrap();
        let answers = world.delivered_messages().len();
        assert_eq!(answers, usize::from(commits));
    }
    assert_eq!(row(&mut asking.world, "/queue/aside").messages, 0);
}

proptest::proptest! {
    /// Whatever comes, one answer comes back, and the connection stays.
    #[test]
    fn any_body_at_all_is_answered(
        bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200),
        op in proptest::sample::select(&["queue-list", "queue-show", "msg-list", "msg-show", "msg-retry", "msg-delete"][..]),
        fields in proptest::collection::vec((
            proptest::sample::select(&["queue", "id", "ids", "filter", "after", "limit", "body", "op", "x"][..]),
            proptest::sample::select(&[
                "\"work\"", "\"~error\"", "\"1-1\"", "[\"1-1\"]", "[]", "{}", "null", "1", "-1", "1e99",
                "18446744073709551615", "{\"key\":\"k\"}", "{\"reason\":\"backout\"}", "true", "\"\"",
            ][..]),
        ), 0..5),
    ) {
        let fields = fields.iter().map(|(name, value)| format!(",\"{name}\":{value}"));
        let likely = format!("{{\"op\":\"{op}\"{}}}", fields.collect::<String>());
        let mut asking = Asking::new(site());
        for body in [bytes, likely.into_bytes()] {
            let request = NewMessage {
                body: Bytes::from(body),
                ..asking.request("")
            };
            let (unroutable, answers) = asking.send(request);
            proptest::prop_assert!(!unroutable && answers.len() == 1);
        }
    }
}
