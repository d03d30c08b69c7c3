//! Why a document was refused, where, and what was already known of it.

use std::fmt;

use thiserror::Error;

use crate::{
    destination::Destination,
    ids::{CollectionId, ComponentId, CorrelationId},
};

/// A document that is not what its schema allows, or more than the reader takes.
///
/// It says where the fault lies and what of the message header was read before it, so that whoever
/// refuses the message can say whose it was.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{reason} at byte {offset}{}", within(path))]
pub struct DecodeError {
    /// What is wrong.
    pub reason: DecodeReason,
    /// The open elements, outermost first, each after a slash: `/PutFileRequest/FileSize`.
    pub path: Box<str>,
    /// Where, in bytes of the text from its beginning.
    pub offset: u64,
    /// What was read of the header by then.
    pub known: Box<KnownHeader>,
}

/// The part of a message header that was read before a fault; empty for result documents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownHeader {
    /// Local name of the root element, whether or not it is a known message type.
    pub message_type: Option<String>,
    /// The sender (`From`).
    pub from: Option<ComponentId>,
    /// Where the sender wants answers (`ReplyTo`).
    pub reply_to: Option<Destination>,
    /// The conversation (`CorrelationID`).
    pub correlation_id: Option<CorrelationId>,
    /// The collection (`CollectionID`).
    pub collection_id: Option<CollectionId>,
}

/// What is wrong with a document.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DecodeReason {
    /// The document is longer than allowed; nothing of it was read.
    #[error("document of {bytes} bytes is larger than the {limit} bytes allowed")]
    TooLarge {
        /// Its length in bytes.
        bytes: usize,
        /// The most that is read, in bytes.
        limit: usize,
    },
    /// The text of one element is longer than allowed.
    #[error("text is longer than the {limit} bytes allowed")]
    TextTooLong {
        /// The most that is read, in bytes.
        limit: usize,
    },
    /// One start tag has more attributes than allowed.
    #[error("more than the {limit} attributes allowed on one element")]
    TooManyAttributes {
        /// The most that is read.
        limit: usize,
    },
    /// Not well-formed XML.
    #[error("not well-formed: {0}")]
    NotWellFormed(Box<str>),
    /// The document ends inside an element, or before its root.
    #[error("the document is cut off")]
    CutOff,
    /// A character that XML 1.0 does not allow, raw or by reference.
    #[error("character not allowed in XML 1.0")]
    IllegalCharacter,
    /// A document type declaration.
    #[error("document type declarations are not accepted")]
    DocumentType,
    /// A processing instruction inside or after the root element.
    #[error("processing instructions are not accepted after the prolog")]
    ProcessingInstruction,
    /// A bad or misplaced XML declaration.
    #[error("bad XML declaration")]
    Declaration,
    /// The XML declaration names an encoding other than UTF-8.
    #[error("encoding '{0}' is not UTF-8")]
    Encoding(Box<str>),
    /// A reference to an entity other than the five that XML predefines.
    #[error("unknown entity '{0}'")]
    UnknownEntity(Box<str>),
    /// A prefix without a namespace declaration in scope.
    #[error("prefix '{0}' is not declared")]
    UndeclaredPrefix(Box<str>),
    /// An element in the wrong namespace.
    #[error("element '{0}' is not in the namespace expected")]
    WrongNamespace(Box<str>),
    /// The root element is no message type (or no result document) of the protocol.
    #[error("unknown document type '{0}'")]
    UnknownRoot(Box<str>),
    /// Something other than comments and white space after the root element.
    #[error("content after the root element")]
    AfterRoot,
    /// Another element than the one due here.
    #[error("element '{found}' where {expected} is expected")]
    UnexpectedElement {
        /// Local name of what is there.
        found: Box<str>,
        /// What should be.
        expected: Expected,
    },
    /// The enclosing element ends where an element is due.
    #[error("element '{0}' is missing")]
    MissingElement(&'static str),
    /// Text between elements.
    #[error("text where only elements are allowed")]
    UnexpectedText,
    /// An attribute that the schema does not know.
    #[error("unknown attribute '{0}'")]
    UnknownAttribute(Box<str>),
    /// A required attribute is absent.
    #[error("attribute '{0}' is missing")]
    MissingAttribute(&'static str),
    /// `version` or `minVersion` is no number of a version.
    #[error("attribute '{attribute}' is '{text}', which is no protocol version")]
    BadVersion {
        /// Which of the two.
        attribute: &'static str,
        /// Its value, cut after [`DecodeReason::SHOWN_CHARACTERS`] characters.
        text: Box<str>,
    },
    /// Text that its type does not allow.
    #[error("'{text}' is not {expected}")]
    BadValue {
        /// The text, cut after [`DecodeReason::SHOWN_CHARACTERS`] characters.
        text: Box<str>,
        /// The type it should have.
        expected: &'static str,
    },
}

impl DecodeReason {
    /// How many characters of a bad value an error repeats.
    pub const SHOWN_CHARACTERS: usize = 120;

    /// Whether the document does not say which protocol version it is of.
    #[must_use]
    pub const fn is_about_version(&self) -> bool {
        // No other attributes are required.
        matches!(self, Self::BadVersion { .. } | Self::MissingAttribute(_))
    }

    pub(crate) fn bad_value(text: &str, expected: &'static str) -> Box<Self> {
        Box::new(Self::BadValue {
            text: shown(text),
            expected,
        })
    }

    pub(crate) fn not_well_formed(what: impl fmt::Display) -> Box<Self> {
        Box::new(Self::NotWellFormed(shown(&what.to_string())))
    }
}

/// What was expected where something else was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// The element of this name.
    Element(&'static str),
    /// The end of the enclosing element.
    End,
    /// Text only.
    Text,
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Element(name) => write!(f, "'{name}'"),
            Self::End => f.write_str("the end of the element"),
            Self::Text => f.write_str("text"),
        }
    }
}

/// Where a fault is, if any element is open there.
fn within(path: &str) -> String {
    match path {
        "" => String::new(),
        path => format!(", in {path}"),
    }
}

/// The beginning of a peer's text, short enough for a log line and in one line.
pub(crate) fn shown(text: &str) -> Box<str> {
    text.chars()
        .take(DecodeReason::SHOWN_CHARACTERS)
        .map(|character| {
            if character.is_control() {
                char::REPLACEMENT_CHARACTER
            } else {
                character
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_told_if_there_is_one() {
        let error = |path: &str| DecodeError {
            reason: DecodeReason::CutOff,
            path: path.into(),
            offset: 8,
            known: Box::default(),
        };
        let outside = "the document is cut off at byte 8";
        assert_eq!(error("").to_string(), outside);
        let inside = format!("{outside}, in /AlarmMessage");
        assert_eq!(error("/AlarmMessage").to_string(), inside);
    }

    #[test]
    fn an_error_stays_in_its_line() {
        let reason = DecodeReason::bad_value(&"a\n\u{1B}".repeat(1000), "text");
        let text = reason.to_string();
        assert!(
            text.len() < 500 && !text.contains(char::is_control),
            "{text}"
        );
    }
}
