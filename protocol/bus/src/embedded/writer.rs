//! The thread that opens, replays and writes the log.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
};

use tokio::sync::{mpsc, oneshot};

use super::BrokerOptions;
use crate::{
    core::{
        Core, Limits, Wanted,
        message::MessageId,
        notice::Notice,
        unit::{Definition, Entry, QueueId, Unit},
    },
    error::BusError,
    log::{Log, LogError, LogOptions, LogStats, storage::Storage},
};

/// A job that waits covers whatever is there when the writer comes to it.
const JOB_CHANNEL: usize = 1;
/// How many reports wait for the owner of the queues.
const REPORT_CHANNEL: usize = 16;
/// What a small entry takes in the log, in bytes (about).
const SMALL_ENTRY: u64 = 64;

/// What opening the log has cost, and what people must be told of.
pub(super) type Started = (LogStats, Vec<Notice>);

/// What the writer is to do; it writes the units that wait in any case.
#[derive(Debug)]
pub(super) enum Job {
    /// Write the units that wait, in order.
    Write,
    /// Try again to get room for the next segment.
    MakeRoom,
}

/// What the writer has done.
#[derive(Debug)]
pub(super) enum Report {
    /// Everything up to this unit is written, but what somebody waits for is not on the disk yet.
    Seen { unit: u64 },
    /// Everything up to this unit is written; what somebody waits for is on the disk.
    Written {
        unit: u64,
        room: bool,
        stats: LogStats,
        stale: Vec<(MessageId, QueueId)>,
    },
    /// Nothing is written any more.
    Failed(String),
}

/// Units that wait to be written: all that gather while one group is synced are the next.
#[derive(Debug, Default)]
struct Waiting {
    units: Vec<Unit>,
    /// What they take in memory (about).
    bytes: u64,
    /// Whether somebody wants to know when they are written, before they are on the disk.
    watched: bool,
}

type SharedWaiting = Arc<Mutex<Waiting>>;

/// Nobody panics while holding it.
fn lock(waiting: &SharedWaiting) -> MutexGuard<'_, Waiting> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The owner's side of the writer.
#[derive(Debug)]
pub(super) struct Writer {
    pub(super) jobs: mpsc::Sender<Job>,
    waiting: SharedWaiting,
    /// Ends when the log is closed and the queue space free.
    pub(super) reports: mpsc::Receiver<Report>,
}

impl Writer {
    /// Starts the thread, which opens the log; returns the restored state when its first unit is on the disk.
    pub(super) async fn start<S: Storage>(
        storage: impl FnOnce() -> Result<S, LogError> + Send + 'static,
        options: BrokerOptions,
        log_options: LogOptions,
        limits: Limits,
    ) -> Result<(Self, Core, Started), BusError> {
        let (jobs, job_receiver) = mpsc::channel(JOB_CHANNEL);
        let (report_sender, reports) = mpsc::channel(REPORT_CHANNEL);
        let (answer, opened) = oneshot::channel();
        let waiting = SharedWaiting::default();
        let taken = Arc::clone(&waiting);
        let body = move || match open(storage, &options, log_options, limits) {
            Ok((log, core, notices)) => {
                if answer.send(Ok((core, (log.stats(), notices)))).is_ok() {
                    run(log, job_receiver, &taken, &report_sender);
                }
            }
            Err(error) => {
                let _ = answer.send(Err(error));
            }
        };
        let thread = thread::Builder::new()
            .name("bus-log".to_owned())
            .spawn(body);
        thread.map_err(|error| BusError::io("starting the log's thread", &error))?;
        let (core, started) = opened.await.map_err(|_| BusError::Closed)??;
        let writer = Self {
            jobs,
            waiting,
            reports,
        };
        Ok((writer, core, started))
    }

    /// Hands over units, which take so many bytes in memory (about); `watched`: somebody wants to know when they are
    /// written, before they are on the disk.
    pub(super) fn write(&self, units: Vec<Unit>, bytes: u64, watched: bool) {
        let mut waiting = lock(&self.waiting);
        waiting.watched |= watched;
        waiting.units.extend(units);
        waiting.bytes = waiting.bytes.saturating_add(bytes);
        drop(waiting);
        // If there is a job already, it covers these.
        let _ = self.jobs.try_send(Job::Write);
    }

    /// What waits takes so many bytes in memory (about).
    pub(super) fn waiting_bytes(&self) -> u64 {
        lock(&self.waiting).bytes
    }
}

