//! What is asked again after an outage of the bus, and when.

use pillarbox_messages::{Destination, Message};

use super::support::{
    BEGUN_MS, Bench, COMPLETED, POSITIVE, context, get_final, get_identify, put_final,
    put_identify, put_procedure, put_progress,
};
use crate::conversation::{
    Context, Input, Procedure, get_file::GetFileProcedure, put_file::PutFileProcedure,
};

const LONG_MS: i64 = 600_000;
const BACK: Input = Input::Reconnected {
    answers_kept: false,
};

fn patient(pillars: &[&str]) -> Context {
    Context {
        identification_timeout_ms: LONG_MS,
        operation_timeout_ms: LONG_MS,
        ..context(pillars, Some("hello.txt"))
    }
}

fn put(pillars: &[&str]) -> Bench<PutFileProcedure> {
    Bench::new(patient(pillars), put_procedure())
}

/// Its answer to the identify request, by which it is asked over a topic.
fn over_a_topic(pillar: &str) -> Message {
    let mut ready = put_identify(pillar, POSITIVE);
    ready.header.reply_to = Destination::topic(&format!("at-{pillar}"));
    ready.into()
}

/// A put that is asked for over topics.
fn asked_for(pillars: &[&str]) -> Bench<PutFileProcedure> {
    let mut bench = put(pillars);
    for pillar in pillars {
        bench.hear(over_a_topic(pillar));
    }
    bench.step(Input::OfferReady);
    bench
}

fn identifications<P: Procedure>(bench: &Bench<P>) -> usize {
    let kind = |it: &&Message| it.message_type().is_identify_request();
    bench.sent.iter().filter(kind).count()
}

/// Lets so many timers fire; gives when, in seconds from the beginning, something was sent.
fn sent_at<P: Procedure>(bench: &mut Bench<P>, timers: usize) -> Vec<i64> {
    let mut times = Vec::new();
    for _ in 0..timers {
        let before = bench.sent.len();
        bench.fire();
        if bench.sent.len() > before {
            times.push((bench.now_ms - BEGUN_MS) / 1000);
        }
    }
    times
}

#[test]
fn who_is_ready_is_asked_again_until_all_have_answered() {
    let mut bench = put(&["north", "south"]);
    assert_eq!(
        bench.timer,
        Some(BEGUN_MS + LONG_MS / 2),
        "nothing was away"
    );
    bench.hear(over_a_topic("north"));
    bench.step(BACK);
    assert_eq!(identifications(&bench), 2);
    let times = sent_at(&mut bench, 8);
    assert_eq!(times, [1, 3, 7, 15, 31, 61, 91, 121]);
    bench.hear(over_a_topic("south"));
    assert_eq!(identifications(&bench), 10);
    assert_eq!(bench.last(), "IDENTIFICATION_COMPLETE [north, south]");
}

#[test]
fn repeating_ends_with_the_time() {
    let mut bench = put(&["north"]);
    bench.step(BACK);
    while !bench.conversation.is_done() {
        bench.fire();
    }
    assert_eq!(bench.now_ms, BEGUN_MS + LONG_MS);
    // At once, after 1, 3, 7, 15 and 31 s, then every 30; and when half of the time is over, as without an outage.
    assert_eq!(identifications(&bench), 1 + 1 + 5 + 18 + 1);
}

#[test]
fn a_request_is_repeated_until_anything_comes() {
    let mut bench = asked_for(&["north", "south"]);
    bench.step(BACK);
    assert_eq!(bench.asked(), ["north", "south", "north", "south"]);
    bench.hear(put_progress("north"));
    assert_eq!(sent_at(&mut bench, 2), [1, 3]);
    assert_eq!(bench.asked()[4..], ["south", "south"]);
    bench.hear(put_progress("south"));
    // It fires in vain, if at all, before the end.
    assert_eq!(sent_at(&mut bench, 1), [0; 0]);
    bench.hear(put_final("north", COMPLETED));
    bench.hear(put_final("south", COMPLETED));
    assert_eq!(bench.last(), "COMPLETE");
}

#[test]
fn another_outage_begins_anew() {
    let mut bench = asked_for(&["north"]);
    bench.step(BACK);
    assert_eq!(sent_at(&mut bench, 4), [1, 3, 7, 15]);
    bench.step(BACK);
    assert_eq!(sent_at(&mut bench, 2), [16, 18]);
}

#[test]
fn nothing_is_repeated_that_waits_on_a_queue() {
    let mut bench = put(&["north"]);
    let mut ready = put_identify("north", POSITIVE);
    ready.header.reply_to = Destination::queue("at-north");
    bench.hear(ready);
    bench.step(Input::OfferReady);
    bench.step(BACK);
    assert_eq!(bench.asked(), ["north", "north"]);
    assert_eq!(bench.timer, Some(BEGUN_MS + LONG_MS));
}

/// The file may be on its way to the exchange meanwhile, or the conversation may begin when all come back.
#[test]
fn what_is_first_asked_after_an_outage_is_repeated_too() {
    let mut bench = put(&["north"]);
    bench.step(Input::Unsettled);
    assert_eq!(identifications(&bench), 1);
    assert_eq!(sent_at(&mut bench, 1), [1]);
    bench.hear(over_a_topic("north"));
    bench.step(BACK);
    assert!(bench.asked().is_empty());
    bench.now_ms = BEGUN_MS + 100_000;
    bench.step(Input::OfferReady);
    assert_eq!(bench.asked(), ["north"]);
    assert_eq!(sent_at(&mut bench, 2), [101, 103]);
    bench.hear(put_final("north", COMPLETED));
    assert_eq!(bench.last(), "COMPLETE");
}

/// Each request may bring a file.
#[test]
fn a_repeated_get_knows_how_many_files_may_come() {
    let procedure = GetFileProcedure::new("hello.txt".into(), "http://a/b".to_owned());
    let mut bench = Bench::new(patient(&["north"]), procedure);
    let mut ready = get_identify("north", POSITIVE, Some(10));
    ready.header.reply_to = Destination::topic("at-north");
    bench.hear(ready);
    bench.step(BACK);
    assert_eq!(sent_at(&mut bench, 1), [1]);
    assert_eq!(bench.asked().len(), 3);
    for owed in [true, true, false] {
        bench.hear(get_final("north", COMPLETED));
        assert_eq!(bench.conversation.is_owed(), owed);
    }
}
