//! Work in the background: each worker has a name, a status, a pace and a place where it goes on after a restart.
//!
//! A worker is a state with turns, each of which it ends by itself; between turns it rests. It has a thread of its
//! own, since most of what it does is to wait for a disk. A fault or a panic ends one turn and nothing else.
//!
//! Invariants
//! * No worker holds up a request: it has a file's [`Claim`](crate::archive::Claim) for a look at the disk and a
//!   commit at most, and operations wait for that.
//! * A worker stops soon after it is told to: between two portions of a file, and in every rest.

mod bucket;
mod inspection;
mod purge;
mod reading;
mod recheck;
mod reconcile;
mod shift;
mod status;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};

use pillarbox_component::dispatch::Panicked;
use pillarbox_messages::clock::SharedClock;
use pillarbox_settings::BackgroundWork;
use tokio::runtime::Handle;
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};
use tracing::{error, info};

pub use self::status::{Activity, WorkerFault, WorkerStatus};
pub(crate) use self::{
    purge::Purge,
    recheck::Recheck,
    reconcile::Reconcile,
    shift::{Interrupt, Shift},
    status::Board,
};

/// Something that is done again and again in the background.
pub(crate) trait Worker: Send + 'static {
    /// What it is called in status, log and index.
    const NAME: &'static str;

    /// Does all that is there to do now; how long it rests afterwards is the frame's. Blocks.
    fn turn(&mut self, shift: &mut Shift) -> Result<(), Interrupt>;
}

/// Tells people of a fault of the worker of this name; called once for each run of turns that end in the same one.
pub(crate) type Report = Box<dyn Fn(&Shift, &'static str, &str) + Send>;

/// The workers that run. They are told to stop when this is dropped.
#[derive(Debug)]
pub(crate) struct Background {
    board: Board,
    clock: SharedClock,
    stop: CancellationToken,
    tasks: TaskTracker,
    _dropped: DropGuard,
}

impl Background {
    /// None yet. Their statuses are shown on `board`.
    pub(crate) fn new(board: Board, clock: SharedClock) -> Self {
        let stop = CancellationToken::new();
        Self {
            board,
            clock,
            _dropped: stop.clone().drop_guard(),
            stop,
            tasks: TaskTracker::new(),
        }
    }

    /// Starts a worker on a thread of its own.
    pub(crate) fn start<W: Worker>(&self, worker: W, work: BackgroundWork, report: Report) {
        let status = self.board.add(W::NAME, work.pace, self.clock.now_ms());
        let shift = Shift::new(
            Handle::current(),
            self.stop.clone(),
            work.pace,
            status,
            SharedClock::clone(&self.clock),
        );
        let crew = Crew {
            worker,
            shift,
            interval: work.interval,
            report,
            reported: None,
        };
        self.tasks.spawn_blocking(move || crew.run());
    }

    /// Stops all workers, and waits so long for them; tells whether they have stopped. A disk may keep one for longer.
    pub(crate) async fn stop(&self, grace: Duration) -> bool {
        self.stop.cancel();
        self.tasks.close();
        tokio::time::timeout(grace, self.tasks.wait()).await.is_ok()
    }
}

/// A worker and what it works with.
struct Crew<W> {
    worker: W,
    shift: Shift,
    interval: Duration,
    report: Report,
    /// The fault that was told last, until a turn ends well.
    reported: Option<String>,
}

impl<W: Worker> Crew<W> {
    fn run(mut self) {
        loop {
            self.shift.begin_turn();
            let rest = match self.turn() {
                Ok(()) => {
                    let complaint = self.shift.complaint();
                    self.end(true, complaint);
                    self.interval
                }
                Err(Interrupt::Stopped) => break,
                Err(Interrupt::Fault(text)) => {
                    self.end(false, Some(text));
                    self.interval.min(AFTER_A_FAULT)
                }
            };
            if self.shift.rest(rest).is_err() {
                break;
            }
        }
        info!(worker = W::NAME, "worker stopped");
    }

    fn turn(&mut self) -> Result<(), Interrupt> {
        let (worker, shift) = (&mut self.worker, &mut self.shift);
        let turn = catch_unwind(AssertUnwindSafe(|| worker.turn(shift)));
        turn.unwrap_or_else(|panic| Err(Interrupt::fault(Panicked::of(&*panic))))
    }

    fn end(&mut self, ended: bool, fault: Option<String>) {
        self.shift.end_turn(ended, fault.clone());
        if let Some(text) = &fault
            && self.reported != fault
        {
            error!(
                worker = W::NAME,
                fault = text,
                "worker could not do its work"
            );
            (self.report)(&self.shift, W::NAME, text);
        }
        self.reported = fault;
    }
}

/// The longest rest before work that failed is tried again.
const AFTER_A_FAULT: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests;
