//! What peers have come to expect of a pillar beyond its refusals.

use std::num::NonZeroU64;

use pillarbox_messages::{
    AlarmCode, ChecksumSpec, ChecksumType, CollectionId, FileAction, FileIds, Message,
    ResponseCode, ResultingAuditTrails, ResultingChecksums, ResultingFileIds, StatusCode,
    Timestamp,
};

use super::{
    Look, Outcome, Row, Told,
    asker::{Asker, OLD, here, part, spec},
    stage::{ACCEPTED, BOOKS, COMPLETED, EMPTY, Kind, MAPS, Stage, codes},
};
use crate::support::md5;

const POSITIVE: Outcome = quiet(&[ResponseCode::IdentificationPositive]);
const DONE: Outcome = quiet(&[ACCEPTED, COMPLETED]);
const SILENCE: Outcome = quiet(&[]);

const fn quiet(codes: &'static [ResponseCode]) -> Outcome {
    Outcome {
        codes,
        alarm: None,
        audit: &[],
    }
}

const fn audited(audit: &'static [FileAction]) -> Outcome {
    Outcome { audit, ..DONE }
}

const fn refused(code: &'static [ResponseCode], alarm: Told) -> Outcome {
    Outcome {
        codes: code,
        alarm: Some(alarm),
        audit: &[],
    }
}

/// The rows of one pillar, some of which ask for times that its files have.
pub(super) fn rows(stage: &Stage) -> Vec<Row> {
    let mut rows = Rows {
        kind: stage.kind,
        rows: Vec::new(),
    };
    rows.identifications();
    rows.identifications_of_all();
    rows.silence();
    rows.changes();
    rows.deliveries();
    rows.checksums();
    rows.lists(&stage.id_times, &stage.sum_times);
    rows.trails();
    rows.elsewhere();
    rows.rows
}

struct Rows {
    kind: Kind,
    rows: Vec<Row>,
}

