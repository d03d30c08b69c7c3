//! The frames a client sends.

use std::time::Duration;

use bytes::BytesMut;

use super::dialect::Dialect;
use crate::{
    error::BusError,
    handle::{Outgoing, SubscribeRequest},
    stomp::{
        codec::FrameLimits,
        frame::{FrameWriter, StompCommand, escaped_length},
    },
};

/// What a SEND adds to an [`Outgoing`].
#[derive(Clone, Copy, Debug)]
pub(super) struct SendContext<'a> {
    pub(super) dialect: &'a Dialect,
    pub(super) receipt: Option<u64>,
    pub(super) transaction: Option<&'a str>,
    /// How much of the message's time to live is left.
    pub(super) ttl: Option<Duration>,
}

/// SEND. No property is named as a transport header: see [`Outgoing::check`].
pub(super) fn send(out: &mut BytesMut, message: &Outgoing, context: SendContext<'_>) {
    let dialect = context.dialect;
    let mut frame = FrameWriter::new(out, StompCommand::Send);
    frame.header("destination", &dialect.spell(&message.destination));
    receipt(&mut frame, context.receipt);
    if let Some(transaction) = context.transaction {
        frame.header("transaction", transaction);
    }
    frame
        .plain("persistent", message.persistent)
        .plain("priority", message.priority);
    if let Some(ttl) = context.ttl {
        dialect.write_ttl(&mut frame, ttl);
    }
    if let Some(id) = &message.correlation_id {
        frame.header("correlation-id", id);
    }
    if let Some(reply_to) = &message.reply_to {
        frame.header("reply-to", &dialect.spell(reply_to));
    }
    if let Some(group) = &message.group {
        frame.header("JMSXGroupID", group);
    }
    if let Some(id) = &message.dedup {
        frame.header("q-dedup", id);
    }
    frame.header("amq-msg-type", "text");
    for (name, value) in &message.properties {
        frame.header(name, value);
    }
    dialect.finish(frame, &message.body);
}

/// A subscription as its frames name it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Named<'a> {
    pub(super) dialect: &'a Dialect,
    pub(super) client: &'a str,
    /// The `id` header.
    pub(super) id: &'a str,
    pub(super) request: &'a SubscribeRequest,
}

/// SUBSCRIBE. Acknowledgement is always explicit and single on the wire.
pub(super) fn subscribe(out: &mut BytesMut, subscription: Named<'_>, receipt: Option<u64>) {
    let request = subscription.request;
    let dialect = subscription.dialect;
    let mut frame = FrameWriter::new(out, StompCommand::Subscribe);
    frame.header("id", subscription.id);
    frame.header("destination", &dialect.spell(&request.destination));
    frame.header("ack", "client-individual");
    dialect.write_prefetch(&mut frame, request.prefetch);
    if let Some(time) = request.ack_timeout {
        frame.plain("q-ack-timeout", time.as_millis().max(1));
    }
    subscription.durable(&mut frame);
    self::receipt(&mut frame, receipt);
    frame.finish(b"");
}

/// UNSUBSCRIBE; `delete` also deletes a durable subscription.
pub(super) fn unsubscribe(
    out: &mut BytesMut,
    subscription: Named<'_>,
    delete: bool,
    receipt: Option<u64>,
) {
    let mut frame = FrameWriter::new(out, StompCommand::Unsubscribe);
    frame.header("id", subscription.id);
    if delete {
        subscription.durable(&mut frame);
    }
    self::receipt(&mut frame, receipt);
    frame.finish(b"");
}

impl Named<'_> {
    fn durable(&self, frame: &mut FrameWriter<'_>) {
        if let Some(name) = &self.request.durable {
            let topic = &self.request.destination;
            self.dialect.write_durable(frame, self.client, name, topic);
        }
    }
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
