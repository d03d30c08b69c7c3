//! What background workers write down.

use super::*;

async fn actions(index: &Index) -> Vec<(u64, FileAction)> {
    let events = index
        .audit(AuditQuery::from_number(books(), 1))
        .await
        .unwrap();
    let actions = events
        .iter()
        .map(|event| (event.number, event.entry.action));
    actions.collect()
}

/// Rot is not the new truth (P8).
#[tokio::test]
async fn what_was_read_never_becomes_what_is_expected() {
    let fixture = Fixture::new();
    let index = fixture.open();
    fixture.clock.set(1_000);
    let put = index.put(record("books", "x1")).await.unwrap().row;
    let seen = observation(put.clone(), &[9, 9], Some(entry("x1")));
    let recorded = index.observe(&books(), vec![seen.clone()]).await.unwrap();
    assert_eq!(recorded, [true]);
    let row = index.find(&books(), &"x1".into()).await.unwrap().unwrap();
    assert_eq!(
        (&row.expected, &row.observed),
        (&put.expected, &seen.checksum)
    );
    assert_eq!((row.modified_ms, row.calculated_ms), (1_000, 1_001));
    assert_eq!(index.health(&books()).await.unwrap().inconsistent, 1);
    assert_eq!(actions(&index).await.len(), 2);
}

/// Replaced, deleted, missing or read again: what was read before is no news of it.
#[tokio::test]
async fn what_was_read_of_another_version_is_dropped() {
    let fixture = Fixture::new();
    let index = fixture.open();
    let mut seen = Vec::new();
    for name in ["x1", "x2", "x3", "x4"] {
        let row = index.put(record("books", name)).await.unwrap().row;
        seen.push(observation(row, &[9, 9], Some(entry(name))));
    }
    index.replace(record("books", "x1")).await.unwrap();
    index.delete(delete("books", "x2")).await.unwrap();
    assert!(index.mark_missing(&books(), &seen[2].row).await.unwrap());
    let right = observation(seen[3].row.clone(), &[0x4a, 0x37], None);
    index.observe(&books(), vec![right]).await.unwrap();
    let before = actions(&index).await;
    assert_eq!(index.observe(&books(), seen).await.unwrap(), [false; 4]);
    assert_eq!(actions(&index).await, before);
    let health = index.health(&books()).await.unwrap();
    assert_eq!((health.missing, health.inconsistent), (1, 0));
}

#[tokio::test]
async fn a_found_file_is_listed_and_a_missing_one_is_held_to_what_it_was() {
    let fixture = Fixture::new();
    let index = fixture.open();
    fixture.clock.set(1_000);
    let lost = index.put(record("books", "lost")).await.unwrap().row;
    let rotten = index.put(record("books", "rotten")).await.unwrap().row;
    for row in [&lost, &rotten] {
        assert!(index.mark_missing(&books(), row).await.unwrap());
    }
    let ids = ["found", "lost", "rotten"].map(FileId::from).to_vec();
    assert_eq!(index.unlisted(&books(), ids.clone()).await.unwrap(), ids);
    let found = vec![
        adoption("found", &[1]),
        adoption("lost", &[0x4a, 0x37]),
        adoption("rotten", &[9]),
        adoption("found", &[2]),
    ];
    let adopted = index.adopt(&books(), found).await.unwrap();
    let [
        Adopted::New(found),
        Adopted::Again(lost_again),
        Adopted::Again(rotten_again),
        Adopted::Known,
    ] = &adopted[..]
    else {
        panic!("{adopted:?}")
    };
    assert_eq!((found.modified_ms, found.calculated_ms), (1_002, 1_002));
    assert_eq!(found.expected, found.observed);
    assert_eq!(
        (found.size, found.directory.to_str()),
        (15, Some("/archive/2"))
    );
    assert_eq!(lost_again.expected, lost_again.observed);
    assert_eq!(rotten_again.expected, rotten.expected);
    assert_eq!(rotten_again.observed, vec![9].into());
    assert!(index.unlisted(&books(), ids).await.unwrap().is_empty());
    let told: Vec<_> = actions(&index).await.split_off(2);
    use FileAction::{Inconsistency, Other};
    assert_eq!(
        told,
        [(3, Other), (4, Other), (5, Other), (6, Inconsistency)]
    );
}

#[tokio::test]
async fn an_open_operation_leaves_nothing_settled() {
    let fixture = Fixture::new();
    let index = fixture.open();
    let row = index.put(record("books", "x1")).await.unwrap().row;
    let id = FileId::from("x1");
    assert_eq!(index.settled(&books(), &id).await.unwrap(), Some(row));
    let operation = open_operation(&books(), &id, None);
    index.open_operation(operation).await.unwrap();
    assert_eq!(index.settled(&books(), &id).await.unwrap(), None);
}

#[tokio::test]
async fn a_worker_goes_on_where_it_was() {
    let fixture = Fixture::new();
    let index = fixture.open();
    let place = Place {
        step: "files".to_owned(),
        directory: "/archive/1".into(),
        path: "a/x1".to_owned(),
    };
    let progress = index.progress("walk", &books()).await.unwrap();
    assert_eq!(progress, WorkerProgress::default());
    fixture.clock.set(7);
    index.save_progress("walk", &books(), None).await.unwrap();
    let there = Some(place.clone());
    index.save_progress("walk", &books(), there).await.unwrap();
    index.close().await;
    let index = fixture.open();
    let progress = index.progress("walk", &books()).await.unwrap();
    assert_eq!(
        (progress.place, progress.finished_ms),
        (Some(place), Some(7))
    );
    fixture.clock.set(8);
    index.save_progress("walk", &books(), None).await.unwrap();
    let progress = index.progress("walk", &books()).await.unwrap();
    assert_eq!((progress.place, progress.finished_ms), (None, Some(8)));
    assert_eq!(
        index.progress("other", &books()).await.unwrap(),
        WorkerProgress::default()
    );
}

#[tokio::test]
async fn rows_come_in_the_order_of_their_ids_in_bounded_pages() {
    let fixture = Fixture::new();
    let index = fixture.open();
    for number in (0..=PAGE_MAX).rev() {
        index
            .put(record("books", &format!("f{number:04}")))
            .await
            .unwrap();
    }
    let page = index.list_by_id(&books(), "").await.unwrap();
    assert_eq!(page.len() as u64, PAGE_MAX);
    assert!(page.is_sorted_by_key(|row| row.file_id.as_str().to_owned()));
    let last = page.last().unwrap().file_id.as_str();
    let rest = index.list_by_id(&books(), last).await.unwrap();
    assert_eq!(rest[0].file_id.as_str(), "f1000");
}

/// The number is asked for when an archive is taken over, which may be found out late.
#[tokio::test]
async fn a_collection_is_introduced_once_and_its_first_number_is_free_until_it_is_used() {
    let fixture = Fixture::new();
    let index = fixture.open();
    assert!(!index.knows(&books()).await.unwrap());
    index.introduce(&books()).await.unwrap();
    assert!(index.knows(&books()).await.unwrap());
    index.close().await;
    let from = |number| IndexOptions {
        first_audit_number: NonZeroU64::new(number).unwrap(),
        ..fixture.options()
    };
    let index = Index::open(from(50)).unwrap();
    index.introduce(&books()).await.unwrap();
    assert_eq!(index.append(&books(), entry("x1")).await.unwrap(), 50);
    index.close().await;
    let index = Index::open(from(99)).unwrap();
    index.introduce(&books()).await.unwrap();
    assert_eq!(index.append(&books(), entry("x1")).await.unwrap(), 51);
}
