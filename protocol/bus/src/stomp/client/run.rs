//! The task that owns a client's connection.

use std::{sync::Arc, time::Duration};

use bytes::BytesMut;
use futures_util::future::select_all;
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, Interval, MissedTickBehavior, interval, sleep},
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{
    Request, StompOptions,
    condition::Condition,
    core::{Core, Refusal, Step},
    dial::{Dialled, dial},
    prompt::PromptStream,
};
use crate::{
    error::BusError,
    handle::{BusState, delivery::Arrival},
    stomp::wire::{HIGH_WATER, Wire},
};

/// How often a person is told that there is still no connection for the same reason.
const REMINDER: Duration = Duration::from_secs(60);
/// How many reasons are known not to be told again; each address may have its own.
const REASONS: usize = 32;
/// How long the first address of several may take to answer before the next is tried.
const FIRST_PATIENCE: Duration = Duration::from_secs(2);
/// How often it is looked for messages that have waited too long.
const TICK: Duration = Duration::from_millis(250);

/// How a connection ended.
enum End {
    /// In order, because this side wanted it.
    Closed,
    /// The bus refused something.
    Refused(Refusal),
    /// It broke.
    Lost(String),
}

/// How one try to connect ended.
enum Attempt {
    Connected(Box<Dialled>),
    Failed(BusError),
    /// This side no longer wants to connect.
    Closing,
}

/// Where the handles look.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) state: watch::Sender<BusState>,
    /// Since when the bus owes an answer that is overdue.
    pub(super) overdue: watch::Sender<Option<Instant>>,
    pub(super) condition: Arc<Condition>,
}

#[derive(Debug)]
pub(super) struct Owner {
    options: Arc<StompOptions>,
    client_id: String,
    requests: mpsc::Receiver<Request>,
    handles: Told,
    closing: CancellationToken,
    core: Core,
    tick: Interval,
    tries: usize,
    /// How many of them have failed since the last connection.
    failed: usize,
    /// Where it was tried last.
    address: String,
    /// Why there is no connection, as people were told.
    told: Vec<BusError>,
    /// When they were first told of these.
    told_at: Instant,
}

