//! Taking one message, and looking at messages without taking them.

use std::{collections::BTreeSet, sync::Arc};

use pillarbox_messages::{Destination, DestinationKind};

use super::{
    Core,
    correlations::Correlations,
    message::{MessageId, QueuedMessage},
    queue::{Consumer, Queue, State, Wants},
    rank::SortKey,
    selector::Selector,
    session::SessionSubscription,
    subscribe::Wish,
    unit::QueueId,
};
use crate::{
    embedded::connection::{AckMode, ConnectionId, Event, Token, Wait},
    error::BusError,
};

/// A message that was looked at.
#[derive(Clone, Debug)]
pub struct Browsed {
    /// The message.
    pub message: Arc<QueuedMessage>,
    /// How often it has been handed out.
    pub delivery_count: u32,
    /// How often it has come back counted.
    pub backout_count: u32,
    /// Until when it waits (ms since 1970), if it does.
    pub waits_until: Option<i64>,
    /// Whether a consumer has it in hand.
    pub in_hand: bool,
}

/// How many messages one look shows.
const MOST_BROWSED: usize = 10_000;
/// How much one look shows, in bytes; one message at least.
const MOST_BROWSED_BYTES: u64 = 16 << 20;

/// Who takes a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taker {
    pub(super) connection: ConnectionId,
    pub(super) subscription: u64,
    pub(super) ack: AckMode,
}

impl Core {
    /// Takes one message: one that is there, or the first that comes while the taker waits.
    pub(super) fn get(&mut self, connection: ConnectionId, wish: Wish, wait: Wait, token: Token) {
        if let Err(error) = self.try_get(connection, wish, wait, token) {
            self.answer(connection, token, Err(error));
        }
    }

    fn try_get(
        &mut self,
        connection: ConnectionId,
        wish: Wish,
        wait: Wait,
        token: Token,
    ) -> Result<(), BusError> {
        self.check_wish(connection, &wish)?;
        let (queue_id, part) = self.standing_queue(&wish.destination)?;
        let Some(queue) = self.queues.get_mut(&queue_id) else {
            return Ok(());
        };
        let selector = wish.selector.clone();
        let found = queue.first_for_pull(selector.as_ref(), part);
        if found.is_none() && wait != Wait::No && selector.is_some() && queue.has_lanes() {
            return Err(BusError::invalid(
                "where there are lanes nobody can wait for a message of his choice",
            ));
        }
        let taker = Taker {
            connection,
            subscription: wish.subscription,
            ack: wish.ack,
        };
        let deadline = match wait {
            Wait::For(milliseconds) if found.is_none() => {
                Some(self.now.saturating_add(milliseconds.max(0)))
            }
            _ => None,
        };
        self.enter_once(taker, queue_id, deadline);
        self.answer(connection, token, Ok(()));
        match (found, wait) {
            (Some(id), _) => drop(self.hand(queue_id, id, taker, false)),
            (None, Wait::No) => self.nothing(taker, queue_id, selector.as_ref()),
            (None, Wait::For(_) | Wait::Forever) => {
                let consumer = Consumer {
                    connection,
                    subscription: wish.subscription,
                    ack: wish.ack,
                    prefetch: 1,
                    prefetch_bytes: u64::MAX,
                    in_flight: 0,
                    bytes: 0,
                    once: true,
                    part,
                    wants: selector.map(|it| Box::new(Wants::new(it))),
                };
                if let Some(queue) = self.queues.get_mut(&queue_id) {
                    queue.add_consumer(consumer);
                }
                self.draft.dirty.insert(queue_id);
            }
        }
        Ok(())
    }

    fn standing_queue(
        &self,
        destination: &Destination,
    ) -> Result<(QueueId, Option<u32>), BusError> {
        let name = destination.name();
        let found = match destination.kind() {
            DestinationKind::Queue => self.directory.resolve(name),
            DestinationKind::TemporaryQueue | DestinationKind::Topic => {
                let detail = "only of a queue one message can be taken or looked at";
                return Err(BusError::invalid(detail));
            }
        };
        found.ok_or_else(|| BusError::UnknownDestination {
            destination: destination.clone(),
            remedy: "name a queue that is there".to_owned(),
        })
    }

