//! Our pillars under the recorded repository's names, in this process: exchange, pillars, alarm service, and a
//! connection from which the recorded client speaks; they meet on a bus of their own, or on a real broker.

use std::{
    collections::BTreeMap,
    net::Ipv4Addr,
    path::{Path, PathBuf},
    sync::Arc,
};

use bytes::Bytes;
use pillarbox_alarms::{AlarmService, AlarmServiceOptions};
use pillarbox_bus::{
    AckMode, Broker, BrokerOptions, Bus, ClientTemplates, ConnectOptions, Incoming, Outgoing,
    StompOptions, SubscribeRequest, Subscription, spelling,
};
use pillarbox_exchange::{
    AddressPolicy, ClientOptions, ExchangeClient, ExchangeServer, ServerOptions,
};
use pillarbox_messages::{Destination, clock::SystemClock};
use pillarbox_pillar::{Pillar, PillarOptions};
use pillarbox_settings::{Node, Repository, ZonelessDates};
use tokio::time::timeout;

use super::{
    capture::{ALARMS, CHECKSUM, Captured, PILLARS, Sender, TYPE},
    scenes::Deed,
};
use crate::support::{PATIENCE, raw_peer};

/// Settings as the recorded repository had them.
pub(crate) const REPOSITORY: &str = r#"
[repository]
name = "Quickstart-repository"
checksum = "MD5"
file_id_pattern = '^[^ \./\p{Cntrl}][^\p{Cntrl}]{0,199}[^\s\p{Cntrl}]$'
require = ["checksum-for-new-file", "checksum-for-destructive"]
[bus]
url = "embedded:"
[destinations]
scheme = "reference"
base = "topic://quick-start"
alarm_destination = "topic://quick-start.alarms"
[[collections]]
id = "books"
pillars = ["checksum-pillar", "file1-pillar", "file2-pillar"]
[[collections]]
id = "dvds"
pillars = ["checksum-pillar", "file2-pillar"]
"#;

/// Where the parts of a repository meet.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Meeting {
    /// On an embedded bus of their own.
    Embedded,
    /// On a broker that speaks STOMP at this port. The names are the recorded ones, so one repository at a time.
    Broker(u16),
}

/// The way there.
enum Route {
    Embedded(Broker),
    Stomp(Box<StompOptions>),
}

/// A running repository.
pub(crate) struct Site {
    directory: tempfile::TempDir,
    route: Route,
    server: ExchangeServer,
    exchange: ExchangeClient,
    repository: Arc<Repository>,
    pillars: BTreeMap<&'static str, Pillar>,
    alarm_service: AlarmService,
    client: Bus,
    reply_to: String,
    heard: Vec<Captured>,
    answers: Subscription,
    alarms: Subscription,
    own_answers: Subscription,
    asked: u32,
}

impl Site {
    /// Starts all pillars but those that are `absent`, for a client that is answered at this address.
    pub(crate) async fn start(meeting: Meeting, absent: &[&str], reply_to: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let repository = Arc::new(Repository::from_toml_str(REPOSITORY, "test").unwrap());
        let route = Route::open(meeting, directory.path(), &repository).await;
        let listen = (Ipv4Addr::LOCALHOST, 0).into();
        let files = directory.path().join("exchange");
        let server = ExchangeServer::start(ServerOptions::new(listen, files, ""));
        let server = server.await.unwrap();
        let policy = AddressPolicy::for_exchange(server.public_url()).unwrap();
        let exchange = ExchangeClient::new(&ClientOptions::new(policy)).unwrap();
        let client = route.connect("recorded-client").await;
        let answers = listen_to(&client, reply_to).await;
        let alarms = listen_to(&client, ALARM_TOPIC).await;
        let own_answers = listen_to(&client, OWN_TOPIC).await;
        let alarm_service = AlarmService::start(AlarmServiceOptions {
            id: ALARMS.into(),
            repository: Arc::clone(&repository),
            bus: route.connect(ALARMS).await,
            data: directory.path().join(ALARMS),
            clock: SystemClock::shared(),
            zoneless: ZonelessDates::default(),
        });
        let mut site = Self {
            directory,
            route,
            server,
            exchange,
            repository,
            pillars: BTreeMap::new(),
            alarm_service: alarm_service.await.unwrap(),
            client,
            reply_to: reply_to.to_owned(),
            heard: Vec::new(),
            answers,
            alarms,
            own_answers,
            asked: 0,
        };
        for pillar in PILLARS
            .into_iter()
            .filter(|pillar| !absent.contains(pillar))
        {
            let started = Pillar::start(site.pillar_options(pillar).await).await;
            site.pillars.insert(pillar, started.unwrap());
        }
        site
    }

