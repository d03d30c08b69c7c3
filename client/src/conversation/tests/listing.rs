//! GetFileIDs and GetChecksums: page after page.

use std::num::NonZeroU64;

use pillarbox_messages::{
    ChecksumDataItem, ChecksumType, FileIds, FileIdsData, FileIdsDataItem,
    GetChecksumsFinalResponse, GetFileIdsFinalResponse, IdentifyPillarsForGetChecksumsResponse,
    IdentifyPillarsForGetFileIdsResponse, Message, ResponseCode, ResultingChecksums,
    ResultingFileIds, Timestamp,
};

use super::support::{
    BEGUN_MS, Bench, COMPLETED, OPERATION_MS, OURS, POSITIVE, context, header, info,
};
use crate::{
    conversation::{
        Input, get_checksums::GetChecksumsProcedure, get_file_ids::GetFileIdsProcedure,
        paging::Walks,
    },
    digests::plain_spec,
    event::{ComponentResult, EventKind},
};

pub(super) fn ids_procedure(page_size: u64) -> GetFileIdsProcedure {
    GetFileIdsProcedure {
        file: None,
        audit_trail_information: None,
        walks: Walks::new(NonZeroU64::new(page_size).unwrap()),
    }
}

pub(super) fn checksums_procedure() -> GetChecksumsProcedure {
    GetChecksumsProcedure {
        file: None,
        spec: plain_spec(ChecksumType::Md5),
        audit_trail_information: None,
        walks: Walks::new(NonZeroU64::new(2).unwrap()),
    }
}

pub(super) fn ids_identify(from: &str, code: ResponseCode) -> IdentifyPillarsForGetFileIdsResponse {
    IdentifyPillarsForGetFileIdsResponse {
        header: header(from),
        response_info: info(code),
        pillar_id: from.into(),
        file_ids: Some(FileIds::All),
        time_to_deliver: None,
    }
}

pub(super) fn ids_final(
    from: &str,
    items: &[(&str, i64)],
    partial: Option<bool>,
) -> GetFileIdsFinalResponse {
    let item = |(file, time): &(&str, i64)| FileIdsDataItem {
        file_id: (*file).into(),
        last_modification_time: Timestamp::from_millis(*time),
        file_size: Some(7),
    };
    GetFileIdsFinalResponse {
        header: header(from),
        response_info: info(COMPLETED),
        pillar_id: Some(from.into()),
        file_ids: Some(FileIds::All),
        resulting_file_ids: Some(ResultingFileIds::Data(FileIdsData {
            items: items.iter().map(item).collect(),
        })),
        partial_result: partial,
    }
}

pub(super) fn sums_identify(
    from: &str,
    code: ResponseCode,
) -> IdentifyPillarsForGetChecksumsResponse {
    IdentifyPillarsForGetChecksumsResponse {
        header: header(from),
        response_info: info(code),
        file_ids: FileIds::All,
        checksum_request_for_existing_file: Some(plain_spec(ChecksumType::Md5)),
        pillar_id: from.into(),
        pillar_checksum_spec: None,
        time_to_deliver: None,
    }
}

pub(super) fn sums_final(
    from: &str,
    kind: ChecksumType,
    items: &[(&str, i64)],
    partial: Option<bool>,
) -> GetChecksumsFinalResponse {
    let item = |(file, time): &(&str, i64)| ChecksumDataItem {
        file_id: (*file).into(),
        checksum_value: OURS.parse().unwrap(),
        calculation_timestamp: Timestamp::from_millis(*time),
    };
    GetChecksumsFinalResponse {
        header: header(from),
        response_info: info(COMPLETED),
        pillar_id: Some(from.into()),
        checksum_request_for_existing_file: Some(plain_spec(kind)),
        resulting_checksums: Some(ResultingChecksums::Items(items.iter().map(item).collect())),
        partial_result: partial,
    }
}

/// Every file id in the events, in order, with its pillar.
fn listed(bench: &Bench<GetFileIdsProcedure>) -> Vec<String> {
    let mut all = Vec::new();
    for event in &bench.events {
        let (EventKind::Progress {
            contributor,
            result: Some(result),
        }
        | EventKind::ComponentComplete {
            contributor,
            result,
        }) = &event.kind
        else {
            continue;
        };
        let ComponentResult::FileIds(page) = result else {
            panic!("{result:?}")
        };
        all.extend(
            page.items
                .iter()
                .map(|item| format!("{contributor}/{}", item.file_id)),
        );
    }
    all
}

