//! What the pillar knows about its files: sizes, checksums, times, operations done, audit trail.
//!
//! One SQLite database per pillar. One thread writes, and a request is answered when its transaction
//! is synced; readers work beside it and see what is committed.
//!
//! Invariants
//! * One row per (collection, file id).
//! * Within a collection, `modified` and `calculated` times each strictly increase in commit order:
//!   each is the greater of the clock's time and the last one given out plus 1 ms, so that a peer
//!   which pages by time alone never loops and never misses a file.
//! * Audit numbers of a collection have no gaps, and no lower number becomes visible after a higher.
//! * A file's row, its audit event and the remembered response become visible together or not at all.
//! * A name on the disk changes only while the index has an open operation for it, except by a put, which makes a
//!   name where the index knows none.
//!
//! A row is written only for a file that is complete and synced on the disk; see
//! [`archive`](crate::archive).

mod directories;
mod error;
mod ledger;
mod open_operations;
mod reader;
mod records;
mod rows;
mod schema;
mod trail;
mod untold;
mod upkeep;
mod writer;
mod writing;

use std::{num::NonZeroU64, path::PathBuf, sync::Arc};

use pillarbox_messages::{ChecksumType, CollectionId, FileId, clock::SharedClock};
use tokio::sync::{mpsc, oneshot, watch};

pub use self::{
    error::IndexError,
    open_operations::{NewVersion, OpenOperation},
    records::{
        AuditEntry, AuditEvent, AuditQuery, DeleteRecord, Done, FileRow, ListQuery, OperationKey,
        Page, Position, Prior, PutRecord, Remember, Remembered,
    },
    untold::Trouble,
    upkeep::{Adopted, Adoption, Health, Observation, Place, WorkerProgress},
};
use self::{
    ledger::Ledger,
    reader::{Order, Readers},
    writer::Job,
    writing::Writing,
};

/// What an index is made of.
#[derive(Clone, Debug)]
pub struct IndexOptions {
    /// The database file; its directory is made if missing.
    pub path: PathBuf,
    /// The type of all checksums in it: the repository's default.
    pub checksum_type: ChecksumType,
    /// The number of the first audit event of a collection that has none yet; 1 unless it continues
    /// the audit trail of an earlier pillar.
    pub first_audit_number: NonZeroU64,
    /// What gives rows and events their times.
    pub clock: SharedClock,
}

/// A pillar's index. Cloning gives another handle to it.
#[derive(Clone, Debug)]
pub struct Index(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    jobs: mpsc::Sender<Job>,
    readers: Readers,
    writing: watch::Receiver<Option<IndexError>>,
}

impl Index {
    /// Opens the database, which is made if it is missing. Blocks.
    ///
    /// # Errors
    /// The file can't be opened, is of a later format, or holds checksums of another type.
    pub fn open(options: IndexOptions) -> Result<Self, IndexError> {
        let IndexOptions {
            path,
            checksum_type,
            first_audit_number,
            clock,
        } = options;
        let ledger = Ledger::new(
            schema::open_writer(&path, checksum_type)?,
            first_audit_number,
        )?;
        let readers = Readers::open(&path)?;
        let (notes, writing) = Writing::new();
        let jobs = writer::start(ledger, clock, notes)?;
        Ok(Self(Arc::new(Inner {
            jobs,
            readers,
            writing,
        })))
    }

    /// Whether the database can be written: why not, from the first write that failed until one that worked.
    #[must_use]
    pub fn writing(&self) -> watch::Receiver<Option<IndexError>> {
        self.0.writing.clone()
    }

    /// Writes about as much as a change of a file does, to find out whether that works again.
    ///
    /// # Errors
    /// The database fails.
    pub async fn try_to_write(&self) -> Result<(), IndexError> {
        self.write(|reply| Job::Trial(TRIAL_BYTES, reply)).await?;
        self.write(|reply| Job::Trial(0, reply)).await
    }

    /// Writes down a stored file, its audit event and the response, and returns when that will
    /// outlast a power cut. A file that was missing is there again.
    ///
    /// Not cancel-safe: if the future is dropped, it may be written nevertheless.
    ///
    /// # Errors
    /// [`IndexError::AlreadyPresent`] with the row that is there; the database fails.
    pub async fn put(&self, record: PutRecord) -> Result<Done, IndexError> {
        self.write(|reply| Job::Put(Box::new(record), reply)).await
    }

    /// The same of a file that has taken another's place: its row is that of the new bytes, with new times. The
    /// file's open operation, if there is one, has come to its end.
    ///
    /// Not cancel-safe: if the future is dropped, it may be written nevertheless.
    ///
    /// # Errors
    /// [`IndexError::NotPresent`]; the database fails.
    pub async fn replace(&self, record: PutRecord) -> Result<Done, IndexError> {
        self.write(|reply| Job::Replace(Box::new(record), reply))
            .await
    }

    /// Takes away the row of a deleted file, and writes down audit event and response. The file's open operation,
    /// if there is one, has come to its end.
    ///
    /// Not cancel-safe: if the future is dropped, it may be written nevertheless.
    ///
    /// # Errors
    /// [`IndexError::NotPresent`]; the database fails.
    pub async fn delete(&self, record: DeleteRecord) -> Result<Done, IndexError> {
        self.write(|reply| Job::Delete(Box::new(record), reply))
            .await
    }

