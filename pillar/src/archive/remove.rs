//! Taking a file away, and finishing what a crash cut off.

use std::{fs::File, io, sync::Arc};

use super::{
    ArchiveError, Claim, Expected, Removed, StoredFile,
    error::Context,
    folders::Folders,
    publish::restore,
    retained,
    shelf::{Occupant, Shelf},
};
use crate::digests::Checksums;

impl Claim {
    /// Takes the file away from its place, and the folders that are empty without it. Blocks.
    pub(super) fn remove(self, folders: &Folders) -> Result<Removed, ArchiveError> {
        self.collection.check_present()?;
        let standing = self.standing()?;
        if standing.is_empty() && self.collection.keeps_bytes() {
            return Err(ArchiveError::NotFound(self.id.as_str().into()));
        }
        let mut superseded = Vec::new();
        // What readers find first goes last: until then the file is there, whole, for them and after a crash.
        for shelf in standing.iter().rev() {
            superseded.push(shelf.clear(&self.id, folders)?);
        }
        self.prune(folders);
        Ok(Removed {
            _claim: self,
            superseded,
        })
    }

    /// Finds out from the disk whether a change that was begun has happened. If so it is made to last; if not,
    /// nothing is left of it. Blocks.
    pub(super) fn settle(
        &self,
        expected: Option<&Expected>,
        folders: &Folders,
    ) -> Result<bool, ArchiveError> {
        self.collection.check_present()?;
        let standing = self.standing()?;
        let Some(expected) = expected else {
            return if standing.is_empty() {
                self.settle_removed(folders)
            } else {
                self.settle_undone(&standing, folders)
            };
        };
        match self.find_version(&standing, expected)? {
            Some(new) => self.settle_replaced(&standing, new, folders),
            None => self.settle_undone(&standing, folders),
        }
    }

    fn settle_replaced(
        &self,
        standing: &[Arc<Shelf>],
        new: &Arc<Shelf>,
        folders: &Folders,
    ) -> Result<bool, ArchiveError> {
        let place = new.place(&self.id);
        new.sync_names(&place).at("sync the directory of", &place)?;
        if self.id.is_in_folder() {
            let synced = folders.sync(&new.folders, &place);
            synced.at("sync the folders of", &place)?;
        }
        for stale in standing.iter().filter(|other| !Arc::ptr_eq(other, new)) {
            stale.clear(&self.id, folders)?;
        }
        Ok(true)
    }

    fn settle_removed(&self, folders: &Folders) -> Result<bool, ArchiveError> {
        for shelf in &self.collection.shelves {
            let place = shelf.place(&self.id);
            match shelf.sync_names(&place) {
                // Gone with the file.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                synced => synced.at("sync the directory of", &place)?,
            }
        }
        self.prune(folders);
        Ok(true)
    }

    /// The old version stays.
    fn settle_undone(
        &self,
        standing: &[Arc<Shelf>],
        folders: &Folders,
    ) -> Result<bool, ArchiveError> {
        for shelf in standing {
            let place = shelf.place(&self.id);
            retained::release(shelf, &self.id, folders).at("remove the copy of", &place)?;
        }
        Ok(false)
    }

    /// The shelves that have a file of this id, in the order in which readers look.
    pub(super) fn standing(&self) -> Result<Vec<Arc<Shelf>>, ArchiveError> {
        let mut standing = Vec::new();
        for shelf in &self.collection.shelves {
            let place = shelf.place(&self.id);
            if shelf.occupant(&place).at("look at", &place)? == Occupant::File {
                standing.push(Arc::clone(shelf));
            }
        }
        Ok(standing)
    }

    /// The shelf that has these very bytes. Size first: most often it is enough.
    fn find_version<'a>(
        &self,
        standing: &'a [Arc<Shelf>],
        expected: &Expected,
    ) -> Result<Option<&'a Arc<Shelf>>, ArchiveError> {
        for shelf in standing {
            let place = shelf.place(&self.id);
            let Some(StoredFile { file, size, .. }) = shelf.open_file(&self.id)? else {
                continue;
            };
            if size == expected.size && has_checksum(file, expected).at("read", &place)? {
                return Ok(Some(shelf));
            }
        }
        Ok(None)
    }

    /// Removes the folders that are empty without the file.
    fn prune(&self, folders: &Folders) {
        if self.id.is_in_folder() {
            for shelf in &self.collection.shelves {
                folders.prune(&shelf.folders, &shelf.place(&self.id));
            }
        }
    }
}

fn has_checksum(file: File, expected: &Expected) -> io::Result<bool> {
    let specs = std::slice::from_ref(&expected.spec);
    let sums = Checksums::of_reader(file, specs, || true)?;
    Ok(sums.value(&expected.spec) == Some(&expected.checksum))
}

impl Removed {
    /// Puts the file back. Blocks.
    pub(super) fn restore(self, folders: &Folders) -> Result<(), ArchiveError> {
        restore(&self.superseded, folders)
    }
}
