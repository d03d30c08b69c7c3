//! One collection whose pillars take requests from a queue, a topic and a temporary queue.

use std::{collections::BTreeMap, fs, time::Duration};

use pillarbox_messages::{
    CorrelationId, Destination, DestinationKind, IdentifyPillarsForPutFileRequest, Message,
    ResponseCode,
};

use crate::support::{
    md5,
    peers::{Ear, Peer, Put, books, is},
    process::{Running, stderr, succeed},
    site::Site,
    stomp::Stomp,
    whole,
};

/// By the kind of their destinations: a queue, as everywhere, a topic, a temporary queue.
const PILLARS: [&str; 3] = [QUEUE, TOPIC, TEMPORARY];
const QUEUE: &str = "north";
const TOPIC: &str = "south";
const TEMPORARY: &str = "east";
const DESTINATIONS: &str =
    r#"pillar_destinations = { south = "topic://books.south", east = "temporary-queue://east" }"#;

const OLD: &[u8] = b"three ways to be asked\n";
const NEW: &[u8] = b"and one answer\n";

fn start() -> (Site, Vec<Running>) {
    let site = Site::with_collection(&PILLARS, DESTINATIONS);
    let parts = ["hub", QUEUE, TOPIC, TEMPORARY].map(|part| site.start(part));
    (site, parts.into())
}

#[test]
fn all_eight_operations_reach_pillars_of_every_kind() {
    let (site, _parts) = start();
    let mut heard = Stomp::connect(site.bus_port, None);
    heard.subscribe("/topic/books.south");
    site.file("a.txt", OLD);
    site.file("new.txt", NEW);
    succeed(&site.run("put-file", ["-f", "a.txt"]));
    let listed = succeed(&site.run("get-file-ids", ["-i", "a.txt"]));
    let sums = succeed(&site.run("get-checksums", ["-i", "a.txt"]));
    assert!(
        sums.contains(&format!("3 \t{} \tAll \ta.txt", md5(OLD))),
        "{sums}"
    );
    assert!(listed.contains("3 \t23 \ta.txt"), "{listed}");
    for pillar in PILLARS {
        let copy = format!("{pillar}.copy");
        succeed(&site.run("get-file", ["-i", "a.txt", "-p", pillar, "-l", &copy]));
        assert_eq!(fs::read(site.path().join(copy)).unwrap(), OLD);
        let old = md5(OLD);
        let replace = ["-i", "a.txt", "-f", "new.txt", "-p", pillar, "-C", &old];
        let replaced = site.run("replace-file", replace);
        succeed(&replaced);
        assert_eq!(stderr(&replaced), format!("a.txt replaced at {pillar}\n"));
    }
    let sums = succeed(&site.run("get-checksums", ["-i", "a.txt"]));
    assert!(
        sums.contains(&format!("3 \t{} \tAll \ta.txt", md5(NEW))),
        "{sums}"
    );
    let trail = succeed(&site.run("get-audit-trails", ["-i", "a.txt"]));
    let status = succeed(&site.without_collection("get-status", &[]));
    for pillar in PILLARS {
        assert!(trail.contains(pillar), "{trail}");
        assert!(status.contains(pillar), "{status}");
        let new = md5(NEW);
        succeed(&site.run("delete-file", ["-i", "a.txt", "-p", pillar, "-C", &new]));
    }
    let mut groups: BTreeMap<String, Option<String>> = BTreeMap::new();
    while let Some(frame) = heard.message(Duration::from_millis(200)) {
        let kind = frame.header("org.bitrepository.messages.type").unwrap();
        let group = frame.header("JMSXGroupID").map(str::to_owned);
        groups.insert(kind.to_owned(), group);
    }
    let of_the_file = groups["PutFileRequest"].clone();
    assert!(of_the_file.is_some());
    for kind in [
        "GetFileRequest",
        "GetFileIDsRequest",
        "GetChecksumsRequest",
        "ReplaceFileRequest",
        "DeleteFileRequest",
    ] {
        assert_eq!(groups[kind], of_the_file, "{kind}");
    }
    assert_eq!(groups["GetStatusRequest"], None, "it is about no file");
    assert!(groups.contains_key("GetAuditTrailsRequest"), "{groups:?}");
}

/// Where a pillar wants to be asked, and the bus's own address for that.
type Address = (Destination, Option<String>);

