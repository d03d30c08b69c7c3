//! SUBSCRIBE: from frame to request.

use pillarbox_messages::Destination;

use super::{
    refusal::Refusal,
    send::{boolean, number},
};
use crate::{
    embedded::connection::AckMode,
    stomp::{destination, frame::Frame},
};

/// Deliveries without acknowledgement, if the client names no number and acknowledges.
const PREFETCH_ACK: u32 = 32;
/// The same, if it does not acknowledge.
const PREFETCH_AUTO: u32 = 1024;
/// Headers that name a durable subscription. The misspelt one is ActiveMQ's own.
const DURABLE: [&str; 3] = [
    "activemq.subscriptionName",
    "activemq.subcriptionName",
    "durable-subscription-name",
];

/// A SUBSCRIBE frame that makes sense.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Subscribe {
    pub(super) id: String,
    pub(super) destination: Destination,
    pub(super) durable: Option<String>,
    pub(super) ack: AckMode,
    pub(super) prefetch: u32,
}

impl Subscribe {
    pub(super) fn read(
        frame: &Frame,
        has_client_id: bool,
        own: impl Fn(&str) -> Destination,
    ) -> Result<Self, Refusal> {
        refuse_unknown(frame)?;
        let id = frame
            .header("id")
            .ok_or_else(|| Refusal::invalid("SUBSCRIBE without id"))?;
        let destination = frame
            .header("destination")
            .ok_or_else(|| Refusal::invalid("SUBSCRIBE without destination"))?;
        let destination = destination::parse(destination, own)?;
        let ack = match frame.header("ack") {
            None | Some("auto") => AckMode::Auto,
            Some("client") => AckMode::Client,
            Some("client-individual") => AckMode::Individual,
            Some(other) => return Err(Refusal::invalid(format!("unknown ack mode '{other}'"))),
        };
        let durable = durable_name(frame).map(str::to_owned);
        if durable.is_some() && !has_client_id {
            let detail = "a durable subscription needs a client-id in CONNECT";
            return Err(Refusal::invalid(detail));
        }
        if durable.is_some() && ack == AckMode::Auto {
            tracing::warn!(
                subscription = id,
                %destination,
                "a durable subscription with automatic acknowledgement loses what its client had taken in a crash"
            );
        }
        Ok(Self {
            id: id.to_owned(),
            destination,
            durable,
            ack,
            prefetch: prefetch(frame, ack)?,
        })
    }
}

/// The name of the durable subscription that a SUBSCRIBE or UNSUBSCRIBE is about.
pub(super) fn durable_name(frame: &Frame) -> Option<&str> {
    DURABLE
        .into_iter()
        .find_map(|name| frame.header(name))
        .filter(|name| !name.is_empty())
}

fn prefetch(frame: &Frame, ack: AckMode) -> Result<u32, Refusal> {
    const NAME: &str = "activemq.prefetchSize";
    let Some(text) = frame.header(NAME) else {
        return Ok(if ack == AckMode::Auto {
            PREFETCH_AUTO
        } else {
            PREFETCH_ACK
        });
    };
    let prefetch: u32 = number(NAME, text)?;
    if prefetch == 0 {
        return Err(Refusal::invalid("activemq.prefetchSize must be at least 1"));
    }
    Ok(prefetch)
}

/// A wish that is not understood is refused: the client would count on it otherwise.
fn refuse_unknown(frame: &Frame) -> Result<(), Refusal> {
    for (name, value) in &frame.headers {
        let known = DURABLE.contains(&name.as_str()) || name == "activemq.prefetchSize";
        let extension = name.starts_with("activemq.") || name.starts_with("q-");
        let wish = match name.as_str() {
            "selector" => true,
            "browser" | "exclusive" | "no-local" => boolean(name, value)?,
            _ => extension && !known,
        };
        if wish {
            return Err(Refusal::invalid(format!(
                "this bus does not support SUBSCRIBE with '{name}'"
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stomp::frame::StompCommand;

    fn subscribe() -> Frame {
        Frame::new(StompCommand::Subscribe)
            .with("id", "1")
            .with("destination", "/topic/a")
    }

    fn read(frame: &Frame) -> Result<Subscribe, Refusal> {
        Subscribe::read(frame, true, Destination::queue)
    }

    #[test]
    fn defaults() {
        let subscribe = read(&subscribe()).unwrap();
        assert_eq!(subscribe.ack, AckMode::Auto);
        assert_eq!(subscribe.prefetch, PREFETCH_AUTO);
        assert_eq!(subscribe.durable, None);
    }

    #[test]
    fn durable_names_in_every_spelling() {
        for name in DURABLE {
            let frame = subscribe()
                .with(name, "alarms")
                .with("ack", "client-individual");
            assert_eq!(read(&frame).unwrap().durable.as_deref(), Some("alarms"));
            assert!(Subscribe::read(&frame, false, Destination::queue).is_err());
        }
    }

    #[test]
    fn what_is_not_understood_is_refused_by_name() {
        for (name, value) in [
            ("activemq.subscripionName", "typo"),
            ("q-get", "1"),
            ("selector", "a = 1"),
            ("browser", "true"),
            ("exclusive", "maybe"),
            ("activemq.prefetchSize", "0"),
            ("activemq.prefetchSize", "many"),
            ("ack", "sometimes"),
        ] {
            let refusal = read(&subscribe().with(name, value)).unwrap_err();
            assert_eq!(refusal.name, "INVALID", "{name}");
        }
        let refusal = read(&subscribe().with("activemq.retroactive", "true")).unwrap_err();
        assert!(refusal.detail.contains("activemq.retroactive"));
        assert!(read(&subscribe().with("exclusive", "false").with("x-other", "1")).is_ok());
    }

    #[test]
    fn id_and_destination_are_needed() {
        let frame = Frame::new(StompCommand::Subscribe);
        assert!(read(&frame.clone().with("id", "1")).is_err());
        assert!(read(&frame.with("destination", "/queue/a")).is_err());
    }
}
