//! The record itself: states and times in, changes out.

use std::{collections::BTreeMap, time::Duration};

use pillarbox_bus::{BusError, BusState};
use pillarbox_messages::Destination;

/// What a connection has been through since its component started. Times are milliseconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkRecord {
    state: BusState,
    away_since_ms: Option<i64>,
    outages: u64,
    last_outage: Option<Outage>,
    deaf: BTreeMap<Destination, Deaf>,
    owes: Option<Duration>,
}

/// A time without the bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// When it went.
    pub from_ms: i64,
    /// When it was back.
    pub until_ms: i64,
}

impl Outage {
    /// How long it was; zero if the clock was set back.
    #[must_use]
    pub fn duration(&self) -> Duration {
        let millis = self.until_ms.saturating_sub(self.from_ms);
        Duration::from_millis(u64::try_from(millis).unwrap_or_default())
    }

    /// The same in seconds, with three decimals at most however it is printed.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.duration().as_millis() as f64 / 1000.0
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Deaf {
    since_ms: i64,
    because: String,
}

/// Why the state is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Looked {
    /// Somebody wants to know.
    Now,
    /// It has changed, maybe several times.
    AfterChange,
}

/// What the log tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Lost,
    Back(Outage),
}

impl LinkRecord {
    /// Begins with this state.
    #[must_use]
    pub fn new(state: &BusState, now_ms: i64) -> Self {
        Self {
            state: state.clone(),
            away_since_ms: (*state != BusState::Connected).then_some(now_ms),
            outages: 0,
            last_outage: None,
            deaf: BTreeMap::new(),
            owes: None,
        }
    }

    /// The connection's state when it was last looked at.
    #[must_use]
    pub const fn state(&self) -> &BusState {
        &self.state
    }

    /// Since when the bus has been away, if it is.
    #[must_use]
    pub const fn away_since_ms(&self) -> Option<i64> {
        self.away_since_ms
    }

    /// How often the bus was away and came back.
    #[must_use]
    pub const fn outages(&self) -> u64 {
        self.outages
    }

    /// The last time that the bus was away and came back.
    #[must_use]
    pub const fn last_outage(&self) -> Option<Outage> {
        self.last_outage
    }

    /// The destinations at which nothing is heard, though the bus is there: since when, and why.
    pub fn deaf(&self) -> impl Iterator<Item = (&Destination, i64, &str)> {
        let deaf = self.deaf.iter();
        deaf.map(|(destination, it)| (destination, it.since_ms, it.because.as_str()))
    }

    /// How long the bus, which is there, has confirmed nothing of what was sent to it, if that is too long.
    #[must_use]
    pub const fn unconfirmed_for(&self) -> Option<Duration> {
        self.owes
    }

    /// Takes note of how long the bus has owed an answer that is overdue.
    pub const fn owes(&mut self, since: Option<Duration>) {
        self.owes = since;
    }

    /// Takes note of the state, as somebody sees it.
    pub fn observe(&mut self, state: &BusState, now_ms: i64) {
        self.look(state, Looked::Now, now_ms);
    }

    pub(super) fn look(&mut self, state: &BusState, looked: Looked, now_ms: i64) -> Option<Change> {
        self.state = state.clone();
        match (self.away_since_ms, *state == BusState::Connected) {
            (None, false) => {
                self.away_since_ms = Some(now_ms);
                Some(Change::Lost)
            }
            (Some(from_ms), true) => Some(self.back(from_ms, now_ms)),
            // It was away and back before anybody could look.
            (None, true) if looked == Looked::AfterChange => Some(self.back(now_ms, now_ms)),
            (None, true) | (Some(_), false) => None,
        }
    }

    fn back(&mut self, from_ms: i64, until_ms: i64) -> Change {
        let outage = Outage { from_ms, until_ms };
        self.away_since_ms = None;
        self.outages += 1;
        self.last_outage = Some(outage);
        Change::Back(outage)
    }

    /// Takes note that the bus has ended a subscription and does not give another.
    pub fn is_deaf(&mut self, destination: &Destination, because: &BusError, now_ms: i64) {
        let deaf = self.deaf.entry(destination.clone()).or_insert(Deaf {
            since_ms: now_ms,
            because: String::new(),
        });
        deaf.because = because.to_string();
    }

    pub(super) fn hears_again(&mut self, destination: &Destination) {
        self.deaf.remove(destination);
    }
}
