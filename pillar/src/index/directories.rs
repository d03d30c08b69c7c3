//! In which archive directories files are.

use std::path::{Path, PathBuf};

use pillarbox_messages::{CollectionId, FileId};
use rusqlite::{Connection, params};

use super::{Index, IndexError, PAGE_MAX, rows::sql_integer, writer::Job};

impl Index {
    /// The configured archive directories that a collection's files were stored in, without the missing ones.
    ///
    /// # Errors
    /// The database fails.
    pub async fn directories(&self, collection: &CollectionId) -> Result<Vec<PathBuf>, IndexError> {
        let collection = collection.clone();
        self.read(move |connection| directories(connection, &collection))
            .await
    }

    /// Files that were stored in an archive directory, at most [`PAGE_MAX`], taken at random: neither missing ones nor
    /// those that are about to be deleted.
    ///
    /// # Errors
    /// The database fails.
    pub async fn sample(
        &self,
        collection: &CollectionId,
        directory: &Path,
    ) -> Result<Vec<FileId>, IndexError> {
        let (collection, directory) = (collection.clone(), directory.to_owned());
        self.read(move |connection| sample(connection, &collection, &directory))
            .await
    }

    /// An archive directory has another name: that of the one in which its files are now.
    ///
    /// # Errors
    /// The database fails.
    pub async fn relocate(
        &self,
        collection: &CollectionId,
        from: &Path,
        to: &Path,
    ) -> Result<(), IndexError> {
        let (from, to) = (from.to_owned(), to.to_owned());
        self.write(|reply| Job::Relocate(collection.clone(), [from, to], reply))
            .await
    }
}

fn directories(
    connection: &Connection,
    collection: &CollectionId,
) -> rusqlite::Result<Vec<PathBuf>> {
    let mut statement = connection.prepare_cached(
        "SELECT DISTINCT directory FROM files
         WHERE collection = (SELECT key FROM collections WHERE id = ?1) AND missing = 0",
    )?;
    let rows = statement.query_map([collection.as_str()], |row| row.get::<_, String>(0))?;
    rows.map(|row| row.map(PathBuf::from)).collect()
}

fn sample(
    connection: &Connection,
    collection: &CollectionId,
    directory: &Path,
) -> rusqlite::Result<Vec<FileId>> {
    let mut statement = connection.prepare_cached(
        "SELECT file_id FROM files
         WHERE collection = (SELECT key FROM collections WHERE id = ?1) AND directory = ?2
           AND missing = 0
           AND NOT EXISTS (SELECT 1 FROM open_operations
                           WHERE open_operations.collection = files.collection
                             AND open_operations.file_id = files.file_id
                             AND open_operations.directory IS NULL)
         ORDER BY random() LIMIT ?3",
    )?;
    let parameters = params![
        collection.as_str(),
        directory.to_string_lossy(),
        sql_integer(PAGE_MAX)
    ];
    let rows = statement.query_map(parameters, |row| row.get::<_, String>(0))?;
    rows.map(|row| row.map(FileId::from)).collect()
}
