//! A collection with a pillar that keeps checksums only (U43), and a disk of which everything must be left (U35).

use serde_json::json;

use super::{P7, P7_MD5, P7_SHA1};
use crate::processes::json::objects;
use crate::support::{
    process,
    raw_peer::{RawPeer, put},
    site::Site,
    whole::{self, Whole},
};

fn started(pillars: &[&str], settings: impl FnOnce(&Site) -> String) -> Whole {
    let site = Site::new(pillars);
    site.settings("whole", &settings(&site));
    let node = site.start("whole");
    Whole {
        site,
        node,
        in_trouble: false,
    }
}

/// One that keeps files, and one that does not.
fn with_sums(site: &Site) -> String {
    whole::settings(site, &["north"], &[]) + "[[pillars]]\nid = \"sums\"\ntype = \"CHECKSUM\"\n"
}

#[test]
fn u43_a_checksum_pillar_is_in_the_way_of_no_requested_checksum() {
    let whole = started(&["north", "sums"], with_sums);
    let file = whole.site.file("x1.bin", P7);
    let args = [
        "-f".into(),
        file.into_os_string(),
        "-R".into(),
        "SHA256".into(),
    ];
    let told = process::succeed(&whole.site.run("put-file", args));
    assert!(told.contains("north") && !told.contains("sums"), "{told}");
    // Both have it: one the file, the other its checksum.
    let sums = process::succeed(&whole.site.run("get-checksums", [] as [&str; 0]));
    let line = sums.lines().find(|line| line.contains("x1.bin"));
    let line = line.unwrap_or_else(|| panic!("{sums}"));
    assert!(line.contains(P7_MD5) && line.contains('2'), "{sums}");
    let copy = whole.site.path().join("copy");
    let args = [
        "-i".into(),
        "x1.bin".into(),
        "-l".into(),
        copy.clone().into_os_string(),
    ];
    process::succeed(&whole.site.run("get-file", args));
    assert_eq!(std::fs::read(copy).unwrap(), P7);
}

/// What one pillar can't do is no failure of the others, but nobody takes them for all.
#[test]
fn u43_a_checksum_pillar_that_cannot_do_it_is_named() {
    let whole = started(&["north", "sums"], with_sums);
    let file = whole.site.file("x1.bin", P7).into_os_string();
    process::succeed(&whole.site.run("put-file", ["-f".into(), file]));
    let sums = |args: &[&str]| whole.site.run("get-checksums", args);
    let cause = "sums: REQUEST_NOT_SUPPORTED, the pillar keeps MD5 checksums only";
    let failure = json!({"failed": true, "pillar": "sums", "code": "REQUEST_NOT_SUPPORTED",
        "text": "the pillar keeps MD5 checksums only"});

    let one = sums(&["-i", "x1.bin", "-R", "SHA1"]);
    let row = format!("1 \t{P7_SHA1} \t[north] \tx1.bin\n");
    assert!(process::succeed(&one).ends_with(&row), "{one:?}");
    assert_eq!(process::stderr(&one), format!("{cause}\n"));
    for args in [
        &["-R", "SHA1", "--json"][..],
        &["-i", "x1.bin", "-R", "SHA1", "--json"],
    ] {
        let lines = objects(&process::succeed(&sums(args)));
        let listed = json!({"file_id": "x1.bin", "count": 1, "agreed": false,
            "checksums": {"north": P7_SHA1}});
        assert_eq!(lines, [listed, failure.clone()]);
    }

    // Nobody is left who could.
    let text = format!("Cause(s): [{cause}]");
    let nobody = sums(&["-R", "SHA1", "-p", "sums"]);
    let line = process::fail_with_one_line(&nobody, 255);
    assert!(line.contains(&text), "{line}");
    let nobody = sums(&["-R", "SHA1", "-p", "sums", "--json"]);
    process::fail_with_one_line(&nobody, 255);
    assert_eq!(objects(&process::stdout(&nobody)), [failure]);
    let get = whole.site.run("get-file", ["-i", "x1.bin", "-p", "sums"]);
    let line = process::fail_with_one_line(&get, 255);
    assert!(
        line.contains("[sums: REQUEST_NOT_SUPPORTED, the pillar keeps checksums only]"),
        "{line}"
    );
}

#[test]
fn u43_nobody_is_sent_to_a_checksum_pillar_for_what_it_has_not() {
    let whole = started(&["north", "sums"], with_sums);
    let file = whole.site.file("x1.bin", P7);
    let put = || {
        let args = ["-f", file.to_str().unwrap(), "-R", "HMAC_MD5", "-S", "abcd"];
        let put = whole.site.run("put-file", args);
        process::succeed(&put);
        process::stderr(&put)
    };
    assert_eq!(
        put(),
        "no checksum instead of HMAC_MD5 told by sums, which keeps no other kind of checksums\n\
         x1.bin stored on 2 pillars\n"
    );
    let again = put();
    let mut lines: Vec<&str> = again.lines().collect();
    lines.sort_unstable();
    let command = "get-checksums -c books -i x1.bin -R HMAC_MD5 -S abcd";
    assert_eq!(
        lines,
        [
            &format!("MD5 instead of HMAC_MD5 told by north; {command} asks for it"),
            "MD5 instead of HMAC_MD5 told by sums, which keeps no other kind of checksums",
            "x1.bin was there already, on 2 pillars",
        ]
    );
    let words: Vec<&str> = command.split(' ').skip(3).collect();
    let told = process::succeed(&whole.site.run("get-checksums", words));
    assert!(told.contains("[north]"), "{told}");
}

#[test]
fn u35_a_reserve_larger_than_any_disk_refuses_with_the_numbers() {
    let whole = started(&["north"], |site| {
        whole::settings(site, &["north"], &[]).replace("\"1 MiB\"", "\"9223372036854775807\"")
    });
    let mut peer = RawPeer::connect(whole.site.bus_port, "peer");
    let asked = put("x1.bin", &whole.offer("p7", P7), Some(14), P7_MD5);
    let answer = peer.ask("PutFileRequest", "p-1", "north", &asked);
    assert_eq!(answer.code(), "FAILURE", "{}", answer.xml);
    let text = answer.element("ResponseText").unwrap();
    assert!(text.contains("14 bytes needed, 0 usable"), "{text}");
    assert!(text.contains("9223372036854775807"), "{text}");
}
