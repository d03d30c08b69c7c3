//! Bus addresses as users of the Java system have them in their settings.

use std::{fs, process::Command};

use crate::support::{
    process::{self, Running},
    site::Site,
};

const USAGE: i32 = 1;

/// Gives a part of the site another bus address.
pub(super) fn with_bus(site: &Site, part: &str, url: &str) {
    let file = site.part(part).join("repository.toml");
    let text = fs::read_to_string(&file).expect("can be read");
    let own = format!("url = \"stomp://127.0.0.1:{}\"", site.bus_port);
    assert!(text.contains(&own), "{text}");
    let text = text.replace(&own, &format!("url = \"{url}\""));
    fs::write(&file, text).expect("can be written");
}

fn listing(site: &Site) -> Command {
    site.prepare("get-file-ids", Vec::<String>::new())
}

fn stomp(site: &Site) -> String {
    format!("stomp://127.0.0.1:{}", site.bus_port)
}

#[test]
fn an_address_of_another_protocol_stops_whoever_would_connect_with_it() {
    let site = Site::new(&["north"]);
    let mut hub = site.start("hub");
    let url = "failover:(tcp://bus.example.org:61616?keepAlive=true, ssl://b:61617)?timeout=3000";
    let advice = "url = \"failover:(stomp://bus.example.org:61613,stomp://b:61613)\"";
    for part in ["client", "north"] {
        with_bus(&site, part, url);
        let output = match part {
            "client" => process::finish(listing(&site)),
            _ => process::run(["node".as_ref(), "-s".as_ref(), site.part(part).as_os_str()]),
        };
        let line = process::fail_with_one_line(&output, USAGE);
        let place = site.part(part).join("repository.toml");
        let place = format!("pillarbox: {}:6: ", place.display());
        assert!(line.starts_with(&place), "{line}");
        for words in ["OpenWire", advice, "node.toml"] {
            assert!(line.contains(words), "'{words}' is not in: {line}");
        }
        assert!(!site.part(part).join("var").exists(), "left something");
    }
    assert!(hub.lives());
}

/// A client is never in the process that has the bus.
#[test]
fn the_line_about_a_bus_in_another_process_says_where_it_is_written() {
    let site = Site::new(&["north"]);
    let client = site.part("client");
    let node = client.join("node.toml");
    let text = fs::read_to_string(&node).expect("can be read");
    let lines = text.lines().count();
    fs::write(&node, format!("{text}\n[bus]\nurl = \"embedded:\"\n")).expect("can be written");
    let line = process::fail_with_one_line(&process::finish(listing(&site)), USAGE);
    let place = format!(
        "pillarbox: {}:{}: the bus 'embedded:'",
        node.display(),
        lines + 3
    );
    assert!(line.starts_with(&place), "{line}");
}

/// The file that all share may name the Java components' address: whoever has another one does not care.
#[test]
fn an_address_of_ones_own_counts_instead_of_the_shared_one() {
    let site = Site::new(&["north"]);
    with_bus(&site, "hub", "tcp://bus.example.org:61616");
    let mut hub = site.start("hub");
    let shared = "failover:(tcp://bus.example.org:61616?keepAlive=true)?timeout=3000";
    with_bus(&site, "north", shared);
    with_bus(&site, "client", shared);
    let node = site.part("north").join("node.toml");
    let text = fs::read_to_string(&node).expect("can be read");
    let own = format!("{text}\n[bus]\nurl = \"{}\"\n", stomp(&site));
    fs::write(&node, own).expect("can be written");
    let mut north = site.start("north");
    let mut command = listing(&site);
    command.env("PILLARBOX__BUS__URL", stomp(&site));
    let output = process::finish(command);
    process::succeed(&output);
    assert_eq!(process::stderr(&output), "");
    for part in [&mut north, &mut hub] {
        part.terminate();
        part.wait_for_success();
        assert_quiet_about_the_address(part);
    }
}

fn assert_quiet_about_the_address(part: &mut Running) {
    for line in part.errors() {
        let told = line.contains("OpenWire") || line.contains("options");
        assert!(!told, "{line}");
    }
}

#[test]
fn what_of_an_address_does_not_count_is_told_once_at_start() {
    let site = Site::new(&["north"]);
    let _hub = site.start("hub");
    let url = format!(
        "failover:(tcp://127.0.0.1:61616?keepAlive=true&daemon=true, {}?keepAlive=true)?timeout=3000&randomize=false",
        stomp(&site)
    );
    with_bus(&site, "north", &url);
    with_bus(&site, "client", &url);
    let mut north = site.start("north");
    let output = process::finish(listing(&site));
    process::succeed(&output);
    north.terminate();
    north.wait_for_success();
    let told_by = |part: &str, lines: Vec<String>| {
        let place = site.part(part).join("repository.toml");
        let place = format!("{}:6: ", place.display());
        let told: Vec<&str> = lines
            .iter()
            .filter_map(|line| line.strip_prefix(&place))
            .collect();
        assert_eq!(
            told,
            [
                "`tcp://127.0.0.1:61616` is an address for OpenWire, which is not spoken here, and is left out",
                "options of the bus address that are not understood here are ignored: timeout, keepAlive, daemon",
            ],
            "{lines:#?}"
        );
    };
    told_by("north", north.errors().to_vec());
    let text = process::stderr(&output);
    told_by("client", text.lines().map(str::to_owned).collect());
}
