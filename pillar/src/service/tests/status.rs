use pillarbox_messages::{
    GetStatusFinalResponse, GetStatusRequest, IdentifyContributorsForGetStatusRequest, StatusCode,
};

use super::*;

impl Site {
    fn status_request(&self) -> GetStatusRequest {
        let mut header = self.header();
        header.collection_id = None;
        GetStatusRequest {
            header,
            audit_trail_information: None,
            contributor: Some("north".into()),
        }
    }

    pub(super) async fn status(&mut self) -> (StatusCode, String) {
        let request = self.status_request();
        let answers = self.ask(request).await;
        assert_eq!(codes(&answers), [ACCEPTED, COMPLETED], "{answers:?}");
        match answers.into_iter().next_back() {
            Some(Message::GetStatusFinalResponse(GetStatusFinalResponse {
                resulting_status,
                ..
            })) => {
                let info = resulting_status.status_info;
                (info.status_code, info.status_text)
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_pillar_that_is_well_says_what_it_looked_at() {
    let mut site = Site::open().await;
    site.put("scan.tif", b"scan").await;
    let mut header = site.to_all();
    header.collection_id = None;
    let request = IdentifyContributorsForGetStatusRequest {
        header,
        audit_trail_information: None,
    };
    let answers = site.ask(request).await;
    let [Message::IdentifyContributorsForGetStatusResponse(response)] = &answers[..] else {
        panic!("{answers:?}")
    };
    assert_eq!(response.contributor.as_str(), "north");
    assert_eq!(response.header.collection_id, None);
    let (code, text) = site.status().await;
    assert_eq!(code, StatusCode::Ok, "{text}");
    for word in [
        "Pillarbox ",
        "bus: connected",
        "archive",
        "bytes free",
        "index: readable",
        "oldest checksum",
    ] {
        assert!(text.contains(word), "{word}: {text}");
    }
}

/// Not all is well just because it can answer (P21).
#[tokio::test]
async fn a_pillar_whose_archive_is_gone_says_so() {
    let mut site = Site::open().await;
    site.put("scan.tif", b"scan").await;
    let archive = site.directory.path().join("archive");
    fs::rename(&archive, site.directory.path().join("elsewhere")).unwrap();
    let (code, text) = site.status().await;
    assert_eq!(code, StatusCode::Error, "{text}");
    assert!(text.contains("ERROR directory"), "{text}");
}

#[tokio::test]
async fn another_contributors_status_is_refused_with_an_alarm_and_an_error() {
    let mut site = Site::open().await;
    let mut request = site.status_request();
    request.contributor = Some("south".into());
    let answers = site.ask(request).await;
    let [Message::GetStatusFinalResponse(response)] = &answers[..] else {
        panic!("{answers:?}")
    };
    assert_eq!(response.response_info.response_code, NOT_UNDERSTOOD);
    let status = &response.resulting_status.status_info;
    assert_eq!(status.status_code, StatusCode::Error);
}
