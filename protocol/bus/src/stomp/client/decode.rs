//! The frames a client receives.

use pillarbox_messages::Destination;

use super::dialect::Dialect;
use crate::{
    error::BusError,
    handle::{Incoming, message::properties},
    spelling,
    stomp::frame::Frame,
};

/// A MESSAGE, and the name to acknowledge it by. `subscribed` is where it must have come from if its own
/// spelling of that is unknown.
pub(super) fn message(
    frame: Frame,
    subscribed: &Destination,
    dialect: &Dialect,
) -> (Incoming, String) {
    let text = |name: &str| frame.header(name).map(str::to_owned);
    let is_true = |name: &str| frame.header(name) == Some("true");
    let count = |name: &str| frame.header(name).and_then(|count| count.parse().ok());
    let redelivered = is_true("redelivered");
    let at_least = 1 + u32::from(redelivered);
    let message_id = text("message-id").unwrap_or_default();
    let ack = text("ack").unwrap_or_else(|| message_id.clone());
    let destination = frame.header("destination");
    let destination = destination.and_then(|text| dialect.read(text));
    // Answers are sent by the one spelling that every part of this program reads.
    let reply_to = text("reply-to").map(|text| match dialect.read(&text) {
        Some(destination) => spelling::to_stomp(&destination),
        None => text,
    });
    let incoming = Incoming {
        message_id,
        destination: destination.unwrap_or_else(|| subscribed.clone()),
        correlation_id: text("correlation-id"),
        reply_to,
        persistent: is_true("persistent"),
        redelivered,
        delivery_count: count("q-delivery-count").unwrap_or(at_least),
        backout_count: count("q-backout-count").unwrap_or(0),
        properties: properties(frame.headers),
        body: frame.body,
        left_out: frame.left_out,
    };
    (incoming, ack)
}

/// What follows these words, if it begins with them.
fn behind(text: &str, words: &str) -> String {
    text.strip_prefix(words).unwrap_or(text).to_owned()
}

/// What an ERROR frame says. `destination` is what the frame it answers was about, if that is known.
pub(super) fn error(frame: &Frame, client_id: &str, destination: Option<&Destination>) -> BusError {
    let name = frame.header("message").unwrap_or("ERROR");
    let body = String::from_utf8_lossy(&frame.body);
    let detail = body.lines().next().unwrap_or_default().trim();
    // What ActiveMQ says when a client id is taken.
    if body.contains("InvalidClientIDException") || name.contains("already connected from") {
        return BusError::ClientIdInUse(client_id.to_owned());
    }
    match (name, destination) {
        // What ActiveMQ says when another connection listens to a durable subscription.
        (said, Some(destination)) if said.starts_with("Durable consumer is in use") => {
            BusError::SubscriptionInUse {
                client_id: client_id.to_owned(),
                name: destination.to_string(),
            }
        }
        ("CLIENT-ID-IN-USE", _) => BusError::ClientIdInUse(client_id.to_owned()),
        ("STALE-ACK", _) => BusError::StaleAck,
        ("TX-UNKNOWN", _) => BusError::TransactionUnknown,
        ("TX-TIMEOUT", _) => BusError::TransactionTimedOut,
        // The detail says in full what the error is here.
        ("NO-SPACE", _) => BusError::NoSpace(behind(detail, "the queue space is full: ")),
        ("SPACE-FAILED", _) => BusError::SpaceFailed(behind(
            detail,
            "the queue space has failed and needs a restart: ",
        )),
        ("NO-QUEUE", Some(destination)) => BusError::UnknownDestination {
            destination: destination.clone(),
            remedy: detail
                .split_once("; ")
                .map_or(detail, |(_, remedy)| remedy)
                .to_owned(),
        },
        _ => BusError::Refused {
            name: name.to_owned(),
            detail: detail.to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stomp::frame::StompCommand;

    #[test]
    fn what_our_own_bus_refuses_reads_the_same_here() {
        for told in [
            BusError::NoSpace("its 10 bytes are taken".to_owned()),
            BusError::SpaceFailed("no such device".to_owned()),
        ] {
            let frame = Frame::new(StompCommand::Error).with("message", told.name());
            let frame = Frame {
                body: told.to_string().into(),
                ..frame
            };
            assert_eq!(error(&frame, "north", None), told);
        }
    }
}
