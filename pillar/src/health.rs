//! How the pillar is: what is looked at, and what it amounts to.

use std::{
    fmt,
    num::NonZeroU64,
    path::{Path, PathBuf},
    time::Duration,
};

use pillarbox_bus::BusState;
use pillarbox_component::LinkRecord;
use pillarbox_messages::{
    CollectionId, ProtocolVersion, StatusCode, StatusInfo, Timestamp, wording::count,
};

use rustix::fs::statvfs;

use crate::{
    archive::Room,
    context::Context,
    index::{Health, IndexError, ListQuery},
    shortage::Shortage,
    workers::WorkerStatus,
};

/// What was found.
#[derive(Debug)]
pub(crate) struct Facts {
    now_ms: i64,
    link: LinkRecord,
    directories: Vec<Directory>,
    /// What there is no room for.
    shortages: Vec<Shortage>,
    data: PathBuf,
    /// What the file system of the data directory offers, in bytes; why that is not known.
    data_free: Result<u64, String>,
    /// Why the index can't be written.
    unwritable: Option<IndexError>,
    /// The time of the oldest checksum of each collection that has files.
    oldest: Result<Vec<(CollectionId, i64)>, IndexError>,
    /// What is known to be wrong with files.
    files: Result<Vec<(CollectionId, Health)>, IndexError>,
    /// Zero: checksums may be of any age.
    max_age: Duration,
    workers: Vec<WorkerStatus>,
}

/// An archive directory, and how much it still takes.
#[derive(Debug)]
pub(crate) struct Directory {
    pub(crate) path: PathBuf,
    /// The space on its file system; why nothing can be stored there.
    pub(crate) room: Result<Room, String>,
}

/// Looks at everything that the pillar needs.
pub(crate) async fn look(context: &Context) -> Facts {
    let now_ms = context.component.clock().now_ms();
    let directories = context.archive.directories().await;
    let usable = directories.iter().flat_map(|it| &it.room);
    let usable = usable.map(|room| room.usable()).max().unwrap_or(0);
    let mut capacity = 0;
    for directory in &directories {
        let disk = Disk::of(&directory.path).await;
        capacity = disk.map_or(capacity, |disk| capacity.max(disk.size));
    }
    Facts {
        now_ms,
        link: context.link.record(),
        shortages: context.shortages.now(usable, capacity, now_ms),
        directories,
        data: context.data.clone(),
        data_free: Disk::of(&context.data).await.map(|disk| disk.free),
        unwritable: unwritable(context).await,
        oldest: oldest(context).await,
        files: files(context).await,
        max_age: match context.archive.keeps_bytes() {
            true => context.settings.max_age_for_checksums,
            // There is nothing to compute them from again.
            false => Duration::ZERO,
        },
        workers: context.workers.statuses(),
    }
}

/// A directory's file system, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Disk {
    /// All of it.
    size: u64,
    /// What it offers to an ordinary user.
    pub(crate) free: u64,
}

