//! Changes to the database, inside a transaction that the caller begins and ends.

mod changes;
mod trail;
mod upkeep;

use std::{
    collections::BTreeMap,
    num::NonZeroU64,
    panic::{AssertUnwindSafe, catch_unwind},
};

use pillarbox_messages::CollectionId;
use rusqlite::{Connection, params};

use super::{IndexError, rows::sql_integer, writing::Written};

/// The writing connection, and what it knows by heart.
#[derive(Debug)]
pub(super) struct Ledger {
    connection: Connection,
    first_audit_number: NonZeroU64,
    collections: BTreeMap<CollectionId, Counters>,
    /// Why SQLite itself ended the transaction, as it does when the disk fails.
    lost: Option<IndexError>,
    /// What is known by heart is not what the database has.
    stale: bool,
    /// What the transaction has come to so far.
    written: Written,
}

/// The last times and number given out in a collection.
#[derive(Clone, Copy, Debug)]
struct Counters {
    key: i64,
    modified: i64,
    calculated: i64,
    audit: i64,
}

impl Counters {
    /// The next times: those of the clock, but later than all that were given out.
    fn advance(&mut self, now_ms: i64) {
        self.modified = now_ms.max(self.modified.saturating_add(1));
        self.calculated = self.next_calculated(now_ms);
    }

    fn next_calculated(&self, now_ms: i64) -> i64 {
        now_ms.max(self.calculated.saturating_add(1))
    }
}

impl Ledger {
    pub(super) fn new(
        connection: Connection,
        first_audit_number: NonZeroU64,
    ) -> Result<Self, IndexError> {
        let collections = BTreeMap::new();
        let mut ledger = Self {
            connection,
            first_audit_number,
            collections,
            lost: None,
            stale: true,
            written: Written::Nothing,
        };
        ledger.reload()?;
        Ok(ledger)
    }

    /// Begins a transaction.
    pub(super) fn begin(&mut self) -> Result<(), IndexError> {
        if self.stale {
            self.reload()?;
        }
        self.execute("BEGIN IMMEDIATE")
    }

    /// Ends the transaction: everything in it is on the disk, or nothing.
    pub(super) fn commit(&mut self) -> Result<(), IndexError> {
        let committed = match self.lost.take() {
            Some(error) => Err(error),
            None => self.execute("COMMIT"),
        };
        if committed.is_err() {
            self.roll_back();
        }
        committed
    }

    /// What the transaction that was just ended with this outcome has come to for the disk.
    pub(super) fn written(&mut self, outcome: &Result<(), IndexError>) -> Written {
        let written = std::mem::take(&mut self.written);
        match outcome {
            Ok(()) => written,
            Err(error) if error.is_of_the_disk() => Written::Refused(error.clone()),
            Err(_) => Written::Nothing,
        }
    }

    /// Whether the transaction is still there.
    pub(super) fn is_in_transaction(&self) -> bool {
        !self.connection.is_autocommit()
    }

    /// Undoes the transaction, if there is one.
    pub(super) fn roll_back(&mut self) {
        if self.is_in_transaction()
            && let Err(error) = self.execute("ROLLBACK")
        {
            tracing::error!(%error, "index: transaction not rolled back");
        }
        self.stale = true;
        if let Err(error) = self.reload() {
            tracing::error!(%error, "index: counters not read; the next transaction begins with that");
        }
    }

    /// Moves the write-ahead log into the database, at the end.
    pub(super) fn checkpoint(&self) {
        let moved = self
            .connection
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        if let Err(error) = moved {
            tracing::warn!(%error, "index: write-ahead log not moved");
        }
    }

    /// Runs a part of the transaction, of which nothing is left if it fails or panics.
    pub(super) fn attempt<T>(
        &mut self,
        collection: &CollectionId,
        work: impl FnOnce(&mut Self) -> Result<T, IndexError>,
    ) -> Result<T, IndexError> {
        let before = self.collections.get(collection).copied();
        let outcome = self.attempt_part(work);
        if outcome.is_err() {
            match before {
                Some(counters) => self.collections.insert(collection.clone(), counters),
                None => self.collections.remove(collection),
            };
        }
        outcome
    }

