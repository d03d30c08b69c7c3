//! A node: the roles of one process, started in the order in which they need each other.

mod poison;
mod queues;
mod subscriptions;
mod trouble;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use pillarbox_alarms::{AlarmService, AlarmServiceError, AlarmServiceOptions};
use pillarbox_bus::{
    Broker, BrokerOptions, Bus, BusError, BusState, ClientTemplates, StompLimits, StompServer,
};
use pillarbox_exchange::{
    AddressPolicy, ClientOptions, ExchangeClient, ExchangeError, ExchangeServer, ServerOptions,
};
use pillarbox_messages::{
    ComponentId,
    clock::{SharedClock, SystemClock},
};
use pillarbox_pillar::{Pillar, PillarError, PillarOptions};
use pillarbox_settings::{BusUrl, Node, Problem, Repository};
use thiserror::Error;
use tokio::{sync::watch, task::JoinSet};
use tracing::info;

use crate::{
    connecting::Route,
    data_directory::{DataDirectory, DataDirectoryError},
};

/// The running roles of one process.
#[derive(Debug)]
pub struct RunningNode {
    route: Route,
    broker: Option<Broker>,
    stomp: Option<StompServer>,
    exchange: Option<ExchangeServer>,
    pillars: Vec<Pillar>,
    alarms: Option<AlarmService>,
    /// The states of the roles' bus connections.
    links: Vec<watch::Receiver<BusState>>,
    watch: Option<Bus>,
    /// What is done beside the roles.
    beside: JoinSet<()>,
    _data: DataDirectory,
}

