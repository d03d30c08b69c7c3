//! Messages that fail too often: moved aside, told about, and sent back by hand.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use pillarbox_messages::{Destination, DestinationKind};

use super::{
    Core,
    attributes::OnLanePoison,
    message::{Cause, Failure, MessageId, QueuedMessage, Reason},
    queue::{QueueKind, State},
    unit::{Entry, Place, QueueId},
};
use crate::{
    admin::SUBSCRIPTION,
    embedded::connection::{ConnectionId, Event, Token},
    error::BusError,
    spelling,
};

/// A message was moved aside because it had failed too often, or its consumer refused it for good. Told at most once an
/// hour for each queue, so that somebody looks; not for every message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoisonMoved {
    /// Where it stood, in STOMP spelling.
    pub queue: String,
    /// Where it stands now, in STOMP spelling.
    pub moved_to: String,
    /// The message.
    pub message_id: MessageId,
    /// Its correlation id.
    pub correlation_id: Option<String>,
    /// Its message group.
    pub group: Option<String>,
    /// Why it was moved.
    pub reason: Reason,
    /// What went wrong the last time.
    pub cause: Cause,
    /// How often it had come back counted.
    pub backouts: u32,
    /// How many more were moved out of this queue since it was last told about.
    pub others: u64,
}

/// For so long nothing more is told about a queue, in milliseconds.
const QUIET: i64 = 3_600_000;

impl Core {
    /// How often a message may come back counted; `None`: as often as it likes.
    pub(super) fn backout_limit(&self, queue: QueueId) -> Option<u32> {
        let attributes = self.queues.get(&queue).map(|queue| &queue.attributes);
        attributes
            .filter(|_| !self.is_sink(queue))
            .and_then(|attributes| attributes.backout_limit)
    }

    /// Whether a message that has come back so often must be moved.
    pub(super) fn is_poison(&self, queue: QueueId, backouts: u32) -> bool {
        let limit = self.backout_limit(queue);
        limit.is_some_and(|limit| backouts >= limit)
    }

    /// Moves a message to where its queue wants what failed, and what follows it in its lane if the queue wants that;
    /// in the same unit as whatever else this step does.
    pub(super) fn move_aside(
        &mut self,
        queue_id: QueueId,
        id: MessageId,
        reason: Reason,
        cause: Cause,
    ) {
        let Some(queue) = self.queues.get(&queue_id) else {
            return;
        };
        let target = queue.attributes.backout_queue.clone();
        let parks = queue.attributes.on_lane_poison == OnLanePoison::Park;
        let following = match queue.messages.get(&id) {
            Some(held) if parks => queue.followers(held),
            _ => Vec::new(),
        };
        let Some(moved) = self.fail_to(queue_id, id, reason, target.as_deref(), cause) else {
            return;
        };
        let mut count = 1;
        self.tell_moved(queue_id, &moved);
        for id in following {
            let (reason, cause) = (Reason::Backout, Cause::Parked);
            let parked = self.fail_to(queue_id, id, reason, target.as_deref(), cause);
            count += u64::from(parked.is_some());
        }
        self.counters.backed_out += count;
        if let Some(queue) = self.queues.get_mut(&queue_id) {
            queue.backed_out += count;
        }
    }

    fn fail_to(
        &mut self,
        queue: QueueId,
        id: MessageId,
        reason: Reason,
        target: Option<&str>,
        cause: Cause,
    ) -> Option<Moved> {
        let failure = Failure {
            failed_at: self.now,
            cause,
        };
        let backouts = self.queues.get(&queue)?.messages.get(&id)?.backout_count;
        let (message, target) = self.move_message(queue, id, reason, target, Some(failure))?;
        Some(Moved {
            message,
            target,
            cause,
            backouts,
        })
    }

    /// Tells of a message moved, unless its queue was told about within the last hour.
    fn tell_moved(&mut self, queue_id: QueueId, moved: &Moved) {
        let moved_to = self.name_of(moved.target);
        let queue_name = self.name_of(queue_id);
        let now = self.now;
        let Some(queue) = self.queues.get_mut(&queue_id) else {
            return;
        };
        if queue
            .told_at
            .is_some_and(|at| now < at.saturating_add(QUIET))
        {
            queue.untold += 1;
            return;
        }
        queue.told_at = Some(now);
        let others = std::mem::take(&mut queue.untold);
        let message = &moved.message;
        let moved = PoisonMoved {
            queue: queue_name,
            moved_to,
            message_id: message.id,
            correlation_id: message.correlation_id().map(str::to_owned),
            group: message.group().map(str::to_owned),
            reason: message.reason().unwrap_or(Reason::Backout),
            cause: moved.cause,
            backouts: moved.backouts,
            others,
        };
        self.draft.tell(moved.into());
    }

