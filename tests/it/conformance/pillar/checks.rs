//! Every check of every request. A request of a row fails that check and all later ones, so that the first counts.

use std::sync::Arc;

use pillarbox_messages::{
    AlarmCode, ChecksumSpec, DeleteFileRequest, FileAction, FileId, FileIds, GetAuditTrailsRequest,
    GetChecksumsRequest, GetFileIdsRequest, GetFileRequest, GetStatusRequest,
    IdentifyPillarsForDeleteFileRequest, IdentifyPillarsForGetChecksumsRequest,
    IdentifyPillarsForGetFileIdsRequest, IdentifyPillarsForGetFileRequest,
    IdentifyPillarsForPutFileRequest, IdentifyPillarsForReplaceFileRequest, Message,
    PutFileRequest, ReplaceFileRequest, ResponseCode,
};

use super::{
    Outcome, Row, Told,
    asker::{Asker, DEAD, bad_data, bad_spec, here, md5_data, part},
    stage::{ACCEPTED, Kind},
};

/// A check: its name, what fails it, and what comes of that at a FILE and at a CHECKSUM pillar, where it is made.
struct Check<R> {
    name: &'static str,
    fault: fn(&mut R),
    full: Option<Outcome>,
    sums: Option<Outcome>,
}

impl<R> Check<R> {
    const fn of(&self, kind: Kind) -> Option<Outcome> {
        match kind {
            Kind::Full => self.full,
            Kind::Sums => self.sums,
        }
    }
}

fn both<R>(name: &'static str, outcome: Outcome, fault: fn(&mut R)) -> Check<R> {
    differ(name, Some(outcome), Some(outcome), fault)
}

fn full<R>(name: &'static str, outcome: Outcome, fault: fn(&mut R)) -> Check<R> {
    differ(name, Some(outcome), None, fault)
}

/// A checksum that can't be computed, which a CHECKSUM pillar does not even look at.
fn spec<R>(name: &'static str, fault: fn(&mut R)) -> Check<R> {
    differ(name, Some(NOT_UNDERSTOOD), Some(NOT_SUPPORTED), fault)
}

fn differ<R>(
    name: &'static str,
    full: Option<Outcome>,
    sums: Option<Outcome>,
    fault: fn(&mut R),
) -> Check<R> {
    Check {
        name,
        fault,
        full,
        sums,
    }
}

/// The same checks, whose refusals are written down.
fn recorded<R>(checks: Vec<Check<R>>) -> Vec<Check<R>> {
    let record = |outcome: Outcome| Outcome {
        audit: &[FileAction::Failure],
        ..outcome
    };
    let recorded = checks.into_iter().map(|check| Check {
        full: check.full.map(record),
        sums: check.sums.map(record),
        ..check
    });
    recorded.collect()
}

const ARGUMENT: Outcome = refused(
    &[ResponseCode::RequestNotUnderstoodFailure],
    Told(AlarmCode::InconsistentRequest, false, false),
);
const NOT_UNDERSTOOD: Outcome = refused(
    &[ResponseCode::RequestNotUnderstoodFailure],
    Told(AlarmCode::InvalidMessage, true, false),
);
const NOT_SUPPORTED: Outcome = refused(&[ResponseCode::RequestNotSupported], FAILED);
const NOT_FOUND: Outcome = refused(&[ResponseCode::FileNotFoundFailure], FAILED);
const DUPLICATE: Outcome = refused(&[ResponseCode::DuplicateFileFailure], FAILED);
const NO_SPACE: Outcome = refused(&[ResponseCode::Failure], FAILED);
const NO_NEW_CHECKSUM: Outcome = refused(&[ResponseCode::NewFileChecksumFailure], DAMAGE);
const OLD_CHECKSUM: Outcome = refused(&[ResponseCode::ExistingFileChecksumFailure], DAMAGE);
const TRANSFER: Outcome = refused(&[ACCEPTED, ResponseCode::FileTransferFailure], FAILED);
/// Who asks says a size that its file has not: asking again would not help.
const SIZE: Outcome = refused(&[ACCEPTED, ResponseCode::Failure], FAILED);
const NEW_CHECKSUM: Outcome = refused(&[ACCEPTED, ResponseCode::NewFileChecksumFailure], DAMAGE);

