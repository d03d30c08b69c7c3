//! A pillar on an embedded bus, asked as a client asks it.

mod background;
mod changing;
mod dates;
mod interleaved;
mod listing;
mod noticing;
mod purging;
mod reconciling;
mod running;
mod settling;
mod status;
mod storing;
mod sums;
mod trails;
mod unexplored;
mod untold;
mod unverified;
mod walking;
mod weaknesses;

use std::{fs, path::Path};

use bytes::Bytes;
use pillarbox_bus::{Broker, BrokerOptions, ClientTemplates, ConnectOptions};
use pillarbox_component::ComponentOptions;
use pillarbox_exchange::{
    AddressPolicy, ClientOptions, ExchangeClient, ExchangeServer, ServerOptions,
};
use pillarbox_messages::{
    AlarmCode, ChecksumData, ChecksumSpec, ChecksumType, CorrelationId, DeleteFileRequest,
    FileAction, FileId, FileIds, FilePart, GetFileRequest, Header, HexBinary,
    IdentifyPillarsForGetFileRequest, IdentifyPillarsForPutFileRequest, Message, PutFileRequest,
    ReplaceFileRequest, ResponseCode, Timestamp, clock::SystemClock,
};
use pillarbox_settings::{Node, PillarType};
use tempfile::TempDir;

use super::*;
use crate::{
    digests::{Checksums, Spec},
    index::{AuditQuery, Index},
};

/// Nothing here takes this long unless it hangs.
const SOON: Duration = Duration::from_secs(20);
/// Nothing listens on the discard port.
const DEAD: &str = "http://127.0.0.1:9/";

const REPOSITORY: &str = r#"
[repository]
name = "Example archive"
require = ["checksum-for-new-file", "checksum-for-destructive"]
[bus]
url = "embedded:"
[[collections]]
id = "books"
pillars = ["north"]
[[collections]]
id = "maps"
pillars = ["south"]
"#;

/// Bus, exchange, the pillar "north", and a client.
struct Site {
    directory: TempDir,
    repository: Arc<Repository>,
    broker: Broker,
    server: ExchangeServer,
    exchange: ExchangeClient,
    pillar: Pillar,
    client: Component,
    answers: Subscription,
    alarms: Subscription,
}

impl Site {
    async fn open() -> Self {
        Self::with_hosts(&["127.0.0.1:9".to_owned()]).await
    }

    /// Where these hosts are allowed besides its exchange.
    async fn with_hosts(hosts: &[String]) -> Self {
        Self::make(REPOSITORY, hosts, |_| {}).await
    }

    /// Where the pillar has other options.
    async fn with(change: impl FnOnce(&mut PillarOptions)) -> Self {
        Self::make(REPOSITORY, &[], change).await
    }