impl Owner {
    pub(super) fn new(
        options: Arc<StompOptions>,
        client_id: String,
        requests: mpsc::Receiver<Request>,
        handles: Told,
        closing: CancellationToken,
    ) -> Self {
        let core = Core::new(Arc::clone(&options), client_id.clone());
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            options,
            client_id,
            requests,
            handles,
            closing,
            core,
            tick,
            tries: 0,
            failed: 0,
            address: String::new(),
            told: Vec::new(),
            told_at: Instant::now(),
        }
    }

    /// Connects and connects again, until closed or refused for good.
    pub(super) async fn run(mut self) {
        let end = self.reconnect_for_ever().await;
        self.requests.close();
        let error = match &end {
            BusState::Failed(error) => error.clone(),
            _ => BusError::Closed,
        };
        // First the state, so that whoever finds the task gone finds the reason too.
        self.handles.state.send_replace(end);
        while let Ok(request) = self.requests.try_recv() {
            self.core.on_request(request, &mut BytesMut::new());
        }
        self.core.fail_all(&error);
    }

    async fn reconnect_for_ever(&mut self) -> BusState {
        let mut pause = Duration::ZERO;
        let mut was_connected = false;
        let mut refusals = 0;
        loop {
            let error = match self.connect(pause).await {
                Attempt::Closing => return BusState::Closed,
                Attempt::Failed(error) if !was_connected && self.is_final(&error) => {
                    return BusState::Failed(error);
                }
                Attempt::Failed(error) => {
                    refusals = if is_refusal(&error) { refusals + 1 } else { 0 };
                    error
                }
                Attempt::Connected(dialled) => {
                    was_connected = true;
                    refusals = 0;
                    self.failed = 0;
                    let since = Instant::now();
                    let error = match self.session(*dialled).await {
                        End::Closed => return BusState::Closed,
                        End::Refused(refusal) => refusal.error,
                        End::Lost(reason) => self.lost(reason),
                    };
                    self.handles.state.send_replace(BusState::Connecting);
                    if since.elapsed() >= self.options.longest_pause {
                        pause = Duration::ZERO;
                    }
                    error
                }
            };
            self.failed = self.failed.saturating_add(1);
            self.tell(&error);
            self.handles.condition.set_trouble(error);
            pause = (pause * 2).clamp(self.options.shortest_pause, self.options.longest_pause);
            // A bus that has let this one in before may only be starting.
            if refusals > if was_connected { HASTY_REFUSALS } else { 0 } {
                pause = pause.max(self.options.refused_pause.unwrap_or(REFUSED_PAUSE));
            }
        }
    }

    /// One attempt after a pause. Requests are taken on meanwhile.
    async fn connect(&mut self, pause: Duration) -> Attempt {
        let options = Arc::clone(&self.options);
        let client_id = self.client_id.clone();
        let patience = self.patience();
        let address = self.next_address();
        self.handles.condition.trying(&address);
        let attempt = async move {
            sleep(jittered(pause)).await;
            dial(&options, &address, &client_id, patience).await
        };
        tokio::pin!(attempt);
        loop {
            tokio::select! {
                result = &mut attempt => return match result {
                    Ok(dialled) => Attempt::Connected(Box::new(dialled)),
                    Err(error) => Attempt::Failed(error),
                },
                () = self.closing.cancelled() => return Attempt::Closing,
                request = self.requests.recv() => match request {
                    Some(request) => self.core.on_request(request, &mut BytesMut::new()),
                    None => return Attempt::Closing,
                },
                _ = self.tick.tick(), if self.core.has_timed_work() => {
                    // Without a connection nothing is written.
                    self.expire(&mut BytesMut::new());
                }
            }
        }
    }

    async fn session(&mut self, dialled: Dialled) -> End {
        let Dialled {
            mut wire,
            dialect,
            administration,
        } = dialled;
        self.core.connected(dialect, &mut wire.output);
        self.handles.condition.connected(dialect, administration);
        self.told.clear();
        self.handles.state.send_replace(BusState::Connected);
        tracing::info!(client = %self.client_id, broker = dialect.broker, "connected to the bus");
        let end = self.exchange(&mut wire).await;
        let (refusal, lost) = match &end {
            End::Refused(Refusal {
                error,
                named: false,
            }) => (Some(error), error.clone()),
            End::Refused(Refusal { error, named: true }) => {
                let reason = format!("it has closed the connection over something else: {error}");
                (None, self.lost(reason))
            }
            End::Lost(reason) => (None, self.lost(reason.clone())),
            End::Closed => (None, BusError::Closed),
        };
        self.core.disconnected(refusal, &lost);
        self.handles.overdue.send_replace(None);
        end
    }

    async fn exchange(&mut self, wire: &mut Wire<PromptStream>) -> End {
        let mut closing = false;
        loop {
            match self.take_frames(wire) {
                Ok(None) => {}
                Ok(Some(end)) => return end,
                Err(reason) => {
                    return if closing {
                        End::Closed
                    } else {
                        End::Lost(reason)
                    };
                }
            }
            let without_room = self.core.subscriptions().without_room();
            tokio::select! {
                biased;
                // First: it comes seldom, and what else comes may come without end.
                _ = self.tick.tick(), if self.has_timed_work() => {
                    self.expire(&mut wire.output);
                    if let Some(end) = self.look_for_answers() {
                        return end;
                    }
                }
                request = self.requests.recv(), if !closing && wire.output.len() < HIGH_WATER => {
                    closing = request.is_none();
                    self.take_requests(request, wire);
                    if closing {
                        self.begin_close(wire);
                    }
                }
                () = self.closing.cancelled(), if !closing => {
                    closing = true;
                    while let Ok(request) = self.requests.try_recv() {
                        self.core.on_request(request, &mut wire.output);
                    }
                    self.begin_close(wire);
                }
                () = room(without_room) => self.core.subscriptions().flush(),
                turn = wire.turn(true) => {
                    if let Err(error) = turn {
                        return if closing { End::Closed } else { End::Lost(error.to_string()) };
                    }
                }
            }
        }
    }

    fn has_timed_work(&self) -> bool {
        self.core.has_timed_work() || self.handles.overdue.borrow().is_some()
    }

    /// A bus may be alive and not answer. People are told, and at last the connection is given up.
    fn look_for_answers(&self) -> Option<End> {
        let limit = self.options.answer_timeout;
        let owed = self.core.owed_since();
        let owed = owed.filter(|since| since.elapsed() >= limit / 4);
        let was_overdue = self.handles.overdue.send_replace(owed).is_some();
        let since = owed?;
        if !was_overdue {
            tracing::warn!(
                client = %self.client_id, after = ?since.elapsed(),
                "the bus is alive and confirms nothing; it is waited for"
            );
        }
        let over = since.elapsed() >= limit;
        over.then(|| End::Lost(format!("it has confirmed nothing for {limit:?}")))
    }

    fn take_frames(&mut self, wire: &mut Wire<PromptStream>) -> Result<Option<End>, String> {
        while let Some(frame) = wire.frame().map_err(|error| error.to_string())? {
            match self.core.on_frame(frame, &mut wire.output) {
                Step::Continue => {}
                Step::Disconnected => return Ok(Some(End::Closed)),
                Step::Refused(refusal) => return Ok(Some(End::Refused(refusal))),
            }
        }
        Ok(None)
    }

    /// Takes on what waits, as far as it may be written, so that it goes out together.
    fn take_requests(&mut self, first: Option<Request>, wire: &mut Wire<PromptStream>) {
        let mut next = first;
        while let Some(request) = next {
            self.core.on_request(request, &mut wire.output);
            if wire.output.len() >= HIGH_WATER {
                return;
            }
            next = self.requests.try_recv().ok();
        }
    }

    fn begin_close(&mut self, wire: &mut Wire<PromptStream>) {
        self.core.disconnect(&mut wire.output);
        wire.set_deadline(Some(Instant::now() + self.options.close_timeout));
    }

    fn expire(&mut self, out: &mut BytesMut) {
        let unanswered = || self.lost("no receipt in time".to_owned());
        let error = self.handles.condition.trouble().unwrap_or_else(unanswered);
        self.core.expire(&error, out);
    }

    /// Tells people why there is no connection: each reason once, and again after a while.
    fn tell(&mut self, error: &BusError) {
        let now = Instant::now();
        if now >= self.told_at + REMINDER || self.told.len() >= REASONS {
            self.told.clear();
        }
        if self.told.contains(error) {
            tracing::debug!(client = %self.client_id, %error, "no bus connection; trying again");
            return;
        }
        match error {
            BusError::ClientIdInUse(id) => tracing::warn!(
                client = %self.client_id, %error,
                "another process is connected as '{id}'; stop it, or give this one another id; trying again"
            ),
            error if is_refusal(error) => tracing::error!(
                client = %self.client_id, %error,
                "the bus does not let this client in; correct login and passcode in [bus] of node.toml, or its permission \
                 at the broker; trying again seldom"
            ),
            _ => {
                tracing::warn!(client = %self.client_id, %error, "no bus connection; trying again");
            }
        }
        if self.told.is_empty() {
            self.told_at = now;
        }
        self.told.push(error.clone());
    }

    /// Whether trying again would only be refused again.
    fn is_final(&self, error: &BusError) -> bool {
        match error {
            BusError::ClientIdInUse(_) => true,
            // What was said is wrong, whoever waits.
            BusError::Refused { name, .. } if name == "INVALID" || name == "VERSION" => true,
            error => self.options.refused_pause.is_none() && is_refusal(error),
        }
    }

    fn lost(&self, reason: String) -> BusError {
        BusError::Unreachable {
            address: self.address.clone(),
            reason,
        }
    }

    fn next_address(&mut self) -> String {
        let count = self.options.addresses.len().max(1);
        let address = self.options.addresses.get(self.tries % count).cloned();
        self.tries += 1;
        self.address = address.unwrap_or_default();
        self.address.clone()
    }

    /// How long the next attempt may take: of several addresses one after the other is tried for a short time, then
    /// for twice that, and so on.
    fn patience(&self) -> Duration {
        let most = self.options.connect_timeout;
        let count = self.options.addresses.len();
        if count < 2 {
            return most;
        }
        let rounds = u32::try_from(self.failed / count).unwrap_or(u32::MAX);
        FIRST_PATIENCE
            .saturating_mul(2_u32.saturating_pow(rounds))
            .min(most)
    }
}

