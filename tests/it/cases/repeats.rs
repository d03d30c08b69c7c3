//! Requests that come twice.

use std::fs;

use super::{P7, P7_MD5};
use crate::support::{
    process,
    raw_peer::{RawPeer, file_ids, put},
    whole::{NO_FILES, Whole, http, path_of},
};

#[test]
fn a_repeated_put_gets_the_same_answer_and_changes_nothing() {
    let mut whole = Whole::start(&["north"]);
    let address = whole.offer("p7.txt", P7);
    let request = format!(
        "{}<ChecksumRequestForNewFile><ChecksumType>MD5</ChecksumType></ChecksumRequestForNewFile>",
        put("p7.txt", &address, Some(14), P7_MD5)
    );
    let mut peer = RawPeer::connect(whole.site.bus_port, "peer");
    let first = peer.ask("PutFileRequest", "c-1", "north", &request);
    assert_eq!(first.code(), "OPERATION_COMPLETED", "{}", first.xml);
    assert_eq!(
        first.element("ChecksumValue").as_deref(),
        Some(&*P7_MD5.to_uppercase())
    );
    let listing = peer.ask("GetFileIDsRequest", "l-1", "north", &file_ids(None));
    // Whatever would be fetched now would be another file.
    assert_eq!(
        http(
            whole.site.exchange_port,
            "PUT",
            path_of(&address),
            b"another file"
        )
        .0,
        204
    );
    let repeated = peer.ask("PutFileRequest", "c-1", "north", &request);
    assert_eq!(repeated.xml, first.xml);
    let stored = whole.archived("north");
    assert_eq!(stored.len(), 1, "{stored:?}");
    assert_eq!(fs::read(&stored[0]).expect("is there"), P7);
    let after = peer.ask("GetFileIDsRequest", "l-2", "north", &file_ids(None));
    let data = |xml: &str| {
        xml.split_once("ResultingFileIDs>")
            .map(|(_, data)| data.to_owned())
    };
    assert_eq!(data(&after.xml), data(&listing.xml));
    // Also when there is nothing to fetch, and after a crash.
    assert_eq!(
        http(whole.site.exchange_port, "DELETE", path_of(&address), b"").0,
        204
    );
    drop(peer);
    whole.restart();
    let mut peer = RawPeer::connect(whole.site.bus_port, "peer");
    let repeated = peer.ask("PutFileRequest", "c-1", "north", &request);
    assert_eq!(repeated.xml, first.xml);
    // Another conversation, or another client, is told that the file is there.
    let another = peer.ask("PutFileRequest", "c-2", "north", &request);
    assert_eq!(another.code(), "DUPLICATE_FILE_FAILURE", "{}", another.xml);
    let mut stranger = RawPeer::connect(whole.site.bus_port, "stranger");
    let another = stranger.ask("PutFileRequest", "c-1", "north", &request);
    assert_eq!(another.code(), "DUPLICATE_FILE_FAILURE", "{}", another.xml);
}

#[test]
fn a_put_that_failed_may_be_repeated() {
    let whole = Whole::start(&["north"]);
    let address = whole.address("p7.txt");
    let request = put("p7.txt", &address, Some(14), P7_MD5);
    let mut peer = RawPeer::connect(whole.site.bus_port, "peer");
    let failed = peer.ask("PutFileRequest", "c-1", "north", &request);
    assert_eq!(failed.code(), "FILE_TRANSFER_FAILURE", "{}", failed.xml);
    assert_eq!(
        http(whole.site.exchange_port, "PUT", path_of(&address), P7).0,
        201
    );
    let repeated = peer.ask("PutFileRequest", "c-1", "north", &request);
    assert_eq!(repeated.code(), "OPERATION_COMPLETED", "{}", repeated.xml);
}

#[test]
fn the_same_file_again_is_a_success_without_a_transfer() {
    let whole = Whole::start(&["north", "south"]);
    whole.site.file("p7.txt", P7);
    process::succeed(&whole.site.run("put-file", ["-f", "p7.txt"]));
    let before = process::succeed(&whole.site.run("get-file-ids", ["--json"]));
    let again = whole.site.run("put-file", ["-f", "p7.txt"]);
    assert_eq!(process::succeed(&again), "");
    assert!(
        process::stderr(&again).contains("already"),
        "{}",
        process::stderr(&again)
    );
    let after = process::succeed(&whole.site.run("get-file-ids", ["--json"]));
    assert_eq!(after, before);
    assert_eq!(whole.exchanged(), NO_FILES);
}

#[test]
fn twenty_puts_of_one_id_at_once_store_one_file() {
    let whole = Whole::start(&["north"]);
    let mut peer = RawPeer::connect(whole.site.bus_port, "peer");
    let contents: Vec<String> = (0..20).map(|number| format!("content {number}")).collect();
    for (number, content) in contents.iter().enumerate() {
        let address = whole.offer("f1", content.as_bytes());
        let md5 = crate::support::md5(content.as_bytes());
        let xml = peer.request(
            "PutFileRequest",
            &format!("c-{number}"),
            "north",
            &put("f1", &address, None, &md5),
        );
        peer.send_to("north", "PutFileRequest", xml);
    }
    let answers: Vec<_> = (0..20)
        .map(|number| peer.end_of(&format!("c-{number}")))
        .collect();
    let stored: Vec<usize> = (0..20)
        .filter(|&at| answers[at].code() == "OPERATION_COMPLETED")
        .collect();
    let [winner] = stored[..] else {
        panic!("{stored:?}")
    };
    assert_eq!(
        answers
            .iter()
            .filter(|it| it.code() == "DUPLICATE_FILE_FAILURE")
            .count(),
        19
    );
    let files = whole.archived("north");
    assert_eq!(files.len(), 1, "{files:?}");
    assert_eq!(
        fs::read_to_string(&files[0]).expect("is there"),
        contents[winner]
    );
}
