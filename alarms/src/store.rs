//! The database of alarms: SQLite in WAL mode, synced at every commit.
//!
//! One process writes; any number of others read beside it.

mod schema;

use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use pillarbox_component::alarms::digest_of;
use pillarbox_messages::{AlarmCode, CollectionId, ComponentId, FileId};
use rusqlite::{Connection, OpenFlags, Row, Transaction, params};
use thiserror::Error;

/// Why the database did not do what it was asked for.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The directory can't be made.
    #[error("{}: {source}", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// There is no database yet: no alarm service has run here.
    #[error("{} does not exist: no alarm service has run with this data directory", path.display())]
    Absent {
        /// Where it should be.
        path: PathBuf,
    },
    /// The database was written by a later version of this program.
    #[error("{} has format {found}, this program knows {known}: use a newer one", path.display())]
    Newer {
        /// The database.
        path: PathBuf,
        /// Its format.
        found: i64,
        /// The newest format known here.
        known: i64,
    },
    /// SQLite failed.
    #[error("{}: {source}", path.display())]
    Database {
        /// The database.
        path: PathBuf,
        /// What SQLite said.
        source: rusqlite::Error,
    },
}

/// What a row tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// An alarm that a component raised.
    Alarm,
    /// A message on an alarm topic that could not be read.
    Unreadable,
}

/// One arrival to be counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What it is.
    pub kind: EntryKind,
    /// Equal for every arrival of the same alarm: redelivered, or through several topics.
    pub identity: [u8; 32],
    /// Who raised it; for an unreadable message the sender, as far as known.
    pub raiser: ComponentId,
    /// Its code.
    pub code: AlarmCode,
    /// Its text; for an unreadable message why it can't be read.
    pub text: String,
    /// The file it is about.
    pub file: Option<FileId>,
    /// The collection it is about.
    pub collection: Option<CollectionId>,
    /// When it was raised, in milliseconds UTC; for an unreadable message when it arrived.
    pub raised_ms: i64,
    /// The beginning of an unreadable message.
    pub raw: Option<String>,
}

/// A row: all identical alarms there have been.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredAlarm {
    /// Number of the row, in the order of first arrival.
    pub id: i64,
    /// What it is.
    pub kind: EntryKind,
    /// Who raised it.
    pub raiser: ComponentId,
    /// Its code.
    pub code: AlarmCode,
    /// Its text, line breaks and all.
    pub text: String,
    /// The file it is about.
    pub file: Option<FileId>,
    /// The collection it is about.
    pub collection: Option<CollectionId>,
    /// How many there have been.
    pub count: u64,
    /// When the first was raised by its raiser's clock, in milliseconds UTC.
    pub first_raised_ms: i64,
    /// When the last was raised by its raiser's clock, in milliseconds UTC.
    pub last_raised_ms: i64,
    /// When the first arrived here, in milliseconds UTC.
    pub first_received_ms: i64,
    /// When the last arrived here, in milliseconds UTC.
    pub last_received_ms: i64,
    /// The beginning of an unreadable message.
    pub raw: Option<String>,
}

/// Which alarms to list: those that all given fields agree with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AlarmFilter {
    /// The last one arrived at this time or later, in milliseconds UTC.
    pub since_ms: Option<i64>,
    /// About this collection.
    pub collection: Option<CollectionId>,
    /// Raised by this component.
    pub raiser: Option<ComponentId>,
    /// Of this code.
    pub code: Option<AlarmCode>,
    /// At most so many: the newest.
    pub limit: Option<u32>,
}

/// The database.
#[derive(Debug)]
pub struct AlarmStore {
    path: PathBuf,
    connection: Connection,
}

impl AlarmStore {
    /// Where the database is, below a process's data directory.
    #[must_use]
    pub fn path_in(data: &Path) -> PathBuf {
        data.join("alarms").join("alarms.sqlite")
    }

