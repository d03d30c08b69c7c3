//! The pillar on the bus: what arrives is read, handed to the worker of its file, answered and acknowledged.

mod answering;
mod intake;
mod opening;
mod serving;
mod unanswered;
mod writing;

use std::{collections::BTreeSet, fmt, io, path::PathBuf, sync::Arc, time::Duration};

use pillarbox_bus::{AckMode, Bus, BusError, SubscribeRequest, Subscription};
use pillarbox_component::{AlarmRequest, Component};
use pillarbox_exchange::ExchangeClient;
use pillarbox_messages::{
    AlarmCode, CollectionId, ComponentId, Destination, FileId, clock::SharedClock,
};
use pillarbox_settings::{AlarmLevel, PillarNode, Repository};
use thiserror::Error;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::{debug, info, warn};

use self::intake::{Intake, Workers};
pub(crate) use self::{
    opening::{component, open},
    unanswered::Unanswered,
};
use crate::{
    archive::ArchiveError,
    context::Context,
    digests::SpecError,
    index::IndexError,
    workers::{Background, Purge, Recheck, Reconcile, Report, WorkerStatus},
};

/// What a pillar is made from.
#[derive(Clone, Debug)]
pub struct PillarOptions {
    /// Its part of node.toml.
    pub settings: PillarNode,
    /// The repository it belongs to.
    pub repository: Arc<Repository>,
    /// Its own connection; the client id is the pillar's id.
    pub bus: Bus,
    /// What it fetches and delivers files with.
    pub exchange: ExchangeClient,
    /// Where it keeps its index; its own directory.
    pub data: PathBuf,
    /// Its time.
    pub clock: SharedClock,
}

/// Why a pillar can't start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PillarError {
    /// No collection lists it.
    #[error(
        "pillar '{0}' is in no collection of repository.toml; add it to a collection's pillars"
    )]
    NoCollection(ComponentId),
    /// Its index was written by a pillar of the other type.
    #[error(
        "the index in {} was written by a {kept} pillar; set type = \"{kept}\" in node.toml, or give the pillar \
         another data directory", path.display()
    )]
    OtherType {
        /// The pillar's data directory.
        path: PathBuf,
        /// The type that it had.
        kept: &'static str,
    },
    /// The repository's default checksum can't be computed.
    #[error("the repository's default checksum: {0}")]
    Checksum(#[from] SpecError),
    /// The index lists files that should be in this directory, which isn't there.
    #[error(
        "the index lists files of collection '{collection}', but {} is not there; mount its disk, or correct \
         'directories' in node.toml", path.display()
    )]
    ArchiveAbsent {
        /// The collection's part of the archive directory.
        path: PathBuf,
        /// The collection.
        collection: CollectionId,
    },
    /// The index lists files in a directory that is not configured, and they are in none that is.
    #[error(
        "the index lists files of collection '{collection}' in {}, which is not in 'directories' of node.toml, and file \
         '{file}' is in no directory that is; list {} again, or the one that its files were moved to",
        directory.display(), directory.display()
    )]
    ArchiveUnlisted {
        /// The directory that was configured.
        directory: PathBuf,
        /// The collection.
        collection: CollectionId,
        /// One of the files.
        file: FileId,
    },
    /// There are archived files, of which the new index knows nothing.
    #[error(
        "archive directory {} holds files of collection '{collection}', but the pillar's index is new; add \
         first_audit_number = N to pillar '{pillar}' in node.toml, the number after the last audit trail event that was \
         ever collected from it, or 1 if none was", directory.display()
    )]
    TakeOver {
        /// The directory.
        directory: PathBuf,
        /// The collection.
        collection: CollectionId,
        /// The pillar.
        pillar: ComponentId,
    },
    /// An archive directory can't be used.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The index can't be used.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// Its data directory can't be used.
    #[error("{}: {source}; make it writable", path.display())]
    Data {
        /// The directory.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The process ends before it has started.
    #[error("the pillar's start was interrupted")]
    Interrupted,
    /// The bus refuses it.
    #[error("pillar '{pillar}': {source}")]
    Bus {
        /// The pillar.
        pillar: ComponentId,
        /// What the bus said.
        source: BusError,
    },
}

