//! Everything that is checked before a handler sees a message.
//!
//! In this order: cheap filters on the properties, size, character encoding, signature over the exact
//! text, strict parsing, version, and whether the properties (which no signature covers) agree with the
//! document.

use pillarbox_bus::{Incoming, spelling};
use pillarbox_messages::{
    CollectionId, ComponentId, Destination, Header, KnownHeader, Message, ReadOptions,
    limits::MAX_MESSAGE_BYTES, properties,
};

use crate::{
    modified_utf8,
    outgoing::reply_destination,
    rejection::{Rejection, RejectionReason},
    security::{MessageSecurity, Verified},
};

/// A message that passed every check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// The message.
    pub message: Message,
    /// Fingerprint of the signer's certificate; none if the message isn't authenticated.
    pub certificate: Option<String>,
    /// The transport's own reply address: where an answer goes if `ReplyTo` is a temporary queue.
    pub reply_address: Option<String>,
}

/// Why a handler does not get to see a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// An identify request for somebody else, or about a collection that isn't served here. Not a word
    /// about it.
    NotOurs,
    /// The sender's fault.
    Rejected(Box<Rejection>),
}

/// Whom identify requests have to be for. Everything else passes.
#[derive(Clone, Copy, Debug)]
pub struct Filter<'a> {
    /// The component: an identify request with another `To` isn't ours.
    pub component: &'a ComponentId,
    /// The collections served: an identify request about another one isn't ours.
    pub collections: &'a [CollectionId],
}

impl Filter<'_> {
    /// Whether a message of this type, receiver and collection is not for us.
    fn excludes(&self, kind: &str, to: Option<&str>, collection: Option<&str>) -> bool {
        is_identify_request(kind)
            && (to.is_some_and(|to| self.component.as_str() != to)
                || collection.is_some_and(|collection| !self.serves(collection)))
    }

    fn serves(&self, collection: &str) -> bool {
        self.collections.iter().any(|id| id.as_str() == collection)
    }
}

/// Reads a message and filters out identify requests for others.
///
/// # Errors
/// [`Refusal::NotOurs`] in silence, [`Refusal::Rejected`] with all that is known.
pub fn receive(
    incoming: &Incoming,
    security: &MessageSecurity,
    options: ReadOptions,
    filter: Filter<'_>,
) -> Result<Received, Refusal> {
    let given = Properties::of(incoming);
    if given
        .kind
        .is_some_and(|kind| filter.excludes(kind, given.to, given.collection))
    {
        return Err(Refusal::NotOurs);
    }
    let result = decode(incoming, security, options);
    let excluded = match &result {
        Ok(received) => {
            let header = received.message.header();
            let kind = received.message.message_type().as_str();
            let to = header.to.as_ref().map(ComponentId::as_str);
            filter.excludes(
                kind,
                to,
                header.collection_id.as_ref().map(CollectionId::as_str),
            )
        }
        Err(rejection) => {
            let kind = rejection.message_type.as_deref().unwrap_or_default();
            let collection = rejection.collection_id.as_ref().map(CollectionId::as_str);
            let document = rejection.message.as_ref();
            let to = document.and_then(|message| message.header().to.as_ref());
            let to = to.map(ComponentId::as_str).or(given.to);
            filter.excludes(kind, to, collection)
        }
    };
    if excluded {
        return Err(Refusal::NotOurs);
    }
    result.map_err(Refusal::Rejected)
}

/// Reads a message: size, encoding, signature, schema, version, agreement of the properties.
///
/// # Errors
/// The first check that failed, with all that is known by then.
pub fn decode(
    incoming: &Incoming,
    security: &MessageSecurity,
    options: ReadOptions,
) -> Result<Received, Box<Rejection>> {
    let given = Properties::of(incoming);
    match read(incoming, security, options, given) {
        Ok((message, verified)) => {
            if let Err(reason) = check(&message, incoming, given) {
                // What is too long to be sent back is not to be kept or logged either.
                let too_long = matches!(reason, RejectionReason::HeaderTooLong { .. });
                let sender = &message.header().from;
                let sender =
                    (sender.as_str().len() <= MAX_HEADER_TEXT_BYTES).then(|| sender.clone());
                let known = (!too_long).then_some(message);
                let mut rejection = known_of(reason, incoming, given, known);
                rejection.from = sender;
                return Err(Box::new(rejection));
            }
            Ok(Received {
                message,
                certificate: verified.certificate,
                reply_address: incoming.reply_to.clone(),
            })
        }
        Err(reason) => Err(Box::new(known_of(reason, incoming, given, None))),
    }
}

fn read(
    incoming: &Incoming,
    security: &MessageSecurity,
    options: ReadOptions,
    given: Properties<'_>,
) -> Result<(Message, Verified), RejectionReason> {
    let bytes = incoming.left_out.unwrap_or(incoming.body.len());
    if bytes > MAX_MESSAGE_BYTES || incoming.left_out.is_some() {
        return Err(RejectionReason::TooLarge {
            bytes,
            limit: MAX_MESSAGE_BYTES,
        });
    }
    let text = modified_utf8::decode(&incoming.body)?;
    let verified = security.verify(&text, given.signature)?;
    Ok((Message::from_xml_with(&text, options)?, verified))
}

