//! From rows of the database to records.

use std::path::PathBuf;

use pillarbox_messages::HexBinary;
use rusqlite::Row;

use super::{FileRow, Remembered};

/// Columns: file id, directory, size, expected, observed, modified, calculated.
pub(super) fn file_row(row: &Row<'_>) -> rusqlite::Result<FileRow> {
    Ok(FileRow {
        file_id: row.get::<_, String>(0)?.into(),
        directory: PathBuf::from(row.get::<_, String>(1)?),
        size: natural(row.get(2)?),
        expected: HexBinary::from(row.get::<_, Vec<u8>>(3)?),
        observed: HexBinary::from(row.get::<_, Vec<u8>>(4)?),
        modified_ms: row.get(5)?,
        calculated_ms: row.get(6)?,
    })
}

/// Columns: response, time.
pub(super) fn remembered(row: &Row<'_>) -> rusqlite::Result<Remembered> {
    Ok(Remembered {
        response: row.get(0)?,
        done_ms: row.get(1)?,
    })
}

/// A number as SQLite can hold it; nothing on a disk is larger.
pub(super) fn sql_integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn natural(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}
