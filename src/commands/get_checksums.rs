//! `pillarbox get-checksums`.

use pillarbox_client::{
    ComponentResult, Event, GetChecksums,
    listing::{Entry, Merge},
};
use pillarbox_messages::{ComponentId, FileId, HexBinary};

use super::{pillars_asked, result_of};
use crate::{
    args::GetChecksumsArgs,
    checksum_args,
    client_setup::{ClientSetup, check, not_started, print, say},
    failure::Failure,
    tables,
};

pub(super) async fn run(args: GetChecksumsArgs) -> Result<(), Failure> {
    let setup = ClientSetup::load(&args.client)?;
    let mut request = GetChecksums::new(ClientSetup::collection(&args.client));
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
    let asked = pillars_asked(
        &setup.repository,
        &request.collection,
        request.pillars.as_deref(),
    );
    let session = setup.connect().await?;
    let style = Style::of(&args);
    let running = session
        .client()
        .get_checksums(request)
        .await
        .map_err(not_started)?;
    print(style.heading())?;
    let mut merge = Merge::new(asked);
    let mut printed = Ok(());
    let outcome = session
        .follow(running, |event| {
            let Some((pillar, items)) = page(event) else {
                return;
            };
            for entry in merge.take(pillar, items) {
                if printed.is_ok() {
                    printed = print(&style.row(&entry));
                }
            }
        })
        .await;
    session.close().await;
    printed?;
    merge
        .finish()
        .try_for_each(|entry| print(&style.row(&entry)))?;
    check(&outcome?)
}

/// How results are printed.
#[derive(Clone, Copy, Debug)]
enum Style {
    AllFiles,
    OneFile,
    Json,
}

impl Style {
    const fn of(args: &GetChecksumsArgs) -> Self {
        match (args.client.json, &args.file_id) {
            (true, _) => Self::Json,
            (false, Some(_)) => Self::OneFile,
            (false, None) => Self::AllFiles,
        }
    }

    const fn heading(self) -> &'static str {
        match self {
            Self::AllFiles => tables::CHECKSUMS_OF_ALL,
            Self::OneFile => tables::CHECKSUMS_OF_ONE,
            Self::Json => "",
        }
    }

    fn row(self, entry: &Entry<HexBinary>) -> String {
        match self {
            Self::AllFiles => tables::checksums_of_all(entry),
            Self::OneFile => tables::checksums_of_one(entry),
            Self::Json => tables::checksums_json(entry),
        }
    }
}

/// The checksums of an event that carries some.
fn page(event: &Event) -> Option<(&ComponentId, impl Iterator<Item = (FileId, HexBinary)>)> {
    let (pillar, result) = result_of(event)?;
    let ComponentResult::Checksums(checksums) = result else {
        return None;
    };
    let items = &checksums.page.items;
    Some((
        pillar,
        items
            .iter()
            .map(|item| (item.file_id.clone(), item.checksum_value.clone())),
    ))
}
