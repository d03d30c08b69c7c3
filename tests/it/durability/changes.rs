//! kill -9 while files are replaced and deleted; and what readers see of a replace.

use std::{
    collections::BTreeSet,
    fs,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use pillarbox_exchange::offer::OfferSpace;

use super::parts::audit_trail;
use crate::support::{
    PATIENCE, Random, md5, noise, number_from_environment, pause,
    process::Running,
    raw_peer::{RawPeer, delete, put, replace},
    site::{Site, files_below},
    whole::{http, path_of},
};

/// A pillar is killed this much later than what it is killed for, at most.
const LATEST_MICROSECONDS: u64 = 4_000;
/// The file that is changed all the time.
const FILES: [&str; 2] = ["x1.bin", "a/b/x2.bin"];

/// When the pillar is killed.
#[derive(Clone, Copy, Debug)]
enum Moment {
    /// A while after the request.
    Sent,
    /// A while after the first byte of the new file.
    Receiving,
    /// A while after the old version has its second name.
    Kept,
}

/// A bus and an exchange that stay, a pillar that is killed over and over, and a client that listens all the time.
struct Stage {
    site: Site,
    _hub: Running,
    north: Running,
    peer: RawPeer,
    random: Random,
    conversations: u64,
    done: u64,
}

impl Stage {
    fn set(seed: u64) -> Self {
        let site = Site::new(&["north"]);
        let hub = site.start("hub");
        let north = site.start("north");
        let peer = RawPeer::connect(site.bus_port, "peer");
        Self {
            site,
            _hub: hub,
            north,
            peer,
            random: Random::new(seed),
            conversations: 0,
            done: 0,
        }
    }

    /// New bytes, and where they are offered.
    fn offer(&mut self) -> (Vec<u8>, String) {
        let length = usize::try_from(1 + self.random.below(200_000)).unwrap();
        let content = noise(self.random.next(), length);
        let port = self.site.exchange_port;
        let address = OfferSpace::new(&format!("http://127.0.0.1:{port}/")).address_for("new");
        assert_eq!(http(port, "PUT", path_of(&address), &content).0, 201);
        (content, address)
    }

    fn conversation(&mut self) -> String {
        self.conversations += 1;
        format!("c-{}", self.conversations)
    }

    fn put(&mut self, file: &str) -> Vec<u8> {
        let (content, address) = self.offer();
        let request = put(file, &address, None, &md5(&content));
        self.ask("PutFileRequest", &request);
        content
    }

    /// Asks, and is told that it is done.
    fn ask(&mut self, kind: &str, request: &str) {
        let conversation = self.conversation();
        let answer = self.peer.ask(kind, &conversation, "north", request);
        assert_eq!(answer.code(), "OPERATION_COMPLETED", "{}", answer.xml);
        self.done += 1;
    }

    /// Asks, kills the pillar on the way, gives what the disk has then, and is told by the next pillar that it is
    /// done: the request waits for it.
    fn ask_and_kill(
        &mut self,
        kind: &str,
        file: &str,
        request: &str,
        moment: Moment,
    ) -> Option<Vec<u8>> {
        let conversation = self.conversation();
        let kept = self.kept(file).len();
        let xml = self.peer.request(kind, &conversation, "north", request);
        self.peer.send_to("north", kind, xml);
        self.wait_for(moment, file, kept);
        pause(Duration::from_micros(
            self.random.below(LATEST_MICROSECONDS),
        ));
        self.north.kill();
        let left = fs::read(self.place(file)).ok();
        self.north = self.site.start_again("north");
        let answer = self.peer.end_of(&conversation);
        assert_eq!(answer.code(), "OPERATION_COMPLETED", "{}", answer.xml);
        self.done += 1;
        left
    }

    /// Looks as often as it can; the moment may be over before it is seen, but then the file has been changed.
    fn wait_for(&self, moment: Moment, file: &str, kept: usize) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            assert!(Instant::now() < deadline, "in vain: {moment:?}");
            let come = match moment {
                Moment::Sent => true,
                Moment::Receiving => !self.site.half_received("north").is_empty(),
                Moment::Kept => false,
            };
            if come || self.kept(file).len() > kept {
                return;
            }
            thread::yield_now();
        }
    }

    fn place(&self, file: &str) -> PathBuf {
        let tree = if file.contains('/') {
            "folderDir"
        } else {
            "fileDir"
        };
        self.site.archive("north").join(tree).join(file)
    }

    /// All former versions of a file.
    fn kept(&self, file: &str) -> Vec<PathBuf> {
        let mut kept = files_below(&self.site.archive("north").join("retainDir"));
        kept.retain(|path| path.to_str().unwrap().contains(file));
        kept
    }

    /// Disk and index say the same, and nothing is left over. `versions` are all that the files ever had.
    fn check(mut self, last: &[(&str, Vec<u8>)], versions: usize) {
        self.north.terminate();
        self.north.wait_for_success();
        let archive = self.site.archive("north");
        let mut stored = files_below(&archive.join("fileDir"));
        stored.extend(files_below(&archive.join("folderDir")));
        assert_eq!(stored.len(), last.len(), "{stored:?}");
        let index = self
            .site
            .part("north")
            .join("var/pillars/north/index.sqlite");
        let index = rusqlite::Connection::open(index).unwrap();
        let count = |sql: &str| {
            index
                .query_row(sql, [], |row| row.get::<_, i64>(0))
                .unwrap()
        };
        assert_eq!(
            count("SELECT count(*) FROM files"),
            i64::try_from(last.len()).unwrap()
        );
        assert_eq!(count("SELECT count(*) FROM open_operations"), 0);
        for (file, content) in last {
            assert!(fs::read(self.place(file)).unwrap() == *content, "{file}");
            let sql = "SELECT size, lower(hex(expected)), lower(hex(observed)) FROM files WHERE file_id = ?1";
            let row: (i64, String, String) = index
                .query_row(sql, [file], |row| {
                    Ok((row.get(0)?, row.get(1)?, row.get(2)?))
                })
                .unwrap();
            let size = i64::try_from(content.len()).unwrap();
            assert_eq!(row, (size, md5(content), md5(content)));
        }
        // Every version that was superseded has one name more, and no other.
        let kept = files_below(&archive.join("retainDir"));
        assert_eq!(kept.len() + last.len(), versions, "{kept:?}");
        let sums: BTreeSet<_> = kept
            .iter()
            .map(|path| md5(&fs::read(path).unwrap()))
            .collect();
        assert_eq!(sums.len(), kept.len());
        assert_eq!(self.site.half_received("north"), Vec::<PathBuf>::new());
        // Each operation is told of once, whether the request was carried out by one process or by two.
        let numbers = audit_trail(&self.site, "north")
            .into_iter()
            .map(|(number, _)| number);
        let done = i64::try_from(self.done).unwrap();
        assert_eq!(numbers.collect::<Vec<_>>(), (1..=done).collect::<Vec<_>>());
    }
}

