//! Replaces, deletes, and what is written down before them.

use super::*;

#[tokio::test]
async fn a_replaced_file_has_new_times_and_the_sums_of_its_new_bytes() {
    let fixture = Fixture::new();
    let index = fixture.open();
    fixture.clock.set(1_000);
    let old = index.put(record("books", "x1")).await.unwrap().row;
    let mut new = record("books", "x1");
    new.size = 99;
    new.checksum = vec![7, 7].into();
    new.directory = "/archive/2".into();
    new.remember = Some(remember(|row| {
        format!("<done at='{}'/>", row.calculated_ms)
    }));
    let done = index.replace(new).await.unwrap();
    assert_eq!(old.modified_ms, 1_000);
    assert_eq!(
        (
            done.row.modified_ms,
            done.row.calculated_ms,
            done.audit_number
        ),
        (1_001, 1_001, 2)
    );
    assert_eq!(done.response.as_deref(), Some("<done at='1001'/>"));
    let row = index.find(&books(), &"x1".into()).await.unwrap().unwrap();
    assert_eq!(row, done.row);
    let sums: HexBinary = vec![7, 7].into();
    assert_eq!(
        (row.size, row.expected, row.observed),
        (99, sums.clone(), sums)
    );
    assert_eq!(row.directory.to_str(), Some("/archive/2"));
    assert_eq!(index.count(&books()).await.unwrap(), 1);
    let prior = index.prior(&key("x1")).await.unwrap();
    assert_eq!(prior.done.unwrap().response, "<done at='1001'/>");
}

#[tokio::test]
async fn a_deleted_file_leaves_its_audit_trail_and_the_response() {
    let fixture = Fixture::new();
    let index = fixture.open();
    let put = index.put(record("books", "x1")).await.unwrap();
    let mut record_of_delete = delete("books", "x1");
    record_of_delete.remember = Some(remember(|row| format!("<was>{}</was>", row.size)));
    let done = index.delete(record_of_delete).await.unwrap();
    assert_eq!((&done.row, done.audit_number), (&put.row, 2));
    assert_eq!(index.find(&books(), &"x1".into()).await.unwrap(), None);
    assert_eq!(index.count(&books()).await.unwrap(), 0);
    let prior = index.prior(&key("x1")).await.unwrap();
    assert_eq!(prior.done.unwrap().response, "<was>14</was>");
    let again = index.delete(delete("books", "x1")).await;
    assert!(matches!(again, Err(IndexError::NotPresent(_))), "{again:?}");
    // Put again, it is younger than everything before.
    let again = index.put(record("books", "x1")).await.unwrap();
    assert!(again.row.modified_ms > put.row.modified_ms);
    let trail = index
        .audit(AuditQuery::from_number(books(), 1))
        .await
        .unwrap();
    let numbers: Vec<_> = trail.iter().map(|event| event.number).collect();
    assert_eq!(numbers, [1, 2, 3]);
    assert_eq!(trail[1].entry.action, FileAction::DeleteFile);
}

#[tokio::test]
async fn a_missing_file_is_neither_replaced_nor_deleted() {
    let fixture = Fixture::new();
    let index = fixture.open();
    let row = index.put(record("books", "x1")).await.unwrap().row;
    assert!(index.mark_missing(&books(), &row).await.unwrap());
    let replaced = index.replace(record("books", "x1")).await;
    assert!(matches!(replaced, Err(IndexError::NotPresent(_))));
    let deleted = index.delete(delete("books", "x1")).await;
    assert!(matches!(deleted, Err(IndexError::NotPresent(_))));
    assert_eq!(
        index
            .audit(AuditQuery::from_number(books(), 1))
            .await
            .unwrap()
            .len(),
        1
    );
}

#[tokio::test]
async fn open_operations_outlive_the_process_and_end_with_their_commit() {
    let fixture = Fixture::new();
    let index = fixture.open();
    for file in ["x1", "x2", "x3"] {
        index.put(record("books", file)).await.unwrap();
    }
    let new = NewVersion {
        directory: "/archive/1".into(),
        size: 99,
        checksum: vec![7, 7].into(),
    };
    let operations = [
        open_operation(&books(), &"x2".into(), Some(new)),
        open_operation(&books(), &"x1".into(), None),
        open_operation(&books(), &"x3".into(), None),
    ];
    for operation in &operations {
        index.open_operation(operation.clone()).await.unwrap();
        let second = index.open_operation(operation.clone()).await;
        assert!(matches!(second, Err(IndexError::Database(_))), "{second:?}");
    }
    index.close().await;

    let index = fixture.open();
    assert_eq!(index.open_operations().await.unwrap(), operations);
    let open = index.prior(&key("x1")).await.unwrap().open;
    assert_eq!(open.as_deref(), Some(&operations[1]));
    index.replace(record("books", "x2")).await.unwrap();
    index.delete(delete("books", "x1")).await.unwrap();
    assert_eq!(index.open_operations().await.unwrap(), operations[2..]);
    index.drop_operation(&books(), &"x3".into()).await.unwrap();
    assert_eq!(index.open_operations().await.unwrap(), []);
    assert_eq!(index.prior(&key("x3")).await.unwrap().open, None);
    assert!(index.find(&books(), &"x3".into()).await.unwrap().is_some());
}

/// A file as the first format's code left it.
#[tokio::test]
async fn an_index_of_the_first_format_is_taken_over() {
    let fixture = Fixture::new();
    std::fs::create_dir_all(fixture.path().parent().unwrap()).unwrap();
    let first = rusqlite::Connection::open(fixture.path()).unwrap();
    first.execute_batch(include_str!("format-1.sql")).unwrap();
    drop(first);
    let index = fixture.open();
    let row = index.find(&books(), &"a/x1".into()).await.unwrap().unwrap();
    assert_eq!((row.size, row.modified_ms), (14, 1_000));
    assert_eq!(index.find(&books(), &"x2".into()).await.unwrap(), None);
    let prior = index.prior(&key("a/x1")).await.unwrap();
    assert_eq!(prior.done.unwrap().response, "<done at='1000'/>");
    assert_eq!(
        index
            .audit(AuditQuery::from_number(books(), 1))
            .await
            .unwrap()
            .len(),
        2
    );
    let operation = open_operation(&books(), &"a/x1".into(), None);
    index.open_operation(operation.clone()).await.unwrap();
    assert_eq!(index.health(&books()).await.unwrap().missing, 1);
    let place = Some(Place::default());
    index.save_progress("walk", &books(), place).await.unwrap();
    index.close().await;
    // Once is enough.
    let index = fixture.open();
    assert_eq!(index.open_operations().await.unwrap(), [operation]);
    let done = index.replace(record("books", "a/x1")).await.unwrap();
    assert_eq!((done.row.modified_ms, done.audit_number), (1_002, 3));
}
