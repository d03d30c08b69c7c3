//! SEND: from frame to message.

use std::str::FromStr;

use pillarbox_messages::Destination;

use super::refusal::Refusal;
use crate::{
    core::{dedup::check_dedup_id, message::check_priority},
    embedded::connection::NewMessage,
    error::BusError,
    spelling,
    stomp::{destination, frame::Frame},
};

/// Headers that only the bus sets, or that are about the frame and not the message.
const STRIPPED: [&str; 18] = [
    "q-gap",
    "q-gap-since",
    "q-failed-at",
    "q-failure-cause",
    "JMSXGroupFirstForConsumer",
    "message-id",
    "subscription",
    "ack",
    "redelivered",
    "JMSXUserID",
    "receipt",
    "transaction",
    "q-backout-count",
    "q-delivery-count",
    "q-client-id",
    "q-reason",
    "q-unroutable",
    "original-destination",
];
/// Requests to the bus that this one can't fulfil. Better refused than forgotten.
const UNSUPPORTED: [&str; 3] = [
    "AMQ_SCHEDULED_PERIOD",
    "AMQ_SCHEDULED_REPEAT",
    "AMQ_SCHEDULED_CRON",
];

/// Makes a message of a SEND frame. `own` gives the full name of one of the connection's own temporary queues.
pub(super) fn read(
    frame: Frame,
    now_ms: i64,
    own: impl Fn(&str) -> Destination,
) -> Result<NewMessage, Refusal> {
    let Some(text) = frame.header("destination") else {
        return Err(Refusal::invalid("SEND without destination"));
    };
    let mut message = NewMessage::new(destination::parse(text, &own)?, frame.body.clone());
    text.clone_into(&mut message.destination_text);
    for (name, value) in frame.headers {
        match name.as_str() {
            "destination" => {}
            "persistent" => message.persistent = Some(boolean(&name, &value)?),
            "priority" => {
                let priority: u8 = number(&name, &value)?;
                check_priority(priority)?;
                message.priority = priority;
            }
            "expires" => earliest(&mut message, number(&name, &value)?),
            "q-ttl" => {
                let ttl: i64 = number(&name, &value)?;
                if ttl <= 0 {
                    return Err(Refusal::invalid(
                        "q-ttl is a number of milliseconds above 0",
                    ));
                }
                earliest(&mut message, now_ms.saturating_add(ttl));
            }
            "q-not-before" => message.not_before = Some(time(&name, &value)?),
            "AMQ_SCHEDULED_DELAY" => message.delay = Some(time(&name, &value)?),
            "q-top" => message.top = boolean(&name, &value)?,
            "q-before" => message.before = Some(number(&name, &value)?),
            "q-dedup" => {
                check_dedup_id(Some(&value))?;
                message.dedup = Some(value.into_boxed_str());
            }
            "correlation-id" => message.correlation_id = Some(value),
            "reply-to" => message.reply_to = Some(reply_to(value, &own)?),
            "JMSXGroupID" => message.group = Some(value),
            _ if STRIPPED.contains(&name.as_str()) => {}
            _ if UNSUPPORTED.contains(&name.as_str()) => {
                return Err(Refusal::invalid(format!(
                    "this bus does not support SEND with '{name}'"
                )));
            }
            _ => message.headers.push((name, value)),
        }
    }
    Ok(message)
}

/// Milliseconds, since 1970 or from now on.
fn time(name: &str, value: &str) -> Result<i64, Refusal> {
    let time: i64 = number(name, value)?;
    if time < 0 {
        return Err(Refusal::invalid(format!("{name} is not below 0")));
    }
    Ok(time)
}

/// 0 is never, as with JMS; of several times the earliest holds.
fn earliest(message: &mut NewMessage, at: i64) {
    if at > 0 {
        message.expires_at = Some(message.expires_at.map_or(at, |known| known.min(at)));
    }
}

/// What receivers see: others can reach a temporary queue by its full name only. Anything that is no
/// destination here is passed on: it may mean something to them.
fn reply_to(text: String, own: impl Fn(&str) -> Destination) -> Result<String, BusError> {
    if text.starts_with("/temp-queue/") {
        return Ok(spelling::to_stomp(&destination::parse(&text, own)?));
    }
    Ok(text)
}

pub(super) fn boolean(name: &str, value: &str) -> Result<bool, Refusal> {
    match value {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(Refusal::invalid(format!(
            "{name} is 'true' or 'false', not '{value}'"
        ))),
    }
}

