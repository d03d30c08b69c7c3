//! What the embedded client is told, and who waits for it.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::{mpsc, oneshot, watch};

use crate::{
    admin::Answer,
    embedded::connection::{Event, EventReceiver, Gap, QueuedMessage, Token},
    error::BusError,
    handle::{
        BusState, Incoming,
        delivery::{AckHandle, AckId, Arrival},
        message::properties,
    },
};

/// What the client and the task that takes its events share, locked for moments only.
#[derive(Debug, Default)]
pub(super) struct Shared {
    inner: Mutex<Table>,
}

#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) last: u64,
    pub(super) waiting: BTreeMap<Token, oneshot::Sender<Result<(), BusError>>>,
    pub(super) subscriptions: BTreeMap<u64, Entry>,
    /// Who waits for one message.
    pub(super) pulls: BTreeMap<u64, oneshot::Sender<Result<Arrival, BusError>>>,
    /// Who wants to look at messages.
    pub(super) looks: BTreeMap<u64, oneshot::Sender<Vec<Incoming>>>,
    /// Who has asked the administration.
    pub(super) administered: BTreeMap<Token, oneshot::Sender<Answer>>,
    pub(super) closed: Option<BusError>,
}

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) durable: Option<String>,
    /// `None` when the bus has ended it.
    pub(super) arrivals: Option<mpsc::Sender<Arrival>>,
    /// Why the bus has ended it.
    pub(super) ended: Option<BusError>,
}

impl Table {
    /// Whether nothing more of a subscription is to be begun: what is still on its way to its consumer has been given back.
    pub(super) fn is_over(&self, subscription: u64) -> bool {
        let entry = self.subscriptions.get(&subscription);
        let Some(entry) = entry else { return true };
        // What a slow consumer had is nobody else's.
        let ended = entry.ended.as_ref();
        ended.is_some_and(|why| !matches!(why, BusError::SlowConsumer { .. }))
    }

    /// Why the bus has ended a subscription, if it has.
    pub(super) fn end_of(&self, subscription: u64) -> Option<BusError> {
        self.subscriptions.get(&subscription)?.ended.clone()
    }
}

impl Shared {
    pub(super) fn lock(&self) -> MutexGuard<'_, Table> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, token: Token, done: Result<(), BusError>) {
        let waiting = self.lock().waiting.remove(&token);
        match (waiting, done) {
            // Whoever asked may have given up waiting.
            (Some(waiting), done) => drop(waiting.send(done)),
            (None, Err(error)) => tracing::debug!(%error, "a command nobody waits for failed"),
            (None, Ok(())) => {}
        }
    }

    fn close(&self, reason: &BusError) {
        let mut table = self.lock();
        table.closed = Some(reason.clone());
        table.subscriptions.clear();
        table.pulls.clear();
        table.looks.clear();
        table.administered.clear();
        for (_, waiting) in std::mem::take(&mut table.waiting) {
            drop(waiting.send(Err(reason.clone())));
        }
    }

    /// Gives a message, or word that there is none, to who wanted one.
    fn pulled(&self, subscription: u64, pulled: Result<Arrival, BusError>) {
        if let Some(waiting) = self.lock().pulls.remove(&subscription) {
            // Who has given up in this moment ends the subscription, and with it the message returns.
            drop(waiting.send(pulled));
        }
    }

    /// The bus has ended a subscription, or somebody's waiting for one message.
    fn ended(&self, subscription: u64, reason: BusError) {
        if let Some(entry) = self.lock().subscriptions.get_mut(&subscription) {
            entry.arrivals = None;
            entry.ended = Some(reason.clone());
        }
        self.pulled(subscription, Err(reason));
    }

    fn arrived(&self, subscription: u64, arrival: Arrival) {
        if self.lock().pulls.contains_key(&subscription) {
            return self.pulled(subscription, Ok(arrival));
        }
        // The channel holds as many as may be unacknowledged. Without an entry the subscription is being ended,
        // and what arrives for it returns with that.
        let table = self.lock();
        let entry = table.subscriptions.get(&subscription);
        if let Some(arrivals) = entry.and_then(|entry| entry.arrivals.as_ref()) {
            let _ = arrivals.try_send(arrival);
        }
    }
}