const FAILED: Told = Told(AlarmCode::FailedOperation, true, false);
/// A request that would have done damage had it been carried out.
const DAMAGE: Told = Told(AlarmCode::ChecksumAlarm, true, true);

const fn refused(codes: &'static [ResponseCode], alarm: Told) -> Outcome {
    Outcome {
        codes,
        alarm: Some(alarm),
        audit: &[],
    }
}

/// The rows of one pillar.
pub(super) fn rows(kind: Kind) -> Vec<Row> {
    let mut rows = identifications(kind);
    rows.extend(operations(kind));
    rows
}

fn table<R: Into<Message> + 'static>(
    kind: Kind,
    operation: &str,
    request: impl Fn(&Asker<'_>, &str) -> R + Send + Sync + 'static,
    checks: Vec<Check<R>>,
) -> Vec<Row> {
    let (request, checks) = (Arc::new(request), Arc::new(checks));
    let mut rows = Vec::new();
    for (number, check) in checks.iter().enumerate() {
        let Some(expected) = check.of(kind) else {
            continue;
        };
        let (request, checks) = (Arc::clone(&request), Arc::clone(&checks));
        rows.push(Row {
            name: format!("{operation}: {}", check.name),
            kind,
            ask: Box::new(move |asker, offered| {
                let mut request = request(asker, offered);
                let failed = checks.iter().skip(number);
                for check in failed.rev().filter(|it| it.of(kind).is_some()) {
                    (check.fault)(&mut request);
                }
                request.into()
            }),
            with_own: false,
            expected,
            look: None,
        });
    }
    rows
}

fn no_one() -> FileIds {
    FileIds::File("none.bin".into())
}

fn bad_ids() -> FileIds {
    FileIds::File(bad_id())
}

fn bad_id() -> FileId {
    "a/../b".into()
}

fn stranger() -> Option<pillarbox_messages::ComponentId> {
    Some("stranger".into())
}

fn scheme() -> String {
    "ftp://127.0.0.1/file".to_owned()
}

fn bad_specs() -> Option<ChecksumSpec> {
    Some(bad_spec())
}

fn identifications(kind: Kind) -> Vec<Row> {
    let tables = [
        identify_get(kind),
        identify_put(kind),
        identify_delete(kind),
        identify_replace(kind),
        identify_sums(kind),
        identify_ids(kind),
    ];
    tables.into_iter().flatten().collect()
}

fn identify_get(kind: Kind) -> Vec<Row> {
    type Get = IdentifyPillarsForGetFileRequest;
    table(
        kind,
        "identify GetFile",
        |it, _| it.identify_get(),
        vec![
            differ("keeps files", None, Some(NOT_SUPPORTED), |_: &mut Get| {}),
            full("collection", ARGUMENT, |it: &mut Get| {
                it.header.collection_id = None;
            }),
            full("file id", NOT_UNDERSTOOD, |it: &mut Get| {
                it.file_id = bad_id();
            }),
            full("known", NOT_FOUND, |it: &mut Get| {
                it.file_id = "none.bin".into();
            }),
        ],
    )
}

fn identify_put(kind: Kind) -> Vec<Row> {
    type Put = IdentifyPillarsForPutFileRequest;
    table(
        kind,
        "identify PutFile",
        |it, _| it.identify_put(),
        vec![
            both("collection", ARGUMENT, |it: &mut Put| {
                it.header.collection_id = None;
            }),
            both("file id", NOT_UNDERSTOOD, |it: &mut Put| {
                it.file_id = Some(bad_id());
            }),
            both(
                "not known",
                quiet(&[ResponseCode::DuplicateFileFailure]),
                |it: &mut Put| {
                    it.file_id = Some("here.bin".into());
                },
            ),
            full("space", NO_SPACE, |it: &mut Put| {
                it.file_size = Some(u64::MAX);
            }),
        ],
    )
}

fn identify_delete(kind: Kind) -> Vec<Row> {
    type Delete = IdentifyPillarsForDeleteFileRequest;
    table(
        kind,
        "identify DeleteFile",
        |it, _| it.identify_delete(),
        vec![
            both("collection", ARGUMENT, |it: &mut Delete| {
                it.header.collection_id = None;
            }),
            both("file id", NOT_UNDERSTOOD, |it: &mut Delete| {
                it.file_id = bad_id();
            }),
            both("known", NOT_FOUND, |it: &mut Delete| {
                it.file_id = "none.bin".into();
            }),
        ],
    )
}

