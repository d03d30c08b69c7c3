//! A repository whose components meet on a broker that was not written here, with names of their own there.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use pillarbox_bus::{Bus, ConnectOptions, StompOptions};
use pillarbox_client::{Client, ClientOptions, passing_id};
use pillarbox_exchange::{AddressPolicy, ExchangeClient, client::ClientOptions as ExchangeOptions};
use pillarbox_messages::{CollectionId, clock::SystemClock};
use pillarbox_settings::ZonelessDates;

use super::{
    PATIENCE,
    brokers::{Broker, START},
    process::{self, Running},
    site::{files_below, free_port},
};

/// How destinations are named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheme {
    /// As this program names them by default.
    Collection,
    /// As the Java system names them.
    Reference,
}

/// Two FILE pillars and a CHECKSUM pillar, an exchange, an alarm service and clients, each by settings alone.
#[derive(Debug)]
pub(crate) struct Joined {
    directory: tempfile::TempDir,
    /// What makes the names unlike those of other tests.
    mark: String,
    scheme: Scheme,
    port: u16,
    timeouts: [&'static str; 2],
    pub(crate) exchange_port: u16,
}

/// The pillars, in the order of their names.
pub(crate) const PILLARS: [&str; 3] = ["north", "south", "sums"];

impl Joined {
    /// Writes the settings.
    pub(crate) fn new(broker: &Broker, scheme: Scheme) -> Self {
        Self::with_timeouts(broker, scheme, ["20s", "60s"])
    }

