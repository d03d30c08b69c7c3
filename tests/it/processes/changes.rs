//! Replacing and deleting files at one pillar (U45).

use std::path::PathBuf;

use super::json::objects;
use crate::support::{
    process::{self, fail_with_one_line, stderr, stdout, succeed},
    site::Site,
};

const OLD: &[u8] = b"hello bitrepository\n";
const OLD_MD5: &str = "2b0442658d8c004c5628c740b6f17c59";
const OLD_SHA1: &str = "3acc1a7a612481c3d35432e9bf56ac3596dcdc8f";
const NEW: &[u8] = b"hello\n";
const NEW_MD5: &str = "b1946ac92492d2347c6235b4d2611184";
const NEW_SHA1: &str = "f572d396fae9206628714fb2ce00f72e94f2258f";
const WRONG_MD5: &str = "00000000000000000000000000000000";

/// A site whose two pillars have `hello.txt`, and its running parts.
fn site() -> (Site, Vec<process::Running>) {
    let site = Site::new(&["north", "south"]);
    let parts = ["hub", "north", "south"].map(|part| site.start(part));
    let old = site.file("hello.txt", OLD);
    site.file("new.txt", NEW);
    succeed(&site.run("put-file", ["-f".as_ref(), old.as_os_str()]));
    (site, parts.into())
}

/// Which checksum which pillars have of `hello.txt`.
fn checksums(site: &Site) -> Vec<String> {
    let output = site.run("get-checksums", ["-i", "hello.txt"]);
    let rows = stdout(&output);
    rows.lines().skip(1).map(str::to_owned).collect()
}

#[test]
fn a_file_is_replaced_at_one_pillar() {
    let (site, _parts) = site();
    let replace = |more: &[&str]| {
        let mut args = vec!["-i", "hello.txt", "-f", "new.txt", "-p", "north"];
        args.extend(more);
        site.run("replace-file", args)
    };

    let refused = replace(&["-C", WRONG_MD5]);
    let line = fail_with_one_line(&refused, 255);
    assert!(line.contains("EXISTING_FILE_CHECKSUM_FAILURE"), "{line}");
    assert_eq!(stdout(&refused), "");
    assert_eq!(
        checksums(&site),
        [format!("2 \t{OLD_MD5} \tAll \thello.txt")]
    );

    let replaced = replace(&["-C", OLD_MD5, "-r", NEW_MD5, "-R", "sha1"]);
    assert_eq!(
        succeed(&replaced),
        format!(
            "PillarId results\nnorth : \tChecksum for replaced file: {OLD_SHA1}\tChecksum for new file: {NEW_SHA1}\t\n"
        )
    );
    assert_eq!(stderr(&replaced), "hello.txt replaced at north\n");
    let mut now = checksums(&site);
    now.sort();
    assert_eq!(
        now,
        [
            format!("1 \t{OLD_MD5} \t[south] \thello.txt"),
            format!("1 \t{NEW_MD5} \t[north] \thello.txt")
        ]
    );
    succeed(&site.run("get-file", ["-i", "hello.txt", "-p", "north", "-l", "copy"]));
    assert_eq!(std::fs::read(site.path().join("copy")).unwrap(), NEW);
    assert_eq!(site.offered(), Vec::<PathBuf>::new());

    // The id is the file's name, and without -R nothing is printed.
    let back = [
        "-f",
        "hello.txt",
        "--pillar",
        "north",
        "--checksum",
        NEW_MD5,
    ];
    assert_eq!(succeed(&site.run("replace-file", back)), "");
    assert_eq!(
        checksums(&site),
        [format!("2 \t{OLD_MD5} \tAll \thello.txt")]
    );
}

#[test]
fn a_file_that_is_not_there_is_not_replaced() {
    let (site, _parts) = site();
    let args = ["-f", "new.txt", "-p", "north", "-C", OLD_MD5];
    let line = fail_with_one_line(&site.run("replace-file", args), 255);
    assert!(line.contains("the pillar has no file of this id"), "{line}");
    let rehearsed = site.run("replace-file", args.iter().chain(&["--dry-run"]));
    let line = fail_with_one_line(&rehearsed, 255);
    assert!(
        line.contains("north would refuse: FILE_NOT_FOUND_FAILURE"),
        "{line}"
    );
    assert_eq!(site.offered(), Vec::<PathBuf>::new());
}

