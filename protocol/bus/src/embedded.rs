//! The embedded queue manager: one task owns all queues, one thread writes the log.
//!
//! A command goes to the owner's bounded channel; the owner steps its state machine and hands the step's unit to
//! the writer; what the step has to tell is told when its unit is written. While a sync runs, the next units
//! gather: one sync pays for all of them.
//!
//! Bodies are kept in memory, up to [`BrokerOptions::capacity_bytes`] for all queues together. The log is read
//! only when the queue manager starts, from the oldest segment on; there are no snapshots.

pub(crate) mod client;
pub mod connection;
mod outbox;
pub(crate) mod owner;
#[cfg(test)]
mod tests;
mod writer;

use std::{
    collections::BTreeMap,
    fmt,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use pillarbox_messages::{Destination, clock::SharedClock};
use tokio::{
    runtime::Handle,
    sync::{broadcast, mpsc},
};
use tokio_util::sync::CancellationToken;

pub use self::connection::{Command, CommandSender, Connection, Event, EventReceiver};
use self::{
    connection::{ConnectionId, EVENT_CHANNEL, Notice, SubscriptionRule},
    owner::{Opened, Owner, Submission},
    writer::Writer,
};
use crate::{
    core::{Limits, attributes::QueueDefinition},
    error::BusError,
    log::{
        LogError, LogOptions,
        storage::{Directory, Storage},
    },
};

/// How many submissions wait for the owner of the queues.
const COMMAND_CHANNEL: usize = 1024;
/// How much may wait for who wants to know what people should look at.
const NOTICE_CHANNEL: usize = 256;
/// How many connections there may be at a time.
const MAX_CONNECTIONS: usize = 1024;

/// The names that clients may bring into being by subscribing: never journaled, gone with the last subscriber.
#[derive(Clone)]
pub struct ClientTemplates(Arc<dyn Fn(&Destination) -> bool + Send + Sync>);

impl ClientTemplates {
    /// The destinations for which this is true.
    pub fn new(fits: impl Fn(&Destination) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(fits))
    }

    /// No destination at all.
    #[must_use]
    pub fn none() -> Self {
        Self::new(|_| false)
    }

    /// Whether the destination fits.
    #[must_use]
    pub fn fits(&self, destination: &Destination) -> bool {
        (self.0)(destination)
    }
}

impl fmt::Debug for ClientTemplates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientTemplates")
    }
}

/// How to open a queue space.
#[derive(Clone, Debug)]
pub struct BrokerOptions {
    /// The queue space: a directory of its own, made if it isn't there.
    pub directory: PathBuf,
    /// Decides what time it is.
    pub clock: SharedClock,
    /// Topics and queues that must exist.
    pub destinations: Vec<Destination>,
    /// Queues that must exist, and what they are like. One that was otherwise until now is changed.
    pub queues: Vec<QueueDefinition>,
    /// Durable subscriptions that must exist, as client id, subscription name and topic: they collect before
    /// their client has ever come.
    pub durable_subscriptions: Vec<(String, String, Destination)>,
    /// Topics that are for durable subscriptions: a message that none of these gets goes to the error queue, also if
    /// somebody listens who has none.
    pub durable_topics: Vec<Destination>,
    /// What durable subscriptions may hold, if not what they usually may. Those that are there follow as well.
    pub subscription_rules: Vec<SubscriptionRule>,
    /// What clients may bring into being by subscribing.
    pub client_templates: ClientTemplates,
    /// How much all queues and durable subscriptions together may hold, in bytes; beyond it sends are refused.
    pub capacity_bytes: u64,
}

impl BrokerOptions {
    /// A queue space in this directory, without destinations, for 512 MiB of messages.
    pub fn new(directory: impl Into<PathBuf>, clock: SharedClock) -> Self {
        Self {
            directory: directory.into(),
            clock,
            destinations: Vec::new(),
            queues: Vec::new(),
            durable_subscriptions: Vec::new(),
            durable_topics: Vec::new(),
            subscription_rules: Vec::new(),
            client_templates: ClientTemplates::none(),
            capacity_bytes: Limits::default().capacity_bytes,
        }
    }
}

