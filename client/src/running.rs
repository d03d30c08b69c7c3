//! The handle of an operation that is under way.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    task::{Context, Poll},
};

use futures_util::Stream;
use pillarbox_messages::CorrelationId;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tracing::error;

use crate::{
    event::{Event, EventKind, Outcome},
    journal::Slot,
    meter::{Meter, Transferred},
};

/// An operation under way.
///
/// Dropping it lets the operation go on to its end without anybody listening; [`Running::cancel`] ends it. Where a
/// journal is kept, that end then waits for the next process that resumes; for whoever wants to be told nothing,
/// spawn [`Running::outcome`]. Events wait for whoever reads them, within bounds: then the operation reads no more
/// messages until somebody does, but its times run on, so it always ends.
#[derive(Debug)]
pub struct Running {
    pub(crate) correlation: CorrelationId,
    pub(crate) events: mpsc::Receiver<Event>,
    pub(crate) ended: oneshot::Receiver<Ended>,
    pub(crate) cancel: CancellationToken,
    /// Nobody has ever got this.
    pub(crate) unclaimed: CancellationToken,
    pub(crate) meter: Meter,
}

/// The end of an operation.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) outcome: Outcome,
    /// Its entry in the journal, if it has one.
    pub(crate) slot: Option<Slot>,
}

/// An operation's end that is being told to somebody.
///
/// Where a journal is kept, the operation stays in it until [`Telling::told`]: should the process be killed before,
/// or drop this, the next one tells the end.
#[derive(Debug)]
#[must_use = "the operation stays in the journal until its end has been told"]
pub struct Telling {
    slot: Option<Slot>,
}

impl Telling {
    /// Its end has been told, and is forgotten.
    pub fn told(self) {
        if let Some(slot) = self.slot {
            slot.remove();
        }
    }
}

impl Running {
    /// The conversation's id.
    #[must_use]
    pub const fn correlation(&self) -> &CorrelationId {
        &self.correlation
    }

    /// The next event; none after the last one.
    pub async fn next_event(&mut self) -> Option<Event> {
        self.events.recv().await
    }

    /// The events as a stream; it ends after the last one.
    pub const fn events(&mut self) -> Events<'_> {
        Events(&mut self.events)
    }

    /// How much of its file has been moved between this machine and the exchange: up before the pillars fetch it,
    /// down once a pillar has delivered it.
    #[must_use]
    pub fn transferred(&self) -> Transferred {
        self.meter.read()
    }

    /// Ends the operation with a failed outcome, and cleans up.
    pub fn cancel(&self) {
        self.cancel.cancel();
    }

    /// How it ended, once everything is cleaned up. Events that were not read are lost.
    pub async fn outcome(self) -> Outcome {
        let (outcome, telling) = self.outcome_to_tell().await;
        telling.told();
        outcome
    }

    /// The same for a caller that has to tell it on, and says on the second when that is done.
    pub async fn outcome_to_tell(self) -> (Outcome, Telling) {
        let Self {
            correlation,
            events,
            ended,
            ..
        } = self;
        drop(events);
        let (outcome, slot) = match ended.await {
            Ok(Ended { outcome, slot }) => (outcome, slot),
            Err(_) => (lost(&correlation), None),
        };
        (outcome, Telling { slot })
    }

    /// Gives every event to `handler`, then tells how it ended. A handler that panics has the panic logged and
    /// gets the next event.
    pub async fn outcome_with(mut self, mut handler: impl FnMut(Event)) -> Outcome {
        while let Some(event) = self.next_event().await {
            let name = event.kind.name();
            if catch_unwind(AssertUnwindSafe(|| handler(event))).is_err() {
                let correlation = self.correlation.as_str();
                error!(correlation, event = name, "an event handler panicked");
            }
        }
        self.outcome().await
    }
}

/// The events of a [`Running`] operation.
#[derive(Debug)]
pub struct Events<'a>(&'a mut mpsc::Receiver<Event>);

impl Stream for Events<'_> {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Event>> {
        self.0.poll_recv(context)
    }
}

/// The task went away without an outcome: the program is ending.
fn lost(correlation: &CorrelationId) -> Outcome {
    Outcome {
        complete: false,
        info: Some("the program is ending".to_owned()),
        results: Vec::new(),
        failures: Vec::new(),
        last_event: format!("{}: FAILED: the program is ending", correlation.short()),
    }
}

impl Outcome {
    /// What a last event says; none for any other event.
    pub(crate) fn of(event: &Event) -> Option<Self> {
        let (complete, results, failures) = match &event.kind {
            EventKind::Complete { results, failures } => (true, results, failures),
            EventKind::Failed { results, failures } => (false, results, failures),
            _ => return None,
        };
        Some(Self {
            complete,
            info: event.info.clone(),
            results: results.clone(),
            failures: failures.clone(),
            last_event: event.to_string(),
        })
    }
}
