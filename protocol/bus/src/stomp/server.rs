//! The STOMP server: lets other processes use the embedded queue manager.
//!
//! One task per connection. It never waits for its peer with anything in hand that another connection needs:
//! what a slow peer does not take stays with the queue manager, within its limits.

mod connection;
mod hello;
mod message;
mod refusal;
mod send;
mod session;
mod subscribe;
#[cfg(test)]
mod tests;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use bytes::BytesMut;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::{sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use self::{hello::VERSION, refusal::Refusal};
use super::{codec::FrameLimits, wire::prepare};
use crate::{
    embedded::{Broker, connection::Connection},
    error::BusError,
};

/// How long [`StompServer::shutdown`] waits for the connections to end.
const SHUTDOWN: Duration = Duration::from_secs(5);
/// The pause after a failed `accept`, for example for lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What a client of the server may do, and how long it may take.
#[derive(Clone, Debug)]
pub struct StompLimits {
    /// How large a frame may be once a client has connected.
    pub frame: FrameLimits,
    /// How many connections there may be at once.
    pub connections: usize,
    /// How many subscriptions one connection may have.
    pub subscriptions: usize,
    /// How many transactions one connection may have open.
    pub transactions: usize,
    /// From the connection to its CONNECT frame.
    pub connect_deadline: Duration,
    /// How long nothing may come within a frame that has begun.
    pub read_stall: Duration,
    /// How long a client may take nothing of what waits for it.
    pub write_stall: Duration,
    /// The interval in which the server sends heart-beats and wants to hear them, if the client takes part.
    pub heart_beat: Duration,
    /// How long the server reads on after its last frame, so that the client can read it.
    pub linger: Duration,
}

impl Default for StompLimits {
    fn default() -> Self {
        Self {
            frame: FrameLimits::default(),
            connections: 1024,
            subscriptions: 256,
            transactions: 64,
            connect_deadline: Duration::from_secs(10),
            read_stall: Duration::from_secs(30),
            write_stall: Duration::from_secs(60),
            heart_beat: Duration::from_secs(10),
            linger: Duration::from_secs(2),
        }
    }
}

/// A running server. Dropping it stops it without ceremony; see [`StompServer::shutdown`].
#[derive(Debug)]
pub struct StompServer {
    addresses: Vec<SocketAddr>,
    stopping: CancellationToken,
    tasks: TaskTracker,
}

/// What every connection of a server shares.
pub(super) struct Context {
    broker: Broker,
    limits: StompLimits,
    stopping: CancellationToken,
}

impl StompServer {
    /// Listens at these addresses (port 0: any free one) and serves `broker` to whoever connects.
    ///
    /// # Errors
    /// [`BusError::Io`] naming the address that can't be listened at.
    pub async fn start(
        listen: &[SocketAddr],
        broker: Broker,
        limits: StompLimits,
    ) -> Result<Self, BusError> {
        let mut listeners = Vec::with_capacity(listen.len());
        let mut addresses = Vec::with_capacity(listen.len());
        for address in listen {
            let failed =
                |error| BusError::io(format!("can't listen for STOMP at {address}"), &error);
            let listener = TcpListener::bind(address).await.map_err(failed)?;
            addresses.push(listener.local_addr().map_err(failed)?);
            listeners.push(listener);
        }
        let stopping = CancellationToken::new();
        let tasks = TaskTracker::new();
        let places = Arc::new(Semaphore::new(limits.connections));
        let context = Arc::new(Context {
            broker,
            limits,
            stopping: stopping.clone(),
        });
        for listener in listeners {
            let accepting = accept(
                listener,
                Arc::clone(&context),
                Arc::clone(&places),
                tasks.clone(),
            );
            tasks.spawn(accepting);
        }
        tasks.close();
        tracing::info!(?addresses, "serving the bus over STOMP");
        Ok(Self {
            addresses,
            stopping,
            tasks,
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn local_addrs(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Stops listening and ends all connections; what their clients had in hand returns, uncounted.
    pub async fn shutdown(&self) {
        self.stopping.cancel();
        // Tasks that are not done by then are left to end on their own.
        let _ = timeout(SHUTDOWN, self.tasks.wait()).await;
    }
}

impl Drop for StompServer {
    fn drop(&mut self) {
        self.stopping.cancel();
    }
}

impl Context {
    /// A connection to the queue manager; `None` is nobody in particular.
    fn connect(&self, client_id: Option<&str>) -> Result<Connection, BusError> {
        self.broker.connect_peer(client_id.unwrap_or_default())
    }

    fn now_ms(&self) -> i64 {
        self.broker.clock().now_ms()
    }
}

async fn accept(
    listener: TcpListener,
    context: Arc<Context>,
    places: Arc<Semaphore>,
    tasks: TaskTracker,
) {
    loop {
        let accepted = tokio::select! {
            () = context.stopping.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            turn_away(&stream, peer);
            continue;
        };
        let context = Arc::clone(&context);
        tasks.spawn(async move {
            // It works without, too.
            let _ = prepare(&stream);
            connection::serve(stream, peer, &context).await;
            drop(place);
        });
    }
}

/// Says that there are too many connections, if that can be said without waiting.
fn turn_away(stream: &TcpStream, peer: SocketAddr) {
    tracing::warn!(%peer, "too many connections");
    let mut out = BytesMut::new();
    Refusal::new("LIMIT", "too many connections").write(&mut out, VERSION);
    let _ = stream.try_write(&out);
}
