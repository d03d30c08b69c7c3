//! Files of which people are still to be told that they have changed or are gone.
//!
//! What becomes of an alarm is known after the commit that gave cause for it: a crash may come between, or the bus be
//! away. So the row says that it is untold until somebody says otherwise.

use pillarbox_messages::{CollectionId, FileId};
use rusqlite::{Connection, params};

use super::{
    FileRow, Index, IndexError, PAGE_MAX,
    rows::{file_row, sql_integer},
    writer::Job,
};

/// What people are to be told, or have been told, of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// The file's row.
    pub row: FileRow,
    /// It is gone from the disk; otherwise its bytes are not the expected ones.
    pub missing: bool,
}

impl Index {
    /// What is untold, in the order of file ids from after this one, at most [`PAGE_MAX`].
    ///
    /// # Errors
    /// The database fails.
    pub async fn untold(
        &self,
        collection: &CollectionId,
        after: &FileId,
    ) -> Result<Vec<Trouble>, IndexError> {
        let (collection, after) = (collection.clone(), after.clone());
        self.read(move |connection| untold(connection, &collection, &after))
            .await
    }

    /// People have been told. Nothing is changed if there is other trouble with the file by now.
    ///
    /// # Errors
    /// The database fails.
    pub async fn told(
        &self,
        collection: &CollectionId,
        trouble: Trouble,
    ) -> Result<(), IndexError> {
        self.write(|reply| Job::Told(collection.clone(), Box::new(trouble), reply))
            .await
    }
}

fn untold(
    connection: &Connection,
    collection: &CollectionId,
    after: &FileId,
) -> rusqlite::Result<Vec<Trouble>> {
    let mut statement = connection.prepare_cached(
        "SELECT file_id, directory, size, expected, observed, modified, calculated, missing
         FROM files INDEXED BY files_untold
         WHERE collection = (SELECT key FROM collections WHERE id = ?1) AND untold = 1
           AND file_id > ?2
         ORDER BY file_id LIMIT ?3",
    )?;
    let parameters = params![collection.as_str(), after.as_str(), sql_integer(PAGE_MAX)];
    let troubles = statement.query_map(parameters, |row| {
        Ok(Trouble {
            row: file_row(row)?,
            missing: row.get(7)?,
        })
    })?;
    troubles.collect()
}
