//! `[[bus_server.subscriptions]]` of node.toml: what durable subscriptions on the embedded bus may hold.

use std::{str::FromStr, time::Duration};

use pillarbox_messages::Destination;
use serde::Deserialize;

use super::{QueueLanes, queues::check_name};
use crate::{
    checker::Checker,
    duration::HumaneDuration,
    raw_value::{OneOf, Text, Word},
    size::ByteSize,
};

/// What is said about some durable subscriptions on the embedded bus; without client and name, about all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubscriptionNode {
    /// The client whose they are.
    pub client: Option<String>,
    /// Their name.
    pub name: Option<String>,
    /// So many messages wait at most.
    pub max_messages: Option<u64>,
    /// So many bytes wait at most.
    pub max_bytes: Option<u64>,
    /// How long the client may be away before its subscription is cancelled.
    pub max_offline: Option<Offline>,
    /// What becomes of a message that is too much.
    pub on_limit: Option<SubscriptionLimit>,
    /// Which of its messages are dealt with one after the other, where several consumers share it.
    pub lanes: Option<QueueLanes>,
}

/// How long a client may be away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offline {
    /// For ever.
    Never,
    /// So long.
    For(Duration),
}

/// What becomes of a message that a full subscription would have to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubscriptionLimit {
    /// It is left out and counted.
    Gap,
    /// The oldest make room, and are counted.
    DropOldest,
    /// The subscription is cancelled.
    Cancel,
    /// Its sender is refused.
    RejectPublish,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct RawSubscription {
    pub(crate) client: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) max_messages: Option<u64>,
    pub(crate) max_bytes: Option<ByteSize>,
    pub(crate) max_offline: Option<Text<Offline>>,
    pub(crate) on_limit: Option<OneOf<SubscriptionLimit>>,
    pub(crate) lanes: Option<Text<QueueLanes>>,
}

impl Word for SubscriptionLimit {
    const WHAT: &'static str = "way of a subscription that is full";
    const ALL: &'static [(&'static str, Self)] = &[
        ("gap", Self::Gap),
        ("drop-oldest", Self::DropOldest),
        ("cancel", Self::Cancel),
        ("reject-publish", Self::RejectPublish),
    ];
}

impl FromStr for Offline {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "never" {
            return Ok(Self::Never);
        }
        match text.parse() {
            Ok(HumaneDuration(duration)) => Ok(Self::For(duration)),
            Err(error) => Err(format!("{error}, or \"never\"")),
        }
    }
}

const PATH: &str = "bus_server.subscriptions";

/// Topics, in the spelling of the repository's destinations.
pub(super) fn durable_topics(raw: &[String], checker: &mut Checker<'_>) -> Vec<Destination> {
    let mut topics = Vec::new();
    for (at, text) in raw.iter().enumerate() {
        let path = format!("bus_server.durable_topics.{at}");
        match text.strip_prefix("topic://") {
            Some(name) if check_name(&path, "topic", name, checker) => {
                topics.push(Destination::topic(name));
            }
            Some(_) => {}
            None => {
                let shown: String = text.chars().take(40).collect();
                let cause = format!("`{}` is no topic", shown.escape_debug());
                checker.problem(&path, cause, "write it as in \"topic://books.alarms\"");
            }
        }
    }
    topics
}

pub(super) fn subscriptions(
    raw: &[RawSubscription],
    checker: &mut Checker<'_>,
) -> Vec<SubscriptionNode> {
    let mut subscriptions: Vec<SubscriptionNode> = Vec::new();
    for (at, raw) in raw.iter().enumerate() {
        let path = format!("{PATH}.{at}");
        check(&path, raw, checker);
        let twice = subscriptions
            .iter()
            .any(|other| (&other.client, &other.name) == (&raw.client, &raw.name));
        if twice {
            let cause = format!("{} are described twice", described(raw));
            let key = match (&raw.name, &raw.client) {
                (Some(_), _) => format!("{path}.name"),
                (None, Some(_)) => format!("{path}.client"),
                (None, None) => path,
            };
            checker.problem(&key, cause, "describe them once");
        }
        subscriptions.push(SubscriptionNode {
            client: raw.client.clone(),
            name: raw.name.clone(),
            max_messages: raw.max_messages,
            max_bytes: raw.max_bytes.map(|ByteSize(bytes)| bytes),
            max_offline: raw.max_offline.as_ref().map(|Text(offline)| *offline),
            on_limit: raw.on_limit.map(|OneOf(it)| it),
            lanes: raw.lanes.as_ref().map(|Text(lanes)| *lanes),
        });
    }
    subscriptions
}

fn described(raw: &RawSubscription) -> String {
    match (&raw.client, &raw.name) {
        (None, None) => "all subscriptions".to_owned(),
        (Some(client), None) => format!("the subscriptions of `{client}`"),
        (None, Some(name)) => format!("the subscriptions `{name}`"),
        (Some(client), Some(name)) => format!("the subscriptions `{name}` of `{client}`"),
    }
}

fn check(path: &str, raw: &RawSubscription, checker: &mut Checker<'_>) {
    for (key, text) in [("client", &raw.client), ("name", &raw.name)] {
        if text.as_deref() == Some("") {
            let cause = format!("`{PATH}.{key}` is empty");
            checker.problem(&format!("{path}.{key}"), cause, "write it, or leave it out");
        }
    }
    let no_bytes = raw.max_bytes == Some(ByteSize(0));
    for (key, nothing, example) in [
        ("max_messages", raw.max_messages == Some(0), "1000"),
        ("max_bytes", no_bytes, "\"50 MiB\""),
    ] {
        if nothing {
            let cause = format!("`{key}` is 0, so that nothing would ever be kept");
            let next_step = format!("write more, as in {key} = {example}");
            checker.problem(&format!("{path}.{key}"), cause, next_step);
        }
    }
    if raw.max_offline == Some(Text(Offline::For(Duration::ZERO))) {
        let cause = "`max_offline` is zero, so that nothing would wait for anybody".to_owned();
        let next_step = "write a longer time, as in \"7d\", or \"never\"";
        checker.problem(&format!("{path}.max_offline"), cause, next_step);
    }
}
