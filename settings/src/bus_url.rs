//! The address of the message bus.

use std::{fmt, str::FromStr, time::Duration};

use thiserror::Error;

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
        /// The options behind `?`, in their order.
        options: Vec<(String, String)>,
    },
}

/// Why a text is no bus address.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BusUrlError {
    /// A protocol of the Java system that this program does not speak.
    #[error(
        "`{url}` is an address for {protocol}, which is not spoken here; use the bus's STOMP address, as in \
         \"stomp://{host}:61613\""
    )]
    OtherProtocol {
        /// The address.
        url: String,
        /// The protocol's name.
        protocol: &'static str,
        /// The host in the address, to be used in the STOMP address.
        host: String,
    },
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
    /// Parentheses that don't match.
    #[error(
        "`{0}` has parentheses that don't match; write \"failover:(stomp://A:PORT,stomp://B:PORT)\""
    )]
    Parentheses(String),
    /// Nested deeper than anyone would write.
    #[error("`{0}` nests failover too deep; list all addresses in one pair of parentheses")]
    TooDeep(String),
    /// An option that nothing here would honor.
    #[error("`{url}` has the option `{option}`, which is not supported here; remove it{}", known_options(*.failover))]
    UnknownOption {
        /// The address that carries the option.
        url: String,
        /// The option.
        option: String,
        /// Whether it is an option of failover, rather than of one address.
        failover: bool,
    },
}

/// Options of `failover:` that are understood, with their meaning in ActiveMQ.
const FAILOVER_OPTIONS: &str = "initialReconnectDelay, maxReconnectDelay, randomize=false";
const INITIAL_DELAY: &str = "initialReconnectDelay";
const MAXIMUM_DELAY: &str = "maxReconnectDelay";
const LONGEST_DELAY_MS: u64 = 86_400_000;
const STOMP_PORT: u16 = 61613;
const STOMP_TLS_PORT: u16 = 61612;
const DEEPEST: usize = 8;

impl BusUrl {
    /// Whether TLS is needed for at least one address.
    #[must_use]
    pub fn uses_tls(&self) -> bool {
        match self {
            Self::Embedded => false,
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

    fn parse_nested(text: &str, depth: usize) -> Result<Self, BusUrlError> {
        let text = text.trim();
        if text == "embedded:" && depth == 0 {
            return Ok(Self::Embedded);
        }
        if let Some(rest) = text.strip_prefix("failover:") {
            if depth == DEEPEST {
                return Err(BusUrlError::TooDeep(text.to_owned()));
            }
            return parse_failover(text, rest, depth);
        }
        if let Some(rest) = text.strip_prefix("stomp://") {
            return parse_stomp(text, rest, false);
        }
        if let Some(rest) = text.strip_prefix("stomp+ssl://") {
            return parse_stomp(text, rest, true);
        }
        Err(other_protocol(text))
    }
}

impl FromStr for BusUrl {
    type Err = BusUrlError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse_nested(text, 0)
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
        }
    }
}

fn parse_failover(whole: &str, rest: &str, depth: usize) -> Result<BusUrl, BusUrlError> {
    let rest = rest.strip_prefix("//").unwrap_or(rest);
    let (list, options) = match rest.strip_prefix('(') {
        Some(inner) => {
            let (list, after) =
                split_closed(inner).ok_or_else(|| BusUrlError::Parentheses(whole.to_owned()))?;
            match after.strip_prefix('?') {
                Some(options) => (list, options),
                None if after.is_empty() => (list, ""),
                None => return Err(BusUrlError::Parentheses(whole.to_owned())),
            }
        }
        None => rest.split_once('?').unwrap_or((rest, "")),
    };
    let mut options = parse_options(whole, options)?;
    let mut urls = Vec::new();
    for part in split_outside_parentheses(list) {
        match BusUrl::parse_nested(part, depth + 1)? {
            BusUrl::Failover {
                urls: inner,
                options: inner_options,
            } => {
                urls.extend(inner);
                options.extend(inner_options);
            }
            url => urls.push(url),
        }
    }
    Ok(BusUrl::Failover { urls, options })
}

