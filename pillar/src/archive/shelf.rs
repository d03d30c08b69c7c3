//! One archive directory's part for one collection: `D/K/{tmpDir,fileDir,folderDir,retainDir}`.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use pillarbox_messages::{ArchiveFileId, CollectionId};
use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
};

use super::{ArchiveError, disk, retained};

#[derive(Debug)]
pub(super) struct Shelf {
    /// The configured directory, `D`.
    pub(super) directory: PathBuf,
    /// `D/K`.
    pub(super) base: PathBuf,
    /// Files that are being received.
    pub(super) temp: PathBuf,
    files: PathBuf,
    /// Archived files whose id has a `/`.
    pub(super) folders: PathBuf,
    /// `fileDir`, held open because every put syncs it.
    files_handle: File,
    /// The file system's number, by which directories that share their space are known.
    pub(super) device: u64,
    /// The number of `fileDir` in there.
    inode: u64,
    /// Files that were replaced or deleted.
    pub(super) retained: PathBuf,
    /// Names in there by which operations may still give files back.
    in_hand: Mutex<BTreeSet<PathBuf>>,
}

impl Shelf {
    /// Makes the directories.
    pub(super) fn open(directory: &Path, collection: &CollectionId) -> Result<Self, ArchiveError> {
        let base = directory.join(directory_name(collection)?);
        let [temp, files, folders, retained] = PARTS.map(|name| base.join(name));
        for dir in [&temp, &files, &folders, &retained] {
            disk::make_dirs(dir, NAMES_MADE_HERE).map_err(unusable(dir, CHECK_RIGHTS))?;
        }
        let files_handle = File::open(&files).map_err(unusable(&files, CHECK_RIGHTS))?;
        let metadata = files_handle
            .metadata()
            .map_err(unusable(&files, CHECK_RIGHTS))?;
        let (device, inode) = (metadata.dev(), metadata.ino());
        let directory = directory.to_owned();
        Ok(Self {
            directory,
            temp,
            files,
            folders,
            files_handle,
            device,
            inode,
            retained,
            base,
            in_hand: Mutex::default(),
        })
    }

    /// Locks the shelf, removes what an earlier run left half received, and proves that files can be stored. The
    /// lock goes with what is returned.
    pub(super) fn take_over(&self) -> Result<File, ArchiveError> {
        let lock = lock(&self.base)?;
        self.clean().map_err(unusable(&self.temp, CHECK_RIGHTS))?;
        for dir in [&self.files, &self.folders] {
            probe(&self.temp, dir)?;
        }
        Ok(lock)
    }

    /// Removes the temporary files of an earlier run. What else is there may be the only copy that somebody has:
    /// it is moved to `retainDir`, under its name.
    fn clean(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.temp)? {
            let entry = entry?;
            let name = entry.file_name();
            if disk::is_temporary(&name) || name == PROBE {
                fs::remove_file(entry.path())?;
            } else if let Err(error) = self.move_to_retained(&entry.path()) {
                // It is in nobody's way.
                let path = entry.path();
                tracing::warn!(path = %path.display(), %error, "somebody else's temporary file stays");
            }
        }
        Ok(())
    }

    /// Moves a file, or what is in a folder and below, out of `tmpDir`.
    fn move_to_retained(&self, found: &Path) -> io::Result<()> {
        if fs::symlink_metadata(found)?.is_dir() {
            for entry in fs::read_dir(found)? {
                self.move_to_retained(&entry?.path())?;
            }
            return fs::remove_dir(found);
        }
        let name = found.strip_prefix(&self.temp).unwrap_or(found);
        let retained = retained::resolve(&self.retained, name)?;
        if let Some(folder) = retained.parent() {
            disk::make_dirs(folder, 0)?;
        }
        let retained = retained::link(found, &retained)?;
        disk::sync_dir(retained.parent().unwrap_or(&self.retained))?;
        fs::remove_file(found)?;
        tracing::warn!(
            path = %found.display(),
            retained = %retained.display(),
            "somebody else's temporary file is kept here"
        );
        Ok(())
    }

    /// Whether the directories are still the ones that were opened: not so if their disk was taken away.
    pub(super) fn check_present(&self) -> Result<(), ArchiveError> {
        let found = fs::metadata(&self.files).map(|found| (found.dev(), found.ino()));
        match found {
            Ok(found) if found == self.identity() => Ok(()),
            Ok(_) => Err(unusable(&self.files, MOUNT)(io::ErrorKind::NotFound.into())),
            Err(error) => Err(unusable(&self.files, MOUNT)(error)),
        }
    }

    /// What tells a shelf from all others, whatever name it was reached by.
    pub(super) fn identity(&self) -> (u64, u64) {
        (self.device, self.inode)
    }

    /// Where a file stands: its id, component by component.
    pub(super) fn place(&self, id: &ArchiveFileId) -> PathBuf {
        let mut path = if id.is_in_folder() {
            self.folders.clone()
        } else {
            self.files.clone()
        };
        path.extend(id.components());
        path
    }

    /// Where the last of its versions is kept, if that name is free.
    pub(super) fn retained_place(&self, id: &ArchiveFileId) -> io::Result<PathBuf> {
        let path: PathBuf = id.components().collect();
        retained::resolve(&self.retained, &path)
    }

    /// The names in `retainDir` that operations have in hand. Whoever gives or takes one there holds this.
    pub(super) fn in_hand(&self) -> MutexGuard<'_, BTreeSet<PathBuf>> {
        self.in_hand.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What stands at a place.
    pub(super) fn occupant(&self, place: &Path) -> io::Result<Occupant> {
        match fs::symlink_metadata(place) {
            Ok(found) if found.is_dir() => Ok(Occupant::Folder),
            Ok(_) => Ok(Occupant::File),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Occupant::Nothing),
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => Ok(Occupant::FileAboveIt),
            Err(error) => Err(error),
        }
    }

    /// Takes a name away for good.
    pub(super) fn unlink(&self, place: &Path) -> io::Result<()> {
        // Opened first: once it is empty, others may remove it.
        let dir = File::open(place.parent().unwrap_or(&self.files))?;
        fs::remove_file(place)?;
        dir.sync_all()
    }

    /// Makes the names in the directory of a place last.
    pub(super) fn sync_names(&self, place: &Path) -> io::Result<()> {
        match place.parent() {
            Some(dir) if dir != self.files => disk::sync_dir(dir),
            _ => self.files_handle.sync_all(),
        }
    }
}

