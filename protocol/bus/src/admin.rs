//! Administration: what an operator asks of queues and the messages in them, and what the queue manager answers.
//!
//! Over an embedded bus and over STOMP [`Bus::administration`](crate::Bus::administration) does the asking. Anybody else
//! sends a [`Request`] as a JSON object to `/queue/~admin`, with a temporary queue of his own in `reply-to`; the
//! [`Answer`] comes there, as a JSON object too, with the request's correlation id, or its message id if it has none:
//!
//! ```text
//! {"op":"msg-list","queue":"books.north.backout","filter":{"reason":"backout"},"limit":10}
//! {"answer":"messages","messages":[{"id":"3-17",...}],"after":"3-17"}
//! ```
//!
//! `/queue/~admin` keeps nothing and has no consumers. A request is done within the step that takes it, and what it
//! changes is one record of the log; its answer comes when that, and everything that the answer tells of, is written. A
//! request that can't be read or done is answered with an [`Answer::Error`]. One without a place for its answer is not
//! done at all; its receipt says `q-unroutable`.
//!
//! Large answers come in pages: `after` in an answer is where the next request goes on. Times are in milliseconds since
//! 1970.

mod answer;
mod asking;

use serde::{Deserialize, Serialize};

pub use self::{
    answer::{
        Answer, Attributes, Body, ConsumerRow, Done, DrainRow, Kind, LaneRow, MessageDetail,
        MessageRow, Messages, QueueDetail, QueueRow, Queues, Skipped, State, SubscriptionRow,
    },
    asking::Administration,
};
pub use crate::core::message::{Cause, MessageId, Reason};
use crate::{core::message::QueuedMessage, error::BusError, spelling};

use pillarbox_messages::Destination;

/// The name of the queue that requests are sent to.
pub const QUEUE: &str = "~admin";

/// What an operator asks for. Queues are named as in STOMP (`/queue/NAME`), or without `/queue/`; a durable subscription
/// is `~sub.CLIENT.NAME`, with `%2E` for a dot in the client's id and `%25` for a percent sign.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// The queues with their figures, those behind subscriptions included, in the order in which they were made.
    QueueList {
        /// Those made after the one of this number.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<u64>,
        /// How many at most; 100 without it, 1,000 in any case.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<usize>,
    },
    /// One queue: its attributes, its lanes and its consumers.
    QueueShow {
        /// Which.
        queue: String,
    },
    /// Messages of a queue, in the order in which they had come to the bus. Nothing changes.
    MsgList {
        /// The queue.
        queue: String,
        /// Which messages.
        #[serde(default)]
        filter: Filter,
        /// Those that came after this one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<MessageId>,
        /// How many at most; 100 without it, 1,000 in any case.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<usize>,
    },
    /// One message with its headers and its body.
    MsgShow {
        /// The queue that it stands in.
        queue: String,
        /// Which.
        id: MessageId,
        /// How much of the body, in bytes; 64 KiB without it, 256 KiB in any case.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        body: Option<usize>,
    },
    /// Sends messages that were moved aside back to where they stood, as if nothing had happened to them. Either `ids` or
    /// `filter` is given.
    MsgRetry {
        /// The queue that they stand in now.
        queue: String,
        /// Which; 1,000 at most.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ids: Option<Vec<MessageId>>,
        /// Which; an empty one means all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        filter: Option<Filter>,
        /// Those behind this one: of `ids` in their order, else those that came after it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<MessageId>,
    },
    /// Deletes messages for good. Either `ids` or `filter` is given.
    MsgDelete {
        /// The queue.
        queue: String,
        /// Which; 1,000 at most.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ids: Option<Vec<MessageId>>,
        /// Which; an empty one means all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        filter: Option<Filter>,
        /// Those behind this one: of `ids` in their order, else those that came after it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<MessageId>,
    },
}

/// Which messages: those of which all that is given is true.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Filter {
    /// Of this message group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// With this correlation id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    /// Moved where they stand for this reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
}

impl Filter {
    /// Whether it lets everything through.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether the message is one of those.
    #[must_use]
    pub fn selects(&self, message: &QueuedMessage) -> bool {
        let is = |wanted: &Option<String>, has: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| has == Some(wanted))
        };
        is(&self.key, message.group())
            && is(&self.correlation_id, message.correlation_id())
            && (self.reason.is_none() || self.reason == message.reason())
    }
}

/// The longest request, in bytes.
const MAX_REQUEST: usize = 64 << 10;
/// How many messages a request may name.
pub const MAX_IDS: usize = 1_000;
/// How much is told of a request that can't be read, in characters.
const MAX_FAULT: usize = 500;

impl Request {
    /// Reads a request.
    ///
    /// # Errors
    /// [`BusError::TooLarge`], or [`BusError::Refused`] with the name `INVALID`, saying what is wrong.
    pub(crate) fn read(body: &[u8]) -> Result<Self, BusError> {
        if body.len() > MAX_REQUEST {
            return Err(BusError::TooLarge {
                what: "a request to the administration".to_owned(),
                limit: MAX_REQUEST as u64,
            });
        }
        serde_json::from_slice(body).map_err(|error| {
            let fault: String = error.to_string().chars().take(MAX_FAULT).collect();
            BusError::invalid(format!("this is no request: {fault}"))
        })
    }

    pub(crate) fn write(&self) -> Vec<u8> {
        // Texts and numbers always have a JSON form.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

/// What is before a durable subscription's name where it is taken for a queue's.
pub(crate) const SUBSCRIPTION: &str = "~sub.";

/// The queue that a name means, which may be spelled as in STOMP.
///
/// # Errors
/// [`BusError::Refused`] with the name `INVALID`.
pub(crate) fn queue_named(name: &str) -> Result<Destination, BusError> {
    // A subscription's own name may have anything in it.
    let is_subscription = name.starts_with(SUBSCRIPTION);
    let spelled = !is_subscription && (name.starts_with('/') || name.contains("://"));
    let destination = match spelled {
        true => spelling::from_stomp(name),
        false => (!name.is_empty()).then(|| Destination::queue(name)),
    };
    destination.ok_or_else(|| BusError::invalid(format!("'{name}' names no queue")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subscription_is_named_as_the_list_names_it() {
        let own = "~sub.alarm-service.alarm-service@topic://books.alarms";
        for (name, meant) in [
            (own, Destination::queue(own)),
            ("~sub.a./queue/x", Destination::queue("~sub.a./queue/x")),
            ("queue://work", Destination::queue("work")),
            ("/queue/work", Destination::queue("work")),
            ("work", Destination::queue("work")),
        ] {
            assert_eq!(queue_named(name).unwrap(), meant, "{name}");
        }
        assert!(queue_named("").is_err());
    }
}
