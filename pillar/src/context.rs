//! What every handler works with.

use std::path::PathBuf;

use pillarbox_component::{Asked, Component, LinkMonitor};
use pillarbox_exchange::ExchangeClient;
use pillarbox_messages::{
    ArchiveFileId, ChecksumData, ChecksumSpec, CollectionId, Header, Message, ResponseCode,
    ResponseInfo, TimeToDeliver, Timestamp,
};
use pillarbox_settings::PillarNode;

use crate::{
    archive::{Archive, ArchiveError, Claim, StoredFile},
    digests::Spec,
    index::{FileRow, Index, Trouble},
    refusal::Refusal,
    result_document::Results,
    service::Unanswered,
    shortage::Shortages,
    take_over::Unexplored,
    untold::{self, Untold},
    workers::Board,
};

/// A pillar's parts; handlers share it.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) component: Component,
    pub(crate) settings: PillarNode,
    pub(crate) archive: Archive,
    pub(crate) index: Index,
    pub(crate) exchange: ExchangeClient,
    /// The repository's default checksum: the one that the index holds.
    pub(crate) default_spec: Spec,
    /// Where all that it keeps is, but the archive.
    pub(crate) data: PathBuf,
    /// Where result documents are written before they are sent; emptied at start.
    pub(crate) results: Results,
    /// The collections of which not all files may have been found yet.
    pub(crate) unexplored: Unexplored,
    /// Whether there may be troubles of which people have not been told.
    pub(crate) untold: Untold,
    /// What its background workers are doing.
    pub(crate) workers: Board,
    /// What it had no room for.
    pub(crate) shortages: Shortages,
    /// Which requests about no collection came where.
    pub(crate) asked: Asked,
    /// Whose answers the bus has not taken.
    pub(crate) unanswered: Unanswered,
    /// What its bus connection has been through.
    pub(crate) link: LinkMonitor,
}

impl Context {
    /// How soon this pillar starts to deliver.
    pub(crate) fn time_to_deliver(&self) -> TimeToDeliver {
        let millis = self.settings.time_to_start_deliver.as_millis();
        TimeToDeliver::from_millis(u64::try_from(millis).unwrap_or(u64::MAX))
    }

    /// The header of a response to this request.
    pub(crate) fn response_header(&self, request: &Header) -> Header {
        self.component.response_header(request)
    }

    /// The observed checksum of an archived file, as messages carry it.
    pub(crate) fn observed(&self, row: &FileRow) -> ChecksumData {
        ChecksumData {
            checksum_spec: ChecksumSpec::from(&self.default_spec),
            checksum_value: row.observed.clone(),
            calculation_timestamp: Timestamp::from_millis(row.calculated_ms),
        }
    }

    /// Opens a file that the index knows; `None` if it is gone from the disk. Such a file is taken out of all
    /// listings, and an alarm is raised, once.
    pub(crate) async fn open_known(
        &self,
        collection: &CollectionId,
        row: &FileRow,
    ) -> Result<Option<StoredFile>, Refusal> {
        let file = archive_id(row)?;
        let stored = self.open_file(collection, &file).await?;
        if stored.is_none() {
            self.lose(collection, row).await?;
        }
        Ok(stored)
    }

    /// The same for whoever has the right to change the file.
    pub(crate) async fn open_claimed(
        &self,
        claim: &Claim,
        collection: &CollectionId,
        row: &FileRow,
    ) -> Result<Option<StoredFile>, Refusal> {
        let stored = self.open_file(collection, &archive_id(row)?).await?;
        if stored.is_none() {
            self.miss(claim, collection, row).await?;
        }
        Ok(stored)
    }

    async fn open_file(
        &self,
        collection: &CollectionId,
        file: &ArchiveFileId,
    ) -> Result<Option<StoredFile>, Refusal> {
        match self.archive.open_file(collection, file).await {
            Ok(stored) => Ok(Some(stored)),
            Err(ArchiveError::NotFound(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes a file that was not found on the disk out of all listings, and raises an alarm, once; tells whether
    /// it did. Nothing is done while an operation has the file in hand, or if it has been changed.
    pub(crate) async fn lose(
        &self,
        collection: &CollectionId,
        row: &FileRow,
    ) -> Result<bool, Refusal> {
        let file = archive_id(row)?;
        let Some(claim) = self.archive.claim_briefly(collection, &file)? else {
            return Ok(false);
        };
        let settled = self.index.settled(collection, &row.file_id).await?;
        if settled.is_none_or(|now| now.modified_ms != row.modified_ms)
            || self.open_file(collection, &file).await?.is_some()
        {
            return Ok(false);
        }
        let lost = self.index.mark_missing(collection, row).await?;
        // An alarm may take its time.
        drop(claim);
        if lost {
            self.tell_missing(collection, row).await;
        }
        Ok(lost)
    }

    async fn miss(
        &self,
        _claim: &Claim,
        collection: &CollectionId,
        row: &FileRow,
    ) -> Result<(), Refusal> {
        if self.index.mark_missing(collection, row).await? {
            self.tell_missing(collection, row).await;
        }
        Ok(())
    }

    async fn tell_missing(&self, collection: &CollectionId, row: &FileRow) {
        let trouble = Trouble {
            row: row.clone(),
            missing: true,
        };
        untold::tell(self, collection, trouble).await;
    }

    /// The refusing answer of the request's own type.
    pub(crate) fn refuse(
        &self,
        request: &Message,
        code: ResponseCode,
        text: &str,
    ) -> Option<Message> {
        self.component.refuse(request, code, text)
    }
}

/// Stored under the pattern of its day: the built-in rules are what makes it a path.
fn archive_id(row: &FileRow) -> Result<ArchiveFileId, Refusal> {
    Ok(ArchiveFileId::new(&row.file_id, None)?)
}

/// What a positive answer says.
pub(crate) fn info(code: ResponseCode, text: &str) -> ResponseInfo {
    ResponseInfo {
        response_code: code,
        response_text: Some(text.to_owned()),
    }
}

/// `IDENTIFICATION_POSITIVE`.
pub(crate) fn identified() -> ResponseInfo {
    info(
        ResponseCode::IdentificationPositive,
        "ready to perform the operation",
    )
}

/// `OPERATION_ACCEPTED_PROGRESS`.
pub(crate) fn accepted(text: &str) -> ResponseInfo {
    info(ResponseCode::OperationAcceptedProgress, text)
}

/// `OPERATION_COMPLETED`.
pub(crate) fn completed(text: &str) -> ResponseInfo {
    info(ResponseCode::OperationCompleted, text)
}
