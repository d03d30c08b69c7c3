//! What goes into the index and comes out of it.

use std::{fmt, num::NonZeroU64, path::PathBuf};

use pillarbox_messages::{
    CollectionId, ComponentId, CorrelationId, FileAction, FileId, HexBinary, Operation,
};

use super::OpenOperation;

/// One archived file. Times are milliseconds since 1970-01-01T00:00:00Z; within a collection no two
/// files have the same `modified_ms`, nor the same `calculated_ms`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileRow {
    /// The file's id.
    pub file_id: FileId,
    /// The configured archive directory that it was stored in.
    pub directory: PathBuf,
    /// Its size in bytes.
    pub size: u64,
    /// The checksum that it came with or was stored with; never changed by looking at the disk.
    pub expected: HexBinary,
    /// The checksum of the bytes as last read; what peers are told.
    pub observed: HexBinary,
    /// When the file was stored: `LastModificationTime`.
    pub modified_ms: i64,
    /// When the observed checksum was computed: `CalculationTimestamp`.
    pub calculated_ms: i64,
}

impl FileRow {
    /// That the file's bytes are not the expected ones, in words.
    pub(crate) fn difference(&self) -> String {
        let Self {
            observed, expected, ..
        } = self;
        format!("the file's checksum is {observed}, expected is {expected}")
    }

    /// The same as an audit event.
    pub(crate) fn inconsistency(&self, actor: &ComponentId) -> AuditEntry {
        AuditEntry::of_pillar(
            &self.file_id,
            actor,
            FileAction::Inconsistency,
            self.difference(),
        )
    }
}

/// A file that has been stored, for [`put`](super::Index::put), or has taken another's place, for
/// [`replace`](super::Index::replace).
#[derive(Debug)]
pub struct PutRecord {
    /// The file's collection.
    pub collection: CollectionId,
    /// The file's id.
    pub file_id: FileId,
    /// The configured archive directory that it was stored in.
    pub directory: PathBuf,
    /// Its size in bytes.
    pub size: u64,
    /// Its checksum by the repository's default spec, computed from the bytes that were stored.
    pub checksum: HexBinary,
    /// The audit event of the operation.
    pub audit: AuditEntry,
    /// What to remember of the operation, if it came in a message.
    pub remember: Option<Remember>,
}

/// A file that has been deleted, for [`delete`](super::Index::delete).
#[derive(Debug)]
pub struct DeleteRecord {
    /// The file's collection.
    pub collection: CollectionId,
    /// The file's id.
    pub file_id: FileId,
    /// The audit event of the operation.
    pub audit: AuditEntry,
    /// What to remember of the operation, if it came in a message; its response is made from the row that goes.
    pub remember: Option<Remember>,
}

/// What [`put`](super::Index::put), [`replace`](super::Index::replace) or [`delete`](super::Index::delete) did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// The row as it is now; for a delete, as it was last.
    pub row: FileRow,
    /// The number of the audit event.
    pub audit_number: u64,
    /// The response that is remembered.
    pub response: Option<String>,
}

/// The operation whose final response is to be remembered; collection and file are the record's.
pub struct Remember {
    /// Who asked.
    pub from: ComponentId,
    /// In which conversation.
    pub correlation: CorrelationId,
    /// For what.
    pub operation: Operation,
    /// Makes the final response from the row: only there are its times known. Runs on the index's
    /// thread while others wait, so it must be quick.
    pub respond: Box<dyn FnOnce(&FileRow) -> String + Send>,
}

impl fmt::Debug for Remember {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remember")
            .field("from", &self.from)
            .field("correlation", &self.correlation)
            .field("operation", &self.operation)
            .finish_non_exhaustive()
    }
}

/// An operation on one file, as it is told apart from all others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperationKey {
    /// Who asked.
    pub from: ComponentId,
    /// In which conversation.
    pub correlation: CorrelationId,
    /// For what.
    pub operation: Operation,
    /// In which collection.
    pub collection: CollectionId,
    /// For which file.
    pub file_id: FileId,
}

