//! From what arrives on an alarm topic to what is counted.

use pillarbox_bus::Incoming;
use pillarbox_component::{
    MessageSecurity, alarms::digest_of, incoming::decode, rejection::Rejection,
};
use pillarbox_messages::{AlarmMessage, ComponentId, CorrelationId, FileId, Message, ReadOptions};

use crate::store::{Entry, EntryKind};

/// The arrival to count; none for a message that is no alarm, as there are where clients and alarms share
/// a topic.
pub(crate) fn entry_of(
    incoming: &Incoming,
    security: &MessageSecurity,
    options: ReadOptions,
    now_ms: i64,
) -> Option<Entry> {
    match decode(incoming, security, options) {
        Ok(received) => match received.message {
            Message::AlarmMessage(alarm) => Some(alarm_entry(alarm)),
            _ => None,
        },
        Err(rejection) => Some(unreadable_entry(&rejection, incoming, now_ms)),
    }
}

/// The collection is the message's: the alarm's own is only its raiser's word.
fn alarm_entry(message: AlarmMessage) -> Entry {
    let AlarmMessage { header, alarm } = message;
    let collection = header.collection_id.or(alarm.collection_id);
    let raised_ms = alarm.orig_date_time.millis();
    let identity = digest_of(&[
        Some("alarm"),
        Some(header.from.as_str()),
        Some(header.correlation_id.as_str()),
        Some(alarm.alarm_raiser.as_str()),
        Some(alarm.alarm_code.as_str()),
        Some(&raised_ms.to_string()),
        Some(&alarm.alarm_text),
        alarm.file_id.as_ref().map(FileId::as_str),
        collection.as_ref().map(AsRef::as_ref),
    ]);
    Entry {
        kind: EntryKind::Alarm,
        identity,
        raiser: alarm.alarm_raiser,
        code: alarm.alarm_code,
        text: bounded(&alarm.alarm_text, MAX_TEXT_BYTES),
        file: alarm.file_id,
        collection,
        raised_ms,
        raw: None,
    }
}

fn unreadable_entry(rejection: &Rejection, incoming: &Incoming, now_ms: i64) -> Entry {
    let body = incoming.body.get(..MAX_RAW_BYTES).unwrap_or(&incoming.body);
    let identity = digest_of(&[
        Some("unreadable"),
        Some(&incoming.message_id),
        rejection.correlation_id.as_ref().map(CorrelationId::as_str),
    ]);
    Entry {
        kind: EntryKind::Unreadable,
        identity,
        raiser: rejection
            .from
            .clone()
            .unwrap_or_else(|| ComponentId::from("")),
        code: rejection.alarm_code(),
        text: bounded(&rejection.alarm_text(), MAX_TEXT_BYTES),
        file: None,
        collection: rejection.collection_id.clone(),
        raised_ms: now_ms,
        raw: Some(bounded(&String::from_utf8_lossy(body), MAX_RAW_BYTES)),
    }
}

/// The text, cut between two characters if it is longer than this many bytes.
fn bounded(text: &str, limit: usize) -> String {
    let limit = limit.min(text.len());
    let end = (0..=limit).rev().find(|end| text.is_char_boundary(*end));
    end.and_then(|end| text.get(..end))
        .unwrap_or_default()
        .to_owned()
}

const MAX_TEXT_BYTES: usize = 64 << 10;
const MAX_RAW_BYTES: usize = 4 << 10;
