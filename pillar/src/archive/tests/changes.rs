//! Files that are replaced and taken away, in one directory or several, while others read them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::*;

const OLD: &[u8] = b"the old version";
const NEW: &[u8] = b"and the new one";

async fn receive_version(archive: &Archive, name: &str, bytes: &[u8]) -> ReceivedFile {
    let claim = archive.claim(&books(), &id(name)).unwrap();
    let mut incoming = archive
        .receive_version(claim, bytes.len() as u64, vec![md5()])
        .await
        .unwrap();
    incoming.write(Bytes::copy_from_slice(bytes)).await.unwrap();
    incoming.finish().await.unwrap()
}

pub(super) async fn replace(archive: &Archive, name: &str, bytes: &[u8]) -> Published {
    let received = receive_version(archive, name, bytes).await;
    let staged = archive.stage(received).await.unwrap();
    archive.replace(staged).await.unwrap()
}

pub(super) async fn remove(archive: &Archive, name: &str) -> Removed {
    let claim = archive.claim(&books(), &id(name)).unwrap();
    archive.remove(claim).await.unwrap()
}

/// What the disk says of a replace by these bytes, or of a delete.
async fn settle(archive: &Archive, name: &str, new: Option<&[u8]>) -> bool {
    let claim = archive.claim(&books(), &id(name)).unwrap();
    archive.settle(claim, new.map(expected)).await.unwrap().1
}

fn expected(bytes: &[u8]) -> Expected {
    let sums = Checksums::of(bytes, &[md5()]);
    Expected {
        size: bytes.len() as u64,
        spec: md5(),
        checksum: sums.value(&md5()).unwrap().clone(),
    }
}

fn kept(dir: &Path, name: &str) -> Vec<u8> {
    fs::read(dir.join("books/retainDir").join(name)).unwrap()
}

fn place(dir: &Path, name: &str) -> PathBuf {
    Shelf::open(dir, &books()).unwrap().place(&id(name))
}

/// Two directories, of which one has room for small files only. The number is what the small one offers.
struct Two {
    small: TempDir,
    large: TempDir,
    offered: Arc<AtomicU64>,
    archive: Archive,
}

impl Two {
    fn new() -> Self {
        let (small, large) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let offered = Arc::new(AtomicU64::new(1 << 40));
        let (name, room) = (small.path().to_owned(), Arc::clone(&offered));
        let space = Space::with(0, move |dir| {
            Ok(if dir == name {
                room.load(Ordering::SeqCst)
            } else {
                1 << 30
            })
        });
        let archive = Archive::open_with(&options(&[small.path(), large.path()]), space).unwrap();
        Self {
            small,
            large,
            offered,
            archive,
        }
    }

