//! Giving a received file its place.

use std::{fs, io, path::Path, sync::Arc};

use pillarbox_messages::ArchiveFileId;

use super::{
    ArchiveError, Claim, Leftover, Published, ReceivedFile, StagedFile,
    disk::{OffThread, TempFile},
    error::Context,
    folders::Folders,
    incoming::Content,
    retained::Retained,
    shelf::{Occupant, Shelf},
    space::Reservation,
    versions::StagedBytes,
};

impl ReceivedFile {
    /// Sees to it that the bytes are on the disk, under a temporary name. Blocks.
    pub(super) fn stage(self) -> Result<StagedFile, ArchiveError> {
        let Self {
            claim,
            reservation,
            size,
            checksums,
            content,
        } = self;
        let bytes = match reservation {
            Some(reservation) => content.stage(reservation)?,
            None => None,
        };
        let directory = bytes.as_ref().map(|it| it.shelf.directory.clone());
        Ok(StagedFile {
            directory: directory.unwrap_or_default(),
            claim,
            bytes,
            size,
            checksums,
        })
    }
}

impl Content {
    fn stage(self, reservation: Reservation) -> Result<Option<StagedBytes>, ArchiveError> {
        let shelf = Arc::clone(&reservation.shelf);
        let temp = match self {
            Self::Written(temp) => temp.into_inner(),
            Self::Held(bytes) => {
                let mut temp = TempFile::create(&shelf.temp)?;
                temp.write(&bytes)?;
                temp
            }
            Self::Unkept => return Ok(None),
        };
        drop(reservation);
        temp.sync()?;
        let temp = OffThread::new(temp);
        Ok(Some(StagedBytes { shelf, temp }))
    }
}

impl StagedFile {
    /// Makes the name and syncs it. Blocks.
    pub(super) fn place(
        self,
        folders: &Folders,
        leftover: Leftover,
    ) -> Result<Published, ArchiveError> {
        let Self {
            directory,
            claim,
            bytes,
            size,
            checksums,
        } = self;
        let shelf = bytes.as_ref().map(|it| Arc::clone(&it.shelf));
        let superseded = match bytes {
            Some(bytes) => bytes.place(&claim, folders, leftover)?,
            None => Vec::new(),
        };
        Ok(Published {
            directory,
            claim,
            shelf,
            size,
            checksums,
            superseded,
        })
    }
}

impl StagedBytes {
    /// Gives what was replaced.
    fn place(
        self,
        claim: &Claim,
        folders: &Folders,
        leftover: Leftover,
    ) -> Result<Vec<Retained>, ArchiveError> {
        let Self { shelf, temp } = self;
        if leftover == Leftover::Supersede {
            claim.collection.check_present()?;
        }
        let elsewhere = on_other_shelves(claim, &shelf, leftover)?;
        let placing = Placing {
            shelf: &shelf,
            id: &claim.id,
            folders,
            leftover,
        };
        let mut superseded: Vec<_> = placing.place(temp.into_inner())?.into_iter().collect();
        for stale in elsewhere {
            superseded.push(stale.clear(&claim.id, folders)?);
        }
        Ok(superseded)
    }
}

impl Published {
    /// Gives the place back to what stood there before; removes the file, and the folders that are empty without
    /// it, if nothing did. Blocks.
    pub(super) fn retract(self, folders: &Folders) -> Result<(), ArchiveError> {
        let Self {
            claim,
            shelf,
            superseded,
            ..
        } = self;
        let Some(shelf) = shelf else {
            return Ok(());
        };
        let place = shelf.place(&claim.id);
        let mut taken_back = restore(&superseded, folders);
        if !superseded
            .iter()
            .any(|kept| Arc::ptr_eq(&kept.shelf, &shelf))
        {
            taken_back =
                taken_back.and_then(|()| shelf.unlink(&place).at("take away again", &place));
        }
        if claim.id.is_in_folder() {
            folders.prune(&shelf.folders, &place);
        }
        taken_back
    }
}

/// Gives places back, whatever stands there now.
pub(super) fn restore(superseded: &[Retained], folders: &Folders) -> Result<(), ArchiveError> {
    superseded.iter().try_for_each(|kept| {
        kept.restore(folders)
            .at("give its place back to", &kept.path)
    })
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
    /// Takes a file away from its place; it keeps a name in `retainDir`.
    pub(super) fn clear(
        self: &Arc<Self>,
        id: &ArchiveFileId,
        folders: &Folders,
    ) -> Result<Retained, ArchiveError> {
        let place = self.place(id);
        let kept = Retained::keep(self, id, folders).at("keep a copy of", &place)?;
        self.unlink(&place).at("remove", &place)?;
        Ok(kept)
    }

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
            (Occupant::File, Leftover::Replace | Leftover::Supersede) => Ok(true),
            (Occupant::File, Leftover::Refuse) => Err(ArchiveError::AlreadyExists(file_id())),
            (Occupant::Folder, _) => Err(ArchiveError::FolderInTheWay(file_id())),
            (Occupant::FileAboveIt, _) => Err(ArchiveError::FileInTheWay(file_id())),
        }
    }
}

/// One file's way to its place.
struct Placing<'a> {
    shelf: &'a Arc<Shelf>,
    id: &'a ArchiveFileId,
    folders: &'a Folders,
    leftover: Leftover,
}

impl Placing<'_> {
    /// Gives what was replaced.
    fn place(&self, temp: TempFile) -> Result<Option<Retained>, ArchiveError> {
        let place = self.shelf.place(self.id);
        let placed = self.link(temp, &place);
        if placed.is_err() && self.id.is_in_folder() {
            self.folders.prune(&self.shelf.folders, &place);
        }
        let replaced = placed?;
        self.shelf
            .sync_names(&place)
            .at("sync the directory of", &place)?;
        if self.id.is_in_folder() {
            let synced = self.folders.sync(&self.shelf.folders, &place);
            synced.at("sync the folders of", &place)?;
        }
        Ok(replaced)
    }

    /// Links, and only looks closer where that fails.
    fn link(&self, temp: TempFile, place: &Path) -> Result<Option<Retained>, ArchiveError> {
        let mut linked = fs::hard_link(temp.path(), place);
        let without_folder =
            matches!(&linked, Err(error) if error.kind() == io::ErrorKind::NotFound);
        if without_folder && self.id.is_in_folder() {
            linked = self.link_in_new_folders(&temp, place);
        }
        let Err(error) = linked else {
            return temp.remove().map(|()| None);
        };
        match error.kind() {
            io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory => {
                // Refused, unless a file stands there that may be replaced.
                self.shelf.admits(self.id, self.leftover)?;
                self.rename(temp, place).map(Some)
            }
            _ => Err(error).at("link to", place),
        }
    }

    fn link_in_new_folders(&self, temp: &TempFile, place: &Path) -> io::Result<()> {
        let link = || fs::hard_link(temp.path(), place);
        self.folders.make_and(&self.shelf.folders, place, link)
    }

    /// At every instant one whole file stands at the place.
    fn rename(&self, temp: TempFile, place: &Path) -> Result<Retained, ArchiveError> {
        let kept = Retained::keep(self.shelf, self.id, self.folders).at("keep a copy of", place)?;
        if self.leftover == Leftover::Replace {
            tracing::warn!(
                path = %place.display(),
                retained = %kept.path.display(),
                "a file that the index does not know is replaced, and kept here"
            );
        }
        fs::rename(temp.path(), place).at("replace", place)?;
        temp.keep();
        Ok(kept)
    }
}
