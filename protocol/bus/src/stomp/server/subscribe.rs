//! SUBSCRIBE: from frame to request.

use pillarbox_messages::Destination;

use super::{
    refusal::Refusal,
    send::{boolean, number},
};
use crate::{
    core::check_ack_timeout,
    embedded::connection::{AckMode, Selector, SubscribeOptions, USUAL_PREFETCH, Wait},
    stomp::{destination, frame::Frame},
};

/// Headers that name a durable subscription. The misspelt one is ActiveMQ's own.
const DURABLE: [&str; 3] = [
    "activemq.subscriptionName",
    "activemq.subcriptionName",
    "durable-subscription-name",
];

/// Extensions that are understood.
const KNOWN: [&str; 4] = ["activemq.prefetchSize", ACK_TIMEOUT, "q-get", "q-wait"];
/// How long a message may be in hand, in milliseconds.
const ACK_TIMEOUT: &str = "q-ack-timeout";

/// A SUBSCRIBE frame that makes sense.
#[derive(Debug, PartialEq)]
pub(super) struct Subscribe {
    pub(super) id: String,
    pub(super) destination: Destination,
    pub(super) durable: Option<String>,
    pub(super) ack: AckMode,
    pub(super) prefetch: u32,
    pub(super) selector: Option<Selector>,
    pub(super) options: SubscribeOptions,
    pub(super) ack_timeout: Option<i64>,
    pub(super) kind: Kind,
}

