//! The seam between the queue manager and whoever speaks for a client: the in-process handle and the STOMP server.

use std::sync::Arc;

use pillarbox_messages::{Destination, DestinationKind};
use tokio::sync::mpsc;

pub use crate::core::{
    Browsed,
    backout::PoisonMoved,
    durable::{Gap, OnLimit, SubscriptionLimits, SubscriptionRule},
    message::{Cause, DeliveryId, Failure, MessageId, NewMessage, QueuedMessage, Reason},
    notice::Notice,
    overflow::{SubscriptionTrouble, Trouble},
    selector::Selector,
};
use crate::{
    admin::{Answer, Request},
    core::attributes::Lanes,
    embedded::owner::Submission,
    error::BusError,
};

/// How many events wait in a connection's channel; more wait with the owner of the queues.
pub(crate) const EVENT_CHANNEL: usize = 64;

/// As many unacknowledged deliveries as are usual: one of a queue with lanes, 32 of others, and 1024 or 1 MiB for a
/// consumer that does not acknowledge.
pub const USUAL_PREFETCH: u32 = u32::MAX;

/// Names a question, so that its answer can be told: 0 means that nobody asks.
pub type Token = u64;

/// A connection's number; never used twice while the queue manager runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u64);

/// When a delivered message counts as consumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckMode {
    /// When it has been handed out.
    Auto,
    /// With its acknowledgement, which also covers everything delivered before it on the same subscription.
    Client,
    /// With its own acknowledgement.
    Individual,
}

/// What may be out of the ordinary about a subscription to a topic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SubscribeOptions {
    /// Not the messages that this connection sends; of a durable subscription, those that its client sends.
    pub no_local: bool,
    /// The durable subscription is nobody's own: whoever names it takes from it, one message each.
    pub shared: bool,
    /// If the durable subscription is another than wanted (of another topic, or with another selector), it ends with
    /// everything in it, and the one that is wanted is made.
    pub replace: bool,
}

/// How long somebody waits for a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Not at all.
    No,
    /// So many milliseconds.
    For(i64),
    /// Until there is one.
    Forever,
}

