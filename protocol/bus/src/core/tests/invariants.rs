//! What is true between any two steps, recounted from the queues.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use crate::{
    core::{
        Core,
        dedup::{Known, Place, Share},
        message::MessageId,
        queue::{Held, Queue, QueueKind, State},
        rank::SortKey,
        unit::QueueId,
    },
    embedded::connection::AckMode,
};

pub(crate) fn check(core: &Core) {
    let (mut messages, mut bytes, mut plain, mut in_flight) = (0, 0, 0, 0);
    let (mut due, mut expiry) = (BTreeSet::new(), BTreeSet::new());
    for (queue_id, queue) in &core.queues {
        check_states(queue);
        let (mut ready, mut later) = (BTreeMap::new(), BTreeMap::new());
        let mut inserted = BTreeMap::new();
        for (id, held) in queue.messages.iter() {
            messages += 1;
            match held.state {
                State::Ready => {
                    if held.lane.is_none() {
                        let waits = queue.waits(&held.message);
                        let list = if waits { &mut later } else { &mut ready };
                        list.insert(queue.key(held), id);
                    }
                }
                State::Scheduled(at) => {
                    due.insert((at, *queue_id, id));
                }
                State::InFlight(delivery) => {
                    in_flight += 1;
                    assert!(!queue.waits(&held.message), "handed out too early");
                    let session = core
                        .sessions
                        .values()
                        .find(|s| s.flights.contains_key(&delivery));
                    let flight = session.expect("in nobody's hands").flights[&delivery];
                    assert_eq!((flight.queue, flight.message), (*queue_id, id));
                }
            }
            if let Some(at) = held.message.expires_at()
                && !matches!(held.state, State::InFlight(_))
            {
                expiry.insert((at, *queue_id, id));
                assert!(at > core.now, "expired and still there");
            }
            if queue.key(held).sub != 0 {
                inserted.insert(queue.key(held), id);
            }
            assert!(!held.is_stored() || queue.kind.is_lasting());
        }
        assert!(queue.ready.iter().eq(ready));
        check_drain(core, *queue_id, queue, &later);
        assert_eq!(queue.inserted, inserted);
        let size: u64 = queue
            .messages
            .values()
            .map(|held| held.message.size())
            .sum();
        assert_eq!(queue.bytes, size);
        if matches!(queue.kind, QueueKind::Plain { .. }) {
            plain += size;
        } else {
            bytes += size;
        }
        assert!(
            !queue.kind.ends_unused() || !queue.consumers.is_empty(),
            "kept for nobody"
        );
        assert!(!would_hand_out(queue), "a message and its taker don't meet");
        check_lanes(core, queue, false);
        check_lanes(core, queue, true);
        check_choosy(queue);
        check_consumers(core, *queue_id, queue);
    }
    assert_eq!((core.held_messages, core.in_flight), (messages, in_flight));
    assert_eq!((core.held_bytes, core.plain_bytes), (bytes, plain));
    assert_eq!(core.due, due);
    assert!(core.expiry.is_superset(&expiry));
    let flights: usize = core
        .sessions
        .values()
        .map(|session| session.flights.len())
        .sum();
    assert_eq!(flights, in_flight);
    check_subscribers(core);
    check_subscriptions(core);
    check_orphans(core);
    check_remembered(core);
    check_deadlines(core);
}

/// What a connection may cancel is shared by all, or gone.
fn check_shared(core: &Core) {
    for session in core.sessions.values() {
        assert!(session.shared.len() <= core.limits.subscriptions);
        for queue in session.shared.iter().filter_map(|id| core.queues.get(id)) {
            assert!(
                matches!(&queue.kind, QueueKind::Durable { client_id, .. } if client_id.is_empty())
            );
        }
    }
}

fn check_deadlines(core: &Core) {
    let sessions = core.sessions.iter();
    let deadlines = sessions.flat_map(|(connection, session)| {
        let flights = session.flights.iter();
        flights.filter_map(|(delivery, it)| Some((it.deadline?, *connection, *delivery)))
    });
    assert_eq!(core.ack_deadlines, deadlines.collect());
    for session in core.sessions.values() {
        let flights = session.flights.iter();
        let own = flights.map(|(delivery, flight)| (flight.subscription, *delivery));
        assert_eq!(session.by_subscription, own.collect());
        for flight in session.flights.values() {
            let known = session.subscriptions.get(&flight.subscription);
            let watched = known.is_some_and(|it| it.ack_timeout.is_some() && it.overdue.is_none());
            let watched = watched && flight.transaction.is_none();
            assert_eq!(flight.deadline.is_some(), watched);
        }
    }
}

