//! From what arrives on an alarm topic to what is counted.

use pillarbox_bus::Incoming;
use pillarbox_component::{
    MessageSecurity, alarms::digest_of, incoming::decode, rejection::Rejection,
};
use pillarbox_messages::{AlarmMessage, ComponentId, FileId, Message, ReadOptions};

use crate::store::{Entry, EntryKind};

/// The arrival to count; none for a message that is no alarm, as there are where clients and alarms share
/// a topic. `id` is what the bus calls the message, also when it comes again.
pub(crate) fn entry_of(
    incoming: &Incoming,
    id: Option<&str>,
    security: &MessageSecurity,
    options: ReadOptions,
    now_ms: i64,
) -> Option<Entry> {
    match decode(incoming, security, options) {
        Ok(received) => match received.message {
            Message::AlarmMessage(alarm) => Some(alarm_entry(alarm)),
            _ => None,
        },
        Err(rejection) => Some(unreadable_entry(&rejection, incoming, id, now_ms)),
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

fn unreadable_entry(
    rejection: &Rejection,
    incoming: &Incoming,
    id: Option<&str>,
    now_ms: i64,
) -> Entry {
    let body = incoming.body.get(..MAX_RAW_BYTES).unwrap_or(&incoming.body);
    Entry {
        kind: EntryKind::Unreadable,
        identity: identity_of(incoming, id),
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

/// What tells one message that can't be read from another. Where the bus has no name for it that lasts, two of the same
/// content are one.
fn identity_of(incoming: &Incoming, id: Option<&str>) -> [u8; 32] {
    let body = String::from_utf8_lossy(&incoming.body);
    let properties = incoming.properties.iter();
    let properties = properties.flat_map(|(name, value)| [name.as_str(), value.as_str()]);
    let content = [
        incoming.correlation_id.as_deref().unwrap_or_default(),
        &body,
    ];
    let content = content.into_iter().chain(properties).map(Some);
    let fields = match id {
        Some(id) => vec![Some("unreadable"), Some(id)],
        None => [Some("unreadable"), None]
            .into_iter()
            .chain(content)
            .collect(),
    };
    digest_of(&fields)
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

#[cfg(test)]
mod tests {
    use pillarbox_messages::Destination;

    use super::*;

    fn unreadable(message_id: &str, body: &'static str, kind: &str) -> Incoming {
        Incoming {
            message_id: message_id.to_owned(),
            destination: Destination::topic("books.alarms"),
            properties: vec![(
                "org.bitrepository.messages.type".to_owned(),
                kind.to_owned(),
            )],
            body: body.into(),
            correlation_id: Some("c".to_owned()),
            reply_to: None,
            persistent: true,
            redelivered: false,
            delivery_count: 1,
            backout_count: 0,
            left_out: None,
        }
    }

    #[test]
    fn a_message_that_comes_again_is_the_same_also_where_deliveries_are_named() {
        let identity = |incoming: &Incoming, id: Option<&str>| {
            let security = MessageSecurity::default();
            let entry = entry_of(incoming, id, &security, ReadOptions::default(), 0).unwrap();
            assert_eq!(entry.kind, EntryKind::Unreadable);
            entry.identity
        };
        let first = unreadable("T_1@@session@@1", "<rubbish", "AlarmMessage");
        let again = unreadable("T_1@@session@@2", "<rubbish", "AlarmMessage");
        assert_eq!(identity(&first, None), identity(&again, None));
        for other in [
            unreadable("T_1@@session@@1", "<other", "AlarmMessage"),
            unreadable("T_1@@session@@1", "<rubbish", "Alarm"),
        ] {
            assert_ne!(identity(&first, None), identity(&other, None));
        }
        // Where messages are named, two of the same content are two.
        assert_ne!(identity(&first, Some("1")), identity(&first, Some("2")));
        assert_eq!(identity(&first, Some("1")), identity(&again, Some("1")));
    }
}
