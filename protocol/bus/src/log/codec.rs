//! Entries as bytes: little endian, texts and lists with their length before them.

mod attributes;
mod durable;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use pillarbox_messages::DestinationKind;

use crate::core::{
    attributes::QueueAttributes,
    durable::{Nature, SubscriptionLimits},
    message::{Addresses, Cause, Failure, MAX_PRIORITY, MessageId, Parts, QueuedMessage, Reason},
    rank::SortKey,
    unit::{Definition, Entry, Hand, Place, QueueId},
};

// Numbers once used here are never given another meaning.
const BOOT: u8 = 1;
const DEFINE: u8 = 2;
const REMOVE: u8 = 3;
const PUT: u8 = 4;
const ACK: u8 = 5;
const COUNT: u8 = 6;
// Since format 2. What needs nothing of it is written as before.
const PUT_AT: u8 = 7;
const COUNT_AT: u8 = 8;
const PUT_ALL: u8 = 9;
const COUNT_ALL: u8 = 10;
// Since format 3.
const REMEMBER: u8 = 11;
const STANDING: u8 = 12;
const PUT_BEHIND_GAP: u8 = 13;
const COUNT_BEHIND_GAP: u8 = 14;

const TOPIC: u8 = 1;
const QUEUE: u8 = 2;
const DURABLE: u8 = 3;
const TEMPORARY: u8 = 4;
/// A queue with its attributes.
const QUEUE_LIKE: u8 = 5;
/// A durable subscription with what is said about it; since format 3.
const DURABLE_LIKE: u8 = 6;

const REASONS: [(u8, Reason); 5] = [
    (1, Reason::Unroutable),
    (2, Reason::Rejected),
    (3, Reason::Backout),
    (4, Reason::Expired),
    (5, Reason::Admin),
];

const CAUSES: [(u8, Cause); 7] = [
    (1, Cause::Refused),
    (2, Cause::Aborted),
    (3, Cause::TimedOut),
    (4, Cause::ConnectionLost),
    (5, Cause::ProcessEnded),
    (6, Cause::Parked),
    // Since format 3.
    (7, Cause::AckTimedOut),
];

/// Appends an entry.
pub(crate) fn encode(entry: &Entry, out: &mut Vec<u8>) {
    match entry {
        Entry::Boot(boot) => {
            out.push(BOOT);
            put_u64(out, *boot);
        }
        Entry::Define { queue, definition } => {
            out.push(DEFINE);
            put_u64(out, queue.0);
            put_definition(out, definition);
        }
        Entry::Remove { queue } => {
            out.push(REMOVE);
            put_u64(out, queue.0);
        }
        Entry::Put { message, places } => put_put(out, message, places),
        Entry::Ack { queue, ids } => {
            out.push(ACK);
            put_u64(out, queue.0);
            put_length(out, ids.len());
            for id in ids {
                put_id(out, *id);
            }
        }
        Entry::Remember {
            message,
            at,
            destination,
            id,
        } => {
            out.push(REMEMBER);
            put_id(out, *message);
            out.extend_from_slice(&at.to_le_bytes());
            put_bytes(out, destination.as_bytes());
            put_bytes(out, id.as_bytes());
        }
        Entry::Count { id, place } => put_count(out, *id, place),
        Entry::Standing { queue, standing } => {
            out.push(STANDING);
            put_u64(out, queue.0);
            durable::put_standing(out, standing);
        }
    }
}

fn put_put(out: &mut Vec<u8>, message: &QueuedMessage, places: &[Place]) {
    let positions = places.iter().any(|place| place.position.is_some());
    let hands = places.iter().any(|place| place.hand.is_some());
    let parts = message.parts();
    let gaps = places.iter().any(|place| place.gap.is_some());
    let all = gaps || hands || parts.failure.is_some();
    out.push(match (all, positions) {
        _ if gaps => PUT_BEHIND_GAP,
        (true, _) => PUT_ALL,
        (false, true) => PUT_AT,
        (false, false) => PUT,
    });
    put_message(out, &parts);
    if all {
        put_failure(out, parts.failure);
    }
    put_length(out, places.len());
    for place in places {
        put_place(out, place);
        if all || positions {
            put_position(out, place.position);
        }
        if all {
            put_hand(out, place.hand);
        }
        if gaps {
            durable::put_gap(out, place.gap);
        }
    }
}

