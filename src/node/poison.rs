//! Telling people what the bus wants them to know, with an alarm: of messages that it has moved aside, and of durable
//! subscriptions that are in trouble.

use std::{
    path::{Path, absolute},
    sync::Arc,
};

use pillarbox_bus::{
    Bus,
    embedded::connection::{MessageId, Notice, PoisonMoved},
};
use pillarbox_component::{AlarmRequest, Component, ComponentOptions};
use pillarbox_messages::{
    AlarmCode, CollectionId, ComponentId, Destination, clock::SharedClock, wording::count,
};
use pillarbox_settings::{AlarmLevel, Repository};
use tokio::{
    sync::broadcast::{Receiver, error::RecvError},
    task::JoinSet,
};
use tracing::warn;

use super::trouble;
use crate::output::{own_program, quoted};

/// Who raises these alarms.
const RAISER: &str = "bus";

/// The commands that an alarm advises: they are to work as they are written.
#[derive(Debug)]
pub(super) struct Advice {
    program: String,
    settings: String,
}

impl Advice {
    /// For the bus that is served with the settings of this directory.
    pub(super) fn of(settings: &Path) -> Self {
        let settings = absolute(settings).unwrap_or_else(|_| settings.to_owned());
        Self {
            program: own_program(),
            settings: quoted(&settings.to_string_lossy()),
        }
    }

    /// A command about messages of a queue, whose name is in STOMP spelling.
    fn command(&self, what: &str, queue: &str, message: Option<MessageId>) -> String {
        let Self { program, settings } = self;
        let queue = quoted(queue.strip_prefix("/queue/").unwrap_or(queue));
        let message = message.map_or_else(String::new, |id| format!(" {id}"));
        format!("{program} bus msg {what} -s {settings} {queue}{message}")
    }
}

/// Raises an alarm for whatever the bus tells of, that is one for each queue and subscription and hour.
pub(super) fn watch(
    tasks: &mut JoinSet<()>,
    mut told: Receiver<Notice>,
    advice: Option<Advice>,
    bus: Bus,
    repository: &Arc<Repository>,
    clock: &SharedClock,
) {
    let id = ComponentId::from(RAISER);
    let (repository, clock) = (Arc::clone(repository), SharedClock::clone(clock));
    let options = ComponentOptions::client(id, None, repository, bus, clock);
    let component = Component::new(options);
    tasks.spawn(async move {
        loop {
            match told.recv().await {
                Ok(Notice::Moved(moved)) => {
                    let request = alarm(&moved, advice.as_ref(), component.repository());
                    component.alarms().raise(request).await;
                }
                Ok(Notice::Subscription(trouble)) => {
                    component.alarms().raise(trouble::alarm(&trouble)).await;
                }
                Ok(_) => {}
                Err(RecvError::Lagged(missed)) => {
                    warn!(
                        missed,
                        "more happened to messages and subscriptions than could be told of"
                    );
                }
                Err(RecvError::Closed) => return,
            }
        }
    });
}

fn alarm(moved: &PoisonMoved, advice: Option<&Advice>, repository: &Repository) -> AlarmRequest {
    AlarmRequest {
        level: AlarmLevel::Error,
        code: AlarmCode::ComponentFailure,
        text: text(moved, advice),
        collection: collection(moved, repository),
        file: None,
    }
}

fn text(moved: &PoisonMoved, advice: Option<&Advice>) -> String {
    let PoisonMoved {
        queue,
        moved_to,
        message_id,
        correlation_id,
        reason,
        cause,
        backouts,
        others,
        ..
    } = moved;
    let correlated = correlation_id.as_ref();
    let correlated =
        correlated.map_or_else(String::new, |id| format!(" with correlation id '{id}'"));
    let more = match others {
        0 => String::new(),
        others => format!(
            "; {} more of this queue since the last alarm",
            count(usize::try_from(*others).unwrap_or(usize::MAX), "message")
        ),
    };
    let advised = advice.map_or_else(String::new, |advice| advised(advice, moved));
    format!(
        "message {message_id}{correlated} in {queue} has failed {} ({}, the last time {}) and was moved to \
         {moved_to}{more}; find out why before it is sent again{advised}",
        count(usize::try_from(*backouts).unwrap_or(usize::MAX), "time"),
        reason.as_str(),
        cause.as_str()
    )
}

