//! Second names in `retainDir`: no bytes lose their last name because of a request.

use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use pillarbox_messages::ArchiveFileId;
use uuid::Uuid;

use super::{disk, folders::Folders, shelf::Shelf};

/// A file that has a second name, so that its place may be given to another or to none.
#[derive(Debug)]
pub(super) struct Retained {
    pub(super) shelf: Arc<Shelf>,
    place: PathBuf,
    /// The second name.
    pub(super) path: PathBuf,
}

impl Retained {
    /// Gives the file at the place of `id` a second name, and makes it last. A file that has one keeps it.
    pub(super) fn keep(
        shelf: &Arc<Shelf>,
        id: &ArchiveFileId,
        folders: &Folders,
    ) -> io::Result<Self> {
        let place = shelf.place(id);
        let first = shelf.retained_place(id);
        folders.make(&shelf.retained, &first)?;
        let path = link(&place, &first)?;
        disk::sync_dir(path.parent().unwrap_or(&shelf.retained))?;
        folders.sync(&shelf.retained, &path)?;
        let shelf = Arc::clone(shelf);
        Ok(Self { shelf, place, path })
    }

    /// Gives the place back, whatever stands there now.
    pub(super) fn restore(&self, folders: &Folders) -> io::Result<()> {
        let Self { shelf, place, path } = self;
        if !place.starts_with(&shelf.folders) {
            fs::rename(path, place)?;
            return shelf.sync_names(place);
        }
        folders.make_and(&shelf.folders, place, || fs::rename(path, place))?;
        shelf.sync_names(place)?;
        folders.sync(&shelf.folders, place)
    }
}

/// Takes the second name away from the file at the place of `id`, if it has one: nothing came of the operation that
/// gave it.
pub(super) fn release(shelf: &Shelf, id: &ArchiveFileId, folders: &Folders) -> io::Result<()> {
    let place = shelf.place(id);
    let found = match fs::symlink_metadata(&place) {
        Ok(found) if found.nlink() > 1 => found,
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => return Ok(()),
    };
    let first = shelf.retained_place(id);
    let folder = first.parent().unwrap_or(&shelf.retained);
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let path = entry?.path();
        if is_file(&path, (found.dev(), found.ino())) {
            fs::remove_file(&path)?;
        }
    }
    folders.prune(&shelf.retained, &first);
    Ok(())
}

/// Links `place` to a name that is free: `first`, with `.old` as often as it takes. What cannot be named so is given
/// a name that nothing has.
pub(super) fn link(place: &Path, first: &Path) -> io::Result<PathBuf> {
    let found = fs::symlink_metadata(place)?;
    let mut path = first.to_owned();
    for _ in 0..RETAINED_OF_ONE_NAME {
        match fs::hard_link(place, &path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                if is_file(&path, (found.dev(), found.ino())) {
                    return Ok(path);
                }
                path.as_mut_os_string().push(".old");
            }
            Err(error) if error.kind() == io::ErrorKind::InvalidFilename => break,
            Err(error) => return Err(error),
        }
    }
    let path = unique(first);
    fs::hard_link(place, &path)?;
    Ok(path)
}

fn is_file(path: &Path, identity: (u64, u64)) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| (found.dev(), found.ino()) == identity)
}

/// The beginning of a name, and what makes it unique.
fn unique(first: &Path) -> PathBuf {
    let name = first.file_name().unwrap_or_default().to_string_lossy();
    let fits = |end: &usize| name.is_char_boundary(*end);
    let end = (0..=NAME_BEGINNING.min(name.len())).rev().find(fits);
    let begin = name.get(..end.unwrap_or_default()).unwrap_or_default();
    first.with_file_name(format!("{begin}.{}.old", Uuid::new_v4().simple()))
}

/// So many versions of a file have names that tell their order; later ones don't.
const RETAINED_OF_ONE_NAME: usize = 40;
/// Bytes of a name before its unique part, which has 37: file systems allow 255.
const NAME_BEGINNING: usize = 200;

#[cfg(test)]
mod tests {
    use pillarbox_messages::FileId;

    use super::*;

    struct Fixture {
        dir: tempfile::TempDir,
        shelf: Arc<Shelf>,
        folders: Folders,
    }

    impl Fixture {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let shelf = Arc::new(Shelf::open(dir.path(), &"books".into()).unwrap());
            let folders = Folders::default();
            Self {
                dir,
                shelf,
                folders,
            }
        }

        fn keep(&self, id: &ArchiveFileId) -> Retained {
            Retained::keep(&self.shelf, id, &self.folders).unwrap()
        }

        /// A new file at the place of `id`.
        fn stand(&self, id: &ArchiveFileId, content: &str) {
            let place = self.shelf.place(id);
            _ = fs::remove_file(&place);
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            fs::write(place, content).unwrap();
        }

        fn retained(&self) -> usize {
            let dir = self.dir.path().join("books/retainDir");
            fs::read_dir(dir).unwrap().count()
        }
    }

    fn id(text: &str) -> ArchiveFileId {
        ArchiveFileId::new(&FileId::from(text), None).unwrap()
    }

    #[test]
    fn any_number_of_versions_of_any_name_are_kept() {
        let fixture = Fixture::new();
        for name in ["x1", "a/b/x1", &"n".repeat(252), &"\u{e9}".repeat(120)] {
            let name = id(name);
            let mut paths = Vec::new();
            for version in 0..RETAINED_OF_ONE_NAME + 3 {
                fixture.stand(&name, &version.to_string());
                paths.push(fixture.keep(&name).path);
            }
            for (version, path) in paths.iter().enumerate() {
                assert_eq!(fs::read_to_string(path).unwrap(), version.to_string());
            }
        }
    }

    #[test]
    fn a_file_gets_one_second_name_which_can_be_taken_away() {
        let fixture = Fixture::new();
        for name in ["x1", "a/b/x1"] {
            let name = id(name);
            fixture.stand(&name, "old");
            let older = fixture.keep(&name).path;
            fixture.stand(&name, "new");
            let path = fixture.keep(&name).path;
            assert_eq!(fixture.keep(&name).path, path);
            assert_ne!(path, older);
            release(&fixture.shelf, &name, &fixture.folders).unwrap();
            assert!(!path.exists() && older.exists());
            release(&fixture.shelf, &name, &fixture.folders).unwrap();
            assert!(older.exists());
            fs::remove_file(older).unwrap();
        }
        assert_eq!(fixture.retained(), 1, "only the folders of the second");
        let gone = id("gone");
        release(&fixture.shelf, &gone, &fixture.folders).unwrap();
        fixture.stand(&gone, "never kept");
        release(&fixture.shelf, &gone, &fixture.folders).unwrap();
        assert!(fixture.shelf.place(&gone).exists());
    }

    #[test]
    fn a_place_is_given_back() {
        let fixture = Fixture::new();
        let name = id("x1");
        fixture.stand(&name, "old");
        let kept = fixture.keep(&name);
        fixture.stand(&name, "new");
        kept.restore(&fixture.folders).unwrap();
        let content = fs::read_to_string(fixture.shelf.place(&name)).unwrap();
        assert_eq!((content.as_str(), fixture.retained()), ("old", 0));
    }
}
