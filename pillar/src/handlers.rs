//! One handler per operation. A handler checks, then performs, and knows nothing of the bus.
//!
//! [`identify`] and [`operate`] pick the handler by the request's type; `None` is a request that no handler of
//! this pillar is for.

mod delete_file;
mod get_audit_trails;
mod get_checksums;
mod get_file;
mod get_file_ids;
mod get_status;
mod put_file;
mod replace_file;

use std::{fmt, future::Future};

use pillarbox_component::{Received, alarms::FailureKind};
use pillarbox_messages::{
    ChecksumSpec, CollectionId, ComponentId, FileAction, FileId, Header, Message, Operation,
    ResponseCode,
};

use crate::{
    checks,
    context::Context,
    index::{AuditEntry, OperationKey, Remembered},
    refusal::Refusal,
    shortage::Lacking,
};

/// What comes of a request: the answer, and why it is not the one that was hoped for.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) message: Message,
    pub(crate) refusal: Option<Refusal>,
}

/// An operation's two steps. What `check` finds out is handed to `perform`.
trait Handler {
    /// The operation request.
    type Request: Clone + Into<Message> + Send + Sync;
    /// What the checks found.
    type Accepted: Send;

    /// Everything that can be refused before anything is moved, in the protocol's order.
    fn check(
        context: &Context,
        request: &Self::Request,
    ) -> impl Future<Output = Result<Checked<Self::Accepted>, Refusal>> + Send;

    /// What is told once the checks have passed.
    fn progress(context: &Context, request: &Self::Request, accepted: &Self::Accepted) -> Message;

    /// Does it, and gives the final response.
    fn perform(
        context: &Context,
        origin: &Origin,
        request: &Self::Request,
        accepted: Self::Accepted,
    ) -> impl Future<Output = Result<Message, Refusal>> + Send;

    /// What the audit trail keeps of a refused request: nothing, unless it would have taken an archived file's
    /// bytes away.
    fn event_of_refusal(
        _context: &Context,
        _origin: &Origin,
        _request: &Self::Request,
        _refusal: &Refusal,
    ) -> Option<(CollectionId, AuditEntry)> {
        None
    }

    /// Adds to a refusing answer what only this operation has.
    fn refused(_refusal: &Refusal, _answer: &mut Message) {}
}

/// What the checks have come to.
enum Checked<T> {
    /// The operation may be performed.
    Accepted(T),
    /// The very same request was carried out before; this was the answer. Nothing is done again.
    Done(Box<Message>),
}

/// Where a request came from, for the audit trail.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    /// Fingerprint of the certificate that the request was signed with.
    pub(crate) certificate: Option<String>,
}

impl Origin {
    /// The beginning of an audit event about a request for a file.
    fn event(&self, request: &Header, file_id: &FileId) -> AuditEntry {
        AuditEntry {
            file_id: file_id.clone(),
            actor: request.from.clone(),
            action: FileAction::Other,
            info: None,
            operation_id: Some(request.correlation_id.clone()),
            certificate_id: self.certificate.clone(),
            audit_trail_information: None,
        }
    }

    /// The audit event of a request to take a file's bytes away, which was refused: none if it was not for this
    /// pillar, or for none of its collections.
    fn event_of_refusal(
        &self,
        context: &Context,
        destructive: &Destructive<'_>,
        refusal: &Refusal,
    ) -> Option<(CollectionId, AuditEntry)> {
        let Destructive {
            header,
            pillar_id,
            file_id,
            operation,
            audit_trail_information,
        } = destructive;
        let collection = checks::collection(context, header).ok()?;
        checks::pillar(context, *pillar_id).ok()?;
        let code = FailureKind::row(refusal.kind).response;
        let info = format!(
            "{} refused, {}: {}",
            operation.as_str(),
            code.as_str(),
            refusal.answer
        );
        let event = AuditEntry {
            action: FileAction::Failure,
            info: Some(info),
            audit_trail_information: audit_trail_information.map(str::to_owned),
            ..self.event(header, file_id)
        };
        Some((collection.clone(), event))
    }
}

