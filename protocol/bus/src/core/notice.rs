//! What people are told of while the queue manager runs.

use super::{backout::PoisonMoved, overflow::SubscriptionTrouble};

/// Something that a person should look at.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// A message was moved aside.
    Moved(PoisonMoved),
    /// A durable subscription is full, or was given up.
    Subscription(SubscriptionTrouble),
}

/// For so long nothing more is told of the same, in milliseconds.
const QUIET: i64 = 3_600_000;

/// Something that happens again and again, of which people are told once an hour at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hourly {
    /// When it was last told.
    told_at: Option<i64>,
    /// How often it has happened since then.
    untold: u64,
}

impl Hourly {
    /// It has happened, and is not told.
    pub(crate) const fn note(&mut self) {
        self.untold = self.untold.saturating_add(1);
    }

    /// How often it has happened since it was last told, if it is time to tell it again: then it is told now.
    pub(crate) fn due(&mut self, now: i64) -> Option<u64> {
        let is_quiet = self
            .told_at
            .is_some_and(|at| now < at.saturating_add(QUIET));
        (!is_quiet).then(|| {
            self.told_at = Some(now);
            std::mem::take(&mut self.untold)
        })
    }
}

impl From<PoisonMoved> for Notice {
    fn from(moved: PoisonMoved) -> Self {
        Self::Moved(moved)
    }
}

impl From<SubscriptionTrouble> for Notice {
    fn from(trouble: SubscriptionTrouble) -> Self {
        Self::Subscription(trouble)
    }
}