#[test]
fn a_file_is_deleted_from_one_pillar_and_once_more() {
    let (site, _parts) = site();
    let delete = |more: &[&str]| {
        let mut args = vec!["-i", "hello.txt", "-p", "south"];
        args.extend(more);
        site.run("delete-file", args)
    };

    let refused = delete(&["-C", WRONG_MD5]);
    let line = fail_with_one_line(&refused, 255);
    assert!(line.contains("EXISTING_FILE_CHECKSUM_FAILURE"), "{line}");
    assert_eq!(
        checksums(&site),
        [format!("2 \t{OLD_MD5} \tAll \thello.txt")]
    );

    let deleted = delete(&["-C", OLD_MD5, "-R", "SHA1"]);
    assert_eq!(
        succeed(&deleted),
        format!("PillarId \t Checksum\nsouth \t {OLD_SHA1}\n")
    );
    assert_eq!(stderr(&deleted), "hello.txt deleted from south\n");
    let of_south = site.run("get-checksums", ["-i", "hello.txt", "-p", "south"]);
    assert_eq!(of_south.status.code(), Some(255));

    let again = delete(&["-C", OLD_MD5]);
    assert_eq!(succeed(&again), "");
    assert_eq!(stderr(&again), "hello.txt already absent at south\n");
    // One that never was.
    let other = ["-i", "nosuch.txt", "-p", "south", "-C", WRONG_MD5];
    let other = site.run("delete-file", other);
    assert_eq!(succeed(&other), "");
    assert_eq!(stderr(&other), "nosuch.txt already absent at south\n");
}

#[test]
fn a_dry_run_says_what_would_be_done_and_changes_nothing() {
    let (site, _parts) = site();
    let run = |subcommand: &str, args: &[&str]| {
        let mut all = vec!["-i", "hello.txt", "-p", "north", "--dry-run"];
        all.extend(args);
        site.run(subcommand, all)
    };
    let delete = run("delete-file", &["-C", OLD_MD5]);
    assert_eq!(succeed(&delete), "");
    let said = stderr(&delete);
    assert!(
        said.starts_with("would delete hello.txt from north"),
        "{said}"
    );
    let replace = run("replace-file", &["-f", "new.txt", "-C", OLD_MD5]);
    assert_eq!(succeed(&replace), "");
    let said = stderr(&replace);
    assert!(
        said.starts_with("would replace hello.txt at north"),
        "{said}"
    );
    let needless = run("replace-file", &["-f", "hello.txt", "-C", NEW_MD5]);
    succeed(&needless);
    assert!(stderr(&needless).starts_with("nothing to do"));
    for (subcommand, more) in [
        ("delete-file", &["-C", WRONG_MD5][..]),
        ("replace-file", &["-f", "new.txt", "-C", WRONG_MD5]),
    ] {
        let line = fail_with_one_line(&run(subcommand, more), 255);
        assert!(line.contains("north would refuse"), "{line}");
    }
    let absent = site.run(
        "delete-file",
        [
            "-i",
            "nosuch.txt",
            "-p",
            "north",
            "-C",
            OLD_MD5,
            "--dry-run",
        ],
    );
    succeed(&absent);
    assert!(stderr(&absent).contains("already absent"));
    assert_eq!(
        checksums(&site),
        [format!("2 \t{OLD_MD5} \tAll \thello.txt")]
    );
    assert_eq!(site.offered(), Vec::<PathBuf>::new());
}

#[test]
fn changes_for_programs() {
    let (site, _parts) = site();
    let lines = |subcommand: &str, args: &[&str], code: i32| {
        let mut all = vec!["-i", "hello.txt", "-p", "north", "--json"];
        all.extend(args);
        let output = site.run(subcommand, all);
        assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
        objects(&stdout(&output))
    };
    let replace = ["-f", "new.txt", "-R", "SHA1", "-C"];
    let with = |checksum| [&replace[..], &[checksum]].concat();
    assert_eq!(
        lines(
            "replace-file",
            &[&with(OLD_MD5)[..], &["--dry-run"]].concat(),
            0
        ),
        [
            serde_json::json!({"dry_run": true, "would": "replace", "file_id": "hello.txt", "pillar": "north",
            "checksum_type": "MD5", "existing_checksum": OLD_MD5})
        ]
    );
    assert_eq!(
        lines("replace-file", &with(OLD_MD5), 0),
        [
            serde_json::json!({"file_id": "hello.txt", "pillar": "north", "already_there": false,
            "checksum_type": "SHA1", "replaced_checksum": OLD_SHA1, "checksum": NEW_SHA1})
        ]
    );
    for dry in [&[][..], &["--dry-run"]] {
        let refused = lines("delete-file", &[&["-C", OLD_MD5][..], dry].concat(), 255);
        let [refused] = &refused[..] else {
            panic!("{refused:?}")
        };
        assert_eq!(refused["failed"], true);
        assert_eq!(refused["pillar"], "north");
        assert_eq!(refused["code"], "EXISTING_FILE_CHECKSUM_FAILURE");
        assert!(refused["text"].is_string());
    }
    assert_eq!(
        lines("delete-file", &["-C", NEW_MD5], 0),
        [
            serde_json::json!({"file_id": "hello.txt", "pillar": "north", "already_absent": false,
            "checksum_type": null, "checksum": null})
        ]
    );
    assert_eq!(
        lines("delete-file", &["-C", NEW_MD5, "--dry-run"], 0),
        [
            serde_json::json!({"dry_run": true, "would": "nothing", "file_id": "hello.txt", "pillar": "north",
            "checksum_type": "MD5", "existing_checksum": null})
        ]
    );
    assert_eq!(
        lines("delete-file", &["-C", NEW_MD5], 0)[0]["already_absent"],
        true
    );
}
