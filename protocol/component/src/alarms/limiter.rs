//! How often the same alarm about bad messages is raised: a stranger decides how many of those there are.

use std::collections::BTreeMap;

use super::{AlarmRequest, digest_of};

/// Lets one of several identical alarms through per [`WINDOW_MS`], [`MAX_PER_SENDER`] different ones about one
/// sender, and [`MAX_PER_WINDOW`] in all.
///
/// Holds at most [`MAX_KEYS`] alarms, the senders of the last windows, and no clock.
#[derive(Debug, Default)]
pub(crate) struct Limiter {
    /// Fingerprint of an alarm -> the window it opened.
    windows: BTreeMap<[u8; 32], Window>,
    /// Digest of a sender -> what it has brought about in its window.
    senders: BTreeMap<[u8; 32], Window>,
    all: Window,
}

#[derive(Clone, Copy, Debug, Default)]
struct Window {
    started_ms: i64,
    raised: u32,
    held_back: u64,
}

/// Whether an alarm goes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// It does; this many of its kind were held back since the last one that did.
    Raise {
        /// How many were held back.
        held_back: u64,
    },
    /// It doesn't.
    HoldBack,
}

impl Limiter {
    /// Counts the alarm about a message of `sender`, if that is known, and says whether it goes out now.
    pub(crate) fn admit(
        &mut self,
        request: &AlarmRequest,
        sender: Option<&str>,
        now_ms: i64,
    ) -> Admission {
        let key = request.fingerprint();
        if let Some(window) = self.windows.get_mut(&key)
            && window.is_open(now_ms)
        {
            window.held_back = window.held_back.saturating_add(1);
            return Admission::HoldBack;
        }
        self.senders.retain(|_, window| window.is_open(now_ms));
        let sender = digest_of(&[sender]);
        let by_sender = self.senders.get(&sender).map_or(0, |window| window.raised);
        if !self.all.is_open(now_ms) {
            self.all = Window::default();
        }
        if self.all.raised >= MAX_PER_WINDOW || by_sender >= MAX_PER_SENDER {
            return Admission::HoldBack;
        }
        self.all.count(now_ms);
        self.senders.entry(sender).or_default().count(now_ms);
        let held_back = self
            .windows
            .remove(&key)
            .map_or(0, |window| window.held_back);
        self.make_room();
        self.windows.entry(key).or_default().count(now_ms);
        Admission::Raise { held_back }
    }

    fn make_room(&mut self) {
        while self.windows.len() >= MAX_KEYS {
            let oldest = self
                .windows
                .iter()
                .min_by_key(|(_, window)| window.started_ms);
            let Some(key) = oldest.map(|(key, _)| *key) else {
                return;
            };
            self.windows.remove(&key);
        }
    }
}

impl Window {
    /// One more was raised; the first one opens the window.
    const fn count(&mut self, now_ms: i64) {
        if self.raised == 0 {
            self.started_ms = now_ms;
        }
        self.raised += 1;
    }

    /// A clock that went back closes the window too.
    fn is_open(self, now_ms: i64) -> bool {
        self.raised > 0 && (0..WINDOW_MS).contains(&now_ms.saturating_sub(self.started_ms))
    }
}

const WINDOW_MS: i64 = 60_000;
const MAX_PER_WINDOW: u32 = 30;
const MAX_PER_SENDER: u32 = 10;
const MAX_KEYS: usize = 256;

#[cfg(test)]
mod tests {
    use pillarbox_messages::AlarmCode;
    use pillarbox_settings::AlarmLevel;

    use super::*;

    fn alarm(text: &str) -> AlarmRequest {
        AlarmRequest {
            level: AlarmLevel::Emergency,
            code: AlarmCode::InvalidMessage,
            text: text.to_owned(),
            collection: None,
            file: None,
        }
    }

    #[test]
    fn identical_alarms_go_out_once_per_window() {
        let mut limiter = Limiter::default();
        assert_eq!(
            limiter.admit(&alarm("a"), None, 0),
            Admission::Raise { held_back: 0 }
        );
        for now in 1..10_000 {
            assert_eq!(limiter.admit(&alarm("a"), None, now), Admission::HoldBack);
        }
        assert_eq!(
            limiter.admit(&alarm("b"), None, 10_000),
            Admission::Raise { held_back: 0 }
        );
        assert_eq!(
            limiter.admit(&alarm("a"), None, WINDOW_MS),
            Admission::Raise { held_back: 9_999 }
        );
    }

    #[test]
    fn different_alarms_are_bounded_too() {
        let mut limiter = Limiter::default();
        let raised = (0..10_000)
            .map(|n| n.to_string())
            .filter(|n| limiter.admit(&alarm(n), Some(n), 5) != Admission::HoldBack)
            .count();
        assert_eq!(raised, MAX_PER_WINDOW as usize);
        assert_ne!(
            limiter.admit(&alarm("later"), None, 5 + WINDOW_MS),
            Admission::HoldBack
        );
    }

    #[test]
    fn one_sender_does_not_silence_the_alarms_about_others() {
        let mut limiter = Limiter::default();
        let mut raised = |n: u32, sender| {
            limiter.admit(&alarm(&n.to_string()), sender, 5) != Admission::HoldBack
        };
        let of_one = (0..1_000).filter(|n| raised(*n, Some("one"))).count();
        assert_eq!(of_one, MAX_PER_SENDER as usize);
        assert!(raised(1_000, Some("another")));
        assert!(raised(1_001, None));
        assert!(!raised(1_002, Some("one")));
    }

    #[test]
    fn memory_is_bounded_and_a_clock_set_back_does_not_silence() {
        let mut limiter = Limiter::default();
        for n in 0..10_000 {
            let sender = n.to_string();
            limiter.admit(&alarm(&sender), Some(&sender), n * WINDOW_MS);
        }
        assert!(limiter.windows.len() <= MAX_KEYS);
        assert_eq!(limiter.senders.len(), 1);
        assert_ne!(limiter.admit(&alarm("9999"), None, 0), Admission::HoldBack);
    }
}
