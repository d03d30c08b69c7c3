//! file: addresses. Symbolic links may lead around inside the allowed roots, not out of them.

use std::{
    fs::{File, OpenOptions},
    io::{self, Seek, SeekFrom},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use futures_util::StreamExt;
use rustix::fs::OFlags;
use uuid::Uuid;

use super::{Download, Part, source::Source};
use crate::{
    disk::{self, Reader, TemporaryFile, Writer},
    error::{ExchangeError, TransferError},
    policy::{Rules, not_allowed},
};

pub(crate) async fn get(
    rules: &Arc<Rules>,
    address: &str,
    path: PathBuf,
    part: Option<Part>,
) -> Result<Download, ExchangeError> {
    let (file, length) = in_place(rules, address, path, move |path| open_part(path, part)).await?;
    Ok(Download::file(address, length, Reader::start(file, length)))
}

pub(crate) async fn size(
    rules: &Arc<Rules>,
    address: &str,
    path: PathBuf,
) -> Result<u64, ExchangeError> {
    in_place(rules, address, path, |path| {
        open(path).map(|(_file, length)| length)
    })
    .await
}

pub(crate) async fn put(
    rules: &Arc<Rules>,
    address: &str,
    path: PathBuf,
    mut source: Source,
) -> Result<(), ExchangeError> {
    let failed = |error| ExchangeError::transfer(address, TransferError::File(error));
    let target = for_writing(rules, address, path).await?;
    let temporary = target.with_file_name(format!(".{}.part", Uuid::new_v4()));
    let create = move || TemporaryFile::create(temporary, disk::create_new);
    let mut writer = Writer::start(create, target, None);
    while let Some(buffer) = source.next().await {
        // The source has kept its own failure; the file is dropped with the writer.
        let buffer = buffer.map_err(failed)?;
        writer.write(buffer).await.map_err(failed)?;
    }
    writer.publish().await.map(drop).map_err(failed)
}

pub(crate) async fn delete(
    rules: &Arc<Rules>,
    address: &str,
    path: PathBuf,
) -> Result<bool, ExchangeError> {
    let work = Work::new(rules, address);
    blocking(move || {
        let path = match work.directory_of(&path) {
            Err(error) if error.io_kind() == Some(io::ErrorKind::NotFound) => return Ok(false),
            place => place?,
        };
        match std::fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(work.failed(error)),
        }
    })
    .await
}

/// Finds the real place of an existing file and works on it.
async fn in_place<T: Send + 'static>(
    rules: &Arc<Rules>,
    address: &str,
    path: PathBuf,
    use_file: impl FnOnce(&Path) -> Result<T, TransferError> + Send + 'static,
) -> Result<T, ExchangeError> {
    let work = Work::new(rules, address);
    blocking(move || {
        let path = work.canonical(&path)?;
        use_file(&path).map_err(|error| ExchangeError::transfer(&work.address, error))
    })
    .await
}

/// The real place of a file that is about to be written.
async fn for_writing(
    rules: &Arc<Rules>,
    address: &str,
    path: PathBuf,
) -> Result<PathBuf, ExchangeError> {
    let work = Work::new(rules, address);
    blocking(move || work.directory_of(&path)).await
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ExchangeError> + Send + 'static,
) -> Result<T, ExchangeError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(ExchangeError::local(
            "working on a file",
            io::Error::other(error),
        )),
    }
}

/// What a piece of disk work has to know.
struct Work {
    rules: Arc<Rules>,
    address: String,
}

impl Work {
    fn new(rules: &Arc<Rules>, address: &str) -> Self {
        Self {
            rules: Arc::clone(rules),
            address: address.to_owned(),
        }
    }

    fn failed(&self, error: io::Error) -> ExchangeError {
        ExchangeError::transfer(&self.address, TransferError::File(error))
    }

    /// Where `path` really is, if that is inside the allowed roots.
    fn canonical(&self, path: &Path) -> Result<PathBuf, ExchangeError> {
        let outside = || {
            let reason = "it lies outside the file roots of this process".to_owned();
            not_allowed(&self.address, reason)
        };
        match path.canonicalize() {
            Ok(canonical) if self.rules.allows_file(&canonical) => Ok(canonical),
            // What exists outside is nobody's business.
            Err(error) if self.rules.names_file(path) => Err(self.failed(error)),
            _ => Err(outside()),
        }
    }

    /// The path with its directory's real place; the last part may not exist, and is not followed.
    fn directory_of(&self, path: &Path) -> Result<PathBuf, ExchangeError> {
        let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(self.failed(io::ErrorKind::IsADirectory.into()));
        };
        Ok(self.canonical(directory)?.join(name))
    }
}

fn open_part(path: &Path, part: Option<Part>) -> Result<(File, u64), TransferError> {
    let (mut file, length) = open(path)?;
    let Some(part) = part else {
        return Ok((file, length));
    };
    if part.offset >= length {
        return Err(TransferError::OutOfRange);
    }
    file.seek(SeekFrom::Start(part.offset))
        .map_err(TransferError::File)?;
    Ok((file, part.length.get().min(length - part.offset)))
}

/// Opens a regular file, given by its canonical path, and tells its size.
fn open(path: &Path) -> Result<(File, u64), TransferError> {
    // A link put in since the path was looked at isn't followed, and a pipe isn't waited for.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path)
        .map_err(TransferError::File)?;
    let metadata = file.metadata().map_err(TransferError::File)?;
    if !metadata.is_file() {
        let error = io::Error::new(io::ErrorKind::InvalidInput, "it isn't a file");
        return Err(TransferError::File(error));
    }
    Ok((file, metadata.len()))
}
