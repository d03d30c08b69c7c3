//! Asking again what nobody may have heard. A topic keeps nothing for whoever is not there, and from an outage of the
//! bus everybody comes back in his own time: what is asked right after it may be lost, and no word of that comes. So
//! it is asked again, after pauses that grow, until whoever was asked says anything, or the time is up.

use std::collections::BTreeSet;

use pillarbox_messages::{ComponentId, DestinationKind};

use super::{Actions, Again, Conversation, Phase, Procedure};

/// What is known of who may not have heard.
#[derive(Clone, Debug, Default)]
pub(super) struct Repeats {
    /// Whether the bus was away in this conversation's time, or just before.
    unsettled: bool,
    /// Who was asked over a topic since, and has said nothing.
    unheard: BTreeSet<ComponentId>,
    /// When it is asked again; none while nobody is waited for.
    next: Option<Repeat>,
}

#[derive(Clone, Copy, Debug)]
struct Repeat {
    at_ms: i64,
    /// How long it was waited for.
    pause_ms: i64,
}

impl Repeat {
    const fn after(pause_ms: i64, now_ms: i64) -> Self {
        Self {
            at_ms: now_ms.saturating_add(pause_ms),
            pause_ms,
        }
    }
}

impl Repeats {
    /// The bus was away.
    pub(super) const fn unsettle(&mut self) {
        self.unsettled = true;
        // Everybody comes back anew.
        self.next = None;
    }

    /// Whether it is asked again, whatever becomes of what was sent.
    pub(super) const fn go_on(&self) -> bool {
        self.next.is_some()
    }

    /// Somebody has said something.
    pub(super) fn heard(&mut self, contributor: &ComponentId) {
        self.unheard.remove(contributor);
    }

    /// Somebody is asked over a topic.
    fn asked(&mut self, contributor: &ComponentId) {
        if self.unsettled {
            self.unheard.insert(contributor.clone());
        }
    }
}

impl<P: Procedure> Conversation<P> {
    /// A request has been written to a contributor's address.
    pub(super) fn note_asked(&mut self, contributor: &ComponentId) {
        let address = self.addresses.get(contributor);
        if address.is_some_and(|it| it.destination.kind() == DestinationKind::Topic) {
            self.repeats.asked(contributor);
        }
    }

    /// Others are asked from here on.
    pub(super) fn forget_repeats(&mut self) {
        self.repeats.unheard.clear();
        self.repeats.next = None;
    }

    /// After every step: asks again if that is due, and sees to the timer as long as somebody may not have heard.
    pub(super) fn arrange_repeats(&mut self, now_ms: i64, out: &mut Actions) {
        if !self.repeats.unsettled {
            return;
        }
        if !self.may_not_be_heard() {
            // The timer may come in vain.
            self.repeats.next = None;
            return;
        }
        let next = match self.repeats.next {
            None => Repeat::after(FIRST_PAUSE_MS, now_ms),
            Some(due) if now_ms >= due.at_ms => {
                self.repeat(out);
                Repeat::after(due.pause_ms.saturating_mul(2).min(LONGEST_PAUSE_MS), now_ms)
            }
            Some(later) => later,
        };
        self.repeats.next = Some(next);
        let earliest = self.phase_time(now_ms);
        let earliest = earliest.map_or(next.at_ms, |at| at.min(next.at_ms));
        self.set_timer(Some(earliest), out);
    }

    fn repeat(&mut self, out: &mut Actions) {
        match &self.phase {
            Phase::Identifying(_) => self.ask_who_is_ready(out),
            Phase::Performing(_) => {
                for contributor in self.unheard() {
                    self.ask(&contributor, out);
                }
            }
            Phase::New | Phase::Offering(_) | Phase::Done => {}
        }
    }

    /// Whether somebody who owes an answer may not have been asked.
    fn may_not_be_heard(&self) -> bool {
        match &self.phase {
            Phase::Identifying(state) if state.doomed => false,
            Phase::Identifying(state) => state.outstanding.iter().any(|id| !self.is_held(id)),
            Phase::Performing(_) => !self.unheard().is_empty(),
            Phase::New | Phase::Offering(_) | Phase::Done => false,
        }
    }

    fn unheard(&self) -> Vec<ComponentId> {
        let unheard = self.repeats.unheard.iter();
        let owing = unheard.filter(|id| self.is_waiting_for(id));
        owing.cloned().collect()
    }

    /// Whether its answer waits to be judged.
    fn is_held(&self, contributor: &ComponentId) -> bool {
        let mut held = self.held.iter();
        held.any(|(message, _)| message.header().from == *contributor)
    }

    /// What the phase waits for besides.
    fn phase_time(&self, now_ms: i64) -> Option<i64> {
        match &self.phase {
            Phase::Identifying(state) => {
                let again = match state.again {
                    Again::At(at) => Some(at),
                    Again::No | Again::Done => None,
                };
                // What is over has been dealt with, or waits for something else.
                let times = [state.deadline_ms, again].into_iter().flatten();
                times.filter(|at| *at > now_ms).min()
            }
            Phase::Performing(state) => {
                let next = state.next_time();
                next.map(|at| at.max(now_ms.saturating_add(1)))
            }
            Phase::New | Phase::Offering(_) | Phase::Done => None,
        }
    }
}

/// After the bus is back.
const FIRST_PAUSE_MS: i64 = 1000;
const LONGEST_PAUSE_MS: i64 = 30_000;
