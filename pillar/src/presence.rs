//! Whether the archive that the index speaks of is there: asked at the start, before anything is changed.
//!
//! An empty directory in its place, where a disk is not mounted or a name is misspelt, would take new files in the
//! place of those that it hides, and the background would take those for lost.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use pillarbox_messages::{ArchiveFileId, CollectionId, FileId};
use pillarbox_settings::{PillarNode, PillarType};
use tracing::info;

use crate::{
    archive::{Tree, TreeKind},
    index::Index,
    service::PillarError,
};

/// Compares the directories in which the index has a collection's files with those that are configured.
///
/// A directory that is not configured any more may have been moved, or its files to others: so it is if those of its
/// files that are looked for stand in configured ones. The index is then told its new name.
///
/// # Errors
/// The index is one of a pillar of the other type; a directory is not there; the index can't be read.
pub(crate) async fn check(
    settings: &PillarNode,
    data: &Path,
    index: &Index,
    collection: &CollectionId,
) -> Result<(), PillarError> {
    let stored = index.directories(collection).await?;
    check_type(settings.pillar_type, data, &stored)?;
    let directories = &settings.directories;
    let mut moved = Vec::new();
    for directory in stored.iter().filter(|it| !it.as_os_str().is_empty()) {
        if !directories.contains(directory) {
            moved.push(directory);
        } else if !has(directory, collection) {
            return Err(PillarError::ArchiveAbsent {
                path: directory.join(collection.as_str()),
                collection: collection.clone(),
            });
        }
    }
    for old in moved {
        let sample = index.sample(collection, old).await?;
        let new = follow(directories, collection, &sample);
        let new = new.map_err(|gone| PillarError::ArchiveUnlisted {
            directory: old.clone(),
            collection: collection.clone(),
            file: gone.clone(),
        })?;
        if let Some(new) = new {
            info!(
                collection = collection.as_str(),
                from = %old.display(),
                to = %new.display(),
                "the files of an archive directory were moved"
            );
            index.relocate(collection, old, new).await?;
        }
    }
    Ok(())
}

/// Files that a pillar keeps no longer would be listed, and those that it never kept be missed one by one. `stored`
/// are the directories that files are in; those of a CHECKSUM pillar are in none.
fn check_type(pillar_type: PillarType, data: &Path, stored: &[PathBuf]) -> Result<(), PillarError> {
    let in_none = |it: &PathBuf| it.as_os_str().is_empty();
    let kept = match pillar_type {
        PillarType::File if stored.iter().any(in_none) => "CHECKSUM",
        PillarType::Checksum if !stored.iter().all(in_none) => "FILE",
        _ => return Ok(()),
    };
    let path = data.to_owned();
    Err(PillarError::OtherType { path, kept })
}

fn has(directory: &Path, collection: &CollectionId) -> bool {
    let files = directory.join(collection.as_str()).join("fileDir");
    files.is_dir()
}

/// The directory in which most of these files stand; `None` if there are none of them. If one of them stands nowhere,
/// that one.
fn follow<'a, 'b>(
    directories: &'a [PathBuf],
    collection: &CollectionId,
    files: &'b [FileId],
) -> Result<Option<&'a Path>, &'b FileId> {
    let mut found: BTreeMap<&Path, usize> = BTreeMap::new();
    for file in files {
        let mut places = directories.iter();
        let directory = places.find(|it| stands(it, collection, file)).ok_or(file)?;
        *found.entry(directory).or_default() += 1;
    }
    let most = found.into_iter().max_by_key(|(_, count)| *count);
    Ok(most.map(|(directory, _)| directory))
}

fn stands(directory: &Path, collection: &CollectionId, file: &FileId) -> bool {
    // Stored under the pattern of its day: the built-in rules are what makes it a path.
    let Ok(id) = ArchiveFileId::new(file, None) else {
        return false;
    };
    let kind = match id.is_in_folder() {
        true => TreeKind::Folders,
        false => TreeKind::Files,
    };
    let tree = Tree::new(directory, &directory.join(collection.as_str()), kind);
    tree.identity(&id).is_ok()
}

#[cfg(test)]
mod tests {
    use std::{fs, num::NonZeroU64};

    use pillarbox_messages::{ChecksumType, FileAction, clock::SystemClock};
    use pillarbox_settings::Node;
    use tempfile::TempDir;

    use super::*;
    use crate::index::{AuditEntry, IndexOptions, PutRecord};

    /// An index that lists "x1" and "a/x1" in `one`, "x2" and "a/x2" in `two`, where they are.
    struct Fixture {
        directory: TempDir,
        index: Index,
    }

    impl Fixture {
        async fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let index = Index::open(IndexOptions {
                path: directory.path().join("index.sqlite"),
                checksum_type: ChecksumType::Md5,
                first_audit_number: NonZeroU64::MIN,
                clock: SystemClock::shared(),
            });
            let index = index.unwrap();
            let fixture = Self { directory, index };
            for (id, name) in [
                ("x1", "one"),
                ("a/x1", "one"),
                ("x2", "two"),
                ("a/x2", "two"),
            ] {
                fixture.list(id, name).await;
                fixture.lay(id, name);
            }
            fixture
        }