fn check(
    message: &Message,
    incoming: &Incoming,
    given: Properties<'_>,
) -> Result<(), RejectionReason> {
    let header = message.header();
    check_lengths(header)?;
    check_reply_address(&header.reply_to, incoming.reply_to.as_deref())?;
    header.version.check()?;
    agree(
        properties::TYPE,
        given.kind,
        Some(message.message_type().as_str()),
    )?;
    agree(
        properties::TO,
        given.to,
        header.to.as_ref().map(ComponentId::as_str),
    )?;
    let collection = header.collection_id.as_ref().map(CollectionId::as_str);
    agree(properties::COLLECTION_ID, given.collection, collection)
}

/// These go into the properties and the address of an answer. A bus refuses such an answer, and the request
/// would come again without end.
fn check_lengths(header: &Header) -> Result<(), RejectionReason> {
    let texts = [
        ("CorrelationID", Some(header.correlation_id.as_str())),
        (
            "CollectionID",
            header.collection_id.as_ref().map(CollectionId::as_str),
        ),
        ("ReplyTo", Some(header.reply_to.name())),
        ("From", Some(header.from.as_str())),
        ("To", header.to.as_ref().map(ComponentId::as_str)),
    ];
    for (element, text) in texts {
        let bytes = text.map_or(0, str::len);
        if bytes > MAX_HEADER_TEXT_BYTES {
            return Err(RejectionReason::HeaderTooLong {
                element,
                bytes,
                limit: MAX_HEADER_TEXT_BYTES,
            });
        }
    }
    Ok(())
}

/// As with the lengths: an address that a bus refuses must not become the destination of an answer.
pub(crate) fn check_reply_address(
    reply_to: &Destination,
    reply_address: Option<&str>,
) -> Result<(), RejectionReason> {
    let address = reply_destination(reply_to, reply_address);
    match spelling::fault_of_name(address.name()) {
        Some(fault) => Err(RejectionReason::ReplyAddress { fault }),
        None => Ok(()),
    }
}

/// A property may be missing; if it is there, the document must say the same.
fn agree(
    property: &'static str,
    given: Option<&str>,
    document: Option<&str>,
) -> Result<(), RejectionReason> {
    match given {
        Some(value) if document != Some(value) => Err(RejectionReason::Mismatch {
            property,
            value: value.to_owned(),
            document: document.map_or_else(|| "nothing".to_owned(), |text| format!("'{text}'")),
        }),
        _ => Ok(()),
    }
}

fn known_of(
    reason: RejectionReason,
    incoming: &Incoming,
    given: Properties<'_>,
    message: Option<Message>,
) -> Rejection {
    let known = match (&reason, &message) {
        (RejectionReason::Format(error), _) => (*error.known).clone(),
        (_, Some(message)) => known_header(message),
        _ => KnownHeader::default(),
    };
    Rejection {
        message_type: known.message_type.or_else(|| given.kind.map(str::to_owned)),
        from: known.from,
        reply_to: known.reply_to,
        correlation_id: known.correlation_id,
        collection_id: known
            .collection_id
            .or_else(|| given.collection.map(CollectionId::from)),
        reply_address: incoming.reply_to.clone(),
        message,
        reason,
    }
}

fn known_header(message: &Message) -> KnownHeader {
    let header = message.header();
    KnownHeader {
        message_type: Some(message.message_type().as_str().to_owned()),
        from: Some(header.from.clone()),
        reply_to: Some(header.reply_to.clone()),
        correlation_id: Some(header.correlation_id.clone()),
        collection_id: header.collection_id.clone(),
    }
}

fn is_identify_request(kind: &str) -> bool {
    kind.starts_with("Identify") && kind.ends_with("Request")
}

/// The protocol's properties of a bus message; others are ignored. An empty value or the literal `null`,
/// which is how a JMS null arrives over STOMP, counts as missing.
#[derive(Clone, Copy, Debug)]
struct Properties<'a> {
    kind: Option<&'a str>,
    to: Option<&'a str>,
    collection: Option<&'a str>,
    signature: Option<&'a str>,
}

impl<'a> Properties<'a> {
    fn of(incoming: &'a Incoming) -> Self {
        let value = |wanted: &str| {
            let (_, value) = incoming
                .properties
                .iter()
                .find(|(name, _)| name == wanted)?;
            (!value.is_empty() && value != "null").then_some(value.as_str())
        };
        Self {
            kind: value(properties::TYPE),
            to: value(properties::TO),
            collection: value(properties::COLLECTION_ID),
            signature: value(properties::SIGNATURE),
        }
    }
}

/// The longest id or address in a message's header, in bytes (4 KiB).
const MAX_HEADER_TEXT_BYTES: usize = 4 << 10;

#[cfg(test)]
mod tests;