/// How to look at the message, and how to send it back.
fn advised(advice: &Advice, moved: &PoisonMoved) -> String {
    let (queue, id) = (moved.moved_to.as_str(), Some(moved.message_id));
    let all = match moved.others {
        0 => String::new(),
        _ => format!("; to list all: {}", advice.command("list", queue, None)),
    };
    format!(
        "; to look at it: {}; to send it back: {}{all}",
        advice.command("show", queue, id),
        advice.command("retry", queue, id)
    )
}

/// The collection whose pillar takes from the queue, if there is only one.
fn collection(moved: &PoisonMoved, repository: &Repository) -> Option<CollectionId> {
    let queue = pillarbox_bus::spelling::from_stomp(&moved.queue)?;
    let takes = |id: &CollectionId, pillars: &[ComponentId]| {
        let names = repository.destinations(id);
        let mut destinations = pillars.iter().map(|pillar| names.pillar(pillar));
        destinations.any(|it: Destination| it == queue)
    };
    let collections = repository.collections.iter();
    let mut own = collections.filter(|it| takes(&it.id, &it.pillars));
    match (own.next(), own.next()) {
        (Some(only), None) => Some(only.id.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use pillarbox_bus::embedded::connection::{Cause, Reason};

    use super::*;

    fn moved(queue: &str, others: u64) -> PoisonMoved {
        PoisonMoved {
            queue: queue.to_owned(),
            moved_to: format!("{queue}.backout"),
            message_id: MessageId { boot: 3, seq: 17 },
            correlation_id: (others == 0).then(|| "c-1".to_owned()),
            group: None,
            reason: Reason::Backout,
            cause: Cause::ConnectionLost,
            backouts: 3,
            others,
        }
    }

    #[test]
    fn people_are_told_what_happened_and_what_to_do() {
        assert_eq!(
            text(&moved("/queue/books.north", 0), None),
            "message 3-17 with correlation id 'c-1' in /queue/books.north has failed 3 times (backout, the last time \
             connection-lost) and was moved to /queue/books.north.backout; find out why before it is sent again"
        );
        let advice = Advice {
            program: "/bin/pillarbox".to_owned(),
            settings: quoted("/my settings"),
        };
        let told = text(&moved("/queue/books.north", 0), Some(&advice));
        let advised = "; find out why before it is sent again; to look at it: /bin/pillarbox bus msg show -s \
                       '/my settings' books.north.backout 3-17; to send it back: /bin/pillarbox bus msg retry -s \
                       '/my settings' books.north.backout 3-17";
        assert!(told.ends_with(advised), "{told}");
        let mut more = moved("/queue/it's", 4);
        more.moved_to = "/queue/~error".to_owned();
        let told = text(&more, Some(&advice));
        assert!(
            told.contains("; 4 messages more of this queue since the last alarm;"),
            "{told}"
        );
        let list = "; to list all: /bin/pillarbox bus msg list -s '/my settings' '~error'";
        assert!(told.ends_with(list), "{told}");
    }

    #[test]
    fn the_alarm_goes_to_the_collection_whose_pillar_takes_from_the_queue() {
        let repository = r#"
[repository]
name = "R"
[bus]
url = "embedded:"
[[collections]]
id = "books"
pillars = ["north"]
[[collections]]
id = "maps"
pillars = ["north", "south"]
"#;
        let repository = Repository::from_toml_str(repository, "repository.toml").unwrap();
        let about = |queue| collection(&moved(queue, 0), &repository);
        assert_eq!(
            about("/queue/books.north"),
            Some(CollectionId::from("books"))
        );
        assert_eq!(about("/queue/maps.south"), Some(CollectionId::from("maps")));
        assert_eq!(about("/queue/orders"), None);
    }
}
