//! Walking through a listing that a contributor sends in pages.
//!
//! A page is asked for by the newest time that was seen, inclusive: the items of that very time come again and are
//! left out. A contributor may fill a whole page with items of one time; then the page is made larger until the
//! next time comes into sight.

use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZeroU64,
};

use pillarbox_messages::{ComponentId, FileId, FileIds, Timestamp};

use super::procedure::Completion;
use crate::event::{ComponentResult, Page};

/// How many items a page has, unless it has to be larger.
pub const PAGE_SIZE: NonZeroU64 = NonZeroU64::new(10_000).unwrap();

/// The largest page that is ever asked for: a peer with more items of one time than this can't be listed.
pub const LARGEST_PAGE: u64 = 10_000 * 1024;

/// Why a result that lies somewhere else is not taken.
pub(super) const NOT_INLINE: &str = "sent an address although the results were asked for inline";

/// One file or all.
pub(super) fn file_ids(file: Option<&FileId>) -> FileIds {
    file.map_or(FileIds::All, |file| FileIds::File(file.clone()))
}

/// An item of a listing.
pub trait Listed {
    /// Its file.
    fn file(&self) -> &FileId;
    /// The time by which the listing is ordered.
    fn time_ms(&self) -> i64;
}

/// Where the walk through one contributor's listing stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Walk {
    /// The time that the next page is to begin with, in milliseconds since 1970.
    from_ms: i64,
    /// How many items the next page may have.
    page_size: NonZeroU64,
    /// The usual number.
    usual_size: NonZeroU64,
    /// The files of that time that were seen already.
    seen: BTreeSet<FileId>,
    /// The last page, to tell its repetition from the next page.
    last: Option<Fingerprint>,
    total: u64,
}

/// What tells one page from another.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Fingerprint {
    partial: bool,
    length: usize,
    first: Option<(FileId, i64)>,
    last: Option<(FileId, i64)>,
}

/// What a page of a listing is worth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Turned<T> {
    /// It is the page that was asked for.
    Page(Page<T>),
    /// It is an earlier page that has come again.
    Stale,
    /// It does not bring the walk further.
    Stuck(&'static str),
}

/// The walks through all contributors' listings.
#[derive(Clone, Debug)]
pub struct Walks {
    page_size: NonZeroU64,
    walks: BTreeMap<ComponentId, Walk>,
}

impl Walks {
    /// None has begun; a page has this many items.
    #[must_use]
    pub const fn new(page_size: NonZeroU64) -> Self {
        Self {
            page_size,
            walks: BTreeMap::new(),
        }
    }

    /// Schema elements `MinTimestamp` and `MaxNumberOfResults` of the next request to this contributor.
    #[must_use]
    pub fn next(&self, contributor: &ComponentId) -> (Timestamp, NonZeroU64) {
        let fresh = Walk::new(self.page_size);
        let walk = self.walks.get(contributor).unwrap_or(&fresh);
        (walk.min_timestamp(), walk.page_size())
    }

    /// Takes the page that has come from this contributor; `result` makes of it what is told.
    pub fn turn<T: Listed>(
        &mut self,
        from: &ComponentId,
        items: Vec<T>,
        partial: bool,
        result: impl FnOnce(Page<T>) -> ComponentResult,
    ) -> Completion {
        let walk = self
            .walks
            .entry(from.clone())
            .or_insert_with(|| Walk::new(self.page_size));
        match walk.turn(items, partial) {
            Turned::Page(page) if page.partial => Completion::Again(result(page)),
            Turned::Page(page) => Completion::Done(result(page)),
            Turned::Stale => Completion::Stale,
            Turned::Stuck(reason) => Completion::Unusable(reason.to_owned()),
        }
    }
}

impl Walk {
    /// A walk that begins with the oldest item.
    #[must_use]
    pub const fn new(page_size: NonZeroU64) -> Self {
        Self {
            from_ms: 0,
            page_size,
            usual_size: page_size,
            seen: BTreeSet::new(),
            last: None,
            total: 0,
        }
    }

    /// Schema element `MinTimestamp` of the next request.
    #[must_use]
    pub fn min_timestamp(&self) -> Timestamp {
        Timestamp::from_millis(self.from_ms)
    }

    /// Schema element `MaxNumberOfResults` of the next request.
    #[must_use]
    pub const fn page_size(&self) -> NonZeroU64 {
        self.page_size
    }

    /// Takes the page that has come and moves on.
    pub fn turn<T: Listed>(&mut self, items: Vec<T>, partial: bool) -> Turned<T> {
        let fingerprint = Fingerprint::of(&items, partial);
        let oldest = items.iter().map(Listed::time_ms).min();
        let newest = items.iter().map(Listed::time_ms).max();
        let repeated = self.last.as_ref() == Some(&fingerprint);
        let older = self.last.is_some() && oldest.is_some_and(|oldest| oldest < self.from_ms);
        if !items.is_empty() && (repeated || older) {
            return Turned::Stale;
        }
        self.last = Some(fingerprint);
        let Some((oldest, newest)) = oldest.zip(newest) else {
            return if partial {
                Turned::Stuck("said that there is more, but sent nothing")
            } else {
                Turned::Page(Page {
                    items,
                    total: self.total,
                    partial,
                })
            };
        };
        let asked_for = self.page_size.get();
        if partial && !self.resize(oldest == newest) {
            return Turned::Stuck("has more items of one and the same time than can be asked for");
        }
        let short = u64::try_from(items.len()).is_ok_and(|length| length < asked_for);
        let fresh = self.without_seen(items, newest);
        if partial && short && fresh.is_empty() {
            return Turned::Stuck(
                "said that there is more, but sent fewer items than it was asked for, and no new one",
            );
        }
        self.total = self
            .total
            .saturating_add(u64::try_from(fresh.len()).unwrap_or(u64::MAX));
        Turned::Page(Page {
            items: fresh,
            total: self.total,
            partial,
        })
    }

