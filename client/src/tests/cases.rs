//! What users of this protocol have met elsewhere, each as a small test of the client.

use std::time::Duration;

use pillarbox_messages::ChecksumType;
use pillarbox_settings::Timeouts;

use super::{
    operations::{events, put, source},
    reports::DVDS,
    site::{PLENTY, Site},
    stand_in::{SLOW_PROGRESS, Temper},
};
use crate::{
    Client, ClientError, ClientOptions, GetChecksums, GetFile, GetFileIds, Outcome, PutFile,
    digests::plain_spec,
};

const SHORT: Duration = Duration::from_millis(1500);

async fn get(site: &Site, client: &Client, pillar: Option<&str>) -> Outcome {
    let target = site.directory.path().join("target");
    let mut get = GetFile::new("books".into(), "hello.txt".into(), target);
    get.pillar = pillar.map(Into::into);
    client.get_file(get).await.unwrap().outcome().await
}

/// A client whose operations have less time than a slow pillar takes, but more than it is silent.
fn impatient(site: &Site, id: &str, extend_on_progress: bool) -> Client {
    let options = ClientOptions {
        extend_on_progress,
        timeouts: Some(Timeouts {
            identification: PLENTY,
            operation: 4 * SLOW_PROGRESS,
            conversation: 2 * PLENTY,
        }),
        ..site.options(id, PLENTY)
    };
    Client::connect(options).unwrap()
}

#[test]
fn u41_a_salt_without_hmac_and_hmac_without_a_salt_are_refused_before_anything_is_sent() {
    let repository = super::validation::repository();
    let salted = |kind, salt: Option<&str>| {
        let mut spec = plain_spec(kind);
        spec.checksum_salt = salt.map(|hex| hex.parse().unwrap());
        let mut sums = GetChecksums::new("books".into());
        sums.checksum = Some(spec);
        sums.validate(&repository)
    };
    for (kind, salt, good) in [
        (ChecksumType::HmacMd5, Some("abcd"), true),
        (ChecksumType::Md5, None, true),
        (ChecksumType::Md5, Some("abcd"), false),
        (ChecksumType::Sha1, Some("abcd"), false),
        (ChecksumType::HmacMd5, None, false),
        (ChecksumType::HmacMd5, Some(""), false),
    ] {
        let checked = salted(kind, salt);
        assert_eq!(checked.is_ok(), good, "{kind} {salt:?}: {checked:?}");
        assert!(good || matches!(checked, Err(ClientError::ChecksumSalt { .. })));
    }
    for odd in ["abc", "zz"] {
        assert!(
            odd.parse::<pillarbox_messages::HexBinary>().is_err(),
            "{odd}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn u48_a_slow_pillar_that_says_it_is_at_work_is_waited_for_if_that_is_wanted() {
    let site = Site::start().await;
    let slow = site.pillar("north", Temper::Slow).await;
    slow.keep("hello.txt", b"hello, world");
    let waits = impatient(&site, "patient", true);
    let outcome = get(&site, &waits, Some("north")).await;
    assert!(outcome.complete, "{outcome:?}");
    let hurries = impatient(&site, "hasty", false);
    let outcome = get(&site, &hurries, Some("north")).await;
    assert!(!outcome.complete);
    assert_eq!(
        outcome.failures[0].text,
        "did not finish the operation in time"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn u48_a_pillar_that_needs_hours_is_not_the_fastest() {
    let site = Site::start().await;
    let slow = site.pillar("north", Temper::Slow).await;
    let quick = site.pillar("south", Temper::Honest).await;
    slow.keep("hello.txt", b"hello, world");
    quick.keep("hello.txt", b"hello, world");
    let client = site.client("reader", false, PLENTY);
    let outcome = get(&site, &client, None).await;
    assert_eq!(outcome.results[0].contributor, *quick.id());
    assert_eq!(slow.count("GetFileRequest"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn u51_only_the_pillars_of_the_collection_are_waited_for() {
    let site = Site::start_with(DVDS).await;
    let _mute = site.pillar("south", Temper::Mute).await;
    let _north = site.pillar("north", Temper::Honest).await;
    let west = site.pillar("west", Temper::Honest).await;
    let client = site.client("reader", false, PLENTY);
    let mut request = GetFileIds::new("dvds".into());
    request.file_id = None;
    let outcome = client.get_file_ids(request).await.unwrap().outcome().await;
    assert!(outcome.complete, "{outcome:?}");
    assert_eq!(outcome.results.len(), 2);
    let file = source(&site, b"hello, world");
    let put = PutFile::new("dvds".into(), "film.mkv".into(), crate::Source::Path(file));
    let outcome = client.put_file(put).await.unwrap().outcome().await;
    assert!(outcome.complete, "{outcome:?}");
    assert!(west.file("film.mkv").is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn u52_a_silent_pillar_is_named_in_both_phases() {
    for (temper, silent_in) in [
        (Temper::Mute, "did not answer the identify request in time"),
        (Temper::Stuck, "did not finish the operation in time"),
    ] {
        let site = Site::start_with(DVDS).await;
        let _north = site.pillar("north", Temper::Honest).await;
        let _south = site.pillar("south", temper).await;
        let client = site.client("reader", false, SHORT);
        let running = client.put_file(put(source(&site, b"hello, world")));
        let mut running = running.await.unwrap();
        let failed: Vec<String> = events(&mut running)
            .await
            .iter()
            .filter(|event| event.kind.name() == "COMPONENT_FAILED")
            .map(|event| event.kind.contributor().unwrap().to_string())
            .collect();
        assert_eq!(failed, ["south"]);
        let outcome = running.outcome().await;
        assert_eq!(outcome.results.len(), 1, "north is done");
        let text = outcome.info.unwrap();
        assert!(text.contains(&format!("south: {silent_in}")), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn u53_who_refuses_in_the_identification_is_sent_no_request() {
    let site = Site::start().await;
    let north = site.pillar("north", Temper::Honest).await;
    let south = site.pillar("south", Temper::Refusing).await;
    let client = site.client("reader", false, PLENTY);
    let running = client.put_file(put(source(&site, b"hello, world")));
    assert!(!running.await.unwrap().outcome().await.complete);
    assert!(get(&site, &client, None).await.complete);
    let kinds = ["PutFileRequest", "GetFileRequest"];
    assert_eq!(kinds.map(|kind| north.count(kind)), [1, 1]);
    assert_eq!(kinds.map(|kind| south.count(kind)), [0, 0]);
}