/// What requests to take a file's bytes away have in common.
struct Destructive<'a> {
    header: &'a Header,
    pillar_id: Option<&'a ComponentId>,
    file_id: &'a FileId,
    operation: Operation,
    audit_trail_information: Option<&'a str>,
}

/// Takes the progress responses that a handler sends on its way.
pub(crate) trait Progress: Send + Sync {
    /// Sends one; that it can't be sent does not stop the operation.
    fn send(&self, message: Message) -> impl Future<Output = ()> + Send;
}

/// Answers an identify request.
pub(crate) async fn identify(context: &Context, request: &Message) -> Option<Answer> {
    let result = match request {
        Message::IdentifyPillarsForPutFileRequest(it) => put_file::identify(context, it).await,
        Message::IdentifyPillarsForReplaceFileRequest(it) => {
            replace_file::identify(context, it).await
        }
        Message::IdentifyPillarsForDeleteFileRequest(it) => {
            delete_file::identify(context, it).await
        }
        Message::IdentifyPillarsForGetFileRequest(it) => get_file::identify(context, it).await,
        Message::IdentifyPillarsForGetFileIdsRequest(it) => {
            get_file_ids::identify(context, it).await
        }
        Message::IdentifyPillarsForGetChecksumsRequest(it) => {
            get_checksums::identify(context, it).await
        }
        Message::IdentifyContributorsForGetAuditTrailsRequest(it) => {
            Ok(get_audit_trails::identify(context, it))
        }
        Message::IdentifyContributorsForGetStatusRequest(it) => {
            Ok(get_status::identify(context, it)?)
        }
        _ => return None,
    };
    match result {
        Ok(message) => Some(Answer {
            message: with_kept_spec(context, message),
            refusal: None,
        }),
        Err(refusal) => refuse(context, request, refusal, |_, _| {}),
    }
}

/// Performs an operation request.
pub(crate) async fn operate(
    context: &Context,
    received: &Received,
    progress: &impl Progress,
) -> Option<Answer> {
    let origin = Origin {
        certificate: received.certificate.clone(),
    };
    match &received.message {
        Message::PutFileRequest(it) => {
            run::<put_file::PutFile>(context, &origin, it, progress).await
        }
        Message::ReplaceFileRequest(it) => {
            Box::pin(run::<replace_file::ReplaceFile>(
                context, &origin, it, progress,
            ))
            .await
        }
        Message::DeleteFileRequest(it) => {
            Box::pin(run::<delete_file::DeleteFile>(
                context, &origin, it, progress,
            ))
            .await
        }
        Message::GetFileRequest(it) => {
            run::<get_file::GetFile>(context, &origin, it, progress).await
        }
        Message::GetFileIdsRequest(it) => {
            run::<get_file_ids::GetFileIds>(context, &origin, it, progress).await
        }
        Message::GetChecksumsRequest(it) => {
            run::<get_checksums::GetChecksums>(context, &origin, it, progress).await
        }
        Message::GetAuditTrailsRequest(it) => {
            run::<get_audit_trails::GetAuditTrails>(context, &origin, it, progress).await
        }
        Message::GetStatusRequest(it) => {
            run::<get_status::GetStatus>(context, &origin, it, progress).await
        }
        _ => None,
    }
}

/// The answer to a request whose handler panicked.
pub(crate) fn crashed(context: &Context, request: &Message, panic: &str) -> Option<Answer> {
    refuse(context, request, Refusal::unexpected(panic), |_, _| {})
}

/// The answer in place of one that the bus does not carry.
pub(crate) fn unsendable(
    context: &Context,
    request: &Message,
    why: &impl fmt::Display,
) -> Option<Answer> {
    let text = format!("the answer is too large for the bus: {why}; ask for less at once");
    let refusal = Refusal::rejection(ResponseCode::Failure, text);
    refuse(context, request, refusal, |_, _| {})
}

