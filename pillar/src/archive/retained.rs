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

/// A file that has a second name, so that its place may be given to another or to none. While this is kept nobody
/// takes that name away.
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
        let path = give_name(shelf, id, &place, folders)?;
        let shelf = Arc::clone(shelf);
        let kept = Self { shelf, place, path };
        kept.make_last(folders)?;
        Ok(kept)
    }

    fn make_last(&self, folders: &Folders) -> io::Result<()> {
        let Self { shelf, path, .. } = self;
        disk::sync_dir(path.parent().unwrap_or(&shelf.retained))?;
        folders.sync(&shelf.retained, path)
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

impl Drop for Retained {
    fn drop(&mut self) {
        self.shelf.in_hand().remove(&self.path);
    }
}

/// Gives the file at `place` its second name, which is in hand from then on.
fn give_name(
    shelf: &Shelf,
    id: &ArchiveFileId,
    place: &Path,
    folders: &Folders,
) -> io::Result<PathBuf> {
    let mut attempts = 0;
    loop {
        let first = shelf.retained_place(id)?;
        let named = folders.make_and(&shelf.retained, &first, || {
            let mut in_hand = shelf.in_hand();
            let path = link(place, &first)?;
            in_hand.insert(path.clone());
            Ok(path)
        });
        attempts += 1;
        match named {
            // One of the folders has become a file's name meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotADirectory && attempts < ATTEMPTS => {}
            named => return named,
        }
    }
}

/// Where something with this path may be kept below `root`, if nothing stands there. A folder whose name a file has is
/// called otherwise: as with files, `.old` is added as often as it takes.
pub(super) fn resolve(root: &Path, path: &Path) -> io::Result<PathBuf> {
    let mut resolved = root.to_owned();
    for folder in path.parent().into_iter().flatten() {
        resolved = resolve_folder(resolved.join(folder))?;
    }
    resolved.extend(path.file_name());
    Ok(resolved)
}

fn resolve_folder(first: PathBuf) -> io::Result<PathBuf> {
    let mut path = first;
    for _ in 0..RETAINED_OF_ONE_NAME {
        match fs::symlink_metadata(&path) {
            Ok(found) if found.is_dir() => return Ok(path),
            Ok(_) => path.as_mut_os_string().push(".old"),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::InvalidFilename => {
                let beginning = beginning(&path);
                path.set_file_name(format!("{beginning}.old"));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(unique(&path))
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
    let first = shelf.retained_place(id)?;
    let folder = first.parent().unwrap_or(&shelf.retained);
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    let in_hand = shelf.in_hand();
    for entry in entries {
        let path = entry?.path();
        if is_file(&path, (found.dev(), found.ino())) {
            fs::remove_file(&path)?;
        }
    }
    drop(in_hand);
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
    let beginning = beginning(first);
    first.with_file_name(format!("{beginning}.{}.old", Uuid::new_v4().simple()))
}

fn beginning(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let fits = |end: &usize| name.is_char_boundary(*end);
    let end = (0..=NAME_BEGINNING.min(name.len())).rev().find(fits);
    let beginning = name.get(..end.unwrap_or_default());
    beginning.unwrap_or_default().to_owned()
}

/// So many versions of a file have names that tell their order, until the first of them is purged; later ones don't.
const RETAINED_OF_ONE_NAME: usize = 40;
/// How often a name is looked for while others are given.
const ATTEMPTS: usize = 8;
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
                paths.push(fixture.keep(&name).path.clone());
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
            let older = fixture.keep(&name).path.clone();
            fixture.stand(&name, "new");
            let path = fixture.keep(&name).path.clone();
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

    /// Of a name that was a file's and a folder's, by turns, both are kept.
    #[test]
    fn a_name_may_be_a_file_s_and_then_a_folder_s() {
        let fixture = Fixture::new();
        let long = "n".repeat(248);
        for name in ["aa", &long] {
            let mut kept = Vec::new();
            let versions = [
                name.to_owned(),
                format!("{name}.old"),
                format!("{name}/b1"),
                name.to_owned(),
                format!("{name}/b1"),
                format!("{name}/b1/c1"),
                format!("{name}/b1"),
            ];
            // Longer than a file's id may be.
            let versions = versions.into_iter().filter(|version| version.len() <= 252);
            for (number, version) in versions.enumerate() {
                let version = id(&version);
                fixture.stand(&version, &number.to_string());
                let path = fixture.keep(&version).path.clone();
                kept.push((path, number.to_string()));
                // Gone, with its folders.
                let place = fixture.shelf.place(&version);
                fs::remove_file(&place).unwrap();
                if version.is_in_folder() {
                    fixture.folders.prune(&fixture.shelf.folders, &place);
                }
            }
            for (path, content) in kept {
                assert_eq!(fs::read_to_string(path).unwrap(), content);
            }
        }
        let last = id("aa/b2");
        fixture.stand(&last, "here to stay");
        let path = fixture.keep(&last).path.clone();
        let retained = &fixture.shelf.retained;
        assert_eq!(
            path.strip_prefix(retained).unwrap(),
            Path::new("aa.old.old/b2")
        );
        release(&fixture.shelf, &last, &fixture.folders).unwrap();
        assert!(!path.exists());
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
