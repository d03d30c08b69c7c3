//! Asking components about what they have done and how they are.

use std::num::NonZeroU64;

use pillarbox_messages::{CollectionId, ComponentId, FileId, Timestamp};
use pillarbox_settings::Repository;

use crate::{conversation::paging::PAGE_SIZE, error::ClientError, validate};

/// Asks contributors what was done to files. The events come in pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GetAuditTrails {
    /// The collection.
    pub collection: CollectionId,
    /// Who to ask; none: all pillars of the collection, and the repository's other
    /// [`audit_contributors`](Repository::audit_contributors).
    pub contributors: Option<Vec<ComponentId>>,
    /// Only events of this file; none: of all.
    pub file_id: Option<FileId>,
    /// Nothing numbered lower than this by its contributor.
    pub first: Option<NonZeroU64>,
    /// Nothing numbered higher than this by its contributor.
    pub last: Option<NonZeroU64>,
    /// Nothing older than this.
    pub min_time: Option<Timestamp>,
    /// Nothing younger than this.
    pub max_time: Option<Timestamp>,
    /// How many events a page may have.
    pub page_size: NonZeroU64,
}

/// Asks components how they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GetStatus {
    /// Who to ask; none: all pillars of all collections, and the repository's other
    /// [`status_contributors`](Repository::status_contributors).
    pub contributors: Option<Vec<ComponentId>>,
}

impl GetAuditTrails {
    /// All audit trail events of all pillars.
    #[must_use]
    pub const fn new(collection: CollectionId) -> Self {
        Self {
            collection,
            contributors: None,
            file_id: None,
            first: None,
            last: None,
            min_time: None,
            max_time: None,
            page_size: PAGE_SIZE,
        }
    }

    /// Everything that can be known to be wrong before the bus is contacted.
    ///
    /// # Errors
    /// Unknown collection or contributor, bad file id, a range that ends before it begins.
    pub fn validate(&self, repository: &Repository) -> Result<(), ClientError> {
        validate::range("number", self.first.as_ref(), self.last.as_ref())?;
        validate::range("time", self.min_time.as_ref(), self.max_time.as_ref())?;
        let services = &repository.audit_contributors;
        let named = self.contributors.as_deref();
        let pillars: Option<Vec<ComponentId>> = named.map(|it| {
            it.iter()
                .filter(|id| !services.contains(id))
                .cloned()
                .collect()
        });
        let pillars = pillars.filter(|pillars| !pillars.is_empty() || named == Some(&[]));
        validate::listing(
            repository,
            &self.collection,
            self.file_id.as_ref(),
            pillars.as_deref(),
        )
    }
}

impl GetStatus {
    /// A question to all pillars.
    #[must_use]
    pub const fn new() -> Self {
        Self { contributors: None }
    }

    /// Everything that can be known to be wrong before the bus is contacted.
    ///
    /// # Errors
    /// Unknown contributor.
    pub fn validate(&self, repository: &Repository) -> Result<(), ClientError> {
        validate::contributors(repository, self.contributors.as_deref())
    }
}
