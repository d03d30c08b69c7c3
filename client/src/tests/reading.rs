//! Operations whose events nobody reads, beside one whose events somebody reads.

use pillarbox_bus::Outgoing;
use pillarbox_messages::{
    Destination, Header, Message, ProtocolVersion, PutFileFinalResponse, PutFileProgressResponse,
    ResponseCode, ResponseInfo,
};

use super::{
    operations::{events, put, source},
    site::{PLENTY, Site},
    stand_in::Temper,
};
use crate::{EventKind, Running};

/// More than the bus gives a client before it acknowledges something.
const MANY: usize = 600;

/// South's answer to the put of a file.
fn answer(running: &Running, name: &str, is_last: bool) -> Message {
    let header = Header {
        version: ProtocolVersion::CURRENT,
        correlation_id: running.correlation().clone(),
        collection_id: Some("books".into()),
        destination: Destination::topic("books.client.reader"),
        reply_to: Destination::queue("nowhere"),
        from: "south".into(),
        to: Some("reader".into()),
    };
    if is_last {
        let response_info = ResponseInfo::new(ResponseCode::OperationCompleted, "done");
        return PutFileFinalResponse {
            header,
            response_info,
            pillar_id: Some("south".into()),
            pillar_checksum_spec: None,
            file_id: name.into(),
            file_address: "http://x/".into(),
            checksum_data_for_new_file: None,
            checksum_data_for_existing_file: None,
        }
        .into();
    }
    PutFileProgressResponse {
        header,
        response_info: ResponseInfo::new(ResponseCode::OperationProgress, "at work"),
        pillar_id: Some("south".into()),
        pillar_checksum_spec: None,
        file_id: name.into(),
        file_address: "http://x/".into(),
    }
    .into()
}

/// Whatever floods those that nobody reads, others go on.
async fn whoever_is_read_goes_on(is_last: bool) {
    let site = Site::start().await;
    let _north = site.pillar("north", Temper::Stuck).await;
    let south = site.pillar("south", Temper::Stuck).await;
    let client = site.client("reader", true, PLENTY);
    let path = source(&site, b"hello, world");
    let mut unread = Vec::new();
    for name in ["a1", "b1", "c1"] {
        let mut request = put(path.clone());
        request.file_id = name.into();
        unread.push((name, client.put_file(request).await.unwrap()));
        let asked =
            |it: &Message| matches!(it, Message::PutFileRequest(it) if it.file_id.as_str() == name);
        south.hears(asked).await;
    }
    let bus = site.bus("flooding");
    for (name, running) in &unread {
        for number in 0..MANY {
            // Progress first, so that the events pile up whatever follows.
            let message = answer(running, name, is_last && number > 100);
            let to = Destination::topic("books.client.reader");
            bus.publish(Outgoing::new(to, message.to_xml()))
                .await
                .unwrap();
        }
    }
    // It comes behind all that, and has everything that it needs.
    let mut read = put(path);
    read.file_id = "d1".into();
    let mut running = client.put_file(read).await.unwrap();
    let asked =
        |it: &Message| matches!(it, Message::PutFileRequest(it) if it.file_id.as_str() == "d1");
    south.hears(asked).await;
    for contributor in ["north", "south"] {
        let mut message = answer(&running, "d1", true);
        if let Message::PutFileFinalResponse(done) = &mut message {
            done.header.from = contributor.into();
            done.pillar_id = Some(contributor.into());
        }
        let to = Destination::topic("books.client.reader");
        bus.publish(Outgoing::new(to, message.to_xml()))
            .await
            .unwrap();
    }
    let events = events(&mut running).await;
    let last = events.last().unwrap();
    assert!(matches!(last.kind, EventKind::Complete { .. }), "{last}");
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_of_what_nobody_reads_holds_up_nobody() {
    whoever_is_read_goes_on(false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_to_what_nobody_reads_hold_up_nobody() {
    whoever_is_read_goes_on(true).await;
}
