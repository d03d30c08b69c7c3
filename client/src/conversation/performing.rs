//! The performing phase: the contributors do their parts.

use pillarbox_messages::{ComponentId, Message, ResponseCode};

use super::{
    Action, Actions, Conversation, Expected, Input, Performing, Phase, Procedure, asking_again,
    deadline, ignored, is_progress,
    procedure::{Completion, Failing},
};
use crate::event::{ComponentFailure, ComponentResult, Concern, Delivered, EventKind};

impl<P: Procedure> Conversation<P> {
    /// Asks the chosen contributors.
    pub(super) fn perform(&mut self, chosen: Vec<ComponentId>, now_ms: i64, out: &mut Actions) {
        let until = deadline(now_ms, self.context.operation_timeout_ms);
        self.offered |= self.procedure.receives_file();
        self.forget_repeats();
        self.phase = Phase::Performing(Performing {
            waiting: chosen.iter().map(|id| (id.clone(), until)).collect(),
            ..Performing::default()
        });
        self.set_timer(until, out);
        self.emit(
            EventKind::RequestSent {
                contributors: chosen.clone(),
            },
            None,
            out,
        );
        for contributor in &chosen {
            self.ask(contributor, out);
        }
    }

    /// A contributor's request is on the bus.
    pub(super) fn sent(&mut self, contributor: ComponentId) {
        if let Phase::Performing(state) = &mut self.phase
            && self.procedure.receives_file()
            && state.waiting.contains_key(&contributor)
        {
            state.sent.insert(contributor);
        }
    }

    /// Counts down what is owed, also after the end.
    pub(super) fn count_answer(&mut self, input: &Input) {
        if let Input::Message { message, .. } = input
            && message.message_type() == P::FINAL
            && self.foreign(message).is_none()
            && let Some(owed) = self.owed.get_mut(&message.header().from)
        {
            *owed = owed.saturating_sub(1);
        }
    }

    pub(super) fn ask(&mut self, contributor: &ComponentId, out: &mut Actions) {
        self.note_asked(contributor);
        let Some(address) = self.addresses.get(contributor) else {
            return;
        };
        asking_again::owe(&mut self.owed, contributor);
        let header = self.header(address.destination.clone());
        out.push(Action::Send {
            message: Box::new(self.procedure.request(header, contributor)),
            reply_address: address.reply_address.clone(),
            contributor: Some(contributor.clone()),
        });
    }

    pub(super) fn offer_ready(&mut self, now_ms: i64, out: &mut Actions) {
        let Phase::Offering(offering) = &mut self.phase else {
            return;
        };
        offering.ready = true;
        if self.procedure.awaits_checksum() {
            return;
        }
        let selected = std::mem::take(&mut offering.selected);
        self.perform(selected, now_ms, out);
    }

    pub(super) fn offer_timer(&mut self, now_ms: i64, out: &mut Actions) {
        let Phase::Offering(offering) = &self.phase else {
            return;
        };
        if offering.deadline_ms.is_none_or(|at| now_ms < at) {
            return self.set_timer(offering.deadline_ms, out);
        }
        self.finish_failed(
            "the file could not be offered: the operation's time is over",
            out,
        );
    }

    pub(super) fn operation_response(&mut self, message: Message, now_ms: i64, out: &mut Actions) {
        let from = message.header().from.clone();
        let Some(info) = message.response_info() else {
            return ignored("a response without response info", out);
        };
        let (code, text) = (info.response_code, info.response_text.clone());
        if !self.is_waiting_for(&from) {
            return ignored("an answer from somebody who owes none", out);
        }
        if is_progress(code) {
            self.procedure.progress(&from, &message);
            if self.context.extend_on_progress {
                self.renew(from.clone(), now_ms, out);
            }
            return self.emit(
                EventKind::Progress {
                    contributor: from,
                    result: None,
                },
                text,
                out,
            );
        }
        if code != ResponseCode::OperationCompleted {
            return self.failure(from, &message, code, text, now_ms, out);
        }
        if message.message_type() != P::FINAL {
            return ignored("a completion that is no final response", out);
        }
        match self.procedure.completed(&from, message) {
            Completion::Done(result) => self.done(from, result, text, now_ms, out),
            Completion::Again(result) => self.again(from, result, now_ms, out),
            Completion::Fetch(expected) => self.fetch(from, expected, now_ms, out),
            Completion::Stale => self.stale(from, now_ms, out),
            Completion::Unusable(text) => {
                let text = format!("its {} can't be used: it {text}", P::FINAL.as_str());
                let failure = ComponentFailure::new(from, None, text);
                self.not_done(failure, true, now_ms, out);
            }
        }
    }

    /// A contributor that is being fetched from has answered already.
    pub(super) fn is_waiting_for(&self, from: &ComponentId) -> bool {
        let Phase::Performing(state) = &self.phase else {
            return false;
        };
        let fetched = state
            .fetching
            .as_ref()
            .is_some_and(|(pillar, _)| pillar == from);
        state.waiting.contains_key(from) && !fetched
    }

