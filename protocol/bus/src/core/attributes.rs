//! What can be said about a queue: its order, who may jump it, and what becomes of messages that fail or are too old.

use crate::{error::BusError, spelling};

/// How a queue orders its messages, and what it does with those that fail or get too old.
///
/// Part of the queue's definition: written down with it, and the same after a restart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueAttributes {
    /// Which message is first. Can be changed only while the queue is empty.
    pub order: Order,
    /// Who may jump it. Nobody may where there are lanes.
    pub out_of_order: OutOfOrder,
    /// Which messages are handed out one after the other.
    pub lanes: Lanes,
    /// Messages that name no message group are refused.
    pub require_key: bool,
    /// With so many failures a message is moved aside; `None`: never.
    pub backout_limit: Option<u32>,
    /// Where it is moved to, made if it isn't there; `None`: the error queue.
    pub backout_queue: Option<String>,
    /// What becomes of the messages behind it in its lane.
    pub on_lane_poison: OnLanePoison,
    /// How long a refused message waits.
    pub retry_delay: RetryDelay,
    /// What becomes of a message that is too old.
    pub on_expiry: OnExpiry,
}

/// The order of a queue's messages: by criteria, the first of them counting most; those that are equal by all of them
/// in the order of their commits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// Each at most once.
    pub criteria: Vec<Criterion>,
    /// Among equals the latest first (LIFO), not the earliest (FIFO).
    pub latest_first: bool,
}

/// What messages are ordered by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Criterion {
    /// When they may be delivered from on, else when they were committed; the earliest first.
    Time,
    /// When they expire; the earliest first, those that never do last.
    Expiration,
    /// Their priority; the highest first.
    Priority,
}

impl Default for Order {
    /// By priority, then first in, first out.
    fn default() -> Self {
        Self {
            criteria: vec![Criterion::Priority],
            latest_first: false,
        }
    }
}

/// How messages may be sent to another place than the one that the queue's order gives them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutOfOrder {
    /// To the top: before everything else that is there.
    pub top: bool,
    /// Directly before a message that the sender names.
    pub before: bool,
}

/// Which messages are dealt with one after the other, by one consumer at a time: those of one lane. What is in
/// different lanes is dealt with side by side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lanes {
    /// None are: the queue keeps an order of handing out, not of dealing with.
    #[default]
    None,
    /// All are: one consumer has the queue, others wait for it to go.
    Single,
    /// Those whose message groups fall into the same lane, of a fixed number. Lane `i` can be addressed by itself, as
    /// the queue's name with `.i` behind it.
    Hashed {
        /// How many lanes there are.
        count: u32,
        /// How a message group falls into its lane.
        hash: LaneHash,
    },
    /// Those of one message group.
    Key,
}

impl Lanes {
    /// In the words of node.toml.
    pub(crate) fn in_words(self) -> String {
        match self {
            Self::None => "none".to_owned(),
            Self::Single => "single".to_owned(),
            Self::Key => "key".to_owned(),
            Self::Hashed { count, .. } => format!("hashed({count})"),
        }
    }

    /// How a group falls into its lane, in the words of node.toml, where that is a question.
    pub(crate) const fn hash_in_words(self) -> Option<&'static str> {
        match self {
            Self::Hashed {
                hash: LaneHash::JavaString,
                ..
            } => Some("java-string"),
            Self::Hashed {
                hash: LaneHash::Fnv1a64,
                ..
            } => Some("fnv1a64"),
            Self::None | Self::Single | Self::Key => None,
        }
    }

    /// How many lanes can be addressed by their number.
    pub(crate) const fn numbered(self) -> u32 {
        match self {
            Self::Hashed { count, .. } => count,
            Self::None | Self::Single | Self::Key => 0,
        }
    }
}

/// How a message group falls into a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneHash {
    /// As Java's `Math.floorMod(group.hashCode(), count)` does.
    JavaString,
    /// The 64 bit FNV-1a hash of its UTF-8, modulo the number of lanes.
    Fnv1a64,
}

