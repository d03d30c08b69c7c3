//! Kills at any moment: every operation that has begun ends, and is told, once it has come back.

use std::{collections::BTreeMap, fs, path::PathBuf, time::Duration};

use super::{NOTHING, journal, resume, resuming, start};
use crate::support::{
    Random, md5, noise, number_from_environment, pause, process, process::Running, site::Site,
    whole::NO_FILES,
};

/// A client is killed this much later than it was started, at most.
const LATEST_MICROSECONDS: u64 = 400_000;

/// What commands say at the end.
const ENDS: [&str; 4] = [
    " stored on ",
    " retrieved",
    " deleted from ",
    " replaced at ",
];

fn kills() -> u64 {
    let kills = number_from_environment("PILLARBOX_TEST_KILLS", 10);
    u64::try_from(kills).unwrap()
}

struct Scene {
    site: Site,
    _hub: Running,
    pillars: [Running; 2],
    random: Random,
    /// How often a command of each name was killed.
    lives: BTreeMap<String, u64>,
    /// How often one of each name was resumed.
    resumed: BTreeMap<String, u64>,
}

impl Scene {
    fn start(seed: u64) -> Self {
        let site = Site::new(&["north", "south"]);
        let hub = site.start("hub");
        let pillars = ["north", "south"].map(|part| site.start(part));
        Self {
            site,
            _hub: hub,
            pillars,
            random: Random::new(seed),
            lives: BTreeMap::new(),
            resumed: BTreeMap::new(),
        }
    }

    /// Whether this command is to be killed once more: so often altogether, and until one was resumed.
    fn goes_on(&self, subcommand: &str) -> bool {
        let of = |counts: &BTreeMap<String, u64>| counts.get(subcommand).copied().unwrap_or(0);
        of(&self.lives) < kills() || of(&self.resumed) == 0
    }

    /// Runs a command, kills it, and resumes what it has left. Gives whether it had told its end by then, and what was
    /// told later.
    fn live_twice(&mut self, subcommand: &str, args: &[&str]) -> (bool, Option<String>) {
        let lives = self.lives.entry(subcommand.to_owned()).or_default();
        *lives += 1;
        let lives = *lives;
        let certain = lives > kills();
        assert!(lives <= kills() + 1, "no {subcommand} was resumed");
        if certain {
            // None of the kills was in the middle: without the pillars this one is.
            self.pillars.iter().for_each(Running::halt);
        }
        let told = self.live_and_die(subcommand, args, certain || lives.is_multiple_of(2));
        self.pillars.iter().for_each(Running::go_on);
        let line = self.resume();
        if line.is_some() {
            *self.resumed.entry(subcommand.to_owned()).or_default() += 1;
        }
        println!("{subcommand} {args:?}: told at once {told}, later {line:?}");
        (told, line)
    }

    /// Runs a command and kills it, as soon as it is in the journal or at some moment. Gives whether it had told its
    /// end by then.
    fn live_and_die(&mut self, subcommand: &str, args: &[&str], early: bool) -> bool {
        let mut client = start(&self.site, subcommand, args);
        if early {
            self.until_begun(&mut client);
        } else {
            pause(Duration::from_micros(
                self.random.below(LATEST_MICROSECONDS),
            ));
        }
        if !client.lives() {
            client.wait_for_success();
            return true;
        }
        client.kill();
        // It may have told it just before.
        let is_end = |line: &String| ENDS.iter().any(|end| line.contains(end));
        client.errors().iter().any(is_end) || client.output().iter().any(is_end)
    }

    /// Waits until the operation is in the journal, or over.
    fn until_begun(&self, client: &mut Running) {
        let begun = |name: &String| name != "lock" && !name.ends_with(".new");
        while !journal(&self.site).iter().any(begun) && client.lives() {
            pause(Duration::from_micros(100));
        }
    }

