//! Checksums computed from the bytes on disk, now.

use std::{fs::File, io::Read};

use pillarbox_messages::{ArchiveFileId, CollectionId, FileId, HexBinary};

use crate::{
    context::Context,
    digests::{Digests, Spec},
    refusal::Refusal,
};

/// The checksum of an archived file by `spec`; `None` if the file is gone from the disk.
pub(crate) async fn compute(
    context: &Context,
    collection: &CollectionId,
    file_id: &FileId,
    spec: &Spec,
) -> Result<Option<HexBinary>, Refusal> {
    // Stored under the pattern of its day: the built-in rules are what makes it a path.
    let file = ArchiveFileId::new(file_id, None)?;
    let Some(stored) = context.open_known(collection, &file).await? else {
        return Ok(None);
    };
    let wanted = spec.clone();
    let read = tokio::task::spawn_blocking(move || read_all(stored.file, &wanted));
    match read.await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(Refusal::unexpected(format!("reading {file_id}: {error}"))),
        Err(panicked) => Err(Refusal::unexpected(panicked)),
    }
}

fn read_all(mut file: File, spec: &Spec) -> std::io::Result<Option<HexBinary>> {
    let mut digests = Digests::new(std::slice::from_ref(spec));
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(digests.finish().value(spec).cloned()),
            length => digests.update(buffer.get(..length).unwrap_or_default()),
        }
    }
}

const BUFFER_BYTES: usize = 256 << 10;
