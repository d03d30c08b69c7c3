//! Going on with what another process of this client has begun.

use std::path::{Path, PathBuf};

use pillarbox_messages::{CollectionId, FileId, Operation};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::{
    cargo::Cargo,
    client::Client,
    conversation::{Conversation, Procedure, Resumable},
    error::ClientError,
    event::{Event, Outcome},
    journal::{Entry, Journal, JournalError, KeptCargo, Slot, State},
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
    /// Where a file that is fetched gets to; none if no file is.
    pub target: Option<PathBuf>,
    /// The operation from now on.
    pub running: Running,
}

/// A conversation that goes on once it is registered.
struct Waiting {
    open: Resumable,
    place: Place,
    cargo: Cargo,
    beginning: Beginning,
    arriving: mpsc::Receiver<Arrived>,
}

/// What waits to be taken up.
#[derive(Default)]
struct Left {
    /// What goes on, and how it is put through.
    open: Vec<Waiting>,
    registrations: Vec<Registration>,
    /// What is over.
    over: Vec<(Event, Slot, KeptCargo)>,
    problems: Vec<JournalError>,
}

impl Client {
    /// Goes on with what another process of this client has begun: each operation ends as if there had always been
    /// one process. Answers that have come meanwhile are taken first; then whoever owes one is asked again, and has
    /// a minute for it at least. Whatever was not asked yet begins anew; a file that is to be put must not have
    /// changed since. Operations that change nothing end as failed, since their results went to the other process.
    ///
    /// Gives each operation once; a client should ask before it begins anything else. Until this returns nothing has
    /// been taken up: dropped before, or failed, it leaves all as it is.
    ///
    /// # Errors
    /// [`ClientError::NoJournal`]; a bus that can't be subscribed to.
    pub async fn resume(&self) -> Result<Resuming, ClientError> {
        if self.shared.cancel.is_cancelled() {
            return Err(ClientError::Closed);
        }
        let journal = self.shared.journal.clone().ok_or(ClientError::NoJournal)?;
        let _alone = self.shared.resuming.lock().await;
        let mut left = self.left(&journal).await;
        let registrations = std::mem::take(&mut left.registrations);
        self.shared.mediator.register_all(registrations).await?;
        // From here on nothing is waited for: all is taken up, or nothing.
        Ok(self.take_up(&journal, left))
    }

    /// What there is to take up, made ready for it.
    async fn left(&self, journal: &Journal) -> Left {
        let reading = journal.clone();
        let read = tokio::task::spawn_blocking(move || reading.read_left()).await;
        let mut left = Left::default();
        for entry in read.unwrap_or_default() {
            match entry.and_then(|(entry, slot)| self.check(entry, slot)) {
                Err(problem) => left.problems.push(problem),
                Ok((entry, slot)) => match entry.state {
                    State::Lost(event) | State::Ended(event) => {
                        left.over.push((*event, slot, entry.cargo));
                    }
                    State::Open(open) => {
                        let (registration, arriving) =
                            Registration::new(open.context(), entry.changes);
                        left.registrations.push(registration);
                        let (cargo, beginning) = cargo(&entry.cargo, &open).await;
                        left.open.push(Waiting {
                            open: *open,
                            place: Place {
                                slot,
                                changes: entry.changes,
                                kept: entry.cargo,
                            },
                            cargo,
                            beginning,
                            arriving,
                        });
                    }
                },
            }
        }
        left
    }

    fn take_up(&self, journal: &Journal, left: Left) -> Resuming {
        let over = left.over.into_iter();
        let over = over.map(|(event, slot, cargo)| self.tell(event, slot, &cargo));
        let open = left.open.into_iter().map(|one| self.go_on_with(one));
        let operations: Vec<Resumed> = over.chain(open).collect();
        for resumed in &operations {
            journal.taken_up(&resumed.running.correlation);
        }
        Resuming {
            operations,
            problems: left.problems,
        }
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

    fn go_on_with(&self, waiting: Waiting) -> Resumed {
        let Waiting {
            open,
            place,
            cargo,
            beginning,
            arriving,
        } = waiting;
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
        cargo: Cargo,
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
            target: cargo.target().map(Path::to_path_buf),
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
            target: cargo.target().map(Path::to_path_buf),
            running: Running {
                correlation: event.correlation.clone(),
                events,
                ended,
                cancel: self.shared.cancel.child_token(),
                unclaimed: CancellationToken::new(),
                meter: Meter::default(),
            },
        };
        let exchange = self.shared.exchange.clone();
        self.shared.conversations.spawn(async move {
            let may_come = matches!(cargo, Cargo::Inbound { .. });
            remove_offer(&exchange, &cargo, may_come).await;
            let outcome = Outcome::of(&event);
            // There is room for one.
            let _ = sender.try_send(event);
            if let Some(outcome) = outcome {
                let slot = Some(slot);
                // If nobody waits for it, it stays in the journal.
                let _ = end.send(Ended { outcome, slot });
            }
        });
        resumed
    }
}

/// The file of a conversation that goes on, and how it does.
async fn cargo(kept: &KeptCargo, open: &Resumable) -> (Cargo, Beginning) {
    match kept.taken_up(open).await {
        Ok(cargo) => (cargo, Beginning::Resumed),
        Err(cause) => {
            let remains = kept.remains(&open.context().correlation);
            (remains, Beginning::Hopeless(cause))
        }
    }
}

/// Where a conversation is kept.
struct Place {
    slot: Slot,
    changes: bool,
    kept: KeptCargo,
}
