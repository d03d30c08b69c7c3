//! Reading files whose checksum was computed long ago, oldest first.
//!
//! Where it goes on after a restart follows from the index, in which the oldest checksum comes first.

use std::{sync::Arc, time::Duration};

use pillarbox_messages::CollectionId;
use tracing::info;

use super::{Interrupt, Shift, Worker, inspection::Inspection, reading::Batch};
use crate::{
    context::Context,
    index::{ListQuery, Observation},
    untold,
};

/// Computes old checksums again.
pub(crate) struct Recheck {
    context: Arc<Context>,
    inspection: Inspection,
}

impl Worker for Recheck {
    const NAME: &'static str = "recheck";

    fn turn(&mut self, shift: &mut Shift) -> Result<(), Interrupt> {
        untold::tell_all(&self.context, shift)?;
        let settings = &self.context.settings;
        let Some(age) = due_age(settings.max_age_for_checksums, settings.recheck.interval) else {
            return Ok(());
        };
        let age = i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
        let latest = shift.now_ms().saturating_sub(age);
        self.inspection.begin();
        for collection in self.context.component.collections().to_vec() {
            self.collection(shift, &collection, latest)?;
        }
        if self.inspection.done.files > 0 {
            let pillar = self.context.component.id().as_str();
            info!(pillar, done = %self.inspection.done, "old checksums were computed again");
        }
        self.inspection.conclude(shift);
        Ok(())
    }
}

/// The age from which on a checksum is computed again: it must not grow too old until the next turn. None does if there
/// is no limit.
fn due_age(most: Duration, interval: Duration) -> Option<Duration> {
    (!most.is_zero()).then(|| most - interval.min(most / 2))
}

impl Recheck {
    pub(crate) fn new(context: Arc<Context>) -> Self {
        Self {
            inspection: Inspection::new(Arc::clone(&context)),
            context,
        }
    }

    /// All checksums of a collection that were computed at `latest` or before.
    fn collection(
        &mut self,
        shift: &mut Shift,
        collection: &CollectionId,
        latest: i64,
    ) -> Result<(), Interrupt> {
        let mut query = ListQuery {
            max_ms: Some(latest),
            ..ListQuery::all(collection.clone())
        };
        loop {
            let page = shift.wait(self.context.index.list_by_calculated(query.clone()))?;
            let mut seen = Batch::new();
            for row in page.rows {
                shift.go_on()?;
                seen.extend(self.inspection.look(shift, collection, row)?);
                if seen.is_due() {
                    self.write_down(shift, collection, &mut seen)?;
                }
            }
            self.write_down(shift, collection, &mut seen)?;
            query.after = page.next;
            if query.after.is_none() {
                return Ok(());
            }
        }
    }

    fn write_down(
        &mut self,
        shift: &Shift,
        collection: &CollectionId,
        seen: &mut Batch<Observation>,
    ) -> Result<(), Interrupt> {
        self.inspection.write_down(shift, collection, seen.take())?;
        shift.progress(format!("{collection}: {}", self.inspection.done));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_checksum_grows_too_old_between_two_turns() {
        let hours = |hours: u64| Duration::from_secs(hours * 3_600);
        assert_eq!(due_age(hours(24), hours(1)), Some(hours(23)));
        assert_eq!(due_age(hours(2), hours(24)), Some(hours(1)));
        assert_eq!(due_age(Duration::ZERO, hours(1)), None);
    }
}
