//! Listings of a large collection: a page of GetFileIDs and of GetChecksums, from the request's arrival to the response
//! as the bus takes it, against the bare SQLite query and quick-xml's bare writer; the look-up of one file against the
//! bare query; a walk over everything and its memory; how long the pillar takes to open.
//!
//! `PILLARBOX_BENCH_ROWS` is the number of rows, a million unless said otherwise.

use std::{
    hint::black_box,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use pillarbox_bus::{Broker, BrokerOptions, Bus, ConnectOptions};
use pillarbox_component::Received;
use pillarbox_exchange::{AddressPolicy, ClientOptions, ExchangeClient};
use pillarbox_messages::{
    ChecksumSpec, ChecksumType, FileIds, GetChecksumsRequest, GetFileIdsRequest, Header, HexBinary,
    Message, ProtocolVersion, Timestamp, clock::SystemClock,
};
use pillarbox_pillar::{Desk, PillarOptions, index::Index};
use pillarbox_settings::{Node, Repository};
use quick_xml::Writer;
use rusqlite::{Connection, Row, params};
use tokio::runtime::Runtime;

use crate::rounds::{compare, duration, timed};

pub(crate) fn run() {
    let rows = rows();
    println!("listing: {rows} rows");
    let runtime = Runtime::new().expect("a runtime");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let ground = runtime.block_on(Ground::open(directory.path()));
    // Makes the database, which is then filled.
    runtime.block_on(async { ground.desk().await.close().await });
    let path = directory.path().join("data/index.sqlite");
    fill(&path, rows);
    let (opened, desk) = {
        let start = Instant::now();
        let desk = runtime.block_on(ground.desk());
        (start.elapsed(), desk)
    };
    println!("opened in {:.0} ms (wanted: under 2 s)", ms(opened));
    let bench = Bench {
        runtime,
        desk,
        bare: Connection::open(&path).expect("opens"),
        rows,
    };
    bench.pages();
    bench.look_ups();
    bench.walk();
    bench.runtime.block_on(bench.desk.close());
}

fn rows() -> i64 {
    let rows = std::env::var("PILLARBOX_BENCH_ROWS").unwrap_or_else(|_| "1000000".to_owned());
    rows.parse().expect("PILLARBOX_BENCH_ROWS is a number")
}

/// What a pillar needs besides its database.
struct Ground {
    directory: PathBuf,
    repository: Arc<Repository>,
    broker: Broker,
}

impl Ground {
    async fn open(directory: &Path) -> Self {
        let repository = Repository::from_toml_str(REPOSITORY, "bench").expect("settings");
        let bus = BrokerOptions::new(directory.join("bus"), SystemClock::shared());
        Self {
            directory: directory.to_owned(),
            repository: Arc::new(repository),
            broker: Broker::open(bus).await.expect("a bus"),
        }
    }

    async fn desk(&self) -> Desk {
        let archive = self.directory.join("archive");
        let node = format!("[[pillars]]\nid = \"north\"\ndirectories = [{archive:?}]\n");
        let node = Node::from_toml_str(&node, "bench").expect("settings");
        let client_id = "north".to_owned();
        let exchange = ClientOptions::new(AddressPolicy::default());
        let desk = Desk::open(PillarOptions {
            settings: node.pillars[0].clone(),
            repository: Arc::clone(&self.repository),
            bus: Bus::embedded(&self.broker, ConnectOptions { client_id }).expect("connects"),
            exchange: ExchangeClient::new(&exchange).expect("an exchange client"),
            data: self.directory.join("data"),
            clock: SystemClock::shared(),
        });
        desk.await.expect("opens")
    }
}

/// Rows as puts would have written them, one each millisecond.
fn fill(path: &Path, rows: i64) {
    let mut connection = Connection::open(path).expect("opens");
    let filling = connection.transaction().expect("begins");
    filling
        .execute(
            "INSERT INTO collections (key, id, last_modified, last_calculated, last_audit)
             VALUES (1, 'books', ?1, ?1, 0)
             ON CONFLICT DO UPDATE SET last_modified = ?1, last_calculated = ?1",
            [rows],
        )
        .expect("written");
    let mut insert = filling
        .prepare(
            "INSERT INTO files (collection, file_id, directory, size, expected, observed, modified, calculated,
                                missing)
             VALUES (1, ?1, 'archive', ?2, ?3, ?3, ?2, ?2, 0)",
        )
        .expect("prepared");
    for number in 0..rows {
        let sum = [number.to_be_bytes(), (!number).to_le_bytes()].concat();
        insert
            .execute(params![file_id(number), number, sum])
            .expect("written");
    }
    drop(insert);
    filling.commit().expect("committed");
}

