//! `[bus]` of node.toml: the way to the bus that is this process's own.

use serde::Deserialize;

use crate::{
    bus_url::{BusAddress, WrittenUrl},
    checker::Checker,
    raw_value::Text,
    secret::Secret,
};

/// How this process gets to its bus, as far as the repository doesn't say it, and who it is there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeBus {
    /// Instead of the repository's address, for this process only.
    pub address: Option<BusAddress>,
    /// The name under which its components log in; none: they don't.
    pub login: Option<String>,
    /// What they prove it with.
    pub passcode: Option<Secret>,
    /// The broker's virtual host; none: as the address says.
    pub virtual_host: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct RawNodeBus {
    pub(crate) url: Option<Text<WrittenUrl>>,
    pub(crate) login: Option<String>,
    pub(crate) passcode: Option<Secret>,
    pub(crate) virtual_host: Option<String>,
}

pub(super) fn bus(raw: &RawNodeBus, checker: &mut Checker<'_>) -> NodeBus {
    let address = raw.url.as_ref();
    let address = address.map(|Text(url)| checker.bus_address("bus.url", url));
    let passcode = raw.passcode.as_ref().map(Secret::reveal);
    for (key, text) in [
        ("login", raw.login.as_deref()),
        ("passcode", passcode),
        ("virtual_host", raw.virtual_host.as_deref()),
    ] {
        if let Some(text) = text {
            can_be_sent(key, text, checker);
        }
    }
    if raw.passcode.is_some() && raw.login.is_none() {
        let cause = "there is a passcode but no login".to_owned();
        checker.problem("bus.passcode", cause, "add login = \"NAME\" under [bus]");
    }
    NodeBus {
        address,
        login: raw.login.clone(),
        passcode: raw.passcode.clone(),
        virtual_host: raw.virtual_host.clone(),
    }
}

/// What opens a connection is sent without any escapes.
fn can_be_sent(key: &str, text: &str, checker: &mut Checker<'_>) {
    let path = format!("bus.{key}");
    if text.is_empty() {
        checker.problem(
            &path,
            format!("`{path}` is empty"),
            "write it, or leave it out",
        );
    } else if text.contains(char::is_control) {
        let cause = format!("`{path}` has a line end or another control character");
        checker.problem(&path, cause, "write it without");
    }
}
