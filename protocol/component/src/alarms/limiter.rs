//! How often the same alarm about bad messages is raised: a stranger decides how many of those there are.

use std::collections::BTreeMap;

use super::AlarmRequest;

/// Lets one of several identical alarms through per [`WINDOW_MS`], and [`MAX_PER_WINDOW`] different ones.
///
/// Holds at most [`MAX_KEYS`] alarms, and no clock.
#[derive(Debug, Default)]
pub(crate) struct Limiter {
    /// Fingerprint of an alarm -> the window it opened.
    windows: BTreeMap<[u8; 32], Window>,
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
    /// Counts the alarm and says whether it goes out now.
    pub(crate) fn admit(&mut self, request: &AlarmRequest, now_ms: i64) -> Admission {
        let key = request.fingerprint();
        if let Some(window) = self.windows.get_mut(&key)
            && window.is_open(now_ms)
        {
            window.held_back = window.held_back.saturating_add(1);
            return Admission::HoldBack;
        }
        if !self.all.is_open(now_ms) {
            self.all = Window {
                started_ms: now_ms,
                raised: 0,
                held_back: 0,
            };
        }
        if self.all.raised >= MAX_PER_WINDOW {
            return Admission::HoldBack;
        }
        self.all.raised += 1;
        let held_back = self
            .windows
            .remove(&key)
            .map_or(0, |window| window.held_back);
        self.make_room();
        self.windows.insert(
            key,
            Window {
                started_ms: now_ms,
                raised: 1,
                held_back: 0,
            },
        );
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
    /// A clock that went back closes the window too.
    fn is_open(self, now_ms: i64) -> bool {
        self.raised > 0 && (0..WINDOW_MS).contains(&now_ms.saturating_sub(self.started_ms))
    }
}

const WINDOW_MS: i64 = 60_000;
const MAX_PER_WINDOW: u32 = 30;
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
            limiter.admit(&alarm("a"), 0),
            Admission::Raise { held_back: 0 }
        );
        for now in 1..10_000 {
            assert_eq!(limiter.admit(&alarm("a"), now), Admission::HoldBack);
        }
        assert_eq!(
            limiter.admit(&alarm("b"), 10_000),
            Admission::Raise { held_back: 0 }
        );
        assert_eq!(
            limiter.admit(&alarm("a"), WINDOW_MS),
            Admission::Raise { held_back: 9_999 }
        );
    }

    #[test]
    fn different_alarms_are_bounded_too() {
        let mut limiter = Limiter::default();
        let raised = (0..10_000)
            .filter(|n| limiter.admit(&alarm(&n.to_string()), 5) != Admission::HoldBack)
            .count();
        assert_eq!(raised, MAX_PER_WINDOW as usize);
        assert_ne!(
            limiter.admit(&alarm("later"), 5 + WINDOW_MS),
            Admission::HoldBack
        );
    }

    #[test]
    fn memory_is_bounded_and_a_clock_set_back_does_not_silence() {
        let mut limiter = Limiter::default();
        for n in 0..10_000 {
            limiter.admit(&alarm(&n.to_string()), n * WINDOW_MS);
        }
        assert!(limiter.windows.len() <= MAX_KEYS);
        assert_ne!(limiter.admit(&alarm("9999"), 0), Admission::HoldBack);
    }
}
