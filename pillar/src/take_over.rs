//! Archive directories with files that the index does not know because it is new: another pillar's, or those of an
//! index that was lost.
//!
//! What archived them has told a collector of audit trails how far it had counted, which nobody here knows: so the
//! start asks for the number to go on with. Then the files are listed as they are read in the background. Until all
//! of a collection were, a put must not take a file for the leftover of a crash because it has no row.

use std::{
    collections::BTreeSet,
    io,
    path::PathBuf,
    sync::{Mutex, MutexGuard, PoisonError},
};

use pillarbox_messages::{ArchiveFileId, CollectionId, ResponseCode};
use pillarbox_settings::PillarNode;

use crate::{
    archive::{Claim, Found, Tree, TreeKind, Walk},
    context::Context,
    disk_checksum,
    index::{Adopted, Adoption, FileRow, Index},
    noticing,
    refusal::Refusal,
    service::PillarError,
    workers::{Reconcile, Worker as _},
};

/// The collections that may have files without a row which somebody relies on.
#[derive(Debug, Default)]
pub(crate) struct Unexplored(Mutex<BTreeSet<CollectionId>>);

impl Unexplored {
    /// Looks for files that a new index does not know, or one that is not there yet.
    pub(crate) async fn find(
        settings: &PillarNode,
        index: Option<&Index>,
        collections: &[CollectionId],
    ) -> Result<Self, PillarError> {
        let unexplored = Self::default();
        for collection in collections {
            let finished = match index {
                Some(index) if index.knows(collection).await? => {
                    let progress = index.progress(Reconcile::NAME, collection).await?;
                    Some(progress.finished_ms.is_some())
                }
                _ => None,
            };
            let explored = if let Some(finished) = finished {
                finished
            } else {
                let holder = holder(settings, collection)?;
                if let Some(directory) = &holder
                    && settings.first_audit_number.is_none()
                {
                    return Err(PillarError::TakeOver {
                        directory: directory.clone(),
                        collection: collection.clone(),
                        pillar: settings.id.clone(),
                    });
                }
                holder.is_none()
            };
            if !explored {
                unexplored.lock().insert(collection.clone());
            }
        }
        Ok(unexplored)
    }

    /// Makes the collections known to the index, now that their directories are ours.
    pub(crate) async fn introduce(
        &self,
        index: &Index,
        collections: &[CollectionId],
    ) -> Result<(), PillarError> {
        for collection in collections {
            let new = !index.knows(collection).await?;
            index.introduce(collection).await?;
            if new && !self.contains(collection) {
                index
                    .save_progress(Reconcile::NAME, collection, None)
                    .await?;
            }
        }
        Ok(())
    }

    /// All files of a collection have been found.
    pub(crate) fn explored(&self, collection: &CollectionId) {
        self.lock().remove(collection);
    }

    /// Whether not all of its files may have been found.
    pub(crate) fn contains(&self, collection: &CollectionId) -> bool {
        self.lock().contains(collection)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<CollectionId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The first directory that holds a file of a collection.
fn holder(
    settings: &PillarNode,
    collection: &CollectionId,
) -> Result<Option<PathBuf>, PillarError> {
    for directory in &settings.directories {
        let base = directory.join(collection.as_str());
        for kind in [TreeKind::Files, TreeKind::Folders] {
            let walk = Walk::after(Tree::new(directory, &base, kind), "");
            let found = has_file(walk).map_err(|source| PillarError::Data {
                path: base.join(kind.name()),
                source,
            })?;
            if found {
                return Ok(Some(directory.clone()));
            }
        }
    }
    Ok(None)
}

fn has_file(mut walk: Walk) -> io::Result<bool> {
    while let Some(found) = walk.next(|_| Ok::<_, io::Error>(()))? {
        if found.iter().any(|found| matches!(found, Found::File(_))) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Lists a file that stands at its place without a row, if the collection is unexplored: before something is put
/// there. `claim` is the file's.
pub(crate) async fn list_standing(
    context: &Context,
    _claim: &Claim,
    collection: &CollectionId,
    file: &ArchiveFileId,
) -> Result<Option<FileRow>, Refusal> {
    if !context.unexplored.contains(collection) {
        return Ok(None);
    }
    let (archive, place) = (context.archive.clone(), (collection.clone(), file.clone()));
    let found = tokio::task::spawn_blocking(move || archive.find_standing(&place.0, &place.1));
    let Some((tree, stored)) = found.await.map_err(Refusal::unexpected)?? else {
        return Ok(None);
    };
    let computed = disk_checksum::compute(context, file.file_id(), stored, &[]).await?;
    let adoption = Adoption {
        file_id: file.file_id().clone(),
        directory: tree.directory.clone(),
        size: computed.size,
        checksum: computed.seen.checksum,
        actor: context.component.id().clone(),
    };
    let (id, read, now_ms) = (
        file.clone(),
        computed.seen.identity,
        context.component.clock().now_ms(),
    );
    let last = tokio::task::spawn_blocking(move || tree.make_last_if(&id, read, now_ms));
    if !last
        .await
        .map_err(Refusal::unexpected)?
        .map_err(Refusal::unexpected)?
    {
        let text = "a file of this id is being changed by somebody else";
        return Err(Refusal::rejection(ResponseCode::Failure, text));
    }
    let mut adopted = context.index.adopt(collection, vec![adoption]).await?;
    let row = match adopted.pop() {
        Some(Adopted::New(row) | Adopted::Again(row)) => row,
        Some(Adopted::Known) | None => return Ok(None),
    };
    if row.observed != row.expected {
        noticing::tell(context, collection, &row).await;
    }
    Ok(Some(row))
}
