//! Where the queues of the embedded bus move messages, and what can be said of them only where pillars are known.

use std::collections::BTreeMap;

use pillarbox_messages::Destination;

use super::queues::{LanePoison, PATH, QueueLanes, QueueNode};
use crate::{checker::Checker, repository::Repository};

/// Behind the name of a pillar's queue: where what fails goes, if nothing else is said.
pub const PILLAR_BACKOUT: &str = ".backout";

/// Refuses queues that move messages from one to the next in a circle. `others` are queues with where they move
/// messages, whatever else is said.
pub(super) fn no_circle(
    queues: &[(usize, &QueueNode)],
    others: &[(String, String)],
    checker: &mut Checker<'_>,
) {
    let mut ways: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (_, queue) in queues {
        let targets = targets(queue).map(|(_, target)| target);
        ways.entry(&queue.name).or_default().extend(targets);
    }
    for (from, to) in others {
        ways.entry(from).or_default().push(to);
    }
    for (at, queue) in queues {
        for (key, target) in targets(queue) {
            if target == queue.name {
                continue;
            }
            let Some(way) = way(&ways, target, &queue.name) else {
                continue;
            };
            let names = way.join("`, `");
            let cause = format!(
                "the queues `{names}` move messages from one to the next in a circle, so that what fails goes round"
            );
            let next_step = "let one of them move its messages elsewhere";
            checker.problem(&format!("{PATH}.{at}.{key}"), cause, next_step);
            return;
        }
    }
}

fn targets(queue: &QueueNode) -> impl Iterator<Item = (&'static str, &str)> {
    let keys = [
        ("backout_queue", &queue.backout_queue),
        ("expiry_queue", &queue.expiry_queue),
    ];
    keys.into_iter()
        .filter_map(|(key, target)| Some((key, target.as_deref()?)))
}

/// A shortest way from one queue to another, both included, the latter first.
fn way<'q>(
    ways: &BTreeMap<&'q str, Vec<&'q str>>,
    from: &'q str,
    to: &str,
) -> Option<Vec<&'q str>> {
    // Each queue reached, with the one before it.
    let mut reached: BTreeMap<&str, Option<&str>> = BTreeMap::from([(from, None)]);
    let mut latest = vec![from];
    while !latest.is_empty() && !reached.contains_key(to) {
        let mut next = Vec::new();
        for name in latest {
            for target in ways.get(name).into_iter().flatten() {
                if !reached.contains_key(target) {
                    reached.insert(target, Some(name));
                    next.push(*target);
                }
            }
        }
        latest = next;
    }
    let (last, mut before) = reached.get_key_value(to)?;
    let mut way = vec![*last];
    while let Some(name) = before {
        way.insert(1, *name);
        before = reached.get(name)?;
    }
    Some(way)
}

/// Checks what is said of queues where it is known which of them are pillars': these have lanes, and a queue to move
/// messages to.
pub(super) fn against(queues: &[QueueNode], repository: &Repository, checker: &mut Checker<'_>) {
    let of_pillars = repository.pillar_queues();
    let of_pillars: Vec<&str> = of_pillars.iter().map(Destination::name).collect();
    let usual = of_pillars.iter().filter(|name| {
        let said = queues.iter().find(|queue| queue.name == **name);
        said.is_none_or(|queue| queue.backout_queue.is_none())
    });
    let usual: Vec<_> = usual
        .map(|name| ((*name).to_owned(), format!("{name}{PILLAR_BACKOUT}")))
        .collect();
    let numbered: Vec<_> = queues.iter().enumerate().collect();
    no_circle(&numbered, &usual, checker);
    for (at, queue) in numbered {
        lanes_against(
            at,
            queue,
            of_pillars.contains(&queue.name.as_str()),
            checker,
        );
    }
}

fn lanes_against(at: usize, queue: &QueueNode, is_pillars: bool, checker: &mut Checker<'_>) {
    if queue.lanes.is_some_and(|lanes| lanes != QueueLanes::None) {
        return;
    }
    let mut refuse = |key: &str, cause: &str, next_step: &str| {
        let path = format!("{PATH}.{at}.{key}");
        checker.problem(&path, cause.to_owned(), next_step);
    };
    // What is said to have none has been looked at already.
    let has_none = queue.lanes.is_none() && !is_pillars;
    let add = "add lanes = \"key\", or remove it";
    if has_none && queue.require_key == Some(true) {
        refuse("require_key", "message groups make no lanes here", add);
    }
    if has_none && queue.on_lane_poison == Some(LanePoison::Park) {
        refuse("on_lane_poison", "there are no lanes to park", add);
    }
    let jumps = queue.out_of_order.as_ref().is_some_and(|it| !it.is_empty());
    if queue.lanes.is_none() && is_pillars && jumps {
        refuse(
            "out_of_order",
            "a pillar's queue has lanes, which keep an order that nobody can be let out of",
            "remove it, or write lanes = \"none\"",
        );
    }
}
