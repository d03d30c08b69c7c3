//! Requests that would take a file away, or give its place to another (U26, U44).

use std::fs;

use super::{P7, P7_MD5};
use crate::support::{
    md5, noise, process,
    raw_peer::{Answer, RawPeer, checksum_of_new_file, delete, file_ids, put, replace},
    until,
    whole::{Whole, http, path_of},
};

const ZERO_MD5: &str = "d41d8cd98f00b204e9800998ecf8427e";

/// A repository whose pillar has P7 as `x1.bin`.
fn with_p7() -> (Whole, RawPeer) {
    let whole = Whole::start(&["north"]);
    let mut peer = RawPeer::connect(whole.site.bus_port, "peer");
    let address = whole.offer("p7", P7);
    let stored = peer.ask(
        "PutFileRequest",
        "p-1",
        "north",
        &put("x1.bin", &address, Some(14), P7_MD5),
    );
    assert_eq!(stored.code(), "OPERATION_COMPLETED", "{}", stored.xml);
    (whole, peer)
}

#[track_caller]
fn assert_refused(answer: &Answer, code: &str) {
    assert_eq!(answer.code(), code, "{}", answer.xml);
    // Whoever does not know the file's checksum is not told it.
    assert!(
        !answer.xml.to_lowercase().contains(P7_MD5),
        "{}",
        answer.xml
    );
}

#[track_caller]
fn assert_p7_still_there(whole: &Whole, peer: &mut RawPeer) {
    let files = whole.archived("north");
    assert_eq!(files.len(), 1, "{files:?}");
    assert_eq!(fs::read(&files[0]).unwrap(), P7);
    let listing = peer.ask(
        "GetFileIDsRequest",
        "l-1",
        "north",
        &file_ids(Some("x1.bin")),
    );
    assert_eq!(listing.element("FileSize").as_deref(), Some("14"));
}

#[test]
fn u44_nothing_is_deleted_without_its_checksum() {
    let (whole, mut peer) = with_p7();
    let bare = "<FileID>x1.bin</FileID>";
    let answer = peer.ask("DeleteFileRequest", "d-1", "north", bare);
    assert_refused(&answer, "EXISTING_FILE_CHECKSUM_FAILURE");
    let answer = peer.ask(
        "DeleteFileRequest",
        "d-2",
        "north",
        &delete("x1.bin", ZERO_MD5),
    );
    assert_refused(&answer, "EXISTING_FILE_CHECKSUM_FAILURE");
    assert_p7_still_there(&whole, &mut peer);
    until("the alarms are told", || {
        whole.alarms().matches("CHECKSUM_ALARM").count() >= 2
    });
    let answer = peer.ask(
        "DeleteFileRequest",
        "d-3",
        "north",
        &delete("x1.bin", P7_MD5),
    );
    assert_eq!(answer.code(), "OPERATION_COMPLETED", "{}", answer.xml);
    assert_eq!(whole.archived("north").len(), 1, "kept aside");
}

#[test]
fn u44_nothing_is_replaced_without_both_checksums() {
    let (whole, mut peer) = with_p7();
    let address = whole.offer("new", b"another file");
    let right = replace("x1.bin", P7_MD5, &address, b"another file");
    let without_old = right.replacen(&delete("x1.bin", P7_MD5), "<FileID>x1.bin</FileID>", 1);
    let answer = peer.ask("ReplaceFileRequest", "r-1", "north", &without_old);
    assert_refused(&answer, "EXISTING_FILE_CHECKSUM_FAILURE");
    let without_new = right.replacen(&checksum_of_new_file(&md5(b"another file")), "", 1);
    let answer = peer.ask("ReplaceFileRequest", "r-2", "north", &without_new);
    assert_refused(&answer, "NEW_FILE_CHECKSUM_FAILURE");
    let other = replace("x1.bin", ZERO_MD5, &address, b"another file");
    let answer = peer.ask("ReplaceFileRequest", "r-3", "north", &other);
    assert_refused(&answer, "EXISTING_FILE_CHECKSUM_FAILURE");
    assert_p7_still_there(&whole, &mut peer);
    until("the alarms are told", || {
        whole.alarms().matches("CHECKSUM_ALARM").count() >= 3
    });
    let answer = peer.ask("ReplaceFileRequest", "r-4", "north", &right);
    assert_eq!(answer.code(), "OPERATION_COMPLETED", "{}", answer.xml);
}

/// As the same request again, but from the beginning.
#[test]
fn u26_of_a_file_that_is_there_the_checksum_is_told_at_both_steps() {
    let (whole, mut peer) = with_p7();
    let r1024 = noise(1, 1024);
    let address = whole.offer("r1024", &r1024);
    let identified = peer.ask_all(
        "IdentifyPillarsForPutFileRequest",
        "i-1",
        "<FileID>x1.bin</FileID><FileSize>1024</FileSize>",
    );
    let request = put("x1.bin", &address, Some(1024), &md5(&r1024));
    let asked = peer.ask("PutFileRequest", "p-2", "north", &request);
    for answer in [identified, asked] {
        assert_eq!(answer.code(), "DUPLICATE_FILE_FAILURE", "{}", answer.xml);
        let told = answer.element("ChecksumValue").map(|it| it.to_lowercase());
        assert_eq!(told.as_deref(), Some(P7_MD5));
    }
    assert_p7_still_there(&whole, &mut peer);
    // By the command line: the same file is no news, and nothing is moved; another one fails.
    whole.site.file("x1.bin", P7);
    process::succeed(&whole.site.run("put-file", ["-f", "x1.bin"]));
    whole.site.file("x1.bin", &r1024);
    let other = whole.site.run("put-file", ["-f", "x1.bin"]);
    assert_eq!(
        other.status.code(),
        Some(255),
        "{}",
        process::stderr(&other)
    );
    assert_p7_still_there(&whole, &mut peer);
    assert_eq!(
        http(whole.site.exchange_port, "DELETE", path_of(&address), b"").0,
        204
    );
}
