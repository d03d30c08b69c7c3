//! The bare loop that puts are compared with: the same writes, links, syncs and index commits, and nothing else.

use std::{
    fs::{self, File, OpenOptions},
    io::Write as _,
    path::{Path, PathBuf},
    sync::Mutex,
};

use rusqlite::{Connection, params};

/// What three pillars and a bus keep, without any protocol.
pub(crate) struct Bare {
    exchange: PathBuf,
    journal: Mutex<File>,
    pillars: Vec<Pillar>,
}

struct Pillar {
    temp: PathBuf,
    files: PathBuf,
    names: File,
    index: Mutex<Connection>,
}

impl Bare {
    pub(crate) fn new(directory: &Path) -> Self {
        let exchange = directory.join("exchange");
        fs::create_dir_all(&exchange).unwrap();
        let mut options = OpenOptions::new();
        let journal = options
            .create(true)
            .append(true)
            .open(directory.join("journal"))
            .unwrap();
        let pillars = ["north", "south", "west"].map(|id| Pillar::new(&directory.join(id)));
        Self {
            exchange,
            journal: Mutex::new(journal),
            pillars: pillars.into(),
        }
    }

    /// One put: the file is offered, requested, stored three times, and acknowledged. One thing after the other,
    /// as a loop does it; several loops run beside each other.
    pub(crate) fn put(&self, name: &str, content: &[u8], message: &[u8]) {
        let offer = self.exchange.join(name);
        fs::write(&offer, content).unwrap();
        self.journal(message, self.pillars.len());
        for pillar in &self.pillars {
            pillar.put(name, &offer, message);
        }
        self.journal(&[0; 40], self.pillars.len());
        fs::remove_file(offer).unwrap();
    }

    /// As many records, one sync.
    fn journal(&self, record: &[u8], records: usize) {
        let mut journal = self.journal.lock().unwrap();
        journal.write_all(&record.repeat(records)).unwrap();
        journal.sync_data().unwrap();
    }
}

impl Pillar {
    fn new(directory: &Path) -> Self {
        let (temp, files) = (directory.join("tmpDir"), directory.join("fileDir"));
        fs::create_dir_all(&temp).unwrap();
        fs::create_dir_all(&files).unwrap();
        let index = Connection::open(directory.join("index.sqlite")).unwrap();
        index
            .execute_batch(
                "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
                 CREATE TABLE files (collection TEXT, file_id TEXT, size INTEGER, checksum BLOB,
                     modified INTEGER, calculated INTEGER, PRIMARY KEY (collection, file_id)) WITHOUT ROWID;
                 CREATE INDEX by_modified ON files (collection, modified, file_id);
                 CREATE INDEX by_calculated ON files (collection, calculated, file_id);
                 CREATE TABLE audit (collection TEXT, number INTEGER, event TEXT);
                 CREATE TABLE done (correlation TEXT PRIMARY KEY, response TEXT);",
            )
            .unwrap();
        let names = File::open(&files).unwrap();
        Self {
            temp,
            files,
            names,
            index: Mutex::new(index),
        }
    }

    fn put(&self, name: &str, offer: &Path, message: &[u8]) {
        let content = fs::read(offer).unwrap();
        let temp = self.temp.join(name);
        let mut file = File::create_new(&temp).unwrap();
        file.write_all(&content).unwrap();
        file.sync_data().unwrap();
        fs::hard_link(&temp, self.files.join(name)).unwrap();
        fs::remove_file(&temp).unwrap();
        self.names.sync_all().unwrap();
        self.commit(name, content.len(), message);
    }

    fn commit(&self, name: &str, size: usize, message: &[u8]) {
        let response = String::from_utf8_lossy(message);
        let mut index = self.index.lock().unwrap();
        let unit = index.transaction().unwrap();
        let run = |sql: &str, values: &[&dyn rusqlite::ToSql]| {
            unit.prepare_cached(sql).unwrap().execute(values).unwrap();
        };
        let size = i64::try_from(size).unwrap();
        run(
            "INSERT INTO files VALUES ('books', ?, ?, ?, 1, 1)",
            params![name, size, [7_u8; 16]],
        );
        run("INSERT INTO audit VALUES ('books', 1, ?)", params![name]);
        run("INSERT INTO done VALUES (?, ?)", params![name, response]);
        unit.commit().unwrap();
    }
}
