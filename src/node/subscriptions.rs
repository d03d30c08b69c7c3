//! What durable subscriptions of a bus server may hold, as the settings say.

use std::time::Duration;

use pillarbox_bus::{OnLimit, SubscriptionRule};
use pillarbox_settings::{Node, Offline, SubscriptionLimit, SubscriptionNode};

use super::queues::lanes_of;

/// What is said about durable subscriptions.
pub(super) fn rules(node: &Node) -> Vec<SubscriptionRule> {
    let described = node
        .bus_server
        .iter()
        .flat_map(|server| &server.subscriptions);
    described.map(rule).collect()
}

fn rule(described: &SubscriptionNode) -> SubscriptionRule {
    SubscriptionRule {
        client_id: described.client.clone(),
        name: described.name.clone(),
        max_messages: described.max_messages,
        max_bytes: described.max_bytes,
        max_offline_ms: described.max_offline.map(|longest| match longest {
            Offline::Never => None,
            Offline::For(duration) => Some(milliseconds(duration)),
        }),
        on_limit: described.on_limit.map(|on_limit| match on_limit {
            SubscriptionLimit::Gap => OnLimit::Gap,
            SubscriptionLimit::DropOldest => OnLimit::DropOldest,
            SubscriptionLimit::Cancel => OnLimit::Cancel,
            SubscriptionLimit::RejectPublish => OnLimit::RejectPublish,
        }),
        lanes: described.lanes.map(|lanes| lanes_of(lanes, None)),
    }
}

fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use pillarbox_bus::Lanes;
    use pillarbox_settings::Repository;

    use super::*;

    #[test]
    fn the_example_says_what_is_usual_and_one_exception() {
        let example = include_str!("../../settings/examples/node.toml");
        let node = Node::from_toml_str(example, "node.toml").unwrap();
        let rules = rules(&node);
        let [usual, own] = &rules[..] else {
            panic!("{rules:?}");
        };
        let week = 7 * 86_400_000;
        assert_eq!((&usual.client_id, &usual.name), (&None, &None));
        assert_eq!(usual.max_offline_ms, Some(Some(week)));
        assert_eq!(usual.on_limit, Some(OnLimit::Gap));
        let repository = include_str!("../../settings/examples/repository.toml");
        let repository = Repository::from_toml_str(repository, "repository.toml").unwrap();
        let registered = repository.durable_subscriptions(&"alarm-desk".into());
        let names: Vec<&str> = registered.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(own.client_id.as_deref(), Some("alarm-desk"));
        assert!(names.contains(&own.name.as_deref().unwrap()), "{names:?}");
        assert_eq!(own.max_offline_ms, Some(None));
        assert_eq!(own.on_limit, Some(OnLimit::DropOldest));
        assert_eq!(own.max_bytes, Some(20 << 20));
        assert_eq!(own.lanes, Some(Lanes::Key));
    }
}
