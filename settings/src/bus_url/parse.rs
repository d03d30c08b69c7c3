//! From the text of a bus address to what it means: also in the forms that people write for the Java system.

use std::net::Ipv6Addr;

use super::{
    BusUrl, BusUrlError, ForeignUrl, INITIAL_DELAY, LONGEST_DELAY_MS, MAXIMUM_DELAY, WrittenUrl,
};

/// Reads an address.
pub(super) fn parse(text: &str) -> Result<WrittenUrl, BusUrlError> {
    let text = text.trim();
    let mut found = Found::default();
    let (url, left_out) = match behind_scheme(text, "failover:") {
        _ if text.eq_ignore_ascii_case("embedded:") => (BusUrl::Embedded, Vec::new()),
        None => (found.address(text)?, Vec::new()),
        Some(rest) => {
            found.enter_failover(text, rest, 1)?;
            failover(
                std::mem::take(&mut found.urls),
                std::mem::take(&mut found.options),
            )
        }
    };
    let mut notices = left_out;
    // Of an address that can't be used, that is what there is to tell.
    if !found.ignored.is_empty() && !matches!(url, BusUrl::Foreign(_)) {
        notices.push(format!(
            "options of the bus address that are not understood here are ignored: {}",
            found.ignored.join(", ")
        ));
    }
    Ok(WrittenUrl { url, notices })
}

/// What was found in a text.
#[derive(Default)]
struct Found {
    /// The addresses of a list, in its order: of STOMP, or foreign.
    urls: Vec<BusUrl>,
    /// The options of failover that count.
    options: Vec<(String, String)>,
    /// Options that don't, in words for people; never their values, which may be secrets.
    ignored: Vec<String>,
}

impl Found {
    fn enter(&mut self, text: &str, depth: usize) -> Result<(), BusUrlError> {
        let text = text.trim();
        match behind_scheme(text, "failover:") {
            Some(rest) => self.enter_failover(text, rest, depth + 1),
            None => {
                let url = self.address(text)?;
                self.urls.push(url);
                Ok(())
            }
        }
    }

    fn enter_failover(&mut self, whole: &str, rest: &str, depth: usize) -> Result<(), BusUrlError> {
        if depth > DEEPEST {
            return Err(BusUrlError::TooDeep(shown(whole)));
        }
        let parentheses = || BusUrlError::Parentheses(shown(whole));
        let rest = rest.trim();
        let rest = rest.strip_prefix("//").unwrap_or(rest).trim();
        let (list, options) = match rest.strip_prefix('(') {
            Some(inner) => parts_of_list(inner).ok_or_else(parentheses)?,
            None => without_parentheses(rest),
        };
        for (name, value) in options_of(options.trim_start_matches('?')) {
            self.failover_option(name, value);
        }
        for part in split_outside_parentheses(list) {
            self.enter(part, depth)?;
        }
        Ok(())
    }

    fn failover_option(&mut self, name: &str, value: &str) {
        let milliseconds = || {
            value
                .parse()
                .is_ok_and(|ms| (1..=LONGEST_DELAY_MS).contains(&ms))
        };
        let because = match name {
            INITIAL_DELAY | MAXIMUM_DELAY if milliseconds() => None,
            INITIAL_DELAY | MAXIMUM_DELAY => {
                Some(format!(" (no time between 1 and {LONGEST_DELAY_MS} ms)"))
            }
            "randomize" if value == "false" => None,
            "randomize" => Some(" (addresses are tried in their order)".to_owned()),
            _ => Some(String::new()),
        };
        match because {
            None => self.options.push((name.to_owned(), value.to_owned())),
            Some(because) => self.ignore(name, &because),
        }
    }

    fn ignore(&mut self, name: &str, because: &str) {
        let name: String = name.chars().take(LONGEST_NAME).collect();
        let ignored = format!("{}{because}", name.escape_debug());
        if !self.ignored.contains(&ignored) {
            self.ignored.push(ignored);
        }
    }

