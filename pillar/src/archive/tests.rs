use std::{fs, path::Path};

use bytes::Bytes;
use pillarbox_messages::{ChecksumType, FileId};
use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::digests::Spec;

mod changes;
mod crash;
pub(crate) mod full;
mod purging;

const P7: &[u8] = b"pillar test 7\n";

fn books() -> CollectionId {
    "books".into()
}

fn id(text: &str) -> ArchiveFileId {
    ArchiveFileId::new(&FileId::from(text), None).unwrap()
}

fn md5() -> Spec {
    Spec::plain(ChecksumType::Md5).unwrap()
}

fn options(directories: &[&Path]) -> ArchiveOptions {
    ArchiveOptions {
        directories: directories.iter().map(|dir| dir.to_path_buf()).collect(),
        collections: vec![books(), "dvds".into()],
        minimum_size_left: 0,
    }
}

fn open(dir: &TempDir) -> Archive {
    Archive::open(options(&[dir.path()])).unwrap()
}

async fn receive(archive: &Archive, id: &ArchiveFileId, bytes: &[u8]) -> ReceivedFile {
    let claim = archive.claim(&books(), id).unwrap();
    let mut incoming = archive
        .receive(claim, bytes.len() as u64, vec![md5()])
        .await
        .unwrap();
    for part in bytes.chunks(50_000) {
        incoming.write(Bytes::copy_from_slice(part)).await.unwrap();
    }
    incoming.finish().await.unwrap()
}

async fn put(
    archive: &Archive,
    name: &str,
    bytes: &[u8],
    leftover: Leftover,
) -> Result<Published, ArchiveError> {
    let received = receive(archive, &id(name), bytes).await;
    archive.publish(received, leftover).await
}

async fn read(archive: &Archive, name: &str) -> Result<Vec<u8>, ArchiveError> {
    let mut stored = archive.open_file(&books(), &id(name)).await?;
    let mut bytes = Vec::new();
    io::Read::read_to_end(&mut stored.file, &mut bytes).unwrap();
    assert_eq!(bytes.len() as u64, stored.size);
    Ok(bytes)
}

fn entries(dir: &Path) -> Vec<String> {
    let names = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    names.map(|name| name.into_string().unwrap()).collect()
}

fn assert_no_temporary_files(dir: &Path) {
    assert_eq!(entries(&dir.join("books/tmpDir")), [""; 0]);
}