    /// Where no checksum has to be given.
    async fn trusting() -> Self {
        let trusting = |line: &'static str| match line.split_once(' ') {
            Some(("require", _)) => "require = []",
            _ => line,
        };
        let repository: Vec<_> = REPOSITORY.lines().map(trusting).collect();
        Self::make(&repository.join("\n"), &[], |_| {}).await
    }

    async fn make(
        repository: &str,
        hosts: &[String],
        change: impl FnOnce(&mut PillarOptions),
    ) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let repository = Arc::new(Repository::from_toml_str(repository, "test").unwrap());
        let mut options = BrokerOptions::new(directory.path().join("bus"), SystemClock::shared());
        options.destinations = repository.bus_destinations();
        let templates = Arc::clone(&repository);
        options.client_templates =
            ClientTemplates::new(move |destination| templates.fits_client_template(destination));
        let broker = Broker::open(options).await.unwrap();
        let listen = ([127, 0, 0, 1], 0).into();
        let files = directory.path().join("exchange");
        let server = ExchangeServer::start(ServerOptions::new(listen, files, ""));
        let server = server.await.unwrap();
        let mut policy = AddressPolicy::for_exchange(server.public_url()).unwrap();
        policy.hosts.extend_from_slice(hosts);
        let exchange = ExchangeClient::new(&ClientOptions::new(policy)).unwrap();
        let mut options = options_of(directory.path(), &repository, &broker, &exchange);
        change(&mut options);
        let pillar = Pillar::start(options).await.unwrap();
        let client = Component::new(ComponentOptions::client(
            "ingest-1".into(),
            None,
            Arc::clone(&repository),
            connect(&broker, "ingest-1"),
            SystemClock::shared(),
        ));
        let books = "books".into();
        let answers = listen_to(&client, client.address(Some(&books))).await;
        let alarms = repository.destinations(&books).alarms().remove(0);
        let alarms = listen_to(&client, alarms).await;
        Self {
            directory,
            repository,
            broker,
            server,
            exchange,
            pillar,
            client,
            answers,
            alarms,
        }
    }

    /// A header of a request to the pillar, in a conversation of its own.
    fn header(&self) -> Header {
        let books = "books".into();
        let destination = self.repository.destinations(&books).pillar(&"north".into());
        let to = Some("north".into());
        let correlation = CorrelationId::random();
        self.client
            .request_header(correlation, &books, destination, to)
    }

    /// A header of an identify request to all pillars.
    fn to_all(&self) -> Header {
        let books = "books".into();
        let destination = self.repository.destinations(&books).collection();
        let correlation = CorrelationId::random();
        self.client
            .request_header(correlation, &books, destination, None)
    }

    async fn offer(&self, content: &[u8]) -> String {
        let address = self.server.offers().address_for("offered");
        let content = Bytes::copy_from_slice(content);
        self.exchange.put_bytes(&address, content).await.unwrap();
        address
    }

    /// What was delivered to an address.
    async fn delivered(&self, address: &str) -> Vec<u8> {
        let download = self.exchange.get(address).await.unwrap();
        download.bytes(1 << 20).await.unwrap().to_vec()
    }

    async fn put_request(&self, id: &str, content: &[u8]) -> PutFileRequest {
        PutFileRequest {
            header: self.header(),
            audit_trail_information: Some("for the test".to_owned()),
            pillar_id: Some("north".into()),
            file_id: id.into(),
            file_address: self.offer(content).await,
            file_size: Some(content.len() as u64),
            checksum_data_for_new_file: Some(md5_data(content)),
            checksum_request_for_new_file: Some(hmac()),
        }
    }

    async fn put(&mut self, id: &str, content: &[u8]) {
        let request = self.put_request(id, content).await;
        let answers = self.ask(request).await;
        assert_eq!(codes(&answers), [ACCEPTED, COMPLETED], "{answers:?}");
    }

    /// Replaces `old` by `new`, and wants to know the checksums of both.
    async fn replace_request(&self, id: &str, old: &[u8], new: &[u8]) -> ReplaceFileRequest {
        ReplaceFileRequest {
            header: self.header(),
            audit_trail_information: Some("for the test".to_owned()),
            pillar_id: Some("north".into()),
            file_id: id.into(),
            checksum_data_for_existing_file: Some(md5_data(old)),
            checksum_request_for_existing_file: Some(hmac()),
            file_address: self.offer(new).await,
            file_size: new.len() as u64,
            checksum_data_for_new_file: Some(md5_data(new)),
            checksum_request_for_new_file: Some(hmac()),
        }
    }

    fn delete_request(&self, id: &str, content: &[u8]) -> DeleteFileRequest {
        DeleteFileRequest {
            header: self.header(),
            audit_trail_information: Some("for the test".to_owned()),
            pillar_id: Some("north".into()),
            file_id: id.into(),
            checksum_data_for_existing_file: Some(md5_data(content)),
            checksum_request_for_existing_file: Some(hmac()),
        }
    }

    fn get_request(&self, id: &str, address: &str) -> GetFileRequest {
        GetFileRequest {
            header: self.header(),
            audit_trail_information: None,
            pillar_id: Some("north".into()),
            file_id: id.into(),
            file_part: None,
            file_address: address.to_owned(),
        }
    }

    fn part_request(&self, id: &str, address: &str, offset: u64, length: u64) -> GetFileRequest {
        let mut request = self.get_request(id, address);
        request.file_part = Some(FilePart {
            part_offset: offset,
            part_length: length,
        });
        request
    }

    fn identify_get(&self, id: &str) -> IdentifyPillarsForGetFileRequest {
        IdentifyPillarsForGetFileRequest {
            header: self.to_all(),
            audit_trail_information: None,
            file_id: id.into(),
        }
    }

    fn identify_put(&self, id: &str) -> IdentifyPillarsForPutFileRequest {
        IdentifyPillarsForPutFileRequest {
            header: self.to_all(),
            audit_trail_information: None,
            file_id: Some(id.into()),
            file_size: Some(3),
        }
    }

    async fn send(&self, request: impl Into<Message>) {
        self.client.send(&request.into()).await.unwrap();
    }

    async fn next_answer(&mut self) -> Message {
        next(&self.client, &mut self.answers).await
    }

    /// Asks, and gives all answers up to the last.
    async fn ask(&mut self, request: impl Into<Message>) -> Vec<Message> {
        let request = request.into();
        let correlation = request.header().correlation_id.clone();
        self.send(request).await;
        let mut answers = Vec::new();
        loop {
            let answer = self.next_answer().await;
            let header = answer.header();
            assert_eq!(header.correlation_id, correlation);
            assert_eq!(
                (header.from.as_str(), header.to.as_ref()),
                ("north", Some(self.client.id()))
            );
            answers.push(answer);
            if code(&answers[answers.len() - 1]) != ACCEPTED {
                return answers;
            }
        }
    }

    /// The code of the only answer, as a refusal has it.
    async fn refused(&mut self, request: impl Into<Message>) -> ResponseCode {
        let answers = self.ask(request).await;
        assert_eq!(answers.len(), 1, "{answers:?}");
        code(&answers[0])
    }

    async fn next_alarm(&mut self) -> (AlarmCode, Option<FileId>) {
        match next(&self.client, &mut self.alarms).await {
            Message::AlarmMessage(message) => (message.alarm.alarm_code, message.alarm.file_id),
            other => panic!("{other:?}"),
        }
    }

    fn index(&self) -> &Index {
        &self.pillar.context.index
    }

    /// Stops the pillar and starts it again.
    async fn restart(mut self) -> Self {
        self.pillar.shutdown(SOON).await;
        let options = options_of(
            self.directory.path(),
            &self.repository,
            &self.broker,
            &self.exchange,
        );
        self.pillar = Pillar::start(options).await.unwrap();
        self
    }

    /// The audit trail: what was done, and how it is told.
    async fn trail(&self) -> Vec<(FileAction, String)> {
        let trail = self
            .index()
            .audit(AuditQuery::from_number("books".into(), 1))
            .await
            .unwrap();
        for (event, number) in trail.iter().zip(1..) {
            assert_eq!(event.number, number);
        }
        let told = |event: crate::index::AuditEvent| {
            (event.entry.action, event.entry.info.unwrap_or_default())
        };
        trail.into_iter().map(told).collect()
    }

    /// What lies in a directory of the collection, with its folders.
    fn lying(&self, directory: &str) -> Vec<(String, Vec<u8>)> {
        let root = self.directory.path().join("archive/books").join(directory);
        let (mut found, mut open) = (Vec::new(), vec![root.clone()]);
        while let Some(next) = open.pop() {
            for entry in fs::read_dir(&next).unwrap() {
                let path = entry.unwrap().path();
                let name = path.strip_prefix(&root).unwrap().to_str().unwrap();
                if path.is_dir() {
                    found.push((format!("{name}/"), Vec::new()));
                    open.push(path);
                } else {
                    found.push((name.to_owned(), fs::read(&path).unwrap()));
                }
            }
        }
        found.sort();
        found
    }

    /// Where a file without folders lies.
    fn place(&self, id: &str) -> PathBuf {
        self.directory.path().join("archive/books/fileDir").join(id)
    }

    async fn assert_nothing_stored(&self) {
        assert_eq!(self.index().count(&"books".into()).await.unwrap(), 0);
        for directory in ["tmpDir", "fileDir", "folderDir"] {
            let directory = self.directory.path().join("archive/books").join(directory);
            assert_eq!(
                fs::read_dir(&directory).unwrap().count(),
                0,
                "{directory:?}"
            );
        }
    }
}

