use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicI64, Ordering},
};

use chrono::{DateTime, Utc};
use pillarbox_messages::{
    DeleteFileFinalResponse, FileAction, Header, HexBinary, Operation, ProtocolVersion,
    ResponseCode, ResponseInfo, clock::Clock,
};
use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

mod changes;
mod group;
mod large;
mod model;
mod opening;
mod trail;
mod untold;
mod upkeep;

/// A clock that stands where it is put.
#[derive(Debug, Default)]
struct TestClock(AtomicI64);

impl TestClock {
    fn set(&self, ms: i64) {
        self.0.store(ms, Ordering::SeqCst);
    }
}

impl Clock for TestClock {
    fn now(&self) -> DateTime<Utc> {
        DateTime::from_timestamp_millis(self.0.load(Ordering::SeqCst)).unwrap()
    }
}

struct Fixture {
    dir: TempDir,
    clock: Arc<TestClock>,
}

impl Fixture {
    fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
            clock: Arc::default(),
        }
    }

    fn options(&self) -> IndexOptions {
        IndexOptions {
            path: self.path(),
            checksum_type: ChecksumType::Md5,
            first_audit_number: NonZeroU64::MIN,
            clock: self.clock.clone(),
        }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("pillars/north/index.sqlite")
    }

    fn open(&self) -> Index {
        Index::open(self.options()).unwrap()
    }
}

fn books() -> CollectionId {
    "books".into()
}

fn entry(file_id: &str) -> AuditEntry {
    AuditEntry {
        file_id: file_id.into(),
        actor: "ingest-1".into(),
        action: FileAction::PutFile,
        info: Some("stored".into()),
        operation_id: Some("c-1".into()),
        certificate_id: None,
        audit_trail_information: Some(String::new()),
    }
}

fn record(collection: &str, file_id: &str) -> PutRecord {
    PutRecord {
        collection: collection.into(),
        file_id: file_id.into(),
        directory: "/archive/1".into(),
        size: 14,
        checksum: vec![0x4a, 0x37].into(),
        audit: entry(file_id),
        remember: None,
    }
}

fn delete(collection: &str, file_id: &str) -> DeleteRecord {
    DeleteRecord {
        collection: collection.into(),
        file_id: file_id.into(),
        audit: AuditEntry {
            action: FileAction::DeleteFile,
            ..entry(file_id)
        },
        remember: None,
    }
}

/// A replace by `new`, or a delete.
fn open_operation(
    collection: &CollectionId,
    file_id: &FileId,
    new: Option<NewVersion>,
) -> OpenOperation {
    let operation = match &new {
        Some(_) => Operation::ReplaceFile,
        None => Operation::DeleteFile,
    };
    let destination = || "topic://books".parse().unwrap();
    let response = DeleteFileFinalResponse {
        header: Header {
            version: ProtocolVersion::CURRENT,
            correlation_id: "c-1".into(),
            collection_id: Some(collection.clone()),
            destination: destination(),
            reply_to: destination(),
            from: "north".into(),
            to: Some("ingest-1".into()),
        },
        response_info: ResponseInfo {
            response_code: ResponseCode::OperationCompleted,
            response_text: Some("done <&> done".to_owned()),
        },
        pillar_id: Some("north".into()),
        file_id: file_id.clone(),
        checksum_data_for_existing_file: None,
    };
    OpenOperation {
        key: OperationKey {
            operation,
            collection: collection.clone(),
            ..key(file_id.as_str())
        },
        new,
        audit: entry(file_id.as_str()),
        response: response.into(),
    }
}

fn observation(row: FileRow, checksum: &[u8], audit: Option<AuditEntry>) -> Observation {
    Observation {
        row,
        checksum: checksum.to_vec().into(),
        audit,
    }
}

fn adoption(file_id: &str, checksum: &[u8]) -> Adoption {
    Adoption {
        file_id: file_id.into(),
        directory: "/archive/2".into(),
        size: 15,
        checksum: checksum.to_vec().into(),
        actor: "north".into(),
    }
}

fn remember(respond: impl FnOnce(&FileRow) -> String + Send + 'static) -> Remember {
    Remember {
        from: "ingest-1".into(),
        correlation: "c-1".into(),
        operation: Operation::PutFile,
        respond: Box::new(respond),
    }
}

fn key(file_id: &str) -> OperationKey {
    OperationKey {
        from: "ingest-1".into(),
        correlation: "c-1".into(),
        operation: Operation::PutFile,
        collection: books(),
        file_id: file_id.into(),
    }
}

