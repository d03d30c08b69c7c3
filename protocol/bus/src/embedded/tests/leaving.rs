//! What is on its way to somebody who leaves.

use pillarbox_messages::Destination;
use tempfile::TempDir;
use tokio::time::timeout;

use super::{PATIENCE, broker, bus};
use crate::{
    AckMode, Outgoing,
    embedded::connection::{Command, Connection, Event, SubscribeOptions},
};

const MESSAGES: usize = 500;

async fn subscribe(connection: &Connection, ack: AckMode) {
    let command = Command::Subscribe {
        subscription: 1,
        destination: Destination::queue("work"),
        durable: None,
        ack,
        prefetch: 1_000,
        selector: None,
        options: SubscribeOptions::default(),
        ack_timeout: None,
        token: 0,
    };
    connection.submit(command).await.unwrap();
}

#[tokio::test]
async fn what_a_slow_reader_has_not_taken_when_it_leaves_is_another_ones_alone() {
    let directory = TempDir::new().unwrap();
    let broker = broker(&directory).await;
    let message = Outgoing::new(Destination::queue("work"), "x");
    let sender = bus(&broker, "a");
    sender.publish_all(vec![message; MESSAGES]).await.unwrap();
    let mut slow = broker.connect("slow").unwrap();
    subscribe(&slow, AckMode::Auto).await;
    let (subscription, token) = (1, 2);
    let leave = Command::Unsubscribe {
        subscription,
        token,
    };
    slow.submit(leave).await.unwrap();
    let mut taken = 0;
    loop {
        match timeout(PATIENCE, slow.next_event()).await.unwrap() {
            Some(Event::Deliver { .. }) => taken += 1,
            Some(Event::Done { token: 2, .. }) => break,
            other => panic!("{other:?}"),
        }
    }
    assert!(taken < MESSAGES, "it was slow");
    let mut next = broker.connect("next").unwrap();
    subscribe(&next, AckMode::Individual).await;
    for _ in taken..MESSAGES {
        let event = timeout(PATIENCE, next.next_event()).await.unwrap();
        assert!(matches!(event, Some(Event::Deliver { .. })), "{event:?}");
    }
    let stats = broker.stats();
    assert_eq!(
        (stats.messages, stats.in_flight),
        (MESSAGES - taken, MESSAGES - taken)
    );
}
