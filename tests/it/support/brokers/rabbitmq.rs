//! RabbitMQ with its STOMP plugin, and the name server of its own that it needs (epmd).

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use super::Broker;
use crate::support::site::free_port;

/// Where the package puts the program, in a directory named after its version.
const HOME: &str = "/usr/lib/rabbitmq/lib";

/// RabbitMQ: speaks STOMP only; who gives no name is `guest`.
#[derive(Debug)]
pub(crate) struct RabbitMq;

impl RabbitMq {
    /// One of the caller's own.
    #[track_caller]
    pub(crate) fn start() -> Broker {
        Broker::start("RabbitMQ", prepare)
    }

    /// The one that all tests share, started when it is first needed.
    pub(crate) fn shared() -> &'static Broker {
        static SHARED: OnceLock<Broker> = OnceLock::new();
        SHARED.get_or_init(Self::start)
    }
}

fn prepare(directory: &Path, port: u16) -> Command {
    let write = |name: &str, text: &str| {
        fs::write(directory.join(name), text).expect("can be written");
    };
    write("rabbitmq.conf", &settings(port));
    write("plugins", "[rabbitmq_stomp].\n");
    command(directory)
}

fn settings(port: u16) -> String {
    format!(
        "listeners.tcp = none
stomp.listeners.tcp.1 = 127.0.0.1:{port}
stomp.default_user = guest
stomp.default_pass = guest
vm_memory_high_watermark.absolute = 256MiB
disk_free_limit.absolute = 1MiB
"
    )
}

fn command(directory: &Path) -> Command {
    let mut command = Command::new("sh");
    // The name server stays in the foreground, and so in the group that is killed. It answers first, since the server
    // starts one outside the group where none does.
    command
        .args(["-c", WITH_NAME_SERVER, "sh"])
        .arg(server().join("sbin").join("rabbitmq-server"))
        .env("HOME", directory)
        .env("TMPDIR", directory)
        .env("LANG", "C.UTF-8")
        .env("ERL_EPMD_ADDRESS", "127.0.0.1")
        .env("ERL_EPMD_PORT", free_port().to_string())
        .env("RABBITMQ_NODENAME", "test@localhost")
        .env("RABBITMQ_DIST_PORT", free_port().to_string())
        .env("RABBITMQ_CONFIG_FILE", directory.join("rabbitmq.conf"))
        .env("RABBITMQ_ENABLED_PLUGINS_FILE", directory.join("plugins"))
        .env("RABBITMQ_MNESIA_BASE", directory.join("data"))
        .env("RABBITMQ_LOG_BASE", directory.join("log"))
        .env("RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS", LOCAL);
    command
}

/// Runs a name server, and beside it the program that it is given.
const WITH_NAME_SERVER: &str =
    r#"epmd & until epmd -names > /dev/null 2>&1; do sleep 0.05; done; exec "$1""#;

/// What the nodes of a cluster would talk through is nobody else's business.
const LOCAL: &str = "-kernel inet_dist_use_interface {127,0,0,1}";

/// The directory of the version that is installed.
#[track_caller]
fn server() -> PathBuf {
    let entries = fs::read_dir(HOME).into_iter().flatten().flatten();
    let mut servers = entries.map(|entry| entry.path()).filter(|path| {
        let name = path.file_name().unwrap_or_default();
        name.to_string_lossy().starts_with("rabbitmq_server-")
    });
    let missing = || panic!("no RabbitMQ in {HOME} (Debian package rabbitmq-server)");
    servers.next().unwrap_or_else(missing)
}
