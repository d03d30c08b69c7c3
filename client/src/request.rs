//! What can be asked for, and the checks that need no bus.

mod changes;
mod reports;

use std::{fs, io, num::NonZeroU64, path::PathBuf};

use pillarbox_messages::{ChecksumData, ChecksumSpec, CollectionId, ComponentId, FileId, FilePart};
use pillarbox_settings::Repository;

pub use self::{
    changes::{DeleteFile, ReplaceFile},
    reports::{GetAuditTrails, GetStatus},
};
use crate::{conversation::paging::PAGE_SIZE, error::ClientError, validate};

/// Puts a file on all pillars of a collection. Repeating it is harmless: a pillar that has the identical file
/// counts as done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PutFile {
    /// The collection.
    pub collection: CollectionId,
    /// The id that the file gets.
    pub file_id: FileId,
    /// The file.
    pub source: Source,
    /// Its checksum. Without it a file from disk is read once more, for its default checksum.
    pub checksum: Option<ChecksumData>,
    /// The checksum that pillars are asked to answer with.
    pub request_checksum: Option<ChecksumSpec>,
    /// Text that ends up in the pillars' audit trails.
    pub audit_trail_information: Option<String>,
    /// How often a pillar is asked again after a failed transfer.
    pub retries: u32,
    /// Whether the put goes on without the pillars that don't answer. It fails in the end either way.
    pub partial_allowed: bool,
}

/// Where a file to be put is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A regular file on this machine. It is offered on the exchange once a pillar needs it, and removed from
    /// there when the operation is over.
    Path(PathBuf),
    /// On an exchange already. It is neither looked at nor removed.
    Address {
        /// Its URL.
        address: String,
        /// Its length in bytes, if known.
        size: Option<u64>,
    },
}

/// Fetches a file, or a part of it, from the fastest pillar, or from a given one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GetFile {
    /// The collection.
    pub collection: CollectionId,
    /// The file.
    pub file_id: FileId,
    /// The part of it to fetch; none: the whole file.
    pub part: Option<FilePart>,
    /// The only pillar to ask; none: the fastest, and the next if that one fails.
    pub pillar: Option<ComponentId>,
    /// Where the file is to be. What is there already is replaced when the new bytes are complete.
    pub target: PathBuf,
    /// Text that ends up in the pillar's audit trail.
    pub audit_trail_information: Option<String>,
}

/// Asks pillars which files they have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GetFileIds {
    /// The collection.
    pub collection: CollectionId,
    /// The file asked for; none: all.
    pub file_id: Option<FileId>,
    /// The pillars to ask; none: all of the collection.
    pub pillars: Option<Vec<ComponentId>>,
    /// How many items a page may have.
    pub page_size: NonZeroU64,
    /// Text that ends up in the pillars' audit trails.
    pub audit_trail_information: Option<String>,
}

/// Asks pillars for the checksums of their files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GetChecksums {
    /// The collection.
    pub collection: CollectionId,
    /// The file asked for; none: all.
    pub file_id: Option<FileId>,
    /// The pillars to ask; none: all of the collection.
    pub pillars: Option<Vec<ComponentId>>,
    /// How the checksums are to be computed; none: the repository's default.
    pub checksum: Option<ChecksumSpec>,
    /// How many items a page may have.
    pub page_size: NonZeroU64,
    /// Text that ends up in the pillars' audit trails.
    pub audit_trail_information: Option<String>,
}

impl PutFile {
    /// A put without any options.
    #[must_use]
    pub const fn new(collection: CollectionId, file_id: FileId, source: Source) -> Self {
        Self {
            collection,
            file_id,
            source,
            checksum: None,
            request_checksum: None,
            audit_trail_information: None,
            retries: 0,
            partial_allowed: true,
        }
    }

    /// Everything that can be known to be wrong before the bus or the exchange is contacted.
    ///
    /// # Errors
    /// Unknown collection, bad file id, bad or missing checksum, a source that is no readable regular file.
    pub fn validate(&self, repository: &Repository) -> Result<(), ClientError> {
        validate::collection(repository, &self.collection)?;
        validate::file_id(repository, &self.file_id)?;
        if let Some(spec) = &self.request_checksum {
            validate::checksum_spec(spec)?;
        }
        validate::new_file(repository, &self.source, self.checksum.as_ref())
    }
}

impl GetFile {
    /// A get from the fastest pillar.
    #[must_use]
    pub const fn new(collection: CollectionId, file_id: FileId, target: PathBuf) -> Self {
        Self {
            collection,
            file_id,
            part: None,
            pillar: None,
            target,
            audit_trail_information: None,
        }
    }

    /// Everything that can be known to be wrong before the bus or the exchange is contacted.
    ///
    /// # Errors
    /// Unknown collection or pillar, bad file id, a target that is no regular file (a directory, device, pipe or
    /// socket) or in no directory.
    pub fn validate(&self, repository: &Repository) -> Result<(), ClientError> {
        let collection = validate::collection(repository, &self.collection)?;
        validate::file_id(repository, &self.file_id)?;
        if let Some(pillar) = &self.pillar {
            validate::pillar(collection, pillar)?;
        }
        if fs::symlink_metadata(&self.target).is_ok_and(|found| found.is_symlink()) {
            return Err(ClientError::Target {
                path: self.target.clone(),
                source: io::Error::new(
                    io::ErrorKind::InvalidInput,
                    "it is a link; name the file that it leads to",
                ),
            });
        }
        let error = |source| ClientError::Target {
            path: self.target.clone(),
            source,
        };
        if let Ok(present) = fs::metadata(&self.target) {
            // A device would be replaced, not written to.
            validate::regular(present.file_type()).map_err(error)?;
        }
        let parent = crate::transfer::parent(&self.target);
        if !parent.is_dir() {
            return Err(error(io::Error::new(
                io::ErrorKind::NotFound,
                format!("there is no directory '{}'", parent.display()),
            )));
        }
        Ok(())
    }
}

impl GetFileIds {
    /// A listing of all files on all pillars.
    #[must_use]
    pub const fn new(collection: CollectionId) -> Self {
        Self {
            collection,
            file_id: None,
            pillars: None,
            page_size: PAGE_SIZE,
            audit_trail_information: None,
        }
    }

    /// Everything that can be known to be wrong before the bus is contacted.
    ///
    /// # Errors
    /// Unknown collection or pillar, bad file id.
    pub fn validate(&self, repository: &Repository) -> Result<(), ClientError> {
        validate::listing(
            repository,
            &self.collection,
            self.file_id.as_ref(),
            self.pillars.as_deref(),
        )
    }
}

impl GetChecksums {
    /// The default checksums of all files on all pillars.
    #[must_use]
    pub const fn new(collection: CollectionId) -> Self {
        Self {
            collection,
            file_id: None,
            pillars: None,
            checksum: None,
            page_size: PAGE_SIZE,
            audit_trail_information: None,
        }
    }

    /// Everything that can be known to be wrong before the bus is contacted.
    ///
    /// # Errors
    /// Unknown collection or pillar, bad file id, bad checksum spec.
    pub fn validate(&self, repository: &Repository) -> Result<(), ClientError> {
        if let Some(spec) = &self.checksum {
            validate::checksum_spec(spec)?;
        }
        validate::listing(
            repository,
            &self.collection,
            self.file_id.as_ref(),
            self.pillars.as_deref(),
        )
    }
}