fn identify_replace(kind: Kind) -> Vec<Row> {
    type Replace = IdentifyPillarsForReplaceFileRequest;
    table(
        kind,
        "identify ReplaceFile",
        |it, _| it.identify_replace(),
        vec![
            both("collection", ARGUMENT, |it: &mut Replace| {
                it.header.collection_id = None;
            }),
            both("file id", NOT_UNDERSTOOD, |it: &mut Replace| {
                it.file_id = bad_id();
            }),
            both("known", NOT_FOUND, |it: &mut Replace| {
                it.file_id = "none.bin".into();
            }),
            full("space", NO_SPACE, |it: &mut Replace| {
                it.file_size = Some(u64::MAX);
            }),
        ],
    )
}

fn identify_sums(kind: Kind) -> Vec<Row> {
    type Sums = IdentifyPillarsForGetChecksumsRequest;
    table(
        kind,
        "identify GetChecksums",
        |it, _| it.identify_sums(here()),
        vec![
            both("collection", ARGUMENT, |it: &mut Sums| {
                it.header.collection_id = None;
            }),
            spec("checksum spec", |it: &mut Sums| {
                it.checksum_request_for_existing_file = bad_specs();
            }),
            both("file id", NOT_UNDERSTOOD, |it: &mut Sums| {
                it.file_ids = bad_ids();
            }),
            both("known", NOT_FOUND, |it: &mut Sums| it.file_ids = no_one()),
        ],
    )
}

fn identify_ids(kind: Kind) -> Vec<Row> {
    type Ids = IdentifyPillarsForGetFileIdsRequest;
    table(
        kind,
        "identify GetFileIDs",
        |it, _| it.identify_ids(here()),
        vec![
            both("collection", ARGUMENT, |it: &mut Ids| {
                it.header.collection_id = None;
            }),
            both("file id", NOT_UNDERSTOOD, |it: &mut Ids| {
                it.file_ids = Some(bad_ids());
            }),
            both("known", NOT_FOUND, |it: &mut Ids| {
                it.file_ids = Some(no_one());
            }),
        ],
    )
}

/// An answer that is worth no alarm.
const fn quiet(codes: &'static [ResponseCode]) -> Outcome {
    Outcome {
        codes,
        alarm: None,
        audit: &[],
    }
}

fn operations(kind: Kind) -> Vec<Row> {
    let mut rows = table(kind, "PutFile", |it, offered| it.put(offered), put_checks());
    rows.extend(table(
        kind,
        "ReplaceFile",
        |it, offered| it.replace("here.bin", offered),
        replace_checks(),
    ));
    rows.extend(table(
        kind,
        "DeleteFile",
        |it, _| it.delete("here.bin"),
        delete_checks(),
    ));
    rows.extend(readings(kind));
    rows
}

fn put_checks() -> Vec<Check<PutFileRequest>> {
    type Put = PutFileRequest;
    vec![
        both("1 collection", ARGUMENT, |it: &mut Put| {
            it.header.collection_id = None;
        }),
        both("1 served collection", ARGUMENT, |it: &mut Put| {
            it.header.collection_id = Some("foreign".into());
        }),
        both("2 pillar", ARGUMENT, |it: &mut Put| {
            it.pillar_id = stranger();
        }),
        spec("3a spec of the given checksum", |it: &mut Put| {
            it.checksum_data_for_new_file = Some(bad_data());
        }),
        both("3b a checksum is given", NO_NEW_CHECKSUM, |it: &mut Put| {
            it.checksum_data_for_new_file = None;
        }),
        spec("4 spec of the requested checksum", |it: &mut Put| {
            it.checksum_request_for_new_file = bad_specs();
        }),
        both("5 file id", NOT_UNDERSTOOD, |it: &mut Put| {
            it.file_id = bad_id();
        }),
        both("6 not known", DUPLICATE, |it: &mut Put| {
            it.file_id = "here.bin".into();
        }),
        full("7 space", NO_SPACE, |it: &mut Put| {
            it.file_size = Some(u64::MAX);
        }),
        both("URL scheme", ARGUMENT, |it: &mut Put| {
            it.file_address = scheme();
        }),
        both("transfer", TRANSFER, |it: &mut Put| {
            it.file_address = DEAD.to_owned();
        }),
        both("size", SIZE, |it: &mut Put| it.file_size = Some(7)),
        both("checksum", NEW_CHECKSUM, |it: &mut Put| {
            it.checksum_data_for_new_file = Some(md5_data(b"other"));
        }),
    ]
}

