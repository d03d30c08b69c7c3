//! What a database file is found to be, and how it is searched.

use super::*;
use crate::index::reader::LAST_CALCULATED;

#[tokio::test]
async fn strange_databases_are_refused_in_one_line() {
    let fixture = Fixture::new();
    fixture.open().close().await;
    let other = IndexOptions {
        checksum_type: ChecksumType::Sha256,
        ..fixture.options()
    };
    let text = Index::open(other).unwrap_err().to_string();
    assert!(
        text.contains("holds MD5 checksums") && text.contains("SHA256"),
        "{text}"
    );

    let later = rusqlite::Connection::open(fixture.path()).unwrap();
    later.pragma_update(None, "user_version", 1_000).unwrap();
    drop(later);
    let error = Index::open(fixture.options()).unwrap_err();
    assert!(matches!(
        error,
        IndexError::Newer {
            found: 1_000,
            known: schema::FORMAT,
            ..
        }
    ));
    let text = error.to_string();
    assert!(
        text.contains("later version") && !text.contains('\n'),
        "{text}"
    );

    std::fs::write(
        fixture.path(),
        b"this is no database, and long enough to tell",
    )
    .unwrap();
    let error = Index::open(fixture.options()).unwrap_err();
    assert!(matches!(error, IndexError::Open { .. }), "{error}");
    let below_a_file = IndexOptions {
        path: fixture.path().join("x"),
        ..fixture.options()
    };
    assert!(matches!(
        Index::open(below_a_file),
        Err(IndexError::Directory { .. })
    ));
}

/// The process dies right after an answer: what was answered is there.
#[tokio::test]
async fn what_was_answered_survives_without_a_goodbye() {
    let fixture = Fixture::new();
    let index = fixture.open();
    index.put(record("books", "x1")).await.unwrap();
    // What lies on the disk at this moment, as another process would find it.
    let copy = tempfile::tempdir().unwrap();
    for name in ["index.sqlite", "index.sqlite-wal"] {
        std::fs::copy(fixture.path().with_file_name(name), copy.path().join(name)).unwrap();
    }
    let found = Index::open(IndexOptions {
        path: copy.path().join("index.sqlite"),
        ..fixture.options()
    });
    assert!(
        found
            .unwrap()
            .find(&books(), &"x1".into())
            .await
            .unwrap()
            .is_some()
    );
}

#[tokio::test]
async fn queries_use_their_indexes() {
    let fixture = Fixture::new();
    let _index = fixture.open();
    let connection = schema::open_reader(&fixture.path()).unwrap();
    for (order, name) in [
        (Order::Modified, "files_by_modified"),
        (Order::Calculated, "files_by_calculated"),
    ] {
        let sql = format!("EXPLAIN QUERY PLAN {}", order.sql());
        let mut statement = connection.prepare(&sql).unwrap();
        let plan = statement.query_map(rusqlite::params!["c", 1, "", 2, 3], |row| row.get(3));
        let plan: Vec<String> = plan.unwrap().collect::<Result<_, _>>().unwrap();
        let plan = plan.join("\n");
        assert!(
            plan.contains(name) && !plan.contains("TEMP B-TREE"),
            "{plan}"
        );
    }
    let mut statement = connection
        .prepare(&format!("EXPLAIN QUERY PLAN {LAST_CALCULATED}"))
        .unwrap();
    let plan = statement.query_map(["c"], |row| row.get(3)).unwrap();
    let plan: Vec<String> = plan.collect::<Result<_, _>>().unwrap();
    let wanted = "SEARCH files USING COVERING INDEX files_by_calculated (collection=?)";
    assert!(plan.iter().any(|step| step == wanted), "{plan:?}");
}
