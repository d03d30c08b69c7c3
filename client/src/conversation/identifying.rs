//! The identifying phase: who is there and ready.

use pillarbox_messages::{ChecksumData, ComponentId, DestinationKind, Message, ResponseCode};

use super::{
    Action, Actions, Address, Again, Conversation, Identifying, Offering, Phase, Procedure,
    deadline, ignored, is_progress,
    procedure::{REFUSED, Refusal},
};
use crate::event::{ComponentFailure, EventKind, join};

impl<P: Procedure> Conversation<P> {
    pub(super) fn start(&mut self, now_ms: i64, out: &mut Actions) {
        let deadline_ms = deadline(now_ms, self.context.identification_timeout_ms);
        self.end_ms = deadline(now_ms, self.context.conversation_timeout_ms);
        let half_ms = self.context.identification_timeout_ms / 2;
        self.phase = Phase::Identifying(Identifying {
            deadline_ms,
            again: deadline(now_ms, half_ms).map_or(Again::No, Again::At),
            outstanding: self.context.expected.clone(),
            selected: Vec::new(),
            doomed: false,
        });
        if self.context.expected.is_empty() {
            return self.identification_over(now_ms, out);
        }
        self.set_identify_timer(out);
        self.ask_who_is_ready(out);
        self.emit(EventKind::IdentifyRequestSent, None, out);
    }

    pub(super) fn ask_who_is_ready(&self, out: &mut Actions) {
        for destination in &self.context.identify_at {
            let header = self.header(destination.clone());
            out.push(Action::Send {
                message: Box::new(self.procedure.identify_request(header)),
                reply_address: None,
                contributor: None,
            });
        }
    }

    pub(super) fn identify_response(
        &mut self,
        message: &Message,
        reply_address: Option<String>,
        now_ms: i64,
        out: &mut Actions,
    ) {
        let from = message.header().from.clone();
        let Some(info) = message.response_info() else {
            return ignored("a response without response info", out);
        };
        let (code, text) = (info.response_code, info.response_text.clone());
        if is_progress(code) {
            return ignored("a progress code in an identification response", out);
        }
        let Phase::Identifying(state) = &mut self.phase else {
            return;
        };
        let known = self.held.iter().any(|(held, _)| held.header().from == from);
        if known || !state.outstanding.contains(&from) {
            return ignored("a second answer", out);
        }
        if code == ResponseCode::DuplicateFileFailure && self.procedure.awaits_checksum() {
            if self.held.is_empty() {
                out.push(Action::Examine);
            }
            return self.held.push((message.clone(), reply_address));
        }
        state.outstanding.remove(&from);
        match code {
            ResponseCode::IdentificationPositive => {
                self.ready(from, message, reply_address, text, out);
            }
            ResponseCode::RequestNotSupported => self.unsupported.push(refusal(from, code, text)),
            _ => match self.procedure.refused(message, code) {
                Refusal::Failed => self.identify_failed(from, code, text, out),
                Refusal::Complete(result, info) => {
                    self.component_complete(from, result, Some(info), out);
                }
                Refusal::Needless(result, info) => {
                    let contributor = from.clone();
                    self.emit(EventKind::ComponentIdentified { contributor }, text, out);
                    self.component_complete(from, result, Some(info), out);
                }
                Refusal::Abort(reason) => {
                    self.identify_failed(from, code, Some(reason), out);
                    self.doom(now_ms, out);
                }
            },
        }
        if matches!(&self.phase, Phase::Identifying(state) if state.outstanding.is_empty()) {
            self.identification_over(now_ms, out);
        }
    }

    /// The operation is to fail, whatever others answer. Whoever refuses, too, may say so for a moment: then all of
    /// them are named.
    fn doom(&mut self, now_ms: i64, out: &mut Actions) {
        let Phase::Identifying(state) = &mut self.phase else {
            return;
        };
        let soon = now_ms.saturating_add(FURTHER_REFUSALS_MS);
        // The time may be over already, if a checksum was waited for.
        let ahead = state.deadline_ms.filter(|at| *at > now_ms);
        state.deadline_ms = Some(ahead.map_or(soon, |at| at.min(soon)));
        state.doomed = true;
        state.again = Again::No;
        self.set_identify_timer(out);
    }

    /// Records a positive answer and where its sender wants to be asked.
    fn ready(
        &mut self,
        from: ComponentId,
        message: &Message,
        reply_address: Option<String>,
        text: Option<String>,
        out: &mut Actions,
    ) {
        let destination = message.header().reply_to.clone();
        let temporary = destination.kind() == DestinationKind::TemporaryQueue;
        if temporary && reply_address.is_none() {
            let text = format!("answers at {destination}, but the bus brought no reply address");
            let failure = ComponentFailure::new(from, None, text);
            return self.component_failed(failure, out);
        }
        let reply_address = reply_address.filter(|_| temporary);
        self.procedure.identified(&from, message);
        self.addresses.insert(
            from.clone(),
            Address {
                destination,
                reply_address,
            },
        );
        if let Phase::Identifying(state) = &mut self.phase {
            state.selected.push(from.clone());
        }
        self.emit(
            EventKind::ComponentIdentified { contributor: from },
            text,
            out,
        );
    }

