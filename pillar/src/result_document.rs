//! Result documents: written to a file of ours, then sent to the address that the request named. Gone afterwards,
//! whatever happens.
//!
//! The disk that they take room on is that of the index, which must not lack it: so few are written at a time, and each
//! only while enough is left.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rustix::fs::statvfs;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tracing::warn;
use uuid::Uuid;

use crate::{archive::disk::OffThread, context::Context, refusal::Refusal, shortage::Lacking};

/// Where documents are written before they are sent.
#[derive(Debug)]
pub(crate) struct Results {
    directory: PathBuf,
    /// Bytes of its file system that are left for the index.
    left: u64,
    turns: Arc<Semaphore>,
}

impl Results {
    /// An empty directory of this name. `minimum_size_left`, in bytes, is how much is left in archive directories:
    /// nobody who allows less there wants more left here. Blocks.
    pub(crate) fn open(directory: PathBuf, minimum_size_left: u64) -> io::Result<Self> {
        match fs::remove_dir_all(&directory) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        fs::create_dir_all(&directory)?;
        Ok(Self {
            directory,
            left: minimum_size_left.min(LEFT_FOR_THE_INDEX),
            turns: Arc::new(Semaphore::new(AT_A_TIME)),
        })
    }

    /// An empty document, as soon as not too many others are on their way.
    pub(crate) async fn begin(&self) -> Result<Document, Refusal> {
        let turn = Arc::clone(&self.turns).acquire_owned().await;
        let turn = turn.map_err(Refusal::unexpected)?;
        let (directory, left) = (self.directory.clone(), self.left);
        let written = blocking(move || Written::create(&directory, left)).await?;
        Ok(Document {
            _turn: turn,
            written: OffThread::new(Arc::new(written)),
            buffer: Buffer::default(),
        })
    }
}

/// A document that is being written.
#[derive(Debug)]
pub(crate) struct Document {
    _turn: OwnedSemaphorePermit,
    written: OffThread<Arc<Written>>,
    buffer: Buffer,
}

impl Document {
    /// Where it is written to. Call [`write_out`](Self::write_out) after each item.
    pub(crate) fn writer(&self) -> Buffer {
        self.buffer.clone()
    }

    /// Writes to the disk what has come together, if that is enough.
    pub(crate) async fn write_out(&self) -> Result<(), Refusal> {
        if self.buffer.lock().len() < BUFFER_BYTES {
            return Ok(());
        }
        self.flush().await
    }

    /// Sends what was written.
    pub(crate) async fn send(self, context: &Context, address: &str) -> Result<(), Refusal> {
        self.flush().await?;
        context.shortages.is_over(Lacking::Results);
        let path = &self.written.inner().path;
        context.exchange.put_file(address, path).await?;
        Ok(())
    }

    async fn flush(&self) -> Result<(), Refusal> {
        let bytes = std::mem::take(&mut *self.buffer.lock());
        let written = Arc::clone(self.written.inner());
        blocking(move || written.append(&bytes)).await
    }
}

/// What is not on the disk yet. Bounded by whoever writes it out after each item.
#[derive(Clone, Debug, Default)]
pub(crate) struct Buffer(Arc<Mutex<Vec<u8>>>);

impl Buffer {
    fn lock(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The document's file; gone when dropped.
#[derive(Debug)]
struct Written {
    file: File,
    path: PathBuf,
    left: u64,
}

impl Written {
    fn create(directory: &Path, left: u64) -> io::Result<Self> {
        let path = directory.join(Uuid::new_v4().to_string());
        let file = File::create_new(&path)?;
        let written = Self { file, path, left };
        written.append(&[])?;
        Ok(written)
    }

    /// Writes, if enough is left afterwards.
    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        let status = statvfs(&self.path)?;
        let available = status.f_bavail.saturating_mul(status.f_frsize);
        let more = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if available < self.left.saturating_add(more) {
            let left = self.left;
            let text = format!("{available} bytes are free, {left} must be left");
            return Err(io::Error::new(io::ErrorKind::StorageFull, text));
        }
        (&self.file).write_all(bytes)
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.path) {
            warn!(path = %self.path.display(), %error, "a result document could not be removed");
        }
    }
}