    /// The same with other timeouts of identification and operation.
    pub(crate) fn with_timeouts(
        broker: &Broker,
        scheme: Scheme,
        timeouts: [&'static str; 2],
    ) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let joined = Self {
            directory: tempfile::tempdir().expect("a temporary directory"),
            mark: format!("{}x{number}", std::process::id()),
            scheme,
            port: broker.port(),
            timeouts,
            exchange_port: free_port(),
        };
        joined.settings("node", &joined.node_settings(&PILLARS));
        joined.settings("client", &joined.client_settings());
        let alarms = format!("[alarms]\nid = \"{}\"\n", joined.name("alarm-service"));
        joined.settings("alarms", &alarms);
        joined
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Where the broker speaks STOMP.
    pub(crate) const fn port(&self) -> u16 {
        self.port
    }

    /// The settings directory `node`, `client` or `alarms`.
    pub(crate) fn part(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// The id, on the broker, of what is called so here.
    pub(crate) fn name(&self, name: &str) -> String {
        format!("{name}-{}", self.mark)
    }

    pub(crate) fn collection(&self) -> String {
        self.name("books")
    }

    /// The topic of identify requests, as STOMP spells it.
    pub(crate) fn topic(&self) -> String {
        match self.scheme {
            Scheme::Collection => format!("/topic/{}", self.collection()),
            Scheme::Reference => format!("/topic/{}", self.name("base")),
        }
    }

    /// Where a pillar takes its requests, as STOMP spells it.
    pub(crate) fn requests_of(&self, pillar: &str) -> String {
        let pillar = self.name(pillar);
        match self.scheme {
            Scheme::Collection => format!("/queue/{}.{pillar}", self.collection()),
            Scheme::Reference => format!("/topic/{}-{pillar}-contributor", self.name("base")),
        }
    }

    fn settings(&self, part: &str, node: &str) {
        let directory = self.part(part);
        fs::create_dir_all(&directory).expect("can be made");
        fs::write(directory.join("repository.toml"), self.repository()).expect("can be written");
        let node = format!("data = \"var\"\n{node}");
        fs::write(directory.join("node.toml"), node).expect("can be written");
    }

    pub(crate) fn repository(&self) -> String {
        let [identification, operation] = self.timeouts;
        let destinations = match self.scheme {
            Scheme::Collection => String::new(),
            Scheme::Reference => {
                let base = self.name("base");
                format!(
                    "[destinations]\nscheme = \"reference\"\nbase = \"topic://{base}\"\n\
                     alarm_destination = \"topic://{base}.alarms\"\n"
                )
            }
        };
        let pillars = PILLARS.map(|pillar| self.name(pillar)).join("\", \"");
        format!(
            r#"[repository]
name = "Joined"
checksum = "MD5"
require = ["checksum-for-new-file", "checksum-for-destructive"]
[bus]
url = "failover:(stomp://127.0.0.1:{port})?maxReconnectDelay=200"
[timeouts]
identification = "{identification}"
operation = "{operation}"
{destinations}[[collections]]
id = "{collection}"
pillars = ["{pillars}"]
"#,
            port = self.port,
            collection = self.collection(),
        )
    }

    /// Has the node play only these pillars; somebody else plays the others.
    pub(crate) fn play_only(&self, pillars: &[&str]) {
        self.settings("node", &self.node_settings(pillars));
    }

    /// Has a part find the broker at another port of this machine, from its next start on.
    pub(crate) fn lead(&self, part: &str, port: u16) {
        let broker = format!("127.0.0.1:{}", self.port);
        self.rewrite(
            part,
            "repository.toml",
            &broker,
            &format!("127.0.0.1:{port}"),
        );
    }

    /// Lets a part fetch from this host as well, from its next start on.
    pub(crate) fn allow_host(&self, part: &str, host: &str) {
        self.rewrite(
            part,
            "node.toml",
            "hosts = [",
            &format!("hosts = [\"{host}\", "),
        );
    }

    fn rewrite(&self, part: &str, file: &str, from: &str, to: &str) {
        let file = self.part(part).join(file);
        let text = fs::read_to_string(&file).expect("can be read");
        assert!(text.contains(from), "{text}");
        fs::write(&file, text.replace(from, to)).expect("can be written");
    }

    fn node_settings(&self, pillars: &[&str]) -> String {
        let port = self.exchange_port;
        let mut text = format!(
            "[exchange_server]\nlisten = \"127.0.0.1:{port}\"\npublic_url = \"http://127.0.0.1:{port}/\"\n{}",
            self.exchange()
        );
        for pillar in pillars {
            let id = self.name(pillar);
            let kind = match *pillar {
                "sums" => "type = \"CHECKSUM\"".to_owned(),
                _ => format!("directories = [\"archive/{pillar}\"]\nminimum_size_left = \"1 MiB\""),
            };
            text += &format!("[[pillars]]\nid = \"{id}\"\n{kind}\n");
        }
        text
    }

    fn client_settings(&self) -> String {
        let port = self.exchange_port;
        format!(
            "[client]\nexchange = \"http://127.0.0.1:{port}/\"\n{}",
            self.exchange()
        )
    }

    fn exchange(&self) -> String {
        format!(
            "[exchange]\nhosts = [\"127.0.0.1:{}\"]\n",
            self.exchange_port
        )
    }

    /// A second set of client settings, with data of its own.
    pub(crate) fn other_client(&self, part: &str) -> PathBuf {
        self.settings(part, &self.client_settings());
        self.part(part)
    }

    /// Starts exchange and pillars, or the alarm service, and waits until all is ready.
    pub(crate) fn start(&self, part: &str) -> Running {
        Running::node(&self.part(part))
    }

    /// Runs a client command about the collection to its end.
    pub(crate) fn run<S: Into<OsString>>(
        &self,
        subcommand: &str,
        args: impl IntoIterator<Item = S>,
    ) -> Output {
        process::finish(self.prepare(subcommand, args))
    }

    /// The same, not started yet.
    pub(crate) fn prepare<S: Into<OsString>>(
        &self,
        subcommand: &str,
        args: impl IntoIterator<Item = S>,
    ) -> Command {
        let collection = self.collection();
        let mut command = self.without_collection(subcommand);
        command.args(["-c", &collection]);
        command.args(args.into_iter().map(Into::into));
        command
    }

    /// A client command about no collection, not started yet.
    pub(crate) fn without_collection(&self, subcommand: &str) -> Command {
        let mut command = process::pillarbox([subcommand, "-s"]);
        command.arg(self.part("client")).current_dir(self.path());
        command
    }

    /// A file of the repository's own with this content.
    pub(crate) fn file(&self, name: &str, content: &[u8]) -> PathBuf {
        let path = self.path().join(name);
        fs::write(&path, content).expect("can be written");
        path
    }

    /// What `alarms list` says.
    pub(crate) fn alarms(&self) -> String {
        let mut command = process::pillarbox(["alarms", "list", "-s"]);
        command.arg(self.part("alarms"));
        process::succeed(&process::finish(command))
    }

    /// The files that a FILE pillar has archived.
    pub(crate) fn archived(&self, pillar: &str) -> Vec<PathBuf> {
        let archive = self.part("node").join("archive").join(pillar);
        files_below(&archive.join(self.collection()).join("fileDir"))
    }
}

/// A client in the test's own process, for more conversations at once than processes could have.
pub(crate) struct LibraryClient {
    pub(crate) client: Client,
    pub(crate) collection: CollectionId,
    bus: Bus,
}

impl LibraryClient {
    /// Connects a passing one.
    pub(crate) async fn of(site: &Joined) -> Self {
        Self::at(site, site.port).await
    }

    /// Connects a passing one that finds the broker at this port, and is back at once when the broker is.
    pub(crate) async fn at(site: &Joined, port: u16) -> Self {
        let (repository, node) = pillarbox_settings::load(&site.part("client")).expect("settings");
        let id = passing_id();
        let connect = ConnectOptions {
            client_id: id.as_str().to_owned(),
        };
        let mut options = StompOptions::new(format!("127.0.0.1:{port}"));
        options.longest_pause = Duration::from_millis(200);
        let bus = Bus::stomp(options, connect);
        bus.ready(PATIENCE).await.expect("the broker answers");
        let base = node.client.and_then(|client| client.exchange);
        let base = base.expect("an exchange");
        let policy = AddressPolicy::for_exchange(&base).expect("an address");
        let collection = repository.collections[0].id.clone();
        let options = ClientOptions {
            repository: Arc::new(repository),
            bus: bus.clone(),
            exchange: ExchangeClient::new(&ExchangeOptions::new(policy)).expect("can be made"),
            exchange_base: Some(base),
            id,
            named: false,
            journal: None,
            sla: None,
            clock: SystemClock::shared(),
            timeouts: None,
            extend_on_progress: false,
            zoneless: ZonelessDates::default(),
        };
        Self {
            client: Client::connect(options).expect("a client"),
            collection,
            bus,
        }
    }

    /// Waits until the broker is there, which may start just now.
    pub(crate) async fn bus_is_there(&self) {
        self.bus.ready(START).await.expect("the broker answers");
    }

    pub(crate) async fn close(self) {
        self.client.close().await;
        self.bus.close().await.expect("the broker is there");
    }
}