        async fn list(&self, id: &str, name: &str) {
            let (file_id, actor) = (FileId::from(id), "ingest-1".into());
            let audit = AuditEntry::of_pillar(&file_id, &actor, FileAction::PutFile, "put");
            let record = PutRecord {
                collection: "books".into(),
                file_id,
                directory: self.path(name),
                size: 1,
                checksum: vec![1].into(),
                audit,
                remember: None,
            };
            self.index.put(record).await.unwrap();
        }

        fn lay(&self, id: &str, name: &str) {
            let base = self.path(name).join("books");
            fs::create_dir_all(base.join("fileDir")).unwrap();
            let kind = if id.contains('/') {
                "folderDir"
            } else {
                "fileDir"
            };
            let place = base.join(kind).join(id);
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            fs::write(place, id).unwrap();
        }

        fn path(&self, name: &str) -> PathBuf {
            self.directory.path().join(name)
        }

        fn rename(&self, from: &str, to: &str) {
            fs::rename(self.path(from), self.path(to)).unwrap();
        }

        /// Whether a pillar with these directories may start; in which the index has files then.
        async fn starts(&self, names: &[&str]) -> Result<Vec<String>, String> {
            let directories: Vec<_> = names.iter().map(|name| self.path(name)).collect();
            let node = format!("[[pillars]]\nid = \"north\"\ndirectories = {directories:?}");
            let settings = Node::from_toml_str(&node, "test")
                .unwrap()
                .pillars
                .remove(0);
            let books = "books".into();
            let checked = check(&settings, self.directory.path(), &self.index, &books).await;
            checked.map_err(|refused| refused.to_string())?;
            let stored = self.index.directories(&books).await.unwrap();
            let name = |it: &PathBuf| it.file_name().unwrap().to_str().unwrap().to_owned();
            let mut names: Vec<_> = stored.iter().map(name).collect();
            names.sort();
            Ok(names)
        }

        async fn assert_refused(&self, names: &[&str], part: &str) {
            let refused = self.starts(names).await.unwrap_err();
            assert!(refused.contains(part), "{refused}");
            assert!(refused.contains("collection 'books'"), "{refused}");
            assert_eq!(refused.lines().count(), 1, "{refused}");
        }
    }

    #[tokio::test]
    async fn a_directory_that_is_not_there_or_not_listed_is_missed() {
        let fixture = Fixture::new().await;
        assert_eq!(
            fixture.starts(&["one", "two"]).await.unwrap(),
            ["one", "two"]
        );
        // Misspelt, whether a directory of that name is there or not; even one that a pillar has used.
        for _ in 0..2 {
            fixture
                .assert_refused(&["one", "twoo"], "two, which is not in")
                .await;
            fs::create_dir_all(fixture.path("twoo/books/fileDir")).unwrap();
        }
        fixture
            .assert_refused(&["one"], "two, which is not in")
            .await;
        fixture
            .assert_refused(&["other", "another"], "one, which is not in")
            .await;
        fixture.rename("two", "away");
        fs::create_dir(fixture.path("two")).unwrap();
        fixture
            .assert_refused(&["one", "two"], "mount its disk")
            .await;
        assert_eq!(
            fixture.starts(&["one", "away"]).await.unwrap(),
            ["away", "one"]
        );
    }

    #[tokio::test]
    async fn what_was_moved_is_known_by_its_files_and_by_its_new_name_from_then_on() {
        let fixture = Fixture::new().await;
        fixture.rename("one", "1");
        fixture.rename("two", "2");
        assert_eq!(fixture.starts(&["1", "2"]).await.unwrap(), ["1", "2"]);
        // Now it is the new name that is missed.
        fixture.rename("2", "away");
        fixture
            .assert_refused(&["1", "2"], "2/books is not there")
            .await;
        fixture.rename("away", "2");
        // The files of a disk that is given up were copied to another, but for one.
        fixture.lay("x2", "1");
        fixture
            .assert_refused(&["1"], "file 'a/x2' is in no directory")
            .await;
        fixture.lay("a/x2", "1");
        assert_eq!(fixture.starts(&["1"]).await.unwrap(), ["1"]);
    }

    /// What is known to be gone, or is about to go, proves nothing.
    #[tokio::test]
    async fn missing_files_are_not_looked_for() {
        let fixture = Fixture::new().await;
        let books = "books".into();
        let row = fixture
            .index
            .find(&books, &"x2".into())
            .await
            .unwrap()
            .unwrap();
        fs::remove_file(fixture.path("two/books/fileDir/x2")).unwrap();
        fixture.rename("two", "2");
        fixture
            .assert_refused(&["one", "2"], "file 'x2' is in no directory")
            .await;
        fixture.index.mark_missing(&books, &row).await.unwrap();
        assert_eq!(fixture.starts(&["one", "2"]).await.unwrap(), ["2", "one"]);
    }
}
