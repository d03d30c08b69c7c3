//! What a journal is to other commands, and what it makes of what it can't use.

use std::{fs, time::Duration};

use rustix::fs::{FlockOperation, flock};

use super::{
    CLIENT, NOTHING, assert_resumed, directory, journal, killed_put, prepared, resume, resuming,
    start, stored,
};
use crate::support::{pause, peers::StandIn, process, site::Site, stomp::Stomp, whole::NO_FILES};

#[test]
fn a_client_without_a_name_has_nothing_to_resume() {
    let site = Site::new(&["north"]);
    let settings = site.part("client");
    let args = ["resume".as_ref(), "-s".as_ref(), settings.as_os_str()];
    let line = process::fail_with_one_line(&process::run(args), 1);
    assert!(line.contains("[client] id in node.toml"), "{line}");
    assert!(line.contains("--client-id"), "{line}");
    assert!(!settings.join("var").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn another_command_says_what_is_open_and_leaves_its_replies_alone() {
    let site = Site::new(&["played", "north"]);
    let _hub = site.start("hub");
    let _north = site.start("north");
    let mut played = StandIn::join(&site, "played").await;
    let request = killed_put(&site, &mut played).await;
    stored(&played, &request).await;
    drop(played);

    let list = ["--client-id", CLIENT, "-p", "north"];
    let output = site.run("get-file-ids", list);
    process::succeed(&output);
    let said = process::stderr(&output);
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.starts_with("1 operation of "), "{said}");
    assert!(said.contains("run 'pillarbox resume'"), "{said}");
    assert_resumed(
        &site,
        &resume(&site, &[]),
        "PutFile \t late.bin \t COMPLETE",
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn one_process_at_a_time_has_a_name() {
    let site = Site::new(&["played"]);
    let _hub = site.start("hub");
    let mut played = StandIn::join(&site, "played").await;
    let _client = start(&site, "get-file-ids", &[]);
    played.identify_request().await;
    let line = process::fail_with_one_line(&resume(&site, &[]), 255);
    assert!(line.contains("'ingest-1' is in use"), "{line}");
}

/// A process that was killed is there for a moment, and its connection may be for longer.
#[test]
fn a_name_that_is_in_use_is_asked_for_again_for_a_while() {
    let site = Site::new(&["north"]);
    let _hub = site.start("hub");
    let connection = Stomp::connect(site.bus_port, Some(CLIENT));
    let mut client = resuming(&site);
    // Without patience it would be over by now.
    pause(Duration::from_secs(1));
    assert!(client.lives(), "{:?}", client.errors());
    drop(connection);
    client.wait_for_success();
    assert_eq!(client.errors(), ["nothing of 'ingest-1' is open"]);

    let lock = fs::File::open(directory(&site).join("lock")).unwrap();
    flock(&lock, FlockOperation::LockExclusive).unwrap();
    let mut client = resuming(&site);
    pause(Duration::from_millis(500));
    drop(lock);
    client.wait_for_success();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_end_that_nobody_reads_or_that_finds_no_room_is_told_again() {
    let site = Site::new(&["played"]);
    let _hub = site.start("hub");
    let mut played = StandIn::join(&site, "played").await;
    let request = killed_put(&site, &mut played).await;
    stored(&played, &request).await;
    drop(played);

    let untold = "1 of 1 end could not be told; run 'pillarbox resume' again\n";
    let output = process::unheard(prepared(&site));
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(process::stderr(&output), untold);
    let mut full = prepared(&site);
    full.stdout(fs::File::create("/dev/full").unwrap());
    let output = full.output().unwrap();
    assert_eq!(output.status.code(), Some(255));
    let said = process::stderr(&output);
    assert!(said.starts_with(untold), "{said}");
    assert!(said.contains("pillarbox: standard output: "), "{said}");
    assert_resumed(
        &site,
        &resume(&site, &[]),
        "PutFile \t late.bin \t COMPLETE",
    );
}

#[test]
fn a_journal_that_is_full_is_no_mistake_in_the_arguments() {
    let site = Site::new(&["north"]);
    let _hub = site.start("hub");
    let file = site.file("a.txt", b"a\n");
    process::succeed(&resume(&site, &[]));
    for number in 0..10_000 {
        fs::write(directory(&site).join(format!("{number}.conversation")), "").unwrap();
    }
    let put = ["--client-id", CLIENT, "-f", file.to_str().unwrap()];
    let output = site.run("put-file", put);
    assert_eq!(output.status.code(), Some(255));
    let said = process::stderr(&output);
    assert!(
        said.contains("is full: 10000 operations are open"),
        "{said}"
    );
    assert_eq!(said.lines().count(), 2, "{said}");
}

#[test]
fn an_id_may_be_as_long_as_ids_may_be() {
    let site = Site::new(&["north"]);
    let _hub = site.start("hub");
    let _north = site.start("north");
    let file = site.file("a.txt", b"a\n");
    let id = "i".repeat(200);
    let put = ["--client-id", &id, "-f", file.to_str().unwrap()];
    process::succeed(&site.run("put-file", put));
    let journal = site.part("client").join("var").join("client").join(&id);
    assert_eq!(fs::read_dir(journal).unwrap().count(), 1, "the lock");
}

#[test]
fn what_can_not_be_read_is_told_and_kept() {
    let site = Site::new(&["north"]);
    let _hub = site.start("hub");
    process::succeed(&resume(&site, &[]));
    let name = "5c1e7a90-5b1a-4e68-8c93-2a9e6b0f1d35.conversation";
    fs::write(directory(&site).join(name), "rubbish").unwrap();
    let output = resume(&site, &[]);
    assert_eq!(output.status.code(), Some(255));
    let said = process::stderr(&output);
    assert_eq!(said.lines().count(), 2, "{said}");
    assert!(
        said.contains("no entry of this journal: it is damaged"),
        "{said}"
    );
    let aside = format!("{name}.unreadable");
    assert!(said.contains(&aside), "{said}");
    assert_eq!(journal(&site), [&aside, "lock"]);
    process::succeed(&resume(&site, &[]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_is_interrupted_is_over() {
    let site = Site::new(&["played"]);
    let _hub = site.start("hub");
    let mut played = StandIn::join(&site, "played").await;
    let file = site.file("late.bin", b"soon");
    let mut client = start(&site, "put-file", &["-f", file.to_str().unwrap()]);
    let identify = played.identify_request().await;
    played.accept_put(&identify).await;
    played.put_request().await;
    assert_eq!(journal(&site).len(), 2);
    client.interrupt();
    assert_eq!(client.wait().code(), Some(130));
    assert_eq!(journal(&site), NOTHING);
    assert_eq!(site.offered(), NO_FILES);
}
