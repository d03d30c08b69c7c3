//! The journal: what a named client has begun and not yet told the end of, one file for each operation.
//!
//! A file is replaced as a whole and is on the disk before anybody acts on what it says. One process at a time has a
//! client's journal.

mod directory;
mod entry;
mod frame;
mod slot;
#[cfg(test)]
mod tests;

use std::{
    collections::BTreeSet,
    fs::{self, File, OpenOptions},
    io::{self, Read as _},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use pillarbox_messages::{ComponentId, CorrelationId};
use rustix::fs::{FlockOperation, flock};
use sha2::{Digest as _, Sha256};
use thiserror::Error;

pub use self::directory::make_directory;
pub(crate) use self::{
    entry::{Entry, KeptCargo, KeptPath, State, modified_ns},
    slot::Slot,
};

/// How an entry's name ends.
const ENTRY: &str = ".conversation";
/// How the name of one that is being written ends.
const UNFINISHED: &str = ".new";
/// What is put behind the name of a file that can't be used.
const ASIDE: &str = ".unreadable";
/// A longer name is replaced by its digest.
const LONGEST_NAME: usize = 200;
const LOCK: &str = "lock";
/// No more operations than this are open at a time.
const MOST_ENTRIES: usize = 10_000;
/// A longer file is no entry.
const LONGEST_ENTRY: u64 = 16 << 20;

/// The journal of one named client. Clones share it; its lock goes with the last of them, or with the process.
#[derive(Clone, Debug)]
pub struct Journal {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    client: ComponentId,
    directory: PathBuf,
    /// Open, so that it can be synced.
    handle: File,
    _lock: File,
    /// What an earlier process has left and nobody has taken up yet.
    left: Mutex<BTreeSet<CorrelationId>>,
    /// Whether somebody is taking it up.
    count: AtomicUsize,
}

/// Why a journal, or one entry of it, can't be used.
#[derive(Debug, Error)]
pub enum JournalError {
    /// Another process works as this client.
    #[error("the client id '{0}' is in use by another process")]
    InUse(ComponentId),
    /// The disk refuses.
    #[error("the journal '{}': {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Too much is open.
    #[error("the journal '{}' is full: {MOST_ENTRIES} operations are open", .0.display())]
    Full(PathBuf),
    /// A file is damaged, or none of this journal's.
    #[error("'{}' is no entry of this journal: {cause}; it is kept as it is", path.display())]
    Unreadable {
        /// Where it is now.
        path: PathBuf,
        /// What is wrong with it.
        cause: String,
    },
    /// It is about something that the settings don't have any more.
    #[error("'{}' can't be resumed: {cause}", path.display())]
    Unresumable {
        /// Where it is.
        path: PathBuf,
        /// What is missing.
        cause: String,
    },
}

impl Journal {
    /// Opens the journal of this client in a directory for all clients' journals; makes it if need be.
    ///
    /// # Errors
    /// [`JournalError::InUse`] if another process has it; it can't be made or read.
    pub fn open(journals: &Path, client: &ComponentId) -> Result<Self, JournalError> {
        let directory = journals.join(safe_name(client.as_str()));
        let io = |source| JournalError::Io {
            path: directory.clone(),
            source,
        };
        make_directory(journals).map_err(io)?;
        make_directory(&directory).map_err(io)?;
        let lock = lock(&directory)
            .map_err(io)?
            .ok_or_else(|| JournalError::InUse(client.clone()))?;
        let left = entries(&directory).map_err(io)?;
        Ok(Self {
            shared: Arc::new(Shared {
                handle: File::open(&directory).map_err(io)?,
                client: client.clone(),
                directory,
                _lock: lock,
                count: AtomicUsize::new(left.len()),
                left: Mutex::new(left),
            }),
        })
    }

    /// How many operations an earlier process has left open and nobody has taken up yet.
    #[must_use]
    pub fn left_open(&self) -> usize {
        self.left().len()
    }

    /// Whose it is.
    #[must_use]
    pub fn client(&self) -> &ComponentId {
        &self.shared.client
    }

    /// Whether this is a conversation that an earlier process has left and nobody has taken up yet.
    pub(crate) fn is_left(&self, correlation: &CorrelationId) -> bool {
        self.left().contains(correlation)
    }

    /// Reads what an earlier process has left and nobody has taken up yet. What is no entry is put aside.
    pub(crate) fn read_left(&self) -> Vec<Result<(Entry, Slot), JournalError>> {
        let left = self.left().clone();
        left.iter().map(|it| self.read(it)).collect()
    }

    /// Answers to this conversation go where it has been taken up.
    pub(crate) fn taken_up(&self, correlation: &CorrelationId) {
        self.left().remove(correlation);
    }

    /// A place for a conversation that begins.
    pub(crate) fn slot(&self, correlation: &CorrelationId) -> Result<Slot, JournalError> {
        if self.shared.count.fetch_add(1, Ordering::Relaxed) >= MOST_ENTRIES {
            self.shared.count.fetch_sub(1, Ordering::Relaxed);
            return Err(JournalError::Full(self.shared.directory.clone()));
        }
        Ok(Slot::new(self.clone(), correlation))
    }

    fn left(&self) -> std::sync::MutexGuard<'_, BTreeSet<CorrelationId>> {
        self.shared
            .left
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self, correlation: &CorrelationId) -> Result<(Entry, Slot), JournalError> {
        let path = self.path(correlation);
        let bytes = read_bounded(&path).map_err(|source| JournalError::Io {
            path: path.clone(),
            source,
        })?;
        let mine = |entry: &Entry| {
            entry.correlation() == correlation && entry.client() == Some(&self.shared.client)
        };
        match frame::decode(&bytes) {
            Ok(entry) if mine(&entry) => Ok((entry, Slot::new(self.clone(), correlation))),
            Ok(_) => {
                let cause = "it is about another conversation".to_owned();
                Err(self.put_aside(correlation, path, cause))
            }
            Err(cause) => Err(self.put_aside(correlation, path, cause.to_string())),
        }
    }

    fn put_aside(&self, correlation: &CorrelationId, path: PathBuf, cause: String) -> JournalError {
        self.taken_up(correlation);
        self.shared.count.fetch_sub(1, Ordering::Relaxed);
        let mut name = path.clone().into_os_string();
        name.push(ASIDE);
        let aside = PathBuf::from(name);
        let path = match fs::rename(&path, &aside) {
            Ok(()) => aside,
            Err(_) => path,
        };
        JournalError::Unreadable { path, cause }
    }

    fn path(&self, correlation: &CorrelationId) -> PathBuf {
        let name = safe_name(correlation.as_str()) + ENTRY;
        self.shared.directory.join(name)
    }
}

