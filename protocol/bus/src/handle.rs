//! [`Bus`]: one handle for every component, over the embedded queue manager or STOMP.

pub mod delivery;
pub mod message;

use std::time::Duration;

use pillarbox_messages::Destination;
use tokio::{
    sync::{mpsc, watch},
    time::Instant,
};

pub use self::{
    delivery::{Delivery, Subscription, Transaction},
    message::{
        AckMode, BusState, ConnectOptions, GetRequest, Incoming, Outgoing, Selector,
        SubscribeRequest, Wait,
    },
};
use crate::{
    admin::{Administration, Answer, Request},
    core::{attributes::Lanes, check_ack_timeout},
    embedded::{
        Broker,
        client::{Client as EmbeddedClient, milliseconds},
        connection::SubscribeOptions,
    },
    error::BusError,
    handle::delivery::{AckHandle, Arrival},
    stomp::{StompOptions, client::Client as StompClient, destination::check_destination},
};

/// A connection to the bus. Clones share it.
#[derive(Clone, Debug)]
pub struct Bus {
    backend: Backend,
}

/// What stands behind the handle: clients with the same methods, of the same meaning.
#[derive(Clone, Debug)]
enum Backend {
    Embedded(EmbeddedClient),
    Stomp(StompClient),
}

macro_rules! forward {
    ($self:ident, $client:ident => $call:expr) => {
        match &$self.backend {
            Backend::Embedded($client) => $call,
            Backend::Stomp($client) => $call,
        }
    };
}

impl Bus {
    /// Connects to the embedded queue manager, within this process.
    ///
    /// # Errors
    /// [`BusError::ClientIdInUse`] if a live connection has the client id; [`BusError::Closed`] if the queue
    /// manager has been shut down.
    pub fn embedded(broker: &Broker, options: ConnectOptions) -> Result<Self, BusError> {
        Ok(Self {
            backend: Backend::Embedded(EmbeddedClient::connect(broker, options)?),
        })
    }

    /// Starts to connect to a STOMP bus in the background, and keeps connecting again until closed. Must be
    /// called within a tokio runtime.
    #[must_use]
    pub fn stomp(options: StompOptions, connect: ConnectOptions) -> Self {
        Self {
            backend: Backend::Stomp(StompClient::start(options, connect)),
        }
    }

    /// Waits until the connection stands.
    ///
    /// # Errors
    /// If the deadline passes before that: [`BusError::Unreachable`] naming the address, or what the bus said when
    /// it last refused the connection. [`Bus::state`] tells whether it is refused for good; if it is not, the
    /// handle goes on trying.
    pub async fn ready(&self, deadline: Duration) -> Result<(), BusError> {
        forward!(self, client => client.ready(deadline).await)
    }

    /// The connection's state, to watch.
    #[must_use]
    pub fn state(&self) -> watch::Receiver<BusState> {
        forward!(self, client => client.state())
    }

    /// Since when the bus owes an answer that is overdue, though it is heard to be alive; `None` if all is well. To look
    /// at, or to watch.
    #[must_use]
    pub fn overdue(&self) -> watch::Receiver<Option<Instant>> {
        forward!(self, client => client.overdue())
    }

    /// Sends a message; returns when the bus has it: a persistent one is then on the disk.
    ///
    /// # Errors
    /// Any [`BusError`]; on [`BusError::Closed`] and the like the message may or may not have arrived.
    pub async fn publish(&self, message: Outgoing) -> Result<(), BusError> {
        self.publish_all(vec![message]).await
    }

    /// Sends a message without waiting for the bus: returns when the connection has taken it on, after what it was
    /// given before. That the bus refuses it, or never has it, nobody is told.
    ///
    /// # Errors
    /// What can be known here: [`BusError::Closed`], or a message that no bus would take.
    pub async fn publish_soon(&self, message: Outgoing) -> Result<(), BusError> {
        self.check(&message)?;
        forward!(self, client => client.publish_soon(message).await)
    }

    /// Sends several messages, one after the other but without waiting in between.
    ///
    /// # Errors
    /// The first failure; other messages of the call may have arrived.
    pub async fn publish_all(&self, messages: Vec<Outgoing>) -> Result<(), BusError> {
        self.publish_each(messages).await.into_iter().collect()
    }

    /// As [`Bus::publish_all`], but tells of each message, in the same order, what came of it.
    pub async fn publish_each(&self, messages: Vec<Outgoing>) -> Vec<Result<(), BusError>> {
        let mut results: Vec<_> = messages.iter().map(|it| self.check(it)).collect();
        let fit = messages.into_iter().zip(&results);
        let fit = fit.filter_map(|(message, checked)| checked.is_ok().then_some(message));
        let fit = fit.collect();
        let sent = forward!(self, client => client.publish_each(fit).await);
        for (result, sent) in results.iter_mut().filter(|it| it.is_ok()).zip(sent) {
            *result = sent;
        }
        results
    }

