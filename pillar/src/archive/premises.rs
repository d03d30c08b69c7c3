//! Whether an archive's directories can be used: looked at before anything is made in them.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Component, Path, PathBuf},
};

use rustix::fs::{Access, access};

use super::{
    Archive, ArchiveError, ArchiveOptions,
    shelf::{CHECK_RIGHTS, PARTS, directory_name, lock, unusable},
};

impl Archive {
    /// Finds what would keep [`open`](Self::open) from its work, as far as can be seen from outside. Makes and changes
    /// nothing. Blocks.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn inspect(options: &ArchiveOptions) -> Result<(), ArchiveError> {
        if options.directories.is_empty() {
            return Err(ArchiveError::NoDirectory);
        }
        let mut known = BTreeSet::new();
        for collection in &options.collections {
            let name = directory_name(collection)?;
            for directory in &options.directories {
                let base = directory.join(name);
                for part in PARTS.map(|part| base.join(part)) {
                    check_usable(&part).map_err(unusable(&part, CHECK_RIGHTS))?;
                }
                let real = real(&base).map_err(unusable(&base, CHECK_RIGHTS))?;
                if !known.insert(real) {
                    return Err(ArchiveError::ListedTwice(directory.clone()));
                }
                if base.exists() {
                    // Free again at once, for whoever opens the archive then.
                    drop(lock(&base)?);
                }
            }
        }
        Ok(())
    }
}

/// Whether it is a directory that may be written to, or can be made.
pub(crate) fn check_usable(path: &Path) -> io::Result<()> {
    let standing = standing(path)?;
    if !fs::metadata(&standing)?.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    Ok(access(&standing, Access::WRITE_OK | Access::EXEC_OK)?)
}

/// The path without links, of which not all need to be there.
fn real(path: &Path) -> io::Result<PathBuf> {
    let standing = standing(path)?;
    let rest = path.strip_prefix(&standing).unwrap_or(path);
    Ok(fs::canonicalize(&standing)?.join(rest))
}

/// The part of a path that is there.
fn standing(path: &Path) -> io::Result<PathBuf> {
    for ancestor in path.ancestors() {
        let here = match ancestor.components().next() {
            None => Path::new(Component::CurDir.as_os_str()),
            Some(_) => ancestor,
        };
        match fs::metadata(here) {
            Ok(_) => return Ok(here.to_owned()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::NotFound.into())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn inspect(directories: &[&Path]) -> Result<(), String> {
        let options = ArchiveOptions {
            directories: directories.iter().map(|&it| it.to_owned()).collect(),
            collections: vec!["books".into(), "maps".into()],
            minimum_size_left: 0,
        };
        Archive::inspect(&options).map_err(|error| error.to_string())
    }

    #[test]
    fn what_open_would_refuse_is_seen_before_anything_is_made() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let (new, link, plain) = (path("new/one"), path("link"), path("plain"));
        symlink(dir.path(), &link).unwrap();
        fs::write(&plain, "no directory").unwrap();
        inspect(&[&new, &path("two")]).unwrap();
        for (directories, part) in [
            (vec![], "at least one"),
            (
                vec![plain.as_path()],
                "plain/books/tmpDir is not usable: Not a directory",
            ),
            (vec![&path("plain/below")], "Not a directory"),
            (vec![&new, &new], "new/one is listed twice"),
            (
                vec![&new, &link.join("new/one")],
                "link/new/one is listed twice",
            ),
        ] {
            let refused = inspect(&directories).unwrap_err();
            assert!(refused.contains(part), "{refused}");
        }
        let mut left: Vec<_> = fs::read_dir(dir.path()).unwrap().flatten().collect();
        left.sort_by_key(fs::DirEntry::file_name);
        let left: Vec<_> = left.iter().map(fs::DirEntry::file_name).collect();
        assert_eq!(left, ["link", "plain"]);
    }

    #[test]
    fn a_part_that_is_a_file_and_an_archive_in_use_are_seen() {
        let dir = tempfile::tempdir().unwrap();
        let archive = Archive::open(ArchiveOptions {
            directories: vec![dir.path().to_owned()],
            collections: vec!["maps".into()],
            minimum_size_left: 0,
        });
        let archive = archive.unwrap();
        let refused = inspect(&[dir.path()]).unwrap_err();
        assert!(
            refused.contains("maps is in use by another pillar"),
            "{refused}"
        );
        drop(archive);
        inspect(&[dir.path()]).unwrap();
        fs::remove_dir(dir.path().join("maps/retainDir")).unwrap();
        fs::write(dir.path().join("maps/retainDir"), "no directory").unwrap();
        let refused = inspect(&[dir.path()]).unwrap_err();
        assert!(
            refused.contains("maps/retainDir is not usable"),
            "{refused}"
        );
    }
}
