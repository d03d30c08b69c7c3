//! Thousands of operations on one repository: nothing that serves them grows with their number, but what must.
//!
//! `PILLARBOX_TEST_SOAK` says how many operations; 200,000 take an hour.

mod life;
mod usage;

use std::{fs, path::Path, sync::Arc, time::Instant};

use futures_util::{StreamExt as _, stream};
use pillarbox::node::exchange_client;
use pillarbox_bus::{Bus, ConnectOptions, StompOptions};
use pillarbox_client::{Client, ClientOptions, passing_id};
use pillarbox_messages::clock::SystemClock;
use pillarbox_settings::ZonelessDates;

use self::{
    life::{Life, OPERATIONS_OF_A_LIFE},
    usage::{History, Usage},
};
use crate::support::{
    PATIENCE, number_from_environment,
    process::{Running, pillarbox},
    site::{Site, files_below},
    whole::NO_FILES,
};

const PILLARS: [&str; 2] = ["north", "south"];
/// Lives between two looks at what the processes use.
const LIVES_OF_A_BATCH: usize = 10;
/// Lives at once.
const AT_ONCE: usize = 4;

/// One process for the bus and the exchange, and one for each pillar.
struct Ground {
    site: Site,
    parts: Vec<(&'static str, Running)>,
}

impl Ground {
    fn start() -> Self {
        let site = Site::new(&PILLARS);
        let parts = ["hub"].into_iter().chain(PILLARS);
        let parts = parts.map(|part| (part, quiet_node(&site, part))).collect();
        Self { site, parts }
    }

    fn usage(&self) -> Vec<Usage> {
        let parts = self.parts.iter();
        parts
            .map(|(part, process)| Usage::of(process.id(), &self.site.part(part)))
            .collect()
    }

    /// Those first that need another.
    fn stop(self) {
        for (part, mut process) in self.parts.into_iter().rev() {
            process.terminate();
            process.wait_for_success();
            let errors = process.errors();
            assert!(errors.is_empty(), "{part}: {errors:#?}");
        }
    }
}

/// A node that says nothing of what goes well: it would be the test that grows.
fn quiet_node(site: &Site, part: &str) -> Running {
    let settings = site.part(part);
    let mut command = pillarbox(["node".as_ref(), "-s".as_ref(), settings.as_os_str()]);
    command.env("PILLARBOX_LOG", "warn");
    // One heap: what is free in others depends on which threads happen to meet.
    command.env("MALLOC_ARENA_MAX", "1");
    let mut node = Running::spawn(command);
    node.wait_for("ready");
    node
}

/// So many files live and die.
async fn batch_of_lives(site: &Site, first: usize) {
    let (client, bus) = passing_client(site).await;
    let lives = (first..first + LIVES_OF_A_BATCH)
        .map(|number| Life::new(&client, site.path(), number).live());
    stream::iter(lives)
        .buffer_unordered(AT_ONCE)
        .collect::<()>()
        .await;
    client.close().await;
    bus.close().await.expect("was open");
    for pillar in PILLARS {
        clear_up(&site.archive(pillar));
    }
}

/// A client as each command is one.
async fn passing_client(site: &Site) -> (Client, Bus) {
    let (repository, node) = pillarbox_settings::load(&site.part("client")).expect("good settings");
    let id = passing_id();
    let connect = ConnectOptions {
        client_id: id.as_str().to_owned(),
    };
    let address = format!("127.0.0.1:{}", site.bus_port);
    let bus = Bus::stomp(StompOptions::new(address), connect);
    bus.ready(PATIENCE).await.expect("the bus is there");
    let client = Client::connect(ClientOptions {
        bus: bus.clone(),
        exchange: exchange_client(&repository, &node).expect("an exchange client"),
        exchange_base: node.exchange_base(&repository).map(str::to_owned),
        repository: Arc::new(repository),
        id,
        named: false,
        journal: None,
        sla: None,
        clock: SystemClock::shared(),
        timeouts: None,
        extend_on_progress: false,
        zoneless: ZonelessDates::default(),
    });
    (client.expect("a client"), bus)
}

/// Removes the files that an archive keeps of what was replaced and deleted, as people do who want the room;
/// nothing else may be left of the lives.
fn clear_up(archive: &Path) {
    for retained in files_below(&archive.join("retainDir")) {
        fs::remove_file(retained).expect("is there");
    }
    assert_eq!(files_below(archive), NO_FILES);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_serves_operations_does_not_grow_with_their_number() {
    let operations = number_from_environment("PILLARBOX_TEST_SOAK", 2_000);
    let batches = operations.div_ceil(OPERATIONS_OF_A_LIFE * LIVES_OF_A_BATCH);
    let ground = Ground::start();
    let begin = Instant::now();
    let mut histories: Vec<_> = ground.parts.iter().map(|_| History::default()).collect();
    for batch in 0..batches {
        batch_of_lives(&ground.site, batch * LIVES_OF_A_BATCH).await;
        for (history, usage) in histories.iter_mut().zip(ground.usage()) {
            history.add(usage);
        }
    }
    let took = begin.elapsed();
    eprintln!("{operations} operations in {took:?}");
    for ((part, _), history) in ground.parts.iter().zip(&histories) {
        eprintln!("{part}: {history}");
    }
    for ((part, _), history) in ground.parts.iter().zip(&histories) {
        history.assert_flat(part);
    }
    ground.stop();
}