/// What stands where a file is to stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Occupant {
    Nothing,
    File,
    Folder,
    /// A folder that the place needs is a file.
    FileAboveIt,
}

/// A collection id as one path component.
pub(super) fn directory_name(collection: &CollectionId) -> Result<&str, ArchiveError> {
    let name = collection.as_str();
    let hostile = matches!(name, "" | "." | "..") || name.contains(['/', '\0']) || name.len() > 255;
    if hostile {
        Err(ArchiveError::BadCollectionId(collection.clone()))
    } else {
        Ok(name)
    }
}

/// Two owners would remove each other's temporary files, and replace each other's archived ones.
pub(super) fn lock(base: &Path) -> Result<File, ArchiveError> {
    let dir = File::open(base).map_err(unusable(base, CHECK_RIGHTS))?;
    match flock(&dir, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => return Err(ArchiveError::InUse(base.to_owned())),
        Err(error) => {
            tracing::warn!(path = %base.display(), %error, "can't be locked on this file system");
        }
    }
    Ok(dir)
}

/// Stores a file as a put does, and takes it away again.
fn probe(temp: &Path, dir: &Path) -> Result<(), ArchiveError> {
    let name = dir.join(PROBE);
    match fs::remove_file(&name) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(unusable(dir, CHECK_RIGHTS)(error));
        }
        _ => {}
    }
    let file = temp.join(PROBE);
    fs::write(&file, []).map_err(unusable(temp, CHECK_RIGHTS))?;
    let linked = fs::hard_link(&file, &name);
    fs::remove_file(&file).map_err(unusable(temp, CHECK_RIGHTS))?;
    linked.map_err(unusable(dir, CHECK_LINKS))?;
    fs::remove_file(&name).map_err(unusable(dir, CHECK_RIGHTS))
}

pub(super) fn unusable(
    path: &Path,
    remedy: &'static str,
) -> impl FnOnce(io::Error) -> ArchiveError {
    let path = path.to_owned();
    move |source| ArchiveError::Unusable {
        path,
        source,
        remedy,
    }
}

/// The directories of a collection.
pub(super) const PARTS: [&str; 4] = ["tmpDir", "fileDir", "folderDir", "retainDir"];
/// No file id starts with a dot.
const PROBE: &str = ".probe";
const MOUNT: &str = "it is not the directory that was there at the start; mount its disk again";
pub(super) const CHECK_RIGHTS: &str = "check that it is a directory which this user may write to";
const CHECK_LINKS: &str =
    "check that it is on one file system with its neighbors, and that it supports hard links";

/// The names of the four directories, of `K` and of `D`.
const NAMES_MADE_HERE: usize = 3;
