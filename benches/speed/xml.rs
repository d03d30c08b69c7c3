//! Reading and writing messages, against quick-xml's bare reader and writer over the same bytes.

use std::{hint::black_box, io::Cursor, time::Duration};

use pillarbox_messages::{
    ChecksumData, ChecksumDataItem, ChecksumSpec, ChecksumType, GetChecksumsFinalResponse, Header,
    HexBinary, Message, ProtocolVersion, PutFileRequest, ResponseCode, ResponseInfo,
    ResultingChecksums, Timestamp,
};
use quick_xml::{events::Event, reader::NsReader, writer::Writer};

use crate::rounds::{compare, speed, timed};

pub(crate) fn run() {
    measure("PutFileRequest", &put_file_request(), 20_000);
    measure("GetChecksumsFinalResponse, 10,000 items", &checksums(), 10);
}

fn measure(what: &str, message: &Message, times: usize) {
    let text = message.to_xml();
    let events = events_of(&text);
    assert_eq!(
        bare_write(&events, text.len()),
        text.as_bytes(),
        "the peer writes the same bytes"
    );
    let repeat = |work: &dyn Fn()| -> Duration { timed(|| (0..times).for_each(|_| work())) };
    let (peer, ours) = compare(
        || repeat(&|| drop(black_box(bare_write(&events, text.len())))),
        || repeat(&|| drop(black_box(message.to_xml()))),
    );
    speed(&format!("write {what}"), peer, ours, "at least 0.5");
    let (peer, ours) = compare(
        || repeat(&|| bare_read(&text)),
        || repeat(&|| drop(black_box(Message::from_xml(&text).expect("a message")))),
    );
    speed(&format!("read {what}"), peer, ours, "at least 0.5");
}

/// The document's events, so that the peer has nothing to do but to write them.
fn events_of(text: &str) -> Vec<Event<'static>> {
    let mut reader = quick_xml::Reader::from_str(text);
    let mut events = Vec::new();
    loop {
        match reader.read_event().expect("well-formed") {
            Event::Eof => return events,
            event => events.push(event.into_owned()),
        }
    }
}

fn bare_write(events: &[Event<'static>], size: usize) -> Vec<u8> {
    let mut writer = Writer::new(Cursor::new(Vec::with_capacity(size)));
    for event in events {
        writer.write_event(event.borrow()).expect("written");
    }
    writer.into_inner().into_inner()
}

fn bare_read(text: &str) {
    let mut reader = NsReader::from_str(text);
    loop {
        match reader.read_resolved_event().expect("well-formed") {
            (_, Event::Eof) => return,
            event => drop(black_box(event)),
        }
    }
}

fn header(destination: &str) -> Header {
    Header {
        version: ProtocolVersion::CURRENT,
        correlation_id: "7d0c2f4e-5b1a-4e68-8c93-2a9e6b0f1d35".into(),
        collection_id: Some("books".into()),
        destination: destination.parse().expect("a destination"),
        reply_to: "topic://books.client.ingest-1"
            .parse()
            .expect("a destination"),
        from: "ingest-1".into(),
        to: None,
    }
}

fn md5() -> ChecksumSpec {
    ChecksumSpec {
        checksum_type: ChecksumType::Md5,
        checksum_salt: None,
        other_checksum_type: None,
    }
}

fn value(n: u64) -> HexBinary {
    HexBinary::from([n.to_be_bytes(), (!n).to_le_bytes()].concat())
}

fn put_file_request() -> Message {
    PutFileRequest {
        header: header("queue://books.north"),
        audit_trail_information: None,
        pillar_id: Some("north".into()),
        file_id: "scan-0001.tif".into(),
        file_address: "http://127.0.0.1:8181/0f8fad5b-d9cb-469f-a165-70867728950e/scan-0001.tif"
            .to_owned(),
        file_size: Some(1024),
        checksum_data_for_new_file: Some(ChecksumData {
            checksum_spec: md5(),
            checksum_value: value(7),
            calculation_timestamp: Timestamp::from_millis(1_796_061_943_473),
        }),
        checksum_request_for_new_file: Some(md5()),
    }
    .into()
}

fn checksums() -> Message {
    let items = (0..10_000).map(|n| ChecksumDataItem {
        file_id: format!("file-{n:05}.txt").into(),
        checksum_value: value(n),
        calculation_timestamp: Timestamp::from_millis(
            1_796_061_943_473 + i64::try_from(n).unwrap(),
        ),
    });
    GetChecksumsFinalResponse {
        header: header("topic://books.client.ingest-1"),
        response_info: ResponseInfo {
            response_code: ResponseCode::OperationCompleted,
            response_text: None,
        },
        pillar_id: Some("north".into()),
        checksum_request_for_existing_file: Some(md5()),
        resulting_checksums: Some(ResultingChecksums::Items(items.collect())),
        partial_result: Some(false),
    }
    .into()
}