/// What stands before the parenthesis that closes an opened one, and what stands behind it.
fn split_closed(inner: &str) -> Option<(&str, &str)> {
    let mut open = 1_usize;
    for (at, c) in inner.char_indices() {
        match c {
            '(' => open += 1,
            ')' => open -= 1,
            _ => {}
        }
        if open == 0 {
            let (list, rest) = inner.split_at(at);
            return Some((list, rest.strip_prefix(')')?));
        }
    }
    None
}

fn split_outside_parentheses(list: &str) -> Vec<&str> {
    let mut open = 0_usize;
    list.split(|c| {
        match c {
            '(' => open += 1,
            ')' => open = open.saturating_sub(1),
            _ => {}
        }
        c == ',' && open == 0
    })
    .collect()
}

fn parse_options(url: &str, options: &str) -> Result<Vec<(String, String)>, BusUrlError> {
    let mut parsed = Vec::new();
    for option in options.split('&').filter(|option| !option.is_empty()) {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        let understood = match name {
            // Addresses are tried in the order in which they stand.
            "randomize" => value == "false",
            INITIAL_DELAY | MAXIMUM_DELAY => value
                .parse()
                .is_ok_and(|ms: u64| (1..=LONGEST_DELAY_MS).contains(&ms)),
            _ => false,
        };
        if !understood {
            return Err(BusUrlError::UnknownOption {
                url: url.to_owned(),
                option: option.to_owned(),
                failover: true,
            });
        }
        parsed.push((name.to_owned(), value.to_owned()));
    }
    Ok(parsed)
}

fn parse_stomp(whole: &str, rest: &str, tls: bool) -> Result<BusUrl, BusUrlError> {
    let bad = || BusUrlError::BadAddress(whole.to_owned());
    if let Some((_, option)) = rest.split_once('?') {
        return Err(BusUrlError::UnknownOption {
            url: whole.to_owned(),
            option: option.to_owned(),
            failover: false,
        });
    }
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    let (host, port) = match rest.strip_prefix('[') {
        Some(inner) => {
            let (host, after) = inner.split_once(']').ok_or_else(bad)?;
            if host.parse::<std::net::Ipv6Addr>().is_err() {
                return Err(bad());
            }
            (host, after.strip_prefix(':'))
        }
        None => rest
            .split_once(':')
            .map_or((rest, None), |(host, port)| (host, Some(port))),
    };
    let default_port = if tls { STOMP_TLS_PORT } else { STOMP_PORT };
    let port = port
        .map_or(Ok(default_port), str::parse)
        .map_err(|_| bad())?;
    let strange = |c: char| c.is_whitespace() || c.is_control() || "/@#(),".contains(c);
    if host.is_empty() || host.contains(strange) || port == 0 {
        return Err(bad());
    }
    Ok(BusUrl::Stomp {
        host: host.to_owned(),
        port,
        tls,
    })
}

fn other_protocol(text: &str) -> BusUrlError {
    let protocol = match text.split(':').next() {
        Some("tcp" | "nio") => "OpenWire",
        Some("ssl" | "nio+ssl") => "OpenWire over TLS",
        Some("vm") => "a broker inside a Java process",
        Some("amqp" | "amqps") => "AMQP",
        _ => return BusUrlError::Unknown(text.to_owned()),
    };
    let authority = text.split_once("://").map_or("", |(_, rest)| rest);
    let host = authority
        .split([':', '/', '?'])
        .next()
        .filter(|host| !host.is_empty());
    BusUrlError::OtherProtocol {
        url: text.to_owned(),
        protocol,
        host: host.unwrap_or("localhost").to_owned(),
    }
}

