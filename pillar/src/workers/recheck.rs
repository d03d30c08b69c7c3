//! Reading files whose checksum was computed long ago, oldest first: what is read becomes the observed checksum,
//! which peers are told; what was expected stays what it is. Where they begin to differ, people are told once.
//!
//! Where it goes on after a restart follows from the index, in which the oldest checksum comes first.

use std::{fmt, sync::Arc};

use pillarbox_messages::{ArchiveFileId, CollectionId, FileAction};
use tracing::{error, info};

use super::{
    Interrupt, Shift, Worker,
    reading::{Batch, Reading, Unread},
};
use crate::{
    archive::{ArchiveError, Identity},
    context::Context,
    index::{AuditEntry, FileRow, ListQuery, Observation},
};

/// Computes old checksums again.
pub(crate) struct Recheck {
    context: Arc<Context>,
    reading: Reading,
    done: Tally,
}

/// What came of a turn so far.
#[derive(Clone, Debug, Default)]
struct Tally {
    files: u64,
    bytes: u64,
    inconsistent: u64,
    missing: u64,
    unreadable: u64,
    /// The first that could not be read, and why.
    first_unreadable: Option<String>,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            files,
            bytes,
            inconsistent,
            missing,
            unreadable,
            ..
        } = self;
        write!(
            f,
            "{files} files with {bytes} bytes read, {inconsistent} not as expected, {missing} missing, \
             {unreadable} unreadable"
        )
    }
}

impl Worker for Recheck {
    const NAME: &'static str = "recheck";

    fn turn(&mut self, shift: &mut Shift) -> Result<(), Interrupt> {
        let age = self.context.settings.max_age_for_checksums.as_millis();
        if age == 0 {
            return Ok(());
        }
        self.done = Tally::default();
        let age = i64::try_from(age).unwrap_or(i64::MAX);
        let latest = shift.now_ms().saturating_sub(age);
        for collection in self.context.component.collections().to_vec() {
            self.collection(shift, &collection, latest)?;
        }
        self.conclude()
    }
}

impl Recheck {
    pub(crate) fn new(context: Arc<Context>) -> Self {
        Self {
            reading: Reading::new(context.default_spec.clone()),
            context,
            done: Tally::default(),
        }
    }

