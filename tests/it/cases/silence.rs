//! Three pillars of which one is mute (U52).

use pillarbox_messages::ResponseCode;
use serde_json::Value;

use super::{P7, P7_MD5};
use crate::support::{
    peers::StandIn,
    process::{Running, fail_with_one_line, stdout, succeed},
    site::Site,
};

const PILLARS: [&str; 3] = ["north", "south", "west"];

/// What a command that failed says on standard output, row by row, and its line on standard error.
fn failed(site: &Site, subcommand: &str, args: &[&str]) -> (Vec<Value>, String) {
    let output = site.run(subcommand, args.iter().chain(&["--json"]));
    let line = fail_with_one_line(&output, 255);
    let rows = stdout(&output);
    let rows = rows.lines().map(|row| serde_json::from_str(row).unwrap());
    (rows.collect(), line)
}

/// Whom the rows of failures name.
fn blamed(rows: &[Value]) -> Vec<&Value> {
    let failures = rows.iter().filter(|row| row["failed"] == true);
    failures.map(|row| &row["pillar"]).collect()
}

#[test]
fn u52_a_pillar_that_answers_nobody_is_named_by_every_command() {
    let site = Site::with_timeouts(&PILLARS, "3s", "20s");
    let _parts = ["hub", "north", "west"].map(|part| site.start(part));
    site.file("p7.txt", P7);
    for (subcommand, args) in [
        ("put-file", &["-f", "p7.txt"][..]),
        ("get-file-ids", &[]),
        ("get-checksums", &[]),
        ("get-audit-trails", &[]),
        (
            "delete-file",
            &["-i", "p7.txt", "-p", "south", "-C", P7_MD5],
        ),
    ] {
        let (rows, line) = failed(&site, subcommand, args);
        assert_eq!(blamed(&rows), ["south"], "{subcommand}: {rows:?}");
        assert!(line.contains("south"), "{line}");
        assert!(!line.contains("north") && !line.contains("west"), "{line}");
    }
    // The others have told what they had to tell.
    let (rows, _) = failed(&site, "get-checksums", &[]);
    let told = &rows[0]["checksums"];
    assert_eq!(
        (&told["north"], &told["west"]),
        (&told["west"], &P7_MD5.into())
    );
    for pillar in ["north", "west"] {
        let listing = succeed(&site.run("get-file-ids", ["-p", pillar]));
        assert_eq!(listing, "Count: \tSize: \tFileID:\n1 \t14 \tp7.txt\n");
    }
}

/// `south` is ready to store the file and is not heard of again.
async fn falls_silent(site: &Site) -> (Running, StandIn) {
    let mut south = StandIn::join(site, "south").await;
    let client = site.start_client("put-file", ["-f", "p7.txt", "--json"]);
    let identify = south.identify_request().await;
    south.accept_put(&identify).await;
    (client, south)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn u52_a_pillar_that_falls_silent_at_work_is_named() {
    let site = Site::with_timeouts(&PILLARS, "20s", "4s");
    let _parts = ["hub", "north", "west"].map(|part| site.start(part));
    site.file("p7.txt", P7);
    let (mut client, mut south) = falls_silent(&site).await;
    let request = south.put_request().await;
    assert_eq!(client.wait().code(), Some(255));
    let rows: Vec<Value> = client
        .output()
        .iter()
        .map(|row| serde_json::from_str(row).unwrap())
        .collect();
    assert_eq!(blamed(&rows), ["south"], "{rows:?}");
    let mut stored: Vec<&str> = rows
        .iter()
        .filter_map(|row| row["pillar"].as_str())
        .collect();
    stored.sort_unstable();
    assert_eq!(stored, PILLARS, "the others are done: {rows:?}");
    assert!(client.errors()[0].contains("south"));
    // Whatever it says now is for nobody.
    south
        .end_put(&request, ResponseCode::OperationCompleted)
        .await;
}
