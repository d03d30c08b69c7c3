//! Events on their way to one connection.

use std::collections::VecDeque;

use tokio::sync::mpsc;

use super::connection::{ConnectionId, Event};
use crate::{
    admin,
    core::{
        Input, Posted,
        unit::{Entry, Unit},
    },
    error::BusError,
};

/// How many events may wait for a connection that does not take them.
const MAX_WAITING: usize = 200_000;

/// How far the log is.
#[derive(Clone, Debug, Default)]
pub(super) struct Progress {
    /// Everything up to this unit is written: it survives the end of the process.
    pub(super) seen: u64,
    /// Everything up to this unit that somebody waits for is on the disk.
    pub(super) written: u64,
    /// The units whose messages are not to be seen before they are on the disk, in order.
    pub(super) strict: VecDeque<u64>,
}

impl Progress {
    /// Takes note of a unit that is to be written.
    pub(super) fn add(&mut self, unit: &Unit) {
        let remembers = |entry: &Entry| matches!(entry, Entry::Remember { .. });
        if unit.entries.iter().any(remembers) {
            self.strict.push_back(unit.number);
        }
    }

    /// Everything up to this unit is written.
    pub(super) fn see(&mut self, unit: u64) {
        self.seen = self.seen.max(unit);
    }

    /// And what somebody waits for is on the disk.
    pub(super) fn settle(&mut self, unit: u64) {
        self.see(unit);
        self.written = self.written.max(unit);
        while self.strict.front().is_some_and(|it| *it <= self.written) {
            self.strict.pop_front();
        }
    }

    /// Whether an event can be told. A message can be handed out when it is written: should the machine lose power
    /// before it is on the disk, its sender has been promised nothing, and whatever its receiver made of it in the
    /// queues is gone with it. Everything else is a promise.
    fn allows(&self, posted: &Posted) -> bool {
        posted.after <= self.written || (posted.after <= self.seen && self.is_early(posted))
    }

    /// Whether an event need not wait for the disk. A delivery that needs no acknowledgement does, since its message
    /// would come again; so does a message with its sender's own id, since that could be given to another one; and the
    /// administration's answer is a promise.
    pub(super) fn is_early(&self, posted: &Posted) -> bool {
        let Event::Deliver { message, .. } = &posted.event else {
            return false;
        };
        let is_answer = message.origin() == admin::QUEUE;
        !posted.auto && !is_answer && self.strict.binary_search(&posted.after).is_err()
    }
}

/// Events on their way to one connection: first here, in order, until their unit is written; then in the
/// connection's bounded channel.
#[derive(Debug)]
pub(super) struct Outbox {
    client_id: String,
    channel: mpsc::Sender<Event>,
    waiting: VecDeque<Posted>,
    /// The channel was full; somebody waits for room in it.
    full: bool,
    /// Nothing more will come.
    last: bool,
}

/// What handing events over came to.
#[derive(Debug)]
pub(super) struct Handed {
    /// What the state machine must know of it.
    pub(super) inputs: Vec<Input>,
    /// The channel is full now: [`Outbox::room`] is to be waited for.
    pub(super) wait_for_room: bool,
}

impl Outbox {
    pub(super) const fn new(client_id: String, channel: mpsc::Sender<Event>) -> Self {
        Self {
            client_id,
            channel,
            waiting: VecDeque::new(),
            full: false,
            last: false,
        }
    }

    pub(super) fn client_id(&self) -> &str {
        &self.client_id
    }

    pub(super) fn push(&mut self, posted: Posted) {
        self.waiting.push_back(posted);
    }

    /// Nothing more will come.
    pub(super) const fn end(&mut self) {
        self.last = true;
    }

    /// Whether everything has been handed over.
    pub(super) fn is_done(&self) -> bool {
        self.last && self.waiting.is_empty()
    }

    /// Forgets messages on their way to a subscription that has ended: they have returned, and may be others' by now.
    pub(super) fn forget_deliveries(&mut self, ended: u64) {
        self.waiting.retain(|posted| {
            !matches!(posted.event, Event::Deliver { subscription, .. } if subscription == ended)
        });
    }

    /// Forgets what would have been told after a unit that will never be written.
    pub(super) fn forget_after(&mut self, written: u64) {
        self.waiting.retain(|posted| posted.after <= written);
    }