    /// Refuses what would never get to the bus, as far as it is known here: over STOMP, by what the broker of the last
    /// connection takes.
    ///
    /// # Errors
    /// [`BusError::TooLarge`], or what else is wrong with the message.
    pub fn accepts(&self, message: &Outgoing) -> Result<(), BusError> {
        self.check(message)
    }

    /// How many bytes the body of a message may have, besides ordinary properties. Over STOMP by what the broker of the
    /// last connection takes.
    #[must_use]
    pub fn largest_body(&self) -> usize {
        forward!(self, client => client.largest_body())
    }

    /// Refuses what a bus would answer by closing the connection.
    fn check(&self, message: &Outgoing) -> Result<(), BusError> {
        message.check()?;
        forward!(self, client => client.check(message))
    }

    /// Subscribes; returns when the subscription exists, so that whatever is sent afterwards arrives.
    ///
    /// # Errors
    /// What the bus has against it; see [`BusError`].
    pub async fn subscribe(&self, request: SubscribeRequest) -> Result<Subscription, BusError> {
        self.subscribe_to(request, None, SubscribeOptions::default())
            .await
    }

    /// As [`Bus::subscribe`], for what is out of the ordinary: only some messages, not one's own, a durable subscription that
    /// others share or that takes the place of another. Only the embedded bus, within its process, does this.
    ///
    /// # Errors
    /// What the bus has against it; see [`BusError`].
    pub async fn subscribe_to(
        &self,
        request: SubscribeRequest,
        selector: Option<Selector>,
        options: SubscribeOptions,
    ) -> Result<Subscription, BusError> {
        check(&request)?;
        let auto = request.ack == AckMode::Auto;
        let is_usual = selector.is_none() && options == SubscribeOptions::default();
        let (number, arrivals) = match &self.backend {
            Backend::Embedded(client) => client.subscribe(request, (selector, options)).await?,
            Backend::Stomp(client) if is_usual => client.subscribe(request).await?,
            Backend::Stomp(_) => return Err(only_embedded()),
        };
        Ok(Subscription::new(self.clone(), number, auto, arrivals))
    }

    /// Takes one message of a queue, by its place in the queue's order or by what the selector says. What is not
    /// acknowledged stays in hand until the connection ends. Only the embedded bus, within its process, does this.
    ///
    /// # Errors
    /// [`BusError::NoMessage`] and [`BusError::InUse`] after having waited; what the bus has against it.
    pub async fn get(&self, request: GetRequest) -> Result<Delivery, BusError> {
        let arrival = match &self.backend {
            Backend::Embedded(client) => client.get(request).await?,
            Backend::Stomp(_) => return Err(only_embedded()),
        };
        Ok(Delivery::pulled(self.clone(), arrival))
    }

    /// Shows the first messages of a queue that could be handed out now, without taking them. Only the embedded bus,
    /// within its process, does this.
    ///
    /// # Errors
    /// What the bus has against it.
    pub async fn browse(
        &self,
        queue: Destination,
        selector: Option<Selector>,
        limit: usize,
    ) -> Result<Vec<Incoming>, BusError> {
        match &self.backend {
            Backend::Embedded(client) => client.browse(queue, selector, limit).await,
            Backend::Stomp(_) => Err(only_embedded()),
        }
    }

    /// Who asks for the queues and messages of this bus, and changes them; see [`admin`](crate::admin). Only the embedded bus
    /// has that, in its own process and over STOMP.
    ///
    /// # Errors
    /// [`BusError::AdministeredElsewhere`], with what to use instead.
    pub async fn administration(&self) -> Result<Administration, BusError> {
        Administration::over(self.clone()).await
    }

    /// Changes a queue's lanes while everything goes on. If messages are in the way, it is refused; or they are drained:
    /// what comes from now on has the new lanes and waits until everything that was there is gone, also over a restart.
    /// What the next start wants of the queue must be changed as well. Only the embedded bus, within its process, does
    /// this.
    ///
    /// # Errors
    /// [`BusError::QueueNotEmpty`] without `drain`; [`BusError::Draining`] while an earlier change is under way; what else
    /// the bus has against it.
    pub async fn alter_lanes(
        &self,
        queue: Destination,
        lanes: Lanes,
        drain: bool,
    ) -> Result<(), BusError> {
        match &self.backend {
            Backend::Embedded(client) => client.alter_lanes(queue, lanes, drain).await,
            Backend::Stomp(_) => Err(BusError::invalid(
                "over STOMP queues can't be changed; change them in the process that has the bus",
            )),
        }
    }

