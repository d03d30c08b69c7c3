//! A file that a request is to take away, or to replace: found, and compared with what the requester believes.

use pillarbox_messages::{ChecksumData, ChecksumSpec, CollectionId, HexBinary};

use crate::{
    archive::{Claim, StoredFile},
    context::Context,
    digests::Spec,
    disk_checksum::{self, Computed},
    index::FileRow,
    noticing,
    refusal::Refusal,
};

/// An archived file that nobody else can change meanwhile.
pub(crate) struct Existing {
    pub(crate) collection: CollectionId,
    /// The right to change it.
    pub(crate) claim: Claim,
    pub(crate) row: FileRow,
    /// The checksums that may be needed of it: they are computed together, so that it is read once at most.
    specs: Vec<Spec>,
    computed: Option<Computed>,
}

impl Existing {
    /// The file of this row, of which no other checksums than these and the default one will be needed.
    pub(crate) fn new(
        collection: CollectionId,
        claim: Claim,
        row: FileRow,
        specs: &[Option<&Spec>],
    ) -> Self {
        Self {
            collection,
            claim,
            row,
            specs: specs.iter().copied().flatten().cloned().collect(),
            computed: None,
        }
    }

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
        &mut self,
        context: &Context,
        spec: &Spec,
    ) -> Result<ChecksumData, Refusal> {
        if *spec == context.default_spec || !context.archive.keeps_bytes() {
            return Ok(context.observed(&self.row));
        }
        Ok(ChecksumData {
            checksum_spec: ChecksumSpec::from(spec),
            checksum_value: self.computed(context).await?.value(spec)?,
            calculation_timestamp: context.component.timestamp(),
        })
    }

    /// Whether it has this checksum, and this size in bytes if one is given, as its bytes on the disk are now; where
    /// none are kept, the observed checksum is all there is.
    pub(crate) async fn has(
        &mut self,
        context: &Context,
        given: &(Spec, HexBinary),
        size: Option<u64>,
    ) -> Result<bool, Refusal> {
        let (spec, value) = given;
        if !context.archive.keeps_bytes() {
            // Of such a file a size may never have been seen.
            return Ok(self.row.observed == *value);
        }
        let computed = self.computed(context).await?;
        let same_size = size.is_none_or(|size| size == computed.size);
        Ok(same_size && computed.value(spec)? == *value)
    }

    /// What its bytes are. What was not known of them before is written down, and people are told.
    async fn computed(&mut self, context: &Context) -> Result<&Computed, Refusal> {
        let computed = match self.computed.take() {
            Some(computed) => computed,
            None => self.compute(context).await?,
        };
        Ok(self.computed.insert(computed))
    }

    async fn compute(&mut self, context: &Context) -> Result<Computed, Refusal> {
        let stored = self.open(context).await?;
        let file_id = &self.row.file_id;
        let computed = disk_checksum::compute(context, file_id, stored, &self.specs).await?;
        let (claim, collection) = (&self.claim, &self.collection);
        let noticed =
            noticing::notice_claimed(context, claim, collection, &self.row, &computed.seen).await?;
        if let Some(row) = noticed {
            self.row = row;
        }
        Ok(computed)
    }

    /// Whether it has the checksum that the requester gave; so it does if none was given.
    pub(crate) async fn matches(
        &mut self,
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
        &mut self,
        context: &Context,
        spec: Option<&Spec>,
    ) -> Result<Option<ChecksumData>, Refusal> {
        match spec {
            Some(spec) => self.checksum(context, spec).await.map(Some),
            None => Ok(None),
        }
    }
}
