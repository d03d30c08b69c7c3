//! Whoever reads an archived file to its end knows its checksum, and what it finds counts: it becomes the observed
//! one, which peers are told; what was expected stays what it is. Where the two begin to differ, people are told once.

use pillarbox_messages::{ArchiveFileId, CollectionId, ComponentId, FileAction, HexBinary};
use tracing::{error, info};

use crate::{
    archive::{Claim, Identity},
    context::Context,
    index::{AuditEntry, FileRow, Observation, Trouble},
    refusal::Refusal,
    untold,
};

/// An archived file that has been read to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    /// What it was when it was opened.
    pub(crate) identity: Identity,
    /// The checksum of its bytes, by the repository's default spec.
    pub(crate) checksum: HexBinary,
}

/// Writes down what a request's reading has found, if it is news; tells whether it was. `row` is what was known when
/// the file was opened. Nothing is done while an operation has the file in hand, or if it has been changed.
pub(crate) async fn notice(
    context: &Context,
    collection: &CollectionId,
    row: &FileRow,
    seen: &Seen,
) -> Result<bool, Refusal> {
    if seen.checksum == row.observed {
        return Ok(false);
    }
    let file = ArchiveFileId::new(&row.file_id, None)?;
    let Some(claim) = context.archive.claim_briefly(collection, &file)? else {
        return Ok(false);
    };
    let noticed = write_down(context, &claim, collection, row, seen).await?;
    // An alarm may take its time.
    drop(claim);
    if let Some(row) = &noticed {
        tell(context, collection, row).await;
    }
    Ok(noticed.is_some())
}

/// The same for whoever has the right to change the file; gives the row that became of it.
pub(crate) async fn notice_claimed(
    context: &Context,
    claim: &Claim,
    collection: &CollectionId,
    row: &FileRow,
    seen: &Seen,
) -> Result<Option<FileRow>, Refusal> {
    if seen.checksum == row.observed {
        return Ok(None);
    }
    let noticed = write_down(context, claim, collection, row, seen).await?;
    if let Some(row) = &noticed {
        tell(context, collection, row).await;
    }
    Ok(noticed)
}

async fn write_down(
    context: &Context,
    claim: &Claim,
    collection: &CollectionId,
    row: &FileRow,
    seen: &Seen,
) -> Result<Option<FileRow>, Refusal> {
    let now = still_there(context, claim, collection, row, seen.identity).await?;
    let Some(now) = now.filter(|now| now.observed != seen.checksum) else {
        return Ok(None);
    };
    let file_id = now.file_id.clone();
    let observation = observation(context.component.id(), now, seen.checksum.clone());
    let index = &context.index;
    let recorded = index.observe(collection, vec![observation]).await?;
    if recorded != [true] {
        return Ok(None);
    }
    // With its new time.
    Ok(index.find(collection, &file_id).await?)
}

/// The row of a file that was read, if what was read is still what stands at its place. An operation that has changed
/// the disk and is about to change the row has the file's claim.
pub(crate) async fn still_there(
    context: &Context,
    _claim: &Claim,
    collection: &CollectionId,
    row: &FileRow,
    read: Identity,
) -> Result<Option<FileRow>, Refusal> {
    let settled = context.index.settled(collection, &row.file_id).await?;
    let Some(now) = settled.filter(|now| now.modified_ms == row.modified_ms) else {
        return Ok(None);
    };
    let file = ArchiveFileId::new(&row.file_id, None)?;
    let stands = context.archive.open_file(collection, &file).await;
    Ok(stands
        .is_ok_and(|stored| stored.identity == read)
        .then_some(now))
}

/// What is to be written down of a file that was read, and what the audit trail is told, if it is news.
pub(crate) fn observation(pillar: &ComponentId, row: FileRow, checksum: HexBinary) -> Observation {
    let now = FileRow {
        observed: checksum,
        ..row.clone()
    };
    let audit = if now.observed == row.observed {
        None
    } else if now.observed != now.expected {
        Some(now.inconsistency(pillar))
    } else {
        let action = FileAction::ChecksumCalculated;
        Some(AuditEntry::of_pillar(&now.file_id, pillar, action, AGAIN))
    };
    Observation {
        row,
        checksum: now.observed,
        audit,
    }
}

/// Tells people of a file that has changed, or has changed back.
pub(crate) async fn tell(context: &Context, collection: &CollectionId, row: &FileRow) {
    let (name, file) = (collection.as_str(), row.file_id.as_str());
    if row.observed == row.expected {
        info!(collection = name, file, "{AGAIN}");
        return;
    }
    let difference = row.difference();
    error!(collection = name, file, difference, "the file has changed");
    let trouble = Trouble {
        row: row.clone(),
        missing: false,
    };
    untold::tell(context, collection, trouble).await;
}

const AGAIN: &str = "the file's checksum is the expected one again";
