use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::service::intake::{Key, OPERATIONS};

/// A server that takes connections and says nothing.
pub(super) struct Silent {
    listener: TcpListener,
    connections: Vec<TcpStream>,
}

impl Silent {
    pub(super) async fn listen() -> Self {
        Self {
            listener: TcpListener::bind("127.0.0.1:0").await.unwrap(),
            connections: Vec::new(),
        }
    }

    pub(super) fn host(&self) -> String {
        self.listener.local_addr().unwrap().to_string()
    }

    pub(super) fn address(&self) -> String {
        format!("http://{}/a", self.host())
    }

    pub(super) async fn takes(&mut self, count: usize) {
        while self.connections.len() < count {
            let accepted = tokio::time::timeout(SOON, self.listener.accept());
            self.connections.push(accepted.await.unwrap().unwrap().0);
        }
    }
}

#[test]
fn only_changes_of_a_file_wait_for_each_other() {
    let header = |correlation: &str| Header {
        version: pillarbox_messages::ProtocolVersion::CURRENT,
        correlation_id: correlation.into(),
        collection_id: Some("books".into()),
        destination: Destination::queue("books.north"),
        reply_to: Destination::topic("client"),
        from: "ingest-1".into(),
        to: None,
    };
    let put = |correlation: &str| {
        Key::of(&Message::from(PutFileRequest {
            header: header(correlation),
            audit_trail_information: None,
            pillar_id: None,
            file_id: "a.tif".into(),
            file_address: DEAD.to_owned(),
            file_size: None,
            checksum_data_for_new_file: None,
            checksum_request_for_new_file: None,
        }))
    };
    let replace = Key::of(&Message::from(ReplaceFileRequest {
        header: header("c-3"),
        audit_trail_information: None,
        pillar_id: None,
        file_id: "a.tif".into(),
        checksum_data_for_existing_file: None,
        checksum_request_for_existing_file: None,
        file_address: DEAD.to_owned(),
        file_size: 1,
        checksum_data_for_new_file: None,
        checksum_request_for_new_file: None,
    }));
    let delete = Key::of(&Message::from(DeleteFileRequest {
        header: header("c-4"),
        audit_trail_information: None,
        pillar_id: None,
        file_id: "a.tif".into(),
        checksum_data_for_existing_file: None,
        checksum_request_for_existing_file: None,
    }));
    let get = |correlation: &str| {
        Key::of(&Message::from(GetFileRequest {
            header: header(correlation),
            audit_trail_information: None,
            pillar_id: None,
            file_id: "a.tif".into(),
            file_part: None,
            file_address: DEAD.to_owned(),
        }))
    };
    assert_eq!(put("c-1"), put("c-2"));
    assert_eq!(put("c-1"), replace);
    assert_eq!(put("c-1"), delete);
    assert_ne!(put("c-1"), get("c-1"));
    assert_ne!(get("c-1"), get("c-2"));
    assert_eq!(get("c-1"), get("c-1"));
}

#[tokio::test]
async fn a_pillar_full_of_stuck_transfers_still_identifies_and_gives_them_back() {
    let mut silent = Silent::listen().await;
    let mut site = Site::with_hosts(&[silent.host()]).await;
    site.put("a.tif", b"one").await;
    let requests = OPERATIONS.parallel + 8;
    for _ in 0..requests {
        site.send(site.get_request("a.tif", &silent.address()))
            .await;
    }
    silent.takes(OPERATIONS.parallel).await;
    for _ in 0..OPERATIONS.parallel {
        assert_eq!(code(&site.next_answer().await), ACCEPTED);
    }
    for request in [
        Message::from(site.identify_get("a.tif")),
        Message::from(site.identify_put("b.tif")),
    ] {
        assert_eq!(site.refused(request).await, POSITIVE);
    }

    // All of them return, as if they had never been taken.
    site.pillar.shutdown(Duration::from_millis(10)).await;
    drop(silent);
    let bus = connect(&site.broker, "north");
    let request = SubscribeRequest {
        ack_timeout: None,
        destination: site
            .repository
            .destinations(&"books".into())
            .pillar(&"north".into()),
        durable: None,
        ack: AckMode::Individual,
        prefetch: 100,
    };
    let mut queue = bus.subscribe(request).await.unwrap();
    for _ in 0..requests {
        let delivery = tokio::time::timeout(SOON, queue.next())
            .await
            .unwrap()
            .unwrap();
        assert_eq!(delivery.message.backout_count, 0);
    }
}

