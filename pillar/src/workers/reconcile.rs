//! Comparing the index with the archive directories: a row whose file is gone is marked missing and told once; a file
//! without a row is read and given one. Nothing is moved.
//!
//! First the rows, in the order of their ids, then the trees, in theirs: where it is is written into the index each
//! second or so, and that is where it goes on after a restart.

use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use pillarbox_messages::{ArchiveFileId, CollectionId, HexBinary, wording::count};
use tracing::{info, warn};

use super::{
    Interrupt, Shift, Worker,
    inspection::Inspection,
    reading::{Batch, Reading, Unread},
};
use crate::{
    archive::{Found, Identity, StoredFile, Tree, Walk},
    context::Context,
    index::{Adopted, Adoption, FileRow, Place},
};

/// Compares index and disk.
pub(crate) struct Reconcile {
    context: Arc<Context>,
    inspection: Inspection,
    reading: Reading,
    done: Tally,
    saved: Instant,
}

/// What came of a turn so far.
#[derive(Clone, Debug, Default)]
struct Tally {
    rows: u64,
    entries: u64,
    adopted: u64,
    strays: u64,
    /// Files that operations had in hand or may ask for again, or that changed while they were read.
    left: u64,
}

/// A file that has no row.
struct Candidate {
    id: ArchiveFileId,
    size: u64,
    checksum: HexBinary,
    identity: Identity,
}

/// A part of the work in a collection.
enum Step {
    Rows,
    Tree(Tree),
}

impl Step {
    fn name(&self) -> &'static str {
        match self {
            Self::Rows => "rows",
            Self::Tree(tree) => tree.kind.name(),
        }
    }

    fn place(&self, path: &str) -> Place {
        Place {
            step: self.name().to_owned(),
            directory: match self {
                Self::Rows => PathBuf::new(),
                Self::Tree(tree) => tree.directory.clone(),
            },
            path: path.to_owned(),
        }
    }
}

impl Worker for Reconcile {
    const NAME: &'static str = "reconcile";

    fn turn(&mut self, shift: &mut Shift) -> Result<(), Interrupt> {
        self.done = Tally::default();
        self.inspection.begin();
        for collection in self.context.component.collections().to_vec() {
            self.collection(shift, &collection)?;
        }
        shift.progress(self.state());
        let pillar = self.context.component.id().as_str();
        info!(pillar, done = %self.state(), "index and archive directories were compared");
        self.inspection.conclude(shift);
        Ok(())
    }
}

impl Reconcile {
    pub(crate) fn new(context: Arc<Context>) -> Self {
        Self {
            inspection: Inspection::new(Arc::clone(&context)),
            reading: Reading::new(context.default_spec.clone()),
            context,
            done: Tally::default(),
            saved: Instant::now(),
        }
    }

    fn collection(
        &mut self,
        shift: &mut Shift,
        collection: &CollectionId,
    ) -> Result<(), Interrupt> {
        let Context { archive, index, .. } = &*self.context;
        let trees = archive.trees(collection)?.into_iter().map(Step::Tree);
        let steps: Vec<Step> = std::iter::once(Step::Rows).chain(trees).collect();
        let place = shift.wait(index.progress(Self::NAME, collection))?.place;
        let (first, mut after) = resume(&steps, place);
        if first > 0 || !after.is_empty() {
            let step = steps.get(first).map(Step::name);
            info!(
                collection = collection.as_str(),
                step, after, "goes on where it was"
            );
        }
        for step in steps.iter().skip(first) {
            let after = std::mem::take(&mut after);
            match step {
                Step::Rows => self.rows(shift, collection, step, after)?,
                Step::Tree(tree) => {
                    let walk = Walk::after(tree.clone(), &after);
                    self.tree(shift, collection, step, walk)?;
                }
            }
        }
        let index = &self.context.index;
        shift.wait(index.save_progress(Self::NAME, collection, None))?;
        self.context.unexplored.explored(collection);
        Ok(())
    }

    /// Looks for the file of each row.
    fn rows(
        &mut self,
        shift: &mut Shift,
        collection: &CollectionId,
        step: &Step,
        mut after: String,
    ) -> Result<(), Interrupt> {
        loop {
            let page = shift.wait(self.context.index.list_by_id(collection, &after))?;
            if page.is_empty() {
                return Ok(());
            }
            for row in page {
                after = row.file_id.as_str().to_owned();
                self.row(shift, collection, row)?;
                self.done.rows += 1;
                shift.spend(LOOK_COST)?;
                self.save(shift, collection, step, &after)?;
            }
        }
    }

    /// A file of another size has changed, which need not wait until its checksum is old.
    fn row(
        &mut self,
        shift: &mut Shift,
        collection: &CollectionId,
        row: FileRow,
    ) -> Result<(), Interrupt> {
        let file = ArchiveFileId::new(&row.file_id, None).map_err(Interrupt::fault)?;
        let stored = self.inspection.open(shift, collection, &row, &file)?;
        let changed = stored.is_some_and(|stored| stored.size != row.size);
        if changed && row.observed == row.expected {
            let seen = self.inspection.look(shift, collection, row)?;
            self.inspection
                .write_down(shift, collection, seen.into_iter().collect())?;
        }
        Ok(())
    }

