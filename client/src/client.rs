//! [`Client`]: what it is made from, and how its operations are started.

use std::{fmt, sync::Arc, time::Duration};

use pillarbox_component::{Component, ComponentOptions};
use pillarbox_exchange::{ExchangeClient, OfferSpace};
use pillarbox_messages::{CollectionId, ComponentId, CorrelationId, Destination, FileId};
use pillarbox_settings::{Repository, Timeouts};
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::{Instrument, info_span};

use crate::{
    cargo::Cargo,
    conversation::{Context, Conversation, Procedure},
    error::ClientError,
    journal::{Journal, JournalError},
    mediator::{Arrived, Mediator, Registration},
    meter::Meter,
    options::ClientOptions,
    running::Running,
    task::{Beginning, ConversationTask, EVENTS_WAITING, Keeping, Surroundings},
    terms::{Terms, millis},
};

/// A client of a repository. Clones share everything.
///
/// Operations go on when the client is dropped; [`Client::close`] ends them.
#[derive(Clone)]
pub struct Client {
    pub(crate) shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub(crate) component: Component,
    pub(crate) exchange: ExchangeClient,
    pub(crate) offers: Option<OfferSpace>,
    named: bool,
    pub(crate) journal: Option<Journal>,
    /// Held by whoever takes up what is in the journal.
    pub(crate) resuming: Mutex<()>,
    pub(crate) sla: Option<String>,
    pub(crate) timeouts: Option<Timeouts>,
    extend_on_progress: bool,
    pub(crate) mediator: Mediator,
    pub(crate) conversations: TaskTracker,
    pub(crate) cancel: CancellationToken,
}

