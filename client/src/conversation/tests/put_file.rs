//! PutFile: who gets the file, and what an existing one means.

use pillarbox_messages::{
    ChecksumType, Destination, HexBinary, Message, PutFileFinalResponse, ResponseCode,
};

use super::support::{
    COMPLETED, CORRELATION, OTHERS, OURS, POSITIVE, checksum, md5, put, put_duplicate, put_final,
    put_identify, put_progress, put_with,
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
            put.new.checksum = with_checksum.then(|| md5(OURS));
        });
        bench.hear(put_duplicate("north", existing));
        // The other may say for a moment that it refuses, too.
        assert_eq!(bench.timer, Some(bench.now_ms + 1000), "{case}");
        bench.time_out();
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
fn all_who_have_a_different_file_are_named() {
    let mut bench = put(&["north", "south", "west"]);
    bench.hear(put_identify("west", POSITIVE));
    bench.hear(put_duplicate("north", Some(md5(OTHERS))));
    bench.hear(put_duplicate("south", None));
    assert_eq!(bench.last(), "FAILED");
    assert_eq!((bench.offered, bench.sent.len()), (0, 1));
    let told = bench.info();
    for cause in [
        "north: DUPLICATE_FILE_FAILURE, a different file",
        "south: DUPLICATE_FILE_FAILURE, a file with this id exists, and no checksum",
    ] {
        assert!(told.contains(cause), "{told}");
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
fn an_existing_file_is_compared_by_its_own_kind_of_checksum() {
    let sha1 = checksum(
        plain_spec(ChecksumType::Sha1),
        "2fd4e1c67a2d28fced849ee1bb76e7391b93eb12",
    );
    for (known, last) in [
        (Some(md5(OURS)), "COMPLETE"),
        (Some(md5(OTHERS)), "FAILED"),
        (None, "FAILED"),
    ] {
        let mut bench = put_with(&["north"], |put| {
            put.new.checksum = Some(sha1.clone());
            put.new.default_checksum = known;
        });
        bench.hear(put_duplicate("north", Some(md5(OURS))));
        assert_eq!(bench.last(), last);
    }
}

#[test]
fn whoever_owes_an_answer_is_asked_again_when_the_bus_is_back() {
    let mut bench = put(&["north", "south"]);
    bench.hear(put_identify("north", POSITIVE));
    bench.step(Input::Reconnected { answers_kept: true });
    let identifications = |sent: &[Message]| {
        let kind = |it: &&Message| matches!(it, Message::IdentifyPillarsForPutFileRequest(_));
        sent.iter().filter(kind).count()
    };
    assert_eq!(identifications(&bench.sent), 2);
    bench.hear(put_identify("north", POSITIVE));
    bench.hear(put_identify("south", POSITIVE));
    bench.step(Input::OfferReady);
    bench.hear(put_final("north", COMPLETED));
    bench.step(Input::Reconnected { answers_kept: true });
    assert_eq!(bench.asked(), ["north", "south", "south"]);
    bench.hear(put_final("south", COMPLETED));
    bench.step(Input::Reconnected { answers_kept: true });
    assert_eq!(bench.asked().len(), 3, "it is over");
    assert_eq!(bench.last(), "COMPLETE");
}
