//! Sends with an id of their sender's own (`q-dedup`): what comes a second time is not kept a second time.
//!
//! What was kept nowhere is not remembered: sent again it is kept once. A remembered id lasts as its message does: one
//! that the log has survives a restart, and the log holds the id as if it were a message in a queue of its own.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use pillarbox_messages::{Destination, DestinationKind};

use super::{
    Core, Limits,
    message::{MessageId, NewMessage},
    queue::QueueKind,
    unit::{Entry, QueueId, REMEMBERED},
};
use crate::{error::BusError, spelling};

/// The longest id, in bytes.
const MAX_ID: usize = 255;
/// What an id costs in memory besides its text, in bytes (about).
const FIXED_SIZE: u64 = 256;
/// How many ids one step forgets at most: after a long rest there may be many.
const AT_ONCE: usize = 1_000;

/// Refuses an id that can't be remembered.
pub(crate) fn check_dedup_id(id: Option<&str>) -> Result<(), BusError> {
    match id {
        Some("") => Err(BusError::invalid("an id to be remembered is not empty")),
        Some(id) if id.len() > MAX_ID => Err(BusError::TooLarge {
            what: "an id to be remembered".to_owned(),
            limit: MAX_ID as u64,
        }),
        _ => Ok(()),
    }
}

/// A send that is remembered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    /// When it was committed (ms since 1970).
    pub(super) at: i64,
    /// Where it was sent to, in STOMP spelling.
    pub(super) destination: Arc<str>,
    /// What its sender calls it.
    pub(super) id: Arc<str>,
    /// Whether the log knows of it.
    pub(super) stored: bool,
}

impl Known {
    /// With the destination's text, which others may share: one of its own may be all that is sent to it.
    pub(super) fn size(&self) -> u64 {
        FIXED_SIZE + (self.id.len() + self.destination.len()) as u64
    }

    fn is_over(&self, now: i64, limits: &Limits) -> bool {
        self.at.saturating_add(limits.dedup_ms) <= now
    }
}

/// The sends that are remembered.
#[derive(Debug, Default)]
pub(crate) struct Remembered {
    /// By the message that came of them, and so in the order of their commits.
    pub(super) sends: BTreeMap<MessageId, Known>,
    pub(super) places: BTreeMap<Arc<str>, Place>,
    /// How much each destination has of what the log does not know, in bytes.
    pub(super) volatile: BTreeSet<(u64, Arc<str>)>,
    /// The same of what it knows.
    pub(super) stored: BTreeSet<(u64, Arc<str>)>,
    pub(super) bytes: u64,
}

/// The ids that were sent to one destination.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub(super) ids: BTreeMap<Arc<str>, MessageId>,
    /// Those that the log does not know.
    pub(super) volatile: Share,
    /// Those that it knows.
    pub(super) stored: Share,
}

/// Some of a destination's ids.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Share {
    pub(super) order: BTreeSet<MessageId>,
    pub(super) bytes: u64,
}

impl Place {
    pub(super) const fn share(&mut self, stored: bool) -> &mut Share {
        if stored {
            &mut self.stored
        } else {
            &mut self.volatile
        }
    }

    /// The oldest one, of those that are lost with the process if there are any: they take no other's place.
    fn oldest(&self) -> Option<MessageId> {
        let volatile = self.volatile.order.first();
        volatile.or_else(|| self.stored.order.first()).copied()
    }
}

impl Remembered {
    fn find(&self, destination: &str, id: &str) -> Option<(MessageId, &Known)> {
        let message = *self.places.get(destination)?.ids.get(id)?;
        Some((message, self.sends.get(&message)?))
    }

    /// One id of one destination leads to one message.
    pub(super) fn insert(&mut self, message: MessageId, mut known: Known) {
        self.remove(message);
        if let Some((older, _)) = self.find(&known.destination, &known.id) {
            self.remove(older);
        }
        if let Some((shared, _)) = self.places.get_key_value(&known.destination) {
            known.destination = Arc::clone(shared);
        }
        let place = self.places.entry(Arc::clone(&known.destination));
        place
            .or_default()
            .ids
            .insert(Arc::clone(&known.id), message);
        self.weigh(&known, |share| {
            share.order.insert(message);
            share.bytes = share.bytes.saturating_add(known.size());
        });
        self.bytes = self.bytes.saturating_add(known.size());
        self.sends.insert(message, known);
    }