    /// A queue's name in STOMP spelling.
    pub(super) fn name_of(&self, queue: QueueId) -> String {
        match self.queues.get(&queue).map(|queue| &queue.kind) {
            Some(QueueKind::Named { name, .. }) => spelling::to_stomp(&Destination::queue(name)),
            Some(QueueKind::Durable {
                client_id, name, ..
            }) => spelling::to_stomp(&Destination::queue(&subscription_name(client_id, name))),
            Some(QueueKind::Plain { topic }) => spelling::to_stomp(&Destination::topic(topic)),
            Some(QueueKind::Temporary { name }) => {
                let destination = Destination::new(DestinationKind::TemporaryQueue, name);
                spelling::to_stomp(&destination)
            }
            None => String::new(),
        }
    }

    /// Where a message that stands in this queue came from, as it is to be written on it.
    pub(super) fn original_destination(&self, queue: QueueId, message: &QueuedMessage) -> String {
        let sent_to = message.destination();
        let is_part = sent_to.kind() == DestinationKind::Queue
            && self.directory.resolve(sent_to.name()).map(|(id, _)| id) == Some(queue);
        if is_part {
            spelling::to_stomp(sent_to)
        } else {
            self.name_of(queue)
        }
    }

    /// Does what a connection's [`Command::Retry`] asks for.
    ///
    /// [`Command::Retry`]: crate::embedded::connection::Command::Retry
    pub(super) fn retry_for(
        &mut self,
        connection: ConnectionId,
        source: &Destination,
        ids: &[MessageId],
        token: Token,
    ) {
        let done = self.retry(source, ids);
        self.answer_counted(connection, done, token);
    }

    /// Does what a connection's [`Command::Delete`] asks for.
    ///
    /// [`Command::Delete`]: crate::embedded::connection::Command::Delete
    pub(super) fn delete_for(
        &mut self,
        connection: ConnectionId,
        source: &Destination,
        ids: &[MessageId],
        token: Token,
    ) {
        let done = self.delete(source, ids);
        self.answer_counted(connection, done, token);
    }

    fn answer_counted(
        &mut self,
        connection: ConnectionId,
        done: Result<(usize, usize), BusError>,
        token: Token,
    ) {
        match done {
            Ok((returned, skipped)) => {
                self.draft.need_sync();
                let event = Event::Returned {
                    token,
                    returned,
                    skipped,
                };
                self.draft.post(connection, event);
            }
            Err(error) => self.answer(connection, token, Err(error)),
        }
    }

    /// Returns how many messages are gone, and how many were left alone: what somebody has in hand is his.
    fn delete(
        &mut self,
        source: &Destination,
        ids: &[MessageId],
    ) -> Result<(usize, usize), BusError> {
        let queue_id = self.moved_from(source)?;
        let mut deleted = 0;
        for id in ids {
            let held = self
                .queues
                .get(&queue_id)
                .and_then(|it| it.messages.get(id));
            let free = held.is_some_and(|held| !matches!(held.state, State::InFlight(_)));
            if free && self.discard(queue_id, *id).is_some() {
                deleted += 1;
            }
        }
        Ok((deleted, ids.len() - deleted))
    }

    fn moved_from(&self, source: &Destination) -> Result<QueueId, BusError> {
        let known = self.directory.queue(source.name());
        let queue = known.filter(|_| source.kind() == DestinationKind::Queue);
        queue.ok_or_else(|| BusError::UnknownDestination {
            destination: source.clone(),
            remedy: "name a queue that is there".to_owned(),
        })
    }

    /// Sends messages back to where they stood before they were moved, as if nothing had happened to them. Those in
    /// somebody's hands, and those that came from nowhere, are left alone.
    ///
    /// Returns how many went back, and how many did not.
    fn retry(
        &mut self,
        source: &Destination,
        ids: &[MessageId],
    ) -> Result<(usize, usize), BusError> {
        let queue_id = self.moved_from(source)?;
        let targets = ids.iter().map(|id| match self.way_back(queue_id, *id) {
            Way::To(target) => Ok(Some(target)),
            Way::InHand | Way::NotMoved => Ok(None),
            Way::NotThere => {
                let detail = format!("there is no message {id} in {}", self.name_of(queue_id));
                Err(BusError::bad_id(detail))
            }
            Way::Gone(destination) => Err(BusError::UnknownDestination {
                destination,
                remedy: format!("message {id} can't go back to it"),
            }),
        });
        let targets: Vec<Option<QueueId>> = targets.collect::<Result<_, _>>()?;
        let mut returned = 0;
        for (id, target) in ids.iter().zip(targets) {
            if let Some(target) = target
                && self.send_back(queue_id, *id, target)
            {
                returned += 1;
            }
        }
        Ok((returned, ids.len() - returned))
    }

