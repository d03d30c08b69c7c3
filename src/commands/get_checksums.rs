//! `pillarbox get-checksums`.

use pillarbox_client::{ComponentResult, GetChecksums};
use pillarbox_messages::{CollectionId, ComponentId, FileId, HexBinary};

use super::listing::Listing;
use crate::{
    args::operations::GetChecksumsArgs,
    checksum_args,
    client_setup::{ClientSetup, not_started},
    failure::Failure,
    output::say,
    tables,
};

pub(super) async fn run(args: GetChecksumsArgs) -> Result<(), Failure> {
    let setup = ClientSetup::load(&args.collection.client)?;
    let mut request = GetChecksums::new(CollectionId::from(args.collection.collection.as_str()));
    request.file_id = args.file_id.as_deref().map(FileId::from);
    request.pillars = args
        .pillar
        .as_deref()
        .map(|pillar| vec![ComponentId::from(pillar)]);
    if let Some(asked) = checksum_args::requested(&args.request, setup.repository.default_checksum)?
    {
        asked.notice.as_deref().into_iter().for_each(say);
        request.checksum = Some(asked.spec);
    }
    request.validate(&setup.repository).map_err(not_started)?;
    let session = setup.connect().await?;
    let json = args.collection.client.json;
    let of_one = args.file_id.is_some();
    let heading = match (json, of_one) {
        (true, _) => "",
        (false, true) => tables::CHECKSUMS_OF_ONE,
        (false, false) => tables::CHECKSUMS_OF_ALL,
    };
    let row = match (json, of_one) {
        (true, _) => tables::checksums_json,
        (false, true) => tables::checksums_of_one,
        (false, false) => tables::checksums_of_all,
    };
    let client = session.client();
    let start = client.get_checksums(request);
    let listing = Listing {
        heading,
        items,
        row,
        agree: tables::checksums_agree,
        values: "checksums",
        json,
    };
    listing.run(session, start).await
}

fn items(result: &ComponentResult) -> Vec<(FileId, HexBinary)> {
    let ComponentResult::Checksums(checksums) = result else {
        return Vec::new();
    };
    let items = checksums.page.items.iter();
    items
        .map(|item| (item.file_id.clone(), item.checksum_value.clone()))
        .collect()
}
