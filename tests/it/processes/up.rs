//! `pillarbox up`: a repository to try things with.

use std::{fs, path::PathBuf, process::Command};

use crate::support::{process, process::Running, site::Site};

#[test]
fn what_it_tells_to_try_works_and_nothing_is_left_behind() {
    let directory = tempfile::tempdir().unwrap();
    let temporary = directory.path().join("tmp");
    fs::create_dir(&temporary).unwrap();
    let mut command = process::pillarbox(["up"]);
    command.env("TMPDIR", &temporary);
    let mut up = Running::spawn(command);
    let lines = up.lines_until("ready");
    fs::write(directory.path().join("hello.txt"), "hello\n").unwrap();

    let commands = lines.iter().filter(|line| line.starts_with("  "));
    let outputs: Vec<String> = commands
        .map(|line| {
            let line = line
                .replace("FILE", "hello.txt")
                .replace("COPY", "copy.txt");
            let mut shell = Command::new("sh");
            shell.args(["-c", &line]).current_dir(directory.path());
            process::succeed(&process::finish(shell))
        })
        .collect();
    let expected = [
        "",
        "Count: \tSize: \tFileID:\n3 \t6 \thello.txt\n",
        "Checksum: \tCount: \tFileID:\nb1946ac92492d2347c6235b4d2611184 \t3 \thello.txt\n",
        "hello.txt retrieved\n",
        "Time: \tCount: \tRaiser: \tCode: \tCollection: \tFileID: \tText:\n",
    ];
    assert_eq!(outputs, expected);
    let copy = fs::read_to_string(directory.path().join("copy.txt")).unwrap();
    assert_eq!(copy, "hello\n");

    up.interrupt();
    up.wait_for_success();
    let left: Vec<PathBuf> = fs::read_dir(&temporary)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(left, Vec::<PathBuf>::new());
}

#[test]
fn what_was_stored_is_there_again() {
    let site = Site::new(&["north", "south", "west"]);
    let directory = site.all_in_one();
    let hello = site.file("hello.txt", b"hello\n");
    let mut up = Running::up(&directory);
    process::succeed(&site.run("put-file", ["-f".as_ref(), hello.as_os_str()]));
    up.terminate();
    up.wait_for_success();

    let _up = Running::up(&directory);
    let listing = process::succeed(&site.run("get-file-ids", ["-i", "hello.txt"]));
    assert_eq!(listing, "Count: \tSize: \tFileID:\n3 \t6 \thello.txt\n");
}
