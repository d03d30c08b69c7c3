//! One pillar in this process, and a client that asks it and hears everything.

use std::{
    collections::BTreeMap,
    net::Ipv4Addr,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
};

use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Utc};
use pillarbox_bus::{
    AckMode, Broker, BrokerOptions, Bus, ClientTemplates, ConnectOptions, SubscribeRequest,
    Subscription,
};
use pillarbox_component::{Component, ComponentOptions};
use pillarbox_exchange::{
    AddressPolicy, ClientOptions, ExchangeClient, ExchangeServer, ServerOptions,
};
use pillarbox_messages::{
    Alarm, AlarmCode, AuditTrailEvent, CollectionId, CorrelationId, Destination, FileIds,
    GetAuditTrailsFinalResponse, GetAuditTrailsRequest, GetFileIdsRequest, Header,
    IdentifyPillarsForGetFileIdsRequest, Message, Operation, ProtocolVersion, PutFileRequest,
    ResponseCode, ResultingAuditTrails, Timestamp,
    clock::{Clock, SystemClock},
};
use pillarbox_pillar::{Pillar, PillarOptions};
use pillarbox_settings::{AlarmLevel, Node, Repository};
use tokio::time::timeout;

use super::{
    Row, Seen,
    asker::{Asker, FOX, OLD},
};
use crate::support::PATIENCE;

/// What a pillar keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Full,
    Sums,
}

impl Kind {
    pub(super) const ALL: [Self; 2] = [Self::Full, Self::Sums];

    pub(super) const fn id(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Sums => "sums",
        }
    }
}

const REPOSITORY: &str = r#"
[repository]
name = "Conformance"
require = ["checksum-for-new-file", "checksum-for-destructive"]
[bus]
url = "embedded:"
[destinations]
alarms = "topic://alarms"
[[collections]]
id = "books"
pillars = ["full", "sums"]
[[collections]]
id = "maps"
pillars = ["full", "sums"]
[[collections]]
id = "fences"
pillars = ["full", "sums"]
[[collections]]
id = "empty"
pillars = ["full", "sums"]
[[collections]]
id = "foreign"
pillars = ["stranger"]
"#;

/// A clock that can be put forward.
#[derive(Debug, Default)]
struct Ahead(AtomicI64);

impl Clock for Ahead {
    fn now(&self) -> DateTime<Utc> {
        SystemClock.now() + TimeDelta::milliseconds(self.0.load(Ordering::SeqCst))
    }
}

/// The pillar under test and its surroundings.
pub(super) struct Stage {
    pub(super) kind: Kind,
    pub(super) client: Component,
    pub(super) server: ExchangeServer,
    pub(super) exchange: ExchangeClient,
    /// The times of the files of `maps`, oldest first, as GetFileIDs tells them.
    pub(super) id_times: Vec<Timestamp>,
    /// The same as GetChecksums tells them.
    pub(super) sum_times: Vec<Timestamp>,
    clock: Arc<Ahead>,
    pillar: Pillar,
    broker: Broker,
    answers: Subscription,
    alarms: Subscription,
    fences: usize,
    directory: tempfile::TempDir,
}

impl Stage {
    pub(super) async fn start(kind: Kind) -> Self {
        Self::start_at(kind, AlarmLevel::Warning).await
    }

