//! PutFile: a new file is downloaded from where the client offers it, and stored.

use std::sync::Arc;

use pillarbox_messages::{
    ChecksumData, ChecksumSpec, CollectionId, FileAction, HexBinary,
    IdentifyPillarsForPutFileRequest, IdentifyPillarsForPutFileResponse, Message, Operation,
    PutFileFinalResponse, PutFileProgressResponse, PutFileRequest, ResponseCode, Timestamp,
};
use tracing::warn;

use super::{Checked, Handler, Origin, again, operation_key};
use crate::{
    archive::{Claim, Leftover, ReceivedFile},
    change, checks,
    context::{Context, accepted, completed, identified, info},
    digests::{Checksums, Spec},
    download::{self, Arrival, Offer, announced_size},
    index::{AuditEntry, FileRow, IndexError, PutRecord, Remember},
    refusal::Refusal,
    take_over,
};

/// Ready, unless the file is there already or would not fit.
pub(super) async fn identify(
    context: &Context,
    request: &IdentifyPillarsForPutFileRequest,
) -> Result<Message, Refusal> {
    let collection = checks::collection(context, &request.header)?;
    let mut existing = None;
    if let Some(id) = &request.file_id {
        let file = checks::file_id(context, id)?;
        existing = context.index.find(collection, id).await?;
        if existing.is_none() {
            context
                .archive
                .check(collection, &file, request.file_size.unwrap_or(0))
                .await?;
        }
    }
    let response_info = match &existing {
        Some(_) => info(
            ResponseCode::DuplicateFileFailure,
            "the pillar has a file of this id",
        ),
        None => identified(),
    };
    Ok(IdentifyPillarsForPutFileResponse {
        header: context.response_header(&request.header),
        response_info,
        pillar_id: context.component.id().clone(),
        file_id: request.file_id.clone(),
        pillar_checksum_spec: None,
        checksum_data_for_existing_file: existing.map(|row| context.observed(&row)),
        time_to_deliver: Some(context.time_to_deliver()),
    }
    .into())
}

/// The operation.
pub(super) struct PutFile;

/// What the checks found.
pub(super) struct Accepted {
    collection: CollectionId,
    /// The right to store the file.
    claim: Claim,
    given: Option<(Spec, HexBinary)>,
    requested: Option<Spec>,
}

impl Handler for PutFile {
    type Request = PutFileRequest;
    type Accepted = Accepted;