/// Waits until one of these channels has room, or nobody listens to it; for ever if there is none.
async fn room(channels: Vec<mpsc::Sender<Arrival>>) {
    let waiting = channels.into_iter().map(|channel| {
        Box::pin(async move {
            let _ = channel.reserve().await;
        })
    });
    let waiting: Vec<_> = waiting.collect();
    if waiting.is_empty() {
        return std::future::pending().await;
    }
    select_all(waiting).await;
}

/// Whether the bus has refused to let this client in for a reason that will hardly pass: a wrong passcode, no
/// permission, no such virtual host. Our own bus refuses nobody so, only requests.
fn is_refusal(error: &BusError) -> bool {
    match error {
        BusError::Refused { name, .. } => !BusError::is_own_name(name),
        _ => false,
    }
}
/// The pause after a refusal, of a client that was connected before.
const REFUSED_PAUSE: Duration = Duration::from_secs(60);
/// How often a bus that has let this client in before may refuse it until that pause is made.
const HASTY_REFUSALS: u32 = 5;

/// Half to all of it, so that clients of a bus that was away don't come back all at once.
fn jittered(pause: Duration) -> Duration {
    let random = Uuid::new_v4().as_u128() % 1024;
    let share = u32::try_from(random).unwrap_or_default();
    pause / 2 + pause / 2 * share / 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_refused_of_one_request_is_no_refused_login() {
        let refused = |name: &str| BusError::Refused {
            name: name.to_owned(),
            detail: "no".to_owned(),
        };
        for name in [
            "AUTH",
            "User north is not authorized to write to: topic://books",
        ] {
            assert!(is_refusal(&refused(name)), "{name}");
        }
        assert!(!is_refusal(&BusError::NoSpace("full".to_owned())));
        for name in [
            "SUBSCRIPTION-FULL",
            "DRAINING",
            "LIMIT",
            "INVALID",
            "BAD-ID",
        ] {
            assert!(!is_refusal(&refused(name)), "{name}");
        }
    }
}
