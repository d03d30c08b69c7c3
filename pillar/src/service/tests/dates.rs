//! What was done when, by a clock that the tests set.

use std::sync::atomic::{AtomicI64, Ordering};

use pillarbox_messages::clock::Clock;

use super::*;

/// A clock that stands where it is put.
#[derive(Debug)]
struct Standing(AtomicI64);

impl Standing {
    fn set(&self, time: &str) {
        self.0.store(instant(time).millis(), Ordering::SeqCst);
    }
}

impl Clock for Standing {
    fn now(&self) -> chrono::DateTime<chrono::Utc> {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst)).to_utc()
    }
}

fn instant(time: &str) -> Timestamp {
    time.parse().unwrap()
}

/// A site whose pillar has stored one file at each of these times, under the time's own words.
async fn with_files_of(times: &[&str]) -> Site {
    let clock = Arc::new(Standing(AtomicI64::new(0)));
    let pillars = Arc::clone(&clock);
    let mut site = Site::with(|options| options.clock = pillars).await;
    for time in times {
        clock.set(time);
        site.put(time, b"a").await;
    }
    site
}

/// The files with events in this interval, whose ends belong to it.
async fn put_between(site: &mut Site, min: &str, max: &str) -> Vec<String> {
    let mut request = site.trail_request();
    request.min_timestamp = Some(instant(min));
    request.max_timestamp = Some(instant(max));
    let response = site.told_trail(request).await;
    let events = trails::events(&response).iter();
    events
        .map(|event| {
            assert_eq!(event.action_date_time, instant(event.file_id.as_str()));
            event.file_id.as_str().to_owned()
        })
        .collect()
}

#[tokio::test]
async fn u22_an_interval_at_the_end_of_a_month() {
    let times = [
        "2024-12-31T23:59:59Z",
        "2025-01-30T23:59:59.999Z",
        "2025-01-31T00:00:00Z",
        "2025-01-31T23:59:59Z",
        "2025-02-01T00:00:00Z",
        "2025-02-01T00:00:00.001Z",
        "2025-02-28T23:59:59Z",
        "2025-03-01T00:00:00Z",
        "2025-03-03T12:00:00Z",
    ];
    let mut site = with_files_of(&times).await;
    let (from, to) = ("2025-01-31T00:00:00Z", "2025-02-01T00:00:00Z");
    assert_eq!(put_between(&mut site, from, to).await, times[2..5]);
    // The two midnights of a place that is an hour ahead.
    let (from, to) = ("2025-01-31T00:00:00+01:00", "2025-02-01T00:00:00+01:00");
    assert_eq!(put_between(&mut site, from, to).await, times[1..3]);
    let (from, to) = ("2025-02-28T00:00:00Z", "2025-03-01T00:00:00Z");
    assert_eq!(put_between(&mut site, from, to).await, times[6..8]);
}

/// In Copenhagen the hour from two to three comes twice that night.
#[tokio::test]
async fn u20_the_night_in_which_summer_time_ends() {
    let times = ["2025-10-26T02:30:00+02:00", "2025-10-26T02:30:00+01:00"];
    let mut site = with_files_of(&times).await;
    let [first, second] = times;
    assert_eq!(
        instant(second).millis() - instant(first).millis(),
        3_600_000
    );
    assert_eq!(put_between(&mut site, first, second).await, times);
    for time in times {
        assert_eq!(put_between(&mut site, time, time).await, [time]);
    }
    let (from, to) = ("2025-10-26T00:30:00.001Z", "2025-10-26T01:30:00Z");
    assert_eq!(put_between(&mut site, from, to).await, [second]);
}
