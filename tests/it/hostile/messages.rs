//! Messages on the collection's topic and in a pillar's queue that are none.

mod spoiled;

use std::{fs, time::Duration};

use self::spoiled::{Sender, Spoiled, deep, spoiled};
use crate::support::{
    raw_peer::{RawPeer, document, file_ids},
    stomp::Stomp,
    until,
    whole::{NO_FILES, Whole},
};

/// How long nothing may come, after a later request has been answered.
const QUIET: Duration = Duration::from_millis(200);

/// Sends everything that is broken, and asserts that exactly those who can be told are told.
fn send_broken(
    whole: &Whole,
    peer: &mut RawPeer,
    kind: &str,
    good: impl Fn(&RawPeer, &str) -> String,
    send: impl Fn(&mut RawPeer, &str, &[u8]),
) {
    let all = spoiled(kind, |correlation| good(peer, correlation));
    for Spoiled { xml, .. } in &all {
        send(peer, kind, xml);
    }
    for (number, Spoiled { name, sender, .. }) in all.iter().enumerate() {
        let correlation = format!("bad-{number}");
        if *sender == Sender::Unknown {
            continue;
        }
        let answer = peer.end_of_within(&correlation, Duration::from_secs(30));
        let answer = answer.unwrap_or_else(|| panic!("{kind}, {name}: no answer"));
        assert_eq!(
            answer.code(),
            "REQUEST_NOT_UNDERSTOOD_FAILURE",
            "{kind}, {name}: {}",
            answer.xml
        );
    }
    // What comes after is answered as ever, and the others weren't.
    let after = good(peer, "good");
    send(peer, kind, after.as_bytes());
    let answer = peer.end_of("good");
    assert_ne!(
        answer.code(),
        "REQUEST_NOT_UNDERSTOOD_FAILURE",
        "{}",
        answer.xml
    );
    peer.end_of_within("nobody", QUIET);
    for (number, Spoiled { name, sender, .. }) in all.iter().enumerate() {
        let came = peer.others(&format!("bad-{number}"));
        assert!(came.is_empty(), "{kind}, {name}, {sender:?}: {came:?}");
    }
    assert_eq!(whole.archived("north"), NO_FILES, "{kind}");
}

#[test]
fn broken_requests_to_all() {
    let whole = Whole::start(&["north"]);
    let mut peer = RawPeer::connect(whole.site.bus_port, "peer");
    let children = "<FileID>f1</FileID><FileSize>3</FileSize>";
    let kind = "IdentifyPillarsForPutFileRequest";
    let good = |peer: &RawPeer, correlation: &str| peer.identify(kind, correlation, children);
    send_broken(&whole, &mut peer, kind, good, |peer, kind, xml| {
        peer.send_to_all(kind, xml);
    });
    assert!(
        whole.alarms().contains("INVALID_MESSAGE"),
        "{}",
        whole.alarms()
    );
    whole.assert_well();
}

#[test]
fn broken_requests_to_a_pillar() {
    let whole = Whole::start(&["north"]);
    let mut peer = RawPeer::connect(whole.site.bus_port, "peer");
    let kind = "GetFileIDsRequest";
    let children = file_ids(None);
    let good =
        |peer: &RawPeer, correlation: &str| peer.request(kind, correlation, "north", &children);
    send_broken(&whole, &mut peer, kind, good, |peer, kind, xml| {
        peer.send_to("north", kind, xml);
    });
    assert!(
        whole.alarms().contains("INVALID_MESSAGE"),
        "{}",
        whole.alarms()
    );
    whole.assert_well();
}

#[test]
fn properties_that_disagree_with_the_message() {
    let whole = Whole::start(&["north"]);
    let mut peer = RawPeer::connect(whole.site.bus_port, "peer");
    let xml = peer.request("GetFileIDsRequest", "c-type", "north", &file_ids(None));
    peer.send_to("north", "GetChecksumsRequest", &xml);
    assert_eq!(
        peer.end_of("c-type").code(),
        "REQUEST_NOT_UNDERSTOOD_FAILURE"
    );
    let send = |peer: &mut RawPeer, name: &str, value: &str, correlation: &str| {
        let xml = peer.request("GetFileIDsRequest", correlation, "north", &file_ids(None));
        let kind = ("org.bitrepository.messages.type", "GetFileIDsRequest");
        peer.stomp
            .send("/queue/books.north", &[kind, (name, value)], xml.as_bytes());
        peer.end_of(correlation)
    };
    let refused = send(
        &mut peer,
        "org.bitrepository.messages.collectionid",
        "dvds",
        "c-1",
    );
    assert_eq!(
        refused.code(),
        "REQUEST_NOT_UNDERSTOOD_FAILURE",
        "{}",
        refused.xml
    );
    let refused = send(&mut peer, "org.bitrepository.messages.to", "south", "c-2");
    assert_eq!(
        refused.code(),
        "REQUEST_NOT_UNDERSTOOD_FAILURE",
        "{}",
        refused.xml
    );
    // What Java leaves null, and what nobody knows.
    let fine = send(
        &mut peer,
        "org.bitrepository.messages.signature",
        "null",
        "c-3",
    );
    assert_eq!(fine.code(), "OPERATION_COMPLETED", "{}", fine.xml);
    let fine = send(&mut peer, "com.example.surprise", "x", "c-4");
    assert_eq!(fine.code(), "OPERATION_COMPLETED", "{}", fine.xml);
    // Without a type, the document says it.
    let xml = peer.request("GetFileIDsRequest", "c-5", "north", &file_ids(None));
    peer.stomp.send("/queue/books.north", &[], xml.as_bytes());
    assert_eq!(peer.end_of("c-5").code(), "OPERATION_COMPLETED");
    whole.assert_well();
}

