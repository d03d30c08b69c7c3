//! `node.toml` as it is written.

use std::{net::SocketAddr, num::NonZeroU64, path::PathBuf};

use serde::Deserialize;

use super::{
    AlarmLevel, ChecksumDownload, PillarType, ZonelessDates, bus::RawNodeBus, queues::RawQueue,
    subscriptions::RawSubscription,
};
use crate::{
    duration::HumaneDuration,
    pace::Pace,
    raw_value::{OneOf, Text, Word},
    reading::{Shape, field_names},
    size::ByteSize,
};

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct RawNode {
    pub(crate) data: Option<PathBuf>,
    pub(crate) bus: RawNodeBus,
    pub(crate) pillars: Vec<RawPillar>,
    pub(crate) bus_server: Option<RawBusServer>,
    pub(crate) exchange_server: Option<RawExchangeServer>,
    pub(crate) exchange: RawExchange,
    pub(crate) client: Option<RawClient>,
    pub(crate) alarms: Option<RawAlarms>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct RawPillar {
    pub(crate) id: Option<String>,
    #[serde(rename = "type")]
    pub(crate) pillar_type: Option<OneOf<PillarType>>,
    pub(crate) download: Option<OneOf<ChecksumDownload>>,
    pub(crate) directories: Vec<PathBuf>,
    pub(crate) minimum_size_left: Option<ByteSize>,
    pub(crate) time_to_start_deliver: Option<Text<HumaneDuration>>,
    pub(crate) max_age_for_checksums: Option<Text<HumaneDuration>>,
    pub(crate) recheck_pace: Option<Text<Pace>>,
    pub(crate) recheck_interval: Option<Text<HumaneDuration>>,
    pub(crate) reconcile_pace: Option<Text<Pace>>,
    pub(crate) reconcile_interval: Option<Text<HumaneDuration>>,
    pub(crate) retain_for: Option<Text<HumaneDuration>>,
    pub(crate) purge_pace: Option<Text<Pace>>,
    pub(crate) purge_interval: Option<Text<HumaneDuration>>,
    pub(crate) alarm_level: Option<OneOf<AlarmLevel>>,
    pub(crate) accept_zoneless: Option<OneOf<ZonelessDates>>,
    pub(crate) sla: Vec<String>,
    pub(crate) first_audit_number: Option<NonZeroU64>,
}

impl Word for PillarType {
    const WHAT: &'static str = "pillar type";
    const ALL: &'static [(&'static str, Self)] =
        &[("FILE", Self::File), ("CHECKSUM", Self::Checksum)];
}

impl Word for ChecksumDownload {
    const WHAT: &'static str = "way of a checksum pillar to get checksums";
    const ALL: &'static [(&'static str, Self)] = &[
        ("ALWAYS_DOWNLOAD", Self::Always),
        ("DOWNLOAD_WHEN_MISSING_FROM_MESSAGE", Self::WhenMissing),
        ("NEVER_DOWNLOAD", Self::Never),
    ];
}

impl Word for AlarmLevel {
    const WHAT: &'static str = "alarm level";
    const ALL: &'static [(&'static str, Self)] = &[
        ("EMERGENCY", Self::Emergency),
        ("ERROR", Self::Error),
        ("WARNING", Self::Warning),
    ];
}

impl Word for ZonelessDates {
    const WHAT: &'static str = "time zone for dates without one";
    const ALL: &'static [(&'static str, Self)] = &[("utc", Self::Utc), ("local", Self::Local)];
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct RawBusServer {
    pub(crate) listen: Vec<Text<Address>>,
    pub(crate) queues: Vec<RawQueue>,
    pub(crate) durable_topics: Vec<String>,
    pub(crate) subscriptions: Vec<RawSubscription>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct RawExchangeServer {
    pub(crate) listen: Option<Text<Address>>,
    pub(crate) public_url: Option<String>,
    pub(crate) expiry: Option<Text<HumaneDuration>>,
    pub(crate) maximum_file_size: Option<ByteSize>,
}

/// An address to listen on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Address(pub(crate) SocketAddr);

impl std::str::FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self).map_err(|_| {
            format!("`{text}` is no address to listen on; write an IP address and a port, as in \"127.0.0.1:61613\"")
        })
    }
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct RawExchange {
    pub(crate) hosts: Option<Vec<String>>,
    pub(crate) file_roots: Vec<PathBuf>,
    pub(crate) ca: Vec<PathBuf>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct RawClient {
    pub(crate) id: Option<String>,
    pub(crate) sla: Option<String>,
    pub(crate) exchange: Option<String>,
    pub(crate) accept_zoneless: Option<OneOf<ZonelessDates>>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct RawAlarms {
    pub(crate) id: Option<String>,
    pub(crate) accept_zoneless: Option<OneOf<ZonelessDates>>,
}

impl Shape for RawNode {
    const DEFAULTS: &'static str = r#"
        data = "var"
    "#;
    const ENVIRONMENT: &'static [(&'static str, bool)] = &[
        ("data", false),
        ("bus.url", false),
        ("bus.login", false),
        ("bus.passcode", false),
        ("bus.virtual_host", false),
        ("bus_server.listen", true),
        ("bus_server.durable_topics", true),
        ("exchange_server.listen", false),
        ("exchange_server.public_url", false),
        ("exchange_server.expiry", false),
        ("exchange_server.maximum_file_size", false),
        ("exchange.hosts", true),
        ("exchange.file_roots", true),
        ("exchange.ca", true),
        ("client.id", false),
        ("client.sla", false),
        ("client.exchange", false),
        ("client.accept_zoneless", false),
        ("alarms.id", false),
        ("alarms.accept_zoneless", false),
    ];
    const LISTS: &'static [&'static [&'static str]] = &[
        &["pillars"],
        &["bus_server", "queues"],
        &["bus_server", "subscriptions"],
    ];

    fn keys(path: &[&str]) -> &'static [&'static str] {
        match path {
            [] => field_names::<Self>(),
            ["bus"] => field_names::<RawNodeBus>(),
            ["pillars"] => field_names::<RawPillar>(),
            ["bus_server"] => field_names::<RawBusServer>(),
            ["bus_server", "queues"] => field_names::<RawQueue>(),
            ["bus_server", "subscriptions"] => field_names::<RawSubscription>(),
            ["exchange_server"] => field_names::<RawExchangeServer>(),
            ["exchange"] => field_names::<RawExchange>(),
            ["client"] => field_names::<RawClient>(),
            ["alarms"] => field_names::<RawAlarms>(),
            _ => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The environment can set every key that is not in a list of tables.
    #[test]
    fn every_single_key_can_come_from_the_environment() {
        let set: Vec<&str> = RawNode::ENVIRONMENT.iter().map(|(path, _)| *path).collect();
        for key in RawNode::keys(&[]) {
            let inner = RawNode::keys(&[key]);
            match *key {
                "pillars" => assert!(!set.iter().any(|path| path.starts_with("pillars"))),
                key if inner.is_empty() => assert!(set.contains(&key), "{key}"),
                key => {
                    let list = |name: &&&str| RawNode::LISTS.contains(&&[key, **name][..]);
                    for name in inner.iter().filter(|name| !list(name)) {
                        assert!(
                            set.contains(&format!("{key}.{name}").as_str()),
                            "{key}.{name}"
                        );
                    }
                }
            }
        }
    }
}
