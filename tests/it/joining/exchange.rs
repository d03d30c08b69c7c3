//! The file exchange that a collection of Java components has: a `WebDAV` server, on which nobody makes collections.

use std::{fs, path::Path, process::Command};

use crate::support::{
    md5,
    process::{self, Running},
    site::Site,
};

const FIRST: &[u8] = b"the first version\n";
const SECOND: &[u8] = b"the second version, which is longer\n";

/// Starts `WsgiDAV` with this directory, for everybody; nothing, said loudly, if it is not installed.
fn webdav(test: &str, port: u16, root: &Path) -> Option<Running> {
    let import = Command::new("python3")
        .args(["-c", "import wsgidav, cheroot"])
        .output();
    if !import.is_ok_and(|output| output.status.success()) {
        eprintln!(
            "SKIPPED {test}: python3 with WsgiDAV is not installed (pip install wsgidav cheroot)"
        );
        return None;
    }
    let mut command = Command::new("python3");
    command
        .args(["-u", "-m", "wsgidav.server.server_cli", "--no-config"])
        .args(["--auth", "anonymous", "--host", "127.0.0.1"])
        .args(["--port", &port.to_string(), "--root"])
        .arg(root);
    let mut server = Running::spawn(command);
    server.wait_for("Serving on");
    Some(server)
}

#[test]
fn files_go_over_the_collections_own_webdav_server() {
    let test = "files_go_over_the_collections_own_webdav_server";
    let site = Site::new(&["north", "south"]);
    let root = site.path().join("webdav");
    let exchange = root.join("dav");
    fs::create_dir_all(&exchange).expect("can be made");
    let Some(_server) = webdav(test, site.exchange_port, &root) else {
        return;
    };
    let _others = ["bus", "north", "south"].map(|part| site.start(part));
    let base = format!("http://127.0.0.1:{}/dav/", site.exchange_port);
    // With a token before it, longer than the name of a file may be.
    let id = format!("æ b+c%41#1?x&y{}.tif", "-".repeat(225));
    let copy = site.path().join("copy");
    let run = |command: &str, args: &[&str]| {
        let mut command = site.prepare(command, ["-i", &id].iter().chain(args));
        command.env("PILLARBOX__CLIENT__EXCHANGE", &base);
        process::succeed(&process::finish(command));
        let left: Vec<_> = fs::read_dir(&exchange)
            .expect("can be read")
            .flatten()
            .map(|entry| entry.path())
            .collect();
        assert!(left.is_empty(), "{left:?}");
    };
    let get = |expected: &[u8], pillar: &str| {
        let target = copy.to_str().expect("UTF-8");
        run("get-file", &["-l", target, "-p", pillar]);
        assert_eq!(fs::read(&copy).expect("was fetched"), expected);
    };
    let first = site.file("first", FIRST);
    run("put-file", &["-f", first.to_str().expect("UTF-8")]);
    get(FIRST, "south");
    let second = site.file("second", SECOND);
    let second = second.to_str().expect("UTF-8");
    let replace = ["-f", second, "-p", "north", "-C", &md5(FIRST)];
    run("replace-file", &replace);
    get(SECOND, "north");
}
