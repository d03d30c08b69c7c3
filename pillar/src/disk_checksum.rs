//! Checksums computed from the bytes on disk, now.

use std::{
    io::{self, Read},
    slice,
};

use pillarbox_messages::{FileId, HexBinary};
use tokio::sync::oneshot;

use crate::{
    archive::StoredFile,
    context::Context,
    digests::{Checksums, Spec},
    noticing::Seen,
    refusal::Refusal,
};

/// A file that was read to its end, and its checksums.
#[derive(Clone, Debug)]
pub(crate) struct Computed {
    sums: Checksums,
    /// What it is by the default checksum.
    pub(crate) seen: Seen,
    /// Its size in bytes when it was opened.
    pub(crate) size: u64,
}

impl Computed {
    /// The checksum by one of the specs that were asked for.
    pub(crate) fn value(&self, spec: &Spec) -> Result<HexBinary, Refusal> {
        value(&self.sums, spec)
    }
}

/// Reads an archived file that has been opened, once, for its checksums by `specs` and by the default one. Reading
/// ends when the future is dropped.
pub(crate) async fn compute(
    context: &Context,
    file_id: &FileId,
    stored: StoredFile,
    specs: &[Spec],
) -> Result<Computed, Refusal> {
    let default = &context.default_spec;
    let all = [specs, slice::from_ref(default)].concat();
    let StoredFile {
        file,
        size,
        identity,
    } = stored;
    let sums = read(file, file_id, all).await?;
    let checksum = value(&sums, default)?;
    Ok(Computed {
        sums,
        seen: Seen { identity, checksum },
        size,
    })
}

fn value(sums: &Checksums, spec: &Spec) -> Result<HexBinary, Refusal> {
    let value = sums.value(spec).cloned();
    value.ok_or_else(|| Refusal::unexpected("a checksum was not computed"))
}

async fn read(
    file: impl Read + Send + 'static,
    file_id: &FileId,
    specs: Vec<Spec>,
) -> Result<Checksums, Refusal> {
    let (waiting, asker) = oneshot::channel::<()>();
    let read = tokio::task::spawn_blocking(move || read_all(file, &specs, &waiting));
    let outcome = read.await;
    drop(asker);
    let failed =
        |error: &dyn std::fmt::Display| Refusal::unexpected(format!("reading {file_id}: {error}"));
    match outcome {
        Ok(Ok(sums)) => Ok(sums),
        Ok(Err(error)) => Err(failed(&error)),
        Err(panicked) => Err(failed(&panicked)),
    }
}

/// A thread that nobody waits for any more must not keep a process from ending.
fn read_all(file: impl Read, specs: &[Spec], asker: &oneshot::Sender<()>) -> io::Result<Checksums> {
    Checksums::of_reader(file, specs, || !asker.is_closed())
}

#[cfg(test)]
mod tests {
    use pillarbox_messages::ChecksumType;

    use super::*;

    #[test]
    fn reading_ends_when_nobody_waits() {
        let specs = [Spec::plain(ChecksumType::Md5).unwrap()];
        let (waiting, asker) = oneshot::channel();
        let sums = read_all(io::empty(), &specs, &waiting).unwrap();
        let value = sums.value(&specs[0]).unwrap().to_string();
        assert_eq!(value, "d41d8cd98f00b204e9800998ecf8427e");
        drop(asker);
        let error = read_all(io::repeat(7), &specs, &waiting).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::Interrupted);
    }
}
