use proptest::prelude::{ProptestConfig, any, prop_assert, prop_assert_eq, proptest};

use super::*;
use crate::{
    ResultDocument,
    destination::Destination,
    ids::CorrelationId,
    sample::{Sample, Source},
};

/// As the Java client wrote it.
const PUT: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?><ns2:PutFileRequest \
    xmlns=\"http://bitrepository.org/BitRepositoryElements.xsd\" \
    xmlns:ns2=\"http://bitrepository.org/BitRepositoryMessages.xsd\" version=\"31\" minVersion=\"24\">\
    <CorrelationID>c-1</CorrelationID><CollectionID>books</CollectionID>\
    <Destination>queue://pillar</Destination><ReplyTo>topic://client</ReplyTo><From>client</From>\
    <PillarID>pillar</PillarID><FileID>a&amp;b.txt</FileID>\
    <FileAddress>http://127.0.0.1/a</FileAddress><FileSize>20</FileSize><ChecksumDataForNewFile>\
    <ChecksumSpec><ChecksumType>MD5</ChecksumType></ChecksumSpec>\
    <ChecksumValue>4A37F973B3C9FEDE0E1FB3F07B65A93B</ChecksumValue>\
    <CalculationTimestamp>2026-03-04T05:06:07.089+02:00</CalculationTimestamp></ChecksumDataForNewFile>\
    <ChecksumRequestForNewFile><ChecksumType>MD5</ChecksumType></ChecksumRequestForNewFile>\
    </ns2:PutFileRequest>";

#[test]
fn written_as_the_java_client_writes() {
    let message = Message::from_xml(PUT).unwrap();
    assert_eq!(message.to_xml(), PUT);
    assert_eq!(message.message_type(), MessageType::PutFileRequest);
    assert_eq!(message.file_id().unwrap().as_str(), "a&b.txt");
    assert_eq!(message.header().correlation_id.as_str(), "c-1");
    assert_eq!(message.response_info(), None);
}

#[test]
fn characters_that_xml_does_not_have_are_replaced() {
    let mut message = Message::from_xml(PUT).unwrap();
    let Message::PutFileRequest(request) = &mut message else {
        panic!("another type")
    };
    request.audit_trail_information = Some("ok\u{1}\0end\u{FFFE}\r\n]]>".to_owned());
    let read = Message::from_xml(&message.to_xml()).unwrap();
    let Message::PutFileRequest(request) = read else {
        panic!("another type")
    };
    let expected = "ok\u{FFFD}\u{FFFD}end\u{FFFD}\r\n]]>";
    assert_eq!(request.audit_trail_information.as_deref(), Some(expected));
}

#[test]
fn names_are_never_normalized() {
    // The same word composed and decomposed: two different names.
    for name in [
        "s\u{F8}gr\u{F8}d-\u{E9}.txt",
        "s\u{F8}gr\u{F8}d-e\u{301}.txt",
    ] {
        let read = Message::from_xml(&PUT.replace("a&amp;b.txt", name)).unwrap();
        assert_eq!(read.file_id().unwrap().as_str().as_bytes(), name.as_bytes());
        assert!(read.to_xml().contains(name));
    }
}

#[test]
fn types_by_their_part() {
    let count = |kinds: fn(MessageType) -> bool| {
        MessageType::ALL.iter().filter(|&&kind| kinds(kind)).count()
    };
    assert_eq!(MessageType::ALL.len(), 41);
    assert_eq!(count(MessageType::is_identify_request), 8);
    assert_eq!(count(MessageType::is_request), 16);
    assert_eq!(count(MessageType::is_response), 24);
    assert_eq!(count(MessageType::is_final_response), 8);
    for kind in MessageType::ALL {
        assert_eq!(kind.as_str().parse(), Ok(*kind));
        let operation = kind.operation().map_or("AlarmMessage", Operation::as_str);
        assert!(kind.as_str().contains(operation), "{kind} of {operation}");
    }
}

