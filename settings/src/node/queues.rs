//! `[[bus_server.queues]]` of node.toml: what queues of the embedded bus are like.

use std::{str::FromStr, time::Duration};

use serde::Deserialize;

use super::moving;
use crate::{
    checker::Checker,
    duration::HumaneDuration,
    raw_value::{OneOf, Text, Word},
};

/// A queue that the embedded bus has, as far as it is to be another than usual.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueNode {
    /// Its name.
    pub name: String,
    /// What its messages are ordered by; what counts most is first.
    pub order: Option<QueueOrder>,
    /// Which messages are dealt with one after the other.
    pub lanes: Option<QueueLanes>,
    /// How message groups fall into a fixed number of lanes.
    pub lane_hash: Option<QueueHash>,
    /// Whether messages without a message group are refused.
    pub require_key: Option<bool>,
    /// With so many failures a message is moved aside; 0: never.
    pub backout_limit: Option<u32>,
    /// Where it is moved to.
    pub backout_queue: Option<String>,
    /// What becomes of the messages of its group behind it.
    pub on_lane_poison: Option<LanePoison>,
    /// The pause before a refused message comes again; doubles each time.
    pub retry_delay: Option<Duration>,
    /// The longest such pause.
    pub retry_delay_max: Option<Duration>,
    /// How senders may have messages jump the queue.
    pub out_of_order: Option<Vec<Jump>>,
    /// Where messages go that are too old; none: they are dropped.
    pub expiry_queue: Option<String>,
    /// Whether its lanes may change while messages are in it.
    pub drain: bool,
}

/// A queue's order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueOrder {
    /// Criteria, each once.
    pub criteria: Vec<QueueCriterion>,
    /// Among equals the latest first.
    pub latest_first: bool,
}

/// What messages are ordered by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueCriterion {
    /// When they may be delivered from on.
    Time,
    /// When they expire.
    Expiration,
    /// Their priority.
    Priority,
}

/// Which messages are dealt with one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueLanes {
    /// None are.
    None,
    /// All are.
    Single,
    /// Those that fall into one of so many lanes.
    Hashed(u32),
    /// Those of one message group.
    Key,
}

/// How message groups fall into lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueHash {
    /// As Java's `String.hashCode` with `Math.floorMod`.
    JavaString,
    /// The 64 bit FNV-1a hash.
    Fnv1a64,
}

/// What becomes of the messages behind one that is moved aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LanePoison {
    /// They go on.
    Skip,
    /// They are moved with it.
    Park,
}

/// How a message may jump the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Jump {
    /// To the top.
    Top,
    /// Before a message named by its id.
    MessageId,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct RawQueue {
    pub(crate) name: Option<String>,
    pub(crate) order: Option<Vec<OneOf<OrderWord>>>,
    pub(crate) lanes: Option<Text<QueueLanes>>,
    pub(crate) lane_hash: Option<OneOf<QueueHash>>,
    pub(crate) require_key: Option<bool>,
    pub(crate) backout_limit: Option<u32>,
    pub(crate) backout_queue: Option<String>,
    pub(crate) on_lane_poison: Option<OneOf<LanePoison>>,
    pub(crate) retry_delay: Option<Text<HumaneDuration>>,
    pub(crate) retry_delay_max: Option<Text<HumaneDuration>>,
    pub(crate) out_of_order: Option<Vec<OneOf<Jump>>>,
    pub(crate) expiry_queue: Option<String>,
    pub(crate) drain: Option<bool>,
}

/// A word of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OrderWord {
    By(QueueCriterion),
    Fifo,
    Lifo,
}

impl Word for OrderWord {
    const WHAT: &'static str = "criterion of an order";
    const ALL: &'static [(&'static str, Self)] = &[
        ("time", Self::By(QueueCriterion::Time)),
        ("expiration", Self::By(QueueCriterion::Expiration)),
        ("priority", Self::By(QueueCriterion::Priority)),
        ("fifo", Self::Fifo),
        ("lifo", Self::Lifo),
    ];
}

impl Word for QueueHash {
    const WHAT: &'static str = "hash of message groups";
    const ALL: &'static [(&'static str, Self)] = &[
        ("java-string", Self::JavaString),
        ("fnv1a64", Self::Fnv1a64),
    ];
}

