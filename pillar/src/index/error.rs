use std::{io, path::PathBuf, sync::Arc};

use pillarbox_messages::{ChecksumType, FileId};

use super::FileRow;

/// Why the index could not do something.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IndexError {
    /// The directory of the database can't be made.
    #[error("can't make the directory of index {}: {source}", path.display())]
    Directory {
        /// The database.
        path: PathBuf,
        /// What came of it.
        source: Arc<io::Error>,
    },
    /// The database can't be opened.
    #[error("can't open index {}: {source}", path.display())]
    Open {
        /// The database.
        path: PathBuf,
        /// What came of it.
        source: Arc<rusqlite::Error>,
    },
    /// The database was written by a later version.
    #[error("index {} has format {found}, this version knows formats up to {known}; use a later version", path.display())]
    Newer {
        /// The database.
        path: PathBuf,
        /// Its format.
        found: i64,
        /// The last format that is known here.
        known: i64,
    },
    /// The index holds checksums of another type than the default of the repository.
    #[error(
        "index {} holds {found} checksums, but the repository's default is {wanted}; \
         set it back to {found}", path.display(), wanted = .wanted.as_str()
    )]
    ChecksumType {
        /// The database.
        path: PathBuf,
        /// The type it holds.
        found: String,
        /// The type that was asked for.
        wanted: ChecksumType,
    },
    /// The file is there already; nothing was changed.
    #[error("file {} is already in the index", .0.file_id)]
    AlreadyPresent(Box<FileRow>),
    /// Files without bytes here have this id as their folder; nothing was changed.
    #[error("file {0} can't be stored: a folder of that name holds other files")]
    FolderInTheWay(FileId),
    /// A folder of this id of a file without bytes here is a file; nothing was changed.
    #[error("file {0} can't be stored: one of its folders is itself a file")]
    FileInTheWay(FileId),
    /// There is no such file, or it is missing; nothing was changed.
    #[error("file {0} is not in the index")]
    NotPresent(FileId),
    /// The code that makes the response to remember panicked; nothing was changed.
    #[error("making the response failed")]
    Response,
    /// The database refused something. What was asked for may have been written all the same, unless
    /// [`wrote_nothing`](Self::wrote_nothing) says otherwise.
    #[error("index: {0}")]
    Database(#[source] Arc<rusqlite::Error>),
    /// The index has been closed, or has failed; what was asked for may have been written all the same.
    #[error("the index is closed")]
    Closed,
}

impl IndexError {
    /// Whether the cause is a full disk.
    #[must_use]
    pub fn is_no_space(&self) -> bool {
        let (Self::Database(error) | Self::Open { source: error, .. }) = self else {
            return false;
        };
        error.sqlite_error_code() == Some(rusqlite::ErrorCode::DiskFull)
    }
}

impl IndexError {
    /// Whether it says that the database can't be written at all: nothing that was asked for is the cause.
    #[must_use]
    pub(super) fn is_of_the_disk(&self) -> bool {
        let Self::Database(error) = self else {
            return false;
        };
        let code = error.sqlite_error_code();
        code.is_some_and(|code| code != rusqlite::ErrorCode::ConstraintViolation)
    }

    /// Whether it is certain that nothing was written, now or later.
    #[must_use]
    pub fn wrote_nothing(&self) -> bool {
        matches!(
            self,
            Self::AlreadyPresent(_)
                | Self::FolderInTheWay(_)
                | Self::FileInTheWay(_)
                | Self::NotPresent(_)
                | Self::Response
        ) || self.is_no_space()
    }
}

impl From<rusqlite::Error> for IndexError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(Arc::new(error))
    }
}
