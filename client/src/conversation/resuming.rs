//! Taking up a conversation that another process of this client has left.

use serde::{Deserialize, Serialize};

use super::{
    Action, Actions, Context, Conversation, Phase, Procedure, delete_file::DeleteFileProcedure,
    get_file::GetFileProcedure, new_file::NewFile, put_file::PutFileProcedure,
    replace_file::ReplaceFileProcedure,
};
use crate::event::{Concern, Event, EventKind};

/// A conversation that another process can take up, as it is written down.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Resumable {
    /// A put.
    Put(Conversation<PutFileProcedure>),
    /// A replacement.
    Replace(Conversation<ReplaceFileProcedure>),
    /// A deletion.
    Delete(Conversation<DeleteFileProcedure>),
    /// A get.
    Get(Conversation<GetFileProcedure>),
}

/// How far a conversation has come: whoever keeps it writes it down anew when this changes. Until somebody is asked
/// to perform nothing changes that could not be asked for once more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Milestone {
    performing: bool,
    done: bool,
    completed: usize,
    failures: usize,
    fetching: bool,
    sent: usize,
    told: usize,
}

impl Resumable {
    /// What the conversation is about.
    #[must_use]
    pub const fn context(&self) -> &Context {
        match self {
            Self::Put(conversation) => conversation.context(),
            Self::Replace(conversation) => conversation.context(),
            Self::Delete(conversation) => conversation.context(),
            Self::Get(conversation) => conversation.context(),
        }
    }

    /// The file that is to be laid on the exchange, if one is and does not lie there yet.
    pub(crate) const fn file_to_offer(&self) -> Option<&NewFile> {
        let (new, performing) = match self {
            Self::Put(it) => (&it.procedure.new, it.is_performing()),
            Self::Replace(it) => (&it.procedure.new, it.is_performing()),
            Self::Delete(_) | Self::Get(_) => return None,
        };
        if new.offer && !performing {
            Some(new)
        } else {
            None
        }
    }
}

impl<P: Procedure> Conversation<P> {
    /// How far it has come.
    #[must_use]
    pub fn milestone(&self) -> Milestone {
        let (performing, fetching, sent) = match &self.phase {
            Phase::New | Phase::Identifying(_) | Phase::Offering(_) => return Milestone::default(),
            Phase::Performing(state) => (true, state.fetching.is_some(), state.sent.len()),
            Phase::Done => (false, false, 0),
        };
        Milestone {
            performing,
            done: self.is_done(),
            completed: self.completed.len(),
            failures: self.failures.len(),
            fetching,
            sent,
            told: self.procedure.told(),
        }
    }

    /// Whether contributors have been asked to perform: nothing has to be laid on the exchange any more.
    #[must_use]
    pub const fn is_performing(&self) -> bool {
        matches!(self.phase, Phase::Performing(_))
    }

    /// Goes on where another process was. Before anybody was asked to perform that is at the beginning.
    pub(super) fn take_up(&mut self, grace_ms: i64, now_ms: i64, out: &mut Actions) {
        if !self.is_performing() {
            return self.begin_anew(now_ms, out);
        }
        let timeout_ms = self.context.operation_timeout_ms;
        // A clock that was set back must not make anybody wait for longer than at the start.
        let earliest = now_ms.saturating_add(grace_ms.min(timeout_ms));
        let latest = now_ms.saturating_add(timeout_ms);
        self.end_ms = self.end_ms.map(|end| end.max(earliest));
        let Phase::Performing(state) = &mut self.phase else {
            return;
        };
        // They are asked again as whoever else owes an answer.
        state.paused.clear();
        for (contributor, until) in &mut state.waiting {
            let Some(until) = until else { continue };
            if *until <= now_ms {
                // The bus has given the request up.
                state.sent.remove(contributor);
            }
            *until = (*until).min(latest).max(earliest);
        }
        let next = state.next_time();
        let fetching = state.fetching.clone();
        self.set_timer(next, out);
        if let Some((contributor, expected)) = fetching {
            out.push(Action::Download {
                contributor,
                expected,
            });
        }
    }

    /// Should the process be killed now, the next one goes on from what was written down before.
    pub(crate) fn not_kept(&self, text: &str) -> Event {
        let text = if self.is_done() {
            format!("how the operation ended could not be written down: {text}; {NOT_TOLD_AGAIN}")
        } else {
            format!("how the operation stands could not be written down: {text}; {TRIED_AGAIN}")
        };
        let kind = EventKind::Warning {
            contributor: None,
            concern: Concern::Journal,
        };
        self.event(kind, Some(text))
    }

    fn begin_anew(&mut self, now_ms: i64, out: &mut Actions) {
        self.addresses.clear();
        self.completed.clear();
        self.failures.clear();
        self.held.clear();
        self.unreadable.clear();
        // A part of it may lie there already.
        self.offered = self.procedure.offers_file();
        self.start(now_ms, out);
    }
}

const TRIED_AGAIN: &str = "it is tried again; if this process is killed before that succeeds, the next one goes on from \
                           where the operation stood before";
const NOT_TOLD_AGAIN: &str = "if this process is killed before it tells the end, the next one goes on from where the \
                              operation stood before";
