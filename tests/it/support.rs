//! What the tests share: real processes, repositories in temporary directories, and peers that the tests play.

pub(crate) mod brokers;
pub(crate) mod joined;
pub(crate) mod peers;
pub(crate) mod process;
pub(crate) mod proxy;
pub(crate) mod raw_peer;
pub(crate) mod site;
pub(crate) mod slow_exchange;
pub(crate) mod stomp;
pub(crate) mod strace;
pub(crate) mod whole;

use std::time::{Duration, Instant};

use md5::{Digest as _, Md5};

/// How long anything may take that should happen at once; generous, since machines are shared.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Returns once the condition holds.
#[track_caller]
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
    while let Some(rest) = end
        .checked_duration_since(Instant::now())
        .filter(|it| !it.is_zero())
    {
        std::thread::park_timeout(rest);
    }
}

/// MD5 in lower-case hex.
pub(crate) fn md5(bytes: &[u8]) -> String {
    Md5::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Bytes that look random and depend on the seed only (`SplitMix64`).
pub(crate) fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut random = Random::new(seed);
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        bytes.extend_from_slice(&random.next().to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

/// `SplitMix64`.
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Less than `limit`.
    pub(crate) const fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

/// A number from the environment, for longer runs.
pub(crate) fn number_from_environment(name: &str, default: usize) -> usize {
    std::env::var(name).map_or(default, |text| {
        text.parse()
            .unwrap_or_else(|_| panic!("{name}: '{text}' is no number"))
    })
}
