//! Messages that go from one queue to another, and back.

use std::sync::Arc;

use pillarbox_messages::{Destination, DestinationKind};

use super::{
    Core,
    message::{Failure, MessageId, Parts, QueuedMessage, Reason},
    queue::State,
    unit::{Place, QueueId},
};
use crate::{admin::SUBSCRIPTION, spelling};

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

impl Core {
    /// Moves a message to the queue of this name, in the same unit as whatever else this step does. Without such a
    /// queue the error queue takes it.
    pub(super) fn move_message(
        &mut self,
        queue: QueueId,
        id: MessageId,
        reason: Reason,
        target: Option<&str>,
        failure: Option<Failure>,
    ) -> Option<(Arc<QueuedMessage>, QueueId)> {
        let held = self.discard(queue, id)?;
        let original = self.original_destination(queue, &held.message);
        let target = target.and_then(|name| self.directory.queue(name));
        let target = target.unwrap_or_else(|| self.error_queue());
        let id = self.id_in(target, id);
        let message = held.message.changed(|parts| {
            parts.id = id;
            to_error_queue(parts, reason, &original);
            parts.failure = failure;
        });
        // A queue with a limit of its own counts by itself; elsewhere it is seen how often it has failed.
        let backout_count = match self.backout_limit(target) {
            Some(_) => 0,
            None => held.backout_count,
        };
        let place = Place {
            delivery_count: held.delivery_count,
            backout_count,
            ..Place::fresh(target)
        };
        let message = Arc::new(message);
        self.enter(&message, place);
        Some((message, target))
    }

    /// What a message is called where it comes to from another queue: as before, unless it is there already, out of the
    /// hands of another subscriber to its topic.
    fn id_in(&mut self, target: QueueId, id: MessageId) -> MessageId {
        let queue = self.queues.get(&target);
        if queue.is_none_or(|queue| queue.messages.get(&id).is_none()) {
            return id;
        }
        self.take_message_id()
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
        self.enter(&Arc::new(message), Place::fresh(target));
        true
    }
}

pub(super) fn to_error_queue<'a>(message: &mut Parts<'a>, reason: Reason, original: &'a str) {
    message.original_destination.get_or_insert(original);
    message.reason = Some(reason);
    message.expires_at = None;
    message.not_before = None;
}
