//! File ids: escaped in addresses (U1), refused without a trace (U2), kept byte for byte (U6).

use std::fs;

use super::{P7, P7_MD5};
use crate::support::{
    process,
    raw_peer::{Answer, RawPeer, file_ids, put, text},
    stomp::Stomp,
    whole::{NO_FILES, Whole},
};

#[test]
fn u1_an_id_full_of_signs_goes_round() {
    let id = "a b+c%41#1?x&y.tif";
    let whole = Whole::start(&["north", "south"]);
    let file = whole.site.file("p7", P7);
    let mut spy = Stomp::connect(whole.site.bus_port, None);
    spy.subscribe("/topic/books.client.ingest");
    let args = [
        "-i".as_ref(),
        id.as_ref(),
        "--client-id".as_ref(),
        "ingest".as_ref(),
        "-f".as_ref(),
        file.as_os_str(),
    ];
    process::succeed(&whole.site.run("put-file", args));
    let mut addresses = Vec::new();
    while let Some(message) = spy.message(std::time::Duration::from_millis(500)) {
        let xml = message.text();
        if let Some((_, rest)) = xml.split_once("FileAddress>") {
            addresses.push(rest.split('<').next().expect("text").to_owned());
        }
    }
    // Progress and final response of both pillars.
    assert_eq!(addresses.len(), 4, "{addresses:?}");
    for address in &addresses {
        assert!(
            address.ends_with("-a%20b%2Bc%2541%231%3Fx%26y.tif"),
            "{address}"
        );
    }
    let copy = whole.site.path().join("copy");
    let args = ["-i".as_ref(), id.as_ref(), "-l".as_ref(), copy.as_os_str()];
    process::succeed(&whole.site.run("get-file", args));
    assert_eq!(fs::read(&copy).expect("was fetched"), P7);
    let listing = process::succeed(&whole.site.run::<&str>("get-file-ids", []));
    assert!(listing.contains(&format!("2 \t14 \t{id}\n")), "{listing}");
    let sums = process::succeed(&whole.site.run("get-checksums", ["-i", id]));
    assert!(
        sums.contains(&format!("2 \t{P7_MD5} \tAll \t{id}\n")),
        "{sums}"
    );
    for pillar in ["north", "south"] {
        let stored = whole.archived(pillar);
        assert_eq!(stored.len(), 1, "{stored:?}");
        assert_eq!(
            stored[0].file_name().and_then(|name| name.to_str()),
            Some(id)
        );
    }
    assert_eq!(whole.exchanged(), NO_FILES);
}

/// Ids that no request may have.
const REFUSED: [&str; 8] = [
    "../up", "/abs/x1", "a/../b1", "a/..", ".hidden", "a/./b1", "a//b1", "b1/",
];
/// Ids that look like them and are fine.
const ACCEPTED: [&str; 3] = ["dir1/dir2/f.txt", "a..b", "v1..2/x"];

/// What the messages of an operation have after the common part.
struct Form {
    operation: &'static str,
    identify: fn(&str) -> String,
    request: fn(&str, &str) -> String,
}

/// The four operations.
fn forms() -> [Form; 4] {
    [
        Form {
            operation: "PutFile",
            identify: |id| format!("<FileID>{}</FileID><FileSize>14</FileSize>", text(id)),
            request: |id, address| put(id, address, Some(14), P7_MD5),
        },
        Form {
            operation: "GetFile",
            identify: |id| format!("<FileID>{}</FileID>", text(id)),
            request: |id, address| {
                format!(
                    "<FileID>{}</FileID><FileAddress>{address}</FileAddress>",
                    text(id)
                )
            },
        },
        Form {
            operation: "GetFileIDs",
            identify: |id| file_ids(Some(id)),
            request: |id, _| file_ids(Some(id)),
        },
        Form {
            operation: "GetChecksums",
            identify: |id| format!("{}{MD5_REQUEST}", file_ids(Some(id))),
            request: |id, _| format!("{}{MD5_REQUEST}", file_ids(Some(id))),
        },
    ]
}

const MD5_REQUEST: &str = "<ChecksumRequestForExistingFile><ChecksumType>MD5</ChecksumType></ChecksumRequestForExistingFile>";

#[track_caller]
fn assert_refused(answer: &Answer, id: &str) {
    let what = format!("{} '{id}': {}", answer.kind(), answer.xml);
    assert_eq!(answer.code(), "REQUEST_NOT_UNDERSTOOD_FAILURE", "{what}");
    // Every response but one has a place for the id.
    if answer.kind() != "GetChecksumsFinalResponse" {
        assert_eq!(answer.element("FileID").as_deref(), Some(id), "{what}");
    }
}

/// Also where the settings have no pattern for ids, as here (P18).
#[test]
fn u2_ids_that_lead_elsewhere_are_refused_at_every_step() {
    let whole = Whole::start(&["north"]);
    let address = whole.offer("p7", P7);
    let mut peer = RawPeer::connect(whole.site.bus_port, "peer");
    let before = traces(&whole);
    let mut number = 0;
    for form in forms() {
        for id in REFUSED {
            number += 1;
            let kind = format!("IdentifyPillarsFor{}Request", form.operation);
            let answer = peer.ask_all(&kind, &format!("i-{number}"), &(form.identify)(id));
            assert_refused(&answer, id);
            let kind = format!("{}Request", form.operation);
            let request = (form.request)(id, &address);
            let answer = peer.ask(&kind, &format!("o-{number}"), "north", &request);
            assert_refused(&answer, id);
            // It was refused before anything was begun.
            assert!(
                peer.others(&format!("o-{number}")).is_empty(),
                "{}",
                answer.xml
            );
        }
    }
    assert_eq!(traces(&whole), before);
    assert!(
        whole.alarms().contains("INVALID_MESSAGE"),
        "{}",
        whole.alarms()
    );
}

