//! DeleteFile.

use pillarbox_messages::{
    ChecksumType, DeleteFileFinalResponse, DeleteFileProgressResponse,
    IdentifyPillarsForDeleteFileResponse, Message, ResponseCode,
};

use super::support::{
    ACCEPTED, Bench, COMPLETED, OTHERS, OURS, POSITIVE, checksum, context, header, info, md5,
};
use crate::{
    conversation::delete_file::DeleteFileProcedure,
    digests::plain_spec,
    event::{ComponentResult, Deleted, EventKind},
};

const NOT_FOUND: ResponseCode = ResponseCode::FileNotFoundFailure;

pub(super) fn delete_procedure() -> DeleteFileProcedure {
    DeleteFileProcedure {
        file: "hello.txt".into(),
        existing_checksum: Some(md5(OURS)),
        request_checksum: Some(plain_spec(ChecksumType::Md5)),
        default_spec: plain_spec(ChecksumType::Md5),
        checksum_pillar: false,
        audit_trail_information: Some("by order".to_owned()),
    }
}

fn delete() -> Bench<DeleteFileProcedure> {
    Bench::new(context(&["north"], Some("hello.txt")), delete_procedure())
}

pub(super) fn delete_identify(
    from: &str,
    code: ResponseCode,
) -> IdentifyPillarsForDeleteFileResponse {
    IdentifyPillarsForDeleteFileResponse {
        header: header(from),
        response_info: info(code),
        file_id: "hello.txt".into(),
        pillar_id: from.into(),
        pillar_checksum_spec: None,
        time_to_deliver: None,
    }
}

pub(super) fn delete_progress(from: &str) -> DeleteFileProgressResponse {
    DeleteFileProgressResponse {
        header: header(from),
        response_info: info(ACCEPTED),
        pillar_id: Some(from.into()),
        file_id: "hello.txt".into(),
    }
}

pub(super) fn delete_final(from: &str, code: ResponseCode) -> DeleteFileFinalResponse {
    DeleteFileFinalResponse {
        header: header(from),
        response_info: info(code),
        pillar_id: Some(from.into()),
        file_id: "hello.txt".into(),
        checksum_data_for_existing_file: (code == COMPLETED).then(|| md5(OURS)),
    }
}

/// What the only contributor has done.
fn deleted(bench: &Bench<DeleteFileProcedure>) -> Deleted {
    let EventKind::Complete { results, .. } = &bench.events.last().unwrap().kind else {
        panic!("{:?}", bench.trace());
    };
    let ComponentResult::Deleted(deleted) = &results[0].result else {
        panic!("{results:?}");
    };
    deleted.clone()
}

#[test]
fn a_file_is_deleted() {
    let mut bench = delete();
    bench.hear(delete_identify("north", POSITIVE));
    bench.hear(delete_progress("north"));
    bench.hear(delete_final("north", COMPLETED));
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
    let Message::DeleteFileRequest(request) = &bench.sent[1] else {
        panic!();
    };
    assert_eq!(request.pillar_id, Some("north".into()));
    assert_eq!(request.header.to, Some("north".into()));
    assert_eq!(request.checksum_data_for_existing_file, Some(md5(OURS)));
    assert_eq!(request.audit_trail_information.as_deref(), Some("by order"));
    let expected = Deleted {
        checksum: Some(md5(OURS)),
        already_absent: false,
    };
    assert_eq!(deleted(&bench), expected);
}

#[test]
fn a_file_that_is_not_there_counts_as_deleted() {
    let mut bench = delete();
    bench.hear(delete_identify("north", NOT_FOUND));
    assert_eq!(
        bench.trace(),
        [
            "IDENTIFY_REQUEST_SENT",
            "COMPONENT_IDENTIFIED north",
            "COMPONENT_COMPLETE north",
            "IDENTIFICATION_COMPLETE []",
            "COMPLETE",
        ]
    );
    assert_eq!(bench.sent.len(), 1, "nobody is asked to delete anything");
    assert!(deleted(&bench).already_absent);
    let told = bench.events[2].info.as_deref();
    assert_eq!(told, Some("already absent"));
}

#[test]
fn a_file_that_goes_away_meanwhile_counts_as_deleted() {
    let mut bench = delete();
    bench.hear(delete_identify("north", POSITIVE));
    bench.hear(delete_progress("north"));
    bench.hear(delete_final("north", NOT_FOUND));
    assert_eq!(
        bench.trace()[4..],
        ["PROGRESS north", "COMPONENT_COMPLETE north", "COMPLETE"]
    );
    assert!(deleted(&bench).already_absent);
}

#[test]
fn every_other_refusal_is_the_end() {
    let refusals = [
        ResponseCode::IdentificationNegative,
        ResponseCode::Failure,
        ResponseCode::RequestNotUnderstoodFailure,
        ResponseCode::ExistingFileChecksumFailure,
    ];
    for code in refusals {
        let mut bench = delete();
        bench.hear(delete_identify("north", code));
        let failed = format!("COMPONENT_FAILED north {code}");
        assert_eq!(bench.trace()[1..], [failed.as_str(), "FAILED"]);
        assert!(bench.info().contains(&format!("said {code}")));

        let mut bench = delete();
        bench.hear(delete_identify("north", POSITIVE));
        bench.hear(delete_final("north", code));
        assert_eq!(bench.trace()[4..], [failed.as_str(), "FAILED"]);
    }
    let mut bench = delete();
    bench.hear(delete_identify("north", ResponseCode::RequestNotSupported));
    assert_eq!(bench.last(), "FAILED", "nobody has deleted anything");
}

#[test]
fn silence_is_the_end() {
    let mut bench = delete();
    bench.time_out();
    assert_eq!(
        bench.trace()[1..],
        [
            "IDENTIFY_TIMEOUT [north]",
            "COMPONENT_FAILED north",
            "FAILED"
        ]
    );
    let mut bench = delete();
    bench.hear(delete_identify("north", POSITIVE));
    bench.time_out();
    assert_eq!(bench.trace()[4..], ["COMPONENT_FAILED north", "FAILED"]);
}

#[test]
fn a_checksum_pillar_is_asked_for_the_default_checksum_only() {
    let cases = [
        (ChecksumType::Md5, true, true),
        (ChecksumType::Sha1, true, false),
        (ChecksumType::Sha1, false, true),
    ];
    for (asked, checksum_pillar, sent) in cases {
        let procedure = DeleteFileProcedure {
            request_checksum: Some(plain_spec(asked)),
            existing_checksum: Some(checksum(plain_spec(asked), OTHERS)),
            ..delete_procedure()
        };
        let mut bench = Bench::new(context(&["sums"], Some("hello.txt")), procedure);
        let mut identify = delete_identify("sums", POSITIVE);
        identify.pillar_checksum_spec = checksum_pillar.then(|| plain_spec(ChecksumType::Md5));
        bench.hear(identify);
        let Message::DeleteFileRequest(request) = &bench.sent[1] else {
            panic!();
        };
        let request = request.checksum_request_for_existing_file.as_ref();
        assert_eq!(request.is_some(), sent, "{asked} {checksum_pillar}");
    }
}
