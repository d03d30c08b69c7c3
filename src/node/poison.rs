//! Telling people what the bus wants them to know, with an alarm: of messages that it has moved aside, and of durable
//! subscriptions that are in trouble.

use std::sync::Arc;

use pillarbox_bus::{
    Broker, Bus,
    embedded::connection::{Notice, PoisonMoved},
};
use pillarbox_component::{AlarmRequest, Component, ComponentOptions};
use pillarbox_messages::{
    AlarmCode, CollectionId, ComponentId, Destination, clock::SharedClock, wording::count,
};
use pillarbox_settings::{AlarmLevel, Repository};
use tokio::{sync::broadcast::error::RecvError, task::JoinSet};
use tracing::warn;

use super::trouble;

/// Who raises these alarms.
const RAISER: &str = "bus";

/// Raises an alarm for whatever the bus tells of, that is one for each queue and subscription and hour.
pub(super) fn watch(
    tasks: &mut JoinSet<()>,
    broker: &Broker,
    bus: Bus,
    repository: &Arc<Repository>,
    clock: &SharedClock,
) {
    let id = ComponentId::from(RAISER);
    let (repository, clock) = (Arc::clone(repository), SharedClock::clone(clock));
    let options = ComponentOptions::client(id, None, repository, bus, clock);
    let component = Component::new(options);
    let mut told = broker.notices();
    tasks.spawn(async move {
        loop {
            match told.recv().await {
                Ok(Notice::Moved(moved)) => {
                    let request = alarm(&moved, component.repository());
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

fn alarm(moved: &PoisonMoved, repository: &Repository) -> AlarmRequest {
    AlarmRequest {
        level: AlarmLevel::Error,
        code: AlarmCode::ComponentFailure,
        text: text(moved),
        collection: collection(moved, repository),
        file: None,
    }
}

fn text(moved: &PoisonMoved) -> String {
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
    let others = match others {
        0 => String::new(),
        others => format!(
            "; {} more of this queue since the last alarm",
            count(usize::try_from(*others).unwrap_or(usize::MAX), "message")
        ),
    };
    format!(
        "message {message_id}{correlated} in {queue} has failed {} ({}, the last time {}) and was moved to \
         {moved_to}{others}; find out why before it is sent again",
        count(usize::try_from(*backouts).unwrap_or(usize::MAX), "time"),
        reason.as_str(),
        cause.as_str()
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
    use pillarbox_bus::embedded::connection::{Cause, MessageId, Reason};

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
    fn people_are_told_what_happened_and_where_to_look() {
        assert_eq!(
            text(&moved("/queue/books.north", 0)),
            "message 3-17 with correlation id 'c-1' in /queue/books.north has failed 3 times (backout, the last time \
             connection-lost) and was moved to /queue/books.north.backout; find out why before it is sent again"
        );
        let more = text(&moved("/queue/books.north", 4));
        assert!(
            more.contains("; 4 messages more of this queue since the last alarm;"),
            "{more}"
        );
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
