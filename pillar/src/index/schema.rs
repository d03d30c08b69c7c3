//! The database file: its tables, its format, and how connections to it are set up.

use std::{path::Path, sync::Arc, time::Duration};

use pillarbox_messages::ChecksumType;
use rusqlite::{Connection, OpenFlags, OptionalExtension};

use super::IndexError;
use crate::archive::disk;

/// Opens the database for writing; makes or migrates it where needed.
pub(super) fn open_writer(path: &Path, sums: ChecksumType) -> Result<Connection, IndexError> {
    if let Some(dir) = path.parent().filter(|dir| !dir.as_os_str().is_empty()) {
        disk::make_dirs(dir, 1).map_err(|source| IndexError::Directory {
            path: path.to_owned(),
            source: Arc::new(source),
        })?;
    }
    let mut connection = open(path, OpenFlags::default())?;
    // The format is looked at before anything in the file is changed.
    let found = format(&connection).map_err(unopened(path))?;
    if found > FORMAT {
        return Err(IndexError::Newer {
            path: path.to_owned(),
            found,
            known: FORMAT,
        });
    }
    set_up_writer(&connection).map_err(unopened(path))?;
    if found < FORMAT {
        migrate(&mut connection, found, sums).map_err(unopened(path))?;
    }
    let holds = checksum_type(&connection).map_err(unopened(path))?;
    if holds != sums.as_str() {
        let path = path.to_owned();
        return Err(IndexError::ChecksumType {
            path,
            found: holds,
            wanted: sums,
        });
    }
    Ok(connection)
}

/// Opens the database, which exists, for reading.
pub(super) fn open_reader(path: &Path) -> Result<Connection, IndexError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    open(path, flags)
}

fn open(path: &Path, flags: OpenFlags) -> Result<Connection, IndexError> {
    let set_up = |connection: Connection| {
        connection.busy_timeout(BUSY_TIMEOUT)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        connection.pragma_update(None, "cache_size", CACHE_KIB)?;
        Ok(connection)
    };
    Connection::open_with_flags(path, flags)
        .and_then(set_up)
        .map_err(unopened(path))
}

/// A commit returns once its pages are synced (to the write-ahead log).
fn set_up_writer(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)
}

fn format(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Takes a database from format `found`, 0 if it is new, to the present one: all of the way or none.
fn migrate(connection: &mut Connection, found: i64, sums: ChecksumType) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    for (_, step) in STEPS.iter().filter(|(format, _)| *format > found) {
        transaction.execute_batch(step)?;
    }
    if found == 0 {
        transaction.execute(
            "INSERT INTO facts (name, value) VALUES ('checksum type', ?1)",
            [sums.as_str()],
        )?;
    }
    transaction.pragma_update(None, "user_version", FORMAT)?;
    transaction.commit()
}

fn checksum_type(connection: &Connection) -> rusqlite::Result<String> {
    let query = "SELECT value FROM facts WHERE name = 'checksum type'";
    let found = connection
        .query_row(query, [], |row| row.get(0))
        .optional()?;
    Ok(found.unwrap_or_default())
}

fn unopened(path: &Path) -> impl FnOnce(rusqlite::Error) -> IndexError {
    let path = path.to_owned();
    move |source| IndexError::Open {
        path,
        source: Arc::new(source),
    }
}

/// The format written here; `PRAGMA user_version` of the file.
pub(super) const FORMAT: i64 = 6;

/// Each format, and what leads to it from the one before. A step that was released is never changed.
const STEPS: &[(i64, &str)] = &[
    (1, TABLES),
    (2, OPEN_OPERATIONS),
    (3, UPKEEP),
    (4, AUDIT_BY_FILE),
    (5, AUDIT_BY_TIME),
    (FORMAT, UNTOLD),
];

/// People are still to be told of a file's trouble. Of what was found before, they were.
const UNTOLD: &str = "
    ALTER TABLE files ADD COLUMN untold INTEGER NOT NULL DEFAULT 0;
    CREATE INDEX files_untold ON files (collection, file_id) WHERE untold = 1;
";

/// And by time.
const AUDIT_BY_TIME: &str = "CREATE INDEX audit_by_time ON audit (collection, time, number);";