fn replace_checks() -> Vec<Check<ReplaceFileRequest>> {
    type Replace = ReplaceFileRequest;
    let mut checks = vec![
        both("1 collection", ARGUMENT, |it: &mut Replace| {
            it.header.collection_id = None;
        }),
        both("2 pillar", ARGUMENT, |it: &mut Replace| {
            it.pillar_id = stranger();
        }),
    ];
    checks.extend(recorded(vec![
        both("3 file id", NOT_UNDERSTOOD, |it: &mut Replace| {
            it.file_id = bad_id();
        }),
        both("4 known", NOT_FOUND, |it: &mut Replace| {
            it.file_id = "none.bin".into();
        }),
        full("5 space", NO_SPACE, |it: &mut Replace| {
            it.file_size = u64::MAX;
        }),
        spec(
            "6 spec of the requested existing checksum",
            |it: &mut Replace| {
                it.checksum_request_for_existing_file = bad_specs();
            },
        ),
        spec(
            "6 spec of the requested new checksum",
            |it: &mut Replace| {
                it.checksum_request_for_new_file = bad_specs();
            },
        ),
        spec(
            "7 spec of the given existing checksum",
            |it: &mut Replace| {
                it.checksum_data_for_existing_file = Some(bad_data());
            },
        ),
        both(
            "7 an existing checksum is given",
            OLD_CHECKSUM,
            |it: &mut Replace| {
                it.checksum_data_for_existing_file = None;
            },
        ),
        spec("8 spec of the given new checksum", |it: &mut Replace| {
            it.checksum_data_for_new_file = Some(bad_data());
        }),
        both(
            "8 a new checksum is given",
            NO_NEW_CHECKSUM,
            |it: &mut Replace| {
                it.checksum_data_for_new_file = None;
            },
        ),
        both("9 existing checksum", OLD_CHECKSUM, |it: &mut Replace| {
            it.checksum_data_for_existing_file = Some(md5_data(b"other"));
        }),
        both("URL scheme", ARGUMENT, |it: &mut Replace| {
            it.file_address = scheme();
        }),
        both("transfer", TRANSFER, |it: &mut Replace| {
            it.file_address = DEAD.to_owned();
        }),
        both("size", SIZE, |it: &mut Replace| it.file_size = 7),
        both("new checksum", NEW_CHECKSUM, |it: &mut Replace| {
            it.checksum_data_for_new_file = Some(md5_data(b"other"));
        }),
    ]));
    checks
}

fn delete_checks() -> Vec<Check<DeleteFileRequest>> {
    type Delete = DeleteFileRequest;
    let mut checks = vec![
        both("1 collection", ARGUMENT, |it: &mut Delete| {
            it.header.collection_id = None;
        }),
        both("2 pillar", ARGUMENT, |it: &mut Delete| {
            it.pillar_id = stranger();
        }),
    ];
    checks.extend(recorded(vec![
        spec("3 spec of the requested checksum", |it: &mut Delete| {
            it.checksum_request_for_existing_file = bad_specs();
        }),
        spec("4 spec of the given checksum", |it: &mut Delete| {
            it.checksum_data_for_existing_file = Some(bad_data());
        }),
        both("4 a checksum is given", OLD_CHECKSUM, |it: &mut Delete| {
            it.checksum_data_for_existing_file = None;
        }),
        both("5 file id", NOT_UNDERSTOOD, |it: &mut Delete| {
            it.file_id = bad_id();
        }),
        both("6 known", NOT_FOUND, |it: &mut Delete| {
            it.file_id = "none.bin".into();
        }),
        both("7 checksum", OLD_CHECKSUM, |it: &mut Delete| {
            it.checksum_data_for_existing_file = Some(md5_data(b"other"));
        }),
    ]));
    checks
}

