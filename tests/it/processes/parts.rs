//! Parts of files: `get-file --part`.

use std::{fs, path::PathBuf};

use serde_json::json;

use super::json::objects;
use crate::support::{
    process::{fail_with_one_line, stderr, stdout, succeed},
    site::Site,
};

#[test]
fn of_a_file_exactly_the_bytes_of_a_part_are_fetched() {
    let site = Site::new(&["north", "south"]);
    let _parts = ["hub", "north", "south"].map(|part| site.start(part));
    let content: Vec<u8> = (0..200_000_u32).flat_map(u32::to_le_bytes).collect();
    let path = site.file("numbers.bin", &content);
    succeed(&site.run("put-file", ["-f".as_ref(), path.as_os_str()]));
    let copy = site.path().join("copy");
    let largest = u64::MAX;
    for (part, bytes) in [
        ("0:1".to_owned(), 0..1),
        ("300000:70000".to_owned(), 300_000..370_000),
        ("799999:1".to_owned(), 799_999..800_000),
        ("0:800000".to_owned(), 0..800_000),
        // A part ends with the file at the latest.
        (format!("799990:{largest}"), 799_990..800_000),
    ] {
        let get = site.run(
            "get-file",
            ["-i", "numbers.bin", "-l", "copy", "--part", &part],
        );
        assert_eq!(succeed(&get), "numbers.bin retrieved\n");
        let said = stderr(&get);
        assert!(said.contains("compared by its length only"), "{said}");
        assert_eq!(fs::read(&copy).unwrap(), content[bytes], "{part}");
    }
    let args = [
        "-i",
        "numbers.bin",
        "-p",
        "south",
        "-l",
        "copy",
        "--part",
        "8:4",
        "--json",
    ];
    let told = objects(&succeed(&site.run("get-file", args)));
    assert_eq!(
        told,
        [
            json!({"file_id": "numbers.bin", "pillar": "south", "path": "copy", "offset": 8, "size": 4,
            "checksum_type": null, "checksum": null})
        ]
    );
    fs::remove_file(&copy).unwrap();
    for beyond in ["800000:1".to_owned(), format!("{largest}:1")] {
        let get = site.run(
            "get-file",
            ["-i", "numbers.bin", "-l", "copy", "--part", &beyond],
        );
        let line = fail_with_one_line(&get, 255);
        assert!(line.contains("800000"), "{line}");
        assert_eq!(stdout(&get), "");
    }
    assert!(!copy.exists());
    assert_eq!(site.offered(), Vec::<PathBuf>::new());
}
