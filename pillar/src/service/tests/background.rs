//! Background workers: old checksums are computed again.

use std::sync::atomic::{AtomicI64, Ordering};

use pillarbox_messages::{FileAction, GetChecksumsRequest, ResultingChecksums, clock::Clock};
use pillarbox_settings::{BackgroundWork, Pace};

use super::*;
use crate::index::AuditEvent;

/// The system's time, and what the tests add to it.
#[derive(Debug, Default)]
pub(super) struct Later(AtomicI64);

impl Later {
    pub(super) fn pass(&self, time: Duration) {
        let ms = i64::try_from(time.as_millis()).unwrap();
        self.0.fetch_add(ms, Ordering::SeqCst);
    }
}

impl Clock for Later {
    fn now(&self) -> chrono::DateTime<chrono::Utc> {
        let later = self.0.load(Ordering::SeqCst);
        SystemClock.now() + chrono::TimeDelta::milliseconds(later)
    }
}

pub(super) const DAY: Duration = Duration::from_secs(86_400);
const ORIGINAL: &[u8] = b"as it was put\n";
const ROTTEN: &[u8] = b"as it wAs put\n";

/// A site whose pillar looks for checksums older than ten days again and again.
async fn restless() -> (Site, Arc<Later>) {
    let clock = Arc::new(Later::default());
    let site = Site::with(|options| {
        options.clock = clock.clone();
        options.settings.max_age_for_checksums = 10 * DAY;
        options.settings.recheck = often();
    });
    (site.await, clock)
}

pub(super) fn often() -> BackgroundWork {
    BackgroundWork {
        pace: Pace::UNLIMITED,
        interval: Duration::from_millis(5),
    }
}

impl Site {
    pub(super) async fn audit(&self) -> Vec<AuditEvent> {
        self.index()
            .audit(AuditQuery::from_number("books".into(), 1))
            .await
            .unwrap()
    }

    async fn actions(&self) -> Vec<FileAction> {
        let events = self.audit().await;
        events.iter().map(|event| event.entry.action).collect()
    }

    /// Waits until a worker has come to the end of a turn that began after this was called.
    pub(super) async fn after_a_turn(&self, worker: &str) {
        for _ in 0..2 {
            let last = self.last_end(worker);
            until(|| self.last_end(worker) > last).await;
        }
    }

    /// Waits until a worker has come to the end of its first turn.
    pub(super) async fn after_first_turn(&self, worker: &str) {
        until(|| self.last_end(worker) > 0).await;
    }

    /// When a worker last came to its end; 0 before the first time.
    fn last_end(&self, worker: &str) -> i64 {
        let statuses = self.pillar.workers();
        let status = statuses.iter().find(|status| status.name == worker);
        status.unwrap().last_end_ms.unwrap_or_default()
    }

    async fn observed_on_the_wire(&mut self, id: &str) -> (HexBinary, Timestamp) {
        let request = GetChecksumsRequest {
            header: self.header(),
            pillar_id: Some("north".into()),
            file_ids: FileIds::File(id.into()),
            min_timestamp: None,
            max_timestamp: None,
            max_number_of_results: None,
            checksum_request_for_existing_file: None,
            result_address: None,
            audit_trail_information: None,
        };
        let answers = self.ask(request).await;
        let Some(Message::GetChecksumsFinalResponse(last)) = answers.last() else {
            panic!("{answers:?}")
        };
        let Some(ResultingChecksums::Items(items)) = &last.resulting_checksums else {
            panic!("{last:?}")
        };
        let item = &items[0];
        (item.checksum_value.clone(), item.calculation_timestamp)
    }

    pub(super) async fn assert_no_alarm(&mut self) {
        let at_once = tokio::time::timeout(Duration::ZERO, self.alarms.next()).await;
        assert!(at_once.is_err(), "{at_once:?}");
    }
}

