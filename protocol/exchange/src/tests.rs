//! Client and server together, and each against peers that misbehave.

mod ending;
mod failures;
mod files;
mod round_trips;
mod serving;
mod tls;

use std::{
    fs::File,
    io,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use chrono::{DateTime, Utc};
use pillarbox_messages::clock::{Clock, SharedClock};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};
use uuid::Uuid;

use crate::{
    AddressPolicy, ClientOptions, ExchangeClient, ExchangeError, ExchangeServer, OfferSpace,
    ServerOptions, TransferError,
};

/// Nothing here takes this long unless it hangs.
const DEADLINE: Duration = Duration::from_secs(20);

/// A running server with a directory of its own, and a client that may use it.
struct Fixture {
    server: ExchangeServer,
    client: ExchangeClient,
    directory: TempDir,
}

impl Fixture {
    async fn new() -> Self {
        Self::with(|_options| {}).await
    }

    async fn with(change: impl FnOnce(&mut ServerOptions)) -> Self {
        let (directory, options) = options(change);
        Self::around(ExchangeServer::start(options).await.unwrap(), directory)
    }

    /// A server whose files are made by `create`.
    async fn on_disk(create: fn(&Path) -> io::Result<File>) -> Self {
        let (directory, options) = options(|_options| {});
        Self::around(
            ExchangeServer::start_on_disk(options, create)
                .await
                .unwrap(),
            directory,
        )
    }

    fn around(server: ExchangeServer, directory: TempDir) -> Self {
        let client = client_for(server.local_addr());
        Self {
            server,
            client,
            directory,
        }
    }

    fn offers(&self) -> OfferSpace {
        OfferSpace::new(&format!("http://{}", self.server.local_addr()))
    }

    fn address(&self) -> String {
        self.offers().address_for("file")
    }

    /// Names on disk, of complete and of unfinished files.
    fn on_server(&self) -> (Vec<PathBuf>, Vec<PathBuf>) {
        let list = |directory: &str| {
            let entries = self.directory.path().join(directory).read_dir().unwrap();
            entries.map(|entry| entry.unwrap().path()).collect()
        };
        (list("files"), list("incoming"))
    }

    /// Waits until nothing unfinished is on the server: what a client was refused for goes after its answer.
    async fn finishes_all(&self) {
        let finished = async {
            while !self.on_server().1.is_empty() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(DEADLINE, finished)
            .await
            .expect("nothing unfinished stays");
    }

    /// Waits until nothing at all is on the server.
    async fn becomes_empty(&self) {
        let empty = async {
            while self.on_server() != (vec![], vec![]) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(DEADLINE, empty)
            .await
            .expect("something stays on the server");
    }

    /// Sends a request as it is, and reads until the server closes the connection.
    async fn raw(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(self.server.local_addr()).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        rest_of(&mut stream).await
    }
}

fn options(change: impl FnOnce(&mut ServerOptions)) -> (TempDir, ServerOptions) {
    let directory = tempfile::tempdir().unwrap();
    let mut options = ServerOptions::new(
        SocketAddr::from(([127, 0, 0, 1], 0)),
        directory.path().to_path_buf(),
        "http://127.0.0.1/",
    );
    change(&mut options);
    (directory, options)
}

async fn rest_of(stream: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    let read = stream.read_to_end(&mut answer);
    timeout(DEADLINE, read)
        .await
        .expect("the connection stays open")
        .unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

fn client_for(server: SocketAddr) -> ExchangeClient {
    client(|options| options.policy.hosts = vec![server.to_string()])
}

fn client(change: impl FnOnce(&mut ClientOptions)) -> ExchangeClient {
    let mut options = ClientOptions::new(AddressPolicy::default());
    change(&mut options);
    ExchangeClient::new(&options).unwrap()
}

async fn fetch(client: &ExchangeClient, address: &str) -> Result<Bytes, ExchangeError> {
    client.get(address).await?.bytes(usize::MAX).await
}

fn content(length: usize) -> Bytes {
    (0..length)
        .map(|at| (at * 7 + at / 251).to_le_bytes()[0])
        .collect()
}

fn path_of(address: &str) -> &str {
    address.splitn(4, '/').nth(3).unwrap()
}

fn token() -> String {
    Uuid::new_v4().to_string()
}

#[track_caller]
fn transfer_error<T: std::fmt::Debug>(result: Result<T, ExchangeError>) -> TransferError {
    match result.unwrap_err() {
        ExchangeError::Transfer { source, .. } => source,
        other => panic!("not a failed transfer: {other}"),
    }
}

#[track_caller]
fn status<T: std::fmt::Debug>(result: Result<T, ExchangeError>) -> u16 {
    match transfer_error(result) {
        TransferError::Status { status } => status,
        other => panic!("not a status: {other}"),
    }
}

#[track_caller]
fn assert_not_allowed<T: std::fmt::Debug>(result: Result<T, ExchangeError>) {
    let error = result.unwrap_err();
    assert!(matches!(error, ExchangeError::NotAllowed { .. }), "{error}");
}

/// A clock that stands where it was put.
#[derive(Debug)]
struct TestClock(AtomicI64);

impl TestClock {
    fn at(milliseconds: i64) -> Arc<Self> {
        Arc::new(Self(AtomicI64::new(milliseconds)))
    }

    fn advance(&self, by: Duration) {
        self.0
            .fetch_add(i64::try_from(by.as_millis()).unwrap(), Ordering::SeqCst);
    }

    fn shared(self: &Arc<Self>) -> SharedClock {
        Arc::<Self>::clone(self)
    }
}

impl Clock for TestClock {
    fn now(&self) -> DateTime<Utc> {
        DateTime::from_timestamp_millis(self.0.load(Ordering::SeqCst)).unwrap()
    }
}
