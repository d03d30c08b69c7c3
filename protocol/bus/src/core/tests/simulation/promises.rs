//! What the model knows to have been promised, and whether it was kept.

use std::collections::{BTreeMap, BTreeSet};

use pillarbox_messages::Destination;

use super::{Asked, Fate, PLACES, Simulation};
use crate::{
    core::{
        Core, Input,
        queue::{Queue, QueueKind},
        tests::invariants,
        unit::QueueId,
    },
    embedded::connection::{AckMode, Command, ConnectionId},
};

impl Simulation {
    pub(super) fn done(&mut self, asked: &Asked) {
        for key in &asked.sent {
            if let Some(expected) = self.expected.get_mut(key)
                && expected.fate == Fate::Sent
            {
                expected.fate = Fate::Promised;
            }
        }
        for key in &asked.acked {
            self.expected.remove(key);
            let held = held(&self.core, key.0);
            assert!(
                !held.contains(&key.1),
                "{key:?} was acknowledged and is still there"
            );
        }
    }

    pub(super) fn undone(&mut self, asked: &Asked) {
        for key in &asked.sent {
            self.expected.remove(key);
        }
        for key in &asked.acked {
            // Somebody else may have acknowledged it meanwhile.
            let going = self.asked.values().any(|other| other.acked.contains(key));
            if let Some(expected) = self.expected.get_mut(key).filter(|_| !going)
                && expected.fate == Fate::Going
            {
                expected.fate = Fate::Promised;
            }
        }
    }

    pub(super) fn compare(&mut self) {
        let mut found = BTreeSet::new();
        for place in PLACES {
            for marker in held(&self.core, place) {
                assert!(
                    found.insert((place, marker)),
                    "{marker} is twice in {place}"
                );
                assert!(
                    !self.volatile.contains(&marker),
                    "volatile {marker} survived"
                );
                assert!(
                    self.expected.contains_key(&(place, marker)),
                    "{marker} came back"
                );
            }
        }
        let mut together: BTreeMap<u64, BTreeSet<bool>> = BTreeMap::new();
        let now = self.now;
        for (key, expected) in &self.expected {
            let alive = expected.expires_at.is_none_or(|at| at > now);
            match expected.fate {
                Fate::Promised => assert!(!alive || found.contains(key), "{key:?} is lost"),
                Fate::Sent if alive => {
                    together
                        .entry(expected.together)
                        .or_default()
                        .insert(found.contains(key));
                }
                Fate::Sent | Fate::Going | Fate::Consumed => {}
            }
        }
        assert!(
            together.values().all(|fates| fates.len() == 1),
            "half a unit: {together:?}"
        );
        self.expected.retain(|key, expected| {
            // The first unit of the new life has made certain what there is.
            expected.fate = Fate::Promised;
            found.contains(key)
        });
        invariants::check(&self.core);
    }

    /// In the end everything promised comes out, once.
    pub(super) fn drain(&mut self) {
        self.now += 60_000;
        self.step(Input::Tick);
        let connection = ConnectionId(self.fresh());
        self.step(Input::Open {
            connection,
            client_id: "d".to_owned(),
        });
        for place in PLACES {
            let subscription = self.fresh();
            let (destination, durable) = match place {
                "d" => (Destination::topic("news"), Some("n".to_owned())),
                name => (Destination::queue(name), None),
            };
            self.subscriptions.insert((connection, subscription), place);
            let (ack, prefetch, token) = (AckMode::Individual, 1000, self.fresh());
            let command = Command::Subscribe {
                subscription,
                destination,
                durable,
                ack,
                prefetch,
                token,
            };
            self.command(connection, command);
        }
        self.write();
        let came: BTreeSet<_> = self
            .hands
            .iter()
            .filter_map(|d| Some((d.place?, d.marker)))
            .collect();
        let expected: BTreeSet<_> = self.expected.keys().copied().collect();
        assert_eq!(came, expected);
        self.hands.clear();
    }
}

/// The markers in a place.
fn held(core: &Core, place: &str) -> Vec<u64> {
    let is_place = |(_, queue): &(&QueueId, &Queue)| match &queue.kind {
        QueueKind::Named { name, .. } => name == place,
        QueueKind::Durable { client_id, .. } => client_id == place,
        _ => false,
    };
    let (_, queue) = core.queues.iter().find(is_place).unwrap();
    let bodies = queue
        .messages
        .values()
        .map(|held| held.message.body.to_vec());
    bodies
        .map(|body| String::from_utf8(body).unwrap().parse().unwrap())
        .collect()
}
