//! The STOMP client behind [`Bus::stomp`](crate::Bus::stomp): a handle to the one task that owns the connection.
//!
//! The task connects, and connects again for ever; subscriptions are made anew each time. What was delivered
//! over an earlier connection can't be acknowledged any more. A message whose receipt had not come is sent
//! again while its sender still waits for it, so that it may arrive twice.

mod condition;
mod core;
mod decode;
mod dial;
mod dialect;
mod encode;
mod prompt;
mod run;
#[cfg(test)]
mod tests;

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    runtime::Handle,
    sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch},
    time::{Instant, timeout, timeout_at},
};
use tokio_util::sync::CancellationToken;

use self::{
    condition::Condition,
    run::{Owner, Told},
};
use super::codec::FrameLimits;
use crate::{
    error::BusError,
    handle::{
        BusState, ConnectOptions, Outgoing, SubscribeRequest, Subscribed,
        delivery::{AckHandle, Arrival},
    },
};

/// How many requests may wait for the owner of the connection.
const REQUESTS: usize = 256;
/// How much may wait for its receipt, in KiB.
const IN_FLIGHT_KIB: usize = 64 << 10;

/// Where the bus is, and how to treat it.
#[derive(Clone, Debug)]
pub struct StompOptions {
    /// `host:port` of the bus; of several, each is tried in turn.
    pub addresses: Vec<String>,
    /// The name to log in with, if the broker asks for one (`login`).
    pub login: Option<String>,
    /// The secret to log in with (`passcode`).
    pub passcode: Option<Passcode>,
    /// The broker's virtual host (`host`); by default the host of the address, and where the broker has no virtual
    /// host of that name, as RabbitMQ, `/`.
    pub virtual_host: Option<String>,
    /// In what interval either side lets the other hear that it is alive.
    pub heart_beat: Duration,
    /// How long one attempt to connect may take, the bus's answer included; with several addresses the first attempts
    /// at each take less, so that one that says nothing does not hold up the others. Later a frame that was begun may stand
    /// still for three times as long, and what is to be written for six times as long.
    pub connect_timeout: Duration,
    /// How long a volatile message may wait for the bus before its sender is told that it failed.
    pub volatile_timeout: Duration,
    /// The first pause before connecting again; doubles up to [`StompOptions::longest_pause`].
    pub shortest_pause: Duration,
    /// The longest pause before connecting again.
    pub longest_pause: Duration,
    /// The pause before connecting again to a bus that has refused the login, or whatever else makes it unlikely that it
    /// accepts the next one; `None`: whoever was never connected gives up at once.
    pub refused_pause: Option<Duration>,
    /// How long the bus may owe an answer to what was sent, though it is heard to be alive; after a quarter of it people
    /// are told, after all of it the connection counts as lost.
    pub answer_timeout: Duration,
    /// How long [`Bus::close`](crate::Bus::close) waits for the bus.
    pub close_timeout: Duration,
    /// The largest frames to send and to accept.
    pub limits: FrameLimits,
}

impl StompOptions {
    /// Usual options for the bus at `host:port`.
    pub fn new(address: impl Into<String>) -> Self {
        Self {
            addresses: vec![address.into()],
            login: None,
            passcode: None,
            virtual_host: None,
            heart_beat: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(10),
            volatile_timeout: Duration::from_secs(10),
            shortest_pause: Duration::from_millis(100),
            longest_pause: Duration::from_secs(2),
            refused_pause: None,
            answer_timeout: Duration::from_secs(120),
            close_timeout: Duration::from_secs(5),
            limits: FrameLimits::default(),
        }
    }
}

/// A secret, which is not shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Passcode(String);

impl Passcode {
    /// Keeps this secret.
    pub fn new(secret: impl Into<String>) -> Self {
        Self(secret.into())
    }
}

impl fmt::Debug for Passcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Passcode(..)")
    }
}

/// Told when the bus has, or has not, done something.
type Answer = oneshot::Sender<Result<(), BusError>>;

/// What the owner of the connection is asked for.
#[derive(Debug)]
enum Request {
    Publish {
        message: Outgoing,
        permit: OwnedSemaphorePermit,
        /// `None` if nobody waits, and it is wanted all the same.
        answer: Option<Answer>,
    },
    Subscribe {
        number: u64,
        request: SubscribeRequest,
        arrivals: mpsc::Sender<Arrival>,
        answer: Answer,
    },
    Unsubscribe {
        number: u64,
        /// Delete a durable subscription as well.
        cancel: bool,
        answer: Option<Answer>,
    },
    Ack {
        handle: AckHandle,
        answer: Option<Answer>,
    },
    Nack {
        handle: AckHandle,
        answer: Answer,
    },
    Commit {
        sends: Vec<Outgoing>,
        acks: Vec<AckHandle>,
        answer: Answer,
    },
}

