//! `pillarbox get-file-ids`.

use pillarbox_client::{
    ComponentResult, Event, GetFileIds,
    listing::{Entry, Merge},
};
use pillarbox_messages::{ComponentId, FileId};

use super::{pillars_asked, result_of};
use crate::{
    args::GetFileIdsArgs,
    client_setup::{ClientSetup, check, not_started, print},
    failure::Failure,
    tables,
};

pub(super) async fn run(args: GetFileIdsArgs) -> Result<(), Failure> {
    let setup = ClientSetup::load(&args.client)?;
    let mut request = GetFileIds::new(ClientSetup::collection(&args.client));
    request.file_id = args.file_id.as_deref().map(FileId::from);
    request.pillars = args
        .pillar
        .as_deref()
        .map(|pillar| vec![ComponentId::from(pillar)]);
    request.validate(&setup.repository).map_err(not_started)?;
    let asked = pillars_asked(
        &setup.repository,
        &request.collection,
        request.pillars.as_deref(),
    );
    let session = setup.connect().await?;
    let running = session
        .client()
        .get_file_ids(request)
        .await
        .map_err(not_started)?;
    let json = args.client.json;
    if !json {
        print(tables::FILE_IDS)?;
    }
    let row = |entry: Entry<Option<u64>>| {
        print(&if json {
            tables::file_ids_json(&entry)
        } else {
            tables::file_ids(&entry)
        })
    };
    let mut merge = Merge::new(asked);
    let mut printed = Ok(());
    let outcome = session
        .follow(running, |event| {
            let Some((pillar, items)) = page(event) else {
                return;
            };
            for entry in merge.take(pillar, items) {
                if printed.is_ok() {
                    printed = row(entry);
                }
            }
        })
        .await;
    session.close().await;
    printed?;
    merge.finish().try_for_each(row)?;
    check(&outcome?)
}

/// The files of an event that carries some.
fn page(event: &Event) -> Option<(&ComponentId, impl Iterator<Item = (FileId, Option<u64>)>)> {
    let (pillar, result) = result_of(event)?;
    let ComponentResult::FileIds(page) = result else {
        return None;
    };
    Some((
        pillar,
        page.items
            .iter()
            .map(|item| (item.file_id.clone(), item.file_size)),
    ))
}
