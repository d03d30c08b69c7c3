//! What keeps an operation from starting.

use std::{io, path::PathBuf};

use pillarbox_bus::BusError;
use pillarbox_messages::{CollectionId, ComponentId, FileId, file_id::FileIdError, wording::count};
use thiserror::Error;

use crate::{digests::UnknownChecksum, journal::JournalError};

/// Why an operation was not started. Once it has started, it ends with an outcome instead.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The settings have no such collection.
    #[error("the collection '{collection}' is unknown; the settings have: {known}")]
    UnknownCollection {
        /// The id that was given.
        collection: CollectionId,
        /// The ids that would do.
        known: String,
    },
    /// The repository has no such contributor.
    #[error("the contributor '{contributor}' is unknown; the settings have: {known}")]
    UnknownContributor {
        /// The id that was given.
        contributor: ComponentId,
        /// The ids that would do.
        known: String,
    },
    /// The collection has no such pillar.
    #[error(
        "the pillar '{pillar}' is not in the collection '{collection}'; its pillars are: {known}"
    )]
    UnknownPillar {
        /// The id that was given.
        pillar: ComponentId,
        /// The collection.
        collection: CollectionId,
        /// The ids that would do.
        known: String,
    },
    /// There is no such service level agreement.
    #[error("{place} has no service level agreement '{sla}'")]
    UnknownSla {
        /// The agreement's id.
        sla: String,
        /// Where it was looked for.
        place: String,
    },
    /// Nobody is left to ask.
    #[error("nobody to ask: the collection '{0}' has no pillar for this operation")]
    NoContributors(CollectionId),
    /// An empty list of contributors was given.
    #[error("nobody to ask: the list of contributors is empty")]
    NobodyNamed,
    /// The repository takes no file of this id.
    #[error("the file id '{file}' can't be used: {source}")]
    FileId {
        /// The id that was given.
        file: FileId,
        /// Which rule it breaks.
        source: FileIdError,
    },
    /// A checksum's length does not fit its type.
    #[error("the checksum has {}; one of the type {checksum_type} has {expected}", count(*.actual, "byte"))]
    ChecksumLength {
        /// The type's name.
        checksum_type: String,
        /// Bytes that such a checksum has.
        expected: usize,
        /// Bytes that were given.
        actual: usize,
    },
    /// A key was given for a checksum without one, or the other way round.
    #[error("the checksum type {checksum_type} {problem}")]
    ChecksumSalt {
        /// The type's name.
        checksum_type: String,
        /// What is wrong.
        problem: &'static str,
    },
    /// A checksum type that has no meaning here.
    #[error(transparent)]
    Checksum(#[from] UnknownChecksum),
    /// The repository takes no file without its checksum.
    #[error("the repository takes new files only with their checksum, and none was given")]
    ChecksumRequired,
    /// The repository replaces and deletes no file without its checksum.
    #[error(
        "the repository replaces and deletes files only with their checksum, and none was given"
    )]
    ExistingChecksumRequired,
    /// A range that nothing is in.
    #[error("the {what} {from} is after the {what} {to}")]
    EmptyRange {
        /// What the range is of.
        what: &'static str,
        /// Where it begins.
        from: String,
        /// Where it ends.
        to: String,
    },
    /// What is to be put can't be read, or is no regular file.
    #[error("'{}' can't be put: {source}", path.display())]
    Source {
        /// Its path.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Where a file is to be laid can't be used.
    #[error("the file can't be laid at '{}': {source}", path.display())]
    Target {
        /// Its path.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Files can't be exchanged: the settings name no place for it.
    #[error("no file exchange to offer files on; set [client] exchange in node.toml")]
    NoExchange,
    /// This client is putting a file of this id at the moment.
    #[error("this client is changing the file '{0}' already; wait for its end")]
    Busy(FileId),
    /// What the client begins can't be written down.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// Nothing is written down of what this client begins.
    #[error(
        "the client keeps no journal, so there is nothing to resume; give it an id: [client] id in node.toml"
    )]
    NoJournal,
    /// The bus can't be used.
    #[error(transparent)]
    Bus(#[from] BusError),
    /// The client was closed.
    #[error("the client is closed")]
    Closed,
}
