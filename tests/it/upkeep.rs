//! What pillars do unasked: old checksums are computed again, index and directories compared, directories taken over,
//! and what was deleted is kept, for ever or for a time (P11); and what they notice when they are asked for something.

mod rot;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use serde_json::Value;

use crate::support::{
    md5, noise,
    process::{self, Running},
    raw_peer::{RawPeer, file_ids},
    site::{Site, files_below},
    until,
};

/// Adds lines to the pillar's table in its node.toml.
fn tune(site: &Site, pillar: &str, lines: &str) {
    let path = site.part(pillar).join("node.toml");
    let node = fs::read_to_string(&path).unwrap();
    let table = "type = \"FILE\"\n";
    assert!(node.contains(table), "{node}");
    fs::write(path, node.replacen(table, &format!("{table}{lines}\n"), 1)).unwrap();
}

fn put(site: &Site, name: &str, content: &[u8]) {
    let file = site.file(name, content);
    process::succeed(&site.run("put-file", ["-f".as_ref(), file.as_os_str()]));
}

/// The alarm of this code about this file.
fn alarm(site: &Site, code: &str, file: &str) -> Option<Value> {
    let list = site.alarms_list(&["--json"]);
    let mut rows = list
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    rows.find(|row| row["code"] == code && row["file_id"] == file)
}

#[track_caller]
fn wait_for_alarm(site: &Site, code: &str, file: &str) {
    until("the alarm is listed", || alarm(site, code, file).is_some());
}

#[track_caller]
fn assert_told_once(site: &Site, code: &str, file: &str) {
    assert_eq!(alarm(site, code, file).unwrap()["count"], 1);
}

/// The ids that the pillars list.
fn listed(site: &Site) -> Vec<String> {
    let output = process::succeed(&site.run("get-file-ids", ["--json"]));
    let rows = output
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut ids: Vec<_> = rows
        .map(|row| row["file_id"].as_str().unwrap().to_owned())
        .collect();
    ids.sort();
    ids
}

/// Content and time of every file.
fn tree(root: &Path) -> BTreeMap<PathBuf, (Vec<u8>, SystemTime)> {
    let files = files_below(root).into_iter().map(|path| {
        let modified = fs::symlink_metadata(&path).unwrap().modified().unwrap();
        let content = fs::read(&path).unwrap();
        (path, (content, modified))
    });
    files.collect()
}

/// A file that has been there for two hours.
fn lay(base: &Path, place: &str, content: &[u8]) {
    let path = base.join(place);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, content).unwrap();
    let file = fs::File::options().append(true).open(path).unwrap();
    let past = SystemTime::now() - Duration::from_secs(7_200);
    file.set_modified(past).unwrap();
}

/// The one line with which a node that can't start ends.
fn last_line(part: &Path) -> String {
    let output = process::run(["node".as_ref(), "-s".as_ref(), part.as_os_str()]);
    assert_eq!(output.status.code(), Some(1));
    process::stderr(&output).lines().last().unwrap().to_owned()
}

#[test]
fn a_file_that_rots_is_alarmed_once_and_shown_as_it_is() {
    let site = Site::new(&["north"]);
    tune(
        &site,
        "north",
        "max_age_for_checksums = \"1ms\"\nrecheck_interval = \"50ms\"",
    );
    let _hub = site.start("hub");
    let _alarms = site.start("alarms");
    let _north = site.start("north");
    let (good, rotten) = (noise(1, 40_000), noise(2, 40_000));
    put(&site, "rots.bin", &good);
    let mut peer = RawPeer::connect(site.bus_port, "peer");
    let mut number = 0;
    let mut ask = || {
        number += 1;
        let correlation = format!("sums-{number}");
        let children = file_ids(Some("rots.bin"));
        let answer = peer.ask("GetChecksumsRequest", &correlation, "north", &children);
        let element = |name| answer.element(name).unwrap();
        (
            element("ChecksumValue").to_lowercase(),
            element("CalculationTimestamp"),
        )
    };
    assert_eq!(ask().0, md5(&good));
    fs::write(site.archive("north").join("fileDir/rots.bin"), &rotten).unwrap();
    wait_for_alarm(&site, "CHECKSUM_ALARM", "rots.bin");
    let (shown, first) = ask();
    assert_eq!(shown, md5(&rotten));
    until("it is read again", || ask().1 > first);
    assert_eq!(ask().0, md5(&rotten));
    assert_told_once(&site, "CHECKSUM_ALARM", "rots.bin");
}

