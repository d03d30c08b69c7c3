//! A few connections that only read, off the async workers. Not all of them at once serve queries that may go through
//! much: whoever only looks something up never waits for those.

use std::{
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use pillarbox_messages::{CollectionId, FileId};
use rusqlite::{Connection, OptionalExtension, params};
use tokio::sync::Semaphore;

use super::{
    FileRow, IndexError, ListQuery, OperationKey, PAGE_MAX, Page, Position, Remembered,
    rows::{file_row, natural, remembered, sql_integer},
    schema,
};
use crate::in_place::can_block_in_place;

/// The reading connections.
#[derive(Debug)]
pub(super) struct Readers {
    /// As many as there are connections.
    permits: Arc<Semaphore>,
    /// Fewer, for whoever may take long.
    long: Arc<Semaphore>,
    idle: Arc<Mutex<Vec<Connection>>>,
}

impl Readers {
    pub(super) fn open(path: &Path) -> Result<Self, IndexError> {
        let connections = (0..READERS).map(|_| schema::open_reader(path));
        let idle = Arc::new(Mutex::new(connections.collect::<Result<Vec<_>, _>>()?));
        Ok(Self {
            permits: Arc::new(Semaphore::new(READERS)),
            long: Arc::new(Semaphore::new(LONG_READERS)),
            idle,
        })
    }

    /// Runs a query that looks at a few pages only. As a rule they are in memory, and the way to another thread and
    /// back would take longer than the query; so it stays on this thread, whose other tasks move elsewhere meanwhile.
    pub(super) async fn look_up<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, IndexError> {
        if !can_block_in_place() {
            return self.on_a_thread(query).await;
        }
        let permit = self.permits.acquire().await;
        let permit = permit.map_err(|_| IndexError::Closed)?;
        let connection = lock(&self.idle).pop().ok_or(IndexError::Closed)?;
        let result = tokio::task::block_in_place(|| query(&connection));
        lock(&self.idle).push(connection);
        drop(permit);
        Ok(result?)
    }

    /// Runs a query that may take long, on a blocking thread.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, IndexError> {
        let long = Arc::clone(&self.long).acquire_owned().await;
        let long = long.map_err(|_| IndexError::Closed)?;
        self.on_a_thread(move |connection| {
            // Also if nobody waits for the query any more.
            let _long = long;
            query(connection)
        })
        .await
    }

    async fn on_a_thread<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, IndexError> {
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        let permit = permit.map_err(|_| IndexError::Closed)?;
        let idle = Arc::clone(&self.idle);
        let task = tokio::task::spawn_blocking(move || {
            let connection = lock(&idle).pop().ok_or(IndexError::Closed)?;
            let result = query(&connection);
            lock(&idle).push(connection);
            drop(permit);
            Ok(result?)
        });
        task.await.unwrap_or(Err(IndexError::Closed))
    }

    /// Lets nobody in any more, and returns when nobody is in.
    pub(super) async fn close(&self) {
        // Fails if closed before, in which case all connections are gone.
        if let Ok(all) = self.permits.acquire_many(READERS_U32).await {
            self.permits.close();
            self.long.close();
            lock(&self.idle).clear();
            drop(all);
        }
    }
}

fn lock(idle: &Mutex<Vec<Connection>>) -> MutexGuard<'_, Vec<Connection>> {
    idle.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn find(
    connection: &Connection,
    collection: &CollectionId,
    file_id: &FileId,
) -> rusqlite::Result<Option<FileRow>> {
    let mut statement = connection.prepare_cached(
        "SELECT file_id, directory, size, expected, observed, modified, calculated FROM files
         WHERE collection = (SELECT key FROM collections WHERE id = ?1) AND file_id = ?2
           AND missing = 0",
    )?;
    statement
        .query_row([collection.as_str(), file_id.as_str()], file_row)
        .optional()
}

