//! The bus handle's client of the embedded queue manager.

mod events;

use std::{
    sync::{Arc, MutexGuard},
    time::Duration,
};

use pillarbox_messages::{Destination, clock::SharedClock};
use tokio::{
    runtime::Handle,
    sync::{mpsc, oneshot, watch},
    time::Instant,
};
use tokio_util::sync::{CancellationToken, DropGuard};

use self::events::{Entry, Shared, Table, take_events};
use super::{
    Broker,
    connection::{AckMode, Command, CommandSender, NewMessage, SubscribeOptions, Token},
};
use crate::{
    admin,
    core::attributes::Lanes,
    error::BusError,
    handle::{
        BusState, ConnectOptions, GetRequest, Incoming, Outgoing, Selector, SubscribeRequest,
        Subscribed,
        delivery::{AckHandle, AckId, Arrival},
    },
    spelling,
    stomp::codec::FrameLimits,
};

/// The largest prefetch that is passed on.
const MAX_PREFETCH: u32 = 65_536;

/// The bus handle's client of the embedded queue manager. Clones share the connection; it is lost with the last.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    sender: CommandSender,
    clock: SharedClock,
    runtime: Handle,
    shared: Arc<Shared>,
    state: watch::Receiver<BusState>,
    _lost: DropGuard,
}

type Answer = oneshot::Receiver<Result<(), BusError>>;

impl Client {
    pub(crate) fn connect(broker: &Broker, options: ConnectOptions) -> Result<Self, BusError> {
        let (sender, events) = broker.connect(&options.client_id)?.split();
        let shared = Arc::<Shared>::default();
        let (state_sender, state) = watch::channel(BusState::Connected);
        let lost = CancellationToken::new();
        let take = take_events(events, Arc::clone(&shared), state_sender, options.client_id);
        let until = lost.clone();
        broker.runtime().spawn(async move {
            tokio::select! {
                () = take => {}
                () = until.cancelled() => {}
            }
        });
        let inner = Inner {
            sender,
            clock: broker.clock(),
            runtime: broker.runtime().clone(),
            shared,
            state,
            _lost: lost.drop_guard(),
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// Connected from the beginning.
    #[expect(clippy::unused_async, reason = "the other clients have to wait")]
    pub(crate) async fn ready(&self, _deadline: Duration) -> Result<(), BusError> {
        match &self.table().closed {
            None => Ok(()),
            Some(reason) => Err(reason.clone()),
        }
    }

    pub(crate) fn state(&self) -> watch::Receiver<BusState> {
        self.inner.state.clone()
    }

    /// The queue manager checks sizes itself.
    #[expect(
        clippy::unused_self,
        reason = "the other clients have limits of their own"
    )]
    pub(crate) const fn check(&self, _message: &Outgoing) -> Result<(), BusError> {
        Ok(())
    }

