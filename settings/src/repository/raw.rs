//! `repository.toml` as it is written.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::{
    bus_url::WrittenUrl,
    duration::HumaneDuration,
    raw_value::{OneOf, Text, Word},
    reading::{Shape, field_names},
};

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct RawRepository {
    pub(crate) repository: RawGeneral,
    pub(crate) bus: RawBus,
    pub(crate) exchange: RawExchange,
    pub(crate) timeouts: RawTimeouts,
    pub(crate) destinations: RawNaming,
    pub(crate) collections: Vec<RawCollection>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct RawGeneral {
    pub(crate) name: Option<String>,
    pub(crate) checksum: Option<String>,
    pub(crate) file_id_pattern: Option<String>,
    pub(crate) require: Option<Vec<OneOf<Requirement>>>,
    pub(crate) status_contributors: Vec<String>,
    pub(crate) audit_contributors: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct RawBus {
    pub(crate) url: Option<Text<WrittenUrl>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Requirement {
    ChecksumForNewFile,
    ChecksumForDestructive,
    MessageAuthentication,
    OperationAuthorization,
}

impl Word for Requirement {
    const WHAT: &'static str = "requirement";
    const ALL: &'static [(&'static str, Self)] = &[
        ("checksum-for-new-file", Self::ChecksumForNewFile),
        ("checksum-for-destructive", Self::ChecksumForDestructive),
        ("message-authentication", Self::MessageAuthentication),
        ("operation-authorization", Self::OperationAuthorization),
    ];
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct RawExchange {
    pub(crate) url: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct RawTimeouts {
    pub(crate) identification: Option<Text<HumaneDuration>>,
    pub(crate) operation: Option<Text<HumaneDuration>>,
    pub(crate) conversation: Option<Text<HumaneDuration>>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct RawNaming {
    pub(crate) collection: Option<String>,
    pub(crate) pillar: Option<String>,
    pub(crate) client: Option<String>,
    pub(crate) alarms: Option<String>,
    pub(crate) scheme: Option<OneOf<Scheme>>,
    pub(crate) base: Option<String>,
    pub(crate) alarm_destination: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheme {
    Collection,
    Reference,
}

impl Word for Scheme {
    const WHAT: &'static str = "naming scheme";
    const ALL: &'static [(&'static str, Self)] = &[
        ("collection", Self::Collection),
        ("reference", Self::Reference),
    ];
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct RawCollection {
    pub(crate) id: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) pillars: Vec<String>,
    pub(crate) destinations: RawTemplates,
    pub(crate) pillar_destinations: BTreeMap<String, String>,
    pub(crate) slas: Vec<RawSla>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct RawTemplates {
    pub(crate) collection: Option<String>,
    pub(crate) pillar: Option<String>,
    pub(crate) client: Option<String>,
    pub(crate) alarms: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct RawSla {
    pub(crate) id: Option<String>,
    pub(crate) clients: Vec<String>,
    pub(crate) pillars: Option<Vec<String>>,
    pub(crate) operations: Option<Vec<String>>,
    pub(crate) identification_timeout: Option<Text<HumaneDuration>>,
    pub(crate) operation_timeout: Option<Text<HumaneDuration>>,
    pub(crate) min_copies: Option<u32>,
    pub(crate) time_to_deliver: Option<Text<HumaneDuration>>,
    pub(crate) max_checksum_age: Option<Text<HumaneDuration>>,
    pub(crate) alarm_to: Vec<String>,
    pub(crate) destinations: RawSlaTemplates,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct RawSlaTemplates {
    pub(crate) client: Option<String>,
    pub(crate) alarms: Option<String>,
}

impl Shape for RawRepository {
    const DEFAULTS: &'static str = r#"
        [repository]
        checksum = "MD5"
        require = ["checksum-for-new-file", "checksum-for-destructive"]

        [timeouts]
        identification = "3m"
        operation = "1h"
        conversation = "24h"
    "#;
    const ENVIRONMENT: &'static [(&'static str, bool)] = &[];
    const ELSEWHERE: &'static [&'static str] = &["bus.login", "bus.passcode", "bus.virtual_host"];
    const LISTS: &'static [&'static [&'static str]] = &[&["collections"], &["collections", "slas"]];

    fn keys(path: &[&str]) -> &'static [&'static str] {
        match path {
            [] => field_names::<Self>(),
            ["repository"] => field_names::<RawGeneral>(),
            ["bus"] => field_names::<RawBus>(),
            ["exchange"] => field_names::<RawExchange>(),
            ["timeouts"] => field_names::<RawTimeouts>(),
            ["destinations"] => field_names::<RawNaming>(),
            ["collections"] => field_names::<RawCollection>(),
            ["collections", "destinations"] => field_names::<RawTemplates>(),
            ["collections", "slas"] => field_names::<RawSla>(),
            ["collections", "slas", "destinations"] => field_names::<RawSlaTemplates>(),
            _ => &[],
        }
    }
}
