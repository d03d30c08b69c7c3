//! Asking a contributor again: for what is still owed, for the next page, and after a failure that may pass.

use std::collections::BTreeMap;

use pillarbox_messages::{ComponentId, CorrelationId, DestinationKind, ResponseCode};

use super::{Actions, Conversation, Phase, Procedure, ignored};
use crate::event::{ComponentFailure, ComponentResult, Concern, EventKind};

impl<P: Procedure> Conversation<P> {
    /// Whoever owes an answer is asked again: the same request gets the same answer, and nothing is changed twice.
    /// A file would be delivered twice, though: one whose request waits on the bus as the answer will is not asked
    /// for again.
    pub(super) fn ask_again(&mut self, answers_kept: bool, out: &mut Actions) {
        match &self.phase {
            Phase::Identifying(state) if !state.outstanding.is_empty() => {
                self.ask_who_is_ready(out);
            }
            Phase::Performing(state) => {
                let owing = state.waiting.keys().filter(|id| {
                    self.is_waiting_for(id)
                        && !state.paused.contains_key(*id)
                        && !(answers_kept && self.is_sure_to_be_asked(id))
                });
                let owing: Vec<ComponentId> = owing.cloned().collect();
                owing
                    .iter()
                    .for_each(|contributor| self.ask(contributor, out));
            }
            _ => ignored("nobody owes an answer", out),
        }
    }

    /// Whether the request is on the bus and stays there until it is dealt with.
    fn is_sure_to_be_asked(&self, contributor: &ComponentId) -> bool {
        let Phase::Performing(state) = &self.phase else {
            return false;
        };
        let address = self.addresses.get(contributor);
        let queue = address.is_some_and(|it| it.destination.kind() == DestinationKind::Queue);
        queue && state.sent.contains(contributor)
    }

    /// Asks a contributor again after a pause, which ends before its time does.
    pub(super) fn retry(
        &mut self,
        from: ComponentId,
        number: u32,
        told: &str,
        now_ms: i64,
        out: &mut Actions,
    ) {
        let end_ms = self.end_ms;
        let pause_ms = pause_ms(&self.context.correlation, &from, number);
        let Phase::Performing(state) = &mut self.phase else {
            return;
        };
        let until = state.waiting.get(&from).copied().flatten();
        let left = [until, end_ms].into_iter().flatten().min();
        let left = left.map_or(i64::MAX, |end| end.saturating_sub(now_ms));
        let pause_ms = pause_ms.min(left / 2).max(1);
        state
            .paused
            .insert(from.clone(), now_ms.saturating_add(pause_ms));
        let next = state.next_time();
        self.set_timer(next, out);
        let (seconds, tenths) = (pause_ms / 1000, pause_ms % 1000 / 100);
        let text = format!("{told}; asking again in {seconds}.{tenths} s");
        let kind = EventKind::Warning {
            contributor: Some(from),
            concern: Concern::Contributor,
        };
        self.emit(kind, Some(text), out);
    }

    /// Asks those again whose pause is over.
    pub(super) fn end_pauses(&mut self, now_ms: i64, out: &mut Actions) {
        let Phase::Performing(state) = &mut self.phase else {
            return;
        };
        let paused = state.paused.iter();
        let over = paused.filter(|(_, at)| **at <= now_ms);
        let over: Vec<ComponentId> = over.map(|(id, _)| id.clone()).collect();
        for contributor in over {
            if let Phase::Performing(state) = &mut self.phase {
                state.paused.remove(&contributor);
            }
            self.ask(&contributor, out);
        }
    }

    /// Whether a failed transfer is one that is known: nobody has been asked since.
    pub(super) fn is_repetition(&self, from: &ComponentId, code: ResponseCode) -> bool {
        let Phase::Performing(state) = &self.phase else {
            return false;
        };
        code == ResponseCode::FileTransferFailure && state.paused.contains_key(from)
    }

    /// One page is in: asks for the next, with the full time for it.
    pub(super) fn again(
        &mut self,
        from: ComponentId,
        page: ComponentResult,
        now_ms: i64,
        out: &mut Actions,
    ) {
        self.emit(
            EventKind::Progress {
                contributor: from.clone(),
                result: Some(page),
            },
            None,
            out,
        );
        if let Phase::Performing(state) = &mut self.phase
            && state.repeating.remove(&from)
        {
            // The page before was delivered twice: one more request is yet to be answered.
            owe(&mut self.owed, &from);
        }
        self.ask(&from, out);
        self.renew(from, now_ms, out);
    }

    /// What has come before has come again. It may have been delivered twice; or it is all that its sender gives,
    /// which shows when it is asked once more and nothing else comes.
    pub(super) fn stale(&mut self, from: ComponentId, now_ms: i64, out: &mut Actions) {
        let Phase::Performing(state) = &mut self.phase else {
            return;
        };
        if self.owed.get(&from).is_some_and(|owed| *owed > 0) {
            return ignored("an answer to an earlier request", out);
        }
        if state.repeating.insert(from.clone()) {
            return self.ask(&from, out);
        }
        let text = format!("its {} can't be used: it {SAME_AGAIN}", P::FINAL.as_str());
        let failure = ComponentFailure::new(from, None, text);
        self.not_done(failure, true, now_ms, out);
    }
}

/// How long one is not asked again after a failure: twice as long each time, up to a limit. Somewhat less for some
/// than for others, so that those who failed together do not all come back together.
fn pause_ms(correlation: &CorrelationId, contributor: &ComponentId, number: u32) -> i64 {
    let doublings = number.saturating_sub(1).min(16);
    let whole = (FIRST_PAUSE_MS << doublings).min(LONGEST_PAUSE_MS);
    let chance = crc32fast::hash(format!("{correlation} {contributor} {number}").as_bytes());
    whole - whole / 4 * i64::from(chance % 1000) / 1000
}

const FIRST_PAUSE_MS: i64 = 1000;
const LONGEST_PAUSE_MS: i64 = 30_000;

/// One more request is without an answer.
pub(super) fn owe(owed: &mut BTreeMap<ComponentId, u32>, contributor: &ComponentId) {
    let owed = owed.entry(contributor.clone()).or_default();
    *owed = owed.saturating_add(1);
}

/// What one does that sends no page beyond some point.
const SAME_AGAIN: &str = "said that there is more, but sent the same again when asked for it";
