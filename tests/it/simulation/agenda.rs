//! What is to happen, and when.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicI64, Ordering},
};

use chrono::{DateTime, Utc};
use pillarbox_client::conversation::Input;
use pillarbox_messages::{Message, clock::Clock};

/// Something that is to happen.
#[derive(Debug)]
pub(super) enum Happening {
    /// The client is told something.
    Tell(Input),
    /// A request arrives at a pillar.
    Arrives(usize, Box<Message>),
    /// Somebody else puts a file at a pillar.
    Rival(usize),
    /// A pillar that is down comes back.
    Returns(usize),
}

/// Everything that is still to happen, in the order of its time.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    entries: BTreeMap<(i64, u64), Happening>,
    entered: u64,
}

impl Agenda {
    pub(super) fn enter(&mut self, at_ms: i64, happening: Happening) {
        self.entered += 1;
        self.entries.insert((at_ms, self.entered), happening);
    }

    /// When the next thing happens.
    pub(super) fn next_ms(&self) -> Option<i64> {
        self.entries.keys().next().map(|(at_ms, _)| *at_ms)
    }

    pub(super) fn pop(&mut self) -> Option<Happening> {
        self.entries.pop_first().map(|(_, happening)| happening)
    }
}

/// The simulation's own time, which everybody reads.
#[derive(Debug)]
pub(super) struct Time(AtomicI64);

impl Time {
    pub(super) const fn new(now_ms: i64) -> Self {
        Self(AtomicI64::new(now_ms))
    }

    pub(super) fn is_now(&self, now_ms: i64) {
        self.0.fetch_max(now_ms, Ordering::Relaxed);
    }
}

impl Clock for Time {
    fn now(&self) -> DateTime<Utc> {
        DateTime::from_timestamp_millis(self.0.load(Ordering::Relaxed)).unwrap()
    }
}