/// Waits until the blocking task of a dropped file has cleaned up.
async fn wait_for_no_temporary_files(dir: &Path) {
    let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(10);
    while !entries(&dir.join("books/tmpDir")).is_empty() {
        assert!(
            tokio::time::Instant::now() < deadline,
            "temporary file still there"
        );
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn small_large_and_empty_files_go_round() {
    let dir = tempfile::tempdir().unwrap();
    let archive = open(&dir);
    let large: Vec<u8> = (0..=250).cycle().take(9_000_001).collect();
    // What is held in memory, and the first that is not.
    let (held, written) = (&large[..64 * 1024], &large[..64 * 1024 + 1]);
    for (name, bytes) in [
        ("p7", P7),
        ("z0", b""),
        ("held", held),
        ("written", written),
        ("large", &large),
        ("a/b/c", P7),
    ] {
        let published = put(&archive, name, bytes, Leftover::Refuse).await.unwrap();
        assert_eq!(published.size, bytes.len() as u64);
        assert_eq!(published.directory, dir.path());
        assert_eq!(published.checksums, Checksums::of(bytes, &[md5()]));
        assert_eq!(read(&archive, name).await.unwrap(), bytes);
    }
    assert_no_temporary_files(dir.path());
    assert_eq!(fs::read(dir.path().join("books/fileDir/p7")).unwrap(), P7);
    assert_eq!(
        fs::read(dir.path().join("books/folderDir/a/b/c")).unwrap(),
        P7
    );
    assert_eq!(entries(&dir.path().join("books/retainDir")), [""; 0]);
    assert!(matches!(
        read(&archive, "none").await,
        Err(ArchiveError::NotFound(_))
    ));
    assert!(matches!(
        read(&archive, "a/b").await,
        Err(ArchiveError::NotFound(_))
    ));
    assert!(matches!(
        read(&archive, "a/b/c/d").await,
        Err(ArchiveError::NotFound(_))
    ));
    let other = archive.open_file(&"dvds".into(), &id("p7")).await;
    assert!(matches!(other, Err(ArchiveError::NotFound(_))));
    let unknown = archive.open_file(&"tapes".into(), &id("p7")).await;
    assert!(matches!(unknown, Err(ArchiveError::UnknownCollection(_))));
}

#[tokio::test]
async fn names_that_differ_only_by_normalization_are_two_files() {
    let dir = tempfile::tempdir().unwrap();
    let archive = open(&dir);
    let (composed, decomposed) = ("r\u{e4}dgr\u{f8}d", "ra\u{308}dgr\u{f8}d");
    put(&archive, composed, b"1", Leftover::Refuse)
        .await
        .unwrap();
    put(&archive, decomposed, b"2", Leftover::Refuse)
        .await
        .unwrap();
    assert_eq!(read(&archive, composed).await.unwrap(), b"1");
    assert_eq!(read(&archive, decomposed).await.unwrap(), b"2");
}

#[tokio::test]
async fn an_unfinished_file_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let archive = open(&dir);
    let name = id("x1");
    for parts in [1, 10] {
        let start = || archive.receive(archive.claim(&books(), &name).unwrap(), 0, vec![md5()]);
        let mut incoming = start().await.unwrap();
        for _ in 0..parts {
            incoming.write(Bytes::from(vec![1; 20_000])).await.unwrap();
        }
        incoming.discard().await;
        assert_no_temporary_files(dir.path());
        let mut incoming = start().await.unwrap();
        for _ in 0..parts {
            incoming.write(Bytes::from(vec![1; 20_000])).await.unwrap();
        }
        drop(incoming);
        wait_for_no_temporary_files(dir.path()).await;
        drop(receive(&archive, &name, &vec![1; 20_000 * parts]).await);
        wait_for_no_temporary_files(dir.path()).await;
        receive(&archive, &name, &vec![1; 20_000 * parts])
            .await
            .discard()
            .await;
        assert_no_temporary_files(dir.path());
    }
    assert!(matches!(
        read(&archive, "x1").await,
        Err(ArchiveError::NotFound(_))
    ));
    put(&archive, "x1", P7, Leftover::Refuse).await.unwrap();
}

/// The disk is behind, and whoever writes gives up waiting: the file can't be finished.
#[tokio::test]
async fn bytes_lost_on_the_way_are_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let archive = open(&dir);
    // In memory, while space is looked for; and on the way to the disk.
    for (size, announced) in [(1, 0), (1 << 20, 1 << 30)] {
        let claim = archive.claim(&books(), &id("x1")).unwrap();
        let incoming = archive.receive(claim, announced, vec![md5()]).await;
        let mut incoming = incoming.unwrap();
        let part = Bytes::from(vec![1; size]);
        loop {
            let mut write = std::pin::pin!(incoming.write(part.clone()));
            let mut context = std::task::Context::from_waker(std::task::Waker::noop());
            if write.as_mut().poll(&mut context).is_pending() {
                break;
            }
        }
        let finished = incoming.finish().await;
        assert!(
            matches!(finished, Err(ArchiveError::Interrupted)),
            "{finished:?}"
        );
        wait_for_no_temporary_files(dir.path()).await;
    }
}

#[tokio::test]
async fn a_file_is_never_overwritten_but_a_leftover_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let archive = open(&dir);
    for name in ["x1", "f/x1"] {
        put(&archive, name, P7, Leftover::Refuse).await.unwrap();
        let again = put(&archive, name, b"other", Leftover::Refuse).await;
        assert!(
            matches!(again, Err(ArchiveError::AlreadyExists(_))),
            "{again:?}"
        );
        assert_eq!(read(&archive, name).await.unwrap(), P7);
        // A reader of the old bytes keeps them.
        let old = archive.open_file(&books(), &id(name)).await.unwrap();
        put(&archive, name, b"other", Leftover::Replace)
            .await
            .unwrap();
        assert_eq!(io::read_to_string(old.file).unwrap().as_bytes(), P7);
        assert_eq!(read(&archive, name).await.unwrap(), b"other");
        assert_no_temporary_files(dir.path());
    }
}

#[tokio::test]
async fn one_operation_at_a_time_writes_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let archive = open(&dir);
    let received = receive(&archive, &id("x1"), P7).await;
    let refused = archive.claim(&books(), &id("x1"));
    assert!(matches!(refused, Err(ArchiveError::Busy { .. })));
    drop(archive.claim(&books(), &id("x2")).unwrap());
    drop(archive.claim(&"dvds".into(), &id("x1")).unwrap());
    let published = archive.publish(received, Leftover::Refuse).await.unwrap();
    assert!(archive.claim(&books(), &id("x1")).is_err());
    drop(published);
    drop(archive.claim(&books(), &id("x1")).unwrap());
}

