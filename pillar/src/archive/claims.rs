//! One writer per file.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use pillarbox_messages::{ArchiveFileId, CollectionId};
use tokio::sync::Notify;

use super::{ArchiveError, CollectionArchive};

type Key = (CollectionId, Box<str>);

/// Who has a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claimant {
    /// An operation, for as long as it takes.
    Operation,
    /// A background worker, for a look at the disk and a commit.
    Worker,
}

/// The files that are being written. An entry lives as long as its [`Claim`].
#[derive(Debug, Default)]
pub(super) struct Claims {
    held: Mutex<BTreeMap<Key, Claimant>>,
    released_by_worker: Notify,
}

impl Claims {
    /// The claim, or who has it.
    pub(super) fn claim(
        self: &Arc<Self>,
        collection: &Arc<CollectionArchive>,
        id: &ArchiveFileId,
        claimant: Claimant,
    ) -> Result<Claim, Claimant> {
        let key: Key = (collection.id.clone(), id.as_str().into());
        match self.lock().entry(key.clone()) {
            Entry::Vacant(entry) => entry.insert(claimant),
            Entry::Occupied(entry) => return Err(*entry.get()),
        };
        let (claims, collection) = (Arc::clone(self), Arc::clone(collection));
        Ok(Claim {
            claims,
            key,
            collection,
            id: id.clone(),
        })
    }

    /// The claim for an operation, as soon as no worker has it.
    pub(super) async fn claim_in_turn(
        self: &Arc<Self>,
        collection: &Arc<CollectionArchive>,
        id: &ArchiveFileId,
    ) -> Result<Claim, ArchiveError> {
        loop {
            let mut released = std::pin::pin!(self.released_by_worker.notified());
            // From here on no release is missed.
            released.as_mut().enable();
            match self.claim(collection, id, Claimant::Operation) {
                Ok(claim) => return Ok(claim),
                Err(Claimant::Worker) => released.await,
                Err(Claimant::Operation) => return Err(busy(collection, id)),
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, Claimant>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Somebody else has the claim.
pub(super) fn busy(collection: &CollectionArchive, id: &ArchiveFileId) -> ArchiveError {
    ArchiveError::Busy {
        collection: collection.id.clone(),
        file_id: id.as_str().into(),
    }
}

/// The right to write one file, held by one operation at a time; given back when dropped.
#[derive(Debug)]
pub struct Claim {
    claims: Arc<Claims>,
    key: Key,
    pub(super) collection: Arc<CollectionArchive>,
    pub(super) id: ArchiveFileId,
}

impl Drop for Claim {
    fn drop(&mut self) {
        let claimant = self.claims.lock().remove(&self.key);
        if claimant == Some(Claimant::Worker) {
            self.claims.released_by_worker.notify_waiters();
        }
    }
}
