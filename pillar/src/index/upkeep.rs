//! What background workers tell the index, and what they ask it.

use std::path::PathBuf;

use pillarbox_messages::{CollectionId, ComponentId, FileId, HexBinary};
use rusqlite::{Connection, OptionalExtension, params};

use super::{
    AuditEntry, FileRow, Index, IndexError, PAGE_MAX, reader,
    rows::{file_row, natural, sql_integer},
    writer::Job,
};

/// The bytes of a file have been read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    /// The file's row as it was before.
    pub row: FileRow,
    /// The checksum of what was read.
    pub checksum: HexBinary,
    /// An audit event, if there is something to tell.
    pub audit: Option<AuditEntry>,
}

/// A file was found that has no row, or whose row says that it is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adoption {
    /// Its id, by its place.
    pub file_id: FileId,
    /// The configured archive directory that it is in.
    pub directory: PathBuf,
    /// Its size in bytes.
    pub size: u64,
    /// Its checksum by the repository's default spec.
    pub checksum: HexBinary,
    /// Who found it.
    pub actor: ComponentId,
}

/// What became of an [`Adoption`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Adopted {
    /// It is a new row.
    New(FileRow),
    /// It had been missing, and is listed again; what was expected of it still is.
    Again(FileRow),
    /// It has a row by now; nothing was changed.
    Known,
}

/// Where a worker goes on in a collection. What the texts mean is the worker's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// In which part of its work.
    pub step: String,
    /// In which archive directory.
    pub directory: PathBuf,
    /// After which file.
    pub path: String,
}

/// How far a worker is in a collection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkerProgress {
    /// Where it goes on, if it is in the middle of its work.
    pub place: Option<Place>,
    /// When it last came to the end of the collection.
    pub finished_ms: Option<i64>,
}

/// What is known to be wrong with a collection's files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Files that are gone from the disk.
    pub missing: u64,
    /// Files whose bytes are not the expected ones.
    pub inconsistent: u64,
}

impl Index {
    /// Makes a collection known. Until then nothing was ever written about it; its audit trail begins with the
    /// number that the options give.
    ///
    /// # Errors
    /// The database fails.
    pub async fn introduce(&self, collection: &CollectionId) -> Result<(), IndexError> {
        self.write(|reply| Job::Introduce(collection.clone(), reply))
            .await
    }

    /// Whether a collection was made known.
    ///
    /// # Errors
    /// The database fails.
    pub async fn knows(&self, collection: &CollectionId) -> Result<bool, IndexError> {
        let collection = collection.clone();
        self.read(move |connection| reader::knows(connection, &collection))
            .await
    }

    /// Writes down what was read, with new `calculated` times; tells for each whether it was: a file that was
    /// changed in any way after its row was read is left alone.
    ///
    /// # Errors
    /// The database fails.
    pub async fn observe(
        &self,
        collection: &CollectionId,
        observations: Vec<Observation>,
    ) -> Result<Vec<bool>, IndexError> {
        self.write(|reply| Job::Observe(collection.clone(), observations, reply))
            .await
    }

    /// Gives rows to files that were found on the disk; tells what became of each. Keep their claims until then.
    ///
    /// # Errors
    /// The database fails.
    pub async fn adopt(
        &self,
        collection: &CollectionId,
        adoptions: Vec<Adoption>,
    ) -> Result<Vec<Adopted>, IndexError> {
        self.write(|reply| Job::Adopt(collection.clone(), adoptions, reply))
            .await
    }

    /// Remembers where a worker goes on after a restart; `None` if it has come to the end of the collection.
    ///
    /// # Errors
    /// The database fails.
    pub async fn save_progress(
        &self,
        worker: &'static str,
        collection: &CollectionId,
        place: Option<Place>,
    ) -> Result<(), IndexError> {
        self.write(|reply| Job::Progress(worker, collection.clone(), place, reply))
            .await
    }

    /// How far a worker is in a collection.
    ///
    /// # Errors
    /// The database fails.
    pub async fn progress(
        &self,
        worker: &'static str,
        collection: &CollectionId,
    ) -> Result<WorkerProgress, IndexError> {
        let collection = collection.clone();
        self.read(move |connection| progress(connection, worker, &collection))
            .await
    }

    /// Rows in the order of their file ids from after this one, at most [`PAGE_MAX`]; without the missing ones.
    ///
    /// # Errors
    /// The database fails.
    pub async fn list_by_id(
        &self,
        collection: &CollectionId,
        after: &str,
    ) -> Result<Vec<FileRow>, IndexError> {
        let (collection, after) = (collection.clone(), after.to_owned());
        self.read(move |connection| list_by_id(connection, &collection, &after))
            .await
    }

