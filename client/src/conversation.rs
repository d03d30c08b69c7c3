//! Conversations: pure state machines, one per operation call.
//!
//! [`Conversation`] is what all operations have in common: identify, then perform, then one final event. What an
//! operation does differently is its [`Procedure`]. A machine reads no clock and does no I/O: [`Conversation::step`]
//! takes an [`Input`] and the time and gives back [`Action`]s. All its state is plain data.
//!
//! * [`procedure`]: the seam between the common part and an operation.
//! * [`put_file`], [`replace_file`], [`delete_file`], [`get_file`], [`get_file_ids`], [`get_checksums`],
//!   [`get_audit_trails`], [`get_status`]: the operations.
//! * [`new_file`]: what is known of a file that pillars are to store.
//! * `resuming`: going on where another process was.
//! * `repeating`: asking again what may have got lost in an outage of the bus.
//! * [`paging`]: walking through a listing that comes in pages.

use std::collections::{BTreeMap, BTreeSet};

use pillarbox_messages::{
    ComponentId, Destination, Header, Message, MessageType, ProtocolVersion, ResponseCode,
};
use serde::{Deserialize, Serialize};

use self::repeating::Repeats;
use crate::event::{Completed, ComponentFailure, Concern, Event, EventKind};

mod asking_again;
pub mod delete_file;
mod ending;
pub mod get_audit_trails;
pub mod get_checksums;
pub mod get_file;
pub mod get_file_ids;
pub mod get_status;
mod identifying;
pub mod new_file;
pub mod paging;
mod performing;
pub mod procedure;
pub mod put_file;
mod repeating;
pub mod replace_file;
mod resuming;
mod step;
#[cfg(test)]
mod tests;

pub use self::{
    procedure::Procedure,
    resuming::{Milestone, Resumable},
    step::{Action, Context, Expected, Input},
};

/// One conversation's state.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Conversation<P> {
    context: Context,
    procedure: P,
    phase: Phase,
    /// Where the selected contributors want to be asked.
    addresses: BTreeMap<ComponentId, Address>,
    completed: Vec<Completed>,
    failures: Vec<ComponentFailure>,
    /// Who answered that it does not do such a thing at all: no failure, unless the operation fails.
    #[serde(default)]
    unsupported: Vec<ComponentFailure>,
    /// Whether something of ours is, or might be, on the exchange.
    offered: bool,
    /// When it ends at the latest.
    end_ms: Option<i64>,
    /// What could not be read of those who have not answered since.
    unreadable: BTreeMap<ComponentId, String>,
    /// How many requests have had no final response: that many files may yet come, if they are delivered.
    #[serde(default)]
    owed: BTreeMap<ComponentId, u32>,
    /// Answers to the identify request that can only be judged once the file's checksum is known; one at most of
    /// each contributor.
    #[serde(skip)]
    held: Vec<Held>,
    /// Who goes on asks everybody anew.
    #[serde(skip)]
    repeats: Repeats,
}

/// An answer, with the transport's reply address that came with it.
type Held = (Message, Option<String>);

/// Where a contributor is asked: what its identification response said.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Address {
    destination: Destination,
    /// The transport's, needed if the destination is a temporary queue.
    reply_address: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