#[test]
fn u62_versions_of_another_time() {
    let whole = Whole::start(&["north"]);
    let mut peer = RawPeer::connect(whole.site.bus_port, "peer");
    for (number, (version, minimum, fits)) in [
        ("31", "24", true),
        ("33", "24", true),
        ("99", "31", true),
        ("24", "1", true),
        ("33", "32", false),
        ("23", "1", false),
        ("", "24", false),
        ("x", "24", false),
        ("31", "x", false),
    ]
    .into_iter()
    .enumerate()
    {
        let correlation = format!("v-{number}");
        let xml = peer.request("GetFileIDsRequest", &correlation, "north", &file_ids(None));
        let xml = xml.replace(
            "version=\"31\" minVersion=\"24\"",
            &format!("version=\"{version}\" minVersion=\"{minimum}\""),
        );
        peer.send_to("north", "GetFileIDsRequest", xml);
        let wanted = if fits {
            "OPERATION_COMPLETED"
        } else {
            "REQUEST_NOT_UNDERSTOOD_FAILURE"
        };
        let answer = peer.end_of(&correlation);
        assert_eq!(
            answer.code(),
            wanted,
            "{version}, {minimum}: {}",
            answer.xml
        );
    }
    until("an alarm", || {
        whole.alarms().contains("INVALID_MESSAGE_VERSION")
    });
    whole.assert_well();
}

#[test]
fn u23_dates_without_an_offset_are_for_a_pillar_that_accepts_them() {
    let mut whole = Whole::start(&["north"]);
    let settings = whole.site.part("whole").join("node.toml");
    for (setting, wanted) in [
        ("", "REQUEST_NOT_UNDERSTOOD_FAILURE"),
        ("accept_zoneless = \"utc\"\n", "OPERATION_COMPLETED"),
    ] {
        let level = "alarm_level = \"WARNING\"\n";
        let text = fs::read_to_string(&settings).expect("settings");
        let text = text.replace(level, &format!("{level}{setting}"));
        fs::write(&settings, text).expect("can be written");
        whole.restart();
        let mut peer = RawPeer::connect(whole.site.bus_port, "peer");
        let after = "<MinTimestamp>2011-05-03T11:18:00</MinTimestamp>";
        let children = format!("{}{after}", file_ids(None));
        let answer = peer.ask("GetFileIDsRequest", "c-1", "north", &children);
        assert_eq!(answer.code(), wanted, "{setting}{}", answer.xml);
        // It follows the answer, and the next start is a kill.
        until("an alarm", || whole.alarms().contains("INVALID_MESSAGE"));
    }
    let alarms = whole.alarms();
    assert_eq!(alarms.matches("MinTimestamp").count(), 1, "{alarms}");
    whole.assert_well();
}

/// Each identification is refused in an answer of its own type, that of statuses too (P24).
#[test]
fn identifications_of_another_version_are_refused_in_kind() {
    let whole = Whole::start(&["north"]);
    let mut peer = RawPeer::connect(whole.site.bus_port, "peer");
    let file = "<FileID>f1</FileID>";
    let files = file_ids(None);
    for (operation, children) in [
        ("PillarsForGetFile", file),
        ("PillarsForPutFile", file),
        ("PillarsForReplaceFile", file),
        ("PillarsForDeleteFile", file),
        ("PillarsForGetFileIDs", &files),
        ("PillarsForGetChecksums", &files),
        ("ContributorsForGetStatus", ""),
        ("ContributorsForGetAuditTrails", ""),
    ] {
        let kind = format!("Identify{operation}Request");
        let xml = peer.identify(&kind, operation, children);
        let xml = xml.replace("minVersion=\"24\"", "minVersion=\"32\"");
        peer.send_to_all(&kind, xml);
        let answer = peer.end_of(operation);
        assert_eq!(answer.kind(), format!("Identify{operation}Response"));
        assert_eq!(answer.code(), "REQUEST_NOT_UNDERSTOOD_FAILURE");
    }
    whole.assert_well();
}

