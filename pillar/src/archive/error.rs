use std::{
    io,
    path::{Path, PathBuf},
};

use pillarbox_messages::{CollectionId, FileId, wording::count};

/// Why the archive could not do something.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// The id can't be the name of a directory.
    #[error(
        "collection id {0:?} can't name an archive directory; use one without '/' that is not '.' or '..'"
    )]
    BadCollectionId(CollectionId),
    /// An archive directory can't be used. Found at start.
    #[error("archive directory {} is not usable: {source}; {remedy}", path.display())]
    Unusable {
        /// What was tried.
        path: PathBuf,
        /// What came of it.
        source: io::Error,
        /// The next step.
        remedy: &'static str,
    },
    /// Two of the configured directories are the same.
    #[error("archive directory {} is listed twice, maybe under another name; list it once", .0.display())]
    ListedTwice(PathBuf),
    /// Another pillar, of this process or another, stores this collection there.
    #[error("archive directory {} is in use by another pillar; give each pillar its own", .0.display())]
    InUse(PathBuf),
    /// No directory is configured.
    #[error("a pillar that keeps files needs at least one archive directory")]
    NoDirectory,
    /// The archive doesn't serve this collection.
    #[error("collection {0} is not in this archive")]
    UnknownCollection(CollectionId),
    /// Another put of the same file is being performed.
    #[error("file {file_id} of collection {collection} is being written by another operation")]
    Busy {
        /// The file's collection.
        collection: CollectionId,
        /// The file.
        file_id: FileId,
    },
    /// The space that may be used is too small; see [`NoSpace`].
    #[error(transparent)]
    NoSpace(#[from] NoSpace),
    /// The file system ran full while bytes were written, whatever it had promised.
    #[error("no space left on the disk of {}", path.display())]
    DiskFull {
        /// What was written.
        path: PathBuf,
    },
    /// There is a file of this id, and the caller did not ask to replace it.
    #[error("file {0} is already in the archive")]
    AlreadyExists(FileId),
    /// Other archived files have this id as their folder.
    #[error("file {0} can't be stored: a folder of that name holds other files")]
    FolderInTheWay(FileId),
    /// A folder of this id is an archived file.
    #[error("file {0} can't be stored: one of its folders is itself a file")]
    FileInTheWay(FileId),
    /// There is no such file.
    #[error("file {0} is not in the archive")]
    NotFound(FileId),
    /// The operating system refused something.
    #[error("can't {action} {}: {source}", path.display())]
    Disk {
        /// What was tried, as a verb.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What came of it.
        source: io::Error,
    },
    /// The receiver of a file's bytes ended before they did.
    #[error("receiving the file was cut short")]
    Interrupted,
}

impl ArchiveError {
    /// Whether the cause is a lack of space, found before or while writing.
    #[must_use]
    pub fn is_no_space(&self) -> bool {
        matches!(self, Self::NoSpace(_) | Self::DiskFull { .. })
    }
}

/// Too little space for a file, in bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "not enough space in collection {collection}: {} needed, {usable} usable \
     ({available} available, of which {minimum_size_left} must be left and {reserved} are promised to other files)",
    count(*.needed, "byte")
)]
pub struct NoSpace {
    /// The collection that the file is for.
    pub collection: CollectionId,
    /// What the file needs.
    pub needed: u64,
    /// What may be used: `available - minimum_size_left - reserved`, or 0, on the best directory.
    pub usable: u64,
    /// What the file system offers to an ordinary user.
    pub available: u64,
    /// What must always be left.
    pub minimum_size_left: u64,
    /// What files that are being received may still write.
    pub reserved: u64,
}

/// Gives an I/O error its place.
pub(super) trait Context<T> {
    fn at(self, action: &'static str, path: &Path) -> Result<T, ArchiveError>;
}

impl<T, E: Into<io::Error>> Context<T> for Result<T, E> {
    fn at(self, action: &'static str, path: &Path) -> Result<T, ArchiveError> {
        self.map_err(|error| {
            let (source, path) = (error.into(), path.to_owned());
            match source.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                    ArchiveError::DiskFull { path }
                }
                _ => ArchiveError::Disk {
                    action,
                    path,
                    source,
                },
            }
        })
    }
}
