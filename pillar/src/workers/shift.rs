//! What a worker has in hand during its turns.

use std::{
    fmt,
    future::Future,
    time::{Duration, Instant},
};

use pillarbox_messages::clock::SharedClock;
use pillarbox_settings::Pace;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use crate::{archive::ArchiveError, index::IndexError, refusal::Refusal};

use super::{
    bucket::Bucket,
    status::{Activity, Slot, WorkerFault},
};

/// Why a turn ended early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Interrupt {
    /// The pillar stops.
    Stopped,
    /// Something failed; it is tried again later.
    Fault(String),
}

impl Interrupt {
    pub(crate) fn fault(cause: impl fmt::Display) -> Self {
        Self::Fault(cause.to_string())
    }
}

impl From<IndexError> for Interrupt {
    fn from(error: IndexError) -> Self {
        Self::fault(error)
    }
}

impl From<ArchiveError> for Interrupt {
    fn from(error: ArchiveError) -> Self {
        Self::fault(error)
    }
}

impl From<Refusal> for Interrupt {
    fn from(refusal: Refusal) -> Self {
        Self::Fault(refusal.alarm_text())
    }
}

/// A worker's pace, its status, and the way to what is asynchronous.
#[derive(Debug)]
pub(crate) struct Shift {
    runtime: Handle,
    stop: CancellationToken,
    pace: Pace,
    bucket: Bucket,
    status: Slot,
    clock: SharedClock,
    /// What the turn could not do, although it came to its end.
    complaint: Option<String>,
}

impl Shift {
    pub(super) fn new(
        runtime: Handle,
        stop: CancellationToken,
        pace: Pace,
        status: Slot,
        clock: SharedClock,
    ) -> Self {
        Self {
            runtime,
            stop,
            pace,
            bucket: Bucket::new(pace),
            status,
            clock,
            complaint: None,
        }
    }

    /// The time now.
    pub(crate) fn now_ms(&self) -> i64 {
        self.clock.now_ms()
    }

    /// Waits for something that is sure to come to its end, such as a commit.
    pub(crate) fn wait<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }

    /// Waits for something that depends on others, such as an alarm: not for long once the pillar stops.
    pub(crate) fn wait_for_others<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        self.runtime.block_on(async {
            tokio::select! {
                biased;
                done = work => Some(done),
                () = async {
                    self.stop.cancelled().await;
                    tokio::time::sleep(AT_THE_STOP).await;
                } => None,
            }
        })
    }

    /// Ends the turn if the pillar stops.
    pub(crate) fn go_on(&self) -> Result<(), Interrupt> {
        if self.stop.is_cancelled() {
            Err(Interrupt::Stopped)
        } else {
            Ok(())
        }
    }

    /// Waits so long, unless the pillar stops.
    pub(crate) fn rest(&self, time: Duration) -> Result<(), Interrupt> {
        let stopped = async {
            tokio::select! {
                () = self.stop.cancelled() => {}
                () = tokio::time::sleep(time) => {}
            }
        };
        self.runtime.block_on(stopped);
        self.go_on()
    }

    /// Bytes have been read: waits as long as the pace demands.
    pub(crate) fn spend(&mut self, bytes: u64) -> Result<(), Interrupt> {
        let wait = self.bucket.take(bytes, Instant::now());
        if wait < SHORTEST_REST {
            return self.go_on();
        }
        self.rest(wait)
    }

    /// Bytes that may be read at once, so that a slow pace is an even one too.
    pub(crate) fn portion(&self) -> usize {
        let tenth = self.pace.0.map_or(u64::MAX, |bytes| bytes.get() / 10);
        usize::try_from(tenth)
            .unwrap_or(usize::MAX)
            .clamp(SMALLEST_PORTION, LARGEST_PORTION)
    }

    /// Tells people, at the turn's end, what it could not do.
    pub(crate) fn complain(&mut self, text: String) {
        self.complaint = Some(text);
    }

    /// Tells people how far the worker is.
    pub(crate) fn progress(&self, text: String) {
        self.status.change(|status| status.progress = text);
    }

    pub(super) fn begin_turn(&self) {
        let now_ms = self.now_ms();
        self.status.change(|status| {
            status.activity = Activity::Working;
            status.since_ms = now_ms;
        });
    }

    pub(super) fn complaint(&mut self) -> Option<String> {
        self.complaint.take()
    }

    /// The turn came to its end, if `ended`; there may be something to complain about nevertheless.
    pub(super) fn end_turn(&self, ended: bool, fault: Option<String>) {
        let time_ms = self.now_ms();
        self.status.change(|status| {
            status.activity = Activity::Resting;
            status.since_ms = time_ms;
            if ended {
                status.last_end_ms = Some(time_ms);
            }
            if let Some(text) = fault {
                status.last_fault = Some(WorkerFault { time_ms, text });
            }
        });
    }
}

/// How long others are waited for when the pillar stops.
const AT_THE_STOP: Duration = Duration::from_secs(1);
/// Shorter waits are left to come together: timers are no finer than this.
const SHORTEST_REST: Duration = Duration::from_millis(5);
const SMALLEST_PORTION: usize = 4 << 10;
/// A multiple of what the system reads ahead.
const LARGEST_PORTION: usize = 512 << 10;
