//! GetChecksums: the checksums of the pillar's files. The default one comes from the index, oldest first; others
//! are computed from the bytes on disk, in the same order.

use std::slice;

use pillarbox_messages::{
    ChecksumDataItem, ChecksumSpec, FileIds, GetChecksumsFinalResponse,
    GetChecksumsProgressResponse, GetChecksumsRequest, HexBinary,
    IdentifyPillarsForGetChecksumsRequest, IdentifyPillarsForGetChecksumsResponse, Message,
    ResultingChecksums, Timestamp, results::ChecksumsWriter,
};

use super::{Checked, Handler, Origin};
use crate::{
    checks::{self, asked_address},
    context::{Context, accepted, completed, identified},
    digests::Spec,
    disk_checksum,
    index::FileRow,
    listing::{Files, Interval, Listing, Order},
    noticing,
    refusal::Refusal,
    result_document,
};

/// Ready, if the checksum can be computed; for one file, if it is here.
pub(super) async fn identify(
    context: &Context,
    request: &IdentifyPillarsForGetChecksumsRequest,
) -> Result<Message, Refusal> {
    let collection = checks::collection(context, &request.header)?;
    checks::requested_spec(context, request.checksum_request_for_existing_file.as_ref())?;
    if let FileIds::File(id) = &request.file_ids {
        checks::file_id(context, id)?;
        checks::known(context, collection, id).await?;
    }
    Ok(IdentifyPillarsForGetChecksumsResponse {
        header: context.response_header(&request.header),
        response_info: identified(),
        file_ids: request.file_ids.clone(),
        checksum_request_for_existing_file: request.checksum_request_for_existing_file.clone(),
        pillar_id: context.component.id().clone(),
        pillar_checksum_spec: None,
        time_to_deliver: Some(context.time_to_deliver()),
    }
    .into())
}

/// The operation.
pub(super) struct GetChecksums;

/// What the checks found.
pub(super) struct Accepted {
    listing: Listing,
    spec: Spec,
    /// One file was asked for: then it must be there.
    single: bool,
    interval: Interval,
}

impl Handler for GetChecksums {
    type Request = GetChecksumsRequest;
    type Accepted = Accepted;

    async fn check(
        context: &Context,
        request: &GetChecksumsRequest,
    ) -> Result<Checked<Accepted>, Refusal> {
        let collection = checks::collection(context, &request.header)?;
        checks::pillar(context, request.pillar_id.as_ref())?;
        let spec =
            checks::requested_spec(context, request.checksum_request_for_existing_file.as_ref())?
                .unwrap_or_else(|| context.default_spec.clone());
        let interval = Interval::new(
            request.min_timestamp.as_ref(),
            request.max_timestamp.as_ref(),
        );
        let limit = request.max_number_of_results;
        checks::result_address(context, request.result_address.as_deref())?;
        let single = matches!(request.file_ids, FileIds::File(_));
        // Of one file, a checksum that the index does not have is computed now, and that is its time.
        let listed = match single && spec != context.default_spec {
            true => Interval::default(),
            false => interval,
        };
        let listing = Listing::asked(
            context,
            collection,
            &request.file_ids,
            listed,
            Order::Calculated,
            limit,
        );
        Ok(Checked::Accepted(Accepted {
            listing: listing.await?,
            spec,
            single,
            interval,
        }))
    }

    fn progress(context: &Context, request: &GetChecksumsRequest, _accepted: &Accepted) -> Message {
        GetChecksumsProgressResponse {
            header: context.response_header(&request.header),
            response_info: accepted("started to collect the checksums"),
            pillar_id: Some(context.component.id().clone()),
            file_ids: Some(request.file_ids.clone()),
            checksum_request_for_existing_file: request.checksum_request_for_existing_file.clone(),
            result_address: request.result_address.clone(),
        }
        .into()
    }

    async fn perform(
        context: &Context,
        _origin: &Origin,
        request: &GetChecksumsRequest,
        mut accepted: Accepted,
    ) -> Result<Message, Refusal> {
        let resulting = match asked_address(request.result_address.as_deref()) {
            Some(address) => {
                deliver(context, &mut accepted, address).await?;
                ResultingChecksums::Address(address.to_owned())
            }
            None => ResultingChecksums::Items(inline(context, &mut accepted).await?),
        };
        Ok(GetChecksumsFinalResponse {
            header: context.response_header(&request.header),
            response_info: completed("the checksums are collected"),
            pillar_id: Some(context.component.id().clone()),
            checksum_request_for_existing_file: Some(ChecksumSpec::from(&accepted.spec)),
            resulting_checksums: Some(resulting),
            partial_result: Some(accepted.listing.more()),
        }
        .into())
    }
}

async fn inline(
    context: &Context,
    accepted: &mut Accepted,
) -> Result<Vec<ChecksumDataItem>, Refusal> {
    let mut items = Vec::new();
    while let Some(row) = accepted.listing.next_inline(context).await? {
        items.extend(item(context, accepted, row).await?);
    }
    Ok(items)
}

/// Writes the result document and sends it where the client asked for it.
async fn deliver(context: &Context, accepted: &mut Accepted, address: &str) -> Result<(), Refusal> {
    let document = context.results.begin().await?;
    let mut writer = ChecksumsWriter::start(
        document.writer(),
        &accepted.listing.source.collection,
        Some(context.component.id()),
    )
    .map_err(result_document::failed)?;
    while let Some(row) = accepted.listing.next(context).await? {
        if let Some(item) = item(context, accepted, row).await? {
            writer.item(&item).map_err(result_document::failed)?;
            document.write_out().await?;
        }
    }
    writer.finish().map_err(result_document::failed)?;
    document.send(context, address).await
}

/// A file's checksum; nothing for a file among all that is gone from the disk meanwhile, or for one whose checksum is
/// of another time than was asked for.
async fn item(
    context: &Context,
    accepted: &mut Accepted,
    row: FileRow,
) -> Result<Option<ChecksumDataItem>, Refusal> {
    let listed = Timestamp::from_millis(row.calculated_ms);
    let (value, time) = if accepted.spec == context.default_spec {
        (row.observed, listed)
    } else {
        match compute(context, accepted, &row).await? {
            Some(value) if accepted.single => (value, context.component.timestamp()),
            // Among all files the timestamp is the place in the order, by which a client pages on.
            Some(value) => (value, listed),
            None if accepted.single => return Err(Refusal::not_found()),
            None => return Ok(None),
        }
    };
    if accepted.single && !accepted.interval.contains(time.millis()) {
        return Ok(None);
    }
    Ok(Some(ChecksumDataItem {
        file_id: row.file_id,
        checksum_value: value,
        calculation_timestamp: time,
    }))
}

/// The checksum of a file as its bytes have it; `None` if it is gone from the disk. What was not known of the bytes
/// before is written down, and people are told.
async fn compute(
    context: &Context,
    accepted: &mut Accepted,
    row: &FileRow,
) -> Result<Option<HexBinary>, Refusal> {
    let Accepted { listing, spec, .. } = accepted;
    let Files {
        collection, moved, ..
    } = &mut listing.source;
    let Some(stored) = context.open_known(collection, row).await? else {
        return Ok(None);
    };
    let computed =
        disk_checksum::compute(context, &row.file_id, stored, slice::from_ref(spec)).await?;
    if moved.len() < MOST_MOVED
        && noticing::notice(context, collection, row, &computed.seen).await?
    {
        moved.insert(row.file_id.clone());
    }
    computed.value(spec).map(Some)
}

/// Beyond so many, what is found is left to those who read the files later: memory is bounded.
const MOST_MOVED: usize = 10_000;
