//! What becomes of files: rows written, replaced, deleted, and the operations that are under way.

use pillarbox_messages::{CollectionId, FileId};
use rusqlite::{OptionalExtension, named_params, params};

use super::Ledger;
use crate::index::{
    DeleteRecord, Done, FileRow, IndexError, OpenOperation, PutRecord, Remember, open_operations,
    rows::{file_row, sql_integer},
};

impl Ledger {
    /// Row, audit event and remembered response of a stored file.
    pub(in crate::index) fn put(
        &mut self,
        record: PutRecord,
        now_ms: i64,
    ) -> Result<Done, IndexError> {
        let counters = self.counters(&record.collection)?;
        match self.present(counters.key, &record.file_id)? {
            Some(row) => Err(IndexError::AlreadyPresent(Box::new(row))),
            None => {
                if record.directory.as_os_str().is_empty() {
                    self.check_way(counters.key, &record.file_id)?;
                }
                self.write_down(record, now_ms)
            }
        }
    }

    /// Where no bytes are kept, no folders are in the way: the ids have to do, so that a collection's pillars agree
    /// on which files there can be. As in an archive's directories, an id without a slash is in nobody's way.
    fn check_way(&self, collection: i64, file_id: &FileId) -> Result<(), IndexError> {
        let id = file_id.as_str();
        let Some((first, _)) = id.split_once('/') else {
            return Ok(());
        };
        let folders = id.match_indices('/').map(|(at, _)| at);
        for end in folders.filter(|end| *end > first.len()) {
            let folder = id.get(..end).unwrap_or_default();
            if self.present(collection, &folder.into())?.is_some() {
                return Err(IndexError::FileInTheWay(file_id.clone()));
            }
        }
        let mut below = self.connection.prepare_cached(
            "SELECT 1 FROM files WHERE collection = ?1 AND file_id > ?2 AND file_id < ?3 AND missing = 0 LIMIT 1",
        )?;
        // The character behind the slash.
        if below.exists(params![collection, format!("{id}/"), format!("{id}0")])? {
            return Err(IndexError::FolderInTheWay(file_id.clone()));
        }
        Ok(())
    }

    /// The same of a file that has taken another's place.
    pub(in crate::index) fn replace(
        &mut self,
        record: PutRecord,
        now_ms: i64,
    ) -> Result<Done, IndexError> {
        let counters = self.counters(&record.collection)?;
        if self.present(counters.key, &record.file_id)?.is_none() {
            return Err(IndexError::NotPresent(record.file_id));
        }
        open_operations::remove(&self.connection, counters.key, record.file_id.as_str())?;
        self.write_down(record, now_ms)
    }

    fn write_down(&mut self, record: PutRecord, now_ms: i64) -> Result<Done, IndexError> {
        let PutRecord {
            collection,
            file_id,
            directory,
            size,
            checksum,
            audit,
            remember,
        } = record;
        let mut counters = self.counters(&collection)?;
        counters.advance(now_ms);
        let row = FileRow {
            file_id,
            directory,
            size,
            expected: checksum.clone(),
            observed: checksum,
            modified_ms: counters.modified,
            calculated_ms: counters.calculated,
        };
        self.write_row(counters.key, &row)?;
        let audit_number = self.write_event(&mut counters, &audit, now_ms)?;
        let response = self.write_done(counters.key, &row, remember, now_ms)?;
        self.store(collection, counters)?;
        Ok(Done {
            row,
            audit_number,
            response,
        })
    }

    /// Takes away the row of a deleted file; audit event and remembered response stay.
    pub(in crate::index) fn delete(
        &mut self,
        record: DeleteRecord,
        now_ms: i64,
    ) -> Result<Done, IndexError> {
        let DeleteRecord {
            collection,
            file_id,
            audit,
            remember,
        } = record;
        let mut counters = self.counters(&collection)?;
        let Some(row) = self.present(counters.key, &file_id)? else {
            return Err(IndexError::NotPresent(file_id));
        };
        open_operations::remove(&self.connection, counters.key, file_id.as_str())?;
        let mut statement = self
            .connection
            .prepare_cached("DELETE FROM files WHERE collection = ?1 AND file_id = ?2")?;
        statement.execute(params![counters.key, file_id.as_str()])?;
        drop(statement);
        let audit_number = self.write_event(&mut counters, &audit, now_ms)?;
        let response = self.write_done(counters.key, &row, remember, now_ms)?;
        self.store(collection, counters)?;
        Ok(Done {
            row,
            audit_number,
            response,
        })
    }

