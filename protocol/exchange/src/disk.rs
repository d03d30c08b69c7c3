//! Files read and written beside the async workers: one blocking thread per transfer, joined to it
//! by a short queue of buffers. Handing over every buffer as a task of its own would be slower, and
//! writing on the async workers would stop everything else while the disk is busy.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read, Write},
    path::{Path, PathBuf},
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_util::Stream;
use pillarbox_messages::clock::SharedClock;
use tokio::{
    sync::mpsc,
    task::{JoinHandle, spawn_blocking},
};

/// How much is read from a file at a time.
pub(crate) const BUFFER_BYTES: u64 = 256 * 1024;

/// How many buffers wait between the disk and the network.
const QUEUED_BUFFERS: usize = 4;

/// Runs a short piece of disk work beside the async workers.
pub(crate) async fn blocking<T, E>(
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, E>
where
    T: Send + 'static,
    E: From<io::Error> + Send + 'static,
{
    match spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(io::Error::other(error).into()),
    }
}

/// The bytes of a file, from its current position.
#[derive(Debug)]
pub(crate) struct Reader {
    buffers: mpsc::Receiver<io::Result<Bytes>>,
}

impl Reader {
    /// Starts reading `length` bytes. If the file has fewer, the last item is an error.
    pub(crate) fn start(file: File, length: u64) -> Self {
        Self::start_shown(file, length, |_| {})
    }

    /// The same; each buffer is shown to `watch` before it is given.
    pub(crate) fn start_shown(
        file: File,
        length: u64,
        watch: impl FnMut(&[u8]) + Send + 'static,
    ) -> Self {
        let (sender, buffers) = mpsc::channel(QUEUED_BUFFERS);
        if length > 0 {
            spawn_blocking(move || feed(file, length, &sender, watch));
        }
        Self { buffers }
    }
}

impl Stream for Reader {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.buffers.poll_recv(context)
    }
}

fn feed(
    mut file: File,
    length: u64,
    buffers: &mpsc::Sender<io::Result<Bytes>>,
    mut watch: impl FnMut(&[u8]),
) {
    let mut left = length;
    while left > 0 {
        let buffer = read_buffer(&mut file, left.min(BUFFER_BYTES));
        let failed = buffer.is_err();
        if let Ok(buffer) = &buffer {
            left -= buffer.len() as u64;
            watch(buffer);
        }
        if buffers.blocking_send(buffer).is_err() || failed {
            return;
        }
    }
}

/// Reads exactly so many bytes, from the file's current position.
pub(crate) fn read_exactly(file: &mut File, length: u64) -> io::Result<Bytes> {
    let mut buffer = vec![0; usize::try_from(length).unwrap_or_default()];
    file.read_exact(&mut buffer)?;
    Ok(buffer.into())
}

/// Reads up to `size` bytes; fewer than one are an error.
fn read_buffer(file: &mut File, size: u64) -> io::Result<Bytes> {
    let mut buffer = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
    file.take(size).read_to_end(&mut buffer)?;
    if buffer.is_empty() {
        return Err(io::Error::new(
            io::ErrorKind::UnexpectedEof,
            "the file became shorter",
        ));
    }
    Ok(buffer.into())
}

/// A file under a name that nobody looks for; deleted unless it is published.
#[derive(Debug)]
pub(crate) struct TemporaryFile {
    file: File,
    path: PathBuf,
    published: bool,
}

impl TemporaryFile {
    /// Makes the file at `path`, where nothing may be yet, with `create`.
    pub(crate) fn create(path: PathBuf, create: CreateFile) -> io::Result<Self> {
        let file = create(&path)?;
        Ok(Self {
            file,
            path,
            published: false,
        })
    }

    /// Moves the file to its place; true if that replaced something.
    fn publish(mut self, target: &Path, clock: Option<&SharedClock>) -> io::Result<bool> {
        if let Some(clock) = clock {
            self.file.set_modified(clock.now().into())?;
        }
        let replaced = target.symlink_metadata().is_ok();
        std::fs::rename(&self.path, target)?;
        self.published = true;
        Ok(replaced)
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        if self.published {
            return;
        }
        if let Err(error) = std::fs::remove_file(&self.path) {
            tracing::error!(path = %self.path.display(), %error, "a temporary file stays behind");
        }
    }
}