    /// One whose pillar sends alarms from this level on.
    pub(super) async fn start_at(kind: Kind, level: AlarmLevel) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let repository = Arc::new(Repository::from_toml_str(REPOSITORY, "test").unwrap());
        let mut options = BrokerOptions::new(directory.path().join("bus"), SystemClock::shared());
        options.destinations = repository.bus_destinations();
        let templates = Arc::clone(&repository);
        options.client_templates =
            ClientTemplates::new(move |name| templates.fits_client_template(name));
        let broker = Broker::open(options).await.unwrap();
        let listen = (Ipv4Addr::LOCALHOST, 0).into();
        let files = directory.path().join("exchange");
        let server = ExchangeServer::start(ServerOptions::new(listen, files, ""));
        let server = server.await.unwrap();
        let mut policy = AddressPolicy::for_exchange(server.public_url()).unwrap();
        policy.hosts.push("127.0.0.1:9".to_owned());
        let exchange = ExchangeClient::new(&ClientOptions::new(policy)).unwrap();
        let clock = Arc::<Ahead>::default();
        let pillar = Pillar::start(PillarOptions {
            settings: settings(kind, level, directory.path()),
            repository: Arc::clone(&repository),
            bus: connect(&broker, kind.id()),
            exchange: exchange.clone(),
            data: directory.path().join("data"),
            clock: Arc::<Ahead>::clone(&clock),
        });
        let pillar = pillar.await.unwrap();
        let client = Component::new(ComponentOptions::client(
            "asker".into(),
            None,
            Arc::clone(&repository),
            connect(&broker, "asker"),
            SystemClock::shared(),
        ));
        let answers = listen_to(&client, client.address(Some(&BOOKS.into()))).await;
        let alarms = listen_to(&client, "topic://alarms".parse().unwrap()).await;
        let mut stage = Self {
            kind,
            client,
            server,
            exchange,
            id_times: Vec::new(),
            sum_times: Vec::new(),
            clock,
            pillar,
            broker,
            answers,
            alarms,
            fences: 0,
            directory,
        };
        stage.stock().await;
        stage
    }

    /// One file in `books`; three in `maps`, of different times.
    async fn stock(&mut self) {
        self.put(BOOKS, "here.bin", OLD).await;
        for file in MAPS {
            self.clock.0.fetch_add(20, Ordering::SeqCst);
            self.put("maps", file, FOX).await;
        }
        let mut ids = self.asker().ids(FileIds::All);
        ids.header.collection_id = Some("maps".into());
        self.id_times = super::expectations::listed_times(&self.ask(ids.into()).await);
        let mut sums = self.asker().sums(FileIds::All);
        sums.header.collection_id = Some("maps".into());
        self.sum_times = super::expectations::listed_times(&self.ask(sums.into()).await);
    }

    pub(super) async fn close(self) {
        self.pillar.shutdown(PATIENCE).await;
        self.server.shutdown().await;
        self.broker.shutdown().await;
    }

    pub(super) fn asker(&self) -> Asker<'_> {
        Asker { stage: self }
    }

    pub(super) async fn offer(&self, content: &[u8]) -> String {
        let address = self.server.offers().address_for("offered");
        let content = Bytes::copy_from_slice(content);
        self.exchange.put_bytes(&address, content).await.unwrap();
        address
    }

    async fn put(&mut self, collection: &str, file: &str, content: &[u8]) {
        let address = self.offer(content).await;
        let mut request = self.asker().put_of(file, content, &address);
        request.header.collection_id = Some(collection.into());
        let answers = self.ask(request.into()).await;
        assert_eq!(codes(&answers), [ACCEPTED, COMPLETED], "{answers:?}");
    }

    /// Sends a request and gives all answers up to the last.
    pub(super) async fn ask(&mut self, request: Message) -> Vec<Message> {
        self.client.send(&request).await.unwrap();
        let mut answers = Vec::new();
        loop {
            answers.push(self.next_answer().await);
            if codes(&answers).last() != Some(&ACCEPTED) {
                return answers;
            }
        }
    }

    async fn next_answer(&mut self) -> Message {
        next(&self.client, &mut self.answers).await
    }

    /// Asks as a row says, and gives everything that comes of it.
    pub(super) async fn perform(&mut self, row: &Row) -> Seen {
        // What was held back because the same was told a moment ago may be told again.
        self.clock.0.fetch_add(120_000, Ordering::SeqCst);
        if row.with_own {
            let own = self.own();
            self.put(BOOKS, &own, OLD).await;
        }
        let offered = self.offer(super::asker::NEW).await;
        let before = self.audit_counts().await;
        let request = (row.ask)(&self.asker(), &offered);
        self.client.send(&request).await.unwrap();
        let answers = self.answers_before_fence(&request).await;
        let alarms = self.alarms_before_fence(&request, row).await;
        let audit = self.audit_since(&before).await;
        self.fences += 1;
        Seen {
            request,
            answers,
            alarms,
            audit,
        }
    }

    /// Sends what a row asks for, spoiled on its way, and gives the codes of the answers and all alarms.
    pub(super) async fn perform_at_level(
        &mut self,
        row: &Row,
        spoil: Spoil,
    ) -> (Vec<ResponseCode>, Vec<Alarm>) {
        self.clock.0.fetch_add(120_000, Ordering::SeqCst);
        if row.with_own {
            let own = self.own();
            self.put(BOOKS, &own, OLD).await;
        }
        let offered = self.offer(super::asker::NEW).await;
        let request = (row.ask)(&self.asker(), &offered);
        let mut outgoing = self.client.outgoing(&request);
        outgoing.body = spoil(&request.to_xml()).into();
        self.client.bus().publish(outgoing).await.unwrap();
        let answers = self.answers_before_fence(&request).await;
        self.fences += 1;
        (codes(&answers), self.alarms_before_emergency().await)
    }

    /// The alarms that come before one that is sent at every level.
    async fn alarms_before_emergency(&mut self) -> Vec<Alarm> {
        let mut fence = self.asker().status();
        fence.header.version = TOO_NEW;
        let refused = self.ask(fence.into()).await;
        assert_eq!(codes(&refused), [ResponseCode::RequestNotUnderstoodFailure]);
        let mut alarms = Vec::new();
        loop {
            let Message::AlarmMessage(message) = next(&self.client, &mut self.alarms).await else {
                panic!("only alarms go there")
            };
            let alarm = message.alarm;
            if alarm.alarm_code == AlarmCode::InvalidMessageVersion
                && alarm.alarm_text.contains("GetStatusRequest")
            {
                return alarms;
            }
            alarms.push(alarm);
        }
    }

    /// Takes a row's own file away from the pillar's disk.
    pub(super) fn lose_own(&self) {
        let files = self.directory.path().join("archive/books/fileDir");
        std::fs::remove_file(files.join(self.own())).unwrap();
    }

    /// A file id that no other row has.
    pub(super) fn own(&self) -> String {
        format!("own-{}.bin", self.fences)
    }

    /// All answers to a request, exactly: those that come before that to a second request, which is for the same
    /// worker of the pillar, and so is begun when the first has come to its end.
    async fn answers_before_fence(&mut self, request: &Message) -> Vec<Message> {
        let fence = self.fence(request);
        let fenced = fence.header().correlation_id.clone();
        self.client.send(&fence).await.unwrap();
        let mut answers = Vec::new();
        loop {
            let answer = self.next_answer().await;
            let header = answer.header();
            let fences = header.collection_id.as_ref() == Some(&FENCES.into());
            if header.correlation_id == fenced && (fences || changes(request)) {
                return answers;
            }
            answers.push(answer);
        }
    }

    /// A request that is refused with an alarm of its own.
    fn fence(&self, request: &Message) -> Message {
        let header = Header {
            to: Some(self.kind.id().into()),
            ..request.header().clone()
        };
        if changes(request) {
            return PutFileRequest {
                header: Header {
                    correlation_id: CorrelationId::random(),
                    ..header
                },
                pillar_id: Some(FENCE.into()),
                file_id: request.file_id().unwrap().clone(),
                ..self.asker().put_of("", b"", "")
            }
            .into();
        }
        let header = Header {
            collection_id: Some(FENCES.into()),
            ..header
        };
        if request.message_type().is_identify_request() {
            return IdentifyPillarsForGetFileIdsRequest {
                header,
                audit_trail_information: None,
                file_ids: Some(FileIds::File("fence.bin".into())),
            }
            .into();
        }
        GetFileIdsRequest {
            header,
            pillar_id: Some(FENCE.into()),
            ..self.asker().ids(FileIds::All)
        }
        .into()
    }

    /// The alarms that come before the fence's. Where the fence's looks like one that the row expects, the last is
    /// taken for it.
    async fn alarms_before_fence(&mut self, request: &Message, row: &Row) -> Vec<Alarm> {
        let served = request.header().collection_id.as_ref();
        let served = served.is_some_and(|id| COLLECTIONS.contains(&id.as_str()));
        let told_apart = served || !changes(request);
        let mut left = 1;
        if !told_apart {
            left += usize::from(row.expected.alarm.is_some());
        }
        let mut alarms = Vec::new();
        loop {
            let Message::AlarmMessage(message) = next(&self.client, &mut self.alarms).await else {
                panic!("only alarms go there")
            };
            let alarm = message.alarm;
            let of_fence = alarm.collection_id.as_ref() == Some(&FENCES.into())
                || alarm.alarm_text.contains(&format!("'{FENCE}'"))
                || !told_apart;
            left -= usize::from(of_fence);
            if left == 0 {
                return alarms;
            }
            alarms.push(alarm);
        }
    }

    async fn audit_counts(&mut self) -> BTreeMap<&'static str, usize> {
        let mut counts = BTreeMap::new();
        for collection in COLLECTIONS {
            counts.insert(collection, self.trail(collection).await.len());
        }
        counts
    }

    async fn audit_since(
        &mut self,
        before: &BTreeMap<&'static str, usize>,
    ) -> Vec<AuditTrailEvent> {
        let mut gained = Vec::new();
        for collection in COLLECTIONS {
            let trail = self.trail(collection).await;
            gained.extend(trail.into_iter().skip(before[collection]));
        }
        gained
    }

    async fn trail(&mut self, collection: &str) -> Vec<AuditTrailEvent> {
        let mut request: GetAuditTrailsRequest = self.asker().trail();
        request.header.collection_id = Some(CollectionId::from(collection));
        match self.ask(request.into()).await.pop() {
            Some(Message::GetAuditTrailsFinalResponse(GetAuditTrailsFinalResponse {
                resulting_audit_trails: Some(ResultingAuditTrails::Events(events)),
                ..
            })) => events,
            other => panic!("{other:?}"),
        }
    }
}

