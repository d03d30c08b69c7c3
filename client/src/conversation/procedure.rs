//! The seam between what all conversations do and what one operation does.

use std::fmt::Debug;

use pillarbox_messages::{
    ChecksumData, ComponentId, Header, Message, MessageType, Operation, ResponseCode,
};

use crate::{
    conversation::{Conversation, Expected, Resumable},
    event::ComponentResult,
};

/// What an operation does differently from the others. Pure, like the conversation that asks it.
pub trait Procedure: Clone + Debug + Send + Sync + 'static {
    /// The operation.
    const OPERATION: Operation;
    /// The only type of identification responses.
    const IDENTIFY_RESPONSE: MessageType;
    /// The only type of progress responses.
    const PROGRESS: MessageType;
    /// The only type of final responses.
    const FINAL: MessageType;
    /// Whether one contributor's success makes the operation a success, whoever else failed.
    const ONE_IS_ENOUGH: bool = false;

    /// The identify request.
    fn identify_request(&self, header: Header) -> Message;

    /// Keeps what a ready contributor's response says.
    fn identified(&mut self, _from: &ComponentId, _response: &Message) {}

    /// Whether the checksum of the file is yet to be computed: no answer is judged by it and nobody is asked to
    /// perform before it is known.
    fn awaits_checksum(&self) -> bool {
        false
    }

    /// Takes the file's checksum.
    fn examined(&mut self, _checksum: ChecksumData) {}

    /// What a negative answer to the identify request means.
    fn refused(&self, _response: &Message, _code: ResponseCode) -> Refusal {
        Refusal::Failed
    }

    /// Whether the operation goes on with so many selected and so many who did not answer.
    fn may_perform(&self, selected: usize, _silent: usize) -> bool {
        selected > 0
    }

    /// Whom to ask first, of those who are ready (in the order of their answers).
    fn choose(&mut self, selected: Vec<ComponentId>) -> Vec<ComponentId> {
        selected
    }

    /// Whether the file must be laid on the exchange before anybody is asked.
    fn offers_file(&self) -> bool {
        false
    }

    /// Whether contributors lay a file on the exchange for this client.
    fn receives_file(&self) -> bool {
        false
    }

    /// The operation request for a contributor.
    fn request(&self, header: Header, contributor: &ComponentId) -> Message;

    /// Keeps what a progress response says.
    fn progress(&mut self, _from: &ComponentId, _response: &Message) {}

    /// What a final response with `OPERATION_COMPLETED` means.
    fn completed(&mut self, from: &ComponentId, response: Message) -> Completion;

    /// What a failure answer to the operation request means.
    fn failed(&mut self, _from: &ComponentId, _response: &Message, _code: ResponseCode) -> Failing {
        Failing::Failed
    }

    /// How much progress responses have told that final ones don't.
    fn told(&self) -> usize {
        0
    }

    /// The conversation in the form in which another process of this client can take it up; none if its results
    /// are lost with the process that asked for them.
    fn resumable(_conversation: &Conversation<Self>) -> Option<Resumable> {
        None
    }

    /// Whom to ask in the place of one that failed.
    fn next(&mut self) -> Option<ComponentId> {
        None
    }
}

/// What a negative answer to the identify request means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The contributor has failed; others go on.
    Failed,
    /// The contributor has done its part already.
    Complete(ComponentResult, String),
    /// The contributor takes part, and its part turns out to be done already.
    Needless(ComponentResult, String),
    /// The contributor has failed and the operation must not go on.
    Abort(String),
}

impl Refusal {
    /// The only contributor does not want to: that is the end.
    pub(super) fn refused_by(response: &Message) -> Self {
        let told = response
            .response_info()
            .and_then(|info| info.response_text.clone());
        Self::Abort(told.unwrap_or_else(|| REFUSED.to_owned()))
    }
}

/// What is said of a refusal that comes without a text.
pub(super) const REFUSED: &str = "refused without a reason";

/// What a final response with `OPERATION_COMPLETED` means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Completion {
    /// The contributor has done its part.
    Done(ComponentResult),
    /// One page of several: the contributor is asked again.
    Again(ComponentResult),
    /// The file is to be fetched from the exchange.
    Fetch(Expected),
    /// It is no answer to what was asked last (a late or repeated one) and changes nothing.
    Stale,
    /// It can't be used: the contributor has failed.
    Unusable(String),
}

/// What a failure answer to the operation request means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failing {
    /// The contributor has failed; others go on.
    Failed,
    /// The contributor is asked the same again after a pause, for the time of this number.
    Retry(u32),
    /// The contributor has the result already.
    Complete(ComponentResult, String),
    /// The contributor has failed, for a reason that its text does not tell.
    Because(String),
}