#[test]
fn each_pillar_is_asked_until_its_listing_ends() {
    let mut bench = Bench::new(context(&["north", "south"], None), ids_procedure(2));
    let Message::IdentifyPillarsForGetFileIdsRequest(request) = &bench.sent[0] else {
        panic!()
    };
    assert_eq!(request.file_ids, Some(FileIds::All));
    bench.hear(ids_identify("north", POSITIVE));
    bench.hear(ids_identify("south", POSITIVE));
    bench.hear(ids_final("north", &[("a", 1), ("b", 2)], Some(true)));
    let again = bench.sent.last().unwrap().clone();
    let Message::GetFileIdsRequest(again) = again else {
        panic!()
    };
    assert_eq!(again.header.destination.name(), "at-north");
    assert_eq!(
        again.min_timestamp.unwrap().millis(),
        2,
        "from the newest seen, inclusive"
    );
    assert_eq!(again.max_number_of_results.unwrap().get(), 2);
    bench.hear(ids_final("south", &[], None));
    // The first page comes twice.
    bench.hear(ids_final("north", &[("a", 1), ("b", 2)], Some(true)));
    bench.hear(ids_final("north", &[("b", 2), ("c", 3)], None));
    assert_eq!(listed(&bench), ["north/a", "north/b", "north/c"]);
    assert_eq!(
        bench.trace()[5..],
        [
            "PROGRESS north",
            "COMPONENT_COMPLETE south",
            "COMPONENT_COMPLETE north",
            "COMPLETE"
        ]
    );
    let EventKind::Complete { results, .. } = &bench.events.last().unwrap().kind else {
        panic!()
    };
    let ComponentResult::FileIds(page) = &results[1].result else {
        panic!()
    };
    assert_eq!(
        (page.total, page.items.len()),
        (3, 0),
        "the items are not kept"
    );
}

#[test]
fn a_page_of_one_time_is_asked_for_larger() {
    let mut bench = Bench::new(context(&["north"], None), ids_procedure(2));
    bench.hear(ids_identify("north", POSITIVE));
    bench.hear(ids_final("north", &[("a", 5), ("b", 5)], Some(true)));
    let Message::GetFileIdsRequest(again) = bench.sent.last().unwrap() else {
        panic!()
    };
    assert_eq!(again.max_number_of_results.unwrap().get(), 4);
    bench.hear(ids_final(
        "north",
        &[("a", 5), ("b", 5), ("c", 5), ("d", 6)],
        Some(true),
    ));
    let Message::GetFileIdsRequest(again) = bench.sent.last().unwrap() else {
        panic!()
    };
    assert_eq!(
        again.max_number_of_results.unwrap().get(),
        2,
        "and then as usual"
    );
    bench.hear(ids_final("north", &[("d", 6)], Some(false)));
    assert_eq!(listed(&bench), ["north/a", "north/b", "north/c", "north/d"]);
    assert_eq!(bench.last(), "COMPLETE");
}

#[test]
fn every_page_has_its_time_but_a_silent_pillar_only_its_own() {
    let mut bench = Bench::new(context(&["north", "south"], None), ids_procedure(2));
    bench.hear(ids_identify("north", POSITIVE));
    bench.hear(ids_identify("south", POSITIVE));
    let asked_at = bench.now_ms;
    bench.now_ms += OPERATION_MS - 1;
    bench.hear(ids_final("north", &[("a", 1), ("b", 2)], Some(true)));
    bench.time_out();
    assert_eq!(bench.now_ms, asked_at + OPERATION_MS);
    assert_eq!(bench.last(), "COMPONENT_FAILED south");
    bench.hear(ids_final("north", &[("b", 2), ("c", 3)], Some(false)));
    assert_eq!(bench.last(), "FAILED");
    assert_eq!(
        listed(&bench).len(),
        3,
        "what came is delivered all the same"
    );
}

#[test]
fn an_unusable_listing() {
    let mut addressed = ids_final("north", &[], None);
    addressed.resulting_file_ids = Some(ResultingFileIds::Address(
        "http://127.0.0.1/elsewhere".to_owned(),
    ));
    for message in [addressed, ids_final("north", &[], Some(true))] {
        let mut bench = Bench::new(context(&["north"], None), ids_procedure(2));
        bench.hear(ids_identify("north", POSITIVE));
        bench.hear(message);
        assert_eq!(bench.trace()[4..], ["COMPONENT_FAILED north", "FAILED"]);
    }
}