/// What a unit takes in memory, in bytes (about).
pub(super) fn cost(unit: &Unit) -> u64 {
    let costs = unit.entries.iter().map(|entry| match entry {
        Entry::Put { message, places } => message.size() + SMALL_ENTRY * places.len() as u64,
        Entry::Ack { ids, .. } => SMALL_ENTRY + 16 * ids.len() as u64,
        Entry::Remember {
            destination, id, ..
        } => SMALL_ENTRY + (destination.len() + id.len()) as u64,
        Entry::Define { definition, .. } => SMALL_ENTRY + cost_of(definition),
        Entry::Boot(_) | Entry::Remove { .. } | Entry::Count { .. } | Entry::Standing { .. } => {
            SMALL_ENTRY
        }
    });
    costs.sum()
}

/// What a definition's texts take, in bytes.
fn cost_of(definition: &Definition) -> u64 {
    let texts = match definition {
        Definition::Topic { name } => name.len(),
        Definition::Queue {
            name, attributes, ..
        } => name.len() + attributes.targets().map(str::len).sum::<usize>(),
        Definition::Durable {
            client_id,
            name,
            topic,
            nature,
            limits: _,
        } => {
            let selector = nature.selector.as_ref().map_or(0, String::len);
            client_id.len() + name.len() + topic.len() + selector
        }
    };
    texts as u64
}

fn open<S: Storage>(
    storage: impl FnOnce() -> Result<S, LogError>,
    options: &BrokerOptions,
    log_options: LogOptions,
    limits: Limits,
) -> Result<(Log<S>, Core, Vec<Notice>), BusError> {
    let mut core = Core::new(limits, options.client_templates.clone());
    let mut log = Log::open(storage()?, log_options, &mut |entry| core.replay(entry))?;
    let now = options.clock.now_ms();
    let wanted = Wanted {
        destinations: &options.destinations,
        queues: &options.queues,
        durable_subscriptions: &options.durable_subscriptions,
        durable_topics: &options.durable_topics,
        subscription_rules: &options.subscription_rules,
    };
    let effects = core.start(now, &wanted)?;
    for (queue, left) in core.drains() {
        tracing::info!(
            queue,
            left,
            "what comes now waits for what is in the lanes from before"
        );
    }
    if let Some(unit) = effects.unit {
        log.append(&[unit])?;
    }
    Ok((log, core, effects.notices))
}

fn run<S: Storage>(
    mut log: Log<S>,
    mut jobs: mpsc::Receiver<Job>,
    waiting: &SharedWaiting,
    reports: &mpsc::Sender<Report>,
) {
    while let Some(job) = jobs.blocking_recv() {
        let Waiting { units, watched, .. } = std::mem::take(&mut *lock(waiting));
        match job {
            // An earlier job has covered them.
            Job::Write if units.is_empty() => continue,
            Job::Write => {}
            Job::MakeRoom => log.make_room(),
        }
        let unit = units.last().map_or(0, |unit| unit.number);
        let done = log.write(&units).and_then(|()| {
            if watched && units.iter().any(|unit| unit.sync) {
                // Should nobody listen any more, the next report shows it.
                let _ = reports.blocking_send(Report::Seen { unit });
            }
            log.settle(&units)
        });
        if let Err(error) = done {
            let _ = reports.blocking_send(Report::Failed(error.to_string()));
            return;
        }
        let stale = log.stale();
        let (room, stats) = (log.has_room(), log.stats());
        let report = Report::Written {
            unit,
            room,
            stats,
            stale,
        };
        if reports.blocking_send(report).is_err() {
            break;
        }
    }
    if let Err(error) = log.close() {
        tracing::error!(%error, "the log was not closed in order");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        QueueAttributes,
        core::durable::{Nature, SubscriptionLimits},
    };

    #[test]
    fn a_unit_costs_the_texts_in_it() {
        let long = || "x".repeat(2_000);
        let queue = QueueId(1);
        let attributes = QueueAttributes {
            backout_queue: Some(long()),
            ..QueueAttributes::default()
        };
        let definitions = [
            (2_000, Definition::Topic { name: long() }),
            (
                4_000,
                Definition::Queue {
                    name: long(),
                    attributes,
                    drain: None,
                },
            ),
            (
                8_000,
                Definition::Durable {
                    client_id: long(),
                    name: long(),
                    topic: long(),
                    limits: SubscriptionLimits::default(),
                    nature: Nature {
                        selector: Some(long()),
                        no_local: false,
                    },
                },
            ),
        ];
        let defines = definitions.map(|(texts, definition)| {
            let entry = Entry::Define { queue, definition };
            (texts, entry)
        });
        let remember = Entry::Remember {
            message: MessageId { boot: 1, seq: 1 },
            at: 0,
            destination: long(),
            id: "y".repeat(255),
        };
        for (texts, entry) in defines.into_iter().chain([(2_255, remember)]) {
            let unit = Unit {
                number: 1,
                sync: false,
                entries: vec![entry],
            };
            assert_eq!(cost(&unit), SMALL_ENTRY + texts);
        }
    }
}
