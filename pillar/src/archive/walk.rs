//! What lies in an archive directory, in an order in which a later process can go on: sorted by bytes, in each folder
//! its files first, then its folders.
//!
//! Memory does not grow with the number of entries: of a folder with many, as many as fit are held at a time, and
//! the folder is read again for the next ones.

use std::{
    collections::{BinaryHeap, VecDeque},
    ffi::{OsStr, OsString},
    fs::{self, FileType},
    io,
    path::{Path, PathBuf},
};

use pillarbox_messages::{ArchiveFileId, FileId};

/// `fileDir` or `folderDir` of a collection in one archive directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tree {
    /// The configured directory.
    pub(crate) directory: PathBuf,
    pub(crate) kind: TreeKind,
    pub(super) root: PathBuf,
}

/// Which files have their place in a [`Tree`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TreeKind {
    /// `fileDir`: files whose id has no `/`.
    Files,
    /// `folderDir`: files whose id has one.
    Folders,
}

/// Something that lies in a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// A regular file at the place of this id.
    File(ArchiveFileId),
    /// Something that is no archived file, and why.
    Stray(PathBuf, String),
}

impl Tree {
    /// The tree of a collection, whose part of the archive directory is `base`.
    pub(crate) fn new(directory: &Path, base: &Path, kind: TreeKind) -> Self {
        Self {
            directory: directory.to_owned(),
            kind,
            root: base.join(kind.name()),
        }
    }

    /// Where a file stands.
    pub(crate) fn place(&self, id: &ArchiveFileId) -> PathBuf {
        let mut place = self.root.clone();
        place.extend(id.components());
        place
    }

    fn judge(&self, folder: &Path, name: &OsStr, kind: Kind) -> Found {
        let path = folder.join(name);
        let stray = |why: &str| Found::Stray(self.root.join(&path), why.to_owned());
        match kind {
            Kind::Folder => return stray("a directory has no place here"),
            Kind::Link => return stray("links are not followed"),
            Kind::Other => return stray("it is no regular file"),
            Kind::File => {}
        }
        if self.kind == TreeKind::Folders && folder.as_os_str().is_empty() {
            return stray("a file without folder has its place in fileDir");
        }
        let Some(text) = path.to_str() else {
            return stray("its name is not UTF-8");
        };
        match ArchiveFileId::new(&FileId::from(text), None) {
            Ok(id) => Found::File(id),
            Err(error) => stray(&error.to_string()),
        }
    }
}

impl TreeKind {
    /// The directory's name.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Files => "fileDir",
            Self::Folders => "folderDir",
        }
    }
}

/// A way through a tree.
#[derive(Debug)]
pub(crate) struct Walk {
    tree: Tree,
    stack: Vec<Level>,
    limits: Limits,
}

/// How many names are held at a time.
#[derive(Clone, Copy, Debug)]
struct Limits {
    files: usize,
    /// Of folders in the root, which may be as many as there are files.
    first_folders: usize,
    /// Of folders deeper down, of which a whole path is held.
    folders: usize,
}

/// A folder on the path to where the walk is.
#[derive(Debug, Default)]
struct Level {
    /// Seen from the root.
    path: PathBuf,
    /// The last file that was given out.
    files_after: OsString,
    files_done: bool,
    /// Folders to go into.
    folders: VecDeque<OsString>,
    /// The last folder that was put there.
    folders_after: OsString,
    folders_done: bool,
}

impl Walk {
    /// From behind the file with this path in the tree; from the beginning if it is empty. It need not exist.
    pub(crate) fn after(tree: Tree, path: &str) -> Self {
        let mut stack = vec![Level::default()];
        let mut parts = path.split('/').peekable();
        while let (Some(part), Some(level)) = (parts.next(), stack.last_mut()) {
            if parts.peek().is_none() {
                level.files_after = part.into();
                break;
            }
            level.files_done = true;
            level.folders_after = part.into();
            let path = level.path.join(part);
            stack.push(Level {
                path,
                ..Level::default()
            });
        }
        Self {
            tree,
            stack,
            limits: LIMITS,
        }
    }

    pub(crate) fn tree(&self) -> &Tree {
        &self.tree
    }

    /// The folder where it is.
    pub(crate) fn path(&self) -> PathBuf {
        let root = &self.tree.root;
        let level = self.stack.last();
        level.map_or_else(|| root.clone(), |level| root.join(&level.path))
    }

    /// Leaves out what is left of the folder where it is, which can't be read.
    pub(crate) fn skip_folder(&mut self) {
        self.stack.pop();
    }