async fn until(holds: impl Fn() -> bool + Send + Sync) {
    let wait = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(SOON, wait).await.expect("in vain");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_young_checksum_is_left_alone_and_an_old_one_is_computed_again() {
    let (mut site, clock) = restless().await;
    site.put("x1", ORIGINAL).await;
    let first = site.row("x1").await.unwrap();
    clock.pass(9 * DAY);
    site.after_a_turn("recheck").await;
    assert_eq!(site.row("x1").await.unwrap(), first);
    clock.pass(2 * DAY);
    site.after_a_turn("recheck").await;
    let again = site.row("x1").await.unwrap();
    assert!(again.calculated_ms >= first.calculated_ms + 11 * 86_400_000);
    assert_eq!(
        (&again.expected, &again.observed),
        (&first.expected, &first.observed)
    );
    assert_eq!(again.modified_ms, first.modified_ms);
    // Nothing to tell anybody.
    assert_eq!(site.actions().await, [FileAction::PutFile]);
    site.assert_no_alarm().await;
}

/// The expected checksum is never overwritten by what was read; peers are told what was read (P8).
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_file_that_has_changed_is_shown_as_it_is_and_told_once() {
    let (mut site, clock) = restless().await;
    site.put("x1", ORIGINAL).await;
    site.put("x2", ORIGINAL).await;
    let (good, rotten) = (md5_data(ORIGINAL), md5_data(ROTTEN));
    fs::write(site.place("x1"), ROTTEN).unwrap();
    clock.pass(11 * DAY);
    assert_eq!(
        site.next_alarm().await,
        (AlarmCode::ChecksumAlarm, Some("x1".into()))
    );
    let row = site.row("x1").await.unwrap();
    assert_eq!(
        (&row.expected, &row.observed),
        (&good.checksum_value, &rotten.checksum_value)
    );
    let (shown, time) = site.observed_on_the_wire("x1").await;
    assert_eq!(
        (shown, time),
        (
            rotten.checksum_value,
            Timestamp::from_millis(row.calculated_ms)
        )
    );
    let events = site.audit().await;
    let told = &events[2].entry;
    assert_eq!(
        (told.action, told.file_id.as_str()),
        (FileAction::Inconsistency, "x1")
    );
    assert_eq!(told.actor.as_str(), "north");

    // The next times it is what is known already.
    clock.pass(11 * DAY);
    site.after_a_turn("recheck").await;
    clock.pass(11 * DAY);
    site.after_a_turn("recheck").await;
    assert!(site.row("x1").await.unwrap().calculated_ms > row.calculated_ms);
    assert_eq!(site.audit().await.len(), 3);
    site.assert_no_alarm().await;

    // And when it is right again, that is told too, but calls for nobody.
    fs::write(site.place("x1"), ORIGINAL).unwrap();
    clock.pass(11 * DAY);
    site.after_a_turn("recheck").await;
    assert_eq!(site.row("x1").await.unwrap().observed, good.checksum_value);
    assert_eq!(
        site.actions().await[2..],
        [FileAction::Inconsistency, FileAction::ChecksumCalculated]
    );
    site.assert_no_alarm().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_file_that_is_gone_is_alarmed_once_and_its_row_is_kept() {
    let (mut site, clock) = restless().await;
    site.put("x1", ORIGINAL).await;
    fs::remove_file(site.place("x1")).unwrap();
    clock.pass(11 * DAY);
    assert_eq!(
        site.next_alarm().await,
        (AlarmCode::ComponentFailure, Some("x1".into()))
    );
    site.after_a_turn("recheck").await;
    site.assert_no_alarm().await;
    assert_eq!(site.row("x1").await, None);
    let health = site.index().health(&"books".into()).await.unwrap();
    assert_eq!((health.missing, health.inconsistent), (1, 0));
    // A put makes up for it.
    site.put("x1", ORIGINAL).await;
    assert!(site.row("x1").await.is_some());
}

/// A disk that is away hides its own files, and no others.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_disk_that_is_away_keeps_no_worker_from_the_others() {
    let clock = Arc::new(Later::default());
    let second = tempfile::tempdir().unwrap();
    let away = second.path().join("away");
    let books = second.path().join("books");
    let mut site = Site::with(|options| {
        options.clock = clock.clone();
        options.settings.max_age_for_checksums = 10 * DAY;
        options.settings.recheck = often();
        options.settings.reconcile = often();
        options.settings.directories.push(second.path().to_owned());
    })
    .await;
    site.put("x1", ORIGINAL).await;
    site.put("x2", ORIGINAL).await;
    // "x1" stands on the second disk.
    fs::copy(site.place("x1"), books.join("fileDir/x1")).unwrap();
    fs::remove_file(site.place("x1")).unwrap();
    fs::rename(&books, &away).unwrap();
    fs::write(site.place("x2"), ROTTEN).unwrap();
    reconciling::lay(
        &site.directory.path().join("archive/books"),
        "fileDir/stray",
        ROTTEN,
    );
    clock.pass(11 * DAY);
    let mut told = Vec::new();
    while !told.contains(&(AlarmCode::ChecksumAlarm, Some("x2".into()))) {
        told.push(site.next_alarm().await);
    }
    site.wait_for_row("stray").await;
    for worker in ["recheck", "reconcile"] {
        site.after_a_turn(worker).await;
        let statuses = site.pillar.workers();
        let status = statuses
            .iter()
            .find(|status| status.name == worker)
            .unwrap();
        let fault = &status.last_fault.as_ref().unwrap().text;
        assert!(fault.contains("mount its disk again"), "{status}");
    }
    assert!(site.row("x1").await.is_some());
    // Each worker has told it, once.
    while let Ok(Some(_)) = tokio::time::timeout(Duration::ZERO, site.alarms.next()).await {}
    site.after_a_turn("reconcile").await;
    site.after_a_turn("recheck").await;
    site.assert_no_alarm().await;
    fs::rename(&away, &books).unwrap();
    site.after_a_turn("reconcile").await;
    site.assert_no_alarm().await;
}