    /// What all clients of this bus read.
    #[expect(
        clippy::unused_self,
        reason = "the other clients have limits of their own"
    )]
    pub(crate) fn largest_body(&self) -> usize {
        FrameLimits::default().body
    }

    #[expect(clippy::unused_self, reason = "not every bus does")]
    pub(crate) const fn names_messages(&self) -> bool {
        true
    }

    /// Nothing: answers don't get lost within a process.
    #[expect(clippy::unused_self, reason = "the other clients have something")]
    pub(crate) fn overdue(&self) -> watch::Receiver<Option<Instant>> {
        watch::channel(None).1
    }

    pub(crate) async fn publish_each(&self, messages: Vec<Outgoing>) -> Vec<Result<(), BusError>> {
        let count = messages.len();
        let answers = match self.submit_sends(messages).await {
            Ok(answers) => answers,
            Err(error) => return vec![Err(error); count],
        };
        let mut results = Vec::with_capacity(count);
        for answer in answers {
            results.push(outcome(answer).await);
        }
        results
    }

    /// Sends without an answer; see [`Bus::publish_soon`](crate::Bus::publish_soon).
    pub(crate) async fn publish_soon(&self, message: Outgoing) -> Result<(), BusError> {
        let command = Command::Send {
            message: self.new_message(message),
            transaction: None,
            token: 0,
        };
        self.inner.sender.submit(command).await
    }

    async fn submit_sends(&self, messages: Vec<Outgoing>) -> Result<Vec<Answer>, BusError> {
        let (mut commands, mut answers) = (Vec::new(), Vec::new());
        for message in messages {
            let (token, answer) = self.expect()?;
            let message = self.new_message(message);
            commands.push(Command::Send {
                message,
                transaction: None,
                token,
            });
            answers.push(answer);
        }
        self.inner.sender.submit_all(commands).await?;
        Ok(answers)
    }

    pub(crate) async fn subscribe(
        &self,
        request: SubscribeRequest,
        (selector, options): (Option<Selector>, SubscribeOptions),
    ) -> Result<Subscribed, BusError> {
        let SubscribeRequest {
            destination,
            durable,
            ack: _,
            prefetch,
            ack_timeout,
        } = request;
        let prefetch = prefetch.min(MAX_PREFETCH);
        let (arrivals, receiver) = mpsc::channel(usize::try_from(prefetch).unwrap_or(1));
        let (token, answer) = self.expect()?;
        // The token is unique, so it will do as the subscription's number.
        let subscription = token;
        let entry = Entry {
            durable: durable.clone(),
            arrivals: Some(arrivals),
            ended: None,
        };
        self.table().subscriptions.insert(subscription, entry);
        let command = Command::Subscribe {
            subscription,
            destination: self.own_name(destination),
            durable,
            // `Auto` is acknowledged when the message leaves the subscription's channel.
            ack: AckMode::Individual,
            prefetch,
            selector,
            options,
            ack_timeout: ack_timeout.map(milliseconds),
            token,
        };
        // Should nobody wait for the answer any more, the subscription must not stay.
        let mut cleanup = Unwanted {
            client: self,
            subscription,
            pull: false,
            wanted: false,
        };
        self.inner.sender.submit(command).await?;
        outcome(answer).await?;
        cleanup.wanted = true;
        Ok((subscription, receiver))
    }

    pub(crate) async fn get(&self, request: GetRequest) -> Result<Arrival, BusError> {
        let (token, answer) = self.expect()?;
        let subscription = token;
        let (sender, receiver) = oneshot::channel();
        self.table().pulls.insert(subscription, sender);
        // Should nobody wait for the message any more, it must not stay in hand.
        let mut cleanup = Unwanted {
            client: self,
            subscription,
            pull: true,
            wanted: false,
        };
        let command = Command::Get {
            subscription,
            destination: self.own_name(request.destination),
            selector: request.selector,
            wait: request.wait,
            ack: AckMode::Individual,
            token,
        };
        self.inner.sender.submit(command).await?;
        if let Err(error) = outcome(answer).await {
            cleanup.wanted = true;
            self.table().pulls.remove(&subscription);
            return Err(error);
        }
        let pulled = receiver.await.unwrap_or(Err(BusError::Closed));
        cleanup.wanted = true;
        pulled
    }

    pub(crate) async fn browse(
        &self,
        destination: Destination,
        selector: Option<Selector>,
        limit: usize,
    ) -> Result<Vec<Incoming>, BusError> {
        let (token, answer) = self.expect()?;
        let (sender, receiver) = oneshot::channel();
        self.table().looks.insert(token, sender);
        let command = Command::Browse {
            subscription: token,
            destination,
            selector,
            limit,
            all: false,
            token,
        };
        self.inner.sender.submit(command).await?;
        if let Err(error) = outcome(answer).await {
            self.table().looks.remove(&token);
            return Err(error);
        }
        receiver.await.map_err(|_| BusError::Closed)
    }

    pub(crate) async fn administer(
        &self,
        request: admin::Request,
    ) -> Result<admin::Answer, BusError> {
        let (token, answer) = self.expect()?;
        let (sender, receiver) = oneshot::channel();
        self.table().administered.insert(token, sender);
        let request = Box::new(request);
        let asked = Command::Administer { request, token };
        self.inner.sender.submit(asked).await?;
        if let Err(error) = outcome(answer).await {
            self.table().administered.remove(&token);
            return Err(error);
        }
        receiver.await.map_err(|_| BusError::Closed)
    }

    pub(crate) async fn alter_lanes(
        &self,
        queue: Destination,
        lanes: Lanes,
        drain: bool,
    ) -> Result<(), BusError> {
        self.ask(|token| Command::Alter {
            queue,
            lanes,
            drain,
            token,
        })
        .await
    }

    pub(crate) async fn destroy_queue(
        &self,
        queue: Destination,
        force: bool,
    ) -> Result<(), BusError> {
        self.ask(|token| Command::Destroy {
            queue,
            force,
            token,
        })
        .await
    }

    pub(crate) async fn ack(&self, handle: AckHandle) -> Result<(), BusError> {
        let AckId::Embedded(delivery) = handle.id else {
            return Err(BusError::StaleAck);
        };
        let done = self.ask(|token| Command::Ack {
            delivery,
            transaction: None,
            token,
        });
        self.explained(done.await, &[handle.subscription])
    }

    pub(crate) fn ack_soon(&self, handle: AckHandle) -> Result<(), AckHandle> {
        let AckId::Embedded(delivery) = handle.id else {
            return Ok(());
        };
        let command = Command::Ack {
            delivery,
            transaction: None,
            token: 0,
        };
        let gone = self.table().closed.is_some();
        if gone || self.inner.sender.try_submit(command) {
            Ok(())
        } else {
            Err(handle)
        }
    }

    /// Why a delivery is stale, where its subscription was ended by the bus.
    fn explained(&self, done: Result<(), BusError>, subscriptions: &[u64]) -> Result<(), BusError> {
        if done != Err(BusError::StaleAck) {
            return done;
        }
        let table = self.table();
        let mut ends = subscriptions.iter().filter_map(|it| table.end_of(*it));
        ends.next().map_or(done, Err)
    }

    /// Whether what a subscription has not taken yet is not its any more. With the connection everything has gone back; but
    /// what nobody acknowledges counts as handed out.
    pub(crate) fn is_over(&self, subscription: u64, auto: bool) -> bool {
        let table = self.table();
        table.is_over(subscription) && !(auto && table.closed.is_some())
    }

    /// Waits until a command may have room again; false if it never will.
    pub(crate) async fn has_room(&self) -> bool {
        self.inner.sender.has_room().await
    }

    pub(crate) async fn nack(&self, handle: AckHandle) -> Result<(), BusError> {
        let AckId::Embedded(delivery) = handle.id else {
            return Err(BusError::StaleAck);
        };
        let done = self.ask(|token| Command::Nack {
            delivery,
            reject: false,
            transaction: None,
            token,
        });
        self.explained(done.await, &[handle.subscription])
    }

    pub(crate) async fn unsubscribe(&self, subscription: u64) -> Result<(), BusError> {
        self.table().subscriptions.remove(&subscription);
        self.ask(|token| Command::Unsubscribe {
            subscription,
            token,
        })
        .await
    }

    pub(crate) fn unsubscribe_soon(&self, subscription: u64) {
        let entry = self.table().subscriptions.remove(&subscription);
        if entry.is_some_and(|entry| entry.ended.is_none()) {
            self.submit_unsubscribe(subscription);
        }
    }

    /// Also if the message has just come: then it returns.
    fn give_up_pull(&self, subscription: u64) {
        self.table().pulls.remove(&subscription);
        self.submit_unsubscribe(subscription);
    }

    fn submit_unsubscribe(&self, subscription: u64) {
        let command = Command::Unsubscribe {
            subscription,
            token: 0,
        };
        if !self.inner.sender.try_submit(command.clone()) {
            let sender = self.inner.sender.clone();
            self.inner
                .runtime
                .spawn(async move { sender.submit(command).await });
        }
    }

    pub(crate) async fn cancel(&self, subscription: u64) -> Result<(), BusError> {
        let entry = self.table().subscriptions.remove(&subscription);
        match entry.and_then(|entry| entry.durable) {
            Some(name) => {
                self.ask(|token| Command::CancelDurable { name, token })
                    .await
            }
            None => {
                self.ask(|token| Command::Unsubscribe {
                    subscription,
                    token,
                })
                .await
            }
        }
    }

    pub(crate) async fn commit(
        &self,
        sends: Vec<Outgoing>,
        acks: Vec<AckHandle>,
    ) -> Result<(), BusError> {
        let (token, answer) = self.expect()?;
        let transaction = token;
        let mut commands = vec![Command::Begin {
            transaction,
            token: 0,
        }];
        let subscriptions: Vec<u64> = acks.iter().map(|it| it.subscription).collect();
        for handle in acks {
            let AckId::Embedded(delivery) = handle.id else {
                return Err(BusError::StaleAck);
            };
            commands.push(Command::Ack {
                delivery,
                transaction: Some(transaction),
                token: 0,
            });
        }
        for message in sends {
            let message = self.new_message(message);
            commands.push(Command::Send {
                message,
                transaction: Some(transaction),
                token: 0,
            });
        }
        // Something that fails before it dooms the commit, which then tells why.
        commands.push(Command::Commit { transaction, token });
        self.inner.sender.submit_all(commands).await?;
        self.explained(outcome(answer).await, &subscriptions)
    }

    pub(crate) async fn close(&self) -> Result<(), BusError> {
        self.ask(|token| Command::Disconnect { token }).await
    }

    async fn ask(&self, command: impl FnOnce(Token) -> Command) -> Result<(), BusError> {
        let (token, answer) = self.expect()?;
        self.inner.sender.submit(command(token)).await?;
        outcome(answer).await
    }

    fn expect(&self) -> Result<(Token, Answer), BusError> {
        let mut table = self.table();
        if let Some(reason) = &table.closed {
            return Err(reason.clone());
        }
        let (sender, receiver) = oneshot::channel();
        table.last += 1;
        let token = table.last;
        table.waiting.insert(token, sender);
        Ok((token, receiver))
    }

    fn new_message(&self, outgoing: Outgoing) -> NewMessage {
        let lifetime = |ttl: Duration| {
            let ttl = i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX);
            self.inner.clock.now_ms().saturating_add(ttl)
        };
        NewMessage {
            headers: outgoing.properties,
            persistent: Some(outgoing.persistent),
            priority: outgoing.priority,
            expires_at: outgoing.ttl.map(lifetime),
            correlation_id: outgoing.correlation_id,
            reply_to: outgoing
                .reply_to
                .map(|to| spelling::to_stomp(&self.own_name(to))),
            group: outgoing.group,
            dedup: outgoing.dedup.map(String::into_boxed_str),
            ..NewMessage::new(self.own_name(outgoing.destination), outgoing.body)
        }
    }

    /// A temporary queue's name as the queue manager knows it. A plain name is one of this connection's own.
    fn own_name(&self, destination: Destination) -> Destination {
        if spelling::is_own_temporary(&destination) {
            self.inner.sender.temporary_queue(destination.name())
        } else {
            destination
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.inner.shared.lock()
    }
}

/// Ends a subscription whose maker has given up.
struct Unwanted<'a> {
    client: &'a Client,
    subscription: u64,
    /// It is about one message only.
    pull: bool,
    wanted: bool,
}

impl Drop for Unwanted<'_> {
    fn drop(&mut self) {
        if self.wanted {
            return;
        }
        if self.pull {
            self.client.give_up_pull(self.subscription);
        } else {
            self.client.unsubscribe_soon(self.subscription);
        }
    }
}

/// At least 1: less than a millisecond is more than nothing.
pub(crate) fn milliseconds(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX).max(1)
}

async fn outcome(answer: Answer) -> Result<(), BusError> {
    answer.await.unwrap_or(Err(BusError::Closed))
}
