//! The database's format and how older ones are brought up to it.

use std::path::Path;

use rusqlite::Connection;

use super::{StoreError, database_error};

/// The newest format: the number of steps.
const FORMAT: i64 = 1;
/// Each step makes the format of its place, counted from 1, out of the one before.
const STEPS: [&str; 1] = ["\
    CREATE TABLE alarm (
        id INTEGER PRIMARY KEY,
        fingerprint BLOB NOT NULL UNIQUE,
        unreadable INTEGER NOT NULL,
        raiser TEXT NOT NULL,
        code TEXT NOT NULL,
        text TEXT NOT NULL,
        file_id TEXT,
        collection_id TEXT,
        count INTEGER NOT NULL,
        first_raised INTEGER NOT NULL,
        last_raised INTEGER NOT NULL,
        first_received INTEGER NOT NULL,
        last_received INTEGER NOT NULL,
        raw TEXT
    ) STRICT;
    CREATE INDEX alarm_by_time ON alarm (last_received);
    CREATE INDEX alarm_unreadable ON alarm (last_received) WHERE unreadable;
    CREATE TABLE seen (
        id INTEGER PRIMARY KEY,
        identity BLOB NOT NULL UNIQUE
    ) STRICT;"];

/// Brings the database to the newest format.
pub(super) fn bring_up_to_date(connection: &mut Connection, path: &Path) -> Result<(), StoreError> {
    let found = check(connection, path)?;
    let failed = database_error(path);
    for (format, step) in (1i64..).zip(STEPS).filter(|(format, _)| *format > found) {
        let transaction = connection.transaction().map_err(&failed)?;
        transaction.execute_batch(step).map_err(&failed)?;
        transaction
            .pragma_update(None, "user_version", format)
            .map_err(&failed)?;
        transaction.commit().map_err(&failed)?;
    }
    Ok(())
}

/// The database's format, if this program can read it.
pub(super) fn check(connection: &Connection, path: &Path) -> Result<i64, StoreError> {
    let found = connection
        .query_row("SELECT user_version FROM pragma_user_version", [], |row| {
            row.get(0)
        })
        .map_err(database_error(path))?;
    if found > FORMAT {
        return Err(StoreError::Newer {
            path: path.to_owned(),
            found,
            known: FORMAT,
        });
    }
    Ok(found)
}