/// The directory's lock; none if another process has it.
fn lock(directory: &Path) -> io::Result<Option<File>> {
    let lock = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(directory.join(LOCK))?;
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(lock)),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The conversations that have an entry; what was being written is removed.
fn entries(directory: &Path) -> io::Result<BTreeSet<CorrelationId>> {
    let mut found = BTreeSet::new();
    for file in fs::read_dir(directory)? {
        let file = file?;
        let name = file.file_name();
        let Some(name) = name.to_str() else { continue };
        if name.ends_with(UNFINISHED) {
            fs::remove_file(file.path())?;
        } else if let Some(correlation) = name.strip_suffix(ENTRY) {
            found.insert(CorrelationId::from(correlation));
        }
    }
    Ok(found)
}

fn read_bounded(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let limit = LONGEST_ENTRY.saturating_add(1);
    File::open(path)?.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A file name for an id, the same for the same id and no other: whatever could mean something to a file system is
/// written in hex.
fn safe_name(id: &str) -> String {
    let mut name = String::with_capacity(id.len());
    for byte in id.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => name.push(char::from(byte)),
            _ => name.push_str(&format!("%{byte:02x}")),
        }
    }
    if name.len() <= LONGEST_NAME {
        return name;
    }
    let digest = Sha256::digest(id)
        .iter()
        .fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"));
    format!("~{digest}")
}
