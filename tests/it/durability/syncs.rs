//! Nothing is promised that is not on the disk: the order of a pillar's system calls, as strace tells it.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use pillarbox_exchange::offer::OfferSpace;

use crate::support::{
    md5,
    process::{self, Running},
    raw_peer::{RawPeer, delete, put, replace},
    site::Site,
    strace::{self, Step, directory},
    until,
    whole::{http, path_of},
};

/// What of one operation is seen in a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Seen {
    /// Names that were given or taken in the archive proper.
    names: usize,
    /// Writes to the index.
    index: usize,
    /// Final responses.
    responses: usize,
}

/// Follows a trace, and knows at every step what a power cut would take away.
#[derive(Default)]
struct Disk {
    /// How often each file or directory was changed, and how many of these changes are on the disk.
    changed: BTreeMap<String, u64>,
    syncing: BTreeMap<String, u64>,
    synced: BTreeMap<String, u64>,
    seen: Seen,
}

impl Disk {
    fn change(&mut self, path: &str) {
        *self.changed.entry(path.to_owned()).or_default() += 1;
    }

    fn is_safe(&self, path: &str) -> bool {
        self.changed.get(path).copied().unwrap_or_default()
            == self.synced.get(path).copied().unwrap_or_default()
    }

    fn unsafe_paths(&self, kind: impl Fn(&str) -> bool) -> Vec<&str> {
        let paths = self.changed.keys().map(String::as_str);
        paths
            .filter(|path| kind(path) && !self.is_safe(path))
            .collect()
    }

    /// What is wrong with the next step.
    fn step(&mut self, step: &Step) -> Result<(), String> {
        match step {
            Step::Write(path) => {
                self.seen.index += usize::from(is_index(path));
                self.change(path);
            }
            Step::SyncBegins(path) => {
                let now = self.changed.get(path).copied().unwrap_or_default();
                self.syncing.insert(path.clone(), now);
            }
            Step::SyncEnds(path) => {
                let then = self.syncing.get(path).copied().unwrap_or_default();
                self.synced.insert(path.clone(), then);
            }
            Step::Link(from, to) | Step::Rename(from, to) => {
                let renamed = matches!(step, Step::Rename(..));
                self.name(from, to, renamed)?;
            }
            Step::Unlink(name) if is_archived(name) => {
                self.begun(name)?;
                self.seen.names += 1;
                self.change(directory(name));
            }
            Step::Mkdir(name) if !is_temporary(name) => self.change(directory(name)),
            Step::Send(text) if text.contains("FileFinalResponse") => {
                self.seen.responses += 1;
                let lost = self.unsafe_paths(|path| is_kept(path) || is_index(path));
                if !lost.is_empty() {
                    return Err(format!("answered before {lost:?} were synced"));
                }
            }
            Step::Unlink(_) | Step::Mkdir(_) | Step::Send(_) => {}
        }
        Ok(())
    }

    fn name(&mut self, from: &str, to: &str, renamed: bool) -> Result<(), String> {
        if is_temporary(from) && !self.is_safe(from) {
            return Err(format!("{to} was given to bytes that were not synced"));
        }
        if is_archived(to) {
            if renamed {
                self.begun(to)?;
            }
            self.seen.names += 1;
        }
        if to.contains("/retainDir/") {
            self.written_down(to, is_index)?;
        }
        if is_kept(to) {
            self.change(directory(to));
        }
        Ok(())
    }

    /// Before a version loses its place, the open operation and its second name are on the disk.
    fn begun(&self, name: &str) -> Result<(), String> {
        self.written_down(name, |path| is_index(path) || path.contains("/retainDir"))
    }

    fn written_down(&self, name: &str, what: impl Fn(&str) -> bool) -> Result<(), String> {
        let lost = self.unsafe_paths(what);
        if lost.is_empty() {
            return Ok(());
        }
        Err(format!(
            "{name} was made or taken before {lost:?} were synced"
        ))
    }
}

fn is_index(path: &str) -> bool {
    path.ends_with("/index.sqlite-wal")
}

fn is_temporary(path: &str) -> bool {
    path.contains("/tmpDir/")
}

fn is_archived(path: &str) -> bool {
    path.contains("/fileDir/") || path.contains("/folderDir/")
}

/// A name or directory that must last; the probe of the start does not.
fn is_kept(path: &str) -> bool {
    let archive = ["/fileDir", "/folderDir", "/retainDir"];
    archive.iter().any(|part| path.contains(part)) && !path.ends_with("/.probe")
}

