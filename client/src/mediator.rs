//! The mediator: one task per client that hears answers and hands each to its conversation.
//!
//! It owns the map from correlation id to conversation and the subscriptions, one per destination that answers come
//! to. A conversation that does not keep up loses messages rather than holding up the others: first those that only
//! say that somebody is at work.

mod listening;
mod room;

use std::collections::BTreeMap;

use pillarbox_bus::{AckMode, BusError, SubscribeRequest};
use pillarbox_component::{Component, Received, Rejection};
use pillarbox_messages::{
    CollectionId, ComponentId, CorrelationId, Destination, DestinationKind, FileId, MessageKind,
};
use tokio::{
    sync::{mpsc, oneshot, watch},
    task::JoinSet,
    time::Instant,
};
use tracing::{debug, warn};

pub(crate) use self::room::Receipt;
use self::{listening::listen, room::Room};
use crate::{conversation::Context, error::ClientError, journal::Journal, task::Link};

/// How many messages may wait for one conversation.
const INBOX_MESSAGES: usize = 256;
/// How many messages may wait for the mediator.
const MEDIATOR_MESSAGES: usize = 64;
/// How many commands may wait for the mediator.
const MEDIATOR_COMMANDS: usize = 16;
/// How many deliveries a subscription may have under way: more than may wait for conversations.
const PREFETCH: u32 = 512;
/// How many messages for conversations that are yet to be resumed stay on the bus meanwhile: fewer than may be under
/// way. Who sent one that does not is asked again.
const HELD_BACK: usize = 256;

/// A message on its way to its conversation.
#[derive(Debug)]
pub(crate) struct Arrived {
    /// The message, or why it can't be read.
    pub(crate) content: Result<Received, Box<Rejection>>,
    /// To be acknowledged when the conversation has taken the message.
    pub(crate) receipt: Receipt,
}

/// What a conversation asks to be put through.
#[derive(Debug)]
pub(crate) struct Registration {
    pub(crate) correlation: CorrelationId,
    /// Where its answers come to.
    pub(crate) destination: Destination,
    pub(crate) inbox: mpsc::Sender<Arrived>,
    /// The file that it changes, if it does: no other may at the same time.
    pub(crate) changes: Option<(CollectionId, FileId)>,
}

impl Registration {
    /// A conversation's, and where its messages come out. One that `changes` its file is refused while another one
    /// does.
    pub(crate) fn new(context: &Context, changes: bool) -> (Self, mpsc::Receiver<Arrived>) {
        let (inbox, arriving) = mpsc::channel(INBOX_MESSAGES);
        let file = context.collection.clone().zip(context.file.clone());
        let registration = Self {
            correlation: context.correlation.clone(),
            destination: context.reply_to.clone(),
            inbox,
            changes: file.filter(|_| changes),
        };
        (registration, arriving)
    }
}

/// Tells whoever registers when no answer can be missed any more.
type Ready = oneshot::Sender<Result<(), ClientError>>;

#[derive(Debug)]
enum Command {
    Register(Registration, Ready),
    /// All of them before any message goes to one.
    RegisterAll(Vec<(Registration, Ready)>),
    Deregister(CorrelationId),
}

/// What a subscription's task tells.
#[derive(Debug)]
enum Heard {
    Subscribed(Destination, Result<(), BusError>),
    Message(Box<Arrived>),
    Ended(Destination),
}

/// How the rest of the client talks to its mediator. The task ends when the last handle is dropped.
#[derive(Clone, Debug)]
pub(crate) struct Mediator {
    commands: mpsc::Sender<Command>,
    returned: watch::Receiver<Option<Instant>>,
}

impl Mediator {
    /// Starts the task.
    pub(crate) fn start(component: Component, named: bool, journal: Option<Journal>) -> Self {
        let (commands, orders) = mpsc::channel(MEDIATOR_COMMANDS);
        let (heard, hearing) = mpsc::channel(MEDIATOR_MESSAGES);
        let (returned, returned_at) = watch::channel(None);
        let task = Task {
            link: Link::new(component.bus()),
            returned,
            component,
            named,
            journal,
            held_back: Vec::new(),
            room: Room::default(),
            heard,
            routes: BTreeMap::new(),
            subscriptions: BTreeMap::new(),
            listeners: JoinSet::new(),
        };
        tokio::spawn(task.run(orders, hearing));
        Self {
            commands,
            returned: returned_at,
        }
    }

    /// When the bus came back last; none if it was never away.
    pub(crate) fn returned_at(&self) -> Option<Instant> {
        *self.returned.borrow()
    }

