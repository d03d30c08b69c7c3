//! What a step has brought about so far.

use std::collections::BTreeSet;

use super::{
    Core,
    durable::Standing,
    message::MessageId,
    notice::Notice,
    unit::{Entry, Place, QueueId, Unit},
};
use crate::embedded::connection::{ConnectionId, Event};

/// What a step brought about.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    /// What must be written.
    pub(crate) unit: Option<Unit>,
    /// What must be told, in order for each connection.
    pub(crate) events: Vec<Posted>,
    /// Connections that ended.
    pub(crate) closed: Vec<ConnectionId>,
    /// Subscriptions that ended with messages on their way to them, which are others' now.
    pub(crate) detached: Vec<(ConnectionId, u64)>,
    /// What people must be told of, when the unit is written.
    pub(crate) notices: Vec<Notice>,
}

/// An event on its way to a connection.
#[derive(Debug)]
pub(crate) struct Posted {
    pub(crate) connection: ConnectionId,
    /// The unit that must be written before; 0: none.
    pub(crate) after: u64,
    /// Whether handing the event over consumes its message.
    pub(crate) auto: bool,
    /// Whether somebody waits for this one message, and must be told if it is too old by then.
    pub(crate) once: bool,
    pub(crate) event: Event,
}

/// Effects in the making.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    entries: Vec<Entry>,
    sync: bool,
    /// Somebody waits for all earlier units, too.
    barrier: bool,
    events: Vec<Posted>,
    closed: Vec<ConnectionId>,
    detached: Vec<(ConnectionId, u64)>,
    notices: Vec<Notice>,
    /// Messages placed by this step: nobody may see them before its unit is written.
    placed: Vec<(QueueId, MessageId)>,
    /// They stay unseen until then, though it be a unit of acknowledgements only.
    keep_placed: bool,
    /// Queues that may have something for somebody.
    pub(super) dirty: BTreeSet<QueueId>,
}

impl Draft {
    pub(super) fn post(&mut self, connection: ConnectionId, event: Event) {
        self.events.push(Posted {
            connection,
            after: 0,
            auto: false,
            once: false,
            event,
        });
    }

    pub(super) fn deliver(
        &mut self,
        connection: ConnectionId,
        after: u64,
        (auto, once): (bool, bool),
        event: Event,
    ) {
        self.events.push(Posted {
            connection,
            after,
            auto,
            once,
            event,
        });
    }

    pub(super) fn tell(&mut self, notice: Notice) {
        self.notices.push(notice);
    }

    pub(super) fn detached(&mut self, connection: ConnectionId, subscription: u64) {
        self.detached.push((connection, subscription));
    }

    pub(super) fn close(&mut self, connection: ConnectionId) {
        self.closed.push(connection);
    }

    /// Adds an entry that somebody waits for.
    pub(super) fn write_synced(&mut self, entry: Entry) {
        self.sync = true;
        self.write(entry);
    }

    pub(super) fn write(&mut self, entry: Entry) {
        self.entries.push(entry);
    }

    pub(super) fn write_ack(&mut self, queue: QueueId, id: MessageId) {
        if let Some(Entry::Ack { queue: last, ids }) = self.entries.last_mut()
            && *last == queue
        {
            ids.push(id);
        } else {
            self.entries.push(Entry::Ack {
                queue,
                ids: vec![id],
            });
        }
    }

    pub(super) fn write_count(&mut self, id: MessageId, place: Place) {
        self.entries.push(Entry::Count { id, place });
    }

    pub(super) fn write_standing(&mut self, queue: QueueId, standing: Standing) {
        if let Some(Entry::Standing {
            queue: last,
            standing: latest,
        }) = self.entries.last_mut()
            && *last == queue
        {
            *latest = standing;
        } else {
            self.entries.push(Entry::Standing { queue, standing });
        }
    }

    /// Somebody waits for what has been written so far, if anything.
    pub(super) fn need_sync(&mut self) {
        self.sync = true;
    }

    /// Somebody waits for everything that has ever been written.
    pub(super) fn need_barrier(&mut self) {
        self.sync = true;
        self.barrier = true;
    }

    /// What this step places tells of what it does.
    pub(super) const fn keep_placed(&mut self) {
        self.keep_placed = true;
    }

    pub(super) fn placed(&mut self, queue: QueueId, id: MessageId) {
        self.placed.push((queue, id));
        self.dirty.insert(queue);
    }
}

impl Core {
    /// Ends the step.
    pub(super) fn finish(&mut self) -> Effects {
        let draft = std::mem::take(&mut self.draft);
        let mut events = draft.events;
        if draft.entries.is_empty() && !(draft.barrier && self.unsynced) {
            if draft.barrier {
                // The latest unit is one that somebody waits for: with it everything is on the disk.
                tell_after(&mut events, self.next_unit - 1, &BTreeSet::new());
            }
            return Effects {
                unit: None,
                events,
                closed: draft.closed,
                detached: draft.detached,
                notices: draft.notices,
            };
        }
        self.unsynced = !draft.sync;
        let number = self.next_unit;
        self.next_unit += 1;
        let placed = if is_acknowledgements(&draft.entries) && !draft.keep_placed {
            // Volatile, all of them: they need not wait. If the unit is lost in a crash, what it acknowledged
            // comes again and is answered again, which a lost answer would never be.
            let free: BTreeSet<MessageId> = draft.placed.iter().map(|(_, id)| *id).collect();
            tell_after(&mut events, number, &free);
            Vec::new()
        } else {
            tell_after(&mut events, number, &BTreeSet::new());
            draft.placed
        };
        for (queue, id) in placed {
            let held = self
                .queues
                .get_mut(&queue)
                .and_then(|queue| queue.messages.get_mut(&id));
            if let Some(held) = held {
                held.set_unit(number);
            }
        }
        let unit = Unit {
            number,
            sync: draft.sync,
            entries: draft.entries,
        };
        Effects {
            unit: Some(unit),
            events,
            closed: draft.closed,
            detached: draft.detached,
            notices: draft.notices,
        }
    }
}

/// Whether nothing but acknowledgements, and the counts of deliveries and of what was missed, is to be written.
fn is_acknowledgements(entries: &[Entry]) -> bool {
    entries.iter().all(|entry| {
        matches!(
            entry,
            Entry::Ack { .. } | Entry::Count { .. } | Entry::Standing { .. }
        )
    })
}

/// Makes events wait for a unit, except the deliveries of these messages.
fn tell_after(events: &mut [Posted], unit: u64, free: &BTreeSet<MessageId>) {
    for posted in events {
        let is_free =
            matches!(&posted.event, Event::Deliver { message, .. } if free.contains(&message.id));
        if !is_free {
            posted.after = unit;
        }
    }
}
