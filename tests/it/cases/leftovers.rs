//! What failed transfers leave behind: nothing (U36), and when the client takes its offer back (U38).

use std::fs;

use crate::support::{
    md5, noise,
    raw_peer::{RawPeer, file_ids, put},
    site::files_below,
    slow_exchange::SlowExchange,
    whole::{NO_FILES, Whole},
};

#[test]
fn u36_a_crash_in_the_middle_of_a_file_is_no_obstacle() {
    let content = noise(36, 4 << 20);
    let slow = SlowExchange::start(content.clone(), &[3 << 20]);
    let mut whole = Whole::start_with(&["north"], &[slow.host()]);
    let request = put(
        "half.bin",
        &slow.file_address(),
        Some(4 << 20),
        &md5(&content),
    );
    let mut peer = RawPeer::connect(whole.site.bus_port, "peer");
    let xml = peer.request("PutFileRequest", "c-1", "north", &request);
    peer.send_to("north", "PutFileRequest", xml);
    let _stalled = slow.stalled();
    crate::support::until("a part of it is there", || {
        !whole.archived("north").is_empty()
    });
    drop(peer);
    whole.node.kill();
    whole.node = whole.site.start("whole");
    // The request was not lost: the pillar takes it from its queue again.
    let mut peer = RawPeer::connect(whole.site.bus_port, "peer");
    crate::support::until("the file is stored", || {
        let files = whole.archived("north");
        files.len() == 1 && fs::read(&files[0]).is_ok_and(|stored| stored == content)
    });
    // The same put succeeds, whichever of the two stored it.
    let answer = peer.ask("PutFileRequest", "c-1", "north", &request);
    assert_eq!(answer.code(), "OPERATION_COMPLETED", "{}", answer.xml);
    let listing = peer.ask("GetFileIDsRequest", "l-1", "north", &file_ids(None));
    assert_eq!(
        listing.element("FileSize").as_deref(),
        Some("4194304"),
        "{}",
        listing.xml
    );
    assert_eq!(
        files_below(&whole.archive("north").join("books").join("tmpDir")),
        NO_FILES
    );
    assert_eq!(whole.archived("north").len(), 1);
}