/// What the trace of one operation shows, or what is wrong with it.
fn check(log: &str) -> Result<Seen, String> {
    let mut disk = Disk::default();
    for step in strace::steps(log) {
        disk.step(&step)?;
    }
    Ok(disk.seen)
}

/// The trace without one of its syncs; whose it was.
fn without_each_sync(log: &str) -> Vec<(String, String)> {
    let lines: Vec<&str> = log.lines().collect();
    let is_sync = |line: &str| line.contains(" fsync(") || line.contains(" fdatasync(");
    let syncs = (0..lines.len()).filter(|&at| is_sync(lines[at]));
    syncs
        .map(|at| {
            let rest = lines.iter().enumerate().filter(|(number, _)| *number != at);
            let rest: Vec<&str> = rest.map(|(_, line)| *line).collect();
            (lines[at].to_owned(), rest.join("\n"))
        })
        .collect()
}

const PUT: &str = r#"7 write(9</d/books/tmpDir/u>, "bytes", 5) = 5
7 fdatasync(9</d/books/tmpDir/u>) = 0
7 linkat(AT_FDCWD, "/d/books/tmpDir/u", AT_FDCWD, "/d/books/fileDir/x", 0) = 0
7 unlink("/d/books/tmpDir/u") = 0
7 fsync(4</d/books/fileDir>) = 0
8 pwrite64(5</i/index.sqlite-wal>, "row", 3, 0) = 3
8 fdatasync(5</i/index.sqlite-wal>) = 0
6 sendto(3<socket:[1]>, "PutFileFinalResponse", 9, 0, NULL, 0) = 9"#;

const REPLACE: &str = r#"7 write(9</d/books/tmpDir/u>, "bytes", 5) = 5
7 fdatasync(9</d/books/tmpDir/u>) = 0
8 pwrite64(5</i/index.sqlite-wal>, "open", 3, 0) = 3
8 fdatasync(5</i/index.sqlite-wal>) = 0
7 linkat(AT_FDCWD, "/d/books/fileDir/x", AT_FDCWD, "/d/books/retainDir/x", 0) = 0
7 fsync(9</d/books/retainDir>) = 0
7 rename("/d/books/tmpDir/u", "/d/books/fileDir/x") = 0
7 fsync(4</d/books/fileDir>) = 0
8 pwrite64(5</i/index.sqlite-wal>, "row", 3, 0) = 3
8 fdatasync(5</i/index.sqlite-wal>) = 0
6 sendto(3<socket:[1]>, "ReplaceFileFinalResponse", 9, 0, NULL, 0) = 9"#;

const DELETE: &str = r#"8 pwrite64(5</i/index.sqlite-wal>, "open", 3, 0) = 3
8 fdatasync(5</i/index.sqlite-wal>) = 0
7 linkat(AT_FDCWD, "/d/books/fileDir/x", AT_FDCWD, "/d/books/retainDir/x", 0) = 0
7 fsync(9</d/books/retainDir>) = 0
7 unlink("/d/books/fileDir/x") = 0
7 fsync(4</d/books/fileDir>) = 0
8 pwrite64(5</i/index.sqlite-wal>, "gone", 3, 0) = 3
8 fdatasync(5</i/index.sqlite-wal>) = 0
6 sendto(3<socket:[1]>, "DeleteFileFinalResponse", 9, 0, NULL, 0) = 9"#;

#[test]
fn a_trace_that_lacks_a_sync_is_found_out() {
    for (log, syncs) in [(PUT, 3), (REPLACE, 5), (DELETE, 4)] {
        let seen = check(log).unwrap();
        assert_eq!((seen.names, seen.responses), (1, 1));
        let cut = without_each_sync(log);
        assert_eq!(cut.len(), syncs);
        for (missing, log) in cut {
            let found = check(&log).expect_err(&missing);
            println!("without {missing}: {found}");
        }
        let failed = log.replace(
            "fdatasync(5</i/index.sqlite-wal>) = 0",
            "fdatasync(5</i/index.sqlite-wal>) = -1 EIO",
        );
        check(&failed).expect_err("a sync that failed");
    }
}

