//! Subscribing: which queue a subscription takes from, and the end of subscriptions.

mod durable;

use std::collections::BTreeSet;

use pillarbox_messages::{Destination, DestinationKind};

use super::{
    Core,
    admin::is_administration,
    directory::check_name,
    durable::Filter,
    queue::{Consumer, Queue, QueueKind, Wants},
    room::no_room,
    selector::Selector,
    session::SessionSubscription,
    unit::QueueId,
};
use crate::{
    embedded::connection::{
        AckMode, ConnectionId, SubscribeOptions, Token, USUAL_PREFETCH, temporary_prefix,
    },
    error::BusError,
};

/// What is usual for who acknowledges, where there are no lanes.
const PREFETCH_ACK: u32 = 32;
/// What is usual for who does not acknowledge: so many, and no more with so many bytes.
const PREFETCH_AUTO: u32 = 1024;
const PREFETCH_AUTO_BYTES: u64 = 1 << 20;

/// What somebody wants to subscribe to.
#[derive(Clone, Debug)]
pub(super) struct Wish {
    pub(super) subscription: u64,
    pub(super) destination: Destination,
    pub(super) durable: Option<String>,
    pub(super) ack: AckMode,
    pub(super) prefetch: u32,
    pub(super) selector: Option<Selector>,
    pub(super) options: SubscribeOptions,
    /// How long a message may be in hand, in milliseconds.
    pub(super) ack_timeout: Option<i64>,
}

impl Core {
    pub(super) fn subscribe(&mut self, connection: ConnectionId, wish: Wish, token: Token) {
        let (queue_id, part) = match self.find_queue(connection, &wish) {
            Ok(found) => found,
            Err(error) => return self.answer(connection, token, Err(error)),
        };
        let (prefetch, prefetch_bytes) = self.prefetch(queue_id, &wish);
        let consumer = Consumer {
            connection,
            subscription: wish.subscription,
            ack: wish.ack,
            prefetch: prefetch.min(self.limits.prefetch),
            prefetch_bytes,
            in_flight: 0,
            bytes: 0,
            once: false,
            part,
            // What a topic's subscription does not want never comes to its queue.
            wants: wish
                .selector
                .filter(|_| wish.destination.kind() == DestinationKind::Queue)
                .map(|it| Box::new(Wants::new(it))),
        };
        if let Some(queue) = self.queues.get_mut(&queue_id) {
            queue.add_consumer(consumer);
        }
        self.note_back(queue_id);
        let number = self.next_subscription;
        self.next_subscription += 1;
        if let Some(session) = self.sessions.get_mut(&connection) {
            let subscription = SessionSubscription {
                queue: queue_id,
                number,
                once: false,
                deadline: None,
                ack_timeout: wish.ack_timeout,
                overdue: None,
                ack: wish.ack,
            };
            session
                .subscriptions
                .insert(wish.subscription, subscription);
        }
        if wish.options.shared {
            self.note_shared(connection, queue_id);
        }
        self.draft.dirty.insert(queue_id);
        self.answer(connection, token, Ok(()));
    }

    /// How many messages, and bytes, a consumer may have in its hands.
    fn prefetch(&self, queue: QueueId, wish: &Wish) -> (u32, u64) {
        let queue = self.queues.get(&queue);
        match (wish.prefetch, wish.ack) {
            (USUAL_PREFETCH, AckMode::Auto) => (PREFETCH_AUTO, PREFETCH_AUTO_BYTES),
            // What it has not acknowledged keeps others of the lanes from going on elsewhere.
            (USUAL_PREFETCH, _) if queue.is_some_and(Queue::has_lanes) => (1, u64::MAX),
            (USUAL_PREFETCH, _) => (PREFETCH_ACK, u64::MAX),
            (prefetch, _) => (prefetch, u64::MAX),
        }
    }

    pub(super) fn unsubscribe(
        &mut self,
        connection: ConnectionId,
        subscription: u64,
    ) -> Result<(), BusError> {
        let known = self
            .sessions
            .get(&connection)
            .map(|session| &session.subscriptions);
        if !known.is_some_and(|subscriptions| subscriptions.contains_key(&subscription)) {
            return Err(BusError::invalid("there is no subscription of this number"));
        }
        self.detach(connection, subscription, &BTreeSet::new());
        Ok(())
    }

    /// The queue to take from, made if this is what its kind is about; and the one lane of it that is wanted, if so.
    fn find_queue(
        &mut self,
        connection: ConnectionId,
        wish: &Wish,
    ) -> Result<(QueueId, Option<u32>), BusError> {
        self.check_wish(connection, wish)?;
        self.check_selector(wish)?;
        let name = wish.destination.name();
        let queue = match (wish.destination.kind(), &wish.durable) {
            (DestinationKind::Topic, None) => {
                self.check_new_queue(&wish.destination, 0)?;
                self.plain_queue(connection, wish)
            }
            (DestinationKind::Topic, Some(durable)) => {
                self.durable_queue(connection, durable, wish)?
            }
            (DestinationKind::Queue, None) => {
                if let Some(found) = self.directory.resolve(name) {
                    return Ok(found);
                }
                self.check_new_queue(&wish.destination, 0)?;
                self.make_queue(QueueKind::Named {
                    name: name.to_owned(),
                    passing: true,
                })
            }
            (DestinationKind::TemporaryQueue, None) => self.temporary_queue(connection, name)?,
            (DestinationKind::Queue | DestinationKind::TemporaryQueue, Some(_)) => {
                let detail = "only a topic can have a durable subscription";
                return Err(BusError::invalid(detail));
            }
        };
        Ok((queue, None))
    }

