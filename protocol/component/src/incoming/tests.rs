use std::path::{Path, PathBuf};

use bytes::Bytes;
use pillarbox_messages::{
    Alarm, AlarmCode, AlarmMessage, Destination, FileId, Header, IdentifyPillarsForGetFileRequest,
    MessageType, ProtocolVersion, Timestamp,
};
use pillarbox_settings::ZonelessDates;

use super::*;
use crate::reading::read_options;

fn request(to: Option<&str>, collection: Option<&str>) -> Message {
    let header = Header {
        version: ProtocolVersion::CURRENT,
        correlation_id: "c-1".into(),
        collection_id: collection.map(CollectionId::from),
        destination: Destination::topic("books"),
        reply_to: Destination::topic("client"),
        from: "client".into(),
        to: to.map(ComponentId::from),
    };
    let file_id = FileId::from("a.txt");
    IdentifyPillarsForGetFileRequest {
        header,
        audit_trail_information: None,
        file_id,
    }
    .into()
}

fn incoming(text: impl Into<Vec<u8>>, given: &[(&str, &str)]) -> Incoming {
    Incoming {
        message_id: "m-1".to_owned(),
        destination: Destination::topic("books"),
        properties: given
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect(),
        body: Bytes::from(text.into()),
        left_out: None,
        correlation_id: None,
        reply_to: Some("/topic/client".to_owned()),
        persistent: false,
        redelivered: false,
        delivery_count: 1,
        backout_count: 0,
    }
}

const STRICT: ReadOptions = ReadOptions { zone: None };

fn read(text: &str, given: &[(&str, &str)]) -> Result<Received, Box<Rejection>> {
    decode(&incoming(text, given), &MessageSecurity::Unsigned, STRICT)
}

const KIND: &str = "IdentifyPillarsForGetFileRequest";

#[test]
fn properties_may_be_missing_null_or_unknown_but_not_wrong() {
    let message = request(Some("north"), Some("books"));
    let text = message.to_xml();
    let full = [
        (properties::TYPE, KIND),
        (properties::TO, "north"),
        (properties::COLLECTION_ID, "books"),
        (properties::SIGNATURE, "null"),
        ("JMSXGroupID", "g"),
        ("x-anything", "else"),
    ];
    for count in 0..=full.len() {
        assert_eq!(read(&text, &full[..count]).unwrap().message, message);
    }
    for property in [properties::TYPE, properties::TO, properties::COLLECTION_ID] {
        assert_eq!(read(&text, &[(property, "null")]).unwrap().message, message);
        let rejection = read(&text, &[(property, "PutFileRequest")]).unwrap_err();
        assert!(
            matches!(rejection.reason, RejectionReason::Mismatch { .. }),
            "{property}"
        );
        assert_eq!(rejection.message_type.as_deref(), Some(KIND));
        assert_eq!(
            rejection.answerable(),
            Some(MessageType::IdentifyPillarsForGetFileRequest)
        );
        assert_eq!(rejection.alarm_code(), AlarmCode::InvalidMessage);
    }
    let bare = request(None, None).to_xml();
    assert!(read(&bare, &[(properties::TO, "north")]).is_err());
    assert!(read(&bare, &[(properties::COLLECTION_ID, "books")]).is_err());
}

#[test]
fn what_no_answer_could_carry_is_refused_without_one() {
    let long = |length: usize| "x".repeat(length);
    let mut longest = request(Some("north"), None);
    longest.header_mut().correlation_id = long(MAX_HEADER_TEXT_BYTES).into();
    assert!(read(&longest.to_xml(), &[]).is_ok());

    type Change = fn(&mut Header, String);
    let changes: [Change; 5] = [
        |header, text| header.correlation_id = text.into(),
        |header, text| header.collection_id = Some(text.into()),
        |header, text| header.reply_to = Destination::topic(&text),
        |header, text| header.from = text.into(),
        |header, text| header.to = Some(text.into()),
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let mut message = request(None, None);
        change(message.header_mut(), long(MAX_HEADER_TEXT_BYTES + 1));
        let rejection = read(&message.to_xml(), &[]).unwrap_err();
        let reason = &rejection.reason;
        assert!(
            matches!(reason, RejectionReason::HeaderTooLong { .. }),
            "{reason}"
        );
        assert_eq!(rejection.answerable(), None);
        let sender = (number != 3).then(|| "client".into());
        assert_eq!(rejection.from, sender, "{number}");
        assert!(rejection.alarm_text().len() < 300);
    }
}

