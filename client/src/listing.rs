//! Putting together what several pillars list, page by page.

use std::{
    collections::{BTreeMap, HashSet},
    hash::{BuildHasher as _, RandomState},
};

use pillarbox_messages::{ComponentId, FileId};

/// What the pillars said of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry<V> {
    /// The file.
    pub file: FileId,
    /// What each pillar that has it said.
    pub values: BTreeMap<ComponentId, V>,
}

/// Merges the listings of several pillars.
///
/// It only holds the files that some pillar has not mentioned yet: as long as the pillars list in about the same
/// order, that is a small part of the collection. Of all others it holds a hash of 64 bits, less than 20 bytes for each
/// file: a pillar mentions a file again whose time has changed since it was listed, and the second mention is left out.
#[derive(Clone, Debug)]
pub struct Merge<V> {
    pillars: usize,
    open: BTreeMap<FileId, BTreeMap<ComponentId, V>>,
    /// The files that were given. Two of ten million have the same hash once in 370,000 listings.
    given: HashSet<u64>,
    hashing: RandomState,
}

impl<V> Merge<V> {
    /// A merge of the listings of so many pillars.
    #[must_use]
    pub fn new(pillars: usize) -> Self {
        Self {
            pillars,
            open: BTreeMap::new(),
            given: HashSet::new(),
            hashing: RandomState::new(),
        }
    }

    /// Takes a pillar's page and gives the files that all have mentioned now, in the page's order, each once.
    pub fn take(
        &mut self,
        pillar: &ComponentId,
        items: impl IntoIterator<Item = (FileId, V)>,
    ) -> Vec<Entry<V>> {
        let mut complete = Vec::new();
        for (file, value) in items {
            let hash = self.hashing.hash_one(&file);
            if self.given.contains(&hash) {
                continue;
            }
            let values = self.open.entry(file.clone()).or_default();
            values.insert(pillar.clone(), value);
            if values.len() >= self.pillars
                && let Some(values) = self.open.remove(&file)
            {
                self.given.insert(hash);
                complete.push(Entry { file, values });
            }
        }
        complete
    }

    /// How many files wait for other pillars.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.open.len()
    }

    /// The files that only some have mentioned, by id.
    pub fn finish(self) -> impl Iterator<Item = Entry<V>> {
        self.open
            .into_iter()
            .map(|(file, values)| Entry { file, values })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_leave_when_all_have_mentioned_them() {
        let (north, south) = (ComponentId::from("north"), ComponentId::from("south"));
        let mut merge = Merge::new(2);
        let item = |id: &str, size: u64| (FileId::from(id), size);
        assert!(merge.take(&north, [item("a", 1), item("b", 2)]).is_empty());
        let complete = merge.take(&south, [item("b", 3), item("c", 4)]);
        assert_eq!(complete.len(), 1);
        assert_eq!(complete[0].file.as_str(), "b");
        assert_eq!(complete[0].values, BTreeMap::from([(north, 2), (south, 3)]));
        assert_eq!(merge.waiting(), 2);
        let rest: Vec<String> = merge.finish().map(|entry| entry.file.to_string()).collect();
        assert_eq!(rest, ["a", "c"]);
    }

    #[test]
    fn a_file_that_is_mentioned_again_is_given_once() {
        let (north, south) = (ComponentId::from("north"), ComponentId::from("south"));
        let item = |id: &str, size: u64| (FileId::from(id), size);
        let mut merge = Merge::new(2);
        // Not given yet: what was told last counts.
        assert!(merge.take(&north, [item("a", 1), item("a", 2)]).is_empty());
        let complete = merge.take(&south, [item("a", 3)]);
        assert_eq!(
            complete[0].values,
            BTreeMap::from([(north.clone(), 2), (south, 3)])
        );
        assert!(merge.take(&north, [item("a", 4)]).is_empty());
        assert_eq!(merge.finish().count(), 0);

        let mut one = Merge::new(1);
        let given = one.take(&north, [item("a", 1), item("b", 2), item("a", 3)]);
        let given: Vec<&str> = given.iter().map(|entry| entry.file.as_str()).collect();
        assert_eq!(given, ["a", "b"]);
        assert!(one.take(&north, [item("b", 5)]).is_empty());
    }
}
