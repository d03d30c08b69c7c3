//! The address of the message bus.

mod parse;

use std::{fmt, str::FromStr, time::Duration};

use thiserror::Error;

use crate::{
    REPOSITORY_FILE,
    problem::{Origin, Problem},
};

/// Which bus a repository's components meet on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BusUrl {
    /// The queue manager inside this process.
    Embedded,
    /// A bus that speaks STOMP 1.2: another process's embedded one, ActiveMQ, Artemis or RabbitMQ.
    Stomp {
        /// Host name or address, an IPv6 address without brackets.
        host: String,
        /// TCP port.
        port: u16,
        /// Whether TLS is spoken (`stomp+ssl://`).
        tls: bool,
    },
    /// Several addresses of one bus, tried in turn.
    Failover {
        /// The addresses; each is [`BusUrl::Stomp`], at least one.
        urls: Vec<Self>,
        /// The options behind `?` that count, in their order.
        options: Vec<(String, String)>,
    },
    /// Only addresses in other protocols, as the Java system's settings have them. Nothing can connect with it, but
    /// a process that has another address for itself doesn't mind.
    Foreign(ForeignUrl),
}

/// An address in a protocol that this program doesn't speak, or a list of such.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignUrl {
    written: String,
    protocols: Vec<&'static str>,
    stomp: Box<BusUrl>,
    /// Whether any of it has TLS under it.
    tls: bool,
}

impl ForeignUrl {
    /// The STOMP address that the same bus has, if it listens on the usual port; without TLS.
    #[must_use]
    pub fn stomp(&self) -> &BusUrl {
        &self.stomp
    }

    fn protocol(&self) -> String {
        self.protocols.join(" and ")
    }
}

/// A bus address and where the settings give it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BusAddress {
    /// The address.
    pub url: BusUrl,
    /// Where it is written.
    pub origin: Origin,
    /// What of it does not count, in one line each, for people.
    pub notices: Vec<String>,
}

impl BusAddress {
    /// The address, if it is one to connect with.
    ///
    /// # Errors
    /// It is in protocols that are not spoken here; the problem names the STOMP address to write instead.
    pub fn to_connect(&self) -> Result<&BusUrl, Problem> {
        let BusUrl::Foreign(foreign) = &self.url else {
            return Ok(&self.url);
        };
        let (written, protocol, stomp) = (&foreign.written, foreign.protocol(), &foreign.stomp);
        let shared =
            matches!(&self.origin, Origin::File { file, .. } if file.ends_with(REPOSITORY_FILE));
        let tls = match foreign.tls {
            true => " without TLS, which this version does not speak to a bus",
            false => "",
        };
        let alone = match shared {
            true => ", or set it under [bus] in node.toml for this process alone",
            false => "",
        };
        Err(Problem {
            origin: self.origin.clone(),
            cause: format!("`{written}` is for {protocol}, which is not spoken here"),
            next_step: format!("give the bus's STOMP address{tls}, as in url = \"{stomp}\"{alone}"),
        })
    }
}

/// An address as it was written: what counts, and notices about what doesn't.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct WrittenUrl {
    pub(crate) url: BusUrl,
    pub(crate) notices: Vec<String>,
}

impl WrittenUrl {
    /// As it stands at this place.
    pub(crate) fn at(self, origin: Origin) -> BusAddress {
        let notices = self.notices.iter();
        BusAddress {
            url: self.url,
            notices: notices
                .map(|notice| format!("{origin}: {notice}"))
                .collect(),
            origin,
        }
    }
}

impl FromStr for WrittenUrl {
    type Err = BusUrlError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse::parse(text)
    }
}

/// Why a text is no bus address. None shows what may be a secret.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BusUrlError {
    /// No address of a bus at all.
    #[error(
        "`{0}` is no bus address; use \"embedded:\", \"stomp://HOST:PORT\" or \"failover:(stomp://A:PORT,stomp://B:PORT)\""
    )]
    Unknown(String),
    /// Host or port can't be read.
    #[error(
        "`{0}` has no usable host and port; write \"stomp://HOST:PORT\" with a port between 1 and 65535"
    )]
    BadAddress(String),
    /// A user's name in front of the host.
    #[error(
        "a bus address holds no user name or passcode; write login and passcode under [bus] in node.toml"
    )]
    Credentials,
    /// Parentheses that don't match.
    #[error(
        "`{0}` has parentheses that don't match; write \"failover:(stomp://A:PORT,stomp://B:PORT)\""
    )]
    Parentheses(String),
    /// Nested deeper than anyone would write.
    #[error("`{0}` nests failover too deep; list all addresses in one pair of parentheses")]
    TooDeep(String),
}

/// Options of `failover:` with a meaning here, the one that they have in ActiveMQ; beside `randomize=false`.
const INITIAL_DELAY: &str = "initialReconnectDelay";
const MAXIMUM_DELAY: &str = "maxReconnectDelay";
const LONGEST_DELAY_MS: u64 = 86_400_000;

impl BusUrl {
    /// Whether TLS is needed for at least one address.
    #[must_use]
    pub fn uses_tls(&self) -> bool {
        match self {
            Self::Embedded | Self::Foreign(_) => false,
            Self::Stomp { tls, .. } => *tls,
            Self::Failover { urls, .. } => urls.iter().any(Self::uses_tls),
        }
    }

    /// The first pause before connecting again, if the address sets one (`initialReconnectDelay`).
    #[must_use]
    pub fn shortest_pause(&self) -> Option<Duration> {
        self.pause(INITIAL_DELAY)
    }

    /// The longest pause before connecting again, if the address sets one (`maxReconnectDelay`).
    #[must_use]
    pub fn longest_pause(&self) -> Option<Duration> {
        self.pause(MAXIMUM_DELAY)
    }

    fn pause(&self, name: &str) -> Option<Duration> {
        let Self::Failover { options, .. } = self else {
            return None;
        };
        let (_, milliseconds) = options.iter().find(|(option, _)| option == name)?;
        milliseconds.parse().ok().map(Duration::from_millis)
    }
}

impl FromStr for BusUrl {
    type Err = BusUrlError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse::parse(text).map(|written| written.url)
    }
}

impl fmt::Display for BusUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Embedded => f.write_str("embedded:"),
            Self::Stomp { host, port, tls } => {
                let scheme = if *tls { "stomp+ssl" } else { "stomp" };
                let (open, close) = if host.contains(':') {
                    ("[", "]")
                } else {
                    ("", "")
                };
                write!(f, "{scheme}://{open}{host}{close}:{port}")
            }
            Self::Failover { urls, options } => {
                let urls: Vec<String> = urls.iter().map(Self::to_string).collect();
                write!(f, "failover:({})", urls.join(","))?;
                for (at, (name, value)) in options.iter().enumerate() {
                    write!(f, "{}{name}={value}", if at == 0 { '?' } else { '&' })?;
                }
                Ok(())
            }
            Self::Foreign(foreign) => f.write_str(&foreign.written),
        }
    }
}

#[cfg(test)]
mod tests;
