use std::sync::atomic::{AtomicI64, Ordering};

use chrono::{DateTime, Utc};
use pillarbox_bus::{AckMode, Broker, BrokerOptions, ConnectOptions};
use pillarbox_messages::{
    Destination,
    clock::{Clock, SystemClock},
};

use super::*;

fn away() -> BusState {
    BusState::Connecting
}

fn there() -> BusState {
    BusState::Connected
}

#[test]
fn an_outage_has_no_more_decimals_than_milliseconds() {
    let outage = Outage {
        from_ms: 1_000,
        until_ms: 7_472,
    };
    assert_eq!(outage.seconds().to_string(), "6.472");
}

#[test]
fn an_outage_is_told_as_long_as_it_lasts_and_afterwards() {
    let mut record = LinkRecord::new(&there(), 1_000);
    assert_eq!(record.look(&there(), Looked::Now, 1_500), None);
    assert_eq!(
        (
            record.away_since_ms(),
            record.outages(),
            record.last_outage()
        ),
        (None, 0, None)
    );
    assert_eq!(
        record.look(&away(), Looked::AfterChange, 2_000),
        Some(Change::Lost)
    );
    assert_eq!(record.look(&away(), Looked::AfterChange, 3_000), None);
    assert_eq!((record.away_since_ms(), record.outages()), (Some(2_000), 0));
    assert_eq!(record.state(), &away());
    let outage = Outage {
        from_ms: 2_000,
        until_ms: 9_500,
    };
    assert_eq!(
        record.look(&there(), Looked::AfterChange, 9_500),
        Some(Change::Back(outage))
    );
    assert_eq!(outage.duration(), Duration::from_millis(7_500));
    assert_eq!((record.away_since_ms(), record.outages()), (None, 1));
    assert_eq!(record.last_outage(), Some(outage));
}

#[test]
fn an_outage_that_nobody_saw_counts_too_but_a_look_makes_none() {
    let mut record = LinkRecord::new(&there(), 0);
    assert_eq!(record.look(&there(), Looked::Now, 5), None);
    let brief = Outage {
        from_ms: 7,
        until_ms: 7,
    };
    assert_eq!(
        record.look(&there(), Looked::AfterChange, 7),
        Some(Change::Back(brief))
    );
    assert_eq!(record.outages(), 1);
}

#[test]
fn a_bus_that_was_away_at_the_start_comes_back_too() {
    let mut record = LinkRecord::new(&away(), 10);
    assert_eq!(record.away_since_ms(), Some(10));
    assert!(record.look(&there(), Looked::AfterChange, 20).is_some());
    assert_eq!(record.outages(), 1);
}

#[test]
fn a_clock_that_is_set_back_gives_no_negative_time() {
    let mut record = LinkRecord::new(&away(), 10);
    record.look(&there(), Looked::AfterChange, 5);
    let outage = record.last_outage().unwrap();
    assert_eq!(outage.duration(), Duration::ZERO);
}

#[test]
fn deafness_has_the_time_of_its_beginning_and_its_last_reason() {
    let mut record = LinkRecord::new(&there(), 0);
    let (one, other) = (Destination::topic("one"), Destination::topic("other"));
    let no = |detail| BusError::invalid(detail);
    record.is_deaf(&one, &no("first"), 5);
    record.is_deaf(&one, &no("second"), 6);
    record.is_deaf(&other, &no("third"), 7);
    let deaf: Vec<_> = record.deaf().collect();
    assert_eq!(
        deaf,
        [(&one, 5, "INVALID: second"), (&other, 7, "INVALID: third")]
    );
    record.hears_again(&one);
    assert_eq!(record.deaf().count(), 1);
}

#[derive(Debug)]
struct Watch(AtomicI64);

impl Clock for Watch {
    fn now(&self) -> DateTime<Utc> {
        DateTime::from_timestamp_millis(self.0.load(Ordering::Relaxed)).unwrap()
    }
}