/// The pause before a refused message comes again: doubles each time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryDelay {
    /// The first pause, in milliseconds.
    pub initial_ms: i64,
    /// The longest pause, in milliseconds.
    pub max_ms: i64,
}

impl Default for RetryDelay {
    /// From one second to a minute.
    fn default() -> Self {
        Self {
            initial_ms: 1_000,
            max_ms: 60_000,
        }
    }
}

impl RetryDelay {
    /// The pause after the n-th refusal, in milliseconds.
    pub(crate) fn after(self, backouts: u32) -> i64 {
        let doublings = backouts.saturating_sub(1).min(30);
        self.initial_ms
            .saturating_mul(1 << doublings)
            .min(self.max_ms)
    }
}

/// What becomes of the messages behind one that is moved aside because it failed too often.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnLanePoison {
    /// They go on: only that one is left out.
    #[default]
    Skip,
    /// Those of its message group that are there are moved aside with it, in their order.
    Park,
}

/// What becomes of a message that is too old.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum OnExpiry {
    /// It is gone, counted.
    #[default]
    Drop,
    /// It goes to this queue, which is made if it isn't there.
    Move(String),
}

/// A queue that must exist, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueDefinition {
    /// Its name.
    pub name: String,
    /// What it is like.
    pub attributes: QueueAttributes,
    /// Whether its lanes may be changed while messages are in it: they are dealt with in their lanes before those that
    /// come from then on.
    pub drain: bool,
}

/// The longest pause there may be, in milliseconds: ten years, leap days included.
const LONGEST_DELAY: i64 = 10 * 366 * 86_400_000;

/// How many lanes a queue may have.
pub(crate) const MAX_LANES: u32 = 1024;

/// How many failures are too many, if nothing else is said.
const BACKOUT_LIMIT: u32 = 3;

impl Default for QueueAttributes {
    /// By priority and first in, first out; no lanes; three failures lead to the error queue; what is too old is gone.
    fn default() -> Self {
        Self {
            order: Order::default(),
            out_of_order: OutOfOrder::default(),
            lanes: Lanes::None,
            require_key: false,
            backout_limit: Some(BACKOUT_LIMIT),
            backout_queue: None,
            on_lane_poison: OnLanePoison::Skip,
            retry_delay: RetryDelay::default(),
            on_expiry: OnExpiry::Drop,
        }
    }
}

impl QueueAttributes {
    /// What a queue of the system's own, or one that nobody has said anything about, is like.
    pub(crate) fn plain() -> Self {
        Self::default()
    }

    /// Refuses what makes no sense for a queue of this name.
    ///
    /// # Errors
    /// [`BusError::Refused`] with the name `INVALID`, saying what is wrong.
    pub fn check(&self, queue: &str) -> Result<(), BusError> {
        let fault = self.fault(queue);
        fault.map_or(Ok(()), |fault| {
            Err(BusError::invalid(format!("queue '{queue}': {fault}")))
        })
    }

    fn fault(&self, queue: &str) -> Option<String> {
        let mut criteria = self.order.criteria.clone();
        criteria.sort_unstable();
        criteria.dedup();
        if criteria.len() < self.order.criteria.len() {
            return Some("its order names a criterion twice".to_owned());
        }
        if self.backout_limit == Some(0) {
            return Some("its messages would be moved aside before they had failed".to_owned());
        }
        let RetryDelay { initial_ms, max_ms } = self.retry_delay;
        if initial_ms < 1 || max_ms < initial_ms || max_ms > LONGEST_DELAY {
            return Some(
                "its retry delay is not from 1 ms on up to a maximum below ten years".to_owned(),
            );
        }
        if let Some(fault) = self.fault_of_lanes() {
            return Some(fault.to_owned());
        }
        self.targets()
            .find_map(|target| fault_of_target(queue, target))
    }

