//! Files without a row are read and given one, where they are.

use pillarbox_messages::{ArchiveFileId, CollectionId, HexBinary};
use tracing::{info, warn};

use super::{LOOK_COST, Reconcile};
use crate::{
    archive::{Found, Identity, StoredFile, Tree},
    index::{Adopted, Adoption},
    workers::{Interrupt, Shift, reading::Unread},
};

/// A file that has no row.
pub(super) struct Candidate {
    id: ArchiveFileId,
    size: u64,
    checksum: HexBinary,
    identity: Identity,
}

impl Reconcile {
    /// The files among what was found; of the rest is told.
    pub(super) fn sort_out(&mut self, found: &[Found]) -> Vec<ArchiveFileId> {
        self.done.entries += found.len() as u64;
        let mut files = Vec::with_capacity(found.len());
        for found in found {
            match found {
                Found::File(id) => files.push(id.clone()),
                Found::Stray(path, why) => {
                    self.done.strays += 1;
                    if self.done.strays <= STRAYS_TOLD {
                        warn!(path = %path.display(), why, "no archived file, left alone");
                    }
                }
            }
        }
        files
    }

    pub(super) fn unlisted(
        &self,
        shift: &mut Shift,
        collection: &CollectionId,
        files: &[ArchiveFileId],
    ) -> Result<Vec<ArchiveFileId>, Interrupt> {
        let ids = files.iter().map(|id| id.file_id().clone()).collect();
        let unlisted = shift.wait(self.context.index.unlisted(collection, ids))?;
        shift.spend(LOOK_COST * files.len() as u64)?;
        let is_unlisted = |id: &&ArchiveFileId| unlisted.contains(id.file_id());
        Ok(files.iter().filter(is_unlisted).cloned().collect())
    }

    /// Whether the file may be what a put left that was cut off, whose request comes again and is then done. A new
    /// index knows of no puts.
    fn may_be_asked_for(
        &self,
        shift: &Shift,
        collection: &CollectionId,
        stored: &StoredFile,
    ) -> bool {
        let repository = self.context.component.repository();
        let longest = repository.longest_wait_for_pillar(collection);
        let age = shift.now_ms().abs_diff(stored.identity.modified_ms());
        !self.context.unexplored.contains(collection) && u128::from(age) < longest.as_millis()
    }

    /// Reads a file that has no row.
    pub(super) fn read(
        &mut self,
        shift: &mut Shift,
        collection: &CollectionId,
        tree: &Tree,
        id: &ArchiveFileId,
    ) -> Result<Option<Candidate>, Interrupt> {
        let read = match tree.open(id) {
            Ok(None) => return Ok(None),
            Ok(Some(stored)) if self.may_be_asked_for(shift, collection, &stored) => {
                self.done.left += 1;
                return Ok(None);
            }
            Ok(Some(stored)) => self.reading.checksum(shift, &stored).and_then(|read| {
                tree.make_last(id, &stored.file, shift.now_ms())?;
                Ok((stored.size, stored.identity, read))
            }),
            Err(error) => Err(error.into()),
        };
        match read {
            Ok((size, identity, checksum)) => Ok(Some(Candidate {
                id: id.clone(),
                size,
                checksum,
                identity,
            })),
            Err(Unread::Interrupt(interrupt)) => Err(interrupt),
            Err(Unread::Disk(error)) => {
                self.incomplete = true;
                self.inspection.unreadable(id.file_id(), &error);
                Ok(None)
            }
        }
    }

    /// Gives rows to files, except to those that an operation has in hand, and to those that are others by now.
    pub(super) fn adopt(
        &mut self,
        shift: &Shift,
        collection: &CollectionId,
        tree: &Tree,
        candidates: Vec<Candidate>,
    ) -> Result<(), Interrupt> {
        let (mut claims, mut adoptions) = (Vec::new(), Vec::new());
        let read = candidates.len();
        for candidate in candidates {
            let claim = self
                .context
                .archive
                .claim_briefly(collection, &candidate.id)?;
            let same = |_: &_| {
                let found = tree.identity(&candidate.id);
                found.is_ok_and(|found| found == candidate.identity)
            };
            if let Some(claim) = claim.filter(same) {
                claims.push(claim);
                adoptions.push(self.adoption(tree, candidate));
            }
        }
        let left = read - adoptions.len();
        self.incomplete |= left > 0;
        self.done.left += left as u64;
        if adoptions.is_empty() {
            return Ok(());
        }
        let adopted = shift.wait(self.context.index.adopt(collection, adoptions));
        drop(claims);
        for adopted in adopted? {
            self.adopted(shift, collection, &adopted);
        }
        Ok(())
    }

    fn adoption(&self, tree: &Tree, candidate: Candidate) -> Adoption {
        Adoption {
            file_id: candidate.id.file_id().clone(),
            directory: tree.directory.clone(),
            size: candidate.size,
            checksum: candidate.checksum,
            actor: self.context.component.id().clone(),
        }
    }

    fn adopted(&mut self, shift: &Shift, collection: &CollectionId, adopted: &Adopted) {
        let row = match adopted {
            Adopted::Known => return,
            Adopted::New(row) => row,
            Adopted::Again(row) => {
                let file = row.file_id.as_str();
                info!(
                    collection = collection.as_str(),
                    file, "a missing file was found again"
                );
                row
            }
        };
        self.done.adopted += 1;
        if row.observed != row.expected {
            self.inspection.tell(shift, collection, row);
        }
    }
}

/// Strays in a turn of which each is told.
const STRAYS_TOLD: u64 = 100;
