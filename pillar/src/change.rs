//! Replaces and deletes, from the open operation to the commit; and what a crash or a failure left of one.
//!
//! Names on the disk and rows of the index can't change in one instant. So what is about to be done is written into
//! the index first, with all that its commit needs; then the names change; then row, audit event and remembered
//! response are committed, and the open operation goes with them. Whoever finds one open asks the disk how far it
//! came: done there means done, and the commit follows; else it never happened.

use pillarbox_messages::{Message, Timestamp};
use tracing::{error, info, warn};

use crate::{
    archive::{Archive, ArchiveError, Claim, Expected, Published, Removed, StagedFile},
    context::Context,
    digests::Spec,
    index::{
        DeleteRecord, FileRow, Index, IndexError, NewVersion, OpenOperation, OperationKey, Prior,
        PutRecord, Remember,
    },
    refusal::Refusal,
};

/// What is to happen to a file's place.
pub(crate) enum Change {
    /// This file takes it.
    Replace(Box<StagedFile>),
    /// Nothing does.
    Delete(Claim),
}

/// What has happened.
pub(crate) enum Changed {
    Replaced(Box<Published>),
    Removed(Removed),
}

/// Does it, and gives the final response.
pub(crate) async fn carry_out(
    context: &Context,
    operation: OpenOperation,
    change: Change,
) -> Result<Message, Refusal> {
    if context.archive.keeps_bytes() {
        // Else there is nothing on the disk that the commit could contradict.
        context.index.open_operation(operation.clone()).await?;
    }
    let changed = match change {
        Change::Replace(staged) => {
            let replaced = context.archive.replace(*staged).await;
            replaced.map(|it| Changed::Replaced(Box::new(it)))
        }
        Change::Delete(claim) => context.archive.remove(claim).await.map(Changed::Removed),
    };
    match changed {
        Ok(changed) => conclude(context, operation, changed).await,
        Err(failure) => find_out(context, operation, failure).await,
    }
}

/// Commits what has happened. If it is certain that the index has nothing of it, it is undone; only once it is, the
/// operation is not open any more.
pub(crate) async fn conclude(
    context: &Context,
    operation: OpenOperation,
    changed: Changed,
) -> Result<Message, Refusal> {
    let OperationKey {
        collection,
        file_id,
        ..
    } = operation.key.clone();
    match commit(&context.index, operation).await {
        Ok(response) => Ok(response),
        Err(failure) => {
            // After any other failure the row may be written all the same: the next change of the file finds out.
            if failure.wrote_nothing() {
                let undone = match changed {
                    Changed::Replaced(published) => context.archive.retract(*published).await,
                    Changed::Removed(removed) => context.archive.restore(removed).await,
                };
                match undone {
                    // Where this fails, the next change finds that nothing has changed.
                    Ok(()) => _ = context.index.drop_operation(&collection, &file_id).await,
                    Err(reason) => {
                        error!(%failure, %reason, "a change could not be undone; the next one tries to finish it");
                    }
                }
            }
            Err(failure.into())
        }
    }
}

/// The disk has refused something, before the names had changed or after.
async fn find_out(
    context: &Context,
    operation: OpenOperation,
    failure: ArchiveError,
) -> Result<Message, Refusal> {
    let settler = Settler::of(context);
    match settler.settle_file(operation).await {
        Ok(Some(response)) => {
            warn!(%failure, "a change was completed at the second attempt");
            Ok(response)
        }
        Ok(None) => Err(failure.into()),
        Err(second) => {
            error!(%failure, reason = second.alarm_text(), "a change is neither done nor undone; the next one tries again");
            Err(failure.into())
        }
    }
}

/// What is known before an operation on a file is performed, once nothing of earlier ones is open.
pub(crate) async fn prior(
    context: &Context,
    claim: Claim,
    key: &OperationKey,
) -> Result<(Claim, Prior), Refusal> {
    let mut prior = context.index.prior(key).await?;
    let Some(open) = prior.open.take() else {
        return Ok((claim, prior));
    };
    // Rare, so on the heap: every put would carry it.
    let (claim, _) = Box::pin(Settler::of(context).settle(claim, *open)).await?;
    Ok((claim, context.index.prior(key).await?))
}