#[tokio::test]
async fn a_put_writes_row_event_and_response_together() {
    let fixture = Fixture::new();
    fixture.clock.set(1_000);
    let index = fixture.open();
    let mut put = record("books", "a/x1");
    put.remember = Some(remember(|row| {
        format!("<done at='{}'/>", row.calculated_ms)
    }));
    let done = index.put(put).await.unwrap();
    assert_eq!(
        (
            done.row.modified_ms,
            done.row.calculated_ms,
            done.audit_number
        ),
        (1_000, 1_000, 1)
    );
    assert_eq!(done.response.as_deref(), Some("<done at='1000'/>"));
    index.close().await;

    let index = fixture.open();
    assert_eq!(
        index.find(&books(), &"a/x1".into()).await.unwrap(),
        Some(done.row)
    );
    assert_eq!(index.find(&books(), &"x1".into()).await.unwrap(), None);
    assert_eq!(
        index.find(&"dvds".into(), &"a/x1".into()).await.unwrap(),
        None
    );
    let remembered = index.prior(&key("a/x1")).await.unwrap().done;
    let response = "<done at='1000'/>".to_owned();
    assert_eq!(
        remembered,
        Some(Remembered {
            response,
            done_ms: 1_000
        })
    );
    assert_eq!(index.prior(&key("x1")).await.unwrap().done, None);
    let event = AuditEvent {
        number: 1,
        time_ms: 1_000,
        entry: entry("a/x1"),
    };
    assert_eq!(
        index
            .audit(AuditQuery::from_number(books(), 1))
            .await
            .unwrap(),
        [event]
    );
}

