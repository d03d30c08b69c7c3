//! Sending out of order: to the top of a queue, or directly before one of its messages.

use std::{ops::Bound, sync::Arc};

use pillarbox_messages::DestinationKind;

use super::{
    Core,
    message::{MessageId, NewMessage},
    queue::{Queue, State},
    rank::SortKey,
    unit::QueueId,
};
use crate::error::BusError;

/// Where a message is to stand, if not where the queue's order puts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Before everything that is there.
    Top,
    /// Directly before this one.
    Before(MessageId),
}

impl Wanted {
    pub(super) fn of(message: &NewMessage) -> Option<Self> {
        match message.before {
            Some(anchor) => Some(Self::Before(anchor)),
            None => message.top.then_some(Self::Top),
        }
    }
}

impl Core {
    /// Refuses a message that wants to a place that it can't have.
    pub(super) fn check_position(&self, message: &NewMessage) -> Result<(), BusError> {
        let Some(wanted) = Wanted::of(message) else {
            return Ok(());
        };
        if message.top && message.before.is_some() {
            return Err(BusError::invalid(
                "a message can't go to the top and before another one",
            ));
        }
        if message.destination.kind() != DestinationKind::Queue {
            return Err(BusError::invalid(
                "only a message to a queue can be sent out of order",
            ));
        }
        // Without the queue the message goes to the error queue, where it has no place to want.
        let queue = self.directory.resolve(message.destination.name());
        let Some(queue) = queue.and_then(|(id, _)| self.queues.get(&id)) else {
            return Ok(());
        };
        let allowed = queue.attributes.out_of_order;
        let (allowed, how) = match wanted {
            Wanted::Top => (allowed.top, "to its top"),
            Wanted::Before(_) => (allowed.before, "before another message"),
        };
        if !allowed {
            let destination = &message.destination;
            let detail = format!("{destination} does not let messages be sent {how}");
            return Err(BusError::invalid(detail));
        }
        match wanted {
            Wanted::Before(anchor) => queue.check_anchor(anchor),
            Wanted::Top => Ok(()),
        }
    }

    /// The rank of a new message at the place that it wants. A checked anchor is there.
    pub(super) fn position(
        &mut self,
        queue_id: QueueId,
        id: MessageId,
        wanted: Option<Wanted>,
    ) -> Option<SortKey> {
        let anchor = match wanted? {
            Wanted::Top => return Some(SortKey::at_the_top(id)),
            Wanted::Before(anchor) => anchor,
        };
        let queue = self.queues.get_mut(&queue_id)?;
        if let Some(key) = queue.key_before(anchor)? {
            return Some(key);
        }
        let moved = queue.spread(anchor)?;
        for id in moved {
            let held = self.queues.get(&queue_id)?.messages.get(&id)?;
            if held.is_stored() {
                let place = held.place(queue_id);
                self.draft.write_count(id, place);
            }
        }
        self.queues.get_mut(&queue_id)?.key_before(anchor)?
    }
}

impl Queue {
    /// Nobody can go before a message that is not there, or that may be gone the next moment.
    fn check_anchor(&self, anchor: MessageId) -> Result<(), BusError> {
        let state = self.messages.get(&anchor).map(|held| held.state);
        match state {
            Some(State::Ready | State::Scheduled(_)) => Ok(()),
            Some(State::InFlight(_)) => Err(BusError::bad_id(format!(
                "message {anchor} is in a consumer's hands"
            ))),
            None => Err(BusError::bad_id(format!(
                "there is no message {anchor} in the queue"
            ))),
        }
    }

    /// A rank directly before the anchor; `Some(None)` if there is no gap left.
    fn key_before(&self, anchor: MessageId) -> Option<Option<SortKey>> {
        let key = self.key(self.messages.get(&anchor)?);
        let lowest = key.with_sub(i64::MIN);
        let previous = self.inserted.range(lowest..key).next_back();
        let from = previous.map_or(i64::MIN, |(previous, _)| previous.sub);
        let middle = i64::midpoint(from, key.sub);
        Some((middle > from && middle < key.sub).then(|| key.with_sub(middle)))
    }

    /// Gives those that were sent before the same message as the anchor ranks with gaps between them, in the same
    /// order; returns them.
    fn spread(&mut self, anchor: MessageId) -> Option<Vec<MessageId>> {
        let key = self.key(self.messages.get(&anchor)?);
        let run = (
            Bound::Included(key.with_sub(i64::MIN)),
            Bound::Excluded(key.with_sub(0)),
        );
        let run = self.inserted.range(run);
        let run: Vec<(SortKey, MessageId)> = run.map(|(key, id)| (*key, *id)).collect();
        let places = i64::try_from(run.len()).ok()?.checked_add(1)?;
        let step = i64::MAX / places;
        // All go before any comes: a new rank may be another's old one.
        for (key, id) in &run {
            self.inserted.remove(key);
            self.withdraw(key);
            self.messages.get(id)?;
        }
        let mut sub = -i64::MAX;
        for (key, id) in &run {
            sub += step;
            self.reposition(*id, key.with_sub(sub.min(-1)));
        }
        Some(run.into_iter().map(|(_, id)| id).collect())
    }

    fn reposition(&mut self, id: MessageId, key: SortKey) {
        let Some(held) = self.messages.get_mut(&id) else {
            return;
        };
        held.set_position(key);
        self.inserted.insert(key, id);
        if held.state == State::Ready {
            let message = Arc::clone(&held.message);
            self.offer(key, &message);
        }
    }
}