    /// Opens the database to write; makes it, and its directory, if there is none.
    ///
    /// # Errors
    /// [`StoreError`]: the directory can't be made, the file is no database of ours, or SQLite failed.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        if let Some(directory) = path.parent() {
            std::fs::create_dir_all(directory).map_err(|source| StoreError::Directory {
                path: directory.to_owned(),
                source,
            })?;
        }
        let failed = database_error(path);
        let mut connection = Connection::open(path).map_err(&failed)?;
        connection.busy_timeout(BUSY_TIMEOUT).map_err(&failed)?;
        connection
            .pragma_update(None, "journal_mode", "WAL")
            .map_err(&failed)?;
        connection
            .pragma_update(None, "synchronous", "FULL")
            .map_err(&failed)?;
        schema::bring_up_to_date(&mut connection, path)?;
        Ok(Self {
            path: path.to_owned(),
            connection,
        })
    }

    /// Opens the database to read, also while an alarm service of another process writes.
    ///
    /// # Errors
    /// [`StoreError::Absent`] if there is none, else as [`AlarmStore::open`].
    pub fn open_read(path: &Path) -> Result<Self, StoreError> {
        if !path.exists() {
            return Err(StoreError::Absent {
                path: path.to_owned(),
            });
        }
        let failed = database_error(path);
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags).map_err(&failed)?;
        connection.busy_timeout(BUSY_TIMEOUT).map_err(&failed)?;
        if schema::check(&connection, path)? == 0 {
            // An alarm service is making it at this moment.
            return Err(StoreError::Absent {
                path: path.to_owned(),
            });
        }
        Ok(Self {
            path: path.to_owned(),
            connection,
        })
    }

    /// Counts these arrivals in one transaction; returns after it is on the disk. What has been counted
    /// before is not counted again.
    ///
    /// # Errors
    /// [`StoreError::Database`]; then nothing of the call has happened.
    pub fn record(&mut self, entries: &[Entry], now_ms: i64) -> Result<(), StoreError> {
        let failed = database_error(&self.path);
        let transaction = self.connection.transaction().map_err(&failed)?;
        record_all(&transaction, entries, now_ms).map_err(&failed)?;
        transaction.commit().map_err(&failed)
    }

    /// The rows that pass the filter, the one that arrived last first.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub fn list(&self, filter: &AlarmFilter) -> Result<Vec<StoredAlarm>, StoreError> {
        let failed = database_error(&self.path);
        let mut statement = self.connection.prepare_cached(LIST).map_err(&failed)?;
        let rows = statement
            .query_map(
                params![
                    filter.since_ms,
                    filter.collection.as_ref().map(CollectionId::as_str),
                    filter.raiser.as_ref().map(ComponentId::as_str),
                    filter.code.map(AlarmCode::as_str),
                    filter.limit.map_or(-1, i64::from),
                ],
                stored_alarm,
            )
            .map_err(&failed)?;
        rows.collect::<Result<_, _>>().map_err(&failed)
    }
}

fn record_all(
    transaction: &Transaction<'_>,
    entries: &[Entry],
    now_ms: i64,
) -> rusqlite::Result<()> {
    for entry in entries {
        if transaction
            .prepare_cached(SEE)?
            .execute(params![entry.identity])?
            > 0
        {
            count(transaction, entry, now_ms)?;
        }
    }
    transaction
        .prepare_cached(FORGET_SEEN)?
        .execute(params![SEEN_KEPT])?;
    if entries
        .iter()
        .any(|entry| entry.kind == EntryKind::Unreadable)
    {
        transaction
            .prepare_cached(FORGET_UNREADABLE)?
            .execute(params![UNREADABLE_KEPT])?;
    }
    Ok(())
}

