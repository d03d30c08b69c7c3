//! The task that owns one conversation: feeds its machine and does what the machine says.

mod ending;
mod keeping;
mod link;
mod moving;
mod outbox;
mod seen;
mod sending;

use std::{io, time::Duration};

use pillarbox_bus::Outgoing;
use pillarbox_component::Component;
use pillarbox_exchange::ExchangeClient;
use pillarbox_messages::ComponentId;
use pillarbox_settings::Timeouts;
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinSet,
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;
use tracing::debug;

pub(crate) use self::{ending::remove_offer, keeping::Keeping, link::Link};
use self::{outbox::Outbox, seen::Seen};
use crate::{
    cargo::Cargo,
    client::Client,
    conversation::{Action, Conversation, Input, Procedure},
    event::{Event, Outcome},
    mediator::{Arrived, Mediator, Receipt},
    meter::Meter,
    running::Ended,
    terms::millis,
};

/// How many events may wait for the reader.
pub(crate) const EVENTS_WAITING: usize = 32;
/// How many more events may pile up before no more messages are read.
pub(crate) const EVENTS_PILED: usize = 8;

/// What a conversation's task works with.
#[derive(Debug)]
pub(crate) struct Surroundings {
    pub(crate) client: Client,
    pub(crate) component: Component,
    pub(crate) exchange: ExchangeClient,
    pub(crate) mediator: Mediator,
    pub(crate) cancel: CancellationToken,
    /// Whether nobody is to be told the end.
    pub(crate) unclaimed: CancellationToken,
    pub(crate) timeouts: Timeouts,
    /// Whether messages are acknowledged when the machine has taken them.
    pub(crate) acknowledges: bool,
    /// Counts the bytes of the file that is moved.
    pub(crate) meter: Meter,
}

/// How a conversation begins.
#[derive(Debug)]
pub(crate) enum Beginning {
    /// As a new one.
    New,
    /// Where another process of this client has left it.
    Resumed,
    /// Not at all: it was left where it can't go on.
    Hopeless(String),
}

/// How long whoever owes an answer to a resumed conversation has at least, if the operation gives that much: the
/// time that it had may be over, but nobody was there to hear.
const GRACE: Duration = Duration::from_secs(60);
/// How long nothing must have come before a resumed conversation asks again: what waited comes at once.
const QUIET: Duration = Duration::from_millis(500);

/// How long after the bus is back others may not be there yet: as long as the longest pause between two attempts to
/// connect that is usual, twice.
const SETTLING: Duration = Duration::from_secs(60);

/// One conversation and everything that goes on for it.
#[derive(Debug)]
pub(crate) struct ConversationTask<P> {
    conversation: Conversation<P>,
    surroundings: Surroundings,
    cargo: Cargo,
    /// Ends the transfer.
    stop: CancellationToken,
    link: Link,
    /// Where it is written down, if it is.
    keeping: Option<Keeping>,
    /// How much of the next two waits for what is being written.
    waiting: (usize, usize),
    /// Messages that wait to be sent, and whom each is for; none: the identify request.
    unsent: Vec<(Outgoing, Option<ComponentId>)>,
    /// What the bus brings again changes nothing.
    seen: Seen,
    /// Messages that were taken and wait to be acknowledged.
    unacknowledged: Vec<Receipt>,
    /// Messages on their way to the bus; each step's end with what the machine must know of them, if anything.
    sends: JoinSet<Vec<Input>>,
    /// The file on its way to or from the exchange, and being read for its checksum: one of each at most.
    transfer: JoinSet<Vec<Input>>,
    acknowledgements: JoinSet<()>,
    outbox: Outbox,
    timer: Option<Instant>,
    /// When whoever owes an answer is asked again, in a resumed conversation.
    quiet: Option<Instant>,
    started: Instant,
    started_ms: i64,
    last_event: Option<Event>,
    /// Whether the file must be removed from the exchange.
    leftover: bool,
}

