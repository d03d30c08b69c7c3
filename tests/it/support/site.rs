//! Settings of a repository whose parts run as separate processes on free ports in a temporary directory.

use std::{
    ffi::{OsStr, OsString},
    fmt::Write as _,
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::{
        OnceLock,
        atomic::{AtomicU16, Ordering},
    },
};

use super::{process, until};

/// A port on which nobody listens, and which the system gives to no outgoing connection: a server that is killed
/// must get it again.
pub(crate) fn free_port() -> u16 {
    static NEXT: OnceLock<AtomicU16> = OnceLock::new();
    let next = NEXT.get_or_init(|| {
        let offset = u16::try_from(std::process::id() * 131 % u32::from(PORTS)).expect("small");
        AtomicU16::new(offset)
    });
    let mut candidates =
        std::iter::repeat_with(|| FIRST_PORT + next.fetch_add(1, Ordering::Relaxed) % PORTS);
    candidates
        .by_ref()
        .take(usize::from(PORTS))
        .find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .expect("a free port")
}

/// Below the range of outgoing connections (32768-60999 unless the machine says otherwise).
const FIRST_PORT: u16 = 12_000;
const PORTS: u16 = 20_000;

/// A repository in a temporary directory: one settings directory per process.
#[derive(Debug)]
pub(crate) struct Site {
    directory: tempfile::TempDir,
    pub(crate) bus_port: u16,
    bus_url: String,
    pub(crate) exchange_port: u16,
    pillars: Vec<String>,
    identification: String,
    operation: String,
}

impl Site {
    /// The collection `books` on these pillars.
    pub(crate) fn new(pillars: &[&str]) -> Self {
        Self::with_timeouts(pillars, "20s", "60s")
    }

    pub(crate) fn with_timeouts(pillars: &[&str], identification: &str, operation: &str) -> Self {
        Self::make(pillars, identification, operation, |bus| bus)
    }

    /// All are back at once when the bus is, however often that happens.
    pub(crate) fn with_restless_bus(pillars: &[&str]) -> Self {
        Self::make(pillars, "3s", "60s", |bus| {
            format!("failover:({bus})?maxReconnectDelay=200")
        })
    }

    /// Where requests to a pillar go to such a destination.
    pub(crate) fn with_pillar_destinations(pillars: &[&str], template: &str) -> Self {
        Self::with_destinations(pillars, &format!("pillar = \"{template}\""))
    }

    /// With this in the table `[destinations]`.
    pub(crate) fn with_destinations(pillars: &[&str], table: &str) -> Self {
        let site = Self::new(pillars);
        let destinations = format!("[destinations]\n{table}\n[[collections]]");
        for part in fs::read_dir(site.path()).expect("can be read").flatten() {
            let file = part.path().join("repository.toml");
            let text = fs::read_to_string(&file).expect("can be read");
            let text = text.replacen("[[collections]]", &destinations, 1);
            fs::write(&file, text).expect("can be written");
        }
        site
    }

    /// With this line in the table of the collection.
    pub(crate) fn with_collection(pillars: &[&str], line: &str) -> Self {
        let site = Self::new(pillars);
        for part in fs::read_dir(site.path()).expect("can be read").flatten() {
            let file = part.path().join("repository.toml");
            let text = fs::read_to_string(&file).expect("can be read");
            let id = "id = \"books\"\n";
            let text = text.replacen(id, &format!("{id}{line}\n"), 1);
            fs::write(&file, text).expect("can be written");
        }
        site
    }