    /// Puts a conversation through; when this returns, no answer can be missed.
    pub(crate) async fn register(&self, registration: Registration) -> Result<(), ClientError> {
        let (ready, answer) = oneshot::channel();
        let command = Command::Register(registration, ready);
        self.commands
            .send(command)
            .await
            .map_err(|_| ClientError::Closed)?;
        answer.await.unwrap_or(Err(ClientError::Closed))
    }

    /// Puts through what another process of this client has left, all at once: what waits for one of them comes
    /// as soon as there is a subscription. If one can't be, none is.
    pub(crate) async fn register_all(
        &self,
        registrations: Vec<Registration>,
    ) -> Result<(), ClientError> {
        let correlations: Vec<CorrelationId> = registrations
            .iter()
            .map(|registration| registration.correlation.clone())
            .collect();
        let registered = self.put_all_through(registrations).await;
        if registered.is_err() {
            for correlation in correlations {
                self.deregister(correlation).await;
            }
        }
        registered
    }

    async fn put_all_through(&self, registrations: Vec<Registration>) -> Result<(), ClientError> {
        let (all, answers): (Vec<_>, Vec<_>) = registrations
            .into_iter()
            .map(|registration| {
                let (ready, answer) = oneshot::channel();
                ((registration, ready), answer)
            })
            .unzip();
        self.commands
            .send(Command::RegisterAll(all))
            .await
            .map_err(|_| ClientError::Closed)?;
        for answer in answers {
            answer.await.unwrap_or(Err(ClientError::Closed))?;
        }
        Ok(())
    }

    /// Forgets a conversation.
    pub(crate) async fn deregister(&self, correlation: CorrelationId) {
        // A mediator that is gone has forgotten it.
        let _ = self.commands.send(Command::Deregister(correlation)).await;
    }
}

struct Task {
    component: Component,
    link: Link,
    /// When the bus came back last.
    returned: watch::Sender<Option<Instant>>,
    named: bool,
    journal: Option<Journal>,
    /// What has come for conversations that another process has left and nobody has taken up yet. It stays on the
    /// bus until somebody does.
    held_back: Vec<Arrived>,
    room: Room,
    heard: mpsc::Sender<Heard>,
    routes: BTreeMap<CorrelationId, Registration>,
    subscriptions: BTreeMap<Destination, State>,
    listeners: JoinSet<()>,
}

type Waiting = (CorrelationId, Ready);

enum State {
    /// Not there yet; who waits for it.
    Pending(Vec<Waiting>),
    Active,
}

impl Task {
    async fn run(
        mut self,
        mut orders: mpsc::Receiver<Command>,
        mut hearing: mpsc::Receiver<Heard>,
    ) {
        loop {
            tokio::select! {
                command = orders.recv() => match command {
                    Some(Command::Register(registration, ready)) => self.register(registration, ready),
                    Some(Command::RegisterAll(all)) => self.register_all(all),
                    Some(Command::Deregister(correlation)) => self.forget(&correlation),
                    None => return,
                },
                Some(heard) = hearing.recv() => match heard {
                    Heard::Subscribed(destination, result) => self.subscribed(destination, &result),
                    Heard::Message(arrived) => self.route(*arrived),
                    Heard::Ended(destination) => self.ended(&destination),
                },
                () = self.link.connected_again() => {
                    self.returned.send_replace(Some(Instant::now()));
                }
                Some(_) = self.listeners.join_next(), if !self.listeners.is_empty() => {}
            }
        }
    }

    fn register(&mut self, registration: Registration, ready: Ready) {
        if let Some(file) = self.changed_already(&registration) {
            let _ = ready.send(Err(ClientError::Busy(file)));
            return;
        }
        self.put_through(registration, ready);
    }

    /// These were let begin already, each in its time.
    fn register_all(&mut self, all: Vec<(Registration, Ready)>) {
        for (registration, ready) in all {
            self.put_through(registration, ready);
        }
        for arrived in std::mem::take(&mut self.held_back) {
            self.route(arrived);
        }
    }

    fn put_through(&mut self, registration: Registration, ready: Ready) {
        let correlation = registration.correlation.clone();
        let destination = registration.destination.clone();
        self.routes.insert(correlation.clone(), registration);
        match self.subscriptions.get_mut(&destination) {
            Some(State::Active) => self.ready((correlation, ready), Ok(())),
            Some(State::Pending(waiting)) => waiting.push((correlation, ready)),
            None => {
                let waiting = State::Pending(vec![(correlation, ready)]);
                self.subscriptions.insert(destination.clone(), waiting);
                self.subscribe(destination);
            }
        }
    }

    /// Tells who waits; one that has gone meanwhile is forgotten.
    fn ready(&mut self, (correlation, ready): Waiting, result: Result<(), ClientError>) {
        let failed = result.is_err();
        if ready.send(result).is_err() || failed {
            self.forget(&correlation);
        }
    }

