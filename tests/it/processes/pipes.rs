//! Whoever reads the results may have seen enough at any moment (`| head -1`): a listing ends then, and all else goes
//! on to its end, with its own exit code. Nobody is told of it.

use std::{
    io::{BufRead as _, BufReader, Read as _},
    path::PathBuf,
    process::{Command, Output, Stdio},
};

use crate::support::{
    process::{self, Running, fail_with_one_line, stderr, succeed, unheard},
    site::Site,
    whole::{self, Whole},
};

/// Runs a command to its end whose reader goes once it has read a line; `then` comes before the next one.
#[track_caller]
fn heard_once(mut command: Command, then: impl FnOnce()) -> (String, Output) {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    let mut reader = BufReader::new(child.stdout.take().expect("piped"));
    let mut line = String::new();
    reader.read_line(&mut line).expect("a line");
    drop(reader);
    then();
    (line, child.wait_with_output().expect("it ends"))
}

/// A site whose pillars have `a.txt`, and its running parts: the hub first, then the pillars.
fn site(pillars: &[&str]) -> (Site, Vec<Running>) {
    let site = Site::new(pillars);
    let parts = ["hub"].iter().chain(pillars).map(|part| site.start(part));
    let parts = parts.collect();
    let file = site.file("a.txt", b"a\n");
    succeed(&site.run("put-file", ["-f".as_ref(), file.as_os_str()]));
    (site, parts)
}

const LISTINGS: [&[&str]; 6] = [
    &["get-file-ids"],
    &["get-checksums"],
    &["get-checksums", "-i", "a.txt"],
    &["get-audit-trails"],
    &["get-file-ids", "--json"],
    &["get-audit-trails", "--json"],
];

#[test]
fn a_listing_that_nobody_reads_ends_well() {
    let (site, _parts) = site(&["north"]);
    for listing in LISTINGS {
        let output = unheard(site.prepare(listing[0], &listing[1..]));
        assert_eq!(output.status.code(), Some(0), "{listing:?}");
        assert_eq!(stderr(&output), "", "{listing:?}");
    }
    let settings = site.part("client");
    for more in [&[][..], &["--json"]] {
        let mut status = process::pillarbox(["get-status", "-s"]);
        status.arg(&settings).args(more);
        let output = unheard(status);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert_eq!(stderr(&output), "");
    }
    let mut alarms = process::pillarbox(["alarms", "list", "-s"]);
    alarms.arg(site.part("alarms"));
    let output = unheard(alarms);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(stderr(&output), "");
}

#[test]
fn a_listing_ends_well_whose_reader_goes_after_the_first_line() {
    let (site, parts) = site(&["north"]);
    let north = &parts[1];
    for listing in LISTINGS.iter().filter(|it| !it.contains(&"--json")) {
        // Nothing comes below the heading before the reader has gone.
        north.halt();
        let (heading, output) = heard_once(site.prepare(listing[0], &listing[1..]), || {
            north.go_on();
        });
        assert!(
            heading.ends_with(":\n") || heading.ends_with(": \n"),
            "{heading}"
        );
        assert_eq!(output.status.code(), Some(0), "{listing:?}");
        assert_eq!(stderr(&output), "", "{listing:?}");
    }
}

/// Whoever reads it or not: the pillar that lacks the file has said so before anybody told of it.
#[test]
fn a_pillar_that_fails_is_told_of_though_nobody_reads_the_results() {
    let (site, _parts) = site(&["north", "south"]);
    succeed(&site.run("delete-file", ["-i", "a.txt", "-p", "south", "-C", A_MD5]));
    for listing in ["get-file-ids", "get-checksums"] {
        let args = ["-i", "a.txt", "--json"];
        let line = fail_with_one_line(&unheard(site.prepare(listing, args)), 255);
        assert!(line.contains("south: FILE_NOT_FOUND_FAILURE"), "{line}");
    }
}

#[test]
fn what_changes_something_goes_on_to_its_end_though_nobody_reads_its_results() {
    let whole = Whole::start(&["north"]);
    whole.site.file("b.txt", b"b\n");
    let address = whole.offer("b.txt", b"b\n");
    let put = [
        "-u", &address, "-i", "b.txt", "-C", B_MD5, "-R", "SHA1", "-d",
    ];
    for more in [&[][..], &["--json"]] {
        let put = put.iter().chain(more);
        let output = unheard(whole.site.prepare("put-file", put));
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let said = stderr(&output);
        let summary = said.lines().last().expect("a summary");
        assert!(summary.starts_with("b.txt "), "{said}");
        // It was deleted from there, as -d says.
        assert_eq!(whole.exchanged(), Vec::<PathBuf>::new());
        succeed(&whole.site.run("get-file-ids", ["-i", "b.txt"]));
        whole::deliver(whole.site.exchange_port, &address, b"b\n");
    }
    let get = ["-i", "b.txt", "-l", "copy", "--json"];
    let output = unheard(whole.site.prepare("get-file", get));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let delete = ["-i", "b.txt", "-p", "north", "--json", "-C"];
    let refused = delete.iter().chain(&[A_MD5]);
    let line = fail_with_one_line(&unheard(whole.site.prepare("delete-file", refused)), 255);
    assert!(line.contains("EXISTING_FILE_CHECKSUM_FAILURE"), "{line}");
    let deleted = unheard(
        whole
            .site
            .prepare("delete-file", delete.iter().chain(&[B_MD5])),
    );
    assert_eq!(deleted.status.code(), Some(0));
    assert_eq!(stderr(&deleted), "b.txt deleted from north\n");
}

#[test]
fn a_node_stays_though_nobody_reads_that_it_is_ready() {
    let site = Site::with_timeouts(&["north"], "1s", "60s");
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut command = process::pillarbox(["node", "-s"]);
    let settings = site.all_in_one();
    let mut node = command
        .arg(&settings)
        .stdout(writer)
        .stderr(Stdio::piped())
        .spawn();
    let node = node.as_mut().expect("the program starts");
    let file = site.file("a.txt", b"a\n");
    process::until_success("the node does its work", || {
        site.run("put-file", ["-f".as_ref(), file.as_os_str()])
    });
    let pid = rustix::process::Pid::from_child(node);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("can be signaled");
    let mut errors = String::new();
    let mut pipe = node.stderr.take().expect("piped");
    pipe.read_to_string(&mut errors).expect("UTF-8");
    assert!(node.wait().expect("it ends").success(), "{errors}");
    assert!(!errors.contains("panicked"), "{errors}");
}

const A_MD5: &str = "60b725f10c9c85c70d97880dfe8191b3";
const B_MD5: &str = "3b5d5c3712955042212316173ccf37be";
