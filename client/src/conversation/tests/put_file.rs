//! PutFile, and with it what all operations have in common.

use pillarbox_messages::{
    ChecksumType, Destination, DestinationKind, HexBinary, IdentifyPillarsForPutFileRequest,
    Message, PutFileFinalResponse, ResponseCode,
};

use super::support::{
    COMPLETED, CORRELATION, IDENTIFICATION_MS, OPERATION_MS, OTHERS, OURS, POSITIVE, checksum,
    header, md5, put, put_duplicate, put_final, put_identify, put_progress, put_with,
};
use crate::{
    conversation::Input,
    digests::plain_spec,
    event::{ComponentResult, EventKind},
};

const THREE: [&str; 3] = ["north", "south", "sums"];

#[test]
fn everybody_stores_the_file() {
    let mut bench = put(&THREE);
    for pillar in THREE {
        bench.hear(put_identify(pillar, POSITIVE));
    }
    assert_eq!(bench.offered, 1, "only now is the file offered");
    assert_eq!(
        bench.asked().len(),
        0,
        "and nobody asked before it is there"
    );
    bench.step(Input::OfferReady);
    bench.hear(put_progress("south"));
    for pillar in THREE {
        assert_eq!(
            bench.removed, 0,
            "the file stays while a pillar may need it"
        );
        bench.hear(put_final(pillar, COMPLETED));
    }
    assert_eq!(
        bench.trace(),
        [
            "IDENTIFY_REQUEST_SENT",
            "COMPONENT_IDENTIFIED north",
            "COMPONENT_IDENTIFIED south",
            "COMPONENT_IDENTIFIED sums",
            "IDENTIFICATION_COMPLETE [north, south, sums]",
            "REQUEST_SENT [north, south, sums]",
            "PROGRESS south",
            "COMPONENT_COMPLETE north",
            "COMPONENT_COMPLETE south",
            "COMPONENT_COMPLETE sums",
            "COMPLETE",
        ]
    );
    assert_eq!((bench.removed, bench.timer), (1, None));
    let EventKind::Complete { results, .. } = &bench.events.last().unwrap().kind else {
        panic!()
    };
    assert_eq!(results.len(), 3);
}

