//! What the listing commands have in common: rows as soon as every pillar that takes part has told of a file, and
//! what the pillars differ in.

use std::{
    collections::{BTreeMap, BTreeSet},
    future::Future,
};

use pillarbox_client::{
    ClientError, ComponentResult, EventKind, Running,
    listing::{Entry, Merge},
};
use pillarbox_messages::{ComponentId, FileId, wording::count};

use crate::{
    client_setup::{Session, conclude},
    failure::Failure,
    json,
    output::{in_words, one_line, print, print_done, say},
};

/// What is listed, and how.
#[derive(Clone, Copy, Debug)]
pub(super) struct Listing<V> {
    /// What stands above the rows.
    pub(super) heading: &'static str,
    /// The files in one pillar's result.
    pub(super) items: fn(&ComponentResult) -> Vec<(FileId, V)>,
    /// What is printed of a file of which so many pillars were asked.
    pub(super) row: fn(&Entry<V>, usize) -> String,
    /// Whether those that have a file say the same of it.
    pub(super) agree: fn(&Entry<V>) -> bool,
    /// What they say of it.
    pub(super) values: &'static str,
    /// Whether the rows are for programs.
    pub(super) json: bool,
}

impl<V: Send> Listing<V> {
    /// Starts a listing and prints it to its end. Files that only some pillars have told of come last, also if the
    /// listing fails.
    pub(super) async fn run(
        self,
        mut session: Session,
        start: impl Future<Output = Result<Running, ClientError>> + Send,
    ) -> Result<(), Failure> {
        let mut merge = Merge::new(0);
        let mut asked = BTreeSet::new();
        let mut unsupported = Vec::new();
        let mut differences = Differences::default();
        let outcome = session
            .list(self.heading, start, |event| match &event.kind {
                EventKind::IdentificationComplete {
                    selected,
                    unsupported: unable,
                } => {
                    merge = Merge::new(selected.len());
                    asked.extend(selected.iter().cloned());
                    asked.extend(unable.iter().map(|it| it.contributor.clone()));
                    unsupported.clone_from(unable);
                    differences.begin(selected);
                    Ok(())
                }
                EventKind::ComponentFailed { contributor, .. } => {
                    asked.insert(contributor.clone());
                    Ok(())
                }
                EventKind::Progress {
                    contributor,
                    result: Some(result),
                }
                | EventKind::ComponentComplete {
                    contributor,
                    result,
                } => {
                    let complete = merge.take(contributor, (self.items)(result));
                    let rows = complete.iter().map(|entry| {
                        differences.note(entry, self.agree);
                        (self.row)(entry, asked.len())
                    });
                    print(&rows.collect::<String>())
                }
                _ => Ok(()),
            })
            .await;
        session.close().await;
        let rest = merge.finish().try_for_each(|entry| {
            differences.note(&entry, self.agree);
            print(&(self.row)(&entry, asked.len()))
        });
        let outcome = outcome?;
        let outcome = conclude(outcome, self.json)?;
        if self.json {
            print_done(&json::failed(&unsupported))?;
        }
        if let Err(failure) = rest {
            return Err(outcome.failed(failure));
        }
        for unable in &unsupported {
            say(&in_words(&unable.to_string()));
        }
        differences.tell(self.values);
        outcome.told();
        Ok(())
    }
}

/// In what the pillars differ that have listed to the end.
#[derive(Debug, Default)]
struct Differences {
    files: u64,
    /// Files that their pillars tell different things of.
    disputed: u64,
    /// How many files each pillar has not told of.
    missing: BTreeMap<ComponentId, u64>,
}

impl Differences {
    fn begin(&mut self, pillars: &[ComponentId]) {
        self.missing = pillars.iter().map(|pillar| (pillar.clone(), 0)).collect();
    }

    fn note<V>(&mut self, entry: &Entry<V>, agree: fn(&Entry<V>) -> bool) {
        self.files += 1;
        self.disputed += u64::from(!agree(entry));
        for (pillar, missing) in &mut self.missing {
            *missing += u64::from(!entry.values.contains_key(pillar));
        }
    }

    /// One line for each pillar that lacks files, and one for the files that differ.
    fn tell(&self, values: &str) {
        let of_all = |files| format!("{} of {}", count(files, "file"), self.files);
        for (pillar, &missing) in self.missing.iter().filter(|(_, missing)| **missing > 0) {
            say(&format!("not at {}: {}", one_line(pillar), of_all(missing)));
        }
        if self.disputed > 0 {
            say(&format!("different {values}: {}", of_all(self.disputed)));
        }
    }
}
