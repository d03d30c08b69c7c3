//! Files on their way to and from the exchange. A fetched one gets to its target complete and compared with what is
//! known of it, or not at all.

#[cfg(test)]
mod tests;

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};

use bytes::Bytes;
use futures_util::StreamExt as _;
use pillarbox_exchange::{Download, ExchangeClient, ExchangeError};
use pillarbox_messages::{ChecksumData, ChecksumSpec, CorrelationId, HexBinary, wording::count};
use thiserror::Error;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::{
    conversation::{Expected, Input},
    digests::Hasher,
    event::Delivered,
    meter::Meter,
    source,
};

/// A file to be laid on the exchange.
#[derive(Debug)]
pub(crate) enum Offered {
    /// All of it, read already, and its checksum computed if it was wanted.
    Small(Bytes),
    /// To be read.
    Large(File),
}

/// Lays a file on the exchange. With a spec its checksum is computed on the way, so that the file is read
/// only once.
///
/// # Errors
/// Why it does not lie there now.
pub(crate) async fn offer(
    exchange: ExchangeClient,
    offered: io::Result<Offered>,
    size: u64,
    address: String,
    spec: Option<&ChecksumSpec>,
    meter: Meter,
) -> Result<Option<HexBinary>, String> {
    let offered = offered.map_err(|error| error.to_string())?;
    let (sent, reading) = match offered {
        Offered::Small(content) => (exchange.put_bytes(&address, content).await, None),
        Offered::Large(file) => {
            let hasher = spec.map(Hasher::new).transpose();
            let hasher = hasher.map_err(|error| error.to_string())?;
            meter.begin(Some(size));
            let (pieces, reading) = source::read_for(file, size, hasher);
            let pieces = pieces.inspect(move |piece| {
                meter.add(piece.as_ref().map_or(0, Bytes::len));
            });
            let sent = exchange.put_stream(&address, pieces, Some(size)).await;
            (sent, Some(reading))
        }
    };
    let sent = sent.map_err(|error| error.to_string())?;
    if sent != size {
        return Err(format!(
            "it changed from {size} to {} while being put",
            count(sent, "byte")
        ));
    }
    match reading {
        None => Ok(None),
        Some(reading) => reading.await,
    }
}

/// Fetches what lies at an address into a file beside the target, hashing it as it comes; once it is complete, is
/// what the pillar said and is on the disk, it becomes the target. A checksum that was asked for takes the place of
/// what the pillar said of it. When stopped, it ends after cleaning up.
pub(crate) async fn fetch(
    exchange: ExchangeClient,
    address: String,
    place: Place,
    mut expected: Expected,
    asked_for: Option<ChecksumData>,
    meter: Meter,
    stop: CancellationToken,
) -> Input {
    expected.checksum = asked_for.clone().or(expected.checksum);
    let fetched = async {
        let opening = stop.run_until_cancelled(exchange.get(&address));
        let download = opening.await.ok_or(DownloadError::Ended)??;
        meter.begin(expected.size());
        receive(download, place, expected, &meter, &stop).await
    };
    match fetched.await {
        Ok(Fetched { size, replaced }) => Input::DownloadFinished(Delivered {
            size,
            replaced,
            checksum: asked_for,
        }),
        Err(error) => Input::DownloadFailed {
            another_may_help: error.another_may_help(),
            text: error.to_string(),
        },
    }
}

/// Why a file did not get to its target.
#[derive(Debug, Error)]
enum DownloadError {
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
    #[error("the file can't be written at '{}': {source}", path.display())]
    Local { path: PathBuf, source: io::Error },
    #[error("{} came, it should be {expected}", count(*.actual, "byte"))]
    Length { expected: u64, actual: u64 },
    #[error("{} came, asked for were {limit}", count(*.actual, "byte"))]
    TooLong { limit: u64, actual: u64 },
    #[error(
        "delivered bytes that do not match its checksum: theirs is {actual}, it said {expected}"
    )]
    Checksum {
        expected: HexBinary,
        actual: HexBinary,
    },
    #[error("the transfer was ended")]
    Ended,
}

impl DownloadError {
    /// Whether the fault is not this machine's, so that another pillar might do better.
    const fn another_may_help(&self) -> bool {
        !matches!(
            self,
            Self::Local { .. } | Self::Ended | Self::Exchange(ExchangeError::Local { .. })
        )
    }
}

/// How many chunks may wait for the disk.
const CHUNKS_IN_FLIGHT: usize = 8;

/// What the writing thread gets.
enum Piece {
    Bytes(Bytes),
    /// All bytes have come. Without it the transfer was ended and the file goes away.
    End,
}

/// A file that is at its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fetched {
    /// Bytes.
    size: u64,
    /// Whether there was a file before.
    replaced: bool,
}