pub(super) fn number<N: FromStr>(name: &str, value: &str) -> Result<N, Refusal> {
    value
        .parse()
        .map_err(|_| Refusal::invalid(format!("{name} '{value}' is not a number it can be")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stomp::frame::StompCommand;
    use pillarbox_messages::DestinationKind;

    fn own(name: &str) -> Destination {
        Destination::new(DestinationKind::TemporaryQueue, &format!("1.2.{name}"))
    }

    fn send() -> Frame {
        Frame::new(StompCommand::Send).with("destination", "queue://a b")
    }

    fn read_with(name: &str, value: &str) -> Result<NewMessage, Refusal> {
        read(send().with(name, value), 1_000, own)
    }

    #[test]
    fn user_headers_pass_in_order_and_reserved_ones_do_not() {
        let frame = send()
            .with("b", "1")
            .with("message-id", "forged")
            .with("org.bitrepository.messages.signature", "null")
            .with("receipt", "7")
            .with("amq-msg-type", "text")
            .with("JMSXUserID", "somebody")
            .with("q-reason", "expired")
            .with("original-destination", "/queue/elsewhere")
            .with("a", "2");
        let message = read(frame, 0, own).unwrap();
        let names: Vec<_> = message
            .headers
            .iter()
            .map(|(name, _)| name.as_str())
            .collect();
        assert_eq!(
            names,
            [
                "b",
                "org.bitrepository.messages.signature",
                "amq-msg-type",
                "a"
            ]
        );
        assert_eq!(message.headers[1].1, "null");
        assert_eq!(message.destination_text, "queue://a b");
        assert_eq!(message.destination, Destination::queue("a b"));
        assert_eq!((message.persistent, message.expires_at), (None, None));
    }

    #[test]
    fn times_to_live() {
        assert_eq!(read_with("q-ttl", "500").unwrap().expires_at, Some(1_500));
        assert_eq!(read_with("expires", "0").unwrap().expires_at, None);
        assert_eq!(
            read_with("expires", "1200").unwrap().expires_at,
            Some(1_200)
        );
        let both = read(
            send().with("q-ttl", "500").with("expires", "1200"),
            1_000,
            own,
        )
        .unwrap();
        assert_eq!(both.expires_at, Some(1_200));
        let ten_years = 10 * 366 * 86_400_000_i64;
        let message = read_with("q-ttl", &ten_years.to_string()).unwrap();
        assert_eq!(message.expires_at, Some(1_000 + ten_years));
    }

    #[test]
    fn values_that_do_not_parse_are_refused_and_never_defaulted() {
        for (name, value) in [
            ("persistent", "yes"),
            ("priority", "10"),
            ("priority", "-1"),
            ("expires", "tomorrow"),
            ("q-ttl", "0"),
            ("q-ttl", "99999999999999999999"),
            ("q-dedup", ""),
            ("q-top", "yes"),
            ("q-before", "7"),
            ("q-before", "1-"),
            ("q-not-before", "-1"),
            ("AMQ_SCHEDULED_DELAY", "soon"),
            ("AMQ_SCHEDULED_CRON", "* * * * *"),
            ("reply-to", "/temp-queue/a,b"),
        ] {
            assert_eq!(
                read_with(name, value).unwrap_err().name,
                "INVALID",
                "{name}:{value}"
            );
        }
        assert!(read(Frame::new(StompCommand::Send), 0, own).is_err());
    }

    #[test]
    fn places_and_times() {
        let before = read_with("q-before", "3-17").unwrap().before;
        assert_eq!(before.map(|id| (id.boot, id.seq)), Some((3, 17)));
        assert!(read_with("q-top", "true").unwrap().top);
        assert!(!read_with("q-top", "false").unwrap().top);
        let at = read_with("q-not-before", "5000").unwrap();
        assert_eq!((at.not_before, at.delay), (Some(5_000), None));
        let delayed = read_with("AMQ_SCHEDULED_DELAY", "5000").unwrap();
        assert_eq!((delayed.not_before, delayed.delay), (None, Some(5_000)));
        assert!(delayed.headers.is_empty());
    }

    #[test]
    fn own_temporary_queues_get_the_name_that_others_must_use() {
        let message = read_with("reply-to", "/temp-queue/answers").unwrap();
        assert_eq!(
            message.reply_to.as_deref(),
            Some("/remote-temp-queue/1.2.answers")
        );
        let message = read_with("reply-to", "/topic/root's client").unwrap();
        assert_eq!(message.reply_to.as_deref(), Some("/topic/root's client"));
    }
}
