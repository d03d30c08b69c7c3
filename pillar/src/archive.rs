//! The bytes of archived files, on the local file system.
//!
//! The layout is the Java pillar's, so that its directories can be taken over: for each configured
//! directory `D` and collection `K` there are `D/K/tmpDir` (files that are being received), `fileDir`
//! (files whose id has no `/`), `folderDir` (files whose id has one, in sub folders) and `retainDir`
//! (deleted and replaced files). A file's name on disk is its id, component by component, unchanged.
//!
//! # What a put costs, and why
//!
//! 1. write the temporary file under a name never used before;
//! 2. *sync its data*, so that no name is ever given to bytes that a power cut can take away;
//! 3. link it to its place, which fails if something stands there, and unlink the temporary name;
//! 4. *sync the directory of its place*, so that the name outlasts a power cut before the index says
//!    so; the temporary name needs no sync, since start-up removes it.
//!
//! These are two syncs; a folder that is new to this process costs one more, once.
//!
//! A replace has the old version linked to `retainDir` before step 3, and that name synced; its step 3 is a
//! rename over the place, so that at every instant one whole version stands there. A delete links and syncs
//! likewise, then unlinks the place and syncs its directory. What is in `retainDir` stays there, until a worker is
//! set to remove what has been there long enough, and never while an operation may give it back.
//!
//! # What a crash leaves
//!
//! Temporary files, which start-up removes; or a file at its place without a row in the index, if the
//! crash came between steps 4 and the commit. Nobody was promised the latter, so the next put of the
//! same id replaces it atomically ([`Leftover::Replace`]) with its own verified bytes, unless it has been
//! found and listed by then. What others left in `tmpDir` is moved to `retainDir`. A row without a
//! file can't come from a crash, since the row is committed after step 4, and since a delete has an open
//! operation in the index, as a replace has, from before its first name until its commit:
//! [`settle`](Archive::settle) makes up for either.
//!
//! # One put, one replace, one delete
//!
//! ```text
//! claim -> (is it in the index?) -> receive -> write* -> finish -> (checksums) -> publish -> (index)
//! claim -> (is it in the index?) -> receive_version -> write* -> finish -> (checksums) -> stage
//!       -> (open operation) -> replace -> (index)
//! claim -> (is it in the index?) -> (open operation) -> remove -> (index)
//! ```
//!
//! The [`Claim`] travels along, so that between the look into the index and the commit nobody else
//! writes the same file: keep the [`Published`] or [`Removed`] until the row is committed.

mod admission;
mod claims;
pub(crate) mod disk;
mod error;
mod folders;
mod incoming;
mod opening;
mod premises;
mod publish;
mod purge;
mod remove;
mod retained;
mod shelf;
mod space;
mod upkeep;
mod versions;
mod walk;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    io,
    path::PathBuf,
    sync::Arc,
};

use pillarbox_messages::{ArchiveFileId, CollectionId};

pub use self::{
    claims::Claim,
    error::{ArchiveError, NoSpace},
    incoming::{IncomingFile, ReceivedFile},
    versions::{Expected, Removed, StagedFile},
};
use self::{
    claims::{Claimant, Claims},
    error::Context,
    folders::Folders,
    retained::Retained,
    shelf::Shelf,
    space::Space,
};
pub(crate) use self::{
    premises::check_usable,
    purge::{RetainDir, Seen},
    space::Room,
    upkeep::Identity,
    walk::{Found, Tree, TreeKind, Walk},
};
use crate::{digests::Checksums, in_place::can_block_in_place};

/// What an archive is made of.
#[derive(Clone, Debug)]
pub struct ArchiveOptions {
    /// The archive directories; each file is stored in the one with most free space.
    pub directories: Vec<PathBuf>,
    /// The collections that are served.
    pub collections: Vec<CollectionId>,
    /// Bytes that are always left free in each directory's file system.
    pub minimum_size_left: u64,
}

