//! A file on its way in.

use std::{
    path::PathBuf,
    sync::mpsc::{Receiver, sync_channel},
    thread,
};

use bytes::Bytes;
use tokio::{sync::mpsc, task::JoinHandle};

use super::{
    ArchiveError, Claim,
    disk::{OffThread, TempFile},
    space::Reservation,
};
use crate::digests::{Checksums, Digests, Spec};

/// A file whose bytes are being received; dropped before [`finish`](Self::finish), it leaves nothing.
///
/// The first bytes are held in memory, so that a small file costs the disk one visit, when it is
/// published. A larger file goes to one thread that writes and one that hashes, while the next bytes
/// are received.
#[derive(Debug)]
pub struct IncomingFile {
    claim: Claim,
    /// None where no bytes are kept.
    reservation: Option<Reservation>,
    specs: Vec<Spec>,
    size: u64,
    bytes: Receiving,
}

#[derive(Debug)]
enum Receiving {
    Held(Vec<u8>),
    Streaming(Stream),
}

impl IncomingFile {
    pub(super) fn new(claim: Claim, reservation: Option<Reservation>, specs: Vec<Spec>) -> Self {
        Self {
            claim,
            reservation,
            specs,
            size: 0,
            bytes: Receiving::Held(Vec::new()),
        }
    }

    /// Bytes received so far.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Takes the next bytes; waits while the disk is behind.
    ///
    /// Not cancel-safe: if the future is dropped, its bytes may be missing, and the file can only be
    /// dropped ([`finish`](Self::finish) fails).
    ///
    /// # Errors
    /// No space, or the disk refused what was written before. The file can then only be dropped.
    pub async fn write(&mut self, bytes: Bytes) -> Result<(), ArchiveError> {
        let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        let before = self.size;
        // Counted first: what is lost on the way is found missing at the end.
        self.size = before.saturating_add(length);
        if self.has_room_for(bytes.len()) {
            self.cover(self.size).await?;
            if let Receiving::Held(held) = &mut self.bytes {
                held.extend_from_slice(&bytes);
            }
            return Ok(());
        }
        if let Receiving::Held(held) = &mut self.bytes {
            let held = Bytes::from(std::mem::take(held));
            let temp = self.reservation.as_ref().map(|it| it.shelf.temp.clone());
            let stream = Stream::start(temp, Digests::new(&self.specs));
            self.bytes = Receiving::Streaming(stream);
            self.spend(before);
            self.stream(held).await?;
        }
        self.cover(length).await?;
        self.spend(length);
        self.stream(bytes).await
    }

    /// Whether so many bytes more can be held in memory.
    fn has_room_for(&self, length: usize) -> bool {
        match &self.bytes {
            Receiving::Held(held) => held.len().saturating_add(length) <= HELD_MAX,
            Receiving::Streaming(_) => false,
        }
    }

    async fn cover(&mut self, bytes: u64) -> Result<(), ArchiveError> {
        match &mut self.reservation {
            Some(reservation) => reservation.cover(bytes).await,
            None => Ok(()),
        }
    }

    fn spend(&mut self, bytes: u64) {
        if let Some(reservation) = &mut self.reservation {
            reservation.spend(bytes);
        }
    }

    async fn stream(&mut self, bytes: Bytes) -> Result<(), ArchiveError> {
        match &mut self.bytes {
            Receiving::Streaming(stream) => stream.send(Part::Bytes(bytes)).await,
            Receiving::Held(_) => Err(ArchiveError::Interrupted),
        }
    }

    /// All bytes are there: gives their size and checksums, for the caller to judge.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub async fn finish(self) -> Result<ReceivedFile, ArchiveError> {
        let Self {
            claim,
            reservation,
            specs,
            size,
            bytes,
        } = self;
        let (content, checksums) = match bytes {
            Receiving::Held(held) => {
                if u64::try_from(held.len()) != Ok(size) {
                    return Err(ArchiveError::Interrupted);
                }
                let checksums = Checksums::of(&held, &specs);
                (Content::Held(held), checksums)
            }
            Receiving::Streaming(stream) => {
                let streamed = stream.finish().await?;
                if streamed.size != size {
                    tokio::task::spawn_blocking(move || drop(streamed));
                    return Err(ArchiveError::Interrupted);
                }
                let Streamed {
                    temp, checksums, ..
                } = streamed;
                let content = temp.map_or(Content::Unkept, |temp| {
                    Content::Written(OffThread::new(temp))
                });
                (content, checksums)
            }
        };
        Ok(ReceivedFile {
            claim,
            reservation,
            size,
            checksums,
            content,
        })
    }

    /// Drops the file, and returns when its bytes are gone from the disk.
    pub async fn discard(self) {
        if let Receiving::Streaming(stream) = self.bytes {
            stream.abort().await;
        }
    }
}