enum Phase {
    New,
    Identifying(Identifying),
    /// The file is on its way to the exchange.
    Offering(Offering),
    Performing(Performing),
    Done,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Identifying {
    deadline_ms: Option<i64>,
    /// When those who have not answered are asked once more.
    #[serde(default)]
    again: Again,
    outstanding: BTreeSet<ComponentId>,
    /// In the order of their answers.
    selected: Vec<ComponentId>,
    /// Whether an answer has ended the operation: the others may only add theirs to why it fails.
    doomed: bool,
}

/// Whether silent contributors are asked once more: an identify request is lost with whatever does not listen for
/// a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Again {
    /// Not (any more): their time has no end, or the answers of others have decided.
    #[default]
    No,
    /// At this time.
    At(i64),
    /// They have been.
    Done,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Offering {
    deadline_ms: Option<i64>,
    selected: Vec<ComponentId>,
    /// Whether it has arrived there.
    ready: bool,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Performing {
    /// Who has not answered, and until when it may.
    waiting: BTreeMap<ComponentId, Option<i64>>,
    /// Whose file is being fetched.
    fetching: Option<(ComponentId, Expected)>,
    /// Whose request is known to be on the bus, which has not given it up yet; kept of those who deliver a file.
    #[serde(default)]
    sent: BTreeSet<ComponentId>,
    /// Who is asked again, and when: until then it owes nothing.
    #[serde(default)]
    paused: BTreeMap<ComponentId, i64>,
    /// Who has sent a page for a second time and was asked for the next one once more.
    #[serde(skip)]
    repeating: BTreeSet<ComponentId>,
}

type Actions = Vec<Action>;

impl<P: Procedure> Conversation<P> {
    /// A conversation that has not begun.
    #[must_use]
    pub fn new(context: Context, procedure: P) -> Self {
        Self {
            context,
            procedure,
            phase: Phase::New,
            addresses: BTreeMap::new(),
            completed: Vec::new(),
            failures: Vec::new(),
            unsupported: Vec::new(),
            offered: false,
            end_ms: None,
            unreadable: BTreeMap::new(),
            owed: BTreeMap::new(),
            held: Vec::new(),
            repeats: Repeats::default(),
        }
    }

    /// What the conversation is about.
    #[must_use]
    pub const fn context(&self) -> &Context {
        &self.context
    }

    /// Whether the last event is out.
    #[must_use]
    pub const fn is_done(&self) -> bool {
        matches!(self.phase, Phase::Done)
    }

    /// Whether a contributor may yet lay a file on the exchange.
    #[must_use]
    pub fn is_owed(&self) -> bool {
        self.procedure.receives_file() && self.owed.values().any(|owed| *owed > 0)
    }

    /// Takes one input and gives what is to be done, in order. Any input is fine at any time.
    pub fn step(&mut self, input: Input, now_ms: i64) -> Vec<Action> {
        let mut actions = Actions::new();
        self.count_answer(&input);
        self.take(input, now_ms, &mut actions);
        self.arrange_repeats(now_ms, &mut actions);
        actions
    }

    /// What an input means for the phase.
    fn take(&mut self, input: Input, now_ms: i64, actions: &mut Actions) {
        match (&self.phase, input) {
            (Phase::Done, _) => ignored("the conversation is over", actions),
            (Phase::New, Input::Start) => self.start(now_ms, actions),
            (_, Input::Resumed { grace_ms }) => self.take_up(grace_ms, now_ms, actions),
            (_, Input::NotKept { text }) => {
                actions.push(Action::Emit(Box::new(self.not_kept(&text))));
            }
            (_, Input::Abort { reason }) => self.finish_failed(&reason, actions),
            (
                _,
                Input::Message {
                    message,
                    reply_address,
                },
            ) => {
                self.message(*message, reply_address, now_ms, actions);
            }
            (
                _,
                Input::Unreadable {
                    from,
                    message_type,
                    reason,
                },
            ) => self.unreadable(from, message_type, &reason, actions),
            (_, Input::Sent { contributor }) => self.sent(contributor),
            (_, Input::Unsettled) => self.repeats.unsettle(),
            (_, Input::Reconnected { answers_kept }) => {
                self.repeats.unsettle();
                self.ask_again(answers_kept, actions);
            }
            (_, Input::TimerFired) if self.end_ms.is_some_and(|at| now_ms >= at) => {
                self.time_is_over(actions);
            }
            (Phase::Identifying(_), Input::TimerFired) => self.identify_timer(now_ms, actions),
            (Phase::Offering(_), Input::TimerFired) => self.offer_timer(now_ms, actions),
            (Phase::Performing(_), Input::TimerFired) => self.perform_timer(now_ms, actions),
            (_, Input::Examined { checksum }) => self.examined(checksum, now_ms, actions),
            (_, Input::ExamineFailed { text }) => {
                self.finish_failed(&format!("the file could not be read: {text}"), actions);
            }
            (Phase::Offering(_), Input::OfferReady) => self.offer_ready(now_ms, actions),
            (Phase::Offering(_), Input::OfferFailed { text }) => {
                self.finish_failed(&format!("the file could not be offered: {text}"), actions);
            }
            (Phase::Performing(_), Input::DownloadFinished(delivered)) => {
                self.download_finished(delivered, now_ms, actions);
            }
            (
                Phase::Performing(_),
                Input::DownloadFailed {
                    another_may_help,
                    text,
                },
            ) => {
                self.download_failed(another_may_help, &text, now_ms, actions);
            }
            // Later, whoever answered shows that it did get there.
            (
                Phase::Identifying(_),
                Input::SendFailed {
                    contributor: None,
                    text,
                },
            ) => self.not_identifying(&text, actions),
            (
                Phase::Performing(_),
                Input::SendFailed {
                    contributor: Some(contributor),
                    text,
                },
            ) => {
                self.send_failed(&contributor, &text, now_ms, actions);
            }
            (_, _) => ignored("not expected in this phase", actions),
        }
    }

    /// Sorts out a message by its exact type, its sender and what it is about.
    fn message(
        &mut self,
        message: Message,
        reply_address: Option<String>,
        now_ms: i64,
        out: &mut Actions,
    ) {
        if let Some(reason) = self.foreign(&message) {
            return ignored(reason, out);
        }
        let kind = message.message_type();
        if !kind.is_response() {
            let from = message.header().from.clone();
            let text = format!("got {}, which is no response", kind.as_str());
            return self.emit(
                EventKind::Warning {
                    contributor: Some(from),
                    concern: Concern::Contributor,
                },
                Some(text),
                out,
            );
        }
        match &self.phase {
            Phase::Identifying(_) if kind == P::IDENTIFY_RESPONSE => {
                self.identify_response(&message, reply_address, now_ms, out);
            }
            Phase::Performing(_) if kind == P::PROGRESS || kind == P::FINAL => {
                self.repeats.heard(&message.header().from);
                self.operation_response(message, now_ms, out);
            }
            _ => ignored("a response out of sequence", out),
        }
    }

    /// Says whose message can't be read, and why. Its sender may yet send another.
    fn unreadable(
        &mut self,
        from: Option<ComponentId>,
        message_type: Option<MessageType>,
        reason: &str,
        out: &mut Actions,
    ) {
        if from
            .as_ref()
            .is_some_and(|from| !self.context.expected.contains(from))
        {
            return ignored("a message from somebody who was not asked", out);
        }
        let text = format!(
            "its {} can't be read: {reason}",
            message_type.map_or("message", MessageType::as_str)
        );
        if let Some(from) = &from {
            self.repeats.heard(from);
            self.unreadable.insert(from.clone(), text.clone());
        }
        let kind = EventKind::Warning {
            contributor: from,
            concern: Concern::Contributor,
        };
        self.emit(kind, Some(text), out);
    }

    /// Why a message does not concern this conversation, if it doesn't.
    fn foreign(&self, message: &Message) -> Option<&'static str> {
        let header = message.header();
        if header.correlation_id != self.context.correlation {
            return Some("another conversation's message");
        }
        let collections = header
            .collection_id
            .as_ref()
            .zip(self.context.collection.as_ref());
        if collections.is_some_and(|(told, asked)| told != asked) {
            return Some("a message about another collection");
        }
        if !self.context.expected.contains(&header.from) {
            return Some("a message from somebody who was not asked");
        }
        match (message.file_id(), &self.context.file) {
            (Some(told), Some(asked)) if told != asked => Some("a message about another file"),
            _ => None,
        }
    }

    /// The common part of a message to this destination.
    fn header(&self, destination: Destination) -> Header {
        let mut expected = self.context.expected.iter();
        let to = match (expected.next(), expected.next()) {
            (Some(only), None) => Some(only.clone()),
            _ => None,
        };
        Header {
            version: ProtocolVersion::CURRENT,
            correlation_id: self.context.correlation.clone(),
            collection_id: self.context.collection.clone(),
            destination,
            reply_to: self.context.reply_to.clone(),
            from: self.context.from.clone(),
            to,
        }
    }

    /// Asks for the time that a phase waits for, or the conversation's end if that comes first.
    fn set_timer(&self, deadline_ms: Option<i64>, out: &mut Actions) {
        let times = [deadline_ms, self.end_ms];
        out.push(match times.into_iter().flatten().min() {
            Some(at_ms) => Action::SetTimer { at_ms },
            None => Action::ClearTimer,
        });
    }

    fn emit(&self, kind: EventKind, info: Option<String>, out: &mut Actions) {
        out.push(Action::Emit(Box::new(self.event(kind, info))));
    }

    fn event(&self, kind: EventKind, info: Option<String>) -> Event {
        Event {
            correlation: self.context.correlation.clone(),
            operation: P::OPERATION,
            collection: self.context.collection.clone(),
            file: self.context.file.clone(),
            kind,
            info,
        }
    }
}

/// When a time that starts now is over; zero or less: never.
const fn deadline(now_ms: i64, timeout_ms: i64) -> Option<i64> {
    if timeout_ms > 0 {
        Some(now_ms.saturating_add(timeout_ms))
    } else {
        None
    }
}

/// Whether a code says that work goes on.
const fn is_progress(code: ResponseCode) -> bool {
    matches!(
        code,
        ResponseCode::OperationAcceptedProgress | ResponseCode::OperationProgress
    )
}

fn ignored(reason: &'static str, out: &mut Actions) {
    out.push(Action::Ignored { reason });
}
