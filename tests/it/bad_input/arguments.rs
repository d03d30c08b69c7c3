//! Wrong words on the command line are found before bus or exchange hear of them (U39).

use std::{ffi::OsString, os::unix::ffi::OsStringExt as _};

use super::{Desk, OPERATION, USAGE};
use crate::support::{process, site::Site};

#[test]
fn no_command_and_unknown_words() {
    let desk = Desk::new();
    let help = "pillarbox --help";
    desk.refuses_exactly::<&str>([], &["a command is missing", help]);
    desk.refuses_exactly(["put-fiel"], &["put-fiel", "put-file", help]);
    desk.refuses_exactly(["frobnicate"], &["frobnicate", help]);
    desk.refuses_exactly(["alarms"], &["a command is missing", help]);
    desk.refuses_exactly(["alarms", "lost"], &["lost", "list"]);
    desk.refuses_exactly(["--verbos"], &["--verbos", help]);
    desk.refuses_exactly(["--log", "yaml", "demo"], &["yaml", "json"]);
    desk.refuses("put-file", &["-f", "x", "--frob"], &["--frob", help]);
    desk.refuses(
        "put-file",
        &["-f", "x", "-c", "books", "-c", "books"],
        &["--collection"],
    );
    desk.refuses("put-file", &["-f", "x", "surplus"], &["surplus", help]);
    desk.refuses("put-file", &[], &["--file", help]);
    desk.refuses("get-file", &[], &["--file-id", help]);
    desk.refuses_exactly(
        ["put-file", "-c", "books", "-f", "x"],
        &["--settings", help],
    );
    desk.refuses_exactly(["get-file-ids", "-s", "x"], &["--collection", help]);
    desk.refuses_exactly(["node"], &["--settings", help]);
    desk.refuses_exactly(["alarms", "list", "-s", "x", "--limit", "-1"], &["-1"]);
}

#[test]
fn unknown_collections_and_pillars() {
    let desk = Desk::new();
    desk.file("p7.txt", b"pillar test 7\n");
    let unknown = ["collection", "nosuch", "books"];
    desk.refuses("put-file", &["-c", "nosuch", "-f", "p7.txt"], &unknown);
    desk.refuses("get-file", &["-c", "nosuch", "-i", "p7.txt"], &unknown);
    desk.refuses("get-file-ids", &["-c", "nosuch"], &unknown);
    desk.refuses("get-checksums", &["-c", "nosuch"], &unknown);
    desk.refuses(
        "put-file",
        &["-c", "", "-f", "p7.txt"],
        &["collection", "books"],
    );
    desk.refuses(
        "put-file",
        &["-c", "Books", "-f", "p7.txt"],
        &["'Books'", "books"],
    );
    let unknown = ["pillar", "nosuch", "north, south"];
    desk.refuses("get-file", &["-i", "p7.txt", "-p", "nosuch"], &unknown);
    desk.refuses("get-file-ids", &["-p", "nosuch"], &unknown);
    desk.refuses("get-checksums", &["-p", "nosuch"], &unknown);
    desk.refuses("get-checksums", &["-i", "p7.txt", "-p", "nosuch"], &unknown);
}

#[test]
fn file_ids_that_no_archive_takes() {
    let desk = Desk::new();
    desk.file("p7.txt", b"pillar test 7\n");
    let long = "x".repeat(253);
    for id in [
        "../up", "/abs/x1", "a/../b1", "a/..", ".hidden", "", "x", "ends ", &long,
    ] {
        desk.refuses("put-file", &["-f", "p7.txt", "-i", id], &["file id"]);
        desk.refuses("get-file", &["-i", id], &["file id"]);
        desk.refuses("get-file-ids", &["-i", id], &["file id"]);
        desk.refuses("get-checksums", &["-i", id], &["file id"]);
    }
    // The default id is the file's name.
    desk.file(".hidden", b"not to be put");
    desk.refuses("put-file", &["-f", ".hidden"], &["file id", ".hidden"]);
}