#[test]
fn a_failure_answer_stays_one_and_names_the_pillar() {
    let mut bench = Bench::new(context(&["north"], None), ids_procedure(2));
    bench.hear(ids_identify("north", POSITIVE));
    let mut failure = ids_final("north", &[], None);
    failure.response_info = info(ResponseCode::Failure);
    bench.hear(failure);
    assert_eq!(bench.last(), "FAILED");
    assert!(
        bench.info().contains("north: FAILURE, said FAILURE"),
        "{}",
        bench.info()
    );
}

#[test]
fn checksums_of_another_kind_are_not_taken() {
    let cases = [
        (ChecksumType::Md5, "COMPLETE"),
        (ChecksumType::Sha1, "FAILED"),
    ];
    for (kind, last) in cases {
        let mut bench = Bench::new(context(&["north"], None), checksums_procedure());
        bench.hear(sums_identify("north", POSITIVE));
        let Message::GetChecksumsRequest(request) = &bench.sent[1] else {
            panic!()
        };
        let spec = Some(plain_spec(ChecksumType::Md5));
        assert_eq!(request.checksum_request_for_existing_file, spec);
        bench.hear(sums_final("north", kind, &[("a", 1)], Some(false)));
        assert_eq!(bench.last(), last);
    }
}

/// A pillar that gives so many items at most, however many it is asked for. The bus brings its answer of this number
/// twice.
fn capped(items: &[(&'static str, i64)], most: usize, twice: usize) -> Bench<GetFileIdsProcedure> {
    let mut bench = Bench::new(context(&["north"], None), ids_procedure(2));
    bench.hear(ids_identify("north", POSITIVE));
    let mut answered = 1;
    while answered < bench.sent.len() && !bench.conversation.is_done() {
        let Message::GetFileIdsRequest(request) = &bench.sent[answered] else {
            panic!()
        };
        let from = request.min_timestamp.unwrap().millis();
        let asked = usize::try_from(request.max_number_of_results.unwrap().get()).unwrap();
        let fitting: Vec<_> = items.iter().filter(|it| it.1 >= from).copied().collect();
        let page = &fitting[..asked.min(most).min(fitting.len())];
        let partial = page.len() < fitting.len();
        for _ in 0..1 + usize::from(answered == twice) {
            bench.hear(ids_final("north", page, Some(partial)));
        }
        answered += 1;
        assert!(bench.sent.len() < 50, "it is asked without end");
    }
    bench
}

#[test]
fn a_pillar_that_gives_the_same_page_over_and_over_has_failed() {
    let tied = [("a", 5), ("b", 5), ("c", 5), ("d", 6)];
    for (items, most) in [(&tied[..], 2), (&[("a", 1), ("b", 2)], 1)] {
        let bench = capped(items, most, 0);
        assert_eq!(bench.last(), "FAILED", "{items:?} by {most}");
        assert_eq!(bench.now_ms, BEGUN_MS, "it is not waited for");
        let told = bench.info();
        assert!(
            told.contains("north: its GetFileIDsFinalResponse"),
            "{told}"
        );
        assert!(told.contains("sent the same again"), "{told}");
    }
    // One that gets further is heard to its end, however short its pages are.
    let further = [("a", 1), ("b", 2), ("c", 3), ("d", 3), ("e", 4)];
    assert_eq!(capped(&further, 3, 0).last(), "COMPLETE");
}

#[test]
fn a_page_that_is_delivered_twice_is_no_standstill() {
    let items = [("a", 1), ("b", 2), ("c", 3), ("d", 4), ("e", 5), ("f", 6)];
    let once = capped(&items, 2, 0);
    assert_eq!(listed(&once).len(), items.len());
    for twice in 1..once.sent.len() {
        let bench = capped(&items, 2, twice);
        assert_eq!(listed(&bench), listed(&once), "{twice}");
        assert_eq!(bench.last(), "COMPLETE");
        assert!(bench.sent.len() <= once.sent.len() + 1, "one is asked more");
    }
}

#[test]
fn answers_to_requests_that_were_sent_again_are_no_standstill() {
    let mut bench = Bench::new(context(&["north"], None), ids_procedure(2));
    bench.hear(ids_identify("north", POSITIVE));
    for _ in 0..2 {
        bench.step(Input::Reconnected { answers_kept: true });
    }
    for _ in 0..3 {
        bench.hear(ids_final("north", &[("a", 1), ("b", 2)], Some(true)));
    }
    assert_eq!(bench.last(), "PROGRESS north");
    bench.hear(ids_final("north", &[("b", 2), ("c", 3)], Some(false)));
    assert_eq!(listed(&bench), ["north/a", "north/b", "north/c"]);
    assert_eq!(bench.last(), "COMPLETE");
}