fn settings(
    kind: Kind,
    level: AlarmLevel,
    directory: &std::path::Path,
) -> pillarbox_settings::PillarNode {
    let archive = directory.join("archive");
    let keeps = match kind {
        Kind::Full => {
            format!("type = \"FILE\"\ndirectories = [{archive:?}]\nminimum_size_left = \"0\"")
        }
        Kind::Sums => "type = \"CHECKSUM\"".to_owned(),
    };
    let id = kind.id();
    let level = match level {
        AlarmLevel::Warning => "WARNING",
        AlarmLevel::Error => "ERROR",
        AlarmLevel::Emergency => "EMERGENCY",
    };
    let node = format!("[[pillars]]\nid = \"{id}\"\nalarm_level = \"{level}\"\n{keeps}");
    let node = Node::from_toml_str(&node, "test").unwrap();
    node.pillars[0].clone()
}

/// Whether a request is for the worker of its file.
fn changes(request: &Message) -> bool {
    let kind = request.message_type();
    let changing = [
        Operation::PutFile,
        Operation::ReplaceFile,
        Operation::DeleteFile,
    ];
    !kind.is_identify_request() && kind.operation().is_some_and(|it| changing.contains(&it))
}

fn connect(broker: &Broker, id: &str) -> Bus {
    let client_id = id.to_owned();
    Bus::embedded(broker, ConnectOptions { client_id }).unwrap()
}