/// Many tasks put the same few files; every file ends as one of them wrote it, once (P2).
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn racing_puts_of_one_id() {
    let dir = tempfile::tempdir().unwrap();
    let archive = open(&dir);
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..40_u8 {
        let archive = archive.clone();
        tasks.spawn(async move {
            let name = ["x1", "f/x2", "f/g/x3", "f/g/x4"][usize::from(number % 4)];
            let Ok(claim) = archive.claim(&books(), &id(name)) else {
                return None;
            };
            let mut incoming = archive.receive(claim, 0, vec![]).await.unwrap();
            incoming
                .write(Bytes::from(vec![number; 100_000]))
                .await
                .unwrap();
            let received = incoming.finish().await.unwrap();
            match archive.publish(received, Leftover::Refuse).await {
                Ok(_) => Some((name, number)),
                Err(ArchiveError::AlreadyExists(_)) => None,
                Err(error) => panic!("{error}"),
            }
        });
    }
    let done: Vec<_> = tasks.join_all().await.into_iter().flatten().collect();
    let names: BTreeSet<_> = done.iter().map(|(name, _)| name).collect();
    assert_eq!((done.len(), names.len()), (4, 4));
    for (name, number) in done {
        assert_eq!(read(&archive, name).await.unwrap(), vec![number; 100_000]);
    }
    assert_no_temporary_files(dir.path());
}

/// `a/b` and `a/b/c` are not both files (P19).
#[tokio::test]
async fn files_and_folders_do_not_take_each_others_place() {
    let dir = tempfile::tempdir().unwrap();
    let archive = open(&dir);
    put(&archive, "a/b", P7, Leftover::Refuse).await.unwrap();
    put(&archive, "aa", P7, Leftover::Refuse).await.unwrap();
    for leftover in [Leftover::Refuse, Leftover::Replace] {
        for name in ["a/b/c", "a/b/c/d"] {
            let below = put(&archive, name, P7, leftover).await;
            assert!(
                matches!(below, Err(ArchiveError::FileInTheWay(_))),
                "{below:?}"
            );
            let early = archive.check(&books(), &id(name), 1).await;
            assert!(matches!(early, Err(ArchiveError::FileInTheWay(_))));
        }
        put(&archive, "d/e/f", P7, Leftover::Replace).await.unwrap();
        let above = put(&archive, "d/e", P7, leftover).await;
        assert!(
            matches!(above, Err(ArchiveError::FolderInTheWay(_))),
            "{above:?}"
        );
        let early = archive.check(&books(), &id("d/e"), 1).await;
        assert!(matches!(early, Err(ArchiveError::FolderInTheWay(_))));
    }
    assert_no_temporary_files(dir.path());
    assert_eq!(read(&archive, "a/b").await.unwrap(), P7);
    assert_eq!(read(&archive, "d/e/f").await.unwrap(), P7);
}

#[test]
fn collection_ids_that_are_no_names_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    for hostile in [
        "",
        ".",
        "..",
        "../up",
        "/abs",
        "a/b",
        "a\0b",
        &"x".repeat(256),
    ] {
        let mut options = options(&[dir.path()]);
        options.collections.push(hostile.into());
        let opened = Archive::open(options);
        assert!(
            matches!(opened, Err(ArchiveError::BadCollectionId(_))),
            "{hostile:?}"
        );
    }
    let none = Archive::open(options(&[]));
    assert!(matches!(none, Err(ArchiveError::NoDirectory)));
}

#[test]
fn a_directory_listed_twice_is_refused() {
    let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let link = other.path().join("link");
    std::os::unix::fs::symlink(dir.path(), &link).unwrap();
    let refused = Archive::open(options(&[dir.path(), &link]));
    assert!(matches!(refused, Err(ArchiveError::ListedTwice(path)) if path == link));
}

#[test]
fn an_unusable_directory_is_named_in_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, b"").unwrap();
    let error = Archive::open(options(&[&file.join("d")])).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains(file.to_str().unwrap()) && !text.contains('\n'),
        "{text}"
    );
}

