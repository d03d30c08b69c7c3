//! A message's rank in its queue.

use super::{
    attributes::{Criterion, Order},
    message::{MAX_PRIORITY, MessageId, QueuedMessage},
};

/// A message's rank in its queue: the smallest is first.
///
/// What the queue is ordered by, packed; then the order of the commits; then, among those that were sent directly
/// before the same message, their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SortKey {
    /// The band (0: the top) and the criteria, most significant first.
    pub(crate) criteria: [u64; 2],
    /// The commit's number, counted from the end where the latest is first.
    pub(crate) turn: MessageId,
    /// 0, or below for those sent directly before another.
    pub(crate) sub: i64,
}

/// How many bits a time takes in a key: milliseconds, a million years before and after 1970.
const TIME_BITS: u32 = 56;
const PRIORITY_BITS: u32 = 4;
const LATEST: u64 = (1 << TIME_BITS) - 1;

impl SortKey {
    /// The rank that a queue's order gives a message.
    pub(crate) fn of(message: &QueuedMessage, order: &Order) -> Self {
        let mut packed: u128 = 1;
        for criterion in &order.criteria {
            packed = match criterion {
                Criterion::Time => {
                    let time = message.not_before().unwrap_or(message.enqueued_at);
                    packed << TIME_BITS | u128::from(pack_time(time))
                }
                Criterion::Expiration => {
                    packed << TIME_BITS | u128::from(message.expires_at().map_or(LATEST, pack_time))
                }
                Criterion::Priority => {
                    let below_top = MAX_PRIORITY.saturating_sub(message.priority);
                    packed << PRIORITY_BITS | u128::from(below_top)
                }
            };
        }
        let turn = if order.latest_first {
            from_the_end(message.id)
        } else {
            message.id
        };
        Self {
            criteria: halves(packed),
            turn,
            sub: 0,
        }
    }

    /// The rank before everything that is there: each one before the one that came to the top before it.
    pub(crate) const fn at_the_top(id: MessageId) -> Self {
        Self {
            criteria: [0, 0],
            turn: from_the_end(id),
            sub: 0,
        }
    }

    /// Whether this is a rank before everything that is there, which no order gives.
    pub(crate) const fn is_at_the_top(&self) -> bool {
        matches!(self.criteria, [0, 0])
    }

    /// This rank at another place among those that were sent directly before the same message.
    pub(crate) const fn with_sub(self, sub: i64) -> Self {
        Self { sub, ..self }
    }
}

/// Numbers counted from the end; twice is not at all.
pub(crate) const fn from_the_end(id: MessageId) -> MessageId {
    MessageId {
        boot: u64::MAX - id.boot,
        seq: u64::MAX - id.seq,
    }
}

/// The order of times is kept; times too far away to matter are all the same.
fn pack_time(time: i64) -> u64 {
    let middle = 1_i64 << (TIME_BITS - 1);
    // One below the greatest, which is "never".
    let packed = time.saturating_add(middle).clamp(0, 2 * (middle - 1));
    u64::try_from(packed).unwrap_or(0)
}

fn halves(packed: u128) -> [u64; 2] {
    let low = u64::try_from(packed & u128::from(u64::MAX)).unwrap_or(u64::MAX);
    let high = u64::try_from(packed >> u64::BITS).unwrap_or(u64::MAX);
    [high, low]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::core::message::{Addresses, NewMessage, Parts};

    fn message(seq: u64, priority: u8, time: Option<i64>, expires: Option<i64>) -> QueuedMessage {
        let new = NewMessage {
            priority,
            not_before: time,
            expires_at: expires,
            ..NewMessage::new(pillarbox_messages::Destination::queue("q"), "".into())
        };
        Parts::of(&new, MessageId { boot: 1, seq }, "", 1_000, true).pack(&mut Addresses::default())
    }

    fn order() -> impl Strategy<Value = Order> {
        let all = vec![Criterion::Time, Criterion::Expiration, Criterion::Priority];
        let criteria = proptest::sample::subsequence(all, 0..=3).prop_shuffle();
        (criteria, any::<bool>()).prop_map(|(criteria, latest_first)| Order {
            criteria,
            latest_first,
        })
    }

    fn any_message(seq: u64) -> impl Strategy<Value = QueuedMessage> {
        // Few values, so that equal ones come up.
        let time = proptest::option::of(prop_oneof![-2..3_i64, 1_i64 << 40..(1_i64 << 40) + 2]);
        (0..=MAX_PRIORITY, time.clone(), time)
            .prop_map(move |(priority, time, expires)| message(seq, priority, time, expires))
    }

    /// The order as the words say it.
    fn by_the_words(
        order: &Order,
        one: &QueuedMessage,
        other: &QueuedMessage,
    ) -> std::cmp::Ordering {
        for criterion in &order.criteria {
            let compared = match criterion {
                Criterion::Time => {
                    let time = |it: &QueuedMessage| it.not_before().unwrap_or(it.enqueued_at);
                    time(one).cmp(&time(other))
                }
                Criterion::Expiration => {
                    let expires = |it: &QueuedMessage| (it.expires_at().is_none(), it.expires_at());
                    expires(one).cmp(&expires(other))
                }
                Criterion::Priority => other.priority.cmp(&one.priority),
            };
            if compared.is_ne() {
                return compared;
            }
        }
        if order.latest_first {
            other.id.cmp(&one.id)
        } else {
            one.id.cmp(&other.id)
        }
    }

    proptest! {
        #[test]
        fn keys_are_ordered_as_the_words_say(order in order(), one in any_message(7), other in any_message(8)) {
            let keys = SortKey::of(&one, &order).cmp(&SortKey::of(&other, &order));
            prop_assert_eq!(keys, by_the_words(&order, &one, &other));
        }

        #[test]
        fn the_top_is_before_everything(order in order(), one in any_message(7)) {
            let earlier = SortKey::at_the_top(MessageId { boot: 1, seq: 1 });
            let later = SortKey::at_the_top(MessageId { boot: 1, seq: 2 });
            prop_assert!(later < earlier && earlier < SortKey::of(&one, &order));
        }
    }

    #[test]
    fn times_beyond_all_reason_keep_their_side() {
        let order = Order {
            criteria: vec![Criterion::Expiration],
            latest_first: false,
        };
        let key = |expires| SortKey::of(&message(1, 4, None, expires), &order);
        assert!(key(Some(i64::MIN)) < key(Some(0)));
        assert!(key(Some(0)) < key(Some(i64::MAX)));
        assert!(key(Some(i64::MAX)) < key(None), "never is later still");
    }
}
