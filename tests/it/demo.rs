//! `pillarbox demo`: the first thing that a newcomer runs.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Output,
};

use crate::support::{md5, noise, number_from_environment, process, site::files_below};

/// A demonstration in a temporary directory of its own.
struct Demo {
    directory: tempfile::TempDir,
}

impl Demo {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("tmp")).unwrap();
        Self { directory }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn run(&self, args: &[&str]) -> Output {
        let mut command = process::pillarbox(std::iter::once("demo").chain(args.iter().copied()));
        command.current_dir(self.directory.path());
        command.env("TMPDIR", self.path("tmp"));
        process::finish(command)
    }

    /// The demonstration with this file succeeds, proves what it says, and leaves nothing.
    fn proves(&self, name: &str, content: &[u8]) {
        fs::write(self.path(name), content).unwrap();
        let output = process::succeed(&self.run(&[name]));
        assert_told(&output, name, content);
        assert_eq!(left_in(&self.path("tmp")), Vec::<PathBuf>::new());
    }
}

fn left_in(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[track_caller]
fn assert_told(output: &str, name: &str, content: &[u8]) {
    let (size, checksum) = (content.len(), md5(content));
    let lines: Vec<&str> = output.lines().collect();
    let steps = [
        format!("put {name}, {size} bytes, into the collection books"),
        "compare the checksums that the pillars have".to_owned(),
        "the three pillars agree".to_owned(),
        "get it back from the fastest pillar".to_owned(),
        format!("verified: the {size} bytes that came back equal the original"),
    ];
    let mut rest = lines.iter();
    for step in &steps {
        assert!(
            rest.any(|line| line == step),
            "no step '{step}' in\n{output}"
        );
    }
    for pillar in ["north", "south", "west"] {
        let row = format!("    {pillar:<6} MD5 {checksum}");
        assert!(lines.contains(&row.as_str()), "no '{row}' in\n{output}");
    }
}

#[test]
fn the_readme_goes_round() {
    let readme = fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")).unwrap();
    Demo::new().proves("README.md", &readme);
}

#[test]
fn a_file_whose_name_needs_escaping_goes_round() {
    Demo::new().proves("Ærø 1%#?.tif", &noise(1, 1024));
}

#[test]
fn an_empty_file_goes_round() {
    Demo::new().proves("empty.dat", b"");
}

#[test]
fn a_large_file_goes_round() {
    let megabytes = number_from_environment("PILLARBOX_TEST_LARGE_MB", 40);
    let content = noise(2, megabytes << 20);
    Demo::new().proves("large.bin", &content);
}

#[test]
fn a_text_of_its_own_goes_round_if_none_is_given() {
    let output = process::succeed(&Demo::new().run(&[]));
    assert_told(&output, "hello.txt", b"A file goes round.\n");
}

#[test]
fn what_is_kept_is_the_whole_repository() {
    let demo = Demo::new();
    let content = noise(3, 5000);
    fs::write(demo.path("kept.bin"), &content).unwrap();
    let output = process::succeed(&demo.run(&["kept.bin", "--keep", "repository"]));
    assert_told(&output, "kept.bin", &content);
    let copies: Vec<PathBuf> = files_below(&demo.path("repository"))
        .into_iter()
        .filter(|path| path.ends_with("books/fileDir/kept.bin"))
        .collect();
    assert_eq!(copies.len(), 3, "{copies:?}");
    for copy in copies {
        assert_eq!(fs::read(&copy).unwrap(), content, "{copy:?}");
    }
    let again = demo.run(&["kept.bin", "--keep", "repository"]);
    let line = process::fail_with_one_line(&again, 1);
    assert!(line.contains("repository"), "{line}");
}

#[test]
fn an_interrupted_demonstration_leaves_nothing() {
    let demo = Demo::new();
    fs::write(demo.path("some.bin"), noise(4, 8 << 20)).unwrap();
    let mut command = process::pillarbox(["demo", "some.bin"]);
    command.current_dir(demo.directory.path());
    command.env("TMPDIR", demo.path("tmp"));
    let mut running = process::Running::spawn(command);
    running.wait_for("IDENTIFY_REQUEST_SENT");
    running.interrupt();
    assert_eq!(running.wait().code(), Some(130), "{:?}", running.errors());
    assert_eq!(left_in(&demo.path("tmp")), Vec::<PathBuf>::new());
}