async fn run<H: Handler>(
    context: &Context,
    origin: &Origin,
    request: &H::Request,
    progress: &impl Progress,
) -> Option<Answer> {
    let result = match H::check(context, request).await {
        Ok(Checked::Done(message)) => Ok(*message),
        Ok(Checked::Accepted(accepted)) => {
            let message = H::progress(context, request, &accepted);
            let told = progress.send(with_kept_spec(context, message));
            // On its way first, but the work does not wait for room on the connection.
            let performed = H::perform(context, origin, request, accepted);
            tokio::join!(told, performed).1
        }
        Err(refusal) => Err(refusal),
    };
    match result {
        Ok(message) => {
            if matches!(
                message,
                Message::PutFileFinalResponse(_) | Message::ReplaceFileFinalResponse(_)
            ) {
                context.shortages.is_over(Lacking::Disk);
            }
            Some(Answer {
                message: with_kept_spec(context, message),
                refusal: None,
            })
        }
        Err(refusal) => {
            let refusal = record::<H>(context, origin, request, refusal).await;
            refuse(context, &request.clone().into(), refusal, H::refused)
        }
    }
}

/// Writes down what is to be known of a refusal before it is answered. What can't be written down has failed.
async fn record<H: Handler>(
    context: &Context,
    origin: &Origin,
    request: &H::Request,
    refusal: Refusal,
) -> Refusal {
    let Some((collection, event)) = H::event_of_refusal(context, origin, request, &refusal) else {
        return refusal;
    };
    match context.index.append(&collection, event).await {
        Ok(_) => refusal,
        Err(error) => {
            let detail = format!("{error}, when this was refused: {}", refusal.alarm_text());
            Refusal::from(error).with_detail(detail)
        }
    }
}

fn refuse(
    context: &Context,
    request: &Message,
    refusal: Refusal,
    amend: impl FnOnce(&Refusal, &mut Message),
) -> Option<Answer> {
    if let Some(lacking) = refusal.lacking {
        let now_ms = context.component.clock().now_ms();
        context.shortages.note(lacking, now_ms);
    }
    let code = FailureKind::row(refusal.kind).response;
    let mut message = context.refuse(request, code, &refusal.answer)?;
    amend(&refusal, &mut message);
    Some(Answer {
        message: with_kept_spec(context, message),
        refusal: Some(refusal),
    })
}

/// A pillar that keeps checksums only says of which spec, wherever a response has a place for it
/// (`PillarChecksumSpec`).
fn with_kept_spec(context: &Context, mut message: Message) -> Message {
    if context.archive.keeps_bytes() {
        return message;
    }
    let place = match &mut message {
        Message::IdentifyPillarsForPutFileResponse(it) => &mut it.pillar_checksum_spec,
        Message::IdentifyPillarsForReplaceFileResponse(it) => &mut it.pillar_checksum_spec,
        Message::IdentifyPillarsForDeleteFileResponse(it) => &mut it.pillar_checksum_spec,
        Message::IdentifyPillarsForGetChecksumsResponse(it) => &mut it.pillar_checksum_spec,
        Message::PutFileProgressResponse(it) => &mut it.pillar_checksum_spec,
        Message::PutFileFinalResponse(it) => &mut it.pillar_checksum_spec,
        Message::ReplaceFileProgressResponse(it) => &mut it.pillar_checksum_spec,
        Message::ReplaceFileFinalResponse(it) => &mut it.pillar_checksum_spec,
        _ => return message,
    };
    *place = Some(ChecksumSpec::from(&context.default_spec));
    message
}

/// The key under which an operation is remembered.
fn operation_key(
    request: &Header,
    operation: Operation,
    collection: &CollectionId,
    file_id: &FileId,
) -> OperationKey {
    OperationKey {
        from: request.from.clone(),
        correlation: request.correlation_id.clone(),
        operation,
        collection: collection.clone(),
        file_id: file_id.clone(),
    }
}

/// A remembered final response, for the same request come again.
fn again(context: &Context, request: &Header, remembered: &Remembered) -> Result<Message, Refusal> {
    let mut response = Message::from_xml(&remembered.response).map_err(Refusal::unexpected)?;
    // The requester may listen elsewhere by now.
    *response.header_mut() = context.response_header(request);
    Ok(response)
}
