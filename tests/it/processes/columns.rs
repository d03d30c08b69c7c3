//! What the client commands print: the columns that users of the Java clients parse.

use std::fs;

use crate::support::{process, site::Site};

/// 20 bytes, of which the Java system has printed the checksums below.
const CONTENT: &[u8] = b"hello bitrepository\n";
const MD5: &str = "2b0442658d8c004c5628c740b6f17c59";
const SHA256: &str = "fc9a389f752b62ab25321a662bdb364d6f243e5b04174d523eb9e17e157db462";
/// With the salt 0123abcd.
const HMAC_SHA256: &str = "c2f892a1cdd28ac97b80b645230a9aa20f9a61d7e286bb2aa9b1f5a27cec564e";
/// With the salt abcd, by OpenSSL.
const HMAC_SHA256_ABCD: &str = "461c92f824679e5989783da221cd068b12e1ccab4d015e46283185d3d030a781";
/// Of nothing, with the salt abcd.
const HMAC_MD5_OF_NOTHING: &str = "e260f576e1a6d28b659fba8fa8c7094e";

#[test]
fn put_get_list_and_checksums_between_separate_processes() {
    let site = Site::new(&["north", "south", "west"]);
    let _hub = site.start("hub");
    let _parts = ["north", "south", "west", "alarms"].map(|part| site.start(part));
    let hello = site.file("hello.txt", CONTENT);
    let hello = hello.to_str().unwrap();
    let says = |subcommand: &str, args: &[&str]| {
        let output = site.run(subcommand, args);
        process::succeed(&output)
    };

    assert_eq!(says("put-file", &["-f", hello]), "");
    assert_eq!(
        says("put-file", &["-f", hello, "-i", "dir/b.txt", "-R", "MD5"]),
        ""
    );
    let table = says(
        "put-file",
        &[
            "-f",
            hello,
            "-i",
            "c.txt",
            "-R",
            "HMAC_SHA256",
            "-S",
            "0123abcd",
        ],
    );
    assert_put_table(&table, "HMAC_SHA256", HMAC_SHA256, " \t*");
    let again = says("put-file", &["-f", hello, "-i", "c.txt", "-R", "SHA256"]);
    assert_put_table(&again, "MD5", MD5, "");

    assert_eq!(
        says("get-file-ids", &["-i", "hello.txt"]),
        "Count: \tSize: \tFileID:\n3 \t20 \thello.txt\n"
    );
    assert_rows(
        &says("get-file-ids", &[]),
        "Count: \tSize: \tFileID:",
        &["3 \t20 \tc.txt", "3 \t20 \tdir/b.txt", "3 \t20 \thello.txt"],
    );
    assert_rows(
        &says("get-checksums", &[]),
        "Checksum: \tCount: \tFileID:",
        &["c.txt", "dir/b.txt", "hello.txt"].map(|id| format!("{MD5} \t3 \t{id}")),
    );
    let heading = "Count: \tChecksum: \tPillars: \tFileID: \n";
    assert_eq!(
        says("get-checksums", &["-i", "hello.txt"]),
        format!("{heading}3 \t{MD5} \tAll \thello.txt\n")
    );
    assert_eq!(
        says("get-checksums", &["-i", "hello.txt", "-R", "SHA256"]),
        format!("{heading}3 \t{SHA256} \tAll \thello.txt\n")
    );
    assert_eq!(
        says(
            "get-checksums",
            &["-i", "hello.txt", "-R", "HMAC_SHA256", "-S", "abcd"]
        ),
        format!("{heading}3 \t{HMAC_SHA256_ABCD} \tAll \thello.txt\n")
    );

    assert_eq!(
        says("get-file", &["-i", "dir/b.txt", "-l", "copy"]),
        "dir/b.txt retrieved\n"
    );
    assert_eq!(fs::read(site.path().join("copy")).unwrap(), CONTENT);
    for pillar in ["north", "south", "west"] {
        let target = format!("from-{pillar}");
        says(
            "get-file",
            &["-i", "hello.txt", "-p", pillar, "-l", &target],
        );
        assert_eq!(fs::read(site.path().join(target)).unwrap(), CONTENT);
    }
    assert_eq!(site.offered(), Vec::<std::path::PathBuf>::new());
    assert_eq!(site.alarms_list(&["--json"]), "");
}

#[test]
fn an_empty_file_is_stored_listed_and_summed() {
    let site = Site::new(&["north"]);
    let _parts = ["hub", "north"].map(|part| site.start(part));
    let empty = site.file("empty.dat", b"");
    process::succeed(&site.run("put-file", ["-f".as_ref(), empty.as_os_str()]));
    assert_eq!(
        process::succeed(&site.run("get-file-ids", ["-i", "empty.dat"])),
        "Count: \tSize: \tFileID:\n1 \t0 \tempty.dat\n"
    );
    let sums = site.run(
        "get-checksums",
        ["-i", "empty.dat", "-R", "HMAC_MD5", "-S", "ABCD"],
    );
    assert_eq!(
        process::succeed(&sums),
        format!(
            "Count: \tChecksum: \tPillars: \tFileID: \n1 \t{HMAC_MD5_OF_NOTHING} \tAll \tempty.dat\n"
        )
    );
    process::succeed(&site.run("get-file", ["-i", "empty.dat", "-l", "copy"]));
    assert_eq!(fs::read(site.path().join("copy")).unwrap(), b"");
}

