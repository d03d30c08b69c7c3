//! GetFile: an archived file, or a part of it, is delivered to the address that the client names.

use std::{
    num::NonZeroU64,
    slice,
    sync::{Arc, Mutex, PoisonError},
};

use pillarbox_messages::{
    CollectionId, FileAction, FilePart, GetFileFinalResponse, GetFileProgressResponse,
    GetFileRequest, HexBinary, IdentifyPillarsForGetFileRequest, IdentifyPillarsForGetFileResponse,
    Message, ResponseCode, wording::count,
};

use super::{Checked, Handler, Origin};
use crate::{
    archive::StoredFile,
    checks,
    context::{Context, accepted, completed, identified},
    digests::{Digests, Spec},
    index::{AuditEntry, FileRow},
    noticing::{self, Seen},
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
    /// The row of what was opened, if that is sure.
    row: Option<FileRow>,
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
                    "the file has {}, and none in a part of {wanted} from {offset} on",
                    count(size, "byte")
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
            row: row_of_opened(context, collection, row).await?,
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
            checksum_data_for_existing_file: found.row.as_ref().map(|row| context.observed(row)),
        }
        .into()
    }

    async fn perform(
        context: &Context,
        origin: &Origin,
        request: &GetFileRequest,
        found: Accepted,
    ) -> Result<Message, Refusal> {
        let collection = found.collection.clone();
        let delivered = deliver(context, &request.file_address, found).await?;
        let entry = AuditEntry {
            action: FileAction::GetFile,
            info: Some(delivered.event),
            audit_trail_information: request.audit_trail_information.clone(),
            ..origin.event(&request.header, &request.file_id)
        };
        context.index.append(&collection, entry).await?;
        Ok(GetFileFinalResponse {
            header: context.response_header(&request.header),
            response_info: completed(delivered.answer),
            pillar_id: Some(context.component.id().clone()),
            file_id: request.file_id.clone(),
            file_part: request.file_part.clone(),
            file_address: request.file_address.clone(),
        }
        .into())
    }
}

/// The row of a file that was opened after `row` was read. Nothing if a replace may have come in between: of bytes
/// that the index does not know yet nothing is told.
async fn row_of_opened(
    context: &Context,
    collection: &CollectionId,
    row: FileRow,
) -> Result<Option<FileRow>, Refusal> {
    let settled = context.index.settled(collection, &row.file_id).await?;
    Ok(settled.filter(|now| now.modified_ms == row.modified_ms))
}

/// What is said of a delivery.
struct Delivered {
    /// To the client.
    answer: &'static str,
    /// In the audit trail.
    event: String,
}

async fn deliver(context: &Context, address: &str, found: Accepted) -> Result<Delivered, Refusal> {
    let Some(Part { offset, length }) = found.part else {
        return deliver_whole(context, address, found).await;
    };
    let StoredFile { file, size, .. } = found.stored;
    let exchange = &context.exchange;
    exchange
        .put_open_part(address, file, offset, length)
        .await?;
    Ok(Delivered {
        answer: DELIVERED,
        event: format!(
            "part of the file delivered: {} from {offset} on, of {size}",
            count(length.get(), "byte")
        ),
    })
}

/// Computes the checksum of what is read on its way; what was not known of it before is written down, and people are
/// told.
async fn deliver_whole(
    context: &Context,
    address: &str,
    found: Accepted,
) -> Result<Delivered, Refusal> {
    let StoredFile {
        file,
        size,
        identity,
    } = found.stored;
    let passing = Passing::new(context);
    let sent = context
        .exchange
        .put_open_file(address, file, passing.watch())
        .await;
    let checksum = passing.checksum(size, &context.default_spec);
    let mut unexpected = None;
    if let Some((row, checksum)) = found.row.zip(checksum) {
        let seen = Seen { identity, checksum };
        // Also if the other side has refused it at last.
        noticing::notice(context, &found.collection, &row, &seen).await?;
        unexpected = Some(FileRow {
            observed: seen.checksum,
            ..row
        });
    }
    sent?;
    Ok(
        match unexpected.filter(|row| row.observed != row.expected) {
            None => Delivered {
                answer: DELIVERED,
                event: "file delivered".to_owned(),
            },
            Some(row) => Delivered {
                answer: "the file is delivered, with bytes that do not match the checksum it was stored with",
                event: format!(
                    "file delivered, with bytes that do not match: {}",
                    row.difference()
                ),
            },
        },
    )
}

const DELIVERED: &str = "the file is delivered";

/// The bytes of a file as they pass, from its start to its end if nothing stops them.
struct Passing(Arc<Mutex<Passed>>);

struct Passed {
    bytes: u64,
    digests: Digests,
}

impl Passing {
    fn new(context: &Context) -> Self {
        Self(Arc::new(Mutex::new(Passed {
            bytes: 0,
            digests: Digests::new(slice::from_ref(&context.default_spec)),
        })))
    }

    /// What looks at them.
    fn watch(&self) -> impl FnMut(&[u8]) + Send + 'static {
        let passed = Arc::clone(&self.0);
        move |bytes| {
            let mut passed = passed.lock().unwrap_or_else(PoisonError::into_inner);
            passed.bytes += bytes.len() as u64;
            passed.digests.update(bytes);
        }
    }

    /// Their checksum, if all of them have passed.
    fn checksum(self, size: u64, spec: &Spec) -> Option<HexBinary> {
        let mut passed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if passed.bytes != size {
            return None;
        }
        let digests = std::mem::replace(&mut passed.digests, Digests::new(&[]));
        digests.finish().value(spec).cloned()
    }
}
