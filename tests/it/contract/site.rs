//! The four buses, each with the same names of queues and topics.

mod embedded;

use std::{fmt, time::Duration};

use pillarbox_bus::{Bus, BusError, ConnectOptions, StompOptions};
use pillarbox_messages::Destination;
use tokio::task::{block_in_place, spawn_blocking};

use self::embedded::{Here, Node};
use super::{Broken, Kept, fuse::Fuse};
use crate::support::{
    PATIENCE,
    brokers::{ActiveMq, Broker, RabbitMq},
};

/// What carries the messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// The queue manager, in the client's process.
    Embedded,
    /// The queue manager, through its STOMP server.
    OverStomp,
    ActiveMq,
    RabbitMq,
}

impl Kind {
    pub(super) const ALL: [Self; 4] = [
        Self::Embedded,
        Self::OverStomp,
        Self::ActiveMq,
        Self::RabbitMq,
    ];
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Embedded => "embedded",
            Self::OverStomp => "over STOMP",
            Self::ActiveMq => "ActiveMQ",
            Self::RabbitMq => "RabbitMQ",
        })
    }
}

/// The queues there are.
const QUEUES: [&str; 3] = ["work", "results", "kim's work desk"];
/// The topics there are.
const TOPICS: [&str; 2] = ["news", "kim's reading desk"];

/// A bus for one contract: nobody else uses its queues, topics and client ids.
#[derive(Debug)]
pub(super) struct Site {
    kind: Kind,
    /// Before each name, where the broker is shared.
    prefix: String,
    place: Place,
}

#[derive(Debug)]
enum Place {
    Here(Here),
    /// The program itself, with the bus server role.
    Node(Node),
    Shared(&'static Broker),
    Own(Broker),
}

impl Site {
    /// A bus that may be shared with others.
    pub(super) async fn open(kind: Kind, contract: &str) -> Result<Self, Broken> {
        let place = match kind {
            Kind::Embedded | Kind::OverStomp => Place::Here(Here::open().await?),
            Kind::ActiveMq => Place::Shared(blocking(ActiveMq::shared).await?),
            Kind::RabbitMq => Place::Shared(blocking(RabbitMq::shared).await?),
        };
        let prefix = match place {
            Place::Shared(_) => format!("{}.", contract.replace("::", ".")),
            _ => String::new(),
        };
        Ok(Self {
            kind,
            prefix,
            place,
        })
    }

    /// Another bus of the same kind, which can be killed.
    pub(super) async fn of_its_own(&self) -> Result<Self, Broken> {
        let place = match self.kind {
            Kind::Embedded => Place::Here(Here::open().await?),
            Kind::OverStomp => Place::Node(blocking(Node::start).await?),
            Kind::ActiveMq => Place::Own(blocking(ActiveMq::start).await?),
            Kind::RabbitMq => Place::Own(blocking(RabbitMq::start).await?),
        };
        Ok(Self {
            kind: self.kind,
            prefix: String::new(),
            place,
        })
    }

    pub(super) fn queue(&self, name: &str) -> Destination {
        debug_assert!(QUEUES.contains(&name), "there is no queue '{name}'");
        Destination::queue(&self.name(name))
    }

    pub(super) fn topic(&self, name: &str) -> Destination {
        debug_assert!(TOPICS.contains(&name), "there is no topic '{name}'");
        Destination::topic(&self.name(name))
    }

    fn name(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// The bus as a client with this id sees it, once it is connected.
    pub(super) async fn connect(&self, id: &str) -> Result<Bus, Broken> {
        ready(self.dial(id)?).await
    }

    /// The same, perhaps before it is connected.
    pub(super) fn dial(&self, id: &str) -> Result<Bus, BusError> {
        match (self.kind, &self.place) {
            (Kind::Embedded, Place::Here(here)) => here.connect(self.client(id)),
            _ => Ok(Bus::stomp(stomp_options(self.port()), self.client(id))),
        }
    }

    fn client(&self, id: &str) -> ConnectOptions {
        ConnectOptions {
            client_id: self.name(id),
        }
    }

    /// A client whose connection breaks when it has sent its messages and not yet acknowledged any; without a fuse
    /// where there is no connection between client and bus.
    pub(super) async fn connect_to_break(&self, id: &str) -> Result<(Bus, Option<Fuse>), Broken> {
        if self.kind == Kind::Embedded {
            return Ok((self.connect(id).await?, None));
        }
        let fuse = Fuse::lay(self.port()).await?;
        let bus = Bus::stomp(stomp_options(fuse.port()), self.client(id));
        Ok((ready(bus).await?, Some(fuse)))
    }

    /// Where the bus can be looked at as STOMP.
    pub(super) fn port(&self) -> u16 {
        match &self.place {
            Place::Here(here) => here.port(),
            Place::Node(node) => node.port(),
            Place::Shared(broker) => broker.port(),
            Place::Own(broker) => broker.port(),
        }
    }

    /// Ends the bus as hard as can be: what the test process has not, with kill -9.
    pub(super) async fn kill(&mut self) -> Kept {
        match &mut self.place {
            Place::Here(here) => here.close().await,
            Place::Node(node) => block_in_place(|| node.kill()),
            Place::Own(broker) => block_in_place(|| broker.kill()),
            Place::Shared(_) => return Err("others use this broker".into()),
        }
        Ok(())
    }

    /// Starts it again after [`Site::kill`], with what it has stored and at the same address.
    pub(super) async fn restart(&mut self) -> Kept {
        match &mut self.place {
            Place::Here(here) => here.reopen().await?,
            Place::Node(node) => block_in_place(|| node.restart()),
            Place::Own(broker) => block_in_place(|| broker.restart()),
            Place::Shared(_) => return Err("others use this broker".into()),
        }
        Ok(())
    }
}

async fn ready(bus: Bus) -> Result<Bus, Broken> {
    bus.ready(PATIENCE).await?;
    Ok(bus)
}

/// As components have it, but soon back.
fn stomp_options(port: u16) -> StompOptions {
    StompOptions {
        shortest_pause: Duration::from_millis(20),
        longest_pause: Duration::from_millis(200),
        ..StompOptions::new(format!("127.0.0.1:{port}"))
    }
}

/// Starting a broker takes seconds, in which others go on.
async fn blocking<T: Send + 'static>(
    start: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Broken> {
    let started = spawn_blocking(start).await;
    started.map_err(|error| Broken::from(format!("the bus does not start: {error}")))
}