impl Rows {
    fn add<R: Into<Message>>(
        &mut self,
        name: impl Into<String>,
        expected: Outcome,
        ask: impl Fn(&Asker<'_>, &str) -> R + Send + Sync + 'static,
    ) -> &mut Row {
        self.rows.push(Row {
            name: name.into(),
            kind: self.kind,
            ask: Box::new(move |asker, offered| ask(asker, offered).into()),
            with_own: false,
            expected,
            look: None,
        });
        self.rows.last_mut().unwrap()
    }

    fn identifications(&mut self) {
        let kind = self.kind;
        let positive = self.add("identify PutFile: ready", POSITIVE, |it, _| {
            it.identify_put()
        });
        positive.look = Some(looks(move |answer| match answer {
            Message::IdentifyPillarsForPutFileResponse(it) => {
                it.pillar_id.as_str() == kind.id()
                    && it.time_to_deliver.is_some()
                    && it.checksum_data_for_existing_file.is_none()
                    && keeps(kind, it.pillar_checksum_spec.as_ref())
            }
            _ => false,
        }));
        let duplicate = quiet(&[ResponseCode::DuplicateFileFailure]);
        let known = self.add("identify PutFile: its checksum", duplicate, |it, _| {
            let mut request = it.identify_put();
            request.file_id = Some("here.bin".into());
            request
        });
        known.look = Some(looks(|answer| match answer {
            Message::IdentifyPillarsForPutFileResponse(it) => {
                let existing = it.checksum_data_for_existing_file.as_ref();
                let value = existing.map(|it| it.checksum_value.to_string().to_lowercase());
                value == Some(md5(OLD)) && it.time_to_deliver.is_some()
            }
            _ => false,
        }));
        let delete = self.add("identify DeleteFile: ready", POSITIVE, |it, _| {
            it.identify_delete()
        });
        delete.look = Some(looks(move |answer| match answer {
            Message::IdentifyPillarsForDeleteFileResponse(it) => {
                it.time_to_deliver.is_some() && keeps(kind, it.pillar_checksum_spec.as_ref())
            }
            _ => false,
        }));
        let replace = self.add("identify ReplaceFile: ready", POSITIVE, |it, _| {
            it.identify_replace()
        });
        replace.look = Some(looks(move |answer| match answer {
            Message::IdentifyPillarsForReplaceFileResponse(it) => {
                it.time_to_deliver.is_some() && keeps(kind, it.pillar_checksum_spec.as_ref())
            }
            _ => false,
        }));
        if kind == Kind::Full {
            self.add("identify GetFile: ready", POSITIVE, |it, _| {
                it.identify_get()
            });
        }
        self.add("identify GetAuditTrails: ready", POSITIVE, |it, _| {
            it.identify_trail()
        });
        self.add("identify GetStatus: ready, once", POSITIVE, |it, _| {
            it.identify_status()
        });
    }

    /// Everything may be asked for, also where there is nothing.
    fn identifications_of_all(&mut self) {
        let kind = self.kind;
        for (name, collection) in [("all files", BOOKS), ("all files of none", EMPTY)] {
            self.add(
                format!("identify GetFileIDs: {name}"),
                POSITIVE,
                move |it, _| {
                    let mut request = it.identify_ids(FileIds::All);
                    request.header.collection_id = Some(collection.into());
                    request
                },
            );
            let sums = self.add(
                format!("identify GetChecksums: {name}"),
                POSITIVE,
                move |it, _| {
                    let mut request = it.identify_sums(FileIds::All);
                    request.header.collection_id = Some(collection.into());
                    request
                },
            );
            sums.look = Some(looks(move |answer| match answer {
                Message::IdentifyPillarsForGetChecksumsResponse(it) => {
                    it.file_ids == FileIds::All
                        && it.checksum_request_for_existing_file == Some(ChecksumType::Md5.into())
                        && keeps(kind, it.pillar_checksum_spec.as_ref())
                }
                _ => false,
            }));
        }
    }

    /// Requests that are for others.
    fn silence(&mut self) {
        type Ask = fn(&Asker<'_>) -> Message;
        let asks: [(&str, Ask); 8] = [
            ("GetFile", |it| it.identify_get().into()),
            ("PutFile", |it| it.identify_put().into()),
            ("DeleteFile", |it| it.identify_delete().into()),
            ("ReplaceFile", |it| it.identify_replace().into()),
            ("GetChecksums", |it| it.identify_sums(FileIds::All).into()),
            ("GetFileIDs", |it| it.identify_ids(FileIds::All).into()),
            ("GetAuditTrails", |it| it.identify_trail().into()),
            ("GetStatus", |it| it.identify_status().into()),
        ];
        for (operation, ask) in asks {
            self.add(
                format!("identify {operation}: foreign collection"),
                SILENCE,
                move |it, _| {
                    let mut request = ask(it);
                    request.header_mut().collection_id = Some("foreign".into());
                    request
                },
            );
            self.add(
                format!("identify {operation}: to another"),
                SILENCE,
                move |it, _| {
                    let mut request = ask(it);
                    request.header_mut().to = Some("stranger".into());
                    request
                },
            );
        }
    }

    fn changes(&mut self) {
        let kind = self.kind;
        let put = self.add(
            "PutFile: stored",
            audited(&[FileAction::PutFile]),
            |it, offered| it.put(offered),
        );
        put.look = Some(looks(move |answer| match answer {
            Message::PutFileFinalResponse(it) => {
                it.checksum_data_for_new_file.is_some()
                    && keeps(kind, it.pillar_checksum_spec.as_ref())
            }
            _ => false,
        }));
        let replaced = audited(&[FileAction::ReplaceFile]);
        let replace = self.add("ReplaceFile: replaced", replaced, |it, offered| {
            it.replace(it.own().as_str(), offered)
        });
        replace.with_own = true;
        replace.look = Some(looks(move |answer| match answer {
            Message::ReplaceFileFinalResponse(it) => {
                it.checksum_data_for_existing_file.is_some()
                    && it.checksum_data_for_new_file.is_some()
                    && keeps(kind, it.pillar_checksum_spec.as_ref())
            }
            _ => false,
        }));
        let deleted = audited(&[FileAction::DeleteFile]);
        let delete = self.add("DeleteFile: deleted", deleted, |it, _| {
            it.delete(it.own().as_str())
        });
        delete.with_own = true;
        delete.look = Some(looks(|answer| match answer {
            Message::DeleteFileFinalResponse(it) => it.checksum_data_for_existing_file.is_some(),
            _ => false,
        }));
    }

    fn deliveries(&mut self) {
        if self.kind == Kind::Sums {
            return;
        }
        let got = audited(&[FileAction::GetFile]);
        self.add("GetFile: delivered", got, |it, _| it.get());
        let of_part = self.add("GetFile: five bytes from the fifth on", got, |it, _| {
            let mut request = it.get();
            request.file_part = part(5, 5);
            request
        });
        of_part.look = Some(looks(|answer| match answer {
            Message::GetFileFinalResponse(it) => it.file_part == part(5, 5),
            _ => false,
        }));
    }

    /// Of a file whose checksums everybody knows.
    fn checksums(&mut self) {
        let known = [
            (ChecksumType::Md5, None, "9e107d9d372bb6826bd81d3542a419d6"),
            (
                ChecksumType::Sha1,
                None,
                "2fd4e1c67a2d28fced849ee1bb76e7391b93eb12",
            ),
            (
                ChecksumType::HmacMd5,
                Some("6b6579"),
                "80070713463e7749b90c2dc24911e275",
            ),
            (
                ChecksumType::HmacSha1,
                Some("6b6579"),
                "de7c9b85b8b78aa6bc8a7a36f70a90701c9db4d9",
            ),
        ];
        for (checksum_type, salt, value) in known {
            let supported = self.kind == Kind::Full || checksum_type == ChecksumType::Md5;
            let outcome = if supported {
                DONE
            } else {
                let failed = Told(AlarmCode::FailedOperation, true, false);
                refused(&[ResponseCode::RequestNotSupported], failed)
            };
            let name = format!("GetChecksums: {}", checksum_type.as_str());
            let row = self.add(name, outcome, move |it, _| {
                let mut request = it.sums(FileIds::File(MAPS[1].into()));
                request.header.collection_id = Some("maps".into());
                request.checksum_request_for_existing_file = Some(spec(checksum_type, salt));
                request
            });
            row.look = supported.then(|| {
                looks(move |answer| match answer {
                    Message::GetChecksumsFinalResponse(it) => match &it.resulting_checksums {
                        Some(ResultingChecksums::Items(items)) => {
                            items.len() == 1
                                && items[0].checksum_value.to_string().to_lowercase() == value
                                && it.partial_result == Some(false)
                        }
                        _ => false,
                    },
                    _ => false,
                })
            });
        }
    }

    /// Oldest first, both ends of the interval inclusive, within a limit.
    fn lists(&mut self, of_ids: &[Timestamp], of_sums: &[Timestamp]) {
        for case in cases(of_ids) {
            let partial = case.more().then_some(true);
            let look = lists(case.expected.to_vec(), partial);
            let row = self.add(format!("GetFileIDs: {}", case.name), DONE, move |it, _| {
                let mut request = it.ids(FileIds::All);
                request.header.collection_id = Some("maps".into());
                (request.min_timestamp, request.max_timestamp) = (case.min, case.max);
                request.max_number_of_results = case.limit;
                request
            });
            row.look = Some(look);
        }
        for case in cases(of_sums) {
            let look = lists(case.expected.to_vec(), Some(case.more()));
            let row = self.add(
                format!("GetChecksums: {}", case.name),
                DONE,
                move |it, _| {
                    let mut request = it.sums(FileIds::All);
                    request.header.collection_id = Some("maps".into());
                    (request.min_timestamp, request.max_timestamp) = (case.min, case.max);
                    request.max_number_of_results = case.limit;
                    request
                },
            );
            row.look = Some(look);
        }
        let one = self.add("GetFileIDs: exactly the one", DONE, |it, _| it.ids(here()));
        one.look = Some(lists(vec!["here.bin"], None));
        let none = self.add("GetFileIDs: none", DONE, |it, _| {
            let mut request = it.ids(FileIds::All);
            request.header.collection_id = Some(EMPTY.into());
            request
        });
        none.look = Some(lists(Vec::new(), None));
    }

    fn trails(&mut self) {
        // From, to, at most; 0 for nothing.
        let cases: [(_, [u64; 3], &[u64], _); 4] = [
            ("all, by number", [0, 0, 0], &[1, 2, 3], false),
            ("the first", [0, 0, 1], &[1], true),
            ("not before the second", [2, 0, 0], &[2, 3], false),
            ("up to the second", [0, 2, 2], &[1, 2], false),
        ];
        for (name, [first, last, limit], expected, more) in cases {
            let row = self.add(format!("GetAuditTrails: {name}"), DONE, move |it, _| {
                let mut request = it.trail();
                request.header.collection_id = Some("maps".into());
                request.min_sequence_number = NonZeroU64::new(first);
                request.max_sequence_number = NonZeroU64::new(last);
                request.max_number_of_results = NonZeroU64::new(limit);
                request
            });
            row.look = Some(looks(move |answer| match answer {
                Message::GetAuditTrailsFinalResponse(it) => match &it.resulting_audit_trails {
                    Some(ResultingAuditTrails::Events(events)) => {
                        let numbers = events.iter().map(|event| event.sequence_number.get());
                        numbers.eq(expected.iter().copied()) && it.partial_result == Some(more)
                    }
                    _ => false,
                },
                _ => false,
            }));
        }
        let status = self.add("GetStatus: told", DONE, |it, _| it.status());
        status.look = Some(looks(|answer| match answer {
            Message::GetStatusFinalResponse(it) => {
                let info = &it.resulting_status.status_info;
                info.status_code == StatusCode::Ok && info.status_text.contains("version")
            }
            _ => false,
        }));
    }

    /// Other collections, and requests that everybody hears.
    fn elsewhere(&mut self) {
        let maps = || Some(CollectionId::from("maps"));
        self.add(
            "identify PutFile: second collection",
            POSITIVE,
            move |it, _| {
                let mut request = it.identify_put();
                request.header.collection_id = maps();
                request.file_id = Some("here.bin".into());
                request
            },
        );
        let missing = refused(
            &[ResponseCode::FileNotFoundFailure],
            Told(AlarmCode::FailedOperation, true, false),
        );
        self.add(
            "GetFileIDs: a file of another collection",
            missing,
            move |it, _| {
                let mut request = it.ids(here());
                request.header.collection_id = maps();
                request
            },
        );
        let put = audited(&[FileAction::PutFile]);
        self.add(
            "PutFile: on the collection topic, named",
            put,
            |it, offered| {
                let mut request = it.put(offered);
                request.header.destination = it.to_all().destination;
                request
            },
        );
        let other = refused(
            &[ResponseCode::RequestNotUnderstoodFailure],
            Told(AlarmCode::InconsistentRequest, false, false),
        );
        self.add(
            "PutFile: on the collection topic, another",
            other,
            |it, offered| {
                let mut request = it.put(offered);
                request.header.destination = it.to_all().destination;
                request.pillar_id = Some("stranger".into());
                request
            },
        );
        self.add(
            "GetFileIDs: on the collection topic, named",
            DONE,
            |it, _| {
                let mut request = it.ids(here());
                request.header.destination = it.to_all().destination;
                request
            },
        );
    }
}

/// What is asked of a listing of three files, and which of them it has.
struct Case {
    name: &'static str,
    min: Option<Timestamp>,
    max: Option<Timestamp>,
    limit: Option<NonZeroU64>,
    expected: &'static [&'static str],
}

impl Case {
    fn more(&self) -> bool {
        self.limit.is_some_and(|limit| limit.get() < 3)
    }
}

fn cases(times: &[Timestamp]) -> Vec<Case> {
    let [oldest, _, newest] = times else {
        panic!("{times:?}")
    };
    let at = |time: &Timestamp, later| Some(Timestamp::from_millis(time.millis() + later));
    let case = |name, min, max, limit, expected| Case {
        name,
        min,
        max,
        limit: NonZeroU64::new(limit),
        expected,
    };
    let [all, first, last, none] = [&MAPS[..], &MAPS[..1], &MAPS[2..], &MAPS[..0]];
    vec![
        case("all, oldest first", None, None, 0, all),
        case("the oldest", None, None, 1, first),
        case("as many as exist", None, None, 3, all),
        case("not before the oldest", at(oldest, 0), None, 0, all),
        case("not before the newest", at(newest, 0), None, 0, last),
        case("after the newest", at(newest, 10), None, 0, none),
        case("not after the newest", None, at(newest, 0), 0, all),
        case("not after the oldest", None, at(oldest, 0), 0, first),
        case("before the oldest", None, at(oldest, -10), 0, none),
    ]
}

/// Whether a pillar says as much of its checksums as it must.
fn keeps(kind: Kind, told: Option<&ChecksumSpec>) -> bool {
    match kind {
        Kind::Full => told.is_none(),
        Kind::Sums => told == Some(&ChecksumType::Md5.into()),
    }
}

/// The last answer is as it should be.
fn looks(fine: impl Fn(&Message) -> bool + Send + Sync + 'static) -> Look {
    Box::new(move |answers| match answers.last() {
        Some(last) if fine(last) => Ok(()),
        last => Err(format!("answered {last:?}")),
    })
}

fn lists(expected: Vec<&'static str>, partial: Option<bool>) -> Look {
    looks(move |answer| {
        let (listed, told) = listed(answer);
        listed == expected && told == partial
    })
}

fn listed(answer: &Message) -> (Vec<&str>, Option<bool>) {
    match answer {
        Message::GetFileIdsFinalResponse(it) => match &it.resulting_file_ids {
            Some(ResultingFileIds::Data(data)) => {
                let ids = data.items.iter().map(|item| item.file_id.as_str());
                (ids.collect(), it.partial_result)
            }
            other => panic!("{other:?}"),
        },
        Message::GetChecksumsFinalResponse(it) => match &it.resulting_checksums {
            Some(ResultingChecksums::Items(items)) => {
                let ids = items.iter().map(|item| item.file_id.as_str());
                (ids.collect(), it.partial_result)
            }
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

/// The times that a listing has.
pub(super) fn listed_times(answers: &[Message]) -> Vec<Timestamp> {
    assert_eq!(codes(answers), [ACCEPTED, COMPLETED]);
    match answers.last() {
        Some(Message::GetFileIdsFinalResponse(it)) => match &it.resulting_file_ids {
            Some(ResultingFileIds::Data(data)) => {
                let items = data.items.iter();
                items.map(|item| item.last_modification_time).collect()
            }
            other => panic!("{other:?}"),
        },
        Some(Message::GetChecksumsFinalResponse(it)) => match &it.resulting_checksums {
            Some(ResultingChecksums::Items(items)) => {
                let items = items.iter();
                items.map(|item| item.calculation_timestamp).collect()
            }
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}
