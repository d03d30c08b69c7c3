//! What every contract does: send, listen, and say what was wrong.

use std::{fmt, time::Duration};

use bytes::Bytes;
use pillarbox_bus::{AckMode, Bus, BusError, Delivery, Outgoing, SubscribeRequest, Subscription};
use pillarbox_messages::Destination;
use tokio::time::timeout;

use crate::support::PATIENCE;

/// How a contract was not kept.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Broken(String);

/// Whether a contract was kept.
pub(super) type Kept = Result<(), Broken>;

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Broken {
    /// The same, when this was expected.
    pub(super) fn instead_of(self, expected: impl fmt::Debug) -> Self {
        Self(format!("{self}, instead of {}", short(&expected)))
    }

    /// The same, when this had happened.
    pub(super) fn after(self, before: impl fmt::Debug) -> Self {
        Self(format!("{self}, after {}", short(&before)))
    }
}

impl From<String> for Broken {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&str> for Broken {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl From<BusError> for Broken {
    fn from(error: BusError) -> Self {
        Self(format!("{}: {error}", error.name()))
    }
}

impl From<std::io::Error> for Broken {
    fn from(error: std::io::Error) -> Self {
        Self(error.to_string())
    }
}

/// Both must be the same.
pub(super) fn same<T, U>(what: &str, got: T, expected: U) -> Kept
where
    T: fmt::Debug + PartialEq<U>,
    U: fmt::Debug,
{
    if got == expected {
        return Ok(());
    }
    let (got, expected) = (short(&got), short(&expected));
    Err(format!("{what}: {got} instead of {expected}").into())
}

/// As far as a person wants to read it.
fn short(value: &impl fmt::Debug) -> String {
    let text = format!("{value:?}");
    match text.char_indices().nth(LONG) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

const LONG: usize = 300;

/// A subscription with acknowledgement message by message.
pub(super) fn listen(destination: Destination, prefetch: u32) -> SubscribeRequest {
    SubscribeRequest {
        ack_timeout: None,
        destination,
        durable: None,
        ack: AckMode::Individual,
        prefetch,
    }
}

/// A durable one.
pub(super) fn listen_durably(topic: Destination, name: &str) -> SubscribeRequest {
    SubscribeRequest {
        durable: Some(name.to_owned()),
        ..listen(topic, 10)
    }
}

pub(super) fn persistent(destination: Destination, body: impl Into<Bytes>) -> Outgoing {
    Outgoing {
        persistent: true,
        ..Outgoing::new(destination, body)
    }
}

/// Sends a persistent message for each body, in this order.
pub(super) async fn send_all<B: Into<Bytes>>(
    bus: &Bus,
    destination: &Destination,
    bodies: impl IntoIterator<Item = B>,
) -> Kept {
    let messages = bodies.into_iter();
    let messages = messages.map(|body| persistent(destination.clone(), body));
    Ok(bus.publish_all(messages.collect()).await?)
}

/// The next message, which must come.
pub(super) async fn next(subscription: &mut Subscription) -> Result<Delivery, Broken> {
    match timeout(PATIENCE, subscription.next()).await {
        Ok(Some(delivery)) => Ok(delivery),
        Ok(None) => Err("the subscription has ended".into()),
        Err(_) => Err("no message comes".into()),
    }
}

/// The next message must have this body; it is left unacknowledged.
pub(super) async fn expect(
    subscription: &mut Subscription,
    body: &str,
) -> Result<Delivery, Broken> {
    let delivery = next(subscription).await;
    let delivery = delivery.map_err(|broken| broken.instead_of(body))?;
    same("the next message", text(&delivery).as_str(), body)?;
    Ok(delivery)
}

/// The next messages must have these bodies; they are acknowledged.
pub(super) async fn take(subscription: &mut Subscription, bodies: &[&str]) -> Kept {
    for body in bodies {
        expect(subscription, body).await?.ack().await?;
    }
    Ok(())
}

/// Nothing must come, though the bus has had the time for it.
pub(super) async fn nothing(subscription: &mut Subscription) -> Kept {
    match timeout(QUIET, subscription.next()).await {
        Err(_) => Ok(()),
        Ok(None) => Err("the subscription has ended".into()),
        Ok(Some(delivery)) => Err(format!("'{}' comes unasked", text(&delivery)).into()),
    }
}

/// Far longer than a message takes that is not held back.
const QUIET: Duration = Duration::from_millis(500);

pub(super) fn text(delivery: &Delivery) -> String {
    String::from_utf8_lossy(&delivery.message.body).into_owned()
}

/// The bodies `1`, `2`, and so on.
pub(super) fn numbers(count: usize) -> Vec<String> {
    (1..=count).map(|number| number.to_string()).collect()
}