/// An audit trail is asked for by file, too.
const AUDIT_BY_FILE: &str = "CREATE INDEX audit_by_file ON audit (collection, file_id, number);";

/// How far background workers are, and what they found to be wrong.
const UPKEEP: &str = "
    CREATE TABLE worker_progress (
        worker     TEXT NOT NULL,
        collection INTEGER NOT NULL REFERENCES collections (key),
        step       TEXT,
        directory  TEXT,
        path       TEXT,
        finished   INTEGER,
        PRIMARY KEY (worker, collection)
    ) WITHOUT ROWID;
    CREATE INDEX files_missing ON files (collection) WHERE missing = 1;
    CREATE INDEX files_inconsistent ON files (collection) WHERE missing = 0 AND observed <> expected;
";

/// Replaces and deletes that have begun. Without directory, size and checksum of a new version it is a delete.
const OPEN_OPERATIONS: &str = "
    CREATE TABLE open_operations (
        key            INTEGER PRIMARY KEY,
        collection     INTEGER NOT NULL REFERENCES collections (key),
        file_id        TEXT NOT NULL,
        correlation    TEXT NOT NULL,
        sender         TEXT NOT NULL,
        operation      TEXT NOT NULL,
        directory      TEXT,
        size           INTEGER,
        checksum       BLOB,
        actor          TEXT NOT NULL,
        action         TEXT NOT NULL,
        info           TEXT,
        operation_id   TEXT,
        certificate_id TEXT,
        information    TEXT,
        response       TEXT NOT NULL,
        UNIQUE (collection, file_id)
    );
";

const TABLES: &str = "
    CREATE TABLE facts (
        name  TEXT PRIMARY KEY,
        value TEXT NOT NULL
    ) WITHOUT ROWID;

    -- The last times and number given out, so that none is given twice, whatever is deleted.
    CREATE TABLE collections (
        key             INTEGER PRIMARY KEY,
        id              TEXT NOT NULL UNIQUE,
        last_modified   INTEGER NOT NULL,
        last_calculated INTEGER NOT NULL,
        last_audit      INTEGER NOT NULL
    );

    CREATE TABLE files (
        key        INTEGER PRIMARY KEY,
        collection INTEGER NOT NULL REFERENCES collections (key),
        file_id    TEXT NOT NULL,
        directory  TEXT NOT NULL,
        size       INTEGER NOT NULL,
        expected   BLOB NOT NULL,
        observed   BLOB NOT NULL,
        modified   INTEGER NOT NULL,
        calculated INTEGER NOT NULL,
        missing    INTEGER NOT NULL,
        UNIQUE (collection, file_id)
    );
    CREATE INDEX files_by_modified ON files (collection, modified, file_id) WHERE missing = 0;
    CREATE INDEX files_by_calculated ON files (collection, calculated, file_id) WHERE missing = 0;

    CREATE TABLE operations_done (
        key         INTEGER PRIMARY KEY,
        correlation TEXT NOT NULL,
        sender      TEXT NOT NULL,
        operation   TEXT NOT NULL,
        collection  INTEGER NOT NULL REFERENCES collections (key),
        file_id     TEXT NOT NULL,
        done        INTEGER NOT NULL,
        response    TEXT NOT NULL,
        UNIQUE (correlation, sender, operation, collection, file_id)
    );

    CREATE TABLE audit (
        collection     INTEGER NOT NULL REFERENCES collections (key),
        number         INTEGER NOT NULL,
        time           INTEGER NOT NULL,
        file_id        TEXT NOT NULL,
        actor          TEXT NOT NULL,
        action         TEXT NOT NULL,
        info           TEXT,
        operation_id   TEXT,
        certificate_id TEXT,
        information    TEXT,
        PRIMARY KEY (collection, number)
    ) WITHOUT ROWID;
";

const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Prepared statements kept by each connection; more than there are.
const STATEMENTS: usize = 32;
/// Page cache of each connection; negative by SQLite's convention for KiB.
const CACHE_KIB: i64 = -8_192;
/// Pages of the write-ahead log (4 KiB each) after which it is moved into the database.
const CHECKPOINT_PAGES: i64 = 4_000;
