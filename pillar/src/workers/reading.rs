//! Reading files at a worker's pace.

use std::{
    io,
    num::NonZeroU64,
    time::{Duration, Instant},
};

use pillarbox_messages::HexBinary;
use rustix::fs::{Advice, fadvise};

use super::{Interrupt, Shift};
use crate::{
    archive::StoredFile,
    digests::{Checksums, Spec},
};

/// What reads; its buffer serves for all files.
#[derive(Debug)]
pub(super) struct Reading {
    spec: Spec,
    buffer: Vec<u8>,
}

/// Why a file was not read to its end.
#[derive(Debug)]
pub(super) enum Unread {
    /// The turn ends.
    Interrupt(Interrupt),
    /// The disk refused.
    Disk(io::Error),
}

impl From<io::Error> for Unread {
    fn from(error: io::Error) -> Self {
        Self::Disk(error)
    }
}

impl From<Interrupt> for Unread {
    fn from(interrupt: Interrupt) -> Self {
        Self::Interrupt(interrupt)
    }
}

impl Reading {
    pub(super) const fn new(spec: Spec) -> Self {
        Self {
            spec,
            buffer: Vec::new(),
        }
    }

    /// The checksum of a file, read from its start.
    pub(super) fn checksum(
        &mut self,
        shift: &mut Shift,
        stored: &StoredFile,
    ) -> Result<HexBinary, Unread> {
        let StoredFile { file, size, .. } = stored;
        if *size > READ_AHEAD_FROM
            && let Err(error) = fadvise(file, 0, NonZeroU64::new(*size), Advice::Sequential)
        {
            tracing::debug!(%error, "no reading ahead on this file system");
        }
        self.buffer.resize(shift.portion(), 0);
        let mut read = 0_u64;
        let specs = std::slice::from_ref(&self.spec);
        let sums = Checksums::of_pieces(file, specs, &mut self.buffer, |length| {
            let length = u64::try_from(length).unwrap_or(u64::MAX);
            read = read.saturating_add(length);
            shift.spend(length).map_err(Unread::from)
        })?;
        // However small, it costs the disk a visit.
        shift.spend(LEAST_COST.saturating_sub(read))?;
        let checksum = sums.value(&self.spec).cloned();
        Ok(checksum.ok_or_else(|| io::Error::other("no checksum was computed"))?)
    }
}

/// When what was found is to be written down: commits are shared, but not put off for long.
#[derive(Debug)]
pub(super) struct Batch<T> {
    items: Vec<T>,
    since: Instant,
}

impl<T> Batch<T> {
    pub(super) fn new() -> Self {
        Self {
            items: Vec::new(),
            since: Instant::now(),
        }
    }

    fn push(&mut self, item: T) {
        if self.items.is_empty() {
            self.since = Instant::now();
        }
        self.items.push(item);
    }

    pub(super) fn extend(&mut self, item: Option<T>) {
        if let Some(item) = item {
            self.push(item);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub(super) fn is_due(&self) -> bool {
        self.items.len() >= BATCH || (!self.items.is_empty() && self.since.elapsed() >= PUT_OFF)
    }

    pub(super) fn take(&mut self) -> Vec<T> {
        std::mem::take(&mut self.items)
    }
}

/// What a file counts for at least, in bytes: a block of its directory entry, inode or content.
const LEAST_COST: u64 = 4 << 10;
/// Smaller files are read at once anyway.
const READ_AHEAD_FROM: u64 = 256 << 10;
/// Files in one commit.
const BATCH: usize = 512;
const PUT_OFF: Duration = Duration::from_secs(1);