    fn fault_of_lanes(&self) -> Option<&'static str> {
        let keyed = matches!(self.lanes, Lanes::Hashed { .. } | Lanes::Key);
        if let Lanes::Hashed { count, .. } = self.lanes
            && !(1..=MAX_LANES).contains(&count)
        {
            return Some("it has not 1 to 1024 lanes");
        }
        if self.lanes != Lanes::None && self.out_of_order != OutOfOrder::default() {
            return Some("its lanes keep an order that nobody can be let out of");
        }
        if self.on_lane_poison == OnLanePoison::Park && self.lanes == Lanes::None {
            return Some("it has no lanes that could be parked");
        }
        if self.require_key && !keyed {
            return Some("it has no lanes that a message group could lead to");
        }
        None
    }

    /// The queues that this one moves messages to.
    pub(crate) fn targets(&self) -> impl Iterator<Item = &str> {
        let expired = match &self.on_expiry {
            OnExpiry::Move(target) => Some(target.as_str()),
            OnExpiry::Drop => None,
        };
        self.backout_queue.as_deref().into_iter().chain(expired)
    }
}

fn fault_of_target(queue: &str, target: &str) -> Option<String> {
    if target == queue {
        return Some("it can't move messages to itself".to_owned());
    }
    if target.starts_with('~') {
        return (target != super::ERROR_QUEUE)
            .then(|| format!("'{target}' starts with '~', which is the bus's own"));
    }
    spelling::fault_of_name(target)
        .map(|fault| format!("the name '{target}' of the queue it moves messages to {fault}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_minute() {
        let delay = RetryDelay::default();
        let pauses: Vec<i64> = (1..9).map(|backouts| delay.after(backouts)).collect();
        assert_eq!(pauses, [1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000]);
        assert_eq!(delay.after(u32::MAX), 60000);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let fault = |change: fn(&mut QueueAttributes)| {
            let mut attributes = QueueAttributes::default();
            change(&mut attributes);
            attributes.check("q").map_err(|error| error.to_string())
        };
        assert_eq!(fault(|_| {}), Ok(()));
        let twice = fault(|it| it.order.criteria = vec![Criterion::Time, Criterion::Time]);
        assert!(twice.unwrap_err().contains("twice"));
        assert!(fault(|it| it.backout_limit = Some(0)).is_err());
        assert!(fault(|it| it.backout_queue = Some("q".to_owned())).is_err());
        assert!(fault(|it| it.on_lane_poison = OnLanePoison::Park).is_err());
        assert!(fault(|it| it.retry_delay.initial_ms = 0).is_err());
        assert!(fault(|it| it.retry_delay.max_ms = 999).is_err());
        assert!(fault(|it| it.retry_delay.max_ms = i64::MAX).is_err());
        let hash = LaneHash::JavaString;
        let hashed = |count| Lanes::Hashed { count, hash };
        for (lanes, require_key, top, fits) in [
            (Lanes::Key, true, false, true),
            (Lanes::Key, false, true, false),
            (Lanes::Single, true, false, false),
            (Lanes::None, true, false, false),
            (hashed(1), true, false, true),
            (hashed(1024), false, false, true),
            (hashed(0), false, false, false),
            (hashed(1025), false, false, false),
        ] {
            let mut attributes = QueueAttributes {
                lanes,
                require_key,
                ..QueueAttributes::default()
            };
            attributes.out_of_order.top = top;
            assert_eq!(attributes.check("q").is_ok(), fits, "{lanes:?}");
        }
        for (target, fits) in [
            ("old", true),
            ("~error", true),
            ("~else", false),
            ("q", false),
            ("a,b", false),
        ] {
            let attributes = QueueAttributes {
                on_expiry: OnExpiry::Move(target.to_owned()),
                ..QueueAttributes::default()
            };
            assert_eq!(attributes.check("q").is_ok(), fits, "{target}");
        }
    }
}
