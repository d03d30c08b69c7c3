//! Reading a file that is to be put, for its length and checksum.

use std::{
    fs::File,
    io::{self, Read as _},
    os::unix::fs::FileExt as _,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{SyncSender, sync_channel},
    },
};

use bytes::Bytes;
use futures_util::{Stream, stream};
use pillarbox_messages::{ChecksumSpec, HexBinary};
use tokio::{
    sync::mpsc,
    task::{JoinError, JoinHandle},
};

use crate::{digests::Hasher, error::ClientError, validate};

/// A file to be put, open: what is offered later is what was read here, even if the name has got another meaning.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) file: File,
    pub(crate) size: u64,
    /// Of a small file, if it was asked for; a large one is for [`examine`].
    pub(crate) checksum: Option<HexBinary>,
    /// All of a small file.
    pub(crate) content: Option<Bytes>,
}

/// Up to this length a file is read at once; beyond, when its checksum is needed or while it is offered.
const SMALL_BYTES: u64 = 64 * 1024;
/// How much is read at once.
const BUFFER_BYTES: usize = 256 * 1024;
/// How many pieces may wait to be sent.
const PIECES_IN_FLIGHT: usize = 4;

/// Opens the file; a small one is read at once, and its checksum computed if a spec is given.
pub(crate) async fn open(path: &Path, spec: Option<&ChecksumSpec>) -> Result<Opened, ClientError> {
    let path = path.to_path_buf();
    let hasher = spec.map(Hasher::new).transpose()?;
    let opening = tokio::task::spawn_blocking(move || {
        let file = validate::source_file(&path)?;
        let error = |source| ClientError::Source {
            path: path.clone(),
            source,
        };
        let size = file.metadata().map_err(error)?.len();
        if size > SMALL_BYTES {
            return Ok(Opened {
                file,
                size,
                checksum: None,
                content: None,
            });
        }
        let content = read_small(&file).map_err(error)?;
        let checksum = hasher.map(|mut hasher| {
            hasher.update(&content);
            hasher.finish()
        });
        Ok(Opened {
            file,
            size: content.len() as u64,
            checksum,
            content: Some(content.into()),
        })
    });
    opening.await.unwrap_or(Err(ClientError::Closed))
}

/// All of a file that was small a moment ago, and must still be: a part of it is not what is to be put.
fn read_small(file: &File) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    let limit = SMALL_BYTES.saturating_add(1);
    file.take(limit).read_to_end(&mut content)?;
    if content.len() as u64 > SMALL_BYTES {
        return Err(longer());
    }
    Ok(content)
}

fn longer() -> io::Error {
    io::Error::other("it became longer while it was read")
}

/// Reads a file through for its checksum. Stops reading when dropped.
///
/// # Errors
/// What the operating system said, or that the checksum can't be computed.
pub(crate) async fn examine(
    file: io::Result<File>,
    spec: &ChecksumSpec,
) -> Result<HexBinary, String> {
    let file = file.map_err(|error| error.to_string())?;
    let hasher = Hasher::new(spec).map_err(|error| error.to_string())?;
    let stop = StopOnDrop(Arc::default());
    let stopped = Arc::clone(&stop.0);
    let reading = tokio::task::spawn_blocking(move || read_through(&file, hasher, &stopped));
    outcome(reading.await)
}

/// Reads a file of this size piece by piece for somebody else, while another thread computes its checksum, if it is
/// wanted. Ends early when the pieces are dropped. The future tells the checksum once all has been read.
pub(crate) fn read_for(
    file: File,
    size: u64,
    hasher: Option<Hasher>,
) -> (
    impl Stream<Item = io::Result<Bytes>> + Send + 'static,
    impl Future<Output = Result<Option<HexBinary>, String>> + Send,
) {
    let (pieces, arriving) = mpsc::channel(PIECES_IN_FLIGHT);
    let (copies, hashing) = hasher.map(hash_beside).unzip();
    let reading = tokio::task::spawn_blocking(move || {
        let copies = copies.as_ref();
        pass_on(&file, size, &pieces, copies)
    });
    let next = |mut arriving: mpsc::Receiver<_>| async {
        let piece = arriving.recv().await?;
        Some((piece, arriving))
    };
    let checksum = async {
        outcome(reading.await)?;
        match hashing {
            None => Ok(None),
            Some(hashing) => hashing.await.map(Some).map_err(|_| ENDED.to_owned()),
        }
    };
    (stream::unfold(arriving, next), checksum)
}

/// A thread that computes the checksum of the pieces that it is given.
fn hash_beside(mut hasher: Hasher) -> (SyncSender<Bytes>, JoinHandle<HexBinary>) {
    let (copies, read) = sync_channel::<Bytes>(PIECES_IN_FLIGHT);
    let hashing = tokio::task::spawn_blocking(move || {
        while let Ok(piece) = read.recv() {
            hasher.update(&piece);
        }
        hasher.finish()
    });
    (copies, hashing)
}