impl Disk {
    /// What it is now; why that is not known.
    pub(crate) async fn of(directory: &Path) -> Result<Self, String> {
        let directory = directory.to_owned();
        let asked = tokio::task::spawn_blocking(move || statvfs(&directory)).await;
        match asked {
            Ok(Ok(status)) => Ok(Self {
                size: status.f_blocks.saturating_mul(status.f_frsize),
                free: status.f_bavail.saturating_mul(status.f_frsize),
            }),
            Ok(Err(error)) => Err(error.to_string()),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// Why the index can't be written. If that is so, nobody may have tried since there is room again.
async fn unwritable(context: &Context) -> Option<IndexError> {
    let writing = context.index.writing();
    if writing.borrow().is_some() {
        // What comes of it is in the state.
        _ = context.index.try_to_write().await;
    }
    writing.borrow().clone()
}

async fn oldest(context: &Context) -> Result<Vec<(CollectionId, i64)>, IndexError> {
    let mut oldest = Vec::new();
    for collection in context.component.collections() {
        let mut query = ListQuery::all(collection.clone());
        query.limit = Some(NonZeroU64::MIN);
        let page = context.index.list_by_calculated(query).await?;
        let first = page.rows.into_iter().next();
        oldest.extend(first.map(|row| (collection.clone(), row.calculated_ms)));
    }
    Ok(oldest)
}

async fn files(context: &Context) -> Result<Vec<(CollectionId, Health)>, IndexError> {
    let mut files = Vec::new();
    for collection in context.component.collections() {
        let health = context.index.health(collection).await?;
        files.push((collection.clone(), health));
    }
    Ok(files)
}

impl Facts {
    /// What they amount to: the worst of all, and a sentence about each.
    pub(crate) fn status(&self) -> StatusInfo {
        let mut report = Report::begin();
        self.tell_bus(&mut report);
        for directory in &self.directories {
            directory.tell(&mut report);
        }
        for Shortage { lacking, time_ms } in &self.shortages {
            let time = Timestamp::from_millis(*time_ms);
            report.say(StatusCode::Warning, format!("{lacking} at {time}"));
        }
        self.tell_data(&mut report);
        self.tell_checksums(&mut report);
        self.tell_files(&mut report);
        for worker in &self.workers {
            let code = match worker.fault() {
                Some(_) => StatusCode::Warning,
                None => StatusCode::Ok,
            };
            report.say(code, worker);
        }
        report.end()
    }

    fn tell_bus(&self, report: &mut Report) {
        match (self.link.state(), self.link.away_since_ms()) {
            (BusState::Failed(error), _) => {
                report.say(StatusCode::Error, format!("bus: {error}"));
            }
            (BusState::Closed, _) => report.say(StatusCode::Error, "bus: closed"),
            (BusState::Connecting, since_ms) => {
                let since = since_ms.unwrap_or(self.now_ms);
                let sentence = format!("bus: away since {}, trying", time(since));
                report.say(StatusCode::Warning, sentence);
            }
            (BusState::Connected, _) if self.link.unconfirmed_for().is_some() => {
                let how_long = long(self.link.unconfirmed_for().unwrap_or_default());
                let sentence =
                    format!("bus: has confirmed nothing of what was sent for {how_long}");
                report.say(StatusCode::Error, sentence);
            }
            (BusState::Connected, _) => {
                report.say(StatusCode::Ok, format!("bus: connected{}", self.outages()));
            }
        }
        for (destination, since_ms, because) in self.link.deaf() {
            let since = time(since_ms);
            let sentence = format!("bus: hears nothing at {destination} since {since}, {because}");
            report.say(StatusCode::Error, sentence);
        }
    }

    /// That the bus was away, since nobody could be told then.
    fn outages(&self) -> String {
        let Some(outage) = self.link.last_outage() else {
            return String::new();
        };
        let (from, until) = (time(outage.from_ms), time(outage.until_ms));
        let how_long = long(outage.duration());
        let how_often = match self.link.outages() {
            1 => String::new(),
            times => format!(", the last of {times} times"),
        };
        format!(", was away from {from} to {until} ({how_long}){how_often}")
    }

    fn tell_data(&self, report: &mut Report) {
        let path = self.data.display();
        let (code, text) = match &self.data_free {
            Err(error) => (StatusCode::Error, error.clone()),
            Ok(bytes) if *bytes < DATA_MINIMUM => (
                StatusCode::Warning,
                format!("only {} free", count(*bytes, "byte")),
            ),
            Ok(bytes) => (StatusCode::Ok, format!("{} free", count(*bytes, "byte"))),
        };
        report.say(code, format!("data directory {path}: {text}"));
        if let Some(error) = &self.unwritable {
            report.say(StatusCode::Error, format!("index: not writable: {error}"));
        }
    }

    /// That the index can't be read has been told.
    fn tell_files(&self, report: &mut Report) {
        for (collection, health) in self.files.iter().flatten() {
            let Health {
                missing,
                inconsistent,
            } = health;
            let code = match (missing, inconsistent) {
                (0, 0) => StatusCode::Ok,
                _ => StatusCode::Warning,
            };
            report.say(
                code,
                format!(
                    "collection {collection}: {} missing, {inconsistent} changed",
                    count(*missing, "file")
                ),
            );
        }
    }

    fn tell_checksums(&self, report: &mut Report) {
        let oldest = match &self.oldest {
            Ok(oldest) => oldest,
            Err(error) => return report.say(StatusCode::Error, format!("index: {error}")),
        };
        report.say(StatusCode::Ok, "index: readable");
        for (collection, time_ms) in oldest {
            let age_ms = self.now_ms.saturating_sub(*time_ms);
            let age = Duration::from_millis(u64::try_from(age_ms).unwrap_or_default());
            let too_old = !self.max_age.is_zero() && age > self.max_age;
            let time = Timestamp::from_millis(*time_ms);
            let sentence = format!("collection {collection}: the oldest checksum is of {time}");
            if too_old {
                let most = long(self.max_age);
                let late = format!("{sentence}, older than the {most} that are allowed");
                report.say(StatusCode::Warning, late);
            } else {
                report.say(StatusCode::Ok, sentence);
            }
        }
    }
}

impl Directory {
    fn tell(&self, report: &mut Report) {
        let path = self.path.display();
        let room = match &self.room {
            Ok(room) => room,
            Err(error) => {
                return report.say(StatusCode::Error, format!("directory {path}: {error}"));
            }
        };
        let Room {
            available,
            minimum_size_left,
            reserved,
        } = room;
        let promised = match reserved {
            0 => String::new(),
            _ => format!(", {reserved} are promised to files that are being received"),
        };
        let (code, full) = match room.usable() {
            0 => (StatusCode::Warning, "full, "),
            _ => (StatusCode::Ok, ""),
        };
        report.say(
            code,
            format!(
                "directory {path}: {full}{} free, {minimum_size_left} must be left{promised}",
                count(*available, "byte")
            ),
        );
    }
}

/// The worst so far, and the sentences.
struct Report {
    code: StatusCode,
    text: String,
}

impl Report {
    fn begin() -> Self {
        let version = env!("CARGO_PKG_VERSION");
        let protocol = ProtocolVersion::CURRENT.version;
        Self {
            code: StatusCode::Ok,
            text: format!("Pillarbox {version}, protocol version {protocol}"),
        }
    }

    fn say(&mut self, code: StatusCode, sentence: impl fmt::Display) {
        let word = match code {
            StatusCode::Ok => "",
            StatusCode::Warning => "WARNING ",
            StatusCode::Error => "ERROR ",
        };
        self.text += &format!("; {word}{sentence}");
        if rank(code) > rank(self.code) {
            self.code = code;
        }
    }

    fn end(self) -> StatusInfo {
        StatusInfo {
            status_code: self.code,
            status_text: self.text,
        }
    }
}

fn time(ms: i64) -> Timestamp {
    Timestamp::from_millis(ms)
}

/// A time of days, or of less, as people say it.
fn long(time: Duration) -> String {
    // No more decimals than the time has.
    let seconds = time.as_millis() as f64 / 1000.0;
    if seconds < SECONDS_OF_A_DAY {
        count(seconds, "second").to_string()
    } else {
        format!("{:.1} days", seconds / SECONDS_OF_A_DAY)
    }
}

const fn rank(code: StatusCode) -> u8 {
    match code {
        StatusCode::Ok => 0,
        StatusCode::Warning => 1,
        StatusCode::Error => 2,
    }
}

const SECONDS_OF_A_DAY: f64 = 86_400.0;

/// Bytes that the index may need at once: its write-ahead log takes half of it.
const DATA_MINIMUM: u64 = 32 << 20;

#[cfg(test)]
mod tests {
    use pillarbox_bus::BusError;
    use pillarbox_messages::Destination;

    use super::*;
    use crate::shortage::Lacking;

    #[test]
    fn a_time_has_three_decimals_at_most() {
        assert_eq!(long(Duration::from_millis(6_472)), "6.472 seconds");
    }

    fn facts() -> Facts {
        Facts {
            now_ms: 10 * 86_400_000,
            link: LinkRecord::new(&BusState::Connected, 0),
            directories: vec![Directory {
                path: "/archive/1".into(),
                room: Ok(room(1_000)),
            }],
            shortages: Vec::new(),
            data: "/var/north".into(),
            data_free: Ok(1 << 30),
            unwritable: None,
            oldest: Ok(vec![("books".into(), 86_400_000)]),
            files: Ok(vec![("books".into(), Health::default())]),
            max_age: Duration::from_secs(10 * 86_400),
            workers: Vec::new(),
        }
    }

    const fn room(available: u64) -> Room {
        Room {
            available,
            minimum_size_left: 100,
            reserved: 0,
        }
    }

    fn assert_status(facts: &Facts, code: StatusCode, word: &str) {
        let status = facts.status();
        assert_eq!(status.status_code, code, "{}", status.status_text);
        assert!(status.status_text.contains(word), "{}", status.status_text);
    }

    #[test]
    fn nothing_is_wrong() {
        assert_status(
            &facts(),
            StatusCode::Ok,
            "; bus: connected; directory /archive/1: 1000 bytes",
        );
    }

    #[test]
    fn a_bus_that_was_away_is_told_of_when_it_is_back() {
        let mut facts = facts();
        facts.link.observe(&BusState::Connecting, 1_000);
        let words = "WARNING bus: away since 1970-01-01T00:00:01.000Z, trying; ";
        assert_status(&facts, StatusCode::Warning, words);
        facts.link.observe(&BusState::Connected, 3_500);
        let words = "; bus: connected, was away from 1970-01-01T00:00:01.000Z to 1970-01-01T00:00:03.500Z (2.5 seconds); ";
        assert_status(&facts, StatusCode::Ok, words);
        facts.link.observe(&BusState::Connecting, 86_400_000);
        facts.link.observe(&BusState::Connected, 3 * 86_400_000);
        assert_status(&facts, StatusCode::Ok, "(2.0 days), the last of 2 times; ");
        facts.link.owes(Some(Duration::from_secs(45)));
        assert_status(
            &facts,
            StatusCode::Error,
            "ERROR bus: has confirmed nothing of what was sent for 45 seconds",
        );
        facts.link.observe(&BusState::Failed(BusError::Closed), 5);
        assert_status(
            &facts,
            StatusCode::Error,
            "ERROR bus: the bus connection is closed",
        );
    }

    #[test]
    fn a_pillar_that_hears_nothing_somewhere_is_not_well() {
        let mut facts = facts();
        let topic = Destination::topic("books");
        facts.link.is_deaf(&topic, &BusError::Closed, 1_000);
        let words = "bus: connected; ERROR bus: hears nothing at topic://books since 1970-01-01T00:00:01.000Z, ";
        assert_status(&facts, StatusCode::Error, words);
    }

    #[test]
    fn a_full_directory_is_a_warning_and_one_that_is_gone_an_error() {
        let mut facts = facts();
        facts.directories[0].room = Ok(room(100));
        assert_status(
            &facts,
            StatusCode::Warning,
            "WARNING directory /archive/1: full, 100 bytes",
        );
        facts.directories[0].room = Err("it is not there".to_owned());
        assert_status(
            &facts,
            StatusCode::Error,
            "ERROR directory /archive/1: it is not there",
        );
    }

    #[test]
    fn what_is_promised_is_not_free() {
        let mut facts = facts();
        let mut room = room(1_000);
        room.reserved = 899;
        facts.directories[0].room = Ok(room);
        assert_status(&facts, StatusCode::Ok, "100 must be left, 899 are promised");
        room.reserved = 900;
        facts.directories[0].room = Ok(room);
        let words = "WARNING directory /archive/1: full, 1000 bytes free, 100 must be left, 900 are promised";
        assert_status(&facts, StatusCode::Warning, words);
    }

    #[test]
    fn what_there_was_no_room_for_is_a_warning() {
        let mut facts = facts();
        facts.shortages = vec![Shortage {
            lacking: Lacking::Room(5_000),
            time_ms: 0,
        }];
        let words = "WARNING there was no room for a file of 5000 bytes at 1970-01-01";
        assert_status(&facts, StatusCode::Warning, words);
    }

    #[test]
    fn little_room_for_data_is_a_warning_and_an_index_that_cannot_be_written_an_error() {
        let mut facts = facts();
        assert_status(
            &facts,
            StatusCode::Ok,
            "; data directory /var/north: 1073741824 bytes free",
        );
        facts.data_free = Ok(DATA_MINIMUM - 1);
        assert_status(
            &facts,
            StatusCode::Warning,
            "WARNING data directory /var/north: only 33554431 bytes free",
        );
        facts.unwritable = Some(IndexError::Closed);
        assert_status(
            &facts,
            StatusCode::Error,
            "ERROR index: not writable: the index is closed",
        );
    }

    #[test]
    fn an_old_checksum_is_a_warning_unless_any_age_is_allowed() {
        let mut facts = facts();
        facts.oldest = Ok(vec![("books".into(), -1)]);
        assert_status(&facts, StatusCode::Warning, "older than the 10.0 days");
        facts.max_age = Duration::from_secs(5);
        assert_status(&facts, StatusCode::Warning, "older than the 5 seconds");
        facts.max_age = Duration::ZERO;
        assert_status(
            &facts,
            StatusCode::Ok,
            "the oldest checksum is of 1969-12-31",
        );
    }

    #[test]
    fn lost_and_rotten_files_are_a_warning() {
        let mut facts = facts();
        let health = Health {
            missing: 0,
            inconsistent: 2,
        };
        facts.files = Ok(vec![("books".into(), health)]);
        let words = "WARNING collection books: 0 files missing, 2 changed";
        assert_status(&facts, StatusCode::Warning, words);
    }

    #[test]
    fn the_worst_counts_whatever_comes_after_it() {
        let mut facts = facts();
        facts.oldest = Err(IndexError::Closed);
        facts.directories[0].room = Ok(room(1));
        assert_status(&facts, StatusCode::Error, "ERROR index: ");
        facts.link.observe(&BusState::Connecting, 0);
        assert_status(&facts, StatusCode::Error, "WARNING bus: ");
    }
}
