//! Files without bytes (U32), and sizes that say nothing (U33).

use std::fs;

use crate::support::{
    md5, process,
    raw_peer::{RawPeer, file_ids, put},
    whole::{NO_FILES, Whole},
};

const EMPTY_MD5: &str = "d41d8cd98f00b204e9800998ecf8427e";
/// `HMAC_MD5` of nothing with the salt abcd.
const EMPTY_HMAC: &str = "e260f576e1a6d28b659fba8fa8c7094e";

#[test]
fn u32_an_empty_file_is_a_file() {
    let whole = Whole::start(&["north", "south"]);
    whole.site.file("empty.dat", b"");
    process::succeed(&whole.site.run("put-file", ["-f", "empty.dat"]));
    let copy = whole.site.path().join("copy");
    let args = [
        "-i".as_ref(),
        "empty.dat".as_ref(),
        "-l".as_ref(),
        copy.as_os_str(),
    ];
    process::succeed(&whole.site.run("get-file", args));
    assert_eq!(fs::read(&copy).expect("was fetched"), b"");
    let listing = process::succeed(&whole.site.run::<&str>("get-file-ids", []));
    assert!(listing.contains("2 \t0 \tempty.dat\n"), "{listing}");
    let sums = process::succeed(&whole.site.run("get-checksums", ["-R", "MD5"]));
    assert!(
        sums.contains(&format!("{EMPTY_MD5} \t2 \tempty.dat\n")),
        "{sums}"
    );
    let salted = ["-R", "HMAC_MD5", "-S", "abcd", "-i", "empty.dat"];
    let sums = process::succeed(&whole.site.run("get-checksums", salted));
    assert!(
        sums.contains(&format!("2 \t{EMPTY_HMAC} \tAll \tempty.dat\n")),
        "{sums}"
    );
    // The same file again is no news, and no other file.
    process::succeed(&whole.site.run("put-file", ["-f", "empty.dat"]));
}

#[test]
fn u32_with_and_without_a_size() {
    let whole = Whole::start(&["north"]);
    let address = whole.offer("empty.dat", b"");
    let mut peer = RawPeer::connect(whole.site.bus_port, "peer");
    for (id, size) in [("with.dat", Some(0)), ("without.dat", None)] {
        let answer = peer.ask(
            "PutFileRequest",
            id,
            "north",
            &put(id, &address, size, EMPTY_MD5),
        );
        assert_eq!(answer.code(), "OPERATION_COMPLETED", "{}", answer.xml);
        let listing = peer.ask(
            "GetFileIDsRequest",
            &format!("l-{id}"),
            "north",
            &file_ids(Some(id)),
        );
        assert_eq!(
            listing.element("FileSize").as_deref(),
            Some("0"),
            "{}",
            listing.xml
        );
    }
    let stored = whole.archived("north");
    assert_eq!(stored.len(), 2, "{stored:?}");
}

#[test]
fn u33_a_size_of_nothing_means_unknown() {
    let content: Vec<u8> = (0..1024).map(|byte: u32| byte.to_le_bytes()[0]).collect();
    assert_eq!(md5(&content), "b2ea9f7fcea831a4a63b213f41a8855b");
    let whole = Whole::start(&["north"]);
    let address = whole.offer("r1024", &content);
    let mut peer = RawPeer::connect(whole.site.bus_port, "peer");
    let answer = peer.ask_all(
        "IdentifyPillarsForPutFileRequest",
        "i-1",
        "<FileID>r1024</FileID><FileSize>0</FileSize>",
    );
    assert_eq!(answer.code(), "IDENTIFICATION_POSITIVE", "{}", answer.xml);
    let request = put("r1024", &address, Some(0), &md5(&content));
    let answer = peer.ask("PutFileRequest", "o-1", "north", &request);
    assert_eq!(answer.code(), "OPERATION_COMPLETED", "{}", answer.xml);
    let listing = peer.ask("GetFileIDsRequest", "l-1", "north", &file_ids(None));
    assert_eq!(
        listing.element("FileSize").as_deref(),
        Some("1024"),
        "{}",
        listing.xml
    );
    let stored = whole.archived("north");
    assert_eq!(fs::read(&stored[0]).expect("is there"), content);
}

#[test]
fn a_size_that_cannot_fit_is_refused_at_once() {
    let whole = Whole::start(&["north"]);
    let mut peer = RawPeer::connect(whole.site.bus_port, "peer");
    for size in ["18446744073709551615", "99999999999999999999999999"] {
        let children = format!("<FileID>huge.bin</FileID><FileSize>{size}</FileSize>");
        let answer = peer.ask_all("IdentifyPillarsForPutFileRequest", size, &children);
        assert_eq!(answer.code(), "FAILURE", "{}", answer.xml);
    }
    // A size that is no number is no message.
    let children = "<FileID>huge.bin</FileID><FileSize>-1</FileSize>";
    let answer = peer.ask_all("IdentifyPillarsForPutFileRequest", "negative", children);
    assert_eq!(
        answer.code(),
        "REQUEST_NOT_UNDERSTOOD_FAILURE",
        "{}",
        answer.xml
    );
    assert_eq!(whole.archived("north"), NO_FILES);
}

#[test]
fn a_file_of_another_size_than_announced_is_not_stored() {
    let whole = Whole::start(&["north"]);
    let content = b"sixteen bytes ..";
    let address = whole.offer("f1", content);
    let mut peer = RawPeer::connect(whole.site.bus_port, "peer");
    let request = put("f1", &address, Some(17), &md5(content));
    let answer = peer.ask("PutFileRequest", "c-1", "north", &request);
    // Not what is tried again.
    assert_eq!(answer.code(), "FAILURE", "{}", answer.xml);
    let text = answer.element("ResponseText").unwrap();
    let told = "the file at the address has 16 bytes, announced were 17";
    assert_eq!(text, told);
    assert_eq!(whole.archived("north"), NO_FILES);
}
