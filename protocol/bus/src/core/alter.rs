//! Changing what a queue is like, at a start or in between; with messages in it where that can be.

use pillarbox_messages::{Destination, DestinationKind};

use super::{
    Core,
    attributes::{Lanes, QueueAttributes},
    directory::definition_of,
    message::NewMessage,
    queue::Queue,
    unit::{Entry, QueueId},
};
use crate::error::BusError;

impl Core {
    /// Changes a queue's lanes, while everything goes on. `drain`: messages in it are no obstacle; they are dealt with
    /// in their lanes before those that come from now on.
    pub(super) fn alter(
        &mut self,
        destination: &Destination,
        lanes: Lanes,
        drain: bool,
    ) -> Result<(), BusError> {
        let name = destination.name();
        let id = self.named_queue(destination)?;
        let Some(queue) = self.queues.get(&id) else {
            return Ok(());
        };
        let attributes = QueueAttributes {
            lanes,
            ..queue.attributes.clone()
        };
        if queue.next.is_some() {
            return Err(draining(name, queue));
        }
        attributes.check(name)?;
        self.check_parts(name, &attributes)?;
        self.alter_queue(id, name, &attributes, drain)
    }

    pub(super) fn alter_queue(
        &mut self,
        id: QueueId,
        name: &str,
        attributes: &QueueAttributes,
        drain: bool,
    ) -> Result<(), BusError> {
        let touched = self.is_staged_for(id);
        let border = self.next_message_id();
        let Some(queue) = self.queues.get_mut(&id) else {
            return Ok(());
        };
        if queue.attributes == *attributes {
            return Ok(());
        }
        let moves = queue.attributes.lanes != attributes.lanes;
        if moves && queue.next.is_some() {
            return Err(draining(name, queue));
        }
        if queue.attributes.order != attributes.order && !queue.messages.is_empty() {
            let count = queue.messages.len();
            return Err(BusError::QueueNotEmpty {
                detail: format!(
                    "the order of queue '{name}' can't be changed while messages are in it ({count}); leave it as it was until it is empty"
                ),
            });
        }
        if moves && queue.choosy > 0 {
            return Err(BusError::invalid(format!(
                "queue '{name}' can't get lanes while a consumer chooses by a selector; close it first"
            )));
        }
        match obstacle(queue, attributes, touched).filter(|_| moves) {
            Some(what) if !drain => {
                return Err(BusError::QueueNotEmpty {
                    detail: format!(
                        "the lanes of queue '{name}' can't be changed while {what}; wait until it is empty, or change \
                         them with drain (drain = true in its [[bus_server.queues]])"
                    ),
                });
            }
            Some(_) => {
                queue.begin_drain(attributes.clone(), border);
                self.draining.insert(id);
            }
            None if queue.next.is_some() || queue.is_under_way() => {
                queue.attributes = attributes.clone();
            }
            None => queue.become_like(attributes.clone(), None),
        }
        self.write_definition(id);
        self.close_stranded(id);
        Ok(())
    }

    /// Where nothing is left that others wait for, those take its place.
    pub(super) fn end_drains(&mut self) {
        let drained = self.draining.iter().copied().filter(|id| {
            let queue = self.queues.get(id);
            queue.is_none_or(|queue| queue.undrained() == 0)
        });
        for id in drained.collect::<Vec<_>>() {
            self.draining.remove(&id);
            if let Some(queue) = self.queues.get_mut(&id) {
                queue.end_drain();
                self.write_definition(id);
                self.close_stranded(id);
            }
        }
    }

    /// The queues where some messages wait until others are gone, and how many those are.
    pub(crate) fn drains(&self) -> impl Iterator<Item = (String, usize)> {
        self.draining.iter().filter_map(|id| {
            let queue = self.queues.get(id)?;
            Some((self.name_of(*id), queue.undrained()))
        })
    }

    /// Writes down what a queue is like from now on, and tells whoever names it or its lanes.
    fn write_definition(&mut self, id: QueueId) {
        self.note_names();
        self.draft.dirty.insert(id);
        if let Some(definition) = self.queues.get(&id).and_then(definition_of) {
            let queue = id;
            self.draft.write_synced(Entry::Define { queue, definition });
        }
    }

    /// Closes the subscriptions to lanes that there are no more.
    fn close_stranded(&mut self, id: QueueId) {
        let Some(queue) = self.queues.get(&id) else {
            return;
        };
        let count = queue.numbered_lanes();
        let name = self.name_of(id);
        for consumer in queue.stranded() {
            let part = consumer.part.unwrap_or_default();
            let reason = BusError::invalid(no_lane(&name, part, count));
            self.close_subscription(consumer.connection, consumer.subscription, reason);
        }
    }

    /// Refuses what is sent to a lane that ends as soon as what is in it is gone.
    pub(super) fn check_part(&self, message: &NewMessage) -> Result<(), BusError> {
        if self.draining.is_empty() || message.destination.kind() != DestinationKind::Queue {
            return Ok(());
        }
        let Some((id, Some(part))) = self.directory.resolve(message.destination.name()) else {
            return Ok(());
        };
        let lanes = self.queues.get(&id).map(|queue| queue.attributes.lanes);
        let count = lanes.map_or(0, Lanes::numbered);
        if part < count {
            return Ok(());
        }
        Err(BusError::invalid(no_lane(&self.name_of(id), part, count)))
    }

    /// Whether an open transaction has something to send to this queue.
    pub(super) fn is_staged_for(&self, id: QueueId) -> bool {
        let open = self
            .sessions
            .values()
            .flat_map(|it| it.transactions.values());
        open.into_iter().any(|it| it.sends_to(id))
    }
}

/// Why lanes can't be changed at once. Messages under way keep their lanes, and a number of lanes has told senders where
/// to send.
fn obstacle(queue: &Queue, attributes: &QueueAttributes, touched: bool) -> Option<String> {
    let numbered = |lanes: Lanes| matches!(lanes, Lanes::Hashed { .. });
    let fixed = numbered(queue.attributes.lanes) || numbered(attributes.lanes);
    let count = queue.messages.len();
    if (fixed && count > 0) || queue.is_under_way() {
        return Some(format!("messages are in it ({count})"));
    }
    (fixed && touched).then(|| "an open transaction has messages for it".to_owned())
}

fn draining(name: &str, queue: &Queue) -> BusError {
    BusError::Draining {
        queue: name.to_owned(),
        left: queue.undrained(),
        lanes: lines_for(queue.attributes.lanes),
    }
}

/// What to write in node.toml for these lanes.
fn lines_for(lanes: Lanes) -> String {
    let hash = lanes
        .hash_in_words()
        .map(|hash| format!(", lane_hash = \"{hash}\""));
    let hash = hash.unwrap_or_default();
    format!("lanes = \"{}\"{hash}", lanes.in_words())
}

fn no_lane(queue: &str, part: u32, count: u32) -> String {
    match count.checked_sub(1) {
        Some(last) => format!(
            "{queue} is changed to {count} lanes and has no lane {part} any more; address 0 to {last}"
        ),
        None => {
            format!("{queue} is changed and has no lane {part} any more; address it as a whole")
        }
    }
}
