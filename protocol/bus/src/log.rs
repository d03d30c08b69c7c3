//! The segment log: units in the order they happened, on a disk that may fail at any time.
//!
//! Owns the files of a queue space. One thread writes. Refuses to go on after a failed write or sync (what the
//! kernel still holds is anybody's guess then) and to open a log that is damaged where a promise had been given.
//!
//! Invariants
//! * A record is valid as a whole or not there; a valid one follows a valid one.
//! * A segment gets its first record after the one before it is on the disk as a whole.
//! * A segment repeats at its start what is defined, so the oldest can go when nothing in it lives any more. Only
//!   the oldest goes: so an acknowledgement never goes before what it acknowledges.
//! * The next segment has its room on the disk before it is needed.

pub(crate) mod codec;
#[cfg(test)]
pub(crate) mod faulty;
mod index;
mod record;
mod recovery;
pub(crate) mod storage;
#[cfg(test)]
mod tests;

use std::{io, path::PathBuf};

use thiserror::Error;

use self::{
    index::Index,
    record::{FORMAT, SEGMENT_HEADER, SegmentHeader, append_record},
    storage::{LogFile, Storage},
};
use crate::{
    core::{
        message::MessageId,
        unit::{Entry, QueueId, Unit},
    },
    error::BusError,
};

/// The next segment's name until it is needed.
const SPARE: &str = "spare";

/// How large the buffer for records stays, in bytes: a large message comes once in a while only.
const KEPT_BUFFER: usize = 1 << 20;

/// The log can't do it.
#[derive(Debug, Error)]
pub(crate) enum LogError {
    #[error("{what} in {directory}: {source}")]
    Io {
        what: &'static str,
        directory: PathBuf,
        source: io::Error,
    },
    #[error("{file} is damaged at offset {offset}: {reason}")]
    Corrupt {
        file: PathBuf,
        offset: u64,
        reason: String,
    },
    #[error("{0} is in use by another process")]
    Locked(PathBuf),
    #[error(
        "the bus's log in {directory} is of format {format}; to go on with it takes a new segment of {bytes} bytes, for \
         which the disk has no room: make some, or start the version that wrote it"
    )]
    NoRoom {
        directory: PathBuf,
        bytes: u64,
        format: u32,
    },
    #[error("an earlier write failed")]
    Failed,
}

impl From<LogError> for BusError {
    fn from(error: LogError) -> Self {
        match error {
            LogError::Corrupt {
                file,
                offset,
                reason,
            } => Self::Corrupt {
                file,
                offset,
                reason,
            },
            LogError::Locked(directory) => Self::Locked {
                dir: directory.display().to_string(),
            },
            LogError::Io {
                what,
                directory,
                source,
            } => Self::io(format!("{what} in {}", directory.display()), &source),
            LogError::NoRoom { .. } => Self::NoSpace(error.to_string()),
            LogError::Failed => Self::SpaceFailed(error.to_string()),
        }
    }
}

/// Sizes of the log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogOptions {
    /// A segment's length, in bytes. A single record may be longer.
    pub(crate) segment_bytes: u64,
    /// So many segments are never too many.
    pub(crate) few_segments: usize,
}

impl Default for LogOptions {
    fn default() -> Self {
        Self {
            segment_bytes: 64 << 20,
            few_segments: 4,
        }
    }
}

/// What the log has done since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LogStats {
    /// Syncs of records.
    pub(crate) syncs: u64,
    /// Records written.
    pub(crate) records: u64,
    /// Bytes written.
    pub(crate) bytes: u64,
    /// Segments there are now, without the spare one.
    pub(crate) segments: usize,
}

/// The log.
#[derive(Debug)]
pub(crate) struct Log<S: Storage> {
    storage: S,
    options: LogOptions,
    file: S::File,
    segment: u64,
    /// Where the next write goes.
    offset: u64,
    /// Everything before this is certainly on the disk.
    synced: u64,
    /// The latest record's number and CRC.
    number: u64,
    chain: u32,
    spare: Option<S::File>,
    /// Whether people were told that the disk has no room for one.
    without_room: bool,
    /// Records not written yet.
    buffer: Vec<u8>,
    index: Index,
    /// The latest segment that [`Log::stale`] was about.
    asked: u64,
    failed: bool,
    stats: LogStats,
}