/// A bus closes the connection of whoever sends to such a name.
#[test]
fn a_reply_address_that_no_bus_takes_is_refused_without_an_answer() {
    let with = |reply_to: &str, reply_address: &str| {
        let mut message = request(Some("north"), None);
        message.header_mut().reply_to = reply_to.parse().unwrap();
        let incoming = Incoming {
            reply_to: Some(reply_address.to_owned()),
            ..incoming(message.to_xml(), &[])
        };
        decode(&incoming, &MessageSecurity::Unsigned, STRICT)
    };
    let long = format!("/remote-temp-queue/{}", "x".repeat(256));
    let temporary = "temporary-queue://mine";
    for (reply_to, reply_address) in [
        ("topic://a,b", "/topic/a"),
        ("queue://a/b", "/queue/a"),
        ("topic:// a", "/topic/a"),
        (temporary, "/remote-temp-queue/1.2.>"),
        (temporary, "/temp-queue/*"),
        (temporary, "/queue/a/b"),
        (temporary, &long),
        ("temporary-queue://a#b", "/exchange/a"),
    ] {
        let rejection = with(reply_to, reply_address).unwrap_err();
        let reason = &rejection.reason;
        assert!(
            matches!(reason, RejectionReason::ReplyAddress { .. }),
            "{reply_to} {reply_address}: {reason}"
        );
        assert_eq!(rejection.alarm_code(), AlarmCode::InvalidMessage);
        assert_eq!(rejection.answerable(), None);
        assert!(rejection.alarm_text().len() < 300);
    }
    // The transport's address counts for temporary queues only.
    assert!(with("topic://a", "/topic/a,b").is_ok());
    assert!(with(temporary, "/remote-temp-queue/ID:1.2").is_ok());
}

/// Also where something else is wrong with it.
#[test]
fn a_broken_request_is_not_answered_to_an_address_that_no_bus_takes() {
    let mut message = request(None, None);
    message.header_mut().reply_to = Destination::topic("a,b");
    let broken = message.to_xml().replace("<FileID>", "<Bogus/><FileID>");
    let rejection = read(&broken, &[]).unwrap_err();
    assert!(matches!(rejection.reason, RejectionReason::Format(_)));
    assert_eq!(rejection.answerable(), None);
}

#[test]
fn identify_requests_for_others_are_passed_over_in_silence() {
    let north = ComponentId::from("north");
    let served = [CollectionId::from("books")];
    let filter = Filter {
        component: &north,
        collections: &served,
    };
    let receive =
        |incoming: &Incoming| receive(incoming, &MessageSecurity::Unsigned, STRICT, filter);
    let text = |to, collection| request(to, collection).to_xml();
    let kind = (properties::TYPE, KIND);

    assert!(receive(&incoming(text(Some("north"), Some("books")), &[kind])).is_ok());
    assert!(receive(&incoming(text(None, None), &[kind])).is_ok());
    for (to, collection) in [(Some("south"), Some("books")), (None, Some("maps"))] {
        let silent = receive(&incoming(text(to, collection), &[]));
        assert_eq!(silent, Err(Refusal::NotOurs));
    }
    // Also where it can't be accepted: a version error of a request for south is for south to tell.
    let mut newer = request(Some("south"), Some("books"));
    newer.header_mut().version.min_version = 99;
    for given in [&[][..], &[kind], &[(properties::TO, "north")]] {
        let silent = receive(&incoming(newer.to_xml(), given));
        assert_eq!(silent, Err(Refusal::NotOurs));
    }
    // The properties decide before the text is read at all.
    for given in [
        (properties::TO, "south"),
        (properties::COLLECTION_ID, "maps"),
    ] {
        assert_eq!(
            receive(&incoming("<rubbish", &[kind, given])),
            Err(Refusal::NotOurs)
        );
    }
    let ours = receive(&incoming(
        "<rubbish",
        &[kind, (properties::COLLECTION_ID, "books")],
    ));
    assert!(matches!(ours, Err(Refusal::Rejected(_))));
    // A broken request that still says it is about somebody else's collection.
    let broken = text(None, Some("maps")).replace("<FileID>a.txt</FileID>", "");
    assert_eq!(receive(&incoming(broken, &[])), Err(Refusal::NotOurs));
}

