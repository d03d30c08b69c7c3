use std::num::NonZeroU64;

use pillarbox_messages::{
    AuditTrailEvent, FileAction, GetAuditTrailsFinalResponse, GetAuditTrailsRequest,
    IdentifyContributorsForGetAuditTrailsRequest, ResultingAuditTrails, results::ResultDocument,
};

use super::*;
use crate::{
    refusal::Refusal,
    walk::{Source, Walk},
};

impl Site {
    pub(super) fn trail_request(&self) -> GetAuditTrailsRequest {
        GetAuditTrailsRequest {
            header: self.header(),
            audit_trail_information: None,
            contributor: Some("north".into()),
            file_id: None,
            min_sequence_number: None,
            max_sequence_number: None,
            min_timestamp: None,
            max_timestamp: None,
            max_number_of_results: None,
            result_address: None,
        }
    }

    pub(super) async fn told_trail(
        &mut self,
        request: GetAuditTrailsRequest,
    ) -> GetAuditTrailsFinalResponse {
        let answers = self.ask(request).await;
        assert_eq!(codes(&answers), [ACCEPTED, COMPLETED], "{answers:?}");
        match answers.into_iter().next_back() {
            Some(Message::GetAuditTrailsFinalResponse(response)) => response,
            other => panic!("{other:?}"),
        }
    }

    /// With three files, and five events: the second file was put as the third event, and fetched twice.
    async fn visited() -> Self {
        let mut site = Self::open().await;
        site.put("aa", b"a").await;
        site.put("bb", b"b").await;
        site.put("cc", b"c").await;
        for _ in 0..2 {
            let address = site.server.offers().address_for("bb");
            let get = site.get_request("bb", &address);
            assert_eq!(codes(&site.ask(get).await), [ACCEPTED, COMPLETED]);
        }
        site
    }
}

pub(super) fn events(response: &GetAuditTrailsFinalResponse) -> &[AuditTrailEvent] {
    match &response.resulting_audit_trails {
        Some(ResultingAuditTrails::Events(events)) => events,
        other => panic!("{other:?}"),
    }
}

fn numbers(response: &GetAuditTrailsFinalResponse) -> Vec<u64> {
    let events = events(response).iter();
    events.map(|event| event.sequence_number.get()).collect()
}

const fn some(number: u64) -> Option<NonZeroU64> {
    NonZeroU64::new(number)
}

#[tokio::test]
async fn an_audit_trail_tells_who_did_what_to_which_file() {
    let mut site = Site::visited().await;
    let request = IdentifyContributorsForGetAuditTrailsRequest {
        header: site.to_all(),
        audit_trail_information: None,
    };
    assert_eq!(codes(&site.ask(request).await), [POSITIVE]);
    let mut request = site.trail_request();
    request.max_sequence_number = some(1);
    let response = site.told_trail(request).await;
    assert_eq!(response.contributor, Some("north".into()));
    assert_eq!(response.partial_result, Some(false));
    let [event] = events(&response) else {
        panic!("{response:?}")
    };
    assert_eq!(event.action_on_file, FileAction::PutFile);
    assert_eq!(
        (event.file_id.as_str(), event.actor_on_file.as_str()),
        ("aa", "ingest-1")
    );
    assert_eq!(event.reporting_component.as_str(), "north");
    assert_eq!(
        event.audit_trail_information.as_deref(),
        Some("for the test")
    );
    // Nothing is signed, and a peer expects the element all the same.
    assert_eq!(event.certificate_id.as_deref(), Some(""));
    assert!(event.operation_id.is_some() && event.info.is_some());
}

#[tokio::test]
async fn an_audit_trail_is_selected_by_number_file_and_time_and_bounds_are_inclusive() {
    let mut site = Site::visited().await;
    let all = site.trail_request();
    let all = site.told_trail(all).await;
    assert_eq!(numbers(&all), [1, 2, 3, 4, 5]);
    let times: Vec<_> = events(&all)
        .iter()
        .map(|event| event.action_date_time)
        .collect();

    let mut request = site.trail_request();
    (request.min_sequence_number, request.max_sequence_number) = (some(2), some(4));
    assert_eq!(numbers(&site.told_trail(request).await), [2, 3, 4]);

    let mut request = site.trail_request();
    request.file_id = Some("bb".into());
    assert_eq!(numbers(&site.told_trail(request).await), [2, 4, 5]);

    let mut request = site.trail_request();
    (request.min_timestamp, request.max_timestamp) = (times.get(1).copied(), times.get(2).copied());
    let found = numbers(&site.told_trail(request).await);
    assert!(found.contains(&2) && found.contains(&3), "{found:?}");

    let mut request = site.trail_request();
    request.file_id = Some("nobody knows".into());
    let response = site.told_trail(request).await;
    assert_eq!(
        (events(&response), response.partial_result),
        (&[][..], Some(false))
    );
}

#[tokio::test]
async fn a_page_of_an_audit_trail_is_partial_only_if_more_exist() {
    let mut site = Site::visited().await;
    for (limit, partial) in [(4, true), (5, false), (6, false)] {
        let mut request = site.trail_request();
        request.max_number_of_results = some(limit);
        let response = site.told_trail(request).await;
        assert_eq!(response.partial_result, Some(partial), "{limit}");
        assert_eq!(numbers(&response).len() as u64, limit.min(5));
    }
    let (mut first, mut walked) = (some(1), Vec::new());
    while let Some(number) = first {
        let mut request = site.trail_request();
        (request.min_sequence_number, request.max_number_of_results) = (Some(number), some(2));
        let response = site.told_trail(request).await;
        walked.extend(numbers(&response));
        let last = walked.last().copied().unwrap_or_default();
        first = some(last + 1).filter(|_| response.partial_result == Some(true));
    }
    assert_eq!(walked, [1, 2, 3, 4, 5]);
}

