//! `pillarbox bus`: an operator's connection to the built-in bus.

mod change;
mod message;
mod queue;

use std::future::Future;

use pillarbox_bus::{
    Bus, BusError,
    admin::{Administration, Answer, Request},
};
use pillarbox_client::passing_id;
use pillarbox_messages::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::{
    args::bus::{BusArgs, BusCommand, MsgCommand, QueueCommand},
    client_setup::{load_settings, no_bus, only_embedded},
    connecting::Route,
    failure::Failure,
    json,
    output::{one_line, rfc3339},
    signals::Stop,
};

pub(super) async fn run(command: BusCommand) -> Result<(), Failure> {
    match command {
        BusCommand::Queue(QueueCommand::List(args)) => queue::list(&args).await,
        BusCommand::Queue(QueueCommand::Show(args)) => queue::show(&args).await,
        BusCommand::Msg(MsgCommand::List(args)) => message::list(&args).await,
        BusCommand::Msg(MsgCommand::Show(args)) => message::show(&args).await,
        BusCommand::Msg(MsgCommand::Retry(args)) => change::retry(&args).await,
        BusCommand::Msg(MsgCommand::Delete(args)) => change::delete(&args).await,
    }
}

/// Who asks the bus.
#[derive(Debug)]
struct Operator {
    bus: Bus,
    administration: Administration,
    stop: Stop,
}

impl Operator {
    /// Connects to the bus of these settings. Nothing may be wrong any more that could have been found before.
    ///
    /// # Errors
    /// Settings that are wrong; no bus answers, or it is not one of ours; interrupted.
    async fn connect(args: &BusArgs) -> Result<Self, Failure> {
        let (repository, node) = load_settings(&args.settings)?;
        let origin = &node.effective_bus(&repository).origin;
        let route = Route::to_administer(&repository, &node).map_err(Failure::usage)?;
        let route = route.ok_or_else(|| only_embedded(origin))?;
        let mut stop = Stop::listen()?;
        let connected = async {
            let bus = route.connect_soon(&passing_id(), false).await;
            let bus = bus.map_err(|error| no_bus(error, Some(origin)))?;
            let administration = bus.administration().await.map_err(Failure::operation)?;
            Ok((bus, administration))
        };
        let (bus, administration) = tokio::select! {
            connected = connected => connected?,
            () = stop.asked() => return Err(Failure::interrupted()),
        };
        Ok(Self {
            bus,
            administration,
            stop,
        })
    }

    /// Asks the bus.
    ///
    /// # Errors
    /// What the bus has against it; interrupted.
    async fn ask(&mut self, request: Request) -> Result<Answer, Failure> {
        let answer = self.administration.ask(request);
        let answer = unless_stopped(&mut self.stop, answer).await?;
        answer.map_err(refused)
    }

    /// Takes leave of the bus.
    async fn close(self) {
        // The command is over; a bus that is gone by now doesn't matter.
        let _ = self.bus.close().await;
    }
}

async fn unless_stopped<T>(stop: &mut Stop, work: impl Future<Output = T>) -> Result<T, Failure> {
    tokio::select! {
        done = work => Ok(done),
        () = stop.asked() => Err(Failure::interrupted()),
    }
}

/// What the bus has refused, in its words.
fn refused(error: BusError) -> Failure {
    match error {
        BusError::Refused { name, detail } if name == NO_QUEUE => {
            Failure::operation(format!("{detail} ('pillarbox bus queue list')"))
        }
        BusError::Refused { detail, .. } => Failure::operation(detail),
        other => Failure::operation(other),
    }
}

const NO_QUEUE: &str = "NO-QUEUE";

/// An answer that belongs to no request of ours.
fn unexpected() -> Failure {
    Failure::operation("the bus answers something else than what it was asked")
}

/// A queue's name, as it can be given to a command.
fn short(name: &str) -> &str {
    name.strip_prefix("/queue/").unwrap_or(name)
}

fn time(ms: i64) -> String {
    rfc3339(Timestamp::from_millis(ms))
}

fn time_or_none(ms: Option<i64>) -> String {
    ms.map_or_else(|| "-".to_owned(), time)
}

fn or_none(text: Option<&str>) -> String {
    text.map_or_else(|| "-".to_owned(), one_line)
}

/// What of an answer is a time.
const TIMES: [&str; 8] = [
    "away_since",
    "missed_since",
    "oldest_at",
    "sent_at",
    "expires_at",
    "failed_at",
    "waits_until",
    "not_before",
];

/// A part of an answer as programs read it: on a line, with times as everywhere.
fn line(part: &impl Serialize) -> String {
    // Texts and numbers always have a JSON form.
    let mut value = serde_json::to_value(part).unwrap_or_default();
    write_times(&mut value);
    json::line(&value)
}

fn write_times(value: &mut Value) {
    let Value::Object(fields) = value else {
        return;
    };
    for (name, field) in fields {
        match field.as_i64().filter(|_| TIMES.contains(&name.as_str())) {
            Some(ms) => *field = Value::String(time(ms)),
            None => write_times(field),
        }
    }
}

#[cfg(test)]
mod tests {
    use pillarbox_bus::admin::{Kind, QueueRow};

    use super::*;

    #[test]
    fn times_are_written_for_programs_as_everywhere() {
        let row = QueueRow {
            number: 3,
            name: "/queue/q".to_owned(),
            kind: Kind::Queue,
            topic: None,
            lasting: true,
            messages: 1,
            ready: 1,
            scheduled: 0,
            in_flight: 0,
            bytes: 300,
            consumers: 0,
            lanes: None,
            oldest_at: Some(1_000),
            oldest_age_ms: Some(5),
            backout_limit: Some(3),
            backout_queue: None,
            backed_out: 0,
            expired: 0,
        };
        let told = line(&row);
        assert!(
            told.contains(r#""oldest_at":"1970-01-01T00:00:01.000Z""#),
            "{told}"
        );
        assert!(told.contains(r#""oldest_age_ms":5"#), "{told}");
        let within: Value = serde_json::from_str(r#"{"a":{"sent_at":0},"b":[1]}"#).unwrap();
        assert!(line(&within).contains("1970-01-01T00:00:00.000Z"));
    }
}
