//! Replacing and deleting files.

use pillarbox_messages::{ChecksumData, ChecksumSpec, CollectionId, ComponentId, FileId};
use pillarbox_settings::Repository;

use super::Source;
use crate::{error::ClientError, validate};

/// Replaces a file at one pillar by another of the same id. Repeating it is harmless: a pillar that says of its file
/// that it is the new one counts as done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplaceFile {
    /// The collection.
    pub collection: CollectionId,
    /// The file's id.
    pub file_id: FileId,
    /// The only pillar to ask.
    pub pillar: ComponentId,
    /// The new file.
    pub source: Source,
    /// The old file's checksum: a pillar whose file has another one refuses.
    pub existing_checksum: Option<ChecksumData>,
    /// The new file's checksum. Without it a file from disk is read once more, for its default checksum.
    pub checksum: Option<ChecksumData>,
    /// The checksum of the old file that the pillar is asked to answer with.
    pub request_existing_checksum: Option<ChecksumSpec>,
    /// The checksum of the new file that the pillar is asked to answer with.
    pub request_checksum: Option<ChecksumSpec>,
    /// Text that ends up in the pillar's audit trail.
    pub audit_trail_information: Option<String>,
}

/// Deletes a file from one pillar. A file that is not there counts as deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeleteFile {
    /// The collection.
    pub collection: CollectionId,
    /// The file.
    pub file_id: FileId,
    /// The only pillar to ask.
    pub pillar: ComponentId,
    /// The file's checksum: a pillar whose file has another one refuses.
    pub existing_checksum: Option<ChecksumData>,
    /// The checksum of the file that the pillar is asked to answer with.
    pub request_checksum: Option<ChecksumSpec>,
    /// Text that ends up in the pillar's audit trail.
    pub audit_trail_information: Option<String>,
}

impl ReplaceFile {
    /// A replacement without any options.
    #[must_use]
    pub const fn new(
        collection: CollectionId,
        file_id: FileId,
        pillar: ComponentId,
        source: Source,
    ) -> Self {
        Self {
            collection,
            file_id,
            pillar,
            source,
            existing_checksum: None,
            checksum: None,
            request_existing_checksum: None,
            request_checksum: None,
            audit_trail_information: None,
        }
    }

    /// Everything that can be known to be wrong before the bus or the exchange is contacted.
    ///
    /// # Errors
    /// Unknown collection or pillar, bad file id, bad or missing checksum, a source that is no readable regular file.
    pub fn validate(&self, repository: &Repository) -> Result<(), ClientError> {
        let collection = validate::collection(repository, &self.collection)?;
        validate::file_id(repository, &self.file_id)?;
        validate::pillar(collection, &self.pillar)?;
        validate::existing_checksum(repository, self.existing_checksum.as_ref())?;
        let asked = [&self.request_existing_checksum, &self.request_checksum];
        asked
            .into_iter()
            .flatten()
            .try_for_each(validate::checksum_spec)?;
        validate::new_file(repository, &self.source, self.checksum.as_ref())
    }
}

impl DeleteFile {
    /// A deletion without any options.
    #[must_use]
    pub const fn new(collection: CollectionId, file_id: FileId, pillar: ComponentId) -> Self {
        Self {
            collection,
            file_id,
            pillar,
            existing_checksum: None,
            request_checksum: None,
            audit_trail_information: None,
        }
    }

    /// Everything that can be known to be wrong before the bus is contacted.
    ///
    /// # Errors
    /// Unknown collection or pillar, bad file id, bad or missing checksum.
    pub fn validate(&self, repository: &Repository) -> Result<(), ClientError> {
        let collection = validate::collection(repository, &self.collection)?;
        validate::file_id(repository, &self.file_id)?;
        validate::pillar(collection, &self.pillar)?;
        if let Some(spec) = &self.request_checksum {
            validate::checksum_spec(spec)?;
        }
        validate::existing_checksum(repository, self.existing_checksum.as_ref())
    }
}