fn put_count(out: &mut Vec<u8>, id: MessageId, place: &Place) {
    let gap = place.gap.is_some();
    let (position, hand) = (place.position.is_some(), gap || place.hand.is_some());
    out.push(match (hand, position) {
        _ if gap => COUNT_BEHIND_GAP,
        (true, _) => COUNT_ALL,
        (false, true) => COUNT_AT,
        (false, false) => COUNT,
    });
    put_id(out, id);
    put_place(out, place);
    if position || hand {
        put_position(out, place.position);
    }
    if hand {
        put_hand(out, place.hand);
    }
    if gap {
        durable::put_gap(out, place.gap);
    }
}

/// Reads all entries of a record, whose messages share these addresses; `None` if they aren't what [`encode`] writes.
pub(crate) fn decode(bytes: &[u8], addresses: &mut Addresses) -> Option<Vec<Entry>> {
    let mut reader = Reader {
        rest: bytes,
        addresses,
    };
    let mut entries = Vec::new();
    while !reader.rest.is_empty() {
        entries.push(reader.entry()?);
    }
    Some(entries)
}

fn put_u64(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(&value.to_le_bytes());
}

fn put_u32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_le_bytes());
}

/// Lengths are below 4 GiB because messages and transactions are limited to a fraction of that.
fn put_length(out: &mut Vec<u8>, length: usize) {
    put_u32(out, u32::try_from(length).unwrap_or(u32::MAX));
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_length(out, bytes.len());
    out.extend_from_slice(bytes);
}

fn put_time(out: &mut Vec<u8>, time: Option<i64>) {
    out.push(u8::from(time.is_some()));
    if let Some(time) = time {
        out.extend_from_slice(&time.to_le_bytes());
    }
}

fn put_text(out: &mut Vec<u8>, text: Option<&str>) {
    out.push(u8::from(text.is_some()));
    if let Some(text) = text {
        put_bytes(out, text.as_bytes());
    }
}

fn put_id(out: &mut Vec<u8>, id: MessageId) {
    put_u64(out, id.boot);
    put_u64(out, id.seq);
}

fn put_place(out: &mut Vec<u8>, place: &Place) {
    put_u64(out, place.queue.0);
    put_u32(out, place.delivery_count);
    put_u32(out, place.backout_count);
    put_time(out, place.retry_at);
}

fn put_position(out: &mut Vec<u8>, position: Option<SortKey>) {
    out.push(u8::from(position.is_some()));
    if let Some(SortKey {
        criteria,
        turn,
        sub,
    }) = position
    {
        criteria.into_iter().for_each(|half| put_u64(out, half));
        put_id(out, turn);
        out.extend_from_slice(&sub.to_le_bytes());
    }
}

fn put_hand(out: &mut Vec<u8>, hand: Option<Hand>) {
    out.push(u8::from(hand.is_some()));
    if let Some(Hand { consumer, delivery }) = hand {
        put_u64(out, consumer);
        put_u64(out, delivery);
    }
}

fn put_failure(out: &mut Vec<u8>, failure: Option<Failure>) {
    let failed_at = failure.map(|failure| failure.failed_at);
    put_time(out, failed_at);
    let cause = failure.and_then(|it| CAUSES.into_iter().find(|(_, cause)| *cause == it.cause));
    out.extend(cause.map(|(number, _)| number));
}

fn put_definition(out: &mut Vec<u8>, definition: &Definition) {
    match definition {
        Definition::Topic { name } => {
            out.push(TOPIC);
            put_bytes(out, name.as_bytes());
        }
        Definition::Queue {
            name,
            attributes,
            drain,
        } => {
            out.push(QUEUE_LIKE);
            put_bytes(out, name.as_bytes());
            attributes::put(out, attributes, *drain);
        }
        Definition::Durable {
            client_id,
            name,
            topic,
            limits,
            nature,
        } => {
            out.push(DURABLE_LIKE);
            put_bytes(out, client_id.as_bytes());
            put_bytes(out, name.as_bytes());
            put_bytes(out, topic.as_bytes());
            durable::put(out, limits, nature);
        }
    }
}