fn file_id(number: i64) -> String {
    format!("scans/2024/page-{number:09}.tif")
}

struct Bench {
    runtime: Runtime,
    desk: Desk,
    bare: Connection,
    rows: i64,
}

impl Bench {
    fn pages(&self) {
        let from = self.rows / 2;
        let (peer, ours) = compare(
            || timed(|| drop(black_box(self.bare_ids(from)))),
            || timed(|| drop(black_box(self.page(&file_ids_request(from))))),
        );
        let wanted = "at most 3; aim 50 ms";
        duration("GetFileIDs, a page of 10,000", peer, ours, wanted);
        let (peer, ours) = compare(
            || timed(|| drop(black_box(self.bare_checksums(from)))),
            || timed(|| drop(black_box(self.page(&checksums_request(from))))),
        );
        duration("GetChecksums, a page of 10,000", peer, ours, wanted);
    }

    /// From the request to the text that the bus takes.
    fn page(&self, request: &Message) -> String {
        let received = Received {
            message: request.clone(),
            certificate: None,
            reply_address: None,
        };
        let responses = self.runtime.block_on(self.desk.answer(&received));
        let response = responses.last().expect("answered");
        let info = response.response_info().expect("a response");
        assert_eq!(info.response_code.as_str(), "OPERATION_COMPLETED");
        response.to_xml()
    }

    /// The same rows, read and written without anything around them.
    fn bare_ids(&self, from: i64) -> Vec<u8> {
        let query = "SELECT file_id, modified, size FROM files
                     WHERE collection = 1 AND missing = 0 AND modified >= ?1
                     ORDER BY modified, file_id LIMIT ?2";
        self.bare_page(query, from, |row| {
            [
                ("FileID", text(row, 0)),
                ("LastModificationTime", time(row, 1)),
                (
                    "FileSize",
                    row.get::<_, i64>(2).expect("a size").to_string(),
                ),
            ]
        })
    }

    fn bare_checksums(&self, from: i64) -> Vec<u8> {
        let query = "SELECT file_id, observed, calculated FROM files
                     WHERE collection = 1 AND missing = 0 AND calculated >= ?1
                     ORDER BY calculated, file_id LIMIT ?2";
        self.bare_page(query, from, |row| {
            let sum: Vec<u8> = row.get(1).expect("a checksum");
            [
                ("FileID", text(row, 0)),
                ("ChecksumValue", HexBinary::from(sum).to_string()),
                ("CalculationTimestamp", time(row, 2)),
            ]
        })
    }

