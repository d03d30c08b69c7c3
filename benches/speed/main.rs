//! How fast, as ratios: each benchmark measures a peer or a bare probe and ours by turns in one run, nine rounds,
//! and prints the medians.
//!
//! `cargo bench --bench speed` runs all, `cargo bench --bench speed -- xml puts` only those.

#![expect(
    clippy::print_stdout,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a program that measures: it prints, and ends at the first thing that goes wrong"
)]

mod bare;
mod broker;
mod bus;
mod delay;
mod large;
mod listing;
mod process;
mod puts;
mod recheck;
mod rounds;
mod site;
/// Of what the tests share: brokers of others as real processes.
#[path = "../../tests/it/support"]
#[allow(
    dead_code,
    unused_imports,
    clippy::panic,
    reason = "it is made for tests, which need all of it"
)]
mod support {
    use std::time::{Duration, Instant};

    pub(crate) mod brokers;
    pub(crate) mod process;
    pub(crate) mod site;
    pub(crate) mod stomp;

    pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

    pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !holds() {
            assert!(Instant::now() < deadline, "in vain: {what}");
            pause(Duration::from_millis(10));
        }
    }

    /// Between two looks at something that gives no signal.
    pub(crate) fn pause(time: Duration) {
        let end = Instant::now() + time;
        while Instant::now() < end {
            std::thread::park_timeout(end - Instant::now());
        }
    }
}
mod xml;

fn main() {
    let asked: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with("--"))
        .collect();
    // The benchmark of syncs runs this program again, under a tracer.
    if let [word, count] = asked.as_slice()
        && word == puts::COUNTED
    {
        return puts::put_some(count.parse().expect("a number"));
    }
    let all: [(&str, fn()); 9] = [
        ("xml", xml::run),
        ("puts", puts::run),
        ("large", large::run),
        ("process", process::run),
        ("listing", listing::run),
        ("recheck", recheck::run),
        ("broker", broker::run),
        ("bus", bus::run),
        ("million", bus::million::run),
    ];
    for (name, run) in all {
        if asked.is_empty() || asked.iter().any(|word| word == name) {
            run();
        }
    }
}
