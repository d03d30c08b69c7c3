//! Gets and listings whose client was killed.

use std::{fs, path::PathBuf, time::Duration};

use pillarbox_messages::GetFileRequest;

use super::{NOTHING, assert_resumed, journal, resume, resuming, start};
use crate::support::{
    noise, pause,
    peers::StandIn,
    process::{self, Running},
    site::{Site, files_below},
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
    // Somebody has laid a file there meanwhile: it is replaced, as get-file does, and that is told.
    let copy = site.file("copy.bin", b"an older one");
    // From wherever: the path was meant where the other process was.
    let output = resume(&site, &[]);
    assert_resumed(&site, &output, "GetFile \t a.bin \t COMPLETE");
    let said = process::stderr(&output);
    let told = format!(
        "'{}' was there before and has been replaced\n",
        copy.display()
    );
    assert!(said.ends_with(&told), "{said}");
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
    let output = resume(&site, &[]);
    assert_resumed(&site, &output, "GetFile \t large.bin \t COMPLETE");
    assert_eq!(process::stderr(&output), "");
    assert!(fs::read(site.path().join("copy.bin")).unwrap() == content);
    assert_eq!(parts(), 0);
    assert_eq!(site.offered(), NO_FILES);
}

/// The pillar is at work on the request, and another one would have it deliver once more, perhaps when the file has
/// been fetched and removed.
#[test]
fn a_get_killed_while_the_pillar_delivers_is_not_asked_for_twice() {
    let site = Site::new(&["north"]);
    let _hub = site.start("hub");
    let mut north = site.start("north");
    let content = noise(78, 64 << 20);
    let file = site.file("large.bin", &content);
    process::succeed(&site.run("put-file", ["-f".as_ref(), file.as_os_str()]));
    let mut in_the_middle = 0;
    for number in 0..5 {
        let copy = format!("copy-{number}");
        let mut client = start(&site, "get-file", &["-i", "large.bin", "-l", &copy]);
        until("it is on its way to the exchange", || {
            !site.offered().is_empty() || !client.lives()
        });
        client.kill();
        if !site.path().join(&copy).exists() {
            in_the_middle += 1;
            let end = "GetFile \t large.bin \t COMPLETE";
            assert_resumed(&site, &resume(&site, &[]), end);
        }
        assert!(fs::read(site.path().join(&copy)).unwrap() == content);
    }
    assert!(in_the_middle > 0, "no kill was in the middle");
    // It finishes what it has begun.
    north.terminate();
    north.wait_for_success();
    let _north = site.start("north");
    let trail = site.run("get-audit-trails", ["-i", "large.bin"]);
    let delivered = process::succeed(&trail).matches("\tGET_FILE ").count();
    assert_eq!(delivered, 5, "once for each");
    assert_eq!(site.offered(), NO_FILES);
}

/// A get that is asked for again, since its time was over when its client came back. Gives both requests.
async fn asked_twice(site: &Site, played: &mut StandIn) -> (Running, [GetFileRequest; 2]) {
    let mut client = start(site, "get-file", &["-i", "a.bin", "-l", "copy.bin"]);
    let identify = played.identify_request().await;
    played.accept_get(&identify).await;
    let first = played.get_request().await;
    client.kill();
    pause(Duration::from_secs(3));
    let client = resuming(site);
    let again = played.get_request().await;
    assert_eq!(again, first);
    (client, [first, again])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_comes_when_the_file_has_been_fetched_is_not_taken() {
    let site = Site::with_timeouts(&["played"], "20s", "2s");
    let _hub = site.start("hub");
    let mut played = StandIn::join(&site, "played").await;
    let (mut client, [first, again]) = asked_twice(&site, &mut played).await;
    let path = path_of(&first.file_address).to_owned();
    assert_eq!(http(site.exchange_port, "PUT", &path, b"hello").0, 201);
    played.end_get(first).await;
    client.wait_for_success();
    assert_eq!(fs::read(site.path().join("copy.bin")).unwrap(), b"hello");
    assert_eq!(http(site.exchange_port, "PUT", &path, b"hello").0, 410);
    played.end_get(again).await;
    assert_eq!(site.offered(), NO_FILES);
}

/// Where the exchange can't refuse it, what comes late is removed when it has come.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_comes_late_to_a_directory_is_removed_again() {
    let site = Site::with_timeouts(&["played"], "20s", "2s");
    let shared = site.path().join("shared");
    fs::create_dir(&shared).unwrap();
    let url = format!("file://{}/", shared.display());
    let client = format!(
        "data = \"var\"\n[client]\nexchange = \"{url}\"\n[exchange]\nfile_roots = [\"{}\"]\n",
        shared.display()
    );
    site.settings("client", &client);
    let _hub = site.start("hub");
    let mut played = StandIn::join(&site, "played").await;
    let (mut client, [first, again]) = asked_twice(&site, &mut played).await;
    let place = PathBuf::from(first.file_address.strip_prefix("file://").unwrap());
    let deliver = || {
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(&place, b"hello").unwrap();
    };
    deliver();
    played.end_get(first).await;
    let fetched = || fs::exists(site.path().join("copy.bin")).unwrap();
    until("it is fetched and removed", || fetched() && !place.exists());
    deliver();
    played.end_get(again).await;
    client.wait_for_success();
    assert_eq!(files_below(&shared), NO_FILES);
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
