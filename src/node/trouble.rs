//! Telling people of durable subscriptions that are full, or were given up.

use pillarbox_bus::{
    OnLimit,
    embedded::connection::{SubscriptionTrouble, Trouble},
    spelling,
};
use pillarbox_component::AlarmRequest;
use pillarbox_messages::{AlarmCode, wording::count};
use pillarbox_settings::AlarmLevel;

/// What is raised for it, for every collection: topics may be several collections' own.
pub(super) fn alarm(trouble: &SubscriptionTrouble) -> AlarmRequest {
    AlarmRequest {
        level: AlarmLevel::Error,
        code: AlarmCode::ComponentFailure,
        text: text(trouble),
        collection: None,
        file: None,
    }
}

fn text(trouble: &SubscriptionTrouble) -> String {
    let SubscriptionTrouble {
        client_id,
        name,
        topic,
        messages,
        bytes,
        what,
    } = trouble;
    let topic = spelling::to_stomp(topic);
    let whose = format!("durable subscription '{name}' of client '{client_id}' to {topic}");
    let messages = number(*messages);
    match what {
        Trouble::Full {
            limit,
            on_limit,
            away_since,
            missed,
        } => {
            let becomes = match on_limit {
                OnLimit::Gap => "what comes next is left out and counted",
                OnLimit::DropOldest => "its oldest messages make room, and are counted",
                OnLimit::Cancel => "it was cancelled with everything in it",
                OnLimit::RejectPublish => "senders are refused",
            };
            let missed = match missed {
                0 => String::new(),
                missed => format!(" ({} since the last alarm)", number(*missed)),
            };
            let next_step = match away_since {
                Some(_) => {
                    "its client is away: start it, or raise the limit under [[bus_server.subscriptions]]"
                }
                None => {
                    "its client does not keep up: see to it, or raise the limit under \
                     [[bus_server.subscriptions]]"
                }
            };
            format!(
                "{whose} holds {messages} ({bytes} bytes) and has reached its limit of {limit}: {becomes}{missed}; \
                 {next_step}"
            )
        }
        Trouble::Abandoned { away_ms } => {
            let hours = usize::try_from(away_ms / 3_600_000).unwrap_or(0);
            format!(
                "{whose} was cancelled with {messages} ({bytes} bytes), because its client had been away for {}; what \
                 is to wait for longer needs a longer max_offline under [[bus_server.subscriptions]]",
                count(hours, "hour")
            )
        }
    }
}

fn number(messages: u64) -> String {
    let messages = usize::try_from(messages).unwrap_or(usize::MAX);
    count(messages, "message").to_string()
}

#[cfg(test)]
mod tests {
    use pillarbox_messages::Destination;

    use super::*;

    fn trouble(what: Trouble) -> SubscriptionTrouble {
        SubscriptionTrouble {
            client_id: "desk".to_owned(),
            name: "alarm-desk".to_owned(),
            topic: Destination::topic("books.alarms"),
            messages: 7,
            bytes: 4_321,
            what,
        }
    }

    #[test]
    fn a_full_subscription_is_told_with_its_figures_and_what_to_do() {
        let full = |on_limit, away_since, missed| {
            text(&trouble(Trouble::Full {
                limit: "50 messages".to_owned(),
                on_limit,
                away_since,
                missed,
            }))
        };
        assert_eq!(
            full(OnLimit::Gap, Some(1), 0),
            "durable subscription 'alarm-desk' of client 'desk' to /topic/books.alarms holds 7 messages (4321 bytes) \
             and has reached its limit of 50 messages: what comes next is left out and counted; its client is away: \
             start it, or raise the limit under [[bus_server.subscriptions]]"
        );
        let more = full(OnLimit::DropOldest, None, 3);
        assert!(
            more.contains(
                "and are counted (3 messages since the last alarm); its client does not keep up"
            ),
            "{more}"
        );
    }

    #[test]
    fn a_subscription_that_was_given_up_is_told_with_what_was_lost() {
        let away_ms = 168 * 3_600_000;
        assert_eq!(
            text(&trouble(Trouble::Abandoned { away_ms })),
            "durable subscription 'alarm-desk' of client 'desk' to /topic/books.alarms was cancelled with 7 messages \
             (4321 bytes), because its client had been away for 168 hours; what is to wait for longer needs a longer \
             max_offline under [[bus_server.subscriptions]]"
        );
    }
}