pub(super) fn remembered_response(
    connection: &Connection,
    key: &OperationKey,
) -> rusqlite::Result<Option<Remembered>> {
    let mut statement = connection.prepare_cached(
        "SELECT response, done FROM operations_done
         WHERE correlation = ?1 AND sender = ?2 AND operation = ?3
           AND collection = (SELECT key FROM collections WHERE id = ?4) AND file_id = ?5",
    )?;
    let parameters = [
        key.correlation.as_str(),
        key.from.as_str(),
        key.operation.as_str(),
        key.collection.as_str(),
        key.file_id.as_str(),
    ];
    statement.query_row(parameters, remembered).optional()
}

/// By which time a listing is ordered.
#[derive(Clone, Copy, Debug)]
pub(super) enum Order {
    Modified,
    Calculated,
}

impl Order {
    pub(super) fn sql(self) -> &'static str {
        match self {
            Self::Modified => {
                "SELECT file_id, directory, size, expected, observed, modified, calculated
                 FROM files
                 WHERE collection = (SELECT key FROM collections WHERE id = ?1) AND missing = 0
                   AND (modified, file_id) > (?2, ?3) AND modified <= ?4
                 ORDER BY modified, file_id LIMIT ?5"
            }
            Self::Calculated => {
                "SELECT file_id, directory, size, expected, observed, modified, calculated
                 FROM files
                 WHERE collection = (SELECT key FROM collections WHERE id = ?1) AND missing = 0
                   AND (calculated, file_id) > (?2, ?3) AND calculated <= ?4
                 ORDER BY calculated, file_id LIMIT ?5"
            }
        }
    }

    fn position(self, row: &FileRow) -> Position {
        let time_ms = match self {
            Self::Modified => row.modified_ms,
            Self::Calculated => row.calculated_ms,
        };
        Position {
            time_ms,
            file_id: row.file_id.clone(),
        }
    }
}

pub(super) fn list(
    connection: &Connection,
    order: Order,
    query: &ListQuery,
) -> rusqlite::Result<Page> {
    let limit = query
        .limit
        .map_or(PAGE_MAX, |limit| limit.get().min(PAGE_MAX));
    // No file id is empty, so this is before all files of the first time.
    let start = Position {
        time_ms: query.min_ms.unwrap_or(i64::MIN),
        file_id: "".into(),
    };
    let start = query
        .after
        .as_ref()
        .map_or(&start, |after| after.max(&start));
    let parameters = params![
        query.collection.as_str(),
        start.time_ms,
        start.file_id.as_str(),
        query.max_ms.unwrap_or(i64::MAX),
        sql_integer(limit.saturating_add(1)),
    ];
    let mut statement = connection.prepare_cached(order.sql())?;
    let mut rows: Vec<_> = statement
        .query_map(parameters, file_row)?
        .collect::<Result<_, _>>()?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let more = rows.len() > limit;
    rows.truncate(limit);
    let next = rows.last().filter(|_| more).map(|row| order.position(row));
    Ok(Page { rows, next })
}

pub(super) fn knows(connection: &Connection, collection: &CollectionId) -> rusqlite::Result<bool> {
    let mut statement =
        connection.prepare_cached("SELECT EXISTS (SELECT 1 FROM collections WHERE id = ?1)")?;
    statement.query_row([collection.as_str()], |row| row.get(0))
}

pub(super) fn last_calculated(
    connection: &Connection,
    collection: &CollectionId,
) -> rusqlite::Result<i64> {
    let mut statement = connection.prepare_cached(LAST_CALCULATED)?;
    let last: Option<i64> = statement.query_row([collection.as_str()], |row| row.get(0))?;
    Ok(last.unwrap_or(i64::MIN))
}

pub(super) fn count(connection: &Connection, collection: &CollectionId) -> rusqlite::Result<u64> {
    let mut statement = connection.prepare_cached(
        "SELECT count(*) FROM files
         WHERE collection = (SELECT key FROM collections WHERE id = ?1) AND missing = 0",
    )?;
    statement
        .query_row([collection.as_str()], |row| row.get(0))
        .map(natural)
}

pub(super) const LAST_CALCULATED: &str = "
    SELECT max(calculated) FROM files
    WHERE collection = (SELECT key FROM collections WHERE id = ?1) AND missing = 0";

/// Reading connections: more than cores, since a query may wait for the disk.
const READERS: usize = 4;
pub(super) const LONG_READERS: usize = 3;
const READERS_U32: u32 = 4;
