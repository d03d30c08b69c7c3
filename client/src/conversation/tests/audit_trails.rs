//! GetAuditTrails: page after page, by number.

use std::{collections::BTreeMap, num::NonZeroU64};

use pillarbox_messages::{
    AuditTrailEvent, FileAction, GetAuditTrailsFinalResponse, GetAuditTrailsRequest,
    IdentifyContributorsForGetAuditTrailsResponse, Message, ResponseCode, ResultingAuditTrails,
    Timestamp,
};

use super::support::{Bench, COMPLETED, POSITIVE, context, header, info};
use crate::{
    conversation::get_audit_trails::GetAuditTrailsProcedure,
    event::{ComponentResult, EventKind},
};

pub(super) fn trails_procedure() -> GetAuditTrailsProcedure {
    GetAuditTrailsProcedure {
        file: None,
        first: None,
        last: None,
        min_time: None,
        max_time: None,
        page_size: NonZeroU64::new(2).unwrap(),
        trails: BTreeMap::new(),
    }
}

pub(super) fn trails_identify(
    from: &str,
    code: ResponseCode,
) -> IdentifyContributorsForGetAuditTrailsResponse {
    IdentifyContributorsForGetAuditTrailsResponse {
        header: header(from),
        response_info: info(code),
    }
}

pub(super) fn trails_final(
    from: &str,
    numbers: &[u64],
    partial: Option<bool>,
) -> GetAuditTrailsFinalResponse {
    let event = |number: &u64| AuditTrailEvent {
        sequence_number: NonZeroU64::new(*number).unwrap(),
        file_id: "hello.txt".into(),
        reporting_component: from.into(),
        actor_on_file: "ingest-1".to_owned(),
        action_on_file: FileAction::PutFile,
        action_date_time: Timestamp::from_millis(0),
        info: None,
        operation_id: None,
        certificate_id: None,
        audit_trail_information: None,
    };
    GetAuditTrailsFinalResponse {
        header: header(from),
        response_info: info(COMPLETED),
        contributor: Some(from.into()),
        resulting_audit_trails: Some(ResultingAuditTrails::Events(
            numbers.iter().map(event).collect(),
        )),
        partial_result: partial,
    }
}

fn trails(
    pillars: &[&str],
    change: impl FnOnce(&mut GetAuditTrailsProcedure),
) -> Bench<GetAuditTrailsProcedure> {
    let mut procedure = trails_procedure();
    change(&mut procedure);
    let mut bench = Bench::new(context(pillars, None), procedure);
    for pillar in pillars {
        bench.hear(trails_identify(pillar, POSITIVE));
    }
    bench
}

/// The operation requests in order.
fn requests(bench: &Bench<GetAuditTrailsProcedure>) -> Vec<&GetAuditTrailsRequest> {
    let mut found = Vec::new();
    for message in &bench.sent {
        if let Message::GetAuditTrailsRequest(request) = message {
            found.push(request);
        }
    }
    found
}

/// The numbers of all events that were told of.
fn numbers(bench: &Bench<GetAuditTrailsProcedure>) -> Vec<u64> {
    let mut all = Vec::new();
    for event in &bench.events {
        if let EventKind::Progress {
            result: Some(ComponentResult::AuditTrails(page)),
            ..
        }
        | EventKind::ComponentComplete {
            result: ComponentResult::AuditTrails(page),
            ..
        } = &event.kind
        {
            all.extend(page.items.iter().map(|event| event.sequence_number.get()));
            assert_eq!(page.total, all.len() as u64);
        }
    }
    all
}

#[test]
fn pages_follow_by_number() {
    let mut bench = trails(&["north"], |_| {});
    bench.hear(trails_final("north", &[1, 2], Some(true)));
    // The numbers of the reference jump when it is restarted.
    bench.hear(trails_final("north", &[102, 103], Some(true)));
    // A full last page is partial there too.
    bench.hear(trails_final("north", &[], Some(false)));
    let asked: Vec<Option<u64>> = requests(&bench)
        .iter()
        .map(|request| request.min_sequence_number.map(NonZeroU64::get))
        .collect();
    assert_eq!(asked, [None, Some(3), Some(104)]);
    assert!(
        requests(&bench)
            .iter()
            .all(|it| it.result_address.is_none())
    );
    assert_eq!(numbers(&bench), [1, 2, 102, 103]);
    assert_eq!(
        bench.trace()[3..],
        [
            "REQUEST_SENT [north]",
            "PROGRESS north",
            "PROGRESS north",
            "COMPONENT_COMPLETE north",
            "COMPLETE",
        ]
    );
}

