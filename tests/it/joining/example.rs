//! The example of joining a collection of Java components, as it is but for addresses and directories.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::support::{
    brokers::ActiveMq,
    process::{self, Running},
    site::free_port,
};

/// The example with other addresses, in a directory of this name.
fn example(directory: &Path, name: &str, replacements: &[(&str, String)]) -> PathBuf {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("settings/examples/activemq");
    let settings = directory.join(name);
    fs::create_dir(&settings).expect("can be made");
    for file in ["repository.toml", "node.toml"] {
        let mut text = fs::read_to_string(example.join(file)).expect("can be read");
        for (from, to) in replacements {
            text = text.replace(from, to);
        }
        assert!(!text.contains("/archive/north") && !text.contains("= \"stomp://activemq"));
        fs::write(settings.join(file), text).expect("can be written");
    }
    settings
}

/// Over ActiveMQ, which the example is for. The other pillars are left out, and the exchange is the node's own.
#[test]
fn a_node_and_a_client_join_by_the_two_files() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let exchange = format!("127.0.0.1:{}", free_port());
    let replace = |from: &'static str, to: &str| (from, to.to_owned());
    let broker = format!("stomp://127.0.0.1:{}", ActiveMq::shared().port());
    let settings = example(
        directory.path(),
        "north",
        &[
            replace("stomp://activemq.example.org:61613", &broker),
            replace(
                "[\"checksum-pillar\", \"file1-pillar\", \"file2-pillar\", \"north\"]",
                "[\"north\"]",
            ),
            replace("dav.example.org:80/dav/", &format!("{exchange}/")),
            replace("dav.example.org:80", &exchange),
            replace("# [exchange_server]", "[exchange_server]"),
            replace(
                "# listen = \"0.0.0.0:8181\"",
                &format!("listen = \"{exchange}\""),
            ),
            replace(
                "# public_url = \"http://files.example.org:8181/\"",
                &format!("public_url = \"http://{exchange}/\""),
            ),
            replace("/var/lib/pillarbox", "var"),
            replace("/archive/north", "archive"),
            replace("10 GiB", "1 MiB"),
        ],
    );
    let mut north = Running::node(&settings);
    let ask = |command: &str, args: &[&str]| {
        let start = [command.as_ref(), "-s".as_ref(), settings.as_os_str()];
        let output = process::run(start.into_iter().chain(args.iter().map(AsRef::as_ref)));
        (process::succeed(&output), process::stderr(&output))
    };
    let (status, said) = ask("get-status", &["-p", "north"]);
    assert!(status.contains("north \tOK \t"), "{status}");
    assert_eq!(said, "");
    let file = directory.path().join("scan-0001.tif");
    fs::write(&file, b"an image").expect("can be written");
    let (_, said) = ask("put-file", &["-c", "books", "-f", file.to_str().unwrap()]);
    assert!(said.contains("stored on 1 pillar"), "{said}");
    let (listing, _) = ask("get-file-ids", &["-c", "books", "-p", "north"]);
    assert!(listing.contains("scan-0001.tif"), "{listing}");
    let copy = directory.path().join("copy");
    let target = copy.to_str().unwrap();
    ask(
        "get-file",
        &["-c", "books", "-i", "scan-0001.tif", "-l", target],
    );
    assert_eq!(fs::read(&copy).expect("is there"), b"an image");
    north.terminate();
    north.wait_for_success();
}