fn count(transaction: &Transaction<'_>, entry: &Entry, now_ms: i64) -> rusqlite::Result<()> {
    transaction.prepare_cached(COUNT)?.execute(params![
        fingerprint(entry),
        entry.kind == EntryKind::Unreadable,
        entry.raiser.as_str(),
        entry.code.as_str(),
        entry.text,
        entry.file.as_ref().map(FileId::as_str),
        entry.collection.as_ref().map(CollectionId::as_str),
        entry.raised_ms,
        now_ms,
        entry.raw,
    ])?;
    Ok(())
}

/// Equal for identical alarms: those that are one row.
fn fingerprint(entry: &Entry) -> [u8; 32] {
    let kind = match entry.kind {
        EntryKind::Alarm => "alarm",
        EntryKind::Unreadable => "unreadable",
    };
    digest_of(&[
        Some(kind),
        Some(entry.raiser.as_str()),
        Some(entry.code.as_str()),
        Some(&entry.text),
        entry.file.as_ref().map(FileId::as_str),
        entry.collection.as_ref().map(CollectionId::as_str),
    ])
}

fn stored_alarm(row: &Row<'_>) -> rusqlite::Result<StoredAlarm> {
    let code: String = row.get(3)?;
    let code = code.parse().map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(3, rusqlite::types::Type::Text, Box::new(error))
    })?;
    let unreadable: bool = row.get(1)?;
    let count: i64 = row.get(7)?;
    Ok(StoredAlarm {
        id: row.get(0)?,
        kind: if unreadable {
            EntryKind::Unreadable
        } else {
            EntryKind::Alarm
        },
        raiser: ComponentId::from(row.get::<_, String>(2)?),
        code,
        text: row.get(4)?,
        file: row.get::<_, Option<String>>(5)?.map(FileId::from),
        collection: row.get::<_, Option<String>>(6)?.map(CollectionId::from),
        count: u64::try_from(count).unwrap_or_default(),
        first_raised_ms: row.get(8)?,
        last_raised_ms: row.get(9)?,
        first_received_ms: row.get(10)?,
        last_received_ms: row.get(11)?,
        raw: row.get(12)?,
    })
}

fn database_error(path: &Path) -> impl Fn(rusqlite::Error) -> StoreError {
    move |source| StoreError::Database {
        path: path.to_owned(),
        source,
    }
}

const SEE: &str = "INSERT INTO seen (identity) VALUES (?1) ON CONFLICT DO NOTHING";

const COUNT: &str = "\
    INSERT INTO alarm (fingerprint, unreadable, raiser, code, text, file_id, collection_id, count, \
        first_raised, last_raised, first_received, last_received, raw) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 1, ?8, ?8, ?9, ?9, ?10) \
    ON CONFLICT (fingerprint) DO UPDATE SET count = count + 1, \
        first_raised = min(first_raised, excluded.first_raised), \
        last_raised = max(last_raised, excluded.last_raised), \
        last_received = max(last_received, excluded.last_received)";

const LIST: &str = "\
    SELECT id, unreadable, raiser, code, text, file_id, collection_id, count, \
        first_raised, last_raised, first_received, last_received, raw FROM alarm \
    WHERE (?1 IS NULL OR last_received >= ?1) AND (?2 IS NULL OR collection_id = ?2) \
        AND (?3 IS NULL OR raiser = ?3) AND (?4 IS NULL OR code = ?4) \
    ORDER BY last_received DESC, id DESC LIMIT ?5";

const FORGET_SEEN: &str = "DELETE FROM seen WHERE id <= (SELECT max(id) FROM seen) - ?1";

const FORGET_UNREADABLE: &str = "\
    DELETE FROM alarm WHERE unreadable AND id NOT IN \
        (SELECT id FROM alarm WHERE unreadable ORDER BY last_received DESC, id DESC LIMIT ?1)";

/// Arrivals whose repetition is recognized: far more than can be under way.
const SEEN_KEPT: i64 = 200_000;
/// Rows of unreadable messages: strangers decide how many there are.
const UNREADABLE_KEPT: i64 = 1_000;
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests;