    fn enter_once(&mut self, taker: Taker, queue: QueueId, deadline: Option<i64>) {
        let number = self.next_subscription;
        self.next_subscription += 1;
        if let Some(session) = self.sessions.get_mut(&taker.connection) {
            let subscription = SessionSubscription {
                queue,
                ack: taker.ack,
                number,
                once: true,
                deadline,
                ack_timeout: None,
                overdue: None,
            };
            session
                .subscriptions
                .insert(taker.subscription, subscription);
        }
        if let Some(at) = deadline {
            self.waits
                .insert((at, taker.connection, taker.subscription));
        }
    }

    /// There is no message for the taker, who goes.
    fn nothing(&mut self, taker: Taker, queue: QueueId, selector: Option<&Selector>) {
        let in_use = self.is_in_use(queue, selector);
        let (connection, subscription) = (taker.connection, taker.subscription);
        self.detach(connection, subscription, &BTreeSet::new());
        let event = Event::NoMessage {
            subscription,
            in_use,
        };
        self.draft.post(connection, event);
    }

    /// Whether there are such messages, but in somebody's hands.
    fn is_in_use(&self, queue_id: QueueId, selector: Option<&Selector>) -> bool {
        let Some(queue) = self.queues.get(&queue_id) else {
            return false;
        };
        // Many may stop waiting at once.
        let Some(selector) = selector.filter(|_| queue.in_flight > 0) else {
            return queue.in_flight > 0;
        };
        let flights = self.sessions.values().flat_map(|it| it.flights.values());
        let mut own = flights.filter(|flight| flight.queue == queue_id);
        own.any(|flight| {
            let held = queue.messages.get(&flight.message);
            held.is_some_and(|held| selector.selects(&held.message))
        })
    }

    /// Whoever has waited long enough is told that there is nothing.
    pub(super) fn end_waits(&mut self) {
        while let Some(&(at, connection, subscription)) = self.waits.first()
            && at <= self.now
        {
            self.waits.pop_first();
            let session = self.sessions.get(&connection);
            let known = session.and_then(|session| session.subscriptions.get(&subscription));
            let Some(SessionSubscription { queue, ack, .. }) = known.copied() else {
                continue;
            };
            let own = self.queues.get_mut(&queue);
            let own = own.and_then(|queue| queue.consumer(connection, subscription));
            let selector = own.and_then(|it| it.wants.as_ref().map(|it| it.selector.clone()));
            let taker = Taker {
                connection,
                subscription,
                ack,
            };
            self.nothing(taker, queue, selector.as_ref());
        }
    }

    /// Shows messages of a queue in its order, and changes nothing: those that could be handed out now, or all.
    pub(super) fn browse(
        &mut self,
        connection: ConnectionId,
        subscription: u64,
        (destination, selector): (&Destination, Option<&Selector>),
        (limit, all): (usize, bool),
        token: Token,
    ) {
        let found = self.standing_queue(destination);
        let queue = match found {
            Ok((id, None)) => self.queues.get_mut(&id),
            Ok((_, Some(_))) => {
                let error = BusError::invalid("a lane by itself can't be looked at");
                return self.answer(connection, token, Err(error));
            }
            Err(error) => return self.answer(connection, token, Err(error)),
        };
        let Some(queue) = queue else { return };
        let (messages, more, after) = queue.shown(selector, limit.min(MOST_BROWSED), all);
        self.answer(connection, token, Ok(()));
        let event = Event::Browsed {
            subscription,
            messages,
            more,
        };
        // What is not written yet is nobody's to see.
        self.draft.deliver(connection, after, (false, false), event);
    }
}