    /// Lanes have an order that nobody may choose from.
    fn check_selector(&self, wish: &Wish) -> Result<(), BusError> {
        if wish.selector.is_none() {
            return Ok(());
        }
        if wish.destination.kind() == DestinationKind::TemporaryQueue {
            return Err(BusError::invalid(
                "a temporary queue's consumer can't have a selector",
            ));
        }
        let found = match wish.destination.kind() {
            DestinationKind::Queue => self.directory.resolve(wish.destination.name()),
            DestinationKind::Topic | DestinationKind::TemporaryQueue => None,
        };
        let queue = found.and_then(|(id, _)| self.queues.get(&id));
        if queue.is_some_and(Queue::has_lanes) {
            return Err(BusError::invalid(
                "where there are lanes, consumers have no selector",
            ));
        }
        Ok(())
    }

    pub(super) fn check_wish(&self, connection: ConnectionId, wish: &Wish) -> Result<(), BusError> {
        if is_administration(&wish.destination) {
            return Err(BusError::invalid(
                "requests to the administration are answered, not kept: nobody takes any",
            ));
        }
        let session = self.sessions.get(&connection).ok_or(BusError::Closed)?;
        if session.subscriptions.contains_key(&wish.subscription) {
            return Err(BusError::invalid(
                "there is a subscription of this number already",
            ));
        }
        if session.subscriptions.len() >= self.limits.subscriptions {
            return Err(limit(
                "a connection",
                "subscriptions",
                self.limits.subscriptions,
            ));
        }
        if wish.prefetch == 0 {
            return Err(BusError::invalid(
                "a subscription needs a prefetch of at least 1",
            ));
        }
        check_options(wish)?;
        check_ack_timeout(wish.ack_timeout, wish.ack)
    }

    /// Whether a queue may be made for a subscriber of this destination, when so many have ended.
    fn check_new_queue(&self, destination: &Destination, ended: usize) -> Result<(), BusError> {
        self.check_queues(ended)?;
        if self.directory.knows(destination) {
            return Ok(());
        }
        if check_name(destination.name()).is_ok() && self.templates.fits(destination) {
            return Ok(());
        }
        Err(BusError::UnknownDestination {
            destination: destination.clone(),
            remedy:
                "the bus makes the destinations of its server's repository.toml when it starts: \
                     name it there and restart the server"
                    .to_owned(),
        })
    }

    /// What a plain subscription has not taken yet, of what it wants.
    fn plain_queue(&mut self, connection: ConnectionId, wish: &Wish) -> QueueId {
        let id = self.make_queue(QueueKind::Plain {
            topic: wish.destination.name().to_owned(),
        });
        let filter = Filter {
            selector: wish.selector.clone(),
            not_from: wish.options.no_local.then_some(connection),
        };
        if filter != Filter::default()
            && let Some(queue) = self.queues.get_mut(&id)
        {
            queue.filter = Some(Box::new(filter));
        }
        id
    }

    /// Who comes back to a queue that exists is never refused for the number of all others.
    fn check_queues(&self, ended: usize) -> Result<(), BusError> {
        if self.queues.len().saturating_sub(ended) < self.limits.queues {
            return Ok(());
        }
        Err(limit(
            "the bus",
            "queues and subscriptions",
            self.limits.queues,
        ))
    }

    fn check_room(&self) -> Result<(), BusError> {
        if self.room {
            return Ok(());
        }
        Err(no_room())
    }

    fn temporary_queue(
        &mut self,
        connection: ConnectionId,
        name: &str,
    ) -> Result<QueueId, BusError> {
        if !name.starts_with(&temporary_prefix(self.boot, connection)) {
            return Err(BusError::invalid(
                "only its owner takes from a temporary queue",
            ));
        }
        if self.directory.temporary(name).is_some() {
            return Err(BusError::invalid("a temporary queue has one subscription"));
        }
        self.check_queues(0)?;
        Ok(self.make_queue(QueueKind::Temporary {
            name: name.to_owned(),
        }))
    }
}

/// Refuses a time to acknowledge in that is none, or where nothing is acknowledged.
pub(crate) fn check_ack_timeout(milliseconds: Option<i64>, ack: AckMode) -> Result<(), BusError> {
    let Some(milliseconds) = milliseconds else {
        return Ok(());
    };
    let fault = match (milliseconds, ack) {
        (_, AckMode::Auto) => "where nothing is acknowledged there is no time to do it in",
        (..1, _) => "a time to acknowledge in is at least 1 ms",
        _ => return Ok(()),
    };
    Err(BusError::invalid(fault))
}

/// Refuses what makes no sense for what is subscribed to.
fn check_options(wish: &Wish) -> Result<(), BusError> {
    let SubscribeOptions {
        no_local,
        shared,
        replace,
    } = wish.options;
    let is_topic = wish.destination.kind() == DestinationKind::Topic;
    let fault = match (no_local, shared || replace) {
        (true, _) if !is_topic => {
            "only a topic's subscription can leave out what its own connection sends"
        }
        (true, _) if shared => "a shared subscription is nobody's own, and so are all messages",
        (_, true) if wish.durable.is_none() => {
            "only a durable subscription can be shared or replaced"
        }
        _ => return Ok(()),
    };
    Err(BusError::invalid(fault))
}

fn limit(whose: &str, what: &str, limit: usize) -> BusError {
    let detail = format!("{whose} has at most {limit} {what}");
    BusError::Refused {
        name: "LIMIT".to_owned(),
        detail,
    }
}
