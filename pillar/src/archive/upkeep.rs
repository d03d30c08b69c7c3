//! What background workers look at.

use std::{
    fs::{self, File, Metadata},
    io,
    os::unix::fs::MetadataExt,
};

use pillarbox_messages::{ArchiveFileId, CollectionId};

use super::{
    Archive, ArchiveError, Claim, StoredFile, Tree, TreeKind, claims::Claimant, disk,
    error::Context as _, opening::open_regular, shelf::Shelf,
};

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

impl Archive {
    /// The directory trees of a collection that are there, in the order in which files are looked for; and why others
    /// are not.
    ///
    /// # Errors
    /// The collection is not in this archive.
    pub(crate) fn trees(
        &self,
        collection: &CollectionId,
    ) -> Result<(Vec<Tree>, Vec<ArchiveError>), ArchiveError> {
        let (mut trees, mut absent) = (Vec::new(), Vec::new());
        for shelf in &self.collection(collection)?.shelves {
            match shelf.check_present() {
                Ok(()) => trees.extend(shelf.trees()),
                Err(error) => absent.push(error),
            }
        }
        Ok((trees, absent))
    }
}

impl Shelf {
    fn trees(&self) -> [Tree; 2] {
        [TreeKind::Files, TreeKind::Folders]
            .map(|kind| Tree::new(&self.directory, &self.base, kind))
    }
}

impl Archive {
    /// The file that readers would find at the place of this id, and the tree that it is in. Blocks.
    ///
    /// # Errors
    /// A directory is not there, or refuses: it may have the file.
    pub(crate) fn find_standing(
        &self,
        collection: &CollectionId,
        id: &ArchiveFileId,
    ) -> Result<Option<(Tree, StoredFile)>, ArchiveError> {
        for shelf in &self.collection(collection)?.shelves {
            shelf.check_present()?;
            for tree in shelf.trees() {
                if (tree.kind == TreeKind::Folders) != id.is_in_folder() {
                    continue;
                }
                if let Some(stored) = tree.open(id).at("open", &tree.place(id))? {
                    return Ok(Some((tree, stored)));
                }
            }
        }
        Ok(None)
    }
}

impl Tree {
    /// Opens the file of this id, if a regular file stands at its place; never what a link leads to. Blocks.
    pub(crate) fn open(&self, id: &ArchiveFileId) -> io::Result<Option<StoredFile>> {
        open_regular(&self.place(id))
    }

    /// What stands at the place of this id.
    pub(crate) fn identity(&self, id: &ArchiveFileId) -> io::Result<Identity> {
        Ok(Identity::from(&fs::symlink_metadata(self.place(id))?))
    }

    /// Makes the file of this id last, if it still is what was read. Blocks.
    pub(crate) fn make_last_if(
        &self,
        id: &ArchiveFileId,
        read: Identity,
        now_ms: i64,
    ) -> io::Result<bool> {
        let Some(stored) = self.open(id)?.filter(|it| it.identity == read) else {
            return Ok(false);
        };
        self.make_last(id, &stored.file, now_ms)?;
        // Once more, since that takes time.
        Ok(self.identity(id).is_ok_and(|found| found == read))
    }

    /// Makes a file last that somebody has put there, unless it has been there for long: what was not changed for
    /// minutes has been written back. Blocks.
    pub(crate) fn make_last(&self, id: &ArchiveFileId, file: &File, now_ms: i64) -> io::Result<()> {
        let changed_ms = file.metadata()?.ctime().saturating_mul(1_000);
        if now_ms.saturating_sub(changed_ms) > WRITTEN_BACK_MS {
            return Ok(());
        }
        file.sync_all()?;
        self.place(id).parent().map_or(Ok(()), disk::sync_dir)
    }
}

/// Many times what Linux keeps changes from the disk (`vm.dirty_expire_centisecs`).
const WRITTEN_BACK_MS: i64 = 10 * 60_000;

/// Which file it is, and in which state: equal as long as nothing was done to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
}

impl Identity {
    /// When its content was last changed.
    pub(crate) fn modified_ms(&self) -> i64 {
        let (seconds, nanos) = self.modified;
        seconds
            .saturating_mul(1_000)
            .saturating_add(nanos / 1_000_000)
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
