//! ReplaceFile: an archived file gives its place to another that is downloaded from where the client offers it, if
//! it is the one that the client means.

use pillarbox_messages::{
    ChecksumData, ChecksumSpec, CollectionId, FileAction, HexBinary,
    IdentifyPillarsForReplaceFileRequest, IdentifyPillarsForReplaceFileResponse, Message,
    Operation, ReplaceFileFinalResponse, ReplaceFileProgressResponse, ReplaceFileRequest,
    ResponseCode,
};

use super::{Checked, Destructive, Handler, Origin, again, operation_key};
use crate::{
    archive::{Claim, StagedFile},
    change::{self, Change},
    checks,
    context::{Context, accepted, completed, identified},
    digests::{Checksums, Spec},
    download::{self, Arrival, Offer, announced_size},
    existing::Existing,
    index::{AuditEntry, NewVersion, OpenOperation, Prior},
    refusal::Refusal,
};

/// Ready, if the file is here and the new one would fit.
pub(super) async fn identify(
    context: &Context,
    request: &IdentifyPillarsForReplaceFileRequest,
) -> Result<Message, Refusal> {
    let collection = checks::collection(context, &request.header)?;
    let file = checks::file_id(context, &request.file_id)?;
    checks::known(context, collection, &request.file_id).await?;
    context
        .archive
        .check(collection, &file, request.file_size.unwrap_or(0))
        .await?;
    Ok(IdentifyPillarsForReplaceFileResponse {
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
pub(super) struct ReplaceFile;

/// What the checks found.
pub(super) struct Accepted {
    existing: Existing,
    specs: Specs,
}

/// The checksums that a request speaks of.
struct Specs {
    requested_old: Option<Spec>,
    requested_new: Option<Spec>,
    given_old: Option<(Spec, HexBinary)>,
    given_new: Option<(Spec, HexBinary)>,
}

impl Specs {
    fn check(context: &Context, request: &ReplaceFileRequest) -> Result<Self, Refusal> {
        let require = &context.component.repository().require;
        Ok(Self {
            requested_old: checks::requested_spec(
                context,
                request.checksum_request_for_existing_file.as_ref(),
            )?,
            requested_new: checks::requested_spec(
                context,
                request.checksum_request_for_new_file.as_ref(),
            )?,
            given_old: checks::given_checksum(
                context,
                request.checksum_data_for_existing_file.as_ref(),
                require.checksum_for_destructive,
                ResponseCode::ExistingFileChecksumFailure,
            )?,
            given_new: checks::given_checksum(
                context,
                request.checksum_data_for_new_file.as_ref(),
                checks::requires_new_checksum(context),
                ResponseCode::NewFileChecksumFailure,
            )?,
        })
    }

    /// Those by which the old file's checksum may be needed: it may turn out to be the new one.
    fn of_old(&self) -> [Option<&Spec>; 4] {
        fn spec(given: Option<&(Spec, HexBinary)>) -> Option<&Spec> {
            given.map(|(spec, _)| spec)
        }
        [
            self.requested_old.as_ref(),
            self.requested_new.as_ref(),
            spec(self.given_old.as_ref()),
            spec(self.given_new.as_ref()),
        ]
    }
}

impl Handler for ReplaceFile {
    type Request = ReplaceFileRequest;
    type Accepted = Accepted;

    async fn check(
        context: &Context,
        request: &ReplaceFileRequest,
    ) -> Result<Checked<Accepted>, Refusal> {
        let collection = checks::collection(context, &request.header)?;
        checks::pillar(context, request.pillar_id.as_ref())?;
        let file = checks::file_id(context, &request.file_id)?;
        // From here on nobody else can change the file before we do.
        let claim = context.archive.claim_in_turn(collection, &file).await?;
        let (claim, prior) = prior(context, request, collection, claim).await?;
        if let Some(done) = &prior.done {
            return Ok(Checked::Done(Box::new(again(
                context,
                &request.header,
                done,
            )?)));
        }
        let row = prior.row.ok_or_else(Refusal::not_found)?;
        context
            .archive
            .check(collection, &file, request.file_size)
            .await?;
        let specs = Specs::check(context, request)?;
        let mut existing = Existing::new(collection.clone(), claim, row, &specs.of_old());
        existing.be_there(context).await?;
        let meant = existing.matches(context, specs.given_old.as_ref()).await?;
        if is_there(context, request, &mut existing, &specs, meant).await? {
            return already_there(context, request, &mut existing, &specs).await;
        }
        // By what is known of it now, if it was read.
        if !existing.matches(context, specs.given_old.as_ref()).await? {
            return Err(not_meant(meant));
        }
        download::address(context, &request.file_address, specs.given_new.as_ref())?;
        Ok(Checked::Accepted(Accepted { existing, specs }))
    }

    fn progress(context: &Context, request: &ReplaceFileRequest, _accepted: &Accepted) -> Message {
        ReplaceFileProgressResponse {
            header: context.response_header(&request.header),
            response_info: accepted("started to receive the new file"),
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
        request: &ReplaceFileRequest,
        accepted: Accepted,
    ) -> Result<Message, Refusal> {
        let Accepted {
            mut existing,
            specs,
        } = accepted;
        let old = existing.requested_checksum(context, specs.requested_old.as_ref());
        let old = old.await?;
        let offer = Offer {
            address: &request.file_address,
            size: announced_size(Some(request.file_size)),
            given: specs.given_new.as_ref(),
            requested: specs.requested_new.as_ref(),
        };
        let Existing {
            collection, claim, ..
        } = existing;
        let received = offer.receive(context, claim, Arrival::Version).await?;
        let staged = context.archive.stage(received).await?;
        let new = requested_of(context, specs.requested_new.as_ref(), &staged.checksums);
        let operation = OpenOperation {
            key: operation_key(
                &request.header,
                Operation::ReplaceFile,
                &collection,
                &request.file_id,
            ),
            new: Some(version(context, &staged)?),
            audit: AuditEntry {
                action: FileAction::ReplaceFile,
                info: Some("file replaced".to_owned()),
                audit_trail_information: request.audit_trail_information.clone(),
                ..origin.event(&request.header, &request.file_id)
            },
            response: respond(context, request, "the file is replaced", old, new),
        };
        change::carry_out(context, operation, Change::Replace(Box::new(staged))).await
    }

    fn event_of_refusal(
        context: &Context,
        origin: &Origin,
        request: &ReplaceFileRequest,
        refusal: &Refusal,
    ) -> Option<(CollectionId, AuditEntry)> {
        let destructive = Destructive {
            header: &request.header,
            pillar_id: request.pillar_id.as_ref(),
            file_id: &request.file_id,
            operation: Operation::ReplaceFile,
            audit_trail_information: request.audit_trail_information.as_deref(),
        };
        origin.event_of_refusal(context, &destructive, refusal)
    }
}

async fn prior(
    context: &Context,
    request: &ReplaceFileRequest,
    collection: &CollectionId,
    claim: Claim,
) -> Result<(Claim, Prior), Refusal> {
    let key = operation_key(
        &request.header,
        Operation::ReplaceFile,
        collection,
        &request.file_id,
    );
    change::prior(context, claim, &key).await
}

/// Whether the file is the new one already: an earlier request may have brought it, whose answer the client did not
/// get. The bytes on the disk must be these, not only the index's word for them. They are not read if it is plain that
/// the file is the old one, which is `meant`, and that the new one is another.
async fn is_there(
    context: &Context,
    request: &ReplaceFileRequest,
    existing: &mut Existing,
    specs: &Specs,
    meant: bool,
) -> Result<bool, Refusal> {
    let Some(new) = &specs.given_new else {
        return Ok(false);
    };
    let (spec, value) = new;
    if meant && *spec == context.default_spec && *value != existing.row.observed {
        return Ok(false);
    }
    let size = announced_size(Some(request.file_size));
    existing.has(context, new, size).await
}

/// Whoever does not mean the file is not told its checksum.
fn not_meant(by_the_index: bool) -> Refusal {
    let text = match by_the_index {
        false => "the file is not replaced: its checksum is not the given one",
        true => {
            "the file is not replaced: its bytes have changed, their checksum is not the given one"
        }
    };
    Refusal::illegal_operation(ResponseCode::ExistingFileChecksumFailure, text)
}

/// What the client asks for is the case, so that is what it is told, as a second delete is. Nothing is done or written
/// down, so nothing is remembered either; whoever asks again is answered by what is there then.
async fn already_there(
    context: &Context,
    request: &ReplaceFileRequest,
    existing: &mut Existing,
    specs: &Specs,
) -> Result<Checked<Accepted>, Refusal> {
    let old = existing.requested_checksum(context, specs.requested_old.as_ref());
    let old = old.await?;
    let new = existing.requested_checksum(context, specs.requested_new.as_ref());
    let new = new.await?;
    let text = "the new file is already in the archive";
    let response = respond(context, request, text, old, new);
    Ok(Checked::Done(Box::new(response)))
}

fn version(context: &Context, staged: &StagedFile) -> Result<NewVersion, Refusal> {
    Ok(NewVersion {
        directory: staged.directory.clone(),
        size: staged.size,
        checksum: download::default_checksum(context, &staged.checksums)?,
    })
}

/// The new file's checksum, if one is asked for; its time is that of the commit.
fn requested_of(
    context: &Context,
    spec: Option<&Spec>,
    checksums: &Checksums,
) -> Option<ChecksumData> {
    let spec = spec?;
    Some(ChecksumData {
        checksum_spec: ChecksumSpec::from(spec),
        checksum_value: checksums.value(spec)?.clone(),
        calculation_timestamp: context.component.timestamp(),
    })
}

fn respond(
    context: &Context,
    request: &ReplaceFileRequest,
    text: &str,
    checksum_data_for_existing_file: Option<ChecksumData>,
    checksum_data_for_new_file: Option<ChecksumData>,
) -> Message {
    ReplaceFileFinalResponse {
        header: context.response_header(&request.header),
        response_info: completed(text),
        pillar_id: Some(context.component.id().clone()),
        pillar_checksum_spec: None,
        file_id: request.file_id.clone(),
        file_address: request.file_address.clone(),
        checksum_data_for_existing_file,
        checksum_data_for_new_file,
    }
    .into()
}
