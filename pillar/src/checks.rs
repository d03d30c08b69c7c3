//! The checks that several operations share. Which come in which order is each handler's.

use pillarbox_messages::{
    ArchiveFileId, ChecksumData, ChecksumSpec, CollectionId, ComponentId, FileId, Header,
    HexBinary, ResponseCode,
};
use pillarbox_settings::ChecksumDownload;

use crate::{context::Context, digests::Spec, index::FileRow, refusal::Refusal};

/// The request names a collection, and one that is served here.
pub(crate) fn collection<'a>(
    context: &Context,
    header: &'a Header,
) -> Result<&'a CollectionId, Refusal> {
    let Some(id) = &header.collection_id else {
        return Err(Refusal::illegal_argument("the request names no collection"));
    };
    if context.component.serves(id) {
        Ok(id)
    } else {
        Err(Refusal::illegal_argument(format!(
            "the pillar does not serve the collection '{id}'"
        )))
    }
}

/// The request is for this pillar; one that names none is.
pub(crate) fn pillar(context: &Context, named: Option<&ComponentId>) -> Result<(), Refusal> {
    match named {
        Some(id) if id != context.component.id() => Err(Refusal::illegal_argument(format!(
            "the request is for the pillar '{id}'"
        ))),
        _ => Ok(()),
    }
}

/// The request is for this component; one that names none is.
pub(crate) fn contributor(context: &Context, named: Option<&ComponentId>) -> Result<(), Refusal> {
    match named {
        Some(id) if id != context.component.id() => Err(Refusal::illegal_argument(format!(
            "the request is for the contributor '{id}'"
        ))),
        _ => Ok(()),
    }
}

/// The file id is one that the archive accepts.
pub(crate) fn file_id(context: &Context, id: &FileId) -> Result<ArchiveFileId, Refusal> {
    let pattern = context.component.repository().file_id_pattern.as_ref();
    Ok(ArchiveFileId::new(id, pattern)?)
}

/// The request is for a pillar that keeps files.
pub(crate) fn keeps_files(context: &Context) -> Result<(), Refusal> {
    if context.archive.keeps_bytes() {
        return Ok(());
    }
    Err(Refusal::rejection(
        ResponseCode::RequestNotSupported,
        "the pillar keeps checksums only",
    ))
}

/// A checksum spec that can be computed; of a pillar that keeps checksums only, the one that it keeps.
pub(crate) fn spec(context: &Context, spec: &ChecksumSpec) -> Result<Spec, Refusal> {
    let computable = Spec::try_from(spec);
    if context.archive.keeps_bytes() || computable.as_ref() == Ok(&context.default_spec) {
        return Ok(computable?);
    }
    let kept = context.default_spec.checksum_type();
    Err(Refusal::rejection(
        ResponseCode::RequestNotSupported,
        format!("the pillar keeps {} checksums only", kept.as_str()),
    ))
}

/// The spec of the checksum that a request asks for, if it asks.
pub(crate) fn requested_spec(
    context: &Context,
    asked: Option<&ChecksumSpec>,
) -> Result<Option<Spec>, Refusal> {
    asked.map(|asked| spec(context, asked)).transpose()
}

/// Whether a new file needs a checksum: as the repository says, and where the pillar has nothing else to go by.
pub(crate) fn requires_new_checksum(context: &Context) -> bool {
    context.component.repository().require.checksum_for_new_file
        || context.settings.download == ChecksumDownload::Never
}

/// The spec and value of a checksum that a request gives; `missing` is refused where `required`.
pub(crate) fn given_checksum(
    context: &Context,
    given: Option<&ChecksumData>,
    required: bool,
    missing: ResponseCode,
) -> Result<Option<(Spec, HexBinary)>, Refusal> {
    match given {
        Some(data) => Ok(Some((
            spec(context, &data.checksum_spec)?,
            data.checksum_value.clone(),
        ))),
        None if required => {
            let which = match missing {
                ResponseCode::ExistingFileChecksumFailure => "existing",
                _ => "new",
            };
            let text = format!("the request gives no checksum of the {which} file");
            Err(Refusal::illegal_operation(missing, text))
        }
        None => Ok(None),
    }
}

/// The file is known, and not missing.
pub(crate) async fn known(
    context: &Context,
    collection: &CollectionId,
    id: &FileId,
) -> Result<FileRow, Refusal> {
    context
        .index
        .find(collection, id)
        .await?
        .ok_or_else(Refusal::not_found)
}

/// The address is one that this node may use. Asked before there is any work for it.
pub(crate) fn address(context: &Context, address: &str) -> Result<(), Refusal> {
    Ok(context.exchange.check(address)?)
}

/// Where a request wants its result document; an empty address is none.
pub(crate) fn asked_address(address: Option<&str>) -> Option<&str> {
    address.filter(|address| !address.is_empty())
}

/// The address of the result document, if one is wanted, is one that this node may use.
pub(crate) fn result_address(context: &Context, asked: Option<&str>) -> Result<(), Refusal> {
    asked_address(asked).map_or(Ok(()), |asked| address(context, asked))
}
