//! What lives in which segment, and what is defined.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::core::{
    message::MessageId,
    unit::{Definition, Entry, QueueId},
};

type Key = (MessageId, QueueId);

/// What lives in which segment, and what is defined.
#[derive(Debug, Default)]
pub(super) struct Index {
    boot: u64,
    definitions: BTreeMap<QueueId, Definition>,
    /// The segment that a message's place was last written to in full, with its share of the record's length.
    homes: BTreeMap<Key, (u64, u64)>,
    /// Oldest first; the last one is being written.
    segments: VecDeque<Segment>,
}

#[derive(Debug, Default)]
struct Segment {
    number: u64,
    live: BTreeSet<Key>,
    live_bytes: u64,
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
            }
            Entry::Put { message, places } => {
                let share = message.size().min(length) / (places.len().max(1) as u64);
                for place in places {
                    self.settle((message.id, place.queue), segment, share);
                }
            }
            Entry::Ack { queue, ids } => {
                for id in ids {
                    self.forget((*id, *queue));
                }
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
        std::iter::once(Entry::Boot(self.boot))
            .chain(defined)
            .collect()
    }

    pub(super) fn segments(&self) -> usize {
        self.segments.len()
    }

    /// The oldest segment, if nothing in it lives and it isn't being written.
    pub(super) fn oldest_dead(&self) -> Option<u64> {
        let oldest = self
            .segments
            .front()
            .filter(|oldest| oldest.live.is_empty())?;
        (self.segments.len() > 1).then_some(oldest.number)
    }

    pub(super) fn remove_oldest(&mut self) {
        self.segments.pop_front();
    }

    /// The oldest segment and what lives in it, if that is little, or if all segments together hold little.
    pub(super) fn stale(&self, segment_bytes: u64) -> Option<(u64, Vec<Key>)> {
        let oldest = self.segments.front().filter(|_| self.segments.len() > 1)?;
        let all: u64 = self.segments.iter().map(|segment| segment.live_bytes).sum();
        let room = segment_bytes.saturating_mul(self.segments.len() as u64);
        let little = oldest.live_bytes < segment_bytes / 4 || all < room / 4;
        little.then(|| (oldest.number, oldest.live.iter().copied().collect()))
    }

    fn settle(&mut self, key: Key, segment: u64, bytes: u64) {
        self.forget(key);
        if let Some(home) = self.segment(segment) {
            home.live.insert(key);
            home.live_bytes = home.live_bytes.saturating_add(bytes);
            self.homes.insert(key, (segment, bytes));
        }
    }

    fn forget(&mut self, key: Key) {
        let Some((segment, bytes)) = self.homes.remove(&key) else {
            return;
        };
        if let Some(home) = self.segment(segment) {
            home.live.remove(&key);
            home.live_bytes = home.live_bytes.saturating_sub(bytes);
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
