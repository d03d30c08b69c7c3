//! What a named client finds in its journal, and a resuming that does not come about or that nobody looks at.

use std::{future::poll_fn, path::PathBuf, pin::pin, task::Poll, time::Duration};

use pillarbox_bus::{Bus, ConnectOptions, Outgoing, StompOptions};
use pillarbox_messages::{
    ChecksumType, ComponentId, DeleteFileFinalResponse, Destination, Header,
    IdentifyPillarsForDeleteFileResponse, Message, Operation, ProtocolVersion, ResponseCode,
    ResponseInfo,
};
use tokio::time::timeout;

use super::{
    operations::until,
    site::{PLENTY, Site},
    stand_in::{Temper, md5},
};
use crate::{
    Client, ClientError, ClientOptions, DeleteFile, Event, EventKind, GetFileIds, Journal,
    Resuming,
    conversation::{Context, Conversation, Input, Procedure, delete_file::DeleteFileProcedure},
    digests::plain_spec,
    journal::{Entry, KeptCargo, State},
};

const CLIENT: &str = "ingest-1";
/// What a journal has in it with an operation that has ended and one that north owes an answer to; and with none.
const BOTH: [&str; 3] = ["ended.conversation", "lock", "open.conversation"];
const NOTHING: [&str; 1] = ["lock"];

/// One process of the client.
struct Life {
    client: Client,
    bus: Bus,
}

impl Life {
    fn begin(site: &Site) -> Self {
        Self::on(site, site.bus(CLIENT))
    }

    fn on(site: &Site, bus: Bus) -> Self {
        let journal = Journal::open(&journals(site), &CLIENT.into()).unwrap();
        let client = Client::connect(ClientOptions {
            named: true,
            journal: Some(journal),
            id: CLIENT.into(),
            bus: bus.clone(),
            ..site.options("nobody", PLENTY)
        });
        let client = client.unwrap();
        Self { client, bus }
    }

    /// Ends it and waits until the next one can begin.
    async fn end(self, site: &Site) {
        self.client.close().await;
        let _ = self.bus.close().await;
        drop(self);
        until(|| Journal::open(&journals(site), &CLIENT.into()).is_ok()).await;
    }
}

fn journals(site: &Site) -> PathBuf {
    site.directory.path().join("journals")
}

