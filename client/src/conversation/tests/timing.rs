//! Time that progress extends, and the time of the whole conversation.

use pillarbox_messages::ResponseCode;

use super::support::{
    BEGUN_MS, Bench, COMPLETED, IDENTIFICATION_MS, OPERATION_MS, POSITIVE, context, put, put_final,
    put_identify, put_procedure, put_progress,
};
use crate::conversation::{Context, Input, put_file::PutFileProcedure};

const CONVERSATION_MS: i64 = 25_000;

fn timed(pillars: &[&str], extend_on_progress: bool) -> Context {
    Context {
        extend_on_progress,
        conversation_timeout_ms: CONVERSATION_MS,
        ..context(pillars, Some("hello.txt"))
    }
}

/// A put that these pillars are at work on.
fn at_work(pillars: &[&str], extend_on_progress: bool) -> Bench<PutFileProcedure> {
    let mut bench = Bench::new(timed(pillars, extend_on_progress), put_procedure());
    for pillar in pillars {
        bench.hear(put_identify(pillar, POSITIVE));
    }
    bench.step(Input::OfferReady);
    bench
}

#[test]
fn progress_extends_the_time_of_whom_it_comes_from_if_that_is_wanted() {
    for extend in [false, true] {
        let mut bench = at_work(&["north", "south"], extend);
        let begun = bench.now_ms;
        bench.now_ms += OPERATION_MS - 1;
        bench.hear(put_progress("north"));
        bench.time_out();
        assert_eq!(bench.now_ms, begun + OPERATION_MS);
        if !extend {
            assert_eq!(bench.last(), "FAILED");
            continue;
        }
        assert_eq!(
            bench.last(),
            "COMPONENT_FAILED south",
            "it has said nothing"
        );
        bench.now_ms += OPERATION_MS - 2;
        bench.hear(put_final("north", COMPLETED));
        assert_eq!(bench.trace()[7..], ["COMPONENT_COMPLETE north", "FAILED"]);
    }
}

#[test]
fn who_has_not_answered_by_half_the_time_is_asked_once_more() {
    let mut bench = put(&["north", "south"]);
    bench.hear(put_identify("south", POSITIVE));
    let told = bench.trace();
    bench.fire();
    assert_eq!(bench.now_ms, BEGUN_MS + IDENTIFICATION_MS / 2);
    assert_eq!(bench.sent.len(), 2);
    assert_eq!(bench.sent[0], bench.sent[1]);
    assert_eq!(bench.trace(), told, "nothing is told of it");
    // Of those who had answered, nothing comes of it.
    bench.hear(put_identify("south", POSITIVE));
    bench.hear(put_identify("north", POSITIVE));
    assert_eq!(bench.last(), "IDENTIFICATION_COMPLETE [south, north]");

    let mut bench = put(&["north", "south"]);
    bench.hear(put_identify("south", POSITIVE));
    bench.fire();
    // The bus does not take it: the time that there was for the first one stays.
    bench.step(Input::SendFailed {
        contributor: None,
        text: "away".to_owned(),
    });
    bench.fire();
    assert_eq!(bench.now_ms, BEGUN_MS + IDENTIFICATION_MS);
    assert_eq!(bench.sent.len(), 2, "it is asked for once more, not twice");
    assert_eq!(bench.last(), "IDENTIFICATION_COMPLETE [south]");
}

#[test]
fn nobody_is_asked_once_more_when_all_have_answered_or_there_is_no_limit() {
    let mut bench = put(&["north"]);
    bench.hear(put_identify("north", POSITIVE));
    bench.time_out();
    assert_eq!(bench.sent.len(), 1);
    let unlimited = Context {
        identification_timeout_ms: 0,
        ..context(&["north"], Some("hello.txt"))
    };
    assert_eq!(Bench::new(unlimited, put_procedure()).timer, None);
}

#[test]
fn progress_of_somebody_who_is_done_extends_nothing() {
    let mut bench = at_work(&["north", "south"], true);
    bench.hear(put_final("north", COMPLETED));
    let timer = bench.timer;
    bench.now_ms += 10;
    bench.hear(put_progress("north"));
    assert_eq!(bench.timer, timer);
}

