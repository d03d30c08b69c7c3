//! What one process is: `node.toml`.

mod background;
mod bus;
mod check;
mod moving;
mod queues;
mod raw;
mod subscriptions;

use std::{
    net::SocketAddr,
    num::NonZeroU64,
    path::{Path, PathBuf},
    time::Duration,
};

use pillarbox_messages::{ComponentId, Destination};

use crate::{
    bus_url::BusAddress,
    environment::Environment,
    problem::SettingsError,
    reading::{Document, Lines, read_text},
    repository::Repository,
};

pub use background::BackgroundWork;
pub use bus::NodeBus;
pub use moving::PILLAR_BACKOUT;
pub use queues::{Jump, LanePoison, QueueCriterion, QueueHash, QueueLanes, QueueNode, QueueOrder};
pub(crate) use raw::RawNode;
pub use subscriptions::{Offline, SubscriptionLimit, SubscriptionNode};

/// A process: the roles it plays, with their paths and listeners. A role is played if its table is there.
#[derive(Clone, Debug)]
pub struct Node {
    /// Everything this process keeps lives below here.
    pub data: PathBuf,
    /// Its own way to the bus.
    pub bus: NodeBus,
    /// The pillars it runs.
    pub pillars: Vec<PillarNode>,
    /// The embedded bus, served to other processes.
    pub bus_server: Option<BusServer>,
    /// The built-in file exchange.
    pub exchange_server: Option<ExchangeServerNode>,
    /// Which addresses this process fetches from and writes to on a peer's word.
    pub exchange: ExchangePolicy,
    /// Who this process is as a client.
    pub client: Option<ClientNode>,
    /// The alarm service.
    pub alarms: Option<AlarmsNode>,
    pub(crate) lines: Lines,
}

/// A pillar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PillarNode {
    /// Its id in messages.
    pub id: ComponentId,
    /// Whether it keeps files or only checksums.
    pub pillar_type: PillarType,
    /// Where a checksum pillar has its checksums from.
    pub download: ChecksumDownload,
    /// Archive directories; at least one for a FILE pillar.
    pub directories: Vec<PathBuf>,
    /// Bytes that stay free in each archive directory's file system.
    pub minimum_size_left: u64,
    /// The time to deliver that it announces for `GetFile`.
    pub time_to_start_deliver: Duration,
    /// Checksums older than this are computed again; zero: none ever is.
    pub max_age_for_checksums: Duration,
    /// How checksums are computed again.
    pub recheck: BackgroundWork,
    /// How the index is compared with the archive directories.
    pub reconcile: BackgroundWork,
    /// How long files that were deleted or replaced are kept in `retainDir`; `None`: for ever.
    pub retain_for: Option<Duration>,
    /// How those are removed that have been kept so long.
    pub purge: BackgroundWork,
    /// Which alarms it sends.
    pub alarm_level: AlarmLevel,
    /// What it makes of dates without an offset from UTC.
    pub accept_zoneless: ZonelessDates,
    /// The agreements it works under; empty: all of its collections.
    pub sla: Vec<String>,
    /// Where the numbering of audit trail events starts.
    pub first_audit_number: Option<NonZeroU64>,
}

/// What a pillar keeps (`PillarType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PillarType {
    /// Files.
    File,
    /// Checksums only.
    Checksum,
}

/// Where a checksum pillar has its checksums from (`ChecksumPillarFileDownload`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChecksumDownload {
    /// It fetches every file and computes them itself.
    #[default]
    Always,
    /// It takes the message's, and fetches the file only if there is none.
    WhenMissing,
    /// It takes the message's, and refuses if there is none.
    Never,
}

/// Which alarms a component sends (`AlarmLevel`): those of its level and all above.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum AlarmLevel {
    /// Everything, down to a peer's small faults.
    Warning,
    /// What needs a human.
    #[default]
    Error,
    /// What can't wait.
    Emergency,
}

/// What a component makes of dates without an offset from UTC in the messages it receives. The schema has none;
/// components of protocol versions before 29 write them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ZonelessDates {
    /// The message is refused, and an alarm raised.
    #[default]
    Refuse,
    /// They are in UTC.
    Utc,
    /// They are in this machine's time zone.
    Local,
}

/// The embedded bus, served to other processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BusServer {
    /// Where it listens, at least one address.
    pub listen: Vec<SocketAddr>,
    /// Queues that are other than usual.
    pub queues: Vec<QueueNode>,
    /// Topics that are for durable subscriptions: what none of these gets goes to the error queue.
    pub durable_topics: Vec<Destination>,
    /// What durable subscriptions may hold, as far as that is other than usual.
    pub subscriptions: Vec<SubscriptionNode>,
}

