//! The pillar on the bus: what arrives is read, handed to the worker of its file, answered and acknowledged.

mod intake;
mod serving;
mod writing;

use std::{
    collections::BTreeSet, fmt, io, num::NonZeroU64, path::PathBuf, sync::Arc, time::Duration,
};

use pillarbox_bus::{AckMode, Bus, BusError, SubscribeRequest};
use pillarbox_component::{AlarmRequest, Asked, Component, ComponentOptions, LinkMonitor};
use pillarbox_exchange::ExchangeClient;
use pillarbox_messages::{
    AlarmCode, CollectionId, ComponentId, Destination, FileId, clock::SharedClock,
};
use pillarbox_settings::{AlarmLevel, PillarNode, PillarType, Repository};
use thiserror::Error;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::{debug, info, warn};

use self::intake::{Intake, Workers};
use crate::{
    archive::{Archive, ArchiveError, ArchiveOptions},
    change::Settler,
    context::Context,
    digests::{Spec, SpecError},
    index::{Index, IndexError, IndexOptions},
    presence,
    result_document::Results,
    shortage::Shortages,
    take_over::Unexplored,
    untold::Untold,
    workers::{Background, Board, Purge, Recheck, Reconcile, Report, WorkerStatus},
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
    /// Opens archive and index, cleans what an earlier run left behind, and subscribes. When this returns, the
    /// pillar hears every identify request.
    ///
    /// # Errors
    /// Settings that can't be honored; a directory, database or bus that can't be used.
    pub async fn start(options: PillarOptions) -> Result<Self, PillarError> {
        let id = options.settings.id.clone();
        let bus = options.bus.clone();
        // Directories and databases: not on a thread that others wait for.
        let opened = tokio::task::spawn_blocking(move || open(options)).await;
        let context = Arc::new(opened.unwrap_or_else(|_| Err(PillarError::Interrupted))?);
        let clock = SharedClock::clone(context.component.clock());
        let pillar = Self {
            background: Background::new(context.workers.clone(), clock),
            context,
            workers: Workers::new(),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
        };
        let failed = |source| PillarError::Bus {
            pillar: id.clone(),
            source,
        };
        for (destination, ack) in pillar.destinations() {
            let request = SubscribeRequest {
                destination,
                durable: None,
                ack,
                prefetch: PREFETCH,
            };
            let subscription = bus.subscribe(request.clone()).await.map_err(failed)?;
            pillar.tasks.spawn(pillar.intake(request).run(subscription));
        }
        let link = pillar.context.link.clone();
        let stop = pillar.stop.clone();
        let following = async move { stop.run_until_cancelled(link.follow()).await };
        pillar.tasks.spawn(following);
        let watching = writing::watch(Arc::clone(&pillar.context), pillar.stop.clone());
        pillar.tasks.spawn(watching);
        pillar.start_background();
        info!(pillar = id.as_str(), "pillar ready");
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

    /// Where it listens: collection topics, whose messages are gone once taken, and its own destinations, whose
    /// requests are acknowledged when they are done. Several collections may share a destination.
    fn destinations(&self) -> Vec<(Destination, AckMode)> {
        let component = &self.context.component;
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

/// Opens what the pillar keeps.
pub(crate) fn open(options: PillarOptions) -> Result<Context, PillarError> {
    let PillarOptions {
        settings,
        repository,
        bus,
        exchange,
        data,
        clock,
    } = options;
    let id = settings.id.clone();
    let default_spec = Spec::plain(repository.default_checksum)?;
    let component = Component::new(ComponentOptions {
        zoneless: settings.accept_zoneless,
        ..ComponentOptions::pillar(
            id.clone(),
            repository,
            bus,
            SharedClock::clone(&clock),
            settings.alarm_level,
        )
    });
    let link = LinkMonitor::new(id.clone(), component.bus(), SharedClock::clone(&clock));
    if component.collections().is_empty() {
        return Err(PillarError::NoCollection(id));
    }
    let results = data.join("results");
    let results = Results::open(results.clone(), settings.minimum_size_left).map_err(|source| {
        let path = results;
        PillarError::Data { path, source }
    })?;
    let index = Index::open(IndexOptions {
        path: data.join("index.sqlite"),
        checksum_type: component.repository().default_checksum,
        first_audit_number: settings.first_audit_number.unwrap_or(NonZeroU64::MIN),
        clock,
    })?;
    let runtime = tokio::runtime::Handle::current();
    for collection in component.collections() {
        runtime.block_on(presence::check(&settings, &data, &index, collection))?;
    }
    let unexplored = Unexplored::find(&settings, &index, component.collections());
    let unexplored = runtime.block_on(unexplored)?;
    let archive = match settings.pillar_type {
        PillarType::Checksum => Archive::without_bytes(component.collections()),
        PillarType::File => Archive::open(ArchiveOptions {
            directories: settings.directories.clone(),
            collections: component.collections().to_vec(),
            minimum_size_left: settings.minimum_size_left,
        })?,
    };
    let settler = Settler::new(&archive, &index, &default_spec);
    runtime.block_on(settler.settle_all())?;
    runtime.block_on(unexplored.introduce(&index, component.collections()))?;
    Ok(Context {
        component,
        settings,
        archive,
        index,
        exchange,
        default_spec,
        data,
        results,
        unexplored,
        untold: Untold::default(),
        workers: Board::default(),
        shortages: Shortages::default(),
        asked: Asked::default(),
        link,
    })
}

/// Messages in hand, of one subscription.
const PREFETCH: u32 = 32;

#[cfg(test)]
mod tests;
