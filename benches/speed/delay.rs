//! A way to a broker on which every frame can be held up, and is seen.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use bytes::BytesMut;
use pillarbox_bus::stomp::{
    codec::StompCodec,
    frame::{Frame, StompCommand},
};
use rustix::net::sockopt::set_tcp_quickack;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::mpsc,
};

/// A frame on its way.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// Since the first one.
    pub(crate) at: Duration,
    pub(crate) client: String,
    pub(crate) to_broker: bool,
    /// Command, and what it is about.
    pub(crate) what: String,
}

/// Listens in front of a broker.
#[derive(Debug)]
pub(crate) struct DelayedBroker {
    port: u16,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    held_up_ms: AtomicU64,
    seen: Mutex<Vec<(Instant, Seen)>>,
    clients: Mutex<BTreeMap<usize, String>>,
}

impl DelayedBroker {
    pub(crate) async fn before(broker: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let shared = Arc::new(Shared::default());
        tokio::spawn(serve(listener, broker, Arc::clone(&shared)));
        Self { port, shared }
    }

    pub(crate) const fn port(&self) -> u16 {
        self.port
    }

    /// From now on every piece takes so long in either direction.
    pub(crate) fn hold_up(&self, time: Duration) {
        let millis = u64::try_from(time.as_millis()).expect("short");
        self.shared.held_up_ms.store(millis, Ordering::Relaxed);
    }

    /// Forgets what was seen.
    pub(crate) fn clear(&self) {
        lock(&self.shared.seen).clear();
    }

    /// What was seen, in order, by the time at which it left its sender.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        let seen = lock(&self.shared.seen);
        let Some((first, _)) = seen.first() else {
            return Vec::new();
        };
        let since = |(at, seen): &(Instant, Seen)| Seen {
            at: at.duration_since(*first),
            ..seen.clone()
        };
        seen.iter().map(since).collect()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn serve(listener: TcpListener, broker: u16, shared: Arc<Shared>) {
    for number in 0.. {
        let (client, _) = listener.accept().await.expect("accepts");
        let Ok(server) = TcpStream::connect(("127.0.0.1", broker)).await else {
            continue;
        };
        for stream in [&client, &server] {
            stream.set_nodelay(true).expect("a socket");
        }
        let (from_client, to_client) = client.into_split();
        let (from_server, to_server) = server.into_split();
        carry(number, true, from_client, to_server, &shared);
        carry(number, false, from_server, to_client, &shared);
    }
}

fn carry(
    number: usize,
    to_broker: bool,
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    shared: &Arc<Shared>,
) {
    let (sender, mut waiting) = mpsc::unbounded_channel::<(Instant, Vec<u8>)>();
    let watching = Arc::clone(shared);
    tokio::spawn(async move {
        let mut codec = StompCodec::default();
        let mut frames = BytesMut::new();
        let mut piece = vec![0; 64 << 10];
        while let Ok(read @ 1..) = from.read(&mut piece).await {
            // Not to be seen as a delay of the broker, which waits for it before it sends more.
            set_tcp_quickack(from.as_ref(), true).expect("a socket");
            let bytes = piece[..read].to_vec();
            frames.extend_from_slice(&bytes);
            while let Ok(Some(frame)) = codec.decode(&mut frames) {
                watching.note(number, to_broker, &frame);
            }
            let held_up = Duration::from_millis(watching.held_up_ms.load(Ordering::Relaxed));
            if sender.send((Instant::now() + held_up, bytes)).is_err() {
                return;
            }
        }
    });
    tokio::spawn(async move {
        while let Some((due, bytes)) = waiting.recv().await {
            tokio::time::sleep_until(due.into()).await;
            if to.write_all(&bytes).await.is_err() {
                return;
            }
        }
    });
}

impl Shared {
    fn note(&self, number: usize, to_broker: bool, frame: &Frame) {
        let header = |name: &str| frame.header(name).unwrap_or_default().to_owned();
        if frame.command == StompCommand::Connect {
            lock(&self.clients).insert(number, header("client-id"));
        }
        let client = lock(&self.clients).get(&number).cloned();
        let mut what = frame.command.to_string();
        for name in [
            "org.bitrepository.messages.type",
            "destination",
            "transaction",
            "receipt",
            "receipt-id",
        ] {
            let value = header(name);
            let prefix = match name {
                "receipt" | "receipt-id" | "transaction" => format!("{name} "),
                _ => String::new(),
            };
            if !value.is_empty() {
                what += &format!(" {prefix}{value}");
            }
        }
        let seen = Seen {
            at: Duration::ZERO,
            client: client.unwrap_or_default(),
            to_broker,
            what,
        };
        lock(&self.seen).push((Instant::now(), seen));
    }
}
