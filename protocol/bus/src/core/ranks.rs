//! Messages by their rank, with little room for each: where many are alike, their ids are bits of a page.

use std::{collections::BTreeMap, iter::Peekable};

use super::{
    message::MessageId,
    rank::{SortKey, from_the_end},
};
use crate::paged::{ids_of, place_of};

/// Messages by their rank.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ranks {
    /// Among equals the latest is first.
    latest_first: bool,
    /// Those whose rank tells their id: what they are ordered by and the page of their turn, and which turns of it.
    usual: BTreeMap<([u64; 2], (u64, u64)), u64>,
    /// The others.
    special: BTreeMap<SortKey, MessageId>,
}

impl Ranks {
    /// No messages yet, of a queue whose order is this way.
    pub(crate) fn new(latest_first: bool) -> Self {
        Self {
            latest_first,
            ..Self::default()
        }
    }

    pub(crate) fn insert(&mut self, key: SortKey, id: MessageId) {
        if key.sub == 0 && self.id_of(&key) == id {
            let (page, bit) = place_of(key.turn);
            *self.usual.entry((key.criteria, page)).or_default() |= bit;
        } else {
            self.special.insert(key, id);
        }
    }

    pub(crate) fn remove(&mut self, key: &SortKey) {
        let (page, bit) = place_of(key.turn);
        let place = (key.criteria, page);
        let present = self.usual.get_mut(&place).filter(|_| key.sub == 0);
        match present {
            Some(present) if *present & bit != 0 => {
                *present &= !bit;
                if *present == 0 {
                    self.usual.remove(&place);
                }
            }
            _ => drop(self.special.remove(key)),
        }
    }

    /// The first one.
    pub(crate) fn first(&self) -> Option<(SortKey, MessageId)> {
        let special = self.special.first_key_value();
        let special = special.map(|(key, id)| (*key, *id));
        let usual = self.usual().next();
        usual.into_iter().chain(special).min()
    }

    /// All, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (SortKey, MessageId)> {
        let special = self.special.iter().map(|(key, id)| (*key, *id));
        merged(self.usual().peekable(), special.peekable())
    }

    fn usual(&self) -> impl Iterator<Item = (SortKey, MessageId)> {
        let pages = self.usual.iter();
        let keys = pages.flat_map(|((criteria, page), present)| {
            ids_of(*page, *present).map(|turn| SortKey {
                criteria: *criteria,
                turn,
                sub: 0,
            })
        });
        keys.map(|key| (key, self.id_of(&key)))
    }

    /// The id of the message that has this rank because of the queue's order, or because it was sent to the top.
    const fn id_of(&self, key: &SortKey) -> MessageId {
        if self.latest_first || key.is_at_the_top() {
            from_the_end(key.turn)
        } else {
            key.turn
        }
    }
}

/// Both, which are in order, in order.
fn merged<T: Ord>(
    mut one: Peekable<impl Iterator<Item = T>>,
    mut other: Peekable<impl Iterator<Item = T>>,
) -> impl Iterator<Item = T> {
    std::iter::from_fn(move || match (one.peek(), other.peek()) {
        (Some(first), Some(second)) if second < first => other.next(),
        (Some(_), _) => one.next(),
        (None, _) => other.next(),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::core::{
        attributes::{Criterion, Order},
        message::{Addresses, NewMessage, Parts},
    };

    fn order() -> impl Strategy<Value = Order> {
        let all = vec![Criterion::Time, Criterion::Expiration, Criterion::Priority];
        let criteria = proptest::sample::subsequence(all, 0..=3).prop_shuffle();
        (criteria, any::<bool>()).prop_map(|(criteria, latest_first)| Order {
            criteria,
            latest_first,
        })
    }

    /// A message that comes (as usual, at the top, or before another) or goes.
    fn changes() -> impl Strategy<Value = Vec<(bool, u64, u8, i64)>> {
        let seq = prop_oneof![0..200_u64, Just(u64::MAX)];
        proptest::collection::vec((any::<bool>(), seq, 0..4_u8, -2..3_i64), 0..300)
    }

    proptest! {
        #[test]
        fn a_queues_order_is_that_of_a_map_of_keys(order in order(), changes in changes()) {
            let mut ranks = Ranks::new(order.latest_first);
            let mut map = BTreeMap::new();
            for (comes, seq, priority, sub) in changes {
                let id = MessageId { boot: 1 + seq % 2, seq };
                let new = NewMessage {
                    priority,
                    ..NewMessage::new(pillarbox_messages::Destination::queue("q"), "".into())
                };
                let message = Parts::of(&new, id, "", 1_000, true).pack(&mut Addresses::default());
                let key = match sub {
                    -2 => SortKey::at_the_top(id),
                    sub => SortKey::of(&message, &order).with_sub(sub.min(0)),
                };
                if comes {
                    ranks.insert(key, id);
                    map.insert(key, id);
                } else {
                    ranks.remove(&key);
                    map.remove(&key);
                }
                prop_assert_eq!(ranks.first(), map.first_key_value().map(|(key, id)| (*key, *id)));
            }
            prop_assert!(ranks.iter().eq(map));
        }
    }

    #[test]
    fn ranks_that_the_order_did_not_give_keep_their_ids() {
        let mut ranks = Ranks::new(false);
        let (mine, other) = (MessageId { boot: 1, seq: 1 }, MessageId { boot: 1, seq: 9 });
        let key = |turn| SortKey {
            criteria: [0, 1],
            turn,
            sub: 0,
        };
        ranks.insert(key(mine), other);
        ranks.insert(key(other), other);
        assert_eq!(
            ranks.iter().collect::<Vec<_>>(),
            [(key(mine), other), (key(other), other)]
        );
        ranks.remove(&key(mine));
        assert_eq!(ranks.first(), Some((key(other), other)));
    }
}