    /// Leaves out what was seen and remembers the files of the newest time.
    fn without_seen<T: Listed>(&mut self, items: Vec<T>, newest: i64) -> Vec<T> {
        let at = self.from_ms;
        let mut seen = std::mem::take(&mut self.seen);
        let mut newest_files = BTreeSet::new();
        let mut fresh = Vec::with_capacity(items.len());
        for item in items {
            if item.time_ms() == newest {
                newest_files.insert(item.file().clone());
            }
            if item.time_ms() != at || !seen.contains(item.file()) {
                fresh.push(item);
            }
        }
        if newest == at {
            newest_files.append(&mut seen);
        }
        self.seen = newest_files;
        self.from_ms = newest;
        fresh
    }

    /// The size of the next page; false if it can't be made larger.
    fn resize(&mut self, all_of_one_time: bool) -> bool {
        if !all_of_one_time {
            self.page_size = self.usual_size;
            return true;
        }
        let larger = self
            .page_size
            .saturating_mul(NonZeroU64::MIN.saturating_add(1));
        if larger.get() > LARGEST_PAGE {
            return false;
        }
        self.page_size = larger;
        true
    }
}

impl Fingerprint {
    fn of<T: Listed>(items: &[T], partial: bool) -> Self {
        let key = |item: &T| (item.file().clone(), item.time_ms());
        Self {
            partial,
            length: items.len(),
            first: items.first().map(key),
            last: items.last().map(key),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Debug, PartialEq, Eq)]
    struct Item(FileId, i64);

    impl Listed for Item {
        fn file(&self) -> &FileId {
            &self.0
        }
        fn time_ms(&self) -> i64 {
            self.1
        }
    }

    /// A contributor that pages by time alone, as the reference does.
    fn answer(all: &[Item], walk: &Walk) -> (Vec<Item>, bool) {
        let from = walk.min_timestamp().millis();
        let size = usize::try_from(walk.page_size().get()).unwrap();
        let fitting: Vec<Item> = all.iter().filter(|item| item.1 >= from).cloned().collect();
        // The reference says "partial" even when exactly so many exist.
        let partial = fitting.len() >= size;
        (fitting.into_iter().take(size).collect(), partial)
    }

    fn walk_through(all: &[Item], size: u64) -> Vec<Item> {
        let mut walk = Walk::new(NonZeroU64::new(size).unwrap());
        let mut got = Vec::new();
        for _ in 0..1000 {
            let (items, partial) = answer(all, &walk);
            match walk.turn(items, partial) {
                Turned::Page(page) => {
                    got.extend(page.items);
                    assert_eq!(page.total, got.len() as u64);
                    if !page.partial {
                        return got;
                    }
                }
                other => panic!("{other:?}"),
            }
        }
        panic!("the walk does not end");
    }

    fn items(times: &[i64]) -> Vec<Item> {
        times
            .iter()
            .enumerate()
            .map(|(number, time)| Item(FileId::from(format!("f{number:04}")), *time))
            .collect()
    }

    #[test]
    fn every_item_once_whatever_the_ties_and_the_page_size() {
        let listings = [
            vec![],
            vec![1],
            vec![1, 2, 3, 4, 5],
            vec![7; 9],
            vec![1, 2, 2, 2, 2, 2, 3],
            vec![1, 1, 1, 1, 2, 3, 3, 3, 3, 3, 3, 3, 4],
            (0..100).map(|n| n / 7).collect(),
        ];
        for times in listings {
            let all = items(&times);
            for size in 1..=12 {
                assert_eq!(walk_through(&all, size), all, "{times:?} by {size}");
            }
        }
    }

    #[test]
    fn a_repeated_page_is_stale() {
        let all = items(&[1, 2, 3, 4, 5]);
        let mut walk = Walk::new(NonZeroU64::new(2).unwrap());
        let (first, partial) = answer(&all, &walk);
        assert!(matches!(walk.turn(first.clone(), partial), Turned::Page(_)));
        assert_eq!(walk.turn(first.clone(), partial), Turned::Stale);
        let (second, partial) = answer(&all, &walk);
        assert!(matches!(walk.turn(second, partial), Turned::Page(_)));
        assert_eq!(
            walk.turn(first, true),
            Turned::Stale,
            "older than what was asked for"
        );
    }

    #[test]
    fn a_page_that_does_not_lead_on() {
        let mut walk = Walk::new(PAGE_SIZE);
        assert!(matches!(
            walk.turn(Vec::<Item>::new(), true),
            Turned::Stuck(_)
        ));
        // Larger pages are of no use with one who gives no more than two items, in whatever order.
        let mut walk = Walk::new(NonZeroU64::new(2).unwrap());
        let mut two = items(&[5, 5]);
        assert!(matches!(walk.turn(two.clone(), true), Turned::Page(_)));
        two.reverse();
        assert!(matches!(walk.turn(two, true), Turned::Stuck(_)));
    }
}
