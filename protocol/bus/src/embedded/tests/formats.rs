//! Logs of earlier formats.

use std::path::Path;

use tempfile::TempDir;

use super::{bus, durable, next, options, request, text};
use crate::{Broker, Lanes, OnExpiry, OutOfOrder, QueueAttributes, QueueDefinition};

/// What a segment says that is written now.
const NOW: [u8; 4] = 3_u32.to_le_bytes();

/// Lays the log that was written in this format into a directory.
fn old_log(format: u32, directory: &TempDir) {
    let kept = format!("testdata/log-format-{format}/0000000001.log");
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join(kept);
    std::fs::copy(kept, directory.path().join("0000000001.log")).unwrap();
}

use pillarbox_messages::Destination;
/// What was written before queues had attributes: of four messages the most urgent one was consumed and one came back
/// counted, and a durable subscription has one that was delivered.
#[tokio::test]
async fn a_log_of_the_first_format_opens_and_goes_on() {
    let directory = TempDir::new().unwrap();
    old_log(1, &directory);
    let mut options = options(directory.path());
    options.queues.push(QueueDefinition {
        name: "new".to_owned(),
        attributes: QueueAttributes {
            on_expiry: OnExpiry::Move("old".to_owned()),
            ..QueueAttributes::default()
        },
        drain: false,
    });
    for round in 0..2 {
        let broker = Broker::open(options.clone()).await.unwrap();
        assert_eq!(broker.stats().messages, 4, "round {round}");
        let bus = bus(&broker, "a");
        let mut work = bus
            .subscribe(request(Destination::queue("work")))
            .await
            .unwrap();
        for (expected, count) in [("one", 1), ("three", 0), ("four", 0)] {
            let delivery = next(&mut work).await;
            assert_eq!(text(&delivery), expected);
            assert_eq!(delivery.message.property("x"), Some(expected));
            assert_eq!(delivery.message.backout_count, count);
        }
        let mut news = bus
            .subscribe(durable(Destination::topic("news"), "n"))
            .await
            .unwrap();
        let told = next(&mut news).await;
        assert_eq!(text(&told), "told");
        assert!(told.message.redelivered);
        bus.close().await.unwrap();
        broker.shutdown().await;
    }
    let header = std::fs::read(directory.path().join("0000000002.log")).unwrap();
    assert_eq!(header[8..12], NOW, "the next segment says it");
}

/// What was written before senders could be remembered: a queue with a message at its top, and one with a lane, in which
/// the first message had failed twice and a consumer within the process had the second one in hand.
#[tokio::test]
async fn a_log_of_the_second_format_opens_and_goes_on() {
    let directory = TempDir::new().unwrap();
    old_log(2, &directory);
    let mut options = options(directory.path());
    options.queues.push(QueueDefinition {
        name: "work".to_owned(),
        attributes: QueueAttributes {
            lanes: Lanes::Key,
            backout_queue: Some("aside".to_owned()),
            ..QueueAttributes::default()
        },
        drain: false,
    });
    options.queues.push(QueueDefinition {
        name: "jump".to_owned(),
        attributes: QueueAttributes {
            out_of_order: OutOfOrder {
                top: true,
                before: true,
            },
            ..QueueAttributes::default()
        },
        drain: false,
    });
    for round in 0..2 {
        let broker = Broker::open(options.clone()).await.unwrap();
        assert_eq!(broker.stats().messages, 7, "round {round}");
        let bus = bus(&broker, "a");
        let look = |queue| bus.browse(Destination::queue(queue), None, 10);
        let seen = look("jump").await.unwrap();
        let seen: Vec<_> = seen.iter().map(|it| it.body.as_ref()).collect();
        assert_eq!(seen, [&b"first"[..], b"1", b"2"]);
        let aside = look("aside").await.unwrap();
        assert_eq!(aside[0].body, "bad");
        assert_eq!(aside[0].property("q-failure-cause"), Some("refused"));
        let mut work = bus
            .subscribe(request(Destination::queue("work")))
            .await
            .unwrap();
        let held = next(&mut work).await;
        assert_eq!(
            (text(&held).as_str(), held.message.backout_count),
            ("held", 1)
        );
        bus.close().await.unwrap();
        broker.shutdown().await;
    }
    let header = std::fs::read(directory.path().join("0000000002.log")).unwrap();
    assert_eq!(header[8..12], NOW, "the next segment says it");
}