#[test]
fn a_file_that_disappears_is_alarmed_once_and_no_more_listed() {
    let site = Site::new(&["north"]);
    tune(&site, "north", "reconcile_interval = \"50ms\"");
    let _hub = site.start("hub");
    let _alarms = site.start("alarms");
    let _north = site.start("north");
    put(&site, "stays.bin", b"here\n");
    put(&site, "goes.bin", b"gone\n");
    let files = site.archive("north").join("fileDir");
    fs::remove_file(files.join("goes.bin")).unwrap();
    wait_for_alarm(&site, "COMPONENT_FAILURE", "goes.bin");
    assert_eq!(listed(&site), ["stays.bin"]);
    // What was laid there later is found by a later look.
    for name in ["later.bin", "last.bin"] {
        lay(&files, name, b"found\n");
        until("it is taken in", || {
            listed(&site).contains(&name.to_owned())
        });
    }
    assert_told_once(&site, "COMPONENT_FAILURE", "goes.bin");
}

#[test]
fn p11_what_was_deleted_is_kept_as_long_as_the_settings_say() {
    let site = Site::new(&["north", "south"]);
    let retain = "retain_for = \"1s\"\npurge_interval = \"50ms\"";
    tune(&site, "north", retain);
    let _parts = ["hub", "south"].map(|part| site.start(part));
    let mut north = site.start("north");
    let content = noise(1, 50_000);
    for id in ["one.bin", "deep/er/two.bin", "stays.bin"] {
        site.file("content.bin", &content);
        process::succeed(&site.run("put-file", ["-f", "content.bin", "-i", id]));
    }
    for (pillar, id) in [
        ("north", "one.bin"),
        ("north", "deep/er/two.bin"),
        ("south", "one.bin"),
    ] {
        let args = ["-i", id, "-p", pillar, "-C", &md5(&content)];
        process::succeed(&site.run("delete-file", args));
    }
    let retained = |pillar| site.archive(pillar).join("retainDir");
    until("what was deleted is gone", || {
        fs::read_dir(retained("north")).unwrap().count() == 0
    });
    let stays = site.archive("north").join("fileDir/stays.bin");
    assert_eq!(fs::read(stays).unwrap(), content);
    assert_eq!(files_below(&retained("south")).len(), 1);
    for (pillar, purges) in [("north", true), ("south", false)] {
        let status = site.without_collection("get-status", &["-p", pillar]);
        let status = process::succeed(&status);
        assert_eq!(status.contains("; purge: "), purges, "{status}");
    }
    north.terminate();
    north.wait_for_success();
    let gone = |line: &&String| line.contains("is removed for good");
    assert_eq!(north.errors().iter().filter(gone).count(), 2);
}

#[test]
fn a_directory_of_the_java_system_is_taken_over_as_it_stands() {
    let site = Site::new(&["north"]);
    let base = site.archive("north");
    let contents = [
        ("fileDir/one.txt", noise(1, 100_000)),
        ("fileDir/empty.dat", Vec::new()),
        ("folderDir/deep/er/two.txt", noise(2, 3_000)),
        ("retainDir/deleted.txt", noise(3, 30)),
        ("tmpDir/half/received.txt", noise(4, 300)),
    ];
    for (place, content) in &contents {
        lay(&base, place, content);
    }
    let before = tree(&base);
    let _hub = site.start("hub");
    let line = last_line(&site.part("north"));
    for part in [
        base.parent().unwrap().to_str().unwrap(),
        "first_audit_number = N",
    ] {
        assert!(line.contains(part), "{line}");
    }
    assert_eq!(tree(&base), before);

    tune(&site, "north", "first_audit_number = 501");
    let _north = site.start("north");
    until("all are listed", || {
        listed(&site) == ["deep/er/two.txt", "empty.dat", "one.txt"]
    });
    let mut expected = before;
    let received = expected
        .remove(&base.join("tmpDir/half/received.txt"))
        .unwrap();
    expected.insert(base.join("retainDir/half/received.txt"), received);
    assert_eq!(tree(&base), expected);
    let sums = process::succeed(&site.run("get-checksums", ["-i", "deep/er/two.txt"]));
    assert!(sums.contains(&md5(&contents[2].1)), "{sums}");
    let copy = site.path().join("copy");
    let get = [
        "-i".as_ref(),
        "one.txt".as_ref(),
        "-l".as_ref(),
        copy.as_os_str(),
    ];
    process::succeed(&site.run("get-file", get));
    assert_eq!(fs::read(copy).unwrap(), contents[0].1);
}

