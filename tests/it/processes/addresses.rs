//! Files that lie on an exchange already: `-u` and `-d`.

use std::path::PathBuf;

use crate::support::{
    process::{fail_with_one_line, stdout, succeed},
    site::Site,
    whole::http,
};

const CONTENT: &[u8] = b"hello bitrepository\n";
const MD5: &str = "2b0442658d8c004c5628c740b6f17c59";
const NEW_MD5: &str = "b1946ac92492d2347c6235b4d2611184";
const WRONG_MD5: &str = "00000000000000000000000000000000";

/// Lays a file on the site's exchange, which is under way, and gives its address.
fn lay(site: &Site, content: &[u8]) -> String {
    let path = "/0b0e5a52-5b1f-4c6e-9c0c-0c9f2f0a7b11/laid.txt";
    let (status, _) = http(site.exchange_port, "PUT", path, content);
    assert_eq!(status, 201);
    format!("http://127.0.0.1:{}{path}", site.exchange_port)
}

#[test]
fn a_file_on_the_exchange_is_stored_and_stays_there_unless_it_is_to_go() {
    let site = Site::new(&["north", "south"]);
    let _parts = ["hub", "north", "south"].map(|part| site.start(part));
    let url = lay(&site, CONTENT);
    let put = |more: &[&str]| {
        let mut args = vec!["-u", &url, "-i", "byurl.txt"];
        args.extend(more);
        site.run("put-file", args)
    };
    let line = fail_with_one_line(&put(&["-C", WRONG_MD5]), 255);
    assert!(line.contains("NEW_FILE_CHECKSUM_FAILURE"), "{line}");
    assert_eq!(succeed(&put(&["-C", MD5])), "");
    assert_eq!(site.offered().len(), 1);
    let sizes = succeed(&site.run("get-file-ids", ["-i", "byurl.txt"]));
    assert_eq!(sizes, "Count: \tSize: \tFileID:\n2 \t20 \tbyurl.txt\n");

    assert_eq!(succeed(&put(&["-C", MD5, "-d"])), "");
    assert_eq!(site.offered(), Vec::<PathBuf>::new());
    let gone = put(&["-C", MD5]);
    let line = fail_with_one_line(&gone, 255);
    assert!(line.contains("-u") && line.contains("404"), "{line}");
    assert_eq!(stdout(&gone), "");

    let url = lay(&site, b"hello\n");
    let args = [
        "--url",
        &url,
        "-i",
        "byurl.txt",
        "-p",
        "north",
        "-C",
        MD5,
        "-r",
        NEW_MD5,
        "--delete",
    ];
    assert_eq!(succeed(&site.run("replace-file", args)), "");
    assert_eq!(site.offered(), Vec::<PathBuf>::new());
    let rows = stdout(&site.run("get-checksums", ["-i", "byurl.txt", "-p", "north"]));
    assert!(rows.contains(NEW_MD5), "{rows}");
}