fn known_options(failover: bool) -> String {
    if failover {
        format!(" (known: {FAILOVER_OPTIONS})")
    } else {
        String::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> String {
        match text.parse::<BusUrl>() {
            Ok(url) => url.to_string(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn addresses_that_are_understood() {
        for (text, expected) in [
            ("embedded:", "embedded:"),
            ("stomp://127.0.0.1:61613", "stomp://127.0.0.1:61613"),
            ("stomp://bus.example.org", "stomp://bus.example.org:61613"),
            ("stomp://h:1/", "stomp://h:1"),
            ("stomp+ssl://h", "stomp+ssl://h:61612"),
            ("stomp://[::1]:7", "stomp://[::1]:7"),
            (
                "failover:(stomp://a:1,stomp://b:2)",
                "failover:(stomp://a:1,stomp://b:2)",
            ),
            (
                "failover:(stomp://a:1, stomp://b:2)",
                "failover:(stomp://a:1,stomp://b:2)",
            ),
            (
                "failover://(stomp://a:1)?randomize=false&maxReconnectDelay=5000",
                "failover:(stomp://a:1)?randomize=false&maxReconnectDelay=5000",
            ),
            ("failover://stomp://a:1", "failover:(stomp://a:1)"),
            (
                "failover:stomp://a:1?maxReconnectDelay=7",
                "failover:(stomp://a:1)?maxReconnectDelay=7",
            ),
            (
                "failover:(failover:(stomp://a:1,stomp://b:2)?randomize=false,stomp+ssl://c:3)",
                "failover:(stomp://a:1,stomp://b:2,stomp+ssl://c:3)?randomize=false",
            ),
        ] {
            assert_eq!(written(text), expected, "{text}");
        }
        assert!(
            "failover:(stomp://a:1,stomp+ssl://b:2)"
                .parse::<BusUrl>()
                .unwrap()
                .uses_tls()
        );
    }

    #[test]
    fn pauses() {
        let url: BusUrl =
            "failover:(failover:(stomp://a:1)?maxReconnectDelay=9)?initialReconnectDelay=5"
                .parse()
                .unwrap();
        assert_eq!(url.shortest_pause(), Some(Duration::from_millis(5)));
        assert_eq!(url.longest_pause(), Some(Duration::from_millis(9)));
        assert_eq!("stomp://a".parse::<BusUrl>().unwrap().longest_pause(), None);
        assert!(
            "failover:(stomp://a:1)?maxReconnectDelay=0"
                .parse::<BusUrl>()
                .is_err()
        );
    }

    #[test]
    fn addresses_of_other_protocols_name_the_one_to_configure() {
        assert_eq!(
            written("tcp://bus.example.org:61616?keepAlive=true"),
            "`tcp://bus.example.org:61616?keepAlive=true` is an address for OpenWire, which is not spoken here; use the \
             bus's STOMP address, as in \"stomp://bus.example.org:61613\""
        );
        assert!(written("failover:(ssl://a:61601, tcp://b:12345)").contains("\"stomp://a:61613\""));
        assert!(
            written("vm://localhost?broker.persistent=false")
                .contains("\"stomp://localhost:61613\"")
        );
    }

    #[test]
    fn addresses_that_are_refused() {
        for (text, part) in [
            ("", "no bus address"),
            ("localhost:61613", "no bus address"),
            ("http://h:1", "no bus address"),
            ("stomp://", "no usable host"),
            ("stomp://:61613", "no usable host"),
            ("stomp://h:0", "no usable host"),
            ("stomp://h:65536", "no usable host"),
            ("stomp://a:b@h:1", "no usable host"),
            ("stomp://[::1:7", "no usable host"),
            ("failover:(stomp://a:1", "parentheses"),
            ("failover:(stomp://a:1)x", "parentheses"),
            ("failover:()", "no bus address"),
            ("failover:(stomp://a:1,embedded:)", "no bus address"),
            ("failover:(stomp://a:1)?timeout=1", "option `timeout=1`"),
            (
                "failover:(stomp://a:1)?randomize=true",
                "option `randomize=true`",
            ),
            ("stomp://a:1?keepAlive=true", "option `keepAlive=true`"),
        ] {
            assert!(written(text).contains(part), "{text}: {}", written(text));
        }
        let deep = format!("{}stomp://a:1{}", "failover:(".repeat(20), ")".repeat(20));
        assert!(written(&deep).contains("too deep"));
    }
}