#[test]
fn what_is_asked_for() {
    let number = |n| NonZeroU64::new(n);
    let bench = trails(&["north", "south"], |it| {
        it.file = Some("hello.txt".into());
        it.first = number(5);
        it.last = number(9);
        it.min_time = Some(Timestamp::from_millis(1000));
        it.max_time = Some(Timestamp::from_millis(2000));
    });
    let all = requests(&bench);
    assert_eq!(all.len(), 2);
    for (request, contributor) in all.into_iter().zip(["north", "south"]) {
        assert_eq!(request.contributor, Some(contributor.into()));
        assert_eq!(request.header.to, None, "there are two");
        assert_eq!(request.file_id, Some("hello.txt".into()));
        assert_eq!(request.min_sequence_number, number(5));
        assert_eq!(request.max_sequence_number, number(9));
        assert_eq!(request.min_timestamp, Some(Timestamp::from_millis(1000)));
        assert_eq!(request.max_timestamp, Some(Timestamp::from_millis(2000)));
        assert_eq!(request.max_number_of_results, number(2));
    }
}

#[test]
fn nothing_is_asked_for_beyond_the_last_number() {
    for (last, newest) in [(9, 9), (u64::MAX, u64::MAX)] {
        let mut bench = trails(&["north"], |it| it.last = NonZeroU64::new(last));
        bench.hear(trails_final("north", &[newest], Some(true)));
        assert_eq!(bench.last(), "COMPLETE");
    }
}

#[test]
fn a_repeated_page_counts_once() {
    let mut bench = trails(&["north"], |_| {});
    bench.hear(trails_final("north", &[1, 2], Some(true)));
    bench.hear(trails_final("north", &[1, 2], Some(true)));
    bench.hear(trails_final("north", &[3], None));
    assert_eq!(bench.last(), "COMPLETE");
    assert_eq!(numbers(&bench), [1, 2, 3]);
}

#[test]
fn a_page_that_does_not_lead_on_is_a_failure() {
    let mut bench = trails(&["north"], |_| {});
    bench.hear(trails_final("north", &[], Some(true)));
    assert_eq!(bench.last(), "FAILED");
    assert!(bench.info().contains("sent nothing"), "{}", bench.info());

    let mut bench = trails(&["north"], |it| it.first = NonZeroU64::new(7));
    bench.hear(trails_final("north", &[1, 8], None));
    assert!(bench.info().contains("lower than"), "{}", bench.info());

    let mut bench = trails(&["north"], |_| {});
    let mut elsewhere = trails_final("north", &[], None);
    let address = "http://127.0.0.1/trails".to_owned();
    elsewhere.resulting_audit_trails = Some(ResultingAuditTrails::Address(address));
    bench.hear(elsewhere);
    assert!(bench.info().contains("inline"), "{}", bench.info());
}

#[test]
fn a_contributor_that_gives_the_same_page_over_and_over_has_failed() {
    let mut bench = trails(&["north"], |_| {});
    for _ in 0..3 {
        bench.hear(trails_final("north", &[1, 2], Some(true)));
    }
    assert_eq!(bench.last(), "FAILED");
    let told = bench.info();
    assert!(
        told.contains("north: its GetAuditTrailsFinalResponse"),
        "{told}"
    );
    assert_eq!(numbers(&bench), [1, 2]);
}

/// The reference answers some requests twice: first as it should, then with a failure.
#[test]
fn a_failure_after_the_end_is_ignored() {
    let failure = |from| GetAuditTrailsFinalResponse {
        response_info: info(ResponseCode::Failure),
        ..trails_final(from, &[], None)
    };
    let mut bench = trails(&["north", "south"], |_| {});
    bench.hear(trails_final("north", &[1], Some(false)));
    bench.hear(failure("north"));
    assert_eq!(bench.ignored, 1);
    bench.hear(trails_final("south", &[1], Some(false)));
    assert_eq!(bench.last(), "COMPLETE");
    bench.hear(failure("south"));
    assert_eq!(bench.last(), "COMPLETE");
}