#[test]
fn operation_requests_are_not_filtered_by_their_receiver() {
    let text = request(Some("south"), Some("maps")).to_xml();
    let put = text
        .replace(KIND, "DeleteFileRequest")
        .replace("<FileID>", "<PillarID>south</PillarID><FileID>");
    let north = ComponentId::from("north");
    let filter = Filter {
        component: &north,
        collections: &[],
    };
    let received = receive(
        &incoming(put, &[]),
        &MessageSecurity::Unsigned,
        STRICT,
        filter,
    )
    .unwrap();
    assert_eq!(
        received.message.message_type(),
        MessageType::DeleteFileRequest
    );
    assert_eq!(received.reply_address.as_deref(), Some("/topic/client"));
}

#[test]
fn text_from_java_peers_is_put_together() {
    let text = request(None, None).to_xml().replace("a.txt", "a@.txt");
    let (before, after) = text.split_once('@').unwrap();
    let java = [0xED, 0xA0, 0xBD, 0xED, 0xB2, 0xBE];
    let body = [before.as_bytes(), &java, after.as_bytes()].concat();
    let received = decode(&incoming(body, &[]), &MessageSecurity::Unsigned, STRICT).unwrap();
    assert_eq!(received.message.file_id().unwrap().as_str(), "a💾.txt");
}

#[test]
fn what_can_be_known_of_a_refused_message_is() {
    let text = request(None, Some("books"))
        .to_xml()
        .replace("<FileID>", "<Bogus/><FileID>");
    let rejection = read(&text, &[]).unwrap_err();
    assert!(matches!(rejection.reason, RejectionReason::Format(_)));
    assert_eq!(rejection.from.as_ref().unwrap().as_str(), "client");
    assert_eq!(rejection.correlation_id.as_ref().unwrap().as_str(), "c-1");
    assert_eq!(rejection.reply_to, Some(Destination::topic("client")));
    assert_eq!(rejection.collection_id.as_ref().unwrap().as_str(), "books");
    assert!(rejection.answerable().is_some());

    let nothing = read("not even XML", &[(properties::TYPE, KIND)]).unwrap_err();
    assert_eq!(nothing.message_type.as_deref(), Some(KIND));
    assert_eq!(nothing.answerable(), None);

    let large = decode(
        &incoming(vec![b' '; MAX_MESSAGE_BYTES + 1], &[]),
        &MessageSecurity::Unsigned,
        STRICT,
    );
    assert!(matches!(
        large.unwrap_err().reason,
        RejectionReason::TooLarge { .. }
    ));
    let binary = decode(
        &incoming(b"<a>\xFF</a>".to_vec(), &[]),
        &MessageSecurity::Unsigned,
        STRICT,
    );
    assert!(matches!(
        binary.unwrap_err().reason,
        RejectionReason::Encoding(_)
    ));
}

#[test]
fn u62_a_message_is_accepted_if_both_sides_are_new_enough_for_the_other() {
    let with = |version: &str, minimum: &str| {
        let text = request(None, Some("books")).to_xml();
        let new = format!("version=\"{version}\" minVersion=\"{minimum}\"");
        read(&text.replace("version=\"31\" minVersion=\"24\"", &new), &[])
    };
    for (version, minimum, accepted) in [
        ("23", "20", false),
        ("24", "24", true),
        ("31", "24", true),
        ("33", "24", true),
        ("33", "31", true),
        ("33", "32", false),
        ("99", "24", true),
        ("99", "99", false),
        ("", "24", false),
        ("x", "24", false),
        ("-1", "24", false),
        ("0", "0", false),
        ("31", "", false),
        ("31", "x", false),
    ] {
        let result = with(version, minimum);
        assert_eq!(result.is_ok(), accepted, "{version}, {minimum}");
        let Err(rejection) = result else { continue };
        let code = rejection.alarm_code();
        assert_eq!(
            code,
            AlarmCode::InvalidMessageVersion,
            "{version}, {minimum}"
        );
        let kind = rejection.answerable();
        assert_eq!(
            kind,
            Some(MessageType::IdentifyPillarsForGetFileRequest),
            "{version}, {minimum}"
        );
        let collection = rejection.collection_id.as_ref().map(AsRef::as_ref);
        assert_eq!(collection, Some("books"));
    }
    let without = request(None, None).to_xml().replace(" version=\"31\"", "");
    let rejection = read(&without, &[]).unwrap_err();
    assert_eq!(rejection.alarm_code(), AlarmCode::InvalidMessageVersion);
    assert!(
        rejection.alarm_text().contains("'version'"),
        "{}",
        rejection.alarm_text()
    );
}