/// A pillar's archive. Cloning gives another handle to it.
#[derive(Clone, Debug)]
pub struct Archive(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    collections: BTreeMap<CollectionId, Arc<CollectionArchive>>,
    claims: Arc<Claims>,
    space: Arc<Space>,
    folders: Folders,
    /// One for each shelf.
    _locks: Vec<File>,
}

/// One collection's part of the archive.
#[derive(Debug)]
struct CollectionArchive {
    id: CollectionId,
    /// None where no bytes are kept.
    shelves: Vec<Arc<Shelf>>,
}

impl Archive {
    /// Makes the directories where they are missing, removes all temporary files, and makes sure that
    /// files can be stored. Blocks.
    ///
    /// The directories belong to this archive alone, which a lock makes sure of.
    ///
    /// # Errors
    /// A collection id that can't name a directory; a directory that can't be used, or is in use.
    pub fn open(options: ArchiveOptions) -> Result<Self, ArchiveError> {
        let space = Space::new(options.minimum_size_left);
        Self::open_with(&options, space)
    }

    /// An archive that keeps no bytes: the files that it receives are hashed and dropped, every one fits, and what
    /// is known about them is the index's alone. Claims are given as ever.
    #[must_use]
    pub fn without_bytes(collections: &[CollectionId]) -> Self {
        let without_bytes = |id: &CollectionId| {
            let (id, shelves) = (id.clone(), Vec::new());
            (id.clone(), Arc::new(CollectionArchive { id, shelves }))
        };
        Self(Arc::new(Inner {
            collections: collections.iter().map(without_bytes).collect(),
            claims: Arc::default(),
            space: Arc::new(Space::new(0)),
            folders: Folders::default(),
            _locks: Vec::new(),
        }))
    }

    /// Whether files can be read from it.
    #[must_use]
    pub fn keeps_bytes(&self) -> bool {
        self.0.collections.values().all(|it| it.keeps_bytes())
    }

    fn open_with(options: &ArchiveOptions, space: Space) -> Result<Self, ArchiveError> {
        if options.directories.is_empty() {
            return Err(ArchiveError::NoDirectory);
        }
        let mut collections = BTreeMap::new();
        let mut known = BTreeSet::new();
        let mut locks = Vec::new();
        for id in &options.collections {
            let mut shelves = Vec::with_capacity(options.directories.len());
            for directory in &options.directories {
                let shelf = Shelf::open(directory, id)?;
                if !known.insert(shelf.identity()) {
                    return Err(ArchiveError::ListedTwice(directory.clone()));
                }
                locks.push(shelf.take_over()?);
                shelves.push(Arc::new(shelf));
            }
            collections.insert(
                id.clone(),
                Arc::new(CollectionArchive {
                    id: id.clone(),
                    shelves,
                }),
            );
        }
        let (claims, folders) = (Arc::default(), Folders::default());
        Ok(Self(Arc::new(Inner {
            collections,
            claims,
            space: Arc::new(space),
            folders,
            _locks: locks,
        })))
    }

    /// The right to write a file, before anything is decided about it.
    ///
    /// # Errors
    /// [`ArchiveError::Busy`] while somebody else has it.
    pub fn claim(
        &self,
        collection: &CollectionId,
        id: &ArchiveFileId,
    ) -> Result<Claim, ArchiveError> {
        let collection = self.collection(collection)?;
        let claim = self.0.claims.claim(collection, id, Claimant::Operation);
        claim.map_err(|_| claims::busy(collection, id))
    }

    /// The same, but a background worker is waited for: it needs its claim for a moment only.
    ///
    /// # Errors
    /// [`ArchiveError::Busy`] while another operation has it.
    pub async fn claim_in_turn(
        &self,
        collection: &CollectionId,
        id: &ArchiveFileId,
    ) -> Result<Claim, ArchiveError> {
        let collection = self.collection(collection)?;
        self.0.claims.claim_in_turn(collection, id).await
    }

    /// Stores a received file. When this returns the file is complete and will outlast a power cut.
    ///
    /// Not cancel-safe: if the future is dropped, the file may be stored nevertheless.
    ///
    /// # Errors
    /// Something else stands at its place, or the disk refuses. The temporary file is gone then.
    pub async fn publish(
        &self,
        received: ReceivedFile,
        leftover: Leftover,
    ) -> Result<Published, ArchiveError> {
        let inner = Arc::clone(&self.0);
        blocking(move || received.stage()?.place(&inner.folders, leftover)).await
    }

