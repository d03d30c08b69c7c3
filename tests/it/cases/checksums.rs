//! Hex in any case (U40), salts, and checksums that are not true.

use super::{P7, P7_HMAC, P7_MD5};
use crate::support::{
    process,
    raw_peer::{RawPeer, file_ids, put},
    whole::{NO_FILES, Whole},
};

#[test]
fn u40_hex_in_upper_case_on_the_command_line() {
    let whole = Whole::start(&["north"]);
    whole.site.file("p7.txt", P7);
    let upper = P7_MD5.to_uppercase();
    process::succeed(&whole.site.run("put-file", ["-f", "p7.txt", "-C", &upper]));
    let sums = process::succeed(&whole.site.run("get-checksums", ["-i", "p7.txt"]));
    assert!(sums.contains(P7_MD5), "{sums}");
    let sums = process::succeed(
        &whole
            .site
            .run("get-checksums", ["-i", "p7.txt", "-S", "ABCD"]),
    );
    assert!(sums.contains(P7_HMAC), "{sums}");
}

#[test]
fn u40_hex_in_any_case_on_the_wire() {
    let whole = Whole::start(&["north"]);
    let address = whole.offer("p7.txt", P7);
    let mut peer = RawPeer::connect(whole.site.bus_port, "peer");
    let mixed = "4a37F973b3C9fede0E1fb3f07B65a93b";
    for (id, md5) in [
        ("lower", P7_MD5),
        ("upper", &*P7_MD5.to_uppercase()),
        ("mixed", mixed),
    ] {
        let request = put(id, &address, Some(14), md5);
        let answer = peer.ask("PutFileRequest", id, "north", &request);
        assert_eq!(answer.code(), "OPERATION_COMPLETED", "{id}: {}", answer.xml);
    }
    let salted = |salt: &str| {
        format!(
            "{}<ChecksumRequestForExistingFile><ChecksumType>HMAC_MD5</ChecksumType>\
             <ChecksumSalt>{salt}</ChecksumSalt></ChecksumRequestForExistingFile>",
            file_ids(Some("lower"))
        )
    };
    for salt in ["abcd", "ABCD", "aBcD"] {
        let answer = peer.ask("GetChecksumsRequest", salt, "north", &salted(salt));
        assert_eq!(answer.code(), "OPERATION_COMPLETED", "{}", answer.xml);
        // As the Java system writes it.
        assert_eq!(
            answer.element("ChecksumValue").as_deref(),
            Some(&*P7_HMAC.to_uppercase())
        );
    }
    for broken in ["abc", "0xab", "a b"] {
        let answer = peer.ask("GetChecksumsRequest", broken, "north", &salted(broken));
        assert_eq!(
            answer.code(),
            "REQUEST_NOT_UNDERSTOOD_FAILURE",
            "{}",
            answer.xml
        );
    }
}

#[test]
fn checksums_that_cannot_be_computed() {
    let whole = Whole::start(&["north"]);
    whole.site.file("p7.txt", P7);
    process::succeed(&whole.site.run("put-file", ["-f", "p7.txt"]));
    let mut peer = RawPeer::connect(whole.site.bus_port, "peer");
    for (number, spec) in [
        "<ChecksumType>MD5</ChecksumType><ChecksumSalt>ab</ChecksumSalt>",
        "<ChecksumType>HMAC_MD5</ChecksumType>",
        "<ChecksumType>HMAC_MD5</ChecksumType><ChecksumSalt></ChecksumSalt>",
        "<ChecksumType>OTHER</ChecksumType><OtherChecksumType>CRC32</OtherChecksumType>",
        "<ChecksumType>CRC32</ChecksumType>",
    ]
    .into_iter()
    .enumerate()
    {
        let children = format!(
            "{}<ChecksumRequestForExistingFile>{spec}</ChecksumRequestForExistingFile>",
            file_ids(None)
        );
        let answer = peer.ask(
            "GetChecksumsRequest",
            &format!("c-{number}"),
            "north",
            &children,
        );
        assert_eq!(
            answer.code(),
            "REQUEST_NOT_UNDERSTOOD_FAILURE",
            "{spec}: {}",
            answer.xml
        );
        let kind = "IdentifyPillarsForGetChecksumsRequest";
        let answer = peer.ask_all(kind, &format!("i-{number}"), &children);
        assert_eq!(
            answer.code(),
            "REQUEST_NOT_UNDERSTOOD_FAILURE",
            "{spec}: {}",
            answer.xml
        );
    }
}

#[test]
fn a_put_with_another_checksum_or_none_stores_nothing() {
    let whole = Whole::start(&["north"]);
    let address = whole.offer("p7.txt", P7);
    let mut peer = RawPeer::connect(whole.site.bus_port, "peer");
    let wrong = put(
        "p7.txt",
        &address,
        Some(14),
        "d41d8cd98f00b204e9800998ecf8427e",
    );
    let answer = peer.ask("PutFileRequest", "wrong", "north", &wrong);
    assert_eq!(answer.code(), "NEW_FILE_CHECKSUM_FAILURE", "{}", answer.xml);
    let (none, _) = wrong
        .split_once("<ChecksumDataForNewFile>")
        .expect("is there");
    let answer = peer.ask("PutFileRequest", "none", "north", none);
    assert_eq!(answer.code(), "NEW_FILE_CHECKSUM_FAILURE", "{}", answer.xml);
    let short = put("p7.txt", &address, Some(14), "4a37");
    let answer = peer.ask("PutFileRequest", "short", "north", &short);
    assert!(answer.code().ends_with("_FAILURE"), "{}", answer.xml);
    assert_eq!(whole.archived("north"), NO_FILES);
    assert!(
        whole.alarms().contains("CHECKSUM_ALARM"),
        "{}",
        whole.alarms()
    );
}
