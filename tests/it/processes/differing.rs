//! Files that not all pillars have, or not the same: who has what is told, and who has not.

use serde_json::{Value, json};

use super::json::objects;
use crate::support::{
    process::{Running, fail_with_one_line, stderr, stdout, succeed},
    site::Site,
};

const A_MD5: &str = "60b725f10c9c85c70d97880dfe8191b3";
const B_MD5: &str = "3b5d5c3712955042212316173ccf37be";

/// Three pillars: `a.txt` is at all but west, `b.txt` is another file at south, `c.txt` is everywhere.
fn site() -> (Site, Vec<Running>) {
    let site = Site::new(&["north", "south", "west"]);
    let parts = ["hub", "north", "south", "west"].map(|part| site.start(part));
    for (name, content) in [("a.txt", "a\n"), ("b.txt", "b\n"), ("c.txt", "c\n")] {
        site.file(name, content.as_bytes());
        succeed(&site.run("put-file", ["-f", name]));
    }
    succeed(&site.run("delete-file", ["-i", "a.txt", "-p", "west", "-C", A_MD5]));
    let replace = ["-i", "b.txt", "-p", "south", "-f", "a.txt", "-C", B_MD5];
    succeed(&site.run("replace-file", replace));
    (site, parts.into())
}

#[test]
fn a_pillar_without_the_file_is_named_and_the_others_are_not_all() {
    let (site, _parts) = site();
    let sums = site.run("get-checksums", ["-i", "a.txt"]);
    let line = fail_with_one_line(&sums, 255);
    let cause = "west: FILE_NOT_FOUND_FAILURE, the pillar has no file of this id";
    assert!(line.contains(cause), "{line}");
    assert!(!line.contains("north") && !line.contains("south"), "{line}");
    assert_eq!(
        stdout(&sums),
        format!("Count: \tChecksum: \tPillars: \tFileID: \n2 \t{A_MD5} \t[north, south] \ta.txt\n")
    );
    let sums = site.run("get-checksums", ["-i", "a.txt", "--json"]);
    let line = fail_with_one_line(&sums, 255);
    assert!(line.contains(cause), "{line}");
    let [listed, failed] = &objects(&stdout(&sums))[..] else {
        panic!("{}", stdout(&sums))
    };
    assert_eq!(
        *listed,
        json!({"file_id": "a.txt", "count": 2, "agreed": false,
            "checksums": {"north": A_MD5, "south": A_MD5}})
    );
    assert_eq!(
        (&failed["failed"], &failed["pillar"]),
        (&json!(true), &json!("west"))
    );
    // Nobody else was asked.
    let north = succeed(&site.run("get-checksums", ["-i", "a.txt", "-p", "north"]));
    assert!(
        north.ends_with(&format!("1 \t{A_MD5} \tAll \ta.txt\n")),
        "{north}"
    );

    let replace = ["-i", "a.txt", "-p", "west", "-f", "b.txt", "-C", A_MD5];
    for (subcommand, args) in [
        ("get-file-ids", &["-i", "a.txt"][..]),
        ("get-file", &["-i", "a.txt", "-p", "west", "-l", "copy"]),
        ("replace-file", &replace),
    ] {
        let line = fail_with_one_line(&site.run(subcommand, args), 255);
        assert!(line.contains("FAILED: ") && !line.contains(": ,"), "{line}");
        assert!(line.contains(cause), "{line}");
    }
}

#[test]
fn every_pillar_that_fails_is_named() {
    let (site, _parts) = site();
    for subcommand in ["get-file", "get-file-ids", "get-checksums"] {
        let line = fail_with_one_line(&site.run(subcommand, ["-i", "nosuch.txt"]), 255);
        for pillar in ["north", "south", "west"] {
            let cause = format!("{pillar}: FILE_NOT_FOUND_FAILURE");
            assert!(line.contains(&cause), "{line}");
        }
    }
    // Nowhere is it the same as here.
    let put = site.run("put-file", ["-i", "c.txt", "-f", "a.txt"]);
    let line = fail_with_one_line(&put, 255);
    for pillar in ["north", "south", "west"] {
        let cause =
            format!("{pillar}: DUPLICATE_FILE_FAILURE, a different file with this id exists");
        assert!(line.contains(&cause), "{line}");
    }
    let put = site.run("put-file", ["-i", "c.txt", "-f", "a.txt", "--json"]);
    let mut named: Vec<Value> = objects(&stdout(&put));
    named.sort_by_key(|line| line["pillar"].to_string());
    let named: Vec<&Value> = named.iter().map(|line| &line["pillar"]).collect();
    assert_eq!(named, ["north", "south", "west"]);
    assert_eq!(site.offered(), Vec::<std::path::PathBuf>::new());
}

/// It has listed what there is: that is no failure.
#[test]
fn a_listing_tells_in_what_the_pillars_differ() {
    let (site, _parts) = site();
    let sums = site.run("get-checksums", [""; 0]);
    let rows = succeed(&sums);
    for row in [
        format!("{A_MD5} \t2 \ta.txt\n"),
        "disagreed \t3 \tb.txt\n".to_owned(),
    ] {
        assert!(rows.contains(&row), "{rows}");
    }
    assert_eq!(
        stderr(&sums),
        "not at west: 1 file of 3\ndifferent checksums: 1 file of 3\n"
    );
    let sums = objects(&succeed(&site.run("get-checksums", ["--json"])));
    let agreed = |id: &str| {
        let mut lines = sums.iter();
        lines.find(|line| line["file_id"] == id).expect("listed")["agreed"].clone()
    };
    assert_eq!(
        ["a.txt", "b.txt", "c.txt"].map(agreed),
        [json!(false), json!(false), json!(true)]
    );
    let ids = site.run("get-file-ids", [""; 0]);
    succeed(&ids);
    assert_eq!(
        stderr(&ids),
        "not at west: 1 file of 3\n",
        "b.txt is as long everywhere"
    );
    let north = site.run("get-checksums", ["-p", "north"]);
    succeed(&north);
    assert_eq!(stderr(&north), "");
}
