//! MESSAGE: from a delivery to its frame.

use bytes::BytesMut;
use pillarbox_messages::Destination;

use crate::{
    embedded::connection::{Browsed, DeliveryId, Gap, QueuedMessage},
    stomp::{
        destination,
        frame::{FrameWriter, StompCommand},
    },
};

/// What a MESSAGE frame says besides its message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delivered<'a> {
    /// The client's id of the subscription.
    pub(super) subscription: &'a str,
    /// To acknowledge it by; `None` if it needs no acknowledgement.
    pub(super) ack: Option<DeliveryId>,
    pub(super) redelivered: bool,
    pub(super) delivery_count: u32,
    pub(super) backout_count: u32,
    /// Whether it is the first of its lane that comes to the subscription.
    pub(super) first_of_group: bool,
    /// What the subscription has missed before it.
    pub(super) gap: Option<Gap>,
}

/// Writes a MESSAGE frame: the bus's headers, then the sender's in its order.
pub(super) fn write(out: &mut BytesMut, message: &QueuedMessage, delivered: Delivered<'_>) {
    let message = message.parts();
    let mut frame = FrameWriter::new(out, StompCommand::Message);
    frame.header("subscription", delivered.subscription);
    if let Some(ack) = delivered.ack {
        frame.plain("ack", ack);
    }
    if delivered.redelivered {
        frame.plain("redelivered", true);
    }
    frame
        .plain("q-delivery-count", delivered.delivery_count)
        .plain("q-backout-count", delivered.backout_count)
        .plain("message-id", message.id)
        .header("destination", message.destination_text)
        .plain("priority", message.priority);
    if message.persistent {
        frame.plain("persistent", true);
    }
    if let Some(at) = message.expires_at {
        frame.plain("expires", at);
    }
    for (name, value) in [
        ("correlation-id", message.correlation_id),
        ("reply-to", message.reply_to),
        ("JMSXGroupID", message.group),
        ("original-destination", message.original_destination),
    ] {
        if let Some(value) = value {
            frame.header(name, value);
        }
    }
    if delivered.first_of_group {
        frame.plain("JMSXGroupFirstForConsumer", true);
    }
    if let Some(gap) = delivered.gap {
        frame
            .plain("q-gap", gap.count)
            .plain("q-gap-since", gap.since);
    }
    if let Some(reason) = message.reason {
        frame.plain("q-reason", reason.as_str());
    }
    if let Some(failure) = message.failure {
        frame
            .plain("q-failed-at", failure.failed_at)
            .plain("q-failure-cause", failure.cause.as_str());
    }
    if !message.headers.iter().any(|(name, _)| *name == "timestamp") {
        frame.plain("timestamp", message.enqueued_at);
    }
    for (name, value) in &message.headers {
        frame.header(name, value);
    }
    frame.finish(message.body);
}

/// Writes what somebody looks at: as messages that need no acknowledgement.
pub(super) fn write_browsed(out: &mut BytesMut, subscription: &str, messages: &[Browsed]) {
    for seen in messages {
        let delivered = Delivered {
            subscription,
            ack: None,
            redelivered: seen.delivery_count > 0,
            delivery_count: seen.delivery_count,
            backout_count: seen.backout_count,
            first_of_group: false,
            gap: None,
        };
        write(out, &seen.message, delivered);
    }
}

/// Writes that there was no message to take.
pub(super) fn write_none(
    out: &mut BytesMut,
    subscription: &str,
    destination: &Destination,
    in_use: bool,
) {
    let mut frame = FrameWriter::new(out, StompCommand::Message);
    start(&mut frame, subscription, destination);
    frame.header("q-get", "none");
    if in_use {
        frame.plain("q-in-use", true);
    }
    frame.finish(b"");
}

/// Writes that nothing more is to be looked at; `more`: though there is more.
pub(super) fn write_end(
    out: &mut BytesMut,
    subscription: &str,
    destination: &Destination,
    more: bool,
) {
    let mut frame = FrameWriter::new(out, StompCommand::Message);
    start(&mut frame, subscription, destination);
    frame.header("browser", "end");
    if more {
        frame.plain("q-more", true);
    }
    frame.finish(b"");
}

/// What every MESSAGE must have; this one is about none.
fn start(frame: &mut FrameWriter<'_>, subscription: &str, destination: &Destination) {
    frame.header("subscription", subscription);
    frame.header("message-id", "none");
    frame.header("destination", &destination::to_wire(destination));
}