    /// What comes next, of one folder; nothing at the end. `go_on` is told how many entries were read, and may end it.
    pub(crate) fn next<E: From<io::Error>>(
        &mut self,
        mut go_on: impl FnMut(usize) -> Result<(), E>,
    ) -> Result<Option<Vec<Found>>, E> {
        loop {
            let depth = self.stack.len();
            let Some(level) = self.stack.last_mut() else {
                return Ok(None);
            };
            if !level.files_done {
                let found = level.files(&self.tree, self.limits.files, &mut go_on)?;
                if !found.is_empty() {
                    return Ok(Some(found));
                }
                continue;
            }
            let limit = if depth == 1 {
                self.limits.first_folders
            } else {
                self.limits.folders
            };
            match level.next_folder(&self.tree, limit, &mut go_on)? {
                Some(folder) => {
                    let path = level.path.join(folder);
                    self.stack.push(Level {
                        path,
                        ..Level::default()
                    });
                }
                None => {
                    self.stack.pop();
                }
            }
        }
    }
}

impl Level {
    /// The next files, and whatever else has no place here.
    fn files<E: From<io::Error>>(
        &mut self,
        tree: &Tree,
        limit: usize,
        go_on: &mut impl FnMut(usize) -> Result<(), E>,
    ) -> Result<Vec<Found>, E> {
        let flat = tree.kind == TreeKind::Files;
        let wanted = |kind: Kind| flat || kind != Kind::Folder;
        let folder = tree.root.join(&self.path);
        let names = select(&folder, &self.files_after, limit, wanted, go_on)?;
        self.files_done = names.len() < limit;
        if let Some((last, _)) = names.last() {
            self.files_after.clone_from(last);
        }
        let judge = |(name, kind): (OsString, Kind)| tree.judge(&self.path, &name, kind);
        Ok(names.into_iter().map(judge).collect())
    }

    fn next_folder<E: From<io::Error>>(
        &mut self,
        tree: &Tree,
        limit: usize,
        go_on: &mut impl FnMut(usize) -> Result<(), E>,
    ) -> Result<Option<OsString>, E> {
        let too_deep = self.path.as_os_str().len() > LONGEST_PATH;
        if tree.kind == TreeKind::Files || too_deep {
            return Ok(None);
        }
        if self.folders.is_empty() && !self.folders_done {
            let folder = tree.root.join(&self.path);
            let wanted = |kind| kind == Kind::Folder;
            let names = select(&folder, &self.folders_after, limit, wanted, go_on)?;
            self.folders_done = names.len() < limit;
            self.folders.extend(names.into_iter().map(|(name, _)| name));
        }
        let next = self.folders.pop_front();
        if let Some(next) = &next {
            self.folders_after.clone_from(next);
        }
        Ok(next)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    File,
    Folder,
    Link,
    Other,
}

impl From<FileType> for Kind {
    fn from(found: FileType) -> Self {
        if found.is_file() {
            Self::File
        } else if found.is_dir() {
            Self::Folder
        } else if found.is_symlink() {
            Self::Link
        } else {
            Self::Other
        }
    }
}

/// The first names after `after` in a folder, in order. A folder that is gone is empty.
fn select<E: From<io::Error>>(
    folder: &Path,
    after: &OsStr,
    limit: usize,
    wanted: impl Fn(Kind) -> bool,
    go_on: &mut impl FnMut(usize) -> Result<(), E>,
) -> Result<Vec<(OsString, Kind)>, E> {
    let entries = match fs::read_dir(folder) {
        Err(error) if super::is_absence(&error) => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut first = BinaryHeap::new();
    let mut read = 0;
    for entry in entries {
        let entry = entry?;
        read += 1;
        if read == READ_AT_ONCE {
            go_on(read)?;
            read = 0;
        }
        let name = entry.file_name();
        let full = first.len() >= limit;
        let beyond = |(last, _): &(OsString, Kind)| full && name >= *last;
        if name.as_os_str() <= after || first.peek().is_some_and(beyond) {
            continue;
        }
        let kind = match entry.file_type() {
            Err(error) if super::is_absence(&error) => continue,
            kind => Kind::from(kind?),
        };
        if wanted(kind) {
            first.push((name, kind));
            if full {
                first.pop();
            }
        }
    }
    go_on(read)?;
    Ok(first.into_sorted_vec())
}

/// About 100 bytes each.
const LIMITS: Limits = Limits {
    files: 32_768,
    first_folders: 32_768,
    folders: 1_024,
};
/// Entries between two questions whether to go on.
const READ_AT_ONCE: usize = 1_000;
/// Bytes of the longest path that a file id can be, and more.
const LONGEST_PATH: usize = 4 * ArchiveFileId::MAX_UNITS;

#[cfg(test)]
mod tests;
