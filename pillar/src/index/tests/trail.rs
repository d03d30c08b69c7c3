//! Long texts, long trails, and times that go back.

use super::*;
use crate::index::{
    reader::LONG_READERS,
    schema,
    trail::{LONGEST_FILE_ID, LONGEST_INFORMATION, NUMBERS},
};

/// Events from number 1 on, one each second from second 1 on, but for the fifth: its clock was right for once.
async fn long_trail(fixture: &Fixture, count: u64) -> Index {
    let index = fixture.open();
    index.introduce(&books()).await.unwrap();
    let connection = rusqlite::Connection::open(fixture.path()).unwrap();
    let sql = format!(
        "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {count})
         INSERT INTO audit (collection, number, time, file_id, actor, action)
         SELECT 1, n, iif(n = 5, {count}, n) * 1000, 'x' || n, 'ingest-1', 'GET_FILE' FROM numbers"
    );
    connection.execute_batch(&sql).unwrap();
    index
}

async fn told(index: &Index, query: &AuditQuery) -> Vec<u64> {
    let mut query = index.narrow(query.clone()).await.unwrap().unwrap();
    let mut numbers = Vec::new();
    loop {
        let events = index.audit(query.clone()).await.unwrap();
        let Some(last) = events.last() else {
            return numbers;
        };
        query.first = last.number + 1;
        numbers.extend(events.iter().map(|event| event.number));
    }
}

#[tokio::test]
async fn no_text_of_an_event_is_longer_than_it_may_be() {
    let fixture = Fixture::new();
    let index = fixture.open();
    let long = "\u{6f22}".repeat(350_000);
    let boundless = AuditEntry {
        file_id: long.as_str().into(),
        actor: long.as_str().into(),
        action: FileAction::Failure,
        info: Some(long.clone()),
        operation_id: Some(long.as_str().into()),
        certificate_id: Some(long.clone()),
        audit_trail_information: Some(long.clone()),
    };
    index.append(&books(), boundless).await.unwrap();
    // Written before there were bounds.
    let connection = rusqlite::Connection::open(fixture.path()).unwrap();
    connection
        .execute(
            "INSERT INTO audit (collection, number, time, file_id, actor, action, info, information)
             VALUES (1, 2, 7, ?1, 'ingest-1', 'FAILURE', ?1, ?1)",
            [&long],
        )
        .unwrap();
    let events = index
        .audit(AuditQuery::from_number(books(), 1))
        .await
        .unwrap();
    assert_eq!(events.len(), 2);
    for event in events {
        let entry = event.entry;
        let file_id = entry.file_id.as_str();
        assert!(file_id.len() <= LONGEST_FILE_ID && file_id.ends_with("\u{6f22}\u{2026}"));
        let information = entry.audit_trail_information.as_ref().unwrap().len();
        assert!((LONGEST_INFORMATION - 8..=LONGEST_INFORMATION).contains(&information));
        assert!(entry.length() < LONGEST_INFORMATION + (32 << 10));
    }
}

#[tokio::test]
async fn a_portion_is_bounded_in_bytes_and_none_is_left_out() {
    let fixture = Fixture::new();
    let index = fixture.open();
    let long = AuditEntry {
        audit_trail_information: Some("i".repeat(300_000)),
        ..entry("x1")
    };
    for _ in 0..9 {
        index.append(&books(), long.clone()).await.unwrap();
    }
    let all = AuditQuery::from_number(books(), 1);
    assert_eq!(index.audit(all.clone()).await.unwrap().len(), 4);
    assert_eq!(told(&index, &all).await, [1, 2, 3, 4, 5, 6, 7, 8, 9]);
}

#[tokio::test]
async fn events_are_found_by_their_times_wherever_they_are() {
    let fixture = Fixture::new();
    let index = long_trail(&fixture, 25_000).await;
    let all = AuditQuery::from_number(books(), 1);
    let late = AuditQuery {
        min_ms: Some(24_999_000),
        ..all.clone()
    };
    assert_eq!(told(&index, &late).await, [5, 24_999, 25_000]);
    let later = AuditQuery {
        first: 6,
        ..late.clone()
    };
    let narrowed = index.narrow(later.clone()).await.unwrap().unwrap();
    assert_eq!((narrowed.first, narrowed.last), (24_999, Some(25_000)));
    assert_eq!(told(&index, &later).await, [24_999, 25_000]);
    let between = AuditQuery {
        min_ms: Some(4_000),
        max_ms: Some(6_000),
        ..all.clone()
    };
    assert_eq!(told(&index, &between).await, [4, 6]);
    let of_a_file = AuditQuery {
        file_id: Some("x24999".into()),
        ..late.clone()
    };
    assert_eq!(told(&index, &of_a_file).await, [24_999]);
    let never = AuditQuery {
        min_ms: Some(25_000_001),
        ..all.clone()
    };
    assert_eq!(index.narrow(never).await.unwrap(), None);
    assert_eq!(told(&index, &all).await.len(), 25_000);
}

#[tokio::test]
async fn a_trail_that_begins_late_is_found_at_once() {
    let fixture = Fixture::new();
    let first_audit_number = NonZeroU64::new(1 << 60).unwrap();
    let index = Index::open(IndexOptions {
        first_audit_number,
        ..fixture.options()
    });
    let index = index.unwrap();
    index.append(&books(), entry("x1")).await.unwrap();
    let all = AuditQuery::from_number(books(), 1);
    assert_eq!(told(&index, &all).await, [1 << 60]);
}

#[tokio::test]
async fn the_numbers_of_times_come_from_an_index() {
    let fixture = Fixture::new();
    let _index = fixture.open();
    let connection = schema::open_reader(&fixture.path()).unwrap();
    let sql = format!("EXPLAIN QUERY PLAN {NUMBERS}");
    let mut statement = connection.prepare(&sql).unwrap();
    let plan = statement.query_map(rusqlite::params!["c", 1, 2, 3, 4], |row| row.get(3));
    let plan: Vec<String> = plan.unwrap().collect::<Result<_, _>>().unwrap();
    let plan = plan.join("\n");
    let wanted = "USING COVERING INDEX audit_by_time (collection=? AND time>? AND time<?)";
    assert!(plan.contains(wanted), "{plan}");
}

/// However much the others go through.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn whoever_looks_a_file_up_does_not_wait_for_long_queries() {
    let fixture = Fixture::new();
    let index = fixture.open();
    index.put(record("books", "x1")).await.unwrap();
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let ended = Arc::new(std::sync::Mutex::new(ended));
    let (begin, mut begun) = mpsc::channel(8);
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let (index, ended, begin) = (index.clone(), Arc::clone(&ended), begin.clone());
        tasks.spawn(async move {
            let wait = move |_: &rusqlite::Connection| {
                begin.blocking_send(()).unwrap();
                // Fails once nobody can send any more.
                _ = ended.lock().unwrap().recv();
                Ok(())
            };
            index.0.readers.read(wait).await.unwrap();
        });
    }
    for _ in 0..LONG_READERS {
        begun.recv().await.unwrap();
    }
    let (books, x1) = (books(), "x1".into());
    let found = tokio::time::timeout(std::time::Duration::from_secs(20), index.find(&books, &x1));
    assert!(found.await.expect("it waits").unwrap().is_some());
    drop(end);
    tasks.join_all().await;
}