    /// Waits for room in the channel, or for its end.
    pub(super) fn room(&self) -> impl Future<Output = ()> + Send + 'static {
        let channel = self.channel.clone();
        async move {
            let _ = channel.reserve().await;
        }
    }

    /// There is room in the channel again.
    pub(super) const fn has_room(&mut self) {
        self.full = false;
    }

    /// Hands over what may be told, as far as there is room.
    pub(super) fn hand(
        &mut self,
        connection: ConnectionId,
        progress: &Progress,
        now: i64,
    ) -> Handed {
        let mut inputs = Vec::new();
        let was_full = self.full;
        while !self.full
            && self
                .waiting
                .front()
                .is_some_and(|first| progress.allows(first))
        {
            let Ok(permit) = self.channel.try_reserve() else {
                self.full = true;
                break;
            };
            let Some(posted) = self.waiting.pop_front() else {
                break;
            };
            if let Event::Deliver {
                subscription,
                delivery,
                message,
                ..
            } = &posted.event
            {
                let delivery = *delivery;
                if message.is_expired(now) {
                    inputs.push(Input::Missed {
                        connection,
                        delivery,
                    });
                    if posted.once {
                        permit.send(Event::NoMessage {
                            subscription: *subscription,
                            in_use: false,
                        });
                    }
                    continue;
                }
                if posted.auto {
                    inputs.push(Input::Handed {
                        connection,
                        delivery,
                    });
                }
            }
            permit.send(posted.event);
        }
        if self.waiting.len() > MAX_WAITING && !self.last {
            let detail = format!("more than {MAX_WAITING} events wait for this connection");
            let reason = BusError::Refused {
                name: "LIMIT".to_owned(),
                detail,
            };
            inputs.push(Input::Lost { connection, reason });
        }
        Handed {
            inputs,
            wait_for_room: self.full && !was_full,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use pillarbox_messages::Destination;

    use super::*;
    use crate::core::message::{Addresses, DeliveryId, MessageId, NewMessage, Parts};

    /// It is his subscription's only one, and his waiting has ended with it.
    #[test]
    fn who_waits_for_one_message_is_told_if_it_is_too_old_when_it_can_be_handed_over() {
        let new = NewMessage {
            expires_at: Some(100),
            ..NewMessage::new(Destination::queue("q"), Bytes::new())
        };
        let id = MessageId { boot: 1, seq: 1 };
        let message = Parts::of(&new, id, "", 0, true).pack(&mut Addresses::default());
        let message = Arc::new(message);
        let (connection, delivery) = (ConnectionId(1), DeliveryId(9));
        let mut progress = Progress::default();
        progress.settle(1);
        for (once, now, comes) in [
            (true, 100, Some(false)),
            (true, 99, Some(true)),
            (false, 100, None),
        ] {
            let (sender, mut events) = mpsc::channel(1);
            let mut outbox = Outbox::new(String::new(), sender);
            let event = Event::Deliver {
                subscription: 3,
                delivery,
                message: Arc::clone(&message),
                redelivered: false,
                delivery_count: 1,
                backout_count: 0,
                first_of_group: false,
                gap: None,
            };
            outbox.push(Posted {
                connection,
                after: 1,
                auto: false,
                once,
                event,
            });
            let missed = outbox.hand(connection, &progress, now).inputs.len();
            assert_eq!(missed, usize::from(comes != Some(true)));
            let came = events.try_recv().ok().map(|event| match event {
                Event::Deliver { .. } => true,
                Event::NoMessage {
                    subscription: 3,
                    in_use: false,
                } => false,
                other => panic!("{other:?}"),
            });
            assert_eq!(came, comes);
        }
    }

    #[test]
    fn what_is_a_promise_waits_for_the_disk() {
        let message = |origin: &str| {
            let new = NewMessage::new(Destination::queue("q"), Bytes::new());
            let id = MessageId { boot: 1, seq: 1 };
            Arc::new(Parts::of(&new, id, origin, 0, true).pack(&mut Addresses::default()))
        };
        let posted = |after, auto, origin: &str| Posted {
            connection: ConnectionId(1),
            after,
            auto,
            once: false,
            event: Event::Deliver {
                subscription: 3,
                delivery: DeliveryId(9),
                message: message(origin),
                redelivered: false,
                delivery_count: 1,
                backout_count: 0,
                first_of_group: false,
                gap: None,
            },
        };
        let mut progress = Progress::default();
        let id = MessageId { boot: 1, seq: 1 };
        let remember = Entry::Remember {
            message: id,
            at: 0,
            destination: String::new(),
            id: "k".to_owned(),
        };
        progress.add(&Unit {
            number: 2,
            sync: true,
            entries: vec![remember],
        });
        progress.see(3);
        assert!(progress.allows(&posted(1, false, "a")));
        assert!(progress.allows(&posted(3, false, "a")));
        assert!(!progress.allows(&posted(4, false, "a")), "not written");
        assert!(
            !progress.allows(&posted(3, true, "a")),
            "taken when it is handed over"
        );
        assert!(
            !progress.allows(&posted(2, false, "a")),
            "has its sender's id"
        );
        assert!(
            !progress.allows(&posted(3, false, admin::QUEUE)),
            "an answer"
        );
        progress.settle(3);
        for posted in [
            posted(3, true, "a"),
            posted(2, false, "a"),
            posted(3, false, admin::QUEUE),
        ] {
            assert!(progress.allows(&posted));
        }
        assert!(progress.strict.is_empty());
    }
}