    fn conclude(&self) -> Result<(), Interrupt> {
        if self.done.files > 0 {
            let pillar = self.context.component.id().as_str();
            info!(pillar, done = %self.done, "old checksums were computed again");
        }
        match &self.done.first_unreadable {
            None => Ok(()),
            Some(first) => Err(Interrupt::fault(first)),
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
                if let Some(observation) = self.look(shift, collection, row)? {
                    seen.push(observation);
                }
                if seen.is_due() {
                    self.write_down(shift, collection, seen.take())?;
                }
            }
            self.write_down(shift, collection, seen.take())?;
            query.after = page.next;
            if query.after.is_none() {
                return Ok(());
            }
        }
    }

    /// Reads a file; nothing, if there is nothing to write down.
    fn look(
        &mut self,
        shift: &mut Shift,
        collection: &CollectionId,
        row: FileRow,
    ) -> Result<Option<Observation>, Interrupt> {
        let file = ArchiveFileId::new(&row.file_id, None).map_err(Interrupt::fault)?;
        let stored = match self.context.archive.open_file_now(collection, &file) {
            Ok(stored) => stored,
            Err(ArchiveError::NotFound(_)) => {
                let lost = shift.wait_for_others(self.context.lose(collection, &row));
                let lost = lost.ok_or(Interrupt::Stopped)??;
                self.done.missing += u64::from(lost);
                return Ok(None);
            }
            Err(error @ ArchiveError::Disk { .. }) => {
                self.unreadable(&row, &error);
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        };
        let read = Identity::of(&stored.file).map_err(Unread::from);
        let read = read.and_then(|identity| {
            let checksum = self.reading.checksum(shift, &stored.file, stored.size)?;
            Ok((identity, checksum))
        });
        let (identity, checksum) = match read {
            Ok(read) => read,
            Err(Unread::Interrupt(interrupt)) => return Err(interrupt),
            Err(Unread::Disk(error)) => {
                self.unreadable(&row, &error);
                return Ok(None);
            }
        };
        self.done.files += 1;
        self.done.bytes = self.done.bytes.saturating_add(stored.size);
        if checksum != row.observed
            && checksum != row.expected
            && !self.is_the_file(shift, collection, &row, &file, identity)?
        {
            return Ok(None);
        }
        let now = FileRow {
            observed: checksum.clone(),
            ..row.clone()
        };
        let audit = self.audit(&row, &now);
        Ok(Some(Observation {
            row,
            checksum,
            audit,
        }))
    }

    fn unreadable(&mut self, row: &FileRow, error: &dyn fmt::Display) {
        self.done.unreadable += 1;
        let text = format!("file {} can't be read: {error}", row.file_id);
        tracing::warn!(text);
        self.done.first_unreadable.get_or_insert(text);
    }

    /// Whether what was read is what the row speaks of. An operation that has changed the disk and is about to
    /// change the row has the file's claim.
    fn is_the_file(
        &self,
        shift: &Shift,
        collection: &CollectionId,
        row: &FileRow,
        file: &ArchiveFileId,
        read: Identity,
    ) -> Result<bool, Interrupt> {
        let Context { archive, index, .. } = &*self.context;
        let Some(_claim) = archive.claim_briefly(collection, file)? else {
            return Ok(false);
        };
        if shift
            .wait(index.settled(collection, &row.file_id))?
            .as_ref()
            != Some(row)
        {
            return Ok(false);
        }
        Ok(archive
            .open_file_now(collection, file)
            .is_ok_and(|stored| Identity::of(&stored.file).is_ok_and(|found| found == read)))
    }

    /// What is to be told when a row becomes another.
    fn audit(&self, before: &FileRow, now: &FileRow) -> Option<AuditEntry> {
        let pillar = self.context.component.id();
        if now.observed == before.observed {
            return None;
        }
        if now.observed != now.expected {
            return Some(now.inconsistency(pillar));
        }
        let text = "the file's checksum is the expected one again";
        let action = FileAction::ChecksumCalculated;
        Some(AuditEntry::of_pillar(&now.file_id, pillar, action, text))
    }

    fn write_down(
        &mut self,
        shift: &Shift,
        collection: &CollectionId,
        seen: Vec<Observation>,
    ) -> Result<(), Interrupt> {
        if !seen.is_empty() {
            let changes: Vec<Option<FileRow>> = seen.iter().map(changed).collect();
            let recorded = shift.wait(self.context.index.observe(collection, seen))?;
            let changes = changes.into_iter().zip(recorded);
            for row in changes.filter_map(|(row, recorded)| row.filter(|_| recorded)) {
                self.tell(shift, collection, &row);
            }
        }
        shift.progress(format!("{collection}: {}", self.done));
        Ok(())
    }

    fn tell(&mut self, shift: &Shift, collection: &CollectionId, row: &FileRow) {
        let (collection_name, file) = (collection.as_str(), row.file_id.as_str());
        if row.observed == row.expected {
            info!(
                collection = collection_name,
                file, "the file's checksum is the expected one again"
            );
            return;
        }
        self.done.inconsistent += 1;
        let difference = row.difference();
        error!(
            collection = collection_name,
            file, difference, "the file has changed"
        );
        shift.wait_for_others(self.context.raise_inconsistency(collection, row));
    }
}

/// The row as it will be, if there is something to tell.
fn changed(seen: &Observation) -> Option<FileRow> {
    seen.audit.as_ref().map(|_| FileRow {
        observed: seen.checksum.clone(),
        ..seen.row.clone()
    })
}