/// What has been counted, and what there is now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Syncs of the log since the start.
    pub syncs: u64,
    /// Units written since the start.
    pub units: u64,
    /// Bytes written since the start.
    pub written_bytes: u64,
    /// Segments of the log.
    pub segments: usize,
    /// Messages sent since the start.
    pub sent: u64,
    /// Deliveries since the start.
    pub delivered: u64,
    /// Messages acknowledged since the start.
    pub acknowledged: u64,
    /// Sends since the start that were known by their sender's own id, and so not kept again.
    pub duplicates: u64,
    /// Messages that had no place to go since the start.
    pub unroutable: u64,
    /// Messages expired since the start.
    pub expired: u64,
    /// Messages moved aside since the start because they had failed.
    pub backed_out: u64,
    /// Subscriptions closed since the start because they did not keep up.
    pub slow_consumers: u64,
    /// Messages that full durable subscriptions have missed since the start.
    pub missed: u64,
    /// Durable subscriptions cancelled since the start because their clients had been away for too long.
    pub abandoned: u64,
    /// Durable subscriptions cancelled since the start because they were full.
    pub cancelled_full: u64,
    /// Durable subscriptions.
    pub durables: usize,
    /// Live connections.
    pub connections: usize,
    /// Queues, the ones behind subscriptions included.
    pub queues: usize,
    /// Messages in all of them.
    pub messages: usize,
    /// Those of them that are in consumers' hands.
    pub in_flight: usize,
    /// The size of all messages but those of plain subscriptions, in bytes.
    pub bytes: u64,
}

/// The embedded queue manager. Clones are handles to the same one.
///
/// It ends with [`Broker::shutdown`], or when all handles and connections are gone.
#[derive(Clone, Debug)]
pub struct Broker {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    commands: mpsc::Sender<Submission>,
    opens: mpsc::Sender<Opened>,
    registry: Arc<Registry>,
    notices: broadcast::Sender<Notice>,
    clock: SharedClock,
    boot: u64,
    runtime: Handle,
    stop: CancellationToken,
    ended: CancellationToken,
}

/// Who is connected, and the figures: shared by handles and the owner of the queues, locked for moments only.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    inner: Mutex<Registered>,
}

#[derive(Debug, Default)]
pub(crate) struct Registered {
    next: u64,
    connections: BTreeMap<ConnectionId, String>,
    refusal: Option<BusError>,
    pub(crate) stats: Stats,
}

impl Broker {
    /// Opens the queue space and starts the queue manager on the current tokio runtime.
    ///
    /// # Errors
    /// [`BusError::Locked`] if another process has it; [`BusError::Corrupt`] naming file and offset if the log is
    /// damaged; [`BusError::Io`]; what is wrong with a destination.
    pub async fn open(options: BrokerOptions) -> Result<Self, BusError> {
        let path = options.directory.clone();
        let storage = move || match Directory::open(&path) {
            Ok(Some(directory)) => Ok(directory),
            Ok(None) => Err(LogError::Locked(path)),
            Err(source) => Err(LogError::Io {
                what: "opening the queue space",
                directory: path,
                source,
            }),
        };
        Self::open_with(storage, options, LogOptions::default(), Limits::default()).await
    }