    fn bare_page(&self, query: &str, from: i64, values: impl Fn(&Row<'_>) -> Item) -> Vec<u8> {
        let mut statement = self.bare.prepare_cached(query).expect("prepared");
        let mut rows = statement.query([from, PAGE]).expect("queried");
        let mut writer = Writer::new(Vec::new());
        while let Some(row) = rows.next().expect("read") {
            write_item(&mut writer, &values(row));
        }
        writer.into_inner()
    }

    fn look_ups(&self) {
        let numbers: Vec<i64> = (0..LOOK_UPS).map(|n| n * 7_919 % self.rows).collect();
        let index = self.desk.index();
        let (peer, ours) = compare(
            || timed(|| numbers.iter().for_each(|number| self.bare_look_up(*number))),
            || {
                let looking = look_up_all(index.clone(), numbers.clone());
                timed(|| {
                    self.runtime
                        .block_on(self.runtime.spawn(looking))
                        .expect("done");
                })
            },
        );
        duration("10,000 look-ups of one file", peer, ours, "at most 3");
    }

    fn bare_look_up(&self, number: i64) {
        let mut statement = self
            .bare
            .prepare_cached(
                "SELECT file_id, directory, size, expected, observed, modified, calculated FROM files
                 WHERE collection = 1 AND file_id = ?1 AND missing = 0",
            )
            .expect("prepared");
        let size: i64 = statement
            .query_row([file_id(number)], |row| row.get(2))
            .expect("found");
        black_box(size);
    }

    /// Page by page to the end, as a client walks.
    fn walk(&self) {
        let before = resident_kib();
        let (mut most, mut from, mut pages) = (before, 0, 0_u64);
        let start = Instant::now();
        while from < self.rows {
            drop(black_box(self.page(&file_ids_request(from))));
            most = most.max(resident_kib());
            from += PAGE;
            pages += 1;
        }
        let each = ms(start.elapsed()) / f64::from(u32::try_from(pages).expect("few"));
        let grown = (most - before) / 1024;
        println!(
            "the walk: {pages} pages, {each:.1} ms each, {grown} MiB more memory (wanted: under 64)"
        );
    }
}

/// Element names and their texts.
type Item = [(&'static str, String); 3];

fn text(row: &Row<'_>, column: usize) -> String {
    row.get(column).expect("a text")
}

fn time(row: &Row<'_>, column: usize) -> String {
    Timestamp::from_millis(row.get(column).expect("a time")).to_string()
}

/// As a handler looks: on a worker of the runtime, one after the other.
async fn look_up_all(index: Index, numbers: Vec<i64>) {
    let books = "books".into();
    for number in numbers {
        let id = file_id(number).as_str().into();
        let found = index.find(&books, &id).await;
        assert!(found.expect("asked").is_some());
    }
}

fn write_item(writer: &mut Writer<Vec<u8>>, values: &Item) {
    let item = writer
        .create_element("FileIDsDataItem")
        .write_inner_content(|writer| {
            for (name, value) in values {
                let text = quick_xml::events::BytesText::new(value);
                writer.create_element(*name).write_text_content(text)?;
            }
            Ok(())
        });
    item.expect("written");
}

fn header() -> Header {
    Header {
        version: ProtocolVersion::CURRENT,
        correlation_id: "7d0c2f4e-5b1a-4e68-8c93-2a9e6b0f1d35".into(),
        collection_id: Some("books".into()),
        destination: "queue://books.north".parse().expect("a destination"),
        reply_to: "topic://books.client.ingest-1"
            .parse()
            .expect("a destination"),
        from: "ingest-1".into(),
        to: None,
    }
}

fn file_ids_request(from: i64) -> Message {
    GetFileIdsRequest {
        header: header(),
        audit_trail_information: None,
        pillar_id: Some("north".into()),
        file_ids: FileIds::All,
        min_timestamp: Some(Timestamp::from_millis(from)),
        max_timestamp: None,
        max_number_of_results: PAGE.cast_unsigned().try_into().ok(),
        result_address: None,
    }
    .into()
}

fn checksums_request(from: i64) -> Message {
    GetChecksumsRequest {
        header: header(),
        audit_trail_information: None,
        pillar_id: Some("north".into()),
        file_ids: FileIds::All,
        min_timestamp: Some(Timestamp::from_millis(from)),
        max_timestamp: None,
        max_number_of_results: PAGE.cast_unsigned().try_into().ok(),
        checksum_request_for_existing_file: Some(ChecksumSpec {
            checksum_type: ChecksumType::Md5,
            checksum_salt: None,
            other_checksum_type: None,
        }),
        result_address: None,
    }
    .into()
}

/// Resident memory of this process.
fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .expect("a line VmRSS");
    let number = line.split_whitespace().nth(1).expect("a number");
    number.parse().expect("a number")
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

const PAGE: i64 = 10_000;
const LOOK_UPS: i64 = 10_000;

const REPOSITORY: &str = r#"
[repository]
name = "Bench"
[bus]
url = "embedded:"
[[collections]]
id = "books"
pillars = ["north"]
"#;
