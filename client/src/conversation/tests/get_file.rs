//! GetFile: who is asked, and who is asked next.

use pillarbox_messages::{ChecksumType, FilePart, Message, ResponseCode};

use super::support::{
    COMPLETED, OPERATION_MS, OURS, POSITIVE, checksum, get, get_final, get_identify, get_progress,
    md5,
};
use crate::{
    conversation::{Expected, Input},
    digests::plain_spec,
    event::{ComponentResult, Delivered, EventKind},
};

#[test]
fn the_fastest_delivers() {
    let mut bench = get(&["north", "south", "sums"]);
    bench.hear(get_identify("north", POSITIVE, Some(1000)));
    bench.hear(get_identify(
        "sums",
        ResponseCode::RequestNotSupported,
        None,
    ));
    bench.hear(get_identify("south", POSITIVE, Some(10)));
    bench.hear(get_progress("south"));
    bench.hear(get_final("south", COMPLETED));
    assert_eq!(
        bench.downloads,
        [Expected {
            file_size: Some(20),
            checksum: Some(md5(OURS)),
            part: None,
        }]
    );
    assert_eq!(
        bench.last(),
        "PROGRESS south",
        "it is complete when the file is here"
    );
    bench.hear(get_final("south", ResponseCode::Failure));
    bench.step(Input::DownloadFinished(Delivered {
        replaced: false,
        size: 20,
        checksum: None,
    }));
    assert_eq!(
        bench.trace(),
        [
            "IDENTIFY_REQUEST_SENT",
            "COMPONENT_IDENTIFIED north",
            "COMPONENT_IDENTIFIED south",
            "IDENTIFICATION_COMPLETE [south]",
            "REQUEST_SENT [south]",
            "PROGRESS south",
            "COMPONENT_COMPLETE south",
            "COMPLETE",
        ]
    );
    assert_eq!(bench.removed, 1, "the file does not stay on the exchange");
    assert_eq!(bench.ignored, 1);
}

#[test]
fn of_equally_fast_pillars_the_last_that_answered() {
    let mut bench = get(&["a", "b", "c", "d"]);
    bench.hear(get_identify("b", POSITIVE, Some(10)));
    bench.hear(get_identify("c", POSITIVE, Some(10)));
    bench.hear(get_identify("a", POSITIVE, None));
    bench.hear(get_identify("d", POSITIVE, Some(11)));
    assert_eq!(bench.asked(), ["c"]);
    for (failing, next) in [("c", "b"), ("b", "d"), ("d", "a")] {
        bench.hear(get_final(failing, ResponseCode::FileTransferFailure));
        assert_eq!(bench.asked().last().unwrap(), next);
    }
    bench.hear(get_final("a", ResponseCode::Failure));
    assert_eq!(bench.last(), "FAILED");
    let EventKind::Failed { failures, .. } = &bench.events.last().unwrap().kind else {
        panic!()
    };
    assert_eq!(failures.len(), 4);
}

#[test]
fn a_refusal_or_silence_of_some_is_no_failure() {
    let mut bench = get(&["north", "south", "mute"]);
    bench.hear(get_identify(
        "north",
        ResponseCode::FileNotFoundFailure,
        None,
    ));
    bench.hear(get_identify("south", POSITIVE, Some(1)));
    bench.time_out();
    bench.hear(get_final("south", COMPLETED));
    bench.step(Input::DownloadFinished(Delivered {
        replaced: false,
        size: 20,
        checksum: None,
    }));
    assert_eq!(bench.last(), "COMPLETE");
    assert_eq!(bench.asked(), ["south"]);
    let EventKind::Complete { failures, .. } = &bench.events.last().unwrap().kind else {
        panic!()
    };
    assert_eq!(failures.len(), 2);
}

#[test]
fn nobody_has_it() {
    let mut bench = get(&["north", "south"]);
    bench.hear(get_identify(
        "north",
        ResponseCode::FileNotFoundFailure,
        None,
    ));
    bench.hear(get_identify(
        "south",
        ResponseCode::FileNotFoundFailure,
        None,
    ));
    assert_eq!(bench.last(), "FAILED");
    assert!(
        bench
            .info()
            .starts_with("Unable to continue operation, contributors unavailable.")
    );
    assert_eq!((bench.sent.len(), bench.removed), (1, 0));
}

#[test]
fn bytes_that_are_not_what_the_pillar_said() {
    let mut bench = get(&["north", "south"]);
    bench.hear(get_identify("north", POSITIVE, Some(2)));
    bench.hear(get_identify("south", POSITIVE, Some(1)));
    bench.hear(get_progress("south"));
    bench.hear(get_final("south", COMPLETED));
    bench.step(Input::DownloadFailed {
        another_may_help: true,
        text: "wrong bytes".to_owned(),
    });
    assert_eq!(bench.asked(), ["south", "north"]);
    assert_eq!(
        bench.trace()[6..],
        ["COMPONENT_FAILED south", "REQUEST_SENT [north]"]
    );
    bench.hear(get_final("north", COMPLETED));
    assert_eq!(
        bench.downloads[1],
        Expected::default(),
        "what another pillar said does not count"
    );
    bench.step(Input::DownloadFinished(Delivered {
        replaced: false,
        size: 20,
        checksum: None,
    }));
    assert_eq!(bench.last(), "COMPLETE");
}