#[test]
fn a_trace_in_another_order_is_found_out() {
    for log in [PUT, REPLACE, DELETE] {
        let lines: Vec<&str> = log.lines().collect();
        for at in 1..lines.len() {
            // Each sync one step too late.
            if !lines[at - 1].contains("sync(") {
                continue;
            }
            let mut late = lines.clone();
            late.swap(at - 1, at);
            // Then all the same before anything depends on it.
            let harmless = late[at - 1].contains("pwrite64");
            let found = check(&late.join("\n"));
            assert!(found.is_err() || harmless, "{}", late.join("\n"));
        }
    }
}

/// A pillar under strace, its bus, and a client.
struct Traced {
    site: Site,
    _hub: Running,
    pillar: Running,
    peer: RawPeer,
    log: PathBuf,
}

impl Traced {
    fn start() -> Self {
        let site = Site::new(&["north"]);
        let hub = site.start("hub");
        let log = site.path().join("trace");
        let settings = site.part("north");
        let node = process::pillarbox(["node".as_ref(), "-s".as_ref(), settings.as_os_str()]);
        let mut pillar = Running::spawn(strace::command(&node, &log));
        pillar.wait_for("ready");
        let peer = RawPeer::connect(site.bus_port, "peer");
        Self {
            site,
            _hub: hub,
            pillar,
            peer,
            log,
        }
    }

    fn offer(&self, content: &[u8]) -> String {
        let port = self.site.exchange_port;
        let address = OfferSpace::new(&format!("http://127.0.0.1:{port}/")).address_for("new");
        assert_eq!(http(port, "PUT", path_of(&address), content).0, 201);
        address
    }

    fn log(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.log).expect("a log")).into_owned()
    }

    /// What the pillar does for one request, from its arrival to the response.
    fn trace(&mut self, kind: &str, id: &str, request: &str) -> String {
        let before = self.log().len();
        let answer = self.peer.ask(kind, id, "north", request);
        assert_eq!(answer.code(), "OPERATION_COMPLETED", "{}", answer.xml);
        until("the response is in the log", || {
            has_response(self.log().split_at(before).1)
        });
        self.log().split_at(before).1.to_owned()
    }
}

fn has_response(log: &str) -> bool {
    let responds =
        |step: &Step| matches!(step, Step::Send(text) if text.contains("FileFinalResponse"));
    strace::steps(log).iter().any(responds)
}

/// File, directory, then index (P3).
#[test]
fn everything_is_synced_before_the_final_response() {
    if !strace::can_trace(module_path!()) {
        return;
    }
    let mut traced = Traced::start();
    for file in ["x1.bin", "a/x2.bin"] {
        let (old, new) = (b"the old version".as_slice(), vec![7; 200_000]);
        let (first, second) = (traced.offer(old), traced.offer(&new));
        let requests = [
            ("PutFileRequest", put(file, &first, None, &md5(old)), 3),
            (
                "ReplaceFileRequest",
                replace(file, &md5(old), &second, &new),
                5,
            ),
            ("DeleteFileRequest", delete(file, &md5(&new)), 4),
        ];
        for (kind, request, syncs) in requests {
            let log = traced.trace(kind, &format!("{kind} {file}"), &request);
            assert_synced(&log, kind, syncs, &traced.site.archive("north"));
        }
    }
    traced.pillar.terminate();
    traced.pillar.wait_for_success();
}

/// The trace is right, and would be wrong without any of its syncs of which there must be so many.
fn assert_synced(log: &str, kind: &str, least: usize, archive: &Path) {
    let seen = check(log).unwrap_or_else(|wrong| panic!("{kind}: {wrong}\n{}", shortened(log)));
    assert_eq!(
        (seen.names, seen.responses),
        (1, 1),
        "{kind}: {}",
        shortened(log)
    );
    assert!(seen.index > 0 && log.contains(archive.to_str().unwrap()));
    let cut = without_each_sync(log);
    let needed = cut.iter().filter(|(_, log)| check(log).is_err());
    let needed: Vec<_> = needed.map(|(sync, _)| sync.as_str()).collect();
    println!(
        "{kind}: {} syncs, each needed:\n  {}",
        needed.len(),
        needed.join("\n  ")
    );
    assert!(needed.len() >= least, "{kind}: {}", shortened(log));
}

/// Without the long texts of messages.
fn shortened(log: &str) -> String {
    let lines = log
        .lines()
        .map(|line| line.chars().take(240).collect::<String>());
    lines.collect::<Vec<_>>().join("\n")
}