/// Why a node can't start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum NodeError {
    /// node.toml names no role.
    #[error(
        "node.toml gives this process no role; add [[pillars]], [bus_server], [exchange_server] or [alarms]"
    )]
    NoRole,
    /// The bus's address can't be used.
    #[error("{0}")]
    Settings(Problem),
    /// Another process has the data directory, or it can't be used.
    #[error(transparent)]
    Data(#[from] DataDirectoryError),
    /// The bus can't be served or reached.
    #[error(transparent)]
    Bus(#[from] BusError),
    /// The file exchange can't be served or used.
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
    /// A pillar can't start.
    #[error(transparent)]
    Pillar(#[from] PillarError),
    /// The alarm service can't start.
    #[error(transparent)]
    Alarms(#[from] AlarmServiceError),
}

impl RunningNode {
    /// Starts the roles: bus and exchange first, then what works over them. Waits for a bus elsewhere as long
    /// as it takes. When this returns, every role has subscribed. `settings` is the directory that the settings are from:
    /// alarms name it in what they advise.
    ///
    /// # Errors
    /// What keeps a role from starting; those that had started are stopped.
    pub async fn start(
        repository: Arc<Repository>,
        node: &Node,
        settings: &Path,
    ) -> Result<Self, NodeError> {
        if !node.plays_a_role() {
            return Err(NodeError::NoRole);
        }
        let elsewhere = match serves_bus(&repository, node) {
            true => None,
            false => Route::elsewhere(&repository, node).map_err(NodeError::Settings)?,
        };
        let data = DataDirectory::open(&node.data)?;
        let clock = SystemClock::shared();
        inspect(&repository, node, &clock).await?;
        let (route, broker) = match elsewhere {
            Some(route) => (route, None),
            None => {
                let broker = open_broker(&repository, node, data.path(), &clock).await?;
                (Route::Here(broker.clone()), Some(broker))
            }
        };
        let mut running = Self {
            route,
            broker,
            stomp: None,
            exchange: None,
            pillars: Vec::new(),
            alarms: None,
            links: Vec::new(),
            watch: None,
            beside: JoinSet::new(),
            _data: data,
        };
        match running
            .start_roles(repository, node, settings, &clock)
            .await
        {
            Ok(()) => Ok(running),
            Err(error) => {
                running.shutdown(Duration::ZERO).await;
                Err(error)
            }
        }
    }

    async fn start_roles(
        &mut self,
        repository: Arc<Repository>,
        node: &Node,
        settings: &Path,
        clock: &SharedClock,
    ) -> Result<(), NodeError> {
        if self.broker.is_some() {
            // Also a process that only serves the bus has to know when that has failed.
            self.watch = Some(self.link(&ComponentId::from(WATCH)).await?);
        }
        if let (Some(broker), Some(bus)) = (&self.broker, &self.watch) {
            let told = broker.notices();
            let reachable = Route::to_administer(&repository, node).map_err(NodeError::Settings)?;
            let advice = reachable.map(|_| poison::Advice::of(settings));
            let bus = bus.clone();
            poison::watch(&mut self.beside, told, advice, bus, &repository, clock);
        }
        if let (Some(broker), Some(server)) = (&self.broker, &node.bus_server) {
            let limits = StompLimits::default();
            let server = StompServer::start(&server.listen, broker.clone(), limits).await?;
            info!(addresses = ?server.local_addrs(), "bus server ready");
            self.stomp = Some(server);
        }
        if let Some(server) = &node.exchange_server {
            let directory = node.data.join("exchange");
            let mut options = ServerOptions::new(server.listen, directory, &*server.public_url);
            options.expiry = server.expiry;
            options.maximum_file_bytes = server.maximum_file_size;
            options.clock = SharedClock::clone(clock);
            self.exchange = Some(ExchangeServer::start(options).await?);
            info!(address = %server.listen, "exchange server ready");
        }
        let exchange = exchange_client(&repository, node)?;
        for settings in &node.pillars {
            let bus = self.link(&settings.id).await?;
            let options = PillarOptions {
                settings: settings.clone(),
                repository: Arc::clone(&repository),
                bus,
                exchange: exchange.clone(),
                data: pillar_data(node, &settings.id),
                clock: SharedClock::clone(clock),
            };
            self.pillars.push(Pillar::start(options).await?);
        }
        if let Some(alarms) = &node.alarms {
            let bus = self.link(&alarms.id).await?;
            let options = AlarmServiceOptions {
                id: alarms.id.clone(),
                repository,
                bus,
                data: node.data.clone(),
                clock: SharedClock::clone(clock),
                zoneless: alarms.accept_zoneless,
            };
            self.alarms = Some(AlarmService::start(options).await?);
        }
        Ok(())
    }

    /// A role's connection to its bus.
    async fn link(&mut self, id: &ComponentId) -> Result<Bus, BusError> {
        let bus = self.route.connect_patiently(id).await?;
        self.links.push(bus.state());
        Ok(bus)
    }

    /// Returns once a role has lost its bus for good: then this process does no good any more.
    pub async fn lost(&self) -> BusError {
        lost(self.links.clone()).await
    }

    /// A connection to this node's bus, for a component of this process.
    ///
    /// # Errors
    /// If the id is in use.
    pub fn connect(&self, id: &ComponentId) -> Result<Bus, BusError> {
        self.route.connect(id)
    }

    /// Stops: pillars finish within `grace` what can be finished, other requests go back to their queue.
    pub async fn shutdown(mut self, grace: Duration) {
        self.beside.shutdown().await;
        let mut pillars: JoinSet<()> = JoinSet::new();
        for pillar in self.pillars {
            pillars.spawn(pillar.shutdown(grace));
        }
        if let Some(alarms) = self.alarms {
            alarms.shutdown().await;
        }
        pillars.join_all().await;
        if let Some(watch) = self.watch {
            // The queue manager is about to stop: nothing depends on this connection's end.
            let _ = watch.close().await;
        }
        if let Some(stomp) = self.stomp {
            stomp.shutdown().await;
        }
        if let Some(exchange) = self.exchange {
            exchange.shutdown().await;
        }
        if let Some(broker) = self.broker {
            broker.shutdown().await;
        }
        info!("node stopped");
    }
}

/// Finds what would keep a role from starting, before anybody is connected to and before anything is made.
async fn inspect(
    repository: &Arc<Repository>,
    node: &Node,
    clock: &SharedClock,
) -> Result<(), NodeError> {
    exchange_client(repository, node)?;
    for settings in &node.pillars {
        let data = pillar_data(node, &settings.id);
        let (repository, clock) = (Arc::clone(repository), SharedClock::clone(clock));
        Pillar::inspect(settings.clone(), repository, data, clock).await?;
    }
    if node.alarms.is_some() {
        AlarmService::inspect(&node.data)?;
    }
    Ok(())
}

/// Where a pillar of this process keeps its index.
fn pillar_data(node: &Node, pillar: &ComponentId) -> PathBuf {
    node.data.join("pillars").join(pillar.as_str())
}

/// The first of these connections that fails for good, and why. For ever if none does.
async fn lost(links: Vec<watch::Receiver<BusState>>) -> BusError {
    let mut waiting = JoinSet::new();
    for mut link in links {
        waiting.spawn(async move {
            let failed = |state: &BusState| matches!(state, BusState::Failed(_));
            match link.wait_for(failed).await.as_deref() {
                Ok(BusState::Failed(error)) => Some(error.clone()),
                // Closed by this side, while stopping.
                _ => None,
            }
        });
    }
    while let Some(ended) = waiting.join_next().await {
        if let Ok(Some(error)) = ended {
            return error;
        }
    }
    std::future::pending().await
}

/// The client id of a process's connection to its own queue manager; no component has such an id.
const WATCH: &str = "~node";

/// What a process with these settings fetches and offers files with.
///
/// # Errors
/// Rules or certificates that can't be used.
pub fn exchange_client(
    repository: &Repository,
    node: &Node,
) -> Result<ExchangeClient, ExchangeError> {
    let mut options = ClientOptions::new(AddressPolicy {
        hosts: node.exchange_hosts(repository),
        file_roots: node.exchange.file_roots.clone(),
    });
    options.ca_files.clone_from(&node.exchange.ca_files);
    ExchangeClient::new(&options)
}

/// A process with the bus server role has the queue manager, and so has one whose bus is `embedded:`.
fn serves_bus(repository: &Repository, node: &Node) -> bool {
    node.bus_server.is_some() || node.effective_bus(repository).url == BusUrl::Embedded
}

async fn open_broker(
    repository: &Arc<Repository>,
    node: &Node,
    data: &Path,
    clock: &SharedClock,
) -> Result<Broker, BusError> {
    let mut options = BrokerOptions::new(data.join("bus"), SharedClock::clone(clock));
    options.queues = queues::definitions(repository, node);
    options.destinations = repository.bus_destinations();
    let durable = node.bus_server.iter();
    let durable = durable.flat_map(|server| &server.durable_topics);
    options.durable_topics = durable.cloned().collect();
    options.subscription_rules = subscriptions::rules(node);
    options.durable_subscriptions = node
        .alarms
        .iter()
        .flat_map(|alarms| repository.durable_subscriptions(&alarms.id))
        .map(|it| (it.client_id.to_string(), it.name, it.destination))
        .collect();
    let templates = Arc::clone(repository);
    options.client_templates =
        ClientTemplates::new(move |destination| templates.fits_client_template(destination));
    Broker::open(options).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_link_that_failed_for_good_is_told() {
        let (one, first) = watch::channel(BusState::Connected);
        let (other, second) = watch::channel(BusState::Connecting);
        let mut watched = std::pin::pin!(lost(vec![first, second]));
        one.send_replace(BusState::Closed);
        drop(one);
        assert!(futures_util::poll!(&mut watched).is_pending());
        other.send_replace(BusState::Failed(BusError::ClientIdInUse(
            "north".to_owned(),
        )));
        assert_eq!(watched.await, BusError::ClientIdInUse("north".to_owned()));
    }
}
