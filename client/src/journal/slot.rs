//! One conversation's place in the journal.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::atomic::Ordering,
};

use pillarbox_messages::CorrelationId;

use super::{Entry, Journal, UNFINISHED, frame};

/// One conversation's place in the journal.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    journal: Journal,
    path: PathBuf,
}

impl Slot {
    pub(super) fn new(journal: Journal, correlation: &CorrelationId) -> Self {
        let path = journal.path(correlation);
        Self { journal, path }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the entry in the place of the one before, in one step and for good.
    pub(crate) async fn write(&self, entry: Entry) -> io::Result<()> {
        let slot = self.clone();
        let writing = tokio::task::spawn_blocking(move || slot.write_now(&entry));
        writing.await.unwrap_or_else(|error| Err(error.into()))
    }

    pub(super) fn write_now(&self, entry: &Entry) -> io::Result<()> {
        let bytes = frame::encode(entry)?;
        let mut name = self.path.clone().into_os_string();
        name.push(UNFINISHED);
        let unfinished = PathBuf::from(name);
        let written = write_file(&unfinished, &bytes)
            .and_then(|()| fs::rename(&unfinished, &self.path))
            .and_then(|()| self.journal.shared.handle.sync_all());
        if written.is_err() {
            // The next one to open the journal removes it otherwise.
            let _ = fs::remove_file(&unfinished);
        }
        written
    }

    /// Forgets the conversation. If the disk does not keep up, its end is told once more: no harm.
    pub(crate) fn remove(&self) {
        self.journal.shared.count.fetch_sub(1, Ordering::Relaxed);
        if let Err(error) = fs::remove_file(&self.path)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(path = %self.path.display(), %error, "an operation's entry stays in the journal");
        }
    }
}

/// Checksum keys are nobody else's business.
fn write_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file: File = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(bytes)?;
    file.sync_data()
}
