//! What a durable subscription is besides a queue: what it may hold, whether anybody is there, and what it missed.

use super::{attributes::Lanes, notice::Hourly, selector::Selector, subscribe::Wish};
use crate::embedded::connection::ConnectionId;

/// What becomes of a message that a full durable subscription would have to keep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnLimit {
    /// It is left out and counted, and so are all that follow until there is room. The first that is kept again tells
    /// how many were left out.
    #[default]
    Gap,
    /// The oldest messages make room, and are counted in the same way.
    DropOldest,
    /// The subscription ends with everything in it.
    Cancel,
    /// Whoever sent it is refused.
    RejectPublish,
}

impl OnLimit {
    /// In the words of node.toml.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Gap => "gap",
            Self::DropOldest => "drop-oldest",
            Self::Cancel => "cancel",
            Self::RejectPublish => "reject-publish",
        }
    }
}

/// What a durable subscription may hold, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubscriptionLimits {
    /// So many messages; `None`: as many as fit.
    pub max_messages: Option<u64>,
    /// So many bytes; `None`: a tenth of what the queue space holds.
    pub max_bytes: Option<u64>,
    /// So long its client may be away before it is cancelled, in milliseconds; `None`: for ever.
    pub max_offline_ms: Option<i64>,
    /// What becomes of a message that is too much.
    pub on_limit: OnLimit,
}

/// The share of the queue space that a subscription may fill if nothing else is said.
const USUAL_SHARE: u64 = 10;
/// Of the queue space, what all subscriptions together may fill whose clients are away.
const AWAY_SHARE: u64 = 2;
/// How long a client may be away if nothing else is said, in milliseconds.
const USUAL_OFFLINE: i64 = 7 * 86_400_000;

impl Default for SubscriptionLimits {
    /// A tenth of the queue space and a week; what is too much is left out and counted.
    fn default() -> Self {
        Self {
            max_messages: None,
            max_bytes: None,
            max_offline_ms: Some(USUAL_OFFLINE),
            on_limit: OnLimit::Gap,
        }
    }
}

impl SubscriptionLimits {
    /// How many bytes that is in a queue space of this capacity.
    pub(crate) const fn bytes_of(&self, capacity: u64) -> u64 {
        match self.max_bytes {
            Some(bytes) => bytes,
            None => capacity / USUAL_SHARE,
        }
    }
}

/// How many bytes all subscriptions together may hold whose clients are away.
pub(crate) const fn away_share(capacity: u64) -> u64 {
    capacity / AWAY_SHARE
}

/// What an administrator says about some durable subscriptions. What is not said stays as it is by default, or as an
/// earlier rule has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubscriptionRule {
    /// Those of this client only.
    pub client_id: Option<String>,
    /// Those of this name only. A rule without one says what is usual: it is no reason to cancel a subscription that
    /// was registered by an administrator.
    pub name: Option<String>,
    /// See [`SubscriptionLimits::max_messages`].
    pub max_messages: Option<u64>,
    /// See [`SubscriptionLimits::max_bytes`].
    pub max_bytes: Option<u64>,
    /// See [`SubscriptionLimits::max_offline_ms`]; `Some(None)`: for ever.
    pub max_offline_ms: Option<Option<i64>>,
    /// See [`SubscriptionLimits::on_limit`].
    pub on_limit: Option<OnLimit>,
    /// Which of its messages are dealt with one after the other, where several consumers share it.
    pub lanes: Option<Lanes>,
}

impl SubscriptionRule {
    fn is_about(&self, client_id: &str, name: &str) -> bool {
        self.client_id.as_deref().is_none_or(|it| it == client_id)
            && self.name.as_deref().is_none_or(|it| it == name)
    }

    /// Whether it says what is usual, and of nobody in particular.
    const fn is_about_all(&self) -> bool {
        self.client_id.is_none() && self.name.is_none()
    }

    fn apply(&self, limits: &mut SubscriptionLimits, registered: bool) {
        limits.max_messages = self.max_messages.or(limits.max_messages);
        limits.max_bytes = self.max_bytes.or(limits.max_bytes);
        limits.on_limit = self.on_limit.unwrap_or(limits.on_limit);
        if let Some(longest) = self.max_offline_ms
            && !(registered && self.name.is_none())
        {
            limits.max_offline_ms = longest;
        }
    }
}

