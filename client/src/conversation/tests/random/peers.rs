//! What pillars of all tempers answer.

use std::num::NonZeroU64;

use pillarbox_messages::{
    Alarm, AlarmCode, AlarmMessage, ChecksumType, Message, ReplaceFileFinalResponse, ResponseCode,
    Timestamp,
};

use super::{
    super::{
        audit_trails::{trails_final, trails_identify},
        delete_file::{delete_final, delete_identify, delete_progress},
        listing::{ids_final, ids_identify, sums_final, sums_identify},
        replace_file::{replace_final, replace_identify, replace_progress},
        status::{status_final, status_identify, status_progress},
        support::{
            ACCEPTED, COMPLETED, OTHERS, OURS, POSITIVE, get_final, get_identify, get_progress,
            header, md5, put_duplicate, put_final, put_identify, put_progress,
        },
    },
    Random,
};

const FINAL_CODES: [ResponseCode; 8] = [
    COMPLETED,
    COMPLETED,
    COMPLETED,
    ResponseCode::Failure,
    ResponseCode::FileTransferFailure,
    ResponseCode::DuplicateFileFailure,
    ResponseCode::OperationProgress,
    ResponseCode::IdentificationNegative,
];
const IDENTIFY_CODES: [ResponseCode; 7] = [
    POSITIVE,
    POSITIVE,
    POSITIVE,
    POSITIVE,
    ResponseCode::RequestNotSupported,
    ResponseCode::FileNotFoundFailure,
    ACCEPTED,
];

/// What a pillar of some temper answers to a request.
pub(super) fn answers(random: &mut Random, request: &Message, pillar: &str) -> Vec<Message> {
    let code = random.pick(&IDENTIFY_CODES);
    let final_code = random.pick(&FINAL_CODES);
    let mut answers: Vec<Message> = match request {
        Message::IdentifyPillarsForPutFileRequest(_) => match random.below(6) {
            0 => vec![put_duplicate(pillar, Some(md5(OURS))).into()],
            1 if random.one_in(4) => vec![put_duplicate(pillar, Some(md5(OTHERS))).into()],
            _ => vec![put_identify(pillar, code).into()],
        },
        Message::PutFileRequest(_) => {
            vec![
                put_progress(pillar).into(),
                put_final(pillar, final_code).into(),
            ]
        }
        Message::IdentifyPillarsForGetFileRequest(_) => {
            vec![get_identify(pillar, code, Some(random.below(5))).into()]
        }
        Message::GetFileRequest(_) => {
            vec![
                get_progress(pillar).into(),
                get_final(pillar, final_code).into(),
            ]
        }
        Message::IdentifyPillarsForGetFileIdsRequest(_) => vec![ids_identify(pillar, code).into()],
        Message::GetFileIdsRequest(request) => {
            let from = request.min_timestamp.as_ref().unwrap().millis();
            vec![ids_final(pillar, &page(random, from), Some(random.one_in(2))).into()]
        }
        Message::IdentifyPillarsForGetChecksumsRequest(_) => {
            vec![sums_identify(pillar, code).into()]
        }
        Message::GetChecksumsRequest(request) => {
            let from = request.min_timestamp.as_ref().unwrap().millis();
            let kind = if random.one_in(20) {
                ChecksumType::Sha1
            } else {
                ChecksumType::Md5
            };
            vec![sums_final(pillar, kind, &page(random, from), Some(random.one_in(2))).into()]
        }
        Message::IdentifyPillarsForDeleteFileRequest(_) => {
            vec![delete_identify(pillar, code).into()]
        }
        Message::DeleteFileRequest(_) => vec![
            delete_progress(pillar).into(),
            delete_final(pillar, final_code).into(),
        ],
        Message::IdentifyPillarsForReplaceFileRequest(_) => {
            vec![replace_identify(pillar, code).into()]
        }
        Message::ReplaceFileRequest(_) => vec![
            replace_progress(pillar).into(),
            replaced(random, pillar, final_code).into(),
        ],
        Message::IdentifyContributorsForGetAuditTrailsRequest(_) => {
            vec![trails_identify(pillar, code).into()]
        }
        Message::GetAuditTrailsRequest(request) => {
            let from = request.min_sequence_number.map_or(1, NonZeroU64::get);
            let count = random.below(4);
            let numbers: Vec<u64> = (from..from + count).collect();
            vec![trails_final(pillar, &numbers, Some(random.one_in(2))).into()]
        }
        Message::IdentifyContributorsForGetStatusRequest(_) => {
            vec![status_identify(pillar, code).into()]
        }
        Message::GetStatusRequest(_) => vec![
            status_progress(pillar).into(),
            status_final(pillar, final_code).into(),
        ],
        other => panic!("nobody should be asked {other:?}"),
    };
    if random.one_in(10) {
        answers.push(nonsense(random, pillar));
    }
    answers
}

/// An end of a replacement; a pillar whose file is not the old one may say what it has.
fn replaced(random: &mut Random, pillar: &str, code: ResponseCode) -> ReplaceFileFinalResponse {
    let told = match random.below(6) {
        0 => Some(OURS),
        1 => Some(OTHERS),
        _ => return replace_final(pillar, code),
    };
    ReplaceFileFinalResponse {
        checksum_data_for_existing_file: told.map(md5),
        ..replace_final(pillar, ResponseCode::ExistingFileChecksumFailure)
    }
}

fn page(random: &mut Random, from: i64) -> Vec<(&'static str, i64)> {
    let names = ["f1", "f2", "f3", "f4"];
    let count = usize::try_from(random.below(4)).unwrap();
    names[..count]
        .iter()
        .map(|name| (*name, from + random.below(3).cast_signed()))
        .collect()
}

fn nonsense(random: &mut Random, pillar: &str) -> Message {
    match random.below(6) {
        0 => put_identify(pillar, POSITIVE).into(),
        1 => get_final(pillar, COMPLETED).into(),
        2 => put_final("stranger", COMPLETED).into(),
        3 => ids_final(pillar, &[("f1", -5)], Some(true)).into(),
        4 => put_progress(pillar).into(),
        _ => AlarmMessage {
            header: header(pillar),
            alarm: Alarm {
                orig_date_time: Timestamp::from_millis(0),
                alarm_code: AlarmCode::ComponentFailure,
                alarm_raiser: pillar.into(),
                alarm_text: "help".to_owned(),
                file_id: None,
                collection_id: None,
            },
        }
        .into(),
    }
}