/// What a SUBSCRIBE frame asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// All messages.
    Push,
    /// One message (`q-get:1`).
    Get(Wait),
    /// To look at what is there (`browser:true`).
    Browse,
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
        let kind = kind(frame)?;
        if durable.is_some() && kind != Kind::Push {
            let detail = "from a durable subscription messages can't be taken one by one";
            return Err(Refusal::invalid(detail));
        }
        let options = options(frame)?;
        if options != SubscribeOptions::default() && kind != Kind::Push {
            let detail = "'no-local', 'shared' and 'replace' are for subscriptions that go on";
            return Err(Refusal::invalid(detail));
        }
        if durable.is_some() && !has_client_id && !options.shared {
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
            prefetch: prefetch(frame)?,
            selector: selector(frame)?,
            options,
            ack_timeout: ack_timeout(frame, ack, kind)?,
            kind,
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

fn prefetch(frame: &Frame) -> Result<u32, Refusal> {
    const NAME: &str = "activemq.prefetchSize";
    let Some(text) = frame.header(NAME) else {
        return Ok(USUAL_PREFETCH);
    };
    let prefetch: u32 = number(NAME, text)?;
    if prefetch == 0 {
        return Err(Refusal::invalid("activemq.prefetchSize must be at least 1"));
    }
    Ok(prefetch.min(USUAL_PREFETCH - 1))
}

fn selector(frame: &Frame) -> Result<Option<Selector>, Refusal> {
    let text = frame.header("selector").filter(|text| !text.is_empty());
    Ok(text.map(str::parse).transpose()?)
}

fn ack_timeout(frame: &Frame, ack: AckMode, kind: Kind) -> Result<Option<i64>, Refusal> {
    let Some(text) = frame.header(ACK_TIMEOUT) else {
        return Ok(None);
    };
    if kind != Kind::Push {
        let detail = format!("{ACK_TIMEOUT} is for subscriptions that go on");
        return Err(Refusal::invalid(detail));
    }
    let milliseconds = Some(i64::from(number::<u32>(ACK_TIMEOUT, text)?));
    check_ack_timeout(milliseconds, ack)?;
    Ok(milliseconds)
}

/// What may be out of the ordinary.
fn options(frame: &Frame) -> Result<SubscribeOptions, Refusal> {
    let flag = |name| {
        let value = frame.header(name);
        value.map_or(Ok(false), |value| boolean(name, value))
    };
    Ok(SubscribeOptions {
        no_local: flag("no-local")?,
        shared: flag("shared")?,
        replace: flag("replace")?,
    })
}

fn kind(frame: &Frame) -> Result<Kind, Refusal> {
    let browses = frame.header("browser");
    let browses = browses.map_or(Ok(false), |value| boolean("browser", value))?;
    let wait = frame.header("q-wait");
    let wait = wait
        .map(|value| number::<u32>("q-wait", value))
        .transpose()?;
    match (frame.header("q-get"), browses) {
        (Some("1"), false) => Ok(Kind::Get(match wait {
            None | Some(0) => Wait::No,
            Some(milliseconds) => Wait::For(i64::from(milliseconds)),
        })),
        (Some(_), true) => Err(Refusal::invalid("'browser' and 'q-get' exclude each other")),
        (Some(other), false) => Err(Refusal::invalid(format!("q-get is 1, not '{other}'"))),
        (None, _) if wait.is_some() => Err(Refusal::invalid("q-wait is for q-get:1 only")),
        (None, true) => Ok(Kind::Browse),
        (None, false) => Ok(Kind::Push),
    }
}

/// A wish that is not understood is refused: the client would count on it otherwise.
fn refuse_unknown(frame: &Frame) -> Result<(), Refusal> {
    for (name, value) in &frame.headers {
        let known = DURABLE.contains(&name.as_str()) || KNOWN.contains(&name.as_str());
        let extension = name.starts_with("activemq.") || name.starts_with("q-");
        let wish = match name.as_str() {
            "exclusive" => boolean(name, value)?,
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
        assert_eq!(subscribe.prefetch, USUAL_PREFETCH);
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
            ("no-local", "maybe"),
            ("shared", "yes"),
            ("replace", "1"),
            ("activemq.subscripionName", "typo"),
            ("q-get", "2"),
            ("q-wait", "100"),
            ("q-peek", "1"),
            ("selector", "a ="),
            ("browser", "maybe"),
            ("exclusive", "maybe"),
            ("activemq.prefetchSize", "0"),
            ("activemq.prefetchSize", "many"),
            ("ack", "sometimes"),
            ("q-ack-timeout", "1000"),
        ] {
            let refusal = read(&subscribe().with(name, value)).unwrap_err();
            assert_eq!(refusal.name, "INVALID", "{name}");
        }
        let refusal = read(&subscribe().with("activemq.retroactive", "true")).unwrap_err();
        assert!(refusal.detail.contains("activemq.retroactive"));
        assert!(read(&subscribe().with("exclusive", "false").with("x-other", "1")).is_ok());
    }

    #[test]
    fn e29_a_time_to_acknowledge_in_is_a_number_where_something_is_acknowledged() {
        let read = |value: &str, ack: &str| {
            let frame = subscribe().with("ack", ack).with("q-ack-timeout", value);
            read(&frame).map(|it| it.ack_timeout)
        };
        for ack in ["client", "client-individual"] {
            assert_eq!(read("1500", ack), Ok(Some(1500)));
            for wrong in ["0", "-1", "soon", "4294967296"] {
                assert!(read(wrong, ack).is_err(), "{wrong}");
            }
        }
        assert!(read("1500", "auto").is_err());
    }

    #[test]
    fn one_message_or_a_look_can_be_asked_for() {
        let kind = |frame: Frame| read(&frame).map(|it| it.kind);
        let get = || subscribe().with("q-get", "1");
        assert_eq!(kind(subscribe()), Ok(Kind::Push));
        assert_eq!(kind(subscribe().with("browser", "false")), Ok(Kind::Push));
        assert_eq!(kind(get()), Ok(Kind::Get(Wait::No)));
        let waits = get().with("q-wait", "250");
        assert_eq!(kind(waits), Ok(Kind::Get(Wait::For(250))));
        assert_eq!(kind(subscribe().with("browser", "true")), Ok(Kind::Browse));
        assert!(kind(get().with("browser", "true")).is_err());
        assert!(kind(get().with("q-wait", "-1")).is_err());
        assert!(kind(get().with("durable-subscription-name", "d")).is_err());
        let selector = read(&subscribe().with("selector", "a = 1"))
            .unwrap()
            .selector;
        assert_eq!(selector.unwrap().as_str(), "a = 1");
    }

    #[test]
    fn id_and_destination_are_needed() {
        let frame = Frame::new(StompCommand::Subscribe);
        assert!(read(&frame.clone().with("id", "1")).is_err());
        assert!(read(&frame.with("destination", "/queue/a")).is_err());
    }
}
