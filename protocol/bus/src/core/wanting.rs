//! Who wants a message that is about to be sent.

use super::{
    Core,
    message::{Addresses, MessageId, NewMessage, Parts, QueuedMessage},
    unit::QueueId,
};
use crate::embedded::connection::ConnectionId;

impl Core {
    /// The queues that a message of this sender's will come to, once so many others have been sent: those whose
    /// subscriptions choose it.
    pub(super) fn wanting(
        &self,
        sender: ConnectionId,
        message: &NewMessage,
        after: usize,
    ) -> Vec<QueueId> {
        let mut targets = self.directory.targets(&message.destination);
        if targets.iter().any(|id| self.chooses(*id)) {
            let lasting = targets.iter().any(|id| self.is_lasting(*id));
            let preview = self.preview(sender, message, (after, lasting));
            targets.retain(|id| self.is_wanted(*id, &preview, sender));
        }
        targets
    }

    /// Whether a queue's subscription does not want everything.
    fn chooses(&self, id: QueueId) -> bool {
        let queue = self.queues.get(&id);
        queue.is_some_and(|queue| {
            let subscriber = queue.subscriber.as_ref();
            queue.filter.is_some()
                || subscriber.is_some_and(|it| it.selector.is_some() || it.no_local)
        })
    }

    /// The message as it will be, without its body, which nobody chooses by.
    fn preview(
        &self,
        sender: ConnectionId,
        message: &NewMessage,
        (after, lasting): (usize, bool),
    ) -> QueuedMessage {
        let next = self.next_message_id();
        let id = MessageId {
            seq: next.seq.saturating_add(after as u64),
            ..next
        };
        let session = self.sessions.get(&sender);
        let origin = session.map_or("", |session| &session.client_id);
        let parts = Parts {
            body: &[],
            ..Parts::of(message, id, origin, self.now, lasting)
        };
        parts.pack(&mut Addresses::default())
    }
}