/// A running pillar.
pub struct Pillar {
    context: Arc<Context>,
    workers: Workers,
    background: Background,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Pillar {
    /// Finds what would keep a pillar from starting, as far as this machine and the settings are concerned: before
    /// anybody is connected to. Nothing is made. `data` is the pillar's own directory.
    ///
    /// # Errors
    /// Settings that can't be honored; a directory or database that can't be used.
    pub async fn inspect(
        settings: PillarNode,
        repository: Arc<Repository>,
        data: PathBuf,
        clock: SharedClock,
    ) -> Result<(), PillarError> {
        let inspect = move || opening::inspect(&settings, &repository, &data, clock);
        let inspected = tokio::task::spawn_blocking(inspect).await;
        inspected.unwrap_or(Err(PillarError::Interrupted))
    }

    /// Inspects, subscribes, opens archive and index, and cleans what an earlier run left behind. When this returns, the
    /// pillar hears every identify request.
    ///
    /// # Errors
    /// Settings that can't be honored; a directory, database or bus that can't be used.
    pub async fn start(options: PillarOptions) -> Result<Self, PillarError> {
        Self::inspect(
            options.settings.clone(),
            Arc::clone(&options.repository),
            options.data.clone(),
            SharedClock::clone(&options.clock),
        )
        .await?;
        let component = component(&options);
        // Nothing is made for a collection that the bus does not know. What comes meanwhile waits.
        let subscribed = subscribe(&component).await?;
        // Directories and databases: not on a thread that others wait for.
        let opened = tokio::task::spawn_blocking(move || open(options, component)).await;
        let context = Arc::new(opened.unwrap_or_else(|_| Err(PillarError::Interrupted))?);
        let clock = SharedClock::clone(context.component.clock());
        let pillar = Self {
            background: Background::new(context.workers.clone(), clock),
            context,
            workers: Workers::new(),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
        };
        for (request, subscription) in subscribed {
            pillar.tasks.spawn(pillar.intake(request).run(subscription));
        }
        let link = pillar.context.link.clone();
        let stop = pillar.stop.clone();
        let following = async move { stop.run_until_cancelled(link.follow()).await };
        pillar.tasks.spawn(following);
        let watching = writing::watch(Arc::clone(&pillar.context), pillar.stop.clone());
        pillar.tasks.spawn(watching);
        pillar.start_background();
        let id = pillar.context.component.id().as_str();
        info!(pillar = id, "pillar ready");
        Ok(pillar)
    }

    /// What its background workers are doing.
    #[must_use]
    pub fn workers(&self) -> Vec<WorkerStatus> {
        self.context.workers.statuses()
    }

    /// Takes nothing new, finishes within `grace` what can be finished, and gives the rest back to the bus,
    /// uncounted. A background worker that a disk keeps for longer is not waited for.
    pub async fn shutdown(self, grace: Duration) {
        self.stop.cancel();
        self.tasks.close();
        let (drained, resting) =
            tokio::join!(self.workers.drain(grace), self.background.stop(grace));
        self.tasks.wait().await;
        let pillar = self.context.component.id().as_str();
        if !resting {
            warn!(
                pillar,
                "a background worker is still at work, and is left to it"
            );
        }
        let [stopped, unstarted] = drained;
        if let Err(error) = self.context.component.bus().close().await {
            debug!(pillar, %error, "the bus connection had ended");
        }
        self.context.index.close().await;
        info!(pillar, stopped, unstarted, "pillar stopped");
    }

    fn start_background(&self) {
        let context = &self.context;
        if !context.archive.keeps_bytes() {
            return;
        }
        let recheck = Recheck::new(Arc::clone(context));
        self.background
            .start(recheck, context.settings.recheck, self.report_fault());
        let reconcile = Reconcile::new(Arc::clone(context));
        self.background
            .start(reconcile, context.settings.reconcile, self.report_fault());
        if let Some(retain_for) = context.settings.retain_for {
            let purge = Purge::new(Arc::clone(context), retain_for);
            self.background
                .start(purge, context.settings.purge, self.report_fault());
        }
    }

    /// A worker's fault needs a human.
    fn report_fault(&self) -> Report {
        let context = Arc::clone(&self.context);
        Box::new(move |shift, name, fault| {
            let request = AlarmRequest {
                level: AlarmLevel::Error,
                code: AlarmCode::ComponentFailure,
                text: format!("background worker {name}: {fault}"),
                collection: None,
                file: None,
            };
            shift.wait_for_others(context.component.alarms().raise(request));
        })
    }

    fn intake(&self, request: SubscribeRequest) -> Intake {
        Intake {
            request,
            context: Arc::clone(&self.context),
            workers: self.workers.clone(),
            stop: self.stop.clone(),
        }
    }
}

impl fmt::Debug for Pillar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pillar")
            .field("id", self.context.component.id())
            .finish_non_exhaustive()
    }
}

/// Subscribes wherever the pillar listens.
async fn subscribe(
    component: &Component,
) -> Result<Vec<(SubscribeRequest, Subscription)>, PillarError> {
    let mut subscribed = Vec::new();
    for (destination, ack) in destinations(component) {
        let request = SubscribeRequest {
            ack_timeout: None,
            destination,
            durable: None,
            ack,
            prefetch: PREFETCH,
        };
        let subscription = component.bus().subscribe(request.clone()).await;
        let subscription = subscription.map_err(|source| PillarError::Bus {
            pillar: component.id().clone(),
            source,
        })?;
        subscribed.push((request, subscription));
    }
    Ok(subscribed)
}

/// Where it listens: collection topics, whose messages are gone once taken, and its own destinations, whose requests
/// are acknowledged when they are done. Several collections may share a destination.
fn destinations(component: &Component) -> Vec<(Destination, AckMode)> {
    let repository = component.repository();
    let mut topics = BTreeSet::new();
    let mut own = BTreeSet::new();
    for collection in component.collections() {
        topics.insert(repository.destinations(collection).collection());
        own.insert(component.address(Some(collection)));
    }
    let topics = topics.into_iter().map(|it| (it, AckMode::Auto));
    topics
        .chain(own.into_iter().map(|it| (it, AckMode::Individual)))
        .collect()
}

/// Messages in hand, of one subscription.
const PREFETCH: u32 = 32;

#[cfg(test)]
mod tests;