/// What a connection asks for.
#[derive(Clone, Debug)]
pub enum Command {
    /// Starts a subscription. `Done` comes before its first `Deliver`.
    Subscribe {
        /// The connection's own number for it, not in use.
        subscription: u64,
        /// A queue, a topic, or an own temporary queue (see [`Connection::temporary_queue`]).
        destination: Destination,
        /// The durable subscription's name; topics only.
        durable: Option<String>,
        /// When a message counts as consumed.
        ack: AckMode,
        /// How many deliveries may be unacknowledged; not 0, and [`USUAL_PREFETCH`] for what is usual.
        prefetch: u32,
        /// Which messages it wants, if not all; not where a queue has lanes. What a topic's subscription does not want never
        /// comes to it.
        selector: Option<Selector>,
        /// What is out of the ordinary.
        options: SubscribeOptions,
        /// How long a delivery may be in hand, in milliseconds; then the oldest one returns, counted, and the
        /// subscription is closed. Nothing of it is handed to anybody else before this connection has been told or, if
        /// it is not within this process, has ended.
        ack_timeout: Option<i64>,
        /// Whom to answer.
        token: Token,
    },
    /// Takes one message of a queue: `Done`, then one `Deliver` for this subscription or `NoMessage`. The subscription's
    /// number is in use until the message has been dealt with.
    Get {
        /// The connection's own number for it, not in use.
        subscription: u64,
        /// The queue.
        destination: Destination,
        /// Which message; the first that fits. Of a lane that can only be its first.
        selector: Option<Selector>,
        /// Whether to wait for it. Where there are lanes, not with a selector.
        wait: Wait,
        /// When the message counts as consumed.
        ack: AckMode,
        /// Whom to answer.
        token: Token,
    },
    /// Shows messages of a queue in its order and changes nothing: `Done`, then `Browsed`.
    Browse {
        /// The connection's own number for it, not in use; free again afterwards.
        subscription: u64,
        /// The queue.
        destination: Destination,
        /// Which messages.
        selector: Option<Selector>,
        /// How many at most; no more than 10,000 or 16 MiB come in any case.
        limit: usize,
        /// Also those that wait, or are in somebody's hands.
        all: bool,
        /// Whom to answer.
        token: Token,
    },
    /// Ends a subscription: what it has in flight returns, uncounted. A durable one stays and collects.
    Unsubscribe {
        /// Which.
        subscription: u64,
        /// Whom to answer.
        token: Token,
    },
    /// Deletes a durable subscription of this client with its backlog; ends this connection's own use of it.
    CancelDurable {
        /// The durable subscription's name.
        name: String,
        /// Whom to answer.
        token: Token,
    },
    /// Sends a message.
    Send {
        /// The message.
        message: NewMessage,
        /// The open transaction it belongs to.
        transaction: Option<u64>,
        /// Whom to answer.
        token: Token,
    },
    /// Acknowledges a delivery.
    Ack {
        /// Which.
        delivery: DeliveryId,
        /// The open transaction it belongs to.
        transaction: Option<u64>,
        /// Whom to answer.
        token: Token,
    },
    /// Gives a delivery back: one counted backout; it comes again after a delay.
    Nack {
        /// Which.
        delivery: DeliveryId,
        /// Not to come again: it goes to the error queue.
        reject: bool,
        /// The open transaction it belongs to.
        transaction: Option<u64>,
        /// Whom to answer.
        token: Token,
    },
    /// Sends messages that were moved aside back to where they stood, as if nothing had happened to them. Answered by
    /// `Returned`.
    Retry {
        /// The queue that they stand in now.
        queue: Destination,
        /// Which.
        messages: Vec<MessageId>,
        /// Whom to answer.
        token: Token,
    },
    /// Deletes messages of a queue for good. Answered by `Returned`, which counts what is gone.
    Delete {
        /// The queue.
        queue: Destination,
        /// Which.
        messages: Vec<MessageId>,
        /// Whom to answer.
        token: Token,
    },
    /// Asks the administration. Answered by `Administered`.
    Administer {
        /// What for.
        request: Box<Request>,
        /// Whom to answer.
        token: Token,
    },
    /// Changes a queue's lanes. If messages are in the way: refused, or they are drained: what comes from now on has the
    /// new lanes and waits until everything that was there is gone, also over a restart.
    Alter {
        /// The queue.
        queue: Destination,
        /// The lanes that it is to have.
        lanes: Lanes,
        /// Whether messages in it are to be drained.
        drain: bool,
        /// Whom to answer.
        token: Token,
    },
    /// Ends a queue. If messages or consumers are in the way: refused, or all of it goes with them: subscriptions are closed,
    /// acknowledgements of what was in hand do nothing, and transactions with one of those, or with a message for the
    /// queue, fail as a whole.
    Destroy {
        /// The queue.
        queue: Destination,
        /// Whether messages and consumers may be lost.
        force: bool,
        /// Whom to answer.
        token: Token,
    },
    /// Opens a transaction.
    Begin {
        /// The connection's own number for it, not open.
        transaction: u64,
        /// Whom to answer.
        token: Token,
    },
    /// Does everything in the transaction, or nothing.
    Commit {
        /// Which.
        transaction: u64,
        /// Whom to answer.
        token: Token,
    },
    /// Forgets the transaction's sends and gives its deliveries back, counted.
    Abort {
        /// Which.
        transaction: u64,
        /// Whom to answer.
        token: Token,
    },
    /// `SubscriptionClosed` has been taken notice of: nothing more of what that subscription was given is begun. Whoever
    /// asks for the next event says so. Nobody answers.
    Closed {
        /// Which subscription.
        subscription: u64,
    },
    /// Ends the connection in order: what is in flight returns, uncounted. `Done` is the last event but `Closed`.
    Disconnect {
        /// Whom to answer.
        token: Token,
    },
}

/// What a connection is told.
#[derive(Clone, Debug)]
pub enum Event {
    /// A message for one of its subscriptions.
    Deliver {
        /// Which.
        subscription: u64,
        /// To acknowledge it by.
        delivery: DeliveryId,
        /// The message.
        message: Arc<QueuedMessage>,
        /// Whether it may have been delivered before.
        redelivered: bool,
        /// How often it has been handed out, this time included.
        delivery_count: u32,
        /// How often it has come back counted.
        backout_count: u32,
        /// Whether it is the first of its lane that comes to this subscription (`JMSXGroupFirstForConsumer`).
        first_of_group: bool,
        /// What its durable subscription has missed before it.
        gap: Option<Gap>,
    },
    /// The command with this token is done; if it was about persistent messages, it is on the disk.
    Done {
        /// The command's token, never 0.
        token: Token,
        /// A sent message's identity (not within a transaction).
        message_id: Option<MessageId>,
        /// A sent message had no place to go.
        unroutable: bool,
    },
    /// So many messages of the `Retry` or `Delete` with this token went back or are gone, and this is on the disk; so many
    /// were left alone, because they are in a consumer's hands, came from nowhere or are not there.
    Returned {
        /// The command's token.
        token: Token,
        /// Those that went back, or are gone.
        returned: usize,
        /// Those that were left alone.
        skipped: usize,
    },
    /// What the `Administer` with this token has come to: everything that it changed or tells of is on the disk, as far as
    /// it is to last.
    Administered {
        /// The command's token.
        token: Token,
        /// Never an error.
        answer: Box<Answer>,
    },
    /// The command with this token changed nothing.
    Failed {
        /// The command's token; 0 for a command that nobody asked about.
        token: Token,
        /// Why.
        error: BusError,
    },
    /// There was no message for this `Get`, which is over.
    NoMessage {
        /// Which.
        subscription: u64,
        /// There are such messages, but all of them are in somebody's hands.
        in_use: bool,
    },
    /// What this `Browse` has seen.
    Browsed {
        /// Which.
        subscription: u64,
        /// The messages, in the queue's order.
        messages: Vec<Browsed>,
        /// There are more.
        more: bool,
    },
    /// The bus has ended this subscription.
    SubscriptionClosed {
        /// Which.
        subscription: u64,
        /// Why.
        reason: BusError,
    },
    /// The last event: the connection has ended.
    Closed {
        /// Why; [`BusError::Closed`] after a `Disconnect`.
        reason: BusError,
    },
}

