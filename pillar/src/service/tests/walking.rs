//! Walks over more files than are held at once, while their checksums change.

use super::*;
use crate::{
    index::{AuditEntry, FileRow, Observation, PutRecord},
    listing::{Interval, Listing, Order},
};

/// More files than a portion has, known to the index alone.
async fn many(site: &Site, count: usize) -> Vec<FileRow> {
    let mut puts = tokio::task::JoinSet::new();
    for number in 0..count {
        let (index, file_id) = (site.index().clone(), FileId::from(format!("f{number:04}")));
        let actor = "ingest-1".into();
        let record = PutRecord {
            collection: "books".into(),
            directory: PathBuf::from("/archive"),
            size: 1,
            checksum: vec![1].into(),
            audit: AuditEntry::of_pillar(&file_id, &actor, FileAction::PutFile, "put"),
            file_id,
            remember: None,
        };
        puts.spawn(async move { index.put(record).await.unwrap().row });
    }
    let mut rows = puts.join_all().await;
    rows.sort_by_key(|row| row.calculated_ms);
    rows
}

async fn walk(site: &Site, min_ms: Option<i64>) -> Listing {
    let min = min_ms.map(Timestamp::from_millis);
    let interval = Interval::new(min.as_ref(), None);
    let (context, books) = (&site.pillar.context, "books".into());
    let listing = Listing::asked(
        context,
        &books,
        &FileIds::All,
        interval,
        Order::Calculated,
        None,
    );
    listing.await.unwrap()
}

/// Computes a checksum again.
async fn read_again(site: &Site, row: &FileRow) {
    let seen = Observation {
        row: site.row(row.file_id.as_str()).await.unwrap(),
        checksum: row.observed.clone(),
        audit: None,
    };
    assert_eq!(
        site.index()
            .observe(&"books".into(), vec![seen])
            .await
            .unwrap(),
        [true]
    );
}

/// However fast checksums are computed again behind it: no file comes twice, and whoever goes on after the last time
/// gets the others.
#[tokio::test]
async fn a_walk_over_checksums_ends_though_they_are_computed_again_meanwhile() {
    const COUNT: usize = 1_100;
    let site = Site::open().await;
    let context = &site.pillar.context;
    let rows = many(&site, COUNT).await;
    let mut listing = walk(&site, None).await;
    let mut given = Vec::new();
    while let Some(row) = listing.next(context).await.unwrap() {
        if given.len() % 10 == 0 {
            read_again(&site, &row).await;
        }
        if given.len() == 500 {
            read_again(&site, &rows[COUNT - 2]).await;
        }
        given.push(row);
    }
    let mut expected = rows.clone();
    expected.remove(COUNT - 2);
    assert_eq!(given, expected);
    assert!(listing.more());

    let last = given.last().unwrap().calculated_ms;
    let mut listing = walk(&site, Some(last + 1)).await;
    let mut rest = Vec::new();
    while let Some(row) = listing.next(context).await.unwrap() {
        rest.push(row.file_id);
    }
    assert_eq!(rest.len(), COUNT / 10 + 1);
    assert!(rest.contains(&rows[COUNT - 2].file_id) && !listing.more());

    // What the walk itself has moved, it has told.
    let mut listing = walk(&site, Some(last + 1)).await;
    let first = listing.next(context).await.unwrap().unwrap();
    read_again(&site, &first).await;
    listing.source.moved.insert(first.file_id);
    while listing.next(context).await.unwrap().is_some() {}
    assert!(!listing.more());
}
