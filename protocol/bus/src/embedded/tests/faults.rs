//! The queue manager on a disk that fails, fills up and loses power.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use chrono::{DateTime, Utc};
use pillarbox_messages::{
    Destination,
    clock::{Clock, SharedClock, SystemClock},
};
use tokio::time::timeout;

use super::{PATIENCE, bus, next, options, persistent, request, text};
use crate::{
    Broker, BrokerOptions, Bus, BusError, BusState, Outgoing,
    core::Limits,
    log::{LogOptions, faulty::Disk},
};

const SMALL: LogOptions = LogOptions {
    segment_bytes: 4096,
    few_segments: 3,
};

async fn open_at(disk: &Disk, clock: SharedClock) -> Broker {
    let disk = disk.clone();
    let options = BrokerOptions {
        clock,
        ..options("unused".as_ref())
    };
    Broker::open_with(move || Ok(disk), options, SMALL, Limits::default())
        .await
        .unwrap()
}

async fn open(disk: &Disk) -> Broker {
    open_at(disk, SystemClock::shared()).await
}

fn queue() -> Destination {
    Destination::queue("work")
}

async fn until(broker: &Broker, what: fn(&Broker) -> bool) {
    let wait = async {
        while !what(broker) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, wait)
        .await
        .unwrap_or_else(|_| panic!("{:?}", broker.stats()));
}

#[tokio::test]
async fn b48_what_was_promised_survives_a_loss_of_power() {
    let disk = Disk::new();
    let first = open(&disk).await;
    let sender = bus(&first, "a");
    sender
        .publish(persistent(queue(), "promised"))
        .await
        .unwrap();
    let second = open(&disk.after_power_loss(0)).await;
    let receiver = bus(&second, "a");
    let mut work = receiver.subscribe(request(queue())).await.unwrap();
    assert_eq!(text(&next(&mut work).await), "promised");
}

#[tokio::test]
async fn a_message_is_handed_out_while_it_is_synced_and_its_sender_told_afterwards() {
    let disk = Disk::new();
    let broker = open(&disk).await;
    let (sender, receiver) = (bus(&broker, "a"), bus(&broker, "b"));
    let mut work = receiver.subscribe(request(queue())).await.unwrap();
    disk.hold_syncs(true);
    let mut sent = std::pin::pin!(sender.publish(persistent(queue(), "early")));
    let early = tokio::select! {
        _ = &mut sent => panic!("told before it is on the disk"),
        early = next(&mut work) => early,
    };
    assert_eq!(text(&early), "early");
    let mut answered = std::pin::pin!(early.ack());
    let both = async { tokio::join!(&mut sent, &mut answered) };
    let told = timeout(Duration::from_millis(50), both).await;
    assert!(told.is_err(), "nothing is promised yet");
    let lost = open(&disk.after_power_loss(0)).await;
    assert_eq!(lost.stats().messages, 0);
    let crashed = open(&disk.after_crash()).await;
    assert_eq!(crashed.stats().messages, 1, "it is written");
    disk.hold_syncs(false);
    let (sent, answered) = timeout(PATIENCE, async { tokio::join!(sent, answered) })
        .await
        .unwrap();
    sent.unwrap();
    answered.unwrap();
    let recovered = open(&disk.after_power_loss(0)).await;
    assert_eq!(recovered.stats().messages, 0, "it is done");
}

#[tokio::test]
async fn e21_a_failed_sync_is_told_to_whoever_waits_and_ends_everything() {
    let disk = Disk::new();
    let broker = open(&disk).await;
    let (sender, other) = (bus(&broker, "a"), bus(&broker, "b"));
    let mut idle = other
        .subscribe(request(Destination::topic("news")))
        .await
        .unwrap();
    disk.fail_sync_after(0);
    let failed = sender.publish(persistent(queue(), "x")).await.unwrap_err();
    assert!(matches!(failed, BusError::SpaceFailed(_)), "{failed}");
    assert!(timeout(PATIENCE, idle.next()).await.unwrap().is_none());
    let mut state = other.state();
    let failed = state.wait_for(|state| matches!(state, BusState::Failed(_)));
    timeout(PATIENCE, failed).await.unwrap().unwrap();
    let again = broker.connect("c").unwrap_err();
    assert!(matches!(again, BusError::SpaceFailed(_)), "{again}");
    broker.shutdown().await;
    let recovered = open(&disk.after_power_loss(0)).await;
    assert_eq!(recovered.stats().messages, 0, "it was never promised");
}

/// What was half written must not make later writes unreadable.
#[tokio::test]
async fn b51_after_a_short_write_nothing_more_is_taken_and_what_was_promised_is_there() {
    for fits in [0, 1, 40, 100] {
        let disk = Disk::new();
        let broker = open(&disk).await;
        let bus = bus(&broker, "a");
        bus.publish(persistent(queue(), "promised")).await.unwrap();
        disk.fail_write_after(fits);
        let failed = bus.publish(persistent(queue(), "short")).await.unwrap_err();
        assert!(matches!(failed, BusError::SpaceFailed(_)), "{failed}");
        // The disk would take it now.
        disk.fail_write_after(1 << 20);
        let refused = broker.connect("b").unwrap_err();
        assert!(matches!(refused, BusError::SpaceFailed(_)), "{refused}");
        let late = bus.publish(persistent(queue(), "late")).await.unwrap_err();
        assert_ne!(late.name(), "NO-SPACE");
        broker.shutdown().await;
        for found in [disk.after_crash(), disk.after_power_loss(0)] {
            let recovered = open(&found).await;
            let bus = super::bus(&recovered, "a");
            let seen = bus.browse(queue(), None, 10).await.unwrap();
            let seen: Vec<_> = seen.iter().map(|it| it.body.as_ref()).collect();
            assert_eq!(seen, [b"promised"]);
            recovered.shutdown().await;
        }
    }
}

