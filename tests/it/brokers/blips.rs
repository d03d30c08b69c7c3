//! Connections that break while the broker goes on: over plain topics nothing is kept for whoever is away.

use std::time::Duration;

use pillarbox_client::{EventKind, Outcome, PutFile, Source};
use pillarbox_messages::{ChecksumData, ChecksumType, FileId, Timestamp};
use tokio::time::timeout;

use crate::support::{
    PATIENCE,
    brokers::ActiveMq,
    joined::{Joined, LibraryClient, PILLARS, Scheme},
    md5, noise, pause,
    process::Running,
    proxy::Proxy,
    slow_exchange::SlowExchange,
    until,
};

/// Whoever waits for the end of these waits in vain.
const TIMEOUTS: [&str; 2] = ["3m", "10m"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pillar_whose_connection_broke_meanwhile_still_answers() {
    let broker = ActiveMq::shared();
    let site = Joined::with_timeouts(broker, Scheme::Reference, TIMEOUTS);
    let way = Proxy::before(broker.port());
    site.lead("node", way.port());
    let content = noise(61, 3 << 20);
    let exchange = SlowExchange::start(content.clone(), &[1 << 20; PILLARS.len()]);
    site.allow_host("node", &exchange.host());
    let _node = site.start("node");
    let client = LibraryClient::of(&site).await;
    let put = put_from(&client, "slow.bin", exchange.file_address(), &content);
    let running = client.client.put_file(put).await.expect("starts");
    let connections = tokio::task::block_in_place(|| {
        let stalled = PILLARS.map(|_| exchange.stalled());
        let connections = way.carried();
        way.cut();
        stalled.into_iter().for_each(|it| it.deliver());
        connections
    });
    let outcome = soon(running.outcome()).await;
    assert!(outcome.complete, "{}", outcome.last_event);
    assert!(way.carried() > connections);
    client.close().await;
}

/// Everybody loses the broker, and the client has it back three seconds before the pillars.
struct Apart {
    site: Joined,
    clients: Proxy,
    pillars: Proxy,
    _node: Running,
}

impl Apart {
    fn new() -> Self {
        let broker = ActiveMq::shared();
        let site = Joined::with_timeouts(broker, Scheme::Reference, TIMEOUTS);
        let [clients, pillars] = [(); 2].map(|()| Proxy::before(broker.port()));
        site.lead("node", pillars.port());
        let _node = site.start("node");
        Self {
            site,
            clients,
            pillars,
            _node,
        }
    }

    fn break_all(&self) {
        self.clients.close();
        self.pillars.close();
    }

    fn come_back_one_after_the_other(&self) {
        let before = self.clients.carried();
        self.clients.open();
        until("the client is back", || self.clients.carried() > before);
        pause(Duration::from_secs(3));
        self.pillars.open();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_ready_is_asked_until_the_pillars_are_back() {
    let apart = Apart::new();
    let client = LibraryClient::at(&apart.site, apart.clients.port()).await;
    apart.break_all();
    let content = noise(62, 2000);
    let file = apart.site.file("a.bin", &content);
    let id = FileId::from("a.bin");
    let put = PutFile::new(client.collection.clone(), id, Source::Path(file));
    let begun = tokio::spawn({
        let client = client.client.clone();
        async move { client.put_file(put).await.expect("starts").outcome().await }
    });
    tokio::task::block_in_place(|| apart.come_back_one_after_the_other());
    let outcome = soon(async { begun.await.expect("ends") }).await;
    assert!(outcome.complete, "{}", outcome.last_event);
    client.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_is_repeated_until_the_pillars_are_back() {
    let apart = Apart::new();
    let client = LibraryClient::at(&apart.site, apart.clients.port()).await;
    // So large that it is on its way to the exchange when all break off.
    let file = apart.site.file("b.bin", &noise(63, 32 << 20));
    let id = FileId::from("b.bin");
    let put = PutFile::new(client.collection.clone(), id, Source::Path(file));
    let running = client.client.put_file(put).await.expect("starts");
    let outcome = soon(running.outcome_with(|event| {
        if matches!(event.kind, EventKind::IdentificationComplete { .. }) {
            apart.break_all();
            apart.come_back_one_after_the_other();
        }
    }));
    let outcome = outcome.await;
    assert!(outcome.complete, "{}", outcome.last_event);
    client.close().await;
}

fn put_from(client: &LibraryClient, name: &str, address: String, content: &[u8]) -> PutFile {
    let size = Some(content.len() as u64);
    PutFile {
        checksum: Some(ChecksumData {
            checksum_spec: ChecksumType::Md5.into(),
            checksum_value: md5(content).parse().expect("hex"),
            calculation_timestamp: Timestamp::EPOCH,
        }),
        ..PutFile::new(
            client.collection.clone(),
            FileId::from(name),
            Source::Address { address, size },
        )
    }
}

/// What takes no longer than anything does that is not waited out.
async fn soon(outcome: impl Future<Output = Outcome>) -> Outcome {
    let ended = timeout(PATIENCE, outcome).await;
    ended.expect("it waits for its timeout")
}
