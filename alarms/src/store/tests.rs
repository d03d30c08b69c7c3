use super::*;

fn entry(number: u64, text: &str) -> Entry {
    Entry {
        kind: EntryKind::Alarm,
        identity: digest_of(&[Some(&number.to_string())]),
        raiser: "north".into(),
        code: AlarmCode::InvalidMessage,
        text: text.to_owned(),
        file: None,
        collection: Some("books".into()),
        raised_ms: 1_000 + i64::try_from(number).unwrap(),
        raw: None,
    }
}

fn open() -> (tempfile::TempDir, AlarmStore) {
    let directory = tempfile::tempdir().unwrap();
    let store = AlarmStore::open(&AlarmStore::path_in(directory.path())).unwrap();
    (directory, store)
}

fn all(store: &AlarmStore) -> Vec<StoredAlarm> {
    store.list(&AlarmFilter::default()).unwrap()
}

#[test]
fn ten_thousand_identical_alarms_are_one_row() {
    let (_directory, mut store) = open();
    for batch in 0..100 {
        let entries: Vec<Entry> = (0..100)
            .map(|n| entry(batch * 100 + n, "a flood"))
            .collect();
        store
            .record(&entries, 5_000 + i64::try_from(batch).unwrap())
            .unwrap();
    }
    let rows = all(&store);
    assert_eq!(rows.len(), 1);
    let row = &rows[0];
    assert_eq!((row.count, row.text.as_str()), (10_000, "a flood"));
    assert_eq!((row.first_raised_ms, row.last_raised_ms), (1_000, 10_999));
    assert_eq!(
        (row.first_received_ms, row.last_received_ms),
        (5_000, 5_099)
    );
}

#[test]
fn one_alarm_counts_once_however_often_it_arrives() {
    let (_directory, mut store) = open();
    store.record(&[entry(1, "a"), entry(1, "a")], 1).unwrap();
    store.record(&[entry(1, "a"), entry(2, "a")], 2).unwrap();
    assert_eq!(all(&store)[0].count, 2);
}

#[test]
fn every_field_makes_a_difference_and_comes_back_as_it_was() {
    let (_directory, mut store) = open();
    let text = "<script>alert(1)</script>\nline 2\ttab \u{1F4BE} 'quoted'";
    let base = entry(1, text);
    let variants = [
        base.clone(),
        Entry {
            raiser: "south".into(),
            ..base.clone()
        },
        Entry {
            code: AlarmCode::ChecksumAlarm,
            ..base.clone()
        },
        Entry {
            text: "other".to_owned(),
            ..base.clone()
        },
        Entry {
            file: Some("a/b.tif".into()),
            ..base.clone()
        },
        Entry {
            collection: None,
            ..base.clone()
        },
        Entry {
            kind: EntryKind::Unreadable,
            raw: Some("<x".to_owned()),
            ..base
        },
    ];
    for (number, variant) in (10..).zip(&variants) {
        let identity = digest_of(&[Some(&number.to_string())]);
        store
            .record(
                &[Entry {
                    identity,
                    ..variant.clone()
                }],
                number,
            )
            .unwrap();
    }
    let rows = all(&store);
    assert_eq!(rows.len(), variants.len());
    for (row, variant) in rows.iter().rev().zip(&variants) {
        assert_eq!(row.count, 1);
        assert_eq!(
            (&row.raiser, row.code, &row.text),
            (&variant.raiser, variant.code, &variant.text)
        );
        assert_eq!(
            (&row.file, &row.collection),
            (&variant.file, &variant.collection)
        );
        assert_eq!((row.kind, &row.raw), (variant.kind, &variant.raw));
    }
}

#[test]
fn lists_are_filtered_newest_first_and_limited() {
    let (_directory, mut store) = open();
    for number in 0..10 {
        let raiser = if number % 2 == 0 { "north" } else { "south" };
        let text = format!("alarm {number}");
        let code = if number < 5 {
            AlarmCode::ChecksumAlarm
        } else {
            AlarmCode::Timeout
        };
        let collection = (number != 7).then(|| "books".into());
        let entry = Entry {
            raiser: raiser.into(),
            code,
            collection,
            ..entry(number, &text)
        };
        store
            .record(&[entry], i64::try_from(number).unwrap() * 10)
            .unwrap();
    }
    let texts = |filter: AlarmFilter| -> Vec<String> {
        store
            .list(&filter)
            .unwrap()
            .into_iter()
            .map(|row| row.text)
            .collect()
    };
    let any = AlarmFilter::default;
    assert_eq!(
        texts(AlarmFilter {
            limit: Some(2),
            ..any()
        }),
        ["alarm 9", "alarm 8"]
    );
    let since = AlarmFilter {
        since_ms: Some(80),
        ..any()
    };
    assert_eq!(texts(since), ["alarm 9", "alarm 8"]);
    assert_eq!(
        texts(AlarmFilter {
            raiser: Some("south".into()),
            ..any()
        })
        .len(),
        5
    );
    assert_eq!(
        texts(AlarmFilter {
            code: Some(AlarmCode::Timeout),
            ..any()
        })
        .len(),
        5
    );
    assert_eq!(
        texts(AlarmFilter {
            collection: Some("books".into()),
            ..any()
        })
        .len(),
        9
    );
    assert_eq!(
        texts(AlarmFilter {
            collection: Some("maps".into()),
            ..any()
        })
        .len(),
        0
    );
}

