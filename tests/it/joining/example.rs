//! The example of joining a collection of Java components, as it is but for addresses and directories.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::support::{
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

#[test]
fn a_node_and_a_client_join_by_the_two_files() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let bus = free_port();
    let settings = example(
        directory.path(),
        "north",
        &[
            (
                "stomp://activemq.example.org:61613",
                format!("stomp://127.0.0.1:{bus}"),
            ),
            ("/var/lib/pillarbox", "var".to_owned()),
            ("/archive/north", "archive".to_owned()),
            ("10 GiB", "1 MiB".to_owned()),
        ],
    );
    // In the place of ActiveMQ, a bus that knows the Java system's names.
    let hub = directory.path().join("hub");
    fs::create_dir(&hub).expect("can be made");
    fs::copy(
        settings.join("repository.toml"),
        hub.join("repository.toml"),
    )
    .expect("can be copied");
    let server = format!("data = \"var\"\n[bus_server]\nlisten = [\"127.0.0.1:{bus}\"]\n");
    fs::write(hub.join("node.toml"), server).expect("can be written");
    let _hub = Running::node(&hub);
    let mut north = Running::node(&settings);
    let ask = |command: &str, args: &[&str]| {
        let start = [command.as_ref(), "-s".as_ref(), settings.as_os_str()];
        let output = process::run(start.into_iter().chain(args.iter().map(AsRef::as_ref)));
        assert_eq!(process::stderr(&output), "", "{command}");
        process::succeed(&output)
    };
    let status = ask("get-status", &["-p", "north"]);
    assert!(status.contains("north \tOK \t"), "{status}");
    let listing = ask("get-file-ids", &["-c", "books", "-p", "north"]);
    assert_eq!(listing, "Count: \tSize: \tFileID:\n");
    north.terminate();
    north.wait_for_success();
}