    async fn pillar_options(&self, pillar: &str) -> PillarOptions {
        let of_type = match pillar {
            CHECKSUM => "type = \"CHECKSUM\"".to_owned(),
            _ => format!(
                "type = \"FILE\"\ndirectories = [{:?}]",
                self.archive(pillar)
            ),
        };
        let node = format!(
            "[[pillars]]\nid = \"{pillar}\"\n{of_type}\nminimum_size_left = \"0\"\ntime_to_start_deliver = \"1s\""
        );
        let node = Node::from_toml_str(&node, "test").unwrap();
        PillarOptions {
            settings: node.pillars[0].clone(),
            repository: Arc::clone(&self.repository),
            bus: self.route.connect(pillar).await,
            exchange: self.exchange.clone(),
            data: self.directory.path().join(pillar),
            clock: SystemClock::shared(),
        }
    }

    fn archive(&self, pillar: &str) -> PathBuf {
        self.directory.path().join("archives").join(pillar)
    }

    /// Where a FILE pillar keeps a file of `books`.
    pub(crate) fn place(&self, pillar: &str, file: &str) -> PathBuf {
        self.archive(pillar).join("books/fileDir").join(file)
    }

    /// A pillar's index.
    pub(crate) fn index(&self, pillar: &str) -> PathBuf {
        self.directory.path().join(pillar).join("index.sqlite")
    }

    /// A new address on the exchange; `name` is its last part.
    pub(crate) fn address(&self, name: &str) -> String {
        self.server.offers().address_for(name)
    }

    pub(crate) async fn offer(&self, address: &str, content: &[u8]) {
        let content = Bytes::copy_from_slice(content);
        self.exchange.put_bytes(address, content).await.unwrap();
    }

    /// What was delivered to an address.
    pub(crate) async fn delivered(&self, address: &str) -> Vec<u8> {
        let download = self.exchange.get(address).await.unwrap();
        download.bytes(16 << 20).await.unwrap().to_vec()
    }

    /// Sends a message of the recorded client, with this text instead of its own.
    pub(crate) async fn send(&self, message: &Captured, text: String) {
        let mut outgoing = outgoing(&message.destination, text);
        outgoing.properties.clone_from(&message.properties);
        // Of the transport over which the recorded client sent, and no property.
        let transport = ["content-length", "amq-msg-type"];
        outgoing
            .properties
            .retain(|(name, _)| !transport.contains(&name.as_str()));
        outgoing.correlation_id = Some(message.correlation.clone());
        outgoing.reply_to = Some(message.reply_to.parse().unwrap());
        self.client.publish(outgoing).await.unwrap();
    }

    /// Waits until a component has sent so many answers to the recorded client; false if it does not.
    pub(crate) async fn hears(&mut self, from: &Sender, count: usize) -> bool {
        while self.heard.iter().filter(|it| it.from == *from).count() < count {
            match timeout(PATIENCE, self.answers.next()).await {
                Ok(delivery) => self.heard.push(heard(&delivery.unwrap().message)),
                Err(_) => return false,
            }
        }
        true
    }

    /// Does to a pillar what it must have been through before the recorded conversation.
    pub(crate) async fn prepare(&mut self, pillar: &str, deed: &Deed) {
        let (kind, content) = match deed.operation {
            "PUT_FILE" => ("PutFileRequest", deed.put(&self.source(deed).await)),
            "REPLACE_FILE" => ("ReplaceFileRequest", deed.replace(&self.source(deed).await)),
            "DELETE_FILE" => ("DeleteFileRequest", deed.delete()),
            "GET_FILE" => ("GetFileRequest", deed.get(&self.address("got"))),
            other => panic!("how is {other} done?"),
        };
        let audit = format!(
            "<AuditTrailInformation>{}</AuditTrailInformation>",
            deed.information
        );
        let body = format!("{audit}<PillarID>{pillar}</PillarID>{content}");
        let answer = self.ask(kind, pillar, &deed.actor, &body).await;
        assert!(
            answer.text.contains("OPERATION_COMPLETED"),
            "{}",
            answer.text
        );
    }

    async fn source(&self, deed: &Deed) -> String {
        let address = self.address("source");
        self.offer(&address, deed.content).await;
        address
    }

    /// A request of the test's own to a pillar; gives its last answer.
    async fn ask(&mut self, kind: &str, pillar: &str, from: &str, body: &str) -> Captured {
        let destination = format!("topic://quick-start-{pillar}-contributor");
        self.ask_at(&destination, kind, from, body).await;
        loop {
            let answer = self.own_answer().await;
            if !answer.kind.ends_with("ProgressResponse") {
                return answer;
            }
        }
    }

    async fn ask_at(&mut self, destination: &str, kind: &str, from: &str, body: &str) {
        self.asked += 1;
        let header = format!(
            "<CorrelationID>own-{}</CorrelationID><CollectionID>books</CollectionID>\
             <Destination>{destination}</Destination><ReplyTo>{OWN_TOPIC}</ReplyTo><From>{from}</From>",
            self.asked
        );
        let text = raw_peer::document(kind, &format!("{header}{body}"));
        let mut outgoing = outgoing(destination, text);
        outgoing.properties = vec![(TYPE.to_owned(), kind.to_owned())];
        self.client.publish(outgoing).await.unwrap();
    }

