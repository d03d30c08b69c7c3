//! What time alone brings about: scheduled messages become ready, old ones expire, transactions time out.

use super::{
    Core,
    attributes::OnExpiry,
    message::{MessageId, Reason},
    queue::State,
    unit::QueueId,
};

impl Core {
    pub(super) fn pass_time(&mut self) {
        self.wake_scheduled();
        self.expire();
        self.time_out_transactions();
        self.time_out_deliveries();
        self.end_waits();
        self.forget_old();
        self.cancel_abandoned();
    }

    fn wake_scheduled(&mut self) {
        while let Some(&(at, queue_id, id)) = self.due.first()
            && at <= self.now
        {
            self.due.pop_first();
            if let Some(queue) = self.queues.get_mut(&queue_id) {
                queue.set_state(id, State::Ready);
                self.draft.dirty.insert(queue_id);
            }
        }
    }

    /// A message in flight is left alone: it is consumed, or expires when it comes back.
    fn expire(&mut self) {
        while let Some(&(at, queue_id, id)) = self.expiry.first()
            && at <= self.now
        {
            self.expiry.pop_first();
            let held = self
                .queues
                .get(&queue_id)
                .and_then(|queue| queue.messages.get(&id));
            if held.is_some_and(|held| !matches!(held.state, State::InFlight(_))) {
                self.expire_message(queue_id, id);
            }
        }
    }

    /// Ends a message that is too old, as its queue wants it.
    pub(super) fn expire_message(&mut self, queue_id: QueueId, id: MessageId) {
        self.counters.expired += 1;
        if let Some(queue) = self.queues.get_mut(&queue_id) {
            queue.expired += 1;
        }
        let queue = self.queues.get(&queue_id);
        match queue.map(|queue| &queue.attributes.on_expiry) {
            Some(OnExpiry::Move(target)) if !self.is_sink(queue_id) => {
                let target = target.clone();
                self.move_message(queue_id, id, Reason::Expired, Some(&target), None);
            }
            _ => drop(self.discard(queue_id, id)),
        }
    }
}
