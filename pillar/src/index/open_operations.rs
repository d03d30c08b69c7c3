//! Operations that change names on the disk, written down before they do.
//!
//! Between the first name that changes and the commit of the row the disk is ahead of the index. Whoever finds an
//! open operation after a crash looks at the disk: either the change is there, and the commit is made up for, or
//! it is not, and the operation is dropped as if it had never begun.

use std::path::PathBuf;

use pillarbox_messages::{HexBinary, Message};
use rusqlite::{Connection, Params, Row, named_params, types::Type};

use super::{
    AuditEntry, OperationKey,
    rows::{natural, sql_integer},
};

/// A replace or delete that has begun: everything that its commit needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenOperation {
    /// Which operation, on which file.
    pub key: OperationKey,
    /// What takes the file's place; nothing does if it is deleted.
    pub new: Option<NewVersion>,
    /// Its audit event.
    pub audit: AuditEntry,
    /// Its final response, but for the times that only the commit gives.
    pub response: Message,
}

/// The bytes that take a file's place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewVersion {
    /// The configured archive directory that they are stored in.
    pub directory: PathBuf,
    /// How many there are.
    pub size: u64,
    /// Their checksum by the repository's default spec.
    pub checksum: HexBinary,
}

/// Writes an operation down; `collection` is its collection's key.
pub(super) fn insert(
    connection: &Connection,
    collection: i64,
    operation: &OpenOperation,
) -> rusqlite::Result<()> {
    let OpenOperation {
        key,
        new,
        audit,
        response,
    } = operation;
    let new = new.as_ref();
    let mut statement = connection.prepare_cached(
        "INSERT INTO open_operations
            (collection, file_id, correlation, sender, operation, directory, size, checksum,
             actor, action, info, operation_id, certificate_id, information, response)
         VALUES
            (:collection, :file_id, :correlation, :sender, :operation, :directory, :size, :checksum,
             :actor, :action, :info, :operation_id, :certificate_id, :information, :response)",
    )?;
    statement.execute(named_params! {
        ":collection": collection,
        ":file_id": key.file_id.as_str(),
        ":correlation": key.correlation.as_str(),
        ":sender": key.from.as_str(),
        ":operation": key.operation.as_str(),
        ":directory": new.map(|new| new.directory.to_string_lossy()),
        ":size": new.map(|new| sql_integer(new.size)),
        ":checksum": new.map(|new| new.checksum.as_bytes()),
        ":actor": audit.actor.as_str(),
        ":action": audit.action.as_str(),
        ":info": audit.info,
        ":operation_id": audit.operation_id.as_ref().map(AsRef::<str>::as_ref),
        ":certificate_id": audit.certificate_id,
        ":information": audit.audit_trail_information,
        ":response": response.to_xml(),
    })?;
    Ok(())
}

/// Forgets the open operation of a file, if there is one.
pub(super) fn remove(
    connection: &Connection,
    collection: i64,
    file_id: &str,
) -> rusqlite::Result<()> {
    let mut statement = connection
        .prepare_cached("DELETE FROM open_operations WHERE collection = ?1 AND file_id = ?2")?;
    statement.execute((collection, file_id))?;
    Ok(())
}

/// The open operation of a file.
pub(super) fn of_file(
    connection: &Connection,
    key: &OperationKey,
) -> rusqlite::Result<Option<OpenOperation>> {
    let files = "WHERE collections.id = ?1 AND open_operations.file_id = ?2";
    let mut found = select(
        connection,
        files,
        [key.collection.as_str(), key.file_id.as_str()],
    )?;
    Ok(found.pop())
}

/// All of them, in the order in which they were begun.
pub(super) fn all(connection: &Connection) -> rusqlite::Result<Vec<OpenOperation>> {
    select(connection, "ORDER BY open_operations.key", [])
}

fn select(
    connection: &Connection,
    which: &str,
    parameters: impl Params,
) -> rusqlite::Result<Vec<OpenOperation>> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT collections.id, file_id, correlation, sender, operation, directory, size, checksum,
                actor, action, info, operation_id, certificate_id, information, response
         FROM open_operations JOIN collections ON collections.key = open_operations.collection
         {which}"
    ))?;
    statement.query_map(parameters, read)?.collect()
}

fn read(row: &Row<'_>) -> rusqlite::Result<OpenOperation> {
    let key = OperationKey {
        collection: row.get::<_, String>(0)?.into(),
        file_id: row.get::<_, String>(1)?.into(),
        correlation: row.get::<_, String>(2)?.into(),
        from: row.get::<_, String>(3)?.into(),
        operation: parsed(row, 4, |text| text.parse().ok())?,
    };
    Ok(OpenOperation {
        new: new_version(row)?,
        audit: AuditEntry {
            file_id: key.file_id.clone(),
            actor: row.get::<_, String>(8)?.into(),
            action: parsed(row, 9, |text| text.parse().ok())?,
            info: row.get(10)?,
            operation_id: row.get::<_, Option<String>>(11)?.map(Into::into),
            certificate_id: row.get(12)?,
            audit_trail_information: row.get(13)?,
        },
        response: parsed(row, 14, |text| Message::from_xml(text).ok())?,
        key,
    })
}

fn new_version(row: &Row<'_>) -> rusqlite::Result<Option<NewVersion>> {
    let Some(directory) = row.get::<_, Option<String>>(5)? else {
        return Ok(None);
    };
    Ok(Some(NewVersion {
        directory: directory.into(),
        size: natural(row.get(6)?),
        checksum: row.get::<_, Vec<u8>>(7)?.into(),
    }))
}

fn parsed<T>(
    row: &Row<'_>,
    column: usize,
    parse: impl FnOnce(&str) -> Option<T>,
) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    parse(&text)
        .ok_or_else(|| rusqlite::Error::FromSqlConversionFailure(column, Type::Text, text.into()))
}
