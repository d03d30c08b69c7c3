//! Operations that go well.

use std::{num::NonZeroU64, path::PathBuf};

use pillarbox_bus::Outgoing;
use pillarbox_messages::{Destination, DestinationKind, Message};

use super::{
    site::{PLENTY, Site},
    stand_in::Temper,
};
use crate::{
    Client, ClientError, ClientOptions, ComponentResult, Event, EventKind, GetFile, GetFileIds,
    PutFile, Running, Source, Transferred,
    task::{EVENTS_PILED, EVENTS_WAITING},
};

pub(super) fn source(site: &Site, content: &[u8]) -> PathBuf {
    let path = site.directory.path().join("source");
    std::fs::write(&path, content).unwrap();
    path
}

pub(super) fn put(path: PathBuf) -> PutFile {
    PutFile::new("books".into(), "hello.txt".into(), Source::Path(path))
}

pub(super) async fn events(running: &mut Running) -> Vec<Event> {
    let mut all = Vec::new();
    let reading = async {
        while let Some(event) = running.next_event().await {
            let last = event.is_final();
            all.push(event);
            if last {
                break;
            }
        }
    };
    tokio::time::timeout(PLENTY, reading)
        .await
        .expect("the operation does not end");
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_goes_round() {
    let site = Site::start().await;
    let north = site.pillar("north", Temper::Honest).await;
    let south = site.pillar("south", Temper::Honest).await;
    let client = site.client("reader", false, PLENTY);
    let running = client
        .put_file(put(source(&site, b"hello, world")))
        .await
        .unwrap();
    let outcome = running.outcome().await;
    assert!(outcome.complete, "{outcome:?}");
    assert_eq!(outcome.results.len(), 2);
    for pillar in [&north, &south] {
        assert_eq!(&pillar.file("hello.txt").unwrap()[..], b"hello, world");
        // Nothing but its response says where the stand-in wants to be asked.
        assert_eq!(pillar.count("PutFileRequest"), 1);
    }
    assert_eq!(site.offers(), 0, "the offer is removed");

    let target = site.directory.path().join("target");
    std::fs::write(&target, "what was here before").unwrap();
    let get = GetFile::new("books".into(), "hello.txt".into(), target.clone());
    let mut running = client.get_file(get).await.unwrap();
    events(&mut running).await;
    let all = Transferred {
        bytes: 12,
        total: 12,
    };
    assert_eq!(running.transferred(), all);
    let outcome = running.outcome().await;
    assert!(outcome.complete, "{outcome:?}");
    assert_eq!(std::fs::read(&target).unwrap(), b"hello, world");
    assert_eq!(site.offers(), 0);
    assert_eq!(
        north.count("GetFileRequest") + south.count("GetFileRequest"),
        1
    );
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_file_goes_round() {
    let site = Site::start().await;
    let _north = site.pillar("north", Temper::Honest).await;
    let _south = site.pillar("south", Temper::Honest).await;
    let client = site.client("reader", false, PLENTY);
    let outcome = client
        .put_file(put(source(&site, b"")))
        .await
        .unwrap()
        .outcome()
        .await;
    assert!(outcome.complete, "{outcome:?}");
    let target = site.directory.path().join("target");
    let get = GetFile::new("books".into(), "hello.txt".into(), target.clone());
    assert!(client.get_file(get).await.unwrap().outcome().await.complete);
    assert_eq!(std::fs::read(&target).unwrap(), b"");
}

#[tokio::test(flavor = "multi_thread")]
async fn putting_it_again_moves_nothing() {
    let site = Site::start().await;
    let north = site.pillar("north", Temper::Honest).await;
    let south = site.pillar("south", Temper::Honest).await;
    north.keep("hello.txt", b"hello, world");
    south.keep("hello.txt", b"hello, world");
    let client = site.client("reader", false, PLENTY);
    let outcome = client
        .put_file(put(source(&site, b"hello, world")))
        .await
        .unwrap()
        .outcome()
        .await;
    assert!(outcome.complete, "{outcome:?}");
    let other = client
        .put_file(put(source(&site, b"something else")))
        .await
        .unwrap()
        .outcome()
        .await;
    assert!(!other.complete);
    assert_eq!(&north.file("hello.txt").unwrap()[..], b"hello, world");
    assert_eq!(
        north.count("PutFileRequest") + south.count("PutFileRequest"),
        0
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_corrupt_delivery_is_fetched_from_the_next_pillar() {
    let site = Site::start().await;
    let north = site.pillar("north", Temper::Honest).await;
    let south = site.pillar("south", Temper::Corrupt).await;
    let client = site.client("reader", false, PLENTY);
    let target = site.directory.path().join("fetched/target");
    std::fs::create_dir(target.parent().unwrap()).unwrap();
    let get = GetFile::new("books".into(), "hello.txt".into(), target.clone());

    south.keep("hello.txt", b"hello, world");
    let outcome = client.get_file(get.clone()).await.unwrap().outcome().await;
    assert!(!outcome.complete);
    assert!(
        outcome
            .info
            .unwrap()
            .contains("south: delivered bytes that do not match its checksum: theirs is")
    );
    let left = std::fs::read_dir(target.parent().unwrap()).unwrap().count();
    assert_eq!(left, 0, "neither target nor temporary file");

    north.keep("hello.txt", b"hello, world");
    let outcome = client.get_file(get).await.unwrap().outcome().await;
    assert!(outcome.complete, "{outcome:?}");
    assert_eq!(outcome.failures.len(), 1, "south is named all the same");
    assert_eq!(std::fs::read(&target).unwrap(), b"hello, world");
    assert_eq!(site.offers(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listing_page_by_page_and_a_reader_that_takes_its_time() {
    const FILES: usize = 150;
    let site = Site::start().await;
    let north = site.pillar("north", Temper::Honest).await;
    for number in 0..FILES {
        north.keep(&format!("f{number:04}"), b"1");
    }
    let client = site.client("reader", false, PLENTY);
    let mut request = GetFileIds::new("books".into());
    request.pillars = Some(vec!["north".into()]);
    request.page_size = NonZeroU64::new(1).unwrap();
    let mut running = client.get_file_ids(request).await.unwrap();
    // Enough pages that the conversation has to wait for its reader, while another one does not.
    north
        .hears(|message| matches!(message, Message::GetFileIdsRequest(_)))
        .await;
    let mut one = GetFileIds::new("books".into());
    one.pillars = Some(vec!["north".into()]);
    assert!(
        client
            .get_file_ids(one)
            .await
            .unwrap()
            .outcome()
            .await
            .complete
    );
    let mut listed = Vec::new();
    for event in events(&mut running).await {
        if let EventKind::Progress {
            result: Some(ComponentResult::FileIds(page)),
            ..
        }
        | EventKind::ComponentComplete {
            result: ComponentResult::FileIds(page),
            ..
        } = event.kind
        {
            listed.extend(page.items.into_iter().map(|item| item.file_id.to_string()));
        }
    }
    let expected: Vec<String> = (0..FILES).map(|number| format!("f{number:04}")).collect();
    assert_eq!(listed, expected);
    assert!(running.outcome().await.complete);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_named_client_acknowledges_what_it_has_taken() {
    let site = Site::start().await;
    let _north = site.pillar("north", Temper::Honest).await;
    let _south = site.pillar("south", Temper::Honest).await;
    let client = site.client("ingest", true, PLENTY);
    let outcome = client
        .put_file(put(source(&site, b"hello, world")))
        .await
        .unwrap()
        .outcome()
        .await;
    assert!(outcome.complete, "{outcome:?}");
    let stats = site.broker.stats();
    assert_eq!((stats.messages, stats.in_flight), (0, 0), "{stats:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_is_closed_waits_for_no_reader_and_holds_no_message() {
    // As many pages as there is room for, after the four events before the first, and one more.
    const REQUESTS: u64 = (EVENTS_WAITING + EVENTS_PILED) as u64 - 4 + 1;
    let site = Site::start().await;
    let north = site.pillar("north", Temper::Honest).await;
    for number in 0..150 {
        north.keep(&format!("f{number:04}"), b"1");
    }
    let client = site.client("ingest", true, PLENTY);
    let mut request = GetFileIds::new("books".into());
    request.pillars = Some(vec!["north".into()]);
    request.page_size = NonZeroU64::new(1).unwrap();
    let mut running = client.get_file_ids(request).await.unwrap();
    // Nobody reads the events: the conversation stops reading too, and the last page that was asked for waits.
    until(|| {
        let stats = site.broker.stats();
        stats.delivered == 2 + 2 * REQUESTS && stats.in_flight == 1
    })
    .await;
    tokio::time::timeout(PLENTY, client.close())
        .await
        .expect("closing waits for the reader");
    until(|| site.broker.stats().in_flight == 0).await;
    assert_eq!(site.broker.stats().messages, 0);
    let last = events(&mut running).await.pop().unwrap();
    assert!(matches!(last.kind, EventKind::Failed { .. }), "{last}");
    assert!(!running.outcome().await.complete);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_change_of_a_file_at_a_time() {
    let site = Site::start().await;
    let north = site.pillar("north", Temper::Stuck).await;
    let client = site.client("reader", false, PLENTY);
    let path = source(&site, b"hello, world");
    let first = client.put_file(put(path.clone())).await.unwrap();
    let second = client.put_file(put(path.clone())).await;
    assert!(matches!(second, Err(ClientError::Busy(_))), "{second:?}");
    first.cancel();
    assert!(!first.outcome().await.complete);
    let third = client.put_file(put(path)).await.unwrap();
    third.cancel();
    assert!(!third.outcome().await.complete);
    drop(north);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pillar_behind_a_temporary_queue() {
    let site = Site::start().await;
    let temporary = Destination::new(DestinationKind::TemporaryQueue, "north");
    let north = site.pillar_at("north", Temper::Honest, temporary).await;
    let _south = site.pillar("south", Temper::Honest).await;
    let client = site.client("reader", false, PLENTY);
    let outcome = client
        .put_file(put(source(&site, b"hello, world")))
        .await
        .unwrap()
        .outcome()
        .await;
    assert!(outcome.complete, "{outcome:?}");
    assert_eq!(north.count("PutFileRequest"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_named_client_that_comes_back_clears_what_has_waited_for_it() {
    let site = Site::start().await;
    let _north = site.pillar("north", Temper::Honest).await;
    let _south = site.pillar("south", Temper::Honest).await;
    let options = ClientOptions {
        named: true,
        ..site.options("ingest", PLENTY)
    };
    let bus = options.bus.clone();
    let client = Client::connect(options).unwrap();
    let path = source(&site, b"hello, world");
    assert!(
        client
            .put_file(put(path.clone()))
            .await
            .unwrap()
            .outcome()
            .await
            .complete
    );
    client.close().await;
    drop(client);
    bus.close().await.unwrap();

    let mut late = Outgoing::new(Destination::topic("books.client.ingest"), "too late");
    late.persistent = true;
    site.bus("somebody").publish(late).await.unwrap();
    assert_eq!(site.broker.stats().messages, 1);

    let client = site.client("ingest", true, PLENTY);
    assert!(
        client
            .put_file(put(path))
            .await
            .unwrap()
            .outcome()
            .await
            .complete
    );
    client.close().await;
    until(|| site.broker.stats().messages == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_share_a_destination_hear_only_what_is_theirs() {
    let shared = "[destinations]\nclient = \"topic://{collection}.client\"\n";
    let site = Site::start_with(shared).await;
    let north = site.pillar("north", Temper::Honest).await;
    let _south = site.pillar("south", Temper::Honest).await;
    let path = source(&site, b"hello, world");
    let mut running = Vec::new();
    for number in 0..10 {
        let client = site.client(&format!("reader-{number}"), false, PLENTY);
        let mut request = put(path.clone());
        request.file_id = format!("file-{number}").into();
        running.push(client.put_file(request).await.unwrap());
    }
    for (number, running) in running.into_iter().enumerate() {
        let outcome = running.outcome().await;
        assert!(outcome.complete, "{outcome:?}");
        assert!(north.file(&format!("file-{number}")).is_some());
    }
    assert_eq!(north.count("PutFileRequest"), 10);
    assert_eq!(site.offers(), 0);
}

/// Waits for something that happens soon.
pub(super) async fn until(happened: impl Fn() -> bool + Send + Sync) {
    let looking = async {
        while !happened() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PLENTY, looking)
        .await
        .expect("it has not happened");
}
