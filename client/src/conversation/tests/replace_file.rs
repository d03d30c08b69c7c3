//! ReplaceFile.

use pillarbox_messages::{
    ChecksumData, ChecksumType, IdentifyPillarsForReplaceFileResponse, Message,
    ReplaceFileFinalResponse, ReplaceFileProgressResponse, ResponseCode,
};

use super::support::{
    ACCEPTED, ADDRESS, Bench, COMPLETED, OTHERS, OURS, POSITIVE, checksum, context, header, info,
    md5, new_file,
};
use crate::{
    conversation::{Input, replace_file::ReplaceFileProcedure},
    digests::plain_spec,
    event::{ComponentResult, EventKind, Replaced},
};

const MISMATCH: ResponseCode = ResponseCode::ExistingFileChecksumFailure;

pub(super) fn replace_procedure() -> ReplaceFileProcedure {
    ReplaceFileProcedure {
        file: "hello.txt".into(),
        new: new_file(),
        existing_checksum: Some(md5(OTHERS)),
        request_existing_checksum: Some(plain_spec(ChecksumType::Md5)),
        request_checksum: Some(plain_spec(ChecksumType::Md5)),
        checksum_pillar: false,
        audit_trail_information: Some("better scan".to_owned()),
    }
}

fn replace() -> Bench<ReplaceFileProcedure> {
    Bench::new(context(&["north"], Some("hello.txt")), replace_procedure())
}

pub(super) fn replace_identify(
    from: &str,
    code: ResponseCode,
) -> IdentifyPillarsForReplaceFileResponse {
    IdentifyPillarsForReplaceFileResponse {
        header: header(from),
        response_info: info(code),
        file_id: "hello.txt".into(),
        pillar_id: from.into(),
        pillar_checksum_spec: None,
        time_to_deliver: None,
    }
}

pub(super) fn replace_progress(from: &str) -> ReplaceFileProgressResponse {
    ReplaceFileProgressResponse {
        header: header(from),
        response_info: info(ACCEPTED),
        pillar_id: Some(from.into()),
        pillar_checksum_spec: None,
        file_id: "hello.txt".into(),
        file_address: ADDRESS.to_owned(),
    }
}

pub(super) fn replace_final(from: &str, code: ResponseCode) -> ReplaceFileFinalResponse {
    ReplaceFileFinalResponse {
        header: header(from),
        response_info: info(code),
        pillar_id: Some(from.into()),
        pillar_checksum_spec: None,
        file_id: "hello.txt".into(),
        file_address: ADDRESS.to_owned(),
        checksum_data_for_existing_file: (code == COMPLETED).then(|| md5(OTHERS)),
        checksum_data_for_new_file: (code == COMPLETED).then(|| md5(OURS)),
    }
}

fn replaced(bench: &Bench<ReplaceFileProcedure>) -> Replaced {
    let EventKind::Complete { results, .. } = &bench.events.last().unwrap().kind else {
        panic!("{:?}", bench.trace());
    };
    let ComponentResult::Replaced(replaced) = &results[0].result else {
        panic!("{results:?}");
    };
    replaced.clone()
}

#[test]
fn a_file_is_replaced() {
    let mut bench = replace();
    assert_eq!(bench.offered, 0);
    bench.hear(replace_identify("north", POSITIVE));
    assert_eq!(bench.offered, 1, "once the pillar is ready");
    assert_eq!(
        bench.sent.len(),
        1,
        "nothing is asked before the file is there"
    );
    bench.step(Input::OfferReady);
    bench.hear(replace_progress("north"));
    bench.hear(replace_final("north", COMPLETED));
    assert_eq!(
        bench.trace(),
        [
            "IDENTIFY_REQUEST_SENT",
            "COMPONENT_IDENTIFIED north",
            "IDENTIFICATION_COMPLETE [north]",
            "REQUEST_SENT [north]",
            "PROGRESS north",
            "COMPONENT_COMPLETE north",
            "COMPLETE",
        ]
    );
    assert_eq!(bench.removed, 1);
    let Message::IdentifyPillarsForReplaceFileRequest(identify) = &bench.sent[0] else {
        panic!();
    };
    assert_eq!(identify.file_size, Some(20));
    let Message::ReplaceFileRequest(request) = &bench.sent[1] else {
        panic!();
    };
    assert_eq!(request.file_size, 20);
    assert_eq!(request.file_address, ADDRESS);
    assert_eq!(request.checksum_data_for_existing_file, Some(md5(OTHERS)));
    assert_eq!(request.checksum_data_for_new_file, Some(md5(OURS)));
    let expected = Replaced {
        existing: Some(md5(OTHERS)),
        new: Some(md5(OURS)),
        already_there: Some(false),
        checksums_only: false,
    };
    assert_eq!(replaced(&bench), expected);
}

