//! From a message to what the bus carries: text, signature, properties, and how it is delivered.

use std::time::Duration;

use bytes::Bytes;
use pillarbox_bus::Outgoing;
use pillarbox_messages::{CollectionId, FileId, Message, properties};
use pillarbox_settings::Timeouts;
use sha2::{Digest as _, Sha256};

use crate::security::MessageSecurity;

/// How a message is delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeliveryOptions {
    /// Survives a restart of the bus.
    pub persistent: bool,
    /// Not delivered later than this after it was sent.
    pub ttl: Option<Duration>,
}

/// Whether messages may expire. Times of expiry are compared with another machine's clock on some buses,
/// so a repository can do without.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Expiry {
    /// Requests expire with their timeout.
    #[default]
    WithTimeout,
    /// Nothing expires.
    Never,
}

/// The delivery table: which messages survive a restart of the bus, and which expire.
#[must_use]
pub fn delivery_for(message: &Message, timeouts: &Timeouts, expiry: Expiry) -> DeliveryOptions {
    let kind = message.message_type();
    let (persistent, ttl) = if kind.is_identify_request() {
        (false, Some(timeouts.identification))
    } else if kind.is_request() {
        (true, Some(timeouts.operation))
    } else {
        // Final responses and alarms are kept; identify and progress responses aren't.
        (
            kind.is_final_response() || matches!(message, Message::AlarmMessage(_)),
            None,
        )
    };
    DeliveryOptions {
        persistent,
        ttl: ttl.filter(|_| expiry == Expiry::WithTimeout),
    }
}

/// The message as the bus carries it, addressed by its own `Destination`.
#[must_use]
pub fn outgoing(
    message: &Message,
    security: &MessageSecurity,
    delivery: DeliveryOptions,
) -> Outgoing {
    let text = message.to_xml();
    let header = message.header();
    let mut properties = vec![(
        properties::TYPE.to_owned(),
        message.message_type().as_str().to_owned(),
    )];
    // A JMS null can't be said over STOMP; a property without value is left out.
    let optional = [
        (properties::SIGNATURE, security.sign(&text)),
        (
            properties::COLLECTION_ID,
            header.collection_id.clone().map(String::from),
        ),
        (properties::TO, header.to.clone().map(String::from)),
    ];
    properties.extend(
        optional
            .into_iter()
            .filter_map(|(name, value)| value.map(|value| (name.to_owned(), value))),
    );
    Outgoing {
        destination: header.destination.clone(),
        properties,
        body: Bytes::from(text),
        persistent: delivery.persistent,
        ttl: delivery.ttl,
        correlation_id: Some(header.correlation_id.as_str().to_owned()),
        reply_to: Some(header.reply_to.clone()),
        group: group_of(message),
        priority: NORMAL_PRIORITY,
    }
}

/// The message group of an operation request: all requests about one file of one collection share it, so
/// that a bus hands them to one consumer in order. None without a file id, and for every other message.
#[must_use]
pub fn group_of(message: &Message) -> Option<String> {
    let kind = message.message_type();
    if !kind.is_request() || kind.is_identify_request() {
        return None;
    }
    Some(group_key(
        message.header().collection_id.as_ref()?,
        message.file_id()?,
    ))
}

/// Lower case hex SHA-256 of the collection's id, NUL, and the file's id.
#[must_use]
pub fn group_key(collection: &CollectionId, file: &FileId) -> String {
    let mut digest = Sha256::new();
    digest.update(collection.as_str());
    digest.update([0]);
    digest.update(file.as_str());
    digest
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// JMS default.
const NORMAL_PRIORITY: u8 = 4;
