//! A bus, an exchange and scripted pillars, all in this process.

use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use pillarbox_bus::{
    AckMode, Broker, BrokerOptions, Bus, ClientTemplates, ConnectOptions, SubscribeRequest,
    Subscription,
};
use pillarbox_component::{Component, ComponentOptions};
use pillarbox_exchange::{AddressPolicy, ExchangeClient, ExchangeServer, ServerOptions, client};
use pillarbox_messages::{
    ChecksumData, ChecksumType, ComponentId, Destination, FileId, FileIdsData, FileIdsDataItem,
    GetFileFinalResponse, GetFileIdsFinalResponse, GetFileProgressResponse,
    IdentifyPillarsForGetFileIdsResponse, IdentifyPillarsForGetFileResponse,
    IdentifyPillarsForPutFileResponse, Message, PutFileFinalResponse, PutFileProgressResponse,
    ResponseCode, ResponseInfo, ResultingFileIds, TimeToDeliver, Timestamp, clock::SystemClock,
};
use pillarbox_settings::{AlarmLevel, Repository, Timeouts};
use tokio::sync::watch;

use crate::{
    Client, ClientOptions,
    digests::{Hasher, plain_spec},
};

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
    base: String,
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
            .extend(["north", "south"].map(elsewhere));
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
            sla: None,
            clock: SystemClock::shared(),
            timeouts: Some(Timeouts {
                identification: timeout,
                operation: timeout,
            }),
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
        options.addresses.insert("books".into(), at.clone());
        let component = Component::new(options);
        let topic = self.repository.destinations(&"books".into()).collection();
        let identify = subscribe(&bus, topic).await;
        let requests = subscribe(&bus, at).await;
        let (heard, requests_heard) = watch::channel(Vec::new());
        let stand_in = StandIn {
            component,
            exchange: self.exchange.clone(),
            temper,
            files: Arc::default(),
            heard: Arc::new(heard),
            requests: requests_heard,
        };
        tokio::spawn(stand_in.clone().serve(identify));
        tokio::spawn(stand_in.clone().serve(requests));
        stand_in
    }

    /// How many files lie on the exchange.
    pub(super) fn offers(&self) -> usize {
        files_below(&self.directory.path().join("exchange"))
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
        destination,
        durable: None,
        ack: AckMode::Auto,
        prefetch: 16,
    };
    bus.subscribe(request).await.unwrap()
}

/// How a stand-in behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Temper {
    /// As a pillar should.
    Honest,
    /// Answers nothing at all.
    Mute,
    /// Is ready, and then says nothing more.
    Stuck,
    /// Says that it has delivered, but has not.
    Boastful,
    /// Delivers other bytes than it has, and faster than anybody.
    Corrupt,
}

/// A pillar that keeps its files in memory.
#[derive(Clone)]
pub(super) struct StandIn {
    component: Component,
    exchange: ExchangeClient,
    temper: Temper,
    pub(super) files: Arc<Mutex<BTreeMap<FileId, Bytes>>>,
    heard: Arc<watch::Sender<Vec<Message>>>,
    /// All requests so far.
    pub(super) requests: watch::Receiver<Vec<Message>>,
}

impl StandIn {
    pub(super) fn id(&self) -> &ComponentId {
        self.component.id()
    }

    pub(super) fn keep(&self, file: &str, bytes: &'static [u8]) {
        self.files
            .lock()
            .unwrap()
            .insert(file.into(), Bytes::from_static(bytes));
    }

    pub(super) fn file(&self, file: &str) -> Option<Bytes> {
        self.files.lock().unwrap().get(file).cloned()
    }

    /// Waits for a request of which this is true.
    pub(super) async fn hears(&self, wanted: impl Fn(&Message) -> bool + Send + Sync) {
        let mut requests = self.requests.clone();
        let heard = requests.wait_for(|all| all.iter().any(&wanted));
        tokio::time::timeout(PLENTY, heard)
            .await
            .expect("no such request came")
            .unwrap();
    }

    /// How many requests of this type came.
    pub(super) fn count(&self, name: &str) -> usize {
        let requests = self.requests.borrow();
        requests
            .iter()
            .filter(|message| message.message_type().as_str() == name)
            .count()
    }

    async fn serve(self, mut subscription: Subscription) {
        while let Some(delivery) = subscription.next().await {
            let Ok(received) = self.component.receive(&delivery.message) else {
                continue;
            };
            self.heard
                .send_modify(|all| all.push(received.message.clone()));
            for answer in self.answers(received.message).await {
                self.component
                    .reply(&answer, received.reply_address.as_deref())
                    .await
                    .unwrap();
            }
        }
    }