/// A handle to the owner of the connection. When the last one is gone, the connection is closed.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    options: Arc<StompOptions>,
    requests: mpsc::Sender<Request>,
    state: watch::Receiver<BusState>,
    condition: Arc<Condition>,
    /// Since when the bus owes an answer that is overdue.
    overdue: watch::Receiver<Option<Instant>>,
    closing: CancellationToken,
    in_flight: Arc<Semaphore>,
    subscriptions: Arc<AtomicU64>,
    runtime: Handle,
}

impl Client {
    /// Starts the task that owns the connection.
    pub(crate) fn start(options: StompOptions, connect: ConnectOptions) -> Self {
        let options = Arc::new(options);
        let (requests, receiver) = mpsc::channel(REQUESTS);
        let (state_sender, state) = watch::channel(BusState::Connecting);
        let (overdue_sender, overdue) = watch::channel(None);
        let condition = Arc::new(Condition::default());
        let closing = CancellationToken::new();
        let told = Told {
            state: state_sender,
            overdue: overdue_sender,
            condition: Arc::clone(&condition),
        };
        let owner = Owner::new(
            Arc::clone(&options),
            connect.client_id,
            receiver,
            told,
            closing.clone(),
        );
        tokio::spawn(owner.run());
        Self {
            options,
            requests,
            state,
            condition,
            overdue,
            closing,
            in_flight: Arc::new(Semaphore::new(IN_FLIGHT_KIB)),
            subscriptions: Arc::default(),
            runtime: Handle::current(),
        }
    }

    pub(crate) async fn ready(&self, deadline: Duration) -> Result<(), BusError> {
        let mut state = self.state.clone();
        let until = Instant::now() + deadline;
        let settled = state.wait_for(|state| *state != BusState::Connecting);
        let settled = timeout_at(until, settled)
            .await
            .map(|state| state.map(|state| state.clone()));
        match settled {
            Ok(Ok(BusState::Connected)) => Ok(()),
            Ok(Ok(BusState::Failed(error))) => Err(error),
            Ok(_) => Err(BusError::Closed),
            Err(_) => Err(self.condition.unreachable(deadline)),
        }
    }

    pub(crate) fn state(&self) -> watch::Receiver<BusState> {
        self.state.clone()
    }

    pub(crate) fn overdue(&self) -> watch::Receiver<Option<Instant>> {
        self.overdue.clone()
    }

    /// Refuses what could never be sent, as far as it is known what the broker takes.
    pub(crate) fn check(&self, message: &Outgoing) -> Result<(), BusError> {
        encode::check_size(message, &self.options.limits)?;
        self.condition.dialect().check(message)
    }

    pub(crate) fn names_messages(&self) -> bool {
        self.condition.dialect().lasting_ids
    }

    /// Whether the broker of the last connection takes requests to an administration.
    pub(crate) fn check_administration(&self) -> Result<(), BusError> {
        let elsewhere = |broker, remedy| Err(BusError::AdministeredElsewhere { broker, remedy });
        let dialect = self.condition.dialect();
        match dialect.administered_with {
            Some(remedy) => elsewhere(dialect.broker, remedy),
            None if self.condition.has_administration() => Ok(()),
            None => elsewhere("an older Pillarbox", "restart it with this version"),
        }
    }

    pub(crate) fn largest_body(&self) -> usize {
        let ours = self.options.limits.body;
        ours.min(self.condition.dialect().largest_body())
    }

    pub(crate) async fn publish_each(&self, messages: Vec<Outgoing>) -> Vec<Result<(), BusError>> {
        let mut answers = Vec::with_capacity(messages.len());
        for message in messages {
            answers.push(self.hand_over(message).await);
        }
        let mut results = Vec::with_capacity(answers.len());
        for handed_over in answers {
            results.push(match handed_over {
                Ok(answered) => self.answer(answered).await,
                Err(error) => Err(error),
            });
        }
        results
    }

    /// Gives a message to the connection's owner, which will tell what the bus answers.
    async fn hand_over(
        &self,
        message: Outgoing,
    ) -> Result<oneshot::Receiver<Result<(), BusError>>, BusError> {
        let (answer, answered) = oneshot::channel();
        self.submit(message, Some(answer)).await?;
        Ok(answered)
    }

    /// Sends without an answer; see [`Bus::publish_soon`](crate::Bus::publish_soon).
    pub(crate) async fn publish_soon(&self, message: Outgoing) -> Result<(), BusError> {
        self.submit(message, None).await
    }

    /// Hands a message over as soon as there is room. A volatile one waits for that no longer than for the bus.
    async fn submit(&self, message: Outgoing, answer: Option<Answer>) -> Result<(), BusError> {
        let persistent = message.persistent;
        let submitted = async {
            let permit = self.permit(&message).await?;
            self.request(Request::Publish {
                message,
                permit,
                answer,
            })
            .await
        };
        if persistent {
            return submitted.await;
        }
        let limit = self.options.volatile_timeout;
        match timeout(limit, submitted).await {
            Ok(submitted) => submitted,
            Err(_) => Err(self.condition.unreachable(limit)),
        }
    }