impl Queue {
    /// The first message that one who takes only one can have: it stands in no lane, or is the first of one that
    /// nobody owns.
    pub(super) fn first_for_pull(
        &mut self,
        selector: Option<&Selector>,
        part: Option<u32>,
    ) -> Option<MessageId> {
        let candidates: Option<BTreeSet<MessageId>> = match selector {
            None => None,
            Some(selector) => self.named_by(selector),
        };
        let wanted = |id: &MessageId| {
            let message = self.messages.get(id).map(|held| &held.message);
            message.is_some_and(|message| selector.is_none_or(|it| it.selects(message)))
        };
        if let Some(candidates) = candidates {
            let keyed = candidates.iter().filter(|id| wanted(id)).filter_map(|id| {
                let held = self.messages.get(id)?;
                self.can_be_pulled(held, part)
                    .then(|| (self.key(held), *id))
            });
            return keyed.min().map(|(_, id)| id);
        }
        let loose = self.ready.iter().filter(|_| part.is_none());
        let loose = loose.into_iter().find(|(_, id)| wanted(id));
        let heads = self.lanes.iter().flat_map(|lanes| lanes.free_heads(part));
        let head = heads.filter(|(_, id)| wanted(id)).min();
        loose.into_iter().chain(head).min().map(|(_, id)| id)
    }

    fn can_be_pulled(&self, held: &super::queue::Held, part: Option<u32>) -> bool {
        if self.waits(&held.message) {
            return false;
        }
        match (held.lane, &self.lanes) {
            (Some(lane), Some(lanes)) => lanes.is_free_head(lane, self.key(held), part),
            _ => held.state == State::Ready && part.is_none(),
        }
    }

    /// The messages that a selector can mean at most, where it names one message or one correlation id.
    fn named_by(&mut self, selector: &Selector) -> Option<BTreeSet<MessageId>> {
        if let Some(id) = selector.only_equal("JMSMessageID") {
            return Some(id.parse().into_iter().collect());
        }
        let correlation = selector.only_equal("JMSCorrelationID")?;
        let index = self.by_correlation.get_or_insert_with(|| {
            let mut index = Correlations::default();
            for held in self.messages.values() {
                index.insert(&held.message);
            }
            index
        });
        Some(index.find(correlation).collect())
    }

    /// Those of these messages that could be handed out now, or all, in the queue's order.
    fn in_order(
        &self,
        ids: impl IntoIterator<Item = MessageId>,
        all: bool,
    ) -> std::vec::IntoIter<MessageId> {
        let ranked = ids.into_iter().filter_map(|id| {
            let held = self.messages.get(&id)?;
            let seen = all || held.state == State::Ready;
            seen.then(|| (self.waits(&held.message), self.key(held), id))
        });
        let mut ranked: Vec<(bool, SortKey, MessageId)> = ranked.collect();
        ranked.sort_unstable();
        let ids: Vec<MessageId> = ranked.into_iter().map(|(.., id)| id).collect();
        ids.into_iter()
    }

    /// The first messages that are wanted, whether there are more, and the unit that must be written before anybody
    /// may see them.
    fn shown(
        &mut self,
        selector: Option<&Selector>,
        limit: usize,
        all: bool,
    ) -> (Vec<Browsed>, bool, u64) {
        let named = selector.and_then(|selector| self.named_by(selector));
        let plain = self.lanes.is_none() && self.next.is_none();
        let order: Box<dyn Iterator<Item = MessageId>> = match named {
            Some(named) => Box::new(self.in_order(named, all)),
            None if plain && !all => Box::new(self.ready.iter().map(|(_, id)| id)),
            None => Box::new(self.in_order(self.messages.keys(), all)),
        };
        let (mut shown, mut bytes, mut after) = (Vec::new(), 0_u64, 0);
        for id in order {
            let Some(held) = self.messages.get(&id) else {
                continue;
            };
            if selector.is_some_and(|selector| !selector.selects(&held.message)) {
                continue;
            }
            bytes = bytes.saturating_add(held.message.size());
            if shown.len() >= limit || (bytes > MOST_BROWSED_BYTES && !shown.is_empty()) {
                return (shown, true, after);
            }
            after = after.max(held.unit());
            shown.push(Browsed {
                message: Arc::clone(&held.message),
                delivery_count: held.delivery_count,
                backout_count: held.backout_count,
                waits_until: match held.state {
                    State::Scheduled(at) => Some(at),
                    State::Ready | State::InFlight(_) => None,
                },
                in_hand: matches!(held.state, State::InFlight(_)),
            });
        }
        (shown, false, after)
    }
}