    pub(super) fn remove(&mut self, message: MessageId) -> Option<Known> {
        let known = self.sends.remove(&message)?;
        self.bytes = self.bytes.saturating_sub(known.size());
        self.weigh(&known, |share| {
            share.order.remove(&message);
            share.bytes = share.bytes.saturating_sub(known.size());
        });
        if let Some(place) = self.places.get_mut(&known.destination) {
            place.ids.remove(&known.id);
            if place.ids.is_empty() {
                self.places.remove(&known.destination);
            }
        }
        Some(known)
    }

    /// Changes the share of a destination that an id belongs to, and its rank among others.
    fn weigh(&mut self, known: &Known, change: impl FnOnce(&mut Share)) {
        let Some(place) = self.places.get_mut(&known.destination) else {
            return;
        };
        let ranks = match known.stored {
            true => &mut self.stored,
            false => &mut self.volatile,
        };
        let share = place.share(known.stored);
        let destination = Arc::clone(&known.destination);
        let mut rank = (share.bytes, destination);
        ranks.remove(&rank);
        change(share);
        rank.0 = share.bytes;
        if !share.order.is_empty() {
            ranks.insert(rank);
        }
    }

    /// The oldest of those that are too many for a destination, or for memory: then of the destination that takes most,
    /// so that nobody's flood is at the cost of others.
    fn too_many(&self, destination: &str, limits: &Limits) -> Option<MessageId> {
        if self.bytes > limits.dedup_bytes {
            let most = self.volatile.last().or_else(|| self.stored.last());
            return most.and_then(|(_, most)| self.places.get(most)?.oldest());
        }
        let place = self.places.get(destination)?;
        let full = place.ids.len() > limits.dedup_ids;
        place.oldest().filter(|_| full)
    }
}

impl Core {
    /// The message that this one repeats, if that is remembered.
    pub(super) fn duplicate_of(&self, message: &NewMessage) -> Option<MessageId> {
        let id = message.dedup.as_deref()?;
        let destination = self.dedup_place(&message.destination);
        let (original, known) = self.remembered.find(&destination, id)?;
        (!known.is_over(self.now, &self.limits)).then_some(original)
    }

    /// A message of this id has been kept.
    pub(super) fn remember(
        &mut self,
        (message, stored): (MessageId, bool),
        destination: &Destination,
        id: &str,
    ) {
        let destination: Arc<str> = self.dedup_place(destination).into();
        if let Some((older, _)) = self.remembered.find(&destination, id) {
            self.forget(older);
        }
        let known = Known {
            at: self.now,
            destination: Arc::clone(&destination),
            id: id.into(),
            stored,
        };
        self.remembered.insert(message, known);
        self.write_remembered(message);
        while let Some(oldest) = self.remembered.too_many(&destination, &self.limits) {
            self.forget(oldest);
        }
    }

    /// Writes, or writes again, what the log must know of a send that is remembered.
    pub(super) fn write_remembered(&mut self, message: MessageId) {
        let known = self.remembered.sends.get(&message);
        if let Some(known) = known.filter(|known| known.stored) {
            self.draft.write_synced(Entry::Remember {
                message,
                at: known.at,
                destination: known.destination.to_string(),
                id: known.id.to_string(),
            });
        }
    }

    /// Forgets what is too old. What is left over is not found all the same.
    pub(super) fn forget_old(&mut self) {
        for _ in 0..AT_ONCE {
            let first = self.remembered.sends.first_key_value();
            match first.filter(|(_, known)| known.is_over(self.now, &self.limits)) {
                Some((oldest, _)) => self.forget(*oldest),
                None => return,
            }
        }
    }

    /// Forgets what was sent to a queue that ends.
    pub(super) fn forget_place(&mut self, queue: QueueId) {
        let kind = self.queues.get(&queue).map(|queue| &queue.kind);
        let Some(QueueKind::Named { .. } | QueueKind::Temporary { .. }) = kind else {
            return;
        };
        let name = self.name_of(queue);
        let place = self.remembered.places.get(name.as_str());
        let sent = place.map(|place| place.ids.values().copied().collect());
        let sent: Vec<MessageId> = sent.unwrap_or_default();
        for message in sent {
            self.forget(message);
        }
    }

    fn forget(&mut self, message: MessageId) {
        let known = self.remembered.remove(message);
        if known.is_some_and(|known| known.stored) {
            self.draft.write_ack(REMEMBERED, message);
        }
    }

    /// What a destination is called here: the address of a lane is that of its queue.
    fn dedup_place(&self, destination: &Destination) -> String {
        let queue = match destination.kind() {
            DestinationKind::Queue => self.directory.resolve(destination.name()),
            DestinationKind::Topic | DestinationKind::TemporaryQueue => None,
        };
        match queue {
            Some((queue, Some(_))) => self.name_of(queue),
            _ => spelling::to_stomp(destination),
        }
    }
}
