//! A file that a request is to take away, or to replace: found, and compared with what the requester believes.

use pillarbox_messages::{ChecksumData, ChecksumSpec, CollectionId, HexBinary};

use crate::{
    archive::{Claim, StoredFile},
    context::Context,
    digests::Spec,
    disk_checksum,
    index::FileRow,
    refusal::Refusal,
};

/// An archived file that nobody else can change meanwhile.
pub(crate) struct Existing {
    pub(crate) collection: CollectionId,
    /// The right to change it.
    pub(crate) claim: Claim,
    pub(crate) row: FileRow,
}

impl Existing {
    /// Opens it. One that is gone from the disk is as unknown as one that never was there.
    async fn open(&self, context: &Context) -> Result<StoredFile, Refusal> {
        let opened = context.open_claimed(&self.claim, &self.collection, &self.row);
        opened
            .await?
            .ok_or_else(|| Refusal::not_found().with_detail("the file is gone from the disk"))
    }

    /// It is on the disk, where bytes are kept.
    pub(crate) async fn be_there(&self, context: &Context) -> Result<(), Refusal> {
        if context.archive.keeps_bytes() {
            self.open(context).await?;
        }
        Ok(())
    }

    /// Its checksum by `spec`: the observed one if that is in the index, others from the disk.
    pub(crate) async fn checksum(
        &self,
        context: &Context,
        spec: &Spec,
    ) -> Result<ChecksumData, Refusal> {
        if *spec == context.default_spec {
            return Ok(context.observed(&self.row));
        }
        Ok(ChecksumData {
            checksum_spec: ChecksumSpec::from(spec),
            checksum_value: self.checksum_on_disk(context, spec).await?,
            calculation_timestamp: context.component.timestamp(),
        })
    }

    /// Its checksum as the bytes on the disk have it now; where none are kept, the observed one is all there is.
    pub(crate) async fn checksum_on_disk(
        &self,
        context: &Context,
        spec: &Spec,
    ) -> Result<HexBinary, Refusal> {
        if !context.archive.keeps_bytes() {
            return Ok(self.row.observed.clone());
        }
        let stored = self.open(context).await?;
        disk_checksum::of_opened(stored.file, &self.row.file_id, spec).await
    }

    /// Whether it has the checksum that the requester gave; so it does if none was given.
    pub(crate) async fn matches(
        &self,
        context: &Context,
        given: Option<&(Spec, HexBinary)>,
    ) -> Result<bool, Refusal> {
        match given {
            Some((spec, value)) => Ok(self.checksum(context, spec).await?.checksum_value == *value),
            None => Ok(true),
        }
    }

    /// Its checksum, if one is asked for.
    pub(crate) async fn requested_checksum(
        &self,
        context: &Context,
        spec: Option<&Spec>,
    ) -> Result<Option<ChecksumData>, Refusal> {
        match spec {
            Some(spec) => self.checksum(context, spec).await.map(Some),
            None => Ok(None),
        }
    }
}
