//! Files whose places are given to others, or to none.

use std::{path::PathBuf, sync::Arc};

use pillarbox_messages::HexBinary;

use super::{
    Archive, ArchiveError, Claim, Leftover, Published, ReceivedFile, blocking,
    disk::{OffThread, TempFile},
    retained::Retained,
    shelf::Shelf,
};
use crate::digests::{Checksums, Spec};

/// A received file whose bytes are on the disk, but not in the archive yet; dropped, it leaves nothing.
#[derive(Debug)]
pub struct StagedFile {
    pub(super) claim: Claim,
    /// None where no bytes are kept.
    pub(super) bytes: Option<StagedBytes>,
    /// The configured directory that the file will be stored in; empty where no bytes are kept.
    pub directory: PathBuf,
    /// Its size in bytes.
    pub size: u64,
    /// Its checksums, by the specs given to [`Archive::receive_version`].
    pub checksums: Checksums,
}

#[derive(Debug)]
pub(super) struct StagedBytes {
    pub(super) shelf: Arc<Shelf>,
    pub(super) temp: OffThread<TempFile>,
}

/// A file that was taken away. Keep it until the index knows: it holds the [`Claim`].
#[derive(Debug)]
pub struct Removed {
    pub(super) _claim: Claim,
    pub(super) superseded: Vec<Retained>,
}

/// The bytes that a replace was to bring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    /// How many there are.
    pub size: u64,
    /// By which spec their checksum is computed.
    pub spec: Spec,
    /// That checksum.
    pub checksum: HexBinary,
}

impl Archive {
    /// Sees to it that a received file's bytes are on the disk, under a temporary name: what comes before a
    /// [`replace`](Self::replace).
    ///
    /// # Errors
    /// The disk refuses. The temporary file is gone then.
    pub async fn stage(&self, received: ReceivedFile) -> Result<StagedFile, ArchiveError> {
        blocking(move || received.stage()).await
    }

    /// Gives a staged file the place of the version that the index knows, which keeps a name in `retainDir`. At
    /// every instant one of both stands there, whole. When this returns the change will outlast a power cut.
    ///
    /// Not cancel-safe: if the future is dropped, the file may be replaced nevertheless.
    ///
    /// # Errors
    /// The disk refuses; [`settle`](Self::settle) finds out at which point.
    pub async fn replace(&self, staged: StagedFile) -> Result<Published, ArchiveError> {
        let inner = Arc::clone(&self.0);
        blocking(move || staged.place(&inner.folders, Leftover::Supersede)).await
    }

    /// Takes a file away from its place, and the folders that are empty without it; it keeps a name in `retainDir`.
    /// When this returns that will outlast a power cut.
    ///
    /// Not cancel-safe: if the future is dropped, the file may be taken away nevertheless.
    ///
    /// # Errors
    /// [`ArchiveError::NotFound`]; the disk refuses, and [`settle`](Self::settle) finds out at which point.
    pub async fn remove(&self, claim: Claim) -> Result<Removed, ArchiveError> {
        let inner = Arc::clone(&self.0);
        blocking(move || claim.remove(&inner.folders)).await
    }

    /// Takes a stored file away again, of which the index is certain not to know; what stood in its place is there
    /// again.
    ///
    /// # Errors
    /// The disk refuses: then the file may be there still, as after a crash.
    pub async fn retract(&self, published: Published) -> Result<(), ArchiveError> {
        let inner = Arc::clone(&self.0);
        blocking(move || published.retract(&inner.folders)).await
    }

    /// Puts a removed file back, whose row the index is certain to have still.
    ///
    /// # Errors
    /// The disk refuses: then the file may only be in `retainDir`, as after a crash.
    pub async fn restore(&self, removed: Removed) -> Result<(), ArchiveError> {
        let inner = Arc::clone(&self.0);
        blocking(move || removed.restore(&inner.folders)).await
    }

    /// Finds out from the disk whether a replace by what is `expected`, or a delete if nothing is, has happened. If
    /// so it is made to last, otherwise nothing is left of it.
    ///
    /// # Errors
    /// The disk refuses, or is not there: what it hides may be either.
    pub async fn settle(
        &self,
        claim: Claim,
        expected: Option<Expected>,
    ) -> Result<(Claim, bool), ArchiveError> {
        let inner = Arc::clone(&self.0);
        blocking(move || {
            let done = claim.settle(expected.as_ref(), &inner.folders)?;
            Ok((claim, done))
        })
        .await
    }
}
