//! Messages by their correlation id, which is not their own: many may have the same.

use std::{
    collections::BTreeSet,
    hash::{DefaultHasher, Hash, Hasher},
};

use super::message::{MessageId, QueuedMessage};

/// The messages that have a correlation id, by its hash: whoever finds one looks whether it is the one meant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Correlations {
    known: BTreeSet<(u64, MessageId)>,
}

impl Correlations {
    pub(crate) fn insert(&mut self, message: &QueuedMessage) {
        if let Some(correlation) = message.correlation_id() {
            self.known.insert((hash(correlation), message.id));
        }
    }

    pub(crate) fn remove(&mut self, message: &QueuedMessage) {
        if let Some(correlation) = message.correlation_id() {
            self.known.remove(&(hash(correlation), message.id));
        }
    }

    /// The messages that may have this correlation id, in the order of their ids.
    pub(crate) fn find(&self, correlation: &str) -> impl Iterator<Item = MessageId> {
        let hash = hash(correlation);
        let first = MessageId { boot: 0, seq: 0 };
        let last = MessageId {
            boot: u64::MAX,
            seq: u64::MAX,
        };
        let found = self.known.range((hash, first)..=(hash, last));
        found.map(|(_, id)| *id)
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.known.len()
    }
}

fn hash(correlation: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    correlation.hash(&mut hasher);
    hasher.finish()
}