fn readings(kind: Kind) -> Vec<Row> {
    let tables = [get(kind), ids(kind), sums(kind), trails(kind), status(kind)];
    tables.into_iter().flatten().collect()
}

fn get(kind: Kind) -> Vec<Row> {
    type Get = GetFileRequest;
    table(
        kind,
        "GetFile",
        |it, _| it.get(),
        vec![
            both("collection", ARGUMENT, |it: &mut Get| {
                it.header.collection_id = None;
            }),
            both("pillar", ARGUMENT, |it: &mut Get| it.pillar_id = stranger()),
            both("file id", NOT_UNDERSTOOD, |it: &mut Get| {
                it.file_id = bad_id();
            }),
            differ("keeps files", None, Some(NOT_SUPPORTED), |_: &mut Get| {}),
            full("known", NOT_FOUND, |it: &mut Get| {
                it.file_id = "none.bin".into();
            }),
            full("URL scheme", ARGUMENT, |it: &mut Get| {
                it.file_address = scheme();
            }),
            full("part in the file", NOT_UNDERSTOOD, |it: &mut Get| {
                it.file_part = part(15, 1);
            }),
            full("transfer", TRANSFER, |it: &mut Get| {
                it.file_address = DEAD.to_owned();
            }),
        ],
    )
}

fn ids(kind: Kind) -> Vec<Row> {
    type Ids = GetFileIdsRequest;
    table(
        kind,
        "GetFileIDs",
        |it, _| it.ids(here()),
        vec![
            both("collection", ARGUMENT, |it: &mut Ids| {
                it.header.collection_id = None;
            }),
            both("pillar", ARGUMENT, |it: &mut Ids| it.pillar_id = stranger()),
            both("URL scheme", ARGUMENT, |it: &mut Ids| {
                it.result_address = Some(scheme());
            }),
            both("file id", NOT_UNDERSTOOD, |it: &mut Ids| {
                it.file_ids = bad_ids();
            }),
            both("known", NOT_FOUND, |it: &mut Ids| it.file_ids = no_one()),
            both("transfer", TRANSFER, |it: &mut Ids| {
                it.result_address = Some(DEAD.to_owned());
            }),
        ],
    )
}

fn sums(kind: Kind) -> Vec<Row> {
    type Sums = GetChecksumsRequest;
    table(
        kind,
        "GetChecksums",
        |it, _| it.sums(here()),
        vec![
            both("collection", ARGUMENT, |it: &mut Sums| {
                it.header.collection_id = None;
            }),
            both("pillar", ARGUMENT, |it: &mut Sums| {
                it.pillar_id = stranger();
            }),
            spec("checksum spec", |it: &mut Sums| {
                it.checksum_request_for_existing_file = bad_specs();
            }),
            both("URL scheme", ARGUMENT, |it: &mut Sums| {
                it.result_address = Some(scheme());
            }),
            both("file id", NOT_UNDERSTOOD, |it: &mut Sums| {
                it.file_ids = bad_ids();
            }),
            both("known", NOT_FOUND, |it: &mut Sums| it.file_ids = no_one()),
            both("transfer", TRANSFER, |it: &mut Sums| {
                it.result_address = Some(DEAD.to_owned());
            }),
        ],
    )
}

fn trails(kind: Kind) -> Vec<Row> {
    type Trail = GetAuditTrailsRequest;
    table(
        kind,
        "GetAuditTrails",
        |it, _| it.trail(),
        vec![
            both("collection", ARGUMENT, |it: &mut Trail| {
                it.header.collection_id = None;
            }),
            both("contributor", ARGUMENT, |it: &mut Trail| {
                it.contributor = stranger();
            }),
            both("URL scheme", ARGUMENT, |it: &mut Trail| {
                it.result_address = Some(scheme());
            }),
            both("transfer", TRANSFER, |it: &mut Trail| {
                it.result_address = Some(DEAD.to_owned());
            }),
        ],
    )
}

fn status(kind: Kind) -> Vec<Row> {
    table(
        kind,
        "GetStatus",
        |it, _| it.status(),
        vec![both(
            "contributor",
            ARGUMENT,
            |it: &mut GetStatusRequest| it.contributor = stranger(),
        )],
    )
}
