//! Audit trails, statuses and parts of files, against stand-ins.

use std::{num::NonZeroU64, sync::Arc};

use pillarbox_messages::FilePart;

use super::{
    operations::events,
    site::{PLENTY, Site},
    stand_in::Temper,
};
use crate::{
    Client, ClientOptions, ComponentResult, EventKind, GetAuditTrails, GetFile, GetStatus,
};

#[tokio::test(flavor = "multi_thread")]
async fn audit_trails_page_by_page() {
    let site = Site::start().await;
    let north = site.pillar("north", Temper::Honest).await;
    let _south = site.pillar("south", Temper::Honest).await;
    for file in ["a", "b", "c", "d", "e"] {
        north.keep(file, b"1");
    }
    let client = site.client("reader", false, PLENTY);
    let mut request = GetAuditTrails::new("books".into());
    request.page_size = NonZeroU64::new(2).unwrap();
    let mut running = client.get_audit_trails(request).await.unwrap();
    let mut noted = Vec::new();
    for event in events(&mut running).await {
        if let EventKind::Progress {
            result: Some(ComponentResult::AuditTrails(page)),
            ..
        }
        | EventKind::ComponentComplete {
            result: ComponentResult::AuditTrails(page),
            ..
        } = event.kind
        {
            noted.extend(page.items.into_iter().map(|it| it.file_id.to_string()));
        }
    }
    assert_eq!(noted, ["a", "b", "c", "d", "e"]);
    assert!(running.outcome().await.complete);
    assert_eq!(north.count("GetAuditTrailsRequest"), 3);
}

/// Another collection, which shares a pillar.
pub(super) const DVDS: &str = "[[collections]]\nid = \"dvds\"\npillars = [\"north\", \"west\"]\n";

#[tokio::test(flavor = "multi_thread")]
async fn the_pillars_of_all_collections_say_how_they_are() {
    let site = Site::start_with(DVDS).await;
    let north = site.pillar("north", Temper::Honest).await;
    let _south = site.pillar("south", Temper::Honest).await;
    let west = site.pillar("west", Temper::Honest).await;
    let client = site.client("reader", false, PLENTY);
    let outcome = client.get_status(GetStatus::new()).await.unwrap();
    let outcome = outcome.outcome().await;
    assert!(outcome.complete, "{outcome:?}");
    let mut told: Vec<&str> = outcome
        .results
        .iter()
        .map(|done| match &done.result {
            ComponentResult::Status(status) => status.status_info.status_text.as_str(),
            other => panic!("{other:?}"),
        })
        .collect();
    told.sort_unstable();
    assert_eq!(told, ["north is well", "south is well", "west is well"]);
    // North is in both collections, is asked in both, and answers once for all.
    assert_eq!(north.count("GetStatusRequest"), 1);

    let named = GetStatus {
        contributors: Some(vec!["west".into()]),
    };
    let outcome = client.get_status(named).await.unwrap().outcome().await;
    assert!(outcome.complete, "{outcome:?}");
    assert_eq!(outcome.results.len(), 1);
    assert_eq!(west.count("GetStatusRequest"), 2);
}

/// As those of the Java system: `NonPillarContributorIDs`.
#[tokio::test(flavor = "multi_thread")]
async fn services_tell_how_they_are_and_what_they_did_like_pillars() {
    let site = Site::start().await;
    let _north = site.pillar("north", Temper::Honest).await;
    let _south = site.pillar("south", Temper::Honest).await;
    let service = site.pillar("west", Temper::Honest).await;
    service.keep("a", b"1");
    let mut repository = pillarbox_settings::Repository::clone(&site.repository);
    repository.status_contributors = vec!["west".into()];
    repository.audit_contributors = vec!["west".into()];
    let options = ClientOptions {
        repository: Arc::new(repository),
        ..site.options("reader", PLENTY)
    };
    let client = Client::connect(options).unwrap();
    for (named, answers) in [(None, 3), (Some(vec!["west".into()]), 1)] {
        let status = GetStatus {
            contributors: named.clone(),
        };
        let outcome = client.get_status(status).await.unwrap().outcome().await;
        assert!(outcome.complete, "{outcome:?}");
        assert_eq!(outcome.results.len(), answers);
        let mut trails = GetAuditTrails::new("books".into());
        trails.contributors = named;
        let outcome = client.get_audit_trails(trails).await.unwrap();
        let outcome = outcome.outcome().await;
        assert!(outcome.complete, "{outcome:?}");
        assert_eq!(outcome.results.len(), answers);
    }
    let nobody = GetStatus {
        contributors: Some(vec!["east".into()]),
    };
    let error = client.get_status(nobody).await.unwrap_err().to_string();
    assert!(error.contains("north, south, west"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_of_a_file() {
    let site = Site::start().await;
    let north = site.pillar("north", Temper::Honest).await;
    let _south = site.pillar("south", Temper::Honest).await;
    north.keep("hello.txt", b"hello, world");
    let client = site.client("reader", false, PLENTY);
    let target = site.directory.path().join("target");
    for (offset, length, content) in [(7, 3, "wor"), (7, 300, "world"), (0, 12, "hello, world")] {
        let mut get = GetFile::new("books".into(), "hello.txt".into(), target.clone());
        get.part = Some(FilePart {
            part_offset: offset,
            part_length: length,
        });
        let outcome = client.get_file(get).await.unwrap().outcome().await;
        assert!(outcome.complete, "{outcome:?}");
        assert_eq!(std::fs::read_to_string(&target).unwrap(), content);
    }
    assert_eq!(site.offers(), 0);
}
