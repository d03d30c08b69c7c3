//! Destinations: where a message is sent, and how the wire spells it.

use std::{fmt, str::FromStr};

use thiserror::Error;

/// What kind of place a destination is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DestinationKind {
    /// Every present subscription gets the message.
    Topic,
    /// Exactly one consumer gets the message.
    Queue,
    /// A queue that belongs to the connection that made it. Its wire name is not in the XML: an answer goes to
    /// the transport's reply address.
    TemporaryQueue,
}

impl DestinationKind {
    /// The scheme that spells this kind in a message: `topic`, `queue` or `temporary-queue`.
    #[must_use]
    pub const fn scheme(self) -> &'static str {
        match self {
            Self::Topic => "topic",
            Self::Queue => "queue",
            Self::TemporaryQueue => "temporary-queue",
        }
    }
}

/// The longest name of a destination that a bus takes, in bytes.
pub const MAX_NAME: usize = 255;

/// What is wrong with a destination's name, if anything. Names are 1 to 255 bytes of printable text; refused is
/// what some bus would read as a pattern, a list or a path, and what a person would not see.
#[must_use]
pub fn fault_of_name(name: &str) -> Option<&'static str> {
    let bad_char = |c: char| c.is_control() || matches!(c, ',' | '*' | '>' | '#' | '/');
    if name.is_empty() || name.len() > MAX_NAME {
        Some("has not 1 to 255 bytes")
    } else if name.contains(bad_char) {
        Some("contains one of , * > # / or a control character")
    } else if name.starts_with([' ', '.']) || name.ends_with([' ', '.']) {
        Some("starts or ends with a space or a dot")
    } else {
        None
    }
}

/// A destination as the schema elements `Destination` and `ReplyTo` spell it: `topic://name`, `queue://name`,
/// `temporary-queue://name`, or a bare name, which is a topic.
///
/// Two destinations are equal if kind and name are; [`fmt::Display`] writes the spelling with its scheme.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Destination {
    kind: DestinationKind,
    name: Box<str>,
}

/// Why a text is no destination.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DestinationError {
    /// Nothing after the scheme, or nothing at all.
    #[error("destination '{0}' has no name")]
    NoName(String),
    /// More than one `://`.
    #[error("destination '{0}' has more than one '://'")]
    TwoSchemes(String),
    /// A scheme other than topic, queue or temporary-queue.
    #[error(
        "destination '{text}' has the unknown kind '{scheme}' (known: topic, queue, temporary-queue)"
    )]
    UnknownKind {
        /// The whole text.
        text: String,
        /// What stands before `://`.
        scheme: String,
    },
}

impl Destination {
    /// A destination of this kind and name.
    #[must_use]
    pub fn new(kind: DestinationKind, name: &str) -> Self {
        Self {
            kind,
            name: name.into(),
        }
    }

    /// The topic of this name.
    #[must_use]
    pub fn topic(name: &str) -> Self {
        Self::new(DestinationKind::Topic, name)
    }

    /// The queue of this name.
    #[must_use]
    pub fn queue(name: &str) -> Self {
        Self::new(DestinationKind::Queue, name)
    }

    /// Its kind.
    #[must_use]
    pub const fn kind(&self) -> DestinationKind {
        self.kind
    }

    /// Its name, without the scheme.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl FromStr for Destination {
    type Err = DestinationError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (kind, name) = match text.split_once("://") {
            None => (DestinationKind::Topic, text),
            Some((_, rest)) if rest.contains("://") => {
                return Err(DestinationError::TwoSchemes(text.to_owned()));
            }
            Some(("topic", name)) => (DestinationKind::Topic, name),
            Some(("queue", name)) => (DestinationKind::Queue, name),
            Some(("temporary-queue", name)) => (DestinationKind::TemporaryQueue, name),
            Some((scheme, _)) => {
                return Err(DestinationError::UnknownKind {
                    text: text.to_owned(),
                    scheme: scheme.to_owned(),
                });
            }
        };
        if name.is_empty() {
            return Err(DestinationError::NoName(text.to_owned()));
        }
        Ok(Self::new(kind, name))
    }
}

serde_as_text! { Destination }

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.kind.scheme(), self.name)
    }
}

impl fmt::Debug for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings() {
        let topic: Destination = "reading-room-kim's reading desk".parse().unwrap();
        assert_eq!(topic, Destination::topic("reading-room-kim's reading desk"));
        assert_eq!(topic.to_string(), "topic://reading-room-kim's reading desk");
        assert_eq!(
            "queue://a".parse::<Destination>().unwrap(),
            Destination::queue("a")
        );
        assert!("vm://a".parse::<Destination>().is_err());
        assert!("topic://a://b".parse::<Destination>().is_err());
        assert!("queue://".parse::<Destination>().is_err());
    }
}