impl Word for LanePoison {
    const WHAT: &'static str = "way to go on behind a message that fails";
    const ALL: &'static [(&'static str, Self)] = &[("skip", Self::Skip), ("park", Self::Park)];
}

impl Word for Jump {
    const WHAT: &'static str = "way to jump a queue";
    const ALL: &'static [(&'static str, Self)] = &[("top", Self::Top), ("msgid", Self::MessageId)];
}

impl FromStr for QueueLanes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = text
            .strip_prefix("hashed(")
            .and_then(|rest| rest.strip_suffix(')'));
        match (text, number.map(str::parse)) {
            ("none", _) => Ok(Self::None),
            ("single", _) => Ok(Self::Single),
            ("key", _) => Ok(Self::Key),
            (_, Some(Ok(number))) if (1..=MAX_LANES).contains(&number) => Ok(Self::Hashed(number)),
            (_, Some(_)) => Err(format!(
                "`{text}` has no number of lanes from 1 to {MAX_LANES}; write it as in \"hashed(4)\""
            )),
            _ => Err(format!(
                "`{text}` is no kind of lanes; use `none`, `single`, `hashed(N)` or `key`"
            )),
        }
    }
}

const MAX_LANES: u32 = 1024;
const LONGEST_NAME: usize = 255;
const LONGEST_DELAY: Duration = Duration::from_secs(3_660 * 86_400);
pub(super) const PATH: &str = "bus_server.queues";

pub(super) fn queues(raw: &[RawQueue], checker: &mut Checker<'_>) -> Vec<QueueNode> {
    let mut queues: Vec<(usize, QueueNode)> = Vec::new();
    for (at, raw) in raw.iter().enumerate() {
        let path = format!("{PATH}.{at}");
        let name_path = format!("{path}.name");
        let name = checker.require(&name_path, raw.name.as_ref(), "name = \"orders\"");
        let Some(name) = name.cloned() else {
            continue;
        };
        check_name(&name_path, "queue", &name, checker);
        if queues.iter().any(|(_, other)| other.name == name) {
            let cause = format!("the queue `{name}` is described twice");
            checker.problem(&name_path, cause, "describe it once");
        }
        queues.push((at, queue(&path, name, raw, checker)));
    }
    let numbered: Vec<_> = queues.iter().map(|(at, queue)| (*at, queue)).collect();
    moving::no_circle(&numbered, &[], checker);
    queues.into_iter().map(|(_, queue)| queue).collect()
}

fn queue(path: &str, name: String, raw: &RawQueue, checker: &mut Checker<'_>) -> QueueNode {
    let at = |key: &str| format!("{path}.{key}");
    let order = raw
        .order
        .as_ref()
        .map(|words| order(&at("order"), words, checker));
    for (key, target) in [
        ("backout_queue", &raw.backout_queue),
        ("expiry_queue", &raw.expiry_queue),
    ] {
        let Some(target) = target else { continue };
        if target == &name {
            let cause = format!("the queue `{name}` would move messages to itself");
            checker.problem(&at(key), cause, "name another queue");
        } else if target != ERROR_QUEUE {
            check_name(&at(key), "queue", target, checker);
        }
    }
    let duration = |text: &Option<Text<HumaneDuration>>| text.as_ref().map(|Text(it)| it.0);
    let (delay, longest) = (duration(&raw.retry_delay), duration(&raw.retry_delay_max));
    check_delays(path, delay, longest, checker);
    let lanes = raw.lanes.as_ref().map(|Text(lanes)| *lanes);
    check_lanes(path, lanes, raw, checker);
    QueueNode {
        name,
        order,
        lanes,
        lane_hash: raw.lane_hash.map(|OneOf(it)| it),
        require_key: raw.require_key,
        backout_limit: raw.backout_limit,
        backout_queue: raw.backout_queue.clone(),
        on_lane_poison: raw.on_lane_poison.map(|OneOf(it)| it),
        retry_delay: delay,
        retry_delay_max: longest,
        out_of_order: raw
            .out_of_order
            .as_ref()
            .map(|words| words.iter().map(|OneOf(it)| *it).collect()),
        expiry_queue: raw.expiry_queue.clone(),
        drain: raw.drain.unwrap_or(false),
    }
}

/// The queue for what has no other place.
const ERROR_QUEUE: &str = "~error";

