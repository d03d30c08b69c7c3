//! One writer per file.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use pillarbox_messages::{ArchiveFileId, CollectionId};

use super::{ArchiveError, CollectionArchive};

type Key = (CollectionId, Box<str>);

/// The files that are being written. An entry lives as long as its [`Claim`].
#[derive(Debug, Default)]
pub(super) struct Claims(Mutex<BTreeSet<Key>>);

impl Claims {
    pub(super) fn claim(
        self: &Arc<Self>,
        collection: &Arc<CollectionArchive>,
        id: &ArchiveFileId,
    ) -> Result<Claim, ArchiveError> {
        let key = (collection.id.clone(), id.as_str().into());
        if self.lock().insert(key.clone()) {
            let (claims, collection) = (Arc::clone(self), Arc::clone(collection));
            Ok(Claim {
                claims,
                key,
                collection,
                id: id.clone(),
            })
        } else {
            let (collection, file_id) = (key.0, id.as_str().into());
            Err(ArchiveError::Busy {
                collection,
                file_id,
            })
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<Key>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
        self.claims.lock().remove(&self.key);
    }
}
