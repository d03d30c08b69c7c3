//! What workers are doing, for whoever asks.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use pillarbox_messages::Timestamp;
use pillarbox_settings::Pace;

/// What a worker is doing. Its text is one line, for people. Times are milliseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerStatus {
    /// The worker's name.
    pub name: &'static str,
    /// Whether it works or rests.
    pub activity: Activity,
    /// Since when.
    pub since_ms: i64,
    /// How far it is, or how far it came in its last turn; empty before the first.
    pub progress: String,
    /// How fast it may read, or remove.
    pub pace: Pace,
    /// When it last came to the end of its work.
    pub last_end_ms: Option<i64>,
    /// Why it last had to leave its work.
    pub last_fault: Option<WorkerFault>,
}

/// Whether a worker works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// It is at work.
    Working,
    /// It rests until there may be something to do again.
    Resting,
}

/// Why a worker had to leave its work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerFault {
    /// When.
    pub time_ms: i64,
    /// What happened.
    pub text: String,
}

impl WorkerStatus {
    /// The fault that the worker has not got over: it has not come to the end of its work since.
    #[must_use]
    pub fn fault(&self) -> Option<&WorkerFault> {
        let over = |fault: &&WorkerFault| self.last_end_ms.is_some_and(|end| end > fault.time_ms);
        self.last_fault.as_ref().filter(|fault| !over(fault))
    }
}

impl fmt::Display for WorkerStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let activity = match self.activity {
            Activity::Working => "working",
            Activity::Resting => "resting",
        };
        let time = Timestamp::from_millis;
        write!(f, "{}: {activity} since {}", self.name, time(self.since_ms))?;
        if !self.progress.is_empty() {
            write!(f, ", {}", self.progress)?;
        }
        write!(f, ", pace {}", self.pace)?;
        if let Some(end) = self.last_end_ms {
            write!(f, ", last finished {}", time(end))?;
        }
        if let Some(fault) = &self.last_fault {
            write!(f, ", last fault {}: {}", time(fault.time_ms), fault.text)?;
        }
        Ok(())
    }
}

/// The statuses of a pillar's workers. Cloning gives another handle to them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Board(Arc<Mutex<BTreeMap<&'static str, WorkerStatus>>>);

impl Board {
    /// All of them, by name.
    pub(crate) fn statuses(&self) -> Vec<WorkerStatus> {
        self.lock().values().cloned().collect()
    }

    /// A place for a worker's status.
    pub(super) fn add(&self, name: &'static str, pace: Pace, now_ms: i64) -> Slot {
        let status = WorkerStatus {
            name,
            activity: Activity::Resting,
            since_ms: now_ms,
            progress: String::new(),
            pace,
            last_end_ms: None,
            last_fault: None,
        };
        self.lock().insert(name, status);
        let board = self.clone();
        Slot { board, name }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<&'static str, WorkerStatus>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One worker's place on the board.
#[derive(Debug)]
pub(super) struct Slot {
    board: Board,
    name: &'static str,
}

impl Slot {
    pub(super) fn change(&self, change: impl FnOnce(&mut WorkerStatus)) {
        if let Some(status) = self.board.lock().get_mut(self.name) {
            change(status);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use super::*;

    #[test]
    fn one_line_for_people() {
        let board = Board::default();
        let slot = board.add("recheck", Pace(NonZeroU64::new(1_000)), 0);
        let shown = || board.statuses()[0].to_string();
        let start = "1970-01-01T00:00:00.000Z";
        assert_eq!(
            shown(),
            format!("recheck: resting since {start}, pace 1000 B/s")
        );
        slot.change(|status| {
            status.activity = Activity::Working;
            status.progress = "3 files".to_owned();
            status.pace = Pace::UNLIMITED;
            status.last_end_ms = Some(1);
            status.last_fault = Some(WorkerFault {
                time_ms: 1,
                text: "no disk".to_owned(),
            });
        });
        assert_eq!(
            shown(),
            format!(
                "recheck: working since {start}, 3 files, pace unlimited, last finished 1970-01-01T00:00:00.001Z, \
                 last fault 1970-01-01T00:00:00.001Z: no disk"
            )
        );
        assert!(board.statuses()[0].fault().is_some());
        slot.change(|status| status.last_end_ms = Some(2));
        assert_eq!(board.statuses()[0].fault(), None);
    }
}
