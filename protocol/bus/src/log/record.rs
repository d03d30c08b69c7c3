//! Records and segment headers: how a unit is framed, and what is a valid continuation.
//!
//! A record is `magic | length | crc | previous crc | number | synced | entries`. The CRC covers everything after
//! it and the length, so also the previous record's CRC: stale or zero bytes never look like a continuation.
//! `synced` is how far the segment was certainly on the disk when the record was written: it tells a torn tail,
//! which nobody was promised, from damage to what had been promised.

use crate::core::unit::Entry;

use super::codec;

/// The length of a segment's header, in bytes.
pub(crate) const SEGMENT_HEADER: usize = 40;
/// The length of a record's header, in bytes.
pub(crate) const RECORD_HEADER: usize = 32;

const SEGMENT_MAGIC: [u8; 8] = *b"PBXBUSLG";
/// What is written. Format 1 knows no queue attributes and no positions, format 2 no remembered senders, no change of lanes
/// that is under way, no limits of durable subscriptions and nothing of what they missed; both are read as well, since
/// everything in them means the same.
pub(crate) const FORMAT: u32 = 3;
const OLDEST_FORMAT: u32 = 1;
const RECORD_MAGIC: [u8; 4] = [0xB5, b'u', b'n', 0x17];

/// What a segment starts with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    /// The format of what is in it.
    pub(crate) format: u32,
    /// The segment's number, from 1.
    pub(crate) number: u64,
    /// The number of its first record.
    pub(crate) first_record: u64,
    /// The CRC of the record before that.
    pub(crate) chain: u32,
}

/// Why a segment's header is not one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeaderError {
    /// Not what this program writes.
    Damaged,
    /// Written by another version, in this format.
    Format(u32),
}

impl SegmentHeader {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(SEGMENT_HEADER);
        out.extend_from_slice(&SEGMENT_MAGIC);
        out.extend_from_slice(&self.format.to_le_bytes());
        out.extend_from_slice(&self.number.to_le_bytes());
        out.extend_from_slice(&self.first_record.to_le_bytes());
        out.extend_from_slice(&self.chain.to_le_bytes());
        // Room for what a later format may need.
        out.extend_from_slice(&[0; 4]);
        let crc = crc32fast::hash(&out);
        out.extend_from_slice(&crc.to_le_bytes());
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, HeaderError> {
        Self::parse(bytes).unwrap_or(Err(HeaderError::Damaged))
    }

    fn parse(bytes: &[u8]) -> Option<Result<Self, HeaderError>> {
        let header = bytes.get(..SEGMENT_HEADER)?;
        let (content, crc) = header.split_at_checked(SEGMENT_HEADER - 4)?;
        if content.get(..8)? != SEGMENT_MAGIC || crc32fast::hash(content) != u32_at(crc, 0)? {
            return None;
        }
        let format = u32_at(content, 8)?;
        if !(OLDEST_FORMAT..=FORMAT).contains(&format) {
            return Some(Err(HeaderError::Format(format)));
        }
        Some(Ok(Self {
            format,
            number: u64_at(content, 12)?,
            first_record: u64_at(content, 20)?,
            chain: u32_at(content, 28)?,
        }))
    }
}

/// A record's frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) number: u64,
    /// The CRC of the record before.
    pub(crate) previous: u32,
    pub(crate) crc: u32,
    pub(crate) synced: u64,
    /// The record's length in the file, in bytes.
    pub(crate) length: usize,
}

/// Appends a record; returns its CRC.
pub(crate) fn append_record(
    out: &mut Vec<u8>,
    number: u64,
    previous: u32,
    synced: u64,
    entries: &[Entry],
) -> u32 {
    let start = out.len();
    out.extend_from_slice(&RECORD_MAGIC);
    out.extend_from_slice(&[0; 8]);
    out.extend_from_slice(&previous.to_le_bytes());
    out.extend_from_slice(&number.to_le_bytes());
    out.extend_from_slice(&synced.to_le_bytes());
    entries.iter().for_each(|entry| codec::encode(entry, out));
    let record = out.get_mut(start..).unwrap_or_default();
    let length = u32::try_from(record.len().saturating_sub(RECORD_HEADER)).unwrap_or(u32::MAX);
    set_u32(record, 4, length);
    let crc = record_crc(record);
    set_u32(record, 8, crc);
    crc
}

/// The record at the start of these bytes, if it is whole and unharmed.
pub(crate) fn read_record(bytes: &[u8]) -> Option<Record> {
    if bytes.get(..4)? != RECORD_MAGIC {
        return None;
    }
    let length = usize::try_from(u32_at(bytes, 4)?)
        .ok()?
        .checked_add(RECORD_HEADER)?;
    let record = bytes.get(..length)?;
    let crc = u32_at(record, 8)?;
    if record_crc(record) != crc {
        return None;
    }
    Some(Record {
        number: u64_at(record, 16)?,
        previous: u32_at(record, 12)?,
        crc,
        synced: u64_at(record, 24)?,
        length,
    })
}

/// Whether any later record in these bytes was written when everything before `offset` (and some more) was
/// certainly on the disk. The bytes start at `offset`, where no valid record does.
pub(crate) fn proves_damage(bytes: &[u8], offset: u64, after: u64) -> bool {
    memchr::memmem::find_iter(bytes, &RECORD_MAGIC).any(|position| {
        let record = bytes.get(position..).and_then(read_record);
        record.is_some_and(|record| record.number > after && record.synced > offset)
    })
}

fn record_crc(record: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(record.get(4..8).unwrap_or_default());
    hasher.update(record.get(12..).unwrap_or_default());
    hasher.finalize()
}

fn set_u32(bytes: &mut [u8], at: usize, value: u32) {
    if let Some(place) = bytes.get_mut(at..at + 4) {
        place.copy_from_slice(&value.to_le_bytes());
    }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_round_trip_and_notice_damage() {
        let header = SegmentHeader {
            format: FORMAT,
            number: 7,
            first_record: 99,
            chain: 0xdead_beef,
        };
        let bytes = header.encode();
        assert_eq!(bytes.len(), SEGMENT_HEADER);
        assert_eq!(SegmentHeader::decode(&bytes), Ok(header));
        for position in 0..bytes.len() {
            let mut bad = bytes.clone();
            bad[position] ^= 1;
            assert_eq!(
                SegmentHeader::decode(&bad),
                Err(HeaderError::Damaged),
                "{position}"
            );
        }
    }

    #[test]
    fn records_notice_damage_and_cuts() {
        let mut bytes = Vec::new();
        let crc = append_record(&mut bytes, 3, 17, 1000, &[Entry::Boot(4)]);
        let record = read_record(&bytes).unwrap();
        assert_eq!((record.number, record.previous, record.crc), (3, 17, crc));
        assert_eq!(record.length, bytes.len());
        for position in 0..bytes.len() {
            let mut bad = bytes.clone();
            bad[position] ^= 0x40;
            assert_eq!(read_record(&bad), None, "{position}");
            assert_eq!(read_record(&bytes[..position]), None, "{position}");
        }
    }

    #[test]
    fn only_a_later_promise_proves_damage() {
        let mut bytes = vec![0; 10];
        append_record(&mut bytes, 5, 0, 400, &[Entry::Boot(1)]);
        assert!(proves_damage(&bytes, 399, 3));
        assert!(
            !proves_damage(&bytes, 400, 3),
            "nothing from 400 on was promised"
        );
        assert!(!proves_damage(&bytes, 399, 5), "an old record");
    }
}