    fn make(
        pillars: &[&str],
        identification: &str,
        operation: &str,
        bus_url: impl FnOnce(String) -> String,
    ) -> Self {
        let bus_port = free_port();
        let site = Self {
            directory: tempfile::tempdir().expect("a temporary directory"),
            bus_port,
            bus_url: bus_url(format!("stomp://127.0.0.1:{bus_port}")),
            exchange_port: free_port(),
            pillars: pillars.iter().map(|&pillar| pillar.to_owned()).collect(),
            identification: identification.to_owned(),
            operation: operation.to_owned(),
        };
        site.settings("hub", &site.hub());
        let alone = |server: String| format!("data = \"var\"\n{server}");
        site.settings("bus", &alone(site.bus_server()));
        site.settings("exchange", &alone(site.exchange_server()));
        site.settings("client", &site.client());
        site.settings("alarms", &site.alarms());
        for pillar in &site.pillars {
            site.settings(pillar, &site.pillar(pillar, &[]));
        }
        site
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The settings directory of a part: `hub` (bus and exchange server), `bus` or `exchange` alone, `client`,
    /// `alarms`, or a pillar's id.
    pub(crate) fn part(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// A file of the site's own with this content.
    pub(crate) fn file(&self, name: &str, content: &[u8]) -> PathBuf {
        let path = self.path().join(name);
        fs::write(&path, content).expect("can be written");
        path
    }

    /// Writes the settings directory of a part.
    pub(crate) fn settings(&self, name: &str, node: &str) {
        let directory = self.part(name);
        fs::create_dir_all(&directory).expect("can be made");
        fs::write(directory.join("repository.toml"), self.repository()).expect("can be written");
        fs::write(directory.join("node.toml"), node).expect("can be written");
    }

    pub(crate) fn repository(&self) -> String {
        format!(
            r#"[repository]
name = "Test"
checksum = "MD5"
require = ["checksum-for-new-file", "checksum-for-destructive"]
[bus]
url = "{}"
[timeouts]
identification = "{}"
operation = "{}"
[[collections]]
id = "books"
pillars = ["{}"]
"#,
            self.bus_url,
            self.identification,
            self.operation,
            self.pillars.join("\", \"")
        )
    }

    fn hub(&self) -> String {
        format!("data = \"var\"\n{}", self.servers())
    }

    fn servers(&self) -> String {
        self.bus_server() + &self.exchange_server()
    }

    fn bus_server(&self) -> String {
        let port = self.bus_port;
        format!("[bus_server]\nlisten = [\"127.0.0.1:{port}\"]\n")
    }

    fn exchange_server(&self) -> String {
        format!(
            r#"[exchange_server]
listen = "127.0.0.1:{port}"
public_url = "http://127.0.0.1:{port}/"
"#,
            port = self.exchange_port
        )
    }

    /// A pillar that may also fetch from these hosts.
    fn pillar(&self, id: &str, hosts: &[String]) -> String {
        format!(
            "data = \"var\"\n{}{}",
            pillar_table(id, "archive"),
            self.exchange(hosts)
        )
    }

    fn client(&self) -> String {
        format!(
            "data = \"var\"\n{}{}",
            self.client_table(),
            self.exchange(&[])
        )
    }

    fn client_table(&self) -> String {
        let port = self.exchange_port;
        format!("[client]\nexchange = \"http://127.0.0.1:{port}/\"\n")
    }

    fn exchange(&self, hosts: &[String]) -> String {
        let mut text = format!("[exchange]\nhosts = [\"127.0.0.1:{}\"", self.exchange_port);
        for host in hosts {
            let _ = write!(text, ", \"{host}\"");
        }
        text + "]\n"
    }

    /// Lets a pillar fetch from these hosts as well, from its next start on.
    pub(crate) fn allow_hosts(&self, pillar: &str, hosts: &[String]) {
        self.settings(pillar, &self.pillar(pillar, hosts));
    }

    /// Settings of one process that plays every role, in the part `all`.
    pub(crate) fn all_in_one(&self) -> PathBuf {
        let mut node = "data = \"var\"\n".to_owned();
        for pillar in &self.pillars {
            node += &pillar_table(pillar, &format!("archive/{pillar}"));
        }
        node += &self.servers();
        node += &self.exchange(&[]);
        node += &self.client_table();
        node += "[alarms]\nid = \"alarm-service\"\n";
        self.settings("all", &node);
        self.part("all")
    }

    fn alarms(&self) -> String {
        "data = \"var\"\n[alarms]\nid = \"alarm-service\"\n".to_owned()
    }

    /// Starts a part and waits until it is ready.
    pub(crate) fn start(&self, name: &str) -> process::Running {
        process::Running::node(&self.part(name))
    }

    /// The same for a part that was killed: the bus may not have noticed yet that its connection is gone, and
    /// refuse the second one.
    pub(crate) fn start_again(&self, name: &str) -> process::Running {
        let mut again = None;
        until("the part is up again", || {
            let mut part = process::Running::starting_node(&self.part(name));
            let ready = part.gets_ready();
            again = Some(part);
            ready
        });
        again.expect("the last one is ready")
    }

    /// A client command in the site's directory, with the client's settings.
    pub(crate) fn client_command<S: Into<OsString>>(
        &self,
        subcommand: &str,
        args: impl IntoIterator<Item = S>,
    ) -> Vec<OsString> {
        let mut all: Vec<OsString> = vec![
            subcommand.into(),
            "-s".into(),
            self.part("client").into_os_string(),
            "-c".into(),
            "books".into(),
        ];
        all.extend(args.into_iter().map(Into::into));
        all
    }

    /// Runs a client command to its end.
    pub(crate) fn run<S: Into<OsString>>(
        &self,
        subcommand: &str,
        args: impl IntoIterator<Item = S>,
    ) -> Output {
        process::finish(self.prepare(subcommand, args))
    }

    /// Starts a client command that is watched while it works.
    pub(crate) fn start_client<S: Into<OsString>>(
        &self,
        subcommand: &str,
        args: impl IntoIterator<Item = S>,
    ) -> process::Running {
        process::Running::spawn(self.prepare(subcommand, args))
    }

    /// A client command in the site's directory, not started yet.
    pub(crate) fn prepare<S: Into<OsString>>(
        &self,
        subcommand: &str,
        args: impl IntoIterator<Item = S>,
    ) -> Command {
        let mut command = process::pillarbox(self.client_command(subcommand, args));
        command.current_dir(self.path());
        command
    }

    /// Runs a client command that is about no collection to its end.
    pub(crate) fn without_collection(&self, subcommand: &str, args: &[&str]) -> Output {
        let settings = self.part("client");
        let start = [
            OsStr::new(subcommand),
            OsStr::new("-s"),
            settings.as_os_str(),
        ];
        process::run(start.into_iter().chain(args.iter().map(OsStr::new)))
    }

    /// What `alarms list` says, with these further arguments.
    pub(crate) fn alarms_list(&self, args: &[&str]) -> String {
        let settings = self.part("alarms");
        let mut all = vec![
            OsStr::new("alarms"),
            OsStr::new("list"),
            OsStr::new("-s"),
            settings.as_os_str(),
        ];
        all.extend(args.iter().map(OsStr::new));
        process::succeed(&process::run(all))
    }

    /// Files that lie on the site's exchange, or are on their way there.
    pub(crate) fn offered(&self) -> Vec<PathBuf> {
        exchanged(&self.part("hub"))
    }

    /// What a pillar has not finished receiving.
    pub(crate) fn half_received(&self, pillar: &str) -> Vec<PathBuf> {
        files_below(&self.archive(pillar).join("tmpDir"))
    }

    /// Where a FILE pillar's settings put what it archives of `books`.
    pub(crate) fn archive(&self, pillar: &str) -> PathBuf {
        self.part(pillar).join("archive").join("books")
    }
}

fn pillar_table(id: &str, directory: &str) -> String {
    format!(
        r#"
[[pillars]]
id = "{id}"
type = "FILE"
directories = ["{directory}"]
minimum_size_left = "1 MiB"
"#
    )
}

/// Every regular file below a directory.
/// Files that lie on the exchange of a part, or are on their way there; not what it knows of offers that are over.
pub(crate) fn exchanged(part: &Path) -> Vec<PathBuf> {
    let exchange = part.join("var").join("exchange");
    let mut files = files_below(&exchange);
    files.retain(|file| !file.starts_with(exchange.join("over")));
    files
}

pub(crate) fn files_below(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![directory.to_owned()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(&next).into_iter().flatten().flatten() {
            if entry.path().is_dir() {
                open.push(entry.path());
            } else {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    found
}
