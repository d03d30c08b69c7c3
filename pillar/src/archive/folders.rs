//! Sub folders of `folderDir` and `retainDir`, made when a file needs them and gone with their last file.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::disk;

/// Which sub folders are known to outlast a power cut.
///
/// The lock is held over the system calls that make, sync and remove folders, so that what the set
/// says is true of the folder that stands there now. It is only taken on blocking threads, and by
/// puts of ids with a `/`.
#[derive(Debug, Default)]
pub(super) struct Folders {
    lasting: Mutex<BTreeSet<PathBuf>>,
}

impl Folders {
    /// Makes the folders of `place` below `root`, and then what is to stand in them, before anybody can remove
    /// them for being empty.
    pub(super) fn make_and<T>(
        &self,
        root: &Path,
        place: &Path,
        then: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        let mut lasting = self.lock();
        for dir in chain(root, place) {
            match fs::create_dir(dir) {
                Ok(()) => {
                    lasting.remove(dir);
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        then()
    }

    /// Makes the names of the folders of `place` last; costs nothing for those of which that is known.
    pub(super) fn sync(&self, root: &Path, place: &Path) -> io::Result<()> {
        let mut lasting = self.lock();
        for dir in chain(root, place) {
            if !lasting.contains(dir) {
                dir.parent().map_or(Ok(()), disk::sync_dir)?;
                if lasting.len() >= MAX_REMEMBERED {
                    lasting.clear();
                }
                lasting.insert(dir.to_owned());
            }
        }
        Ok(())
    }

    /// Removes those folders of `place` that have become empty.
    pub(super) fn prune(&self, root: &Path, place: &Path) {
        let mut lasting = self.lock();
        for dir in chain(root, place).into_iter().rev() {
            match fs::remove_dir(dir) {
                Ok(()) => {}
                // Whoever was at it before did not get further.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                // Something is in it.
                Err(_) => return,
            }
            lasting.remove(dir);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<PathBuf>> {
        self.lasting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The folders between `root` and `place`, both excluded, outermost first.
fn chain<'a>(root: &Path, place: &'a Path) -> Vec<&'a Path> {
    let mut dirs: Vec<_> = place
        .ancestors()
        .skip(1)
        .take_while(|dir| *dir != root)
        .collect();
    dirs.reverse();
    dirs
}

/// Folders remembered as synced; more cost a sync again.
const MAX_REMEMBERED: usize = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_come_and_go() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        let folders = Folders::default();
        let place = root.join("a/b/c");
        folders.make_and(root, &place, || Ok(())).unwrap();
        folders.sync(root, &place).unwrap();
        folders.make_and(root, &place, || Ok(())).unwrap();
        assert_eq!(folders.lock().len(), 2);
        fs::write(root.join("a/x"), b"").unwrap();
        folders.prune(root, &place);
        assert!(root.join("a").is_dir());
        assert!(!root.join("a/b").exists());
        assert_eq!(folders.lock().len(), 1);
        // A crash had come after the inner one was removed.
        fs::remove_file(root.join("a/x")).unwrap();
        folders.prune(root, &place);
        assert!(!root.join("a").exists());
    }

    #[test]
    fn a_folder_made_again_is_synced_again() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        let folders = Folders::default();
        let place = root.join("a/b");
        folders.make_and(root, &place, || Ok(())).unwrap();
        folders.sync(root, &place).unwrap();
        fs::remove_dir(root.join("a")).unwrap();
        folders.make_and(root, &place, || Ok(())).unwrap();
        assert!(folders.lock().is_empty());
    }
}
