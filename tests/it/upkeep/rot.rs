//! Files that have rotted since they were last looked at.

use std::fs;

use serde_json::Value;

use super::{alarm, assert_told_once, put, tune, wait_for_alarm};
use crate::support::{
    md5, noise,
    process::{self, Running},
    site::Site,
};

const FILE: &str = "scan.tif";

/// Two pillars, of which west answers first, and what they have stored.
struct Archive {
    site: Site,
    good: Vec<u8>,
    rotten: Vec<u8>,
    _parts: Vec<Running>,
}

impl Archive {
    /// West's copy is not what it was, which nobody knows yet.
    fn rotting() -> Self {
        let site = Site::new(&["south", "west"]);
        tune(&site, "west", "time_to_start_deliver = \"1ms\"");
        let parts = ["hub", "alarms", "south", "west"].map(|part| site.start(part));
        // Large enough not to be delivered at once.
        let good = noise(1, 3_000_000);
        put(&site, FILE, &good);
        let mut rotten = good.clone();
        rotten[2_000_000] ^= 1;
        let archive = Self {
            site,
            good,
            rotten,
            _parts: parts.into(),
        };
        archive.lay(&archive.rotten);
        archive
    }

    /// Gives west's copy these bytes.
    fn lay(&self, content: &[u8]) {
        let place = self.site.archive("west").join("fileDir").join(FILE);
        fs::write(place, content).unwrap();
    }

    /// The lines of `get-file`, and the bytes that came.
    fn get(&self, args: &[&str]) -> (String, Vec<u8>) {
        let args = ["-i", FILE, "-l", "copy"].iter().chain(args);
        let got = self.site.run("get-file", args);
        process::succeed(&got);
        let copy = self.site.path().join("copy");
        let bytes = fs::read(&copy).unwrap();
        fs::remove_file(copy).unwrap();
        (process::stderr(&got), bytes)
    }

    /// The status of west: code and text.
    fn status(&self) -> (String, String) {
        let args = ["-p", "west", "--json"];
        let told = process::succeed(&self.site.without_collection("get-status", &args));
        let told: Value = serde_json::from_str(&told).unwrap();
        let text = |name: &str| told[name].as_str().unwrap().to_owned();
        (text("code"), text("text"))
    }

    /// What west's audit trail tells of the file: actions, and how they are told.
    fn trail(&self) -> Vec<(String, String)> {
        let args = ["-p", "west", "-i", FILE, "--json"];
        let told = process::succeed(&self.site.run("get-audit-trails", args));
        let event = |line: &str| {
            let event: Value = serde_json::from_str(line).unwrap();
            let text = |name: &str| event[name].as_str().unwrap().to_owned();
            (text("action"), text("info"))
        };
        told.lines().map(event).collect()
    }

    fn difference(&self) -> String {
        let (rotten, good) = (md5(&self.rotten), md5(&self.good));
        format!("the file's checksum is {rotten}, expected is {good}")
    }

    /// People know by now, and have been told once.
    #[track_caller]
    fn assert_noticed(&self) {
        wait_for_alarm(&self.site, "CHECKSUM_ALARM", FILE);
        assert_told_once(&self.site, "CHECKSUM_ALARM", FILE);
        let told = alarm(&self.site, "CHECKSUM_ALARM", FILE).unwrap();
        assert_eq!(told["raiser"], "west");
        assert_eq!(told["text"], self.difference());
        let (code, text) = self.status();
        assert_eq!(code, "WARNING", "{text}");
        assert!(text.contains("0 files missing, 1 changed"), "{text}");
        let inconsistent = ("INCONSISTENCY".to_owned(), self.difference());
        let trail = self.trail();
        assert_eq!(trail[1], inconsistent, "{trail:?}");
        let told = trail.iter().filter(|event| event.0 == "INCONSISTENCY");
        assert_eq!(told.count(), 1, "{trail:?}");
    }
}

#[test]
fn a_file_that_has_rotted_is_noticed_when_it_is_delivered_and_another_pillar_stands_in() {
    let archive = Archive::rotting();
    assert_eq!(archive.status().0, "OK");
    let (said, bytes) = archive.get(&[]);
    assert_eq!(
        said,
        format!(
            "west: delivered bytes that do not match its checksum: theirs is {}, it said {}; took the file from south\n",
            md5(&archive.rotten),
            md5(&archive.good)
        )
    );
    assert!(bytes == archive.good);
    archive.assert_noticed();
    let delivered = format!(
        "file delivered, with bytes that do not match: {}",
        archive.difference()
    );
    let event = ("GET_FILE".to_owned(), delivered);
    assert_eq!(archive.trail()[2..], *std::slice::from_ref(&event));

    // From now on west says what it has, by which others see the rot; its trail tells each time.
    let (said, bytes) = archive.get(&["-p", "west"]);
    assert_eq!(said, "");
    assert!(bytes == archive.rotten);
    assert_eq!(archive.trail()[3..], [event]);
    archive.assert_noticed();
    let sums = process::succeed(&archive.site.run("get-checksums", ["-i", FILE, "--json"]));
    let sums: Value = serde_json::from_str(&sums).unwrap();
    assert_eq!(sums["agreed"], false);
    assert_eq!(sums["checksums"]["west"], md5(&archive.rotten));
    assert_eq!(sums["checksums"]["south"], md5(&archive.good));

    // Right again, which whoever reads it first finds out.
    archive.lay(&archive.good);
    let get = ["-i", FILE, "-l", "copy", "-p", "west"];
    let line = process::fail_with_one_line(&archive.site.run("get-file", get), 255);
    assert!(line.contains("west: delivered bytes that"), "{line}");
    let (said, bytes) = archive.get(&["-p", "west"]);
    assert_eq!(said, "");
    assert!(bytes == archive.good);
    let again = "the file's checksum is the expected one again";
    let told = |action: &str, info: &str| (action.to_owned(), info.to_owned());
    assert_eq!(
        archive.trail()[4..],
        [
            told("CHECKSUM_CALCULATED", again),
            told("GET_FILE", "file delivered"),
            told("GET_FILE", "file delivered")
        ]
    );
    assert_eq!(archive.status().0, "OK");
}

#[test]
fn a_file_that_has_rotted_is_noticed_by_a_checksum_of_another_type() {
    for args in [&["-R", "SHA1"][..], &["-R", "SHA1", "-i", FILE]] {
        let archive = Archive::rotting();
        for _ in 0..2 {
            let args = args.iter().chain(&["--json"]);
            let sums = process::succeed(&archive.site.run("get-checksums", args));
            let sums: Value = serde_json::from_str(&sums).unwrap();
            assert_eq!(sums["agreed"], false, "{sums}");
        }
        archive.assert_noticed();
    }
}

#[test]
fn a_part_of_a_file_tells_nothing_of_its_checksum() {
    let archive = Archive::rotting();
    let (_, bytes) = archive.get(&["-p", "west", "--part", "2000000:1"]);
    assert_eq!(bytes, archive.rotten[2_000_000..][..1]);
    assert_eq!(archive.trail()[1].0, "GET_FILE");
    assert_eq!(archive.status().0, "OK");
    assert_eq!(alarm(&archive.site, "CHECKSUM_ALARM", FILE), None);
}