#[tokio::test]
async fn a_second_put_changes_nothing_and_shows_the_first() {
    let fixture = Fixture::new();
    let index = fixture.open();
    let first = index.put(record("books", "x1")).await.unwrap();
    let mut second = record("books", "x1");
    second.size = 99;
    second.remember = Some(remember(|_| "never".to_owned()));
    match index.put(second).await {
        Err(IndexError::AlreadyPresent(row)) => assert_eq!(*row, first.row),
        other => panic!("{other:?}"),
    }
    assert_eq!(
        index.find(&books(), &"x1".into()).await.unwrap(),
        Some(first.row)
    );
    assert_eq!(
        index
            .audit(AuditQuery::from_number(books(), 1))
            .await
            .unwrap()
            .len(),
        1
    );
    assert_eq!(index.prior(&key("x1")).await.unwrap().done, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn p16_of_many_puts_at_once_one_makes_a_row() {
    let fixture = Fixture::new();
    let index = fixture.open();
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..40 {
        let index = index.clone();
        tasks.spawn(async move { index.put(record("books", "x1")).await });
    }
    let (done, refused): (Vec<_>, Vec<_>) =
        tasks.join_all().await.into_iter().partition(Result::is_ok);
    assert_eq!((done.len(), refused.len()), (1, 39));
    let row = done.into_iter().next().unwrap().unwrap().row;
    for refused in refused {
        assert!(matches!(refused, Err(IndexError::AlreadyPresent(known)) if *known == row));
    }
    assert_eq!(index.count(&books()).await.unwrap(), 1);
}

/// Who has collected up to a number asks for the next: nothing may come before it any more.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn p22_no_lower_audit_number_comes_after_a_higher_one() {
    const EVENTS: u64 = 400;
    let fixture = Fixture::new();
    let index = fixture.open();
    let mut tasks = tokio::task::JoinSet::new();
    for task in 0..8 {
        let index = index.clone();
        tasks.spawn(async move {
            for number in 0..EVENTS / 8 {
                let put = record("books", &format!("f{task}-{number}"));
                index.put(put).await.unwrap();
            }
        });
    }
    let (mut collected, mut rounds) = (0, 0);
    while collected < EVENTS {
        let query = AuditQuery::from_number(books(), collected + 1);
        for event in index.audit(query).await.unwrap() {
            collected += 1;
            assert_eq!(event.number, collected);
        }
        rounds += 1;
    }
    tasks.join_all().await;
    assert!(rounds > 1, "all had come before anybody looked");
}

#[tokio::test]
async fn times_only_go_up_within_a_collection() {
    let fixture = Fixture::new();
    let index = fixture.open();
    let mut times = Vec::new();
    for (now, file) in [
        (5_000, "f0"),
        (5_000, "f1"),
        (3_000, "f2"),
        (5_002, "f3"),
        (9_000, "f4"),
    ] {
        fixture.clock.set(now);
        times.push(
            index
                .put(record("books", file))
                .await
                .unwrap()
                .row
                .modified_ms,
        );
    }
    assert_eq!(times, [5_000, 5_001, 5_002, 5_003, 9_000]);
    fixture.clock.set(4_000);
    let other = index.put(record("dvds", "f0")).await.unwrap();
    assert_eq!((other.row.modified_ms, other.audit_number), (4_000, 1));
    // What was given out is not given out again by a later process.
    index.close().await;
    let index = fixture.open();
    let next = index.put(record("books", "f5")).await.unwrap();
    assert_eq!(
        (next.row.modified_ms, next.row.calculated_ms),
        (9_001, 9_001)
    );
}

#[tokio::test]
async fn a_missing_file_is_not_listed_and_a_put_revives_it() {
    let fixture = Fixture::new();
    let index = fixture.open();
    for file in ["x1", "x2"] {
        index.put(record("books", file)).await.unwrap();
    }
    let x1 = "x1".into();
    let gone = index.find(&books(), &x1).await.unwrap().unwrap();
    assert!(!index.mark_missing(&"dvds".into(), &gone).await.unwrap());
    assert!(index.mark_missing(&books(), &gone).await.unwrap());
    assert!(!index.mark_missing(&books(), &gone).await.unwrap());
    assert_eq!(index.find(&books(), &x1).await.unwrap(), None);
    assert_eq!(index.count(&books()).await.unwrap(), 1);
    let names = |page: Page| {
        page.rows
            .into_iter()
            .map(|row| row.file_id)
            .collect::<Vec<_>>()
    };
    let all = ListQuery::all(books());
    assert_eq!(
        names(index.list_by_modified(all.clone()).await.unwrap()),
        ["x2"]
    );
    assert_eq!(
        names(index.list_by_calculated(all.clone()).await.unwrap()),
        ["x2"]
    );
    index.put(record("books", "x1")).await.unwrap();
    // Who looked for the old file does not take the new one away.
    assert!(!index.mark_missing(&books(), &gone).await.unwrap());
    assert_eq!(
        names(index.list_by_modified(all).await.unwrap()),
        ["x2", "x1"]
    );
}

#[tokio::test]
async fn one_failure_does_not_fail_its_group() {
    let fixture = Fixture::new();
    let index = fixture.open();
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..60 {
        let index = index.clone();
        tasks.spawn(async move {
            // A third of the files is put twice; every tenth response can't be made.
            let mut put = record("books", &format!("f{}", number % 45));
            put.remember = Some(remember(move |_| {
                assert!(number % 10 != 7, "can't make it");
                "done".to_owned()
            }));
            index.put(put).await
        });
    }
    let (mut numbers, mut present, mut panicked) = (Vec::new(), 0, 0);
    for outcome in tasks.join_all().await {
        match outcome {
            Ok(done) => numbers.push(done.audit_number),
            Err(IndexError::AlreadyPresent(_)) => present += 1,
            Err(IndexError::Response) => panicked += 1,
            Err(error) => panic!("{error}"),
        }
    }
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    assert_eq!(numbers.len() + present + panicked, 60);
    assert!((4..=6).contains(&panicked), "{panicked}");
    assert_eq!(index.count(&books()).await.unwrap(), numbers.len() as u64);
    let events = index
        .audit(AuditQuery::from_number(books(), 1))
        .await
        .unwrap();
    assert_eq!(
        events.iter().map(|event| event.number).collect::<Vec<_>>(),
        numbers
    );
}

#[tokio::test]
async fn audit_numbers_start_where_asked_and_have_no_gaps() {
    let fixture = Fixture::new();
    let first_audit_number = NonZeroU64::new(1_001).unwrap();
    let open = || {
        Index::open(IndexOptions {
            first_audit_number,
            ..fixture.options()
        })
        .unwrap()
    };
    let index = open();
    assert_eq!(index.append(&books(), entry("x1")).await.unwrap(), 1_001);
    assert_eq!(
        index.put(record("books", "x1")).await.unwrap().audit_number,
        1_002
    );
    index.put(record("books", "x1")).await.unwrap_err();
    index.close().await;
    let index = open();
    assert_eq!(index.append(&books(), entry("x1")).await.unwrap(), 1_003);
    assert_eq!(
        index.append(&"dvds".into(), entry("x1")).await.unwrap(),
        1_001
    );
    assert_eq!(
        index
            .audit(AuditQuery::from_number(books(), 1_002))
            .await
            .unwrap()
            .len(),
        2
    );
}

#[tokio::test]
async fn a_closed_index_says_so() {
    let fixture = Fixture::new();
    let index = fixture.open();
    index.close().await;
    index.close().await;
    assert!(matches!(
        index.put(record("books", "x1")).await,
        Err(IndexError::Closed)
    ));
    assert!(matches!(
        index.count(&books()).await,
        Err(IndexError::Closed)
    ));
}
