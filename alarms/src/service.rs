//! The service: takes alarms off the bus and stores them before it acknowledges them.
//!
//! One task per subscription hands deliveries to the one task that owns the database. What can't be stored
//! stays unacknowledged, here and on the bus, until it can.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures_util::future::join_all;
use pillarbox_bus::{AckMode, Bus, BusError, Delivery, SubscribeRequest, Subscription};
use pillarbox_component::{MessageSecurity, reading::read_options};
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
    /// Opens the database, subscribes to every alarm topic of the repository, and starts to store.
    ///
    /// # Errors
    /// [`AlarmServiceError`] if the database can't be opened or a subscription can't be made.
    pub async fn start(options: AlarmServiceOptions) -> Result<Self, AlarmServiceError> {
        let store = AlarmStore::open(&AlarmStore::path_in(&options.data))?;
        let mut subscriptions = Vec::new();
        for destination in options.repository.alarm_destinations() {
            let request = subscribe_request(&options, &destination);
            let subscribed = options.bus.subscribe(request).await;
            subscriptions.push(subscribed.map_err(|source| AlarmServiceError::Subscribe {
                destination,
                source,
            })?);
        }
        info!(id = %options.id, topics = subscriptions.len(), "alarm service started");
        let stop = CancellationToken::new();
        let (arrivals, queue) = mpsc::channel(QUEUE);
        let mut tasks: Vec<_> = subscriptions
            .into_iter()
            .map(|it| tokio::spawn(pump(it, arrivals.clone(), stop.clone())))
            .collect();
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
        destination: destination.clone(),
        durable: (destination.kind() == DestinationKind::Topic).then(name),
        ack: AckMode::Individual,
        prefetch: PREFETCH,
    }
}

/// Hands on what arrives, until told to stop or the subscription ends.
async fn pump(
    mut subscription: Subscription,
    arrivals: mpsc::Sender<Delivery>,
    stop: CancellationToken,
) {
    loop {
        let delivery = tokio::select! {
            () = stop.cancelled() => break,
            delivery = subscription.next() => delivery,
        };
        let Some(delivery) = delivery else {
            if !stop.is_cancelled() {
                error!("an alarm subscription has ended; its alarms wait on the bus for a restart");
            }
            return;
        };
        tokio::select! {
            () = stop.cancelled() => break,
            sent = arrivals.send(delivery) => if sent.is_err() { break },
        }
    }
    // The keeper acknowledges what it has stored before its queue closes, which this sender holds open.
    arrivals.closed().await;
    if let Err(error) = subscription.unsubscribe().await {
        debug!(%error, "unsubscribing from the alarm topic");
    }
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
                entry_of(&delivery.message, &self.security, self.reading, now_ms)
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
        warn!(from = %first.raiser, text = first.text, others, "unreadable message on an alarm topic");
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