/// How a temporary file is made; tests bring disks that are full.
pub(crate) type CreateFile = fn(&Path) -> io::Result<File>;

/// Makes a file where nothing is.
pub(crate) fn create_new(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}

/// A file being written. Dropped before it is published, it leaves nothing behind.
#[derive(Debug)]
pub(crate) struct Writer {
    steps: mpsc::Sender<Step>,
    thread: JoinHandle<io::Result<bool>>,
}

#[derive(Debug)]
enum Step {
    Write(Bytes),
    Publish,
}

impl Writer {
    /// Starts writing to what `create` makes, for `target`. With a clock, the file's time of
    /// modification is taken from it when the file is published.
    pub(crate) fn start(
        create: impl FnOnce() -> io::Result<TemporaryFile> + Send + 'static,
        target: PathBuf,
        clock: Option<SharedClock>,
    ) -> Self {
        let (steps, mut queue) = mpsc::channel(QUEUED_BUFFERS);
        let thread = spawn_blocking(move || {
            let mut temporary = create()?;
            while let Some(step) = queue.blocking_recv() {
                match step {
                    Step::Write(buffer) => temporary.file.write_all(&buffer)?,
                    Step::Publish => return temporary.publish(&target, clock.as_ref()),
                }
            }
            Err(io::ErrorKind::Interrupted.into())
        });
        Self { steps, thread }
    }

    /// Hands over the next bytes. An error may be that of bytes handed over earlier; nothing more
    /// can be written then.
    pub(crate) async fn write(&mut self, buffer: Bytes) -> io::Result<()> {
        if self.steps.send(Step::Write(buffer)).await.is_ok() {
            return Ok(());
        }
        self.outcome().await.map(drop)
    }

    /// Puts the complete file in its place; true if that replaced something.
    pub(crate) async fn publish(mut self) -> io::Result<bool> {
        // If the thread has ended, its outcome says why.
        let _ = self.steps.send(Step::Publish).await;
        self.outcome().await
    }

    async fn outcome(&mut self) -> io::Result<bool> {
        match (&mut self.thread).await {
            Ok(outcome) => outcome,
            Err(error) => Err(io::Error::other(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::StreamExt;

    use super::*;

    async fn collect(mut reader: Reader) -> io::Result<Vec<u8>> {
        let mut all = Vec::new();
        while let Some(buffer) = reader.next().await {
            all.extend_from_slice(&buffer?);
        }
        Ok(all)
    }

    #[tokio::test]
    async fn reads_what_is_there_and_complains_about_the_rest() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let content: Vec<u8> = (0..600_000_u32)
            .map(|number| number.to_le_bytes()[0])
            .collect();
        std::fs::write(&path, &content).unwrap();
        let whole = Reader::start(File::open(&path).unwrap(), 600_000);
        assert_eq!(collect(whole).await.unwrap(), content);
        let empty = Reader::start(File::open(&path).unwrap(), 0);
        assert!(collect(empty).await.unwrap().is_empty());
        let short = Reader::start(File::open(&path).unwrap(), 600_001);
        assert_eq!(
            collect(short).await.unwrap_err().kind(),
            io::ErrorKind::UnexpectedEof
        );
    }

    #[tokio::test]
    async fn a_file_appears_complete_or_not_at_all() {
        let directory = tempfile::tempdir().unwrap();
        let (temporary, target) = (
            directory.path().join("temporary"),
            directory.path().join("target"),
        );
        let start = |temporary: PathBuf| {
            let create = move || TemporaryFile::create(temporary, create_new);
            Writer::start(create, target.clone(), None)
        };
        let mut writer = start(temporary.clone());
        writer.write(Bytes::from_static(b"half")).await.unwrap();
        let Writer { steps, thread } = writer;
        drop(steps);
        assert!(thread.await.unwrap().is_err());
        assert!(!temporary.exists() && !target.exists());

        for replaced in [false, true] {
            let mut writer = start(temporary.clone());
            writer.write(Bytes::from_static(b"whole")).await.unwrap();
            assert_eq!(writer.publish().await.unwrap(), replaced);
            assert_eq!(std::fs::read(&target).unwrap(), b"whole");
            assert!(!temporary.exists());
        }
    }
}