    async fn answers(&self, request: Message) -> Vec<Message> {
        let identify = request.message_type().is_identify_request();
        match self.temper {
            Temper::Mute => return Vec::new(),
            Temper::Stuck if !identify => return Vec::new(),
            _ => {}
        }
        match request {
            Message::IdentifyPillarsForPutFileRequest(request) => {
                let existing = request
                    .file_id
                    .as_ref()
                    .and_then(|file| self.file(file.as_str()));
                let code = match existing {
                    Some(_) => ResponseCode::DuplicateFileFailure,
                    None => ResponseCode::IdentificationPositive,
                };
                vec![
                    IdentifyPillarsForPutFileResponse {
                        header: self.component.response_header(&request.header),
                        response_info: info(code),
                        pillar_id: self.id().clone(),
                        file_id: request.file_id,
                        pillar_checksum_spec: None,
                        checksum_data_for_existing_file: existing.as_deref().map(md5),
                        time_to_deliver: None,
                    }
                    .into(),
                ]
            }
            Message::PutFileRequest(request) => self.put(request).await,
            Message::IdentifyPillarsForGetFileRequest(request) => {
                let code = match self.file(request.file_id.as_str()) {
                    Some(_) => ResponseCode::IdentificationPositive,
                    None => ResponseCode::FileNotFoundFailure,
                };
                let millis = if self.temper == Temper::Corrupt {
                    1
                } else {
                    1000
                };
                vec![
                    IdentifyPillarsForGetFileResponse {
                        header: self.component.response_header(&request.header),
                        response_info: info(code),
                        file_id: request.file_id,
                        pillar_id: self.id().clone(),
                        time_to_deliver: Some(TimeToDeliver::from_millis(millis)),
                    }
                    .into(),
                ]
            }
            Message::GetFileRequest(request) => self.get(request).await,
            Message::IdentifyPillarsForGetFileIdsRequest(request) => vec![
                IdentifyPillarsForGetFileIdsResponse {
                    header: self.component.response_header(&request.header),
                    response_info: info(ResponseCode::IdentificationPositive),
                    pillar_id: self.id().clone(),
                    file_ids: request.file_ids,
                    time_to_deliver: None,
                }
                .into(),
            ],
            Message::GetFileIdsRequest(request) => vec![self.list(request)],
            other => panic!("no stand-in answers {other:?}"),
        }
    }

    async fn put(&self, request: pillarbox_messages::PutFileRequest) -> Vec<Message> {
        let header = self.component.response_header(&request.header);
        let progress = PutFileProgressResponse {
            header: header.clone(),
            response_info: info(ResponseCode::OperationAcceptedProgress),
            pillar_id: Some(self.id().clone()),
            pillar_checksum_spec: None,
            file_id: request.file_id.clone(),
            file_address: request.file_address.clone(),
        };
        let download = self.exchange.get(&request.file_address).await.unwrap();
        let bytes = download.bytes(1 << 20).await.unwrap();
        let sum = md5(&bytes);
        let told = request.checksum_data_for_new_file.unwrap();
        assert_eq!(told.checksum_value, sum.checksum_value);
        assert_eq!(request.file_size, Some(bytes.len() as u64));
        self.files
            .lock()
            .unwrap()
            .insert(request.file_id.clone(), bytes);
        let done = PutFileFinalResponse {
            header,
            response_info: info(ResponseCode::OperationCompleted),
            pillar_id: Some(self.id().clone()),
            pillar_checksum_spec: None,
            file_id: request.file_id,
            file_address: request.file_address,
            checksum_data_for_new_file: Some(sum),
            checksum_data_for_existing_file: None,
        };
        vec![progress.into(), done.into()]
    }

    async fn get(&self, request: pillarbox_messages::GetFileRequest) -> Vec<Message> {
        let header = self.component.response_header(&request.header);
        let bytes = self.file(request.file_id.as_str()).unwrap();
        let progress = GetFileProgressResponse {
            header: header.clone(),
            response_info: info(ResponseCode::OperationAcceptedProgress),
            pillar_id: Some(self.id().clone()),
            file_id: request.file_id.clone(),
            file_part: None,
            file_address: request.file_address.clone(),
            file_size: Some(bytes.len() as u64),
            checksum_data_for_existing_file: Some(md5(&bytes)),
        };
        let mut sent = bytes.to_vec();
        if self.temper == Temper::Corrupt {
            sent[0] ^= 1;
        }
        if self.temper != Temper::Boastful {
            self.exchange
                .put_bytes(&request.file_address, sent.into())
                .await
                .unwrap();
        }
        let done = GetFileFinalResponse {
            header,
            response_info: info(ResponseCode::OperationCompleted),
            pillar_id: Some(self.id().clone()),
            file_id: request.file_id,
            file_part: None,
            file_address: request.file_address,
        };
        vec![progress.into(), done.into()]
    }

    /// The files in the order of their ids, one second apart.
    fn list(&self, request: pillarbox_messages::GetFileIdsRequest) -> Message {
        let from = request.min_timestamp.unwrap().millis();
        let size = usize::try_from(request.max_number_of_results.unwrap().get()).unwrap();
        let files = self.files.lock().unwrap();
        let all: Vec<FileIdsDataItem> = files
            .iter()
            .zip((0..).step_by(1000))
            .map(|((file, bytes), time)| FileIdsDataItem {
                file_id: file.clone(),
                last_modification_time: Timestamp::from_millis(time),
                file_size: Some(bytes.len() as u64),
            })
            .filter(|item| item.last_modification_time.millis() >= from)
            .collect();
        let partial = all.len() > size;
        GetFileIdsFinalResponse {
            header: self.component.response_header(&request.header),
            response_info: info(ResponseCode::OperationCompleted),
            pillar_id: Some(self.id().clone()),
            file_ids: Some(request.file_ids),
            resulting_file_ids: Some(ResultingFileIds::Data(FileIdsData {
                items: all.into_iter().take(size).collect(),
            })),
            partial_result: Some(partial),
        }
        .into()
    }
}

fn info(code: ResponseCode) -> ResponseInfo {
    ResponseInfo {
        response_code: code,
        response_text: None,
    }
}

fn md5(bytes: &[u8]) -> ChecksumData {
    let spec = plain_spec(ChecksumType::Md5);
    let mut hasher = Hasher::new(&spec).unwrap();
    hasher.update(bytes);
    ChecksumData {
        checksum_spec: spec,
        checksum_value: hasher.finish(),
        calculation_timestamp: Timestamp::from_millis(0),
    }
}
