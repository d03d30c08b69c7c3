//! A message in a queue. There may be a million, so what few have takes no room where it is not.

use std::sync::Arc;

use super::{
    durable::Gap,
    lanes::{LaneId, Standing},
    message::{DeliveryId, QueuedMessage},
    rank::SortKey,
    unit::{Hand, Place, QueueId},
};

/// Where a message stands within its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Can be handed out.
    Ready,
    /// Waits for this time (ms since 1970).
    Scheduled(i64),
    /// In a consumer's hands.
    InFlight(DeliveryId),
}

/// A message in a queue.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) message: Arc<QueuedMessage>,
    pub(crate) delivery_count: u32,
    pub(crate) backout_count: u32,
    /// What few messages have.
    special: Option<Box<Special>>,
    /// Its lane, if it has one.
    pub(crate) lane: Option<LaneId>,
    pub(crate) state: State,
    log: Logged,
}

/// What the log has to do with a message in a queue: the unit that must be written before anybody may see the message
/// (0: none), and in the lowest bit whether the log knows it at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Logged(u64);

/// What few messages in a queue have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Special {
    retry_at: Option<i64>,
    position: Option<SortKey>,
    hand: Option<Hand>,
    /// What was missed before it.
    gap: Option<Gap>,
}

impl Held {
    /// A message in this place, ready and without a lane.
    pub(crate) fn new(message: Arc<QueuedMessage>, place: Place, stored: bool) -> Self {
        let special = Special {
            retry_at: place.retry_at,
            position: place.position,
            hand: place.hand,
            gap: place.gap,
        };
        Self {
            message,
            delivery_count: place.delivery_count,
            backout_count: place.backout_count,
            special: (special != Special::default()).then(|| Box::new(special)),
            lane: None,
            state: State::Ready,
            log: Logged(u64::from(stored)),
        }
    }

    /// Whether the log knows of it.
    pub(crate) const fn is_stored(&self) -> bool {
        self.log.0 & 1 == 1
    }

    /// The unit that must be written before anybody may see the message; 0: none.
    pub(crate) const fn unit(&self) -> u64 {
        self.log.0 >> 1
    }

    pub(crate) const fn set_unit(&mut self, unit: u64) {
        self.log = Logged(unit << 1 | self.log.0 & 1);
    }

    fn special(&self) -> Special {
        self.special.as_deref().copied().unwrap_or_default()
    }

    fn change_special(&mut self, change: impl FnOnce(&mut Special)) {
        let mut special = self.special();
        change(&mut special);
        if special == Special::default() {
            self.special = None;
        } else {
            **self.special.get_or_insert_default() = special;
        }
    }

    /// When it may be tried again.
    pub(crate) fn retry_at(&self) -> Option<i64> {
        self.special.as_ref()?.retry_at
    }

    pub(crate) fn set_retry_at(&mut self, at: Option<i64>) {
        if self.retry_at() != at {
            self.change_special(|special| special.retry_at = at);
        }
    }

    /// Its rank, if that is not the one that the queue's order gives it.
    pub(crate) fn position(&self) -> Option<SortKey> {
        self.special.as_ref()?.position
    }

    pub(crate) fn set_position(&mut self, position: SortKey) {
        self.change_special(|special| special.position = Some(position));
    }

    /// The consumer within this process that has it in hand, or had when the process before this one ended.
    pub(crate) fn hand(&self) -> Option<Hand> {
        self.special.as_ref()?.hand
    }

    /// Puts it into such a consumer's hand, or takes it out; returns whose it was in.
    pub(crate) fn set_hand(&mut self, hand: Option<Hand>) -> Option<Hand> {
        let before = self.hand();
        if before != hand {
            self.change_special(|special| special.hand = hand);
        }
        before
    }

    pub(crate) fn place(&self, queue: QueueId) -> Place {
        Place {
            queue,
            delivery_count: self.delivery_count,
            backout_count: self.backout_count,
            retry_at: self.retry_at(),
            position: self.position(),
            hand: self.hand(),
            gap: self.gap(),
        }
    }

    /// What was missed before it.
    pub(crate) fn gap(&self) -> Option<Gap> {
        self.special.as_ref()?.gap
    }

    pub(crate) fn set_gap(&mut self, gap: Option<Gap>) {
        self.change_special(|special| special.gap = gap);
    }

    /// What it is to its lane.
    pub(crate) fn standing(&self) -> Standing {
        match self.state {
            State::Ready => Standing::Ready,
            State::InFlight(_) => Standing::InFlight,
            State::Scheduled(_) if self.retry_at().is_some() => Standing::Retry,
            State::Scheduled(_) => Standing::Later,
        }
    }

    /// When it can be handed out, if that is not now.
    pub(crate) fn waits_until(&self, now: i64) -> Option<i64> {
        self.message
            .not_before()
            .max(self.retry_at())
            .filter(|at| *at > now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_in_a_queue_takes_little() {
        assert!(size_of::<Held>() <= 56);
    }
}
