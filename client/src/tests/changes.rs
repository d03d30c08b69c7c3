//! Replacing and deleting, against stand-ins.

use std::path::PathBuf;

use super::{
    operations::source,
    site::{PLENTY, Site},
    stand_in::{Temper, md5},
};
use crate::{ClientError, ComponentResult, DeleteFile, Outcome, ReplaceFile, Source};

const OLD: &[u8] = b"hello, world";
const NEW: &[u8] = b"good morning";

fn replace(path: PathBuf, existing: &[u8]) -> ReplaceFile {
    ReplaceFile {
        existing_checksum: Some(md5(existing)),
        ..ReplaceFile::new(
            "books".into(),
            "hello.txt".into(),
            "north".into(),
            Source::Path(path),
        )
    }
}

fn delete(existing: &[u8]) -> DeleteFile {
    DeleteFile {
        existing_checksum: Some(md5(existing)),
        ..DeleteFile::new("books".into(), "hello.txt".into(), "north".into())
    }
}

/// Whether the only pillar had nothing to do.
fn needless(outcome: &Outcome) -> bool {
    assert!(outcome.complete, "{outcome:?}");
    match &outcome.results[0].result {
        ComponentResult::Deleted(deleted) => deleted.already_absent,
        ComponentResult::Replaced(replaced) => replaced.already_there.unwrap(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_replaced_at_one_pillar_and_again_is_as_well() {
    let site = Site::start().await;
    let north = site.pillar("north", Temper::Honest).await;
    let south = site.pillar("south", Temper::Honest).await;
    north.keep("hello.txt", OLD);
    south.keep("hello.txt", OLD);
    let client = site.client("reader", false, PLENTY);
    let path = source(&site, NEW);
    for already_there in [false, true] {
        let request = replace(path.clone(), OLD);
        let running = client.replace_file(request).await.unwrap();
        assert_eq!(needless(&running.outcome().await), already_there);
        assert_eq!(&north.file("hello.txt").unwrap()[..], NEW);
        assert_eq!(site.offers(), 0, "the offer is removed");
    }
    // A pillar that does it again, since the file is the one that was given.
    let request = replace(path, NEW);
    let outcome = client.replace_file(request).await.unwrap().outcome().await;
    assert!(needless(&outcome));
    assert_eq!(north.count("ReplaceFileRequest"), 3);
    assert_eq!(&south.file("hello.txt").unwrap()[..], OLD);
    assert_eq!(south.count("ReplaceFileRequest"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_not_the_old_one_is_not_replaced() {
    let site = Site::start().await;
    let north = site.pillar("north", Temper::Honest).await;
    north.keep("hello.txt", b"nobody knows this");
    let client = site.client("reader", false, PLENTY);
    let request = replace(source(&site, NEW), OLD);
    let outcome = client.replace_file(request).await.unwrap().outcome().await;
    assert!(!outcome.complete);
    assert!(
        outcome
            .info
            .unwrap()
            .contains("EXISTING_FILE_CHECKSUM_FAILURE")
    );
    assert_eq!(&north.file("hello.txt").unwrap()[..], b"nobody knows this");
    assert_eq!(site.offers(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn u45_a_file_that_is_deleted_twice_is_deleted() {
    let site = Site::start().await;
    let north = site.pillar("north", Temper::Honest).await;
    north.keep("hello.txt", OLD);
    let client = site.client("reader", false, PLENTY);
    let wrong = client.delete_file(delete(NEW)).await.unwrap();
    assert!(!wrong.outcome().await.complete);
    assert!(north.file("hello.txt").is_some());
    for already_absent in [false, true] {
        let request = delete(OLD);
        let running = client.delete_file(request).await.unwrap();
        assert_eq!(needless(&running.outcome().await), already_absent);
        assert!(north.file("hello.txt").is_none());
    }
    assert_eq!(north.count("DeleteFileRequest"), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_change_of_a_file_at_a_time_of_whatever_kind() {
    let site = Site::start().await;
    let north = site.pillar("north", Temper::Stuck).await;
    north.keep("hello.txt", OLD);
    let client = site.client("reader", false, PLENTY);
    let first = client.delete_file(delete(OLD)).await.unwrap();
    let path = source(&site, NEW);
    let second = client.replace_file(replace(path, OLD)).await;
    assert!(matches!(second, Err(ClientError::Busy(_))), "{second:?}");
    let third = client.delete_file(delete(OLD)).await;
    assert!(matches!(third, Err(ClientError::Busy(_))), "{third:?}");
    first.cancel();
    assert!(!first.outcome().await.complete);
}
