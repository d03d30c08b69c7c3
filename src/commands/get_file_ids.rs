//! `pillarbox get-file-ids`.

use pillarbox_client::{ComponentResult, GetFileIds};
use pillarbox_messages::{CollectionId, ComponentId, FileId};

use super::listing::Listing;
use crate::{
    args::operations::GetFileIdsArgs,
    client_setup::{ClientSetup, not_started},
    failure::Failure,
    tables,
};

pub(super) async fn run(args: GetFileIdsArgs) -> Result<(), Failure> {
    let setup = ClientSetup::load(&args.collection.client)?;
    let mut request = GetFileIds::new(CollectionId::from(args.collection.collection.as_str()));
    request.file_id = args.file_id.as_deref().map(FileId::from);
    request.pillars = args
        .pillar
        .as_deref()
        .map(|pillar| vec![ComponentId::from(pillar)]);
    request.validate(&setup.repository).map_err(not_started)?;
    let session = setup.connect().await?;
    let json = args.collection.client.json;
    let heading = if json { "" } else { tables::FILE_IDS };
    let row = if json {
        tables::file_ids_json
    } else {
        tables::file_ids
    };
    let client = session.client();
    let start = client.get_file_ids(request);
    let listing = Listing {
        heading,
        items,
        row,
        agree: tables::sizes_agree,
        values: "sizes",
        json,
    };
    listing.run(session, start).await
}

fn items(result: &ComponentResult) -> Vec<(FileId, Option<u64>)> {
    let ComponentResult::FileIds(page) = result else {
        return Vec::new();
    };
    let items = page.items.iter();
    items
        .map(|item| (item.file_id.clone(), item.file_size))
        .collect()
}
