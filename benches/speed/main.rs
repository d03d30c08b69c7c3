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
mod large;
mod listing;
mod process;
mod puts;
mod recheck;
mod rounds;
mod site;
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
    let all: [(&str, fn()); 6] = [
        ("xml", xml::run),
        ("puts", puts::run),
        ("large", large::run),
        ("process", process::run),
        ("listing", listing::run),
        ("recheck", recheck::run),
    ];
    for (name, run) in all {
        if asked.is_empty() || asked.iter().any(|word| word == name) {
            run();
        }
    }
}
