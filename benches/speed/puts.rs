//! Puts of 1 KiB to three FILE pillars in one process, against a bare loop that does the same to the disk.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    process::Command,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use crate::{
    bare::Bare,
    rounds::{compare, median, speed, timed},
    site::{Inside, Site},
};

/// The argument by which this program is run again to have its syncs counted.
pub(crate) const COUNTED: &str = "counted-puts";

const CONTENT: [u8; 1024] = [b'x'; 1024];
/// As long as a `PutFileRequest`.
const MESSAGE: [u8; 1200] = [b'm'; 1200];
const PUTS_PER_ROUND: usize = 96;

pub(crate) fn run() {
    for clients in [1, 8] {
        let runtime = runtime();
        let site = Site::new(&["north", "south", "west"], true);
        let source = site.path("source");
        fs::write(&source, CONTENT).unwrap();
        let settings = settings(&site);
        let inside = runtime.block_on(Inside::start(&settings));
        let bare = Bare::new(&site.path("bare"));
        let next = AtomicUsize::new(0);
        let (peer, ours) = compare(
            || bare_puts(&bare, clients, &next),
            || timed(|| runtime.block_on(our_puts(&inside, &source, clients, &next))),
        );
        let puts = u32::try_from(PUTS_PER_ROUND).unwrap();
        let what = format!("put of 1 KiB to 3 pillars, {clients} at once");
        speed(&what, peer / puts, ours / puts, "at least 0.6");
        runtime.block_on(inside.stop());
    }
    tell_stages();
    count_syncs();
}

/// Where the time of a single put goes, stage by stage.
fn tell_stages() {
    let runtime = runtime();
    let site = Site::new(&["north", "south", "west"], true);
    let source = site.path("source");
    fs::write(&source, CONTENT).unwrap();
    let settings = settings(&site);
    let mut stages: BTreeMap<(usize, &'static str), Vec<Duration>> = BTreeMap::new();
    runtime.block_on(async {
        let inside = Inside::start(&settings).await;
        for n in 0..PUTS_PER_ROUND {
            let events = inside.put_watched(&format!("file-{n}"), &source).await;
            for (place, (event, took)) in events.into_iter().enumerate() {
                stages.entry((place, event)).or_default().push(took);
            }
        }
        inside.stop().await;
    });
    println!("a single put, median time of each stage up to its event:");
    for ((_, event), mut times) in stages {
        if times.len() * 2 > PUTS_PER_ROUND {
            println!(
                "  {event:<24} {:>8.3} ms",
                median(&mut times).as_secs_f64() * 1000.0
            );
        }
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap()
}

fn settings(site: &Site) -> std::path::PathBuf {
    site.settings(
        "up",
        &format!("{}{}", site.pillar_roles(), site.exchange_role()),
    )
}

fn bare_puts(bare: &Bare, clients: usize, next: &AtomicUsize) -> Duration {
    timed(|| {
        std::thread::scope(|scope| {
            for _ in 0..clients {
                scope.spawn(|| {
                    for _ in 0..PUTS_PER_ROUND / clients {
                        let name = format!("file-{}", next.fetch_add(1, Ordering::Relaxed));
                        bare.put(&name, &CONTENT, &MESSAGE);
                    }
                });
            }
        });
    })
}

async fn our_puts(inside: &Inside, source: &Path, clients: usize, next: &AtomicUsize) {
    let client = || async {
        for _ in 0..PUTS_PER_ROUND / clients {
            let name = format!("file-{}", next.fetch_add(1, Ordering::Relaxed));
            inside.put(&name, source).await;
        }
    };
    futures_util::future::join_all((0..clients).map(|_| client())).await;
}

/// Puts so many files; for the tracer.
pub(crate) fn put_some(count: usize) {
    let runtime = runtime();
    let site = Site::new(&["north", "south", "west"], true);
    let source = site.path("source");
    fs::write(&source, CONTENT).unwrap();
    let settings = settings(&site);
    runtime.block_on(async {
        let inside = Inside::start(&settings).await;
        for n in 0..count {
            inside.put(&format!("file-{n}"), &source).await;
        }
        inside.stop().await;
    });
}

/// Counts syncs with a tracer, as the system sees them.
fn count_syncs() {
    let Some((few, many)) = syncs_of(10).zip(syncs_of(110)) else {
        println!("syncs per put: not counted, there is no strace here");
        return;
    };
    println!(
        "syncs per put of 1 KiB to 3 pillars, one at a time: {:.2}",
        (many - few) / 100.0
    );
}

fn syncs_of(puts: usize) -> Option<f64> {
    let report = tempfile::NamedTempFile::new().unwrap();
    let status = Command::new("strace")
        .args([
            "-f",
            "-c",
            "-e",
            "trace=fsync,fdatasync,sync_file_range",
            "-o",
        ])
        .arg(report.path())
        .arg(std::env::current_exe().unwrap())
        .args([COUNTED, &puts.to_string()])
        .status()
        .ok()?;
    assert!(status.success(), "the traced run ends well");
    let text = fs::read_to_string(report.path()).unwrap();
    let calls = |line: &str| -> Option<f64> {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let named = fields
            .last()
            .is_some_and(|name| name.starts_with('f') && name.contains("sync"));
        named.then(|| fields[3].parse().unwrap())
    };
    Some(text.lines().filter_map(calls).sum())
}