#[test]
fn the_whole_conversation_ends_however_much_progress_there_is() {
    let mut bench = at_work(&["north"], true);
    let begun = bench.now_ms;
    for _ in 0..100 {
        bench.now_ms += OPERATION_MS / 2;
        if bench.timer.is_some_and(|at| at <= bench.now_ms) {
            bench.time_out();
            break;
        }
        bench.hear(put_progress("north"));
    }
    assert_eq!(bench.now_ms, begun + CONVERSATION_MS);
    let trace = bench.trace();
    assert_eq!(
        trace[trace.len() - 2..],
        ["COMPONENT_FAILED north", "FAILED"]
    );
    assert!(
        bench.info().contains("conversation's time is over"),
        "{}",
        bench.info()
    );
    assert!(bench.info().contains("north"), "{}", bench.info());
    assert_eq!(bench.removed, 1);
}

#[test]
fn the_whole_conversation_ends_in_every_phase() {
    let unlimited = || Context {
        identification_timeout_ms: 0,
        operation_timeout_ms: 0,
        ..timed(&["north", "south"], false)
    };
    let mut bench = Bench::new(unlimited(), put_procedure());
    bench.hear(put_identify("north", POSITIVE));
    bench.time_out();
    assert_eq!(bench.trace()[2..], ["COMPONENT_FAILED south", "FAILED"]);

    let mut bench = Bench::new(unlimited(), put_procedure());
    bench.hear(put_identify("north", POSITIVE));
    bench.hear(put_identify("south", POSITIVE));
    bench.time_out();
    assert_eq!(bench.last(), "FAILED", "while the file is offered");
    assert_eq!(bench.removed, 1);

    let mut bench = Bench::new(unlimited(), put_procedure());
    bench.hear(put_identify("north", ResponseCode::RequestNotSupported));
    bench.hear(put_identify("south", POSITIVE));
    bench.step(Input::OfferReady);
    bench.time_out();
    assert_eq!(bench.trace()[4..], ["COMPONENT_FAILED south", "FAILED"]);
}

/// Each phase ends when its time is over, and says who has not said a word.
#[test]
fn u52_one_mute_pillar_of_three_costs_its_time_and_is_named() {
    let mut bench = put(&["north", "south", "west"]);
    bench.hear(put_identify("north", POSITIVE));
    bench.hear(put_identify("west", POSITIVE));
    bench.time_out();
    assert_eq!(bench.now_ms, BEGUN_MS + IDENTIFICATION_MS);
    bench.step(Input::OfferReady);
    bench.hear(put_final("north", COMPLETED));
    bench.hear(put_final("west", COMPLETED));
    let all = [
        "IDENTIFY_REQUEST_SENT",
        "COMPONENT_IDENTIFIED north",
        "COMPONENT_IDENTIFIED west",
        "IDENTIFY_TIMEOUT [south]",
        "COMPONENT_FAILED south",
        "IDENTIFICATION_COMPLETE [north, west]",
        "REQUEST_SENT [north, west]",
        "COMPONENT_COMPLETE north",
        "COMPONENT_COMPLETE west",
        "FAILED",
    ];
    assert_eq!(bench.trace(), all);
    assert!(bench.info().contains("south"), "{}", bench.info());
    assert_eq!(bench.now_ms, BEGUN_MS + IDENTIFICATION_MS);

    let mut bench = at_work(&["north", "south", "west"], false);
    let begun = bench.now_ms;
    bench.hear(put_final("west", COMPLETED));
    bench.hear(put_final("north", COMPLETED));
    bench.time_out();
    assert_eq!(bench.now_ms, begun + OPERATION_MS);
    let trace = bench.trace();
    let end = [
        "COMPONENT_COMPLETE west",
        "COMPONENT_COMPLETE north",
        "COMPONENT_FAILED south",
        "FAILED",
    ];
    assert_eq!(trace[trace.len() - 4..], end);
    assert!(bench.info().contains("south"), "{}", bench.info());
}