#[tokio::test]
async fn an_audit_trail_is_delivered_to_an_address_and_answered_once() {
    let mut site = Site::visited().await;
    let address = site.server.offers().address_for("trail");
    let mut request = site.trail_request();
    request.result_address = Some(address.clone());
    let response = site.told_trail(request).await;
    assert_eq!(
        response.resulting_audit_trails,
        Some(ResultingAuditTrails::Address(address.clone()))
    );
    let text = String::from_utf8(site.delivered(&address).await).unwrap();
    let Ok(ResultDocument::GetAuditTrailsResults(document)) = ResultDocument::from_xml(&text)
    else {
        panic!("{text}")
    };
    assert_eq!(document.collection_id.as_str(), "books");
    assert_eq!(document.events().count(), 5);
    // Whatever came after the final response would come before this answer.
    let next = site.trail_request();
    assert_eq!(numbers(&site.told_trail(next).await).len(), 5);

    // An empty address is none: the events must not get lost.
    let mut request = site.trail_request();
    request.result_address = Some(String::new());
    assert_eq!(numbers(&site.told_trail(request).await).len(), 5);

    let mut request = site.trail_request();
    request.result_address = Some(DEAD.to_owned());
    assert_eq!(codes(&site.ask(request).await), [ACCEPTED, TRANSFER]);
}

#[tokio::test]
async fn an_audit_trail_is_told_by_the_contributor_that_was_asked() {
    let mut site = Site::open().await;
    let mut request = site.trail_request();
    request.contributor = Some("south".into());
    assert_eq!(site.refused(request).await, NOT_UNDERSTOOD);
    let mut request = site.trail_request();
    request.header.collection_id = None;
    assert_eq!(site.refused(request).await, NOT_UNDERSTOOD);
    let mut request = site.trail_request();
    request.contributor = None;
    assert_eq!(numbers(&site.told_trail(request).await), [0; 0]);
}

#[tokio::test]
async fn what_a_client_wants_noted_may_be_long() {
    let mut site = Site::open().await;
    let long = "æ漢\u{1F4BE}<&\"".repeat(20_000);
    let mut put = site.put_request("aa", b"a").await;
    put.audit_trail_information = Some(long.clone());
    put.header.from = "f".repeat(300).as_str().into();
    site.send(put).await;
    loop {
        let answer = site.next_answer().await;
        if code(&answer) == COMPLETED {
            break;
        }
        assert_eq!(code(&answer), ACCEPTED);
    }
    let request = site.trail_request();
    let response = site.told_trail(request).await;
    let [event] = events(&response) else {
        panic!("{response:?}")
    };
    assert_eq!(event.audit_trail_information, Some(long));
    assert_eq!(event.actor_on_file.len(), 300);
}

/// Refused requests are noted with what they say, but it takes no more room than it may, and nobody who collects the
/// trail is stopped by it.
#[tokio::test]
async fn a_refused_request_of_any_length_stops_no_collection() {
    let mut site = Site::open().await;
    site.put("aa", b"a").await;
    let mut delete = site.delete_request(&"n".repeat(1 << 20), b"a");
    delete.audit_trail_information = Some("\"".repeat(1 << 20));
    assert_eq!(site.refused(delete).await, NOT_UNDERSTOOD);
    let mut replace = site.replace_request("aa", b"a", b"b").await;
    replace.file_address = format!("http://elsewhere/{}", "n".repeat(1_000_000));
    let answers = site.ask(replace).await;
    assert_eq!(codes(&answers), [NOT_UNDERSTOOD]);
    let text = answers[0].response_info().unwrap().response_text.as_ref();
    assert!(text.unwrap().len() <= 4096);
    site.put("bb", b"b").await;
    let mut request = site.trail_request();
    request.min_sequence_number = some(2);
    let response = site.told_trail(request).await;
    assert_eq!(numbers(&response), [2, 3, 4]);
    assert_eq!(response.partial_result, Some(false));
    let [deleted, replaced, _] = events(&response) else {
        panic!("{response:?}")
    };
    assert_eq!(deleted.action_on_file, FileAction::Failure);
    assert!(deleted.file_id.as_str().len() <= 1024);
    assert_eq!(replaced.file_id.as_str(), "aa");
}

/// A thing of this size, as often as it says.
struct Huge(usize, usize);

impl Source for Huge {
    type Item = usize;

    async fn portion(
        &mut self,
        _context: &Context,
        _limit: Option<NonZeroU64>,
    ) -> Result<Vec<usize>, Refusal> {
        Ok(vec![self.0; std::mem::take(&mut self.1)])
    }

    fn inline_size(size: &usize) -> usize {
        *size
    }
}

#[tokio::test]
async fn a_result_of_any_size_has_one_item_at_least() {
    let site = Site::open().await;
    let context = &site.pillar.context;
    for (size, given) in [
        (usize::MAX, 1),
        (9 << 20, 1),
        (4 << 20, 2),
        (3 << 20, 2),
        (1, 3),
    ] {
        let mut walk = Walk::new(Huge(size, 3), None);
        let mut items = 0;
        while walk.next_inline(context).await.unwrap().is_some() {
            items += 1;
        }
        assert_eq!((items, walk.more()), (given, given < 3), "{size}");
    }
}