/// A pillar may answer that it has replaced a file by the same; its checksums tell.
#[test]
fn a_file_that_was_the_new_one_already_is_told_so() {
    let sha1 = || plain_spec(ChecksumType::Sha1);
    let md5_spec = || plain_spec(ChecksumType::Md5);
    // Old and new checksum: what the caller wants, what the pillar is asked for and tells, and what comes of it.
    let cases = [
        (None, None, md5_spec(), md5_spec(), Some(true)),
        (Some(sha1()), None, sha1(), sha1(), Some(true)),
        (None, Some(sha1()), sha1(), sha1(), Some(true)),
        (Some(sha1()), Some(sha1()), sha1(), sha1(), Some(true)),
        (Some(sha1()), Some(md5_spec()), sha1(), md5_spec(), None),
    ];
    for (old, new, asked_old, asked_new, already_there) in cases {
        let procedure = ReplaceFileProcedure {
            request_existing_checksum: old.clone(),
            request_checksum: new.clone(),
            ..replace_procedure()
        };
        let mut bench = Bench::new(context(&["north"], Some("hello.txt")), procedure);
        bench.hear(replace_identify("north", POSITIVE));
        bench.step(Input::OfferReady);
        let Message::ReplaceFileRequest(request) = &bench.sent[1] else {
            panic!();
        };
        let asked = (
            request.checksum_request_for_existing_file.clone(),
            request.checksum_request_for_new_file.clone(),
        );
        assert_eq!(asked, (Some(asked_old.clone()), Some(asked_new.clone())));
        let mut answer = replace_final("north", COMPLETED);
        let told = (checksum(asked_old, OURS), checksum(asked_new, OURS));
        answer.checksum_data_for_existing_file = Some(told.0.clone());
        answer.checksum_data_for_new_file = Some(told.1.clone());
        bench.hear(answer);
        let expected = Replaced {
            existing: old.map(|_| told.0),
            new: new.map(|_| told.1),
            already_there,
            checksums_only: false,
        };
        assert_eq!(replaced(&bench), expected);
    }
    // One that does not tell them is not believed to have replaced anything, nor not to have.
    let mut bench = replace();
    bench.hear(replace_identify("north", POSITIVE));
    bench.step(Input::OfferReady);
    let mut answer = replace_final("north", COMPLETED);
    answer.checksum_data_for_existing_file = None;
    bench.hear(answer);
    assert_eq!(replaced(&bench).already_there, None);
}

#[test]
fn nothing_is_offered_to_a_pillar_that_does_not_want_it() {
    for code in [ResponseCode::FileNotFoundFailure, ResponseCode::Failure] {
        let mut bench = replace();
        bench.hear(replace_identify("north", code));
        let failed = format!("COMPONENT_FAILED north {code}");
        assert_eq!(bench.trace()[1..], [failed.as_str(), "FAILED"]);
        assert_eq!((bench.offered, bench.removed), (0, 0));
    }
    let mut bench = replace();
    bench.time_out();
    assert_eq!(
        bench.trace()[1..],
        [
            "IDENTIFY_TIMEOUT [north]",
            "COMPONENT_FAILED north",
            "FAILED"
        ]
    );
    assert_eq!(bench.offered, 0);
}

#[test]
fn a_pillar_that_has_the_new_file_already_counts_as_done() {
    let sha1 = |value| checksum(plain_spec(ChecksumType::Sha1), value);
    let cases: [(Option<ChecksumData>, bool); 4] = [
        (Some(md5(OURS)), true),
        (Some(md5(OTHERS)), false),
        // The same digits, computed in another way.
        (Some(sha1(OURS)), false),
        (None, false),
    ];
    for (existing, done) in cases {
        let mut bench = replace();
        bench.hear(replace_identify("north", POSITIVE));
        bench.step(Input::OfferReady);
        let mut refusal = replace_final("north", MISMATCH);
        refusal
            .checksum_data_for_existing_file
            .clone_from(&existing);
        bench.hear(refusal);
        assert_eq!(bench.removed, 1);
        if done {
            assert_eq!(replaced(&bench).already_there, Some(true));
            assert_eq!(bench.trace()[4..], ["COMPONENT_COMPLETE north", "COMPLETE"]);
        } else {
            assert_eq!(bench.last(), "FAILED", "{existing:?}");
        }
    }
    // Only that refusal says what the pillar has.
    let mut bench = replace();
    bench.hear(replace_identify("north", POSITIVE));
    bench.step(Input::OfferReady);
    let mut failed = replace_final("north", ResponseCode::Failure);
    failed.checksum_data_for_existing_file = Some(md5(OURS));
    bench.hear(failed);
    assert_eq!(bench.last(), "FAILED");
}

#[test]
fn what_the_only_pillar_says_is_the_end() {
    let codes = [
        ResponseCode::Failure,
        ResponseCode::FileTransferFailure,
        ResponseCode::NewFileChecksumFailure,
        ResponseCode::FileNotFoundFailure,
    ];
    for code in codes {
        let mut bench = replace();
        bench.hear(replace_identify("north", POSITIVE));
        bench.step(Input::OfferReady);
        bench.hear(replace_final("north", code));
        let failed = format!("COMPONENT_FAILED north {code}");
        assert_eq!(bench.trace()[4..], [failed.as_str(), "FAILED"]);
        assert_eq!(bench.sent.len(), 2, "it is asked once");
        assert_eq!(bench.removed, 1);
    }
}

#[test]
fn a_checksum_pillar_is_asked_for_the_default_checksum_only() {
    let procedure = ReplaceFileProcedure {
        request_existing_checksum: Some(plain_spec(ChecksumType::Sha1)),
        ..replace_procedure()
    };
    for checksum_pillar in [false, true] {
        let context = context(&["sums"], Some("hello.txt"));
        let mut bench = Bench::new(context, procedure.clone());
        let mut identify = replace_identify("sums", POSITIVE);
        identify.pillar_checksum_spec = checksum_pillar.then(|| plain_spec(ChecksumType::Md5));
        bench.hear(identify);
        bench.step(Input::OfferReady);
        let Message::ReplaceFileRequest(request) = &bench.sent[1] else {
            panic!();
        };
        let asked = match checksum_pillar {
            true => ChecksumType::Md5,
            false => ChecksumType::Sha1,
        };
        let existing = request.checksum_request_for_existing_file.as_ref();
        assert_eq!(existing, Some(&plain_spec(asked)));
        let new = request.checksum_request_for_new_file.as_ref();
        assert_eq!(new, Some(&plain_spec(ChecksumType::Md5)));
    }
}