    async fn check(
        context: &Context,
        request: &PutFileRequest,
    ) -> Result<Checked<Accepted>, Refusal> {
        let collection = checks::collection(context, &request.header)?;
        checks::pillar(context, request.pillar_id.as_ref())?;
        let given = checks::given_checksum(
            context,
            request.checksum_data_for_new_file.as_ref(),
            checks::requires_new_checksum(context),
            ResponseCode::NewFileChecksumFailure,
        )?;
        let requested =
            checks::requested_spec(context, request.checksum_request_for_new_file.as_ref())?;
        let file = checks::file_id(context, &request.file_id)?;
        // From here on nobody else can store the file before we do.
        let claim = context.archive.claim_in_turn(collection, &file).await?;
        let key = operation_key(
            &request.header,
            Operation::PutFile,
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
        if let Some(row) = &prior.row {
            return Err(Refusal::duplicate(context.observed(row)));
        }
        let standing = take_over::list_standing(context, &claim, collection, &file).await?;
        if let Some(row) = &standing {
            return Err(Refusal::duplicate(context.observed(row)));
        }
        context
            .archive
            .check(collection, &file, request.file_size.unwrap_or(0))
            .await?;
        download::address(context, &request.file_address, given.as_ref())?;
        Ok(Checked::Accepted(Accepted {
            collection: collection.clone(),
            claim,
            given,
            requested,
        }))
    }

    fn progress(context: &Context, request: &PutFileRequest, _accepted: &Accepted) -> Message {
        PutFileProgressResponse {
            header: context.response_header(&request.header),
            response_info: accepted("started to receive the file"),
            pillar_id: Some(context.component.id().clone()),
            pillar_checksum_spec: None,
            file_id: request.file_id.clone(),
            file_address: request.file_address.clone(),
        }
        .into()
    }

    async fn perform(
        context: &Context,
        origin: &Origin,
        request: &PutFileRequest,
        accepted: Accepted,
    ) -> Result<Message, Refusal> {
        let Accepted {
            collection,
            claim,
            given,
            requested,
        } = accepted;
        let offer = Offer {
            address: &request.file_address,
            size: announced_size(request.file_size),
            given: given.as_ref(),
            requested: requested.as_ref(),
        };
        let received = offer.receive(context, claim, Arrival::New).await?;
        store(context, origin, request, collection, requested, received).await
    }

    fn refused(refusal: &Refusal, answer: &mut Message) {
        if let Message::PutFileFinalResponse(response) = answer {
            response.checksum_data_for_existing_file = refusal.existing.as_deref().cloned();
        }
    }
}

/// Gives the file its place, then writes row, audit event and remembered response.
async fn store(
    context: &Context,
    origin: &Origin,
    request: &PutFileRequest,
    collection: CollectionId,
    requested: Option<Spec>,
    received: ReceivedFile,
) -> Result<Message, Refusal> {
    let published = context.archive.publish(received, Leftover::Replace).await?;
    let checksum = download::default_checksum(context, &published.checksums)?;
    let respond = responder(context, request, requested.as_ref(), &published.checksums);
    let response = Arc::clone(&respond);
    let record = PutRecord {
        collection,
        file_id: request.file_id.clone(),
        directory: published.directory.clone(),
        size: published.size,
        checksum,
        audit: AuditEntry {
            action: FileAction::PutFile,
            info: Some("file added to the archive".to_owned()),
            audit_trail_information: request.audit_trail_information.clone(),
            ..origin.event(&request.header, &request.file_id)
        },
        remember: Some(Remember {
            from: request.header.from.clone(),
            correlation: request.header.correlation_id.clone(),
            operation: Operation::PutFile,
            respond: Box::new(move |row| Message::from(response(row)).to_xml()),
        }),
    };
    let done = match context.index.put(record).await {
        Ok(done) => done,
        Err(IndexError::AlreadyPresent(row)) => {
            return Err(Refusal::duplicate(context.observed(&row)));
        }
        Err(error) => {
            if error.is_no_space() {
                // Nobody was promised the file, and it takes the room that the index lacks. After any other
                // failure the row may be on the disk all the same, so the file stays.
                if let Err(reason) = context.archive.retract(published).await {
                    warn!(%reason, "a file without a row in the index stays");
                }
            }
            return Err(error.into());
        }
    };
    drop(published);
    Ok(respond(&done.row).into())
}

/// Makes the final response from the file's row, whose times are only known once it is written.
fn responder(
    context: &Context,
    request: &PutFileRequest,
    requested: Option<&Spec>,
    checksums: &Checksums,
) -> Arc<impl Fn(&FileRow) -> PutFileFinalResponse + Send + Sync + 'static> {
    let asked = requested.and_then(|spec| {
        checksums
            .value(spec)
            .map(|value| (ChecksumSpec::from(spec), value.clone()))
    });
    let header = context.response_header(&request.header);
    let pillar = context.component.id().clone();
    let file_id = request.file_id.clone();
    let file_address = request.file_address.clone();
    Arc::new(move |row: &FileRow| PutFileFinalResponse {
        header: header.clone(),
        response_info: completed("the file is stored"),
        pillar_id: Some(pillar.clone()),
        pillar_checksum_spec: None,
        file_id: file_id.clone(),
        file_address: file_address.clone(),
        checksum_data_for_new_file: asked.clone().map(|(checksum_spec, checksum_value)| {
            ChecksumData {
                checksum_spec,
                checksum_value,
                calculation_timestamp: Timestamp::from_millis(row.calculated_ms),
            }
        }),
        checksum_data_for_existing_file: None,
    })
}