/// A monitor of a connection whose state the test sets.
fn monitor() -> (watch::Sender<BusState>, Arc<Watch>, LinkMonitor) {
    let (sender, mut state) = watch::channel(there());
    state.borrow_and_update();
    let clock = Arc::new(Watch(AtomicI64::new(1_000)));
    let monitor = LinkMonitor {
        overdue: watch::channel(None).1,
        id: "north".into(),
        clock: Arc::clone(&clock) as SharedClock,
        state,
        record: Arc::new(Mutex::new(LinkRecord::new(&there(), 1_000))),
    };
    (sender, clock, monitor)
}

#[tokio::test]
async fn whoever_asks_before_the_follower_has_seen_it_is_told_all_the_same() {
    let (state, clock, monitor) = monitor();
    let follower = tokio::spawn(monitor.clone().follow());
    state.send_replace(away());
    while monitor.lock().away_since_ms().is_none() {
        tokio::task::yield_now().await;
    }
    clock.0.store(4_000, Ordering::Relaxed);
    state.send_replace(there());
    // On this one thread the follower can't have run yet.
    assert_eq!(monitor.lock().outages(), 0);
    assert_eq!(monitor.record().outages(), 1);
    assert_eq!(monitor.record().outages(), 1, "asking changes nothing");
    while monitor.lock().outages() == 0 {
        tokio::task::yield_now().await;
    }
    let outage = monitor.record().last_outage().unwrap();
    assert_eq!((outage.from_ms, outage.until_ms), (1_000, 4_000));
    drop(state);
    follower.await.unwrap();
    assert_eq!(monitor.record().outages(), 1);
}

/// A bus with this topic, and a durable subscription to it that somebody has.
async fn taken(directory: &std::path::Path) -> (Broker, Bus, SubscribeRequest, Subscription) {
    let topic = Destination::topic("books");
    let mut options = BrokerOptions::new(directory, SystemClock::shared());
    options.destinations = vec![topic.clone()];
    let broker = Broker::open(options).await.unwrap();
    let client_id = "north".to_owned();
    let bus = Bus::embedded(&broker, ConnectOptions { client_id }).unwrap();
    let request = SubscribeRequest {
        ack_timeout: None,
        destination: topic,
        durable: Some("north".to_owned()),
        ack: AckMode::Individual,
        prefetch: 1,
    };
    let first = bus.subscribe(request.clone()).await.unwrap();
    (broker, bus, request, first)
}

async fn deaf(monitor: &LinkMonitor) {
    while monitor.record().deaf().count() == 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_subscription_is_asked_for_until_the_bus_gives_it() {
    let directory = tempfile::tempdir().unwrap();
    let (_broker, bus, request, first) = taken(directory.path()).await;
    let monitor = LinkMonitor::new("north".into(), &bus, SystemClock::shared());
    let asking = async {
        let again = monitor.subscribe_again(&bus, &request).await;
        assert!(again.is_some());
    };
    let giving = async {
        deaf(&monitor).await;
        let record = monitor.record();
        let (destination, _, because) = record.deaf().next().unwrap();
        assert_eq!(destination, &request.destination);
        assert!(because.contains("in use"), "{because}");
        first.unsubscribe().await.unwrap();
    };
    tokio::join!(asking, giving);
    assert_eq!(monitor.record().deaf().count(), 0);
}

#[tokio::test]
async fn a_bus_that_has_ended_is_not_asked_any_more() {
    let directory = tempfile::tempdir().unwrap();
    let (broker, bus, request, _first) = taken(directory.path()).await;
    let monitor = LinkMonitor::new("north".into(), &bus, SystemClock::shared());
    let asking = monitor.subscribe_again(&bus, &request);
    let ending = async {
        deaf(&monitor).await;
        broker.shutdown().await;
    };
    let (again, ()) = tokio::join!(asking, ending);
    assert!(again.is_none());
}
