//! What lives in which segment, and what is defined.

use std::collections::{BTreeMap, VecDeque};

use crate::{
    core::{
        durable::Standing,
        message::MessageId,
        unit::{Definition, Entry, QueueId, REMEMBERED},
    },
    paged::Paged,
};

/// What lives in which segment, and what is defined.
#[derive(Debug, Default)]
pub(super) struct Index {
    boot: u64,
    definitions: BTreeMap<QueueId, Definition>,
    /// How durable subscriptions stand.
    standings: BTreeMap<QueueId, Standing>,
    /// Where the messages of each queue are.
    homes: BTreeMap<QueueId, Paged<Home>>,
    /// Oldest first; the last one is being written.
    segments: VecDeque<Segment>,
}

/// The segment that a message's place was last written to in full, with its share of the record's length.
#[derive(Clone, Copy, Debug)]
struct Home {
    /// As there are 2^32 segments of 64 MiB in more than any disk has.
    segment: u32,
    bytes: u32,
}

#[derive(Debug, Default)]
struct Segment {
    number: u64,
    /// How many places live in it, and their bytes.
    live: usize,
    live_bytes: u64,
}

impl Home {
    fn new(segment: u64, bytes: u64) -> Self {
        Self {
            segment: u32::try_from(segment).unwrap_or(u32::MAX),
            bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
        }
    }
}

impl Index {
    /// Takes note of a segment that is being read or written now.
    pub(super) fn add_segment(&mut self, number: u64) {
        if self.segments.back().is_none_or(|last| last.number < number) {
            self.segments.push_back(Segment {
                number,
                ..Segment::default()
            });
        }
    }

    /// Takes note of an entry of a record of this length.
    pub(super) fn apply(&mut self, segment: u64, length: u64, entry: &Entry) {
        self.add_segment(segment);
        match entry {
            Entry::Boot(boot) => self.boot = *boot,
            Entry::Define { queue, definition } => {
                self.definitions.insert(*queue, definition.clone());
            }
            Entry::Remove { queue } => {
                self.definitions.remove(queue);
                self.standings.remove(queue);
            }
            Entry::Standing { queue, standing } => {
                self.standings.insert(*queue, *standing);
            }
            Entry::Put { message, places } => {
                let share = message.size().min(length) / (places.len().max(1) as u64);
                for place in places {
                    self.settle(message.id, place.queue, Home::new(segment, share));
                }
            }
            Entry::Ack { queue, ids } => {
                for id in ids {
                    self.forget(*id, *queue);
                }
            }
            Entry::Remember {
                message,
                destination,
                id,
                ..
            } => {
                let share = (destination.len() + id.len()) as u64;
                let home = Home::new(segment, share.min(length));
                self.settle(*message, REMEMBERED, home);
            }
            // Counters follow their message: they are written again with it.
            Entry::Count { .. } => {}
        }
    }

    /// What a segment's first record must say.
    pub(super) fn definitions(&self) -> Vec<Entry> {
        let defined = self
            .definitions
            .iter()
            .map(|(queue, definition)| Entry::Define {
                queue: *queue,
                definition: definition.clone(),
            });
        let standing = self
            .standings
            .iter()
            .map(|(queue, standing)| Entry::Standing {
                queue: *queue,
                standing: *standing,
            });
        std::iter::once(Entry::Boot(self.boot))
            .chain(defined)
            .chain(standing)
            .collect()
    }

    pub(super) fn segments(&self) -> usize {
        self.segments.len()
    }

    /// The oldest segment, if nothing in it lives and it isn't being written.
    pub(super) fn oldest_dead(&self) -> Option<u64> {
        let oldest = self.segments.front().filter(|oldest| oldest.live == 0)?;
        (self.segments.len() > 1).then_some(oldest.number)
    }

    pub(super) fn remove_oldest(&mut self) {
        self.segments.pop_front();
    }

    /// The oldest segment, if little lives in it, or if all segments together hold little.
    pub(super) fn stale(&self, segment_bytes: u64) -> Option<u64> {
        let oldest = self.segments.front().filter(|_| self.segments.len() > 1)?;
        let all: u64 = self.segments.iter().map(|segment| segment.live_bytes).sum();
        let room = segment_bytes.saturating_mul(self.segments.len() as u64);
        let little = oldest.live_bytes < segment_bytes / 4 || all < room / 4;
        little.then_some(oldest.number)
    }

    /// What lives in a segment, the places of one message together. Looks at everything that lives.
    pub(super) fn living(&self, segment: u64) -> Vec<(MessageId, QueueId)> {
        let homes = self.homes.iter();
        let places = homes.flat_map(|(queue, homes)| {
            let here = homes
                .iter()
                .filter(|(_, home)| u64::from(home.segment) == segment);
            here.map(|(id, _)| (id, *queue))
        });
        let mut places: Vec<_> = places.collect();
        places.sort_unstable();
        places
    }

    fn settle(&mut self, id: MessageId, queue: QueueId, home: Home) {
        self.forget(id, queue);
        if let Some(segment) = self.segment(home.segment.into()) {
            segment.live += 1;
            segment.live_bytes = segment.live_bytes.saturating_add(home.bytes.into());
            self.homes.entry(queue).or_default().insert(id, home);
        }
    }

    fn forget(&mut self, id: MessageId, queue: QueueId) {
        let Some(homes) = self.homes.get_mut(&queue) else {
            return;
        };
        let Some(home) = homes.remove(&id) else {
            return;
        };
        if homes.is_empty() {
            self.homes.remove(&queue);
        }
        if let Some(segment) = self.segment(home.segment.into()) {
            segment.live = segment.live.saturating_sub(1);
            segment.live_bytes = segment.live_bytes.saturating_sub(home.bytes.into());
        }
    }

    fn segment(&mut self, number: u64) -> Option<&mut Segment> {
        let position = self
            .segments
            .binary_search_by_key(&number, |segment| segment.number);
        position
            .ok()
            .and_then(|position| self.segments.get_mut(position))
    }
}
