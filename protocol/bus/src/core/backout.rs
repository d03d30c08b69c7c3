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
    moving::Way,
    queue::State,
    unit::QueueId,
};
use crate::{
    embedded::connection::{ConnectionId, Event, Token},
    error::BusError,
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
        let Some(others) = queue.moves.due(now) else {
            return queue.moves.note();
        };
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

/// A message that was moved, and where to.
struct Moved {
    message: Arc<QueuedMessage>,
    target: QueueId,
    cause: Cause,
    backouts: u32,
}
