//! What the listing commands have in common: rows as soon as every pillar that takes part has told of a file.

use std::future::Future;

use pillarbox_client::{
    ClientError, ComponentResult, EventKind, Running,
    listing::{Entry, Merge},
};
use pillarbox_messages::FileId;

use crate::{
    client_setup::{Session, conclude},
    failure::Failure,
    output::print,
};

/// Starts a listing and prints it to its end: `items` are the files in one pillar's result, `row` is what is printed
/// of a file, below `heading`. Files that only some pillars have told of come last, also if the listing fails.
pub(super) async fn run<V: Send>(
    mut session: Session,
    heading: &str,
    start: impl Future<Output = Result<Running, ClientError>> + Send,
    items: fn(&ComponentResult) -> Vec<(FileId, V)>,
    row: fn(&Entry<V>) -> String,
    json: bool,
) -> Result<(), Failure> {
    let mut merge = Merge::new(0);
    let outcome = session
        .list(heading, start, |event| match &event.kind {
            EventKind::IdentificationComplete { selected } => {
                merge = Merge::new(selected.len());
                Ok(())
            }
            EventKind::Progress {
                contributor,
                result: Some(result),
            }
            | EventKind::ComponentComplete {
                contributor,
                result,
            } => {
                let complete = merge.take(contributor, items(result));
                print(&complete.iter().map(row).collect::<String>())
            }
            _ => Ok(()),
        })
        .await;
    session.close().await;
    let rest = merge.finish().try_for_each(|entry| print(&row(&entry)));
    let outcome = outcome?;
    conclude(&outcome, json)?;
    rest
}
