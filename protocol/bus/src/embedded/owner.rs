//! The one task that owns the queues: steps the state machine, and tells what has happened once it is written.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use futures_util::{
    StreamExt,
    future::{BoxFuture, FutureExt},
    stream::FuturesUnordered,
};
use pillarbox_messages::{clock::SharedClock, properties};
use tokio::{
    sync::{broadcast, mpsc},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use super::{
    Registry, Stats,
    connection::{Command, ConnectionId, Event, Notice, Trouble},
    outbox::{Handed, Outbox, Progress},
    writer::{Job, Report, Writer, cost},
};
use crate::{
    core::{Core, Effects, Input, message::NewMessage},
    error::BusError,
    log::LogStats,
};

/// How many submissions are taken before what they brought about is handed on.
const BATCH: usize = 256;
/// How much may wait for the writer, in bytes, before commands have to wait.
const MAX_PENDING_BYTES: u64 = 32 << 20;
/// How much is remembered until somebody wants to know.
const MAX_UNTOLD: usize = 256;
/// The wall clock may be set: nothing sleeps longer than this without looking at it.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// What a connection wants.
#[derive(Debug)]
pub(crate) struct Submission {
    pub(crate) connection: ConnectionId,
    pub(crate) commands: Vec<Command>,
}

/// A new connection.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) connection: ConnectionId,
    pub(crate) client_id: String,
    pub(crate) in_process: bool,
    pub(crate) events: mpsc::Sender<Event>,
}

/// What the owner waits for from a connection.
#[derive(Debug)]
enum Wake {
    /// There is room in its channel.
    Room(ConnectionId),
    /// It does not listen any more.
    Gone(ConnectionId),
}

/// The owner of the queues.
pub(super) struct Owner {
    core: Core,
    clock: SharedClock,
    writer: Writer,
    registry: Arc<Registry>,
    outboxes: BTreeMap<ConnectionId, Outbox>,
    /// Connections that may have something to be told.
    touched: BTreeSet<ConnectionId>,
    wakes: FuturesUnordered<BoxFuture<'static, Wake>>,
    pending: Vec<crate::core::unit::Unit>,
    pending_bytes: u64,
    progress: Progress,
    /// Connections that are to get messages as soon as the unit with this number is written.
    watching: VecDeque<(u64, ConnectionId)>,
    room: bool,
    /// When to look for room again.
    room_try: Instant,
    failed: bool,
    log: LogStats,
    notices: broadcast::Sender<Notice>,
    /// What is to be told when the unit with this number is written, and there is somebody to tell.
    untold: VecDeque<(u64, Notice)>,
}

impl Owner {
    pub(super) fn new(
        core: Core,
        clock: SharedClock,
        writer: Writer,
        registry: Arc<Registry>,
        notices: broadcast::Sender<Notice>,
        (opened, untold): (LogStats, Vec<Notice>),
    ) -> Self {
        let owner = Self {
            core,
            clock,
            writer,
            registry,
            outboxes: BTreeMap::new(),
            touched: BTreeSet::new(),
            wakes: FuturesUnordered::new(),
            pending: Vec::new(),
            pending_bytes: 0,
            progress: Progress {
                seen: 1,
                written: 1,
                ..Progress::default()
            },
            watching: VecDeque::new(),
            room: true,
            room_try: Instant::now(),
            failed: false,
            log: opened,
            notices,
            // Nobody has had time to listen yet.
            untold: untold.into_iter().map(|notice| (1, notice)).collect(),
        };
        owner.publish_stats();
        owner
    }

