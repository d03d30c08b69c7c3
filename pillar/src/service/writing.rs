//! That the index can't be written needs a human, whoever wanted to write: one alarm, until it can be again.

use std::sync::Arc;

use pillarbox_component::AlarmRequest;
use pillarbox_messages::{AlarmCode, wording::count};
use pillarbox_settings::AlarmLevel;
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::{context::Context, health::Disk, index::IndexError};

/// Tells people of each change, until `stop`.
pub(super) async fn watch(context: Arc<Context>, stop: CancellationToken) {
    // The index may be closed before the pillar stops.
    _ = stop.run_until_cancelled(tell_changes(&context)).await;
}

async fn tell_changes(context: &Context) -> Option<()> {
    let mut writing = context.index.writing();
    loop {
        let fault = writing.wait_for(Option::is_some).await.ok()?.clone();
        if let Some(fault) = fault {
            context
                .component
                .alarms()
                .raise(alarm(context, &fault).await)
                .await;
        }
        drop(writing.wait_for(Option::is_none).await.ok()?);
        let pillar = context.component.id().as_str();
        info!(pillar, "the index can be written again");
    }
}

async fn alarm(context: &Context, fault: &IndexError) -> AlarmRequest {
    let disk = Disk::of(&context.data).await;
    let free = disk.map_or_else(
        |error| error,
        |disk| format!("{} free", count(disk.free, "byte")),
    );
    AlarmRequest {
        level: AlarmLevel::Error,
        code: AlarmCode::ComponentFailure,
        text: format!(
            "the index can't be written, so that nothing is stored, replaced or deleted: {fault}; {}: {free}",
            context.data.display()
        ),
        collection: None,
        file: None,
    }
}
