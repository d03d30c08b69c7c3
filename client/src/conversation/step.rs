//! What goes into a machine and what comes out of it.

use std::collections::BTreeSet;

use pillarbox_messages::{
    ChecksumData, CollectionId, ComponentId, CorrelationId, Destination, FileId, FilePart, Message,
    MessageType,
};
use serde::{Deserialize, Serialize};

use crate::{
    digests::Hasher,
    event::{Delivered, Event},
};

/// What every conversation is about, fixed at its start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Context {
    /// The conversation's id.
    pub correlation: CorrelationId,
    /// The collection; none if it is about no one collection.
    pub collection: Option<CollectionId>,
    /// The file; none for all files.
    pub file: Option<FileId>,
    /// This client.
    pub from: ComponentId,
    /// Where this client hears answers.
    pub reply_to: Destination,
    /// Where identify requests go, to each of them.
    pub identify_at: Vec<Destination>,
    /// Who is to take part.
    pub expected: BTreeSet<ComponentId>,
    /// Milliseconds that contributors have to answer the identify request; zero: no limit.
    pub identification_timeout_ms: i64,
    /// Milliseconds that a contributor has to answer an operation request; zero: no limit.
    pub operation_timeout_ms: i64,
    /// Milliseconds after which the conversation ends whatever it waits for; zero: no limit.
    pub conversation_timeout_ms: i64,
    /// Whether a contributor that says that it is at work has its full time again.
    pub extend_on_progress: bool,
}

/// What a conversation is told.
#[derive(Clone, Debug)]
pub enum Input {
    /// Begin.
    Start,
    /// A message with this conversation's correlation id has come.
    Message {
        /// The message.
        message: Box<Message>,
        /// The transport's reply address that came with it.
        reply_address: Option<String>,
    },
    /// A message with this conversation's correlation id has come that can't be read.
    Unreadable {
        /// Who says it has sent it, if that could be read.
        from: Option<ComponentId>,
        /// The message's type, if that could be read.
        message_type: Option<MessageType>,
        /// Why it can't be read.
        reason: String,
    },
    /// The time that the last [`Action::SetTimer`] named may have come.
    TimerFired,
    /// The file has been read through.
    Examined {
        /// Its checksum.
        checksum: ChecksumData,
    },
    /// The file could not be read through.
    ExamineFailed {
        /// Why.
        text: String,
    },
    /// The file lies on the exchange.
    OfferReady,
    /// The file could not be laid on the exchange.
    OfferFailed {
        /// Why.
        text: String,
    },
    /// The file has been fetched, compared with what was told of it, and is at its target; with the checksum that it
    /// was compared with, if that had to be asked for.
    DownloadFinished(Delivered),
    /// The file could not be fetched.
    DownloadFailed {
        /// Whether another pillar might do better; not so if this machine's own disk is the cause.
        another_may_help: bool,
        /// Why.
        text: String,
    },
    /// A message could not be handed to the bus.
    SendFailed {
        /// Whom it was for; none: the identify request.
        contributor: Option<ComponentId>,
        /// Why.
        text: String,
    },
    /// A request has been taken by the bus.
    Sent {
        /// Whom it was for.
        contributor: ComponentId,
    },
    /// The bus was away just before the conversation began: others may not be there yet.
    Unsettled,
    /// The bus is there again after it was away.
    Reconnected {
        /// Whether answers have waited for this client; otherwise they may have got lost meanwhile.
        answers_kept: bool,
    },
    /// It is taken up by another process than the one that began it.
    Resumed {
        /// Milliseconds that whoever owes an answer still has, at least.
        grace_ms: i64,
    },
    /// How it stands could not be written down; that is tried again.
    NotKept {
        /// Why.
        text: String,
    },
    /// It is to end now.
    Abort {
        /// Why.
        reason: String,
    },
}

/// What a conversation wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Send a message.
    Send {
        /// The message.
        message: Box<Message>,
        /// The transport's reply address to send it to, in place of the message's destination.
        reply_address: Option<String>,
        /// Whom it is for; none: the identify request, for everybody.
        contributor: Option<ComponentId>,
    },
    /// Say [`Input::TimerFired`] at this time, in milliseconds of the caller's clock, and at no other.
    SetTimer {
        /// When.
        at_ms: i64,
    },
    /// Forget the timer.
    ClearTimer,
    /// Tell the caller.
    Emit(Box<Event>),
    /// Read the file through and say [`Input::Examined`] or [`Input::ExamineFailed`].
    Examine,
    /// Lay the file on the exchange and say [`Input::OfferReady`] or [`Input::OfferFailed`]; if its checksum is
    /// still awaited and not being computed, say that too.
    OfferFile,
    /// Remove from the exchange what this conversation has, or might have, laid there. Nothing is awaited.
    RemoveOffer,
    /// Fetch the file from the exchange and say [`Input::DownloadFinished`] or [`Input::DownloadFailed`]. If nothing
    /// that was told of a whole file can be compared with its bytes, ask for its checksum before.
    Download {
        /// Who has delivered it.
        contributor: ComponentId,
        /// What the pillar told of the file.
        expected: Expected,
    },
    /// Nothing; the input was ignored.
    Ignored {
        /// Why, for the log.
        reason: &'static str,
    },
}

/// What a pillar told of the file that it delivers. It tells in a progress response, which may get lost or come
/// too late: the final response has room for none of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expected {
    /// The whole file's length in bytes.
    pub file_size: Option<u64>,
    /// The whole file's checksum.
    pub checksum: Option<ChecksumData>,
    /// The part that is delivered; none: the whole file.
    pub part: Option<FilePart>,
}

impl Expected {
    /// How many bytes must come, if that is known. A part ends with the file at the latest.
    pub(crate) fn size(&self) -> Option<u64> {
        let Some(part) = &self.part else {
            return self.file_size;
        };
        let left = self.file_size?.saturating_sub(part.part_offset);
        Some(left.min(part.part_length))
    }

    /// How many bytes may come at most.
    pub(crate) fn limit(&self) -> Option<u64> {
        let length = self.part.as_ref().map(|part| part.part_length);
        self.size().or(length)
    }

    /// The checksum of the bytes that come, if it is of a kind that can be computed here. Nobody tells the checksum
    /// of a part.
    pub(crate) fn comparable(&self) -> Option<&ChecksumData> {
        let checksum = self.checksum.as_ref().filter(|_| self.part.is_none());
        checksum.filter(|told| Hasher::new(&told.checksum_spec).is_ok())
    }

    /// Whether the file's checksum is missing that its bytes could be compared with.
    pub(crate) fn lacks_checksum(&self) -> bool {
        self.part.is_none() && self.comparable().is_none()
    }

    /// What a file that was fetched with only this known could not be compared with, if so.
    pub(super) fn gap(&self) -> Option<String> {
        if self.comparable().is_some() {
            return None;
        }
        if self.part.is_some() {
            let compared = match self.file_size {
                Some(_) => "by its length only",
                None => "with the length asked for only, which it may fall short of",
            };
            return Some(format!(
                "the part was compared {compared}: a pillar tells the checksum of the whole file"
            ));
        }
        let compared = match self.file_size {
            Some(_) => "compared by its length only",
            None => "not compared",
        };
        let cause = match self.checksum {
            Some(_) => "the checksum that the pillar told with it can't be computed here",
            None => "the pillar told no checksum with it",
        };
        Some(format!(
            "the file was {compared}: {cause}, and nobody told another one when asked"
        ))
    }
}
