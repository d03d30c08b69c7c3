//! [`Client`]: what it is made from, and how its operations are started.

use std::{fmt, sync::Arc};

use pillarbox_component::{Component, ComponentOptions};
use pillarbox_exchange::{ExchangeClient, OfferSpace};
use pillarbox_messages::{CollectionId, ComponentId, CorrelationId, Destination, FileId};
use pillarbox_settings::{Repository, Timeouts};
use tokio::sync::{mpsc, oneshot};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::{Instrument, info_span};

use crate::{
    conversation::{Context, Conversation, Procedure},
    error::ClientError,
    mediator::{INBOX_MESSAGES, Mediator, Registration},
    options::ClientOptions,
    running::Running,
    task::{Cargo, ConversationTask, EVENTS_WAITING, Surroundings},
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
    exchange: ExchangeClient,
    pub(crate) offers: Option<OfferSpace>,
    named: bool,
    pub(crate) sla: Option<String>,
    pub(crate) timeouts: Option<Timeouts>,
    extend_on_progress: bool,
    mediator: Mediator,
    conversations: TaskTracker,
    cancel: CancellationToken,
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
                mediator: Mediator::start(component.clone(), named),
                component,
                exchange,
                offers: base.map(|base| OfferSpace::new(&base)),
                named,
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
        if self.shared.cancel.is_cancelled() {
            return Err(ClientError::Closed);
        }
        if terms.contributors.is_empty() {
            return Err(terms
                .collection
                .map_or(ClientError::NobodyNamed, ClientError::NoContributors));
        }
        let timeouts = terms.timeouts;
        let context = self.context(terms, file);
        let correlation = context.correlation.clone();
        let (inbox, arriving) = mpsc::channel(INBOX_MESSAGES);
        self.shared
            .mediator
            .register(Registration {
                correlation: correlation.clone(),
                destination: context.reply_to.clone(),
                inbox,
                changes: context
                    .collection
                    .clone()
                    .zip(context.file.clone())
                    .filter(|_| changes),
            })
            .await?;
        let cancel = self.shared.cancel.child_token();
        let (sender, events) = mpsc::channel(EVENTS_WAITING);
        let (result, outcome) = oneshot::channel();
        let span = info_span!(
            "conversation",
            component = self.shared.component.id().as_str(),
            correlation = %correlation,
            collection = context.collection.as_ref().map(CollectionId::as_str),
            file = context.file.as_ref().map(FileId::as_str),
            op = P::OPERATION.as_str(),
        );
        let surroundings = Surroundings {
            component: self.shared.component.clone(),
            exchange: self.shared.exchange.clone(),
            mediator: self.shared.mediator.clone(),
            cancel: cancel.clone(),
            acknowledges: self.shared.named,
            timeouts,
        };
        let conversation = Conversation::new(context, procedure);
        let task = ConversationTask::new(conversation, surroundings, cargo, sender);
        self.shared
            .conversations
            .spawn(task.run(arriving, result).instrument(span));
        Ok(Running {
            correlation,
            events,
            outcome,
            cancel,
        })
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

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("id", self.id())
            .finish_non_exhaustive()
    }
}