#[test]
fn others_read_while_one_writes_and_it_survives_being_reopened() {
    let (directory, mut store) = open();
    let path = AlarmStore::path_in(directory.path());
    let reader = AlarmStore::open_read(&path).unwrap();
    assert_eq!(all(&reader), []);
    store.record(&[entry(1, "a")], 1).unwrap();
    assert_eq!(all(&reader).len(), 1);
    drop(store);
    let mut store = AlarmStore::open(&path).unwrap();
    store.record(&[entry(1, "a"), entry(2, "a")], 2).unwrap();
    assert_eq!(all(&reader)[0].count, 2);
}

#[test]
fn a_finished_store_can_be_read_after_everybody_has_closed_it() {
    let (directory, mut store) = open();
    store.record(&[entry(1, "a")], 1).unwrap();
    drop(store);
    let reader = AlarmStore::open_read(&AlarmStore::path_in(directory.path())).unwrap();
    assert_eq!(all(&reader).len(), 1);
}

#[test]
fn an_absent_or_newer_database_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = AlarmStore::path_in(directory.path());
    let absent = AlarmStore::open_read(&path).unwrap_err();
    assert!(matches!(absent, StoreError::Absent { .. }));
    assert!(!path.exists());
    // What is there for a moment while an alarm service makes it.
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, "").unwrap();
    let empty = AlarmStore::open_read(&path).unwrap_err();
    assert!(matches!(empty, StoreError::Absent { .. }), "{empty}");
    drop(AlarmStore::open(&path).unwrap());
    Connection::open(&path)
        .unwrap()
        .pragma_update(None, "user_version", 99)
        .unwrap();
    let newer = [
        AlarmStore::open(&path).unwrap_err(),
        AlarmStore::open_read(&path).unwrap_err(),
    ];
    assert!(
        newer
            .iter()
            .all(|it| matches!(it, StoreError::Newer { found: 99, .. })),
        "{newer:?}"
    );
}

#[test]
fn unreadable_messages_are_kept_up_to_a_bound() {
    let (_directory, mut store) = open();
    store.record(&[entry(0, "real")], 0).unwrap();
    for batch in 0..12u64 {
        let entries: Vec<Entry> = (1..=100)
            .map(|n| {
                let entry = entry(batch * 100 + n, &format!("fault {batch} {n}"));
                Entry {
                    kind: EntryKind::Unreadable,
                    ..entry
                }
            })
            .collect();
        store
            .record(&entries, i64::try_from(batch).unwrap())
            .unwrap();
    }
    let rows = all(&store);
    let unreadable = rows
        .iter()
        .filter(|row| row.kind == EntryKind::Unreadable)
        .count();
    assert_eq!(unreadable, usize::try_from(UNREADABLE_KEPT).unwrap());
    assert_eq!(rows.last().unwrap().text, "real");
    assert!(!rows.iter().any(|row| row.text.starts_with("fault 0 ")));
}

#[test]
fn a_full_disk_changes_nothing_and_the_write_can_be_repeated() {
    let (_directory, mut store) = open();
    let pages: i64 = store
        .connection
        .query_row("PRAGMA page_count", [], |row| row.get(0))
        .unwrap();
    let limit = |store: &AlarmStore, pages: i64| {
        let text = format!("PRAGMA max_page_count = {pages}");
        store
            .connection
            .query_row(&text, [], |row| row.get::<_, i64>(0))
            .unwrap();
    };
    limit(&store, pages);
    let large = entry(2, &"x".repeat(100_000));
    let full = store
        .record(&[entry(1, "a"), large.clone()], 1)
        .unwrap_err();
    assert!(full.to_string().contains("full"), "{full}");
    assert_eq!(all(&store), []);
    limit(&store, 1_000);
    store.record(&[entry(1, "a"), large], 1).unwrap();
    assert_eq!(all(&store).len(), 2);
}

#[test]
fn what_is_no_database_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("alarms.sqlite");
    std::fs::write(&path, "shopping list\n".repeat(1_000)).unwrap();
    let error = AlarmStore::open(&path).unwrap_err().to_string();
    assert!(
        error.contains("alarms.sqlite") && !error.contains('\n'),
        "{error}"
    );
    let error = AlarmStore::open(&path.join("below")).unwrap_err();
    assert!(matches!(error, StoreError::Directory { .. }));
}
