//! Operations that don't go well, and peers that misbehave.

use std::time::{Duration, Instant};

use pillarbox_bus::Outgoing;
use pillarbox_exchange::{AddressPolicy, ExchangeClient, OfferSpace, client};
use pillarbox_messages::{
    ChecksumType, CorrelationId, Destination, Header, IdentifyPillarsForPutFileResponse, Message,
    ProtocolVersion, ResponseCode, ResponseInfo,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use super::{
    operations::{events, put, source, until},
    site::{PLENTY, Site},
    stand_in::Temper,
};
use crate::{
    Client, ClientError, ClientOptions, EventKind, GetFile, Transferred,
    digests::{Hasher, plain_spec},
    meter::Meter,
    source as reading,
    transfer::{Offered, offer},
};

const SHORT: Duration = Duration::from_millis(1500);

#[tokio::test(flavor = "multi_thread")]
async fn a_mute_pillar_is_named_and_costs_one_timeout() {
    let site = Site::start().await;
    let north = site.pillar("north", Temper::Honest).await;
    let _mute = site.pillar("south", Temper::Mute).await;
    let client = site.client("reader", false, SHORT);
    let started = Instant::now();
    let mut running = client
        .put_file(put(source(&site, b"hello, world")))
        .await
        .unwrap();
    let names: Vec<String> = events(&mut running)
        .await
        .iter()
        .map(|event| match event.kind.contributor() {
            Some(contributor) => format!("{} {contributor}", event.kind.name()),
            None => event.kind.name().to_owned(),
        })
        .collect();
    let taken = started.elapsed();
    assert_eq!(
        names,
        [
            "IDENTIFY_REQUEST_SENT",
            "COMPONENT_IDENTIFIED north",
            "IDENTIFY_TIMEOUT",
            "COMPONENT_FAILED south",
            "IDENTIFICATION_COMPLETE",
            "REQUEST_SENT",
            "PROGRESS north",
            "COMPONENT_COMPLETE north",
            "FAILED",
        ]
    );
    assert!(taken >= SHORT, "{taken:?}");
    let outcome = running.outcome().await;
    assert!(outcome.info.unwrap().contains("south"));
    assert_eq!(&north.file("hello.txt").unwrap()[..], b"hello, world");
    assert_eq!(site.offers(), 0, "removed after a failure too");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pillar_that_gets_stuck() {
    let site = Site::start().await;
    let _north = site.pillar("north", Temper::Honest).await;
    let _south = site.pillar("south", Temper::Stuck).await;
    let client = site.client("reader", false, SHORT);
    let running = client
        .put_file(put(source(&site, b"hello, world")))
        .await
        .unwrap();
    let outcome = running.outcome().await;
    assert!(!outcome.complete);
    let failed: Vec<&str> = outcome
        .failures
        .iter()
        .map(|it| it.contributor.as_str())
        .collect();
    assert_eq!(failed, ["south"]);
    assert_eq!(outcome.results.len(), 1);
    assert_eq!(site.offers(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_response_that_can_not_be_used_is_told_of_and_no_harm_to_the_others() {
    let site = Site::start().await;
    let north = site.pillar("north", Temper::Honest).await;
    let _south = site.pillar("south", Temper::Garbled).await;
    let client = site.client("reader", false, SHORT);
    let running = client.put_file(put(source(&site, b"hello, world")));
    let mut running = running.await.unwrap();
    let events = events(&mut running).await;
    let warning = events
        .iter()
        .find(|event| event.kind.name() == "WARNING")
        .unwrap();
    assert_eq!(warning.kind.contributor().unwrap().as_str(), "south");
    let told = warning.info.as_deref().unwrap();
    let named = "its IdentifyPillarsForPutFileResponse can't be read: ";
    assert!(told.contains(named) && told.contains("PillarID"), "{told}");
    let outcome = running.outcome().await;
    assert!(!outcome.complete);
    assert_eq!(outcome.results.len(), 1, "{outcome:?}");
    assert_eq!(outcome.results[0].contributor, *north.id());
    assert_eq!(outcome.failures.len(), 1, "{outcome:?}");
    let failure = &outcome.failures[0];
    assert_eq!(failure.contributor.as_str(), "south");
    assert!(failure.text.contains(told), "{outcome:?}");
    assert!(north.file("hello.txt").is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_and_nonsense_change_nothing() {
    let site = Site::start().await;
    let north = site.pillar("north", Temper::Honest).await;
    let south = site.pillar("south", Temper::Stuck).await;
    let client = site.client("reader", false, PLENTY);
    let running = client
        .put_file(put(source(&site, b"hello, world")))
        .await
        .unwrap();
    let asked = |message: &Message| matches!(message, Message::PutFileRequest(_));
    south.hears(asked).await;
    north.hears(asked).await;
    let at = Destination::topic("books.client.reader");
    let bus = site.bus("stranger");
    bus.publish(Outgoing::new(at.clone(), "no message at all"))
        .await
        .unwrap();
    let correlations = [running.correlation().clone(), CorrelationId::random()];
    for correlation_id in correlations {
        let message = Message::from(IdentifyPillarsForPutFileResponse {
            header: Header {
                version: ProtocolVersion::CURRENT,
                correlation_id,
                collection_id: Some("books".into()),
                destination: at.clone(),
                reply_to: Destination::queue("nowhere"),
                from: "stranger".into(),
                to: Some("reader".into()),
            },
            response_info: ResponseInfo {
                response_code: ResponseCode::Failure,
                response_text: None,
            },
            pillar_id: "stranger".into(),
            file_id: Some("hello.txt".into()),
            pillar_checksum_spec: None,
            checksum_data_for_existing_file: None,
            time_to_deliver: None,
        });
        bus.publish(Outgoing::new(at.clone(), message.to_xml()))
            .await
            .unwrap();
    }
    running.cancel();
    let outcome = running.outcome().await;
    assert_eq!(outcome.info.as_deref(), Some("canceled"));
    assert!(outcome.failures.is_empty(), "{outcome:?}");
    assert_eq!(site.offers(), 0, "removed when canceled too");
}

#[tokio::test(flavor = "multi_thread")]
async fn u49_a_handler_that_panics_breaks_nothing() {
    let site = Site::start().await;
    let _north = site.pillar("north", Temper::Honest).await;
    let _south = site.pillar("south", Temper::Honest).await;
    let client = site.client("reader", false, PLENTY);
    let running = client
        .put_file(put(source(&site, b"hello, world")))
        .await
        .unwrap();
    let mut heard = 0;
    let outcome = running
        .outcome_with(|event| {
            heard += 1;
            assert!(
                !matches!(event.kind, EventKind::ComponentComplete { .. }),
                "as wanted"
            );
        })
        .await;
    assert!(outcome.complete, "{outcome:?}");
    assert!(heard > 5, "the events after the panic come too");
    let target = site.directory.path().join("target");
    let get = GetFile::new("books".into(), "hello.txt".into(), target);
    assert!(client.get_file(get).await.unwrap().outcome().await.complete);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_operation_goes_on_and_a_closed_client_ends_all() {
    let site = Site::start().await;
    let north = site.pillar("north", Temper::Honest).await;
    let south = site.pillar("south", Temper::Stuck).await;
    let client = site.client("reader", false, PLENTY);
    let path = source(&site, b"hello, world");
    drop(client.put_file(put(path.clone())).await.unwrap());
    south
        .hears(|message| matches!(message, Message::PutFileRequest(_)))
        .await;
    north
        .hears(|message| matches!(message, Message::PutFileRequest(_)))
        .await;
    client.close().await;
    assert_eq!(site.offers(), 0);
    assert!(matches!(
        client.put_file(put(path)).await,
        Err(ClientError::Closed)
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bus_that_goes_away_ends_the_operation() {
    let site = Site::start().await;
    let south = site.pillar("south", Temper::Stuck).await;
    let client = site.client("reader", false, PLENTY);
    let running = client
        .put_file(put(source(&site, b"hello, world")))
        .await
        .unwrap();
    south
        .hears(|message| message.message_type().is_identify_request())
        .await;
    site.broker.shutdown().await;
    let outcome = tokio::time::timeout(PLENTY, running.outcome())
        .await
        .unwrap();
    assert_eq!(
        outcome.info.as_deref(),
        Some("the connection to the bus is closed")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pillar_that_only_says_that_it_has_delivered() {
    let site = Site::start().await;
    let north = site.pillar("north", Temper::Boastful).await;
    let south = site.pillar("south", Temper::Boastful).await;
    north.keep("hello.txt", b"hello, world");
    south.keep("hello.txt", b"hello, world");
    let client = site.client("reader", false, PLENTY);
    let target = site.directory.path().join("target");
    let get = GetFile::new("books".into(), "hello.txt".into(), target.clone());
    let outcome = client.get_file(get).await.unwrap().outcome().await;
    assert!(!outcome.complete);
    assert_eq!(outcome.failures.len(), 2, "{outcome:?}");
    assert!(outcome.failures[0].text.contains("404"), "{outcome:?}");
    assert!(!target.exists());
}

/// An exchange that never comes to an end.
async fn endless_exchange() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let mut request = vec![0; 4096];
                let count = stream.read(&mut request).await.unwrap();
                let answer: &[u8] = if request[..count].starts_with(b"GET") {
                    b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nfirst bytes"
                } else {
                    b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"
                };
                stream.write_all(answer).await.unwrap();
                let _ = stream.read(&mut request).await;
            });
        }
    });
    base
}

#[tokio::test(flavor = "multi_thread")]
async fn a_canceled_download_leaves_nothing() {
    let site = Site::start().await;
    let north = site.pillar("north", Temper::Boastful).await;
    let _south = site.pillar("south", Temper::Honest).await;
    north.keep("hello.txt", b"hello, world");
    let base = endless_exchange().await;
    let policy = AddressPolicy::for_exchange(&base).unwrap();
    let client = Client::connect(ClientOptions {
        exchange: ExchangeClient::new(&client::ClientOptions::new(policy)).unwrap(),
        exchange_base: Some(base),
        ..site.options("reader", PLENTY)
    })
    .unwrap();
    let directory = site.directory.path().join("fetched");
    std::fs::create_dir(&directory).unwrap();
    let get = GetFile::new("books".into(), "hello.txt".into(), directory.join("target"));
    let running = client.get_file(get).await.unwrap();
    let entries = || std::fs::read_dir(&directory).unwrap().count();
    until(|| entries() == 1).await;
    running.cancel();
    assert!(!running.outcome().await.complete);
    assert_eq!(entries(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_changes_while_it_is_put() {
    let site = Site::start().await;
    let path = source(&site, b"hello, world");
    let spec = plain_spec(ChecksumType::Md5);
    for spec in [None, Some(&spec)] {
        std::fs::write(&path, "hello, world").unwrap();
        let opened = reading::open(&path, None).await.unwrap();
        std::fs::write(&path, "hello, world, and more").unwrap();
        let address = OfferSpace::new(&site.base).address_for("hello.txt");
        let (file, exchange) = (Ok(Offered::Large(opened.file)), site.exchange.clone());
        let offered = offer(exchange, file, opened.size, address, spec, Meter::default()).await;
        let text = offered.unwrap_err();
        assert!(text.contains("12") && text.contains("22"), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_checksum_computed_on_the_way_is_that_of_the_file() {
    let site = Site::start().await;
    let content = b"0123456789".repeat(100_000);
    let path = source(&site, &content);
    let spec = plain_spec(ChecksumType::Sha1);
    let opened = reading::open(&path, Some(&spec)).await.unwrap();
    assert_eq!(opened.checksum, None, "it is large");
    let address = OfferSpace::new(&site.base).address_for("hello.txt");
    let (read, exchange) = (opened.file.try_clone(), site.exchange.clone());
    let meter = Meter::default();
    let offered = offer(
        exchange,
        Ok(Offered::Large(opened.file)),
        opened.size,
        address.clone(),
        Some(&spec),
        meter.clone(),
    );
    let on_the_way = offered.await.unwrap().unwrap();
    let mut hasher = Hasher::new(&spec).unwrap();
    hasher.update(&content);
    assert_eq!(on_the_way, hasher.finish());
    let size = content.len() as u64;
    let all = Transferred {
        bytes: size,
        total: size,
    };
    assert_eq!(meter.read(), all);
    assert_eq!(reading::examine(read, &spec).await.unwrap(), on_the_way);
    let download = site.exchange.get(&address).await.unwrap();
    assert_eq!(download.bytes(content.len()).await.unwrap(), content);
}
