//! Conversations that are written down by one process and taken up by another.

use pillarbox_messages::{Destination, ResponseCode};
use serde::{Serialize, de::DeserializeOwned};

use super::support::{
    Bench, COMPLETED, OPERATION_MS, POSITIVE, context, get, get_final, get_identify, get_progress,
    put, put_final, put_identify, put_procedure,
};
use crate::{
    conversation::{
        Conversation, Input, Procedure, get_file::GetFileProcedure, put_file::PutFileProcedure,
    },
    event::Delivered,
};

const GRACE_MS: i64 = 5000;
const PILLARS: [&str; 2] = ["north", "south"];

/// The conversation as another process finds it, so much later.
fn left<P: Procedure + Serialize + DeserializeOwned>(
    mut bench: Bench<P>,
    later_ms: i64,
) -> Bench<P> {
    let text = serde_json::to_string(&bench.conversation).unwrap();
    bench.conversation = serde_json::from_str(&text).unwrap();
    bench.now_ms += later_ms;
    bench.events.clear();
    bench.sent.clear();
    bench.timer = None;
    bench.step(Input::Resumed { grace_ms: GRACE_MS });
    bench
}

/// A put that both pillars were asked for, and that north has done.
fn half_done() -> Bench<PutFileProcedure> {
    let mut bench = put(&PILLARS);
    for pillar in PILLARS {
        bench.hear(put_identify(pillar, POSITIVE));
    }
    bench.step(Input::OfferReady);
    bench.hear(put_final("north", COMPLETED));
    bench
}

#[test]
fn who_owes_an_answer_is_asked_again_and_has_time_for_it() {
    let mut bench = left(half_done(), 10 * OPERATION_MS);
    assert!(bench.sent.is_empty(), "what waits comes first");
    assert_eq!(bench.timer, Some(bench.now_ms + GRACE_MS));
    bench.step(Input::Reconnected { answers_kept: true });
    assert_eq!(bench.asked(), ["south"]);
    bench.hear(put_final("south", COMPLETED));
    assert_eq!(bench.trace(), ["COMPONENT_COMPLETE south", "COMPLETE"]);
    assert_eq!(bench.removed, 1);
}

#[test]
fn who_never_answers_has_failed_when_the_grace_is_over() {
    let mut bench = left(half_done(), 10 * OPERATION_MS);
    bench.time_out();
    assert_eq!(bench.trace(), ["COMPONENT_FAILED south", "FAILED"]);
    assert_eq!(bench.removed, 1);
}

#[test]
fn time_that_is_not_over_is_kept_and_never_gets_longer() {
    let asked_ms = half_done().now_ms;
    assert_eq!(left(half_done(), 1000).timer, Some(asked_ms + OPERATION_MS));
    let set_back = left(half_done(), -1_000_000);
    assert_eq!(set_back.timer, Some(set_back.now_ms + OPERATION_MS));
}

#[test]
fn what_nobody_was_asked_for_begins_anew() {
    let mut bench = put(&PILLARS);
    // As it was written down before it began.
    bench.conversation = Conversation::new(context(&PILLARS, Some("hello.txt")), put_procedure());
    let mut bench = left(bench, 10 * OPERATION_MS);
    assert_eq!(bench.trace(), ["IDENTIFY_REQUEST_SENT"]);
    bench.time_out();
    assert_eq!(bench.last(), "FAILED");
    assert_eq!(bench.removed, 1, "a part of it may have been offered");
}

