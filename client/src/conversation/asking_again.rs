//! Asking a contributor again: for what is still owed, and for the next page.

use std::collections::BTreeMap;

use pillarbox_messages::{ComponentId, DestinationKind};

use super::{Actions, Conversation, Phase, Procedure, ignored};
use crate::event::{ComponentFailure, ComponentResult, EventKind};

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
                    self.is_waiting_for(id) && !(answers_kept && self.is_sure_to_be_asked(id))
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

/// One more request is without an answer.
pub(super) fn owe(owed: &mut BTreeMap<ComponentId, u32>, contributor: &ComponentId) {
    let owed = owed.entry(contributor.clone()).or_default();
    *owed = owed.saturating_add(1);
}

/// What one does that sends no page beyond some point.
const SAME_AGAIN: &str = "said that there is more, but sent the same again when asked for it";
