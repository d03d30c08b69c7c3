//! The settings that `demo` and `up` write: one collection on three pillars, everything on this machine.

use std::{
    fs, io,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::Path,
};

/// The collection that a fresh repository has.
pub(crate) const COLLECTION: &str = "books";
/// Its pillars.
pub(crate) const PILLARS: [&str; 3] = ["north", "south", "west"];
/// File name of the settings that a repository's components share.
pub(crate) const REPOSITORY_FILE: &str = "repository.toml";
/// File name of one process's settings.
pub(crate) const NODE_FILE: &str = "node.toml";

const BUS_PORT: u16 = 61613;
const EXCHANGE_PORT: u16 = 8181;

/// Where a fresh repository's servers listen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ports {
    bus: Option<u16>,
    exchange: u16,
}

impl Ports {
    /// For a repository inside one process: no bus port, any free exchange port.
    pub(crate) fn private() -> io::Result<Self> {
        Ok(Self {
            bus: None,
            exchange: free_port(0)?,
        })
    }

    /// For a repository that other processes talk to: the customary ports, or free ones where those are taken.
    pub(crate) fn public() -> io::Result<Self> {
        Ok(Self {
            bus: Some(free_port(BUS_PORT)?),
            exchange: free_port(EXCHANGE_PORT)?,
        })
    }
}

/// `wanted` if nobody listens there, else a port that the system gives.
fn free_port(wanted: u16) -> io::Result<u16> {
    let on = |port| TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    Ok(on(wanted).or_else(|_| on(0))?.local_addr()?.port())
}

/// Writes both settings files into `directory`.
///
/// # Errors
/// If a file can't be written.
pub(crate) fn write_settings(
    directory: &Path,
    ports: Ports,
    client: Option<&str>,
) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    fs::write(directory.join(REPOSITORY_FILE), repository(ports))?;
    fs::write(directory.join(NODE_FILE), node(ports, client))
}

fn repository(ports: Ports) -> String {
    let url = ports.bus.map_or_else(
        || "embedded:".to_owned(),
        |port| format!("stomp://127.0.0.1:{port}"),
    );
    format!(
        r#"# A repository of one collection on three pillars, shared by all its components.
[repository]
name = "Starter repository"
checksum = "MD5"
require = ["checksum-for-new-file", "checksum-for-destructive"]

[bus]
url = "{url}"

[timeouts]
identification = "20s"
operation = "1h"

[[collections]]
id = "{COLLECTION}"
name = "The books"
pillars = ["{}"]
"#,
        PILLARS.join("\", \"")
    )
}

fn node(ports: Ports, client: Option<&str>) -> String {
    let exchange = ports.exchange;
    let mut text = String::from(
        "# One process that plays every role.\n# What it keeps, relative to this file.\ndata = \"var\"\n",
    );
    for pillar in PILLARS {
        text.push_str(&format!(
            r#"
[[pillars]]
id = "{pillar}"
type = "FILE"
directories = ["archive/{pillar}"]
minimum_size_left = "64 MiB"
"#
        ));
    }
    if let Some(port) = ports.bus {
        text.push_str(&format!(
            "\n[bus_server]\nlisten = [\"127.0.0.1:{port}\"]\n"
        ));
    }
    text.push_str(&format!(
        r#"
[exchange_server]
listen = "127.0.0.1:{exchange}"
public_url = "http://127.0.0.1:{exchange}/"

[exchange]
hosts = ["127.0.0.1:{exchange}"]

[client]
{}exchange = "http://127.0.0.1:{exchange}/"

[alarms]
id = "alarm-service"
"#,
        client.map_or_else(String::new, |id| format!("id = \"{id}\"\n"))
    ));
    text
}
