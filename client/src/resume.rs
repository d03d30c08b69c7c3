//! Going on with what another process of this client has begun.

use pillarbox_messages::{CollectionId, FileId, Operation};
use tokio::sync::{mpsc, oneshot};

use crate::{
    client::Client,
    conversation::{Conversation, Procedure, Resumable},
    error::ClientError,
    event::{Event, Outcome},
    journal::{Entry, JournalError, KeptCargo, Settling, Slot, State},
    mediator::{Arrived, Registration},
    meter::Meter,
    running::{Ended, Running},
    task::{Beginning, Keeping, remove_offer},
};

/// What another process of this client had begun and not told the end of.
#[derive(Debug, Default)]
pub struct Resuming {
    /// The operations that go on, or whose end is known already.
    pub operations: Vec<Resumed>,
    /// What could not be read or taken up; it stays on the disk.
    pub problems: Vec<JournalError>,
}

/// An operation that another process of this client had begun.
#[derive(Debug)]
pub struct Resumed {
    /// What it does.
    pub operation: Operation,
    /// The collection that it is about; none if about no one collection.
    pub collection: Option<CollectionId>,
    /// The file that it is about; none if about all files.
    pub file: Option<FileId>,
    /// The operation from now on.
    pub running: Running,
}

/// A conversation that goes on once it is registered.
struct Waiting {
    open: Resumable,
    slot: Slot,
    changes: bool,
    cargo: KeptCargo,
    arriving: mpsc::Receiver<Arrived>,
}

impl Client {
    /// Goes on with what another process of this client has begun: each operation ends as if there had always been
    /// one process. Answers that have come meanwhile are taken first; then whoever owes one is asked again, and has
    /// a minute for it at least. Whatever was not asked yet begins anew; a file that is to be put must not have
    /// changed since. Operations that change nothing end as failed, since their results went to the other process.
    ///
    /// Gives what there is once; a client should ask before it begins anything else.
    ///
    /// # Errors
    /// [`ClientError::NoJournal`]; a bus that can't be subscribed to: then all stays as it is, for another process.
    pub async fn resume(&self) -> Result<Resuming, ClientError> {
        if self.shared.cancel.is_cancelled() {
            return Err(ClientError::Closed);
        }
        let journal = self.shared.journal.clone().ok_or(ClientError::NoJournal)?;
        let reading = journal.clone();
        let left = tokio::task::spawn_blocking(move || reading.take_left()).await;
        let mut resuming = Resuming::default();
        let (mut registrations, mut waiting) = (Vec::new(), Vec::new());
        for entry in left.unwrap_or_default() {
            match entry.and_then(|(entry, slot)| self.check(entry, slot)) {
                Err(problem) => resuming.problems.push(problem),
                Ok((entry, slot)) => match entry.state {
                    State::Open(open) => {
                        let (registration, arriving) =
                            Registration::new(open.context(), entry.changes);
                        registrations.push(registration);
                        waiting.push(Waiting {
                            open: *open,
                            slot,
                            changes: entry.changes,
                            cargo: entry.cargo,
                            arriving,
                        });
                    }
                    State::Lost(event) | State::Ended(event) => {
                        resuming
                            .operations
                            .push(self.tell(*event, slot, &entry.cargo));
                    }
                },
            }
        }
        self.shared.mediator.register_all(registrations).await?;
        journal.taken_up();
        for one in waiting {
            resuming.operations.push(self.take_up(one).await);
        }
        Ok(resuming)
    }

    /// Whether the settings still have what it is about.
    fn check(&self, entry: Entry, slot: Slot) -> Result<(Entry, Slot), JournalError> {
        let collection = entry.context().and_then(|it| it.collection.as_ref());
        match collection {
            Some(id) if self.repository().collection(id).is_none() => {
                Err(JournalError::Unresumable {
                    path: slot.path().to_path_buf(),
                    cause: format!("the settings have no collection '{id}'"),
                })
            }
            _ => Ok((entry, slot)),
        }
    }

    async fn take_up(&self, waiting: Waiting) -> Resumed {
        let Waiting {
            open,
            slot,
            changes,
            cargo: kept,
            arriving,
        } = waiting;
        let (cargo, beginning) = match kept.taken_up(&open).await {
            Ok(cargo) => (cargo, Beginning::Resumed),
            Err(cause) => {
                let remains = kept.remains(&open.context().correlation);
                (remains, Beginning::Hopeless(cause))
            }
        };
        let place = Place {
            slot,
            changes,
            kept,
        };
        match open {
            Resumable::Put(it) => self.go_on(it, place, cargo, beginning, arriving),
            Resumable::Replace(it) => self.go_on(it, place, cargo, beginning, arriving),
            Resumable::Delete(it) => self.go_on(it, place, cargo, beginning, arriving),
            Resumable::Get(it) => self.go_on(it, place, cargo, beginning, arriving),
        }
    }

    fn go_on<P: Procedure>(
        &self,
        conversation: Conversation<P>,
        place: Place,
        cargo: crate::cargo::Cargo,
        beginning: Beginning,
        arriving: mpsc::Receiver<Arrived>,
    ) -> Resumed {
        let Place {
            slot,
            changes,
            kept,
        } = place;
        let context = conversation.context();
        let (collection, file) = (context.collection.clone(), context.file.clone());
        let keeping = Keeping::new(slot, changes, kept, &conversation);
        Resumed {
            operation: P::OPERATION,
            collection,
            file,
            running: self.launch(conversation, cargo, Some(keeping), beginning, arriving),
        }
    }

    /// An operation that is over: only this is left to be told.
    fn tell(&self, event: Event, slot: Slot, cargo: &KeptCargo) -> Resumed {
        let cargo = cargo.remains(&event.correlation);
        let (sender, events) = mpsc::channel(1);
        let (end, ended) = oneshot::channel();
        let resumed = Resumed {
            operation: event.operation,
            collection: event.collection.clone(),
            file: event.file.clone(),
            running: Running {
                correlation: event.correlation.clone(),
                events,
                ended,
                cancel: self.shared.cancel.child_token(),
                meter: Meter::default(),
            },
        };
        let exchange = self.shared.exchange.clone();
        self.shared.conversations.spawn(async move {
            remove_offer(&exchange, &cargo).await;
            let outcome = Outcome::of(&event);
            // There is room for one.
            let _ = sender.try_send(event);
            if let Some(outcome) = outcome {
                let settling = Some(Settling(slot));
                let _ = end.send(Ended { outcome, settling });
            }
        });
        resumed
    }
}

/// Where a conversation is kept.
struct Place {
    slot: Slot,
    changes: bool,
    kept: KeptCargo,
}
