//! A bus and an exchange in this process.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use pillarbox_bus::{
    AckMode, Broker, BrokerOptions, Bus, ClientTemplates, ConnectOptions, SubscribeRequest,
    Subscription,
};
use pillarbox_component::{Component, ComponentOptions};
use pillarbox_exchange::{AddressPolicy, ExchangeClient, ExchangeServer, ServerOptions, client};
use pillarbox_messages::{Destination, clock::SystemClock};
use pillarbox_settings::{AlarmLevel, Repository, Timeouts, ZonelessDates};

use super::stand_in::{StandIn, Temper};
use crate::{Client, ClientOptions};

const SETTINGS: &str = r#"
[repository]
name = "test"
checksum = "MD5"

[bus]
url = "embedded:"

[[collections]]
id = "books"
pillars = ["north", "south"]
"#;

/// Longer than anything takes that is to happen.
pub(super) const PLENTY: Duration = Duration::from_secs(30);

/// A repository without pillars.
pub(super) struct Site {
    pub(super) directory: tempfile::TempDir,
    pub(super) broker: Broker,
    pub(super) exchange: ExchangeClient,
    pub(super) repository: Arc<Repository>,
    pub(super) base: String,
    _server: ExchangeServer,
}

impl Site {
    pub(super) async fn start() -> Self {
        Self::start_with("").await
    }

    /// A repository with more settings.
    pub(super) async fn start_with(more: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let settings = format!("{more}{SETTINGS}");
        let repository = Arc::new(Repository::from_toml_str(&settings, "repository.toml").unwrap());
        let mut options = BrokerOptions::new(directory.path().join("bus"), SystemClock::shared());
        options.destinations = repository.bus_destinations();
        options
            .destinations
            .extend(["north", "south", "west"].map(elsewhere));
        let templates = Arc::clone(&repository);
        options.client_templates =
            ClientTemplates::new(move |name| templates.fits_client_template(name));
        let broker = Broker::open(options).await.unwrap();
        let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let files = directory.path().join("exchange");
        let server = ExchangeServer::start(ServerOptions::new(listen, files, ""))
            .await
            .unwrap();
        let base = format!("http://{}/", server.local_addr());
        let policy = AddressPolicy::for_exchange(&base).unwrap();
        let exchange = ExchangeClient::new(&client::ClientOptions::new(policy)).unwrap();
        Self {
            directory,
            broker,
            exchange,
            repository,
            base,
            _server: server,
        }
    }

    pub(super) fn bus(&self, id: &str) -> Bus {
        Bus::embedded(
            &self.broker,
            ConnectOptions {
                client_id: id.to_owned(),
            },
        )
        .unwrap()
    }

    pub(super) fn client(&self, id: &str, named: bool, timeout: Duration) -> Client {
        Client::connect(ClientOptions {
            named,
            ..self.options(id, timeout)
        })
        .unwrap()
    }

    /// What a passing client is made from.
    pub(super) fn options(&self, id: &str, timeout: Duration) -> ClientOptions {
        ClientOptions {
            repository: Arc::clone(&self.repository),
            bus: self.bus(id),
            exchange: self.exchange.clone(),
            exchange_base: Some(self.base.clone()),
            id: id.into(),
            named: false,
            journal: None,
            sla: None,
            clock: SystemClock::shared(),
            timeouts: Some(Timeouts {
                identification: timeout,
                operation: timeout,
                conversation: timeout,
            }),
            extend_on_progress: false,
            zoneless: ZonelessDates::default(),
        }
    }

    /// A pillar whose requests come to a queue that its responses alone tell of.
    pub(super) async fn pillar(&self, id: &str, temper: Temper) -> StandIn {
        self.pillar_at(id, temper, elsewhere(id)).await
    }

    /// A pillar whose requests come to this destination.
    pub(super) async fn pillar_at(&self, id: &str, temper: Temper, at: Destination) -> StandIn {
        let bus = self.bus(id);
        let mut options = ComponentOptions::pillar(
            id.into(),
            Arc::clone(&self.repository),
            bus.clone(),
            SystemClock::shared(),
            AlarmLevel::default(),
        );
        let all = || self.repository.collections.iter();
        let mut served: Vec<_> = all().filter(|it| it.pillars.contains(&id.into())).collect();
        if served.is_empty() {
            // Who is no pillar is a service, and listens to all.
            served.extend(all());
        }
        for collection in &served {
            options.addresses.insert(collection.id.clone(), at.clone());
        }
        let component = Component::new(options);
        let requests = subscribe(&bus, at).await;
        let stand_in = StandIn::new(component, self.exchange.clone(), temper);
        for collection in served {
            let topic = self.repository.destinations(&collection.id).collection();
            let identify = subscribe(&bus, topic).await;
            tokio::spawn(stand_in.clone().serve(identify));
        }
        tokio::spawn(stand_in.clone().serve(requests));
        stand_in
    }

    /// How many files lie on the exchange.
    pub(super) fn offers(&self) -> usize {
        let [files, incoming] = ["files", "incoming"]
            .map(|name| files_below(&self.directory.path().join("exchange").join(name)));
        files + incoming
    }
}

fn files_below(directory: &std::path::Path) -> usize {
    let Ok(entries) = std::fs::read_dir(directory) else {
        return 0;
    };
    entries
        .map(|entry| entry.unwrap())
        .map(|entry| {
            if entry.path().is_dir() {
                files_below(&entry.path())
            } else {
                1
            }
        })
        .sum()
}

fn elsewhere(id: &str) -> Destination {
    Destination::queue(&format!("somewhere.else.{id}"))
}

async fn subscribe(bus: &Bus, destination: Destination) -> Subscription {
    let request = SubscribeRequest {
        ack_timeout: None,
        destination,
        durable: None,
        ack: AckMode::Auto,
        prefetch: 16,
    };
    bus.subscribe(request).await.unwrap()
}