    fn failure(
        &mut self,
        from: ComponentId,
        message: &Message,
        code: ResponseCode,
        text: Option<String>,
        now_ms: i64,
        out: &mut Actions,
    ) {
        let told = text.unwrap_or_else(|| "failed without a reason".to_owned());
        if self.is_repetition(&from, code) {
            return ignored("a failure that was told before", out);
        }
        match self.procedure.failed(&from, message, code) {
            Failing::Failed => {
                let failure = ComponentFailure::new(from, Some(code), told);
                self.not_done(failure, true, now_ms, out);
            }
            Failing::Because(text) => {
                let failure = ComponentFailure::new(from, Some(code), text);
                self.not_done(failure, true, now_ms, out);
            }
            Failing::Complete(result, info) => self.done(from, result, Some(info), now_ms, out),
            Failing::Retry(number) => {
                self.retry(from, number, &format!("{code}, {told}"), now_ms, out);
            }
        }
    }

    fn done(
        &mut self,
        from: ComponentId,
        result: ComponentResult,
        text: Option<String>,
        now_ms: i64,
        out: &mut Actions,
    ) {
        self.answered(&from);
        self.component_complete(from, result, text, out);
        self.check_end(false, now_ms, out);
    }

    pub(super) fn not_done(
        &mut self,
        failure: ComponentFailure,
        try_next: bool,
        now_ms: i64,
        out: &mut Actions,
    ) {
        self.answered(&failure.contributor);
        self.component_failed(failure, out);
        self.check_end(try_next, now_ms, out);
    }

    fn answered(&mut self, from: &ComponentId) {
        if let Phase::Performing(state) = &mut self.phase {
            state.waiting.remove(from);
            state.paused.remove(from);
            state.fetching.take_if(|(pillar, _)| pillar == from);
        }
    }

    /// Ends the conversation if nobody owes an answer, unless somebody else can be asked instead.
    fn check_end(&mut self, try_next: bool, now_ms: i64, out: &mut Actions) {
        let Phase::Performing(state) = &self.phase else {
            return;
        };
        if !state.waiting.is_empty() {
            return self.set_timer(state.next_time(), out);
        }
        match try_next.then(|| self.procedure.next()).flatten() {
            Some(next) => self.perform(vec![next], now_ms, out),
            None => self.conclude(out),
        }
    }

    fn fetch(&mut self, from: ComponentId, expected: Expected, now_ms: i64, out: &mut Actions) {
        if let Phase::Performing(state) = &mut self.phase {
            state.fetching = Some((from.clone(), expected.clone()));
        }
        let contributor = from.clone();
        self.renew(from, now_ms, out);
        out.push(Action::Download {
            contributor,
            expected,
        });
    }

    /// Gives a contributor its full time again.
    pub(super) fn renew(&mut self, from: ComponentId, now_ms: i64, out: &mut Actions) {
        let until = deadline(now_ms, self.context.operation_timeout_ms);
        let Phase::Performing(state) = &mut self.phase else {
            return;
        };
        state.waiting.insert(from, until);
        let next = state.next_time();
        self.set_timer(next, out);
    }

    pub(super) fn download_finished(
        &mut self,
        mut delivered: Delivered,
        now_ms: i64,
        out: &mut Actions,
    ) {
        let Some((from, mut expected)) = self.take_fetching() else {
            return ignored("nothing is being fetched", out);
        };
        expected.checksum = delivered.checksum.or(expected.checksum);
        if let Some(text) = expected.gap() {
            let kind = EventKind::Warning {
                contributor: Some(from.clone()),
                concern: Concern::Comparison,
            };
            self.emit(kind, Some(text), out);
        }
        delivered.checksum = expected.comparable().cloned();
        let result = ComponentResult::Delivered(delivered);
        self.done(from, result, None, now_ms, out);
    }

    pub(super) fn download_failed(
        &mut self,
        another_may_help: bool,
        text: &str,
        now_ms: i64,
        out: &mut Actions,
    ) {
        let Some((contributor, _)) = self.take_fetching() else {
            return ignored("nothing is being fetched", out);
        };
        if !another_may_help {
            return self.finish_failed(text, out);
        }
        let failure = ComponentFailure::new(contributor, None, text.to_owned());
        self.not_done(failure, true, now_ms, out);
    }

    const fn take_fetching(&mut self) -> Option<(ComponentId, Expected)> {
        match &mut self.phase {
            Phase::Performing(state) => state.fetching.take(),
            _ => None,
        }
    }

    pub(super) fn send_failed(
        &mut self,
        contributor: &ComponentId,
        text: &str,
        now_ms: i64,
        out: &mut Actions,
    ) {
        if !self.is_waiting_for(contributor) {
            return ignored("a request that matters no more", out);
        }
        let text = format!("the request could not be sent: {text}");
        let failure = ComponentFailure::new(contributor.clone(), None, text);
        self.not_done(failure, true, now_ms, out);
    }

    /// Everybody whose time is over has failed; whose pause is over is asked again.
    pub(super) fn perform_timer(&mut self, now_ms: i64, out: &mut Actions) {
        let Phase::Performing(state) = &self.phase else {
            return;
        };
        let late: Vec<ComponentId> = state
            .waiting
            .iter()
            .filter(|(_, until)| until.is_some_and(|at| now_ms >= at))
            .map(|(id, _)| id.clone())
            .collect();
        for contributor in late {
            self.answered(&contributor);
            self.silent(contributor, "did not finish the operation in time", out);
        }
        self.end_pauses(now_ms, out);
        self.check_end(false, now_ms, out);
    }
}

impl Performing {
    /// When somebody's time or pause is over.
    pub(super) fn next_time(&self) -> Option<i64> {
        let deadlines = self.waiting.values().filter_map(|until| *until);
        deadlines.chain(self.paused.values().copied()).min()
    }
}