#[test]
fn u23_dates_without_an_offset_are_for_those_who_accept_them() {
    let alarm = |date: &str| {
        let header = Header {
            destination: Destination::topic("alarms"),
            ..request(None, Some("books")).header().clone()
        };
        let alarm = Alarm {
            alarm_code: AlarmCode::FailedOperation,
            alarm_raiser: "old".into(),
            alarm_text: "text".to_owned(),
            orig_date_time: Timestamp::EPOCH,
            file_id: None,
            collection_id: None,
        };
        let text = Message::from(AlarmMessage { header, alarm }).to_xml();
        text.replace("1970-01-01T00:00:00.000Z", date)
    };
    let read = |date: &str, dates| {
        let incoming = incoming(alarm(date), &[]);
        decode(&incoming, &MessageSecurity::Unsigned, read_options(dates))
    };
    for (date, strict, lenient) in [
        ("2011-05-03T11:18:00", false, true),
        ("2011-05-03T11:18:00.123456789", false, true),
        ("2011-05-03T11:18:00.123456789+05:45", true, true),
        ("2011-05-03T11:18:00Z", true, true),
        ("2011-05-03T11:18:00-00:00", true, true),
        ("2011-05-03T24:00:00Z", true, true),
        ("2011-05-03", false, false),
        ("2011-05-03T11:18", false, false),
        ("yesterday", false, false),
    ] {
        let refused = read(date, ZonelessDates::Refuse);
        assert_eq!(refused.is_ok(), strict, "{date}");
        if let Err(rejection) = refused {
            assert_eq!(rejection.alarm_code(), AlarmCode::InvalidMessage);
        }
        for dates in [ZonelessDates::Utc, ZonelessDates::Local] {
            assert_eq!(read(date, dates).is_ok(), lenient, "{date}, {dates:?}");
        }
    }
    let received = read("2011-05-03T11:18:00", ZonelessDates::Utc).unwrap();
    let Message::AlarmMessage(alarm) = received.message else {
        panic!("{received:?}")
    };
    let expected = "2011-05-03T11:18:00Z".parse().unwrap();
    assert_eq!(alarm.alarm.orig_date_time, expected);
}

#[test]
fn responses_and_alarms_are_never_answered() {
    let text = request(None, None)
        .to_xml()
        .replace(KIND, "PutFileFinalResponse");
    let rejection = read(&text, &[]).unwrap_err();
    assert_eq!(
        rejection.message_type.as_deref(),
        Some("PutFileFinalResponse")
    );
    assert_eq!(rejection.answerable(), None);
}

#[test]
fn the_same_fault_has_the_same_alarm_text() {
    let text = request(None, None)
        .to_xml()
        .replace("</FileID>", "</FileID><Bogus/>");
    let first = read(&text, &[]).unwrap_err().alarm_text();
    let other = text
        .replace("c-1", "another-correlation-id")
        .replace("a.txt", "long-name.txt");
    assert_eq!(read(&other, &[]).unwrap_err().alarm_text(), first);
    assert!(first.contains("client") && first.contains(KIND), "{first}");
}

/// The messages captured from the Java system lie beside the repository, where they are kept.
fn captured() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/wire");
    let Ok(directories) = root.read_dir() else {
        return Vec::new();
    };
    let mut found: Vec<PathBuf> = directories
        .filter_map(|entry| entry.unwrap().path().read_dir().ok())
        .flatten()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|it| it == "headers"))
        .collect();
    found.sort();
    found
}

#[test]
fn captured_messages_are_received_as_they_came() {
    let files = captured();
    if files.is_empty() {
        eprintln!("SKIPPED: no captured messages at ../shared/wire");
        return;
    }
    let mut refused = Vec::new();
    for path in &files {
        let headers = std::fs::read_to_string(path).unwrap();
        let given: Vec<(&str, &str)> = headers
            .lines()
            .filter_map(|line| line.strip_prefix("property ")?.split_once(": "))
            .map(|(name, value)| (name.split(' ').next().unwrap(), value))
            .collect();
        let body = std::fs::read(path.with_extension("xml")).unwrap();
        if let Err(rejection) = decode(&incoming(body, &given), &MessageSecurity::Unsigned, STRICT)
        {
            let directory = path
                .parent()
                .unwrap()
                .file_name()
                .unwrap()
                .to_string_lossy();
            refused.push((directory.into_owned(), rejection.reason.to_string()));
        }
    }
    eprintln!("{} captured messages, refused: {refused:#?}", files.len());
    let names: Vec<&str> = refused
        .iter()
        .map(|(directory, _)| directory.as_str())
        .collect();
    let expected = [
        "raw-malformed-xml",
        "raw-minversion-too-new",
        "raw-put-content-length",
        "raw-schema-invalid",
        "raw-version-too-old",
    ];
    assert_eq!(names, expected);
}
