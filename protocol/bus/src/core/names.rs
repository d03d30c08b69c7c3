//! What queues are called where people and messages name them.

use pillarbox_messages::{Destination, DestinationKind};

use super::{Core, message::QueuedMessage, queue::QueueKind, unit::QueueId};
use crate::{admin::SUBSCRIPTION, spelling};

impl Core {
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

    /// The durable subscription of a name that is made for where it is taken for a queue.
    pub(super) fn subscription_named(&self, name: &str) -> Option<QueueId> {
        let (client_id, own_name) = name.strip_prefix(SUBSCRIPTION)?.split_once('.')?;
        let client_id = client_id.replace("%2E", ".").replace("%25", "%");
        let found = self.directory.durable(&client_id, own_name);
        found.filter(|_| subscription_name(&client_id, own_name) == name)
    }
}

/// Where a durable subscription is taken for a queue. A client's dots are written otherwise, so that `a.b` with `c` is not
/// `a` with `b.c`.
fn subscription_name(client_id: &str, name: &str) -> String {
    let client_id = client_id.replace('%', "%25").replace('.', "%2E");
    format!("{SUBSCRIPTION}{client_id}.{name}")
}
