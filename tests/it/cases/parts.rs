//! Parts of files (U30).

use super::P7_MD5;
use crate::support::{
    md5,
    raw_peer::{RawPeer, put},
    whole::{Whole, http, path_of},
};

#[test]
fn u30_a_part_is_exactly_its_bytes() {
    let whole = Whole::start(&["north"]);
    let mut peer = RawPeer::connect(whole.site.bus_port, "peer");
    let r1024: Vec<u8> = (0..=u8::MAX).cycle().take(1024).collect();
    let sum = md5(&r1024);
    assert_eq!(sum, "b2ea9f7fcea831a4a63b213f41a8855b");
    assert_ne!(sum, P7_MD5);
    let asked = put("r.bin", &whole.offer("r", &r1024), Some(1024), &sum);
    let stored = peer.ask("PutFileRequest", "p-1", "north", &asked);
    assert_eq!(stored.code(), "OPERATION_COMPLETED", "{}", stored.xml);
    let parts = [
        (100, 50, Some("ce89c04de1409c58181d5f05fa62d120")),
        (1000, 100, Some("f9bdb1de72e1912d2610f57b1a678aea")),
        (1024, 1, None),
        // What counts in 32 bits would start at the beginning, or end there.
        (1_u64 << 32, 50_u64, None),
        (974, 1 << 32, Some("")),
    ];
    for (offset, length, expected) in parts {
        let address = whole.address("part");
        let part = format!(
            "<FileID>r.bin</FileID><FilePart><PartOffSet>{offset}</PartOffSet>\
             <PartLength>{length}</PartLength></FilePart><FileAddress>{address}</FileAddress>"
        );
        let correlation = format!("g-{offset}");
        let answer = peer.ask("GetFileRequest", &correlation, "north", &part);
        let (status, bytes) = http(whole.site.exchange_port, "GET", path_of(&address), b"");
        let Some(expected) = expected else {
            assert_eq!(
                answer.code(),
                "REQUEST_NOT_UNDERSTOOD_FAILURE",
                "{}",
                answer.xml
            );
            assert_eq!(status, 404);
            continue;
        };
        assert_eq!(answer.code(), "OPERATION_COMPLETED", "{}", answer.xml);
        if expected.is_empty() {
            assert_eq!(bytes, r1024[974..]);
        } else {
            assert_eq!(md5(&bytes), expected);
        }
    }
}
