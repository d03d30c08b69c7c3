//! What a query costs in a large collection, in steps of the database's machine: the same figures on any computer.

use rusqlite::{Connection, StatementStatus, params};

use super::*;

/// Rows of one page of the tests.
const PAGE: u64 = 100;

/// An index whose collection has so many files, one of each millisecond from 1 on.
fn filled(rows: i64) -> (Fixture, Connection) {
    let fixture = Fixture::new();
    drop(fixture.open());
    let connection = Connection::open(fixture.path()).unwrap();
    connection
        .execute_batch("INSERT INTO collections VALUES (1, 'books', 0, 0, 0), (2, 'dvds', 0, 0, 0)")
        .unwrap();
    for collection in [1, 2] {
        connection
            .execute(
                "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?2)
                 INSERT INTO files (collection, file_id, directory, size, expected, observed, modified,
                                    calculated, missing)
                 SELECT ?1, printf('page-%09d.tif', n), '/archive/1', n, x'4a37', x'4a37', n, n, 0 FROM numbers",
                params![collection, rows],
            )
            .unwrap();
    }
    let reader = schema::open_reader(&fixture.path()).unwrap();
    (fixture, reader)
}

/// What the statement of this text has cost on this connection so far.
fn cost(connection: &Connection, sql: &str) -> i32 {
    let statement = connection.prepare_cached(sql).unwrap();
    let status = |which| statement.reset_status(which);
    assert_eq!(status(StatementStatus::FullscanStep), 0, "{sql}");
    assert_eq!(status(StatementStatus::Sort), 0, "{sql}");
    status(StatementStatus::VmStep)
}

/// The costs of pages at the beginning, in the middle and at the end of a collection of so many files.
fn costs_of_pages(order: Order, rows: i64) -> [i32; 3] {
    let (_fixture, connection) = filled(rows);
    let page = i64::try_from(PAGE).unwrap();
    [1, rows / 2, rows - page].map(|from| {
        let query = ListQuery {
            min_ms: Some(from),
            limit: NonZeroU64::new(PAGE),
            ..ListQuery::all(books())
        };
        let found = reader::list(&connection, order, &query).unwrap();
        let times = found.rows.iter().map(|row| row.modified_ms);
        assert_eq!(
            times.collect::<Vec<_>>(),
            (from..from + page).collect::<Vec<_>>()
        );
        assert!(found.next.is_some());
        cost(&connection, order.sql())
    })
}

#[test]
fn u17_a_page_costs_no_more_in_a_large_collection() {
    for order in [Order::Modified, Order::Calculated] {
        let small = costs_of_pages(order, 1_000);
        let large = costs_of_pages(order, 100_000);
        assert_eq!(large, small, "{order:?}");
        // Some steps for each column of each row.
        let most = i32::try_from(PAGE).unwrap() * 20;
        assert!(
            small.iter().all(|cost| (1..most).contains(cost)),
            "{small:?}"
        );
    }
}
