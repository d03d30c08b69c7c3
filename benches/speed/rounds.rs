//! Nine rounds by turns, and their medians.

use std::time::{Duration, Instant};

pub(crate) const ROUNDS: usize = 9;

/// How long this took.
pub(crate) fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

/// Measures peer and ours by turns; medians.
pub(crate) fn compare(
    peer: impl FnMut() -> Duration,
    ours: impl FnMut() -> Duration,
) -> (Duration, Duration) {
    compare_in_slices(1, peer, ours)
}

/// The same in so many short slices for each round, of which each side's median counts: what else the machine does
/// comes in bursts, which meet some of them.
pub(crate) fn compare_in_slices(
    slices: usize,
    mut peer: impl FnMut() -> Duration,
    mut ours: impl FnMut() -> Duration,
) -> (Duration, Duration) {
    let (mut peers, mut own) = (Vec::new(), Vec::new());
    for slice in 0..ROUNDS * slices {
        // Whoever comes second finds warmer caches: so take turns.
        if slice % 2 == 0 {
            peers.push(peer());
            own.push(ours());
        } else {
            own.push(ours());
            peers.push(peer());
        }
    }
    (median(&mut peers), median(&mut own))
}

pub(crate) fn median(times: &mut [Duration]) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// A row of the table: how fast ours is, with the peer as 1.
pub(crate) fn speed(what: &str, peer: Duration, ours: Duration, wanted: &str) {
    let ratio = peer.as_secs_f64() / ours.as_secs_f64();
    row(
        what,
        peer,
        ours,
        &format!("{ratio:.2} of the peer's speed (wanted: {wanted})"),
    );
}

/// A row of the table: how long ours takes, with the peer as 1.
pub(crate) fn duration(what: &str, peer: Duration, ours: Duration, wanted: &str) {
    let ratio = ours.as_secs_f64() / peer.as_secs_f64();
    row(
        what,
        peer,
        ours,
        &format!("{ratio:.2} times the peer's time (wanted: {wanted})"),
    );
}

fn row(what: &str, peer: Duration, ours: Duration, ratio: &str) {
    println!(
        "{what:<44} peer {:>10.3} ms   ours {:>10.3} ms   {ratio}",
        ms(peer),
        ms(ours)
    );
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