fn options_of(
    directory: &Path,
    repository: &Arc<Repository>,
    broker: &Broker,
    exchange: &ExchangeClient,
) -> PillarOptions {
    let archive = directory.join("archive");
    let node = format!(
        "[[pillars]]\nid = \"north\"\ndirectories = [{archive:?}]\nminimum_size_left = \"0\""
    );
    let node = Node::from_toml_str(&node, "test").unwrap();
    PillarOptions {
        settings: node.pillars[0].clone(),
        repository: Arc::clone(repository),
        bus: connect(broker, "north"),
        exchange: exchange.clone(),
        data: directory.join("data"),
        clock: SystemClock::shared(),
    }
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
    let next = tokio::time::timeout(SOON, subscription.next());
    let delivery = next.await.expect("nothing comes").unwrap();
    component.receive(&delivery.message).unwrap().message
}

fn code(message: &Message) -> ResponseCode {
    message.response_info().unwrap().response_code
}

fn codes(messages: &[Message]) -> Vec<ResponseCode> {
    messages.iter().map(code).collect()
}

fn spec(checksum_type: ChecksumType, salt: Option<&str>) -> ChecksumSpec {
    ChecksumSpec {
        checksum_type,
        checksum_salt: salt.map(|salt| salt.parse().unwrap()),
        other_checksum_type: None,
    }
}

fn hmac() -> ChecksumSpec {
    spec(ChecksumType::HmacSha256, Some("abcd"))
}

fn sum(content: &[u8], wanted: &ChecksumSpec) -> HexBinary {
    let spec = Spec::try_from(wanted).unwrap();
    let sums = Checksums::of(content, std::slice::from_ref(&spec));
    sums.value(&spec).unwrap().clone()
}

fn md5_data(content: &[u8]) -> ChecksumData {
    let checksum_spec = spec(ChecksumType::Md5, None);
    ChecksumData {
        checksum_value: sum(content, &checksum_spec),
        checksum_spec,
        calculation_timestamp: Timestamp::from_millis(0),
    }
}

const ACCEPTED: ResponseCode = ResponseCode::OperationAcceptedProgress;
const COMPLETED: ResponseCode = ResponseCode::OperationCompleted;
const POSITIVE: ResponseCode = ResponseCode::IdentificationPositive;
const NOT_UNDERSTOOD: ResponseCode = ResponseCode::RequestNotUnderstoodFailure;
const NOT_FOUND: ResponseCode = ResponseCode::FileNotFoundFailure;
const DUPLICATE: ResponseCode = ResponseCode::DuplicateFileFailure;
const OLD_CHECKSUM: ResponseCode = ResponseCode::ExistingFileChecksumFailure;
const NEW_CHECKSUM: ResponseCode = ResponseCode::NewFileChecksumFailure;
const TRANSFER: ResponseCode = ResponseCode::FileTransferFailure;
