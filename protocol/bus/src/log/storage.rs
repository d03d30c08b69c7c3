//! Files as the log sees them, so that tests can take them away.

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use rustix::fs::{FallocateFlags, FlockOperation};

/// A directory of files.
pub(crate) trait Storage: Send + 'static {
    /// One of its files.
    type File: LogFile;

    /// What to call the directory in an error.
    fn name(&self) -> PathBuf;

    /// The names of all files.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Makes a file of this length, filled with zeros whose room on the disk is certain. Replaces an old one.
    fn create(&self, name: &str, length: u64) -> io::Result<Self::File>;

    /// Opens a file to read and write.
    fn open(&self, name: &str) -> io::Result<Self::File>;

    /// Gives a file another name.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes certain that names made, changed and removed so far stay so.
    fn sync_names(&self) -> io::Result<()>;
}

/// A file.
pub(crate) trait LogFile: Send + 'static {
    /// Its whole content.
    fn read(&self) -> io::Result<Vec<u8>>;

    /// Writes all of the bytes.
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Cuts it to this length and fills it up again with zeros to its full one.
    fn wipe_from(&mut self, offset: u64, full_length: u64) -> io::Result<()>;

    /// Makes certain that everything written so far stays.
    fn sync(&mut self) -> io::Result<()>;
}

/// A real directory, locked for this process.
#[derive(Debug)]
pub(crate) struct Directory {
    path: PathBuf,
    /// Open for [`Storage::sync_names`].
    handle: File,
    /// Holds the lock, which the kernel releases with the process.
    lock: File,
}

const LOCK_FILE: &str = "lock";

impl Directory {
    /// Opens and locks a directory, made if it isn't there. `Ok(None)`: somebody else has it.
    pub(crate) fn open(path: &Path) -> io::Result<Option<Self>> {
        make_directory(path)?;
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path.join(LOCK_FILE))?;
        match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        let handle = File::open(path)?;
        handle.sync_all()?;
        Ok(Some(Self {
            path: path.to_owned(),
            handle,
            lock,
        }))
    }
}

impl Drop for Directory {
    /// Closing is not enough: a child that is just being started has the descriptor too, for a moment.
    fn drop(&mut self) {
        let _ = rustix::fs::flock(&self.lock, FlockOperation::Unlock);
    }
}

impl Storage for Directory {
    type File = File;

    fn name(&self) -> PathBuf {
        self.path.clone()
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            if let Ok(name) = entry?.file_name().into_string() {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn create(&self, name: &str, length: u64) -> io::Result<File> {
        let path = self.path.join(name);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&path)?;
        if let Err(error) = allocate(&file, length).and_then(|()| file.sync_all()) {
            // Half a file helps nobody, and its room may help others.
            let _ = fs::remove_file(&path);
            return Err(error);
        }
        Ok(file)
    }

    fn open(&self, name: &str) -> io::Result<File> {
        OpenOptions::new()
            .read(true)
            .write(true)
            .open(self.path.join(name))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path.join(from), self.path.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path.join(name))
    }

    fn sync_names(&self) -> io::Result<()> {
        self.handle.sync_all()
    }
}

impl LogFile for File {
    fn read(&self) -> io::Result<Vec<u8>> {
        let length = usize::try_from(self.metadata()?.len()).map_err(io::Error::other)?;
        let mut bytes = vec![0; length];
        self.read_exact_at(&mut bytes, 0)?;
        Ok(bytes)
    }

    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.write_all_at(bytes, offset)
    }

    fn wipe_from(&mut self, offset: u64, full_length: u64) -> io::Result<()> {
        self.set_len(offset)?;
        if full_length > offset {
            // On a full disk consuming must still be possible.
            let _ = allocate(self, full_length);
        }
        self.sync_all()
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }
}

/// Makes a directory with all above it, each of them certain to stay: what is kept in it is worth no more.
fn make_directory(path: &Path) -> io::Result<()> {
    let above = match path.parent() {
        Some(above) if above.as_os_str().is_empty() => Path::new("."),
        Some(above) => above,
        None => return Ok(()),
    };
    if !path.is_dir() {
        make_directory(above)?;
        match fs::create_dir(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
    }
    File::open(above)?.sync_all()
}

/// Gives a file room on the disk. Where the file system can't promise it, the file is just made that long.
fn allocate(file: &File, length: u64) -> io::Result<()> {
    match rustix::fs::fallocate(file, FallocateFlags::empty(), 0, length) {
        Ok(()) => Ok(()),
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => file.set_len(length),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_free_when_it_is_dropped_also_while_a_child_is_being_started() {
        let directory = tempfile::tempdir().unwrap();
        let first = Directory::open(directory.path()).unwrap().unwrap();
        assert!(Directory::open(directory.path()).unwrap().is_none());
        let _childs = first.lock.try_clone().unwrap();
        drop(first);
        assert!(Directory::open(directory.path()).unwrap().is_some());
    }
}
