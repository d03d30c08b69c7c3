//! Giving a received file its place.

use std::{fs, io, path::Path, sync::Arc};

use pillarbox_messages::ArchiveFileId;

use super::{
    ArchiveError, Claim, Leftover, Published, ReceivedFile,
    disk::TempFile,
    error::Context,
    folders::Folders,
    incoming::Content,
    shelf::{Occupant, Shelf},
};

impl ReceivedFile {
    /// Syncs the bytes, makes the name and syncs it. Blocks.
    pub(super) fn publish(
        self,
        folders: &Folders,
        leftover: Leftover,
    ) -> Result<Published, ArchiveError> {
        let Self {
            claim,
            reservation,
            size,
            checksums,
            content,
        } = self;
        let shelf = Arc::clone(&reservation.shelf);
        let elsewhere = on_other_shelves(&claim, &shelf, leftover)?;
        let temp = match content {
            Content::Written(temp) => temp,
            Content::Held(bytes) => {
                let mut temp = TempFile::create(&shelf.temp)?;
                temp.write(&bytes)?;
                temp
            }
        };
        drop(reservation);
        temp.sync()?;
        let placing = Placing {
            shelf: &shelf,
            id: &claim.id,
            folders,
            leftover,
        };
        placing.place(temp)?;
        for stale in elsewhere {
            let place = stale.place(&claim.id);
            stale.retain(&claim.id).at("keep a copy of", &place)?;
            fs::remove_file(&place).at("remove", &place)?;
            stale
                .sync_names(&place)
                .at("sync the directory of", &place)?;
        }
        Ok(Published {
            directory: shelf.directory.clone(),
            claim,
            shelf,
            size,
            checksums,
        })
    }
}

impl Published {
    /// Removes the file and the folders that are empty without it. Blocks.
    pub(super) fn retract(self, folders: &Folders) {
        let place = self.shelf.place(&self.claim.id);
        let removed = fs::remove_file(&place).and_then(|()| self.shelf.sync_names(&place));
        if let Err(error) = removed {
            tracing::warn!(path = %place.display(), %error, "a file without a row in the index stays");
        }
        if self.claim.id.is_in_folder() {
            folders.prune(&self.shelf.folders, &place);
        }
    }
}

/// The other shelves of the collection that hold a file of this id, which a crash left there.
fn on_other_shelves<'a>(
    claim: &'a Claim,
    chosen: &Arc<Shelf>,
    leftover: Leftover,
) -> Result<Vec<&'a Arc<Shelf>>, ArchiveError> {
    let mut stale = Vec::new();
    for shelf in claim
        .collection
        .shelves
        .iter()
        .filter(|shelf| !Arc::ptr_eq(shelf, chosen))
    {
        if shelf.admits(&claim.id, leftover)? {
            stale.push(shelf);
        }
    }
    Ok(stale)
}

impl Shelf {
    /// Whether a file stands at the place of `id`, which then may be replaced; refuses what must not
    /// be there.
    pub(super) fn admits(
        &self,
        id: &ArchiveFileId,
        leftover: Leftover,
    ) -> Result<bool, ArchiveError> {
        let place = self.place(id);
        let file_id = || id.as_str().into();
        match (self.occupant(&place).at("look at", &place)?, leftover) {
            (Occupant::Nothing, _) => Ok(false),
            (Occupant::File, Leftover::Replace) => Ok(true),
            (Occupant::File, Leftover::Refuse) => Err(ArchiveError::AlreadyExists(file_id())),
            (Occupant::Folder, _) => Err(ArchiveError::FolderInTheWay(file_id())),
            (Occupant::FileAboveIt, _) => Err(ArchiveError::FileInTheWay(file_id())),
        }
    }
}

/// One file's way to its place.
struct Placing<'a> {
    shelf: &'a Shelf,
    id: &'a ArchiveFileId,
    folders: &'a Folders,
    leftover: Leftover,
}

impl Placing<'_> {
    fn place(&self, temp: TempFile) -> Result<(), ArchiveError> {
        let place = self.shelf.place(self.id);
        let placed = self.link(temp, &place);
        if placed.is_err() && self.id.is_in_folder() {
            self.folders.prune(&self.shelf.folders, &place);
        }
        placed?;
        self.shelf
            .sync_names(&place)
            .at("sync the directory of", &place)?;
        if self.id.is_in_folder() {
            let synced = self.folders.sync(&self.shelf.folders, &place);
            synced.at("sync the folders of", &place)?;
        }
        Ok(())
    }

    /// Links, and only looks closer where that fails. A folder may be removed by another operation
    /// between making and using it, hence the repetition.
    fn link(&self, temp: TempFile, place: &Path) -> Result<(), ArchiveError> {
        for _ in 0..ATTEMPTS {
            let Err(error) = fs::hard_link(temp.path(), place) else {
                return temp.remove();
            };
            match error.kind() {
                io::ErrorKind::NotFound if self.id.is_in_folder() => self.make_folders(place)?,
                io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory => {
                    if self.shelf.admits(self.id, self.leftover)? {
                        let retained = self.shelf.retain(self.id).at("keep a copy of", place)?;
                        tracing::warn!(
                            path = %place.display(),
                            retained = %retained.display(),
                            "a file that the index does not know is replaced, and kept here"
                        );
                        fs::rename(temp.path(), place).at("replace", place)?;
                        temp.keep();
                        return Ok(());
                    }
                }
                _ => return Err(error).at("link to", place),
            }
        }
        Err(io::Error::from(io::ErrorKind::ResourceBusy)).at("link to", place)
    }

    fn make_folders(&self, place: &Path) -> Result<(), ArchiveError> {
        match self.folders.make(&self.shelf.folders, place) {
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
                Err(ArchiveError::FileInTheWay(self.id.as_str().into()))
            }
            made => made.at("make the folders of", place),
        }
    }
}

/// How often a folder may vanish before a file is given up.
const ATTEMPTS: usize = 8;