    fn attempt_part<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, IndexError>,
    ) -> Result<T, IndexError> {
        let before = self.connection.total_changes();
        self.execute("SAVEPOINT attempt")?;
        let outcome = catch_unwind(AssertUnwindSafe(|| work(self)));
        let outcome = outcome.unwrap_or(Err(IndexError::Response));
        match &outcome {
            Ok(_) if self.connection.total_changes() != before => {
                self.written.note(Written::Something);
            }
            Ok(_) => {}
            Err(error) => {
                if error.is_of_the_disk() {
                    self.written.note(Written::Refused(error.clone()));
                }
                if !self.is_in_transaction() {
                    self.lost = Some(error.clone());
                    return outcome;
                }
                self.execute("ROLLBACK TO attempt")?;
            }
        }
        self.execute("RELEASE attempt")?;
        outcome
    }

    /// Writes so many bytes that mean nothing over those of the last time.
    pub(super) fn write_trial(&mut self, bytes: usize) -> Result<(), IndexError> {
        self.attempt_part(|ledger| {
            let mut statement = ledger.connection.prepare_cached(
                "INSERT OR REPLACE INTO facts (name, value) VALUES ('trial', ?1)",
            )?;
            statement.execute([".".repeat(bytes)])?;
            Ok(())
        })
    }

    /// The counters of a collection, which is made known if it is new.
    fn counters(&mut self, collection: &CollectionId) -> Result<Counters, IndexError> {
        if let Some(counters) = self.collections.get(collection) {
            return Ok(*counters);
        }
        let audit = self.last_number_before();
        let mut statement = self.connection.prepare_cached(
            "INSERT INTO collections (id, last_modified, last_calculated, last_audit)
             VALUES (?1, ?2, ?2, ?3)",
        )?;
        let key = statement.insert(params![collection.as_str(), i64::MIN, audit])?;
        let counters = Counters {
            key,
            modified: i64::MIN,
            calculated: i64::MIN,
            audit,
        };
        self.collections.insert(collection.clone(), counters);
        Ok(counters)
    }

    /// The number before the first one.
    fn last_number_before(&self) -> i64 {
        sql_integer(self.first_audit_number.get().saturating_sub(1))
    }

    fn store(&mut self, collection: CollectionId, counters: Counters) -> Result<(), IndexError> {
        let mut statement = self.connection.prepare_cached(
            "UPDATE collections SET last_modified = ?2, last_calculated = ?3, last_audit = ?4
             WHERE key = ?1",
        )?;
        let Counters {
            key,
            modified,
            calculated,
            audit,
        } = counters;
        statement.execute(params![key, modified, calculated, audit])?;
        self.collections.insert(collection, counters);
        Ok(())
    }

    fn reload(&mut self) -> Result<(), IndexError> {
        let mut statement = self.connection.prepare_cached(
            "SELECT id, key, last_modified, last_calculated, last_audit FROM collections",
        )?;
        let rows = statement.query_map([], |row| {
            let counters = Counters {
                key: row.get(1)?,
                modified: row.get(2)?,
                calculated: row.get(3)?,
                audit: row.get(4)?,
            };
            Ok((row.get::<_, String>(0)?.into(), counters))
        })?;
        let collections = rows.collect::<Result<_, _>>()?;
        drop(statement);
        self.collections = collections;
        self.stale = false;
        Ok(())
    }

    fn execute(&self, sql: &str) -> Result<(), IndexError> {
        self.connection.prepare_cached(sql)?.execute([])?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use pillarbox_messages::{ChecksumType, FileAction};

    use super::*;
    use crate::index::{AuditEntry, schema};

    fn entry() -> AuditEntry {
        AuditEntry {
            file_id: "x1".into(),
            actor: "ingest-1".into(),
            action: FileAction::GetFile,
            info: None,
            operation_id: None,
            certificate_id: None,
            audit_trail_information: None,
        }
    }

    /// As after an I/O error: what was done before is undone too, and the commit says why.
    #[test]
    fn a_transaction_that_sqlite_ended_is_not_committed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("index.sqlite");
        let connection = schema::open_writer(&path, ChecksumType::Md5).unwrap();
        let mut ledger = Ledger::new(connection, NonZeroU64::MIN).unwrap();
        let books: CollectionId = "books".into();
        let append = |ledger: &mut Ledger| ledger.append("books".into(), &entry(), 1);

        ledger.begin().unwrap();
        assert_eq!(ledger.attempt(&books, append).unwrap(), 1);
        let ended = ledger.attempt(&books, |ledger| {
            ledger.execute("ROLLBACK")?;
            Err::<(), _>(IndexError::Response)
        });
        assert!(matches!(ended, Err(IndexError::Response)));
        assert!(!ledger.is_in_transaction());
        assert!(matches!(ledger.commit(), Err(IndexError::Response)));

        ledger.begin().unwrap();
        assert_eq!(ledger.attempt(&books, append).unwrap(), 1);
        ledger.commit().unwrap();
    }

    /// Nothing is written by numbers that were never given out, nor by none at all.
    #[test]
    fn what_could_not_be_read_after_a_failure_is_read_before_the_next_transaction() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("index.sqlite");
        let connection = schema::open_writer(&path, ChecksumType::Md5).unwrap();
        let mut ledger = Ledger::new(connection, NonZeroU64::MIN).unwrap();
        let books: CollectionId = "books".into();
        let append = |ledger: &mut Ledger| ledger.append("books".into(), &entry(), 1);
        ledger.begin().unwrap();
        assert_eq!(ledger.attempt(&books, append).unwrap(), 1);
        ledger.commit().unwrap();

        ledger.begin().unwrap();
        assert_eq!(ledger.attempt(&books, append).unwrap(), 2);
        ledger.execute("ROLLBACK").unwrap();
        ledger
            .execute("ALTER TABLE collections RENAME TO away")
            .unwrap();
        ledger.commit().unwrap_err();
        assert!(matches!(ledger.begin(), Err(IndexError::Database(_))));
        assert!(!ledger.is_in_transaction());

        ledger
            .execute("ALTER TABLE away RENAME TO collections")
            .unwrap();
        ledger.begin().unwrap();
        assert_eq!(ledger.attempt(&books, append).unwrap(), 2);
        ledger.commit().unwrap();
    }
}
