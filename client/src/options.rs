//! What a client is made from.

use std::sync::Arc;

use pillarbox_bus::Bus;
use pillarbox_exchange::ExchangeClient;
use pillarbox_messages::{ComponentId, CorrelationId, clock::SharedClock};
use pillarbox_settings::{Repository, Timeouts, ZonelessDates};

use crate::journal::Journal;

/// What a client is made from.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// The repository that it works with.
    pub repository: Arc<Repository>,
    /// Its connection, whose client id is its own id.
    pub bus: Bus,
    /// How it moves files.
    pub exchange: ExchangeClient,
    /// Base URL of the exchange that it offers files on; none: the repository's own.
    pub exchange_base: Option<String>,
    /// Its id: see [`passing_id`].
    pub id: ComponentId,
    /// Whether answers wait for it while it is away: its subscriptions are durable then. A passing client leaves
    /// nothing behind.
    pub named: bool,
    /// Where a named client keeps what it has begun and not yet told the end of, so that [`Client::resume`] in
    /// another process can go on with it; none: nowhere.
    ///
    /// [`Client::resume`]: crate::Client::resume
    pub journal: Option<Journal>,
    /// The service level agreement that it works under.
    pub sla: Option<String>,
    /// Its time.
    pub clock: SharedClock,
    /// How long it waits, if not as long as the settings say. Zero: without limit.
    pub timeouts: Option<Timeouts>,
    /// Whether a contributor that says that it is at work (`OPERATION_PROGRESS`) has its full time for the operation
    /// again, as long as the whole conversation has time: for pillars whose media are slow.
    pub extend_on_progress: bool,
    /// What it makes of dates without an offset from UTC.
    pub zoneless: ZonelessDates,
}

/// An id for a client that comes by once: host, user and something random, so that no two are alike.
#[must_use]
pub fn passing_id() -> ComponentId {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let host = host.or_else(|| std::env::var("HOSTNAME").ok());
    let user = std::env::var("USER")
        .or_else(|_| std::env::var("LOGNAME"))
        .ok();
    let random = CorrelationId::random();
    ComponentId::from(format!("{}-{}-{}", word(host), word(user), random.short()))
}

/// A part of an id that means nothing to any kind of bus, at most 32 characters.
fn word(text: Option<String>) -> String {
    let text = text.unwrap_or_default();
    let plain = |it: char| {
        if it.is_ascii_alphanumeric() || it == '_' {
            it
        } else {
            '-'
        }
    };
    let word: String = text.trim().chars().take(32).map(plain).collect();
    if word.is_empty() {
        "client".to_owned()
    } else {
        word
    }
}
