//! The audit trail: how long its texts may be, and how it is read.

use std::{borrow::Cow, num::NonZeroU64, ops::RangeInclusive};

use pillarbox_messages::{CollectionId, FileAction, FileId};
use rusqlite::{Connection, Row, params, types::Type};

use super::{
    AuditEntry, AuditEvent, AuditQuery, Index, IndexError, PAGE_MAX,
    rows::{natural, sql_integer},
};
use crate::text::cut;

impl Index {
    /// Events of an audit trail, by their numbers: at least one, if there are any, and at most [`PAGE_MAX`] or what
    /// takes about a mebibyte.
    ///
    /// # Errors
    /// The database fails.
    pub async fn audit(&self, mut query: AuditQuery) -> Result<Vec<AuditEvent>, IndexError> {
        loop {
            let asked = query.clone();
            let portion = self.read(move |connection| portion(connection, &asked));
            match portion.await? {
                Portion::Found(events) => return Ok(events),
                Portion::GoOn(next) => query.first = next,
            }
        }
    }

    /// The same query, with bounds of the numbers that its times leave: between them are all of its events, and hardly
    /// others. `None` if there are no events within its times.
    ///
    /// # Errors
    /// The database fails.
    pub async fn narrow(&self, query: AuditQuery) -> Result<Option<AuditQuery>, IndexError> {
        if query.min_ms.is_none() && query.max_ms.is_none() {
            return Ok(Some(query));
        }
        self.read(move |connection| {
            let numbers = numbers(connection, &query)?;
            Ok(numbers.map(|numbers| AuditQuery {
                first: *numbers.start(),
                last: Some(*numbers.end()),
                ..query
            }))
        })
        .await
    }
}

/// The texts of an event, none longer than they may be. What a file, a component or a conversation is called by those
/// that exist is never as long.
pub(super) struct Texts<'a> {
    pub(super) file_id: Cow<'a, str>,
    pub(super) actor: Cow<'a, str>,
    pub(super) info: Option<Cow<'a, str>>,
    pub(super) operation_id: Option<Cow<'a, str>>,
    pub(super) certificate_id: Option<Cow<'a, str>>,
    pub(super) audit_trail_information: Option<Cow<'a, str>>,
}

impl AuditEntry {
    pub(super) fn texts(&self) -> Texts<'_> {
        let id = |text| cut(text, LONGEST_ID);
        Texts {
            file_id: cut(self.file_id.as_str(), LONGEST_FILE_ID),
            actor: id(self.actor.as_str()),
            info: self.info.as_deref().map(|text| cut(text, LONGEST_INFO)),
            operation_id: self.operation_id.as_ref().map(|it| id(it.as_str())),
            certificate_id: self.certificate_id.as_deref().map(id),
            audit_trail_information: self
                .audit_trail_information
                .as_deref()
                .map(|text| cut(text, LONGEST_INFORMATION)),
        }
    }

    /// Written by an earlier version, it may be longer than it would be now.
    fn within_bounds(self) -> Self {
        let owned = |text: Cow<'_, str>| text.into_owned();
        let texts = self.texts();
        Self {
            file_id: FileId::from(&*texts.file_id),
            actor: (&*texts.actor).into(),
            action: self.action,
            info: texts.info.map(owned),
            operation_id: texts.operation_id.map(|it| (&*it).into()),
            certificate_id: texts.certificate_id.map(owned),
            audit_trail_information: texts.audit_trail_information.map(owned),
        }
    }

    /// The bytes of its texts.
    pub(crate) fn length(&self) -> usize {
        let texts = [
            Some(self.file_id.as_str()),
            Some(self.actor.as_str()),
            self.info.as_deref(),
            self.operation_id.as_ref().map(AsRef::as_ref),
            self.certificate_id.as_deref(),
            self.audit_trail_information.as_deref(),
        ];
        texts.into_iter().flatten().map(str::len).sum()
    }
}

/// What one look gives.
enum Portion {
    /// The next events; none at the end.
    Found(Vec<AuditEvent>),
    /// None up to here; on from this number.
    GoOn(u64),
}