    /// Looks for the row of each file.
    fn tree(
        &mut self,
        shift: &mut Shift,
        collection: &CollectionId,
        step: &Step,
        mut walk: Walk,
    ) -> Result<(), Interrupt> {
        let tree = walk.tree().clone();
        let mut batch = Batch::new();
        while let Some(found) = next(&mut walk, shift)? {
            for group in found.chunks(GROUP) {
                let files = self.sort_out(group);
                let last = files.last().map(|id| id.as_str().to_owned());
                for id in self.unlisted(shift, collection, &files)? {
                    shift.go_on()?;
                    batch.extend(self.read(shift, collection, &tree, &id)?);
                    if batch.is_due() {
                        self.adopt(shift, collection, &tree, batch.take())?;
                        self.save(shift, collection, step, id.as_str())?;
                    }
                }
                if batch.is_due() {
                    self.adopt(shift, collection, &tree, batch.take())?;
                }
                if let Some(last) = last.filter(|_| batch.is_empty()) {
                    self.save(shift, collection, step, &last)?;
                }
            }
        }
        self.adopt(shift, collection, &tree, batch.take())
    }

    /// The files among what was found; of the rest is told.
    fn sort_out(&mut self, found: &[Found]) -> Vec<ArchiveFileId> {
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

    fn unlisted(
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
        let age = shift.now_ms().abs_diff(stored.identity.modified_ms());
        !self.context.unexplored.contains(collection) && age < COMES_AGAIN_MS
    }

    /// Reads a file that has no row.
    fn read(
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
                self.inspection.unreadable(id.file_id(), &error);
                Ok(None)
            }
        }
    }

    /// Gives rows to files, except to those that an operation has in hand, and to those that are others by now.
    fn adopt(
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
        self.done.left += (read - adoptions.len()) as u64;
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

    /// Remembers where it is, now and then.
    fn save(
        &mut self,
        shift: &Shift,
        collection: &CollectionId,
        step: &Step,
        path: &str,
    ) -> Result<(), Interrupt> {
        if self.saved.elapsed() < SAVED_EACH {
            return Ok(());
        }
        let place = Some(step.place(path));
        shift.wait(
            self.context
                .index
                .save_progress(Self::NAME, collection, place),
        )?;
        shift.progress(format!(
            "{collection}: {}, at {} {path}",
            self.state(),
            step.name()
        ));
        self.saved = Instant::now();
        Ok(())
    }

    fn state(&self) -> String {
        let Tally {
            rows,
            entries,
            adopted,
            strays,
            left,
        } = self.done;
        let missing = self.inspection.done.missing;
        format!(
            "{} and {} looked at, {} missing, {adopted} taken in, {left} left for the next time, {}",
            count(rows, "row"),
            count(entries, "directory entry"),
            count(missing, "file"),
            count(strays, "stray")
        )
    }
}

/// The step in which to go on, and after what.
fn resume(steps: &[Step], place: Option<Place>) -> (usize, String) {
    let Some(place) = place else {
        return (0, String::new());
    };
    let is_it = |step: &Step| step.place(&place.path) == place;
    match steps.iter().position(is_it) {
        Some(at) => (at, place.path),
        None => (0, String::new()),
    }
}

fn next(walk: &mut Walk, shift: &mut Shift) -> Result<Option<Vec<Found>>, Interrupt> {
    let next = walk.next(|entries| {
        let spent = shift.spend(ENTRY_COST * entries as u64);
        spent.map_err(Unread::from)
    });
    next.map_err(|unread| match unread {
        Unread::Interrupt(interrupt) => interrupt,
        Unread::Disk(error) => {
            let root = walk.tree().directory.display();
            Interrupt::Fault(format!("archive directory {root}: {error}"))
        }
    })
}

/// How long a request may wait for a pillar that comes back, by the default of operation timeouts.
const COMES_AGAIN_MS: u64 = 3_600_000;
/// What an entry of a directory counts for, in bytes.
const ENTRY_COST: u64 = 64;
/// What a look at an inode or a row counts for, in bytes.
const LOOK_COST: u64 = 512;
/// Files that are looked up at once.
const GROUP: usize = 256;
/// Strays in a turn of which each is told.
const STRAYS_TOLD: u64 = 100;
const SAVED_EACH: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::archive::TreeKind;

    fn tree(directory: &str, kind: TreeKind) -> Step {
        Step::Tree(Tree::new(Path::new(directory), Path::new("/x"), kind))
    }

    #[test]
    fn it_goes_on_in_the_step_and_directory_where_it_was() {
        let steps = [
            Step::Rows,
            tree("/a", TreeKind::Files),
            tree("/a", TreeKind::Folders),
            tree("/b", TreeKind::Files),
        ];
        for (at, step) in steps.iter().enumerate() {
            let place = Some(step.place("n/x1"));
            assert_eq!(resume(&steps, place), (at, "n/x1".to_owned()));
        }
        let start = (0, String::new());
        assert_eq!(resume(&steps, None), start);
        // The directory is not configured any more.
        let gone = tree("/c", TreeKind::Files).place("x1");
        assert_eq!(resume(&steps, Some(gone)), start);
    }
}