/// Passes the bytes to a thread that hashes and writes them.
async fn receive(
    mut download: Download,
    place: Place,
    expected: Expected,
    meter: &Meter,
    stop: &CancellationToken,
) -> Result<Fetched, DownloadError> {
    let (pieces, arriving) = mpsc::channel(CHUNKS_IN_FLIGHT);
    let writing = tokio::task::spawn_blocking(move || write(&place, &expected, arriving));
    let passed = match stop
        .run_until_cancelled(pass_on(&mut download, &pieces, meter))
        .await
    {
        Some(passed) => passed.map_err(DownloadError::from),
        None => Err(DownloadError::Ended),
    };
    if passed.is_ok() {
        // If nobody listens any more, the thread has its error ready.
        let _ = pieces.send(Piece::End).await;
    }
    drop(pieces);
    let written = writing.await.unwrap_or(Err(DownloadError::Ended));
    passed.and(written)
}

async fn pass_on(
    download: &mut Download,
    pieces: &mpsc::Sender<Piece>,
    meter: &Meter,
) -> Result<(), ExchangeError> {
    while let Some(chunk) = download.chunk().await? {
        meter.add(chunk.len());
        if pieces.send(Piece::Bytes(chunk)).await.is_err() {
            break;
        }
    }
    Ok(())
}

fn write(
    place: &Place,
    expected: &Expected,
    mut arriving: mpsc::Receiver<Piece>,
) -> Result<Fetched, DownloadError> {
    let local = |source| DownloadError::Local {
        path: place.target.clone(),
        source,
    };
    let mut part = PartFile::create(&place.part).map_err(local)?;
    // A checksum that can't be computed here leaves the length to compare.
    let mut hasher = expected
        .comparable()
        .and_then(|sum| Hasher::new(&sum.checksum_spec).ok());
    let mut size = 0_u64;
    loop {
        match arriving.blocking_recv() {
            Some(Piece::Bytes(bytes)) => {
                part.file.write_all(&bytes).map_err(local)?;
                size = size.saturating_add(bytes.len() as u64);
                if expected.limit().is_some_and(|limit| size > limit) {
                    // Whoever sends may never end.
                    return Err(compare(expected, size, None)
                        .err()
                        .unwrap_or(DownloadError::Ended));
                }
                if let Some(hasher) = &mut hasher {
                    hasher.update(&bytes);
                }
            }
            Some(Piece::End) => break,
            None => return Err(DownloadError::Ended),
        }
    }
    compare(expected, size, hasher.map(Hasher::finish))?;
    let replaced = part.publish(&place.target).map_err(local)?;
    Ok(Fetched { size, replaced })
}

fn compare(expected: &Expected, size: u64, actual: Option<HexBinary>) -> Result<(), DownloadError> {
    if let Some(told) = expected.size().filter(|told| *told != size) {
        return Err(DownloadError::Length {
            expected: told,
            actual: size,
        });
    }
    if let Some(limit) = expected.limit().filter(|limit| *limit < size) {
        return Err(DownloadError::TooLong {
            limit,
            actual: size,
        });
    }
    let told = expected.comparable().map(|sum| &sum.checksum_value);
    match (told, actual) {
        (Some(told), Some(actual)) if *told != actual => Err(DownloadError::Checksum {
            expected: told.clone(),
            actual,
        }),
        _ => Ok(()),
    }
}

/// The directory that a path lies in.
pub(crate) fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Where a fetched file gets to.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) target: PathBuf,
    /// Where it is until it is complete: beside the target, and known to whoever takes up the conversation.
    part: PathBuf,
}

impl Place {
    pub(crate) fn new(target: &Path, conversation: &CorrelationId) -> Self {
        let part = parent(target).join(format!(".{conversation}.part"));
        Self {
            target: target.to_path_buf(),
            part,
        }
    }

    /// Removes what a process that is gone has received of the file.
    pub(crate) fn clear(&self) {
        // Most often there is nothing.
        let _ = fs::remove_file(&self.part);
    }
}

/// A file of a unique name that goes away unless it is published.
struct PartFile {
    path: PathBuf,
    file: File,
    published: bool,
}

impl PartFile {
    fn create(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().write(true).create_new(true).open(path)?;
        Ok(Self {
            path: path.to_path_buf(),
            file,
            published: false,
        })
    }

    /// Makes it the target, in one step and for good; true if it took the place of a file.
    fn publish(mut self, target: &Path) -> io::Result<bool> {
        self.file.sync_all()?;
        let replaced = fs::symlink_metadata(target).is_ok();
        fs::rename(&self.path, target)?;
        self.published = true;
        File::open(parent(target))?.sync_all()?;
        Ok(replaced)
    }
}

impl Drop for PartFile {
    fn drop(&mut self) {
        if !self.published {
            // It has a name that nobody looks for.
            let _ = fs::remove_file(&self.path);
        }
    }
}
