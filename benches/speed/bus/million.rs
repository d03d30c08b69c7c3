//! A million messages that wait in one queue: what they take in memory, and how soon the bus is back.

use std::{thread, time::Instant};

use super::{
    QUEUE,
    load::{Client, frame_of},
};
use crate::{
    rounds::{ROUNDS, median},
    site::{Outside, Site, processor_time},
    support::process::resident_memory,
};

const MESSAGES: usize = 1_000_000;
const SENDERS: usize = 4;
/// One receipt for so many.
const AT_ONCE: usize = 500;
/// The length of a body, in bytes.
const BODY: usize = 100;

pub(crate) fn run() {
    let site = Site::new(&["north"], false);
    let settings = site.settings("bus", &site.bus_role());
    let node = Outside::node(&settings);
    let empty = resident_memory(node.id());
    let start = Instant::now();
    fill(site.bus_port());
    let rate = MESSAGES as f64 / start.elapsed().as_secs_f64();
    println!("a million persistent messages of {BODY} bytes came in, {rate:.0}/s");
    tell(
        "as they came",
        resident_memory(node.id()).saturating_sub(empty),
    );
    drop(node);
    let (mut times, mut spent) = (Vec::new(), Vec::new());
    let mut last = None;
    for _ in 0..ROUNDS {
        drop(last.take());
        let start = Instant::now();
        let node = Outside::node(&settings);
        times.push(start.elapsed());
        spent.push(processor_time(node.id()));
        last = Some(node);
    }
    println!(
        "after kill -9 the node is ready in {:.2} s, of which it had a processor for {:.2} s (wanted: less than 3)",
        median(&mut times).as_secs_f64(),
        median(&mut spent).as_secs_f64()
    );
    if let Some(node) = &last {
        tell(
            "after a restart",
            resident_memory(node.id()).saturating_sub(empty),
        );
    }
}

fn fill(port: u16) {
    let more = frame_of(QUEUE, true, false, &[b'x'; BODY]).repeat(AT_ONCE - 1);
    let frames = [more, frame_of(QUEUE, true, true, &[b'x'; BODY])].concat();
    thread::scope(|scope| {
        for _ in 0..SENDERS {
            scope.spawn(|| {
                let mut client = Client::connect(port, None);
                for _ in 0..MESSAGES / SENDERS / AT_ONCE {
                    client.ask(&frames);
                }
            });
        }
    });
}

fn tell(when: &str, bytes: u64) {
    let each = bytes as f64 / MESSAGES as f64 - BODY as f64;
    println!("  memory of each, without its body, {when}: {each:.0} bytes (wanted: at most 200)");
}