    /// One address of STOMP, or a foreign one.
    fn address(&mut self, text: &str) -> Result<BusUrl, BusUrlError> {
        let unknown = || BusUrlError::Unknown(shown(text));
        let (scheme, rest) = text.split_once(':').ok_or_else(unknown)?;
        let (rest, options) = rest.split_once('?').unwrap_or((rest, ""));
        for (name, _) in options_of(options) {
            self.ignore(name, "");
        }
        let authority = rest.strip_prefix("//").map(str::trim);
        let scheme = scheme.to_ascii_lowercase();
        match (scheme.as_str(), authority) {
            ("stomp", Some(authority)) => stomp(text, authority, false),
            ("stomp+ssl", Some(authority)) => stomp(text, authority, true),
            _ => {
                let known = PROTOCOLS.iter().find(|(known, ..)| *known == scheme);
                let (_, protocol, tls) = known.ok_or_else(unknown)?;
                foreign(text, protocol, *tls)
            }
        }
    }
}

/// What follows a scheme, which is the same in any case (RFC 3986, 3.1).
fn behind_scheme<'a>(text: &'a str, scheme: &str) -> Option<&'a str> {
    let (beginning, rest) = text.split_at_checked(scheme.len())?;
    beginning.eq_ignore_ascii_case(scheme).then_some(rest)
}

/// The list as a whole, and what is left out of it, in words.
fn failover(urls: Vec<BusUrl>, options: Vec<(String, String)>) -> (BusUrl, Vec<String>) {
    let (mut usable, mut foreign) = (Vec::new(), Vec::new());
    for url in urls {
        match url {
            BusUrl::Foreign(url) => foreign.push(url),
            url => usable.push(url),
        }
    }
    if usable.is_empty() {
        return (BusUrl::Foreign(joined(foreign, options)), Vec::new());
    }
    let left_out = foreign.iter().map(|url| {
        let (written, protocol) = (&url.written, url.protocol());
        format!(
            "`{written}` is an address for {protocol}, which is not spoken here, and is left out"
        )
    });
    let left_out = left_out.collect();
    let urls = usable;
    (BusUrl::Failover { urls, options }, left_out)
}

/// A list of which nothing can be used.
fn joined(foreign: Vec<ForeignUrl>, options: Vec<(String, String)>) -> ForeignUrl {
    let written: Vec<&str> = foreign.iter().map(|url| url.written.as_str()).collect();
    let written = format!("failover:({})", written.join(","));
    let mut protocols = Vec::new();
    for protocol in foreign.iter().flat_map(|url| &url.protocols) {
        if !protocols.contains(protocol) {
            protocols.push(*protocol);
        }
    }
    let tls = foreign.iter().any(|url| url.tls);
    let urls = foreign.into_iter().map(|url| *url.stomp).collect();
    let stomp = Box::new(BusUrl::Failover { urls, options });
    ForeignUrl {
        written,
        protocols,
        stomp,
        tls,
    }
}

fn stomp(whole: &str, authority: &str, tls: bool) -> Result<BusUrl, BusUrlError> {
    if authority.contains('@') {
        return Err(BusUrlError::Credentials);
    }
    let bad = || BusUrlError::BadAddress(shown(whole));
    let (host, port) = host_and_port(authority).ok_or_else(bad)?;
    let port = match port {
        None => default_port(tls),
        Some(port) => port.parse().ok().filter(|it| *it != 0).ok_or_else(bad)?,
    };
    let host = host.to_owned();
    Ok(BusUrl::Stomp { host, port, tls })
}

fn foreign(text: &str, protocol: &'static str, tls: bool) -> Result<BusUrl, BusUrlError> {
    let written = shown(text);
    let (scheme, rest) = written.split_once(':').unwrap_or((&written, ""));
    let host = match scheme {
        // A broker's name follows, or how to make one.
        scheme if scheme.eq_ignore_ascii_case("vm") => "localhost",
        _ => match rest.strip_prefix("//").and_then(host_and_port) {
            Some((host, _)) => host,
            None => return Err(BusUrlError::BadAddress(written)),
        },
    };
    // Without TLS, which is refused.
    let stomp = Box::new(BusUrl::Stomp {
        host: host.to_owned(),
        port: STOMP_PORT,
        tls: false,
    });
    Ok(BusUrl::Foreign(ForeignUrl {
        protocols: vec![protocol],
        stomp,
        tls,
        written,
    }))
}

