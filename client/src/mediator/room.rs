//! How many messages wait unacknowledged, so that conversations that do not keep up can't hold up the others.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use pillarbox_bus::Delivery;
use tracing::debug;

/// How many may wait unacknowledged for conversations, all together: well below what the bus gives at a time. The rest
/// is for what is yet to be looked at.
const MOST: usize = 384;
/// How many that a conversation can do without may wait for it.
const MOST_PROGRESS: usize = 32;

/// Counts what waits unacknowledged.
#[derive(Clone, Debug, Default)]
pub(crate) struct Room(Arc<AtomicUsize>);

/// What came of a message but its content: how it is acknowledged.
#[derive(Debug)]
pub(crate) struct Receipt {
    delivery: Delivery,
    place: Option<Place>,
}

/// One place in the room; free again when this is dropped.
#[derive(Debug)]
struct Place(Room);

impl Room {
    /// Whether one more may wait for a conversation for which so many wait, while so many more are held elsewhere.
    /// Nobody gets more than is left for all others: however many do not keep up, one that does has room.
    pub(super) fn has_place(&self, waiting: usize, held: usize, is_progress: bool) -> bool {
        let taken = self.0.load(Ordering::Relaxed).saturating_add(held);
        let left = MOST.saturating_sub(taken);
        if is_progress {
            waiting < MOST_PROGRESS.min(left / 4)
        } else {
            waiting == 0 || waiting < left
        }
    }

    /// Takes a place for a message until it is acknowledged.
    pub(super) fn take(&self, receipt: &mut Receipt) {
        self.0.fetch_add(1, Ordering::Relaxed);
        receipt.place = Some(Place(self.clone()));
    }
}

impl Receipt {
    pub(crate) const fn new(delivery: Delivery) -> Self {
        Self {
            delivery,
            place: None,
        }
    }

    /// The bus's identity of the message.
    pub(crate) fn message_id(&self) -> &str {
        &self.delivery.message.message_id
    }

    /// Acknowledges the message; one that comes again instead finds no conversation, or is a repetition there.
    pub(crate) async fn acknowledge(self) {
        let Self {
            delivery,
            place: _place,
        } = self;
        if let Err(error) = delivery.ack().await {
            debug!(%error, "a message could not be acknowledged");
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As many messages as there is room for, to conversations that read none.
    fn filled(conversations: usize, is_progress: bool) -> (Room, Vec<usize>) {
        let room = Room::default();
        let mut waiting = vec![0; conversations];
        let mut before = usize::MAX;
        while before != waiting.iter().sum::<usize>() {
            before = waiting.iter().sum();
            for waits in &mut waiting {
                if room.has_place(*waits, 0, is_progress) {
                    room.0.fetch_add(1, Ordering::Relaxed);
                    *waits += 1;
                }
            }
        }
        (room, waiting)
    }

    #[test]
    fn whoever_reads_has_room_beside_those_who_do_not() {
        for conversations in [1, 2, 3, 10, 100] {
            let (room, waiting) = filled(conversations, false);
            let all: usize = waiting.iter().sum();
            assert!(all < MOST, "{all}");
            assert!(
                waiting
                    .iter()
                    .all(|it| *it <= MOST / (conversations + 1) + 1)
            );
            assert!(room.has_place(0, 0, false));
            assert!(conversations > 10 || room.has_place(1, 0, true));
        }
    }

    #[test]
    fn progress_leaves_room_for_what_ends_an_operation() {
        let (room, waiting) = filled(2, true);
        assert_eq!(waiting, [MOST_PROGRESS; 2]);
        assert!(room.has_place(MOST_PROGRESS, 0, false));
        // What is held for operations that are yet to be resumed counts, too.
        assert!(!room.has_place(0, MOST, true));
        assert!(!room.has_place(1, MOST, false));
        assert!(room.has_place(0, MOST, false));
    }
}
