//! What a pillar tells of its files and of what was done to them, and for which of them (U14, U18, U19, U20, U72).

use super::{P7, P7_MD5};
use crate::support::{
    raw_peer::{Answer, RawPeer, document, file_ids, put},
    whole::Whole,
};

const FILES: [&str; 3] = ["one.bin", "two.bin", "three.bin"];

/// A repository whose pillar has three files of the same content, put one after the other.
fn with_three() -> (Whole, RawPeer) {
    let whole = Whole::start(&["north"]);
    let mut peer = RawPeer::connect(whole.site.bus_port, "peer");
    for file in FILES {
        let put = put(file, &whole.offer("p7", P7), Some(14), P7_MD5);
        let stored = peer.ask("PutFileRequest", file, "north", &put);
        assert_eq!(stored.code(), "OPERATION_COMPLETED", "{}", stored.xml);
    }
    (whole, peer)
}

/// The texts of all elements of this name.
pub(super) fn all(answer: &Answer, element: &str) -> Vec<String> {
    let (start, end) = (format!("{element}>"), format!("</{element}>"));
    let pieces = answer.xml.split(&end).filter(|it| it.contains(&start));
    let texts = pieces.filter_map(|it| it.rsplit_once(&start));
    texts.map(|(_, text)| text.to_owned()).collect()
}

fn list(peer: &mut RawPeer, correlation: &str, bounds: &str) -> Answer {
    let asked = format!("{}{bounds}", file_ids(None));
    let answer = peer.ask("GetFileIDsRequest", correlation, "north", &asked);
    assert_eq!(answer.code(), "OPERATION_COMPLETED", "{}", answer.xml);
    answer
}

pub(super) fn between(min: &str, max: &str) -> String {
    format!("<MinTimestamp>{min}</MinTimestamp><MaxTimestamp>{max}</MaxTimestamp>")
}

/// The same instant in the words of another time zone, whose clocks are so far ahead of UTC (`+05:45`).
pub(super) fn elsewhere(utc: &str, offset: &str) -> String {
    use chrono::{DateTime, FixedOffset, SecondsFormat};
    let zone: FixedOffset = offset.parse().unwrap();
    let there = DateTime::parse_from_rfc3339(utc)
        .unwrap()
        .with_timezone(&zone);
    there.to_rfc3339_opts(SecondsFormat::Millis, false)
}

#[test]
fn u14_both_ends_of_an_interval_count() {
    let (_whole, mut peer) = with_three();
    let everything = list(&mut peer, "l-all", "");
    assert_eq!(all(&everything, "FileID"), FILES);
    let times = all(&everything, "LastModificationTime");
    let one = list(&mut peer, "l-one", &between(&times[1], &times[1]));
    assert_eq!(all(&one, "FileID"), FILES[1..2]);
    let two = list(&mut peer, "l-two", &between(&times[1], &times[2]));
    assert_eq!(all(&two, "FileID"), FILES[1..]);
}

#[test]
fn u20_an_instant_is_the_same_in_every_time_zone() {
    let (_whole, mut peer) = with_three();
    let times = all(&list(&mut peer, "l-all", ""), "LastModificationTime");
    for offset in ["-11:00", "-01:00", "+01:00", "+02:00", "+14:00"] {
        let there = elsewhere(&times[1], offset);
        let correlation = format!("l{offset}");
        let one = list(&mut peer, &correlation, &between(&there, &there));
        assert_eq!(all(&one, "FileID"), FILES[1..2], "{there}");
        // The same digits as those of UTC are another instant.
        let (digits, _) = times[1].split_at("2024-05-01T12:00:00.123".len());
        let other = format!("{digits}{offset}");
        let none = list(
            &mut peer,
            &format!("{correlation}-"),
            &between(&other, &other),
        );
        assert_eq!(all(&none, "FileID"), [] as [&str; 0], "{other}");
    }
}

#[test]
fn u18_one_file_means_one_file() {
    let (_whole, mut peer) = with_three();
    let one = file_ids(Some("two.bin"));
    let answer = peer.ask("GetFileIDsRequest", "l-1", "north", &one);
    assert_eq!(
        all(&answer, "FileID"),
        ["two.bin", "two.bin"],
        "{}",
        answer.xml
    );
    let spec = "<ChecksumRequestForExistingFile><ChecksumType>MD5</ChecksumType></ChecksumRequestForExistingFile>";
    let answer = peer.ask(
        "GetChecksumsRequest",
        "l-2",
        "north",
        &format!("{one}{spec}"),
    );
    assert_eq!(all(&answer, "FileID"), ["two.bin"], "{}", answer.xml);
    let values = all(&answer, "ChecksumValue");
    assert_eq!(values.len(), 1);
    assert_eq!(values[0].to_lowercase(), P7_MD5);
}

#[test]
fn u19_no_files_are_an_empty_list_and_no_file_is_a_failure() {
    let whole = Whole::start(&["north"]);
    let mut peer = RawPeer::connect(whole.site.bus_port, "peer");
    let none = list(&mut peer, "l-all", "");
    assert_eq!(all(&none, "FileID"), [] as [&str; 0]);
    assert!(none.xml.contains("FileIDsDataItems"), "{}", none.xml);
    let unknown = file_ids(Some("none.bin"));
    for kind in ["GetFileIDsRequest", "GetChecksumsRequest"] {
        let answer = peer.ask(kind, kind, "north", &unknown);
        assert_eq!(answer.code(), "FILE_NOT_FOUND_FAILURE", "{}", answer.xml);
    }
}

#[test]
fn u72_long_notes_and_names_are_kept_whole() {
    let whole = Whole::start(&["north"]);
    let long_name = "p".repeat(300);
    let mut peer = RawPeer::connect(whole.site.bus_port, "peer");
    let note = "note ".repeat(20_000);
    let asked = put("long.bin", &whole.offer("p7", P7), Some(14), P7_MD5);
    let request = peer.request("PutFileRequest", "p-1", "north", &asked);
    let information = format!("<AuditTrailInformation>{note}</AuditTrailInformation><PillarID>");
    let request = request.replacen("<PillarID>", &information, 1).replacen(
        "<From>peer</From>",
        &format!("<From>{long_name}</From>"),
        1,
    );
    peer.send_to("north", "PutFileRequest", request);
    let stored = peer.end_of("p-1");
    assert_eq!(stored.code(), "OPERATION_COMPLETED", "{}", stored.xml);
    let header = peer.header("a-1", "queue://books.north", Some("north"));
    let content = format!("{header}<Contributor>north</Contributor>");
    let request = document("GetAuditTrailsRequest", &content);
    peer.send_to("north", "GetAuditTrailsRequest", request);
    let trail = peer.end_of("a-1");
    assert_eq!(all(&trail, "ActorOnFile"), [long_name]);
    // A space at the end of a text is part of it.
    assert_eq!(all(&trail, "AuditTrailInformation"), [note]);
}
