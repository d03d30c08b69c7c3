//! `pillarbox alarms`.

use pillarbox_alarms::{AlarmFilter, AlarmStore, StoreError, StoredAlarm};
use pillarbox_client::validate;
use pillarbox_messages::{CollectionId, Timestamp};
use serde::Serialize;

use crate::{
    args::AlarmsListArgs,
    client_setup::{load_settings, not_started},
    failure::Failure,
    json,
    output::{in_words, one_line, print, rfc3339},
};

/// `alarms list`: what the alarm service of these settings has stored, also while it runs.
pub(super) fn list(args: &AlarmsListArgs) -> Result<(), Failure> {
    let (repository, node) = load_settings(&args.settings)?;
    if node.alarms.is_none() {
        return Err(Failure::usage(format!(
            "{}: node.toml has no [alarms]; give the settings directory of the process that plays the alarm service",
            args.settings.display()
        )));
    }
    let collection = args.collection.as_deref().map(CollectionId::from);
    if let Some(id) = &collection {
        validate::collection(&repository, id).map_err(not_started)?;
    }
    let filter = AlarmFilter {
        collection,
        limit: Some(args.limit),
        ..AlarmFilter::default()
    };
    let mut alarms = match AlarmStore::open_read(&AlarmStore::path_in(&node.data)) {
        Ok(store) => store.list(&filter).map_err(Failure::operation)?,
        // Nothing has been stored yet.
        Err(StoreError::Absent { .. }) => Vec::new(),
        Err(error) => return Err(Failure::operation(error)),
    };
    // The newest are chosen, and read like a log.
    alarms.reverse();
    let lines: String = if args.json {
        alarms
            .iter()
            .map(|alarm| json::line(&Line::of(alarm)))
            .collect()
    } else {
        std::iter::once(HEADING.to_owned())
            .chain(alarms.iter().map(row))
            .collect()
    };
    print(&lines)
}

fn time(ms: i64) -> String {
    rfc3339(Timestamp::from_millis(ms))
}

fn row(alarm: &StoredAlarm) -> String {
    format!(
        "{} \t{} \t{} \t{} \t{} \t{} \t{}\n",
        time(alarm.last_raised_ms),
        alarm.count,
        one_line(raiser(alarm).unwrap_or("-")),
        alarm.code,
        one_line(alarm.collection.as_ref().map_or("-", AsRef::as_ref)),
        one_line(alarm.file.as_ref().map_or("-", AsRef::as_ref)),
        in_words(&alarm.text),
    )
}

/// Who raised it, if that could be read.
fn raiser(alarm: &StoredAlarm) -> Option<&str> {
    Some(alarm.raiser.as_str()).filter(|raiser| !raiser.is_empty())
}

/// One row of `alarms list --json`.
#[derive(Debug, Serialize)]
struct Line<'a> {
    id: i64,
    raiser: Option<&'a str>,
    code: &'a str,
    text: &'a str,
    collection_id: Option<&'a str>,
    file_id: Option<&'a str>,
    count: u64,
    first_raised: String,
    last_raised: String,
    last_received: String,
}

impl<'a> Line<'a> {
    fn of(alarm: &'a StoredAlarm) -> Self {
        Self {
            id: alarm.id,
            raiser: raiser(alarm),
            code: alarm.code.as_str(),
            text: &alarm.text,
            collection_id: alarm.collection.as_ref().map(AsRef::as_ref),
            file_id: alarm.file.as_ref().map(AsRef::as_ref),
            count: alarm.count,
            first_raised: time(alarm.first_raised_ms),
            last_raised: time(alarm.last_raised_ms),
            last_received: time(alarm.last_received_ms),
        }
    }
}

const HEADING: &str = "Time: \tCount: \tRaiser: \tCode: \tCollection: \tFileID: \tText:\n";

#[cfg(test)]
mod tests {
    use pillarbox_alarms::EntryKind;
    use pillarbox_messages::{AlarmCode, ComponentId};

    use super::*;

    #[test]
    fn who_is_not_known_is_none() {
        let mut alarm = StoredAlarm {
            id: 1,
            kind: EntryKind::Unreadable,
            raiser: ComponentId::from(""),
            code: AlarmCode::InvalidMessage,
            text: "message of unknown type".to_owned(),
            file: None,
            collection: None,
            count: 1,
            first_raised_ms: 0,
            last_raised_ms: 0,
            first_received_ms: 0,
            last_received_ms: 0,
            raw: None,
        };
        let told = json::line(&Line::of(&alarm));
        assert!(told.contains("\"raiser\":null"), "{told}");
        assert!(row(&alarm).contains(" \t1 \t- \tINVALID_MESSAGE \t"));
        alarm.raiser = "north".into();
        let told = json::line(&Line::of(&alarm));
        assert!(told.contains("\"raiser\":\"north\""), "{told}");
    }
}