    /// Runs until told to stop, or until nobody is left who could ask for anything.
    pub(super) async fn run(
        mut self,
        mut commands: mpsc::Receiver<Submission>,
        mut opens: mpsc::Receiver<Opened>,
        stop: CancellationToken,
    ) {
        loop {
            let wake_at = self.wake_at();
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                report = self.writer.reports.recv(), if !self.failed => match report {
                    Some(report) => self.reported(report),
                    None => self.fail("the log's thread has ended".to_owned()),
                },
                Some(opened) = opens.recv() => self.opened(opened),
                Some(wake) = self.wakes.next() => self.woken(wake, &mut commands, &mut opens),
                submission = commands.recv(), if self.writer.waiting_bytes() < MAX_PENDING_BYTES => {
                    let Some(submission) = submission else { break };
                    self.submitted(submission);
                    self.take_queued(BATCH, &mut commands, &mut opens);
                }
                () = tokio::time::sleep_until(wake_at.unwrap_or_else(Instant::now)), if wake_at.is_some() => self.tick(),
            }
            self.hand_on();
        }
        self.stop(commands, opens).await;
    }

    fn take_queued(
        &mut self,
        most: usize,
        commands: &mut mpsc::Receiver<Submission>,
        opens: &mut mpsc::Receiver<Opened>,
    ) {
        for _ in 0..most {
            // A connection's opening was sent before its first command.
            while let Ok(opened) = opens.try_recv() {
                self.opened(opened);
            }
            match commands.try_recv() {
                Ok(submission) => self.submitted(submission),
                Err(_) => return,
            }
        }
    }

    fn submitted(&mut self, submission: Submission) {
        let Submission {
            connection,
            commands,
        } = submission;
        for command in commands {
            if let Command::Send { message, .. } = &command
                && tracing::enabled!(tracing::Level::DEBUG)
            {
                let client = self.outboxes.get(&connection);
                log_sent(client.map(Outbox::client_id), message);
            }
            self.step(Input::Command {
                connection,
                command,
            });
        }
    }

    fn opened(&mut self, opened: Opened) {
        let Opened {
            connection,
            client_id,
            in_process,
            events,
        } = opened;
        let gone = events.clone();
        self.wakes.push(
            async move { gone.closed().await }
                .map(move |()| Wake::Gone(connection))
                .boxed(),
        );
        let outbox = Outbox::new(client_id.clone(), events);
        self.outboxes.insert(connection, outbox);
        self.step(Input::Open {
            connection,
            client_id,
            in_process,
        });
    }

    fn woken(
        &mut self,
        wake: Wake,
        commands: &mut mpsc::Receiver<Submission>,
        opens: &mut mpsc::Receiver<Opened>,
    ) {
        match wake {
            Wake::Room(connection) => {
                if let Some(outbox) = self.outboxes.get_mut(&connection) {
                    outbox.has_room();
                    self.touched.insert(connection);
                }
            }
            Wake::Gone(connection) => {
                // What it had asked for before it went still counts.
                let queued = commands.len();
                self.take_queued(queued, commands, opens);
                self.step(Input::Lost {
                    connection,
                    reason: BusError::Closed,
                });
                self.outboxes.remove(&connection);
            }
        }
    }

    fn reported(&mut self, report: Report) {
        match report {
            Report::Seen { unit } => {
                self.seen(unit);
            }
            Report::Written {
                unit,
                room,
                stats,
                stale,
            } => {
                self.progress.settle(unit);
                self.seen(unit);
                self.log = stats;
                self.touched.extend(self.outboxes.keys());
                if room != self.room {
                    self.room = room;
                    self.step(Input::Room(room));
                }
                if !stale.is_empty() {
                    self.step(Input::Relocate { places: stale });
                }
            }
            Report::Failed(reason) => self.fail(reason),
        }
    }

    /// Everything up to this unit is written.
    fn seen(&mut self, unit: u64) {
        self.progress.see(unit);
        let seen = self.progress.seen;
        while let Some((unit, connection)) = self.watching.front().copied()
            && unit <= seen
        {
            self.watching.pop_front();
            self.touched.insert(connection);
        }
    }

    /// The log is lost: nobody is told anything that is not on the disk, and everybody is told that.
    fn fail(&mut self, reason: String) {
        tracing::error!(reason, "the queue space has failed; it needs a restart");
        self.failed = true;
        self.pending.clear();
        self.watching.clear();
        self.pending_bytes = 0;
        self.registry.refuse(BusError::SpaceFailed(reason.clone()));
        let written = self.progress.written;
        for outbox in self.outboxes.values_mut() {
            outbox.forget_after(written);
        }
        self.step(Input::Failed(reason));
    }

    fn tick(&mut self) {
        self.step(Input::Tick);
        if !self.room && self.room_try <= Instant::now() {
            self.room_try = Instant::now() + LONGEST_SLEEP;
            // Only a try: the channel is full when the writer is busy, and then it looks for room by itself.
            let _ = self.writer.jobs.try_send(Job::MakeRoom);
        }
    }

    fn wake_at(&self) -> Option<Instant> {
        let room = (!self.room && !self.failed).then_some(self.room_try);
        let deadline = self.core.next_deadline().map(|at| {
            let left = at.saturating_sub(self.clock.now_ms());
            let left = Duration::from_millis(u64::try_from(left).unwrap_or(0));
            Instant::now() + left.min(LONGEST_SLEEP)
        });
        room.into_iter().chain(deadline).min()
    }

    fn step(&mut self, input: Input) {
        let effects = self.core.step(self.clock.now_ms(), input);
        self.apply(effects);
    }

    fn apply(&mut self, effects: Effects) {
        let Effects {
            unit,
            events,
            closed,
            detached,
            notices,
        } = effects;
        let number = unit.as_ref().map_or(0, |unit| unit.number);
        notices.iter().for_each(log_notice);
        self.untold
            .extend(notices.into_iter().map(|it| (number, it)));
        if let Some(unit) = unit.filter(|_| !self.failed) {
            self.pending_bytes = self.pending_bytes.saturating_add(cost(&unit));
            self.progress.add(&unit);
            self.pending.push(unit);
        }
        for (connection, subscription) in detached {
            if let Some(outbox) = self.outboxes.get_mut(&connection) {
                outbox.forget_deliveries(subscription);
            }
        }
        for mut posted in events {
            if self.failed {
                posted.after = 0;
            }
            let connection = posted.connection;
            let watch = (posted.after, connection);
            if posted.after > self.progress.seen
                && self.progress.is_early(&posted)
                && self.watching.back() != Some(&watch)
            {
                self.watching.push_back(watch);
            }
            if let Some(outbox) = self.outboxes.get_mut(&connection) {
                outbox.push(posted);
                self.touched.insert(connection);
            }
        }
        for connection in closed {
            self.registry.leave(connection);
            if let Some(outbox) = self.outboxes.get_mut(&connection) {
                outbox.end();
            }
        }
    }

    /// Tells what people should know. Who comes later is told what nobody has heard.
    fn tell_people(&mut self) {
        self.untold.truncate(MAX_UNTOLD);
        while let Some((unit, _)) = self.untold.front()
            && *unit <= self.progress.written
            && self.notices.receiver_count() > 0
        {
            if let Some((_, notice)) = self.untold.pop_front() {
                // Its receiver may just have gone.
                let _ = self.notices.send(notice);
            }
        }
    }

    /// Hands units to the writer and events to their connections.
    fn hand_on(&mut self) {
        self.tell_people();
        self.hand_units();
        // Whoever is told something finds it in the figures.
        self.publish_stats();
        while let Some(connection) = self.touched.pop_first() {
            for input in self.hand_events(connection) {
                self.step(input);
            }
        }
        self.hand_units();
    }

    fn hand_units(&mut self) {
        if self.pending.is_empty() || self.failed {
            return;
        }
        let units = std::mem::take(&mut self.pending);
        let bytes = std::mem::take(&mut self.pending_bytes);
        let watched = !self.watching.is_empty();
        self.writer.write(units, bytes, watched);
    }

    /// Hands over what may be told; returns what the state machine must know of it.
    fn hand_events(&mut self, connection: ConnectionId) -> Vec<Input> {
        let now = self.clock.now_ms();
        let Some(outbox) = self.outboxes.get_mut(&connection) else {
            return Vec::new();
        };
        let Handed {
            inputs,
            wait_for_room,
        } = outbox.hand(connection, &self.progress, now);
        if wait_for_room {
            let room = outbox.room();
            self.wakes
                .push(room.map(move |()| Wake::Room(connection)).boxed());
        }
        if outbox.is_done() {
            self.outboxes.remove(&connection);
        }
        inputs
    }

    fn publish_stats(&self) {
        let counters = self.core.counters();
        self.registry.lock().stats = Stats {
            syncs: self.log.syncs,
            units: self.log.records,
            written_bytes: self.log.bytes,
            segments: self.log.segments,
            sent: counters.sent,
            delivered: counters.delivered,
            acknowledged: counters.acknowledged,
            duplicates: counters.duplicates,
            unroutable: counters.unroutable,
            expired: counters.expired,
            backed_out: counters.backed_out,
            slow_consumers: counters.slow_consumers,
            missed: counters.missed,
            abandoned: counters.abandoned,
            cancelled_full: counters.cancelled_full,
            durables: self.core.durable_count(),
            connections: 0,
            queues: self.core.queue_count(),
            messages: self.core.held_messages(),
            in_flight: self.core.in_flight(),
            bytes: self.core.held_bytes(),
        };
    }

    /// Does what had been asked for, ends all connections, and waits until everything is on the disk.
    async fn stop(
        mut self,
        mut commands: mpsc::Receiver<Submission>,
        mut opens: mpsc::Receiver<Opened>,
    ) {
        self.registry.refuse(BusError::Closed);
        commands.close();
        self.take_queued(usize::MAX, &mut commands, &mut opens);
        self.step(Input::Shutdown);
        self.hand_units();
        let (closed, _) = mpsc::channel(1);
        self.writer.jobs = closed;
        while let Some(report) = self.writer.reports.recv().await {
            self.reported(report);
        }
        self.hand_on();
    }
}

/// Also where nobody listens who would raise an alarm.
fn log_notice(notice: &Notice) {
    let Notice::Subscription(trouble) = notice else {
        return;
    };
    let (client, subscription) = (trouble.client_id.as_str(), trouble.name.as_str());
    let (messages, bytes, topic) = (trouble.messages, trouble.bytes, &trouble.topic);
    match &trouble.what {
        Trouble::Full {
            limit,
            on_limit,
            missed,
            ..
        } => tracing::warn!(
            client, subscription, %topic, messages, bytes, limit, on_limit = on_limit.as_str(), missed,
            "a durable subscription is full"
        ),
        Trouble::Abandoned { away_ms } => tracing::warn!(
            client, subscription, %topic, messages, bytes, away_ms,
            "a durable subscription was cancelled: its client had been away for too long"
        ),
    }
}

/// So that the bus's part of a conversation can be joined with the others'.
fn log_sent(client: Option<&str>, message: &NewMessage) {
    let property = |name| {
        let found = message.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    };
    tracing::debug!(
        correlation = message.correlation_id.as_deref(),
        collection = property(properties::COLLECTION_ID),
        op = property(properties::TYPE),
        client,
        destination = message.destination_text,
        "message sent"
    );
}