    /// Opens an archived file for reading.
    ///
    /// # Errors
    /// [`ArchiveError::NotFound`] if no directory has it, or what the disk says.
    pub async fn open_file(
        &self,
        collection: &CollectionId,
        id: &ArchiveFileId,
    ) -> Result<StoredFile, ArchiveError> {
        let collection = Arc::clone(self.collection(collection)?);
        let id = id.clone();
        briefly(move || collection.open_file(&id)).await
    }

    fn collection(&self, id: &CollectionId) -> Result<&Arc<CollectionArchive>, ArchiveError> {
        let found = self.0.collections.get(id);
        found.ok_or_else(|| ArchiveError::UnknownCollection(id.clone()))
    }
}

impl CollectionArchive {
    fn keeps_bytes(&self) -> bool {
        !self.shelves.is_empty()
    }

    fn open_file(&self, id: &ArchiveFileId) -> Result<StoredFile, ArchiveError> {
        // Between the looks at two shelves a replace may have moved the file from one to the other.
        for _ in 0..2 {
            for shelf in &self.shelves {
                if let Some(found) = shelf.open_file(id)? {
                    return Ok(found);
                }
            }
        }
        self.check_present()?;
        Err(ArchiveError::NotFound(id.as_str().into()))
    }

    /// A disk that was taken away is no reason to believe that its files are gone, or were never there.
    fn check_present(&self) -> Result<(), ArchiveError> {
        self.shelves
            .iter()
            .try_for_each(|shelf| shelf.check_present())
    }
}

impl Shelf {
    fn open_file(&self, id: &ArchiveFileId) -> Result<Option<StoredFile>, ArchiveError> {
        let place = self.place(id);
        opening::open_regular(&place).at("open", &place)
    }
}

fn is_absence(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// Runs a job of a few system calls, which as a rule wait for nothing: where it is, since the way to another thread and
/// back would take longer. The other tasks of this thread move elsewhere meanwhile.
async fn briefly<T: Send + 'static>(
    job: impl FnOnce() -> Result<T, ArchiveError> + Send + 'static,
) -> Result<T, ArchiveError> {
    if can_block_in_place() {
        tokio::task::block_in_place(job)
    } else {
        blocking(job).await
    }
}

async fn blocking<T: Send + 'static>(
    job: impl FnOnce() -> Result<T, ArchiveError> + Send + 'static,
) -> Result<T, ArchiveError> {
    let done = tokio::task::spawn_blocking(job).await;
    done.unwrap_or(Err(ArchiveError::Interrupted))
}

/// What to do if a file stands where one is to be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leftover {
    /// Refuse: the index has a row for it, or was not asked.
    Refuse,
    /// Replace it atomically: the index, asked while the [`Claim`] was held, has no row for it or
    /// says that it is missing, so nobody was ever promised these bytes.
    Replace,
    /// The same, since it is the version that the index knows, and its open operation is written down.
    Supersede,
}

/// A file that was stored. Keep it until the index knows the file: it holds the [`Claim`].
#[derive(Debug)]
pub struct Published {
    claim: Claim,
    /// None where no bytes are kept.
    shelf: Option<Arc<Shelf>>,
    /// The configured directory that the file was stored in; empty where no bytes are kept.
    pub directory: PathBuf,
    /// Its size in bytes.
    pub size: u64,
    /// Its checksums, by the specs given to [`Archive::receive`].
    pub checksums: Checksums,
    /// What stood at its place before.
    superseded: Vec<Retained>,
}

/// An archived file, opened for reading.
#[derive(Debug)]
pub struct StoredFile {
    /// The file, at its start.
    pub file: File,
    /// Its size in bytes.
    pub size: u64,
    /// What it was when it was opened.
    pub(crate) identity: Identity,
}

#[cfg(test)]
pub(crate) mod tests;