/// A file whose bytes are all there, but which is not in the archive yet; dropped, it leaves nothing.
#[derive(Debug)]
pub struct ReceivedFile {
    pub(super) claim: Claim,
    /// None where no bytes are kept.
    pub(super) reservation: Option<Reservation>,
    pub(super) size: u64,
    pub(super) checksums: Checksums,
    pub(super) content: Content,
}

/// Where a received file's bytes are.
#[derive(Debug)]
pub(super) enum Content {
    Held(Vec<u8>),
    Written(OffThread<TempFile>),
    /// Nowhere.
    Unkept,
}

impl ReceivedFile {
    pub(super) fn unseen(claim: Claim, size: u64, checksums: Checksums) -> Self {
        Self {
            claim,
            reservation: None,
            size,
            checksums,
            content: Content::Unkept,
        }
    }

    /// Bytes received.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Their checksums, by the specs that were given to [`receive`](super::Archive::receive).
    #[must_use]
    pub fn checksums(&self) -> &Checksums {
        &self.checksums
    }

    /// Drops the file, and returns when its bytes are gone from the disk.
    pub async fn discard(self) {
        if let Content::Written(temp) = self.content {
            let temp = temp.into_inner();
            // A panic in there has been reported by the task.
            _ = tokio::task::spawn_blocking(move || drop(temp)).await;
        }
    }
}

/// What became of a stream of bytes.
#[derive(Debug)]
struct Streamed {
    /// None where no bytes are kept.
    temp: Option<TempFile>,
    size: u64,
    checksums: Checksums,
}

type Written = Result<Streamed, ArchiveError>;

/// The blocking task that writes one file, and the bounded way to it.
#[derive(Debug)]
struct Stream {
    parts: mpsc::Sender<Part>,
    /// None once its outcome was taken.
    task: Option<JoinHandle<Written>>,
}

#[derive(Debug)]
enum Part {
    Bytes(Bytes),
    /// Told apart from a receiver that went away.
    End,
}

impl Stream {
    /// Without a directory no bytes are kept.
    fn start(directory: Option<PathBuf>, digests: Digests) -> Self {
        let (parts, receiver) = mpsc::channel(PARTS_IN_FLIGHT);
        let write = move || {
            let temp = directory.map(|it| TempFile::create(&it)).transpose()?;
            write_parts(temp, receiver, digests)
        };
        Self {
            parts,
            task: Some(tokio::task::spawn_blocking(write)),
        }
    }

    async fn send(&mut self, part: Part) -> Result<(), ArchiveError> {
        if self.parts.send(part).await.is_ok() {
            return Ok(());
        }
        // The task only stops listening when it failed.
        Err(self
            .outcome()
            .await
            .err()
            .unwrap_or(ArchiveError::Interrupted))
    }

    async fn finish(mut self) -> Written {
        self.send(Part::End).await?;
        self.outcome().await
    }

    async fn abort(mut self) {
        let task = self.task.take();
        drop(self.parts);
        if let Some(task) = task {
            _ = task.await;
        }
    }

    async fn outcome(&mut self) -> Written {
        match self.task.take() {
            Some(task) => task.await.unwrap_or(Err(ArchiveError::Interrupted)),
            None => Err(ArchiveError::Interrupted),
        }
    }
}

/// Writes, while another thread hashes: neither waits for the other but at the end.
fn write_parts(
    mut temp: Option<TempFile>,
    mut parts: mpsc::Receiver<Part>,
    digests: Digests,
) -> Written {
    let mut size: u64 = 0;
    thread::scope(|scope| {
        let (pieces, arriving) = sync_channel(PARTS_IN_FLIGHT);
        let hashing = thread::Builder::new()
            .name("hashing".to_owned())
            .spawn_scoped(scope, move || hash_pieces(&arriving, digests))
            .map_err(|_| ArchiveError::Interrupted)?;
        while let Some(part) = parts.blocking_recv() {
            match part {
                Part::Bytes(bytes) => {
                    // It listens until it has panicked, which shows at the end.
                    _ = pieces.send(bytes.clone());
                    size = size.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
                    if let Some(temp) = &mut temp {
                        temp.write(&bytes)?;
                    }
                }
                Part::End => {
                    drop(pieces);
                    let checksums = hashing.join().map_err(|_| ArchiveError::Interrupted)?;
                    return Ok(Streamed {
                        temp,
                        size,
                        checksums,
                    });
                }
            }
        }
        Err(ArchiveError::Interrupted)
    })
}

fn hash_pieces(pieces: &Receiver<Bytes>, mut digests: Digests) -> Checksums {
    while let Ok(bytes) = pieces.recv() {
        digests.update(&bytes);
    }
    digests.finish()
}

/// Bytes held in memory before a file goes to the disk: what one pass of hashing may cost an async
/// worker (about 0.1 ms).
const HELD_MAX: usize = 64 * 1024;

/// Parts between the receiver and the disk; a part is what the network gave at once, up to about half
/// a megabyte. Few, since many files may come in while the disk is behind.
const PARTS_IN_FLIGHT: usize = 4;