async fn listen_to(component: &Component, destination: Destination) -> Subscription {
    let request = SubscribeRequest {
        ack_timeout: None,
        destination,
        durable: None,
        ack: AckMode::Auto,
        prefetch: 100,
    };
    component.bus().subscribe(request).await.unwrap()
}

async fn next(component: &Component, subscription: &mut Subscription) -> Message {
    let delivery = timeout(PATIENCE, subscription.next()).await;
    let delivery = delivery.expect("a message comes").unwrap();
    component.receive(&delivery.message).unwrap().message
}

pub(super) fn codes(answers: &[Message]) -> Vec<ResponseCode> {
    let infos = answers.iter().map(|it| it.response_info().unwrap());
    infos.map(|it| it.response_code).collect()
}

/// What happens to a request's text on its way.
pub(super) type Spoil = fn(&str) -> String;

/// Of a future that this version is too old for.
pub(super) const TOO_NEW: ProtocolVersion = ProtocolVersion {
    version: 99,
    min_version: 99,
};
pub(super) const ACCEPTED: ResponseCode = ResponseCode::OperationAcceptedProgress;
pub(super) const COMPLETED: ResponseCode = ResponseCode::OperationCompleted;
pub(super) const BOOKS: &str = "books";
/// The files of `maps`, oldest first.
pub(super) static MAPS: [&str; 3] = ["one.txt", "a/two.txt", "three.txt"];
/// A collection without files.
pub(super) const EMPTY: &str = "empty";
/// A collection that no row asks about.
const FENCES: &str = "fences";
const FENCE: &str = "fence";
const COLLECTIONS: [&str; 4] = [BOOKS, "maps", EMPTY, FENCES];