#[test]
fn line_breaks_in_arguments_stay_on_one_line() {
    let desk = Desk::new();
    desk.file("p7.txt", b"pillar test 7\n");
    desk.refuses("put-file", &["-f", "p7.txt", "-i", "a\nb"], &["file id"]);
    desk.refuses(
        "put-file",
        &["-f", "p7.txt", "-c", "bo\noks"],
        &["collection"],
    );
    desk.refuses("get-file-ids", &["-p", "no\r\nrth"], &["pillar"]);
    desk.refuses("put-file", &["-f", "no\nsuch"], &["such"]);
    desk.refuses("put-file", &["-f", "p7.txt", "-C", "a\nb"], &["-C"]);
    desk.refuses("get-checksums", &["-S", "a\nb"], &["-S"]);
    desk.refuses("get-checksums", &["-R", "M\nD5"], &["-R"]);
    desk.refuses_exactly(["get-file-ids", "-c", "books", "-s", "no\nsuch"], &["such"]);
    desk.refuses_exactly(["fro\nbnicate"], &["bnicate"]);
}

#[test]
fn arguments_that_are_no_text() {
    let desk = Desk::new();
    let broken = || OsString::from_vec(b"p7\xff.txt".to_vec());
    let settings = desk.path("settings").into_os_string();
    let start = || {
        [
            OsString::from("put-file"),
            "-s".into(),
            settings.clone(),
            "-c".into(),
        ]
    };
    desk.refuses_exactly(
        start()
            .into_iter()
            .chain([broken(), "-f".into(), "x".into()]),
        &[],
    );
    let file = desk.path("work").join(broken());
    std::fs::write(&file, "named by no text").expect("can be written");
    let books = || {
        start()
            .into_iter()
            .chain(["books".into(), "-f".into(), broken()])
    };
    desk.refuses_exactly(books(), &["-i"]);
    desk.refuses_exactly(books().chain(["-i".into(), broken()]), &[]);
}

#[test]
fn checksums_that_cannot_be_ones() {
    let desk = Desk::new();
    desk.file("p7.txt", b"pillar test 7\n");
    let hex = "hex digits";
    for checksum in [
        "xyz",
        "abc",
        "",
        "0g",
        "4a37 f973",
        "0x4a37",
        "4a37f973b3c9fede0e1fb3f07b65a9",
    ] {
        desk.refuses("put-file", &["-f", "p7.txt", "-C", checksum], &["-C", hex]);
    }
    let sha1 = "2df965adcf27c664a5fdb5f5fae2ec32c6097000";
    desk.refuses(
        "put-file",
        &["-f", "p7.txt", "-C", sha1],
        &["MD5", "32", "40"],
    );
    for salt in ["abc", "zz", "ab cd", "0xab"] {
        desk.refuses("put-file", &["-f", "p7.txt", "-S", salt], &["-S", hex]);
        desk.refuses("get-checksums", &["-S", salt], &["-S", hex]);
    }
    for kind in ["CRC32", "OTHER", "", "MD-5", "HMAC_", "SHA3"] {
        desk.refuses(
            "put-file",
            &["-f", "p7.txt", "-R", kind],
            &["-R", "MD5", "HMAC_"],
        );
        desk.refuses("get-checksums", &["-R", kind], &["-R", "MD5", "HMAC_"]);
    }
}

#[test]
fn client_ids_that_make_no_address() {
    let desk = Desk::new();
    desk.file("p7.txt", b"pillar test 7\n");
    for id in ["", " ingest", "in\ngest", "in/gest", "in*gest", "north"] {
        desk.refuses(
            "put-file",
            &["-f", "p7.txt", "--client-id", id],
            &["--client-id"],
        );
    }
}

#[test]
fn an_error_that_nobody_hears_has_its_exit_code_all_the_same() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut command = process::pillarbox(["get-file-ids", "-s", "/nonexistent", "-c", "books"]);
    let status = command.stderr(writer).status().expect("the program starts");
    assert_eq!(status.code(), Some(USAGE));
}

#[test]
fn results_that_nobody_reads_to_the_end_are_no_reason_to_complain() {
    let site = Site::new(&["north"]);
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let settings = site.part("alarms");
    let list = [
        "alarms".as_ref(),
        "list".as_ref(),
        "-s".as_ref(),
        settings.as_os_str(),
    ];
    let mut command = process::pillarbox(list);
    let output = command.stdout(writer).output().expect("the program starts");
    assert_eq!(output.status.code(), Some(OPERATION));
    assert_eq!(process::stderr(&output), "");
}