#[tokio::test]
async fn a_request_that_comes_again_while_it_is_worked_on_is_done_once() {
    let mut site = Site::open().await;
    let request = site.put_request("a.tif", b"one").await;
    for _ in 0..3 {
        site.send(request.clone()).await;
    }
    let mut finals = Vec::new();
    while finals.len() < 3 {
        let answer = site.next_answer().await;
        if code(&answer) != ACCEPTED {
            finals.push(answer);
        }
    }
    assert_eq!(code(&finals[0]), COMPLETED);
    assert!(finals.iter().all(|answer| *answer == finals[0]));
    let trail = site
        .index()
        .audit(AuditQuery::from_number("books".into(), 1))
        .await
        .unwrap();
    assert_eq!(trail.len(), 1);
}

#[tokio::test]
async fn a_long_correlation_id_is_answered_once() {
    let mut site = Site::open().await;
    let mut request = site.put_request("a.tif", b"one").await;
    request.header.correlation_id = "c".repeat(1_000).as_str().into();
    assert_eq!(codes(&site.ask(request).await), [ACCEPTED, COMPLETED]);
    // Nothing else is on its way.
    assert_eq!(site.refused(site.identify_get("a.tif")).await, POSITIVE);
}

#[tokio::test]
async fn identify_requests_in_the_pillars_queue_do_not_stop_it() {
    let mut site = Site::open().await;
    for _ in 0..=PREFETCH {
        let mut request = site.identify_put("a.tif");
        request.header = site.header();
        assert_eq!(site.refused(request).await, POSITIVE);
    }
    site.put("a.tif", b"one").await;
}

#[tokio::test]
async fn a_pillar_starts_again_where_it_ended() {
    let mut site = Site::open().await;
    let request = site.put_request("a.tif", b"one").await;
    let stored = site.ask(request.clone()).await.pop();
    let refused = Pillar::start(options_of(
        site.directory.path(),
        &site.repository,
        // The bus refuses a second "north"; another bus would not.
        &site.broker_elsewhere().await,
        &site.exchange,
    ));
    assert!(matches!(
        refused.await,
        Err(PillarError::Archive(ArchiveError::InUse(_)))
    ));
    site.pillar.shutdown(SOON).await;
    let again = Pillar::start(options_of(
        site.directory.path(),
        &site.repository,
        &site.broker,
        &site.exchange,
    ));
    site.pillar = again.await.unwrap();
    assert_eq!(site.ask(request).await.pop(), stored);
}

/// A disk whose name is misspelt hides its files: they must neither be taken for lost, nor be put again.
#[tokio::test]
async fn a_pillar_does_not_start_without_a_directory_that_has_files() {
    let mut site = Site::open().await;
    site.put("x1", b"one").await;
    let [archive, more, typo] =
        ["archive", "more", "moer"].map(|it| site.directory.path().join(it));
    site.pillar.shutdown(SOON).await;
    let options = || {
        let (broker, exchange) = (&site.broker, &site.exchange);
        options_of(site.directory.path(), &site.repository, broker, exchange)
    };
    let mut misspelt = options();
    misspelt.settings.directories = vec![more.clone(), typo.clone()];
    let bus = misspelt.bus.clone();
    let refused = Pillar::start(misspelt).await.unwrap_err();
    bus.close().await.unwrap();
    assert!(
        matches!(refused, PillarError::ArchiveUnlisted { .. }),
        "{refused}"
    );
    assert!(!more.exists() && !typo.exists());
    let mut right = options();
    right.settings.directories = vec![more, archive];
    site.pillar = Pillar::start(right).await.unwrap();
    let request = site.put_request("x1", b"another").await;
    assert_eq!(site.refused(request).await, DUPLICATE);
}

impl Site {
    pub(super) async fn broker_elsewhere(&self) -> Broker {
        let directory = self.directory.path().join("other bus");
        Broker::open(BrokerOptions::new(directory, SystemClock::shared()))
            .await
            .unwrap()
    }
}
