//! Computing old checksums again, against `md5sum` over the same files, and against the pace that was told.

use std::{
    fs,
    num::NonZeroU64,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use pillarbox_bus::{Broker, BrokerOptions, Bus, ConnectOptions};
use pillarbox_exchange::{AddressPolicy, ClientOptions, ExchangeClient};
use pillarbox_messages::clock::{Clock, SystemClock};
use pillarbox_pillar::{
    Pillar, PillarOptions,
    workers::{Activity, WorkerStatus},
};
use pillarbox_settings::{Node, Pace, Repository};
use tokio::runtime::Runtime;

use crate::rounds::{ROUNDS, compare, duration, median, timed};

pub(crate) fn run() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    for (count, size) in [(256, 2 << 20), (10_000, 10 << 10)] {
        let archive = Archive::new(count, size);
        let aging = runtime.block_on(archive.start(Pace::UNLIMITED));
        let (peer, ours) = compare(|| md5sum(&archive.files), || aging.round(&runtime));
        let what = format!("recheck of {count} files of {} KiB", size >> 10);
        duration(&what, peer, ours, "at most 1.5");
    }
    let archive = Archive::new(PACED_FILES, PACED_SIZE);
    let aging = runtime.block_on(archive.start(Pace(NonZeroU64::new(PACE))));
    let mut ours: Vec<_> = (0..ROUNDS / 2).map(|_| aging.round(&runtime)).collect();
    let told = Duration::from_secs(PACED_FILES as u64 * PACED_SIZE as u64 / PACE);
    let what = format!("recheck told to read {} MiB each second", PACE >> 20);
    duration(&what, told, median(&mut ours), "0.9 to 1.1");
}

/// A directory with files that a pillar takes over.
struct Archive {
    directory: tempfile::TempDir,
    files: Vec<PathBuf>,
}

impl Archive {
    fn new(count: usize, size: usize) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("archive/books/fileDir");
        fs::create_dir_all(&place).unwrap();
        let files = (0..count).map(|number| {
            let path = place.join(format!("file-{number:05}"));
            let content = number.to_le_bytes().repeat(size / 8);
            fs::write(&path, content).unwrap();
            path
        });
        let files = files.collect();
        Self { directory, files }
    }

    /// A pillar on a bus of its own, once it knows all files.
    async fn start(&self, pace: Pace) -> Aging {
        let text = "[repository]\nname = \"Bench\"\n[bus]\nurl = \"embedded:\"\n[[collections]]\nid = \"books\"\n\
                    pillars = [\"north\"]\n";
        let repository = Arc::new(Repository::from_toml_str(text, "bench").unwrap());
        let clock = Arc::new(Later::default());
        let mut broker = BrokerOptions::new(self.directory.path().join("bus"), clock.clone());
        broker.destinations = repository.bus_destinations();
        let client_id = "north".to_owned();
        let broker = Broker::open(broker).await.unwrap();
        let pillar = PillarOptions {
            settings: settings(&self.directory.path().join("archive"), pace),
            repository,
            bus: Bus::embedded(&broker, ConnectOptions { client_id }).unwrap(),
            exchange: ExchangeClient::new(&ClientOptions::new(AddressPolicy::default())).unwrap(),
            data: self.directory.path().join("data"),
            clock: clock.clone(),
        };
        let pillar = Pillar::start(pillar).await.unwrap();
        let aging = Aging {
            pillar,
            clock,
            files: self.files.len(),
            _broker: broker,
        };
        while aging.status("reconcile").last_end_ms.is_none() {
            tokio::time::sleep(LOOK).await;
        }
        aging
    }
}

fn settings(archive: &Path, pace: Pace) -> pillarbox_settings::PillarNode {
    let node = format!(
        "[[pillars]]\nid = \"north\"\ndirectories = [{archive:?}]\nminimum_size_left = \"0\"\n\
         max_age_for_checksums = \"10d\"\nrecheck_interval = \"300ms\"\nreconcile_pace = \"unlimited\"\n\
         first_audit_number = 1\n"
    );
    let mut node = Node::from_toml_str(&node, "bench").unwrap();
    let mut pillar = node.pillars.remove(0);
    pillar.recheck.pace = pace;
    pillar
}

/// A pillar whose checksums are all old whenever that is wanted.
struct Aging {
    pillar: Pillar,
    clock: Arc<Later>,
    files: usize,
    _broker: Broker,
}

impl Aging {
    fn status(&self, worker: &str) -> WorkerStatus {
        let statuses = self.pillar.workers();
        statuses.into_iter().find(|it| it.name == worker).unwrap()
    }

    /// How long it takes to compute all checksums again: the turn of the worker that does it.
    fn round(&self, runtime: &Runtime) -> Duration {
        runtime.block_on(async {
            self.clock.0.fetch_add(11 * 86_400_000, Ordering::SeqCst);
            let all = format!("books: {} files ", self.files);
            let mut begun = 0;
            loop {
                let status = self.status("recheck");
                match status.activity {
                    Activity::Working => begun = status.since_ms,
                    Activity::Resting if begun > 0 && status.progress.starts_with(&all) => {
                        let took = status.last_end_ms.unwrap() - begun;
                        return Duration::from_millis(u64::try_from(took).unwrap());
                    }
                    Activity::Resting => {}
                }
                tokio::time::sleep(LOOK).await;
            }
        })
    }
}

/// The system's time, and what was added to it.
#[derive(Debug, Default)]
struct Later(AtomicI64);

impl Clock for Later {
    fn now(&self) -> chrono::DateTime<chrono::Utc> {
        SystemClock.now() + chrono::TimeDelta::milliseconds(self.0.load(Ordering::SeqCst))
    }
}

fn md5sum(files: &[PathBuf]) -> Duration {
    timed(|| {
        let mut md5sum = Command::new("md5sum");
        let ended = md5sum.args(files).stdout(Stdio::null()).status();
        assert!(ended.expect("starts").success());
    })
}

const LOOK: Duration = Duration::from_millis(1);
const PACE: u64 = 32 << 20;
const PACED_FILES: usize = 128;
const PACED_SIZE: usize = 1 << 20;
