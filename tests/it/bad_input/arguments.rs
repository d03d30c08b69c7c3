//! Wrong words on the command line are found before bus or exchange hear of them (U39).

use std::{ffi::OsString, os::unix::ffi::OsStringExt as _};

use super::{Desk, USAGE};
use crate::support::process;

#[test]
fn no_command_and_unknown_words() {
    let desk = Desk::new();
    let help = "pillarbox --help";
    desk.refuses_exactly::<&str>([], &["a command is missing", help]);
    desk.refuses_exactly(["put-fiel"], &["put-fiel", "put-file", help]);
    desk.refuses_exactly(["frobnicate"], &["frobnicate", help]);
    desk.refuses_exactly(["alarms"], &["a command is missing", help]);
    desk.refuses_exactly(["alarms", "lost"], &["lost", "list"]);
    desk.refuses_exactly(["bus"], &["a command is missing", help]);
    desk.refuses_exactly(["bus", "msg"], &["a command is missing", help]);
    desk.refuses_exactly(["bus", "queue", "list"], &["--settings", help]);
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

/// Each is refused for what it says, before anything is asked.
#[test]
fn words_of_commands_that_change_files() {
    let desk = Desk::new();
    desk.file("p7.txt", b"pillar test 7\n");
    let help = "--help";
    let delete = |args: &str, parts: &[&str]| desk.refuses("delete-file", &words(args), parts);
    let replace = |args: &str, parts: &[&str]| desk.refuses("replace-file", &words(args), parts);
    let put = |args: &str, parts: &[&str]| desk.refuses("put-file", &words(args), parts);
    for missing in [
        format!("-p north -C {MD5}"),
        format!("-i p7.txt -C {MD5}"),
        "-i p7.txt -p north".to_owned(),
    ] {
        delete(&missing, &["required", help]);
    }
    delete(
        &format!("-i p7.txt -p nosuch -C {MD5}"),
        &["nosuch", "north, south"],
    );
    delete(&format!("-i ../up -p north -C {MD5}"), &["file id"]);
    delete(
        &format!("-i p7.txt -p north -C {MD5} -c nosuch"),
        &["nosuch", "books"],
    );
    delete(
        &format!("-i p7.txt -p north -C {MD5} -f p7.txt"),
        &["-f", help],
    );
    delete(
        &format!("-i p7.txt -p north -C {MD5} -R CRC32"),
        &["-R", "MD5"],
    );
    delete(
        &format!("-i p7.txt -p north -C {MD5} -R MD5 -S abc"),
        &["-S", "hex digits"],
    );
    for checksum in ["xyz", "abc", "4a37f973"] {
        delete(
            &format!("-i p7.txt -p north -C {checksum}"),
            &["-C", "hex digits"],
        );
        replace(
            &format!("-f p7.txt -p north -C {checksum}"),
            &["-C", "hex digits"],
        );
        replace(
            &format!("-f p7.txt -p north -r {checksum}"),
            &["-r", "hex digits"],
        );
    }
    replace(&format!("-f p7.txt -C {MD5}"), &["--pillar", help]);
    replace(&format!("-p north -C {MD5}"), &["--file", "--url", help]);
    replace(
        &format!("-f p7.txt -p nosuch -C {MD5}"),
        &["nosuch", "north, south"],
    );
    replace(
        &format!("-f nosuch.txt -p north -C {MD5}"),
        &["'nosuch.txt'", "No such file"],
    );
    replace(
        &format!("-f p7.txt -i a/../b -p north -C {MD5}"),
        &["file id"],
    );
    put("-f p7.txt --retries -1", &["-1", "--retries", "invalid"]);
    put(
        &format!("-f p7.txt -C {OTHER_MD5}"),
        &["-C", "p7.txt", MD5, OTHER_MD5],
    );
    put(
        &format!("-f p7.txt -C {OTHER_MD5} -i other.txt --json"),
        &["-C", "p7.txt", MD5, OTHER_MD5],
    );
    replace(
        &format!("-f p7.txt -p north -r {OTHER_MD5} -C {MD5}"),
        &["-r", "p7.txt", MD5, OTHER_MD5],
    );
    put("-f p7.txt --retries many", &["many", help]);
    put("-f p7.txt --dry-run", &["--dry-run", help]);
}

#[test]
fn the_checksum_of_what_is_to_go_is_needed_where_the_settings_say_so() {
    let desk = Desk::new();
    desk.file("p7.txt", b"pillar test 7\n");
    let strict = desk.repository().replace(
        "\"checksum-for-new-file\"",
        "\"checksum-for-new-file\", \"checksum-for-destructive\"",
    );
    desk.write("repository.toml", &strict);
    desk.refuses("replace-file", &["-f", "p7.txt", "-p", "north"], &["-C"]);
}

#[test]
fn addresses_that_no_file_can_be_fetched_from() {
    let desk = Desk::new();
    let offered = desk.exchange.local_addr().expect("bound");
    let good = format!("http://{offered}/3f2504e0-4f89-41d3-9a0c-0305e82c3301/x.txt");
    let put = |url: &str, more: &str, parts: &[&str]| {
        let args = [&["-u", url][..], &words(more)].concat();
        desk.refuses("put-file", &args, parts);
        let args = [&args[..], &["-p", "north", "-r", MD5]].concat();
        desk.refuses("replace-file", &args, parts);
    };
    let rest = format!("-i x.txt -C {MD5}");
    put(&good, &format!("-C {MD5}"), &["-u", "-i"]);
    put(&good, &format!("{rest} -f p7.txt"), &["--file", "--url"]);
    put("ftp://127.0.0.1/x.txt", &rest, &["-u", "ftp"]);
    put("x.txt", &rest, &["-u", "x.txt"]);
    put("", &rest, &["-u"]);
    put(
        "http://elsewhere.example/x.txt",
        &rest,
        &["-u", "elsewhere.example", "[exchange]"],
    );
    put("file:///etc/passwd", &rest, &["-u", "/etc/passwd"]);
    // The new file's checksum is for the pillars to compare: nobody else reads the file.
    let put = ["-u", &good, "-i", "x.txt"];
    desk.refuses("put-file", &put, &["-u", "-C"]);
    let replace = [&put[..], &["-p", "north", "-C", MD5]].concat();
    desk.refuses("replace-file", &replace, &["-u", "-r"]);
}

#[test]
fn u22_dates_that_there_are_not_and_dates_of_no_zone() {
    let desk = Desk::new();
    for option in ["--min-time", "--max-time"] {
        for time in [
            "2025-13-01",
            "2025-02-30",
            "2025-00-10T00:00:00Z",
            "2025-13-01T00:00:00Z",
            "2025-01-00T00:00:00Z",
            "2025-01-32T00:00:00Z",
            "2025-02-29T00:00:00Z",
            "2025-02-30T00:00:00Z",
            "2025-02-30T00:00:00+01:00",
            "2025-04-31T00:00:00Z",
            "2025-01-31T25:00:00Z",
            "2025-01-31",
            "2025-01-31T23:59:59",
            "yesterday",
            "0",
        ] {
            let parts = [option, time, "offset from UTC"];
            desk.refuses("get-audit-trails", &[option, time], &parts);
        }
    }
}

#[test]
fn words_of_commands_that_ask_for_reports() {
    let desk = Desk::new();
    let audit = |args: &str, parts: &[&str]| desk.refuses("get-audit-trails", &words(args), parts);
    for option in ["--first", "--last", "--max-page-size"] {
        for number in ["0", "-1", "1.5", "18446744073709551616", "many"] {
            audit(&format!("{option}={number}"), &[option, number, "--help"]);
            audit(&format!("{option} {number}"), &[option, number, "--help"]);
        }
    }
    audit("--first 3 --last 2", &["3", "2", "after"]);
    audit(
        "--min-time 2025-02-01T00:00:00Z --max-time 2025-01-31T00:00:00Z",
        &["2025-02-01", "after"],
    );
    audit("-p nosuch", &["nosuch", "north, south"]);
    audit("-p north -p nosuch", &["nosuch"]);
    audit("-i ../up", &["file id"]);
    audit("-c nosuch", &["nosuch", "books"]);
    let settings = desk.path("settings");
    let settings = settings.to_str().expect("UTF-8");
    let status = |args: &str, parts: &[&str]| {
        let args = [&["get-status", "-s", settings][..], &words(args)].concat();
        desk.refuses_exactly(args, parts);
    };
    status("-p nosuch", &["nosuch", "north"]);
    status("-c books", &["-c", "--help"]);
    status("-i x.txt", &["-i", "--help"]);
}

#[test]
fn parts_that_no_file_has() {
    let desk = Desk::new();
    for part in [
        "",
        ":",
        "1",
        "1:",
        ":1",
        "0:0",
        "7:0",
        "-1:1",
        "+1:1",
        "1:-1",
        "1:2:3",
        "0x1:2",
        "1k:2",
        "1.5:2",
        " 1:2",
        "1 :2",
        "18446744073709551616:1",
        "0:18446744073709551616",
        "0-9",
        "a:b",
    ] {
        let attached = format!("--part={part}");
        for words in [&["--part", part][..], &[&attached]] {
            let args = [&["-i", "p7.txt"], words].concat();
            desk.refuses("get-file", &args, &["--part", "byte"]);
        }
    }
    desk.refuses("get-file", &["-i", "p7.txt", "--part"], &["--part"]);
}

/// Words as a shell splits them.
fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

const MD5: &str = "4a37f973b3c9fede0e1fb3f07b65a93b";
const OTHER_MD5: &str = "4a37f973b3c9fede0e1fb3f07b65a93c";

#[test]
fn alarms_of_a_collection_that_there_is_not() {
    let desk = Desk::new();
    desk.write(
        "node.toml",
        "data = \"var\"\n[alarms]\nid = \"alarm-service\"\n",
    );
    let settings = desk.path("settings");
    let list = [
        "alarms",
        "list",
        "-s",
        settings.to_str().expect("UTF-8"),
        "-c",
    ];
    let nope = list.iter().chain(&["nope"]);
    desk.refuses_exactly(nope, &["'nope' is unknown", "books"]);
    let known = process::finish(desk.command(list.iter().chain(&["books"])));
    process::succeed(&known);
}

#[test]
fn client_ids_that_make_no_address() {
    let desk = Desk::new();
    desk.file("p7.txt", b"pillar test 7\n");
    let long = "i".repeat(201);
    for id in [
        "", " ingest", "in\ngest", "in/gest", "in*gest", "north", &long,
    ] {
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