/// Whether a queue or topic can have this name.
pub(super) fn check_name(path: &str, what: &str, name: &str, checker: &mut Checker<'_>) -> bool {
    let strange = |c: char| c.is_control() || ",*>#/".contains(c);
    let ends = [' ', '.'];
    let next_step = if name.is_empty() || name.len() > LONGEST_NAME {
        "write 1 to 255 bytes"
    } else if name.starts_with('~') {
        "leave out the ~ at the start, which is the bus's own"
    } else if name.contains(strange) {
        "leave out , * > # / and control characters"
    } else if name.starts_with(ends) || name.ends_with(ends) {
        "begin and end with neither a space nor a dot"
    } else {
        return true;
    };
    let shown: String = name.chars().take(40).collect();
    let cause = format!("`{}` can't be the name of a {what}", shown.escape_debug());
    checker.problem(path, cause, next_step);
    false
}

fn order(path: &str, words: &[OneOf<OrderWord>], checker: &mut Checker<'_>) -> QueueOrder {
    let mut order = QueueOrder {
        criteria: Vec::new(),
        latest_first: false,
    };
    for (at, OneOf(word)) in words.iter().enumerate() {
        let is_last = at + 1 == words.len();
        match word {
            OrderWord::By(criterion) if order.criteria.contains(criterion) => {
                let cause = "the order names a criterion twice".to_owned();
                checker.problem(&format!("{path}.{at}"), cause, "name it once");
            }
            OrderWord::By(criterion) => order.criteria.push(*criterion),
            OrderWord::Fifo | OrderWord::Lifo if !is_last => {
                let cause =
                    "what follows `fifo` or `lifo` in an order would never count".to_owned();
                checker.problem(&format!("{path}.{at}"), cause, "write it last");
            }
            OrderWord::Fifo => {}
            OrderWord::Lifo => order.latest_first = true,
        }
    }
    order
}

fn check_delays(
    path: &str,
    delay: Option<Duration>,
    longest: Option<Duration>,
    checker: &mut Checker<'_>,
) {
    if delay.is_some_and(|delay| delay.is_zero()) {
        let cause = "`retry_delay` is zero, so that a message that fails would keep everybody busy";
        let path = format!("{path}.retry_delay");
        checker.problem(&path, cause.to_owned(), "write a longer time, as in \"1s\"");
    }
    let first = delay.unwrap_or(DELAY);
    let most = longest.unwrap_or(LONGEST_USUAL_DELAY);
    if most < first || most.max(first) > LONGEST_DELAY {
        let key = if longest.is_some() {
            "retry_delay_max"
        } else {
            "retry_delay"
        };
        let cause =
            "the pauses don't grow from `retry_delay` to a `retry_delay_max` below ten years";
        let next_step = "write a `retry_delay_max` that is longer";
        checker.problem(&format!("{path}.{key}"), cause.to_owned(), next_step);
    }
}

const DELAY: Duration = Duration::from_secs(1);
const LONGEST_USUAL_DELAY: Duration = Duration::from_secs(60);

fn check_lanes(path: &str, lanes: Option<QueueLanes>, raw: &RawQueue, checker: &mut Checker<'_>) {
    let mut refuse = |key: &str, cause: &str, next_step: &str| {
        checker.problem(&format!("{path}.{key}"), cause.to_owned(), next_step);
    };
    // What is not said here may be a pillar's queue, which has lanes.
    let none = lanes == Some(QueueLanes::None);
    let groups = !matches!(lanes, Some(QueueLanes::None | QueueLanes::Single));
    if raw.lane_hash.is_some() && !matches!(lanes, Some(QueueLanes::Hashed(_))) {
        refuse(
            "lane_hash",
            "`lane_hash` is for a fixed number of lanes",
            "remove it, or write lanes = \"hashed(4)\"",
        );
    }
    if raw.require_key == Some(true) && !groups {
        refuse(
            "require_key",
            "message groups make no lanes here",
            "remove it, or write lanes = \"key\"",
        );
    }
    if raw.on_lane_poison == Some(OneOf(LanePoison::Park)) && none {
        refuse(
            "on_lane_poison",
            "there are no lanes to park",
            "remove it, or write lanes = \"key\"",
        );
    }
    let jumps = raw.out_of_order.as_ref().is_some_and(|it| !it.is_empty());
    if jumps && lanes.is_some() && !none {
        refuse(
            "out_of_order",
            "lanes keep an order that nobody can be let out of",
            "remove it, or write lanes = \"none\"",
        );
    }
}