    /// Those of the files that are not listed: without a row, or missing.
    ///
    /// # Errors
    /// The database fails.
    pub async fn unlisted(
        &self,
        collection: &CollectionId,
        file_ids: Vec<FileId>,
    ) -> Result<Vec<FileId>, IndexError> {
        let collection = collection.clone();
        self.read(move |connection| unlisted(connection, &collection, file_ids))
            .await
    }

    /// The row of a file, unless the file is missing, or an operation on it is open.
    ///
    /// # Errors
    /// The database fails.
    pub async fn settled(
        &self,
        collection: &CollectionId,
        file_id: &FileId,
    ) -> Result<Option<FileRow>, IndexError> {
        let (collection, file_id) = (collection.clone(), file_id.clone());
        self.read(move |connection| settled(connection, &collection, &file_id))
            .await
    }

    /// What is known to be wrong with a collection's files.
    ///
    /// # Errors
    /// The database fails.
    pub async fn health(&self, collection: &CollectionId) -> Result<Health, IndexError> {
        let collection = collection.clone();
        self.read(move |connection| health(connection, &collection))
            .await
    }
}

fn progress(
    connection: &Connection,
    worker: &str,
    collection: &CollectionId,
) -> rusqlite::Result<WorkerProgress> {
    let mut statement = connection.prepare_cached(
        "SELECT step, directory, path, finished FROM worker_progress
         WHERE worker = ?1 AND collection = (SELECT key FROM collections WHERE id = ?2)",
    )?;
    let found = statement.query_row([worker, collection.as_str()], |row| {
        let step: Option<String> = row.get(0)?;
        let place = match step {
            Some(step) => Some(Place {
                step,
                directory: PathBuf::from(row.get::<_, String>(1)?),
                path: row.get(2)?,
            }),
            None => None,
        };
        Ok(WorkerProgress {
            place,
            finished_ms: row.get(3)?,
        })
    });
    Ok(found.optional()?.unwrap_or_default())
}

/// Rows in the order of their file ids, after this one; without the missing ones.
fn list_by_id(
    connection: &Connection,
    collection: &CollectionId,
    after: &str,
) -> rusqlite::Result<Vec<FileRow>> {
    let mut statement = connection.prepare_cached(
        "SELECT file_id, directory, size, expected, observed, modified, calculated FROM files
         WHERE collection = (SELECT key FROM collections WHERE id = ?1) AND missing = 0
           AND file_id > ?2
         ORDER BY file_id LIMIT ?3",
    )?;
    let parameters = params![collection.as_str(), after, sql_integer(PAGE_MAX)];
    statement.query_map(parameters, file_row)?.collect()
}

/// Of these files, the ones that have no row, or a row that says that they are missing.
fn unlisted(
    connection: &Connection,
    collection: &CollectionId,
    file_ids: Vec<FileId>,
) -> rusqlite::Result<Vec<FileId>> {
    let mut statement = connection.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM files
                        WHERE collection = (SELECT key FROM collections WHERE id = ?1)
                          AND file_id = ?2 AND missing = 0)",
    )?;
    let mut unlisted = Vec::new();
    for file_id in file_ids {
        let listed: bool =
            statement.query_row([collection.as_str(), file_id.as_str()], |row| row.get(0))?;
        if !listed {
            unlisted.push(file_id);
        }
    }
    Ok(unlisted)
}

/// The row of a file, unless the file is missing, or something that was begun with it has not come to its end.
fn settled(
    connection: &Connection,
    collection: &CollectionId,
    file_id: &FileId,
) -> rusqlite::Result<Option<FileRow>> {
    let mut statement = connection.prepare_cached(
        "SELECT file_id, directory, size, expected, observed, modified, calculated FROM files
         WHERE collection = (SELECT key FROM collections WHERE id = ?1) AND file_id = ?2
           AND missing = 0
           AND NOT EXISTS (SELECT 1 FROM open_operations
                           WHERE open_operations.collection = files.collection
                             AND open_operations.file_id = files.file_id)",
    )?;
    statement
        .query_row([collection.as_str(), file_id.as_str()], file_row)
        .optional()
}

fn health(connection: &Connection, collection: &CollectionId) -> rusqlite::Result<Health> {
    let count = |sql: &str| {
        let mut statement = connection.prepare_cached(sql)?;
        statement
            .query_row([collection.as_str()], |row| row.get(0))
            .map(natural)
    };
    Ok(Health {
        missing: count(
            "SELECT count(*) FROM files
             WHERE collection = (SELECT key FROM collections WHERE id = ?1) AND missing = 1",
        )?,
        inconsistent: count(
            "SELECT count(*) FROM files
             WHERE collection = (SELECT key FROM collections WHERE id = ?1) AND missing = 0
               AND observed <> expected",
        )?,
    })
}