    /// Writes down what is about to be done to a file on the disk. From then on [`replace`](Self::replace) or
    /// [`delete`](Self::delete) ends it, or [`drop_operation`](Self::drop_operation).
    ///
    /// Not cancel-safe: if the future is dropped, it may be written nevertheless.
    ///
    /// # Errors
    /// The file has an open operation; the database fails.
    pub async fn open_operation(&self, operation: OpenOperation) -> Result<(), IndexError> {
        self.write(|reply| Job::Open(Box::new(operation), reply))
            .await
    }

    /// Forgets what was to be done to a file, which was not done.
    ///
    /// # Errors
    /// The database fails.
    pub async fn drop_operation(
        &self,
        collection: &CollectionId,
        file_id: &FileId,
    ) -> Result<(), IndexError> {
        let (collection, file_id) = (collection.clone(), file_id.clone());
        self.write(|reply| Job::Drop(collection, file_id, reply))
            .await
    }

    /// What was begun and has not come to its end, in the order in which it was begun.
    ///
    /// # Errors
    /// The database fails.
    pub async fn open_operations(&self) -> Result<Vec<OpenOperation>, IndexError> {
        self.read(open_operations::all).await
    }

    /// Adds an event to the audit trail; gives its number.
    ///
    /// Not cancel-safe: if the future is dropped, it may be written nevertheless.
    ///
    /// # Errors
    /// The database fails.
    pub async fn append(
        &self,
        collection: &CollectionId,
        entry: AuditEntry,
    ) -> Result<u64, IndexError> {
        self.write(|reply| Job::Append(collection.clone(), Box::new(entry), reply))
            .await
    }

    /// Takes a file that is not on the disk any more out of all listings, until it is put again;
    /// tells whether it was in them, so that one alarm is raised. A file that was put after `row` was
    /// read is left alone.
    ///
    /// # Errors
    /// The database fails.
    pub async fn mark_missing(
        &self,
        collection: &CollectionId,
        row: &FileRow,
    ) -> Result<bool, IndexError> {
        let row = Box::new(row.clone());
        self.write(|reply| Job::MarkMissing(collection.clone(), row, reply))
            .await
    }

    /// The row of a file, unless the file is missing.
    ///
    /// # Errors
    /// The database fails.
    pub async fn find(
        &self,
        collection: &CollectionId,
        file_id: &FileId,
    ) -> Result<Option<FileRow>, IndexError> {
        let (collection, file_id) = (collection.clone(), file_id.clone());
        self.0
            .readers
            .look_up(move |connection| reader::find(connection, &collection, &file_id))
            .await
    }

    /// What is known before an operation on a file is performed: how the same operation ended, if it was done,
    /// the file's row, and what has not come to its end. One look, so that all is of the same time.
    ///
    /// # Errors
    /// The database fails.
    pub async fn prior(&self, key: &OperationKey) -> Result<Prior, IndexError> {
        let key = key.clone();
        let look = move |connection: &rusqlite::Connection| {
            Ok(Prior {
                done: reader::remembered_response(connection, &key)?,
                row: reader::find(connection, &key.collection, &key.file_id)?,
                open: open_operations::of_file(connection, &key)?.map(Box::new),
            })
        };
        self.0.readers.look_up(look).await
    }

    /// Files in the order in which they were stored; bounds are inclusive.
    ///
    /// # Errors
    /// The database fails.
    pub async fn list_by_modified(&self, query: ListQuery) -> Result<Page, IndexError> {
        self.read(move |connection| reader::list(connection, Order::Modified, &query))
            .await
    }

    /// Files in the order in which their checksums were computed; bounds are inclusive.
    ///
    /// # Errors
    /// The database fails.
    pub async fn list_by_calculated(&self, query: ListQuery) -> Result<Page, IndexError> {
        self.read(move |connection| reader::list(connection, Order::Calculated, &query))
            .await
    }

    /// The last `calculated` time of a collection's files, without the missing ones; the lowest if there are none.
    ///
    /// # Errors
    /// The database fails.
    pub async fn last_calculated(&self, collection: &CollectionId) -> Result<i64, IndexError> {
        let collection = collection.clone();
        let look = move |connection: &rusqlite::Connection| {
            reader::last_calculated(connection, &collection)
        };
        self.0.readers.look_up(look).await
    }

    /// How many files a collection has, without the missing ones.
    ///
    /// # Errors
    /// The database fails.
    pub async fn count(&self, collection: &CollectionId) -> Result<u64, IndexError> {
        let collection = collection.clone();
        self.read(move |connection| reader::count(connection, &collection))
            .await
    }

    /// Finishes what was asked for before, and closes the database. Later requests fail.
    pub async fn close(&self) {
        // Closed already, if this fails.
        _ = self.write(Job::Close).await;
        self.0.readers.close().await;
    }

    async fn read<T: Send + 'static>(
        &self,
        query: impl FnOnce(&rusqlite::Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, IndexError> {
        self.0.readers.read(query).await
    }

    async fn write<T>(
        &self,
        job: impl FnOnce(oneshot::Sender<Result<T, IndexError>>) -> Job,
    ) -> Result<T, IndexError> {
        let (reply, answer) = oneshot::channel();
        self.0
            .jobs
            .send(job(reply))
            .await
            .map_err(|_| IndexError::Closed)?;
        answer.await.unwrap_or(Err(IndexError::Closed))
    }
}

/// A file's row in all its indexes, its event and its response, and more.
const TRIAL_BYTES: usize = 64 << 10;

/// Rows in one page at most, so that a page fits in memory whatever a peer asks for.
pub const PAGE_MAX: u64 = 1_000;

#[cfg(test)]
mod tests;
