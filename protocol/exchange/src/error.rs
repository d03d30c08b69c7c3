//! What can go wrong, split by who has to act.

use std::{io, net::SocketAddr, path::PathBuf, time::Duration};

use pillarbox_messages::wording::count;
use pillarbox_trust::TrustError;

/// Why an exchange failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExchangeError {
    /// The address can't be understood, or would not survive being used unchanged.
    #[error("the address {address:?} can't be used: {reason}")]
    BadAddress {
        /// The address, as sent.
        address: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The address asks for a protocol other than http, https and file.
    #[error("the address {address:?} has the scheme {scheme:?}; only http, https and file work")]
    UnsupportedScheme {
        /// The address, as sent.
        address: String,
        /// Its scheme, in lower case.
        scheme: String,
    },
    /// This process may not use the address.
    #[error("the address {address:?} isn't allowed: {reason}")]
    NotAllowed {
        /// The address, as sent; without user name and password.
        address: String,
        /// Which rule forbids it.
        reason: String,
    },
    /// The peer or the network failed.
    #[error("the transfer with {address:?} failed: {source}")]
    Transfer {
        /// The address, as sent.
        address: String,
        /// How it failed.
        source: TransferError,
    },
    /// Our own disk (or whatever else the caller sends bytes from) failed; no peer is to blame.
    #[error("{what} failed: {source}")]
    Local {
        /// What was being done, with the path if there is one.
        what: String,
        /// What the operating system said.
        source: io::Error,
    },
    /// The server can't listen.
    #[error("the file exchange can't listen on {address}: {source}")]
    Listen {
        /// The address that is taken or not ours.
        address: SocketAddr,
        /// What the operating system said.
        source: io::Error,
    },
    /// An entry of the allow-list of hosts isn't `host:port`.
    #[error("the allowed exchange host {entry:?} isn't host:port")]
    BadHost {
        /// The entry.
        entry: String,
    },
    /// An allowed root of file: addresses can't be used.
    #[error("the allowed file root {} can't be used: {source}", path.display())]
    BadRoot {
        /// The root.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The certificates for https can't be loaded.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// The http client can't be made.
    #[error("the http client can't be set up: {detail}")]
    Setup {
        /// What the http library said.
        detail: String,
    },
}

impl ExchangeError {
    /// The kind of the input/output failure, where there is one: for telling a full disk from
    /// others.
    #[must_use]
    pub fn io_kind(&self) -> Option<io::ErrorKind> {
        match self {
            Self::Local { source, .. }
            | Self::Listen { source, .. }
            | Self::BadRoot { source, .. }
            | Self::Transfer {
                source: TransferError::File(source),
                ..
            } => Some(source.kind()),
            _ => None,
        }
    }

    /// What may be said to a peer that named the address: how the transfer failed, with no address, path or code of
    /// this machine in it. None if that is nothing of a peer's business.
    #[must_use]
    pub fn told_to_peer(&self) -> Option<String> {
        match self {
            Self::BadAddress { reason, .. } => Some((*reason).to_owned()),
            Self::Transfer { source, .. } => Some(match source {
                TransferError::File(source) => source.kind().to_string(),
                source => without_os_error(&source.to_string()),
            }),
            _ => None,
        }
    }

    pub(crate) fn transfer(address: &str, source: TransferError) -> Self {
        Self::Transfer {
            address: address.to_owned(),
            source,
        }
    }

    pub(crate) fn local(what: impl Into<String>, source: io::Error) -> Self {
        Self::Local {
            what: what.into(),
            source,
        }
    }
}

/// How a transfer failed that the peer or the network is to blame for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransferError {
    /// No connection came about (refused, unknown host, TLS not agreed).
    #[error("no connection: {detail}")]
    Connect {
        /// The causes, joined.
        detail: String,
    },
    /// The server answered with a status other than success. Redirects are such an answer.
    #[error("the server answered {status}{}", meaning(*status))]
    Status {
        /// The HTTP status code.
        status: u16,
    },
    /// Nothing moved for too long.
    #[error("nothing moved for {} s", after.as_secs_f32())]
    Stalled {
        /// How long.
        after: Duration,
    },
    /// Fewer bytes came than were announced.
    #[error("{received} of {} came", count(*.expected, "byte"))]
    Short {
        /// The announced number of bytes.
        expected: u64,
        /// The number that came.
        received: u64,
    },
    /// The part asked for lies beyond the end.
    #[error("the file has no such part")]
    OutOfRange,
    /// The server ignored that a part was asked for, or sent another one.
    #[error("the server didn't send the part that was asked for")]
    WrongRange,
    /// The connection broke or carried nonsense.
    #[error("the connection broke: {detail}")]
    Broken {
        /// The causes, joined.
        detail: String,
    },
    /// A file behind a file: address failed.
    #[error("{0}")]
    File(#[source] io::Error),
}

/// What a status means of a file that is to be laid there: so WebDAV servers answer (RFC 4918, 9.7.1).
const fn meaning(status: u16) -> &'static str {
    match status {
        409 => ": the directory of the address must exist there",
        _ => "",
    }
}

/// `Connection refused (os error 111)` without the number.
fn without_os_error(text: &str) -> String {
    let mut rest = text;
    let mut told = String::new();
    while let Some((before, after)) = rest.split_once(" (os error ") {
        told.push_str(before);
        rest = after.split_once(')').map_or("", |(_, behind)| behind);
    }
    told.push_str(rest);
    told
}

/// An error and its causes on one line: http errors hide the cause behind several layers.
pub(crate) fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        next = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_is_told_how_and_not_where() {
        let address = "http://kim:secret@host/a?key=secret";
        let told = |source| ExchangeError::transfer(address, source).told_to_peer();
        let detail = "tcp connect error: Connection refused (os error 111)".to_owned();
        let refused = TransferError::Connect { detail };
        assert_eq!(
            told(refused).as_deref(),
            Some("no connection: tcp connect error: Connection refused")
        );
        let missing = told(TransferError::Status { status: 409 });
        assert_eq!(
            missing.as_deref(),
            Some("the server answered 409: the directory of the address must exist there")
        );
        let file = io::Error::from_raw_os_error(2);
        assert_eq!(
            told(TransferError::File(file)).as_deref(),
            Some("entity not found")
        );
        let ours = ExchangeError::local("writing /archive/1/x", io::Error::other("no"));
        assert_eq!(ours.told_to_peer(), None);
    }
}
