//! The service: takes alarms off the bus and stores them before it acknowledges them.
//!
//! One task per subscription hands deliveries to the one task that owns the database. What can't be stored
//! stays unacknowledged, here and on the bus, until it can.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures_util::future::join_all;
use pillarbox_bus::{AckMode, Bus, BusError, Delivery, SubscribeRequest, Subscription};
use pillarbox_component::{LinkMonitor, MessageSecurity, reading::read_options};
use pillarbox_messages::{
    ComponentId, Destination, DestinationKind, ReadOptions, clock::SharedClock,
};
use pillarbox_settings::{Repository, ZonelessDates};
use thiserror::Error;
use tokio::{sync::mpsc, task::JoinHandle};
use tokio_util::sync::CancellationToken;
use tracing::{debug, error, info, warn};

use crate::{
    reading::entry_of,
    store::{AlarmStore, Entry, EntryKind, StoreError},
};

/// What an alarm service is made from.
#[derive(Clone, Debug)]
pub struct AlarmServiceOptions {
    /// Its id: the client id of its connection.
    pub id: ComponentId,
    /// The repository whose alarms it keeps.
    pub repository: Arc<Repository>,
    /// Its connection.
    pub bus: Bus,
    /// The process's data directory; the database is below it.
    pub data: PathBuf,
    /// Its time.
    pub clock: SharedClock,
    /// What it makes of dates without an offset from UTC.
    pub zoneless: ZonelessDates,
}

/// Why an alarm service did not start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AlarmServiceError {
    /// The database.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A subscription.
    #[error("subscribing to {destination}: {source}")]
    Subscribe {
        /// The alarm topic.
        destination: Destination,
        /// What the bus said.
        source: BusError,
    },
}

/// A running alarm service. Dropping it stops it; what it has not acknowledged returns to the bus.
#[derive(Debug)]
pub struct AlarmService {
    stop: CancellationToken,
    tasks: Vec<JoinHandle<()>>,
}

impl AlarmService {
    /// Finds what would keep the service from starting, as far as this machine is concerned: before anybody is
    /// connected to. Nothing is made. `data` is the process's data directory.
    ///
    /// # Errors
    /// A database that can't be used.
    pub fn inspect(data: &Path) -> Result<(), AlarmServiceError> {
        let path = AlarmStore::path_in(data);
        if path.exists() {
            AlarmStore::open(&path)?;
        }
        Ok(())
    }

    /// Subscribes to every alarm topic of the repository, opens the database, and starts to store.
    ///
    /// # Errors
    /// [`AlarmServiceError`] if the database can't be opened or a subscription can't be made.
    pub async fn start(options: AlarmServiceOptions) -> Result<Self, AlarmServiceError> {
        let mut subscriptions = Vec::new();
        let link = LinkMonitor::new(
            options.id.clone(),
            &options.bus,
            SharedClock::clone(&options.clock),
        );
        for destination in options.repository.alarm_destinations() {
            let request = subscribe_request(&options, &destination);
            let subscribed = options.bus.subscribe(request.clone()).await;
            let subscribed = subscribed.map_err(|source| AlarmServiceError::Subscribe {
                destination,
                source,
            })?;
            subscriptions.push((request, subscribed));
        }
        // Nothing is made for a topic that the bus does not know.
        let store = AlarmStore::open(&AlarmStore::path_in(&options.data))?;
        info!(id = %options.id, topics = subscriptions.len(), "alarm service started");
        let stop = CancellationToken::new();
        let (arrivals, queue) = mpsc::channel(QUEUE);
        let mut tasks: Vec<_> = subscriptions
            .into_iter()
            .map(|(request, subscription)| {
                let pump = Pump {
                    request,
                    bus: options.bus.clone(),
                    link: link.clone(),
                    arrivals: arrivals.clone(),
                    stop: stop.clone(),
                };
                tokio::spawn(pump.run(subscription))
            })
            .collect();
        let following = stop.clone();
        tasks.push(tokio::spawn(async move {
            following.run_until_cancelled(link.follow()).await;
        }));
        let keeper = Keeper {
            store: Arc::new(Mutex::new(store)),
            clock: options.clock,
            security: MessageSecurity::default(),
            reading: read_options(options.zoneless),
            stop: stop.clone(),
            logged_ms: i64::MIN,
            unlogged: 0,
        };
        tasks.push(tokio::spawn(keeper.run(queue)));
        Ok(Self { stop, tasks })
    }

    /// Stops: what is being stored is finished and acknowledged, the rest returns to the durable
    /// subscriptions, uncounted. The connection stays the caller's to close.
    pub async fn shutdown(mut self) {
        self.stop.cancel();
        for task in self.tasks.drain(..) {
            if let Err(error) = task.await {
                error!(%error, "a task of the alarm service failed");
            }
        }
    }
}