    /// Resumes, perhaps with a further kill, and gives what the last one told.
    fn resume(&mut self) -> Option<String> {
        if self.random.below(2) == 0 {
            let mut resuming = resuming(&self.site);
            pause(Duration::from_micros(
                self.random.below(LATEST_MICROSECONDS),
            ));
            resuming.kill();
            if let Some(told) = resuming.output().first() {
                assert!(told.ends_with(" \t COMPLETE"), "{told}");
                // Told, but maybe not settled: then it is told again.
                let again = process::succeed(&resume(&self.site, &[]));
                assert!(again.is_empty() || again.trim_end() == told, "{again}");
                return Some(told.clone());
            }
        }
        let told = process::succeed(&resume(&self.site, &[]));
        assert!(told.lines().count() <= 1, "{told}");
        let line = told.lines().next()?.to_owned();
        assert!(line.ends_with(" \t COMPLETE"), "{line}");
        Some(line)
    }

    fn assert_nothing_left(&self) {
        assert_eq!(journal(&self.site), NOTHING);
        assert_eq!(self.site.offered(), NO_FILES);
    }
}

#[test]
fn puts_end_whenever_their_client_is_killed() {
    let mut scene = Scene::start(75);
    for number in 0.. {
        if !scene.goes_on("put-file") {
            break;
        }
        let name = format!("file-{number}");
        let length = usize::try_from(scene.random.below(2_000_000)).unwrap();
        let content = noise(number, length);
        let path = scene.site.file(&name, &content);
        let (told, line) = scene.live_twice("put-file", &["-f", path.to_str().unwrap()]);
        let listed = scene.site.run("get-checksums", ["-i", &name]);
        let listed = process::stdout(&listed);
        if told || line.is_some() {
            let all = format!("2 \t{} \tAll", md5(&content));
            assert!(listed.contains(&all), "{name}: {listed}");
        } else {
            assert!(!listed.contains(&name), "nobody was told: {listed}");
        }
        scene.assert_nothing_left();
    }
}

#[test]
fn gets_end_whenever_their_client_is_killed() {
    let mut scene = Scene::start(76);
    let content = noise(77, 3_000_000);
    let path = scene.site.file("a.bin", &content);
    process::succeed(
        &scene
            .site
            .run("put-file", ["-f".as_ref(), path.as_os_str()]),
    );
    for number in 0.. {
        if !scene.goes_on("get-file") {
            break;
        }
        let copy = format!("copy-{number}");
        let (told, line) = scene.live_twice("get-file", &["-i", "a.bin", "-l", &copy]);
        if told || line.is_some() {
            assert!(fs::read(scene.site.path().join(&copy)).unwrap() == content);
        }
        scene.assert_nothing_left();
        assert_eq!(parts(&scene.site), Vec::<PathBuf>::new());
    }
}

#[test]
fn deletions_end_whenever_their_client_is_killed() {
    changes_end("delete-file", 78);
}

#[test]
fn replacements_end_whenever_their_client_is_killed() {
    changes_end("replace-file", 81);
}

fn changes_end(subcommand: &str, seed: u64) {
    let mut scene = Scene::start(seed);
    let (old, new) = (noise(79, 5000), noise(80, 500_000));
    let (old_md5, new_md5) = (md5(&old), md5(&new));
    for number in 0.. {
        if !scene.goes_on(subcommand) {
            break;
        }
        let name = format!("file-{number}");
        let place = scene.site.file(&name, &old);
        process::succeed(
            &scene
                .site
                .run("put-file", ["-f".as_ref(), place.as_os_str()]),
        );
        let replacement = scene.site.file("new", &new);
        let mut args = vec!["-i", &name, "-p", "north", "-C", &old_md5];
        let replaces = subcommand == "replace-file";
        if replaces {
            args.extend(["-f", replacement.to_str().unwrap()]);
        }
        let (told, line) = scene.live_twice(subcommand, &args);
        let there = scene
            .site
            .run("get-checksums", ["-i", &name, "-p", "north"]);
        let there = process::stdout(&there);
        let done = told || line.is_some();
        assert_eq!(there.contains(&old_md5), !done, "{there}");
        assert_eq!(there.contains(&new_md5), done && replaces, "{there}");
        scene.assert_nothing_left();
    }
}

/// What was received of a file and is none.
fn parts(site: &Site) -> Vec<PathBuf> {
    let entries = fs::read_dir(site.path()).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .filter(|path| path.extension().is_some_and(|it| it == "part"))
        .collect()
}