/// The limits of a subscription by these rules. `registered`: by an administrator, so that it waits for its client for
/// ever if nothing else is said about it.
pub(crate) fn limits_by(
    rules: &[SubscriptionRule],
    client_id: &str,
    name: &str,
    registered: bool,
) -> SubscriptionLimits {
    let mut limits = SubscriptionLimits::default();
    if registered {
        limits.max_offline_ms = None;
    }
    let about = rules.iter().filter(|rule| rule.is_about(client_id, name));
    let (general, own): (Vec<_>, Vec<_>) = about.partition(|rule| rule.is_about_all());
    for rule in general.into_iter().chain(own) {
        rule.apply(&mut limits, registered);
    }
    limits
}

/// The lanes of a subscription by these rules.
pub(crate) fn lanes_by(rules: &[SubscriptionRule], client_id: &str, name: &str) -> Lanes {
    let about = |own: bool| {
        let rules = rules.iter().rev();
        let mut rules =
            rules.filter(move |it| it.is_about(client_id, name) && it.is_about_all() != own);
        rules.find_map(|rule| rule.lanes)
    };
    about(true).or_else(|| about(false)).unwrap_or_default()
}

/// Messages that a durable subscription has missed because it was full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// How many.
    pub count: u64,
    /// When the first of them was missed (ms since 1970).
    pub since: i64,
}

impl Gap {
    /// One gap of two that nothing lies between.
    pub(crate) fn joined(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        match (one, other) {
            (Some(one), Some(other)) => Some(Self {
                count: one.count.saturating_add(other.count),
                since: one.since.min(other.since),
            }),
            (one, other) => one.or(other),
        }
    }

    /// What is left without another one that had been joined.
    const fn without(self, other: Self) -> Option<Self> {
        match self.count.saturating_sub(other.count) {
            0 => None,
            count => Some(Self { count, ..self }),
        }
    }
}

/// What changes while a durable subscription lives, as the log knows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Standing {
    /// Since when its client is away (ms since 1970); `None`: it is there.
    pub(crate) away_since: Option<i64>,
    /// What it has missed and no message in the log tells of.
    pub(crate) gap: Option<Gap>,
}

/// Which messages a topic's subscription wants, if not all.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Filter {
    pub(crate) selector: Option<Selector>,
    /// None that this connection sends.
    pub(crate) not_from: Option<ConnectionId>,
}

/// What makes a durable subscription another one, besides its topic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Nature {
    /// Which messages it wants, in the words of its client.
    pub(crate) selector: Option<String>,
    /// It does not want what its own client sends.
    pub(crate) no_local: bool,
}

impl Nature {
    pub(super) fn of(wish: &Wish) -> Self {
        Self {
            selector: wish.selector.as_ref().map(|it| it.as_str().to_owned()),
            no_local: wish.options.no_local,
        }
    }

    /// In what way this one is not the other, in words.
    pub(crate) fn difference(&self, other: &Self) -> Option<String> {
        let shown = |selector: &Option<String>| match selector {
            Some(text) => format!("the selector \"{text}\""),
            None => "no selector".to_owned(),
        };
        if self.selector != other.selector {
            let (this, that) = (shown(&self.selector), shown(&other.selector));
            return Some(format!("has {this}, not {that}"));
        }
        let leaves_out = |no_local: bool| if no_local { "leaves out" } else { "has" };
        (self.no_local != other.no_local).then(|| {
            let (this, that) = (leaves_out(self.no_local), leaves_out(other.no_local));
            format!("{this} what its own client sends, and it was asked that it {that} it")
        })
    }
}

/// A durable subscription, besides its queue.
#[derive(Clone, Debug, Default)]
pub(crate) struct Subscriber {
    pub(crate) limits: SubscriptionLimits,
    /// Which messages it wants, if not all.
    pub(crate) selector: Option<Selector>,
    /// It does not want what its own client sends.
    pub(crate) no_local: bool,
    /// An administrator has made it.
    pub(crate) registered: bool,
    /// Since when its client is away; `None`: it is there.
    pub(crate) away_since: Option<i64>,
    /// It is not cancelled before this time.
    pub(crate) grace_until: Option<i64>,
    /// What it has missed since the latest message that it has kept.
    pub(crate) gap: Option<Gap>,
    /// The gaps that messages tell of which the log does not know.
    pub(crate) unlogged: Option<Gap>,
    /// That it has missed a message because it is full.
    pub(crate) misses: Hourly,
}