#[test]
fn an_unknown_root_is_named() {
    let error = Message::from_xml(&PUT.replace("PutFileRequest", "MoveFileRequest")).unwrap_err();
    assert_eq!(
        error.reason,
        DecodeReason::UnknownRoot("MoveFileRequest".into())
    );
    assert_eq!(error.known.message_type.as_deref(), Some("MoveFileRequest"));
}

#[test]
fn the_sender_of_an_address_that_is_none_is_known() {
    let bad = PUT.replace("topic://client", "ftp://client");
    let error = Message::from_xml(&bad).unwrap_err();
    assert_eq!(&*error.path, "/PutFileRequest/ReplyTo");
    assert!(matches!(error.reason, DecodeReason::BadValue { .. }));
    assert_eq!(error.known.from, Some("client".into()));
    assert_eq!(error.known.reply_to, None);
    let offset = usize::try_from(error.offset).unwrap();
    assert!(offset < bad.find("<From>").unwrap() + 1, "{offset}");
    // What comes after it may be anything.
    let cut = bad.split("<From>").next().unwrap();
    let error = Message::from_xml(cut).unwrap_err();
    assert_eq!(&*error.path, "/PutFileRequest/ReplyTo");
    assert_eq!(error.known.from, None);
}

#[test]
fn a_bare_destination_is_a_topic() {
    let read = Message::from_xml(&PUT.replace("topic://client", "client")).unwrap();
    assert_eq!(read.header().reply_to, Destination::topic("client"));
}

/// The same document with a few bytes changed, inserted or lost.
fn damaged(text: &str, changes: &[(usize, u8, u8)]) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for &(place, how, byte) in changes {
        let place = place % bytes.len();
        match how % 4 {
            0 => bytes[place] = byte,
            1 => bytes.insert(place, byte),
            2 => {
                bytes.remove(place);
            }
            _ => {
                let end = bytes.len().min(place + usize::from(byte));
                let piece = bytes[place..end].to_vec();
                bytes.extend(piece);
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn any_message_is_read_as_written(bytes in any::<Vec<u8>>(), kind in 0..41usize) {
        let message = Message::sample_of(MessageType::ALL[kind], &mut Source::new(bytes));
        let text = message.to_xml();
        let read = Message::from_xml(&text).unwrap();
        prop_assert_eq!(&read, &message);
        prop_assert_eq!(read.to_xml(), text);
    }

    #[test]
    fn any_result_document_is_read_as_written(bytes in any::<Vec<u8>>()) {
        let document = ResultDocument::sample(&mut Source::new(bytes));
        let text = document.to_xml();
        let read = ResultDocument::from_xml(&text).unwrap();
        prop_assert_eq!(&read, &document);
        prop_assert_eq!(read.to_xml(), text);
    }

    #[test]
    fn no_text_panics(text in any::<String>(), tags in "[<>/?!&;#=\"' a\\[\\]-]{0,60}") {
        prop_assert!(Message::from_xml(&text).is_err());
        prop_assert!(Message::from_xml(&tags).is_err());
        prop_assert!(ResultDocument::from_xml(&tags).is_err());
    }

    #[test]
    fn no_damage_panics(changes in proptest::collection::vec(any::<(usize, u8, u8)>(), 1..5)) {
        // What is still a message is one that can be written and read again.
        if let Ok(message) = Message::from_xml(&damaged(PUT, &changes)) {
            prop_assert_eq!(Message::from_xml(&message.to_xml()).unwrap(), message);
        }
    }

    #[test]
    fn what_was_read_is_known(cut in 0..PUT.len()) {
        let beginning = PUT.get(..cut).unwrap();
        let error = Message::from_xml(beginning).unwrap_err();
        prop_assert!(error.offset <= u64::try_from(cut).unwrap());
        let read = |end: &str| beginning.contains(end);
        let correlation = read("</CorrelationID>").then(|| CorrelationId::from("c-1"));
        prop_assert_eq!(error.known.correlation_id, correlation);
        prop_assert_eq!(error.known.from.is_some(), read("</From>"));
        prop_assert_eq!(error.known.reply_to.is_some(), read("</ReplyTo>"));
        prop_assert_eq!(error.known.collection_id.is_some(), read("</CollectionID>"));
    }
}
