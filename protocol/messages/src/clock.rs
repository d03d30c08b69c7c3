//! Where time comes from: handed in, so that tests decide what time it is.

use std::{fmt::Debug, sync::Arc};

use chrono::{DateTime, Utc};

/// A source of wall-clock time.
pub trait Clock: Debug + Send + Sync + 'static {
    /// The time now.
    fn now(&self) -> DateTime<Utc>;

    /// The time now, in milliseconds since 1970-01-01T00:00:00Z.
    fn now_ms(&self) -> i64 {
        self.now().timestamp_millis()
    }
}

/// A clock that several owners read.
pub type SharedClock = Arc<dyn Clock>;

/// The operating system's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl SystemClock {
    /// This clock, shared.
    #[must_use]
    pub fn shared() -> SharedClock {
        Arc::new(Self)
    }
}

impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place where the time is read"
    )]
    fn now(&self) -> DateTime<Utc> {
        Utc::now()
    }
}