fn kills() -> u64 {
    u64::try_from(number_from_environment("PILLARBOX_TEST_KILLS", 10)).unwrap()
}

fn seed() -> u64 {
    u64::try_from(number_from_environment("PILLARBOX_TEST_SEED", 1)).unwrap()
}

#[test]
fn a_file_is_whole_in_one_version_however_often_a_replace_is_killed() {
    let mut stage = Stage::set(seed());
    let mut last = FILES.map(|file| (file, stage.put(file)));
    let moments = [Moment::Kept, Moment::Receiving, Moment::Kept, Moment::Sent];
    let kills = kills();
    let mut found_new = 0;
    for (kill, moment) in (0..kills).zip(moments.into_iter().cycle()) {
        let (file, old) = last[usize::try_from(kill % 2).unwrap()].clone();
        let (new, address) = stage.offer();
        let request = replace(file, &md5(&old), &address, &new);
        let left = stage.ask_and_kill("ReplaceFileRequest", file, &request, moment);
        let left = left.unwrap_or_else(|| panic!("kill {kill}, {moment:?}: {file} is absent"));
        assert!(
            left == old || left == new,
            "kill {kill}, {moment:?}: neither version"
        );
        found_new += u64::from(left == new);
        assert!(
            fs::read(stage.place(file)).unwrap() == new,
            "kill {kill}, {moment:?}"
        );
        last[usize::try_from(kill % 2).unwrap()].1 = new;
    }
    println!("{kills} kills, {found_new} of them left the new version");
    let versions = last.len() + usize::try_from(kills).unwrap();
    stage.check(&last, versions);
}

#[test]
fn a_file_is_whole_or_gone_however_often_a_delete_is_killed() {
    let mut stage = Stage::set(seed() + 1);
    let moments = [Moment::Kept, Moment::Sent, Moment::Kept];
    let kills = kills();
    let mut found_gone = 0;
    for (kill, moment) in (0..kills).zip(moments.into_iter().cycle()) {
        let file = FILES[usize::try_from(kill % 2).unwrap()];
        let content = stage.put(file);
        let request = delete(file, &md5(&content));
        let left = stage.ask_and_kill("DeleteFileRequest", file, &request, moment);
        found_gone += u64::from(left.is_none());
        assert!(
            left.is_none_or(|left| left == content),
            "kill {kill}, {moment:?}"
        );
        assert!(!stage.place(file).exists(), "kill {kill}, {moment:?}");
        assert!(!stage.site.archive("north").join("folderDir/a").exists());
    }
    println!("{kills} kills, {found_gone} of them found the file gone");
    stage.check(&[], usize::try_from(kills).unwrap());
}

#[test]
fn whoever_reads_while_a_file_is_replaced_finds_one_whole_version() {
    let mut stage = Stage::set(seed() + 2);
    let mut content = stage.put("x1.bin");
    let over = Arc::new(AtomicBool::new(false));
    let readers = [(); 2].map(|()| {
        let (place, over) = (stage.place("x1.bin"), Arc::clone(&over));
        thread::spawn(move || {
            let (mut seen, mut looks) = (BTreeSet::new(), 0_u64);
            while !over.load(Ordering::Relaxed) {
                let bytes = fs::read(&place).expect("never absent");
                seen.insert(md5(&bytes));
                looks += 1;
            }
            (seen, looks)
        })
    });
    let mut versions = BTreeSet::from([md5(&content)]);
    for _ in 0..30 {
        let (new, address) = stage.offer();
        let request = replace("x1.bin", &md5(&content), &address, &new);
        stage.ask("ReplaceFileRequest", &request);
        versions.insert(md5(&new));
        content = new;
    }
    over.store(true, Ordering::Relaxed);
    for reader in readers {
        let (seen, looks) = reader
            .join()
            .expect("found one whole version at every look");
        assert!(seen.is_subset(&versions), "something that was never stored");
        println!("{looks} looks found {} versions", seen.len());
        assert!(seen.len() > 1);
    }
    stage.check(&[("x1.bin", content)], 31);
}
