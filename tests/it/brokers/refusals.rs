//! Messages that the broker refuses: it closes the connection over them.

use std::time::Duration;

use pillarbox_client::{PutFile, Source};
use pillarbox_messages::FileId;

use crate::support::{
    PATIENCE,
    brokers::{ActiveMq, RabbitMq},
    joined::{Joined, LibraryClient, Scheme},
    process::succeed,
    proxy::Proxy,
    raw_peer::{document, file_ids},
    stomp::Stomp,
};

/// The answer is to go to a temporary queue that is gone, and would come again for ever.
#[test]
fn a_request_whose_answer_the_broker_refuses_is_given_up() {
    let broker = ActiveMq::shared();
    let site = Joined::new(broker, Scheme::Collection);
    site.play_only(&["north"]);
    let way = Proxy::before(broker.port());
    site.lead("node", way.port());
    let _node = site.start("node");
    let mut alarms = Stomp::connect(broker.port(), None);
    alarms.subscribe(&format!("{}.alarms", site.topic()));
    let mut stranger = Stomp::connect(broker.port(), None);
    let kind = "GetFileIDsRequest";
    let headers = [
        ("org.bitrepository.messages.type", kind),
        ("reply-to", "/remote-temp-queue/ID:gone-1-2-3:4:1"),
        ("persistent", "true"),
    ];
    let connections = way.carried();
    let request = request(&site, kind);
    stranger.send(&site.requests_of("north"), &headers, request.as_bytes());
    let alarm = alarms.message(PATIENCE).expect("an alarm").text();
    for words in ["COMPONENT_FAILURE", kind, "hopeless", "stays unanswered"] {
        assert!(alarm.contains(words), "'{words}' is not in: {alarm}");
    }
    let lost = way.carried() - connections;
    println!("{lost} connections");
    assert!(lost <= 6, "{lost} connections");
    // That was the only alarm, and others have their answers.
    let north = site.name("north");
    succeed(&site.run("get-file-ids", ["-p", &north]));
    assert!(alarms.message(Duration::from_secs(3)).is_none());
    assert_eq!(way.carried(), connections + lost);
}

/// RabbitMQ closes the connection over a frame of more than 4 MiB.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_is_no_larger_than_the_broker_takes() {
    let broker = RabbitMq::shared();
    let site = Joined::new(broker, Scheme::Collection);
    let _node = site.start("node");
    let client = LibraryClient::of(&site).await;
    // Each of these becomes 1.4 MiB in a message, and so more than fits into one together.
    for name in ["a.bin", "b.bin", "c.bin"] {
        let file = site.file(name, name.as_bytes());
        let put = PutFile {
            audit_trail_information: Some("&".repeat(300_000)),
            ..PutFile::new(
                client.collection.clone(),
                FileId::from(name),
                Source::Path(file),
            )
        };
        let running = client.client.put_file(put).await.expect("starts");
        let outcome = running.outcome().await;
        assert!(outcome.complete, "{}", outcome.last_event);
    }
    client.close().await;
    tokio::task::block_in_place(|| {
        let north = site.name("north");
        let trail = succeed(&site.run("get-audit-trails", ["-p", &north]));
        assert_eq!(trail.matches("PUT_FILE").count(), 3);
    });
}

fn request(site: &Joined, kind: &str) -> String {
    let pillar = site.name("north");
    let collection = site.collection();
    let all = file_ids(None);
    document(
        kind,
        &format!(
            "<CorrelationID>hopeless</CorrelationID><CollectionID>{collection}</CollectionID>\
             <Destination>queue://{collection}.{pillar}</Destination>\
             <ReplyTo>temporary-queue://gone</ReplyTo><From>stranger</From><To>{pillar}</To>\
             <PillarID>{pillar}</PillarID>{all}"
        ),
    )
}