    async fn own_answer(&mut self) -> Captured {
        let delivery = timeout(PATIENCE, self.own_answers.next()).await;
        heard(&delivery.expect("an answer").unwrap().message)
    }

    /// Stops the pillars, and gives all that the recorded client has heard and all alarms. Every pillar has taken and
    /// answered what was sent before, since it has answered a later request at each of its destinations and has
    /// then been stopped in order; and no message is on its way, since a last one has come after them.
    pub(crate) async fn settle(&mut self) -> Vec<Captured> {
        let everything = "<FileIDs><AllFileIDs>true</AllFileIDs></FileIDs>";
        let pillars: Vec<&str> = self.pillars.keys().copied().collect();
        for pillar in &pillars {
            let body = format!("<PillarID>{pillar}</PillarID>{everything}");
            self.ask("GetFileIDsRequest", pillar, "test", &body).await;
        }
        let identify = "IdentifyPillarsForGetFileIDsRequest";
        self.ask_at("topic://quick-start", identify, "test", everything)
            .await;
        for _ in &pillars {
            self.own_answer().await;
        }
        for (_, pillar) in std::mem::take(&mut self.pillars) {
            pillar.shutdown(PATIENCE).await;
        }
        let mut heard = std::mem::take(&mut self.heard);
        heard.extend(rest(&self.client, &self.reply_to, &mut self.answers).await);
        heard.extend(rest(&self.client, ALARM_TOPIC, &mut self.alarms).await);
        // What the recorded client said itself, where it listens too.
        heard.retain(|message| message.from != Sender::Client);
        heard
    }

    pub(crate) async fn close(self) {
        self.alarm_service.shutdown().await;
        self.server.shutdown().await;
        let _ = self.client.close().await;
        if let Route::Embedded(broker) = self.route {
            broker.shutdown().await;
        }
    }
}

impl Route {
    async fn open(meeting: Meeting, directory: &Path, repository: &Arc<Repository>) -> Self {
        if let Meeting::Broker(port) = meeting {
            let options = StompOptions::new(format!("127.0.0.1:{port}"));
            return Self::Stomp(Box::new(options));
        }
        let mut options = BrokerOptions::new(directory.join("bus"), SystemClock::shared());
        options.destinations = repository.bus_destinations();
        let templates = Arc::clone(repository);
        options.client_templates =
            ClientTemplates::new(move |name| templates.fits_client_template(name));
        Self::Embedded(Broker::open(options).await.unwrap())
    }

    async fn connect(&self, id: &str) -> Bus {
        let connect = ConnectOptions {
            client_id: id.to_owned(),
        };
        let bus = match self {
            Self::Embedded(broker) => Bus::embedded(broker, connect).unwrap(),
            Self::Stomp(options) => Bus::stomp(StompOptions::clone(options), connect),
        };
        bus.ready(PATIENCE).await.unwrap();
        bus
    }
}

/// Everything that is still to come there.
async fn rest(bus: &Bus, destination: &str, subscription: &mut Subscription) -> Vec<Captured> {
    bus.publish(outgoing(destination, LAST.to_owned()))
        .await
        .unwrap();
    let mut rest = Vec::new();
    loop {
        let delivery = timeout(PATIENCE, subscription.next()).await;
        let message = delivery
            .expect("the last message comes")
            .unwrap()
            .message
            .clone();
        if message.body == LAST.as_bytes() {
            return rest;
        }
        rest.push(heard(&message));
    }
}

fn outgoing(destination: &str, text: String) -> Outgoing {
    Outgoing::new(destination.parse::<Destination>().unwrap(), text)
}

/// As if it had been recorded.
fn heard(message: &Incoming) -> Captured {
    let text = String::from_utf8(message.body.to_vec()).unwrap();
    let reply_to = message.reply_to.as_deref().and_then(spelling::from_stomp);
    let delivery = if message.persistent {
        "PERSISTENT(2)"
    } else {
        "NON_PERSISTENT(1)"
    };
    Captured {
        kind: message.property(TYPE).unwrap_or_default().to_owned(),
        from: Sender::of(&text),
        destination: message.destination.to_string(),
        correlation: message.correlation_id.clone().unwrap_or_default(),
        reply_to: reply_to.map_or_else(String::new, |it| it.to_string()),
        delivery: delivery.to_owned(),
        properties: message.properties.clone(),
        text,
    }
}

async fn listen_to(bus: &Bus, destination: &str) -> Subscription {
    let request = SubscribeRequest {
        ack_timeout: None,
        destination: destination.parse().unwrap(),
        durable: None,
        ack: AckMode::Auto,
        prefetch: 100,
    };
    bus.subscribe(request).await.unwrap()
}

const ALARM_TOPIC: &str = "topic://quick-start.alarms";
const OWN_TOPIC: &str = "topic://quick-start-test";
const LAST: &str = "the last message";
