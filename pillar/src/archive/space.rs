//! How much may be written: what the file systems offer, less what must be left and what is promised.

use std::{
    collections::BTreeMap,
    fmt, io,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use pillarbox_messages::CollectionId;
use rustix::fs::statvfs;

use super::{ArchiveError, NoSpace, error::Context, shelf::Shelf};

/// Asks the file system of a directory for what it offers, in bytes.
type Available = dyn Fn(&Path) -> io::Result<u64> + Send + Sync;

/// The account of space, one for all collections of an archive.
pub(super) struct Space {
    minimum_size_left: u64,
    available: Box<Available>,
    /// Bytes promised to files that are being received and not yet written, by file system.
    promised: Mutex<BTreeMap<u64, u64>>,
}

impl Space {
    pub(super) fn new(minimum_size_left: u64) -> Self {
        Self::with(minimum_size_left, available)
    }

    pub(super) fn with(
        minimum_size_left: u64,
        available: impl Fn(&Path) -> io::Result<u64> + Send + Sync + 'static,
    ) -> Self {
        Self {
            minimum_size_left,
            available: Box::new(available),
            promised: Mutex::default(),
        }
    }

    /// Promises `bytes` on the preferred shelf if they fit there, else on the one with most room.
    pub(super) fn reserve(
        self: &Arc<Self>,
        collection: &CollectionId,
        shelves: &[Arc<Shelf>],
        preferred: Option<&Arc<Shelf>>,
        bytes: u64,
    ) -> Result<Reservation, ArchiveError> {
        let mut promised = self.lock();
        let fits = |shelf: &&Arc<Shelf>| {
            let room = self.room(&promised, shelf);
            room.is_ok_and(|room| room.admit(collection, bytes).is_ok())
        };
        let shelf = match preferred.filter(fits) {
            Some(shelf) => shelf,
            None => {
                let (shelf, room) = self.best(&promised, shelves)?;
                room.admit(collection, bytes)?;
                shelf
            }
        };
        let shelf = Arc::clone(shelf);
        add(&mut promised, shelf.device, bytes);
        drop(promised);
        let collection = collection.clone();
        Ok(Reservation {
            space: Arc::clone(self),
            collection,
            shelf,
            left: bytes,
        })
    }

    /// Whether `bytes` could be promised now.
    pub(super) fn check(
        &self,
        collection: &CollectionId,
        shelves: &[Arc<Shelf>],
        bytes: u64,
    ) -> Result<(), ArchiveError> {
        let (_, room) = self.best(&self.lock(), shelves)?;
        Ok(room.admit(collection, bytes)?)
    }

    /// What the file system of a shelf offers, and what must be left of it, in bytes.
    pub(super) fn offered(&self, shelf: &Shelf) -> Result<(u64, u64), ArchiveError> {
        let room = self.room(&self.lock(), shelf)?;
        Ok((room.available, room.minimum_size_left))
    }

    fn best<'a>(
        &self,
        promised: &BTreeMap<u64, u64>,
        shelves: &'a [Arc<Shelf>],
    ) -> Result<(&'a Arc<Shelf>, Room), ArchiveError> {
        let mut best: Option<(&Arc<Shelf>, Room)> = None;
        let mut failure = None;
        for shelf in shelves {
            match self.room(promised, shelf) {
                Ok(room) if best.is_none_or(|(_, known)| room.usable() > known.usable()) => {
                    best = Some((shelf, room));
                }
                Ok(_) => {}
                Err(error) => failure = Some(error),
            }
        }
        best.ok_or_else(|| failure.unwrap_or(ArchiveError::NoDirectory))
    }

    fn room(&self, promised: &BTreeMap<u64, u64>, shelf: &Shelf) -> Result<Room, ArchiveError> {
        let available =
            (self.available)(&shelf.directory).at("ask for free space of", &shelf.directory)?;
        let reserved = promised.get(&shelf.device).copied().unwrap_or_default();
        Ok(Room {
            available,
            minimum_size_left: self.minimum_size_left,
            reserved,
        })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, u64>> {
        self.promised.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Space")
            .field("minimum_size_left", &self.minimum_size_left)
            .field("promised", &*self.lock())
            .finish_non_exhaustive()
    }
}

/// Space promised to one file; what is not used is given back when dropped.
#[derive(Debug)]
pub(super) struct Reservation {
    space: Arc<Space>,
    collection: CollectionId,
    pub(super) shelf: Arc<Shelf>,
    left: u64,
}

impl Reservation {
    /// Sees to it that at least `bytes` are promised still. What was announced may have been too
    /// little, or nothing.
    pub(super) fn cover(&mut self, bytes: u64) -> Result<(), ArchiveError> {
        let more = bytes.saturating_sub(self.left);
        if more > 0 {
            let mut promised = self.space.lock();
            self.space
                .room(&promised, &self.shelf)?
                .admit(&self.collection, more)?;
            add(&mut promised, self.shelf.device, more);
            self.left += more;
        }
        Ok(())
    }

    /// Promised bytes have been written: they now show in what the file system offers.
    pub(super) fn spend(&mut self, bytes: u64) {
        let used = bytes.min(self.left);
        subtract(&mut self.space.lock(), self.shelf.device, used);
        self.left -= used;
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        subtract(&mut self.space.lock(), self.shelf.device, self.left);
    }
}

/// The space of one file system, in bytes.
#[derive(Clone, Copy, Debug)]
struct Room {
    available: u64,
    minimum_size_left: u64,
    reserved: u64,
}

impl Room {
    fn usable(self) -> u64 {
        self.available
            .saturating_sub(self.minimum_size_left)
            .saturating_sub(self.reserved)
    }

    fn admit(self, collection: &CollectionId, needed: u64) -> Result<(), NoSpace> {
        let usable = self.usable();
        if needed <= usable && usable > 0 {
            return Ok(());
        }
        let Self {
            available,
            minimum_size_left,
            reserved,
        } = self;
        let collection = collection.clone();
        Err(NoSpace {
            collection,
            needed,
            usable,
            available,
            minimum_size_left,
            reserved,
        })
    }
}

fn available(path: &Path) -> io::Result<u64> {
    let status = statvfs(path)?;
    Ok(status.f_bavail.saturating_mul(status.f_frsize))
}

fn add(promised: &mut BTreeMap<u64, u64>, device: u64, bytes: u64) {
    let sum = promised.entry(device).or_default();
    *sum = sum.saturating_add(bytes);
}

fn subtract(promised: &mut BTreeMap<u64, u64>, device: u64, bytes: u64) {
    let sum = promised.entry(device).or_default();
    *sum = sum.saturating_sub(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shelf(dir: &Path) -> Arc<Shelf> {
        Arc::new(Shelf::open(dir, &"books".into()).unwrap())
    }

    fn no_space<T: fmt::Debug>(result: Result<T, ArchiveError>) -> NoSpace {
        match result {
            Err(ArchiveError::NoSpace(numbers)) => numbers,
            other => panic!("{other:?}"),
        }
    }

    /// What others are about to write is no more to be had (P12).
    #[test]
    fn concurrent_files_are_counted() {
        let dir = tempfile::tempdir().unwrap();
        let shelves = [shelf(dir.path())];
        let space = Arc::new(Space::with(100, |_| Ok(1_000)));
        let books = "books".into();
        let mut first = space.reserve(&books, &shelves, None, 600).unwrap();
        let refused = no_space(space.reserve(&books, &shelves, None, 301));
        assert_eq!(
            (refused.needed, refused.usable, refused.reserved),
            (301, 300, 600)
        );
        assert_eq!((refused.available, refused.minimum_size_left), (1_000, 100));
        first.spend(500);
        assert_eq!(no_space(space.check(&books, &shelves, 801)).usable, 800);
        first.cover(100).unwrap();
        assert_eq!(no_space(first.cover(901)).needed, 801);
        first.cover(900).unwrap();
        assert_eq!(no_space(space.check(&books, &shelves, 1)).usable, 0);
        drop(first);
        space.check(&books, &shelves, 900).unwrap();
        no_space(space.check(&books, &shelves, 901));
    }

    #[test]
    fn the_largest_directory_is_chosen() {
        let (small, large) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let shelves = [shelf(small.path()), shelf(large.path())];
        let large = large.path().to_owned();
        let name = large.clone();
        let space = Arc::new(Space::with(0, move |dir| {
            Ok(if dir == name { 2_000 } else { 1_000 })
        }));
        let chosen = space.reserve(&"books".into(), &shelves, None, 10).unwrap();
        assert_eq!(chosen.shelf.directory, large);
    }

    #[test]
    fn the_preferred_directory_is_chosen_while_there_is_room() {
        let (small, large) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let shelves = [shelf(small.path()), shelf(large.path())];
        let preferred = Some(&shelves[0]);
        let roomy = large.path().to_owned();
        let space = Arc::new(Space::with(0, move |dir| {
            Ok(if dir == roomy { 2_000 } else { 1_000 })
        }));
        let books = "books".into();
        // Both stand on one device, whose promises count for both.
        let chosen = space.reserve(&books, &shelves, preferred, 1_000).unwrap();
        assert_eq!(chosen.shelf.directory, small.path());
        let chosen = space.reserve(&books, &shelves, preferred, 1_000).unwrap();
        assert_eq!(chosen.shelf.directory, large.path());
        no_space(space.reserve(&books, &shelves, preferred, 1));
    }

    #[test]
    fn numbers_do_not_wrap() {
        let dir = tempfile::tempdir().unwrap();
        let shelves = [shelf(dir.path())];
        let books = "books".into();
        let space = Arc::new(Space::new(9_223_372_036_854_775_807));
        let text = no_space(space.check(&books, &shelves, 1_024)).to_string();
        assert!(text.contains("1024 bytes needed, 0 usable"), "{text}");
        assert!(text.contains("9223372036854775807"), "{text}");
        no_space(space.reserve(&books, &shelves, None, u64::MAX));
        let space = Arc::new(Space::with(0, |_| Ok(u64::MAX)));
        let _all = space.reserve(&books, &shelves, None, u64::MAX).unwrap();
        no_space(space.reserve(&books, &shelves, None, u64::MAX));
    }
}
