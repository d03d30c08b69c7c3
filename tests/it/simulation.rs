//! Real pillars and the client's machines, one conversation at a time, with a seed that decides what the network and
//! the machines do: delay, loss, repetition, overtaking, silence, crash.
//!
//! A failing seed is named, with all that happened; `PILLARBOX_TEST_SEED=N` plays it alone.
//! `PILLARBOX_TEST_SEEDS` says how many are played of each operation.

mod agenda;
mod changes;
mod listings;
mod operations;
mod station;
mod world;

use std::{
    collections::BTreeSet,
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::Arc,
};

use pillarbox_bus::{Broker, BrokerOptions};
use pillarbox_client::conversation::Context;
use pillarbox_messages::{
    ComponentId, Destination, FileId, Header, Message, ProtocolVersion, PutFileRequest,
    ResponseCode, clock::SystemClock,
};
use pillarbox_settings::Repository;
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

use self::{
    agenda::Time,
    station::{Station, Surroundings},
    world::{World, checksum},
};
use crate::support::{Random, number_from_environment};

const COLLECTION: &str = "books";
const PILLARS: [&str; 3] = ["north", "south", "west"];
const FILE: &str = "hello.txt";
/// 2020-09-13T12:26:40Z
const BEGINNING_MS: i64 = 1_600_000_000_000;

const REPOSITORY: &str = r#"
[repository]
name = "Simulation"
require = ["checksum-for-new-file", "checksum-for-destructive"]
[bus]
url = "embedded:"
[[collections]]
id = "books"
pillars = ["north", "south", "west"]
"#;

/// Plays all seeds of one operation.
fn play(operation: &str, run: impl AsyncFn(&mut World, u64)) {
    let ground = Ground::open();
    let seeds = seeds();
    let mut tally = Tally::default();
    for &seed in &seeds {
        tally.add(&ground.play(operation, seed, &run));
    }
    println!("{operation}: {} seeds, {tally:?}", seeds.len());
    if seeds.len() >= ENOUGH_SEEDS {
        tally.covers(operation);
    }
}

/// What all runs together have been through.
#[derive(Debug, Default)]
struct Tally {
    complete: u64,
    failed: u64,
    crashes: u64,
    repeated: u64,
}

impl Tally {
    fn add(&mut self, world: &World) {
        match operations::is_complete(world) {
            true => self.complete += 1,
            false => self.failed += 1,
        }
        self.crashes += world.crashes;
        self.repeated += world.repeated;
    }

    /// A simulation in which nothing goes wrong, or nothing right, shows nothing.
    fn covers(&self, operation: &str) {
        let runs = self.complete + self.failed;
        assert!(self.complete * 10 > runs, "{operation}: {self:?}");
        assert!(self.failed * 20 > runs, "{operation}: {self:?}");
        assert!(self.crashes * 20 > runs, "{operation}: {self:?}");
    }
}

fn seeds() -> Vec<u64> {
    if let Ok(seed) = std::env::var("PILLARBOX_TEST_SEED") {
        return vec![seed.parse().expect("PILLARBOX_TEST_SEED is no number")];
    }
    let count = number_from_environment("PILLARBOX_TEST_SEEDS", 500);
    (0..count as u64).collect()
}

/// What all runs of one operation share.
struct Ground {
    directory: TempDir,
    repository: Arc<Repository>,
    broker: Broker,
    runtime: Runtime,
}