fn check_remembered(core: &Core) {
    let remembered = &core.remembered;
    let mut places: BTreeMap<_, Place> = BTreeMap::new();
    for (message, known) in &remembered.sends {
        let place = places.entry(Arc::clone(&known.destination)).or_default();
        let twice = place.ids.insert(Arc::clone(&known.id), *message);
        assert_eq!(twice, None, "one id, two messages");
        let share = place.share(known.stored);
        share.order.insert(*message);
        share.bytes += known.size();
    }
    let ranked = |share: fn(&Place) -> &Share| {
        let used = places.iter().filter(|(_, it)| share(it).bytes > 0);
        used.map(|(name, it)| (share(it).bytes, Arc::clone(name)))
            .collect::<BTreeSet<_>>()
    };
    assert_eq!(remembered.volatile, ranked(|place| &place.volatile));
    assert_eq!(remembered.stored, ranked(|place| &place.stored));
    assert_eq!(remembered.places, places);
    let size: u64 = remembered.sends.values().map(Known::size).sum();
    assert_eq!(remembered.bytes, size);
    assert!(remembered.bytes <= core.limits.dedup_bytes);
}

fn check_states(queue: &Queue) {
    let count = |is: fn(&State) -> bool| {
        let states = queue.messages.values().map(|held| &held.state);
        states.filter(|state| is(state)).count()
    };
    let scheduled = count(|state| matches!(state, State::Scheduled(_)));
    let in_flight = count(|state| matches!(state, State::InFlight(_)));
    assert_eq!((queue.scheduled, queue.in_flight), (scheduled, in_flight));
}

/// What a subscription does not want is not in its queue.
fn check_filter(queue: &Queue) {
    let filter = queue.filter.as_ref().and_then(|it| it.selector.as_ref());
    let subscriber = queue.subscriber.as_ref();
    let selector = filter.or_else(|| subscriber.and_then(|it| it.selector.as_ref()));
    if let Some(selector) = selector {
        let all = queue.messages.values();
        assert!(all.into_iter().all(|held| selector.selects(&held.message)));
    }
}

fn check_subscribers(core: &Core) {
    let (mut away_bytes, mut absences) = (0, BTreeSet::new());
    for (id, queue) in &core.queues {
        check_filter(queue);
        let Some(subscriber) = &queue.subscriber else {
            let told = queue.messages.values().filter(|held| held.gap().is_some());
            assert_eq!(told.count(), 0, "what could have been missed here?");
            assert!(!matches!(queue.kind, QueueKind::Durable { .. }));
            continue;
        };
        assert!(matches!(queue.kind, QueueKind::Durable { .. }));
        assert_eq!(subscriber.away_since.is_some(), queue.consumers.is_empty());
        if subscriber.away_since.is_some() {
            away_bytes += queue.bytes;
        }
        absences.extend(subscriber.deadline().map(|at| (at, *id)));
        let untold = queue.messages.values().filter(|held| !held.is_stored());
        let untold = untold.filter_map(Held::gap).map(|gap| gap.count);
        let noted = subscriber.unlogged.map_or(0, |gap| gap.count);
        assert_eq!(untold.sum::<u64>(), noted);
        let standing = subscriber.standing().gap;
        assert!(standing.is_none_or(|gap| gap.count > 0));
    }
    assert_eq!(core.away_bytes, away_bytes);
    assert_eq!(core.absences, absences);
}

fn check_subscriptions(core: &Core) {
    check_shared(core);
    // Who takes one message is no consumer while it has it.
    let subscriptions = core.sessions.values().map(|session| {
        let known = session.subscriptions.iter();
        let flying = |number: &u64| !session.flights_of(*number).is_empty();
        known
            .filter(|(number, it)| !it.once || !flying(number))
            .count()
    });
    let subscriptions: usize = subscriptions.sum();
    let consumers: usize = core
        .queues
        .values()
        .map(|queue| queue.consumers.len())
        .sum();
    assert_eq!(subscriptions, consumers);
}

