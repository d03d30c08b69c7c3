//! A disk in memory that loses power, writes short, fails and fills up.

use std::{
    collections::BTreeMap,
    io,
    path::PathBuf,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
};

use super::storage::{LogFile, Storage};

/// What a disk writes as a whole or not, in bytes.
const SECTOR: usize = 512;

/// A disk. Clones are the same one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Disk {
    state: Arc<Mutex<State>>,
    released: Arc<Condvar>,
}

#[derive(Debug, Default)]
struct State {
    /// All files there have ever been.
    files: Vec<Content>,
    /// Names as the process sees them, and as they would be after a loss of power.
    names: BTreeMap<String, usize>,
    safe_names: BTreeMap<String, usize>,
    /// How many bytes may still be written before a write fails, leaving what fitted.
    write_budget: Option<u64>,
    /// How many syncs may still be done before one fails.
    sync_budget: Option<u64>,
    /// Syncs take until this is over.
    held: bool,
    /// Making files fails for want of room.
    full: bool,
}

#[derive(Debug, Default)]
struct Content {
    now: Vec<u8>,
    safe: Vec<u8>,
}

/// A file on the disk.
#[derive(Debug)]
pub(crate) struct DiskFile {
    disk: Disk,
    file: usize,
}

impl Disk {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// The disk as it is after a loss of power: with everything that was synced, and of each file's later writes
    /// only the first so many bytes that differ.
    pub(crate) fn after_power_loss(&self, survivors: usize) -> Self {
        let state = self.lock();
        let files = state.files.iter().map(|content| {
            let mut bytes = content.safe.clone();
            bytes.resize(content.now.len().max(bytes.len()), 0);
            let mut left = survivors;
            for (safe, now) in bytes.iter_mut().zip(&content.now) {
                if left > 0 && safe != now {
                    *safe = *now;
                    left -= 1;
                }
            }
            Content {
                now: bytes.clone(),
                safe: bytes,
            }
        });
        let state = State {
            files: files.collect(),
            names: state.safe_names.clone(),
            safe_names: state.safe_names.clone(),
            ..State::default()
        };
        Self {
            state: Arc::new(Mutex::new(state)),
            released: Arc::default(),
        }
    }

    /// The disk as it is after a loss of power: with everything that was synced, and of each file's later writes any
    /// sectors, as this number has it.
    pub(crate) fn after_scattered_power_loss(&self, seed: u64) -> Self {
        let state = self.lock();
        let mut random = seed | 1;
        let files = state.files.iter().map(|content| {
            let mut bytes = content.safe.clone();
            bytes.resize(content.now.len().max(bytes.len()), 0);
            for (safe, now) in bytes.chunks_mut(SECTOR).zip(content.now.chunks(SECTOR)) {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                if random & 1 == 0 && safe.len() == now.len() {
                    safe.copy_from_slice(now);
                }
            }
            Content {
                now: bytes.clone(),
                safe: bytes,
            }
        });
        let state = State {
            files: files.collect(),
            names: state.safe_names.clone(),
            safe_names: state.safe_names.clone(),
            ..State::default()
        };
        Self {
            state: Arc::new(Mutex::new(state)),
            released: Arc::default(),
        }
    }

    /// The disk as the next process finds it after this one was killed.
    pub(crate) fn after_crash(&self) -> Self {
        let state = self.lock();
        let files = state.files.iter().map(|content| Content {
            now: content.now.clone(),
            safe: content.safe.clone(),
        });
        let state = State {
            files: files.collect(),
            names: state.names.clone(),
            safe_names: state.safe_names.clone(),
            ..State::default()
        };
        Self {
            state: Arc::new(Mutex::new(state)),
            released: Arc::default(),
        }
    }

    pub(crate) fn fail_write_after(&self, bytes: u64) {
        self.lock().write_budget = Some(bytes);
    }

    pub(crate) fn fail_sync_after(&self, syncs: u64) {
        self.lock().sync_budget = Some(syncs);
    }

    /// Syncs don't come to their end, or do again.
    pub(crate) fn hold_syncs(&self, held: bool) {
        self.lock().held = held;
        self.released.notify_all();
    }

    pub(crate) fn set_full(&self, full: bool) {
        self.lock().full = full;
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.lock().names.keys().cloned().collect()
    }

    /// Changes a file behind everybody's back.
    pub(crate) fn tamper(&self, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let mut state = self.lock();
        let file = state.names[name];
        let content = &mut state.files[file];
        change(&mut content.now);
        content.safe = content.now.clone();
    }

    pub(crate) fn remove_file(&self, name: &str) {
        self.lock().names.remove(name);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn handle(&self, file: usize) -> DiskFile {
        DiskFile {
            disk: self.clone(),
            file,
        }
    }
}

impl Storage for Disk {
    type File = DiskFile;

    fn name(&self) -> PathBuf {
        PathBuf::from("disk")
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.names())
    }

    fn create(&self, name: &str, length: u64) -> io::Result<DiskFile> {
        let mut state = self.lock();
        if state.full {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let zeros = vec![0; index(length)];
        state.files.push(Content {
            now: zeros.clone(),
            safe: zeros,
        });
        let file = state.files.len() - 1;
        state.names.insert(name.to_owned(), file);
        Ok(self.handle(file))
    }

    fn open(&self, name: &str) -> io::Result<DiskFile> {
        let file = self.lock().names.get(name).copied();
        file.map(|file| self.handle(file))
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.lock();
        let file = state.names.remove(from).ok_or(io::ErrorKind::NotFound)?;
        state.names.insert(to.to_owned(), file);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let removed = self.lock().names.remove(name);
        removed
            .map(|_| ())
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn sync_names(&self) -> io::Result<()> {
        let mut state = self.lock();
        state.safe_names = state.names.clone();
        Ok(())
    }
}

impl LogFile for DiskFile {
    fn read(&self) -> io::Result<Vec<u8>> {
        Ok(self.disk.lock().files[self.file].now.clone())
    }

    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.disk.lock();
        let wanted = bytes.len() as u64;
        let fits = state
            .write_budget
            .map_or(wanted, |budget| budget.min(wanted));
        if let Some(budget) = &mut state.write_budget {
            *budget -= fits;
        }
        let (offset, fitting) = (index(offset), index(fits));
        let content = &mut state.files[self.file].now;
        if content.len() < offset + fitting {
            content.resize(offset + fitting, 0);
        }
        content[offset..offset + fitting].copy_from_slice(&bytes[..fitting]);
        if fits < wanted {
            Err(io::Error::other("short write"))
        } else {
            Ok(())
        }
    }

    fn wipe_from(&mut self, offset: u64, full_length: u64) -> io::Result<()> {
        let mut state = self.disk.lock();
        let content = &mut state.files[self.file];
        content.now.truncate(index(offset));
        content.now.resize(index(full_length.max(offset)), 0);
        content.safe = content.now.clone();
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        let released = &self.disk.released;
        let state = released.wait_while(self.disk.lock(), |state| state.held);
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        match &mut state.sync_budget {
            Some(0) => return Err(io::Error::other("sync failed")),
            Some(budget) => *budget -= 1,
            None => {}
        }
        let content = &mut state.files[self.file];
        content.safe = content.now.clone();
        Ok(())
    }
}

fn index(position: u64) -> usize {
    usize::try_from(position).unwrap()
}
