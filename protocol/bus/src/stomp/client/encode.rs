//! The frames a client sends.

use std::time::Duration;

use bytes::BytesMut;

use crate::{
    error::BusError,
    handle::{Outgoing, SubscribeRequest},
    stomp::{
        codec::FrameLimits,
        destination::to_wire,
        frame::{FrameWriter, StompCommand, escaped_length},
    },
};

/// The names of a durable subscription's name: ActiveMQ's, and Artemis's.
const DURABLE: [&str; 2] = ["activemq.subscriptionName", "durable-subscription-name"];

/// What a SEND adds to an [`Outgoing`].
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SendContext<'a> {
    pub(super) receipt: Option<u64>,
    pub(super) transaction: Option<&'a str>,
    /// How much of the message's time to live is left.
    pub(super) ttl: Option<Duration>,
}

/// SEND. No property is named as a transport header: see [`Outgoing::check`].
pub(super) fn send(out: &mut BytesMut, message: &Outgoing, context: SendContext<'_>) {
    let mut frame = FrameWriter::new(out, StompCommand::Send);
    frame.header("destination", &to_wire(&message.destination));
    receipt(&mut frame, context.receipt);
    if let Some(transaction) = context.transaction {
        frame.header("transaction", transaction);
    }
    frame
        .plain("persistent", message.persistent)
        .plain("priority", message.priority);
    if let Some(ttl) = context.ttl {
        // A time to live of 0 would be none at all.
        frame.plain("q-ttl", ttl.as_millis().max(1));
    }
    if let Some(id) = &message.correlation_id {
        frame.header("correlation-id", id);
    }
    if let Some(reply_to) = &message.reply_to {
        frame.header("reply-to", &to_wire(reply_to));
    }
    if let Some(group) = &message.group {
        frame.header("JMSXGroupID", group);
    }
    frame.header("amq-msg-type", "text");
    for (name, value) in &message.properties {
        frame.header(name, value);
    }
    frame.finish(&message.body);
}

/// SUBSCRIBE. Acknowledgement is always explicit and single on the wire.
pub(super) fn subscribe(out: &mut BytesMut, number: u64, request: &SubscribeRequest, receipt: u64) {
    let mut frame = FrameWriter::new(out, StompCommand::Subscribe);
    frame.plain("id", number);
    frame.header("destination", &to_wire(&request.destination));
    frame.header("ack", "client-individual");
    frame.plain("activemq.prefetchSize", request.prefetch);
    if let Some(name) = &request.durable {
        for header in DURABLE {
            frame.header(header, name);
        }
    }
    frame.plain("receipt", receipt);
    frame.finish(b"");
}

/// UNSUBSCRIBE; with the name of a durable subscription it is deleted.
pub(super) fn unsubscribe(out: &mut BytesMut, number: u64, durable: Option<&str>, receipt: u64) {
    let mut frame = FrameWriter::new(out, StompCommand::Unsubscribe);
    frame.plain("id", number);
    if let Some(name) = durable {
        for header in DURABLE {
            frame.header(header, name);
        }
    }
    frame.plain("receipt", receipt);
    frame.finish(b"");
}

/// ACK or NACK.
pub(super) fn ack(
    out: &mut BytesMut,
    command: StompCommand,
    id: &str,
    transaction: Option<&str>,
    asked: Option<u64>,
) {
    let mut frame = FrameWriter::new(out, command);
    frame.header("id", id);
    if let Some(transaction) = transaction {
        frame.header("transaction", transaction);
    }
    receipt(&mut frame, asked);
    frame.finish(b"");
}

/// BEGIN or COMMIT.
pub(super) fn transaction(
    out: &mut BytesMut,
    command: StompCommand,
    name: &str,
    asked: Option<u64>,
) {
    let mut frame = FrameWriter::new(out, command);
    frame.header("transaction", name);
    receipt(&mut frame, asked);
    frame.finish(b"");
}

/// DISCONNECT.
pub(super) fn disconnect(out: &mut BytesMut, receipt: u64) {
    let mut frame = FrameWriter::new(out, StompCommand::Disconnect);
    frame.plain("receipt", receipt);
    frame.finish(b"");
}

fn receipt(frame: &mut FrameWriter<'_>, receipt: Option<u64>) {
    if let Some(receipt) = receipt {
        frame.plain("receipt", receipt);
    }
}

/// Refuses what is larger than the frames that are sent here.
pub(super) fn check_size(message: &Outgoing, limits: &FrameLimits) -> Result<(), BusError> {
    within("the message body", message.body.len(), limits.body)?;
    let mut head = 0;
    for (name, value) in &message.properties {
        let line = escaped_length(name) + 1 + escaped_length(value);
        within(&format!("property '{name}'"), line, limits.header_line)?;
        head += line + 1;
    }
    // Room for the headers of the transport itself.
    within(
        "all properties together",
        head,
        limits.head.saturating_sub(4 << 10),
    )?;
    if message.properties.len() > limits.headers.saturating_sub(16) {
        return Err(BusError::TooLarge {
            what: "the number of properties".to_owned(),
            limit: limits.headers as u64,
        });
    }
    Ok(())
}

fn within(what: &str, length: usize, limit: usize) -> Result<(), BusError> {
    if length > limit {
        return Err(BusError::TooLarge {
            what: what.to_owned(),
            limit: limit as u64,
        });
    }
    Ok(())
}
