//! Looking at files that the index knows.

use std::{fmt, sync::Arc};

use pillarbox_messages::{ArchiveFileId, CollectionId, FileId, wording::count};
use tracing::warn;

use super::{
    Interrupt, Shift,
    reading::{Reading, Unread},
};
use crate::{
    archive::{ArchiveError, Identity, StoredFile},
    context::Context,
    index::{FileRow, Observation},
    noticing,
};

/// What came of a turn so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    pub(super) files: u64,
    bytes: u64,
    inconsistent: u64,
    pub(super) missing: u64,
    unreadable: u64,
    /// The first that could not be read, or the first directory or folder, and why.
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
            "{} with {} read, {inconsistent} not as expected, {missing} missing, {unreadable} unreadable",
            count(*files, "file"),
            count(*bytes, "byte")
        )
    }
}

/// What looks at files.
pub(super) struct Inspection {
    context: Arc<Context>,
    reading: Reading,
    pub(super) done: Tally,
}

impl Inspection {
    pub(super) fn new(context: Arc<Context>) -> Self {
        Self {
            reading: Reading::new(context.default_spec.clone()),
            context,
            done: Tally::default(),
        }
    }

    /// A turn begins.
    pub(super) fn begin(&mut self) {
        self.done = Tally::default();
    }

    /// A turn has come to its end: tells of what could not be read. How much that was is in the status: the same
    /// trouble is told in the same words.
    pub(super) fn conclude(&mut self, shift: &mut Shift) {
        if let Some(first) = self.done.first_unreadable.take() {
            shift.complain(format!("not everything can be read, such as {first}"));
        }
    }

    /// Reads a file; nothing, if there is nothing to write down.
    pub(super) fn look(
        &mut self,
        shift: &mut Shift,
        collection: &CollectionId,
        row: FileRow,
    ) -> Result<Option<Observation>, Interrupt> {
        let Some((file, stored)) = self.open(shift, collection, &row)? else {
            return Ok(None);
        };
        let checksum = match self.reading.checksum(shift, &stored) {
            Ok(read) => read,
            Err(Unread::Interrupt(interrupt)) => return Err(interrupt),
            Err(Unread::Disk(error)) => {
                self.unreadable(&row.file_id, &error);
                return Ok(None);
            }
        };
        self.done.files += 1;
        self.done.bytes = self.done.bytes.saturating_add(stored.size);
        if checksum != row.observed
            && checksum != row.expected
            && !self.is_the_file(shift, collection, &row, &file, stored.identity)?
        {
            return Ok(None);
        }
        let pillar = self.context.component.id();
        Ok(Some(noticing::observation(pillar, row, checksum)))
    }

    /// Opens a file; one that is gone is reported. What a disk says of one file is no reason to leave the others.
    pub(super) fn open(
        &mut self,
        shift: &Shift,
        collection: &CollectionId,
        row: &FileRow,
    ) -> Result<Option<(ArchiveFileId, StoredFile)>, Interrupt> {
        let file = match ArchiveFileId::new(&row.file_id, None) {
            Ok(file) => file,
            Err(error) => {
                self.unreadable(&row.file_id, &error);
                return Ok(None);
            }
        };
        match self.context.archive.open_file_now(collection, &file) {
            Ok(stored) => return Ok(Some((file, stored))),
            Err(ArchiveError::NotFound(_)) => {
                let lost = shift.wait_for_others(self.context.lose(collection, row));
                match lost.ok_or(Interrupt::Stopped)? {
                    Ok(lost) => self.done.missing += u64::from(lost),
                    Err(refusal) => self.unreadable(&row.file_id, &refusal.alarm_text()),
                }
            }
            Err(error) => self.unreadable(&row.file_id, &error),
        }
        Ok(None)
    }

    /// Notes that the disk refuses a file.
    pub(super) fn unreadable(&mut self, file: &FileId, error: &dyn fmt::Display) {
        self.done.unreadable += 1;
        if self.done.unreadable <= TOLD {
            warn!(file = file.as_str(), %error, "a file can't be read");
        }
        let first = &mut self.done.first_unreadable;
        first.get_or_insert_with(|| format!("{file}: {error}"));
    }

    /// Notes that a directory is not there, or a folder can't be read.
    pub(super) fn closed(&mut self, error: &dyn fmt::Display) {
        warn!(%error, "what is in a directory can't be read");
        let first = &mut self.done.first_unreadable;
        first.get_or_insert_with(|| error.to_string());
    }

    /// Whether what was read is what the row speaks of.
    fn is_the_file(
        &self,
        shift: &Shift,
        collection: &CollectionId,
        row: &FileRow,
        file: &ArchiveFileId,
        read: Identity,
    ) -> Result<bool, Interrupt> {
        let context = &self.context;
        let Some(claim) = context.archive.claim_briefly(collection, file)? else {
            return Ok(false);
        };
        let still = noticing::still_there(context, &claim, collection, row, read);
        Ok(shift.wait(still)?.is_some_and(|now| now == *row))
    }

    /// Writes down what was read, and tells what is new.
    pub(super) fn write_down(
        &mut self,
        shift: &Shift,
        collection: &CollectionId,
        seen: Vec<Observation>,
    ) -> Result<(), Interrupt> {
        if seen.is_empty() {
            return Ok(());
        }
        let changes: Vec<Option<FileRow>> = seen.iter().map(changed).collect();
        let recorded = shift.wait(self.context.index.observe(collection, seen))?;
        let changes = changes.into_iter().zip(recorded);
        for row in changes.filter_map(|(row, recorded)| row.filter(|_| recorded)) {
            self.tell(shift, collection, &row);
        }
        Ok(())
    }

    /// Tells of a file that has changed, or has changed back.
    pub(super) fn tell(&mut self, shift: &Shift, collection: &CollectionId, row: &FileRow) {
        self.done.inconsistent += u64::from(row.observed != row.expected);
        shift.wait_for_others(noticing::tell(&self.context, collection, row));
    }
}

/// Unreadable files in a turn of which each is told.
const TOLD: u64 = 100;

/// The row as it will be, if there is something to tell.
fn changed(seen: &Observation) -> Option<FileRow> {
    seen.audit.as_ref().map(|_| FileRow {
        observed: seen.checksum.clone(),
        ..seen.row.clone()
    })
}