impl<P: Procedure> ConversationTask<P> {
    pub(crate) fn new(
        conversation: Conversation<P>,
        surroundings: Surroundings,
        cargo: Cargo,
        keeping: Option<Keeping>,
        events: mpsc::Sender<Event>,
    ) -> Self {
        let started_ms = surroundings.component.clock().now_ms();
        Self {
            link: Link::new(surroundings.component.bus()),
            conversation,
            surroundings,
            cargo,
            stop: CancellationToken::new(),
            keeping,
            waiting: (0, 0),
            unsent: Vec::new(),
            seen: Seen::default(),
            unacknowledged: Vec::new(),
            sends: JoinSet::new(),
            transfer: JoinSet::new(),
            acknowledgements: JoinSet::new(),
            outbox: Outbox::new(events),
            timer: None,
            quiet: None,
            started: Instant::now(),
            started_ms,
            last_event: None,
            leftover: false,
        }
    }

    /// Runs the conversation to its end and cleans up.
    pub(crate) async fn run(
        mut self,
        beginning: Beginning,
        mut inbox: mpsc::Receiver<Arrived>,
        ended: oneshot::Sender<Ended>,
    ) {
        self.begin(beginning);
        while !self.conversation.is_done() {
            self.turn(&mut inbox).await;
        }
        self.clean_up(inbox).await;
        if let Some(result) = self.last_event.as_ref().and_then(Outcome::of) {
            self.log(&result);
            let mut slot = self.keeping.take().map(|keeping| keeping.slot);
            if self.surroundings.unclaimed.is_cancelled()
                && let Some(slot) = slot.take()
            {
                slot.remove();
            }
            // If nobody waits for it, it stays in the journal.
            let _ = ended.send(Ended {
                outcome: result,
                slot,
            });
        }
        if !self.outbox.is_empty() {
            // A reader may take its time, or hold the events and never look: who closes the client waits for neither.
            tokio::spawn(self.outbox.empty());
        }
    }

    fn begin(&mut self, beginning: Beginning) {
        match beginning {
            Beginning::New => {
                self.step(Input::Start);
                let returned = self.surroundings.mediator.returned_at();
                if returned.is_some_and(|at| at.elapsed() < SETTLING) {
                    self.step(Input::Unsettled);
                }
            }
            Beginning::Resumed => {
                // The other process may have laid something there.
                self.leftover = self.cargo.address().is_some();
                if self.conversation.is_performing() {
                    self.quiet = Some(Instant::now() + QUIET);
                }
                let grace_ms = millis(GRACE);
                self.step(Input::Resumed { grace_ms });
            }
            Beginning::Hopeless(reason) => {
                self.leftover = self.cargo.address().is_some();
                self.step(Input::Abort { reason });
            }
        }
    }

    /// Waits for one thing to happen and deals with it.
    async fn turn(&mut self, inbox: &mut mpsc::Receiver<Arrived>) {
        let (timer, quiet) = (self.timer, self.quiet);
        let unwritten = self.keeping.as_ref().and_then(Keeping::again_at);
        tokio::select! {
            () = self.surroundings.cancel.cancelled() => {
                self.step(Input::Abort { reason: "canceled".to_owned() });
            }
            arrived = inbox.recv(), if self.outbox.has_room() => match arrived {
                Some(arrived) => self.take(arrived),
                None => self.step(Input::Abort { reason: "the connection to the bus is closed".to_owned() }),
            },
            Some(sent) = self.sends.join_next() => {
                for input in sent.unwrap_or_default() {
                    self.step(input);
                }
            }
            Some(moved) = self.transfer.join_next() => match moved {
                Ok(inputs) => inputs.into_iter().for_each(|input| self.step(input)),
                Err(error) => self.step(Input::Abort { reason: format!("the transfer ended: {error}") }),
            },
            written = written(&mut self.keeping) => self.written(written),
            () = expired(unwritten) => self.leave(),
            () = expired(quiet) => {
                self.quiet = None;
                self.step(Input::Reconnected { answers_kept: true });
            }
            () = self.link.connected_again() => {
                let answers_kept = self.surroundings.acknowledges;
                self.step(Input::Reconnected { answers_kept });
            }
            () = self.outbox.pass_on() => {}
            () = expired(timer) => {
                self.timer = None;
                // Answers that are here already were in time.
                for _ in 0..inbox.len() {
                    if let Ok(arrived) = inbox.try_recv() {
                        self.take(arrived);
                    }
                }
                self.step(Input::TimerFired);
            }
        }
    }