/// Files and folders of the archive and all around it.
fn traces(whole: &Whole) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![whole.site.path().to_owned()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(&next).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.ends_with("whole/var") {
                continue;
            }
            if path.is_dir() {
                open.push(path.clone());
            }
            found.push(path);
        }
    }
    found.sort();
    found
}

#[test]
fn u2_ids_that_only_look_like_it_are_stored() {
    let whole = Whole::start(&["north"]);
    let address = whole.offer("p7", P7);
    let mut peer = RawPeer::connect(whole.site.bus_port, "peer");
    for id in ACCEPTED {
        let [form, ..] = forms();
        let answer = peer.ask_all(
            "IdentifyPillarsForPutFileRequest",
            &format!("i-{id}"),
            &(form.identify)(id),
        );
        assert_eq!(answer.code(), "IDENTIFICATION_POSITIVE", "{}", answer.xml);
        let request = (form.request)(id, &address);
        let answer = peer.ask("PutFileRequest", &format!("o-{id}"), "north", &request);
        assert_eq!(answer.code(), "OPERATION_COMPLETED", "{}", answer.xml);
        assert_eq!(answer.element("FileID").as_deref(), Some(id));
    }
    let listing = process::succeed(&whole.site.run::<&str>("get-file-ids", []));
    for id in ACCEPTED {
        assert!(listing.contains(&format!("1 \t14 \t{id}\n")), "{listing}");
        let stored = whole.archived("north");
        assert_eq!(
            stored.iter().filter(|path| path.ends_with(id)).count(),
            1,
            "{stored:?}"
        );
        let copy = whole.site.path().join("copy");
        let args = ["-i".as_ref(), id.as_ref(), "-l".as_ref(), copy.as_os_str()];
        process::succeed(&whole.site.run("get-file", args));
        assert_eq!(fs::read(&copy).expect("was fetched"), P7);
        fs::remove_file(&copy).expect("can be removed");
    }
}

#[test]
fn a_folder_and_a_file_of_one_name() {
    let whole = Whole::start(&["north"]);
    whole.site.file("p7", P7);
    process::succeed(&whole.site.run("put-file", ["-f", "p7", "-i", "dir1/f1"]));
    // A file in no folder is no obstacle for a folder of that name.
    process::succeed(&whole.site.run("put-file", ["-f", "p7", "-i", "dir1"]));
    let below = whole.site.run("put-file", ["-f", "p7", "-i", "dir1/f1/x1"]);
    let line = process::fail_with_one_line(&below, 255);
    assert!(line.contains("REQUEST_NOT_UNDERSTOOD_FAILURE"), "{line}");
    assert_eq!(whole.archived("north").len(), 2);
    assert_eq!(whole.exchanged(), NO_FILES);
}

#[test]
fn u6_composed_and_decomposed_names_are_two_files() {
    let composed = "r\u{f8}dgr\u{f8}d-\u{e9}-\u{e5}.tif";
    let decomposed = "r\u{f8}dgr\u{f8}d-e\u{301}-a\u{30a}.tif";
    assert_eq!(hex(composed), "72c3b8646772c3b8642dc3a92dc3a52e746966");
    assert_eq!(
        hex(decomposed),
        "72c3b8646772c3b8642d65cc812d61cc8a2e746966"
    );
    let whole = Whole::start(&["north"]);
    let files = [
        (composed, "composed".as_bytes()),
        (decomposed, "in two parts".as_bytes()),
    ];
    for (id, content) in files {
        // Its own name is its id.
        whole.site.file(id, content);
        process::succeed(&whole.site.run("put-file", ["-f", id]));
    }
    let listing = process::succeed(&whole.site.run::<&str>("get-file-ids", []));
    let mut lines: Vec<&str> = listing.lines().skip(1).collect();
    lines.sort_unstable();
    let mut expected = [
        format!("1 \t8 \t{composed}"),
        format!("1 \t12 \t{decomposed}"),
    ];
    expected.sort_unstable();
    assert_eq!(lines, expected);
    let stored = whole.archived("north");
    assert_eq!(stored.len(), 2, "{stored:?}");
    for (id, content) in files {
        let at: Vec<_> = stored
            .iter()
            .filter(|path| path.file_name() == Some(id.as_ref()))
            .collect();
        assert_eq!(at.len(), 1, "{stored:?}");
        assert_eq!(fs::read(at[0]).expect("is there"), content);
        let copy = whole.site.path().join("copy");
        let args = ["-i".as_ref(), id.as_ref(), "-l".as_ref(), copy.as_os_str()];
        process::succeed(&whole.site.run("get-file", args));
        assert_eq!(fs::read(&copy).expect("was fetched"), content);
        fs::remove_file(&copy).expect("can be removed");
    }
}

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}
