//! A collection of very many files (U17).
//!
//! `PILLARBOX_TEST_ROWS` says how many; 1,000,000 take some minutes.

use std::collections::BTreeSet;

use pillarbox_messages::{Message, ResultingChecksums, ResultingFileIds, Timestamp};
use rusqlite::Connection;

use crate::support::{
    number_from_environment,
    process::{Running, peak_memory, resident_memory},
    raw_peer::{Answer, RawPeer, file_ids},
    site::Site,
};

/// As many as the memory allowed could not hold.
const ROWS: usize = 200_000;
/// As the clients of the Java system ask.
const PAGE: usize = 10_000;
/// What a walk may cost in memory, however many files there are.
const MOST_GROWTH: u64 = 64 << 20;

/// A site whose pillar, which keeps checksums only, knows so many files.
fn stocked(rows: usize) -> (Site, [Running; 2]) {
    let site = Site::new(&["sums"]);
    site.settings(
        "sums",
        "data = \"var\"\n[[pillars]]\nid = \"sums\"\ntype = \"CHECKSUM\"\n",
    );
    let hub = site.start("hub");
    let mut sums = site.start("sums");
    sums.terminate();
    sums.wait_for_success();
    let index = site.part("sums").join("var/pillars/sums/index.sqlite");
    fill(&Connection::open(index).expect("opens"), rows);
    let sums = site.start("sums");
    (site, [hub, sums])
}

/// Rows as puts would have written them, one each millisecond.
fn fill(index: &Connection, rows: usize) {
    let rows = i64::try_from(rows).expect("few");
    index
        .execute(
            "INSERT INTO collections (key, id, last_modified, last_calculated, last_audit)
             VALUES (1, 'books', ?1, ?1, 0)
             ON CONFLICT DO UPDATE SET last_modified = ?1, last_calculated = ?1",
            [rows],
        )
        .expect("written");
    index
        .execute(
            "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?1)
             INSERT INTO files (collection, file_id, directory, size, expected, observed, modified, calculated,
                                missing)
             SELECT 1, printf('scans/2024/page-%09d.tif', n), '', n, x'00112233445566778899aabbccddeeff',
                    x'00112233445566778899aabbccddeeff', n, n, 0 FROM numbers",
            [rows],
        )
        .expect("written");
}

/// Ids and times of a page.
fn items(answer: &Answer) -> Vec<(String, Timestamp)> {
    match &answer.message {
        Message::GetFileIdsFinalResponse(response) => match &response.resulting_file_ids {
            Some(ResultingFileIds::Data(data)) => data
                .items
                .iter()
                .map(|it| (it.file_id.to_string(), it.last_modification_time))
                .collect(),
            other => panic!("{other:?}"),
        },
        Message::GetChecksumsFinalResponse(response) => match &response.resulting_checksums {
            Some(ResultingChecksums::Items(items)) => items
                .iter()
                .map(|it| (it.file_id.to_string(), it.calculation_timestamp))
                .collect(),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

/// Walks through everything as a client does, from the last time seen on, and gives the number of files.
fn walk(peer: &mut RawPeer, kind: &str, look: impl Fn(usize)) -> usize {
    let mut found = BTreeSet::new();
    let (mut from, mut pages) = (Timestamp::EPOCH, 0);
    loop {
        let asked = format!(
            "{}<MinTimestamp>{from}</MinTimestamp><MaxNumberOfResults>{PAGE}</MaxNumberOfResults>",
            file_ids(None)
        );
        let answer = peer.ask(kind, &format!("{kind}-{pages}"), "sums", &asked);
        let page = items(&answer);
        assert!(page.len() <= PAGE, "{}", page.len());
        assert!(page.is_sorted_by_key(|(_, time)| *time));
        let before = found.len();
        from = page.last().expect("an item").1;
        found.extend(page.into_iter().map(|(id, _)| id));
        pages += 1;
        look(pages);
        if answer.element("PartialResult").as_deref() != Some("true") {
            return found.len();
        }
        assert!(found.len() > before, "the walk does not get on");
    }
}

#[test]
fn u17_a_walk_through_a_large_collection_needs_little_memory() {
    let rows = number_from_environment("PILLARBOX_TEST_ROWS", ROWS);
    let (site, [_hub, sums]) = stocked(rows);
    let mut peer = RawPeer::connect(site.bus_port, "peer");
    let before = resident_memory(sums.id());
    for kind in ["GetFileIDsRequest", "GetChecksumsRequest"] {
        let found = walk(&mut peer, kind, |pages| {
            let grown = peak_memory(sums.id()).saturating_sub(before);
            assert!(
                grown < MOST_GROWTH,
                "{kind}, page {pages}: {} MiB",
                grown >> 20
            );
        });
        assert_eq!(found, rows, "{kind}");
    }
    // Nor does it have to be asked in pages.
    let answer = peer.ask("GetFileIDsRequest", "all", "sums", &file_ids(None));
    assert_eq!(answer.element("PartialResult").as_deref(), Some("true"));
    let grown = peak_memory(sums.id()).saturating_sub(before);
    println!("{} MiB more memory for {rows} files", grown >> 20);
    assert!(grown < MOST_GROWTH, "{} MiB", grown >> 20);
}