    /// Writes down what is about to be done to a file.
    pub(in crate::index) fn open_operation(
        &mut self,
        operation: &OpenOperation,
    ) -> Result<(), IndexError> {
        let counters = self.counters(&operation.key.collection)?;
        Ok(open_operations::insert(
            &self.connection,
            counters.key,
            operation,
        )?)
    }

    /// Forgets what was to be done to a file, which was not done.
    pub(in crate::index) fn drop_operation(
        &mut self,
        collection: &CollectionId,
        file_id: &FileId,
    ) -> Result<(), IndexError> {
        let counters = self.counters(collection)?;
        Ok(open_operations::remove(
            &self.connection,
            counters.key,
            file_id.as_str(),
        )?)
    }

    /// Takes a file out of all listings, but keeps its row; unless it was put again since `row` was read, which
    /// its time tells.
    pub(in crate::index) fn mark_missing(
        &self,
        collection: &CollectionId,
        row: &FileRow,
    ) -> Result<bool, IndexError> {
        let Some(counters) = self.collections.get(collection) else {
            return Ok(false);
        };
        let mut statement = self.connection.prepare_cached(
            "UPDATE files SET missing = 1, untold = 1
             WHERE collection = ?1 AND file_id = ?2 AND modified = ?3 AND missing = 0",
        )?;
        let parameters = params![counters.key, row.file_id.as_str(), row.modified_ms];
        Ok(statement.execute(parameters)? > 0)
    }

    fn present(&self, collection: i64, file_id: &FileId) -> Result<Option<FileRow>, IndexError> {
        let mut statement = self.connection.prepare_cached(
            "SELECT file_id, directory, size, expected, observed, modified, calculated FROM files
             WHERE collection = ?1 AND file_id = ?2 AND missing = 0",
        )?;
        Ok(statement
            .query_row(params![collection, file_id.as_str()], file_row)
            .optional()?)
    }

    pub(super) fn write_row(&self, collection: i64, row: &FileRow) -> Result<(), IndexError> {
        let mut statement = self.connection.prepare_cached(
            "INSERT INTO files (collection, file_id, directory, size, expected, observed, modified,
                                calculated, missing, untold)
             VALUES (:collection, :file_id, :directory, :size, :expected, :observed, :modified,
                     :calculated, 0, :untold)
             ON CONFLICT (collection, file_id) DO UPDATE SET
                directory = excluded.directory, size = excluded.size, expected = excluded.expected,
                observed = excluded.observed, modified = excluded.modified,
                calculated = excluded.calculated, missing = 0, untold = excluded.untold",
        )?;
        statement.execute(named_params! {
            ":collection": collection,
            ":file_id": row.file_id.as_str(),
            ":directory": row.directory.to_string_lossy(),
            ":size": sql_integer(row.size),
            ":expected": row.expected.as_bytes(),
            ":observed": row.observed.as_bytes(),
            ":modified": row.modified_ms,
            ":calculated": row.calculated_ms,
            ":untold": row.observed != row.expected,
        })?;
        Ok(())
    }

    fn write_done(
        &self,
        collection: i64,
        row: &FileRow,
        remember: Option<Remember>,
        now_ms: i64,
    ) -> Result<Option<String>, IndexError> {
        let Some(Remember {
            from,
            correlation,
            operation,
            respond,
        }) = remember
        else {
            return Ok(None);
        };
        let response = respond(row);
        let mut statement = self.connection.prepare_cached(
            "INSERT OR REPLACE INTO operations_done
                (correlation, sender, operation, collection, file_id, done, response)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?;
        statement.execute(params![
            correlation.as_str(),
            from.as_str(),
            operation.as_str(),
            collection,
            row.file_id.as_str(),
            now_ms,
            response,
        ])?;
        Ok(Some(response))
    }
}
