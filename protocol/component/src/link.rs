//! What a component's connection to its bus has been through, for its log and for `GetStatus`.
//!
//! While the bus is away nobody can ask. So the time is kept: it is logged when the bus goes and comes, and told
//! afterwards.

mod record;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use pillarbox_bus::{Bus, BusError, BusState, SubscribeRequest, Subscription};
use pillarbox_messages::{ComponentId, Timestamp, clock::SharedClock};
use tokio::{
    sync::watch,
    time::{Instant, sleep, sleep_until},
};
use tracing::{error, info, warn};

use self::record::{Change, Looked};
pub use self::record::{LinkRecord, Outage};

/// Keeps the record of one component's connection. Clones share it.
#[derive(Clone, Debug)]
pub struct LinkMonitor {
    id: ComponentId,
    clock: SharedClock,
    state: watch::Receiver<BusState>,
    /// Since when the bus owes an answer that is overdue.
    overdue: watch::Receiver<Option<Instant>>,
    /// Locked for a look only.
    record: Arc<Mutex<LinkRecord>>,
}

impl LinkMonitor {
    /// Begins the record of this connection, of the component of this id.
    #[must_use]
    pub fn new(id: ComponentId, bus: &Bus, clock: SharedClock) -> Self {
        let mut state = bus.state();
        let now = state.borrow_and_update().clone();
        let record = LinkRecord::new(&now, clock.now_ms());
        Self {
            id,
            clock,
            state,
            overdue: bus.overdue(),
            record: Arc::new(Mutex::new(record)),
        }
    }

    /// What the connection has been through, up to now.
    #[must_use]
    pub fn record(&self) -> LinkRecord {
        let mut record = self.lock().clone();
        // The record itself is the follower's, who may be a moment behind.
        record.observe(&self.state.borrow(), self.clock.now_ms());
        record.owes(self.overdue.borrow().map(|since| since.elapsed()));
        record
    }

    /// Follows the connection and logs how it goes, until it has ended for good.
    pub async fn follow(self) {
        let mut state = self.state.clone();
        let mut remind_at = Instant::now() + REMINDER;
        loop {
            let away_since = self.lock().away_since_ms();
            tokio::select! {
                changed = state.changed() => if changed.is_err() { return },
                () = sleep_until(remind_at), if away_since.is_some() => {
                    let since = away_since.map(|ms| Timestamp::from_millis(ms).to_string());
                    warn!(component = self.id.as_str(), since, "the bus is still away");
                    remind_at = Instant::now() + REMINDER;
                    continue;
                }
            }
            let now = state.borrow_and_update().clone();
            let change = self
                .lock()
                .look(&now, Looked::AfterChange, self.clock.now_ms());
            match change {
                Some(Change::Lost) => {
                    remind_at = Instant::now() + REMINDER;
                    warn!(component = self.id.as_str(), "the bus is away");
                }
                Some(Change::Back(outage)) => {
                    let since = Timestamp::from_millis(outage.from_ms).to_string();
                    let seconds = outage.seconds();
                    info!(
                        component = self.id.as_str(),
                        away_since = since,
                        seconds,
                        "the bus is back"
                    );
                }
                None => {}
            }
        }
    }

    /// Subscribes anew after the bus has ended a subscription: a component must not be deaf for good. However often
    /// the bus refuses it; meanwhile the record says that nothing is heard there. `None` if the connection has ended
    /// for good.
    pub async fn subscribe_again(
        &self,
        bus: &Bus,
        request: &SubscribeRequest,
    ) -> Option<Subscription> {
        let (component, destination) = (self.id.as_str(), &request.destination);
        let mut pause = FIRST_PAUSE;
        loop {
            let refused = match bus.subscribe(request.clone()).await {
                Ok(subscription) => {
                    self.lock().hears_again(destination);
                    warn!(component, %destination, "subscribed again after the bus had ended it");
                    return Some(subscription);
                }
                Err(error) => error,
            };
            let over = matches!(
                *bus.state().borrow(),
                BusState::Closed | BusState::Failed(_)
            );
            if over || refused == BusError::Closed {
                error!(component, %destination, error = %refused, "nothing more is heard there");
                return None;
            }
            let now_ms = self.clock.now_ms();
            self.lock().is_deaf(destination, &refused, now_ms);
            error!(component, %destination, error = %refused, retry_in = ?pause, "nothing is heard there");
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    fn lock(&self) -> MutexGuard<'_, LinkRecord> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How often the log tells that the bus is still away.
const REMINDER: Duration = Duration::from_secs(60);
/// Before it is tried again to subscribe.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests;
