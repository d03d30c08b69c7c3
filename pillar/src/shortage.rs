//! What was refused for lack of space, until there is room for it again: a peer is told at once, people when they ask.

use std::{
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
};

use pillarbox_messages::wording::count;

/// What there was no room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lacking {
    /// A file of so many bytes, in the archive, as far as could be told before it was written.
    Room(u64),
    /// A file, in the archive, while it was written.
    Disk,
    /// A result document, in the data directory.
    Results,
}

impl fmt::Display for Lacking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Room(bytes) => write!(
                f,
                "there was no room for a file of {}",
                count(*bytes, "byte")
            ),
            Self::Disk => f.write_str("a file could not be written for lack of space"),
            Self::Results => {
                f.write_str("a result document could not be written for lack of space")
            }
        }
    }
}

/// A refusal, and when it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shortage {
    pub(crate) lacking: Lacking,
    pub(crate) time_ms: i64,
}

/// The last refusals of a pillar, at most one of each kind.
#[derive(Debug, Default)]
pub(crate) struct Shortages(Mutex<Vec<Shortage>>);

impl Shortages {
    /// Something was refused.
    pub(crate) fn note(&self, lacking: Lacking, time_ms: i64) {
        let mut shortages = self.lock();
        let kind = std::mem::discriminant(&lacking);
        shortages.retain(|it| std::mem::discriminant(&it.lacking) != kind);
        shortages.push(Shortage { lacking, time_ms });
    }

    /// Something of the kind has been written since.
    pub(crate) fn is_over(&self, lacking: Lacking) {
        self.lock().retain(|it| it.lacking != lacking);
    }

    /// What there is no room for even now, when a file of `usable` bytes fits into the archive, and one of
    /// `capacity` would if nothing else were there: no pillar lacks room for more than that. After a day it is
    /// forgotten: the file may have been larger than any that this pillar is meant for.
    pub(crate) fn now(&self, usable: u64, capacity: u64, now_ms: i64) -> Vec<Shortage> {
        let mut shortages = self.lock();
        shortages.retain(|it| {
            let counts = match it.lacking {
                Lacking::Room(bytes) => (usable == 0 || bytes > usable) && bytes <= capacity,
                Lacking::Disk | Lacking::Results => true,
            };
            counts && (0..REMEMBERED_MS).contains(&now_ms.saturating_sub(it.time_ms))
        });
        shortages.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Shortage>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const REMEMBERED_MS: i64 = 86_400_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn lacking(shortages: &Shortages, usable: u64, now_ms: i64) -> Vec<Lacking> {
        let now = shortages.now(usable, 1_000, now_ms);
        now.into_iter().map(|it| it.lacking).collect()
    }

    #[test]
    fn a_refusal_counts_until_the_file_would_fit() {
        let shortages = Shortages::default();
        shortages.note(Lacking::Room(50), 1);
        shortages.note(Lacking::Room(100), 2);
        assert_eq!(lacking(&shortages, 99, 3), [Lacking::Room(100)]);
        assert_eq!(lacking(&shortages, 100, 4), []);
        assert_eq!(lacking(&shortages, 0, 5), []);
        shortages.note(Lacking::Room(0), 6);
        assert_eq!(lacking(&shortages, 0, 7), [Lacking::Room(0)]);
    }

    #[test]
    fn a_file_that_no_disk_here_could_hold_does_not_count() {
        let shortages = Shortages::default();
        shortages.note(Lacking::Room(1_001), 1);
        assert_eq!(lacking(&shortages, 500, 2), []);
        shortages.note(Lacking::Room(1_000), 3);
        assert_eq!(lacking(&shortages, 500, 4), [Lacking::Room(1_000)]);
    }

    #[test]
    fn a_disk_counts_as_full_until_something_was_written_to_it() {
        let shortages = Shortages::default();
        shortages.note(Lacking::Disk, 1);
        shortages.note(Lacking::Results, 1);
        let both = [Lacking::Disk, Lacking::Results];
        assert_eq!(lacking(&shortages, u64::MAX, 2), both);
        shortages.is_over(Lacking::Disk);
        assert_eq!(lacking(&shortages, u64::MAX, 3), [Lacking::Results]);
    }

    #[test]
    fn it_is_forgotten_after_a_day() {
        let shortages = Shortages::default();
        shortages.note(Lacking::Room(100), 1_000);
        assert_eq!(lacking(&shortages, 0, REMEMBERED_MS).len(), 1);
        assert_eq!(lacking(&shortages, 0, 1_000 + REMEMBERED_MS), []);
    }
}
