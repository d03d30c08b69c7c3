//! From a message to what the bus carries: text, signature, properties, and how it is delivered.

use std::time::Duration;

use bytes::Bytes;
use pillarbox_bus::{Outgoing, spelling};
use pillarbox_messages::{CollectionId, Destination, DestinationKind, FileId, Message, properties};
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
        correlation_id: Some(header.correlation_id.as_str())
            .filter(|id| id.len() <= MAX_BUS_CORRELATION_ID)
            .map(str::to_owned),
        reply_to: Some(header.reply_to.clone()),
        group: group_of(message),
        priority: NORMAL_PRIORITY,
        dedup: None,
    }
}

/// Where an answer to `reply_to` goes: the transport's reply address of the request where that is a temporary
/// queue, whose name in a document is no address.
pub(crate) fn reply_destination(
    reply_to: &Destination,
    reply_address: Option<&str>,
) -> Destination {
    let temporary = reply_to.kind() == DestinationKind::TemporaryQueue;
    reply_address
        .filter(|_| temporary)
        .and_then(spelling::from_stomp)
        .unwrap_or_else(|| reply_to.clone())
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

/// Brokers refuse longer ones, in bytes. The document has it too, and there is where it is read.
const MAX_BUS_CORRELATION_ID: usize = 255;

#[cfg(test)]
mod tests {
    use pillarbox_messages::{
        ComponentId, CorrelationId, DeleteFileRequest, Destination, Header,
        IdentifyPillarsForGetFileRequest, MessageType, ProtocolVersion, ResponseCode, ResponseInfo,
        Timestamp,
    };

    use super::*;
    use crate::responses::{Subject, refusal};

    const TIMEOUTS: Timeouts = Timeouts {
        identification: Duration::from_secs(180),
        operation: Duration::from_secs(3600),
        conversation: Duration::from_secs(7200),
    };

    fn header(collection: Option<&str>, to: Option<&str>) -> Header {
        Header {
            version: ProtocolVersion::CURRENT,
            correlation_id: CorrelationId::from("c-1"),
            collection_id: collection.map(CollectionId::from),
            destination: Destination::queue("books.north"),
            reply_to: Destination::topic("client"),
            from: "client".into(),
            to: to.map(ComponentId::from),
        }
    }

    fn delete(collection: Option<&str>, to: Option<&str>) -> Message {
        DeleteFileRequest {
            header: header(collection, to),
            audit_trail_information: None,
            pillar_id: None,
            file_id: "Ærø.tif".into(),
            checksum_data_for_existing_file: None,
            checksum_request_for_existing_file: None,
        }
        .into()
    }

    fn identify() -> Message {
        IdentifyPillarsForGetFileRequest {
            header: header(Some("books"), None),
            audit_trail_information: None,
            file_id: "a".into(),
        }
        .into()
    }

    fn response(kind: MessageType) -> Message {
        let info = ResponseInfo {
            response_code: ResponseCode::Failure,
            response_text: None,
        };
        let header = header(Some("books"), Some("client"));
        let subject = Subject::default();
        refusal(
            kind,
            header,
            info,
            &"north".into(),
            subject,
            Timestamp::EPOCH,
        )
        .unwrap()
    }

    #[test]
    fn the_delivery_table() {
        let rows = [
            (identify(), false, Some(TIMEOUTS.identification)),
            (delete(Some("books"), None), true, Some(TIMEOUTS.operation)),
            (
                response(MessageType::IdentifyPillarsForGetFileRequest),
                false,
                None,
            ),
            (response(MessageType::GetFileRequest), true, None),
        ];
        for (message, persistent, ttl) in rows {
            let kind = message.message_type();
            let delivery = delivery_for(&message, &TIMEOUTS, Expiry::WithTimeout);
            assert_eq!(delivery, DeliveryOptions { persistent, ttl }, "{kind:?}");
            let delivery = delivery_for(&message, &TIMEOUTS, Expiry::Never);
            assert_eq!(
                delivery,
                DeliveryOptions {
                    persistent,
                    ttl: None
                },
                "{kind:?}"
            );
        }
    }

    #[test]
    fn properties_say_what_the_document_says_and_no_more() {
        let delivery = DeliveryOptions {
            persistent: true,
            ttl: None,
        };
        let send = |message: &Message| outgoing(message, &MessageSecurity::Unsigned, delivery);
        let message = delete(Some("books"), Some("north"));
        let sent = send(&message);
        let owned = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let expected = [
            owned("org.bitrepository.messages.type", "DeleteFileRequest"),
            owned("org.bitrepository.messages.collectionid", "books"),
            owned("org.bitrepository.messages.to", "north"),
        ];
        assert_eq!(sent.properties, expected);
        assert_eq!(sent.destination, Destination::queue("books.north"));
        assert_eq!(sent.correlation_id.as_deref(), Some("c-1"));
        assert_eq!(sent.reply_to, Some(Destination::topic("client")));
        assert_eq!(
            Message::from_xml(std::str::from_utf8(&sent.body).unwrap()).unwrap(),
            message
        );
        assert_eq!(send(&delete(None, None)).properties.len(), 1);
        let mut message = message;
        message.header_mut().correlation_id = "c".repeat(256).into();
        assert_eq!(send(&message).correlation_id, None);
    }

    #[test]
    fn only_operation_requests_about_a_file_of_a_collection_have_a_group() {
        let group = group_of(&delete(Some("books"), None)).unwrap();
        // printf 'books\0Ærø.tif' | sha256sum
        assert_eq!(
            group,
            "70d853e41380133ac7ab9a9f17e4c9ef98f2ecdc950e8a479e5373743d6fafb1"
        );
        assert_eq!(group_of(&delete(None, None)), None);
        assert_eq!(group_of(&identify()), None);
        assert_eq!(group_of(&response(MessageType::GetFileRequest)), None);
    }
}
