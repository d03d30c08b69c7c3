//! Writing a conversation down as it goes on.

use std::{io, time::Duration};

use pillarbox_messages::ComponentId;
use tokio::{task::JoinSet, time::Instant};

use crate::{
    conversation::{Conversation, Milestone, Procedure},
    event::{Event, EventKind},
    journal::{Entry, KeptCargo, Slot, State},
};

/// A conversation's entry in the journal: what it says, and what waits for it.
///
/// Messages and acknowledgements that follow from a step leave when the step is written down. What comes together
/// while an entry is being written shares the next one.
#[derive(Debug)]
pub(crate) struct Keeping {
    pub(crate) slot: Slot,
    client: ComponentId,
    changes: bool,
    cargo: KeptCargo,
    /// How far the conversation had come when it was last written down.
    milestone: Milestone,
    writing: JoinSet<io::Result<()>>,
    /// Whether it could not be written down when that was tried last.
    refused: Option<Refused>,
}

/// What could not be written is written again.
#[derive(Debug)]
struct Refused {
    at: Instant,
    pause: Duration,
}

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

impl Keeping {
    /// A conversation that the slot says nothing of, or nothing newer.
    pub(crate) fn new<P: Procedure>(
        slot: Slot,
        changes: bool,
        cargo: KeptCargo,
        conversation: &Conversation<P>,
    ) -> Self {
        Self {
            slot,
            client: conversation.context().from.clone(),
            changes,
            cargo,
            milestone: conversation.milestone(),
            writing: JoinSet::new(),
            refused: None,
        }
    }

    /// Writes down that the conversation is about to begin.
    ///
    /// # Errors
    /// The disk refuses.
    pub(crate) async fn begin<P: Procedure>(
        &self,
        conversation: &Conversation<P>,
    ) -> io::Result<()> {
        let state = match P::resumable(conversation) {
            Some(open) => State::Open(Box::new(open)),
            None => State::Lost(Box::new(lost(conversation))),
        };
        self.slot.write(self.entry(state)).await
    }

    /// Whether an entry is being written.
    pub(super) fn is_writing(&self) -> bool {
        !self.writing.is_empty()
    }

    /// When what could not be written is to be written again.
    pub(super) fn again_at(&self) -> Option<Instant> {
        let refused = self.refused.as_ref().filter(|_| !self.is_writing());
        refused.map(|refused| refused.at)
    }

    /// Whether it could not be written down when that was tried last.
    pub(super) const fn is_refused(&self) -> bool {
        self.refused.is_some()
    }

    /// It is written again with the next step.
    pub(super) fn hurry(&mut self) {
        if let Some(refused) = &mut self.refused {
            refused.at = Instant::now();
        }
    }

    /// Takes in what has come of writing it. Gives whether it could not be written now and could before.
    pub(super) fn note(&mut self, written: &io::Result<()>) -> bool {
        if written.is_ok() {
            self.refused = None;
            return false;
        }
        let before = self.refused.take();
        let pause = match &before {
            Some(before) => before.pause.saturating_mul(2).min(LONGEST_PAUSE),
            None => FIRST_PAUSE,
        };
        let at = Instant::now() + pause;
        self.refused = Some(Refused { at, pause });
        before.is_none()
    }

    /// Begins to write the conversation down, if it has got further, or could not be written down a while ago. Gives
    /// whether it did.
    pub(super) fn catch_up<P: Procedure>(
        &mut self,
        conversation: &Conversation<P>,
        last_event: Option<&Event>,
    ) -> bool {
        let milestone = conversation.milestone();
        let is_due = self.again_at().is_some_and(|at| at <= Instant::now());
        let wanted = is_due || milestone != self.milestone;
        let Some(open) = P::resumable(conversation).filter(|_| wanted) else {
            return false;
        };
        self.milestone = milestone;
        let state = match last_event {
            Some(event) => State::Ended(Box::new(event.clone())),
            None => State::Open(Box::new(open)),
        };
        let (slot, entry) = (self.slot.clone(), self.entry(state));
        self.writing.spawn(async move { slot.write(entry).await });
        true
    }

    /// Waits until the entry is written; for ever if none is being written.
    pub(super) async fn written(&mut self) -> io::Result<()> {
        match self.writing.join_next().await {
            Some(written) => written.unwrap_or_else(|error| Err(error.into())),
            None => std::future::pending().await,
        }
    }

    fn entry(&self, state: State) -> Entry {
        Entry {
            client: self.client.clone(),
            changes: self.changes,
            cargo: self.cargo.clone(),
            state,
        }
    }
}

/// What is told of an operation whose results nobody got.
fn lost<P: Procedure>(conversation: &Conversation<P>) -> Event {
    let context = conversation.context();
    Event {
        correlation: context.correlation.clone(),
        operation: P::OPERATION,
        collection: context.collection.clone(),
        file: context.file.clone(),
        kind: EventKind::Failed {
            results: Vec::new(),
            failures: Vec::new(),
        },
        info: Some(LOST.to_owned()),
    }
}

const LOST: &str =
    "the results were lost with the process that asked for them; ask again, it changes nothing";