#[test]
fn a_full_disk_here_is_not_another_pillars_business() {
    let mut bench = get(&["north", "south"]);
    bench.hear(get_identify("north", POSITIVE, Some(2)));
    bench.hear(get_identify("south", POSITIVE, Some(1)));
    bench.hear(get_final("south", COMPLETED));
    bench.step(Input::DownloadFailed {
        another_may_help: false,
        text: "disk full".to_owned(),
    });
    assert_eq!(
        (bench.last().as_str(), bench.info().as_str()),
        ("FAILED", "disk full")
    );
    assert_eq!((bench.asked().len(), bench.removed), (1, 1));
}

#[test]
fn fetching_has_the_full_time_and_no_more() {
    let mut bench = get(&["north"]);
    bench.hear(get_identify("north", POSITIVE, Some(2)));
    bench.now_ms += OPERATION_MS - 1;
    bench.hear(get_final("north", COMPLETED));
    let delivered = bench.now_ms;
    bench.time_out();
    assert_eq!(bench.now_ms, delivered + OPERATION_MS);
    assert_eq!(bench.trace()[4..], ["COMPONENT_FAILED north", "FAILED"]);
    bench.step(Input::DownloadFinished(Delivered {
        replaced: false,
        size: 20,
        checksum: None,
    }));
    assert_eq!(bench.last(), "FAILED");
}

#[test]
fn a_pillar_that_does_not_deliver_in_time() {
    let mut bench = get(&["north"]);
    bench.hear(get_identify("north", POSITIVE, Some(2)));
    assert_eq!(
        bench.sent[1].header().to.as_ref().unwrap().as_str(),
        "north"
    );
    bench.time_out();
    assert_eq!(bench.trace()[4..], ["COMPONENT_FAILED north", "FAILED"]);
}

#[test]
fn what_could_not_be_compared_is_told() {
    let odd = || checksum(plain_spec(ChecksumType::Other), OURS);
    let told = |size, checksum| {
        Some(Expected {
            file_size: size,
            checksum,
            part: None,
        })
    };
    for (progress, warning) in [
        (None, "not compared"),
        (told(None, None), "not compared"),
        (told(None, Some(odd())), "not compared"),
        (told(Some(20), None), "by its length only"),
        (told(Some(20), Some(odd())), "by its length only"),
        (told(None, Some(md5(OURS))), ""),
    ] {
        let mut bench = get(&["north"]);
        bench.hear(get_identify("north", POSITIVE, Some(1)));
        if let Some(told) = &progress {
            let mut progress = get_progress("north");
            progress.file_size = told.file_size;
            progress
                .checksum_data_for_existing_file
                .clone_from(&told.checksum);
            bench.hear(progress);
        }
        bench.hear(get_final("north", COMPLETED));
        // Too late: the fetching has begun.
        bench.hear(get_progress("north"));
        bench.step(Input::DownloadFinished(Delivered {
            replaced: false,
            size: 20,
            checksum: None,
        }));
        assert_eq!(bench.last(), "COMPLETE");
        let warnings: Vec<&str> = bench
            .events
            .iter()
            .filter(|event| event.kind.name() == "WARNING")
            .filter_map(|event| event.info.as_deref())
            .collect();
        let expected = usize::from(!warning.is_empty());
        assert_eq!(warnings.len(), expected, "{progress:?}: {warnings:?}");
        assert!(
            warnings.iter().all(|text| text.contains(warning)),
            "{warnings:?}"
        );
        let EventKind::Complete { results, .. } = &bench.events.last().unwrap().kind else {
            panic!()
        };
        let ComponentResult::Delivered(delivered) = &results[0].result else {
            panic!()
        };
        assert_eq!(delivered.checksum.is_some(), warning.is_empty());
    }
}

#[test]
fn a_part_is_asked_for_and_told_to_be_compared_by_its_length_only() {
    let part = FilePart {
        part_offset: 15,
        part_length: 50,
    };
    for (size, length) in [(Some(20), Some(5)), (Some(3), Some(0)), (None, None)] {
        let mut bench = get(&["north"]);
        bench.conversation.procedure.part = Some(part.clone());
        bench.hear(get_identify("north", POSITIVE, Some(1)));
        let Message::GetFileRequest(request) = &bench.sent[1] else {
            panic!();
        };
        assert_eq!(request.file_part, Some(part.clone()));
        let mut progress = get_progress("north");
        progress.file_part = Some(part.clone());
        progress.file_size = size;
        bench.hear(progress);
        let mut done = get_final("north", COMPLETED);
        done.file_part = Some(part.clone());
        bench.hear(done);
        let expected = &bench.downloads[0];
        assert_eq!(
            (expected.size(), expected.limit()),
            (length, length.or(Some(50)))
        );
        assert_eq!(
            expected.comparable(),
            None,
            "the checksum is that of the whole file"
        );
        bench.step(Input::DownloadFinished(Delivered {
            replaced: false,
            size: 5,
            checksum: None,
        }));
        assert_eq!(
            bench.trace()[5..],
            ["WARNING north", "COMPONENT_COMPLETE north", "COMPLETE"]
        );
        let told = bench.events[5].info.as_deref().unwrap();
        assert!(told.contains("the part was compared"), "{told}");
    }
}

#[test]
fn another_part_is_not_taken() {
    let part = |part_offset| {
        Some(FilePart {
            part_offset,
            part_length: 5,
        })
    };
    for (asked, delivered) in [(part(0), part(5)), (None, part(0))] {
        let mut bench = get(&["north"]);
        bench.conversation.procedure.part.clone_from(&asked);
        bench.hear(get_identify("north", POSITIVE, Some(1)));
        let mut done = get_final("north", COMPLETED);
        done.file_part = delivered;
        bench.hear(done);
        assert_eq!(bench.downloads.len(), 0);
        assert_eq!(bench.last(), "FAILED");
        assert!(bench.info().contains("another part"), "{}", bench.info());
    }
}