/// Gives every piece of a file to both, or to the one that there is.
fn pass_on(
    file: &File,
    size: u64,
    pieces: &mpsc::Sender<io::Result<Bytes>>,
    copies: Option<&SyncSender<Bytes>>,
) -> io::Result<()> {
    let mut place = 0_u64;
    loop {
        let piece = match read_piece(file, place) {
            Ok(piece) if piece.is_empty() => return Ok(()),
            Ok(piece) => piece,
            Err(error) => {
                // Whoever sends the pieces has to know why there are no more.
                let told = io::Error::new(error.kind(), error.to_string());
                let _ = pieces.blocking_send(Err(told));
                return Err(error);
            }
        };
        place = place.saturating_add(piece.len() as u64);
        let sent = pieces.blocking_send(Ok(piece.clone())).is_ok();
        if place > size {
            // Whoever sends may have got what was announced, and does not look at what comes after it.
            return Err(longer());
        }
        let copied = copies.is_none_or(|copies| copies.send(piece).is_ok());
        if !(sent && copied) {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
    }
}

/// What a reading thread has come to.
fn outcome<T>(read: Result<io::Result<T>, JoinError>) -> Result<T, String> {
    match read {
        Ok(read) => read.map_err(|error| error.to_string()),
        Err(_) => Err(ENDED.to_owned()),
    }
}

const ENDED: &str = "reading was ended";

/// The piece at a place; empty at the end.
fn read_piece(file: &File, place: u64) -> io::Result<Bytes> {
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        match file.read_at(&mut buffer, place) {
            Ok(count) => {
                buffer.truncate(count);
                return Ok(buffer.into());
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Reads by position: the file's own place belongs to whoever offers it.
fn read_through(file: &File, mut hasher: Hasher, stopped: &AtomicBool) -> io::Result<HexBinary> {
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut place = 0_u64;
    loop {
        if stopped.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let count = match file.read_at(&mut buffer, place) {
            Ok(0) => return Ok(hasher.finish()),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        hasher.update(buffer.get(..count).unwrap_or_default());
        place = place.saturating_add(count as u64);
    }
}

struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::{future::Future, time::Duration};

    use futures_util::StreamExt as _;
    use pillarbox_messages::ChecksumType;

    use super::*;
    use crate::digests::plain_spec;

    const SPEC: ChecksumSpec = plain_spec(ChecksumType::Md5);

    /// A file of so many bytes, and its name.
    fn file(size: u64) -> (tempfile::NamedTempFile, Vec<u8>) {
        let content: Vec<u8> = (0..size).map(|n| (n % 251).to_le_bytes()[0]).collect();
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), &content).unwrap();
        (file, content)
    }

    fn md5(content: &[u8]) -> HexBinary {
        let mut hasher = Hasher::new(&SPEC).unwrap();
        hasher.update(content);
        hasher.finish()
    }

    async fn soon<T>(future: impl Future<Output = T>) -> T {
        tokio::time::timeout(Duration::from_secs(20), future)
            .await
            .unwrap()
    }

    #[tokio::test]
    async fn a_file_is_small_up_to_the_limit() {
        for (size, small) in [
            (0, true),
            (1, true),
            (SMALL_BYTES, true),
            (SMALL_BYTES + 1, false),
        ] {
            let (file, content) = file(size);
            let opened = open(file.path(), Some(&SPEC)).await.unwrap();
            assert_eq!(opened.size, size);
            assert_eq!(opened.checksum, small.then(|| md5(&content)), "{size}");
            assert_eq!(opened.content, small.then(|| content.clone().into()));
            for wanted in [false, true] {
                let hasher = wanted.then(|| Hasher::new(&SPEC).unwrap());
                let file = opened.file.try_clone().unwrap();
                let (pieces, checksum) = read_for(file, size, hasher);
                let all: Vec<Bytes> = soon(pieces.map(Result::unwrap).collect()).await;
                assert_eq!(all.concat(), content);
                assert_eq!(soon(checksum).await, Ok(wanted.then(|| md5(&content))));
            }
        }
    }

    #[test]
    fn a_small_file_that_grows_is_not_cut_off() {
        let read = |size| read_small(file(size).0.as_file());
        assert_eq!(read(SMALL_BYTES).unwrap().len() as u64, SMALL_BYTES);
        let error = read(SMALL_BYTES + 1).unwrap_err();
        assert!(error.to_string().contains("longer"), "{error}");
    }

    #[tokio::test]
    async fn a_large_file_that_grows_by_whole_pieces_is_noticed() {
        let size = BUFFER_BYTES as u64;
        let (file, _) = file(2 * size);
        let file = file.reopen().unwrap();
        let (pieces, checksum) = read_for(file, size, Some(Hasher::new(&SPEC).unwrap()));
        let mut pieces = Box::pin(pieces);
        assert_eq!(pieces.next().await.unwrap().unwrap().len(), BUFFER_BYTES);
        drop(pieces);
        let error = soon(checksum).await.unwrap_err();
        assert!(error.contains("longer"), "{error}");
    }

    #[tokio::test]
    async fn reading_ends_with_its_reader() {
        let size = 16 * BUFFER_BYTES as u64;
        let (file, _) = file(size);
        let file = file.reopen().unwrap();
        let (pieces, checksum) = read_for(file, size, Some(Hasher::new(&SPEC).unwrap()));
        drop(pieces);
        assert!(soon(checksum).await.is_err());
    }
}
