//! What was asked of the bus, and what it has confirmed.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::Found;
use crate::support::{Random, noise};

/// No more than this waits to be consumed.
const MOST_WAITING: usize = 2000;

/// One for all threads.
#[derive(Default)]
pub(super) struct Ledger(Mutex<Entries>);

#[derive(Default)]
struct Entries {
    /// By producer and number: the message's id once it is confirmed.
    sent: BTreeMap<(u64, u64), Option<String>>,
    /// The transactions that a COMMIT was written for.
    units: Vec<Unit>,
    /// The message that is known to be consumed, and the life of the bus at that time at the latest.
    consumed: BTreeMap<(u64, u64), u64>,
    /// Confirmations of everything.
    confirmed: usize,
}

/// A transaction: acknowledges these, and sends an answer to each.
struct Unit {
    messages: Vec<(u64, u64)>,
    confirmed: bool,
}

impl Ledger {
    fn lock(&self) -> MutexGuard<'_, Entries> {
        // Whoever found something wrong says so; the others need not.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn confirmed(&self) -> usize {
        self.lock().confirmed
    }

    pub(super) fn summary(&self) -> String {
        let entries = self.lock();
        let doubtful = entries.sent.values().filter(|id| id.is_none()).count();
        let (sent, units) = (entries.sent.len(), entries.units.len());
        let open = entries.units.iter().filter(|unit| !unit.confirmed).count();
        format!("{sent} sent ({doubtful} in doubt), {units} transactions ({open} in doubt)")
    }

    /// Whether enough waits to be consumed.
    pub(super) fn is_ahead(&self) -> bool {
        let entries = self.lock();
        entries.sent.len() > entries.consumed.len() + MOST_WAITING
    }

    /// The message is about to be sent.
    pub(super) fn sending(&self, message: (u64, u64)) {
        let before = self.lock().sent.insert(message, None);
        assert_eq!(before, None);
    }

    /// The message's RECEIPT is here.
    pub(super) fn sent(&self, message: (u64, u64), id: &str) {
        let mut entries = self.lock();
        entries.confirmed += 1;
        entries.sent.insert(message, Some(id.to_owned()));
    }

    /// The message was delivered on a connection that was opened in this life of the bus or a later one.
    pub(super) fn delivered(&self, message: (u64, u64), life: u64) {
        let entries = self.lock();
        assert!(
            entries.sent.contains_key(&message),
            "{message:?}: never sent"
        );
        if let Some(consumed) = entries.consumed.get(&message) {
            assert!(
                *consumed > life,
                "{message:?} was consumed, and comes again"
            );
        }
    }

    /// A COMMIT is about to be sent, of a transaction of this number.
    pub(super) fn committing(&self, messages: Vec<(u64, u64)>) -> u64 {
        let mut entries = self.lock();
        entries.units.push(Unit {
            messages,
            confirmed: false,
        });
        entries.units.len() as u64 - 1
    }

    /// The COMMIT's RECEIPT is here, in this life of the bus or an earlier one.
    pub(super) fn committed(&self, unit: u64, life: u64) {
        let mut entries = self.lock();
        entries.confirmed += 1;
        let unit = &mut entries.units[usize::try_from(unit).expect("small")];
        unit.confirmed = true;
        let messages = unit.messages.clone();
        for message in messages {
            let before = entries.consumed.insert(message, life);
            assert_eq!(before, None, "{message:?} is consumed twice");
        }
    }

    /// Compares with everything that was in the queues at the end.
    pub(super) fn audit(&self, found: &[Found]) {
        let entries = self.lock();
        let mut places: BTreeMap<(u64, u64), Vec<&Found>> = BTreeMap::new();
        for one in found {
            let message = read(&one.body);
            places.entry(message).or_default().push(one);
        }
        for (message, places) in &places {
            let known = entries.sent.get(message);
            let id = known.unwrap_or_else(|| panic!("{message:?} was never sent"));
            let [place] = places[..] else {
                panic!("{message:?} is there more than once: {places:?}");
            };
            let own = if place.done {
                place.of.as_ref()
            } else {
                Some(&place.id)
            };
            assert!(
                id.is_none() || own == id.as_ref(),
                "{message:?}, {id:?}: {place:?}"
            );
        }
        for (message, id) in &entries.sent {
            let is_there = places.contains_key(message);
            assert!(
                is_there || id.is_none(),
                "{message:?} was confirmed and is lost"
            );
        }
        for message in entries.consumed.keys() {
            assert!(
                places[message][0].done,
                "{message:?} was consumed and is back"
            );
        }
        let done = places.iter().filter(|(_, places)| places[0].done);
        let done: BTreeMap<(u64, u64), u64> = done
            .map(|(message, places)| (*message, places[0].unit.expect("the transaction")))
            .collect();
        entries.check_units(&done);
        let ids: BTreeSet<&str> = found.iter().map(|one| one.id.as_str()).collect();
        assert_eq!(ids.len(), found.len(), "an id is used twice");
        let doubtful = entries.sent.values().filter(|id| id.is_none()).count();
        let open = entries.units.iter().filter(|unit| !unit.confirmed).count();
        assert!(doubtful > 0 && open > 0, "no kill came in between");
        println!("{} done, {} wait", done.len(), places.len() - done.len());
    }
}

impl Entries {
    /// All of a transaction has happened, or nothing.
    fn check_units(&self, done: &BTreeMap<(u64, u64), u64>) {
        for (number, unit) in (0..).zip(&self.units) {
            let done = |message: &&(u64, u64)| done.get(message) == Some(&number);
            let happened = unit.messages.iter().filter(done).count();
            let whole = happened == unit.messages.len();
            assert!(
                whole || (happened == 0 && !unit.confirmed),
                "{happened} of {:?} have happened",
                unit.messages
            );
        }
    }
}

/// What a producer sends: who and which number, and then something that depends on it.
pub(super) fn content(producer: u64, number: u64) -> Vec<u8> {
    let seed = producer << 32 | number;
    // A few are so large that the log needs many pages for one.
    let longest = if number.is_multiple_of(16) {
        100_000
    } else {
        2_000
    };
    let length = Random::new(seed).below(longest);
    let mut bytes = format!("{producer}-{number} ").into_bytes();
    bytes.extend(noise(seed, usize::try_from(length).expect("small")));
    bytes
}

/// Which message it is; it must be whole.
pub(super) fn read(body: &[u8]) -> (u64, u64) {
    let end = body.iter().position(|byte| *byte == b' ').expect("a head");
    let head = str::from_utf8(&body[..end]).expect("text");
    let (producer, number) = head.split_once('-').expect("two numbers");
    let parse = |text: &str| text.parse().expect("a number");
    let message = (parse(producer), parse(number));
    assert!(
        body == content(message.0, message.1),
        "{message:?} is not whole"
    );
    message
}
