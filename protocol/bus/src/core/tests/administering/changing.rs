//! Sending back and deleting.

use super::*;

#[test]
fn messages_go_back_as_if_nothing_had_happened_and_those_in_hand_are_skipped() {
    let mut world = site();
    failed(&mut world, &["a", "b", "c"]);
    let s = world.open(3, "s");
    world
        .subscribe(s, 1, Destination::queue("aside"), 1)
        .unwrap();
    world.units.clear();
    let all = retry("aside", None, Some(of_reason(Reason::Backout)));
    let first = done(&mut world, all.clone());
    let skipped = Skipped {
        in_hand: 1,
        ..Skipped::default()
    };
    assert_eq!((first.done, first.skipped, first.after), (2, skipped, None));
    // Two are gone and two are put: one unit, that somebody waits for.
    assert_eq!(world.units, [(true, 4)]);
    world.lose(s);
    world.restart();
    assert_eq!(done(&mut world, all).done, 1);
    assert_eq!(listed(&mut world, "aside", Filter::default()).messages, []);
    world.restart();
    let back = listed(&mut world, "work", Filter::default()).messages;
    let keys: Vec<_> = back.iter().filter_map(|it| it.key.as_deref()).collect();
    assert_eq!(keys, ["a", "b", "c"]);
    for message in &back {
        assert_eq!((message.deliveries, message.backouts), (0, 0));
        assert_eq!((message.reason, message.cause), (None, None));
        assert_eq!(message.original_destination, None);
    }
}

#[test]
fn named_messages_are_done_and_the_others_counted_by_why_not() {
    let mut world = site();
    failed(&mut world, &["a"]);
    let s = world.open(3, "s");
    let gone = NewMessage {
        persistent: Some(true),
        ..message(Destination::queue("nowhere"), "lost")
    };
    let lost = world.send_id(s, gone);
    let own = world.send_id(s, message(Destination::queue("aside"), "own"));
    let a = listed(&mut world, "aside", of_key("a")).messages[0].id;
    let unknown = MessageId { boot: 9, seq: 1 };
    let some = done(
        &mut world,
        retry("aside", Some(vec![unknown, own, a]), None),
    );
    assert_eq!(some.done, 1);
    let skipped = Skipped {
        not_there: 1,
        not_moved: 1,
        ..Skipped::default()
    };
    assert_eq!(some.skipped, skipped);
    let none = done(&mut world, retry("~error", Some(vec![lost]), None));
    assert_eq!((none.done, none.skipped.no_way_back), (0, 1));
    let some = done(
        &mut world,
        delete("~error", Some(vec![unknown, lost]), None),
    );
    assert_eq!((some.done, some.skipped.not_there), (1, 1));
    world.restart();
    assert_eq!(row(&mut world, "/queue/~error").messages, 0);
    assert_eq!(row(&mut world, "/queue/work").messages, 1);
    for (ids, filter) in [
        (None, None),
        (Some(vec![a]), Some(Filter::default())),
        (Some(vec![a; 1_001]), None),
    ] {
        let refused = ask(&mut world, delete("work", ids, filter)).unwrap_err();
        assert_eq!(refused.name(), "INVALID");
    }
    assert_eq!(row(&mut world, "/queue/work").messages, 1);
}

#[test]
fn a_subscriptions_backlog_can_be_seen_and_deleted_by_its_queues_name() {
    let mut world = World::new();
    let d = world.open(1, "d x");
    world.subscribe_durable(d, "news", "mine").unwrap();
    world.lose(d);
    let a = world.open(2, "a");
    world.send(a, news("n")).unwrap();
    let name = "~sub.d x.mine";
    assert_eq!(
        listed(&mut world, name, Filter::default()).messages.len(),
        1
    );
    let all = delete(name, None, Some(Filter::default()));
    assert_eq!(done(&mut world, all).done, 1);
    world.restart();
    assert_eq!(listed(&mut world, name, Filter::default()).messages, []);
}

#[test]
fn what_goes_back_in_one_unit_has_a_limit() {
    let mut world = site();
    failed(&mut world, &["a", "b", "c"]);
    // Messages of 5 MiB, as if they had failed.
    let s = world.open(3, "s");
    let big = |key: &str| NewMessage {
        group: Some(key.to_owned()),
        body: Bytes::from(vec![b'x'; 5 << 20]),
        ..work("")
    };
    for key in ["d", "e"] {
        world.send(s, big(key)).unwrap();
    }
    world.subscribe(s, 1, queue(), 2).unwrap();
    for _ in 0..3 {
        let told = std::mem::take(&mut world.told);
        for (_, event) in told {
            if let Event::Deliver { delivery, .. } = event {
                world.nack(s, delivery).unwrap();
            }
        }
        world.pass(60_000);
    }
    world.lose(s);
    let ids = ids(&listed(&mut world, "aside", Filter::default()));
    assert_eq!(ids.len(), 5);
    let filter = Some(Filter::default());
    for named in [Some(ids.clone()), None] {
        let filter = filter.clone().filter(|_| named.is_none());
        let first = done(&mut world, retry("aside", named.clone(), filter.clone()));
        assert_eq!((first.done, first.after), (4, Some(ids[3])));
        let second = Request::MsgRetry {
            queue: "aside".to_owned(),
            ids: named,
            filter,
            after: first.after,
        };
        let second = done(&mut world, second);
        assert_eq!((second.done, second.after), (1, None));
        // Once more from the start.
        failing_again(&mut world);
    }
}

/// Brings everything that is in `work` into `aside`.
fn failing_again(world: &mut World) {
    let s = world.open(4, "s");
    world.subscribe(s, 1, queue(), 10).unwrap();
    for _ in 0..3 {
        let told = std::mem::take(&mut world.told);
        for (_, event) in told {
            if let Event::Deliver { delivery, .. } = event {
                world.nack(s, delivery).unwrap();
            }
        }
        world.pass(60_000);
    }
    world.lose(s);
}