    /// Ends a queue; with `force` also one that has messages or consumers: its subscriptions end, acknowledgements of what
    /// was in hand do nothing, and transactions with one of those, or with a message for it, fail as a whole. The next
    /// start makes it again if it is to be there. Only the embedded bus, within its process, does this.
    ///
    /// # Errors
    /// [`BusError::QueueNotEmpty`] without `force`; what else the bus has against it.
    pub async fn destroy_queue(&self, queue: Destination, force: bool) -> Result<(), BusError> {
        match &self.backend {
            Backend::Embedded(client) => client.destroy_queue(queue, force).await,
            Backend::Stomp(_) => Err(BusError::invalid(
                "over STOMP no queue is destroyed; do it in the process that has the bus",
            )),
        }
    }

    /// Starts to gather sends and acknowledgements that are to happen together or not at all.
    pub fn transaction(&self) -> Transaction {
        Transaction::new(self.clone())
    }

    /// Disconnects in order: unacknowledged deliveries return, uncounted.
    ///
    /// # Errors
    /// [`BusError::Closed`] if the connection had already ended.
    pub async fn close(&self) -> Result<(), BusError> {
        forward!(self, client => client.close().await)
    }

    /// Whether this is the administration's own process.
    ///
    /// # Errors
    /// [`BusError::AdministeredElsewhere`].
    pub(crate) fn administers(&self) -> Result<bool, BusError> {
        match &self.backend {
            Backend::Embedded(_) => Ok(true),
            Backend::Stomp(client) => client.check_administration().map(|()| false),
        }
    }

    /// Asks the administration in its own process.
    pub(crate) async fn administer(&self, request: Request) -> Result<Answer, BusError> {
        match &self.backend {
            Backend::Embedded(client) => client.administer(request).await,
            Backend::Stomp(_) => Err(only_embedded()),
        }
    }

    /// Whether a message has the same id when it comes again.
    fn names_messages(&self) -> bool {
        forward!(self, client => client.names_messages())
    }

    async fn ack(&self, handle: AckHandle) -> Result<(), BusError> {
        forward!(self, client => client.ack(handle).await)
    }

    /// Acknowledges without waiting; gives the handle back if the connection is behind.
    fn ack_soon(&self, handle: AckHandle) -> Result<(), AckHandle> {
        forward!(self, client => client.ack_soon(handle))
    }

    /// Whether nothing more of a subscription is to be begun.
    fn is_over(&self, number: u64, auto: bool) -> bool {
        forward!(self, client => client.is_over(number, auto))
    }

    /// Waits until [`Bus::ack_soon`] may have room again; false if it never will.
    async fn has_room(&self) -> bool {
        forward!(self, client => client.has_room().await)
    }

    async fn nack(&self, handle: AckHandle) -> Result<(), BusError> {
        forward!(self, client => client.nack(handle).await)
    }

    async fn unsubscribe(&self, number: u64) -> Result<(), BusError> {
        forward!(self, client => client.unsubscribe(number).await)
    }

    fn unsubscribe_soon(&self, number: u64) {
        forward!(self, client => client.unsubscribe_soon(number));
    }

    async fn cancel(&self, number: u64) -> Result<(), BusError> {
        forward!(self, client => client.cancel(number).await)
    }

    async fn commit(&self, sends: Vec<Outgoing>, acks: Vec<AckHandle>) -> Result<(), BusError> {
        if let Err(error) = sends.iter().try_for_each(|message| self.check(message)) {
            self.give_back(acks).await;
            return Err(error);
        }
        forward!(self, client => client.commit(sends, acks).await)
    }

    /// Gives back what a transaction that can't be would have acknowledged: it comes again after a pause.
    async fn give_back(&self, acks: Vec<AckHandle>) {
        for handle in acks {
            if let Err(error) = self.nack(handle).await {
                tracing::debug!(%error, "a delivery could not be given back");
            }
        }
    }
}

/// A subscription's number with its client, and the channel its messages come through. The channel holds at
/// least as many as the subscription's prefetch.
pub(crate) type Subscribed = (u64, mpsc::Receiver<Arrival>);

fn only_embedded() -> BusError {
    BusError::invalid(
        "over STOMP this handle takes no single messages and has no extraordinary subscriptions",
    )
}

fn check(request: &SubscribeRequest) -> Result<(), BusError> {
    // ActiveMQ would take a name with a comma for two.
    check_destination(&request.destination)?;
    if request.prefetch == 0 {
        return Err(BusError::invalid(
            "a subscription needs a prefetch of at least 1",
        ));
    }
    if request.ack == AckMode::Client {
        return Err(BusError::invalid(
            "the bus handle acknowledges message by message",
        ));
    }
    check_ack_timeout(request.ack_timeout.map(milliseconds), request.ack)
}