#[tokio::test]
async fn e21_b52_a_full_disk_refuses_sends_goes_on_consuming_and_recovers_by_itself() {
    let disk = Disk::new();
    let broker = open(&disk).await;
    let bus = bus(&broker, "a");
    disk.set_full(true);
    let mut sent = 0;
    let refused = loop {
        match bus
            .publish(persistent(queue(), "some bytes to fill the segments with"))
            .await
        {
            Ok(()) => sent += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, BusError::NoSpace(_)), "{refused}");
    let mut work = bus.subscribe(request(queue())).await.unwrap();
    for _ in 0..sent {
        next(&mut work).await.ack().await.unwrap();
    }
    disk.set_full(false);
    let resumed = async {
        while bus.publish(persistent(queue(), "again")).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, resumed).await.unwrap();
}

#[tokio::test]
async fn one_old_message_does_not_keep_the_whole_log() {
    let disk = Disk::new();
    let broker = open(&disk).await;
    let (old, busy) = (bus(&broker, "old"), bus(&broker, "busy"));
    let request = |destination| super::durable(destination, "mine");
    let mut slow = old
        .subscribe(request(Destination::topic("news")))
        .await
        .unwrap();
    old.publish(persistent(Destination::topic("news"), "old"))
        .await
        .unwrap();
    let kept = next(&mut slow).await;
    let mut work = busy.subscribe(super::request(queue())).await.unwrap();
    for _ in 0..200 {
        busy.publish(persistent(queue(), "busy")).await.unwrap();
        next(&mut work).await.ack().await.unwrap();
    }
    until(&broker, |broker| {
        broker.stats().segments <= SMALL.few_segments + 2
    })
    .await;
    let written = broker.stats().written_bytes;
    assert!(
        written > 8 * SMALL.segment_bytes,
        "{written} bytes are no test"
    );
    let found = open(&disk.after_power_loss(0)).await;
    assert_eq!(found.stats().messages, 1);
    kept.ack().await.unwrap();
    assert_eq!(broker.stats().messages, 0);
}

#[derive(Debug)]
struct TestClock(AtomicI64);

impl Clock for TestClock {
    fn now(&self) -> DateTime<Utc> {
        DateTime::from_timestamp_millis(self.0.load(Ordering::SeqCst)).unwrap()
    }
}

#[tokio::test]
async fn b58_messages_expire_on_an_idle_bus_and_never_come_out_afterwards() {
    let clock = Arc::new(TestClock(AtomicI64::new(1_000_000)));
    let disk = Disk::new();
    let broker = open_at(&disk, Arc::<TestClock>::clone(&clock)).await;
    let bus = bus(&broker, "a");
    let brief = Outgoing {
        ttl: Some(Duration::from_secs(10)),
        ..persistent(queue(), "brief")
    };
    bus.publish(brief.clone()).await.unwrap();
    bus.publish(persistent(queue(), "lasting")).await.unwrap();
    assert_eq!(broker.stats().messages, 2);
    clock.0.fetch_add(10_000, Ordering::SeqCst);
    until(&broker, |broker| broker.stats().messages == 1).await;
    bus.publish(brief).await.unwrap();
    let found = disk.after_power_loss(0);
    clock.0.fetch_add(10_000, Ordering::SeqCst);
    let second = open_at(&found, clock).await;
    let receiver = Bus::embedded(&second, options_of("a")).unwrap();
    let mut work = receiver.subscribe(request(queue())).await.unwrap();
    assert_eq!(text(&next(&mut work).await), "lasting");
    assert_eq!(second.stats().messages, 1);
}

fn options_of(client_id: &str) -> crate::ConnectOptions {
    crate::ConnectOptions {
        client_id: client_id.to_owned(),
    }
}

#[tokio::test]
async fn a_subscriber_that_takes_nothing_holds_up_nobody() {
    let broker = open(&Disk::new()).await;
    let (lazy, sender) = (bus(&broker, "lazy"), bus(&broker, "sender"));
    let wish = crate::SubscribeRequest {
        prefetch: 3,
        ..request(Destination::topic("news"))
    };
    let mut idle = lazy.subscribe(wish).await.unwrap();
    for _ in 0..100 {
        let batch = vec![Outgoing::new(Destination::topic("news"), "x"); 120];
        sender.publish_all(batch).await.unwrap();
    }
    assert_eq!(broker.stats().slow_consumers, 1);
    assert_eq!(broker.stats().messages, 0);
    let mut rest = 0;
    while timeout(PATIENCE, idle.next()).await.unwrap().is_some() {
        rest += 1;
    }
    assert_eq!(rest, 3, "what it had in hand");
    lazy.publish(Outgoing::new(queue(), "its connection lives"))
        .await
        .unwrap();
}
