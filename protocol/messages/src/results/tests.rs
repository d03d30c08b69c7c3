use super::*;
use crate::timestamp::Timestamp;

fn listed(name: &str) -> crate::FileIdsDataItem {
    crate::FileIdsDataItem {
        file_id: name.into(),
        last_modification_time: Timestamp::from_millis(1),
        file_size: Some(7),
    }
}

fn summed(name: &str) -> ChecksumDataItem {
    ChecksumDataItem {
        file_id: name.into(),
        checksum_value: vec![0xAB, 0xCD].into(),
        calculation_timestamp: Timestamp::from_millis(-1),
    }
}

#[test]
fn streams_are_the_documents() {
    let names: Vec<String> = (0..2000).map(|number| format!("file & {number}")).collect();
    let (collection, pillar) = ("books".into(), ComponentId::from("pillar"));

    let mut stream = FileIdsWriter::start(Vec::new(), &collection, Some(&pillar)).unwrap();
    for name in &names {
        stream.item(&listed(name)).unwrap();
    }
    let document = ResultDocument::from(GetFileIdsResults {
        version: ProtocolVersion::CURRENT,
        collection_id: collection.clone(),
        pillar_id: Some(pillar),
        file_ids_data: FileIdsData {
            items: names.iter().map(|name| listed(name)).collect(),
        },
    });
    let written = String::from_utf8(stream.finish().unwrap()).unwrap();
    assert_eq!(written, document.to_xml());
    assert_eq!(ResultDocument::from_xml(&written).unwrap(), document);

    let mut stream = ChecksumsWriter::start(Vec::new(), &collection, None).unwrap();
    for name in &names {
        stream.item(&summed(name)).unwrap();
    }
    let document = ResultDocument::from(GetChecksumsResults {
        version: ProtocolVersion::CURRENT,
        collection_id: collection,
        pillar_id: None,
        checksum_data_items: names.iter().map(|name| summed(name)).collect(),
    });
    let written = String::from_utf8(stream.finish().unwrap()).unwrap();
    assert_eq!(written, document.to_xml());
    assert_eq!(ResultDocument::from_xml(&written).unwrap(), document);
}

#[test]
fn an_audit_trail_written_event_by_event_is_the_whole_document() {
    let events: Vec<AuditTrailEvent> = (1..200)
        .map(|number: u8| {
            crate::sample::required(&mut crate::sample::Source::new(vec![number; 400]))
        })
        .collect();
    let mut stream = AuditTrailsWriter::start(Vec::new(), &"books".into()).unwrap();
    for event in &events {
        stream.item(event).unwrap();
    }
    let document = ResultDocument::from(GetAuditTrailsResults {
        version: ProtocolVersion::CURRENT,
        collection_id: "books".into(),
        audit_trail_events: AuditTrailEvents { events },
        more_audit_trail_events: Vec::new(),
    });
    let written = String::from_utf8(stream.finish().unwrap()).unwrap();
    assert_eq!(written, document.to_xml());
}

#[test]
fn larger_than_allowed() {
    let text = ChecksumsWriter::start(Vec::new(), &"books".into(), None)
        .unwrap()
        .finish()
        .unwrap();
    let text = String::from_utf8(text).unwrap();
    assert!(ResultDocument::from_xml_within(&text, text.len()).is_ok());
    let error = ResultDocument::from_xml_within(&text, text.len() - 1).unwrap_err();
    assert!(matches!(error.reason, DecodeReason::TooLarge { .. }));
}

#[test]
fn a_message_is_no_result_document() {
    let text = "<m:PutFileRequest xmlns:m=\"http://bitrepository.org/BitRepositoryMessages.xsd\" \
                version=\"31\" minVersion=\"24\"/>";
    let error = ResultDocument::from_xml(text).unwrap_err();
    assert_eq!(
        error.reason,
        DecodeReason::WrongNamespace("PutFileRequest".into())
    );
    assert_eq!(error.known.message_type.as_deref(), Some("PutFileRequest"));
}

impl crate::sample::Sample for FileIdsParameterData {
    fn sample(source: &mut crate::sample::Source) -> Self {
        Self {
            file_ids: crate::sample::repeated(source),
        }
    }
}
