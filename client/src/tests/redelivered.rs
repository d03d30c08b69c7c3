//! What the bus delivers twice to a conversation.

use pillarbox_bus::{AckMode, Bus, Outgoing, SubscribeRequest, Subscription};
use pillarbox_messages::{
    ChecksumType, ComponentId, CorrelationId, Destination, Header,
    IdentifyPillarsForPutFileResponse, Message, ProtocolVersion, PutFileFinalResponse,
    ResponseCode, ResponseInfo,
};
use tokio::{sync::mpsc, time::timeout};

use super::{
    site::{PLENTY, Site},
    stand_in::md5,
};
use crate::{
    Client,
    cargo::Cargo,
    conversation::{Context, Conversation, new_file::NewFile, put_file::PutFileProcedure},
    digests::plain_spec,
    mediator::{Arrived, Receipt},
    running::Running,
    task::{Beginning, Keeping},
};

const OPERATION_MS: i64 = 4000;

pub(super) fn answers() -> Destination {
    Destination::topic("books.client.reader")
}

pub(super) fn requests() -> Destination {
    Destination::queue("somewhere.else.north")
}

fn header(correlation: &CorrelationId) -> Header {
    Header {
        version: ProtocolVersion::CURRENT,
        correlation_id: correlation.clone(),
        collection_id: Some("books".into()),
        destination: answers(),
        reply_to: requests(),
        from: "north".into(),
        to: Some("reader".into()),
    }
}

fn info(response_code: ResponseCode) -> ResponseInfo {
    ResponseInfo {
        response_code,
        response_text: None,
    }
}

pub(super) fn ready(correlation: &CorrelationId) -> Message {
    IdentifyPillarsForPutFileResponse {
        header: header(correlation),
        response_info: info(ResponseCode::IdentificationPositive),
        pillar_id: "north".into(),
        file_id: Some("hello.txt".into()),
        pillar_checksum_spec: None,
        checksum_data_for_existing_file: None,
        time_to_deliver: None,
    }
    .into()
}

pub(super) fn ended(correlation: &CorrelationId, code: ResponseCode) -> Message {
    PutFileFinalResponse {
        header: header(correlation),
        response_info: info(code),
        pillar_id: Some("north".into()),
        pillar_checksum_spec: None,
        file_id: "hello.txt".into(),
        file_address: String::new(),
        checksum_data_for_new_file: None,
        checksum_data_for_existing_file: None,
    }
    .into()
}

/// A put of a file that lies on an exchange, with one retry.
pub(super) fn conversation(correlation: &CorrelationId) -> Conversation<PutFileProcedure> {
    let context = Context {
        correlation: correlation.clone(),
        collection: Some("books".into()),
        file: Some("hello.txt".into()),
        from: "reader".into(),
        reply_to: answers(),
        identify_at: vec![Destination::topic("books")],
        expected: [ComponentId::from("north")].into_iter().collect(),
        identification_timeout_ms: 60_000,
        operation_timeout_ms: OPERATION_MS,
        conversation_timeout_ms: 0,
        extend_on_progress: false,
    };
    let new = NewFile {
        checksum: Some(md5(b"")),
        ..NewFile::new(plain_spec(ChecksumType::Md5))
    };
    let procedure = PutFileProcedure {
        retries: 1,
        ..PutFileProcedure::new("hello.txt".into(), new)
    };
    Conversation::new(context, procedure)
}

/// Its answers are handed to it one by one.
pub(super) fn launch(
    client: &Client,
    conversation: Conversation<PutFileProcedure>,
    keeping: Option<Keeping>,
) -> (Running, mpsc::Sender<Arrived>) {
    let (inbox, arriving) = mpsc::channel(8);
    let beginning = Beginning::New;
    let running = client.launch(conversation, Cargo::Nothing, keeping, beginning, arriving);
    (running, inbox)
}

pub(super) async fn listen(bus: &Bus, destination: Destination) -> Subscription {
    let request = SubscribeRequest {
        ack_timeout: None,
        destination,
        durable: None,
        ack: AckMode::Auto,
        prefetch: 16,
    };
    bus.subscribe(request).await.unwrap()
}

pub(super) async fn arrived(client: &Client, from: &mut Subscription) -> Arrived {
    let delivery = timeout(PLENTY, from.next()).await.unwrap().unwrap();
    Arrived {
        content: Ok(client.shared.component.receive(&delivery.message).unwrap()),
        receipt: Receipt::new(delivery),
    }
}

/// However late the second one comes.
#[tokio::test(flavor = "multi_thread")]
async fn a_failed_transfer_costs_one_retry() {
    let site = Site::start().await;
    let client = site.client("reader", false, PLENTY);
    let north = site.bus("north");
    let mut asked = listen(&north, requests()).await;
    // The same message with the same identity, from both.
    let ear = site.bus("ear");
    let mut once = listen(&ear, answers()).await;
    let mut twice = listen(&ear, answers()).await;
    let say = async |message: Message| {
        let outgoing = Outgoing::new(answers(), message.to_xml());
        north.publish(outgoing).await.unwrap();
    };

    let correlation = CorrelationId::random();
    let (running, inbox) = launch(&client, conversation(&correlation), None);
    say(ready(&correlation)).await;
    say(ended(&correlation, ResponseCode::FileTransferFailure)).await;
    for _ in 0..2 {
        inbox.send(arrived(&client, &mut once).await).await.unwrap();
    }
    for _ in 0..2 {
        timeout(PLENTY, asked.next()).await.unwrap().unwrap();
    }
    // Now it has been asked again.
    arrived(&client, &mut twice).await;
    inbox
        .send(arrived(&client, &mut twice).await)
        .await
        .unwrap();
    say(ended(&correlation, ResponseCode::OperationCompleted)).await;
    inbox.send(arrived(&client, &mut once).await).await.unwrap();
    let outcome = timeout(PLENTY, running.outcome()).await.unwrap();
    assert!(outcome.complete, "{outcome:?}");
}
