//! Reading a file that is to be put: once, for its length and checksum.

use std::{
    fs::File,
    io::{self, Read},
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
pub(crate) struct Examined {
    pub(crate) file: File,
    pub(crate) size: u64,
    /// None if it was not asked for.
    pub(crate) checksum: Option<HexBinary>,
}

/// How much is read at once.
const BUFFER_BYTES: usize = 256 * 1024;

/// Opens the file and, if a spec is given, reads it through for its checksum. Stops reading when dropped.
pub(crate) async fn examine(
    path: &Path,
    spec: Option<ChecksumSpec>,
) -> Result<Examined, ClientError> {
    let path = path.to_path_buf();
    let stop = StopOnDrop(Arc::default());
    let stopped = Arc::clone(&stop.0);
    let reading = tokio::task::spawn_blocking(move || {
        let mut file = validate::source_file(&path)?;
        let error = |source| ClientError::Source {
            path: path.clone(),
            source,
        };
        let Some(spec) = spec else {
            let size = file.metadata().map_err(error)?.len();
            return Ok(Examined {
                file,
                size,
                checksum: None,
            });
        };
        let hasher = Hasher::new(&spec)?;
        let (size, checksum) = read_through(&mut file, hasher, &stopped).map_err(error)?;
        Ok(Examined {
            file,
            size,
            checksum: Some(checksum),
        })
    });
    reading.await.unwrap_or(Err(ClientError::Closed))
}

fn read_through(
    file: &mut File,
    mut hasher: Hasher,
    stopped: &AtomicBool,
) -> io::Result<(u64, HexBinary)> {
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut size = 0_u64;
    loop {
        if stopped.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let count = match file.read(&mut buffer) {
            Ok(0) => return Ok((size, hasher.finish())),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        hasher.update(buffer.get(..count).unwrap_or_default());
        size = size.saturating_add(count as u64);
    }
}

struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
