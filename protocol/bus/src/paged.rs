//! A map by message ids that takes little more than its values: ids follow each other, so pages of them are kept
//! together.
//!
//! A map of the standard library takes the key, and nearly half of its room is free when keys only grow. With a
//! million messages waiting that is most of what they take.

use std::{collections::BTreeMap, fmt};

use crate::core::message::MessageId;

/// So many ids are one page.
const PAGE: u64 = u64::BITS as u64;

/// A map by message ids, in their order.
#[derive(Clone)]
pub(crate) struct Paged<V> {
    pages: BTreeMap<PageNumber, Page<V>>,
    len: usize,
}

/// Boot, and the sequence number divided by the page's size.
type PageNumber = (u64, u64);

#[derive(Clone)]
struct Page<V> {
    /// Which ids are there.
    present: u64,
    /// Their values, in order.
    values: Vec<V>,
}

/// An id's page, and its bit there.
pub(crate) const fn place_of(id: MessageId) -> (PageNumber, u64) {
    ((id.boot, id.seq / PAGE), 1 << (id.seq % PAGE))
}

/// The ids of a page, in order.
pub(crate) fn ids_of(
    (boot, page): PageNumber,
    mut present: u64,
) -> impl Iterator<Item = MessageId> {
    std::iter::from_fn(move || {
        let bit = (present != 0).then(|| present.trailing_zeros())?;
        present &= present - 1;
        let seq = page * PAGE + u64::from(bit);
        Some(MessageId { boot, seq })
    })
}

impl<V> Paged<V> {
    pub(crate) const fn new() -> Self {
        Self {
            pages: BTreeMap::new(),
            len: 0,
        }
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn get(&self, id: &MessageId) -> Option<&V> {
        let (number, bit) = place_of(*id);
        let page = self.pages.get(&number)?;
        page.values.get(page.find(bit)?)
    }

    pub(crate) fn get_mut(&mut self, id: &MessageId) -> Option<&mut V> {
        let (number, bit) = place_of(*id);
        let page = self.pages.get_mut(&number)?;
        let at = page.find(bit)?;
        page.values.get_mut(at)
    }

    /// Puts a value in; the one that was there before is returned.
    pub(crate) fn insert(&mut self, id: MessageId, value: V) -> Option<V> {
        let (number, bit) = place_of(id);
        let page = self.pages.entry(number).or_default();
        if let Some(at) = page.find(bit) {
            return page
                .values
                .get_mut(at)
                .map(|it| std::mem::replace(it, value));
        }
        page.values.insert(page.before(bit), value);
        page.present |= bit;
        self.len += 1;
        None
    }

    pub(crate) fn remove(&mut self, id: &MessageId) -> Option<V> {
        let (number, bit) = place_of(*id);
        let page = self.pages.get_mut(&number)?;
        let value = page.values.remove(page.find(bit)?);
        page.present &= !bit;
        self.len -= 1;
        if page.present == 0 {
            self.pages.remove(&number);
        } else if page.values.len() <= page.values.capacity() / 4 {
            // One that stays behind for long does not keep its page's room.
            page.values.shrink_to(page.values.len() * 2);
        }
        Some(value)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (MessageId, &V)> {
        let pages = self.pages.iter();
        pages.flat_map(|(number, page)| ids_of(*number, page.present).zip(&page.values))
    }

    /// Those behind this id; without one, all.
    pub(crate) fn behind(&self, id: Option<MessageId>) -> impl Iterator<Item = (MessageId, &V)> {
        let from = id.map_or((0, 0), |id| place_of(id).0);
        let pages = self.pages.range(from..);
        let all = pages.flat_map(|(number, page)| ids_of(*number, page.present).zip(&page.values));
        // No more than those of one page.
        all.skip_while(move |(known, _)| id.is_some_and(|id| *known <= id))
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = MessageId> {
        let pages = self.pages.iter();
        pages.flat_map(|(number, page)| ids_of(*number, page.present))
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &V> {
        self.pages.values().flat_map(|page| &page.values)
    }
}

impl<V> Page<V> {
    /// How many values are before this bit's.
    const fn before(&self, bit: u64) -> usize {
        (self.present & (bit - 1)).count_ones() as usize
    }

    /// Where this bit's value is.
    const fn find(&self, bit: u64) -> Option<usize> {
        if self.present & bit == 0 {
            return None;
        }
        Some(self.before(bit))
    }
}

impl<V> Default for Page<V> {
    fn default() -> Self {
        Self {
            present: 0,
            values: Vec::new(),
        }
    }
}

impl<V> Default for Paged<V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<V> FromIterator<(MessageId, V)> for Paged<V> {
    fn from_iter<I: IntoIterator<Item = (MessageId, V)>>(all: I) -> Self {
        let mut map = Self::new();
        for (id, value) in all {
            map.insert(id, value);
        }
        map
    }
}

impl<V> IntoIterator for Paged<V> {
    type Item = (MessageId, V);
    type IntoIter = std::vec::IntoIter<Self::Item>;

    fn into_iter(self) -> Self::IntoIter {
        let pages = self.pages.into_iter();
        let all: Vec<Self::Item> = pages
            .flat_map(|(number, page)| ids_of(number, page.present).zip(page.values))
            .collect();
        all.into_iter()
    }
}

impl<V: fmt::Debug> fmt::Debug for Paged<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Bound;

    use proptest::prelude::*;

    use super::*;

    fn id() -> impl Strategy<Value = MessageId> {
        let seq = prop_oneof![0..300_u64, u64::MAX - 70..=u64::MAX];
        (prop_oneof![1..3_u64, Just(u64::MAX)], seq).prop_map(|(boot, seq)| MessageId { boot, seq })
    }

    proptest! {
        #[test]
        fn it_does_what_a_map_of_the_standard_library_does(
            changes in proptest::collection::vec((any::<bool>(), id(), any::<u16>()), 0..600),
            behind in proptest::option::of(id()),
        ) {
            let mut paged = Paged::new();
            let mut map = BTreeMap::new();
            for (comes, id, value) in changes {
                if comes {
                    prop_assert_eq!(paged.insert(id, value), map.insert(id, value));
                } else {
                    prop_assert_eq!(paged.remove(&id), map.remove(&id));
                }
                prop_assert_eq!(paged.get(&id), map.get(&id));
                prop_assert_eq!(paged.get_mut(&id), map.get_mut(&id));
                prop_assert_eq!((paged.len(), paged.is_empty()), (map.len(), map.is_empty()));
            }
            prop_assert!(paged.keys().eq(map.keys().copied()));
            prop_assert!(paged.values().eq(map.values()));
            prop_assert!(paged.iter().map(|(id, value)| (id, *value)).eq(map.clone()));
            let from = behind.map_or(Bound::Unbounded, Bound::Excluded);
            let range = map.range((from, Bound::Unbounded)).map(|(id, value)| (*id, *value));
            prop_assert!(paged.behind(behind).map(|(id, value)| (id, *value)).eq(range));
            let again: Paged<u16> = paged.clone().into_iter().collect();
            prop_assert!(again.into_iter().eq(map));
        }
    }

    #[test]
    fn one_that_stays_keeps_little_room() {
        let ids = (0..PAGE).map(|seq| MessageId { boot: 1, seq });
        let mut paged: Paged<u64> = ids.clone().map(|id| (id, 7)).collect();
        for id in ids.skip(1) {
            paged.remove(&id);
        }
        let rooms = paged.pages.values().map(|page| page.values.capacity());
        assert!(rooms.sum::<usize>() <= 4);
    }
}
