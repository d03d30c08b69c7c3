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
    let random = CorrelationId::random();
    passing(random.short())
}

/// The same among components of the Java system, as `UniqueCommandlineComponentID` makes it: host, user and number of
/// the process. Two clients of one process would be alike.
#[must_use]
pub fn process_id() -> ComponentId {
    passing(&std::process::id().to_string())
}

fn passing(last: &str) -> ComponentId {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let host = host.or_else(|| std::env::var("HOSTNAME").ok());
    ComponentId::from(format!("{}-{}-{last}", word(host), word(user())))
}

/// The name of the user who runs this process; services often have no variable that tells it.
fn user() -> Option<String> {
    let told = |name| std::env::var(name).ok().filter(|it| !it.is_empty());
    told("USER").or_else(|| told("LOGNAME")).or_else(|| {
        let users = std::fs::read_to_string("/etc/passwd").ok()?;
        name_of(rustix::process::getuid().as_raw(), &users)
    })
}

/// The name of this user in the text of `/etc/passwd`.
fn name_of(user: u32, users: &str) -> Option<String> {
    let mut lines = users.lines().map(|line| line.split(':'));
    lines.find_map(|mut fields| {
        let name = fields.next()?;
        let number: u32 = fields.nth(1)?.parse().ok()?;
        (number == user).then(|| name.to_owned())
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passing_ids_never_collide() {
        assert_ne!(passing_id(), passing_id());
        let plain = |it: char| it.is_ascii_alphanumeric() || it == '-' || it == '_';
        for id in [passing_id(), process_id()] {
            assert!(id.as_str().chars().all(plain), "{id}");
        }
        let number = std::process::id().to_string();
        assert!(process_id().as_str().ends_with(&format!("-{number}")));
    }

    #[test]
    fn users_are_known_by_their_numbers() {
        let users = "root:x:0:0:root:/root:/bin/sh\n\n+\nkim:x:1000:100:Kim:/home/kim:\n";
        assert_eq!(name_of(0, users).as_deref(), Some("root"));
        assert_eq!(name_of(1000, users).as_deref(), Some("kim"));
        assert_eq!(name_of(100, users), None);
    }
}
