//! Who wants a message that is sent.

use std::borrow::Cow;

use super::{
    Core,
    message::{MessageId, NewMessage, Parts},
    queue::QueueKind,
    selector::Selector,
    unit::QueueId,
};
use crate::embedded::connection::ConnectionId;

impl Core {
    /// Those of these queues that a message of this sender's will come to, once so many others have been sent.
    pub(super) fn wanting<'t>(
        &self,
        sender: ConnectionId,
        message: &NewMessage,
        after: usize,
        targets: &'t [QueueId],
    ) -> Cow<'t, [QueueId]> {
        if !targets.iter().any(|id| self.chooses(*id)) {
            return Cow::Borrowed(targets);
        }
        let next = self.next_message_id();
        let id = MessageId {
            seq: next.seq.saturating_add(after as u64),
            ..next
        };
        let wanting = self.those_who_want(targets.to_vec(), sender, |core, lasting| {
            Parts::of(message, id, core.client_id(sender), core.now, lasting)
        });
        Cow::Owned(wanting)
    }

    /// Those of these queues whose subscriptions want a message. What it consists of is looked at only if one chooses.
    pub(super) fn those_who_want<'a>(
        &'a self,
        mut targets: Vec<QueueId>,
        sender: ConnectionId,
        parts: impl FnOnce(&'a Self, bool) -> Parts<'a>,
    ) -> Vec<QueueId> {
        if targets.iter().any(|id| self.chooses(*id)) {
            let lasting = targets.iter().any(|id| self.is_lasting(*id));
            let parts = parts(self, lasting);
            targets.retain(|id| self.is_wanted(*id, &parts, sender));
        }
        targets
    }

    /// A connection's client id; empty if it has none.
    pub(super) fn client_id(&self, connection: ConnectionId) -> &str {
        let session = self.sessions.get(&connection);
        session.map_or("", |session| &session.client_id)
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

    /// Whether the subscription behind a queue wants the message.
    fn is_wanted(&self, id: QueueId, message: &Parts<'_>, sender: ConnectionId) -> bool {
        let Some(queue) = self.queues.get(&id) else {
            return false;
        };
        let selects = |selector: &Option<Selector>| {
            let selector = selector.as_ref();
            selector.is_none_or(|selector| selector.selects_of(message))
        };
        if let Some(filter) = &queue.filter {
            return filter.not_from != Some(sender) && selects(&filter.selector);
        }
        match (&queue.subscriber, &queue.kind) {
            (Some(subscriber), QueueKind::Durable { client_id, .. }) => {
                let is_own = || self.client_id(sender) == client_id;
                selects(&subscriber.selector) && !(subscriber.no_local && is_own())
            }
            _ => true,
        }
    }
}