/// Row, audit event and remembered response of a change that has happened on the disk.
pub(crate) async fn commit(index: &Index, operation: OpenOperation) -> Result<Message, IndexError> {
    let OpenOperation {
        key,
        new,
        audit,
        response,
    } = operation;
    let to_remember = response.clone();
    let remember = Some(Remember {
        from: key.from,
        correlation: key.correlation,
        operation: key.operation,
        respond: Box::new(move |row| dated(to_remember, row).to_xml()),
    });
    let (collection, file_id) = (key.collection, key.file_id);
    let done = match new {
        Some(NewVersion {
            directory,
            size,
            checksum,
        }) => {
            index
                .replace(PutRecord {
                    collection,
                    file_id,
                    directory,
                    size,
                    checksum,
                    audit,
                    remember,
                })
                .await?
        }
        None => {
            index
                .delete(DeleteRecord {
                    collection,
                    file_id,
                    audit,
                    remember,
                })
                .await?
        }
    };
    Ok(dated(response, &done.row))
}

/// A final response with the time at which the new version's checksum counts, which only its row gives.
fn dated(mut response: Message, row: &FileRow) -> Message {
    if let Message::ReplaceFileFinalResponse(final_response) = &mut response
        && let Some(data) = &mut final_response.checksum_data_for_new_file
    {
        data.calculation_timestamp = Timestamp::from_millis(row.calculated_ms);
    }
    response
}

/// Ends open operations as the disk says.
pub(crate) struct Settler<'a> {
    archive: &'a Archive,
    index: &'a Index,
    default_spec: &'a Spec,
}

impl<'a> Settler<'a> {
    pub(crate) const fn new(
        archive: &'a Archive,
        index: &'a Index,
        default_spec: &'a Spec,
    ) -> Self {
        Self {
            archive,
            index,
            default_spec,
        }
    }

    const fn of(context: &'a Context) -> Self {
        Self::new(&context.archive, &context.index, &context.default_spec)
    }

    /// Ends everything that an earlier run left open. What can't be ended stays open, and is logged: the rest of the
    /// archive is of use without that file.
    pub(crate) async fn settle_all(&self) -> Result<(), IndexError> {
        for operation in self.index.open_operations().await? {
            let OperationKey {
                operation: kind,
                collection,
                file_id,
                ..
            } = operation.key.clone();
            let (kind, file) = (kind.as_str(), file_id.as_str());
            let collection = collection.as_str();
            match self.settle_file(operation).await {
                Ok(Some(_)) => info!(
                    kind,
                    collection, file, "an operation that was cut off is completed"
                ),
                Ok(None) => info!(
                    kind,
                    collection, file, "an operation that was cut off had changed nothing"
                ),
                Err(refusal) => {
                    let reason = refusal.alarm_text();
                    error!(
                        kind,
                        collection, file, reason, "an operation that was cut off can't be ended"
                    );
                }
            }
        }
        Ok(())
    }

    async fn settle_file(&self, operation: OpenOperation) -> Result<Option<Message>, Refusal> {
        // Stored under the pattern of its day: the built-in rules are what makes it a path.
        let file = pillarbox_messages::ArchiveFileId::new(&operation.key.file_id, None)?;
        let claim = self
            .archive
            .claim_in_turn(&operation.key.collection, &file)
            .await?;
        let (_, response) = self.settle(claim, operation).await?;
        Ok(response)
    }

    /// Gives the final response of an operation that turned out to be done.
    async fn settle(
        &self,
        claim: Claim,
        operation: OpenOperation,
    ) -> Result<(Claim, Option<Message>), Refusal> {
        let expected = operation.new.as_ref().map(|new| Expected {
            size: new.size,
            spec: self.default_spec.clone(),
            checksum: new.checksum.clone(),
        });
        let (claim, done) = self.archive.settle(claim, expected).await?;
        let (collection, file_id) = (
            operation.key.collection.clone(),
            operation.key.file_id.clone(),
        );
        if done {
            match commit(self.index, operation).await {
                Ok(response) => return Ok((claim, Some(response))),
                // Marked as missing since.
                Err(IndexError::NotPresent(_)) => {}
                Err(failure) => return Err(failure.into()),
            }
        }
        self.index.drop_operation(&collection, &file_id).await?;
        Ok((claim, None))
    }
}