impl Ground {
    fn open() -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let directory = tempfile::tempdir_in(fast_directory()).unwrap();
        let repository = Arc::new(Repository::from_toml_str(REPOSITORY, "simulation").unwrap());
        let mut options = BrokerOptions::new(directory.path().join("bus"), SystemClock::shared());
        options.destinations = repository.bus_destinations();
        let broker = runtime.block_on(Broker::open(options)).unwrap();
        Self {
            directory,
            repository,
            broker,
            runtime,
        }
    }

    fn play(&self, operation: &str, seed: u64, run: &impl AsyncFn(&mut World, u64)) -> World {
        let mut world = self.runtime.block_on(self.world(seed));
        let played = catch_unwind(AssertUnwindSafe(|| {
            self.runtime.block_on(run(&mut world, seed));
        }));
        self.runtime.block_on(world.close());
        assert!(
            played.is_ok(),
            "{operation}, seed {seed} (PILLARBOX_TEST_SEED={seed} plays it alone):\n{}",
            world.log.join("\n")
        );
        fs::remove_dir_all(&world.around.directory).unwrap();
        world
    }

    async fn world(&self, seed: u64) -> World {
        let time = Arc::new(Time::new(BEGINNING_MS));
        let around = Surroundings {
            broker: self.broker.clone(),
            repository: Arc::clone(&self.repository),
            clock: Arc::clone(&time) as _,
            directory: self.directory.path().join("run"),
        };
        fs::create_dir_all(around.exchange()).unwrap();
        let mut stations = Vec::new();
        for name in PILLARS {
            stations.push(Station::open(name, &around).await);
        }
        World::new(around, time, Random::new(seed), stations)
    }
}

/// The kernel loses nothing when a process goes away, so memory will do where there is a file system of it.
fn fast_directory() -> PathBuf {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() {
        memory.to_owned()
    } else {
        std::env::temp_dir()
    }
}

/// The one conversation of a run, with these pillars.
fn context(pillars: &[&str], file: Option<&str>) -> Context {
    Context {
        correlation: "conversation".into(),
        collection: Some(COLLECTION.into()),
        file: file.map(FileId::from),
        from: "client".into(),
        reply_to: destination("topic://books.client.client"),
        identify_at: vec![destination("topic://books")],
        expected: pillars
            .iter()
            .copied()
            .map(ComponentId::from)
            .collect::<BTreeSet<_>>(),
        identification_timeout_ms: 10_000,
        operation_timeout_ms: 60_000,
        conversation_timeout_ms: 0,
        extend_on_progress: false,
    }
}

fn destination(text: &str) -> Destination {
    text.parse().unwrap()
}

/// Stores a file at a pillar, before the conversation begins.
async fn stored(world: &World, station: usize, file: &str, content: &[u8]) {
    let code = put_by_another(world, station, file, content).await;
    assert_eq!(code, Some(ResponseCode::OperationCompleted));
}

/// A put by another client; gives the final response's code.
async fn put_by_another(
    world: &World,
    station: usize,
    file: &str,
    content: &[u8],
) -> Option<ResponseCode> {
    let name = format!("by-another-{file}");
    fs::write(world.around.exchange().join(&name), content).unwrap();
    let pillar: ComponentId = PILLARS[station].into();
    let request = PutFileRequest {
        header: Header {
            version: ProtocolVersion::CURRENT,
            correlation_id: format!("by-another-{file}").as_str().into(),
            collection_id: Some(COLLECTION.into()),
            destination: destination("queue://books.north"),
            reply_to: destination("topic://books.client.client"),
            from: "another".into(),
            to: None,
        },
        audit_trail_information: None,
        pillar_id: Some(pillar),
        file_id: file.into(),
        file_address: world.around.address(&name),
        file_size: Some(content.len() as u64),
        checksum_data_for_new_file: Some(checksum(content)),
        checksum_request_for_new_file: None,
    };
    let responses = world.stations[station].answer(&request.into()).await;
    let last = responses.last().and_then(Message::response_info);
    last.map(|info| info.response_code)
}

#[test]
fn a_seed_plays_the_same_every_time() {
    let ground = Ground::open();
    for seed in 0..20 {
        let first = ground.play("put", seed, &operations::put).log;
        let second = ground.play("put", seed, &operations::put).log;
        assert_eq!(first, second, "seed {seed}");
    }
}

/// With fewer seeds than this, chance decides what they cover.
const ENOUGH_SEEDS: usize = 200;