impl Subscriber {
    pub(crate) fn new(limits: SubscriptionLimits, nature: &Nature) -> Self {
        Self {
            limits,
            // It was one when it was written down.
            selector: nature.selector.as_ref().and_then(|text| text.parse().ok()),
            no_local: nature.no_local,
            ..Self::default()
        }
    }

    pub(crate) fn nature(&self) -> Nature {
        Nature {
            selector: self.selector.as_ref().map(|it| it.as_str().to_owned()),
            no_local: self.no_local,
        }
    }

    pub(crate) fn standing(&self) -> Standing {
        Standing {
            away_since: self.away_since,
            gap: Gap::joined(self.gap, self.unlogged),
        }
    }

    /// When it is to be cancelled if its client stays away.
    pub(crate) fn deadline(&self) -> Option<i64> {
        let longest = self.limits.max_offline_ms?;
        let at = self.away_since?.saturating_add(longest);
        Some(self.grace_until.map_or(at, |grace| grace.max(at)))
    }

    /// A message that tells of a gap is not in the log.
    pub(crate) fn note_unlogged(&mut self, gap: Gap) {
        self.unlogged = Gap::joined(self.unlogged, Some(gap));
    }

    /// It is gone.
    pub(crate) fn forget_unlogged(&mut self, gap: Gap) {
        self.unlogged = self.unlogged.and_then(|all| all.without(gap));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(name: Option<&str>) -> SubscriptionRule {
        SubscriptionRule {
            name: name.map(str::to_owned),
            ..SubscriptionRule::default()
        }
    }

    #[test]
    fn what_is_said_about_one_counts_more_than_what_is_said_about_all() {
        let rules = [
            SubscriptionRule {
                max_messages: Some(7),
                on_limit: Some(OnLimit::Cancel),
                ..rule(Some("mine"))
            },
            SubscriptionRule {
                max_messages: Some(5),
                max_bytes: Some(1_000),
                max_offline_ms: Some(Some(60_000)),
                ..rule(None)
            },
        ];
        let mine = limits_by(&rules, "d", "mine", false);
        let other = limits_by(&rules, "d", "other", false);
        assert_eq!((mine.max_messages, other.max_messages), (Some(7), Some(5)));
        assert_eq!(mine.max_bytes, Some(1_000));
        assert_eq!(mine.max_offline_ms, Some(60_000));
        assert_eq!(
            (mine.on_limit, other.on_limit),
            (OnLimit::Cancel, OnLimit::Gap)
        );
    }

    #[test]
    fn a_registered_subscription_waits_for_ever_unless_its_own_rule_says_otherwise() {
        let longest = |rules: &[SubscriptionRule], registered| {
            limits_by(rules, "d", "mine", registered).max_offline_ms
        };
        assert_eq!(longest(&[], true), None);
        assert_eq!(longest(&[], false), Some(7 * 86_400_000));
        let all = SubscriptionRule {
            max_offline_ms: Some(Some(1)),
            ..rule(None)
        };
        assert_eq!(longest(std::slice::from_ref(&all), true), None);
        assert_eq!(longest(std::slice::from_ref(&all), false), Some(1));
        let own = SubscriptionRule {
            max_offline_ms: Some(Some(2)),
            ..rule(Some("mine"))
        };
        assert_eq!(longest(&[own.clone(), all], true), Some(2));
        let others = SubscriptionRule {
            client_id: Some("e".to_owned()),
            ..own
        };
        assert_eq!(longest(&[others], true), None);
    }

    #[test]
    fn gaps_add_up_and_come_apart() {
        let gap = |count, since| Gap { count, since };
        let both = Gap::joined(Some(gap(2, 50)), Some(gap(3, 20)));
        assert_eq!(both, Some(gap(5, 20)));
        assert_eq!(Gap::joined(None, Some(gap(1, 1))), Some(gap(1, 1)));
        assert_eq!(gap(5, 20).without(gap(3, 20)), Some(gap(2, 20)));
        assert_eq!(gap(3, 20).without(gap(3, 20)), None);
    }
}
