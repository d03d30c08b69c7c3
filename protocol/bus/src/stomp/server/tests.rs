//! The server, seen from its clients.

mod administering;
mod clients;
mod durable;
mod edges;
mod hostile;
mod logged;
mod places;
mod pulling;
mod python;
mod reports;
mod sessions;

use std::net::SocketAddr;

use pillarbox_messages::{Destination, clock::SystemClock};
use tempfile::TempDir;

use super::{StompLimits, StompServer};
use crate::{Broker, BrokerOptions, ClientTemplates, QueueDefinition, stomp::testing::Peer};

/// A queue manager and its server. It has queue `q`, topic `t`, and topics whose names start with `client`.
struct Site {
    broker: Broker,
    server: StompServer,
    directory: TempDir,
}

impl Site {
    async fn start(limits: StompLimits) -> Self {
        let directory = TempDir::new().unwrap();
        let broker = Broker::open(options(&directory)).await.unwrap();
        Self::serve(directory, broker, limits).await
    }

    /// Over a queue manager that holds no more than this, in bytes.
    async fn small(capacity_bytes: u64) -> Self {
        let directory = TempDir::new().unwrap();
        let options = BrokerOptions {
            capacity_bytes,
            ..options(&directory)
        };
        let broker = Broker::open(options).await.unwrap();
        Self::serve(directory, broker, StompLimits::default()).await
    }

    async fn serve(directory: TempDir, broker: Broker, limits: StompLimits) -> Self {
        let listen = [SocketAddr::from(([127, 0, 0, 1], 0))];
        let server = StompServer::start(&listen, broker.clone(), limits)
            .await
            .unwrap();
        Self {
            broker,
            server,
            directory,
        }
    }

    fn address(&self) -> SocketAddr {
        self.server.local_addrs()[0]
    }

    async fn dial(&self) -> Peer {
        Peer::dial(self.address()).await
    }

    async fn connect(&self, client_id: &str) -> Peer {
        Peer::connect(self.address(), client_id).await
    }

    /// Stops everything and starts it anew at the same address, over the same directory.
    async fn restart(self) -> Self {
        let address = self.address();
        self.server.shutdown().await;
        self.broker.shutdown().await;
        let broker = Broker::open(options(&self.directory)).await.unwrap();
        let limits = StompLimits::default();
        let server = StompServer::start(&[address], broker.clone(), limits)
            .await
            .unwrap();
        Self {
            broker,
            server,
            directory: self.directory,
        }
    }
}

fn options(directory: &TempDir) -> BrokerOptions {
    BrokerOptions {
        destinations: vec![Destination::queue("q"), Destination::topic("t")],
        client_templates: ClientTemplates::new(|destination| {
            destination.name().starts_with("client")
        }),
        ..BrokerOptions::new(directory.path(), SystemClock::shared())
    }
}

impl Site {
    /// With these queues besides.
    async fn with_queues(queues: Vec<QueueDefinition>) -> Self {
        let directory = TempDir::new().unwrap();
        let options = BrokerOptions {
            queues,
            ..options(&directory)
        };
        let broker = Broker::open(options).await.unwrap();
        Self::serve(directory, broker, StompLimits::default()).await
    }
}
