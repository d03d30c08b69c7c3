//! What the disk can do, without any bus.

use std::{
    fs::{File, OpenOptions},
    os::unix::fs::FileExt,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use tokio::sync::{mpsc, oneshot};

use crate::rounds::timed;

/// The length of a file, in bytes; written over from the start when it is full.
const LENGTH: u64 = 64 << 20;

/// A file whose blocks are all there.
fn file(directory: &Path) -> File {
    let mut options = OpenOptions::new();
    let file = options
        .create_new(true)
        .write(true)
        .open(directory.join("probe"))
        .unwrap();
    file.write_all_at(&vec![0; usize::try_from(LENGTH).unwrap()], 0)
        .unwrap();
    file.sync_all().unwrap();
    file
}

/// Writes one after the other, each with a sync.
pub(super) struct SyncProbe {
    file: File,
    bytes: Vec<u8>,
    offset: u64,
}

impl SyncProbe {
    /// Each writes so many bytes.
    pub(super) fn new(directory: &Path, bytes: usize) -> Self {
        Self {
            file: file(directory),
            bytes: vec![b'x'; bytes],
            offset: 0,
        }
    }

    /// How long each of so many takes.
    pub(super) fn several(&mut self, count: usize) -> Vec<Duration> {
        (0..count).map(|_| timed(|| self.once())).collect()
    }

    fn once(&mut self) {
        self.file.write_all_at(&self.bytes, self.offset).unwrap();
        self.file.sync_data().unwrap();
        self.offset = (self.offset + self.bytes.len() as u64) % (LENGTH / 2);
    }
}

/// A record, and whom to tell that it is on the disk.
type Job = (Vec<u8>, oneshot::Sender<()>);

/// A log and nothing else: a thread writes what has gathered while it synced what came before.
pub(super) struct GroupLog {
    handle: Handle,
    syncs: Arc<AtomicUsize>,
}

#[derive(Clone)]
pub(super) struct Handle(mpsc::Sender<Job>);

impl GroupLog {
    pub(super) fn start(directory: &Path) -> Self {
        let (sender, jobs) = mpsc::channel(1024);
        let syncs = Arc::new(AtomicUsize::new(0));
        let (file, counted) = (file(directory), Arc::clone(&syncs));
        thread::spawn(move || write_groups(&file, jobs, &counted));
        Self {
            handle: Handle(sender),
            syncs,
        }
    }

    pub(super) fn handle(&self) -> Handle {
        self.handle.clone()
    }

    pub(super) fn syncs(&self) -> usize {
        self.syncs.load(Ordering::Relaxed)
    }
}

impl Handle {
    /// Returns when the record is on the disk.
    pub(super) async fn append(&self, record: Vec<u8>) {
        let (answer, done) = oneshot::channel();
        assert!(self.0.send((record, answer)).await.is_ok());
        done.await.unwrap();
    }
}

fn write_groups(file: &File, mut jobs: mpsc::Receiver<Job>, syncs: &AtomicUsize) {
    let mut offset = 0;
    while let Some(first) = jobs.blocking_recv() {
        let mut group = vec![first];
        group.extend(std::iter::from_fn(|| jobs.try_recv().ok()));
        let bytes: Vec<u8> = group
            .iter()
            .flat_map(|(record, _)| record)
            .copied()
            .collect();
        if offset + bytes.len() as u64 > LENGTH {
            offset = 0;
        }
        file.write_all_at(&bytes, offset).unwrap();
        file.sync_data().unwrap();
        syncs.fetch_add(1, Ordering::Relaxed);
        offset += bytes.len() as u64;
        for (_, answer) in group {
            let _ = answer.send(());
        }
    }
}