/// What is left of queues that have gone is in nobody's way.
fn check_orphans(core: &Core) {
    for session in core.sessions.values() {
        for (delivery, orphan) in &session.orphans {
            assert!(!session.flights.contains_key(delivery));
            let open = |number| session.transactions.contains_key(&number);
            assert!(orphan.transaction.is_none_or(open), "kept for nothing");
        }
    }
}

fn check_consumers(core: &Core, queue_id: QueueId, queue: &Queue) {
    for consumer in &queue.consumers {
        let session = &core.sessions[&consumer.connection];
        let flights = session.flights_of(consumer.subscription).len();
        assert_eq!(usize::try_from(consumer.in_flight).unwrap(), flights);
        let known = &session.subscriptions[&consumer.subscription];
        assert!(consumer.in_flight <= consumer.prefetch || known.overdue.is_some());
        assert!(known.overdue.is_none() || consumer.prefetch == 0);
        let own = session.flights_of(consumer.subscription).into_iter();
        let sizes = own.map(|delivery| {
            let id = session.flights[&delivery].message;
            queue.messages.get(&id).unwrap().message.size()
        });
        assert_eq!(consumer.bytes, sizes.sum::<u64>());
        assert_eq!(
            session.subscriptions[&consumer.subscription].queue,
            queue_id
        );
    }
}

fn would_hand_out(queue: &Queue) -> bool {
    let mut eager = queue.consumers.iter().filter(|it| it.is_eager());
    if queue.lanes.is_none() && queue.choosy == 0 {
        return eager.any(|it| it.part.is_none()) && queue.ready.first().is_some();
    }
    if eager.next().is_none() {
        return false;
    }
    queue.clone().next_delivery().is_some()
}

/// A queue that is being emptied has something left of what others wait for.
fn check_drain(core: &Core, id: QueueId, queue: &Queue, ready: &BTreeMap<SortKey, MessageId>) {
    assert_eq!(core.draining.contains(&id), queue.next.is_some());
    let Some(next) = &queue.next else {
        assert!(ready.is_empty());
        return;
    };
    assert!(
        next.ready
            .iter()
            .eq(ready.iter().map(|(key, id)| (*key, *id)))
    );
    let held = queue.messages.values();
    let waiting = held.filter(|held| queue.waits(&held.message)).count();
    assert_eq!(next.count, waiting);
    assert!(queue.undrained() > 0, "nothing is waited for");
}

/// The lanes of what is handed out now, or of what waits until that is gone.
fn check_lanes(core: &Core, queue: &Queue, next: bool) {
    let lanes = match &queue.next {
        Some(it) if next => &it.lanes,
        _ if next => return,
        _ => &queue.lanes,
    };
    let held = queue.messages.iter();
    let mut held = held.filter(|(_, held)| queue.waits(&held.message) == next);
    let Some(lanes) = lanes else {
        assert!(held.all(|(_, held)| held.lane.is_none()));
        return;
    };
    let members = held.filter_map(|(id, held)| {
        let holder = match held.state {
            State::InFlight(delivery) => core.sessions.iter().find_map(|(connection, session)| {
                let flight = session.flights.get(&delivery)?;
                Some((*connection, flight.subscription))
            }),
            State::Ready | State::Scheduled(_) => None,
        };
        Some((held.lane?, id, queue.key(held), held.standing(), holder))
    });
    let consumers = queue.consumers.iter().filter(|_| !next);
    let autos = consumers.map(|it| (it.id(), it.ack == AckMode::Auto));
    lanes.assert_consistent(&members.collect::<Vec<_>>(), &autos.collect());
}

fn check_choosy(queue: &Queue) {
    let choosy = queue.consumers.iter().filter_map(|it| it.wants.as_ref());
    assert_eq!(queue.choosy, choosy.clone().count());
    for wants in choosy {
        let wanted = queue.ready.iter();
        let wanted = wanted.filter(|(_, id)| {
            wants
                .selector
                .selects(&queue.messages.get(id).unwrap().message)
        });
        assert_eq!(wants.matches, wanted.collect());
    }
    let Some(index) = &queue.by_correlation else {
        return;
    };
    let named = queue
        .messages
        .values()
        .filter(|it| it.message.correlation_id().is_some());
    assert_eq!(index.len(), named.count());
}