impl Client {
    /// A client. Nothing is sent or subscribed to before its first operation.
    ///
    /// # Errors
    /// [`ClientError::UnknownSla`] if no collection has the agreement.
    pub fn connect(options: ClientOptions) -> Result<Self, ClientError> {
        let ClientOptions {
            repository,
            bus,
            exchange,
            exchange_base,
            id,
            named,
            journal,
            sla,
            clock,
            timeouts,
            extend_on_progress,
            zoneless,
        } = options;
        if let Some(sla) = &sla
            && repository.sla(sla).is_none()
        {
            let place = format!("the repository '{}'", repository.name);
            return Err(ClientError::UnknownSla {
                sla: sla.clone(),
                place,
            });
        }
        let base = exchange_base.or_else(|| repository.exchange_url.clone());
        let component = Component::new(ComponentOptions {
            zoneless,
            ..ComponentOptions::client(id, sla.as_deref(), repository, bus, clock)
        });
        Ok(Self {
            shared: Arc::new(Shared {
                mediator: Mediator::start(component.clone(), named, journal.clone()),
                component,
                exchange,
                offers: base.map(|base| OfferSpace::new(&base)),
                named,
                journal,
                resuming: Mutex::new(()),
                sla,
                timeouts,
                extend_on_progress,
                conversations: TaskTracker::new(),
                cancel: CancellationToken::new(),
            }),
        })
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> &ComponentId {
        self.shared.component.id()
    }

    /// The repository that it works with.
    #[must_use]
    pub fn repository(&self) -> &Repository {
        self.shared.component.repository()
    }

    /// Ends every operation and waits until all is cleaned up. The bus stays open.
    pub async fn close(&self) {
        self.shared.cancel.cancel();
        self.shared.conversations.close();
        self.shared.conversations.wait().await;
    }

    /// Starts a conversation. One that `changes` its file is refused while another one does.
    pub(crate) async fn start<P: Procedure>(
        &self,
        procedure: P,
        terms: Terms,
        file: Option<FileId>,
        cargo: Cargo,
        changes: bool,
    ) -> Result<Running, ClientError> {
        let client = self.clone();
        let (mut tell, told) = oneshot::channel();
        // In a task of its own: a caller that goes away must not leave an entry in the journal.
        self.shared.conversations.spawn(async move {
            let begun = tokio::select! {
                begun = client.begin(procedure, terms, file, changes) => begun,
                () = client.shared.cancel.cancelled() => Err(ClientError::Closed),
                () = tell.closed() => return,
            };
            let started = match begun {
                Ok(begun) => client.start_kept(begun, cargo, changes, &tell).await,
                Err(error) => Err(error),
            };
            let _ = tell.send(started);
        });
        let started = told.await.unwrap_or(Err(ClientError::Closed));
        started?.claim().ok_or(ClientError::Closed)
    }

    /// Writes a conversation down, if that is done at all, and starts it if somebody still waits for that.
    async fn start_kept<P: Procedure>(
        &self,
        (conversation, arriving): Begun<P>,
        cargo: Cargo,
        changes: bool,
        waiting: &oneshot::Sender<Result<Unclaimed, ClientError>>,
    ) -> Result<Unclaimed, ClientError> {
        let correlation = conversation.context().correlation.clone();
        match self.keep(&conversation, changes, &cargo).await {
            Ok(keeping) if waiting.is_closed() => {
                if let Some(keeping) = keeping {
                    keeping.slot.remove();
                }
                self.shared.mediator.deregister(correlation).await;
                Err(ClientError::Closed)
            }
            Ok(keeping) => {
                let running = self.launch(conversation, cargo, keeping, Beginning::New, arriving);
                Ok(Unclaimed(Some(running)))
            }
            Err(error) => {
                self.shared.mediator.deregister(correlation).await;
                Err(error)
            }
        }
    }

    /// Starts a conversation that serves another one, and of which nothing is kept.
    pub(crate) async fn start_aside<P: Procedure>(
        &self,
        procedure: P,
        terms: Terms,
        file: Option<FileId>,
    ) -> Result<Running, ClientError> {
        let (conversation, arriving) = self.begin(procedure, terms, file, false).await?;
        Ok(self.launch(conversation, Cargo::Nothing, None, Beginning::New, arriving))
    }

    /// A conversation whose answers come here from now on.
    async fn begin<P: Procedure>(
        &self,
        procedure: P,
        terms: Terms,
        file: Option<FileId>,
        changes: bool,
    ) -> Result<Begun<P>, ClientError> {
        if self.shared.cancel.is_cancelled() {
            return Err(ClientError::Closed);
        }
        if terms.contributors.is_empty() {
            return Err(terms
                .collection
                .map_or(ClientError::NobodyNamed, ClientError::NoContributors));
        }
        let context = self.context(terms, file);
        let (registration, arriving) = Registration::new(&context, changes);
        self.shared.mediator.register(registration).await?;
        Ok((Conversation::new(context, procedure), arriving))
    }

    /// Writes down that a conversation begins, if that is done at all.
    async fn keep<P: Procedure>(
        &self,
        conversation: &Conversation<P>,
        changes: bool,
        cargo: &Cargo,
    ) -> Result<Option<Keeping>, ClientError> {
        let Some(journal) = &self.shared.journal else {
            return Ok(None);
        };
        let slot = journal.slot(&conversation.context().correlation)?;
        let written = async {
            let keeping = Keeping::new(slot.clone(), changes, cargo.kept()?, conversation);
            keeping.begin(conversation).await?;
            Ok(keeping)
        };
        match written.await {
            Ok(keeping) => Ok(Some(keeping)),
            Err(source) => {
                slot.remove();
                let path = slot.path().to_path_buf();
                Err(JournalError::Io { path, source }.into())
            }
        }
    }

    /// Starts the task of a conversation that is registered.
    pub(crate) fn launch<P: Procedure>(
        &self,
        conversation: Conversation<P>,
        cargo: Cargo,
        keeping: Option<Keeping>,
        beginning: Beginning,
        arriving: mpsc::Receiver<Arrived>,
    ) -> Running {
        let context = conversation.context();
        let correlation = context.correlation.clone();
        let cancel = self.shared.cancel.child_token();
        let unclaimed = CancellationToken::new();
        let (sender, events) = mpsc::channel(EVENTS_WAITING);
        let (end, ended) = oneshot::channel();
        let span = info_span!(
            "conversation",
            component = self.shared.component.id().as_str(),
            correlation = %correlation,
            collection = context.collection.as_ref().map(CollectionId::as_str),
            file = context.file.as_ref().map(FileId::as_str),
            op = P::OPERATION.as_str(),
        );
        let meter = Meter::default();
        let surroundings = Surroundings {
            client: self.clone(),
            component: self.shared.component.clone(),
            exchange: self.shared.exchange.clone(),
            mediator: self.shared.mediator.clone(),
            cancel: cancel.clone(),
            unclaimed: unclaimed.clone(),
            acknowledges: self.shared.named,
            timeouts: timeouts_of(context),
            meter: meter.clone(),
        };
        let task = ConversationTask::new(conversation, surroundings, cargo, keeping, sender);
        self.shared
            .conversations
            .spawn(task.run(beginning, arriving, end).instrument(span));
        Running {
            correlation,
            events,
            ended,
            cancel,
            unclaimed,
            meter,
        }
    }

    fn context(&self, terms: Terms, file: Option<FileId>) -> Context {
        let component = &self.shared.component;
        Context {
            correlation: CorrelationId::random(),
            reply_to: component.address(terms.asked_in.first()),
            identify_at: self.collection_destinations(&terms.asked_in),
            collection: terms.collection,
            file,
            from: component.id().clone(),
            expected: terms.contributors,
            identification_timeout_ms: millis(terms.timeouts.identification),
            operation_timeout_ms: millis(terms.timeouts.operation),
            conversation_timeout_ms: millis(terms.timeouts.conversation),
            extend_on_progress: self.shared.extend_on_progress,
        }
    }

    /// Where identify requests for these collections go; one place may serve several.
    fn collection_destinations(&self, collections: &[CollectionId]) -> Vec<Destination> {
        let mut found = Vec::new();
        for id in collections {
            let destination = self.repository().destinations(id).collection();
            if !found.contains(&destination) {
                found.push(destination);
            }
        }
        found
    }
}

/// A conversation that is put through, and where its messages come out.
type Begun<P> = (Conversation<P>, mpsc::Receiver<Arrived>);

/// An operation on its way to who started it. Dropped, it ends and is forgotten.
#[derive(Debug)]
struct Unclaimed(Option<Running>);

impl Unclaimed {
    fn claim(mut self) -> Option<Running> {
        self.0.take()
    }
}

impl Drop for Unclaimed {
    fn drop(&mut self) {
        if let Some(running) = &self.0 {
            running.unclaimed.cancel();
            running.cancel();
        }
    }
}

/// How long a conversation lets others take.
fn timeouts_of(context: &Context) -> Timeouts {
    let time = |millis: i64| Duration::from_millis(u64::try_from(millis).unwrap_or_default());
    Timeouts {
        identification: time(context.identification_timeout_ms),
        operation: time(context.operation_timeout_ms),
        conversation: time(context.conversation_timeout_ms),
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("id", self.id())
            .finish_non_exhaustive()
    }
}
