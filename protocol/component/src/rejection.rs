//! A message that was refused before a handler saw it, and all that is known of it.

use pillarbox_messages::{
    AlarmCode, CollectionId, ComponentId, CorrelationId, DecodeError, Destination, Message,
    MessageType, VersionError,
};
use thiserror::Error;

use crate::{incoming::check_reply_address, modified_utf8::EncodingError, security::SecurityError};

/// Why a message was refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RejectionReason {
    /// The body is larger than any message may be.
    #[error("the message has {bytes} bytes, more than the {limit} that are accepted")]
    TooLarge {
        /// Its size in bytes.
        bytes: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// The body is not text.
    #[error(transparent)]
    Encoding(#[from] EncodingError),
    /// The text is not to be believed.
    #[error(transparent)]
    Security(#[from] SecurityError),
    /// The text is no message of the schema.
    #[error(transparent)]
    Format(#[from] DecodeError),
    /// The message is of a protocol version that this component can't speak.
    #[error(transparent)]
    Version(#[from] VersionError),
    /// An id or address in the header is longer than what a bus carries in an answer.
    #[error("{element} has {bytes} bytes, more than the {limit} that are accepted")]
    HeaderTooLong {
        /// The element.
        element: &'static str,
        /// Its size in bytes.
        bytes: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// No answer can be addressed to the sender.
    #[error("its reply address can't be answered: the name {fault}")]
    ReplyAddress {
        /// What is wrong with the destination's name.
        fault: &'static str,
    },
    /// A property of the bus message says something else than the document, or nothing where it must.
    #[error("the property {property} is '{value}', the document says {document}")]
    Mismatch {
        /// The property's name.
        property: &'static str,
        /// The property's value.
        value: String,
        /// What the document says, ready to print.
        document: String,
    },
}

/// A refused message: why, and what could be read of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// Why it was refused.
    pub reason: RejectionReason,
    /// The type: the document's root, else the property.
    pub message_type: Option<String>,
    /// `From`.
    pub from: Option<ComponentId>,
    /// `ReplyTo`.
    pub reply_to: Option<Destination>,
    /// `CorrelationID`.
    pub correlation_id: Option<CorrelationId>,
    /// `CollectionID`: the document's, else the property.
    pub collection_id: Option<CollectionId>,
    /// The transport's own reply address.
    pub reply_address: Option<String>,
    /// The message, where it could be read as a whole.
    pub message: Option<Message>,
}

impl Rejection {
    /// The alarm that such a message is worth.
    #[must_use]
    pub const fn alarm_code(&self) -> AlarmCode {
        match &self.reason {
            RejectionReason::Version(_) => AlarmCode::InvalidMessageVersion,
            RejectionReason::Format(error) if error.reason.is_about_version() => {
                AlarmCode::InvalidMessageVersion
            }
            _ => AlarmCode::InvalidMessage,
        }
    }

    /// What the alarm and the log say. The same fault by the same sender gives the same text: nothing in it
    /// comes from a single conversation.
    #[must_use]
    pub fn alarm_text(&self) -> String {
        let kind = self
            .message_type
            .as_deref()
            .unwrap_or("message of unknown type");
        let from = self
            .from
            .as_ref()
            .map_or("an unknown sender", ComponentId::as_str);
        let (kind, from) = (cut(kind), cut(from));
        match &self.reason {
            RejectionReason::Format(DecodeError { reason, path, .. }) if path.is_empty() => {
                format!("{kind} from {from} refused: {reason}")
            }
            // Without the place in bytes, which depends on the length of ids.
            RejectionReason::Format(DecodeError { reason, path, .. }) => {
                format!("{kind} from {from} refused: {reason}, in {path}")
            }
            reason => format!("{kind} from {from} refused: {reason}"),
        }
    }

    /// The request's type, if this is a request whose sender can be told: only requests are answered, never
    /// a message whose sender may not be believed.
    #[must_use]
    pub fn answerable(&self) -> Option<MessageType> {
        if matches!(self.reason, RejectionReason::Security(_)) {
            return None;
        }
        self.from.as_ref().and(self.correlation_id.as_ref())?;
        let reply_to = self.reply_to.as_ref()?;
        check_reply_address(reply_to, self.reply_address.as_deref()).ok()?;
        let kind: MessageType = self.message_type.as_deref()?.parse().ok()?;
        (kind.is_request() || kind.is_identify_request()).then_some(kind)
    }
}

/// At most [`MAX_NAME_CHARS`] characters of a name that a stranger chose.
fn cut(name: &str) -> &str {
    name.char_indices()
        .nth(MAX_NAME_CHARS)
        .and_then(|(end, _)| name.get(..end))
        .unwrap_or(name)
}

const MAX_NAME_CHARS: usize = 200;
