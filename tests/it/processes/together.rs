//! Several clients at once.

use crate::support::{noise, process, site::Site};

#[test]
fn ten_parallel_puts_succeed() {
    let site = Site::new(&["north", "south", "west"]);
    let _all = process::Running::up(&site.all_in_one());
    let mut clients: Vec<_> = (0..10)
        .map(|number| {
            let file = site.file(&format!("file-{number}"), &noise(number, 5000));
            site.start_client("put-file", ["-f".as_ref(), file.as_os_str()])
        })
        .collect();
    for client in &mut clients {
        client.wait_for_success();
    }
    let listing = process::succeed(&site.run("get-file-ids", [] as [&str; 0]));
    let mut rows: Vec<&str> = listing.lines().skip(1).collect();
    rows.sort_unstable();
    let expected: Vec<String> = (0..10)
        .map(|number| format!("3 \t5000 \tfile-{number}"))
        .collect();
    assert_eq!(rows, expected);
}

#[test]
fn a_second_process_with_the_name_of_a_client_is_refused() {
    let site = Site::new(&["north"]);
    let _hub = site.start("hub");
    let args = ["-i", "a.bin", "--client-id", "ingest-1"];
    let mut first = site.start_client("get-file-ids", args.into_iter().chain(["-v"]));
    first.wait_for_error("IDENTIFY_REQUEST_SENT");
    let second = site.run("get-file-ids", args);
    let line = process::fail_with_one_line(&second, 255);
    assert!(line.contains("ingest-1"), "{line}");
    assert!(first.lives(), "{:?}", first.errors());
    first.interrupt();
    assert_eq!(first.wait().code(), Some(130), "{:?}", first.errors());
    let third = site.start_client("get-file-ids", args.into_iter().chain(["-v"]));
    let mut third = third;
    third.wait_for_error("IDENTIFY_REQUEST_SENT");
}
