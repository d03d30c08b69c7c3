//! The directory below which a process keeps everything: locked by one process, marked with its format.

use std::{
    fs::{self, File, OpenOptions},
    io::{ErrorKind, Read, Write},
    path::{Path, PathBuf},
};

use pillarbox_client::journal::make_directory;
use rustix::fs::{FlockOperation, flock};
use thiserror::Error;

/// The format that this version writes and reads.
const FORMAT: &str = "pillarbox data 1\n";
const FORMAT_FILE: &str = "format";
const LOCK_FILE: &str = "lock";

/// A locked data directory; the lock goes with the value, or with the process.
#[derive(Debug)]
pub struct DataDirectory {
    path: PathBuf,
    _lock: File,
}

/// Why a data directory can't be used.
#[derive(Debug, Error)]
pub enum DataDirectoryError {
    /// Another process has it.
    #[error("data directory {} is in use by another process; stop that one, or set another 'data' in node.toml", .0.display())]
    InUse(PathBuf),
    /// It was written by another version.
    #[error("data directory {} has the format '{found}', this version needs '{}'; use the version that made it", path.display(), FORMAT.trim_end())]
    Format {
        /// The directory.
        path: PathBuf,
        /// What its format file says.
        found: String,
    },
    /// It can't be made, read or written.
    #[error("data directory {}: {source}; make it writable, or set another 'data' in node.toml", path.display())]
    Io {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

impl DataDirectory {
    /// Makes the directory if need be and locks it.
    ///
    /// # Errors
    /// If it is locked by another process, of another format, or can't be written.
    pub fn open(path: &Path) -> Result<Self, DataDirectoryError> {
        let io = |source| DataDirectoryError::Io {
            path: path.to_owned(),
            source,
        };
        make(path)?;
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path.join(LOCK_FILE))
            .map_err(io)?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                return Err(DataDirectoryError::InUse(path.to_owned()));
            }
            Err(error) => return Err(io(error.into())),
        }
        Ok(Self {
            path: path.to_owned(),
            _lock: lock,
        })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Makes a data directory if need be, or checks that it can be used, for who shares it with others: what is locked
/// is a part of it.
///
/// # Errors
/// If it is of another format, or can't be written.
pub(crate) fn make(path: &Path) -> Result<(), DataDirectoryError> {
    make_directory(path).map_err(|source| DataDirectoryError::Io {
        path: path.to_owned(),
        source,
    })?;
    check_format(path)
}

/// Reads the format mark, or writes it into a new directory.
fn check_format(path: &Path) -> Result<(), DataDirectoryError> {
    let io = |source| DataDirectoryError::Io {
        path: path.to_owned(),
        source,
    };
    let file = path.join(FORMAT_FILE);
    let mut found = String::new();
    match File::open(&file) {
        Ok(opened) => opened.take(100).read_to_string(&mut found).map_err(io)?,
        Err(error) if error.kind() == ErrorKind::NotFound => return write_format(path).map_err(io),
        Err(error) => return Err(io(error)),
    };
    if found == FORMAT {
        Ok(())
    } else {
        let found = found.trim_end().to_owned();
        Err(DataDirectoryError::Format {
            path: path.to_owned(),
            found,
        })
    }
}

/// Whole or not at all: a crash in between must not leave an empty mark.
fn write_format(path: &Path) -> std::io::Result<()> {
    // Several processes may do so at once.
    let temporary = path.join(format!("{FORMAT_FILE}.{}.new", std::process::id()));
    let mut file = File::create(&temporary)?;
    file.write_all(FORMAT.as_bytes())?;
    file.sync_all()?;
    fs::rename(&temporary, path.join(FORMAT_FILE))?;
    File::open(path)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_owner_and_one_format() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("data");
        let first = DataDirectory::open(&path).unwrap();
        assert!(matches!(
            DataDirectory::open(&path),
            Err(DataDirectoryError::InUse(_))
        ));
        drop(first);
        DataDirectory::open(&path).unwrap();
        fs::write(path.join(FORMAT_FILE), "pillarbox data 2\n").unwrap();
        assert!(matches!(
            DataDirectory::open(&path),
            Err(DataDirectoryError::Format { .. })
        ));
    }

    #[test]
    fn a_file_in_its_place_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("data");
        fs::write(&path, "").unwrap();
        let error = DataDirectory::open(&path).unwrap_err();
        assert!(error.to_string().contains(&path.display().to_string()));
    }
}