    /// From now on everything goes to the other directory.
    fn fill_up(&self) {
        self.offered.store(0, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn a_replaced_file_is_kept_and_can_be_had_back() {
    let dir = tempfile::tempdir().unwrap();
    let archive = open(&dir);
    for name in ["x1", "a/b/x1"] {
        put(&archive, name, OLD, Leftover::Refuse).await.unwrap();
        let published = replace(&archive, name, NEW).await;
        assert_eq!(read(&archive, name).await.unwrap(), NEW);
        assert_eq!(kept(dir.path(), name), OLD);
        assert!(settle_after(&archive, name, published).await);
        let published = replace(&archive, name, b"3").await;
        archive.retract(published).await.unwrap();
        assert_eq!(read(&archive, name).await.unwrap(), NEW);
        assert_no_temporary_files(dir.path());
    }
    let names = entries(&dir.path().join("books/retainDir"));
    assert_eq!(names.len(), 2, "{names:?}");
}

/// Of a replace that has been done nothing is left to do.
async fn settle_after(archive: &Archive, name: &str, published: Published) -> bool {
    drop(published);
    settle(archive, name, Some(NEW)).await
}

#[tokio::test]
async fn a_removed_file_is_kept_and_can_be_had_back() {
    let dir = tempfile::tempdir().unwrap();
    let archive = open(&dir);
    for name in ["x1", "a/b/x1"] {
        put(&archive, name, OLD, Leftover::Refuse).await.unwrap();
        let removed = remove(&archive, name).await;
        archive.restore(removed).await.unwrap();
        assert_eq!(read(&archive, name).await.unwrap(), OLD);
        let removed = remove(&archive, name).await;
        let gone = read(&archive, name).await;
        assert!(matches!(gone, Err(ArchiveError::NotFound(_))));
        drop(removed);
        assert_eq!(kept(dir.path(), name), OLD);
        let claim = archive.claim(&books(), &id(name)).unwrap();
        let gone = archive.remove(claim).await;
        assert!(matches!(gone, Err(ArchiveError::NotFound(_))));
    }
    assert_eq!(entries(&dir.path().join("books/folderDir")), [""; 0]);
}

#[tokio::test]
async fn the_disk_tells_whether_a_change_has_happened() {
    let dir = tempfile::tempdir().unwrap();
    let archive = open(&dir);
    for name in ["x1", "a/x1"] {
        put(&archive, name, OLD, Leftover::Refuse).await.unwrap();
        // Of one size, and yet not the new version.
        assert!(!settle(&archive, name, Some(NEW)).await);
        assert!(!settle(&archive, name, Some(b"shorter")).await);
        assert!(!settle(&archive, name, None).await);
        assert!(settle(&archive, name, Some(OLD)).await);
        assert_eq!(read(&archive, name).await.unwrap(), OLD);
        drop(remove(&archive, name).await);
        assert!(settle(&archive, name, None).await);
        assert!(!settle(&archive, name, Some(OLD)).await);
    }
    assert_eq!(entries(&dir.path().join("books/folderDir")), [""; 0]);
}

#[tokio::test]
async fn a_new_version_goes_where_the_old_one_is_or_where_there_is_room() {
    let two = Two::new();
    let (small, large) = (two.small.path(), two.large.path());
    for name in ["x1", "a/x1"] {
        let first = put(&two.archive, name, OLD, Leftover::Refuse)
            .await
            .unwrap();
        assert_eq!(first.directory, small);
        drop(first);
        let second = replace(&two.archive, name, NEW).await;
        assert_eq!(second.directory, small);
    }
    two.fill_up();
    for name in ["x1", "a/x1"] {
        let third = replace(&two.archive, name, b"3").await;
        assert_eq!(third.directory, large);
        assert_eq!(read(&two.archive, name).await.unwrap(), b"3");
        assert!(!place(small, name).exists());
        assert_eq!(kept(small, &format!("{name}.old")), NEW);
        two.archive.retract(third).await.unwrap();
        assert_eq!(read(&two.archive, name).await.unwrap(), NEW);
        assert!(!place(large, name).exists());
    }
}

/// A crash between the name of the new version and the end of the old one's.
#[tokio::test]
async fn of_two_versions_in_two_directories_one_stays() {
    let two = Two::new();
    let (small, large) = (two.small.path(), two.large.path());
    put(&two.archive, "x1", OLD, Leftover::Refuse)
        .await
        .unwrap();
    fs::write(place(large, "x1"), NEW).unwrap();
    assert!(settle(&two.archive, "x1", Some(NEW)).await);
    assert!(!place(small, "x1").exists());
    assert_eq!(kept(small, "x1"), OLD);
    assert_eq!(read(&two.archive, "x1").await.unwrap(), NEW);
    // Stale copies go first: whoever is cut off leaves the one that readers found before.
    fs::write(place(small, "x1"), b"what readers find").unwrap();
    let removed = remove(&two.archive, "x1").await;
    assert!(!place(small, "x1").exists() && !place(large, "x1").exists());
    two.archive.restore(removed).await.unwrap();
    assert_eq!(
        read(&two.archive, "x1").await.unwrap(),
        b"what readers find"
    );
}

/// At no time the old one is gone and the new one not there (P5).
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn readers_always_find_one_whole_version() {
    let dir = tempfile::tempdir().unwrap();
    let archive = open(&dir);
    let version = |number: u8| vec![number; 30_000];
    put(&archive, "a/x1", &version(0), Leftover::Refuse)
        .await
        .unwrap();
    let over = Arc::new(AtomicBool::new(false));
    let mut readers = tokio::task::JoinSet::new();
    for _ in 0..3 {
        let (archive, over) = (archive.clone(), Arc::clone(&over));
        readers.spawn(async move {
            let mut seen = BTreeSet::new();
            while !over.load(Ordering::SeqCst) {
                let bytes = read(&archive, "a/x1").await.unwrap();
                assert_eq!(bytes, version(bytes[0]));
                seen.insert(bytes[0]);
            }
            seen.len()
        });
    }
    for number in 1..=100 {
        replace(&archive, "a/x1", &version(number)).await;
    }
    over.store(true, Ordering::SeqCst);
    let seen = readers.join_all().await;
    assert!(seen.iter().all(|versions| *versions > 1), "{seen:?}");
}

/// A folder goes with its last file, while others store files in it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_folder_that_goes_keeps_nobody_from_storing() {
    let dir = tempfile::tempdir().unwrap();
    let archive = open(&dir);
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..4 {
        let archive = archive.clone();
        tasks.spawn(async move {
            let name = format!("a/b/f{number}");
            for _ in 0..60 {
                put(&archive, &name, OLD, Leftover::Refuse).await.unwrap();
                assert_eq!(read(&archive, &name).await.unwrap(), OLD);
                let removed = remove(&archive, &name).await;
                archive.restore(removed).await.unwrap();
                assert_eq!(read(&archive, &name).await.unwrap(), OLD);
                drop(remove(&archive, &name).await);
            }
        });
    }
    tasks.join_all().await;
    assert_eq!(entries(&dir.path().join("books/folderDir")), [""; 0]);
}

/// What a disk hides may be either: nothing is said of a change before it is back, and none is begun.
#[tokio::test]
async fn a_disk_that_is_away_settles_nothing() {
    let two = Two::new();
    put(&two.archive, "x1", OLD, Leftover::Refuse)
        .await
        .unwrap();
    put(&two.archive, "x2", OLD, Leftover::Refuse)
        .await
        .unwrap();
    drop(replace(&two.archive, "x1", NEW).await);
    let base = two.small.path().join("books");
    let away = two.small.path().join("away");
    fs::rename(&base, &away).unwrap();
    for (name, new) in [("x1", Some(NEW)), ("x1", None), ("x2", Some(NEW))] {
        let claim = two.archive.claim(&books(), &id(name)).unwrap();
        let settled = two.archive.settle(claim, new.map(expected)).await;
        assert!(
            matches!(settled, Err(ArchiveError::Unusable { .. })),
            "{settled:?}"
        );
    }
    let claim = two.archive.claim(&books(), &id("x1")).unwrap();
    let removed = two.archive.remove(claim).await;
    assert!(
        matches!(removed, Err(ArchiveError::Unusable { .. })),
        "{removed:?}"
    );
    let received = receive_version(&two.archive, "x2", NEW).await;
    let staged = two.archive.stage(received).await;
    let replaced = match staged {
        Ok(staged) => two.archive.replace(staged).await.map(drop),
        Err(error) => Err(error),
    };
    replaced.unwrap_err();
    // An empty directory in its place is not the disk.
    fs::create_dir_all(base.join("fileDir")).unwrap();
    let claim = two.archive.claim(&books(), &id("x1")).unwrap();
    two.archive
        .settle(claim, Some(expected(NEW)))
        .await
        .unwrap_err();
    fs::remove_dir_all(&base).unwrap();
    fs::rename(&away, &base).unwrap();
    assert!(settle(&two.archive, "x1", Some(NEW)).await);
    assert!(!settle(&two.archive, "x2", Some(NEW)).await);
    assert_eq!(read(&two.archive, "x2").await.unwrap(), OLD);
}

/// Nothing that was put and deleted before keeps a file from being deleted.
#[tokio::test]
async fn names_that_were_files_and_folders_by_turns_are_all_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let archive = open(&dir);
    for (name, content) in [("aa", OLD), ("aa/b1", NEW), ("aa", NEW), ("aa/b1", OLD)] {
        put(&archive, name, content, Leftover::Refuse)
            .await
            .unwrap();
        drop(remove(&archive, name).await);
    }
    let retained = dir.path().join("books/retainDir");
    for (name, content) in [
        ("aa", OLD),
        ("aa.old/b1", NEW),
        ("aa.old.old", NEW),
        ("aa.old/b1.old", OLD),
    ] {
        assert_eq!(fs::read(retained.join(name)).unwrap(), content, "{name}");
    }
}

/// So it is with what others left in `tmpDir`.
#[tokio::test]
async fn a_stranger_s_temporary_file_is_kept_whatever_it_is_called() {
    let dir = tempfile::tempdir().unwrap();
    let archive = open(&dir);
    put(&archive, "aa", OLD, Leftover::Refuse).await.unwrap();
    drop(remove(&archive, "aa").await);
    drop(archive);
    let left = dir.path().join("books/tmpDir/aa");
    fs::create_dir(&left).unwrap();
    fs::write(left.join("b1"), NEW).unwrap();
    let _archive = open(&dir);
    assert!(!left.exists());
    let kept = dir.path().join("books/retainDir/aa.old/b1");
    assert_eq!(fs::read(kept).unwrap(), NEW);
}

/// What is no regular file is none of ours, and nobody waits for it.
#[tokio::test]
async fn links_and_pipes_are_no_files() {
    let dir = tempfile::tempdir().unwrap();
    let archive = open(&dir);
    put(&archive, "x1", OLD, Leftover::Refuse).await.unwrap();
    std::os::unix::fs::symlink(place(dir.path(), "x1"), place(dir.path(), "link")).unwrap();
    let made = std::process::Command::new("mkfifo")
        .arg(place(dir.path(), "pipe"))
        .status();
    assert!(made.unwrap().success());
    for name in ["link", "pipe"] {
        let read = read(&archive, name).await;
        assert!(matches!(read, Err(ArchiveError::NotFound(_))), "{read:?}");
        assert!(!settle(&archive, name, Some(OLD)).await, "{name}");
    }
}

#[tokio::test]
async fn a_file_that_is_another_by_now_is_not_made_to_last() {
    let dir = tempfile::tempdir().unwrap();
    let archive = open(&dir);
    put(&archive, "x1", OLD, Leftover::Refuse).await.unwrap();
    let found = archive.find_standing(&books(), &id("x1")).unwrap();
    let (tree, stored) = found.unwrap();
    let now_ms = i64::MAX;
    assert!(
        tree.make_last_if(&id("x1"), stored.identity, now_ms)
            .unwrap()
    );
    fs::write(place(dir.path(), "x1"), NEW).unwrap();
    assert!(
        !tree
            .make_last_if(&id("x1"), stored.identity, now_ms)
            .unwrap()
    );
    fs::remove_file(place(dir.path(), "x1")).unwrap();
    assert!(
        !tree
            .make_last_if(&id("x1"), stored.identity, now_ms)
            .unwrap()
    );
}