#[tokio::test]
async fn start_up_removes_temporary_files_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    put(&open(&dir), "a/b", P7, Leftover::Refuse).await.unwrap();
    let temp = dir.path().join("books/tmpDir");
    let half = disk::TempFile::create(&temp).unwrap();
    half.keep();
    fs::write(
        dir.path().join("books/fileDir/.probe"),
        b"of a crashed start",
    )
    .unwrap();
    let archive = open(&dir);
    assert_no_temporary_files(dir.path());
    for empty in ["books/fileDir", "books/retainDir"] {
        assert_eq!(entries(&dir.path().join(empty)), [""; 0]);
    }
    assert_eq!(read(&archive, "a/b").await.unwrap(), P7);
}

/// The Java pillar receives a file under its id, which may be any text that is not ours.
#[test]
fn what_others_were_receiving_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    drop(open(&dir));
    let [temp, retained] = ["books/tmpDir", "books/retainDir"].map(|name| dir.path().join(name));
    let uuid = "0d9c1f58-2f3f-4c0e-9d3b-6d0a4b0f7c11";
    for (name, content) in [("half", "1"), (uuid, "2"), ("sub/folder/half", "3")] {
        let path = temp.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    std::os::unix::fs::symlink("/nowhere", temp.join("link")).unwrap();
    fs::write(retained.join("half"), "0").unwrap();
    drop(open(&dir));
    assert_no_temporary_files(dir.path());
    for (name, content) in [
        ("half", "0"),
        ("half.old", "1"),
        (uuid, "2"),
        ("sub/folder/half", "3"),
    ] {
        assert_eq!(
            fs::read_to_string(retained.join(name)).unwrap(),
            content,
            "{name}"
        );
    }
    assert!(retained.join("link").is_symlink());
}

/// The leftover of a crash stands in one directory, and the next put goes to another.
#[tokio::test]
async fn a_leftover_in_another_directory_is_removed() {
    let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::create_dir_all(first.path().join("books/fileDir")).unwrap();
    fs::write(first.path().join("books/fileDir/x1"), b"stale").unwrap();
    let roomy = second.path().to_owned();
    let space = Space::with(0, move |dir| {
        Ok(if dir == roomy { 1 << 30 } else { 1 << 20 })
    });
    let archive = Archive::open_with(&options(&[first.path(), second.path()]), space).unwrap();
    let refused = put(&archive, "x1", P7, Leftover::Refuse).await;
    assert!(matches!(refused, Err(ArchiveError::AlreadyExists(_))));
    assert_eq!(read(&archive, "x1").await.unwrap(), b"stale");
    let published = put(&archive, "x1", P7, Leftover::Replace).await.unwrap();
    assert_eq!(published.directory, second.path());
    assert_eq!(read(&archive, "x1").await.unwrap(), P7);
    assert_eq!(entries(&first.path().join("books/fileDir")), [""; 0]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// A file's place is its id below one of two directories: different ids, different places.
    #[test]
    fn places_follow_ids(
        one in proptest::collection::vec("[a-z\u{e9}][a-z\u{301}]{1,8}", 1..4),
        other in proptest::collection::vec("[a-z\u{e9}][a-z\u{301}]{1,8}", 1..4),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let shelf = Shelf::open(dir.path(), &books()).unwrap();
        let [one, other] = [one, other].map(|parts| parts.join("/"));
        let place = shelf.place(&id(&one));
        let tree = if one.contains('/') { "folderDir" } else { "fileDir" };
        let below = place.strip_prefix(dir.path().join("books").join(tree)).unwrap();
        prop_assert_eq!(below.to_str().unwrap(), one.as_str());
        prop_assert_eq!(place == shelf.place(&id(&other)), one == other);
    }
}

#[tokio::test]
async fn a_directory_has_one_archive_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let first = open(&dir);
    let refused = Archive::open(options(&[dir.path()])).unwrap_err();
    assert!(matches!(refused, ArchiveError::InUse(_)), "{refused}");
    drop(first);
    open(&dir);
}

#[tokio::test]
async fn a_retracted_file_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let archive = open(&dir);
    for name in ["p7", "a/b/c"] {
        let published = put(&archive, name, P7, Leftover::Refuse).await.unwrap();
        archive.retract(published).await.unwrap();
        let gone = read(&archive, name).await;
        assert!(matches!(gone, Err(ArchiveError::NotFound(_))), "{name}");
        // The claim is free again.
        put(&archive, name, P7, Leftover::Refuse).await.unwrap();
    }
    let published = put(&archive, "d/e", P7, Leftover::Refuse).await.unwrap();
    archive.retract(published).await.unwrap();
    assert_eq!(entries(&dir.path().join("books/folderDir")), ["a"]);
}