    /// The file, if another conversation that is still there changes it too.
    fn changed_already(&self, registration: &Registration) -> Option<FileId> {
        let changes = registration.changes.as_ref()?;
        let other = |route: &&Registration| {
            route.changes.as_ref() == Some(changes) && !route.inbox.is_closed()
        };
        self.routes.values().find(other)?;
        Some(changes.1.clone())
    }

    fn forget(&mut self, correlation: &CorrelationId) {
        self.routes.remove(correlation);
    }

    fn subscribe(&mut self, destination: Destination) {
        let durable = self.named && destination.kind() == DestinationKind::Topic;
        let name = self
            .component
            .repository()
            .subscription_name(self.component.id(), &destination);
        let request = SubscribeRequest {
            ack_timeout: None,
            destination,
            durable: durable.then_some(name),
            ack: if self.named {
                AckMode::Individual
            } else {
                AckMode::Auto
            },
            prefetch: PREFETCH,
        };
        self.listeners
            .spawn(listen(self.component.clone(), request, self.heard.clone()));
    }

    fn subscribed(&mut self, destination: Destination, result: &Result<(), BusError>) {
        let waiting = match self.subscriptions.remove(&destination) {
            Some(State::Pending(waiting)) => waiting,
            _ => Vec::new(),
        };
        if result.is_ok() {
            self.subscriptions.insert(destination, State::Active);
        }
        for waiter in waiting {
            self.ready(waiter, result.clone().map_err(ClientError::from));
        }
    }

    fn route(&mut self, mut arrived: Arrived) {
        let Some(correlation) = arrived.correlation().cloned() else {
            return self.acknowledge(arrived.receipt);
        };
        let from = arrived.from().unwrap_or_default().to_owned();
        let Some(route) = self.routes.get(&correlation) else {
            return self.unclaimed(&correlation, arrived);
        };
        // Without a name, everything has been acknowledged already.
        if self.named {
            let waiting = route.inbox.max_capacity() - route.inbox.capacity();
            let held = self.held_back.len();
            if !route.inbox.is_closed()
                && !self.room.has_place(waiting, held, arrived.is_progress())
            {
                let kind = if arrived.is_progress() {
                    "progress"
                } else {
                    "answers"
                };
                debug!(%correlation, from, kind, waiting, "a message that a conversation does not get to");
                return self.acknowledge(arrived.receipt);
            }
            self.room.take(&mut arrived.receipt);
        }
        match route.inbox.try_send(arrived) {
            Ok(()) => {}
            Err(mpsc::error::TrySendError::Full(arrived)) => {
                warn!(%correlation, from, "too many messages for one conversation, one is dropped");
                self.acknowledge(arrived.receipt);
            }
            Err(mpsc::error::TrySendError::Closed(arrived)) => {
                self.forget(&correlation);
                self.unclaimed(&correlation, arrived);
            }
        }
    }

    /// A message that no conversation takes. One of a conversation that another process has left is kept for
    /// whoever takes it up.
    fn unclaimed(&mut self, correlation: &CorrelationId, arrived: Arrived) {
        let from = arrived.from().unwrap_or_default();
        let left = |journal: &Journal| journal.is_left(correlation);
        if self.held_back.len() < HELD_BACK && self.journal.as_ref().is_some_and(left) {
            debug!(%correlation, from, "a message of a conversation that is yet to be resumed");
            return self.held_back.push(arrived);
        }
        debug!(%correlation, from, "a message of no conversation of this client");
        self.acknowledge(arrived.receipt);
    }

    fn acknowledge(&mut self, receipt: Receipt) {
        if self.named {
            self.listeners.spawn(receipt.acknowledge());
        }
    }

    /// The subscription is gone for good: so are its conversations.
    fn ended(&mut self, destination: &Destination) {
        self.subscriptions.remove(destination);
        let gone: Vec<CorrelationId> = self
            .routes
            .values()
            .filter(|route| route.destination == *destination)
            .map(|route| route.correlation.clone())
            .collect();
        for correlation in gone {
            self.forget(&correlation);
        }
    }
}

impl Arrived {
    /// Whether it only says that a contributor is at work.
    fn is_progress(&self) -> bool {
        let received = self.content.as_ref().ok();
        received.is_some_and(|it| it.message.message_type().kind() == MessageKind::ProgressResponse)
    }

    fn correlation(&self) -> Option<&CorrelationId> {
        match &self.content {
            Ok(received) => Some(&received.message.header().correlation_id),
            Err(rejection) => rejection.correlation_id.as_ref(),
        }
    }

    fn from(&self) -> Option<&str> {
        let from = match &self.content {
            Ok(received) => Some(&received.message.header().from),
            Err(rejection) => rejection.from.as_ref(),
        };
        from.map(ComponentId::as_str)
    }
}