/// A client's connection to the queue manager.
///
/// Dropping it without a `Disconnect` is a lost connection: its deliveries return, and the oldest one of each
/// subscription counts a backout.
#[derive(Debug)]
pub struct Connection {
    sender: CommandSender,
    events: EventReceiver,
}

/// The half of a connection that asks.
#[derive(Clone, Debug)]
pub struct CommandSender {
    id: ConnectionId,
    boot: u64,
    commands: mpsc::Sender<Submission>,
}

/// The half of a connection that is told. Dropping it ends the connection.
#[derive(Debug)]
pub struct EventReceiver {
    events: mpsc::Receiver<Event>,
    ended: bool,
    sender: CommandSender,
    /// A subscription whose end was the latest event.
    closed: Option<u64>,
}

impl Connection {
    pub(crate) fn new(
        id: ConnectionId,
        boot: u64,
        commands: mpsc::Sender<Submission>,
        events: mpsc::Receiver<Event>,
    ) -> Self {
        let sender = CommandSender { id, boot, commands };
        Self {
            events: EventReceiver {
                events,
                ended: false,
                sender: sender.clone(),
                closed: None,
            },
            sender,
        }
    }

    /// The connection's number.
    #[must_use]
    pub fn id(&self) -> ConnectionId {
        self.sender.id
    }

    /// Asks for something; waits while the owner of the queues is behind.
    ///
    /// # Errors
    /// [`BusError::Closed`] if the queue manager is gone. What the command itself came to is told by an event.
    pub async fn submit(&self, command: Command) -> Result<(), BusError> {
        self.sender.submit(command).await
    }

    /// The next event; `None` after the last.
    pub async fn next_event(&mut self) -> Option<Event> {
        self.events.next_event().await
    }

    /// The destination of this connection's own temporary queue of this name, as others must address it.
    #[must_use]
    pub fn temporary_queue(&self, name: &str) -> Destination {
        self.sender.temporary_queue(name)
    }

    /// Takes the connection apart, for two tasks.
    #[must_use]
    pub fn split(self) -> (CommandSender, EventReceiver) {
        (self.sender, self.events)
    }
}

impl CommandSender {
    /// See [`Connection::submit`].
    ///
    /// # Errors
    /// [`BusError::Closed`] if the queue manager is gone.
    pub async fn submit(&self, command: Command) -> Result<(), BusError> {
        self.submit_all(vec![command]).await
    }

    /// Asks for several things at once, in order. What they write shares one sync.
    ///
    /// # Errors
    /// [`BusError::Closed`] if the queue manager is gone.
    pub async fn submit_all(&self, commands: Vec<Command>) -> Result<(), BusError> {
        let submission = Submission {
            connection: self.id,
            commands,
        };
        self.commands
            .send(submission)
            .await
            .map_err(|_| BusError::Closed)
    }

    /// Asks without waiting; `false` if the owner of the queues is behind, or gone.
    pub fn try_submit(&self, command: Command) -> bool {
        let submission = Submission {
            connection: self.id,
            commands: vec![command],
        };
        self.commands.try_send(submission).is_ok()
    }

    /// Waits until the owner of the queues is no longer behind; `false` if it is gone.
    pub async fn has_room(&self) -> bool {
        self.commands.reserve().await.is_ok()
    }

    /// See [`Connection::temporary_queue`].
    #[must_use]
    pub fn temporary_queue(&self, name: &str) -> Destination {
        let name = format!("{}{name}", temporary_prefix(self.boot, self.id));
        Destination::new(DestinationKind::TemporaryQueue, &name)
    }
}

impl EventReceiver {
    /// The next event; `None` after the last. Who asks has dealt with the one before: what a subscription had that has
    /// been closed may be another's from then on.
    pub async fn next_event(&mut self) -> Option<Event> {
        if self.ended {
            return None;
        }
        if let Some(subscription) = self.closed {
            // If the queue manager is gone, so is everything else.
            let _ = self.sender.submit(Command::Closed { subscription }).await;
            self.closed = None;
        }
        let event = self.events.recv().await;
        self.ended = matches!(event, None | Some(Event::Closed { .. }));
        if let Some(Event::SubscriptionClosed { subscription, .. }) = &event {
            self.closed = Some(*subscription);
        }
        event
    }
}

/// What the names of a connection's own temporary queues start with.
pub(crate) fn temporary_prefix(boot: u64, connection: ConnectionId) -> String {
    format!("{boot}.{}.", connection.0)
}
