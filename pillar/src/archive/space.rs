//! How much may be written: what the file systems offer, less what must be left and what is promised.

use std::{
    collections::BTreeMap,
    fmt, io,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use pillarbox_messages::CollectionId;
use rustix::fs::statvfs;

use super::{ArchiveError, NoSpace, blocking, error::Context, shelf::Shelf};

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

    /// Promises `bytes` on the preferred shelf if they fit there, else on the one with most room. Blocks.
    pub(super) fn reserve(
        self: &Arc<Self>,
        collection: &CollectionId,
        shelves: &[Arc<Shelf>],
        preferred: Option<&Arc<Shelf>>,
        bytes: u64,
    ) -> Result<Reservation, ArchiveError> {
        let preferred = preferred.and_then(|shelf| Some((shelf, self.look(shelf).ok()?)));
        let others = self.look_at(shelves)?;
        let mut promised = self.lock();
        let fits = |(shelf, available): &(&Arc<Shelf>, u64)| {
            let room = self.room(&promised, shelf, *available);
            room.admit(collection, bytes).is_ok()
        };
        let shelf = match preferred.filter(fits) {
            Some((shelf, _)) => shelf,
            None => self.best(&promised, &others, collection, bytes)?,
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

    /// Whether `bytes` could be promised now. Blocks.
    pub(super) fn check(
        &self,
        collection: &CollectionId,
        shelves: &[Arc<Shelf>],
        bytes: u64,
    ) -> Result<(), ArchiveError> {
        let looked = self.look_at(shelves)?;
        self.best(&self.lock(), &looked, collection, bytes)
            .map(drop)
    }

    /// The space on the file system of a shelf. Blocks.
    pub(super) fn of(&self, shelf: &Shelf) -> Result<Room, ArchiveError> {
        let available = self.look(shelf)?;
        Ok(self.room(&self.lock(), shelf, available))
    }

    /// What the file systems of the shelves offer, in bytes; of those that say so.
    fn look_at<'a>(
        &self,
        shelves: &'a [Arc<Shelf>],
    ) -> Result<Vec<(&'a Arc<Shelf>, u64)>, ArchiveError> {
        let (mut looked, mut failure) = (Vec::new(), None);
        for shelf in shelves {
            match self.look(shelf) {
                Ok(available) => looked.push((shelf, available)),
                Err(error) => failure = Some(error),
            }
        }
        match looked.is_empty() {
            true => Err(failure.unwrap_or(ArchiveError::NoDirectory)),
            false => Ok(looked),
        }
    }

    /// Asks a file system, which may take its time: not under the lock.
    fn look(&self, shelf: &Shelf) -> Result<u64, ArchiveError> {
        (self.available)(&shelf.directory).at("ask for free space of", &shelf.directory)
    }

    /// The shelf with most room, if it is enough.
    fn best<'a>(
        &self,
        promised: &BTreeMap<u64, u64>,
        looked: &[(&'a Arc<Shelf>, u64)],
        collection: &CollectionId,
        bytes: u64,
    ) -> Result<&'a Arc<Shelf>, ArchiveError> {
        let mut best: Option<(&Arc<Shelf>, Room)> = None;
        for (shelf, available) in looked {
            let room = self.room(promised, shelf, *available);
            if best.is_none_or(|(_, known)| room.usable() > known.usable()) {
                best = Some((shelf, room));
            }
        }
        let (shelf, room) = best.ok_or(ArchiveError::NoDirectory)?;
        room.admit(collection, bytes)?;
        Ok(shelf)
    }

    fn room(&self, promised: &BTreeMap<u64, u64>, shelf: &Shelf, available: u64) -> Room {
        Room {
            available,
            minimum_size_left: self.minimum_size_left,
            reserved: promised.get(&shelf.device).copied().unwrap_or_default(),
        }
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
    /// Sees to it that at least `bytes` are promised still. What was announced may have been too little, or nothing:
    /// then the file system is asked, on a blocking thread, and some more is promised if there is room, so that it is
    /// not asked for each piece.
    pub(super) async fn cover(&mut self, bytes: u64) -> Result<(), ArchiveError> {
        let more = bytes.saturating_sub(self.left);
        if more == 0 {
            return Ok(());
        }
        let (space, shelf) = (Arc::clone(&self.space), Arc::clone(&self.shelf));
        let available = blocking(move || space.look(&shelf)).await?;
        let mut promised = self.space.lock();
        let room = self.space.room(&promised, &self.shelf, available);
        let ahead = more.saturating_add(AHEAD);
        let more = match room.admit(&self.collection, ahead) {
            Ok(()) => ahead,
            Err(_) => {
                room.admit(&self.collection, more)?;
                more
            }
        };
        add(&mut promised, self.shelf.device, more);
        self.left += more;
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    /// What it offers.
    pub(crate) available: u64,
    /// What must be left of that.
    pub(crate) minimum_size_left: u64,
    /// What is promised of that to files that are being received.
    pub(crate) reserved: u64,
}

impl Room {
    /// What may be used.
    pub(crate) fn usable(self) -> u64 {
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

/// Bytes that are promised at once to a file of unknown size.
const AHEAD: u64 = 4 << 20;

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

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
    #[tokio::test]
    async fn concurrent_files_are_counted() {
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
        first.cover(100).await.unwrap();
        assert_eq!(no_space(first.cover(901).await).needed, 801);
        first.cover(900).await.unwrap();
        assert_eq!(no_space(space.check(&books, &shelves, 1)).usable, 0);
        drop(first);
        space.check(&books, &shelves, 900).unwrap();
        no_space(space.check(&books, &shelves, 901));
    }

    /// A file system may take its time: it is not asked for each piece, nor while others wait.
    #[tokio::test]
    async fn a_file_of_unknown_size_asks_now_and_then() {
        let dir = tempfile::tempdir().unwrap();
        let shelves = [shelf(dir.path())];
        let asked = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&asked);
        let space = Arc::new(Space::with(100, move |_| {
            count.fetch_add(1, Ordering::SeqCst);
            Ok(100 + 3 * AHEAD)
        }));
        let books = "books".into();
        let mut file = space.reserve(&books, &shelves, None, 0).unwrap();
        for _ in 0..AHEAD / 4_096 {
            file.cover(4_096).await.unwrap();
            file.spend(4_096);
        }
        assert_eq!(asked.load(Ordering::SeqCst), 2);
        // Of what it does not need others can be promised again, once it has come to its end.
        file.cover(1).await.unwrap();
        no_space(space.check(&books, &shelves, 3 * AHEAD));
        drop(file);
        space.check(&books, &shelves, 3 * AHEAD).unwrap();
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