/// The built-in file exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExchangeServerNode {
    /// Where it listens.
    pub listen: SocketAddr,
    /// The URL under which others reach it; ends with `/`.
    pub public_url: String,
    /// How long a file lies there before it is removed.
    pub expiry: Duration,
    /// The largest file it takes, in bytes.
    pub maximum_file_size: Option<u64>,
}

/// Which addresses a process fetches from and writes to on a peer's word.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExchangePolicy {
    /// `host:port` of the allowed HTTP servers; none: the repository's own exchange, see [`Node::exchange_hosts`].
    pub hosts: Option<Vec<String>>,
    /// Directories below which `file:` URLs are allowed.
    pub file_roots: Vec<PathBuf>,
    /// PEM files with certificate authorities trusted for https, beside the system's.
    pub ca_files: Vec<PathBuf>,
}

/// Who a process is as a client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientNode {
    /// A named client's id; none: a passing client with a unique id that leaves nothing behind.
    pub id: Option<ComponentId>,
    /// The agreement it works under.
    pub sla: Option<String>,
    /// Base URL where it offers files; ends with `/`.
    pub exchange: Option<String>,
    /// What it makes of dates without an offset from UTC.
    pub accept_zoneless: ZonelessDates,
}

/// The alarm service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlarmsNode {
    /// Its component id.
    pub id: ComponentId,
    /// What it makes of dates without an offset from UTC.
    pub accept_zoneless: ZonelessDates,
}

impl Node {
    /// Reads `node.toml`, overridden by the environment (`PILLARBOX__...`). A file that is not there is an
    /// empty one.
    ///
    /// # Errors
    /// Everything that is wrong with the file or the environment, each with its line or variable.
    pub fn load(path: &Path) -> Result<Self, SettingsError> {
        let text = if path.exists() {
            read_text(path)?
        } else {
            String::new()
        };
        Self::read(
            &text,
            &path.display().to_string(),
            &Environment::of_process(),
        )
    }

    /// Reads settings from text, without the environment. `name` stands for the file in errors; relative
    /// paths are resolved against its directory.
    ///
    /// # Errors
    /// Everything that is wrong with the text, each with its line.
    pub fn from_toml_str(text: &str, name: &str) -> Result<Self, SettingsError> {
        Self::read(text, name, &Environment::empty())
    }

    pub(crate) fn read(
        text: &str,
        name: &str,
        environment: &Environment,
    ) -> Result<Self, SettingsError> {
        let document: Document<RawNode> = Document::read(text, name, environment)?;
        let base = Path::new(name).parent().unwrap_or_else(|| Path::new(""));
        check::node(document, base)
    }

    /// Checks this process against its repository. Returns what to tell people at start.
    ///
    /// # Errors
    /// Every pillar, agreement or client id here that the repository does not know.
    pub fn check_against(&self, repository: &Repository) -> Result<Vec<String>, SettingsError> {
        check::against(self, repository)
    }

    /// Whether any role of a server is played: pillar, bus server, exchange server or alarm service.
    #[must_use]
    pub const fn plays_a_role(&self) -> bool {
        !self.pillars.is_empty()
            || self.bus_server.is_some()
            || self.exchange_server.is_some()
            || self.alarms.is_some()
    }

    /// The bus address that counts for this process.
    #[must_use]
    pub fn effective_bus<'a>(&'a self, repository: &'a Repository) -> &'a BusAddress {
        self.bus.address.as_ref().unwrap_or(&repository.bus)
    }

    /// Base URL where this process offers files: the client's setting, else the repository's exchange, else
    /// the one that this process serves.
    #[must_use]
    pub fn exchange_base<'a>(&'a self, repository: &'a Repository) -> Option<&'a str> {
        let client = self
            .client
            .as_ref()
            .and_then(|client| client.exchange.as_deref());
        let own = self
            .exchange_server
            .as_ref()
            .map(|server| server.public_url.as_str());
        client.or(repository.exchange_url.as_deref()).or(own)
    }

    /// `host:port` of the HTTP servers that this process may use on a peer's word: the setting, else the
    /// exchanges that the settings name.
    #[must_use]
    pub fn exchange_hosts(&self, repository: &Repository) -> Vec<String> {
        if let Some(hosts) = &self.exchange.hosts {
            return hosts.clone();
        }
        let client = self
            .client
            .as_ref()
            .and_then(|client| client.exchange.as_deref());
        let own = self
            .exchange_server
            .as_ref()
            .map(|server| server.public_url.as_str());
        let urls = [repository.exchange_url.as_deref(), own, client];
        let mut hosts: Vec<String> = urls
            .into_iter()
            .flatten()
            .filter_map(crate::http_url::host_and_port)
            .collect();
        hosts.dedup();
        hosts
    }
}
