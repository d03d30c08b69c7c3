//! What another process finds after one that died at any point of a put, seen on a copy of the disk.

use std::num::NonZeroU64;

use pillarbox_messages::{FileAction, clock::SystemClock};

use super::*;
use crate::index::{
    AuditEntry, Done, FileRow, Index, IndexError, IndexOptions, ListQuery, PutRecord,
};

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for name in entries(from) {
        let (from, to) = (from.join(&name), to.join(&name));
        if from.is_dir() {
            copy(&from, &to);
        } else {
            fs::copy(from, to).unwrap();
        }
    }
}

/// An archive and its index below one directory.
struct Store {
    archive: Archive,
    index: Index,
}

impl Store {
    fn open(dir: &Path) -> Self {
        let archive = Archive::open(options(&[&dir.join("archive")])).unwrap();
        let index = Index::open(IndexOptions {
            path: dir.join("index/index.sqlite"),
            checksum_type: ChecksumType::Md5,
            first_audit_number: NonZeroU64::MIN,
            clock: SystemClock::shared(),
        });
        Self {
            archive,
            index: index.unwrap(),
        }
    }

    async fn write_down(&self, name: &str, published: Published) -> Result<Done, IndexError> {
        let done = self.index.put(PutRecord {
            collection: books(),
            file_id: name.into(),
            directory: published.directory.clone(),
            size: published.size,
            checksum: published.checksums.value(&md5()).unwrap().clone(),
            audit: AuditEntry {
                file_id: name.into(),
                actor: "ingest-1".into(),
                action: FileAction::PutFile,
                info: None,
                operation_id: None,
                certificate_id: None,
                audit_trail_information: None,
            },
            remember: None,
        });
        done.await
    }

    async fn put(&self, name: &str, bytes: &[u8]) -> FileRow {
        let received = receive(&self.archive, &id(name), bytes).await;
        let published = self
            .archive
            .publish(received, Leftover::Replace)
            .await
            .unwrap();
        self.write_down(name, published).await.unwrap().row
    }

    /// Nothing is listed that is not complete on the disk.
    async fn assert_complete(&self, listed: &[&str]) {
        let page = self
            .index
            .list_by_modified(ListQuery::all(books()))
            .await
            .unwrap();
        let names: Vec<_> = page.rows.iter().map(|row| row.file_id.as_str()).collect();
        assert_eq!(names, listed);
        for row in page.rows {
            let bytes = read(&self.archive, row.file_id.as_str()).await.unwrap();
            assert_eq!(bytes.len() as u64, row.size);
            assert_eq!(
                Checksums::of(&bytes, &[md5()]).value(&md5()),
                Some(&row.observed)
            );
        }
    }
}

/// No file is left that the index does not know of (P4).
#[tokio::test]
async fn a_put_cut_off_anywhere_can_be_repeated() {
    for (name, size) in [("small", 1_000), ("f/small", 1_000), ("large", 1_000_000)] {
        let dir = tempfile::tempdir().unwrap();
        let images = tempfile::tempdir().unwrap();
        let image = |stage: &str| {
            let image = images.path().join(stage);
            copy(dir.path(), &image);
            image
        };
        let store = Store::open(dir.path());
        store.put("before", P7).await;

        // What was sent before the crash need not be what is sent after it.
        let bytes = vec![1; size];
        let received = receive(&store.archive, &id(name), &bytes).await;
        let after_receiving = image("received");
        let published = store
            .archive
            .publish(received, Leftover::Replace)
            .await
            .unwrap();
        let after_publishing = image("published");
        store.write_down(name, published).await.unwrap();
        let after_commit = image("committed");

        for image in [after_receiving, after_publishing] {
            let store = Store::open(&image);
            assert_no_temporary_files(&image.join("archive"));
            store.assert_complete(&["before"]).await;
            assert!(
                store
                    .index
                    .find(&books(), &name.into())
                    .await
                    .unwrap()
                    .is_none()
            );
            store.put(name, &vec![2; size + 1]).await;
            store.assert_complete(&["before", name]).await;
            assert_eq!(read(&store.archive, name).await.unwrap(), vec![2; size + 1]);
        }
        let store = Store::open(&after_commit);
        store.assert_complete(&["before", name]).await;
    }
}
