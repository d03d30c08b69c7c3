//! Removing files that were deleted or replaced, once they have been kept in `retainDir` as long as the settings say.

use std::{fmt, sync::Arc, time::Duration};

use tracing::info;

use super::{Interrupt, Shift, Worker};
use crate::{
    archive::{RetainDir, Seen},
    context::Context,
};

/// Removes what has been kept long enough.
pub(crate) struct Purge {
    context: Arc<Context>,
    retain_for: Duration,
    done: Tally,
}

/// What came of a turn so far.
#[derive(Debug, Default)]
struct Tally {
    removed: u64,
    bytes: u64,
    kept: u64,
    strays: u64,
    stuck: u64,
    /// The first that could not be removed or looked at, and why.
    first_stuck: Option<String>,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            removed,
            bytes,
            kept,
            strays,
            stuck,
            ..
        } = self;
        write!(
            f,
            "{removed} files with {bytes} bytes removed, {kept} kept, {stuck} not removable, {strays} strays"
        )
    }
}

impl Worker for Purge {
    const NAME: &'static str = "purge";

    fn turn(&mut self, shift: &mut Shift) -> Result<(), Interrupt> {
        self.done = Tally::default();
        let age = i64::try_from(self.retain_for.as_millis()).unwrap_or(i64::MAX);
        let before_ms = shift.now_ms().saturating_sub(age);
        for collection in self.context.component.collections().to_vec() {
            for dir in self.context.archive.retain_dirs(&collection)? {
                match dir {
                    Ok(dir) => self.purge(shift, &dir, before_ms)?,
                    Err(error) => self.done.note(&error),
                }
            }
        }
        shift.progress(self.done.to_string());
        if self.done.removed > 0 {
            let pillar = self.context.component.id().as_str();
            info!(pillar, done = %self.done, "what was deleted or replaced has been kept long enough");
        }
        if let Some(first) = self.done.first_stuck.take() {
            // How many is in the status: the same trouble is told in the same words.
            shift.complain(format!("not everything can be removed, such as {first}"));
        }
        Ok(())
    }
}

impl Purge {
    pub(crate) fn new(context: Arc<Context>, retain_for: Duration) -> Self {
        Self {
            context,
            retain_for,
            done: Tally::default(),
        }
    }

    fn purge(
        &mut self,
        shift: &mut Shift,
        dir: &RetainDir,
        before_ms: i64,
    ) -> Result<(), Interrupt> {
        dir.purge(before_ms, |seen| {
            let cost = LOOK_COST.saturating_add(self.done.count(seen));
            shift.spend(cost)
        })
    }
}

impl Tally {
    /// Gives the bytes that were removed.
    fn count(&mut self, seen: Seen<'_>) -> u64 {
        match seen {
            Seen::Kept => self.kept += 1,
            Seen::Stray => self.strays += 1,
            Seen::Removed(path, bytes) => {
                info!(path = %path.display(), bytes, "a deleted or replaced file is removed for good");
                self.removed += 1;
                self.bytes = self.bytes.saturating_add(bytes);
                return bytes;
            }
            Seen::Stuck(path, error) => {
                self.note(&format_args!("{}: {error}", path.display()));
            }
        }
        0
    }

    /// What is not done, and why.
    fn note(&mut self, error: &dyn fmt::Display) {
        self.stuck += 1;
        self.first_stuck.get_or_insert_with(|| error.to_string());
    }
}

/// What a look at an inode counts for, in bytes.
const LOOK_COST: u64 = 512;