/// Asks who is there.
async fn identify(client: &Peer, answers: &mut Ear, round: &str) -> BTreeMap<String, Address> {
    let header = client.component.request_header(
        CorrelationId::from(round),
        &books(),
        client.collection_destination(),
        None,
    );
    let request = IdentifyPillarsForPutFileRequest {
        header,
        audit_trail_information: None,
        file_id: Some(FILE.into()),
        file_size: Some(1),
    };
    client.send(request).await;
    let mut found = BTreeMap::new();
    while found.len() < PILLARS.len() {
        let (message, delivery) = answers.delivery().await;
        let from = message.header().from.as_str().to_owned();
        if is(&message, "IdentifyPillarsForPutFileResponse", &from) {
            let address = message.header().reply_to.clone();
            found.insert(from, (address, delivery.message.reply_to.clone()));
        }
        delivery.ack().await.unwrap();
    }
    found
}

const FILE: &str = "late.txt";

/// What a pillar says to a request to store this, up to the end of a later one.
struct Asking {
    client: Peer,
    answers: Ear,
    exchange: u16,
}

impl Asking {
    async fn put(&self, correlation: &str, pillar: &str, content: &[u8], address: &Address) {
        let put = Put {
            correlation,
            content,
            address: whole::offer(self.exchange, FILE, content),
        };
        let mut request = self.client.put_request(pillar, FILE, &put);
        request.header.destination = address.0.clone();
        let message = Message::from(request);
        let component = &self.client.component;
        let outgoing = component.outgoing_reply(&message, address.1.as_deref());
        // Nobody is told that an address has gone: it is no fault of whoever still has it.
        component.bus().publish(outgoing).await.unwrap();
    }

    /// The last word on this conversation.
    async fn end_of(&mut self, correlation: &str) -> ResponseCode {
        let ends = |message: &Message| {
            let header = message.header();
            header.correlation_id.as_str() == correlation
                && message.message_type().is_final_response()
        };
        let message = self.answers.until(ends).await;
        message.response_info().unwrap().response_code
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_request_to_a_pillar_that_starts_again_waits_in_a_queue_and_nowhere_else() {
    let (site, mut parts) = start();
    let client = Peer::client(&site, "waiting").await;
    let mut answers = client.listen(client.address()).await;
    let before = identify(&client, &mut answers, "first").await;
    let kinds = PILLARS.map(|pillar| before[pillar].0.kind());
    assert_eq!(
        kinds,
        [
            DestinationKind::Queue,
            DestinationKind::Topic,
            DestinationKind::TemporaryQueue
        ]
    );
    for mut part in parts.drain(1..) {
        part.terminate();
        part.wait_for_success();
    }
    let exchange = site.exchange_port;
    let mut asking = Asking {
        client,
        answers,
        exchange,
    };
    for pillar in PILLARS {
        let early = format!("early {pillar}");
        asking.put(&early, pillar, OLD, &before[pillar]).await;
    }
    let waiting = look_at(&site, "/queue/books.north");
    assert_eq!(waiting.len(), 1);
    assert!(waiting[0].is_some(), "its group");

    parts.extend(PILLARS.map(|part| site.start(part)));
    let after = identify(&asking.client, &mut asking.answers, "second").await;
    assert_eq!(after[QUEUE].0, before[QUEUE].0);
    assert_ne!(after[TEMPORARY].1, before[TEMPORARY].1, "a new queue");
    for pillar in PILLARS {
        let later = format!("later {pillar}");
        asking.put(&later, pillar, NEW, &after[pillar]).await;
        let expected = match pillar {
            QUEUE => (ResponseCode::DuplicateFileFailure, OLD),
            _ => (ResponseCode::OperationCompleted, NEW),
        };
        assert_eq!(asking.end_of(&later).await, expected.0, "{pillar}");
        let stored = site.archive(pillar).join("fileDir").join(FILE);
        assert_eq!(fs::read(stored).unwrap(), expected.1, "{pillar}");
    }
}

/// The groups of the messages that wait in a queue.
fn look_at(site: &Site, queue: &str) -> Vec<Option<String>> {
    let mut stomp = Stomp::connect(site.bus_port, None);
    let headers = [("destination", queue), ("id", "look"), ("browser", "true")];
    stomp.frame("SUBSCRIBE", &headers, b"").unwrap();
    let mut groups = Vec::new();
    loop {
        let frame = stomp.message(crate::support::PATIENCE).expect("the end");
        if frame.header("browser") == Some("end") {
            return groups;
        }
        groups.push(frame.header("JMSXGroupID").map(str::to_owned));
    }
}