impl Drop for AlarmService {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// A topic is subscribed to durably; a queue keeps alarms by itself.
fn subscribe_request(options: &AlarmServiceOptions, destination: &Destination) -> SubscribeRequest {
    let name = || {
        options
            .repository
            .subscription_name(&options.id, destination)
    };
    SubscribeRequest {
        ack_timeout: None,
        destination: destination.clone(),
        durable: (destination.kind() == DestinationKind::Topic).then(name),
        ack: AckMode::Individual,
        prefetch: PREFETCH,
    }
}

/// Hands on what arrives at one alarm topic.
struct Pump {
    request: SubscribeRequest,
    bus: Bus,
    link: LinkMonitor,
    arrivals: mpsc::Sender<Delivery>,
    stop: CancellationToken,
}

impl Pump {
    /// Until told to stop, or the bus is gone for good.
    async fn run(self, mut subscription: Subscription) {
        while self.hand_on(&mut subscription).await == Ended::ByTheBus {
            let again = self.link.subscribe_again(&self.bus, &self.request);
            match self.stop.run_until_cancelled(again).await {
                Some(Some(again)) => subscription = again,
                // The bus is gone; its alarms wait there.
                Some(None) => return,
                None => break,
            }
        }
        // The keeper acknowledges what it has stored before its queue closes, which this sender holds open.
        self.arrivals.closed().await;
        if let Err(error) = subscription.unsubscribe().await {
            debug!(%error, "unsubscribing from the alarm topic");
        }
    }

    async fn hand_on(&self, subscription: &mut Subscription) -> Ended {
        loop {
            let delivery = tokio::select! {
                () = self.stop.cancelled() => return Ended::ByUs,
                delivery = subscription.next() => delivery,
            };
            let Some(delivery) = delivery else {
                return match self.stop.is_cancelled() {
                    true => Ended::ByUs,
                    false => Ended::ByTheBus,
                };
            };
            tokio::select! {
                () = self.stop.cancelled() => return Ended::ByUs,
                sent = self.arrivals.send(delivery) => if sent.is_err() { return Ended::ByUs },
            }
        }
    }
}

/// Why nothing more is handed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    ByUs,
    ByTheBus,
}

/// The task that owns the database.
struct Keeper {
    /// Locked by the one blocking job at a time that writes.
    store: Arc<Mutex<AlarmStore>>,
    clock: SharedClock,
    security: MessageSecurity,
    reading: ReadOptions,
    stop: CancellationToken,
    /// When an unreadable message was last logged.
    logged_ms: i64,
    /// How many have come since.
    unlogged: u64,
}

impl Keeper {
    async fn run(mut self, mut queue: mpsc::Receiver<Delivery>) {
        let mut batch = Vec::new();
        loop {
            let received = tokio::select! {
                biased;
                () = self.stop.cancelled() => return,
                received = queue.recv_many(&mut batch, BATCH) => received,
            };
            if received == 0 || !self.keep(&batch).await {
                return;
            }
            acknowledge(batch.drain(..)).await;
        }
    }

    /// Stores a batch, however often it takes; false if told to stop before it was stored.
    async fn keep(&mut self, batch: &[Delivery]) -> bool {
        let now_ms = self.clock.now_ms();
        let entries: Arc<[Entry]> = batch
            .iter()
            .filter_map(|delivery| {
                let id = delivery.lasting_id();
                entry_of(&delivery.message, id, &self.security, self.reading, now_ms)
            })
            .collect();
        self.log_unreadable(&entries, now_ms);
        let mut wait = FIRST_WAIT;
        loop {
            match self.record(Arc::clone(&entries), now_ms).await {
                Ok(()) => return true,
                Err(reason) => {
                    error!(reason, alarms = entries.len(), retry_in = ?wait, "alarms not stored");
                }
            }
            tokio::select! {
                () = self.stop.cancelled() => return false,
                () = tokio::time::sleep(wait) => {}
            }
            wait = (wait * 2).min(LONGEST_WAIT);
        }
    }

    async fn record(&self, entries: Arc<[Entry]>, now_ms: i64) -> Result<(), String> {
        let store = Arc::clone(&self.store);
        let recorded = tokio::task::spawn_blocking(move || {
            // A panic leaves at most a transaction that was rolled back.
            store
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .record(&entries, now_ms)
        });
        match recorded.await {
            Ok(result) => result.map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// One line per [`LOG_EVERY_MS`], whoever sends how many.
    fn log_unreadable(&mut self, entries: &[Entry], now_ms: i64) {
        let mut unreadable = entries
            .iter()
            .filter(|entry| entry.kind == EntryKind::Unreadable);
        let Some(first) = unreadable.next() else {
            return;
        };
        let others = unreadable.count() as u64;
        if (0..LOG_EVERY_MS).contains(&now_ms.saturating_sub(self.logged_ms)) {
            self.unlogged += others + 1;
            return;
        }
        self.logged_ms = now_ms;
        let others = others + std::mem::take(&mut self.unlogged);
        let from = Some(first.raiser.as_str()).filter(|from| !from.is_empty());
        warn!(
            from,
            text = first.text,
            others,
            "unreadable message on an alarm topic"
        );
    }
}

async fn acknowledge(batch: impl Iterator<Item = Delivery>) {
    for result in join_all(batch.map(Delivery::ack)).await {
        if let Err(error) = result {
            // It comes again, and is recognized.
            debug!(%error, "an alarm could not be acknowledged");
        }
    }
}

/// Unacknowledged alarms per topic; each may be as large as a message can be.
const PREFETCH: u32 = 128;
/// Deliveries between the subscriptions and the database.
const QUEUE: usize = 128;
/// Alarms stored in one transaction.
const BATCH: usize = 128;
const LOG_EVERY_MS: i64 = 60_000;
const FIRST_WAIT: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests;
