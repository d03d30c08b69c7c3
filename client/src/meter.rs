//! How far a file is on its way between this machine and the exchange.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// How much of a file has been moved between this machine and the exchange.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transferred {
    /// Bytes moved so far.
    pub bytes: u64,
    /// All bytes that are to be moved; zero as long as that is not known.
    pub total: u64,
}

/// Counts the bytes of one transfer after the other. Clones count together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Meter(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    bytes: AtomicU64,
    total: AtomicU64,
}

impl Meter {
    /// A transfer of so many bytes begins, if that is known.
    pub(crate) fn begin(&self, total: Option<u64>) {
        self.0.bytes.store(0, Ordering::Relaxed);
        self.0
            .total
            .store(total.unwrap_or_default(), Ordering::Relaxed);
    }

    /// So many more bytes have been moved.
    pub(crate) fn add(&self, bytes: usize) {
        self.0.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> Transferred {
        Transferred {
            bytes: self.0.bytes.load(Ordering::Relaxed),
            total: self.0.total.load(Ordering::Relaxed),
        }
    }
}
