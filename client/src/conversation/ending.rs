//! How contributors' parts end, and how the conversation does.

use pillarbox_messages::ComponentId;

use super::{Action, Actions, Conversation, Phase, Procedure};
use crate::event::{Completed, ComponentFailure, ComponentResult, EventKind};

impl<P: Procedure> Conversation<P> {
    pub(super) fn component_failed(&mut self, failure: ComponentFailure, out: &mut Actions) {
        let kind = EventKind::ComponentFailed {
            contributor: failure.contributor.clone(),
            code: failure.code,
        };
        self.emit(kind, Some(failure.text.clone()), out);
        self.failures.push(failure);
    }

    pub(super) fn component_complete(
        &mut self,
        contributor: ComponentId,
        result: ComponentResult,
        info: Option<String>,
        out: &mut Actions,
    ) {
        let summary = result.summary();
        let kind = EventKind::ComponentComplete {
            contributor: contributor.clone(),
            result,
        };
        self.emit(kind, info, out);
        self.completed.push(Completed {
            contributor,
            result: summary,
        });
    }

    /// Everybody who was to answer has: the final event.
    pub(super) fn conclude(&mut self, out: &mut Actions) {
        let complete = !self.completed.is_empty() && (P::ONE_IS_ENOUGH || self.failures.is_empty());
        if complete {
            let (results, failures) = (self.completed.clone(), self.failures.clone());
            self.finish(EventKind::Complete { results, failures }, None, out);
        } else {
            let nobody = self.failures.is_empty();
            let text = if nobody { NOBODY } else { "Failed operation." };
            let text = format!("{text}{}", self.causes());
            self.finish_failed(&text, out);
        }
    }

    pub(super) fn finish_failed(&mut self, text: &str, out: &mut Actions) {
        let kind = EventKind::Failed {
            results: self.completed.clone(),
            failures: self.failures.clone(),
        };
        self.finish(kind, Some(text.to_owned()), out);
    }

    fn finish(&mut self, kind: EventKind, info: Option<String>, out: &mut Actions) {
        out.push(Action::ClearTimer);
        self.emit(kind, info, out);
        if self.offered {
            out.push(Action::RemoveOffer);
        }
        self.phase = Phase::Done;
    }

    /// A contributor has not done its part in time; what could not be read may have been its answer.
    pub(super) fn silent(&mut self, contributor: ComponentId, text: &str, out: &mut Actions) {
        let text = match self.unreadable.get(&contributor) {
            Some(unreadable) => format!("{text}; {unreadable}"),
            None => text.to_owned(),
        };
        self.component_failed(ComponentFailure::new(contributor, None, text), out);
    }

    /// The conversation's time is over, whatever time its parts have.
    pub(super) fn time_is_over(&mut self, out: &mut Actions) {
        let owing: Vec<ComponentId> = match &self.phase {
            Phase::Identifying(state) => state.outstanding.iter().cloned().collect(),
            Phase::Performing(state) => state.waiting.keys().cloned().collect(),
            Phase::New | Phase::Offering(_) | Phase::Done => Vec::new(),
        };
        for contributor in owing {
            self.silent(
                contributor,
                "was not done when the conversation's time was over",
                out,
            );
        }
        let causes = self.causes();
        self.finish_failed(&format!("the conversation's time is over.{causes}"), out);
    }

    pub(super) fn cannot_perform(&mut self, out: &mut Actions) {
        let text = "Unable to continue operation, contributors unavailable.";
        let causes = self.causes();
        self.finish_failed(&format!("{text}{causes}"), out);
    }

    /// What every failure so far was, to be added to the text of an operation that fails: of one that does, those who
    /// don't do such a thing are a cause, too.
    fn causes(&mut self) -> String {
        self.failures.append(&mut self.unsupported);
        if self.failures.is_empty() {
            return String::new();
        }
        let causes: Vec<String> = self.failures.iter().map(ToString::to_string).collect();
        format!(" Cause(s): [{}]", causes.join("; "))
    }
}

const NOBODY: &str = "no contributor supports the operation.";
