//! What a process uses: memory, descriptors, and disk beside the archive.

use std::{
    fmt, fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use rusqlite::{Connection, OpenFlags};

use crate::support::{
    process::{open_descriptors, resident_memory},
    site::files_below,
    until,
};

/// What a process uses while nobody asks it for anything.
#[derive(Clone, Copy, Debug)]
pub(super) struct Usage {
    /// Resident bytes.
    memory: u64,
    descriptors: u64,
    /// Bytes of the bus's log.
    log: u64,
    /// Bytes in use of the pillars' indexes, whose audit trails keep every event for ever.
    index: u64,
    /// Bytes of the index's own log.
    index_log: u64,
    /// Bytes of everything else that it keeps, the archive excepted.
    rest: u64,
}

impl Usage {
    /// Of the process with these settings, once nothing is under way in it.
    pub(super) fn of(pid: u32, part: &Path) -> Self {
        until("nothing is under way", || under_way(part).is_empty());
        let data = part.join("var");
        let mut usage = Self {
            memory: resident_memory(pid),
            descriptors: u64::try_from(open_descriptors(pid)).expect("few"),
            log: 0,
            index: 0,
            index_log: 0,
            rest: 0,
        };
        for file in files_below(&data) {
            // A file may go while it is looked at.
            let bytes = fs::metadata(&file).map_or(0, |it| it.blocks() * 512);
            let name = file.strip_prefix(&data).expect("below").to_string_lossy();
            if name.starts_with("bus/") {
                usage.log += bytes;
            } else if name.ends_with("index.sqlite") {
                usage.index += in_use(&file);
            } else if name.contains("index.sqlite") {
                usage.index_log += bytes;
            } else {
                usage.rest += bytes;
            }
        }
        usage
    }
}

/// What of a database is in use, in bytes, whether or not it is in its main file already.
fn in_use(database: &Path) -> u64 {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
    let database = Connection::open_with_flags(database, flags).expect("opens");
    let number = |pragma: &str| -> u64 {
        let value = database.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
        u64::try_from(value.expect("a number")).expect("not below 0")
    };
    (number("page_count") - number("freelist_count")) * number("page_size")
}

/// What lies on the exchange, among the results, or half received in the archive.
fn under_way(part: &Path) -> Vec<PathBuf> {
    let passing = |file: &PathBuf| {
        let below = |name: &str| file.iter().any(|it| it == name);
        below("exchange") || below("results") || below("tmpDir")
    };
    let mut files = files_below(&part.join("var"));
    files.extend(files_below(&part.join("archive")));
    files.retain(passing);
    files
}

/// What a process has used over time, from one look to the next.
#[derive(Debug, Default)]
pub(super) struct History(Vec<Usage>);

impl History {
    pub(super) fn add(&mut self, usage: Usage) {
        self.0.push(usage);
    }

    /// Asserts that the second half has used no more than the first, and that the index grows no faster.
    pub(super) fn assert_flat(&self, part: &str) {
        let flat = |what, of: fn(&Usage) -> u64, more: u64| {
            let (first, second) = self.highest(of);
            assert!(
                second <= first + more,
                "{part}: {what} grows: at most {first} in the first half, {second} in the second\n{self}"
            );
        };
        let (first, second) = self.highest(|it| it.memory);
        let most = (first + self.cached_more()).max(self.with_full_caches()) + MORE_MEMORY;
        assert!(
            second <= most,
            "{part}: memory grows: at most {first} in the first half, {second} in the second\n{self}"
        );
        flat(
            "number of descriptors",
            |it| it.descriptors,
            MORE_DESCRIPTORS,
        );
        flat("disk space", |it| it.rest, MORE_DISK);
        let (first, second) = self.highest(|it| it.log);
        assert!(first.max(second) <= LARGEST_LOG, "{part}: log\n{self}");
        let (first, second) = self.highest(|it| it.index_log);
        assert!(
            first.max(second) <= LARGEST_INDEX_LOG,
            "{part}: the index's log\n{self}"
        );
        let [first, second] = self.growth(|it| it.index);
        assert!(
            second <= first + first / 2 + MORE_DISK,
            "{part}: the index grows faster: by {first} in the first half, by {second} in the second\n{self}"
        );
    }

    /// What the caches of the index may hold at the end beyond what they held in the middle.
    fn cached_more(&self) -> u64 {
        let cached = |half: &[Usage]| half.last().map_or(0, |it| it.index).min(INDEX_CACHE);
        let [middle, end] = self.halves().map(cached);
        INDEX_CONNECTIONS * end.saturating_sub(middle)
    }

    /// What was used at the beginning, and what the caches of the index may hold by the end: they fill slowly, each
    /// with what its connection happens to read.
    fn with_full_caches(&self) -> u64 {
        let begin = self.0.first().map_or(0, |it| it.memory);
        let index = self.0.last().map_or(0, |it| it.index);
        begin + INDEX_CONNECTIONS * index.min(INDEX_CACHE)
    }

    fn halves(&self) -> [&[Usage]; 2] {
        let (first, second) = self.0.split_at(self.0.len() / 2);
        assert!(!first.is_empty(), "too few operations for two halves");
        [first, second]
    }

    fn highest(&self, of: fn(&Usage) -> u64) -> (u64, u64) {
        let [first, second] = self.halves();
        let highest = |half: &[Usage]| half.iter().map(of).max().unwrap_or_default();
        (highest(first), highest(second))
    }

    fn growth(&self, of: fn(&Usage) -> u64) -> [u64; 2] {
        let [first, second] = self.halves();
        let end = |half: &[Usage]| half.last().map_or(0, of);
        let begin = first.first().map_or(0, of);
        [
            end(first).saturating_sub(begin),
            end(second).saturating_sub(end(first)),
        ]
    }
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let row = |of: fn(&Usage) -> u64| {
            let values: Vec<u64> = self.0.iter().map(of).collect();
            let step = values.len().div_ceil(SHOWN).max(1);
            let shown: Vec<String> = values
                .into_iter()
                .step_by(step)
                .map(|it| it.to_string())
                .collect();
            shown.join(" ")
        };
        writeln!(f, "  memory/KiB: {}", row(|it| it.memory >> 10))?;
        writeln!(f, "  descriptors: {}", row(|it| it.descriptors))?;
        writeln!(f, "  log/KiB: {}", row(|it| it.log >> 10))?;
        writeln!(f, "  index/KiB: {}", row(|it| it.index >> 10))?;
        writeln!(f, "  index's log/KiB: {}", row(|it| it.index_log >> 10))?;
        write!(f, "  rest/KiB: {}", row(|it| it.rest >> 10))
    }
}

/// What the allocator may keep of a moment that was busier than those before.
const MORE_MEMORY: u64 = 8 << 20;
/// A pillar's index has one connection that writes and four that read, each with a cache of 8 MiB.
const INDEX_CONNECTIONS: u64 = 5;
const INDEX_CACHE: u64 = 8 << 20;
/// Connections of the pools that were not needed before.
const MORE_DESCRIPTORS: u64 = 8;
const MORE_DISK: u64 = 1 << 20;
/// The bus keeps four segments of 64 MiB before it clears up, the one that it writes, and one in reserve.
const LARGEST_LOG: u64 = 6 * (64 << 20);
/// The index writes its log back when that has 16 MiB, and then again from its beginning; a reader may delay it.
const LARGEST_INDEX_LOG: u64 = 2 * (16 << 20);
/// Looks that are shown of a history.
const SHOWN: usize = 20;
