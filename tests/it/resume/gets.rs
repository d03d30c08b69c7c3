//! Gets and listings whose client was killed.

use std::fs;

use super::{NOTHING, assert_resumed, journal, resume, start};
use crate::support::{
    noise,
    peers::StandIn,
    process,
    site::Site,
    until,
    whole::{NO_FILES, http, path_of},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_file_that_was_delivered_meanwhile_arrives_whole() {
    let site = Site::new(&["played"]);
    let _hub = site.start("hub");
    let mut played = StandIn::join(&site, "played").await;
    let mut client = start(&site, "get-file", &["-i", "a.bin", "-l", "copy.bin"]);
    let identify = played.identify_request().await;
    played.accept_get(&identify).await;
    let request = played.get_request().await;
    client.kill();

    let content = noise(73, 300_000);
    let path = path_of(&request.file_address).to_owned();
    let status = http(site.exchange_port, "PUT", &path, &content).0;
    assert_eq!(status, 201);
    let part = format!(".{}.part", request.header.correlation_id);
    let part = site.file(&part, b"what the killed process had received");
    played.end_get(request).await;
    drop(played);
    // From wherever: the path was meant where the other process was.
    assert_resumed(&site, &resume(&site, &[]), "GetFile \t a.bin \t COMPLETE");
    assert_eq!(fs::read(site.path().join("copy.bin")).unwrap(), content);
    assert!(!part.exists());
    assert_eq!(site.offered(), NO_FILES);
}

#[test]
fn a_get_killed_while_the_file_comes_is_finished() {
    let site = Site::new(&["north"]);
    let _hub = site.start("hub");
    let _north = site.start("north");
    let content = noise(74, 32 << 20);
    let file = site.file("large.bin", &content);
    process::succeed(&site.run("put-file", ["-f".as_ref(), file.as_os_str()]));
    let mut client = start(&site, "get-file", &["-i", "large.bin", "-l", "copy.bin"]);
    let parts = || {
        let names = fs::read_dir(site.path()).unwrap();
        let is_part = |name: &str| name.starts_with('.') && name.ends_with(".part");
        let parts = names.filter(|it| is_part(&it.as_ref().unwrap().file_name().to_string_lossy()));
        parts.count()
    };
    until("it comes", || parts() == 1 || !client.lives());
    client.kill();
    if fs::exists(site.path().join("copy.bin")).unwrap() {
        // It was faster than this test could see.
        return;
    }
    assert_resumed(
        &site,
        &resume(&site, &[]),
        "GetFile \t large.bin \t COMPLETE",
    );
    assert!(fs::read(site.path().join("copy.bin")).unwrap() == content);
    assert_eq!(parts(), 0);
    assert_eq!(site.offered(), NO_FILES);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_listing_has_failed_since_its_rows_are_lost() {
    let site = Site::new(&["played"]);
    let _hub = site.start("hub");
    let mut played = StandIn::join(&site, "played").await;
    let mut client = start(&site, "get-file-ids", &[]);
    played.identify_request().await;
    client.kill();
    let output = resume(&site, &[]);
    assert_eq!(output.status.code(), Some(255));
    let told = process::stdout(&output);
    let line = "GetFileIDs \t all files \t FAILED: the results were lost";
    assert!(told.contains(line), "{told}");
    assert_eq!(journal(&site), NOTHING);
}
