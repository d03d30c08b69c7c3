//! What all operations have in common, by the example of PutFile.

use pillarbox_messages::{
    Destination, DestinationKind, IdentifyPillarsForPutFileRequest, Message, ResponseCode,
};

use super::support::{
    COMPLETED, IDENTIFICATION_MS, OPERATION_MS, POSITIVE, header, put, put_final, put_identify,
    put_progress,
};
use crate::{conversation::Input, event::EventKind};

const THREE: [&str; 3] = ["north", "south", "sums"];

#[test]
fn an_only_pillar_is_named_as_receiver_in_both_phases() {
    let mut bench = put(&["north"]);
    bench.hear(put_identify("north", POSITIVE));
    bench.step(Input::OfferReady);
    for message in &bench.sent {
        assert_eq!(message.header().to.as_ref().unwrap().as_str(), "north");
    }
}

#[test]
fn a_refusal_leaves_the_put_to_the_others_and_fails_it() {
    let mut bench = put(&["north", "south"]);
    bench.hear(put_identify("north", ResponseCode::Failure));
    bench.hear(put_identify("south", POSITIVE));
    bench.step(Input::OfferReady);
    assert_eq!(bench.asked(), ["south"], "never the one that refused");
    bench.hear(put_final("south", COMPLETED));
    assert_eq!(bench.last(), "FAILED");
    assert!(
        bench.info().contains("north: FAILURE, said FAILURE"),
        "{}",
        bench.info()
    );
    let EventKind::Failed { results, failures } = &bench.events.last().unwrap().kind else {
        panic!()
    };
    assert_eq!((results.len(), failures.len()), (1, 1));
}

#[test]
fn unsupported_is_no_failure_but_nobody_at_all_is() {
    let mut bench = put(&["north", "south"]);
    bench.hear(put_identify("north", ResponseCode::RequestNotSupported));
    bench.hear(put_identify("south", POSITIVE));
    bench.step(Input::OfferReady);
    bench.hear(put_final("south", COMPLETED));
    assert_eq!(bench.last(), "COMPLETE");

    let mut bench = put(&["north"]);
    bench.hear(put_identify("north", ResponseCode::RequestNotSupported));
    assert_eq!(
        bench.last(),
        "FAILED",
        "a put that stored nothing anywhere is none"
    );
}

#[test]
fn silence_in_the_identification() {
    let mut bench = put(&THREE);
    bench.hear(put_identify("south", POSITIVE));
    let before = bench.now_ms;
    bench.time_out();
    assert_eq!(bench.now_ms, before + IDENTIFICATION_MS);
    bench.step(Input::OfferReady);
    bench.hear(put_final("south", COMPLETED));
    assert_eq!(
        bench.trace(),
        [
            "IDENTIFY_REQUEST_SENT",
            "COMPONENT_IDENTIFIED south",
            "IDENTIFY_TIMEOUT [north, sums]",
            "COMPONENT_FAILED north",
            "COMPONENT_FAILED sums",
            "IDENTIFICATION_COMPLETE [south]",
            "REQUEST_SENT [south]",
            "COMPONENT_COMPLETE south",
            "FAILED",
        ]
    );
    assert!(
        bench.info().contains("north") && bench.info().contains("sums"),
        "{}",
        bench.info()
    );
}

#[test]
fn silence_in_the_operation_names_everybody() {
    let mut bench = put(&THREE);
    for pillar in THREE {
        bench.hear(put_identify(pillar, POSITIVE));
    }
    bench.step(Input::OfferReady);
    let before = bench.now_ms;
    bench.now_ms += 10;
    bench.hear(put_progress("north"));
    bench.hear(put_final("south", COMPLETED));
    bench.time_out();
    assert_eq!(
        bench.now_ms,
        before + OPERATION_MS,
        "progress does not lengthen the time"
    );
    assert_eq!(
        bench.trace()[6..],
        [
            "PROGRESS north",
            "COMPONENT_COMPLETE south",
            "COMPONENT_FAILED north",
            "COMPONENT_FAILED sums",
            "FAILED"
        ]
    );
    assert_eq!(bench.removed, 1);
}

#[test]
fn an_answer_counts_once() {
    let mut bench = put(&["north", "south"]);
    bench.hear(put_identify("north", POSITIVE));
    bench.hear(put_identify("north", POSITIVE));
    bench.hear(put_identify("north", ResponseCode::Failure));
    bench.hear(put_identify("south", POSITIVE));
    bench.step(Input::OfferReady);
    bench.hear(put_final("north", COMPLETED));
    bench.hear(put_final("north", COMPLETED));
    bench.hear(put_final("north", ResponseCode::Failure));
    // Late identification responses are none of the performing phase's.
    bench.hear(put_identify("south", ResponseCode::Failure));
    bench.hear(put_identify("south", POSITIVE));
    bench.hear(put_final("south", COMPLETED));
    assert_eq!(bench.last(), "COMPLETE");
    let completed = bench
        .trace()
        .iter()
        .filter(|it| it.starts_with("COMPONENT_COMPLETE"))
        .count();
    assert_eq!(completed, 2);
    assert_eq!(bench.ignored, 6);
}