impl<S: Storage> Log<S> {
    /// Opens the log and hands out everything in it, in order.
    pub(crate) fn open(
        storage: S,
        options: LogOptions,
        sink: &mut dyn FnMut(Entry),
    ) -> Result<Self, LogError> {
        let mut index = Index::default();
        let end = recovery::recover(&storage, options, &mut |segment, length, entry| {
            index.apply(segment, length, &entry);
            sink(entry);
        })?;
        let end = match end {
            Some(end) => end,
            None => recovery::first_segment(&storage, options)?,
        };
        index.add_segment(end.segment);
        let mut log = Self {
            storage,
            options,
            file: end.file,
            segment: end.segment,
            offset: end.offset,
            synced: end.offset,
            number: end.number,
            chain: end.chain,
            spare: None,
            without_room: false,
            buffer: Vec::new(),
            index,
            asked: 0,
            failed: false,
            stats: LogStats::default(),
        };
        if end.format < FORMAT {
            log.leave_format(end.format)?;
        }
        log.repeat_definitions()?;
        log.retire()?;
        log.make_room();
        Ok(log)
    }

    /// Nothing is written behind an earlier format's header, so that a program that knows only that one says so, and does
    /// not take for damage what it can't read.
    fn leave_format(&mut self, format: u32) -> Result<(), LogError> {
        self.make_room();
        if !self.has_room() {
            return Err(LogError::NoRoom {
                directory: self.storage.name(),
                bytes: self.options.segment_bytes,
                format,
            });
        }
        self.roll()?;
        self.flush()?;
        self.sync()
    }

    /// Writes units; those that somebody waits for are on the disk afterwards, together with all before them.
    ///
    /// After an error nothing more is taken.
    pub(crate) fn append(&mut self, units: &[Unit]) -> Result<(), LogError> {
        self.write(units)?;
        self.settle(units)
    }

    /// Writes units, so that they survive the end of the process, but not yet that of the machine. Then comes
    /// [`Log::settle`].
    ///
    /// After an error nothing more is taken.
    pub(crate) fn write(&mut self, units: &[Unit]) -> Result<(), LogError> {
        self.unless_failed(|log| log.try_write(units))
    }

    /// Sees to it that those of the units just written that somebody waits for are on the disk, together with all
    /// before them.
    ///
    /// After an error nothing more is taken.
    pub(crate) fn settle(&mut self, units: &[Unit]) -> Result<(), LogError> {
        self.unless_failed(|log| log.try_settle(units))
    }

    fn unless_failed(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<(), LogError>,
    ) -> Result<(), LogError> {
        if self.failed {
            return Err(LogError::Failed);
        }
        let done = work(self);
        self.failed = done.is_err();
        done
    }

    /// Ends the log in order: a last record shows that everything before it had been promised. Nothing can be
    /// written afterwards.
    pub(crate) fn close(&mut self) -> Result<(), LogError> {
        if self.failed {
            return Err(LogError::Failed);
        }
        self.sync()?;
        let mark = Unit {
            number: 0,
            sync: true,
            entries: Vec::new(),
        };
        self.append(std::slice::from_ref(&mark))?;
        self.give_back_room();
        self.failed = true;
        Ok(())
    }

    /// Whether the next segment has its room on the disk.
    pub(crate) const fn has_room(&self) -> bool {
        self.spare.is_some()
    }

    /// Tries again to get room for the next segment.
    pub(crate) fn make_room(&mut self) {
        if self.spare.is_some() || self.failed {
            return;
        }
        let made = self.storage.create(SPARE, self.options.segment_bytes);
        match made.and_then(|file| self.storage.sync_names().map(|()| file)) {
            Ok(file) => {
                self.spare = Some(file);
                if std::mem::take(&mut self.without_room) {
                    tracing::info!(directory = %self.storage.name().display(), "the disk has room for the bus's log again");
                }
            }
            Err(error) => {
                // Tried again and again; people are told once.
                if !std::mem::replace(&mut self.without_room, true) {
                    tracing::error!(
                        directory = %self.storage.name().display(),
                        bytes = self.options.segment_bytes,
                        %error,
                        "the disk has no room for the next segment of the bus's log: what is to be kept is refused until \
                         there is"
                    );
                }
            }
        }
    }

    /// What should be written again so that the oldest segment can go; empty if it isn't worth while. Asked once
    /// for each segment.
    pub(crate) fn stale(&mut self) -> Vec<(MessageId, QueueId)> {
        if !self.has_room() || self.index.segments() <= self.options.few_segments {
            return Vec::new();
        }
        match self.index.stale(self.options.segment_bytes) {
            Some(segment) if segment > self.asked => {
                self.asked = segment;
                self.index.living(segment)
            }
            _ => Vec::new(),
        }
    }

    pub(crate) fn stats(&self) -> LogStats {
        LogStats {
            segments: self.index.segments(),
            ..self.stats
        }
    }

    fn try_write(&mut self, units: &[Unit]) -> Result<(), LogError> {
        for unit in units {
            self.stage(unit)?;
        }
        self.flush()
    }

    fn try_settle(&mut self, units: &[Unit]) -> Result<(), LogError> {
        if units.iter().any(|unit| unit.sync) {
            self.sync()?;
        }
        self.retire()?;
        self.make_room();
        Ok(())
    }

