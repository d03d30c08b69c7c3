//! An entry as bytes: a line with format, checksum and length, then JSON.

use thiserror::Error;

use super::{Entry, LONGEST_ENTRY};

const MAGIC: &str = "pillarbox conversation ";
/// The format that this version writes and reads.
const FORMAT: u32 = 1;

/// Why bytes are no entry.
#[derive(Debug, Error)]
pub(crate) enum Unreadable {
    #[error("it is damaged")]
    Damaged,
    #[error("it is longer than {LONGEST_ENTRY} bytes")]
    TooLong,
    #[error("it has the format {0}, this version reads {FORMAT}")]
    Format(u32),
    #[error("it does not say what it should: {0}")]
    Content(#[from] serde_json::Error),
}

pub(crate) fn encode(entry: &Entry) -> Result<Vec<u8>, serde_json::Error> {
    let body = serde_json::to_vec(entry)?;
    let mut bytes = header(&body).into_bytes();
    bytes.extend(body);
    Ok(bytes)
}

pub(crate) fn decode(bytes: &[u8]) -> Result<Entry, Unreadable> {
    if bytes.len() as u64 > LONGEST_ENTRY {
        return Err(Unreadable::TooLong);
    }
    let mut parts = bytes.splitn(2, |byte| *byte == b'\n');
    let (first, body) = parts.next().zip(parts.next()).ok_or(Unreadable::Damaged)?;
    let format = format_of(first).ok_or(Unreadable::Damaged)?;
    if format != FORMAT {
        return Err(Unreadable::Format(format));
    }
    if header(body).trim_end().as_bytes() != first {
        return Err(Unreadable::Damaged);
    }
    Ok(serde_json::from_slice(body)?)
}

fn header(body: &[u8]) -> String {
    let checksum = crc32fast::hash(body);
    format!("{MAGIC}{FORMAT} {checksum:08x} {}\n", body.len())
}

fn format_of(first: &[u8]) -> Option<u32> {
    let rest = std::str::from_utf8(first).ok()?.strip_prefix(MAGIC)?;
    rest.split(' ').next()?.parse().ok()
}
