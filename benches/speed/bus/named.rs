//! One message out of a million, by its id and by its correlation id.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{BufWriter, Write},
    os::unix::fs::FileExt,
    sync::Arc,
};

use pillarbox_bus::{Bus, Outgoing};
use pillarbox_messages::Destination;

use super::{at_once, open, runtime};
use crate::rounds::{compare_in_slices, speed, timed};

const MESSAGES: usize = 1_000_000;
/// The length of a body, in bytes.
const BODY: usize = 100;
/// How many are asked for at once, and how often.
const TASKS: usize = 64;
const EACH: usize = 20;
const SLICES: usize = 8;

/// The selector that means one message only.
type Name = fn(usize) -> String;

pub(super) fn run() {
    let runtime = runtime();
    let space = tempfile::tempdir().unwrap();
    let (_broker, bus) = runtime.block_on(open(space.path()));
    runtime.block_on(fill(&bus));
    let map = Arc::new(Map::new());
    let names: [(&str, Name); 2] = [
        ("by id", |number| {
            format!("JMSMessageID = '1-{}'", number + 1)
        }),
        ("by correlation id", |number| {
            format!("JMSCorrelationID = '{}'", correlation(number))
        }),
    ];
    for (what, name) in names {
        let (peer, ours) = compare_in_slices(
            SLICES,
            || {
                let map = Arc::clone(&map);
                let one = move || {
                    let map = Arc::clone(&map);
                    async move {
                        for number in some() {
                            assert_eq!(map.read(number)[0], b'x');
                        }
                    }
                };
                timed(|| runtime.block_on(at_once(TASKS, one)))
            },
            || {
                let bus = bus.clone();
                let one = move || {
                    let bus = bus.clone();
                    async move {
                        for number in some() {
                            let selector = name(number).parse().unwrap();
                            let queue = Destination::queue("work");
                            let found = bus.browse(queue, Some(selector), 1).await.unwrap();
                            assert_eq!(found.len(), 1);
                        }
                    }
                };
                timed(|| runtime.block_on(at_once(TASKS, one)))
            },
        );
        let what = format!("one of a million {what} (peer: map, read)");
        speed(&what, peer, ours, "more than 0.2");
    }
}

async fn fill(bus: &Bus) {
    const AT_ONCE: usize = 10_000;
    for first in (0..MESSAGES).step_by(AT_ONCE) {
        let messages = (first..first + AT_ONCE).map(|number| Outgoing {
            persistent: true,
            correlation_id: Some(correlation(number)),
            ..Outgoing::new(Destination::queue("work"), vec![b'x'; BODY])
        });
        bus.publish_all(messages.collect()).await.unwrap();
    }
}

fn correlation(number: usize) -> String {
    format!("6f2c1d9e-0000-4000-8000-{number:012}")
}

/// Some of the numbers, far from each other.
fn some() -> impl Iterator<Item = usize> {
    (0..EACH).map(|nth| nth * 7_919_993 % MESSAGES)
}

/// A bare map to places in a file.
struct Map {
    places: BTreeMap<String, u64>,
    file: File,
}

impl Map {
    fn new() -> Self {
        let file = tempfile::tempfile().unwrap();
        let mut writer = BufWriter::new(&file);
        for _ in 0..MESSAGES {
            writer.write_all(&[b'x'; BODY]).unwrap();
        }
        drop(writer);
        let places = (0..MESSAGES).map(|number| (correlation(number), (number * BODY) as u64));
        Self {
            places: places.collect(),
            file,
        }
    }

    fn read(&self, number: usize) -> Vec<u8> {
        let place = self.places[&correlation(number)];
        let mut body = vec![0; BODY];
        self.file.read_exact_at(&mut body, place).unwrap();
        body
    }
}
