//! What comes in: whether there is room for it, and where it is received.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use pillarbox_messages::{ArchiveFileId, CollectionId};

use super::{
    Archive, ArchiveError, Claim, IncomingFile, Inner, Leftover, ReceivedFile, briefly,
    shelf::Shelf,
};
use crate::{
    digests::{Checksums, Spec},
    health::Directory,
};

impl Archive {
    /// Whether a file of this id and size could be stored now, as far as the disk is concerned: a few
    /// system calls, nothing written. A file that is there already does not matter here, since only
    /// the index knows whether it counts.
    ///
    /// # Errors
    /// [`ArchiveError::NoSpace`]; [`ArchiveError::FolderInTheWay`] or [`ArchiveError::FileInTheWay`] if
    /// the id clashes with the folders of others.
    pub async fn check(
        &self,
        collection: &CollectionId,
        id: &ArchiveFileId,
        size: u64,
    ) -> Result<(), ArchiveError> {
        let collection = Arc::clone(self.collection(collection)?);
        if !collection.keeps_bytes() {
            return Ok(());
        }
        let (space, id) = (Arc::clone(&self.0.space), id.clone());
        briefly(move || {
            for shelf in &collection.shelves {
                shelf.admits(&id, Leftover::Replace)?;
            }
            space.check(&collection.id, &collection.shelves, size)
        })
        .await
    }

    /// Starts to receive a file: promises it space for `announced` bytes (0 if unknown), and computes
    /// the checksums of `specs` on the way.
    ///
    /// More bytes than announced are accepted while there is space; whether they are right is for the
    /// caller to say.
    ///
    /// # Errors
    /// [`ArchiveError::NoSpace`].
    pub async fn receive(
        &self,
        claim: Claim,
        announced: u64,
        specs: Vec<Spec>,
    ) -> Result<IncomingFile, ArchiveError> {
        self.receive_on(claim, |_| Ok(None), announced, specs).await
    }

    /// The same for a file that is to take another's place: if there is room it is received where that one stands,
    /// so that the change is one rename.
    ///
    /// # Errors
    /// [`ArchiveError::NoSpace`].
    pub async fn receive_version(
        &self,
        claim: Claim,
        announced: u64,
        specs: Vec<Spec>,
    ) -> Result<IncomingFile, ArchiveError> {
        let preferred = |claim: &Claim| Ok(claim.standing()?.into_iter().next());
        self.receive_on(claim, preferred, announced, specs).await
    }

    async fn receive_on(
        &self,
        claim: Claim,
        preferred: impl FnOnce(&Claim) -> Result<Option<Arc<Shelf>>, ArchiveError> + Send + 'static,
        announced: u64,
        specs: Vec<Spec>,
    ) -> Result<IncomingFile, ArchiveError> {
        if !claim.collection.keeps_bytes() {
            return Ok(IncomingFile::new(claim, None, specs));
        }
        let space = Arc::clone(&self.0.space);
        briefly(move || {
            let preferred = preferred(&claim)?;
            let (id, shelves) = (&claim.collection.id, &claim.collection.shelves);
            let reservation = space.reserve(id, shelves, preferred.as_ref(), announced)?;
            Ok(IncomingFile::new(claim, Some(reservation), specs))
        })
        .await
    }

    /// Takes a file in on somebody's word: nothing is received. Gives the claim back where bytes are kept.
    pub(crate) fn believe(
        &self,
        claim: Claim,
        size: u64,
        checksums: Checksums,
    ) -> Result<ReceivedFile, Claim> {
        if claim.collection.keeps_bytes() {
            return Err(claim);
        }
        Ok(ReceivedFile::unseen(claim, size, checksums))
    }

    /// The archive directories, and how much each still takes.
    pub(crate) async fn directories(&self) -> Vec<Directory> {
        let inner = Arc::clone(&self.0);
        let looked = tokio::task::spawn_blocking(move || inner.directories()).await;
        looked.unwrap_or_default()
    }
}

impl Inner {
    fn directories(&self) -> Vec<Directory> {
        let mut directories: BTreeMap<PathBuf, Directory> = BTreeMap::new();
        for shelf in self.collections.values().flat_map(|it| &it.shelves) {
            let looked = shelf.check_present().and_then(|()| self.space.of(shelf));
            let room = looked.map_err(|error| error.to_string());
            let path = shelf.directory.clone();
            match directories.get_mut(&path) {
                // One that lacks a collection's part is not in order, whatever the others say.
                Some(known) if known.room.is_err() => {}
                Some(known) => known.room = room,
                None => _ = directories.insert(path.clone(), Directory { path, room }),
            }
        }
        directories.into_values().collect()
    }
}
