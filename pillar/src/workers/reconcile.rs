//! Comparing the index with the archive directories: a row whose file is gone is marked missing and told once; a file
//! without a row is read and given one. Nothing is moved.
//!
//! First the rows, in the order of their ids, then the trees, in theirs: where it is is written into the index each
//! second or so, and that is where it goes on after a restart.

mod adopting;
mod steps;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use pillarbox_messages::{CollectionId, wording::count};
use tracing::info;

use self::steps::{Start, Step, resume};
use super::{
    Interrupt, Shift, Worker,
    inspection::Inspection,
    reading::{Batch, Reading, Unread},
};
use crate::{
    archive::{Found, Walk},
    context::Context,
    index::FileRow,
    untold,
};

/// Compares index and disk.
pub(crate) struct Reconcile {
    context: Arc<Context>,
    inspection: Inspection,
    reading: Reading,
    done: Tally,
    /// In the collection at hand something may have been left without a row.
    incomplete: bool,
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

impl Worker for Reconcile {
    const NAME: &'static str = "reconcile";

    fn turn(&mut self, shift: &mut Shift) -> Result<(), Interrupt> {
        untold::tell_all(&self.context, shift)?;
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
            incomplete: false,
            saved: Instant::now(),
        }
    }

    fn collection(
        &mut self,
        shift: &mut Shift,
        collection: &CollectionId,
    ) -> Result<(), Interrupt> {
        let context = Arc::clone(&self.context);
        let trees = self.trees(collection)?;
        let steps: Vec<Step> = std::iter::once(Step::Rows).chain(trees).collect();
        let place = shift
            .wait(context.index.progress(Self::NAME, collection))?
            .place;
        let start = resume(&steps, place);
        if start != Start::default() {
            let (step, after) = (steps.get(start.step).map(Step::name), &start.after);
            info!(
                collection = collection.as_str(),
                step, after, "goes on where it was"
            );
        }
        self.incomplete |= start.incomplete;
        let mut after = start.after;
        for step in steps.iter().skip(start.step) {
            let after = std::mem::take(&mut after);
            match step {
                Step::Rows => self.rows(shift, collection, step, after)?,
                Step::Tree(tree) => {
                    let walk = Walk::after(tree.clone(), &after);
                    self.tree(shift, collection, step, walk)?;
                }
            }
        }
        self.conclude(shift, collection)
    }

    /// The trees that are there. What the others have can't be known.
    fn trees(&mut self, collection: &CollectionId) -> Result<Vec<Step>, Interrupt> {
        let (trees, absent) = self.context.archive.trees(collection)?;
        self.incomplete = !absent.is_empty();
        for error in absent {
            self.inspection.closed(&error);
        }
        Ok(trees.into_iter().map(Step::Tree).collect())
    }

    /// It has come to the end of a collection. If it had to leave something out, of which the index may know nothing,
    /// it begins again the next time, and a put takes nothing for the leftover of a crash until then.
    fn conclude(&mut self, shift: &Shift, collection: &CollectionId) -> Result<(), Interrupt> {
        let Context {
            archive,
            index,
            unexplored,
            ..
        } = &*self.context;
        // What was in a disk that was taken away meanwhile was not to be seen.
        self.incomplete |= !archive.trees(collection)?.1.is_empty();
        let again = self.incomplete && unexplored.contains(collection);
        let place = again.then(|| Step::Rows.place("", false));
        shift.wait(index.save_progress(Self::NAME, collection, place))?;
        if !again {
            unexplored.explored(collection);
        }
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
        let opened = self.inspection.open(shift, collection, &row)?;
        let changed = opened.is_some_and(|(_, stored)| stored.size != row.size);
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
        while let Some(found) = self.next(shift, &mut walk)? {
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

    /// What comes next in a tree. A folder that can't be read is left out.
    fn next(
        &mut self,
        shift: &mut Shift,
        walk: &mut Walk,
    ) -> Result<Option<Vec<Found>>, Interrupt> {
        loop {
            let next = walk.next(|entries| {
                let spent = shift.spend(ENTRY_COST * entries as u64);
                spent.map_err(Unread::from)
            });
            let error = match next {
                Ok(found) => return Ok(found),
                Err(Unread::Interrupt(interrupt)) => return Err(interrupt),
                Err(Unread::Disk(error)) => error,
            };
            self.incomplete = true;
            let folder = walk.path();
            self.inspection
                .closed(&format_args!("{}: {error}", folder.display()));
            walk.skip_folder();
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
        let place = Some(step.place(path, self.incomplete));
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

/// What an entry of a directory counts for, in bytes.
const ENTRY_COST: u64 = 64;
/// What a look at an inode or a row counts for, in bytes.
const LOOK_COST: u64 = 512;
/// Files that are looked up at once.
const GROUP: usize = 256;
const SAVED_EACH: Duration = Duration::from_secs(1);
