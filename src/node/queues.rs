//! What the queues of a bus server are like: those of pillars by themselves, others as the settings say.

use std::time::Duration;

use pillarbox_bus::{
    Criterion, LaneHash, Lanes, OnExpiry, OnLanePoison, Order, OutOfOrder, QueueAttributes,
    QueueDefinition,
};
use pillarbox_messages::Destination;
use pillarbox_settings::{
    Jump, LanePoison, Node, PILLAR_BACKOUT, QueueCriterion, QueueHash, QueueLanes, QueueNode,
    QueueOrder, Repository,
};

/// The longest name of a queue, in bytes.
const LONGEST_NAME: usize = 255;

/// The queues that must be there, and what they are like. Requests about one file of one collection are of one message
/// group, so a pillar's queue hands them out one after the other.
pub(super) fn definitions(repository: &Repository, node: &Node) -> Vec<QueueDefinition> {
    let described = node.bus_server.iter().flat_map(|server| &server.queues);
    let described: Vec<&QueueNode> = described.collect();
    let of_pillars = repository.pillar_queues();
    let of_pillars = of_pillars.iter().map(Destination::name);
    let of_pillars: Vec<&str> = of_pillars.collect();
    let mut definitions = Vec::new();
    for name in &of_pillars {
        let own = described.iter().find(|queue| queue.name == *name);
        definitions.push(QueueDefinition {
            name: (*name).to_owned(),
            attributes: with(of_pillar(name), own.copied()),
            drain: own.is_some_and(|queue| queue.drain),
        });
    }
    for queue in described {
        if !of_pillars.contains(&queue.name.as_str()) {
            definitions.push(QueueDefinition {
                name: queue.name.clone(),
                attributes: with(QueueAttributes::default(), Some(queue)),
                drain: queue.drain,
            });
        }
    }
    definitions
}

fn of_pillar(name: &str) -> QueueAttributes {
    let backout_queue = format!("{name}{PILLAR_BACKOUT}");
    QueueAttributes {
        lanes: Lanes::Key,
        // A name without room for more leaves it to the error queue.
        backout_queue: (backout_queue.len() <= LONGEST_NAME).then_some(backout_queue),
        ..QueueAttributes::default()
    }
}

/// The attributes, with what the settings say instead.
fn with(mut attributes: QueueAttributes, queue: Option<&QueueNode>) -> QueueAttributes {
    let Some(queue) = queue else {
        return attributes;
    };
    if let Some(order) = &queue.order {
        attributes.order = order_of(order);
    }
    if let Some(lanes) = queue.lanes {
        attributes.lanes = lanes_of(lanes, queue.lane_hash);
    }
    if let Some(jumps) = &queue.out_of_order {
        attributes.out_of_order = OutOfOrder {
            top: jumps.contains(&Jump::Top),
            before: jumps.contains(&Jump::MessageId),
        };
    }
    if let Some(limit) = queue.backout_limit {
        attributes.backout_limit = (limit > 0).then_some(limit);
    }
    if let Some(target) = &queue.backout_queue {
        attributes.backout_queue = Some(target.clone());
    }
    if let Some(target) = &queue.expiry_queue {
        attributes.on_expiry = OnExpiry::Move(target.clone());
    }
    let (delay, longest) = (queue.retry_delay, queue.retry_delay_max);
    let delays = &mut attributes.retry_delay;
    delays.initial_ms = delay.map_or(delays.initial_ms, milliseconds);
    delays.max_ms = longest.map_or(delays.max_ms, milliseconds);
    attributes.require_key = queue.require_key.unwrap_or(attributes.require_key);
    attributes.on_lane_poison = match queue.on_lane_poison {
        Some(LanePoison::Park) => OnLanePoison::Park,
        Some(LanePoison::Skip) | None => OnLanePoison::Skip,
    };
    attributes
}

fn order_of(order: &QueueOrder) -> Order {
    let criteria = order.criteria.iter().map(|criterion| match criterion {
        QueueCriterion::Time => Criterion::Time,
        QueueCriterion::Expiration => Criterion::Expiration,
        QueueCriterion::Priority => Criterion::Priority,
    });
    Order {
        criteria: criteria.collect(),
        latest_first: order.latest_first,
    }
}

pub(super) fn lanes_of(lanes: QueueLanes, hash: Option<QueueHash>) -> Lanes {
    let hash = match hash {
        Some(QueueHash::Fnv1a64) => LaneHash::Fnv1a64,
        Some(QueueHash::JavaString) | None => LaneHash::JavaString,
    };
    match lanes {
        QueueLanes::None => Lanes::None,
        QueueLanes::Single => Lanes::Single,
        QueueLanes::Key => Lanes::Key,
        QueueLanes::Hashed(count) => Lanes::Hashed { count, hash },
    }
}

fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPOSITORY: &str = r#"
[repository]
name = "R"
[bus]
url = "embedded:"
[[collections]]
id = "books"
pillars = ["north", "south"]
pillar_destinations = { south = "topic://books.south" }
"#;

    fn defined(node: &str) -> Vec<QueueDefinition> {
        let repository = Repository::from_toml_str(REPOSITORY, "repository.toml").unwrap();
        let node = Node::from_toml_str(node, "node.toml").unwrap();
        let definitions = definitions(&repository, &node);
        for definition in &definitions {
            definition.attributes.check(&definition.name).unwrap();
        }
        definitions
    }

    #[test]
    fn requests_about_one_file_are_handed_out_one_after_the_other() {
        let definitions = defined("");
        let [north] = &definitions[..] else {
            panic!("{definitions:?}");
        };
        assert_eq!(north.name, "books.north");
        let attributes = &north.attributes;
        assert_eq!(attributes.lanes, Lanes::Key);
        assert_eq!(attributes.backout_limit, Some(3));
        assert_eq!(
            attributes.backout_queue.as_deref(),
            Some("books.north.backout")
        );
        assert_eq!(
            (
                attributes.retry_delay.initial_ms,
                attributes.retry_delay.max_ms
            ),
            (1_000, 60_000)
        );
    }

    #[test]
    fn the_settings_have_the_last_word() {
        let definitions = defined(include_str!("../../settings/examples/node.toml"));
        let names: Vec<&str> = definitions.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["books.north", "orders", "tickets"]);
        let orders = &definitions[1].attributes;
        let hash = LaneHash::JavaString;
        assert_eq!(orders.lanes, Lanes::Hashed { count: 4, hash });
        assert!(
            !definitions[1].drain,
            "what is in the queue is in the way of other lanes"
        );
        assert_eq!(orders.backout_queue.as_deref(), Some("orders.backout"));
        let tickets = &definitions[2].attributes;
        assert!(tickets.out_of_order.top && tickets.out_of_order.before);
        let definitions = defined(
            r#"
[bus_server]
listen = ["127.0.0.1:0"]
[[bus_server.queues]]
name = "books.north"
backout_limit = 0
retry_delay = "2s"
expiry_queue = "old"
drain = true
"#,
        );
        assert!(definitions[0].drain);
        let north = &definitions[0].attributes;
        assert_eq!((north.lanes, north.backout_limit), (Lanes::Key, None));
        assert_eq!(north.retry_delay.initial_ms, 2_000);
        assert_eq!(north.on_expiry, OnExpiry::Move("old".to_owned()));
    }
}
