//! One file of 1 GiB to one FILE pillar, with client, exchange and pillar in processes of their own, against
//! copying it twice, summing it once and syncing it. `PILLARBOX_BENCH_MIB` changes the size.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io::Write as _,
    path::Path,
    process::{Child, Command},
    time::Duration,
};

use crate::{
    rounds::{compare, duration, timed},
    site::{Outside, Site, command, peak_memory},
};

pub(crate) fn run() {
    let mib: usize =
        std::env::var("PILLARBOX_BENCH_MIB").map_or(1024, |text| text.parse().expect("a number"));
    let site = Site::new(&["north"], false);
    let source = site.path("source");
    write_source(&source, mib);
    let hub = Outside::node(&site.settings("hub", &(site.bus_role() + &site.exchange_role())));
    let pillar = Outside::node(&site.settings("north", &site.pillar_role("north")));
    let client = site.settings("client", "");
    let (mut next, mut client_memory) = (0, 0);
    let (peer, ours) = compare(
        || copies(&source, site.directory.path()),
        || {
            next += 1;
            let id = format!("large-{next}");
            let took = timed(|| client_memory = client_memory.max(put(&client, &source, &id)));
            // The disk would fill up; the next round's copies are not to wait for this one's.
            let archived = site.path("north/archive/north/books/fileDir").join(&id);
            fs::remove_file(archived).unwrap();
            took
        },
    );
    duration(
        &format!("put of {mib} MiB, separate processes"),
        peer,
        ours,
        "at most 1.5",
    );
    println!(
        "resident memory at its highest: client {client_memory} MiB, bus and exchange {} MiB, pillar {} MiB (wanted: under 64)",
        hub.peak_memory(),
        pillar.peak_memory()
    );
}

/// Bytes that no file system stores in less space.
fn write_source(path: &Path, mib: usize) {
    let mut file = File::create(path).unwrap();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut block = Vec::with_capacity(1 << 20);
    for _ in 0..mib {
        block.clear();
        while block.len() < 1 << 20 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            block.extend_from_slice(&state.to_le_bytes());
        }
        file.write_all(&block).unwrap();
    }
    file.sync_all().unwrap();
}

fn copies(source: &Path, directory: &Path) -> Duration {
    let (first, second) = (directory.join("copy-1"), directory.join("copy-2"));
    let took = timed(|| {
        shell("cp", &[source.as_os_str(), first.as_os_str()]);
        shell("cp", &[first.as_os_str(), second.as_os_str()]);
        shell("md5sum", &[second.as_os_str()]);
        File::open(&second).unwrap().sync_all().unwrap();
    });
    fs::remove_file(first).unwrap();
    fs::remove_file(second).unwrap();
    took
}

fn shell(program: &str, args: &[&OsStr]) {
    let output = Command::new(program).args(args).output().expect("starts");
    assert!(output.status.success(), "{program} ends well");
}

/// Puts the file and gives the client's memory at its highest.
fn put(client: &Path, source: &Path, id: &str) -> u64 {
    let args = [
        OsStr::new("-f"),
        source.as_os_str(),
        OsStr::new("-i"),
        OsStr::new(id),
    ];
    let child = command(client, "put-file", &args);
    watch(child)
}

fn watch(mut child: Child) -> u64 {
    let mut memory = 0;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success(), "the put succeeds");
            return memory;
        }
        if fs::read_to_string(format!("/proc/{}/status", child.id()))
            .is_ok_and(|status| status.contains("VmHWM"))
        {
            memory = memory.max(peak_memory(child.id()));
        }
        std::thread::park_timeout(Duration::from_millis(20));
    }
}