/// As every id, path or part may be given.
#[test]
fn ids_and_files_may_begin_with_a_dash() {
    let site = Site::new(&["north"]);
    let _parts = ["hub", "north"].map(|part| site.start(part));
    site.file("-dash.txt", CONTENT);
    let says = |subcommand: &str, args: &[&str]| process::succeed(&site.run(subcommand, args));
    says("put-file", &["-f", "-dash.txt"]);
    says("put-file", &["--file", "-dash.txt", "--file-id", "--a.txt"]);
    let ids = says("get-file-ids", &["-i", "-dash.txt"]);
    assert!(ids.ends_with("1 \t20 \t-dash.txt\n"), "{ids}");
    says("get-checksums", &["-i", "--a.txt"]);
    says("get-file", &["-i", "-dash.txt", "-l", "-copy"]);
    assert_eq!(fs::read(site.path().join("-copy")).unwrap(), CONTENT);
    says("get-audit-trails", &["-i", "-dash.txt"]);
    says(
        "delete-file",
        &["-i", "-dash.txt", "-p", "north", "-C", MD5],
    );
}

#[test]
fn who_answers_with_another_checksum_than_asked_for_is_told_of() {
    let site = Site::new(&["north", "south"]);
    let _parts = ["hub", "north", "south"].map(|part| site.start(part));
    let hello = site.file("hello.txt", CONTENT);
    let put = |more: &[&str]| {
        let mut args = vec!["-f", hello.to_str().unwrap()];
        args.extend(more);
        let output = site.run("put-file", args);
        process::succeed(&output);
        process::stderr(&output)
    };
    assert_eq!(put(&["-R", "SHA256"]), "hello.txt stored on 2 pillars\n");
    let there = "hello.txt was there already, on 2 pillars\n";
    for more in [&["-R", "SHA256"][..], &["-R", "SHA256", "--json"]] {
        let said = put(more);
        let (other, rest) = said.split_once('\n').unwrap();
        assert!(
            other.starts_with("MD5 instead of SHA256 told by ")
                && ["north", "south"]
                    .iter()
                    .all(|pillar| other.contains(pillar)),
            "{other}"
        );
        assert_eq!(rest, there);
    }
    for more in [&[][..], &["-R", "MD5"], &["--json"]] {
        assert_eq!(put(more), there, "{more:?}");
    }
}

#[test]
fn what_nobody_has_is_a_failure_under_the_usual_heading() {
    let site = Site::new(&["north"]);
    let _parts = ["hub", "north"].map(|part| site.start(part));
    let sums = site.run("get-checksums", ["-i", "nosuch.txt"]);
    assert_eq!(sums.status.code(), Some(255), "{}", process::stderr(&sums));
    assert_eq!(
        process::stdout(&sums),
        "Count: \tChecksum: \tPillars: \tFileID: \n"
    );
    let ids = site.run("get-file-ids", ["-i", "nosuch.txt"]);
    assert_eq!(ids.status.code(), Some(255), "{}", process::stderr(&ids));
    assert_eq!(process::stdout(&ids), "Count: \tSize: \tFileID:\n");
    let get = site.run("get-file", ["-i", "nosuch.txt", "-l", "copy"]);
    let line = process::fail_with_one_line(&get, 255);
    assert!(
        line.contains("GET_FILE for file nosuch.txt: FAILED"),
        "{line}"
    );
    assert!(!site.path().join("copy").exists());
}

/// One row per pillar, in the order in which they answered.
#[track_caller]
fn assert_put_table(table: &str, checksum_type: &str, checksum: &str, mark: &str) {
    assert_rows(
        table,
        "PillarId \t Alg \t Checksum",
        &["north", "south", "west"]
            .map(|pillar| format!("{pillar} \t {checksum_type} \t {checksum}{mark}")),
    );
}

/// This heading, then these rows in whatever order.
#[track_caller]
fn assert_rows<S: AsRef<str>>(table: &str, heading: &str, rows: &[S]) {
    assert!(table.ends_with('\n'), "{table:?}");
    let mut lines = table.lines();
    assert_eq!(lines.next(), Some(heading));
    let mut found: Vec<&str> = lines.collect();
    found.sort_unstable();
    let mut expected: Vec<&str> = rows.iter().map(AsRef::as_ref).collect();
    expected.sort_unstable();
    assert_eq!(found, expected);
}