#[test]
fn a_lost_index_is_made_again_from_the_archive() {
    let site = Site::new(&["north"]);
    let _hub = site.start("hub");
    let mut north = site.start("north");
    let names = ["a.bin", "b.bin", "c.bin"];
    for (seed, name) in (1..).zip(names) {
        put(&site, name, &noise(seed, 20_000));
    }
    north.terminate();
    north.wait_for_success();
    fs::remove_dir_all(site.part("north").join("var")).unwrap();
    let before = tree(&site.archive("north"));
    let line = last_line(&site.part("north"));
    assert!(line.contains("the pillar's index is new"), "{line}");
    tune(&site, "north", "first_audit_number = 4");
    let mut north = site.start("north");
    until("all are listed", || listed(&site) == names);
    assert_eq!(tree(&site.archive("north")), before);
    let sums = process::succeed(&site.run("get-checksums", ["-i", "b.bin"]));
    assert!(sums.contains(&md5(&noise(2, 20_000))), "{sums}");
    // From then on it is an index like any other.
    north.kill();
    let _north = site.start("north");
    assert_eq!(listed(&site), names);
}

/// What is known about an index from outside: how many files it lists, and where the comparison is.
fn index(site: &Site) -> Option<(i64, Option<String>)> {
    let path = site.part("north").join("var/pillars/north/index.sqlite");
    let database = rusqlite::Connection::open(path).ok()?;
    let count = database
        .query_row("SELECT count(*) FROM files", [], |row| row.get(0))
        .ok()?;
    let place = database.query_row("SELECT path FROM worker_progress", [], |row| row.get(0));
    Some((count, place.ok().flatten()))
}

#[test]
fn a_comparison_that_is_killed_goes_on_where_it_was() {
    const FILES: i64 = 60;
    let site = Site::new(&["north"]);
    for number in 0..FILES {
        let content = noise(u64::try_from(number).unwrap(), 20_480);
        lay(
            &site.archive("north"),
            &format!("fileDir/f{number:02}"),
            &content,
        );
    }
    // Ten files in a second.
    tune(
        &site,
        "north",
        "first_audit_number = 1\nreconcile_pace = \"200 KiB\"",
    );
    let _hub = site.start("hub");
    let mut north = site.start("north");
    until("it is in the middle of the files", || {
        index(&site).is_some_and(|(count, place)| count >= 15 && place.is_some())
    });
    north.kill();
    let (count, place) = index(&site).unwrap();
    assert!(count < FILES, "{count}");
    let place = place.unwrap();
    let mut north: Running = site.start("north");
    let line = north.wait_for_error("goes on where it was");
    assert!(line.contains(&place), "{place}: {line}");
    until("all are listed", || {
        i64::try_from(listed(&site).len()) == Ok(FILES)
    });
    north.wait_for_error("were compared");
    // Each was read and told once.
    let path = site.part("north").join("var/pillars/north/index.sqlite");
    let database = rusqlite::Connection::open(path).unwrap();
    let events: (i64, i64) = database
        .query_row("SELECT count(*), max(number) FROM audit", [], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .unwrap();
    assert_eq!(events, (FILES, FILES));
}