    fn take(&mut self, arrived: Arrived) {
        let Arrived { content, receipt } = arrived;
        if self.seen.has(receipt.message_id()) {
            debug!("a message that the bus has brought before");
            self.unacknowledged.push(receipt);
            return self.leave();
        }
        let input = match content {
            Ok(received) => {
                let from = received.message.header().from.as_str();
                let op = received.message.message_type().as_str();
                debug!(from, op, "answer");
                Input::Message {
                    message: Box::new(received.message),
                    reply_address: received.reply_address,
                }
            }
            Err(rejection) => Input::Unreadable {
                reason: rejection.reason.to_string(),
                from: rejection.from,
                message_type: rejection.message_type.and_then(|name| name.parse().ok()),
            },
        };
        if self.quiet.is_some() {
            self.quiet = Some(Instant::now() + QUIET);
        }
        self.unacknowledged.push(receipt);
        self.step(input);
    }

    fn step(&mut self, input: Input) {
        let passed = i64::try_from(self.started.elapsed().as_millis()).unwrap_or(i64::MAX);
        let now_ms = self.started_ms.saturating_add(passed);
        for action in self.conversation.step(input, now_ms) {
            self.perform(action);
        }
        self.leave();
    }

    /// Lets go what follows from the steps so far: at once, or when they are written down.
    fn leave(&mut self) {
        if self.is_writing() {
            return;
        }
        let everything = (self.unsent.len(), self.unacknowledged.len());
        let last_event = self.last_event.as_ref();
        let keeping = self.keeping.as_mut();
        if keeping.is_some_and(|it| it.catch_up(&self.conversation, last_event)) {
            self.waiting = everything;
        } else {
            self.release(everything);
        }
    }

    /// What waited for it goes, also if it could not be written: the operation goes on.
    fn written(&mut self, written: io::Result<()>) {
        let waited = std::mem::take(&mut self.waiting);
        self.release(waited);
        let keeping = self.keeping.as_mut();
        let news = keeping.is_some_and(|keeping| keeping.note(&written));
        match written {
            Err(error) if news => self.step(Input::NotKept {
                text: error.to_string(),
            }),
            _ => self.leave(),
        }
    }

    fn is_writing(&self) -> bool {
        self.keeping.as_ref().is_some_and(Keeping::is_writing)
    }

    fn perform(&mut self, action: Action) {
        match action {
            Action::Send {
                message,
                reply_address,
                contributor,
            } => {
                self.send(&message, reply_address.as_deref(), contributor);
            }
            Action::SetTimer { at_ms } => self.timer = Some(self.instant(at_ms)),
            Action::ClearTimer => self.timer = None,
            Action::Emit(event) => self.emit(*event),
            Action::Examine => self.examine(),
            Action::OfferFile => self.offer(),
            Action::Download {
                contributor,
                expected,
            } => self.download(contributor, expected),
            Action::RemoveOffer => self.leftover = true,
            Action::Ignored { reason } => debug!(reason, "ignored"),
        }
    }

    /// When a time of the machine comes.
    fn instant(&self, at_ms: i64) -> Instant {
        let passed = at_ms.saturating_sub(self.started_ms);
        self.started + Duration::from_millis(u64::try_from(passed).unwrap_or_default())
    }

    fn emit(&mut self, event: Event) {
        let pillar = event.kind.contributor().map(ComponentId::as_str);
        debug!(
            pillar,
            info = event.info.as_deref(),
            "{}",
            event.kind.name()
        );
        if event.is_final() {
            // It is told when it is in the journal.
            self.last_event = Some(event);
        } else {
            self.outbox.put(event);
        }
    }
}

/// Returns when the entry that is being written is written.
async fn written(keeping: &mut Option<Keeping>) -> io::Result<()> {
    match keeping {
        Some(keeping) => keeping.written().await,
        None => std::future::pending().await,
    }
}

async fn expired(timer: Option<Instant>) {
    match timer {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}
