//! Reading a log back after whatever has happened to it.

use std::{io, path::PathBuf};

use super::{
    LogError, LogOptions, SPARE, codec,
    record::{FORMAT, HeaderError, RECORD_HEADER, Record, SEGMENT_HEADER, SegmentHeader},
    record::{proves_damage, read_record},
    storage::{LogFile, Storage},
};
use crate::core::{message::Addresses, unit::Entry};

/// Where writing goes on.
pub(super) struct End<F> {
    pub(super) file: F,
    pub(super) segment: u64,
    /// The format that the segment says it has.
    pub(super) format: u32,
    pub(super) offset: u64,
    pub(super) number: u64,
    pub(super) chain: u32,
}

/// Takes an entry with its segment and its record's length.
pub(super) type Take<'a> = &'a mut dyn FnMut(u64, u64, Entry);

/// What is done with entries.
struct Sink<'a> {
    /// What messages share.
    addresses: &'a mut Addresses,
    take: Take<'a>,
}

const SUFFIX: &str = ".log";

pub(super) fn segment_name(number: u64) -> String {
    format!("{number:010}{SUFFIX}")
}

/// Reads all segments; `None` if there are none. A torn tail is cut off, and that is on the disk before anything
/// is written after it.
pub(super) fn recover<S: Storage>(
    storage: &S,
    options: LogOptions,
    take: Take<'_>,
) -> Result<Option<End<S::File>>, LogError> {
    let numbers = segment_numbers(storage)?;
    let mut end: Option<End<S::File>> = None;
    let mut addresses = Addresses::default();
    for (position, number) in numbers.iter().enumerate() {
        let is_last = position + 1 == numbers.len();
        let previous = end.take();
        let mut sink = Sink {
            addresses: &mut addresses,
            take,
        };
        end = Some(read_segment(
            storage, options, *number, previous, is_last, &mut sink,
        )?);
    }
    Ok(end)
}

/// Makes the first segment of a new log.
pub(super) fn first_segment<S: Storage>(
    storage: &S,
    options: LogOptions,
) -> Result<End<S::File>, LogError> {
    let header = SegmentHeader {
        format: FORMAT,
        number: 1,
        first_record: 1,
        chain: 0,
    };
    let made = storage
        .create(SPARE, options.segment_bytes)
        .and_then(|mut file| {
            activate(storage, &mut file, &header)?;
            Ok(file)
        });
    let file = made.map_err(|source| io_error(storage, "making the first log segment", source))?;
    Ok(End {
        file,
        segment: 1,
        format: FORMAT,
        offset: SEGMENT_HEADER as u64,
        number: 0,
        chain: 0,
    })
}

/// Makes a segment of the spare file. It has its name only when its header is on the disk.
pub(super) fn activate<S: Storage>(
    storage: &S,
    file: &mut S::File,
    header: &SegmentHeader,
) -> io::Result<()> {
    file.write_at(0, &header.encode())?;
    file.sync()?;
    storage.rename(SPARE, &segment_name(header.number))?;
    storage.sync_names()
}

fn segment_numbers<S: Storage>(storage: &S) -> Result<Vec<u64>, LogError> {
    let names = storage.list();
    let names = names.map_err(|source| io_error(storage, "listing the log segments", source))?;
    let numbers = names
        .iter()
        .filter_map(|name| name.strip_suffix(SUFFIX)?.parse().ok());
    let mut numbers: Vec<u64> = numbers.collect();
    numbers.sort_unstable();
    Ok(numbers)
}

