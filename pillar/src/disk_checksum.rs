//! Checksums computed from the bytes on disk, now.

use std::{
    fs::File,
    io::{self, Read},
};

use pillarbox_messages::{CollectionId, FileId, HexBinary};
use tokio::sync::oneshot;

use crate::{
    context::Context,
    digests::{Checksums, Spec},
    index::FileRow,
    refusal::Refusal,
};

/// The checksum of an archived file by `spec`; `None` if the file is gone from the disk. Reading ends when the
/// future is dropped.
pub(crate) async fn compute(
    context: &Context,
    collection: &CollectionId,
    row: &FileRow,
    spec: &Spec,
) -> Result<Option<HexBinary>, Refusal> {
    match context.open_known(collection, row).await? {
        Some(stored) => of_opened(stored.file, &row.file_id, spec).await.map(Some),
        None => Ok(None),
    }
}

/// The same of a file that has been opened.
pub(crate) async fn of_opened(
    file: File,
    file_id: &FileId,
    spec: &Spec,
) -> Result<HexBinary, Refusal> {
    let wanted = spec.clone();
    let (waiting, asker) = oneshot::channel::<()>();
    let read = tokio::task::spawn_blocking(move || read_all(file, &wanted, &waiting));
    let outcome = read.await;
    drop(asker);
    let failed =
        |error: &dyn std::fmt::Display| Refusal::unexpected(format!("reading {file_id}: {error}"));
    match outcome {
        Ok(Ok(sums)) => sums
            .value(spec)
            .cloned()
            .ok_or_else(|| failed(&"no checksum")),
        Ok(Err(error)) => Err(failed(&error)),
        Err(panicked) => Err(failed(&panicked)),
    }
}

/// A thread that nobody waits for any more must not keep a process from ending.
fn read_all(file: impl Read, spec: &Spec, asker: &oneshot::Sender<()>) -> io::Result<Checksums> {
    Checksums::of_reader(file, std::slice::from_ref(spec), || !asker.is_closed())
}

#[cfg(test)]
mod tests {
    use pillarbox_messages::ChecksumType;

    use super::*;

    #[test]
    fn reading_ends_when_nobody_waits() {
        let spec = Spec::plain(ChecksumType::Md5).unwrap();
        let (waiting, asker) = oneshot::channel();
        let sums = read_all(io::empty(), &spec, &waiting).unwrap();
        let value = sums.value(&spec).unwrap().to_string();
        assert_eq!(value, "d41d8cd98f00b204e9800998ecf8427e");
        drop(asker);
        let error = read_all(io::repeat(7), &spec, &waiting).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::Interrupted);
    }
}
