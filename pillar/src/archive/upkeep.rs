//! What background workers look at.

use std::{
    fs::{File, Metadata},
    io,
    os::unix::fs::MetadataExt,
};

use pillarbox_messages::{ArchiveFileId, CollectionId};

use super::{Archive, ArchiveError, Claim, StoredFile, claims::Claimant};

impl Archive {
    /// The right to write a file, for a moment; `None` if somebody else has it.
    pub(crate) fn claim_briefly(
        &self,
        collection: &CollectionId,
        id: &ArchiveFileId,
    ) -> Result<Option<Claim>, ArchiveError> {
        let collection = self.collection(collection)?;
        Ok(self.0.claims.claim(collection, id, Claimant::Worker).ok())
    }

    /// Opens an archived file for reading. Blocks.
    ///
    /// # Errors
    /// As [`open_file`](Self::open_file).
    pub(crate) fn open_file_now(
        &self,
        collection: &CollectionId,
        id: &ArchiveFileId,
    ) -> Result<StoredFile, ArchiveError> {
        self.collection(collection)?.open_file(id)
    }
}

/// Which file it is, and in which state: equal as long as nothing was done to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
}

impl Identity {
    pub(crate) fn of(file: &File) -> io::Result<Self> {
        Ok(Self::from(&file.metadata()?))
    }
}

impl From<&Metadata> for Identity {
    fn from(found: &Metadata) -> Self {
        Self {
            device: found.dev(),
            inode: found.ino(),
            size: found.len(),
            modified: (found.mtime(), found.mtime_nsec()),
        }
    }
}