fn read_segment<S: Storage>(
    storage: &S,
    options: LogOptions,
    number: u64,
    previous: Option<End<S::File>>,
    is_last: bool,
    sink: &mut Sink<'_>,
) -> Result<End<S::File>, LogError> {
    let name = segment_name(number);
    let file = storage.open(&name);
    let mut file = file.map_err(|source| io_error(storage, "opening a log segment", source))?;
    let bytes = file.read();
    let bytes = bytes.map_err(|source| io_error(storage, "reading a log segment", source))?;
    let reader = SegmentReader {
        path: storage.name().join(&name),
        bytes: &bytes,
    };
    let header = reader.header(number)?;
    if let Some(previous) = previous {
        reader.check_follows(storage, &header, &previous)?;
    }
    let (mut last, mut chain) = (header.first_record.saturating_sub(1), header.chain);
    let mut offset = SEGMENT_HEADER;
    while let Some((record, entries)) = reader.record(offset, (last, chain), sink.addresses)? {
        for entry in entries {
            (sink.take)(number, record.length as u64, entry);
        }
        (last, chain) = (record.number, record.crc);
        offset += record.length;
    }
    if is_last {
        let torn = reader.is_torn(offset, last)?;
        if torn {
            tracing::info!(file = %reader.path.display(), offset, "cut off an unfinished write");
        }
        // A log at rest has given back the room it had taken ahead.
        if torn || (bytes.len() as u64) < options.segment_bytes {
            let wiped = file.wipe_from(offset as u64, options.segment_bytes);
            wiped.map_err(|source| io_error(storage, "cutting off a torn log tail", source))?;
        }
        // What a killed process had written may be in the kernel's hands only.
        file.sync()
            .map_err(|source| io_error(storage, "syncing the log", source))?;
    }
    Ok(End {
        file,
        segment: number,
        format: header.format,
        offset: offset as u64,
        number: last,
        chain,
    })
}

struct SegmentReader<'a> {
    path: PathBuf,
    bytes: &'a [u8],
}

impl SegmentReader<'_> {
    fn header(&self, number: u64) -> Result<SegmentHeader, LogError> {
        match SegmentHeader::decode(self.bytes) {
            Ok(header) if header.number == number => Ok(header),
            Ok(header) => Err(self.corrupt(
                0,
                format!("this is segment {}, not {number}", header.number),
            )),
            Err(HeaderError::Damaged) => Err(self.corrupt(0, "its header is damaged".to_owned())),
            Err(HeaderError::Format(format)) => {
                let reason = format!("format {format} is another version's; use that version");
                Err(self.corrupt(0, reason))
            }
        }
    }

    /// The segment before must be whole: it ends where this one goes on.
    fn check_follows<S: Storage>(
        &self,
        storage: &S,
        header: &SegmentHeader,
        previous: &End<S::File>,
    ) -> Result<(), LogError> {
        if previous.segment + 1 != header.number {
            let missing = storage.name().join(segment_name(previous.segment + 1));
            let reason = "the file is missing".to_owned();
            return Err(LogError::Corrupt {
                file: missing,
                offset: 0,
                reason,
            });
        }
        if (previous.number + 1, previous.chain) != (header.first_record, header.chain) {
            return Err(LogError::Corrupt {
                file: storage.name().join(segment_name(previous.segment)),
                offset: previous.offset,
                reason: format!(
                    "the record before number {} is damaged",
                    header.first_record
                ),
            });
        }
        Ok(())
    }

    /// The record at this offset, if it continues the log.
    fn record(
        &self,
        offset: usize,
        (last, chain): (u64, u32),
        addresses: &mut Addresses,
    ) -> Result<Option<(Record, Vec<Entry>)>, LogError> {
        let rest = self.bytes.get(offset..).unwrap_or_default();
        let record = read_record(rest);
        let record = record.filter(|r| r.number == last + 1 && r.previous == chain);
        let Some(record) = record else {
            return Ok(None);
        };
        let payload = rest.get(RECORD_HEADER..record.length).unwrap_or_default();
        match codec::decode(payload, addresses) {
            Some(entries) => Ok(Some((record, entries))),
            None => Err(self.corrupt(offset, "a record of unknown content".to_owned())),
        }
    }

    /// What stands where no record continues the log: nothing, an unfinished write, or damage.
    fn is_torn(&self, offset: usize, last: u64) -> Result<bool, LogError> {
        let rest = self.bytes.get(offset..).unwrap_or_default();
        if rest.iter().all(|byte| *byte == 0) {
            return Ok(false);
        }
        if proves_damage(rest, offset as u64, last) {
            return Err(self.corrupt(offset, "a record that had been written is gone".to_owned()));
        }
        Ok(true)
    }

    fn corrupt(&self, offset: usize, reason: String) -> LogError {
        LogError::Corrupt {
            file: self.path.clone(),
            offset: offset as u64,
            reason,
        }
    }
}

fn io_error<S: Storage>(storage: &S, what: &'static str, source: io::Error) -> LogError {
    LogError::Io {
        what,
        directory: storage.name(),
        source,
    }
}
