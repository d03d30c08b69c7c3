//! Administration: reads requests, answers them, and changes what they ask for, in the one step that takes them.

mod change;
mod figures;
mod look;

pub(crate) use self::look::cut;

use std::sync::Arc;

use bytes::Bytes;
use pillarbox_messages::{Destination, DestinationKind};

use super::{
    Core,
    message::{MessageId, NewMessage, Parts},
    unit::{Place, QueueId},
};
use crate::{
    admin::{self, Answer, Request},
    embedded::connection::{ConnectionId, Event, Token},
    error::BusError,
    spelling,
};

/// How much of the bus's capacity answers may take when others have all of it, in bytes: whoever makes room has to be
/// answered.
const RESERVE: u64 = 4 << 20;
/// How many rows an answer has, if nothing is said.
const ROWS: usize = 100;
/// How many rows an answer has at most.
const MOST_ROWS: usize = 1_000;
/// With so many bytes of rows (about) an answer ends.
const MOST_BYTES: usize = 256 << 10;
/// How many messages one request looks at.
const MOST_EXAMINED: usize = 10_000;

/// Whether requests to the administration are sent there.
pub(super) fn is_administration(destination: &Destination) -> bool {
    destination.kind() == DestinationKind::Queue && destination.name() == admin::QUEUE
}

/// How many rows an answer may have.
fn rows(limit: Option<usize>) -> Result<usize, BusError> {
    match limit {
        Some(0) => Err(BusError::invalid("a limit is at least 1")),
        limit => Ok(limit.unwrap_or(ROWS).min(MOST_ROWS)),
    }
}

impl Core {
    fn administer(&mut self, request: &Request) -> Result<Answer, BusError> {
        match request {
            Request::QueueList { after, limit } => self.list_queues(*after, *limit),
            Request::QueueShow { queue } => self.show_queue(queue),
            Request::MsgList {
                queue,
                filter,
                after,
                limit,
            } => self.list_messages(queue, filter, *after, *limit),
            Request::MsgShow { queue, id, body } => self.show_message(queue, *id, *body),
            Request::MsgRetry {
                queue,
                ids,
                filter,
                after,
            } => self.retry_some(queue, (ids.as_deref(), filter.as_ref()), *after),
            Request::MsgDelete {
                queue,
                ids,
                filter,
                after,
            } => self.delete_some(queue, (ids.as_deref(), filter.as_ref()), *after),
        }
    }

    /// Answers a connection's own request.
    pub(super) fn administer_for(
        &mut self,
        connection: ConnectionId,
        request: &Request,
        token: Token,
    ) {
        let answer = match self.administer(request) {
            Ok(answer) => Box::new(answer),
            Err(error) => return self.answer(connection, token, Err(error)),
        };
        self.draft.need_sync();
        let event = Event::Administered { token, answer };
        self.draft
            .deliver(connection, self.all_so_far(), (false, false), event);
    }

    /// Answers a request that came as a message; `false` if there is no place for the answer, and so nothing was done.
    pub(super) fn administer_by_message(&mut self, id: MessageId, request: &NewMessage) -> bool {
        if request.expires_at.is_some_and(|at| at <= self.now) {
            return false;
        }
        let Some((queue, to)) = self.place_for_answer(request) else {
            return false;
        };
        let is_for_now = request.not_before.is_none() && request.delay.is_none();
        let done = match is_for_now {
            true => Request::read(&request.body).and_then(|request| self.administer(&request)),
            false => Err(BusError::invalid(
                "the administration does at once what it is asked for",
            )),
        };
        let correlation = request.correlation_id.clone();
        let answer = NewMessage {
            headers: vec![("content-type".to_owned(), "application/json".to_owned())],
            persistent: Some(false),
            correlation_id: Some(correlation.unwrap_or_else(|| id.to_string())),
            ..NewMessage::new(to, Bytes::from(Answer::of(done).write()))
        };
        self.send_answer(queue, &answer);
        true
    }

    /// The temporary queue that the sender wants his answer in, while there is room in it.
    fn place_for_answer(&self, request: &NewMessage) -> Option<(QueueId, Destination)> {
        let to = spelling::from_stomp(request.reply_to.as_deref()?)?;
        let is_temporary = to.kind() == DestinationKind::TemporaryQueue;
        let queue = self
            .directory
            .temporary(to.name())
            .filter(|_| is_temporary)?;
        let room = self.limits.capacity_bytes.saturating_add(RESERVE);
        (self.held_bytes <= room).then_some((queue, to))
    }

    /// Puts an answer into its queue, to be seen when everything that it tells of is written.
    fn send_answer(&mut self, queue: QueueId, answer: &NewMessage) {
        let id = self.take_message_id();
        let parts = Parts::of(answer, id, admin::QUEUE, self.now, false);
        let message = Arc::new(parts.pack(&mut self.addresses));
        self.hold(&message, Place::fresh(queue), false);
        let after = self.all_so_far();
        let queue = self.queues.get_mut(&queue);
        if let Some(held) = queue.and_then(|queue| queue.messages.get_mut(&id)) {
            held.set_unit(after);
        }
        self.draft.need_sync();
        self.draft.keep_placed();
    }

    /// The latest unit before that of this step.
    const fn all_so_far(&self) -> u64 {
        self.next_unit - 1
    }

    /// The queue that an operator means. A lane by itself is none.
    fn queue_meant(&self, name: &str) -> Result<QueueId, BusError> {
        let destination = admin::queue_named(name)?;
        let found = match destination.kind() {
            DestinationKind::Queue => {
                let named = self.directory.queue(destination.name());
                named.or_else(|| self.subscription_named(destination.name()))
            }
            DestinationKind::TemporaryQueue => self.directory.temporary(destination.name()),
            DestinationKind::Topic => None,
        };
        found.ok_or_else(|| BusError::UnknownDestination {
            destination,
            remedy: "list the queues to see which there are".to_owned(),
        })
    }
}