/// Looks at a bounded number of events, so that others can look in between.
fn portion(connection: &Connection, query: &AuditQuery) -> rusqlite::Result<Portion> {
    let end = query.last.map_or(i64::MAX, sql_integer);
    // By file there is an index.
    let to = match query.file_id {
        Some(_) => end,
        None => sql_integer(query.first)
            .saturating_add(LOOKED_AT - 1)
            .min(end),
    };
    let of_file = if query.file_id.is_some() {
        "AND file_id = ?6"
    } else {
        "AND ?6 IS NULL"
    };
    let mut statement = connection.prepare_cached(&format!(
        "SELECT number, time, file_id, actor, action, info, operation_id, certificate_id,
                information
         FROM audit
         WHERE collection = (SELECT key FROM collections WHERE id = ?1)
           AND number BETWEEN ?2 AND ?3 AND time BETWEEN ?4 AND ?5 {of_file}
         ORDER BY number LIMIT ?7"
    ))?;
    let limit = query.limit.map_or(PAGE_MAX, NonZeroU64::get);
    let parameters = params![
        query.collection.as_str(),
        sql_integer(query.first),
        to,
        query.min_ms.unwrap_or(i64::MIN),
        query.max_ms.unwrap_or(i64::MAX),
        query.file_id.as_ref().map(FileId::as_str),
        sql_integer(limit.min(PAGE_MAX)),
    ];
    let (mut events, mut bytes) = (Vec::new(), 0);
    for event in statement.query_map(parameters, audit_event)? {
        let event = event?;
        bytes += event.entry.length();
        events.push(event);
        if bytes >= PORTION_BYTES {
            break;
        }
    }
    let next = match events.is_empty() && to < end {
        true => number_after(connection, &query.collection, to)?,
        false => None,
    };
    Ok(next.map_or(Portion::Found(events), Portion::GoOn))
}

fn number_after(
    connection: &Connection,
    collection: &CollectionId,
    number: i64,
) -> rusqlite::Result<Option<u64>> {
    let mut statement = connection.prepare_cached(
        "SELECT min(number) FROM audit
         WHERE collection = (SELECT key FROM collections WHERE id = ?1) AND number > ?2",
    )?;
    let next = statement.query_row(params![collection.as_str(), number], |row| row.get(0));
    next.map(|it: Option<i64>| it.map(natural))
}

/// The lowest and the highest number of the events within a query's times.
fn numbers(
    connection: &Connection,
    query: &AuditQuery,
) -> rusqlite::Result<Option<RangeInclusive<u64>>> {
    let mut statement = connection.prepare_cached(NUMBERS)?;
    let parameters = params![
        query.collection.as_str(),
        query.min_ms.unwrap_or(i64::MIN),
        query.max_ms.unwrap_or(i64::MAX),
        sql_integer(query.first),
        query.last.map_or(i64::MAX, sql_integer),
    ];
    statement.query_row(parameters, |row| {
        let bounds: [Option<i64>; 2] = [row.get(0)?, row.get(1)?];
        let [Some(first), Some(last)] = bounds else {
            return Ok(None);
        };
        Ok(Some(natural(first)..=natural(last)))
    })
}

/// Columns: number, time, file id, actor, action, info, operation id, certificate id, information.
fn audit_event(row: &Row<'_>) -> rusqlite::Result<AuditEvent> {
    let action = row.get::<_, String>(4)?;
    let action: FileAction = action.parse().map_err(|_| unknown_action(action))?;
    let entry = AuditEntry {
        file_id: row.get::<_, String>(2)?.into(),
        actor: row.get::<_, String>(3)?.into(),
        action,
        info: row.get(5)?,
        operation_id: row.get::<_, Option<String>>(6)?.map(Into::into),
        certificate_id: row.get(7)?,
        audit_trail_information: row.get(8)?,
    };
    Ok(AuditEvent {
        number: natural(row.get(0)?),
        time_ms: row.get(1)?,
        entry: entry.within_bounds(),
    })
}

fn unknown_action(text: String) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(4, Type::Text, text.into())
}

/// The clock may have been set back: then numbers and times are not in the same order.
pub(super) const NUMBERS: &str = "
    SELECT min(number), max(number) FROM audit INDEXED BY audit_by_time
    WHERE collection = (SELECT key FROM collections WHERE id = ?1)
      AND time BETWEEN ?2 AND ?3 AND number BETWEEN ?4 AND ?5";

/// Events that one look goes through at most.
const LOOKED_AT: i64 = 10_000;
/// Bytes of texts after which a portion ends.
const PORTION_BYTES: usize = 1 << 20;
/// Bytes of an event's texts. Acceptable file ids have fewer.
pub(super) const LONGEST_FILE_ID: usize = 1 << 10;
const LONGEST_ID: usize = 4 << 10;
const LONGEST_INFO: usize = 8 << 10;
pub(super) const LONGEST_INFORMATION: usize = 256 << 10;