fn names(site: &Site) -> Vec<String> {
    let entries = std::fs::read_dir(journals(site).join(CLIENT)).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn header(correlation: &str) -> Header {
    Header {
        version: ProtocolVersion::CURRENT,
        correlation_id: correlation.into(),
        collection_id: Some("books".into()),
        destination: client_destination(),
        reply_to: Destination::queue("somewhere.else.north"),
        from: "north".into(),
        to: Some(CLIENT.into()),
    }
}

fn client_destination() -> Destination {
    Destination::topic(&format!("books.client.{CLIENT}"))
}

fn info(response_code: ResponseCode) -> ResponseInfo {
    ResponseInfo {
        response_code,
        response_text: None,
    }
}

/// A deletion that north has been asked for.
fn open() -> State {
    let context = Context {
        correlation: "open".into(),
        collection: Some("books".into()),
        file: Some("f".into()),
        from: CLIENT.into(),
        reply_to: client_destination(),
        identify_at: vec![Destination::topic("books")],
        expected: [ComponentId::from("north")].into_iter().collect(),
        identification_timeout_ms: 60_000,
        operation_timeout_ms: 60_000,
        conversation_timeout_ms: 0,
        extend_on_progress: false,
    };
    let procedure = DeleteFileProcedure {
        file: "f".into(),
        existing_checksum: None,
        request_checksum: None,
        default_spec: plain_spec(ChecksumType::Md5),
        checksum_pillar: false,
        audit_trail_information: None,
    };
    let mut conversation = Conversation::new(context, procedure);
    conversation.step(Input::Start, 5);
    let ready = IdentifyPillarsForDeleteFileResponse {
        header: header("open"),
        response_info: info(ResponseCode::IdentificationPositive),
        file_id: "f".into(),
        pillar_id: "north".into(),
        pillar_checksum_spec: None,
        time_to_deliver: None,
    };
    let ready = Input::Message {
        message: Box::new(ready.into()),
        reply_address: None,
    };
    conversation.step(ready, 6);
    assert!(conversation.is_performing());
    State::Open(Box::new(
        DeleteFileProcedure::resumable(&conversation).unwrap(),
    ))
}

fn ended() -> State {
    State::Ended(Box::new(Event {
        correlation: "ended".into(),
        operation: Operation::DeleteFile,
        collection: Some("books".into()),
        file: Some("g".into()),
        kind: EventKind::Complete {
            results: Vec::new(),
            failures: Vec::new(),
        },
        info: None,
    }))
}

/// A process that was killed with one operation open and another one's end untold.
async fn killed(site: &Site) {
    let life = Life::begin(site);
    // Its replies wait from here on.
    list(&life.client).await;
    life.end(site).await;
    let journal = Journal::open(&journals(site), &CLIENT.into()).unwrap();
    for (id, state) in [("open", open()), ("ended", ended())] {
        let entry = Entry {
            client: CLIENT.into(),
            changes: true,
            cargo: KeptCargo::Nothing,
            state,
        };
        let slot = journal.slot(&id.into()).unwrap();
        slot.write(entry).await.unwrap();
    }
    drop(journal);
    until(|| Journal::open(&journals(site), &CLIENT.into()).is_ok()).await;
    assert_eq!(names(site), BOTH);
}

/// An operation that begins and ends.
async fn list(client: &Client) {
    let mut list = GetFileIds::new("books".into());
    list.pillars = Some(vec!["south".into()]);
    let running = client.get_file_ids(list).await.unwrap();
    assert!(running.outcome().await.complete);
}

/// North answers that the file is deleted.
async fn answer(site: &Site) {
    let done = DeleteFileFinalResponse {
        header: header("open"),
        response_info: info(ResponseCode::OperationCompleted),
        pillar_id: Some("north".into()),
        file_id: "f".into(),
        checksum_data_for_existing_file: None,
    };
    let outgoing = Outgoing::new(client_destination(), Message::from(done).to_xml());
    site.bus("north").publish(outgoing).await.unwrap();
}

/// Waits for both ends, which are good ones, and says that they have been told.
async fn tell_both(resuming: Resuming) {
    assert!(resuming.problems.is_empty(), "{resuming:?}");
    let mut files = Vec::new();
    for resumed in resuming.operations {
        let running = resumed.running;
        let (outcome, telling) = timeout(PLENTY, running.outcome_to_tell()).await.unwrap();
        assert!(outcome.complete, "{outcome:?}");
        telling.told();
        files.push(resumed.file.unwrap().to_string());
    }
    files.sort();
    assert_eq!(files, ["f", "g"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resuming_that_fails_takes_nothing_up() {
    let site = Site::start().await;
    let _south = site.pillar("south", Temper::Honest).await;
    killed(&site).await;
    let closed = site.bus("closed");
    closed.close().await.unwrap();
    let life = Life::on(&site, closed);
    for _ in 0..2 {
        let failed = life.client.resume().await;
        assert!(matches!(failed, Err(ClientError::Bus(_))), "{failed:?}");
    }
    life.end(&site).await;
    assert_eq!(names(&site), BOTH);

    answer(&site).await;
    let life = Life::begin(&site);
    tell_both(life.client.resume().await.unwrap()).await;
    assert_eq!(names(&site), NOTHING);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resuming_without_a_bus_that_is_given_up_takes_nothing_up() {
    let site = Site::start().await;
    let _south = site.pillar("south", Temper::Honest).await;
    killed(&site).await;
    let nowhere = StompOptions::new("127.0.0.1:1");
    let options = ConnectOptions {
        client_id: CLIENT.to_owned(),
    };
    let life = Life::on(&site, Bus::stomp(nowhere, options));
    let resuming = timeout(Duration::from_millis(500), life.client.resume()).await;
    assert!(resuming.is_err(), "{resuming:?}");
    life.end(&site).await;
    assert_eq!(names(&site), BOTH);
}

/// Polls a future so often and drops it.
async fn drop_after<F: Future>(polls: usize, future: F) {
    let mut future = pin!(future);
    let mut left = polls;
    poll_fn(|context| {
        left -= 1;
        match future.as_mut().poll(context) {
            Poll::Pending if left > 0 => Poll::Pending,
            _ => Poll::Ready(()),
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_to_what_a_dropped_resuming_had_in_hand_waits_for_the_next_one() {
    let site = Site::start().await;
    let _south = site.pillar("south", Temper::Honest).await;
    // However far it has got.
    for polls in 1..8 {
        killed(&site).await;
        let life = Life::begin(&site);
        drop_after(polls, life.client.resume()).await;
        answer(&site).await;
        // What comes behind the reply has come.
        list(&life.client).await;
        until(|| !goes_on(&life) || is_ended(&site)).await;
        life.end(&site).await;
        assert_eq!(names(&site), BOTH);
        let life = Life::begin(&site);
        tell_both(life.client.resume().await.unwrap()).await;
        life.end(&site).await;
        assert_eq!(names(&site), NOTHING);
    }
}

/// Whether the open operation has been taken up.
fn goes_on(life: &Life) -> bool {
    let journal = life.client.shared.journal.as_ref().unwrap();
    !journal.is_left(&"open".into())
}

/// Whether its end is in the journal.
fn is_ended(site: &Site) -> bool {
    let entry = journals(site).join(CLIENT).join(BOTH[2]);
    std::fs::read_to_string(entry).unwrap().contains("Ended")
}

#[tokio::test(flavor = "multi_thread")]
async fn ends_that_nobody_looked_at_are_told_by_the_next_process() {
    let site = Site::start().await;
    let _south = site.pillar("south", Temper::Honest).await;
    killed(&site).await;
    answer(&site).await;
    for _ in 0..2 {
        let life = Life::begin(&site);
        let resuming = life.client.resume().await.unwrap();
        assert_eq!(resuming.operations.len(), 2);
        drop(resuming);
        let again = life.client.resume().await.unwrap();
        assert!(again.operations.is_empty(), "{again:?}");
        until(|| is_ended(&site)).await;
        life.end(&site).await;
        assert_eq!(names(&site), BOTH);
    }
    let life = Life::begin(&site);
    tell_both(life.client.resume().await.unwrap()).await;
    assert_eq!(names(&site), NOTHING);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_is_given_up_leaves_no_entry() {
    let site = Site::start().await;
    let life = Life::begin(&site);
    let mut given_up = 0;
    for number in 0..200_u64 {
        let file = format!("f{number}").as_str().into();
        let mut delete = DeleteFile::new("books".into(), file, "north".into());
        delete.existing_checksum = Some(md5(b""));
        let start = life.client.delete_file(delete);
        match timeout(Duration::from_micros(20 * number), start).await {
            Ok(running) => {
                let running = running.unwrap();
                running.cancel();
                assert!(!running.outcome().await.complete);
            }
            Err(_) => given_up += 1,
        }
    }
    assert!(given_up > 0);
    life.end(&site).await;
    assert_eq!(names(&site), NOTHING);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_without_a_bus_ends_when_it_is_given_up_or_the_client_is_closed() {
    let site = Site::start().await;
    let nowhere = StompOptions::new("127.0.0.1:1");
    let options = ConnectOptions {
        client_id: CLIENT.to_owned(),
    };
    let life = Life::on(&site, Bus::stomp(nowhere, options));
    let list = || life.client.get_file_ids(GetFileIds::new("books".into()));
    assert!(timeout(Duration::from_millis(100), list()).await.is_err());
    let waiting = list();
    let closing = async {
        tokio::task::yield_now().await;
        timeout(PLENTY, life.client.close()).await.unwrap();
    };
    let (started, ()) = tokio::join!(waiting, closing);
    assert!(matches!(started, Err(ClientError::Closed)), "{started:?}");
    life.end(&site).await;
    assert_eq!(names(&site), NOTHING);
}
