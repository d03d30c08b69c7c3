//! What background workers write down.

use std::path::Path;

use pillarbox_messages::{CollectionId, FileAction};
use rusqlite::{OptionalExtension, params};

use super::{Counters, Ledger};
use crate::index::{
    Adopted, Adoption, AuditEntry, FileRow, IndexError, Observation, Place, Trouble, rows::file_row,
};

impl Ledger {
    /// Makes a collection known. Its audit trail begins with the first number; if it has begun, it goes on.
    pub(in crate::index) fn introduce(
        &mut self,
        collection: CollectionId,
    ) -> Result<(), IndexError> {
        let mut counters = self.counters(&collection)?;
        let mut statement = self
            .connection
            .prepare_cached("SELECT EXISTS (SELECT 1 FROM audit WHERE collection = ?1)")?;
        let begun: bool = statement.query_row([counters.key], |row| row.get(0))?;
        drop(statement);
        if !begun {
            counters.audit = self.last_number_before();
            self.store(collection, counters)?;
        }
        Ok(())
    }

    /// People have been told of this very trouble with a file.
    pub(in crate::index) fn told(
        &mut self,
        collection: &CollectionId,
        trouble: &Trouble,
    ) -> Result<(), IndexError> {
        let counters = self.counters(collection)?;
        let Trouble { row, missing } = trouble;
        let mut statement = self.connection.prepare_cached(
            "UPDATE files SET untold = 0
             WHERE collection = ?1 AND file_id = ?2 AND modified = ?3 AND missing = ?4
               AND (missing = 1 OR observed = ?5)",
        )?;
        statement.execute(params![
            counters.key,
            row.file_id.as_str(),
            row.modified_ms,
            missing,
            row.observed.as_bytes(),
        ])?;
        Ok(())
    }

    /// An archive directory has another name.
    pub(in crate::index) fn relocate(
        &mut self,
        collection: &CollectionId,
        from: &Path,
        to: &Path,
    ) -> Result<(), IndexError> {
        let counters = self.counters(collection)?;
        let mut statement = self.connection.prepare_cached(
            "UPDATE files SET directory = ?3 WHERE collection = ?1 AND directory = ?2",
        )?;
        let (from, to) = (from.to_string_lossy(), to.to_string_lossy());
        statement.execute(params![counters.key, from, to])?;
        Ok(())
    }

    /// What was read becomes the observed checksum of each file that is still what it was; tells of which.
    pub(in crate::index) fn observe(
        &mut self,
        collection: CollectionId,
        observations: Vec<Observation>,
        now_ms: i64,
    ) -> Result<Vec<bool>, IndexError> {
        let mut counters = self.counters(&collection)?;
        let mut recorded = Vec::with_capacity(observations.len());
        for observation in &observations {
            recorded.push(self.observe_one(&mut counters, observation, now_ms)?);
        }
        self.store(collection, counters)?;
        Ok(recorded)
    }

    fn observe_one(
        &self,
        counters: &mut Counters,
        observation: &Observation,
        now_ms: i64,
    ) -> Result<bool, IndexError> {
        let Observation {
            row,
            checksum,
            audit,
        } = observation;
        let calculated = counters.next_calculated(now_ms);
        // Of what was known before people have been told, or are about to be.
        let untold = (*checksum != row.observed).then(|| *checksum != row.expected);
        let mut statement = self.connection.prepare_cached(
            "UPDATE files SET observed = ?1, calculated = ?2, untold = coalesce(?7, untold)
             WHERE collection = ?3 AND file_id = ?4 AND modified = ?5 AND calculated = ?6
               AND missing = 0",
        )?;
        let changed = statement.execute(params![
            checksum.as_bytes(),
            calculated,
            counters.key,
            row.file_id.as_str(),
            row.modified_ms,
            row.calculated_ms,
            untold,
        ])?;
        if changed == 0 {
            return Ok(false);
        }
        counters.calculated = calculated;
        if let Some(audit) = audit {
            self.write_event(counters, audit, now_ms)?;
        }
        Ok(true)
    }

    /// Gives a row to each file that was found on the disk and is not listed.
    pub(in crate::index) fn adopt(
        &mut self,
        collection: CollectionId,
        adoptions: Vec<Adoption>,
        now_ms: i64,
    ) -> Result<Vec<Adopted>, IndexError> {
        let mut counters = self.counters(&collection)?;
        let mut adopted = Vec::with_capacity(adoptions.len());
        for adoption in adoptions {
            adopted.push(self.adopt_one(&mut counters, adoption, now_ms)?);
        }
        self.store(collection, counters)?;
        Ok(adopted)
    }

    fn adopt_one(
        &self,
        counters: &mut Counters,
        adoption: Adoption,
        now_ms: i64,
    ) -> Result<Adopted, IndexError> {
        let former = self.with_its_absence(counters.key, &adoption)?;
        if let Some((_, false)) = former {
            return Ok(Adopted::Known);
        }
        let was_missing = former.is_some();
        let expected = former.map_or_else(|| adoption.checksum.clone(), |(row, _)| row.expected);
        counters.advance(now_ms);
        let Adoption {
            file_id,
            directory,
            size,
            checksum,
            actor,
        } = adoption;
        let row = FileRow {
            file_id,
            directory,
            size,
            expected,
            observed: checksum,
            modified_ms: counters.modified,
            calculated_ms: counters.calculated,
        };
        self.write_row(counters.key, &row)?;
        let found = if was_missing {
            "the file had been missing and was found again"
        } else {
            "the file was found in the archive directory and entered in the index"
        };
        let found = AuditEntry::of_pillar(&row.file_id, &actor, FileAction::Other, found);
        self.write_event(counters, &found, now_ms)?;
        if row.observed != row.expected {
            self.write_event(counters, &row.inconsistency(&actor), now_ms)?;
        }
        Ok(if was_missing {
            Adopted::Again(row)
        } else {
            Adopted::New(row)
        })
    }

    /// The row of a file, and whether it says that the file is missing.
    fn with_its_absence(
        &self,
        collection: i64,
        adoption: &Adoption,
    ) -> Result<Option<(FileRow, bool)>, IndexError> {
        let mut statement = self.connection.prepare_cached(
            "SELECT file_id, directory, size, expected, observed, modified, calculated, missing
             FROM files WHERE collection = ?1 AND file_id = ?2",
        )?;
        let parameters = params![collection, adoption.file_id.as_str()];
        Ok(statement
            .query_row(parameters, |row| Ok((file_row(row)?, row.get(7)?)))
            .optional()?)
    }

    /// Remembers where a worker goes on; nowhere, if it has come to the end of the collection.
    pub(in crate::index) fn save_progress(
        &mut self,
        worker: &str,
        collection: &CollectionId,
        place: Option<&Place>,
        now_ms: i64,
    ) -> Result<(), IndexError> {
        let counters = self.counters(collection)?;
        let mut statement = self.connection.prepare_cached(
            "INSERT INTO worker_progress (worker, collection, step, directory, path, finished)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)
             ON CONFLICT (worker, collection) DO UPDATE SET
                step = excluded.step, directory = excluded.directory, path = excluded.path,
                finished = coalesce(excluded.finished, finished)",
        )?;
        statement.execute(params![
            worker,
            counters.key,
            place.map(|it| it.step.as_str()),
            place.map(|it| it.directory.to_string_lossy()),
            place.map(|it| it.path.as_str()),
            place.is_none().then_some(now_ms),
        ])?;
        Ok(())
    }
}