    fn identify_failed(
        &mut self,
        contributor: ComponentId,
        code: ResponseCode,
        text: Option<String>,
        out: &mut Actions,
    ) {
        self.component_failed(refusal(contributor, code, text), out);
    }

    pub(super) fn identify_timer(&mut self, now_ms: i64, out: &mut Actions) {
        self.ask_the_silent(now_ms, out);
        let Phase::Identifying(state) = &self.phase else {
            return;
        };
        if state.deadline_ms.is_none_or(|at| now_ms < at) {
            return self.set_identify_timer(out);
        }
        if state.doomed {
            return self.conclude(out);
        }
        if !self.held.is_empty() {
            // Not silent: they have answered, and are judged when the checksum is known.
            return self.set_timer(None, out);
        }
        let silent: Vec<ComponentId> = state.outstanding.iter().cloned().collect();
        let text = format!("no answer from {}", join(&silent));
        self.emit(
            EventKind::IdentifyTimeout {
                silent: silent.clone(),
            },
            Some(text),
            out,
        );
        for contributor in silent {
            self.silent(
                contributor,
                "did not answer the identify request in time",
                out,
            );
        }
        self.identification_over(now_ms, out);
    }

    /// Asks once more, if it is time for that and somebody has not answered. Who has answers the same again.
    fn ask_the_silent(&mut self, now_ms: i64, out: &mut Actions) {
        let Phase::Identifying(state) = &mut self.phase else {
            return;
        };
        if !matches!(state.again, Again::At(at) if at <= now_ms) {
            return;
        }
        state.again = Again::Done;
        if state.outstanding.len() > self.held.len() {
            self.ask_who_is_ready(out);
        }
    }

    /// The identify request could not be sent. Those who were asked once more have the time that they had.
    pub(super) fn not_identifying(&mut self, text: &str, out: &mut Actions) {
        if matches!(&self.phase, Phase::Identifying(state) if state.again == Again::Done) {
            return ignored("those who are silent were not asked once more", out);
        }
        if self.repeats.go_on() {
            return ignored("it is asked again", out);
        }
        let text = format!("the identify request could not be sent: {text}");
        self.finish_failed(&text, out);
    }

    fn set_identify_timer(&self, out: &mut Actions) {
        let Phase::Identifying(state) = &self.phase else {
            return;
        };
        let again_ms = match state.again {
            Again::At(at) => Some(at),
            Again::No | Again::Done => None,
        };
        let times = [state.deadline_ms, again_ms];
        self.set_timer(times.into_iter().flatten().min(), out);
    }

    /// All have answered, or their time is over.
    fn identification_over(&mut self, now_ms: i64, out: &mut Actions) {
        let Phase::Identifying(state) = &mut self.phase else {
            return;
        };
        if state.doomed {
            return self.conclude(out);
        }
        let selected = std::mem::take(&mut state.selected);
        if !self
            .procedure
            .may_perform(selected.len(), state.outstanding.len())
        {
            return self.cannot_perform(out);
        }
        let chosen = self.procedure.choose(selected);
        self.emit(
            EventKind::IdentificationComplete {
                selected: chosen.clone(),
                unsupported: self.unsupported.clone(),
            },
            None,
            out,
        );
        if chosen.is_empty() {
            return self.conclude(out);
        }
        if !self.procedure.offers_file() {
            return self.perform(chosen, now_ms, out);
        }
        let deadline_ms = deadline(now_ms, self.context.operation_timeout_ms);
        self.phase = Phase::Offering(Offering {
            deadline_ms,
            selected: chosen,
            ready: false,
        });
        self.offered = true;
        self.set_timer(deadline_ms, out);
        out.push(Action::OfferFile);
    }

    /// The file's checksum is known: what waited for it goes on.
    pub(super) fn examined(&mut self, checksum: ChecksumData, now_ms: i64, out: &mut Actions) {
        self.procedure.examined(checksum);
        for (message, reply_address) in std::mem::take(&mut self.held) {
            self.identify_response(&message, reply_address, now_ms, out);
        }
        match &self.phase {
            Phase::Identifying(_) => self.identify_timer(now_ms, out),
            Phase::Offering(offering) if offering.ready => self.offer_ready(now_ms, out),
            _ => {}
        }
    }
}

fn refusal(contributor: ComponentId, code: ResponseCode, text: Option<String>) -> ComponentFailure {
    let text = text.unwrap_or_else(|| REFUSED.to_owned());
    ComponentFailure::new(contributor, Some(code), text)
}

/// How long others may say that they refuse an operation, too, that has failed by one's refusal.
pub(super) const FURTHER_REFUSALS_MS: i64 = 1000;