/// Takes events until there are no more.
pub(super) async fn take_events(
    mut events: EventReceiver,
    shared: Arc<Shared>,
    state: watch::Sender<BusState>,
    client_id: String,
) {
    let mut end = BusError::Closed;
    while let Some(event) = events.next_event().await {
        match event {
            Event::Deliver {
                subscription,
                delivery,
                message,
                redelivered,
                delivery_count,
                backout_count,
                first_of_group,
                gap,
            } => {
                let counts = (delivery_count, backout_count);
                let mut message = incoming(&message, redelivered, counts);
                message.properties.extend(of_delivery(first_of_group, gap));
                let message = Arc::new(message);
                let id = AckId::Embedded(delivery);
                let handle = AckHandle {
                    session: 0,
                    subscription,
                    id,
                };
                shared.arrived(subscription, Arrival { message, handle });
            }
            Event::Done { token, .. } | Event::Returned { token, .. } => {
                shared.answer(token, Ok(()));
            }
            Event::NoMessage {
                subscription,
                in_use,
            } => {
                let nothing = if in_use {
                    BusError::InUse
                } else {
                    BusError::NoMessage
                };
                shared.pulled(subscription, Err(nothing));
            }
            Event::Browsed {
                subscription,
                messages,
                ..
            } => {
                let seen = messages.iter().map(|seen| {
                    let counts = (seen.delivery_count, seen.backout_count);
                    incoming(&seen.message, seen.delivery_count > 0, counts)
                });
                if let Some(looking) = shared.lock().looks.remove(&subscription) {
                    drop(looking.send(seen.collect()));
                }
            }
            Event::Administered { token, answer } => {
                if let Some(asking) = shared.lock().administered.remove(&token) {
                    drop(asking.send(*answer));
                }
                shared.answer(token, Ok(()));
            }
            Event::Failed { token, error } => shared.answer(token, Err(error)),
            Event::SubscriptionClosed {
                subscription,
                reason,
            } => {
                tracing::warn!(from = client_id, %reason, "the bus has closed a subscription");
                shared.ended(subscription, reason);
            }
            Event::Closed { reason } => end = reason,
        }
    }
    shared.close(&end);
    let last = if end == BusError::Closed {
        BusState::Closed
    } else {
        BusState::Failed(end)
    };
    state.send_replace(last);
}

/// What a delivery has to tell besides its message.
fn of_delivery(first_of_group: bool, gap: Option<Gap>) -> Vec<(String, String)> {
    let first = ("JMSXGroupFirstForConsumer", "true".to_owned());
    let mut told = Vec::new();
    told.extend(first_of_group.then_some(first));
    if let Some(Gap { count, since }) = gap {
        told.push(("q-gap", count.to_string()));
        told.push(("q-gap-since", since.to_string()));
    }
    let told = told.into_iter();
    told.map(|(name, value)| (name.to_owned(), value)).collect()
}

fn incoming(
    message: &QueuedMessage,
    redelivered: bool,
    (delivery_count, backout_count): (u32, u32),
) -> Incoming {
    let mut properties = properties(
        message
            .headers()
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
    );
    if let Some(original) = message.original_destination() {
        properties.push(("original-destination".to_owned(), original.to_owned()));
    }
    if let Some(reason) = message.reason() {
        properties.push(("q-reason".to_owned(), reason.as_str().to_owned()));
    }
    if let Some(failure) = message.failure() {
        let at = failure.failed_at.to_string();
        properties.push(("q-failed-at".to_owned(), at));
        let cause = failure.cause.as_str().to_owned();
        properties.push(("q-failure-cause".to_owned(), cause));
    }
    Incoming {
        message_id: message.id.to_string(),
        destination: message.destination().clone(),
        properties,
        body: message.body(),
        left_out: None,
        correlation_id: message.correlation_id().map(str::to_owned),
        reply_to: message.reply_to().map(str::to_owned),
        persistent: message.persistent,
        redelivered,
        delivery_count,
        backout_count,
    }
}
