//! GetFile: an archived file, or a part of it, is delivered to the address that the client names.

use std::num::NonZeroU64;

use pillarbox_messages::{
    ChecksumData, CollectionId, FileAction, FilePart, GetFileFinalResponse,
    GetFileProgressResponse, GetFileRequest, IdentifyPillarsForGetFileRequest,
    IdentifyPillarsForGetFileResponse, Message, ResponseCode,
};

use super::{Checked, Handler, Origin};
use crate::{
    archive::StoredFile,
    checks,
    context::{Context, accepted, completed, identified},
    index::{AuditEntry, FileRow},
    refusal::Refusal,
};

/// Ready, if the file is here.
pub(super) async fn identify(
    context: &Context,
    request: &IdentifyPillarsForGetFileRequest,
) -> Result<Message, Refusal> {
    checks::keeps_files(context)?;
    let collection = checks::collection(context, &request.header)?;
    checks::file_id(context, &request.file_id)?;
    checks::known(context, collection, &request.file_id).await?;
    Ok(IdentifyPillarsForGetFileResponse {
        header: context.response_header(&request.header),
        response_info: identified(),
        file_id: request.file_id.clone(),
        pillar_id: context.component.id().clone(),
        time_to_deliver: Some(context.time_to_deliver()),
    }
    .into())
}

/// The operation.
pub(super) struct GetFile;

/// What the checks found.
pub(super) struct Accepted {
    collection: CollectionId,
    stored: StoredFile,
    checksum: Option<ChecksumData>,
    part: Option<Part>,
}

/// Bytes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    offset: u64,
    length: NonZeroU64,
}

impl Part {
    /// The bytes that a file of this size has of a part, as HTTP's ranges are understood (RFC 9110, 14.1.2): one
    /// that begins in the file ends with it at the latest. A part that has no bytes can't have been meant.
    fn of(asked: &FilePart, size: u64) -> Result<Self, Refusal> {
        let FilePart {
            part_offset: offset,
            part_length: wanted,
        } = *asked;
        let length = NonZeroU64::new(wanted.min(size.saturating_sub(offset)));
        let refused = || {
            Refusal::rejection(
                ResponseCode::RequestNotUnderstoodFailure,
                format!(
                    "the file has {size} bytes, and none in a part of {wanted} from {offset} on"
                ),
            )
        };
        Ok(Self {
            offset,
            length: length.ok_or_else(refused)?,
        })
    }
}

impl Handler for GetFile {
    type Request = GetFileRequest;
    type Accepted = Accepted;

    async fn check(
        context: &Context,
        request: &GetFileRequest,
    ) -> Result<Checked<Accepted>, Refusal> {
        let collection = checks::collection(context, &request.header)?;
        checks::pillar(context, request.pillar_id.as_ref())?;
        checks::file_id(context, &request.file_id)?;
        checks::keeps_files(context)?;
        let row = checks::known(context, collection, &request.file_id).await?;
        checks::address(context, &request.file_address)?;
        let Some(stored) = context.open_known(collection, &row).await? else {
            return Err(Refusal::not_found().with_detail("the file is gone from the disk"));
        };
        let asked = request.file_part.as_ref();
        let part = asked
            .map(|asked| Part::of(asked, stored.size))
            .transpose()?;
        Ok(Checked::Accepted(Accepted {
            collection: collection.clone(),
            stored,
            checksum: checksum_of_opened(context, collection, &row).await?,
            part,
        }))
    }

    fn progress(context: &Context, request: &GetFileRequest, found: &Accepted) -> Message {
        GetFileProgressResponse {
            header: context.response_header(&request.header),
            response_info: accepted("started to deliver the file"),
            pillar_id: Some(context.component.id().clone()),
            file_id: request.file_id.clone(),
            file_part: request.file_part.clone(),
            file_address: request.file_address.clone(),
            file_size: Some(found.stored.size),
            checksum_data_for_existing_file: found.checksum.clone(),
        }
        .into()
    }

    async fn perform(
        context: &Context,
        origin: &Origin,
        request: &GetFileRequest,
        found: Accepted,
    ) -> Result<Message, Refusal> {
        let info = deliver(context, &request.file_address, found.stored, found.part).await?;
        let entry = AuditEntry {
            action: FileAction::GetFile,
            info: Some(info),
            audit_trail_information: request.audit_trail_information.clone(),
            ..origin.event(&request.header, &request.file_id)
        };
        context.index.append(&found.collection, entry).await?;
        Ok(GetFileFinalResponse {
            header: context.response_header(&request.header),
            response_info: completed("the file is delivered"),
            pillar_id: Some(context.component.id().clone()),
            file_id: request.file_id.clone(),
            file_part: request.file_part.clone(),
            file_address: request.file_address.clone(),
        }
        .into())
    }
}

/// The observed checksum of a file that was opened after `row` was read. Nothing if a replace may have come in
/// between: of bytes that the index does not know yet nothing is told.
async fn checksum_of_opened(
    context: &Context,
    collection: &CollectionId,
    row: &FileRow,
) -> Result<Option<ChecksumData>, Refusal> {
    let settled = context.index.settled(collection, &row.file_id).await?;
    let same = settled.filter(|now| now.modified_ms == row.modified_ms);
    Ok(same.map(|now| context.observed(&now)))
}

/// Gives what the audit trail says of it.
async fn deliver(
    context: &Context,
    address: &str,
    stored: StoredFile,
    part: Option<Part>,
) -> Result<String, Refusal> {
    let StoredFile { file, size } = stored;
    let exchange = &context.exchange;
    match part {
        None => {
            exchange.put_open_file(address, file).await?;
            Ok("file delivered".to_owned())
        }
        Some(Part { offset, length }) => {
            exchange
                .put_open_part(address, file, offset, length)
                .await?;
            Ok(format!(
                "part of the file delivered: {length} bytes from {offset} on, of {size}"
            ))
        }
    }
}
