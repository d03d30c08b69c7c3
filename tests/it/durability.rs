//! kill -9 while a client puts files: what was reported done is done, and nothing is half done.

mod bus;
mod changes;
mod orders;
mod parts;
mod syncs;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use serde_json::Value;

use crate::support::{
    Random, md5, noise, number_from_environment, pause, process,
    process::Running,
    site::{Site, files_below},
};

const PILLARS: [&str; 3] = ["north", "south", "west"];

/// At most this many puts are reported between two kills.
const PUTS_PER_LIFE: u64 = 3;
/// A put is killed this much later than one of its events, at most.
const LATEST_MICROSECONDS: u64 = 15_000;
/// The events of a put.
const EVENTS: [&str; 5] = [
    "IDENTIFY_REQUEST_SENT",
    "IDENTIFICATION_COMPLETE",
    ": REQUEST_SENT",
    "PROGRESS",
    "COMPONENT_COMPLETE",
];

/// One repository, killed again and again, and what has been reported about it.
struct Victim {
    site: Site,
    random: Random,
    tried: u64,
    reported: BTreeMap<String, Vec<u8>>,
    unreported: BTreeMap<String, Vec<u8>>,
}

impl Victim {
    fn new(seed: u64) -> Self {
        let site = Site::new(&PILLARS);
        site.all_in_one();
        Self {
            site,
            random: Random::new(seed),
            tried: 0,
            reported: BTreeMap::new(),
            unreported: BTreeMap::new(),
        }
    }

    fn up(&self) -> Running {
        Running::up(&self.site.part("all"))
    }

    /// Puts file after file, and kills the repository somewhere in the middle of a put.
    fn live_and_die(&mut self) {
        let mut up = self.up();
        for _ in 0..self.random.below(PUTS_PER_LIFE) {
            let (name, content, mut client) = self.start_put();
            client.wait_for_success();
            self.reported.insert(name, content);
        }
        let (name, content, mut client) = self.start_put();
        let event = EVENTS[usize::try_from(self.random.below(EVENTS.len() as u64)).unwrap()];
        client.wait_for_error(event);
        pause(Duration::from_micros(
            self.random.below(LATEST_MICROSECONDS),
        ));
        up.kill();
        // It may have been told of its success before; if not, it would wait for the bus to come back.
        client.terminate();
        let end = if client.wait().success() {
            &mut self.reported
        } else {
            &mut self.unreported
        };
        end.insert(name, content);
    }

    fn start_put(&mut self) -> (String, Vec<u8>, Running) {
        self.tried += 1;
        let length = usize::try_from(self.random.below(200_000)).unwrap();
        let content = noise(self.random.next(), length);
        let name = format!("file-{:04}", self.tried);
        let path = self.site.file(&name, &content);
        let client = self
            .site
            .start_client("put-file", ["-v".as_ref(), "-f".as_ref(), path.as_os_str()]);
        (name, content, client)
    }

    /// Looks at a repository that has been killed, after its restart.
    fn check(&self) {
        let mut up = self.up();
        let checksums = rows(&self.site, "get-checksums");
        let sizes = rows(&self.site, "get-file-ids");
        for (name, content) in &self.reported {
            let row = checksums
                .get(name)
                .unwrap_or_else(|| panic!("{name} is lost"));
            for pillar in PILLARS {
                assert_eq!(row["checksums"][pillar], md5(content), "{name} {row}");
            }
        }
        for (name, row) in &checksums {
            for (pillar, checksum) in row["checksums"].as_object().unwrap() {
                let stored = fs::read(self.archive(pillar).join("fileDir").join(name));
                let stored = stored.unwrap_or_else(|error| panic!("{name} {row}: {error}"));
                assert_eq!(*checksum, md5(&stored), "{name} {row}");
                assert_eq!(sizes[name]["sizes"][pillar], stored.len(), "{name} {row}");
            }
        }
        let partial = checksums.values().filter(|row| row["count"] != 3).count();
        println!(
            "{} files, {partial} of them not everywhere",
            checksums.len()
        );
        assert_eq!(
            checksums.keys().collect::<Vec<_>>(),
            sizes.keys().collect::<Vec<_>>()
        );
        for pillar in PILLARS {
            assert_empty(&self.archive(pillar).join("tmpDir"));
            assert_empty(
                &self
                    .site
                    .part("all")
                    .join("var/pillars")
                    .join(pillar)
                    .join("results"),
            );
        }
        assert_empty(&self.site.part("all").join("var/exchange/incoming"));
        up.terminate();
        up.wait_for_success();
    }

    /// What was not reported can be put again, whatever had become of it.
    fn put_the_rest(&mut self) {
        let mut up = self.up();
        for (name, content) in std::mem::take(&mut self.unreported) {
            let path = self.site.path().join(&name);
            let args = ["-f".as_ref(), path.as_os_str()];
            process::succeed(&self.site.run("put-file", args));
            self.reported.insert(name, content);
        }
        up.terminate();
        up.wait_for_success();
    }

    fn archive(&self, pillar: &str) -> PathBuf {
        self.site
            .part("all")
            .join("archive")
            .join(pillar)
            .join("books")
    }
}

/// What a listing says, by file.
fn rows(site: &Site, subcommand: &str) -> BTreeMap<String, Value> {
    let output = site.run(subcommand, ["--json"]);
    // 255 tells that some files are not everywhere.
    assert!(
        [0, 255].contains(&output.status.code().unwrap()),
        "{}",
        process::stderr(&output)
    );
    process::stdout(&output)
        .lines()
        .map(|line| {
            let row: Value = serde_json::from_str(line).unwrap();
            (row["file_id"].as_str().unwrap().to_owned(), row)
        })
        .collect()
}

#[track_caller]
fn assert_empty(directory: &Path) {
    assert!(directory.is_dir(), "{directory:?}");
    assert_eq!(files_below(directory), Vec::<PathBuf>::new());
}

#[test]
fn puts_that_were_reported_outlive_any_number_of_kills() {
    let seed = number_from_environment("PILLARBOX_TEST_SEED", 1);
    let kills = number_from_environment("PILLARBOX_TEST_KILLS", 10);
    let mut victim = Victim::new(u64::try_from(seed).unwrap());
    for kill in 1..=kills {
        victim.live_and_die();
        println!(
            "seed {seed}, kill {kill}: {} reported",
            victim.reported.len()
        );
        if kill % CHECKED == 0 || kill == kills {
            victim.check();
        }
    }
    assert!(!victim.reported.is_empty() && !victim.unreported.is_empty());
    victim.put_the_rest();
    victim.check();
}

/// So many kills without a good end or a check in between.
const CHECKED: usize = 3;
