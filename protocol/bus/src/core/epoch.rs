//! A queue that changes its lanes while messages are in it: those that were there keep the lanes they have, and what
//! comes later has the new ones, but waits until the others are gone.
//!
//! Which message belongs where is seen from its id, so it is the same after a restart, however often a message comes
//! back, and for one that waits for its time.

use super::{
    attributes::{Lanes, MAX_LANES, QueueAttributes},
    lanes::LaneTable,
    message::{MessageId, QueuedMessage},
    queue::{Consumer, Queue},
    ranks::Ranks,
};

/// What is being emptied, so that other lanes can take its place. Part of the queue's definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Drain {
    /// The lanes of the messages that were there.
    pub(crate) old: Lanes,
    /// Messages from this one on wait for those before it.
    pub(crate) border: MessageId,
}

/// The messages that wait until the ones before them are gone, in their lanes.
#[derive(Clone, Debug)]
pub(crate) struct Next {
    pub(crate) drain: Drain,
    pub(crate) lanes: Option<Box<LaneTable>>,
    /// Those in no lane that could be handed out.
    pub(crate) ready: Ranks,
    /// All of them.
    pub(crate) count: usize,
}

impl Queue {
    /// The lanes of what is handed out now.
    pub(crate) fn lanes_now(&self) -> Lanes {
        let next = self.next.as_ref();
        next.map_or(self.attributes.lanes, |next| next.drain.old)
    }

    /// What is being emptied, if something is.
    pub(crate) fn drain(&self) -> Option<Drain> {
        self.next.as_ref().map(|next| next.drain)
    }

    /// Whether messages have, or will have, lanes.
    pub(crate) fn has_lanes(&self) -> bool {
        self.lanes.is_some() || self.attributes.lanes != Lanes::None
    }

    /// How many lanes can be addressed, by senders or by consumers.
    pub(crate) fn numbered_lanes(&self) -> u32 {
        let now = self.lanes_now().numbered();
        now.max(self.attributes.lanes.numbered())
    }

    /// How many messages are there of those that others wait for.
    pub(crate) fn undrained(&self) -> usize {
        let waiting = self.next.as_ref().map_or(0, |next| next.count);
        self.messages.len().saturating_sub(waiting)
    }

    /// Whether a message waits until others are gone.
    pub(crate) fn waits(&self, message: &QueuedMessage) -> bool {
        let Some(next) = &self.next else {
            return false;
        };
        // One that comes back from elsewhere may name a lane that there was not when it was sent.
        let part = || self.part_addressed(message, MAX_LANES);
        let old = next.drain.old.numbered();
        message.id >= next.drain.border || part().is_some_and(|part| part >= old)
    }

    /// Begins to empty the queue for other lanes.
    pub(crate) fn begin_drain(&mut self, attributes: QueueAttributes, border: MessageId) {
        let old = self.lanes_now();
        let drain = Drain { old, border };
        self.next = Some(Box::new(Next::new(drain, &attributes)));
        self.attributes = attributes;
    }

    /// What has waited takes the place of what is gone.
    pub(crate) fn end_drain(&mut self) {
        let Some(next) = self.next.take() else {
            return;
        };
        self.lanes = next.lanes;
        self.ready = next.ready;
        self.join_again();
    }

    /// The consumers that want a lane which there is no more.
    pub(crate) fn stranded(&self) -> Vec<Consumer> {
        let count = self.numbered_lanes();
        let consumers = self.consumers.iter();
        let stranded = consumers.filter(|it| it.part.is_some_and(|part| part >= count));
        stranded.cloned().collect()
    }
}

impl Next {
    pub(crate) fn new(drain: Drain, attributes: &QueueAttributes) -> Self {
        Self {
            drain,
            lanes: LaneTable::new(attributes.lanes).map(Box::new),
            ready: Ranks::new(attributes.order.latest_first),
            count: 0,
        }
    }
}