async fn blocking<T: Send + 'static>(
    job: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, Refusal> {
    let done = tokio::task::spawn_blocking(job).await;
    done.map_err(Refusal::unexpected)?.map_err(failed)
}

/// The document can't be written.
pub(crate) fn failed(error: impl Into<io::Error>) -> Refusal {
    let error = error.into();
    let text = format!("writing the result document: {error}");
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            Refusal::disk_full(text).lacking(Lacking::Results)
        }
        _ => Refusal::unexpected(text),
    }
}

const BUFFER_BYTES: usize = 256 << 10;
/// Documents on their way at a time; the others wait.
const AT_A_TIME: usize = 4;
/// Bytes that the index may need meanwhile.
const LEFT_FOR_THE_INDEX: u64 = 256 << 20;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::archive::tests::full::Mounted;

    const SOON: Duration = Duration::from_secs(20);

    fn documents(directory: &Path) -> usize {
        fs::read_dir(directory).unwrap().count()
    }

    async fn until_gone(directory: &Path) {
        let gone = async {
            while documents(directory) > 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(SOON, gone).await.unwrap();
    }

    #[tokio::test]
    async fn so_many_documents_are_written_at_a_time() {
        let directory = tempfile::tempdir().unwrap();
        let results = Results::open(directory.path().join("results"), 0).unwrap();
        let mut documents = Vec::new();
        for _ in 0..AT_A_TIME {
            documents.push(results.begin().await.unwrap());
        }
        let mut next = std::pin::pin!(results.begin());
        let at_once = tokio::time::timeout(Duration::from_millis(1), next.as_mut()).await;
        assert!(at_once.is_err());
        documents.pop();
        tokio::time::timeout(SOON, next).await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn what_is_written_comes_to_the_disk_in_large_pieces() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path().join("results");
        let results = Results::open(directory.clone(), 0).unwrap();
        let document = results.begin().await.unwrap();
        let size = || fs::metadata(&document.written.inner().path).unwrap().len();
        let mut writer = document.writer();
        writer.write_all(&vec![7; BUFFER_BYTES - 1]).unwrap();
        document.write_out().await.unwrap();
        assert_eq!(size(), 0);
        writer.write_all(&[7]).unwrap();
        document.write_out().await.unwrap();
        assert_eq!(size(), BUFFER_BYTES as u64);
        writer.write_all(&[7]).unwrap();
        document.flush().await.unwrap();
        assert_eq!(size(), BUFFER_BYTES as u64 + 1);
        drop(document);
        until_gone(&directory).await;
    }

    #[tokio::test]
    async fn room_is_left_for_the_index() {
        let Some(mounted) = Mounted::new() else {
            eprintln!("SKIPPED room_is_left_for_the_index: no right to mount a tmpfs");
            return;
        };
        let directory = mounted.0.path().join("results");
        let results = Results::open(directory.clone(), u64::MAX).unwrap();
        let refused = results.begin().await.unwrap_err();
        assert!(
            refused.alarm_text().contains("268435456 must be left"),
            "{refused:?}"
        );
        until_gone(&directory).await;
        for left in [600 << 10, 0] {
            let results = Results::open(directory.clone(), left).unwrap();
            let document = results.begin().await.unwrap();
            let mut pieces = 0;
            let refused = loop {
                document.writer().write_all(&vec![7; BUFFER_BYTES]).unwrap();
                match document.write_out().await {
                    Ok(()) => pieces += 1,
                    Err(refused) => break refused,
                }
            };
            assert_eq!(pieces, if left > 0 { 1 } else { 4 });
            assert_eq!(refused.answer, "the pillar's disk is full");
            drop(document);
            until_gone(&directory).await;
        }
    }
}
