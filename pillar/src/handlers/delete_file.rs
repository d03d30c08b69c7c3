//! DeleteFile: an archived file is taken out of the archive, if it is the one that the client means.

use pillarbox_messages::{
    ChecksumData, CollectionId, DeleteFileFinalResponse, DeleteFileProgressResponse,
    DeleteFileRequest, FileAction, IdentifyPillarsForDeleteFileRequest,
    IdentifyPillarsForDeleteFileResponse, Message, Operation, ResponseCode,
};

use super::{Checked, Destructive, Handler, Origin, again, operation_key};
use crate::{
    change::{self, Change},
    checks,
    context::{Context, accepted, completed, identified},
    digests::Spec,
    existing::Existing,
    index::{AuditEntry, OpenOperation},
    refusal::Refusal,
};

/// Ready, if the file is here.
pub(super) async fn identify(
    context: &Context,
    request: &IdentifyPillarsForDeleteFileRequest,
) -> Result<Message, Refusal> {
    let collection = checks::collection(context, &request.header)?;
    checks::file_id(context, &request.file_id)?;
    checks::known(context, collection, &request.file_id).await?;
    Ok(IdentifyPillarsForDeleteFileResponse {
        header: context.response_header(&request.header),
        response_info: identified(),
        file_id: request.file_id.clone(),
        pillar_id: context.component.id().clone(),
        pillar_checksum_spec: None,
        time_to_deliver: Some(context.time_to_deliver()),
    }
    .into())
}

/// The operation.
pub(super) struct DeleteFile;

/// What the checks found.
pub(super) struct Accepted {
    existing: Existing,
    requested: Option<Spec>,
}

impl Handler for DeleteFile {
    type Request = DeleteFileRequest;
    type Accepted = Accepted;

    async fn check(
        context: &Context,
        request: &DeleteFileRequest,
    ) -> Result<Checked<Accepted>, Refusal> {
        let collection = checks::collection(context, &request.header)?;
        checks::pillar(context, request.pillar_id.as_ref())?;
        let requested =
            checks::requested_spec(context, request.checksum_request_for_existing_file.as_ref())?;
        let given = checks::given_checksum(
            context,
            request.checksum_data_for_existing_file.as_ref(),
            context
                .component
                .repository()
                .require
                .checksum_for_destructive,
            ResponseCode::ExistingFileChecksumFailure,
        )?;
        let file = checks::file_id(context, &request.file_id)?;
        // From here on nobody else can change the file before we do.
        let claim = context.archive.claim_in_turn(collection, &file).await?;
        let key = operation_key(
            &request.header,
            Operation::DeleteFile,
            collection,
            &request.file_id,
        );
        let (claim, prior) = change::prior(context, claim, &key).await?;
        if let Some(done) = &prior.done {
            return Ok(Checked::Done(Box::new(again(
                context,
                &request.header,
                done,
            )?)));
        }
        let given_spec = given.as_ref().map(|(spec, _)| spec);
        let mut existing = Existing::new(
            collection.clone(),
            claim,
            prior.row.ok_or_else(Refusal::not_found)?,
            &[requested.as_ref(), given_spec],
        );
        existing.be_there(context).await?;
        if !existing.matches(context, given.as_ref()).await? {
            return Err(Refusal::illegal_operation(
                ResponseCode::ExistingFileChecksumFailure,
                "the file is not deleted: its checksum is not the given one",
            ));
        }
        Ok(Checked::Accepted(Accepted {
            existing,
            requested,
        }))
    }

    fn progress(context: &Context, request: &DeleteFileRequest, _accepted: &Accepted) -> Message {
        DeleteFileProgressResponse {
            header: context.response_header(&request.header),
            response_info: accepted("started to delete the file"),
            pillar_id: Some(context.component.id().clone()),
            file_id: request.file_id.clone(),
        }
        .into()
    }

    async fn perform(
        context: &Context,
        origin: &Origin,
        request: &DeleteFileRequest,
        accepted: Accepted,
    ) -> Result<Message, Refusal> {
        let Accepted {
            mut existing,
            requested,
        } = accepted;
        let last = existing.requested_checksum(context, requested.as_ref());
        let operation = OpenOperation {
            response: respond(context, request, last.await?),
            key: operation_key(
                &request.header,
                Operation::DeleteFile,
                &existing.collection,
                &request.file_id,
            ),
            new: None,
            audit: AuditEntry {
                action: FileAction::DeleteFile,
                info: Some("file deleted".to_owned()),
                audit_trail_information: request.audit_trail_information.clone(),
                ..origin.event(&request.header, &request.file_id)
            },
        };
        change::carry_out(context, operation, Change::Delete(existing.claim)).await
    }

    fn event_of_refusal(
        context: &Context,
        origin: &Origin,
        request: &DeleteFileRequest,
        refusal: &Refusal,
    ) -> Option<(CollectionId, AuditEntry)> {
        let destructive = Destructive {
            header: &request.header,
            pillar_id: request.pillar_id.as_ref(),
            file_id: &request.file_id,
            operation: Operation::DeleteFile,
            audit_trail_information: request.audit_trail_information.as_deref(),
        };
        origin.event_of_refusal(context, &destructive, refusal)
    }
}

fn respond(
    context: &Context,
    request: &DeleteFileRequest,
    checksum_data_for_existing_file: Option<ChecksumData>,
) -> Message {
    DeleteFileFinalResponse {
        header: context.response_header(&request.header),
        response_info: completed("the file is deleted"),
        pillar_id: Some(context.component.id().clone()),
        file_id: request.file_id.clone(),
        checksum_data_for_existing_file,
    }
    .into()
}
