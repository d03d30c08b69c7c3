//! Reading a file that is to be put, for its length and checksum.

use std::{
    fs::File,
    io,
    os::unix::fs::FileExt as _,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use pillarbox_messages::{ChecksumSpec, HexBinary};

use crate::{digests::Hasher, error::ClientError, validate};

/// A file to be put, open: what is offered later is what was read here, even if the name has got another meaning.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) file: File,
    pub(crate) size: u64,
    /// Of a small file, if it was asked for; a large one is for [`examine`].
    pub(crate) checksum: Option<HexBinary>,
}

/// Up to this length a file is read at once; beyond, it is read while others are asked and the file is offered.
const SMALL_BYTES: u64 = 64 * 1024;
/// How much is read at once.
const BUFFER_BYTES: usize = 256 * 1024;

/// Opens the file and, if it is small and a spec is given, reads it through for its checksum.
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
        let hasher = hasher.filter(|_| size <= SMALL_BYTES);
        let read = |hasher| read_through(&file, hasher, &AtomicBool::new(false));
        let checksum = hasher.map(read).transpose().map_err(error)?;
        Ok(Opened {
            file,
            size,
            checksum,
        })
    });
    opening.await.unwrap_or(Err(ClientError::Closed))
}

/// Reads a file through for its checksum. Stops reading when dropped.
///
/// # Errors
/// What the operating system said, or that the checksum can't be computed.
pub(crate) async fn examine(file: File, spec: ChecksumSpec) -> Result<HexBinary, String> {
    let hasher = Hasher::new(&spec).map_err(|error| error.to_string())?;
    let stop = StopOnDrop(Arc::default());
    let stopped = Arc::clone(&stop.0);
    let reading = tokio::task::spawn_blocking(move || read_through(&file, hasher, &stopped));
    match reading.await {
        Ok(read) => read.map_err(|error| error.to_string()),
        Err(_) => Err("reading was ended".to_owned()),
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