#[test]
fn what_the_requests_say() {
    let mut bench = put(&THREE);
    let Message::IdentifyPillarsForPutFileRequest(identify) = &bench.sent[0] else {
        panic!()
    };
    assert_eq!(identify.file_size, Some(20));
    assert_eq!(identify.header.to, None, "it is for everybody");
    assert_eq!(identify.header.destination, Destination::topic("books"));
    assert_eq!(
        identify.header.reply_to,
        Destination::topic("books.client.reader")
    );
    for pillar in THREE {
        bench.hear(put_identify(pillar, POSITIVE));
    }
    bench.step(Input::OfferReady);
    assert_eq!(
        bench.asked(),
        THREE,
        "each is asked where its response said"
    );
    for (message, pillar) in bench.sent[1..].iter().zip(THREE) {
        let Message::PutFileRequest(request) = message else {
            panic!("{message:?}")
        };
        assert_eq!(request.pillar_id.as_ref().unwrap().as_str(), pillar);
        assert_eq!(request.header.to, None);
        assert_eq!(request.header.correlation_id.as_str(), CORRELATION);
        assert_eq!(request.file_size, Some(20));
        assert_eq!(request.checksum_data_for_new_file, Some(md5(OURS)));
        assert_eq!(
            request.audit_trail_information.as_deref(),
            Some("first ingest")
        );
    }
}

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
fn a_checksum_pillar_is_asked_for_the_default_checksum_only() {
    for (asked, expected) in [(ChecksumType::Md5, true), (ChecksumType::Sha1, false)] {
        let mut bench = put_with(&["north", "sums"], |put| {
            put.request_checksum = Some(plain_spec(asked));
        });
        bench.hear(put_identify("north", POSITIVE));
        let mut sums = put_identify("sums", POSITIVE);
        sums.pillar_checksum_spec = Some(plain_spec(ChecksumType::Md5));
        bench.hear(sums);
        bench.step(Input::OfferReady);
        let has_request: Vec<bool> = bench.sent[1..]
            .iter()
            .map(|message| match message {
                Message::PutFileRequest(put) => put.checksum_request_for_new_file.is_some(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(has_request, [true, expected]);
    }
}

#[test]
fn the_identical_file_everywhere_is_success_without_a_transfer() {
    let mut bench = put(&["north", "south"]);
    bench.hear(put_duplicate("north", Some(md5(OURS))));
    bench.hear(put_duplicate("south", Some(md5(OURS))));
    assert_eq!(
        bench.trace(),
        [
            "IDENTIFY_REQUEST_SENT",
            "COMPONENT_COMPLETE north",
            "COMPONENT_COMPLETE south",
            "IDENTIFICATION_COMPLETE []",
            "COMPLETE",
        ]
    );
    assert_eq!((bench.offered, bench.removed, bench.sent.len()), (0, 0, 1));
}

#[test]
fn a_pillar_that_has_the_file_is_not_asked_again() {
    let mut bench = put(&["north", "south"]);
    bench.hear(put_duplicate("north", Some(md5(OURS))));
    bench.hear(put_identify("south", POSITIVE));
    bench.step(Input::OfferReady);
    assert_eq!(bench.asked(), ["south"]);
    bench.hear(put_final("south", COMPLETED));
    assert_eq!(bench.last(), "COMPLETE");
    let EventKind::Complete { results, .. } = &bench.events.last().unwrap().kind else {
        panic!()
    };
    let already: Vec<bool> = results
        .iter()
        .map(|done| matches!(&done.result, ComponentResult::Stored(it) if it.already_there))
        .collect();
    assert_eq!(already, [true, false]);
}

#[test]
fn another_file_of_the_same_id_ends_the_put_before_any_transfer() {
    let salted = pillarbox_messages::ChecksumSpec {
        checksum_salt: Some(HexBinary::from(vec![1])),
        ..plain_spec(ChecksumType::HmacMd5)
    };
    let cases = [
        ("another value", true, Some(md5(OTHERS))),
        (
            "the same value of another kind",
            true,
            Some(checksum(salted, OURS)),
        ),
        ("no checksum told", true, None),
        ("no checksum of ours", false, Some(md5(OURS))),
        ("no checksum at all", false, None),
    ];
    for (case, with_checksum, existing) in cases {
        let mut bench = put_with(&["north", "south"], |put| {
            put.checksum = with_checksum.then(|| md5(OURS));
        });
        bench.hear(put_duplicate("north", existing));
        let expected = [
            "IDENTIFY_REQUEST_SENT",
            "COMPONENT_FAILED north DUPLICATE_FILE_FAILURE",
            "FAILED",
        ];
        assert_eq!(bench.trace(), expected, "{case}");
        assert_eq!((bench.offered, bench.sent.len()), (0, 1), "{case}");
        bench.hear(put_identify("south", POSITIVE));
        assert_eq!(
            bench.events.len(),
            3,
            "nothing after the last event: {case}"
        );
    }
}

#[test]
fn an_empty_salt_is_no_difference() {
    let empty = pillarbox_messages::ChecksumSpec {
        checksum_salt: Some(HexBinary::from(Vec::new())),
        ..plain_spec(ChecksumType::Md5)
    };
    let mut bench = put(&["north"]);
    bench.hear(put_duplicate("north", Some(checksum(empty, OURS))));
    assert_eq!(bench.last(), "COMPLETE");
}

#[test]
fn a_duplicate_found_while_performing() {
    let duplicate = |existing| PutFileFinalResponse {
        checksum_data_for_existing_file: existing,
        ..put_final("north", ResponseCode::DuplicateFileFailure)
    };
    let cases = [
        (Some(md5(OURS)), "COMPONENT_COMPLETE north", "COMPLETE"),
        (
            Some(md5(OTHERS)),
            "COMPONENT_FAILED north DUPLICATE_FILE_FAILURE",
            "FAILED",
        ),
        (
            None,
            "COMPONENT_FAILED north DUPLICATE_FILE_FAILURE",
            "FAILED",
        ),
    ];
    for (existing, component, last) in cases {
        let mut bench = put(&["north", "south"]);
        bench.hear(put_identify("north", POSITIVE));
        bench.hear(put_identify("south", POSITIVE));
        bench.step(Input::OfferReady);
        bench.hear(duplicate(existing));
        assert_eq!(bench.last(), component);
        assert_eq!(bench.removed, 0, "south may still be fetching the file");
        bench.hear(put_final("south", COMPLETED));
        assert_eq!(bench.last(), last);
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
fn partial_puts_can_be_forbidden() {
    let mut bench = put_with(&["north", "south"], |put| put.partial_allowed = false);
    bench.hear(put_identify("south", POSITIVE));
    bench.time_out();
    assert_eq!(bench.last(), "FAILED");
    assert_eq!(bench.offered, 0);
    // A refusal is an answer: nobody is outstanding.
    let mut bench = put_with(&["north", "south"], |put| put.partial_allowed = false);
    bench.hear(put_identify("south", POSITIVE));
    bench.hear(put_identify("north", ResponseCode::Failure));
    assert_eq!(bench.offered, 1);
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
fn a_failed_transfer_is_retried_as_often_as_allowed() {
    let transfer = || put_final("north", ResponseCode::FileTransferFailure);
    for retries in 0..3 {
        let mut bench = put_with(&["north"], |put| put.retries = retries);
        bench.hear(put_identify("north", POSITIVE));
        bench.step(Input::OfferReady);
        for _ in 0..retries {
            bench.hear(transfer());
            assert_eq!(bench.last(), "WARNING north");
        }
        assert_eq!(bench.asked().len(), 1 + retries as usize);
        bench.hear(transfer());
        assert_eq!(bench.last(), "FAILED");
        assert_eq!(bench.asked().len(), 1 + retries as usize);
    }
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
fn a_failed_offer_and_a_canceled_put_leave_nothing_behind() {
    let mut bench = put(&["north"]);
    bench.hear(put_identify("north", POSITIVE));
    bench.step(Input::OfferFailed {
        text: "507".to_owned(),
    });
    assert_eq!((bench.last().as_str(), bench.removed), ("FAILED", 1));
    assert_eq!(bench.asked().len(), 0);

    let mut bench = put(&["north"]);
    bench.hear(put_identify("north", POSITIVE));
    bench.step(Input::OfferReady);
    bench.step(Input::Abort {
        reason: "canceled".to_owned(),
    });
    bench.step(Input::Abort {
        reason: "canceled".to_owned(),
    });
    assert_eq!((bench.last().as_str(), bench.removed), ("FAILED", 1));
    assert_eq!(bench.info(), "canceled");

    let mut bench = put(&["north"]);
    bench.step(Input::Abort {
        reason: "canceled".to_owned(),
    });
    assert_eq!(
        (bench.last().as_str(), bench.removed),
        ("FAILED", 0),
        "nothing was there"
    );
}

#[test]
fn an_upload_that_takes_too_long() {
    let mut bench = put(&["north"]);
    bench.hear(put_identify("north", POSITIVE));
    bench.time_out();
    assert_eq!((bench.last().as_str(), bench.removed), ("FAILED", 1));
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
