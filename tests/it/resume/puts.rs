//! Puts whose client was killed.

use std::{fs, time::Duration};

use pillarbox_messages::ResponseCode;

use super::{NOTHING, assert_resumed, journal, killed_put, resume, resuming, start, stored};
use crate::support::{noise, pause, peers::StandIn, process, site::Site, until, whole::NO_FILES};

const PUT: &str = "PutFile \t late.bin \t COMPLETE";

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_reply_that_waited_ends_a_put() {
    let site = Site::new(&["played"]);
    let _hub = site.start("hub");
    let mut played = StandIn::join(&site, "played").await;
    let request = killed_put(&site, &mut played).await;
    assert_eq!(site.offered().len(), 1, "the pillar may still need it");
    stored(&played, &request).await;
    // Nobody answers any more: what follows was in the durable subscription.
    drop(played);
    assert_resumed(&site, &resume(&site, &[]), PUT);
    assert_eq!(site.offered(), NO_FILES);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_reply_outlives_the_bus() {
    let site = Site::with_restless_bus(&["played"]);
    let _exchange = site.start("exchange");
    let mut bus = site.start("bus");
    let mut played = StandIn::join(&site, "played").await;
    let request = killed_put(&site, &mut played).await;
    stored(&played, &request).await;
    drop(played);
    bus.kill();
    let _bus = site.start("bus");
    assert_resumed(&site, &resume(&site, &[]), PUT);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn who_owes_an_answer_when_the_time_is_over_is_asked_again() {
    let site = Site::with_timeouts(&["played"], "20s", "2s");
    let _hub = site.start("hub");
    let mut played = StandIn::join(&site, "played").await;
    let first = killed_put(&site, &mut played).await;
    pause(Duration::from_secs(3));
    let mut client = resuming(&site);
    let again = played.put_request().await;
    assert_eq!(again, first);
    stored(&played, &again).await;
    client.wait_for_success();
    assert!(client.output()[0].ends_with(PUT), "{:?}", client.output());
    assert_eq!(journal(&site), NOTHING);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn who_never_answers_fails_within_bounds() {
    let site = Site::with_timeouts(&["played"], "20s", "1s");
    let _hub = site.start("hub");
    let mut played = StandIn::join(&site, "played").await;
    killed_put(&site, &mut played).await;
    let output = resume(&site, &[]);
    assert_eq!(output.status.code(), Some(255));
    let told = process::stdout(&output);
    assert!(told.contains("PutFile \t late.bin \t FAILED: "), "{told}");
    assert!(
        told.contains("did not finish the operation in time"),
        "{told}"
    );
    assert_eq!(
        process::stderr(&output),
        "pillarbox: 1 of 1 operation did not end well\n"
    );
    assert_eq!(journal(&site), NOTHING);
    assert_eq!(site.offered(), NO_FILES);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_put_killed_twice_and_refused_is_told_in_json() {
    let site = Site::new(&["played"]);
    let _hub = site.start("hub");
    let mut played = StandIn::join(&site, "played").await;
    let request = killed_put(&site, &mut played).await;
    let mut second = resuming(&site);
    let again = played.put_request().await;
    second.kill();
    assert_eq!(site.offered().len(), 1, "the pillar may still need it");
    let code = ResponseCode::FileTransferFailure;
    played.end_put(&again, code).await;
    drop(played);
    let output = resume(&site, &["--json"]);
    assert_eq!(output.status.code(), Some(255));
    let line: serde_json::Value = serde_json::from_str(&process::stdout(&output)).unwrap();
    assert_eq!(
        line["correlation_id"],
        request.header.correlation_id.as_str()
    );
    assert_eq!(line["operation"], "PutFile");
    assert_eq!(line["collection_id"], "books");
    assert_eq!(line["file_id"], "late.bin");
    assert_eq!(line["complete"], false);
    let text = line["text"].as_str().unwrap();
    assert!(text.contains("FILE_TRANSFER_FAILURE"), "{text}");
    assert_eq!(site.offered(), NO_FILES);
}

/// A put whose client was killed before anybody was asked to store the file.
async fn killed_early(site: &Site, played: &mut StandIn) {
    let file = site.file("late.bin", &noise(71, 100_000));
    let mut client = start(site, "put-file", &["-f", file.to_str().unwrap()]);
    played.identify_request().await;
    client.kill();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_file_that_was_not_offered_yet_is_offered_again() {
    let site = Site::new(&["played"]);
    let _hub = site.start("hub");
    let mut played = StandIn::join(&site, "played").await;
    killed_early(&site, &mut played).await;
    assert_eq!(site.offered(), NO_FILES);
    let mut client = resuming(&site);
    let identify = played.identify_request().await;
    played.accept_put(&identify).await;
    let request = played.put_request().await;
    assert_eq!(fs::read(&site.offered()[0]).unwrap(), noise(71, 100_000));
    stored(&played, &request).await;
    client.wait_for_success();
    assert!(client.output()[0].ends_with(PUT), "{:?}", client.output());
    assert_eq!(site.offered(), NO_FILES);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_file_that_is_another_one_by_now_is_not_put() {
    let site = Site::new(&["played"]);
    let _hub = site.start("hub");
    let mut played = StandIn::join(&site, "played").await;
    killed_early(&site, &mut played).await;
    // The same length: its time tells.
    let before = fs::metadata(site.path().join("late.bin")).unwrap();
    until("its time is another one", || {
        let file = site.file("late.bin", &noise(72, 100_000));
        fs::metadata(file).unwrap().modified().unwrap() != before.modified().unwrap()
    });
    let output = resume(&site, &[]);
    assert_eq!(output.status.code(), Some(255));
    let told = process::stdout(&output);
    assert!(
        told.contains("has changed since the operation began"),
        "{told}"
    );

    killed_early(&site, &mut played).await;
    fs::remove_file(site.path().join("late.bin")).unwrap();
    let output = resume(&site, &[]);
    assert_eq!(output.status.code(), Some(255));
    let told = process::stdout(&output);
    assert!(told.contains("late.bin' can't be put"), "{told}");
    assert_eq!(journal(&site), NOTHING);
}
