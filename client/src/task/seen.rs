//! Messages that the bus brings a second time.

use std::collections::VecDeque;

/// How many messages are remembered: more than can be under way to one conversation.
const REMEMBERED: usize = 1024;

/// The identities of the messages that have come last.
#[derive(Debug, Default)]
pub(super) struct Seen(VecDeque<String>);

impl Seen {
    /// Whether a message of this identity has come before. One without any is always new.
    pub(super) fn has(&mut self, id: &str) -> bool {
        if id.is_empty() {
            return false;
        }
        if self.0.iter().any(|seen| seen == id) {
            return true;
        }
        if self.0.len() >= REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back(id.to_owned());
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_ones_are_remembered_and_no_more() {
        let mut seen = Seen::default();
        assert!(!seen.has("0") && seen.has("0"));
        for number in 1..REMEMBERED {
            assert!(!seen.has(&number.to_string()));
        }
        assert!(seen.has("0"));
        assert!(!seen.has("one more"));
        assert!(!seen.has("0"));
        assert_eq!(seen.0.len(), REMEMBERED);
        assert!(!seen.has("") && !seen.has(""));
    }
}
