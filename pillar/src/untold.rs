//! Telling people of files that have changed or are gone: once, but not before the bus has taken it.

use std::sync::atomic::{AtomicBool, Ordering};

use pillarbox_component::{AlarmRequest, alarms::Raised};
use pillarbox_messages::{AlarmCode, CollectionId, FileId};
use pillarbox_settings::AlarmLevel;
use tracing::warn;

use crate::{
    context::Context,
    index::Trouble,
    workers::{Interrupt, Shift},
};

/// Whether there may be something that people were not told; so it may when a pillar starts, after a crash.
#[derive(Debug)]
pub(crate) struct Untold(AtomicBool);

impl Default for Untold {
    fn default() -> Self {
        Self(AtomicBool::new(true))
    }
}

impl Untold {
    fn take(&self) -> bool {
        self.0.swap(false, Ordering::SeqCst)
    }

    fn put_back(&self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Raises the alarm; tells whether people have been told. If not, it is tried again later.
pub(crate) async fn tell(context: &Context, collection: &CollectionId, trouble: Trouble) -> bool {
    let alarms = context.component.alarms();
    if alarms.raise(alarm(collection, &trouble)).await == Raised::Failed {
        context.untold.put_back();
        return false;
    }
    if let Err(error) = context.index.told(collection, trouble).await {
        warn!(%error, "an alarm may be raised again");
    }
    true
}

fn alarm(collection: &CollectionId, trouble: &Trouble) -> AlarmRequest {
    let Trouble { row, missing } = trouble;
    let file = row.file_id.clone();
    let (code, text) = if *missing {
        let text = format!("file {file} is in the index but gone from the disk");
        (AlarmCode::ComponentFailure, text)
    } else {
        (AlarmCode::ChecksumAlarm, row.difference())
    };
    AlarmRequest {
        level: AlarmLevel::Error,
        code,
        text,
        collection: Some(collection.clone()),
        file: Some(file),
    }
}

/// Tells what was not told before: a worker does at the beginning of its turn.
pub(crate) fn tell_all(context: &Context, shift: &Shift) -> Result<(), Interrupt> {
    if !context.untold.take() {
        return Ok(());
    }
    let told = context
        .component
        .collections()
        .iter()
        .try_for_each(|collection| tell_collection(context, shift, collection));
    if told.is_err() {
        context.untold.put_back();
    }
    told
}

fn tell_collection(
    context: &Context,
    shift: &Shift,
    collection: &CollectionId,
) -> Result<(), Interrupt> {
    let mut after = FileId::from("");
    loop {
        let page = shift.wait(context.index.untold(collection, &after))?;
        let Some(last) = page.last() else {
            return Ok(());
        };
        after = last.row.file_id.clone();
        for trouble in page {
            shift.go_on()?;
            let told = shift.wait_for_others(tell(context, collection, trouble));
            if !told.ok_or(Interrupt::Stopped)? {
                // Nor would the others be.
                return Ok(());
            }
        }
    }
}