#[test]
fn what_does_not_concern_it() {
    let mut bench = put(&["north"]);
    let mut foreign = Vec::new();
    let with = |change: fn(&mut pillarbox_messages::Header)| {
        let mut message = put_identify("north", POSITIVE);
        change(&mut message.header);
        message
    };
    foreign.push(with(|it| it.from = "stranger".into()));
    foreign.push(with(|it| it.correlation_id = "another".into()));
    foreign.push(with(|it| it.collection_id = Some("dvds".into())));
    let mut other_file = put_identify("north", POSITIVE);
    other_file.file_id = Some("hello.txt2".into());
    foreign.push(other_file);
    let count = foreign.len();
    for message in foreign {
        bench.hear(message);
    }
    bench.hear(put_final("north", COMPLETED));
    assert_eq!((bench.events.len(), bench.ignored), (1, count + 1));
    let mut stranger = header("north");
    stranger.from = "stranger".into();
    bench.hear(IdentifyPillarsForPutFileRequest {
        header: stranger,
        audit_trail_information: None,
        file_id: None,
        file_size: None,
    });
    assert_eq!((bench.events.len(), bench.ignored), (1, count + 2));
    // Somebody sends a request under this conversation's id.
    bench.hear(IdentifyPillarsForPutFileRequest {
        header: header("north"),
        audit_trail_information: None,
        file_id: Some("hello.txt".into()),
        file_size: None,
    });
    assert_eq!(bench.last(), "WARNING north");
    bench.hear(put_identify("north", POSITIVE));
    assert_eq!(bench.last(), "IDENTIFICATION_COMPLETE [north]");
}

#[test]
fn what_the_bus_does_not_take() {
    let mut bench = put(&["north"]);
    bench.step(Input::SendFailed {
        contributor: None,
        text: "full".to_owned(),
    });
    assert_eq!(bench.last(), "FAILED");

    let mut bench = put(&["north", "south"]);
    bench.hear(put_identify("north", POSITIVE));
    bench.hear(put_identify("south", POSITIVE));
    bench.step(Input::OfferReady);
    bench.step(Input::SendFailed {
        contributor: None,
        text: "the connection broke, perhaps before it was sent".to_owned(),
    });
    assert_eq!(
        bench.last(),
        "REQUEST_SENT [north, south]",
        "all have answered, so it was sent"
    );
    let failed = || Input::SendFailed {
        contributor: Some("north".into()),
        text: "no".to_owned(),
    };
    bench.step(failed());
    bench.step(failed());
    assert_eq!(bench.last(), "COMPONENT_FAILED north");
    bench.hear(put_final("south", COMPLETED));
    assert_eq!(bench.last(), "FAILED");
}

#[test]
fn a_temporary_queue_is_answered_at_the_transports_address() {
    let temporary = || {
        let mut message = put_identify("north", POSITIVE);
        message.header.reply_to = Destination::new(DestinationKind::TemporaryQueue, "north");
        message
    };
    let mut bench = put(&["north"]);
    let reply_address = Some("/remote-temp-queue/1.2".to_owned());
    let message = Box::new(Message::from(temporary()));
    bench.step(Input::Message {
        message,
        reply_address: reply_address.clone(),
    });
    bench.step(Input::OfferReady);
    assert_eq!(bench.reply_addresses, [None, reply_address]);

    let mut bench = put(&["north"]);
    bench.hear(temporary());
    assert_eq!(bench.last(), "FAILED", "nobody can know where to ask");
}

#[test]
fn timers_that_fire_early_are_set_again() {
    let mut bench = put(&["north"]);
    let timer = bench.timer;
    bench.timer = None;
    bench.step(Input::TimerFired);
    assert_eq!(bench.timer, timer);
    assert_eq!(bench.events.len(), 1);
}

#[test]
fn no_limit_means_no_timer() {
    let mut context = super::support::context(&["north"], Some("hello.txt"));
    context.identification_timeout_ms = 0;
    context.operation_timeout_ms = -1;
    let mut bench = super::support::Bench::new(context, super::support::put_procedure());
    assert_eq!(bench.timer, None);
    bench.step(Input::TimerFired);
    bench.hear(put_identify("north", POSITIVE));
    bench.step(Input::OfferReady);
    assert_eq!(bench.timer, None);
    bench.step(Input::TimerFired);
    bench.hear(put_final("north", COMPLETED));
    assert_eq!(bench.last(), "COMPLETE");
}

#[test]
fn nobody_expected_is_an_end_too() {
    let bench = put(&[]);
    assert_eq!(bench.last(), "FAILED");
    assert_eq!(bench.sent.len(), 0);
}
