//! How the pillar is: what is looked at, and what it amounts to.

use std::{fmt, num::NonZeroU64, path::PathBuf, time::Duration};

use pillarbox_bus::BusState;
use pillarbox_messages::{CollectionId, ProtocolVersion, StatusCode, StatusInfo, Timestamp};

use crate::{
    context::Context,
    index::{Health, IndexError, ListQuery},
    workers::WorkerStatus,
};

/// What was found.
#[derive(Debug)]
pub(crate) struct Facts {
    now_ms: i64,
    bus: BusState,
    directories: Vec<Directory>,
    /// The time of the oldest checksum of each collection that has files.
    oldest: Result<Vec<(CollectionId, i64)>, IndexError>,
    /// What is known to be wrong with files.
    files: Result<Vec<(CollectionId, Health)>, IndexError>,
    /// Zero: checksums may be of any age.
    max_age: Duration,
    workers: Vec<WorkerStatus>,
}

/// An archive directory, and how much it still takes, in bytes.
#[derive(Debug)]
pub(crate) struct Directory {
    pub(crate) path: PathBuf,
    /// What its file system offers; why nothing can be stored there.
    pub(crate) available: Result<u64, String>,
    pub(crate) minimum_size_left: u64,
}

/// Looks at everything that the pillar needs.
pub(crate) async fn look(context: &Context) -> Facts {
    let bus = context.component.bus().state().borrow().clone();
    Facts {
        now_ms: context.component.clock().now_ms(),
        bus,
        directories: context.archive.directories().await,
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
        match &self.bus {
            BusState::Connected => report.say(StatusCode::Ok, "bus: connected"),
            BusState::Connecting => report.say(StatusCode::Warning, "bus: not connected, trying"),
            BusState::Failed(error) => report.say(StatusCode::Error, format!("bus: {error}")),
            BusState::Closed => report.say(StatusCode::Error, "bus: closed"),
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
                format!("collection {collection}: {missing} files missing, {inconsistent} changed"),
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
        let minimum = self.minimum_size_left;
        match &self.available {
            Err(error) => report.say(StatusCode::Error, format!("directory {path}: {error}")),
            Ok(available) if *available <= minimum => report.say(
                StatusCode::Warning,
                format!(
                    "directory {path}: full, {available} bytes free of which {minimum} must be left"
                ),
            ),
            Ok(available) => report.say(
                StatusCode::Ok,
                format!("directory {path}: {available} bytes free, {minimum} must be left"),
            ),
        }
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

/// A time of days, or of less, as people say it.
fn long(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds < SECONDS_OF_A_DAY {
        format!("{seconds} seconds")
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

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> Facts {
        Facts {
            now_ms: 10 * 86_400_000,
            bus: BusState::Connected,
            directories: vec![Directory {
                path: "/archive/1".into(),
                available: Ok(1_000),
                minimum_size_left: 100,
            }],
            oldest: Ok(vec![("books".into(), 86_400_000)]),
            files: Ok(vec![("books".into(), Health::default())]),
            max_age: Duration::from_secs(10 * 86_400),
            workers: Vec::new(),
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
    fn a_full_directory_is_a_warning_and_one_that_is_gone_an_error() {
        let mut facts = facts();
        facts.directories[0].available = Ok(100);
        assert_status(
            &facts,
            StatusCode::Warning,
            "WARNING directory /archive/1: full, 100 bytes",
        );
        facts.directories[0].available = Err("it is not there".to_owned());
        assert_status(
            &facts,
            StatusCode::Error,
            "ERROR directory /archive/1: it is not there",
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
        facts.directories[0].available = Ok(1);
        assert_status(&facts, StatusCode::Error, "ERROR index: ");
        facts.bus = BusState::Connecting;
        assert_status(&facts, StatusCode::Error, "WARNING bus: ");
    }
}
