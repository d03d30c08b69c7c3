//! GetStatus.

use pillarbox_messages::{
    Destination, GetStatusFinalResponse, GetStatusProgressResponse,
    IdentifyContributorsForGetStatusResponse, Message, ResponseCode, ResultingStatus, StatusCode,
    StatusInfo, Timestamp,
};

use super::support::{ACCEPTED, Bench, COMPLETED, POSITIVE, context, header, info};
use crate::{
    conversation::{Context, Input, get_status::GetStatusProcedure},
    event::{ComponentResult, EventKind},
};

/// A question about no collection, asked in two.
pub(super) fn status_context(pillars: &[&str]) -> Context {
    Context {
        collection: None,
        identify_at: vec![Destination::topic("books"), Destination::topic("dvds")],
        ..context(pillars, None)
    }
}

pub(super) fn status_identify(
    from: &str,
    code: ResponseCode,
) -> IdentifyContributorsForGetStatusResponse {
    let mut header = header(from);
    header.collection_id = None;
    IdentifyContributorsForGetStatusResponse {
        header,
        response_info: info(code),
        contributor: from.into(),
        time_to_deliver: None,
    }
}

pub(super) fn status_progress(from: &str) -> GetStatusProgressResponse {
    GetStatusProgressResponse {
        header: status_identify(from, ACCEPTED).header,
        response_info: info(ACCEPTED),
        contributor: Some(from.into()),
    }
}

pub(super) fn status_final(from: &str, code: ResponseCode) -> GetStatusFinalResponse {
    GetStatusFinalResponse {
        header: status_identify(from, code).header,
        response_info: info(code),
        contributor: Some(from.into()),
        resulting_status: ResultingStatus {
            status_info: StatusInfo {
                status_code: StatusCode::Warning,
                status_text: format!("{from} is nearly full"),
            },
            status_timestamp: Timestamp::from_millis(0),
        },
    }
}

#[test]
fn everybody_says_how_it_is() {
    let pillars = ["north", "west"];
    let mut bench = Bench::new(status_context(&pillars), GetStatusProcedure);
    let asked_at: Vec<&str> = bench
        .sent
        .iter()
        .map(|message| message.header().destination.name())
        .collect();
    assert_eq!(asked_at, ["books", "dvds"]);
    bench.hear(status_identify("north", POSITIVE));
    // A pillar of both collections hears the question twice.
    bench.hear(status_identify("north", POSITIVE));
    bench.hear(status_identify("west", POSITIVE));
    for pillar in pillars {
        bench.hear(status_progress(pillar));
        bench.hear(status_final(pillar, COMPLETED));
        bench.hear(status_final(pillar, COMPLETED));
    }
    assert_eq!(
        bench.trace(),
        [
            "IDENTIFY_REQUEST_SENT",
            "COMPONENT_IDENTIFIED north",
            "COMPONENT_IDENTIFIED west",
            "IDENTIFICATION_COMPLETE [north, west]",
            "REQUEST_SENT [north, west]",
            "PROGRESS north",
            "COMPONENT_COMPLETE north",
            "PROGRESS west",
            "COMPONENT_COMPLETE west",
            "COMPLETE",
        ]
    );
    for message in &bench.sent {
        assert_eq!(message.header().collection_id, None);
        assert_eq!(
            message.header().correlation_id,
            bench.sent[0].header().correlation_id
        );
    }
    let Message::GetStatusRequest(request) = &bench.sent[2] else {
        panic!();
    };
    assert_eq!(request.contributor, Some("north".into()));
    let EventKind::Complete { results, .. } = &bench.events.last().unwrap().kind else {
        panic!();
    };
    let ComponentResult::Status(status) = &results[1].result else {
        panic!();
    };
    assert_eq!(status.status_info.status_text, "west is nearly full");
}

#[test]
fn who_does_not_say_it_is_named() {
    let mut bench = Bench::new(status_context(&["north", "west"]), GetStatusProcedure);
    bench.hear(status_identify("north", POSITIVE));
    bench.time_out();
    bench.hear(status_final("north", COMPLETED));
    assert_eq!(
        bench.trace()[2..],
        [
            "IDENTIFY_TIMEOUT [west]",
            "COMPONENT_FAILED west",
            "IDENTIFICATION_COMPLETE [north]",
            "REQUEST_SENT [north]",
            "COMPONENT_COMPLETE north",
            "FAILED",
        ]
    );
}

#[test]
fn whoever_owes_an_answer_is_asked_again_everywhere() {
    let mut bench = Bench::new(status_context(&["north"]), GetStatusProcedure);
    bench.step(Input::Reconnected { answers_kept: true });
    assert_eq!(bench.sent.len(), 4);
}
