//! Repositories to measure: settings in a temporary directory, nodes in this process or in others.

use std::{
    ffi::OsStr,
    fs,
    io::{BufRead, BufReader},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use pillarbox::node::{RunningNode, exchange_client};
use pillarbox_client::{Client, ClientOptions, PutFile, Source};
use pillarbox_messages::clock::SystemClock;
use pillarbox_settings::ZonelessDates;

/// A port on which nobody listens.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0")
        .expect("a port")
        .local_addr()
        .expect("bound")
        .port()
}

/// Settings directories of one repository.
pub(crate) struct Site {
    pub(crate) directory: tempfile::TempDir,
    pillars: Vec<&'static str>,
    bus: String,
    bus_port: u16,
    exchange_port: u16,
    /// The table `[destinations]`, if it is not left out.
    destinations: String,
}

impl Site {
    pub(crate) fn new(pillars: &[&'static str], embedded: bool) -> Self {
        let bus_port = free_port();
        let bus = if embedded {
            "embedded:".to_owned()
        } else {
            format!("stomp://127.0.0.1:{bus_port}")
        };
        Self {
            directory: tempfile::tempdir().expect("a temporary directory"),
            pillars: pillars.to_vec(),
            bus,
            bus_port,
            exchange_port: free_port(),
            destinations: String::new(),
        }
    }

    /// On a broker that others use too: with the Java system's names, after this base.
    pub(crate) fn at(pillars: &[&'static str], port: u16, base: &str) -> Self {
        Self {
            bus: format!("stomp://127.0.0.1:{port}"),
            bus_port: port,
            destinations: format!(
                "[destinations]\nscheme = \"reference\"\nbase = \"topic://{base}\"\nalarm_destination = \"topic://{base}.alarms\"\n"
            ),
            ..Self::new(pillars, true)
        }
    }

    /// Where the bus of [`Site::bus_role`] speaks STOMP.
    pub(crate) const fn bus_port(&self) -> u16 {
        self.bus_port
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Writes a settings directory whose node plays these roles.
    pub(crate) fn settings(&self, name: &str, roles: &str) -> PathBuf {
        let directory = self.path(name);
        fs::create_dir_all(&directory).expect("made");
        let repository = format!(
            "[repository]\nname = \"Bench\"\n[bus]\nurl = \"{}\"\n{}[[collections]]\nid = \"books\"\npillars = [\"{}\"]\n",
            self.bus,
            self.destinations,
            self.pillars.join("\", \"")
        );
        fs::write(directory.join("repository.toml"), repository).expect("written");
        let exchange = format!("http://127.0.0.1:{}/", self.exchange_port);
        let common = format!(
            "data = \"var\"\n[client]\nexchange = \"{exchange}\"\n[exchange]\nhosts = [\"127.0.0.1:{}\"]\n",
            self.exchange_port
        );
        fs::write(directory.join("node.toml"), common + roles).expect("written");
        directory
    }

    pub(crate) fn pillar_role(&self, pillar: &str) -> String {
        format!(
            "[[pillars]]\nid = \"{pillar}\"\ntype = \"FILE\"\ndirectories = [\"archive/{pillar}\"]\nminimum_size_left = \"1 MiB\"\n"
        )
    }

    pub(crate) fn pillar_roles(&self) -> String {
        self.pillars
            .iter()
            .map(|pillar| self.pillar_role(pillar))
            .collect()
    }

    pub(crate) fn exchange_role(&self) -> String {
        format!(
            "[exchange_server]\nlisten = \"127.0.0.1:{0}\"\npublic_url = \"http://127.0.0.1:{0}/\"\n",
            self.exchange_port
        )
    }

    pub(crate) fn bus_role(&self) -> String {
        format!("[bus_server]\nlisten = [\"127.0.0.1:{}\"]\n", self.bus_port)
    }
}

/// A node of this process, with a client.
pub(crate) struct Inside {
    pub(crate) node: RunningNode,
    pub(crate) client: Client,
}

impl Inside {
    pub(crate) async fn start(settings: &Path) -> Self {
        let (repository, node) = pillarbox_settings::load(settings).expect("settings");
        let repository = Arc::new(repository);
        let running = RunningNode::start(Arc::clone(&repository), &node, settings)
            .await
            .expect("starts");
        let id = pillarbox_client::passing_id();
        let client = Client::connect(ClientOptions {
            bus: running.connect(&id).expect("connects"),
            exchange: exchange_client(&repository, &node).expect("an exchange client"),
            exchange_base: node.exchange_base(&repository).map(str::to_owned),
            repository,
            id,
            named: false,
            journal: None,
            sla: None,
            clock: SystemClock::shared(),
            timeouts: None,
            extend_on_progress: false,
            zoneless: ZonelessDates::default(),
        })
        .expect("a client");
        Self {
            node: running,
            client,
        }
    }

    /// Puts a file; it must succeed.
    pub(crate) async fn put(&self, file_id: &str, path: &Path) {
        let source = Source::Path(path.to_owned());
        let put = PutFile::new("books".into(), file_id.into(), source);
        let outcome = self
            .client
            .put_file(put)
            .await
            .expect("starts")
            .outcome()
            .await;
        assert!(outcome.complete, "{}", outcome.last_event);
    }

    /// Puts a file, and tells how long each stage took, by the event that ended it; several events of one kind in
    /// a row are one stage.
    pub(crate) async fn put_watched(
        &self,
        file_id: &str,
        path: &Path,
    ) -> Vec<(&'static str, Duration)> {
        let mut stages: Vec<(&'static str, Duration)> = Vec::new();
        let mut last = Instant::now();
        let put = PutFile::new(
            "books".into(),
            file_id.into(),
            Source::Path(path.to_owned()),
        );
        let mut running = self.client.put_file(put).await.expect("starts");
        while let Some(event) = running.next_event().await {
            let (name, took) = (event.kind.name(), last.elapsed());
            last = Instant::now();
            match stages.last_mut() {
                Some((same, total)) if *same == name => *total += took,
                _ => stages.push((name, took)),
            }
        }
        assert!(running.outcome().await.complete, "the put succeeds");
        stages.push(("cleaned up", last.elapsed()));
        stages
    }

    pub(crate) async fn stop(self) {
        self.client.close().await;
        self.node.shutdown(Duration::from_secs(5)).await;
    }
}

/// A node in a process of its own, killed when dropped.
pub(crate) struct Outside(Child);

impl Outside {
    pub(crate) fn node(settings: &Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_pillarbox"))
            .args([OsStr::new("node"), OsStr::new("-s"), settings.as_os_str()])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("starts");
        let output = BufReader::new(child.stdout.take().expect("piped"));
        assert!(
            output
                .lines()
                .map_while(Result::ok)
                .any(|line| line.contains("ready")),
            "ready"
        );
        Self(child)
    }

    /// The process.
    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }

    /// Resident memory at its highest, in MiB.
    pub(crate) fn peak_memory(&self) -> u64 {
        peak_memory(self.0.id())
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(crate) fn peak_memory(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("a live process");
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .expect("a line VmHWM");
    let kib: u64 = line
        .split_whitespace()
        .nth(1)
        .expect("a number")
        .parse()
        .expect("a number");
    kib / 1024
}

/// What a process has had of the processors so far; in steps of 10 ms.
pub(crate) fn processor_time(pid: u32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("a live process");
    let (_, fields) = stat.rsplit_once(')').expect("the name in parentheses");
    // utime and stime, fields 14 and 15 of proc_pid_stat(5).
    let ticks: u64 = fields
        .split_whitespace()
        .skip(11)
        .take(2)
        .map(|field| field.parse::<u64>().expect("a number"))
        .sum();
    Duration::from_millis(ticks * 10)
}

/// A client command in a process of its own; it must succeed.
pub(crate) fn command(settings: &Path, subcommand: &str, args: &[&OsStr]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_pillarbox"))
        .args([
            OsStr::new(subcommand),
            OsStr::new("-s"),
            settings.as_os_str(),
        ])
        .args([OsStr::new("-c"), OsStr::new("books")])
        .args(args)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts")
}
