//! Checksums computed from the bytes on disk, now.

use std::io::{self, Read};

use pillarbox_messages::{CollectionId, HexBinary};
use tokio::sync::oneshot;

use crate::{
    context::Context,
    digests::{Digests, Spec},
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
    let Some(stored) = context.open_known(collection, row).await? else {
        return Ok(None);
    };
    let wanted = spec.clone();
    let (waiting, asker) = oneshot::channel::<()>();
    let read = tokio::task::spawn_blocking(move || read_all(stored.file, &wanted, &waiting));
    let outcome = read.await;
    drop(asker);
    let failed = |error: &dyn std::fmt::Display| {
        Refusal::unexpected(format!("reading {}: {error}", row.file_id))
    };
    match outcome {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(failed(&error)),
        Err(panicked) => Err(failed(&panicked)),
    }
}

/// A thread that nobody waits for any more must not keep a process from ending.
fn read_all(
    mut file: impl Read,
    spec: &Spec,
    asker: &oneshot::Sender<()>,
) -> io::Result<Option<HexBinary>> {
    let mut digests = Digests::new(std::slice::from_ref(spec));
    let mut buffer = vec![0; BUFFER_BYTES];
    while !asker.is_closed() {
        match file.read(&mut buffer)? {
            0 => return Ok(digests.finish().value(spec).cloned()),
            length => digests.update(buffer.get(..length).unwrap_or_default()),
        }
    }
    Err(io::ErrorKind::Interrupted.into())
}

const BUFFER_BYTES: usize = 256 << 10;

#[cfg(test)]
mod tests {
    use pillarbox_messages::ChecksumType;

    use super::*;

    #[test]
    fn reading_ends_when_nobody_waits() {
        let spec = Spec::plain(ChecksumType::Md5).unwrap();
        let (waiting, asker) = oneshot::channel();
        let value = read_all(io::empty(), &spec, &waiting).unwrap().unwrap();
        assert_eq!(value.to_string(), "d41d8cd98f00b204e9800998ecf8427e");
        drop(asker);
        let error = read_all(io::repeat(7), &spec, &waiting).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::Interrupted);
    }
}
