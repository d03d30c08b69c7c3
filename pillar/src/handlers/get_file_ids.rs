//! GetFileIDs: which files the pillar has, oldest first, from the index.

use pillarbox_messages::{
    FileIds, FileIdsData, FileIdsDataItem, GetFileIdsFinalResponse, GetFileIdsProgressResponse,
    GetFileIdsRequest, IdentifyPillarsForGetFileIdsRequest, IdentifyPillarsForGetFileIdsResponse,
    Message, ResultingFileIds, Timestamp, results::FileIdsWriter,
};

use super::{Checked, Handler, Origin};
use crate::{
    checks::{self, asked_address},
    context::{Context, accepted, completed, identified},
    index::FileRow,
    listing::{Interval, Listing, Order},
    refusal::Refusal,
    result_document,
};

/// Ready; for one file, if it is here.
pub(super) async fn identify(
    context: &Context,
    request: &IdentifyPillarsForGetFileIdsRequest,
) -> Result<Message, Refusal> {
    let collection = checks::collection(context, &request.header)?;
    if let Some(FileIds::File(id)) = &request.file_ids {
        checks::file_id(context, id)?;
        checks::known(context, collection, id).await?;
    }
    Ok(IdentifyPillarsForGetFileIdsResponse {
        header: context.response_header(&request.header),
        response_info: identified(),
        pillar_id: context.component.id().clone(),
        file_ids: request.file_ids.clone(),
        time_to_deliver: Some(context.time_to_deliver()),
    }
    .into())
}

/// The operation.
pub(super) struct GetFileIds;

impl Handler for GetFileIds {
    type Request = GetFileIdsRequest;
    type Accepted = Listing;

    async fn check(
        context: &Context,
        request: &GetFileIdsRequest,
    ) -> Result<Checked<Listing>, Refusal> {
        let collection = checks::collection(context, &request.header)?;
        checks::pillar(context, request.pillar_id.as_ref())?;
        let interval = Interval::new(
            request.min_timestamp.as_ref(),
            request.max_timestamp.as_ref(),
        );
        let limit = request.max_number_of_results;
        checks::result_address(context, request.result_address.as_deref())?;
        let listing = Listing::asked(
            context,
            collection,
            &request.file_ids,
            interval,
            order(context),
            limit,
        );
        Ok(Checked::Accepted(listing.await?))
    }

    fn progress(context: &Context, request: &GetFileIdsRequest, _listing: &Listing) -> Message {
        GetFileIdsProgressResponse {
            header: context.response_header(&request.header),
            response_info: accepted("started to list the files"),
            pillar_id: Some(context.component.id().clone()),
            file_ids: Some(request.file_ids.clone()),
            result_address: request.result_address.clone(),
        }
        .into()
    }

    async fn perform(
        context: &Context,
        _origin: &Origin,
        request: &GetFileIdsRequest,
        mut listing: Listing,
    ) -> Result<Message, Refusal> {
        let resulting = match asked_address(request.result_address.as_deref()) {
            Some(address) => {
                deliver(context, &mut listing, address).await?;
                ResultingFileIds::Address(address.to_owned())
            }
            None => ResultingFileIds::Data(FileIdsData {
                items: inline(context, &mut listing).await?,
            }),
        };
        Ok(GetFileIdsFinalResponse {
            header: context.response_header(&request.header),
            response_info: completed("the files are listed"),
            pillar_id: Some(context.component.id().clone()),
            file_ids: Some(request.file_ids.clone()),
            resulting_file_ids: Some(resulting),
            // Left out where there is nothing to say, as peers expect of this operation.
            partial_result: listing.more().then_some(true),
        }
        .into())
    }
}

async fn inline(context: &Context, listing: &mut Listing) -> Result<Vec<FileIdsDataItem>, Refusal> {
    let mut items = Vec::new();
    while let Some(row) = listing.next_inline(context).await? {
        items.push(item(context, &row));
    }
    Ok(items)
}

/// Writes the result document and sends it where the client asked for it.
async fn deliver(context: &Context, listing: &mut Listing, address: &str) -> Result<(), Refusal> {
    let document = context.results.begin().await?;
    let mut writer = FileIdsWriter::start(
        document.writer(),
        &listing.source.collection,
        Some(context.component.id()),
    )
    .map_err(result_document::failed)?;
    while let Some(row) = listing.next(context).await? {
        writer
            .item(&item(context, &row))
            .map_err(result_document::failed)?;
        document.write_out().await?;
    }
    writer.finish().map_err(result_document::failed)?;
    document.send(context, address).await
}

/// What a pillar that keeps checksums only knows best is when it computed them.
fn order(context: &Context) -> Order {
    if context.archive.keeps_bytes() {
        Order::Modified
    } else {
        Order::Calculated
    }
}

fn item(context: &Context, row: &FileRow) -> FileIdsDataItem {
    FileIdsDataItem {
        file_id: row.file_id.clone(),
        last_modification_time: Timestamp::from_millis(order(context).time(row)),
        file_size: context.archive.keeps_bytes().then_some(row.size),
    }
}
