//! GetFile: an archived file is delivered to the address that the client names.

use pillarbox_messages::{
    ChecksumData, CollectionId, FileAction, GetFileFinalResponse, GetFileProgressResponse,
    GetFileRequest, IdentifyPillarsForGetFileRequest, IdentifyPillarsForGetFileResponse, Message,
    ResponseCode,
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
        let row = checks::known(context, collection, &request.file_id).await?;
        if request.file_part.is_some() {
            return Err(Refusal::rejection(
                ResponseCode::RequestNotSupported,
                "the pillar delivers whole files only",
            ));
        }
        checks::address(context, &request.file_address)?;
        let Some(stored) = context.open_known(collection, &row).await? else {
            return Err(Refusal::not_found().with_detail("the file is gone from the disk"));
        };
        Ok(Checked::Accepted(Accepted {
            collection: collection.clone(),
            stored,
            checksum: checksum_of_opened(context, collection, &row).await?,
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
        let StoredFile { file, .. } = found.stored;
        context
            .exchange
            .put_open_file(&request.file_address, file)
            .await?;
        let entry = AuditEntry {
            file_id: request.file_id.clone(),
            actor: request.header.from.clone(),
            action: FileAction::GetFile,
            info: Some("file delivered".to_owned()),
            operation_id: Some(request.header.correlation_id.clone()),
            certificate_id: origin.certificate.clone(),
            audit_trail_information: request.audit_trail_information.clone(),
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
