//! A collection with a pillar that keeps checksums only (U43), and a disk of which everything must be left (U35).

use super::{P7, P7_MD5};
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

#[test]
fn u43_a_checksum_pillar_is_in_the_way_of_no_requested_checksum() {
    let whole = started(&["north", "sums"], |site| {
        whole::settings(site, &["north"], &[]) + "[[pillars]]\nid = \"sums\"\ntype = \"CHECKSUM\"\n"
    });
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