#[test]
fn a_file_that_was_being_fetched_is_fetched_again() {
    let mut bench = get(&PILLARS);
    for pillar in PILLARS {
        bench.hear(get_identify(pillar, POSITIVE, Some(1000)));
    }
    let before = bench.conversation.milestone();
    bench.hear(get_progress("south"));
    let told = bench.conversation.milestone();
    assert_ne!(before, told, "nothing else tells the checksum");
    bench.hear(get_final("south", COMPLETED));
    assert_ne!(told, bench.conversation.milestone());
    assert_eq!(bench.downloads.len(), 1);
    let mut bench = left(bench, 10 * OPERATION_MS);
    assert_eq!(bench.downloads.len(), 2);
    assert_eq!(bench.downloads[0], bench.downloads[1]);
    bench.step(Input::Reconnected { answers_kept: true });
    assert!(bench.sent.is_empty(), "it has answered");
    bench.step(Input::DownloadFinished(Delivered {
        replaced: false,
        size: 5,
        checksum: None,
    }));
    assert_eq!(bench.last(), "COMPLETE");
}

/// A get that north was asked for, at a queue or elsewhere.
fn asked_for(queue: bool) -> Bench<GetFileProcedure> {
    let mut bench = get(&["north"]);
    let mut ready = get_identify("north", POSITIVE, Some(10));
    if queue {
        ready.header.reply_to = Destination::queue("at-north");
    } else {
        ready.header.reply_to = Destination::topic("at-north");
    }
    bench.hear(ready);
    assert_eq!(bench.asked(), ["north"]);
    bench
}

#[test]
fn a_file_is_not_delivered_twice_whose_request_and_answer_wait_on_the_bus() {
    let sent = || Input::Sent {
        contributor: "north".into(),
    };
    for (queue, is_sent, answers_kept, later_ms, again) in [
        (true, true, true, 0, false),
        // Somebody may have lost something.
        (false, true, true, 0, true),
        (true, false, true, 0, true),
        (true, true, false, 0, true),
        (true, true, true, OPERATION_MS, true),
    ] {
        let mut bench = asked_for(queue);
        if is_sent {
            let before = bench.conversation.milestone();
            bench.step(sent());
            assert_ne!(bench.conversation.milestone(), before, "it is written down");
        }
        let mut bench = left(bench, later_ms);
        bench.step(Input::Reconnected { answers_kept });
        let case = (queue, is_sent, answers_kept, later_ms);
        assert_eq!(bench.asked().len(), usize::from(again), "{case:?}");

        // As many files come as were asked for.
        assert!(bench.conversation.is_owed());
        bench.hear(get_final("north", COMPLETED));
        assert_eq!(bench.conversation.is_owed(), again, "{case:?}");
        bench.step(Input::DownloadFinished(Delivered {
            replaced: false,
            size: 5,
            checksum: None,
        }));
        assert_eq!(bench.last(), "COMPLETE");
        bench.hear(get_final("north", COMPLETED));
        assert!(!bench.conversation.is_owed());
    }
}

#[test]
fn who_did_not_answer_in_time_may_yet_deliver() {
    let mut bench = asked_for(true);
    bench.time_out();
    assert_eq!(bench.last(), "FAILED");
    assert!(bench.conversation.is_owed());
    bench.hear(get_final("north", ResponseCode::FileTransferFailure));
    assert!(!bench.conversation.is_owed());
}

#[test]
fn only_what_could_not_be_asked_for_again_is_a_milestone() {
    let mut bench = put(&PILLARS);
    let mut milestones = vec![bench.conversation.milestone()];
    let mut passed = |bench: &Bench<PutFileProcedure>| {
        let now = bench.conversation.milestone();
        let further = milestones.last() != Some(&now);
        milestones.push(now);
        further
    };
    for pillar in PILLARS {
        bench.hear(put_identify(pillar, POSITIVE));
        assert!(!passed(&bench), "identified");
    }
    bench.step(Input::OfferReady);
    assert!(passed(&bench), "asked");
    bench.hear(put_final("north", COMPLETED));
    assert!(passed(&bench), "half done");
    bench.hear(put_final("north", COMPLETED));
    assert!(!passed(&bench), "a repetition");
    bench.hear(put_final("south", COMPLETED));
    assert!(passed(&bench), "done");
}