fn put_message(out: &mut Vec<u8>, message: &Parts<'_>) {
    let (kind, name) = message.destination;
    put_id(out, message.id);
    out.push(match kind {
        DestinationKind::Topic => TOPIC,
        DestinationKind::Queue => QUEUE,
        DestinationKind::TemporaryQueue => TEMPORARY,
    });
    put_bytes(out, name.as_bytes());
    put_bytes(out, message.destination_text.as_bytes());
    put_bytes(out, message.origin.as_bytes());
    out.extend_from_slice(&message.enqueued_at.to_le_bytes());
    out.push(message.priority);
    put_time(out, message.not_before);
    put_time(out, message.expires_at);
    put_text(out, message.correlation_id);
    put_text(out, message.reply_to);
    put_text(out, message.group);
    put_text(out, message.original_destination);
    let reason = REASONS
        .into_iter()
        .find(|(_, reason)| Some(*reason) == message.reason);
    out.push(reason.map_or(0, |(number, _)| number));
    put_length(out, message.headers.len());
    for (name, value) in &message.headers {
        put_bytes(out, name.as_bytes());
        put_bytes(out, value.as_bytes());
    }
    put_bytes(out, message.body);
}

struct Reader<'a> {
    rest: &'a [u8],
    addresses: &'a mut Addresses,
}

impl<'a> Reader<'a> {
    fn entry(&mut self) -> Option<Entry> {
        Some(match self.u8()? {
            BOOT => Entry::Boot(self.u64()?),
            DEFINE => Entry::Define {
                queue: self.queue()?,
                definition: self.definition()?,
            },
            REMOVE => Entry::Remove {
                queue: self.queue()?,
            },
            PUT => self.put(|_| Some(None), Self::place)?,
            PUT_AT => self.put(|_| Some(None), Self::place_at)?,
            PUT_ALL => self.put(Self::failure, Self::place_all)?,
            PUT_BEHIND_GAP => self.put(Self::failure, Self::place_behind_gap)?,
            COUNT_BEHIND_GAP => Entry::Count {
                id: self.id()?,
                place: self.place_behind_gap()?,
            },
            STANDING => Entry::Standing {
                queue: self.queue()?,
                standing: durable::read_standing(self)?,
            },
            COUNT_ALL => Entry::Count {
                id: self.id()?,
                place: self.place_all()?,
            },
            COUNT_AT => Entry::Count {
                id: self.id()?,
                place: self.place_at()?,
            },
            ACK => Entry::Ack {
                queue: self.queue()?,
                ids: self.list(Self::id)?,
            },
            REMEMBER => Entry::Remember {
                message: self.id()?,
                at: self.i64()?,
                destination: self.string()?,
                id: self.string()?,
            },
            COUNT => Entry::Count {
                id: self.id()?,
                place: self.place()?,
            },
            _ => return None,
        })
    }

    fn put(
        &mut self,
        failure: impl Fn(&mut Self) -> Option<Option<Failure>>,
        place: impl Fn(&mut Self) -> Option<Place>,
    ) -> Option<Entry> {
        let mut message = self.message()?;
        message.failure = failure(self)?;
        let places = self.list(place)?;
        let message = Arc::new(message.pack(self.addresses));
        Some(Entry::Put { message, places })
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }

    fn u8(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    fn i64(&mut self) -> Option<i64> {
        Some(i64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.u32()?).ok()?;
        self.take(length)
    }

    fn text(&mut self) -> Option<&'a str> {
        str::from_utf8(self.bytes()?).ok()
    }

    fn string(&mut self) -> Option<String> {
        self.text().map(str::to_owned)
    }

    fn option<T>(&mut self, read: impl Fn(&mut Self) -> Option<T>) -> Option<Option<T>> {
        match self.u8()? {
            0 => Some(None),
            1 => read(self).map(Some),
            _ => None,
        }
    }

    fn list<T>(&mut self, read: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        (0..self.u32()?).map(|_| read(self)).collect()
    }

