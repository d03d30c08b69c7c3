//! What lies in `retainDir` for longer than it is to be kept there.
//!
//! A file's time there begins when its place was given to another or to none, which is its last change of state
//! (`ctime`): nothing else is done to it. Where somebody has touched it since, or has copied the directory, it begins
//! anew.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::MetadataExt,
    path::Path,
    sync::Arc,
};

use pillarbox_messages::{ArchiveFileId, CollectionId};
use rustix::fs::{Mode, OFlags};

use super::{Archive, ArchiveError, is_absence, shelf::Shelf};

/// The `retainDir` of a collection in one archive directory.
#[derive(Debug)]
pub(crate) struct RetainDir {
    archive: Archive,
    shelf: Arc<Shelf>,
}

/// What has become of something that lies there.
#[derive(Debug)]
pub(crate) enum Seen<'a> {
    /// A file whose time has not come, or that an operation may still give back.
    Kept,
    /// A file of this many bytes that is gone now.
    Removed(&'a Path, u64),
    /// A file whose time has come, and that can't be removed; or what can't be looked at.
    Stuck(&'a Path, io::Error),
    /// Something else, which is left alone.
    Stray,
}

impl Archive {
    /// Where files of a collection are kept that were deleted or replaced; of each directory that is not there any
    /// more, why it is not.
    ///
    /// # Errors
    /// The collection is not in this archive.
    pub(crate) fn retain_dirs(
        &self,
        collection: &CollectionId,
    ) -> Result<Vec<Result<RetainDir, ArchiveError>>, ArchiveError> {
        let shelves = self.collection(collection)?.shelves.iter();
        let dirs = shelves.map(|shelf| {
            shelf.check_present()?;
            Ok(RetainDir {
                archive: self.clone(),
                shelf: Arc::clone(shelf),
            })
        });
        Ok(dirs.collect())
    }
}

impl RetainDir {
    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.shelf.retained
    }

    /// Removes the files that came there before `before_ms`, and the folders that are empty without them. Each thing
    /// that lies there is told, which may end it. Blocks.
    pub(crate) fn purge<E>(
        &self,
        before_ms: i64,
        mut tell: impl FnMut(Seen<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.folder(self.path(), before_ms, DEEPEST, &mut tell)
    }

    fn folder<E>(
        &self,
        folder: &Path,
        before_ms: i64,
        depth: usize,
        tell: &mut impl FnMut(Seen<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if is_absence(&error) => return Ok(()),
            Err(error) => return tell(Seen::Stuck(folder, error)),
        };
        for entry in entries {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => return tell(Seen::Stuck(folder, error)),
            };
            let path = entry.path();
            let kind = match entry.file_type() {
                Ok(kind) => kind,
                Err(error) if is_absence(&error) => continue,
                Err(error) => {
                    tell(Seen::Stuck(&path, error))?;
                    continue;
                }
            };
            if kind.is_file() {
                tell(self.file(&path, before_ms))?;
            } else if kind.is_dir() && depth > 0 {
                self.folder(&path, before_ms, depth - 1, tell)?;
            } else {
                tell(Seen::Stray)?;
            }
        }
        Ok(())
    }

    fn file<'a>(&self, path: &'a Path, before_ms: i64) -> Seen<'a> {
        match self.shelf.remove_retained(path, before_ms) {
            Ok(Some(bytes)) => {
                self.archive.0.folders.prune(self.path(), path);
                Seen::Removed(path, bytes)
            }
            Ok(None) => Seen::Kept,
            // Given back in the meantime.
            Err(error) if is_absence(&error) => Seen::Kept,
            Err(error) => Seen::Stuck(path, error),
        }
    }
}

impl Shelf {
    /// Takes a name in `retainDir` away, unless an operation has it in hand or its time has not come. Gives the
    /// file's size.
    fn remove_retained(&self, path: &Path, before_ms: i64) -> io::Result<Option<u64>> {
        let in_hand = self.in_hand();
        if in_hand.contains(path) {
            return Ok(None);
        }
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
        let found = file.metadata()?;
        let since_ms = found
            .ctime()
            .saturating_mul(1_000)
            .saturating_add(found.ctime_nsec() / 1_000_000);
        if !found.is_file() || since_ms >= before_ms {
            return Ok(None);
        }
        fs::remove_file(path)?;
        // To give the space of a large file back takes a while, in which no operation has to wait for the names.
        drop(in_hand);
        drop(file);
        Ok(Some(found.len()))
    }
}

/// No file id has more folders.
const DEEPEST: usize = ArchiveFileId::MAX_UNITS;
