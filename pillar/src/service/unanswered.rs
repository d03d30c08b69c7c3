//! Requests whose answers did not get to the bus, and that come again. A bus that refuses a message closes the
//! connection over it, and what was in hand comes again: without a count, for ever.
//!
//! A request is known again by its text, since not every bus names it the same when it comes again; the text holds its
//! correlation id. Nothing of it outlives the process.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};

use pillarbox_bus::BusError;
use sha2::{Digest as _, Sha256};

/// What is known of the requests that come again, of the last ones. Locked for a look only.
#[derive(Debug, Default)]
pub(crate) struct Unanswered(Mutex<VecDeque<(Digest, Attempts)>>);

type Digest = [u8; 32];

/// What was tried for a request so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Attempts {
    /// How often it had an answer that the bus did not take, for whatever reason.
    failed: u32,
    /// How often that was because it refused this answer, or one that went with it.
    refused: u32,
    /// What it said against it.
    because: String,
}

impl Attempts {
    /// Whether the answer has to go by itself, so that what the bus says is about it.
    pub(crate) const fn goes_alone(&self) -> bool {
        self.failed > 0
    }

    /// Whether the answer is all that is sent: what the bus refused may have been a progress response.
    pub(crate) const fn goes_silently(&self) -> bool {
        self.failed > 1
    }

    /// Why there is to be no further one, if so.
    pub(crate) fn hopeless(&self) -> Option<&str> {
        (self.refused >= MOST_REFUSALS).then_some(self.because.as_str())
    }
}

impl Unanswered {
    /// What was tried for this request.
    pub(crate) fn attempts(&self, request: &[u8]) -> Attempts {
        let known = self.lock();
        if known.is_empty() {
            return Attempts::default();
        }
        let digest = digest_of(request);
        let found = known.iter().find(|(other, _)| *other == digest);
        found.map_or_else(Attempts::default, |(_, attempts)| attempts.clone())
    }

    /// The bus has not taken the answer to this request.
    pub(crate) fn note(&self, request: &[u8], error: &BusError) {
        let digest = digest_of(request);
        let mut known = self.lock();
        let place = known.iter().position(|(other, _)| *other == digest);
        let mut attempts = place
            .and_then(|place| known.remove(place))
            .map_or_else(Attempts::default, |(_, attempts)| attempts);
        attempts.failed += 1;
        if is_refusal(error) {
            attempts.refused += 1;
            attempts.because = error.to_string();
        }
        known.push_back((digest, attempts));
        if known.len() > MOST_KNOWN {
            known.pop_front();
        }
    }

    /// It does not come again.
    pub(crate) fn forget(&self, request: &[u8]) {
        let mut known = self.lock();
        if !known.is_empty() {
            let digest = digest_of(request);
            known.retain(|(other, _)| *other != digest);
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(Digest, Attempts)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the bus says something against the message itself, which it will say again.
pub(crate) const fn is_refusal(error: &BusError) -> bool {
    matches!(
        error,
        BusError::Refused { .. } | BusError::TooLarge { .. } | BusError::UnknownDestination { .. }
    )
}

fn digest_of(request: &[u8]) -> Digest {
    Sha256::digest(request).into()
}

/// After so many refusals a request is given up.
const MOST_REFUSALS: u32 = 3;
/// Of how many requests it is known; as many as the pillar may have in hand.
const MOST_KNOWN: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    fn refused() -> BusError {
        BusError::Refused {
            name: "NO".to_owned(),
            detail: "not there".to_owned(),
        }
    }

    #[test]
    fn only_refusals_make_a_request_hopeless() {
        let unanswered = Unanswered::default();
        for _ in 0..10 {
            unanswered.note(b"a", &BusError::StaleAck);
            unanswered.note(b"b", &refused());
        }
        assert_eq!(unanswered.attempts(b"a").hopeless(), None);
        assert_eq!(unanswered.attempts(b"c"), Attempts::default());
        assert_eq!(unanswered.attempts(b"b").hopeless(), Some("NO: not there"));
        unanswered.forget(b"b");
        assert_eq!(unanswered.attempts(b"b"), Attempts::default());
    }

    #[test]
    fn after_a_failure_the_answer_goes_alone_and_after_two_without_progress() {
        let unanswered = Unanswered::default();
        for expected in [(false, false), (true, false), (true, true)] {
            let attempts = unanswered.attempts(b"a");
            assert_eq!((attempts.goes_alone(), attempts.goes_silently()), expected);
            assert_eq!(attempts.hopeless(), None);
            unanswered.note(b"a", &refused());
        }
        assert!(unanswered.attempts(b"a").hopeless().is_some());
    }

    #[test]
    fn no_more_is_known_than_of_the_last_ones() {
        let unanswered = Unanswered::default();
        for number in 0..=MOST_KNOWN {
            unanswered.note(&number.to_be_bytes(), &refused());
        }
        let attempts = |number: usize| unanswered.attempts(&number.to_be_bytes());
        assert_eq!(attempts(0), Attempts::default());
        assert!(attempts(1).goes_alone() && attempts(MOST_KNOWN).goes_alone());
    }
}
