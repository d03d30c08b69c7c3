//! Connections that break while the broker goes on: over plain topics nothing is kept for whoever is away.

use pillarbox_client::{Outcome, PutFile, Source};
use pillarbox_messages::{ChecksumData, ChecksumType, FileId, Timestamp};
use tokio::time::timeout;

use crate::support::{
    PATIENCE,
    brokers::ActiveMq,
    joined::{Joined, LibraryClient, PILLARS, Scheme},
    md5, noise,
    proxy::Proxy,
    slow_exchange::SlowExchange,
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