/// The end of an operation that was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remembered {
    /// The final response.
    pub response: String,
    /// When it was done.
    pub done_ms: i64,
}

/// What is known before an operation on a file is performed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prior {
    /// How this very operation ended, if it was done.
    pub done: Option<Remembered>,
    /// The file's row, unless the file is missing.
    pub row: Option<FileRow>,
    /// What was begun to be done to the file and has not come to its end.
    pub open: Option<Box<OpenOperation>>,
}

/// An event for the audit trail, before it has a number (element `AuditTrailEvent`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    /// The file concerned.
    pub file_id: FileId,
    /// Who acted: `ActorOnFile`.
    pub actor: ComponentId,
    /// What was done: `ActionOnFile`.
    pub action: FileAction,
    /// In the pillar's words: `Info`.
    pub info: Option<String>,
    /// The conversation: `OperationID`.
    pub operation_id: Option<CorrelationId>,
    /// The fingerprint of the certificate that signed the request: `CertificateID`.
    pub certificate_id: Option<String>,
    /// In the client's words: `AuditTrailInformation`.
    pub audit_trail_information: Option<String>,
}

impl AuditEntry {
    /// Something that the pillar did unasked.
    pub(crate) fn of_pillar(
        file_id: &FileId,
        actor: &ComponentId,
        action: FileAction,
        info: impl Into<String>,
    ) -> Self {
        Self {
            file_id: file_id.clone(),
            actor: actor.clone(),
            action,
            info: Some(info.into()),
            operation_id: None,
            certificate_id: None,
            audit_trail_information: None,
        }
    }
}

/// An event of the audit trail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEvent {
    /// Its number within its collection, without gaps, in commit order: `SequenceNumber`.
    pub number: u64,
    /// When it was written down: `ActionDateTime`.
    pub time_ms: i64,
    /// What happened.
    pub entry: AuditEntry,
}

/// Which events of an audit trail to give, in which portion. All bounds are inclusive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditQuery {
    /// The collection.
    pub collection: CollectionId,
    /// Only events of this file.
    pub file_id: Option<FileId>,
    /// The lowest number.
    pub first: u64,
    /// The highest number.
    pub last: Option<u64>,
    /// The earliest time.
    pub min_ms: Option<i64>,
    /// The latest time.
    pub max_ms: Option<i64>,
    /// At most so many, and never more than [`PAGE_MAX`](super::PAGE_MAX).
    pub limit: Option<NonZeroU64>,
}

impl AuditQuery {
    /// The events of a collection from this number on.
    #[must_use]
    pub const fn from_number(collection: CollectionId, first: u64) -> Self {
        Self {
            collection,
            file_id: None,
            first,
            last: None,
            min_ms: None,
            max_ms: None,
            limit: None,
        }
    }
}

/// Which files to list, in which portion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListQuery {
    /// The collection.
    pub collection: CollectionId,
    /// The first time that is listed.
    pub min_ms: Option<i64>,
    /// The last time that is listed.
    pub max_ms: Option<i64>,
    /// Where the previous portion ended.
    pub after: Option<Position>,
    /// At most so many rows, and never more than [`PAGE_MAX`](super::PAGE_MAX).
    pub limit: Option<NonZeroU64>,
}

impl ListQuery {
    /// All files of a collection.
    #[must_use]
    pub fn all(collection: CollectionId) -> Self {
        Self {
            collection,
            min_ms: None,
            max_ms: None,
            after: None,
            limit: None,
        }
    }
}

/// A place in a listing: rows are in the order of time, then file id.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The time by which the listing is ordered.
    pub time_ms: i64,
    /// The file.
    pub file_id: FileId,
}

/// A portion of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The rows, oldest first.
    pub rows: Vec<FileRow>,
    /// If more rows fit the query: where to go on.
    pub next: Option<Position>,
}
