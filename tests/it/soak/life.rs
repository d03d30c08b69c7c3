//! The life of one file: it is put, fetched, listed, replaced, and deleted, and its pillars tell of it.

use std::{fs, path::Path, path::PathBuf};

use pillarbox_client::{
    Client, ClientError, Completed, ComponentResult, DeleteFile, EventKind, GetAuditTrails,
    GetChecksums, GetFile, GetFileIds, GetStatus, Outcome, PutFile, ReplaceFile, Running, Source,
};
use pillarbox_messages::{ChecksumData, ChecksumType, FileId, StatusCode, Timestamp};

use super::PILLARS;
use crate::support::{Random, md5, noise, peers::books};

/// Put, get, file ids, replace at each pillar, checksums, delete at each pillar, audit trails, status.
pub(super) const OPERATIONS_OF_A_LIFE: usize = 6 + 2 * PILLARS.len();

const LARGEST: u64 = 64 << 10;

pub(super) struct Life<'c> {
    client: &'c Client,
    file_id: FileId,
    /// Its first content, and the one that replaces it.
    contents: [Vec<u8>; 2],
    /// Where this content lies on this machine.
    source: PathBuf,
}

impl<'c> Life<'c> {
    pub(super) fn new(client: &'c Client, directory: &Path, number: usize) -> Self {
        let mut random = Random::new(u64::try_from(number).expect("small"));
        let contents = [0, 1].map(|_| {
            let length = usize::try_from(random.below(LARGEST)).expect("small");
            noise(random.next(), length)
        });
        Self {
            client,
            file_id: FileId::from(format!("file {number}")),
            contents,
            source: directory.join(format!("source-{number}")),
        }
    }

    pub(super) async fn live(self) {
        let [first, second] = &self.contents;
        self.put(first).await;
        self.get(first).await;
        self.list().await;
        self.replace(first, second).await;
        self.compare(second).await;
        self.delete(second).await;
        self.remember().await;
        self.ask_pillars().await;
        fs::remove_file(&self.source).expect("is there");
    }

    async fn put(&self, content: &[u8]) {
        let put = PutFile::new(books(), self.file_id.clone(), self.source_of(content));
        done_by_all(self.client.put_file(put).await).await;
    }

    async fn get(&self, content: &[u8]) {
        let target = self.source.with_extension("copy");
        let get = GetFile::new(books(), self.file_id.clone(), target.clone());
        done(self.client.get_file(get).await).await;
        assert!(fs::read(&target).expect("was fetched") == content);
        fs::remove_file(target).expect("is there");
    }

    async fn list(&self) {
        let list = GetFileIds {
            file_id: Some(self.file_id.clone()),
            ..GetFileIds::new(books())
        };
        for completed in done_by_all(self.client.get_file_ids(list).await).await {
            let ComponentResult::FileIds(page) = &completed.result else {
                panic!("{completed:?}")
            };
            assert_eq!(page.total, 1);
        }
    }

    async fn replace(&self, old: &[u8], new: &[u8]) {
        let source = self.source_of(new);
        for pillar in PILLARS {
            let file_id = self.file_id.clone();
            let replace = ReplaceFile {
                existing_checksum: Some(checksum(old)),
                ..ReplaceFile::new(books(), file_id, pillar.into(), source.clone())
            };
            done(self.client.replace_file(replace).await).await;
        }
    }

    async fn compare(&self, content: &[u8]) {
        let expected = md5(content).parse().expect("hex");
        let compare = GetChecksums {
            file_id: Some(self.file_id.clone()),
            ..GetChecksums::new(books())
        };
        let running = self.client.get_checksums(compare).await.expect("starts");
        let mut found = Vec::new();
        let outcome = running.outcome_with(|event| {
            if let EventKind::ComponentComplete {
                result: ComponentResult::Checksums(checksums),
                ..
            } = event.kind
            {
                let items = checksums.page.items.into_iter();
                found.extend(items.map(|item| item.checksum_value));
            }
        });
        assert!(outcome.await.complete);
        assert_eq!(found, vec![expected; PILLARS.len()]);
    }

    async fn delete(&self, content: &[u8]) {
        for pillar in PILLARS {
            let delete = DeleteFile {
                existing_checksum: Some(checksum(content)),
                ..DeleteFile::new(books(), self.file_id.clone(), pillar.into())
            };
            done(self.client.delete_file(delete).await).await;
        }
    }

    /// Each pillar knows at least that it has stored, replaced and deleted the file.
    async fn remember(&self) {
        let trails = GetAuditTrails {
            file_id: Some(self.file_id.clone()),
            ..GetAuditTrails::new(books())
        };
        for completed in done_by_all(self.client.get_audit_trails(trails).await).await {
            let ComponentResult::AuditTrails(page) = &completed.result else {
                panic!("{completed:?}")
            };
            assert!(page.total >= 3, "{completed:?}");
        }
    }

    async fn ask_pillars(&self) {
        for completed in done_by_all(self.client.get_status(GetStatus::new()).await).await {
            let ComponentResult::Status(status) = &completed.result else {
                panic!("{completed:?}")
            };
            assert_eq!(status.status_info.status_code, StatusCode::Ok, "{status:?}");
        }
    }

    fn source_of(&self, content: &[u8]) -> Source {
        fs::write(&self.source, content).expect("can be written");
        Source::Path(self.source.clone())
    }
}

fn checksum(content: &[u8]) -> ChecksumData {
    ChecksumData {
        checksum_spec: ChecksumType::Md5.into(),
        checksum_value: md5(content).parse().expect("hex"),
        calculation_timestamp: Timestamp::EPOCH,
    }
}

async fn done_by_all(started: Result<Running, ClientError>) -> Vec<Completed> {
    let outcome = done(started).await;
    assert_eq!(outcome.results.len(), PILLARS.len(), "{outcome:?}");
    outcome.results
}

async fn done(started: Result<Running, ClientError>) -> Outcome {
    let outcome = started.expect("starts").outcome().await;
    assert!(outcome.complete, "{outcome:?}");
    outcome
}
