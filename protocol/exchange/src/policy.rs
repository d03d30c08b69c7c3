//! Which addresses this process uses on a peer's word.

use std::{
    collections::BTreeSet,
    io,
    path::{Path, PathBuf},
};

use url::{Host, Url};

use crate::{address::Address, error::ExchangeError};

/// The allow-lists. What is in neither is refused; the default allows nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddressPolicy {
    /// `host:port` of the servers that http and https addresses may name. Compared as text, without
    /// asking any name server, and without regard to case; IPv6 addresses stand in brackets.
    pub hosts: Vec<String>,
    /// Directories that file: addresses may lie below.
    pub file_roots: Vec<PathBuf>,
}

impl AddressPolicy {
    /// Allows exactly the exchange at `base`: its host and port, or the directory of a file:
    /// address.
    ///
    /// # Errors
    /// `base` isn't an http, https or file address.
    pub fn for_exchange(base: &str) -> Result<Self, ExchangeError> {
        let mut policy = Self::default();
        match Address::parse(base.trim_end_matches('/'))? {
            Address::Http(url) => policy.hosts.push(host_and_port(&url)),
            Address::File(path) => policy.file_roots.push(path),
        }
        Ok(policy)
    }
}

/// A policy in the form that addresses are compared with.
#[derive(Debug)]
pub(crate) struct Rules {
    hosts: BTreeSet<String>,
    file_roots: Vec<Root>,
}

#[derive(Debug)]
struct Root {
    /// As in the settings.
    given: PathBuf,
    /// Without symbolic links.
    canonical: PathBuf,
}

impl Rules {
    pub(crate) fn new(policy: &AddressPolicy) -> Result<Self, ExchangeError> {
        let hosts = policy
            .hosts
            .iter()
            .map(|entry| allowed_host(entry))
            .collect::<Result<_, _>>()?;
        let file_roots = policy
            .file_roots
            .iter()
            .map(|root| allowed_root(root))
            .collect::<Result<Vec<_>, ExchangeError>>()?;
        Ok(Self { hosts, file_roots })
    }

    /// Takes an address apart if it may be used. A file's real place is still to be checked.
    pub(crate) fn check(&self, text: &str) -> Result<Address, ExchangeError> {
        let address = Address::parse(text)?;
        match &address {
            Address::Http(url) => self.check_host(text, &host_and_port(url))?,
            Address::File(_) if self.file_roots.is_empty() => {
                return Err(not_allowed(
                    text,
                    "no file: address is allowed here".to_owned(),
                ));
            }
            Address::File(_) => {}
        }
        Ok(address)
    }

    fn check_host(&self, text: &str, host: &str) -> Result<(), ExchangeError> {
        if self.hosts.contains(host) {
            return Ok(());
        }
        Err(not_allowed(
            text,
            format!("{host} isn't among the exchange hosts of this process"),
        ))
    }

    /// Whether a canonical path lies below an allowed root.
    pub(crate) fn allows_file(&self, canonical: &Path) -> bool {
        self.file_roots
            .iter()
            .any(|root| canonical.starts_with(&root.canonical))
    }

    /// Whether a path spells a place below an allowed root, wherever links may lead from there.
    pub(crate) fn names_file(&self, path: &Path) -> bool {
        self.file_roots
            .iter()
            .any(|root| path.starts_with(&root.canonical) || path.starts_with(&root.given))
    }
}

pub(crate) fn not_allowed(address: &str, reason: String) -> ExchangeError {
    ExchangeError::NotAllowed {
        address: address.to_owned(),
        reason,
    }
}

/// Host and port of an http or https URL; the port always written.
fn host_and_port(url: &Url) -> String {
    let port = url.port_or_known_default().unwrap_or_default();
    format!("{}:{port}", url.host_str().unwrap_or_default())
}

fn allowed_host(entry: &str) -> Result<String, ExchangeError> {
    let parse = || {
        let (host, port) = entry.trim().rsplit_once(':')?;
        let host = Host::parse(host).ok()?;
        let port = port.parse::<u16>().ok()?;
        Some(format!("{host}:{port}"))
    };
    parse().ok_or_else(|| ExchangeError::BadHost {
        entry: entry.to_owned(),
    })
}

fn allowed_root(root: &Path) -> Result<Root, ExchangeError> {
    let bad = |source| ExchangeError::BadRoot {
        path: root.to_path_buf(),
        source,
    };
    if !root.is_absolute() {
        return Err(bad(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it isn't absolute",
        )));
    }
    let canonical = root.canonicalize().map_err(bad)?;
    if !canonical.is_dir() {
        return Err(bad(io::ErrorKind::NotADirectory.into()));
    }
    Ok(Root {
        given: root.to_path_buf(),
        canonical,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(hosts: &[&str]) -> Rules {
        let hosts = hosts.iter().map(ToString::to_string).collect();
        Rules::new(&AddressPolicy {
            hosts,
            ..AddressPolicy::default()
        })
        .unwrap()
    }

    #[test]
    fn hosts_are_compared_with_their_port() {
        let rules = rules(&["Exchange.example.ORG:80", "127.0.0.1:8181", "[::1]:443"]);
        for allowed in [
            "http://exchange.example.org/a",
            "HTTP://EXCHANGE.example.org:80/a",
            "https://exchange.example.org:80/a",
            "http://127.0.0.1:8181/a",
            "https://[0:0:0:0:0:0:0:1]/a",
        ] {
            assert!(rules.check(allowed).is_ok(), "{allowed}");
        }
        for refused in [
            "https://exchange.example.org/a",
            "http://exchange.example.org:81/a",
            "http://exchange.example.org.evil.net/a",
            "http://localhost:8181/a",
            "http://[::1]/a",
            "http://user@exchange.example.org/a",
            "http://127.0.0.1:8181@evil.net/a",
        ] {
            let error = rules.check(refused).unwrap_err();
            assert!(
                matches!(error, ExchangeError::NotAllowed { .. }),
                "{refused}: {error}"
            );
        }
    }

    #[test]
    fn nothing_is_allowed_by_default() {
        let rules = rules(&[]);
        assert!(matches!(
            rules.check("http://h/a"),
            Err(ExchangeError::NotAllowed { .. })
        ));
        assert!(matches!(
            rules.check("file:/etc/passwd"),
            Err(ExchangeError::NotAllowed { .. })
        ));
    }

    #[test]
    fn entries_that_are_no_hosts_are_named() {
        for entry in [
            "example.org",
            "example.org:",
            "example.org:70000",
            "::1:",
            "a b:80",
            ":80",
        ] {
            let policy = AddressPolicy {
                hosts: vec![entry.to_owned()],
                ..AddressPolicy::default()
            };
            let error = Rules::new(&policy).unwrap_err();
            assert!(error.to_string().contains(entry), "{entry}: {error}");
        }
    }

    #[test]
    fn roots_have_to_be_directories() {
        for root in ["relative", "/nowhere/at/all", "/dev/null"] {
            let policy = AddressPolicy {
                file_roots: vec![root.into()],
                ..AddressPolicy::default()
            };
            assert!(
                matches!(Rules::new(&policy), Err(ExchangeError::BadRoot { .. })),
                "{root}"
            );
        }
    }

    #[test]
    fn an_exchange_allows_itself() {
        let policy = AddressPolicy::for_exchange("http://Host/dav/").unwrap();
        assert_eq!(policy.hosts, ["host:80"]);
        let policy = AddressPolicy::for_exchange("file:///shared/exchange/").unwrap();
        assert_eq!(policy.file_roots, [PathBuf::from("/shared/exchange")]);
    }
}
