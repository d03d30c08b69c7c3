//! `--json`: one object per line on standard output, with names that never change.

use serde_json::{Value, json};

use crate::support::{
    process::{fail_with_one_line, stderr, stdout, succeed},
    site::Site,
};

const MD5: &str = "2b0442658d8c004c5628c740b6f17c59";

/// Every line of standard output, each of which is an object.
#[track_caller]
pub(crate) fn objects(text: &str) -> Vec<Value> {
    assert!(text.is_empty() || text.ends_with('\n'), "{text:?}");
    let object = |line: &str| -> Value {
        let value: Value = serde_json::from_str(line).expect("JSON on each line");
        assert!(value.is_object(), "{line}");
        value
    };
    text.lines().map(object).collect()
}

#[test]
fn results_for_programs() {
    let site = Site::new(&["north", "south"]);
    let _parts = ["hub", "north", "south"].map(|part| site.start(part));
    site.file("hello.txt", b"hello bitrepository\n");
    let lines = |subcommand: &str, args: &[&str]| {
        let args = args.iter().chain(&["--json"]);
        let mut lines = objects(&succeed(&site.run(subcommand, args)));
        lines.sort_by_key(|line| line["pillar"].as_str().map(str::to_owned));
        lines
    };
    let stored = |pillar, already| {
        json!({"file_id": "hello.txt", "pillar": pillar, "already_there": already,
            "checksum_type": "MD5", "checksum": MD5})
    };
    for already in [false, true] {
        assert_eq!(
            lines("put-file", &["-f", "hello.txt"]),
            [stored("north", already), stored("south", already)]
        );
    }
    assert_eq!(
        lines("get-file-ids", &[]),
        [json!({"file_id": "hello.txt", "count": 2, "sizes": {"north": 20, "south": 20}})]
    );
    for args in [&[][..], &["-i", "hello.txt"]] {
        assert_eq!(
            lines("get-checksums", args),
            [json!({"file_id": "hello.txt", "count": 2, "agreed": true,
                "checksums": {"north": MD5, "south": MD5}})]
        );
    }
    assert_eq!(
        lines(
            "get-file",
            &["-i", "hello.txt", "-p", "north", "-l", "copy"]
        ),
        [
            json!({"file_id": "hello.txt", "pillar": "north", "path": "copy", "offset": 0, "size": 20,
            "checksum_type": "MD5", "checksum": MD5})
        ]
    );
}

#[test]
fn failures_for_programs() {
    let site = Site::with_timeouts(&["north", "south"], "3s", "20s");
    let _parts = ["hub", "north"].map(|part| site.start(part));
    let path = site.file("hello.txt", b"hello bitrepository\n");
    let path = path.to_str().unwrap();
    let failed = |subcommand: &str, args: &[&str]| {
        let output = site.run(subcommand, args.iter().chain(&["--json"]));
        fail_with_one_line(&output, 255);
        objects(&stdout(&output))
    };
    // The other pillar is away.
    let put = failed("put-file", &["-f", path]);
    let [stored, silent] = &put[..] else {
        panic!("{put:?}")
    };
    assert_eq!(
        (&stored["pillar"], &stored["checksum"]),
        (&json!("north"), &json!(MD5))
    );
    assert_eq!(silent["failed"], true);
    assert_eq!(silent["pillar"], "south");
    assert_eq!(silent["code"], Value::Null);
    assert!(silent["text"].is_string());
    let missing = failed("get-file-ids", &["-i", "nosuch.txt", "-p", "north"]);
    let [missing] = &missing[..] else {
        panic!("{missing:?}")
    };
    assert_eq!(missing["code"], "FILE_NOT_FOUND_FAILURE");
    let get = failed("get-file", &["-i", "nosuch.txt", "-l", "copy"]);
    assert!(get.iter().all(|line| line["failed"] == true), "{get:?}");
    assert!(!get.is_empty());
}

#[test]
fn what_is_wrong_before_anything_is_asked_is_one_line_for_people() {
    let site = Site::new(&["north"]);
    let output = site.run("get-file-ids", ["-p", "nosuch", "--json"]);
    fail_with_one_line(&output, 1);
    assert_eq!(stdout(&output), "", "{}", stderr(&output));
}
