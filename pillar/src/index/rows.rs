//! From rows of the database to records.

use std::path::PathBuf;

use pillarbox_messages::{FileAction, HexBinary};
use rusqlite::{Row, types::Type};

use super::{AuditEntry, AuditEvent, FileRow, Remembered};

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

/// Columns: number, time, file id, actor, action, info, operation id, certificate id, information.
pub(super) fn audit_event(row: &Row<'_>) -> rusqlite::Result<AuditEvent> {
    let action = row.get::<_, String>(4)?;
    let action: FileAction = action.parse().map_err(|_| unknown_action(action))?;
    Ok(AuditEvent {
        number: natural(row.get(0)?),
        time_ms: row.get(1)?,
        entry: AuditEntry {
            file_id: row.get::<_, String>(2)?.into(),
            actor: row.get::<_, String>(3)?.into(),
            action,
            info: row.get(5)?,
            operation_id: row.get::<_, Option<String>>(6)?.map(Into::into),
            certificate_id: row.get(7)?,
            audit_trail_information: row.get(8)?,
        },
    })
}

/// A number as SQLite can hold it; nothing on a disk is larger.
pub(super) fn sql_integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn natural(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

fn unknown_action(text: String) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(4, Type::Text, text.into())
}
