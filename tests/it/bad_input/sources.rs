//! Files that can't be put, and places where none can be laid (U11).

use std::{fs, os::unix::net::UnixListener};

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::Desk;

#[test]
fn a_missing_file() {
    let desk = Desk::new();
    desk.refuses(
        "put-file",
        &["-f", "nosuch.txt"],
        &["'nosuch.txt'", "No such file"],
    );
    desk.refuses(
        "put-file",
        &["-f", "no/such.txt"],
        &["'no/such.txt'", "No such file"],
    );
    desk.file("p7.txt", b"pillar test 7\n");
    desk.refuses(
        "put-file",
        &["-f", "p7.txt/x", "-i", "x1"],
        &["'p7.txt/x'", "Not a directory"],
    );
    desk.refuses("put-file", &["-f", ""], &[]);
    desk.refuses("put-file", &["-f", "..", "-i", "up"], &["directory"]);
    desk.refuses("put-file", &["-f", "/"], &[]);
    let long = "x".repeat(300);
    desk.refuses("put-file", &["-f", &long, "-i", "long"], &["too long"]);
}

#[test]
fn a_directory() {
    let desk = Desk::new();
    let directory = desk.path("work").join("dir");
    fs::create_dir(&directory).expect("can be made");
    fs::write(directory.join("f.txt"), "one file").expect("can be written");
    desk.refuses("put-file", &["-f", "dir"], &["'dir'", "directory"]);
    desk.refuses("put-file", &["-f", "dir/"], &["directory"]);
    desk.refuses("put-file", &["-f", ".", "-i", "here"], &["directory"]);
    std::os::unix::fs::symlink("dir", desk.path("work").join("link")).expect("can be made");
    desk.refuses("put-file", &["-f", "link"], &["'link'", "directory"]);
}

#[test]
fn devices_pipes_and_sockets() {
    let desk = Desk::new();
    for device in ["/dev/null", "/dev/zero", "/dev/full"] {
        desk.refuses(
            "put-file",
            &["-f", device, "-i", "device"],
            &[device, "regular file"],
        );
    }
    let fifo = desk.path("work").join("fifo");
    mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("can be made");
    // Nobody writes into it: whoever opens it waits for ever.
    desk.refuses("put-file", &["-f", "fifo"], &["'fifo'", "regular file"]);
    let _socket = UnixListener::bind(desk.path("work").join("socket")).expect("can be made");
    desk.refuses("put-file", &["-f", "socket"], &["'socket'", "regular file"]);
}

#[test]
fn links_that_lead_nowhere() {
    let desk = Desk::new();
    let link = |to: &str, name: &str| {
        std::os::unix::fs::symlink(to, desk.path("work").join(name)).expect("can be made");
    };
    link("loop", "loop");
    link("nosuch", "dangling");
    desk.refuses("put-file", &["-f", "loop"], &["'loop'", "symbolic links"]);
    desk.refuses(
        "put-file",
        &["-f", "dangling"],
        &["'dangling'", "No such file"],
    );
}

#[test]
fn places_where_no_file_can_be_laid() {
    let desk = Desk::new();
    let get = |location: &str, parts: &[&str]| {
        desk.refuses("get-file", &["-i", "p7.txt", "-l", location], parts);
    };
    get("nosuch/copy.txt", &["no directory 'nosuch'"]);
    get("nosuch/", &["nosuch"]);
    desk.file("plain", b"no directory");
    get("plain/copy.txt", &["plain", "directory"]);
    get("/proc/nosuch/copy.txt", &["/proc/nosuch"]);
    fs::create_dir(desk.path("work").join("p7.txt")).expect("can be made");
    get(".", &["p7.txt", "directory"]);
    desk.refuses("get-file", &["-i", "p7.txt", "-l", ""], &[]);
}