    pub(crate) async fn subscribe(
        &self,
        request: SubscribeRequest,
    ) -> Result<Subscribed, BusError> {
        let number = self.subscriptions.fetch_add(1, Ordering::Relaxed) + 1;
        let capacity = usize::try_from(request.prefetch).unwrap_or(usize::MAX);
        let (arrivals, receiver) = mpsc::channel(capacity.clamp(1, Semaphore::MAX_PERMITS));
        let ask = |answer| Request::Subscribe {
            number,
            request,
            arrivals,
            answer,
        };
        self.ask(ask).await?;
        Ok((number, receiver))
    }

    pub(crate) async fn unsubscribe(&self, number: u64) -> Result<(), BusError> {
        self.ask(|answer| Request::Unsubscribe {
            number,
            cancel: false,
            answer: Some(answer),
        })
        .await
    }

    /// Unsubscribes without waiting.
    pub(crate) fn unsubscribe_soon(&self, number: u64) {
        let request = Request::Unsubscribe {
            number,
            cancel: false,
            answer: None,
        };
        if let Err(mpsc::error::TrySendError::Full(request)) = self.requests.try_send(request) {
            let requests = self.requests.clone();
            self.runtime
                .spawn(async move { requests.send(request).await });
        }
    }

    pub(crate) async fn cancel(&self, number: u64) -> Result<(), BusError> {
        self.ask(|answer| Request::Unsubscribe {
            number,
            cancel: true,
            answer: Some(answer),
        })
        .await
    }

    pub(crate) async fn ack(&self, handle: AckHandle) -> Result<(), BusError> {
        self.ask(|answer| Request::Ack {
            handle,
            answer: Some(answer),
        })
        .await
    }

    pub(crate) fn ack_soon(&self, handle: AckHandle) -> Result<(), AckHandle> {
        match self.requests.try_send(Request::Ack {
            handle,
            answer: None,
        }) {
            Err(mpsc::error::TrySendError::Full(Request::Ack { handle, .. })) => Err(handle),
            // Without an owner nothing is in flight any more.
            _ => Ok(()),
        }
    }

    /// A bus that closes a subscription over STOMP ends the connection, and the subscription is made again on the next one.
    #[expect(clippy::unused_self, reason = "the embedded client knows")]
    pub(crate) const fn is_over(&self, _subscription: u64, _auto: bool) -> bool {
        false
    }

    /// Waits until a request may have room again; false if it never will.
    pub(crate) async fn has_room(&self) -> bool {
        self.requests.reserve().await.is_ok()
    }

    pub(crate) async fn nack(&self, handle: AckHandle) -> Result<(), BusError> {
        self.ask(|answer| Request::Nack { handle, answer }).await
    }

    pub(crate) async fn commit(
        &self,
        sends: Vec<Outgoing>,
        acks: Vec<AckHandle>,
    ) -> Result<(), BusError> {
        self.ask(|answer| Request::Commit {
            sends,
            acks,
            answer,
        })
        .await
    }

    pub(crate) async fn close(&self) -> Result<(), BusError> {
        let mut state = self.state.clone();
        let ended = |state: &BusState| matches!(state, BusState::Closed | BusState::Failed(_));
        if ended(&state.borrow()) {
            return Err(BusError::Closed);
        }
        self.closing.cancel();
        // The owner keeps its own deadline; an error means that it has ended.
        let _ = state.wait_for(ended).await;
        Ok(())
    }

    async fn permit(&self, message: &Outgoing) -> Result<OwnedSemaphorePermit, BusError> {
        let kib = message.body.len() / 1024 + 1;
        let permits = u32::try_from(kib.min(IN_FLIGHT_KIB)).unwrap_or(u32::MAX);
        let acquired = Arc::clone(&self.in_flight)
            .acquire_many_owned(permits)
            .await;
        acquired.map_err(|_| BusError::Closed)
    }

    async fn ask(&self, request: impl FnOnce(Answer) -> Request) -> Result<(), BusError> {
        let (answer, answered) = oneshot::channel();
        self.request(request(answer)).await?;
        self.answer(answered).await
    }

    async fn request(&self, request: Request) -> Result<(), BusError> {
        self.requests.send(request).await.map_err(|_| self.ended())
    }

    async fn answer(
        &self,
        answered: oneshot::Receiver<Result<(), BusError>>,
    ) -> Result<(), BusError> {
        answered.await.unwrap_or_else(|_| Err(self.ended()))
    }

    /// Why the owner is gone.
    fn ended(&self) -> BusError {
        match &*self.state.borrow() {
            BusState::Failed(error) => error.clone(),
            _ => BusError::Closed,
        }
    }
}
