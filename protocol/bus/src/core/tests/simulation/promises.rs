//! What the model knows to have been promised, and whether it was kept.

use std::collections::{BTreeMap, BTreeSet};

use pillarbox_messages::Destination;

use super::{Asked, Expected, Fate, PLACES, Simulation, place_of};
use crate::{
    core::{
        Core, Input,
        durable::Gap,
        message::{MessageId, QueuedMessage},
        queue::{Queue, QueueKind},
        tests::invariants,
    },
    embedded::connection::{AckMode, Command, ConnectionId, SubscribeOptions},
};

impl Simulation {
    pub(super) fn done(&mut self, asked: &Asked) {
        for key in &asked.sent {
            if let Some(expected) = self.expected.get_mut(key)
                && expected.fate == Fate::Sent
            {
                expected.fate = Fate::Promised;
            }
            if let Some((_, promised)) = self.missed.get_mut(&key.1) {
                *promised = true;
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

    /// The bus knows a sender's own id from now on, or has said that it did.
    pub(super) fn known(&mut self, asked: Asked, message: Option<MessageId>) {
        self.originals.extend(asked.fresh);
        for (id, marker) in asked.named {
            let original = self.originals.get_mut(&id);
            let Some(original) = original.filter(|it| it.marker == marker) else {
                continue;
            };
            original.promised = true;
            if let Some(message) = message {
                let known = *original.message.get_or_insert(message);
                assert_eq!(known, message, "another receipt for {id}");
            }
            for key in &original.sent {
                if let Some(expected) = self.expected.get_mut(key)
                    && expected.fate == Fate::Sent
                {
                    expected.fate = Fate::Promised;
                }
            }
        }
    }

    pub(super) fn undone(&mut self, asked: &Asked) {
        for key in &asked.sent {
            self.expected.remove(key);
            self.missed.remove(&key.1);
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

    /// What the full subscription does not hold, though it was sent, it must have missed; of one that is no more nothing is
    /// expected.
    pub(super) fn note_missed(&mut self) {
        let held: BTreeSet<u64> = held(&self.core, "d").into_iter().collect();
        let is_there = self.core.directory.durable("d", "n").is_some();
        let staged = self.transactions.values().flat_map(|asked| &asked.sent);
        let staged: BTreeSet<_> = staged.copied().collect();
        let gone = self.expected.extract_if(.., |key, expected| {
            let waits = matches!(expected.fate, Fate::Sent | Fate::Promised);
            let gone = waits && !held.contains(&key.1) && !staged.contains(key);
            key.0 == "d" && (gone || !is_there && !staged.contains(key) && !held.contains(&key.1))
        });
        for ((_, marker), expected) in gone.collect::<Vec<_>>() {
            let promised = expected.fate == Fate::Promised;
            self.missed.insert(marker, (expected, promised));
        }
        if !is_there {
            self.given_up.extend(self.missed.keys());
            self.missed.clear();
            self.told_missed.clear();
        }
    }

    pub(super) fn note_gap(&mut self, message: &QueuedMessage, gap: Option<Gap>) {
        let Some(Gap { count, .. }) = gap else { return };
        assert!(count > 0 && !self.rules.is_empty(), "nothing was missed");
        let marker = String::from_utf8(message.body().to_vec()).unwrap();
        let told = self.told_missed.entry(marker.parse().unwrap()).or_default();
        *told = count.max(*told);
    }

    /// What a power loss has undone was not missed.
    fn find_again(&mut self) {
        for marker in held(&self.core, "d") {
            if let Some((expected, _)) = self.missed.remove(&marker) {
                self.expected.insert(("d", marker), expected);
            }
        }
        // And what has expired since may have come back, and gone again.
        let now = self.now;
        let lives = |expected: &Expected| expected.expires_at.is_none_or(|at| at > now);
        self.missed.retain(|_, (expected, _)| lives(expected));
    }

    /// Whoever was told that his message was sent finds it in a gap, if it did not come.
    fn check_missed(&self) {
        let missed = self.missed.values().filter(|(_, promised)| *promised);
        let told: u64 = self.told_missed.values().sum();
        let mut subscribers = self.core.queues.values();
        let open = subscribers.find_map(|queue| queue.subscriber.as_ref()?.gap);
        let told = told + open.map_or(0, |gap| gap.count);
        assert!(missed.count() as u64 <= told, "{:?}", self.missed);
    }

    pub(super) fn compare(&mut self) {
        self.find_again();
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
                    !self.repetitions.contains(&marker),
                    "{marker} was a repetition"
                );
                let outlived = self.mortal.contains(&marker) || self.given_up.contains(&marker);
                assert!(
                    self.expected.contains_key(&(place, marker)) || outlived,
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
        self.note_missed();
        let connection = ConnectionId(self.fresh());
        self.step(Input::Open {
            connection,
            client_id: "d".to_owned(),
            in_process: false,
        });
        let aside = ["~error", "aside"];
        for place in PLACES.into_iter().chain(aside) {
            let subscription = self.fresh();
            let (destination, durable) = match place {
                "d" => (Destination::topic("news"), Some("n".to_owned())),
                name => (Destination::queue(name), None),
            };
            self.subscriptions.insert((connection, subscription), place);
            let (ack, prefetch, token) = (AckMode::Individual, 1000, self.fresh());
            let command = Command::Subscribe {
                options: SubscribeOptions::default(),
                ack_timeout: None,
                selector: None,
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
        let mut came = BTreeSet::new();
        // What waits behind others in its lane comes when those are dealt with.
        while !self.hands.is_empty() {
            let hands = std::mem::take(&mut self.hands);
            came.extend(hands.iter().filter_map(|it| Some((it.place?, it.marker))));
            for hand in hands {
                let (connection, delivery) = (hand.connection, hand.delivery);
                let command = Command::Ack {
                    delivery,
                    transaction: None,
                    token: 0,
                };
                self.command(connection, command);
            }
            self.write();
        }
        let expected: BTreeSet<_> = self.expected.keys().copied().collect();
        came.retain(|key| {
            let outlived = self.mortal.contains(&key.1) || self.given_up.contains(&key.1);
            expected.contains(key) || !outlived
        });
        assert_eq!(came, expected);
        self.check_missed();
    }
}

/// The markers in a place, and of those that were moved aside from there.
fn held(core: &Core, place: &str) -> Vec<u64> {
    let name_of = |queue: &Queue| match &queue.kind {
        QueueKind::Named { name, .. } => Some(name.clone()),
        QueueKind::Durable { client_id, .. } => Some(client_id.clone()),
        _ => None,
    };
    let mut markers = Vec::new();
    for queue in core.queues.values() {
        let name = name_of(queue);
        for held in queue.messages.values() {
            let message = &held.message;
            let from = message.original_destination().map(place_of);
            let is_here = match from {
                Some(from) => from == Some(place),
                None => name.as_deref() == Some(place),
            };
            if is_here {
                let body = String::from_utf8(message.body().to_vec()).unwrap();
                markers.push(body.parse().unwrap());
            }
        }
    }
    markers
}