#[test]
fn messages_that_are_no_requests_are_passed_over() {
    let whole = Whole::start(&["north"]);
    let mut peer = RawPeer::connect(whole.site.bus_port, "peer");
    let header = peer.header("c-1", "queue://books.north", None);
    let info = "<ResponseInfo><ResponseCode>OPERATION_COMPLETED</ResponseCode></ResponseInfo>";
    let response = document("GetStatusProgressResponse", &format!("{header}{info}"));
    peer.send_to("north", "GetStatusProgressResponse", response);
    let unserved = peer.header("c-2", "queue://books.north", None);
    let status = document("GetStatusRequest", &unserved);
    peer.send_to("north", "GetStatusRequest", status);
    let answer = peer.ask("GetFileIDsRequest", "c-3", "north", &file_ids(None));
    assert_eq!(answer.code(), "OPERATION_COMPLETED");
    assert!(peer.others("c-1").is_empty());
    whole.assert_well();
}

#[test]
fn requests_for_others_and_about_other_collections() {
    let whole = Whole::start(&["north"]);
    let mut peer = RawPeer::connect(whole.site.bus_port, "peer");
    let children = "<FileID>f1</FileID>";
    let kind = "IdentifyPillarsForPutFileRequest";
    // Not a word: somebody else's business.
    let xml = peer
        .identify(kind, "c-1", children)
        .replace(">books<", ">dvds<");
    let headers = [
        ("org.bitrepository.messages.type", kind),
        ("org.bitrepository.messages.collectionid", "dvds"),
    ];
    peer.stomp.send("/topic/books", &headers, xml.as_bytes());
    let header = peer.header("c-2", "topic://books", Some("south"));
    let xml = document(kind, &format!("{header}{children}"));
    let headers = [
        ("org.bitrepository.messages.type", kind),
        ("org.bitrepository.messages.to", "south"),
    ];
    peer.stomp.send("/topic/books", &headers, xml.as_bytes());
    let answer = peer.ask_all(kind, "c-3", children);
    assert_eq!(answer.code(), "IDENTIFICATION_POSITIVE");
    assert!(peer.others("c-1").is_empty() && peer.others("c-2").is_empty());
    // An operation request for another pillar in this one's queue is a mistake.
    let children = file_ids(None);
    let xml = peer.request("GetFileIDsRequest", "c-4", "north", &children);
    let xml = xml.replace("<PillarID>north<", "<PillarID>south<");
    peer.send_to("north", "GetFileIDsRequest", xml);
    assert_eq!(peer.end_of("c-4").code(), "REQUEST_NOT_UNDERSTOOD_FAILURE");
    whole.assert_well();
}

#[test]
fn answers_to_places_that_are_not_there() {
    let whole = Whole::start(&["north"]);
    let mut peer = RawPeer::connect(whole.site.bus_port, "peer");
    for (number, place) in [
        "topic://nosuch",
        "queue://nosuch",
        "queue://books.north",
        "topic://books",
        "temporary-queue://gone",
        "topic://books.client.",
        "topic://a,b",
        "queue://a/b",
    ]
    .into_iter()
    .enumerate()
    {
        let correlation = format!("lost-{number}");
        let xml = peer.request("GetFileIDsRequest", &correlation, "north", &file_ids(None));
        let xml = xml.replace("topic://books.client.peer", place);
        peer.send_to("north", "GetFileIDsRequest", xml);
    }
    let answer = peer.ask("GetFileIDsRequest", "found", "north", &file_ids(None));
    assert_eq!(answer.code(), "OPERATION_COMPLETED");
    whole.assert_well();
}

#[test]
fn broken_alarms() {
    let whole = Whole::start(&["north"]);
    let mut stomp = Stomp::connect(whole.site.bus_port, None);
    let deep = deep(10_000);
    for body in [
        "",
        "no XML",
        "<!DOCTYPE a><a/>",
        &deep,
        "\u{1}",
        "<AlarmMessage/>",
    ] {
        stomp.send(
            "/topic/books.alarms",
            &[("org.bitrepository.messages.type", "AlarmMessage")],
            body.as_bytes(),
        );
    }
    let alarm = |text: &str| {
        let header = "<CorrelationID>c</CorrelationID><Destination>topic://books.alarms</Destination>\
             <ReplyTo>topic://x</ReplyTo><From>stranger</From>";
        let alarm = format!(
            "<Alarm><OrigDateTime>2024-05-01T12:00:00.123+02:00</OrigDateTime>\
             <AlarmCode>COMPONENT_FAILURE</AlarmCode><AlarmRaiser>stranger</AlarmRaiser>\
             <AlarmText>{text}</AlarmText></Alarm>"
        );
        document("AlarmMessage", &format!("{header}{alarm}"))
    };
    let wrong = alarm("never seen").replace("COMPONENT_FAILURE", "COMPONENT_SURPRISE");
    stomp.send("/topic/books.alarms", &[], wrong.as_bytes());
    // Line breaks and columns in a text don't make rows.
    stomp.send(
        "/topic/books.alarms",
        &[],
        alarm("one&#10;row \t only&#13;").as_bytes(),
    );
    until("the good alarm is listed", || {
        whole.alarms().contains("one row only")
    });
    let alarms = whole.alarms();
    assert!(!alarms.contains("never seen"), "{alarms}");
    assert_eq!(
        alarms
            .lines()
            .filter(|line| line.contains("COMPONENT_FAILURE"))
            .count(),
        1,
        "{alarms}"
    );
    whole.assert_well();
}
