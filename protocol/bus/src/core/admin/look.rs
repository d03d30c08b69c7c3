//! Messages as an operator sees them.

use std::fmt::Write as _;

use super::{MOST_BYTES, MOST_EXAMINED, rows};
use crate::{
    admin::{Answer, Body, Filter, MessageDetail, MessageRow, Messages, State as Shown},
    core::{
        Core,
        message::MessageId,
        queue::{Held, State},
    },
    error::BusError,
};

/// How much of a text of a sender's is shown in a list, in characters.
const MOST_TEXT: usize = 255;
/// How much of a body is shown, in bytes, if nothing is said, and at most.
const BODY: usize = 64 << 10;
const MOST_BODY: usize = 256 << 10;
/// What a row takes besides its texts, in bytes (about).
const ROW: usize = 512;

impl Core {
    pub(super) fn list_messages(
        &self,
        queue: &str,
        filter: &Filter,
        after: Option<MessageId>,
        limit: Option<usize>,
    ) -> Result<Answer, BusError> {
        let limit = rows(limit)?;
        let id = self.queue_meant(queue)?;
        let queue = self.queues.get(&id).ok_or(BusError::NoMessage)?;
        let mut held = queue.messages.behind(after).peekable();
        let (mut listed, mut examined, mut bytes) = (Messages::default(), 0, 0);
        while let Some((id, one)) = held.next() {
            examined += 1;
            if filter.selects(&one.message) {
                let row = row(one, cut);
                bytes += ROW + texts(&row);
                listed.messages.push(row);
            }
            let full = listed.messages.len() >= limit || bytes >= MOST_BYTES;
            if full || examined >= MOST_EXAMINED {
                listed.after = held.peek().map(|_| id);
                break;
            }
        }
        Ok(Answer::Messages(listed))
    }

    pub(super) fn show_message(
        &self,
        queue: &str,
        id: MessageId,
        most: Option<usize>,
    ) -> Result<Answer, BusError> {
        let queue_id = self.queue_meant(queue)?;
        let queue = self.queues.get(&queue_id);
        let Some(held) = queue.and_then(|queue| queue.messages.get(&id)) else {
            let detail = format!("there is no message {id} in {}", self.name_of(queue_id));
            return Err(BusError::bad_id(detail));
        };
        let message = &held.message;
        let holder = match held.state {
            State::InFlight(delivery) => self.sessions.iter().find_map(|(connection, session)| {
                let flies = session.flights.contains_key(&delivery);
                flies.then(|| self.client_id(*connection).to_owned())
            }),
            State::Ready | State::Scheduled(_) => None,
        };
        Ok(Answer::Message(Box::new(MessageDetail {
            queue: self.name_of(queue_id),
            message: row(held, str::to_owned),
            destination: message.destination_text().to_owned(),
            reply_to: message.reply_to().map(str::to_owned),
            not_before: message.not_before(),
            holder,
            headers: message.headers().map(owned).collect(),
            body: body(message.body_bytes(), most.unwrap_or(BODY).min(MOST_BODY)),
        })))
    }
}

/// A text of a sender's, cut where it is too long for a list.
pub(crate) fn cut(text: &str) -> String {
    match text.char_indices().nth(MOST_TEXT) {
        Some((end, _)) => text.get(..end).unwrap_or_default().to_owned() + "…",
        None => text.to_owned(),
    }
}

fn row(held: &Held, show: impl Fn(&str) -> String) -> MessageRow {
    let message = held.message.parts();
    let text = |text: Option<&str>| text.map(&show);
    let (state, waits_until) = match held.state {
        State::Ready => (Shown::Ready, None),
        State::Scheduled(at) => (Shown::Scheduled, Some(at)),
        State::InFlight(_) => (Shown::InFlight, None),
    };
    MessageRow {
        id: message.id,
        state,
        waits_until,
        key: text(message.group),
        correlation_id: text(message.correlation_id),
        priority: message.priority,
        persistent: message.persistent,
        origin: show(message.origin),
        sent_at: message.enqueued_at,
        expires_at: message.expires_at,
        body_bytes: message.body.len() as u64,
        deliveries: held.delivery_count,
        backouts: held.backout_count,
        original_destination: text(message.original_destination),
        reason: message.reason,
        cause: message.failure.map(|failure| failure.cause),
        failed_at: message.failure.map(|failure| failure.failed_at),
    }
}

fn owned((name, value): (&str, &str)) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

fn texts(row: &MessageRow) -> usize {
    let texts = [&row.key, &row.correlation_id, &row.original_destination];
    let texts: usize = texts.into_iter().flatten().map(String::len).sum();
    texts + row.origin.len()
}

/// The first bytes of a body: as text if they are printable, else in hex.
fn body(bytes: &[u8], most: usize) -> Body {
    let cut = bytes.len() > most;
    let shown = bytes.get(..most).unwrap_or(bytes);
    let text = match std::str::from_utf8(shown) {
        Ok(text) => Some(text),
        // A character that was cut is left out.
        Err(error) if cut && error.error_len().is_none() => {
            let whole = shown.get(..error.valid_up_to()).unwrap_or_default();
            std::str::from_utf8(whole).ok()
        }
        Err(_) => None,
    };
    let printable = |char: char| !char.is_control() || matches!(char, '\n' | '\r' | '\t');
    let text = text.filter(|text| text.chars().all(printable));
    Body {
        text: text.map(str::to_owned),
        hex: text.is_none().then(|| hex(shown)),
        cut,
    }
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a text never fails.
        let _ = write!(text, "{byte:02x}");
    }
    text
}