/// Host and port of `HOST`, `HOST:PORT`, `[IPV6]` or `[IPV6]:PORT`, with `/` behind it or not; the port unread.
fn host_and_port(authority: &str) -> Option<(&str, Option<&str>)> {
    let authority = authority.strip_suffix('/').unwrap_or(authority);
    let (host, port) = match authority.strip_prefix('[') {
        Some(inner) => {
            let (host, after) = inner.split_once(']')?;
            host.parse::<Ipv6Addr>().ok()?;
            (host, after.strip_prefix(':'))
        }
        None => authority
            .split_once(':')
            .map_or((authority, None), |(host, port)| (host, Some(port))),
    };
    let strange = |c: char| c.is_whitespace() || c.is_control() || "/@#(),".contains(c);
    (!host.is_empty() && !host.contains(strange)).then_some((host, port))
}

const fn default_port(tls: bool) -> u16 {
    if tls { STOMP_TLS_PORT } else { STOMP_PORT }
}

/// What stands in the parenthesis that has been opened, and the options behind it.
fn parts_of_list(inner: &str) -> Option<(&str, &str)> {
    let mut open = 1_usize;
    let end = inner.find(|c| {
        match c {
            '(' => open += 1,
            ')' => open -= 1,
            _ => {}
        }
        open == 0
    })?;
    let (list, behind) = inner.split_at(end);
    let behind = behind.strip_prefix(')')?.trim();
    (behind.is_empty() || behind.starts_with('?')).then_some((list, behind))
}

/// Addresses without parentheses around them; the options of the last one are taken for those of the list.
fn without_parentheses(list: &str) -> (&str, &str) {
    let last = list.rfind(',').unwrap_or_default();
    match list.get(last..).and_then(|last| last.find('?')) {
        Some(at) => list.split_at(last + at),
        None => (list, ""),
    }
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

/// Names and values. An address copied out of an XML file has `&amp;` between them.
fn options_of(options: &str) -> impl Iterator<Item = (&str, &str)> {
    let options = options.split('&').map(str::trim);
    let options = options.map(|option| option.strip_prefix("amp;").unwrap_or(option));
    let options = options.filter(|option| !option.is_empty());
    options.map(|option| option.split_once('=').unwrap_or((option, "")))
}

/// An address as errors show it: without options and without anything before an `@`, which may be secrets.
fn shown(text: &str) -> String {
    let text = text.split('?').next().unwrap_or_default().trim();
    let behind_at = |part: &str| part.rsplit('@').next().unwrap_or_default().to_owned();
    let parts: Vec<String> = text.split("://").map(behind_at).collect();
    parts.join("://")
}

/// Protocols that this program does not speak: scheme, name, and whether TLS is under it.
const PROTOCOLS: [(&str, &str, bool); 13] = [
    ("tcp", OPEN_WIRE, false),
    ("nio", OPEN_WIRE, false),
    ("auto", OPEN_WIRE, false),
    ("auto+nio", OPEN_WIRE, false),
    ("ssl", OPEN_WIRE_TLS, true),
    ("nio+ssl", OPEN_WIRE_TLS, true),
    ("auto+ssl", OPEN_WIRE_TLS, true),
    ("auto+nio+ssl", OPEN_WIRE_TLS, true),
    ("vm", "a broker inside a Java process", false),
    ("amqp", "AMQP", false),
    ("amqps", "AMQP over TLS", true),
    ("amqp+ssl", "AMQP over TLS", true),
    ("mqtt", "MQTT", false),
];
const OPEN_WIRE: &str = "OpenWire";
const OPEN_WIRE_TLS: &str = "OpenWire over TLS";
const STOMP_PORT: u16 = 61613;
const STOMP_TLS_PORT: u16 = 61612;
/// Nested deeper than anyone would write.
const DEEPEST: usize = 8;
/// So much of an option's name is shown.
const LONGEST_NAME: usize = 40;