    /// Opens a queue space on this storage, which is opened on the thread that writes.
    pub(crate) async fn open_with<S: Storage>(
        storage: impl FnOnce() -> Result<S, LogError> + Send + 'static,
        options: BrokerOptions,
        log_options: LogOptions,
        limits: Limits,
    ) -> Result<Self, BusError> {
        let clock = Arc::clone(&options.clock);
        let limits = Limits {
            capacity_bytes: options.capacity_bytes,
            ..limits
        };
        let (writer, core, started) = Writer::start(storage, options, log_options, limits).await?;
        let (commands, command_receiver) = mpsc::channel(COMMAND_CHANNEL);
        let (opens, open_receiver) = mpsc::channel(MAX_CONNECTIONS);
        let shared = Shared {
            commands,
            opens,
            registry: Arc::default(),
            notices: broadcast::channel(NOTICE_CHANNEL).0,
            clock: Arc::clone(&clock),
            boot: core.boot(),
            runtime: Handle::current(),
            stop: CancellationToken::new(),
            ended: CancellationToken::new(),
        };
        let (stop, ended) = (shared.stop.clone(), shared.ended.clone().drop_guard());
        let registry = Arc::clone(&shared.registry);
        let notices = shared.notices.clone();
        let owner = Owner::new(core, clock, writer, registry, notices, started);
        tokio::spawn(async move {
            owner.run(command_receiver, open_receiver, stop).await;
            drop(ended);
        });
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    /// Connects. An empty client id is nobody's and can't have durable subscriptions.
    ///
    /// # Errors
    /// [`BusError::ClientIdInUse`] if a live connection has the client id; [`BusError::SpaceFailed`] after a failed
    /// write; [`BusError::Closed`] after a shutdown.
    pub fn connect(&self, client_id: &str) -> Result<Connection, BusError> {
        self.connect_as(client_id, true)
    }

    /// Connects somebody in another process.
    pub(crate) fn connect_peer(&self, client_id: &str) -> Result<Connection, BusError> {
        self.connect_as(client_id, false)
    }

    fn connect_as(&self, client_id: &str, in_process: bool) -> Result<Connection, BusError> {
        let id = self.shared.registry.enter(client_id)?;
        let (sender, receiver) = mpsc::channel(EVENT_CHANNEL);
        let opened = Opened {
            connection: id,
            client_id: client_id.to_owned(),
            in_process,
            events: sender,
        };
        if self.shared.opens.try_send(opened).is_err() {
            self.shared.registry.leave(id);
            return Err(BusError::Closed);
        }
        Ok(Connection::new(
            id,
            self.shared.boot,
            self.shared.commands.clone(),
            receiver,
        ))
    }

    /// Tells what people should look at: messages that are moved aside because they had failed, durable subscriptions that
    /// are full (of each queue and subscription once an hour), and those that are given up.
    #[must_use]
    pub fn notices(&self) -> broadcast::Receiver<Notice> {
        self.shared.notices.subscribe()
    }

    /// The figures.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let registered = self.shared.registry.lock();
        Stats {
            connections: registered.connections.len(),
            ..registered.stats
        }
    }

    /// Ends the queue manager: connections are closed, what is in flight returns uncounted, everything is on the
    /// disk and the queue space free for others when this returns.
    pub async fn shutdown(&self) {
        self.shared.stop.cancel();
        self.shared.ended.cancelled().await;
    }

    pub(crate) fn clock(&self) -> SharedClock {
        Arc::clone(&self.shared.clock)
    }

    pub(crate) fn runtime(&self) -> &Handle {
        &self.shared.runtime
    }
}

impl Registry {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Registered> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&self, client_id: &str) -> Result<ConnectionId, BusError> {
        let mut registered = self.lock();
        if let Some(refusal) = &registered.refusal {
            return Err(refusal.clone());
        }
        if !client_id.is_empty()
            && registered
                .connections
                .values()
                .any(|other| other == client_id)
        {
            return Err(BusError::ClientIdInUse(client_id.to_owned()));
        }
        if registered.connections.len() >= MAX_CONNECTIONS {
            let detail = format!("there are {MAX_CONNECTIONS} connections already");
            return Err(BusError::Refused {
                name: "LIMIT".to_owned(),
                detail,
            });
        }
        registered.next += 1;
        let id = ConnectionId(registered.next);
        registered.connections.insert(id, client_id.to_owned());
        Ok(id)
    }

    pub(crate) fn leave(&self, connection: ConnectionId) {
        self.lock().connections.remove(&connection);
    }

    /// Refuses all connections from now on.
    pub(crate) fn refuse(&self, refusal: BusError) {
        self.lock().refusal = Some(refusal);
    }
}