    /// The way of a message back to where it stood before it was moved.
    pub(super) fn way_back(&self, queue_id: QueueId, id: MessageId) -> Way {
        let queue = self.queues.get(&queue_id);
        let Some(held) = queue.and_then(|queue| queue.messages.get(&id)) else {
            return Way::NotThere;
        };
        if matches!(held.state, State::InFlight(_)) {
            return Way::InHand;
        }
        let original = held.message.original_destination();
        let Some(destination) = original.and_then(spelling::from_stomp) else {
            return Way::NotMoved;
        };
        match self.standing_place(&destination) {
            Some(target) if target == queue_id => Way::NotMoved,
            Some(target) => Way::To(target),
            None => Way::Gone(destination),
        }
    }

    fn standing_place(&self, destination: &Destination) -> Option<QueueId> {
        let name = destination.name();
        match destination.kind() {
            DestinationKind::Queue if name.starts_with(SUBSCRIPTION) => {
                self.subscription_named(name)
            }
            DestinationKind::Queue => self.directory.resolve(name).map(|(id, _)| id),
            DestinationKind::TemporaryQueue => self.directory.temporary(name),
            DestinationKind::Topic => None,
        }
    }

    /// The durable subscription of a name that is made for where it is taken for a queue.
    pub(super) fn subscription_named(&self, name: &str) -> Option<QueueId> {
        let (client_id, own_name) = name.strip_prefix(SUBSCRIPTION)?.split_once('.')?;
        let client_id = client_id.replace("%2E", ".").replace("%25", "%");
        let found = self.directory.durable(&client_id, own_name);
        found.filter(|_| subscription_name(&client_id, own_name) == name)
    }

    pub(super) fn send_back(&mut self, queue: QueueId, id: MessageId, target: QueueId) -> bool {
        let Some(held) = self.discard(queue, id) else {
            return false;
        };
        let id = self.id_in(target, id);
        let message = held.message.changed(|parts| {
            parts.id = id;
            parts.original_destination = None;
            parts.reason = None;
            parts.failure = None;
        });
        let (message, place) = (Arc::new(message), Place::fresh(target));
        let stored = message.persistent && self.is_lasting(target);
        self.hold(&message, place, stored);
        if stored {
            self.draft.write_synced(Entry::Put {
                message,
                places: vec![place],
            });
        }
        true
    }

    /// The process had ended with messages in the hands of consumers within it. The oldest of each consumer's (of each
    /// lane) may be what ended it, and counts.
    pub(super) fn blame_hands(&mut self) {
        for queue_id in self.queues.keys().copied().collect::<Vec<_>>() {
            let Some(queue) = self.queues.get(&queue_id) else {
                continue;
            };
            let mut oldest: BTreeMap<_, (u64, MessageId)> = BTreeMap::new();
            let mut marked = Vec::new();
            for (id, held) in queue.messages.iter() {
                let Some(hand) = held.hand() else { continue };
                marked.push(id);
                let first = oldest
                    .entry((hand.consumer, held.lane))
                    .or_insert((hand.delivery, id));
                *first = (*first).min((hand.delivery, id));
            }
            let blamed: BTreeSet<MessageId> = oldest.values().map(|(_, id)| *id).collect();
            for id in marked {
                self.blame_hand(queue_id, id, blamed.contains(&id));
            }
        }
    }

    fn blame_hand(&mut self, queue_id: QueueId, id: MessageId, counts: bool) {
        let Some(queue) = self.queues.get_mut(&queue_id) else {
            return;
        };
        let Some(held) = queue.messages.get_mut(&id) else {
            return;
        };
        if held.message.is_expired(self.now) {
            return self.expire_message(queue_id, id);
        }
        held.set_hand(None);
        if counts {
            held.backout_count = held.backout_count.saturating_add(1);
        }
        let backouts = held.backout_count;
        if counts && self.is_poison(queue_id, backouts) {
            self.move_aside(queue_id, id, Reason::Backout, Cause::ProcessEnded);
        } else {
            self.write_place(queue_id, id);
        }
    }
}

/// Whether a message can go back to where it stood before it was moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Yes: to this queue.
    To(QueueId),
    /// It is not there.
    NotThere,
    /// A consumer has it in hand.
    InHand,
    /// It was not moved there from anywhere else.
    NotMoved,
    /// The place that it came from is not there any more.
    Gone(Destination),
}

/// A message that was moved, and where to.
struct Moved {
    message: Arc<QueuedMessage>,
    target: QueueId,
    cause: Cause,
    backouts: u32,
}

/// Where a durable subscription is taken for a queue. A client's dots are written otherwise, so that `a.b` with `c` is not
/// `a` with `b.c`.
fn subscription_name(client_id: &str, name: &str) -> String {
    let client_id = client_id.replace('%', "%25").replace('.', "%2E");
    format!("{SUBSCRIPTION}{client_id}.{name}")
}
