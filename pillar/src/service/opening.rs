//! Opening what a pillar keeps. First all of it is looked at, then what is missing is made.

use std::{num::NonZeroU64, path::Path};

use pillarbox_component::{Asked, Component, ComponentOptions, LinkMonitor};
use pillarbox_messages::{CollectionId, clock::SharedClock};
use pillarbox_settings::{PillarNode, PillarType, Repository};
use tokio::runtime::Handle;

use super::{PillarError, PillarOptions, Unanswered};
use crate::{
    archive::{Archive, ArchiveOptions, check_usable},
    change::Settler,
    context::Context,
    digests::Spec,
    index::{Index, IndexOptions},
    presence,
    result_document::Results,
    shortage::Shortages,
    take_over::Unexplored,
    untold::Untold,
    workers::Board,
};

/// Finds what would keep [`open`] from its work; makes nothing. Blocks.
pub(super) fn inspect(
    settings: &PillarNode,
    repository: &Repository,
    data: &Path,
    clock: SharedClock,
) -> Result<(), PillarError> {
    Spec::plain(repository.default_checksum)?;
    let collections = repository.collections_of_pillar(&settings.id);
    let collections: Vec<_> = collections.map(|it| it.id.clone()).collect();
    if collections.is_empty() {
        return Err(PillarError::NoCollection(settings.id.clone()));
    }
    check_usable(data).map_err(|source| PillarError::Data {
        path: data.to_owned(),
        source,
    })?;
    let options = index_options(settings, repository, data, clock);
    let index = options.path.exists().then(|| Index::open(options));
    let index = index.transpose()?;
    let kept = look(settings, data, index.as_ref(), &collections);
    if let Some(index) = index {
        Handle::current().block_on(index.close());
    }
    kept?;
    match settings.pillar_type {
        PillarType::Checksum => Ok(()),
        PillarType::File => Ok(Archive::inspect(&archive_options(settings, &collections))?),
    }
}

/// Whether index and archive belong together.
fn look(
    settings: &PillarNode,
    data: &Path,
    index: Option<&Index>,
    collections: &[CollectionId],
) -> Result<Unexplored, PillarError> {
    let runtime = Handle::current();
    if let Some(index) = index {
        for collection in collections {
            runtime.block_on(presence::check(settings, data, index, collection))?;
        }
    }
    runtime.block_on(Unexplored::find(settings, index, collections))
}

/// The pillar as a component of the repository.
pub(crate) fn component(options: &PillarOptions) -> Component {
    Component::new(ComponentOptions {
        zoneless: options.settings.accept_zoneless,
        ..ComponentOptions::pillar(
            options.settings.id.clone(),
            options.repository.clone(),
            options.bus.clone(),
            SharedClock::clone(&options.clock),
            options.settings.alarm_level,
        )
    })
}

/// Opens what the pillar keeps, makes what is missing of it, and cleans what an earlier run left behind. Blocks.
pub(crate) fn open(options: PillarOptions, component: Component) -> Result<Context, PillarError> {
    let PillarOptions {
        settings,
        repository,
        exchange,
        data,
        clock,
        ..
    } = options;
    let default_spec = Spec::plain(repository.default_checksum)?;
    let link = LinkMonitor::new(
        settings.id.clone(),
        component.bus(),
        SharedClock::clone(&clock),
    );
    if component.collections().is_empty() {
        return Err(PillarError::NoCollection(settings.id));
    }
    let results = data.join("results");
    let results = Results::open(results.clone(), settings.minimum_size_left).map_err(|source| {
        let path = results;
        PillarError::Data { path, source }
    })?;
    let index = Index::open(index_options(&settings, &repository, &data, clock))?;
    let unexplored = look(&settings, &data, Some(&index), component.collections())?;
    let archive = match settings.pillar_type {
        PillarType::Checksum => Archive::without_bytes(component.collections()),
        PillarType::File => Archive::open(archive_options(&settings, component.collections()))?,
    };
    let runtime = Handle::current();
    let settler = Settler::new(&archive, &index, &default_spec);
    runtime.block_on(settler.settle_all())?;
    runtime.block_on(unexplored.introduce(&index, component.collections()))?;
    Ok(Context {
        component,
        settings,
        archive,
        index,
        exchange,
        default_spec,
        data,
        results,
        unexplored,
        untold: Untold::default(),
        workers: Board::default(),
        shortages: Shortages::default(),
        asked: Asked::default(),
        unanswered: Unanswered::default(),
        link,
    })
}

fn index_options(
    settings: &PillarNode,
    repository: &Repository,
    data: &Path,
    clock: SharedClock,
) -> IndexOptions {
    IndexOptions {
        path: data.join("index.sqlite"),
        checksum_type: repository.default_checksum,
        first_audit_number: settings.first_audit_number.unwrap_or(NonZeroU64::MIN),
        clock,
    }
}

fn archive_options(settings: &PillarNode, collections: &[CollectionId]) -> ArchiveOptions {
    ArchiveOptions {
        directories: settings.directories.clone(),
        collections: collections.to_vec(),
        minimum_size_left: settings.minimum_size_left,
    }
}
