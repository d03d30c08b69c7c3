//! Directories and temporary files, with the syncs that make them last.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use rustix::fs::{Advice, fadvise};
use tokio::runtime::Handle;
use uuid::Uuid;

use super::{ArchiveError, error::Context};

/// Makes `path` and what it lies in, and syncs the directories that hold the new names.
///
/// The last `certain` names are synced even if they were there: a process that died between making
/// and syncing them leaves names that a power cut can still take away. (Not if this user may not
/// look at the directory that they are in: then somebody else made them.)
pub(crate) fn make_dirs(path: &Path, certain: usize) -> io::Result<()> {
    let missing = path
        .ancestors()
        .take_while(|dir| !names_nothing(dir) && !dir.exists())
        .count();
    fs::create_dir_all(path)?;
    let names = path
        .ancestors()
        .filter(|dir| !names_nothing(dir))
        .take(missing.max(certain));
    for (number, holder) in names.filter_map(parent).enumerate() {
        match sync_dir(holder) {
            Err(error) if number >= missing && error.kind() == io::ErrorKind::PermissionDenied => {}
            synced => synced?,
        }
    }
    Ok(())
}

/// Makes the names in a directory last.
pub(crate) fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

fn names_nothing(dir: &Path) -> bool {
    dir.file_name().is_none()
}

fn parent(dir: &Path) -> Option<&Path> {
    dir.parent().map(|parent| {
        if parent.as_os_str().is_empty() {
            Path::new(".")
        } else {
            parent
        }
    })
}

/// A file that nobody knows of; gone when dropped, unless [`kept`](Self::keep).
#[derive(Debug)]
pub(super) struct TempFile {
    file: File,
    path: PathBuf,
    written: u64,
    flushed: u64,
    keep: bool,
}

impl TempFile {
    /// A new empty file in `dir`, under a name that was never used.
    pub(super) fn create(dir: &Path) -> Result<Self, ArchiveError> {
        let path = dir.join(format!("{MARK}{}", Uuid::new_v4()));
        let file = File::create_new(&path).at("create", &path)?;
        Ok(Self {
            file,
            path,
            written: 0,
            flushed: 0,
            keep: false,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Appends bytes; now and then asks the system to start writing what has come together, so that
    /// the sync at the end finds little left to do.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), ArchiveError> {
        self.file.write_all(bytes).at("write", &self.path)?;
        self.written = self
            .written
            .saturating_add(bytes.len().try_into().unwrap_or(u64::MAX));
        if self.written.saturating_sub(self.flushed) >= FLUSH_STEP {
            self.start_write_back();
        }
        Ok(())
    }

    /// Returns when the bytes are on the disk.
    pub(super) fn sync(&self) -> Result<(), ArchiveError> {
        self.file.sync_data().at("sync", &self.path)
    }

    /// Leaves the file where it is: its name has become something else's.
    pub(super) fn keep(mut self) {
        self.keep = true;
    }

    /// Removes the name, but not the bytes if they have another one.
    pub(super) fn remove(mut self) -> Result<(), ArchiveError> {
        self.keep = true;
        fs::remove_file(&self.path).at("remove", &self.path)
    }

    /// Linux starts to write dirty pages of a range declared as no longer needed, without waiting;
    /// pages on their way to the disk stay in the cache.
    fn start_write_back(&mut self) {
        let length = std::num::NonZeroU64::new(self.written - self.flushed);
        if let Err(error) = fadvise(&self.file, self.flushed, length, Advice::DontNeed) {
            tracing::debug!(%error, "no early write-back on this file system");
        }
        self.flushed = self.written;
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        if !self.keep
            && let Err(error) = fs::remove_file(&self.path)
        {
            tracing::warn!(path = %self.path.display(), %error, "temporary file left over");
        }
    }
}

/// Something that is dropped on a blocking thread, since that takes time: as removing a large file does.
#[derive(Debug)]
pub(crate) struct OffThread<T: Send + 'static>(Option<T>);

impl<T: Send + 'static> OffThread<T> {
    pub(crate) const fn new(inner: T) -> Self {
        Self(Some(inner))
    }

    /// What it is.
    #[expect(clippy::expect_used, reason = "it is taken out by what consumes this")]
    pub(crate) const fn inner(&self) -> &T {
        self.0.as_ref().expect("still there")
    }

    /// For whoever is on such a thread.
    #[expect(clippy::expect_used, reason = "it is taken out by what consumes this")]
    pub(crate) fn into_inner(mut self) -> T {
        self.0.take().expect("still there")
    }
}

impl<T: Send + 'static> Drop for OffThread<T> {
    fn drop(&mut self) {
        let Some(inner) = self.0.take() else {
            return;
        };
        if let Ok(runtime) = Handle::try_current() {
            // A runtime that ends drops it here and now.
            drop(runtime.spawn_blocking(move || drop(inner)));
        }
    }
}

/// Whether a [`TempFile`] has, or had, this name: no file id begins like it.
pub(super) fn is_temporary(name: &OsStr) -> bool {
    let rest = name.to_str().and_then(|name| name.strip_prefix(MARK));
    rest.is_some_and(|rest| Uuid::try_parse(rest).is_ok())
}

const MARK: char = '.';

/// Bytes between two requests to start writing them to the disk.
const FLUSH_STEP: u64 = 8 * 1024 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn makes_chains_relative_and_absolute() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("a/b/c");
        make_dirs(&deep, 0).unwrap();
        make_dirs(&deep, 4).unwrap();
        assert!(deep.is_dir());
        make_dirs(Path::new("/"), 3).unwrap();
        make_dirs(Path::new("."), 1).unwrap();
    }

    #[test]
    fn a_temporary_file_goes_with_its_handle() {
        let dir = tempfile::tempdir().unwrap();
        let mut temp = TempFile::create(dir.path()).unwrap();
        temp.write(&vec![7; 9 << 20]).unwrap();
        temp.sync().unwrap();
        let path = temp.path().to_owned();
        assert_eq!(fs::metadata(&path).unwrap().len(), 9 << 20);
        assert!(is_temporary(path.file_name().unwrap()));
        for other in ["x1", ".probe", "0d9c1f58-2f3f-4c0e-9d3b-6d0a4b0f7c11"] {
            assert!(!is_temporary(OsStr::new(other)), "{other}");
        }
        drop(temp);
        assert!(!path.exists());
    }
}