    fn queue(&mut self) -> Option<QueueId> {
        self.u64().map(QueueId)
    }

    fn id(&mut self) -> Option<MessageId> {
        Some(MessageId {
            boot: self.u64()?,
            seq: self.u64()?,
        })
    }

    fn place(&mut self) -> Option<Place> {
        Some(Place {
            queue: self.queue()?,
            delivery_count: self.u32()?,
            backout_count: self.u32()?,
            retry_at: self.option(Self::i64)?,
            position: None,
            hand: None,
            gap: None,
        })
    }

    fn place_all(&mut self) -> Option<Place> {
        let place = self.place_at()?;
        let hand = self.option(|reader| {
            Some(Hand {
                consumer: reader.u64()?,
                delivery: reader.u64()?,
            })
        })?;
        Some(Place { hand, ..place })
    }

    fn place_behind_gap(&mut self) -> Option<Place> {
        let place = self.place_all()?;
        let gap = durable::read_gap(self)?;
        Some(Place { gap, ..place })
    }

    fn failure(&mut self) -> Option<Option<Failure>> {
        self.option(|reader| {
            let failed_at = reader.i64()?;
            let number = reader.u8()?;
            let (_, cause) = CAUSES.into_iter().find(|(n, _)| *n == number)?;
            Some(Failure { failed_at, cause })
        })
    }

    fn place_at(&mut self) -> Option<Place> {
        let place = self.place()?;
        let position = self.option(Self::position)?;
        Some(Place { position, ..place })
    }

    fn position(&mut self) -> Option<SortKey> {
        Some(SortKey {
            criteria: [self.u64()?, self.u64()?],
            turn: self.id()?,
            sub: self.i64()?,
        })
    }

    fn definition(&mut self) -> Option<Definition> {
        Some(match self.u8()? {
            TOPIC => Definition::Topic {
                name: self.string()?,
            },
            // As it was before queues had attributes.
            QUEUE => Definition::Queue {
                name: self.string()?,
                attributes: QueueAttributes::default(),
                drain: None,
            },
            QUEUE_LIKE => {
                let name = self.string()?;
                let (attributes, drain) = attributes::read(self)?;
                Definition::Queue {
                    name,
                    attributes,
                    drain,
                }
            }
            // As it was before they had limits.
            DURABLE => Definition::Durable {
                client_id: self.string()?,
                name: self.string()?,
                topic: self.string()?,
                limits: SubscriptionLimits::default(),
                nature: Nature::default(),
            },
            DURABLE_LIKE => {
                let (client_id, name, topic) = (self.string()?, self.string()?, self.string()?);
                let (limits, nature) = durable::read(self)?;
                Definition::Durable {
                    client_id,
                    name,
                    topic,
                    limits,
                    nature,
                }
            }
            _ => return None,
        })
    }

    fn message(&mut self) -> Option<Parts<'a>> {
        let id = self.id()?;
        let kind = match self.u8()? {
            TOPIC => DestinationKind::Topic,
            QUEUE => DestinationKind::Queue,
            TEMPORARY => DestinationKind::TemporaryQueue,
            _ => return None,
        };
        Some(Parts {
            id,
            destination: (kind, self.text()?),
            destination_text: self.text()?,
            origin: self.text()?,
            enqueued_at: self.i64()?,
            priority: self.u8().filter(|priority| *priority <= MAX_PRIORITY)?,
            not_before: self.option(Self::i64)?,
            expires_at: self.option(Self::i64)?,
            correlation_id: self.option(Self::text)?,
            reply_to: self.option(Self::text)?,
            group: self.option(Self::text)?,
            original_destination: self.option(Self::text)?,
            reason: self.reason()?,
            failure: None,
            headers: self.list(|reader| Some((reader.text()?, reader.text()?)))?,
            body: self.bytes()?,
            // Volatile messages never enter the log.
            persistent: true,
        })
    }

    fn reason(&mut self) -> Option<Option<Reason>> {
        match self.u8()? {
            0 => Some(None),
            number => REASONS
                .into_iter()
                .find(|(n, _)| *n == number)
                .map(|(_, reason)| Some(reason)),
        }
    }
}
