//! The queue manager: in this process, and in one of the program itself.

use std::{fs, sync::Mutex};

use pillarbox_bus::{
    Broker, BrokerOptions, Bus, BusError, ConnectOptions, StompLimits, StompServer,
};
use pillarbox_messages::{Destination, clock::SystemClock};

use super::{QUEUES, TOPICS};
use crate::support::{process::Running, site::free_port};

/// A queue manager in this process, with its STOMP server.
#[derive(Debug)]
pub(super) struct Here {
    broker: Broker,
    server: StompServer,
    directory: tempfile::TempDir,
}

impl Here {
    pub(super) async fn open() -> Result<Self, BusError> {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (broker, server) = serve(&directory).await?;
        Ok(Self {
            broker,
            server,
            directory,
        })
    }

    pub(super) fn connect(&self, options: ConnectOptions) -> Result<Bus, BusError> {
        Bus::embedded(&self.broker, options)
    }

    pub(super) fn port(&self) -> u16 {
        self.server.local_addrs()[0].port()
    }

    pub(super) async fn close(&self) {
        self.server.shutdown().await;
        self.broker.shutdown().await;
    }

    /// Opens what it has stored before it was closed.
    pub(super) async fn reopen(&mut self) -> Result<(), BusError> {
        (self.broker, self.server) = serve(&self.directory).await?;
        Ok(())
    }
}

async fn serve(directory: &tempfile::TempDir) -> Result<(Broker, StompServer), BusError> {
    let mut options = BrokerOptions::new(directory.path().join("bus"), SystemClock::shared());
    let queues = QUEUES.iter().copied().map(Destination::queue);
    options.destinations = queues
        .chain(TOPICS.iter().copied().map(Destination::topic))
        .collect();
    let broker = Broker::open(options).await?;
    let listen = [([127, 0, 0, 1], 0).into()];
    let server = StompServer::start(&listen, broker.clone(), StompLimits::default()).await?;
    Ok((broker, server))
}

/// A process of the program with the bus server role. Its topics are its collections, its queues those of pillars.
#[derive(Debug)]
pub(super) struct Node {
    settings: tempfile::TempDir,
    port: u16,
    /// Locked by nobody: it is what only one thread may look at.
    running: Mutex<Running>,
}

impl Node {
    pub(super) fn start() -> Self {
        let settings = tempfile::tempdir().expect("a temporary directory");
        let port = free_port();
        let write = |name: &str, text: String| fs::write(settings.path().join(name), text);
        write("repository.toml", repository(port)).expect("can be written");
        let node = format!("data = \"var\"\n[bus_server]\nlisten = [\"127.0.0.1:{port}\"]\n");
        write("node.toml", node).expect("can be written");
        let running = Mutex::new(Running::node(settings.path()));
        Self {
            settings,
            port,
            running,
        }
    }

    pub(super) const fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn kill(&mut self) {
        self.process().kill();
    }

    pub(super) fn restart(&mut self) {
        *self.process() = Running::node(self.settings.path());
    }

    fn process(&mut self) -> &mut Running {
        self.running.get_mut().expect("nobody locks it")
    }
}

fn repository(port: u16) -> String {
    let queues = QUEUES.join("\", \"");
    let collections = TOPICS
        .map(|topic| format!("[[collections]]\nid = \"{topic}\"\npillars = [\"{queues}\"]\n"));
    format!(
        r#"[repository]
name = "Test"
checksum = "MD5"
[bus]
url = "stomp://127.0.0.1:{port}"
[destinations]
pillar = "queue://{{pillar}}"
{}"#,
        collections.concat()
    )
}