    /// Adds a unit to the buffer, in a new segment if this one is full.
    fn stage(&mut self, unit: &Unit) -> Result<(), LogError> {
        let start = self.buffer.len();
        let crc = self.encode(&unit.entries);
        let end = self.offset.saturating_add(self.buffer.len() as u64);
        if end <= self.options.segment_bytes || self.is_fresh(start) {
            self.staged(&unit.entries, crc, self.buffer.len() - start);
            return Ok(());
        }
        self.buffer.truncate(start);
        self.roll()?;
        let start = self.buffer.len();
        let crc = self.encode(&unit.entries);
        self.staged(&unit.entries, crc, self.buffer.len() - start);
        Ok(())
    }

    /// Whether the segment has nothing in it but what the buffer holds before `start`, and that is nothing.
    fn is_fresh(&self, start: usize) -> bool {
        start == 0 && self.offset <= SEGMENT_HEADER as u64
    }

    fn encode(&mut self, entries: &[Entry]) -> u32 {
        append_record(
            &mut self.buffer,
            self.number + 1,
            self.chain,
            self.synced,
            entries,
        )
    }

    fn staged(&mut self, entries: &[Entry], crc: u32, length: usize) {
        self.number += 1;
        self.chain = crc;
        self.stats.records += 1;
        for entry in entries {
            self.index.apply(self.segment, length as u64, entry);
        }
    }

    fn flush(&mut self) -> Result<(), LogError> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let written = self.file.write_at(self.offset, &self.buffer);
        self.attempt("writing the log", written)?;
        self.offset += self.buffer.len() as u64;
        self.stats.bytes += self.buffer.len() as u64;
        self.buffer.clear();
        self.buffer.shrink_to(KEPT_BUFFER);
        Ok(())
    }

    fn sync(&mut self) -> Result<(), LogError> {
        if self.synced == self.offset {
            return Ok(());
        }
        let synced = self.file.sync();
        self.attempt("syncing the log", synced)?;
        self.synced = self.offset;
        self.stats.syncs += 1;
        Ok(())
    }

    /// Room that was taken ahead is of no use to a log at rest. Nothing hangs on it.
    fn give_back_room(&mut self) {
        let cut = self.file.wipe_from(self.offset, self.offset);
        let removed = match self.spare.take() {
            Some(_) => self.storage.remove(SPARE),
            None => Ok(()),
        };
        if let Err(error) = cut.and(removed) {
            tracing::warn!(directory = %self.storage.name().display(), %error, "room taken ahead was not given back");
        }
    }

    /// Goes on in the next segment, whose first record repeats what is defined.
    fn roll(&mut self) -> Result<(), LogError> {
        self.flush()?;
        self.sync()?;
        self.make_room();
        let Some(mut file) = self.spare.take() else {
            let source = io::Error::from(io::ErrorKind::StorageFull);
            return self.attempt("making the next log segment", Err(source));
        };
        let header = SegmentHeader {
            format: FORMAT,
            number: self.segment + 1,
            first_record: self.number + 1,
            chain: self.chain,
        };
        let activated = recovery::activate(&self.storage, &mut file, &header);
        self.attempt("making the next log segment", activated)?;
        self.file = file;
        self.segment = header.number;
        self.offset = SEGMENT_HEADER as u64;
        self.synced = self.offset;
        self.index.add_segment(self.segment);
        self.stage_definitions();
        Ok(())
    }

    /// The process may have ended between making a segment and writing its first record.
    fn repeat_definitions(&mut self) -> Result<(), LogError> {
        if self.segment == 1 || self.offset > SEGMENT_HEADER as u64 {
            return Ok(());
        }
        self.stage_definitions();
        self.flush()?;
        self.sync()
    }

    fn stage_definitions(&mut self) {
        let definitions = self.index.definitions();
        let crc = self.encode(&definitions);
        self.staged(&definitions, crc, 0);
    }

    /// Removes the oldest segments as long as nothing in them lives. What keeps the rest going (definitions,
    /// messages written again) must be on the disk by then.
    fn retire(&mut self) -> Result<(), LogError> {
        if self.synced < self.offset {
            return Ok(());
        }
        while let Some(number) = self.index.oldest_dead() {
            let removed = self.storage.remove(&recovery::segment_name(number));
            let removed = removed.and_then(|()| self.storage.sync_names());
            self.attempt("removing an old log segment", removed)?;
            self.index.remove_oldest();
        }
        Ok(())
    }

    fn attempt<T>(&self, what: &'static str, done: io::Result<T>) -> Result<T, LogError> {
        done.map_err(|source| LogError::Io {
            what,
            directory: self.storage.name(),
            source,
        })
    }
}
