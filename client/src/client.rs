//! [`Client`]: one async method per operation.

use std::{collections::BTreeSet, fmt, path::Path, sync::Arc};

use pillarbox_component::{Component, ComponentOptions};
use pillarbox_exchange::{ExchangeClient, OfferSpace};
use pillarbox_messages::{ChecksumData, CollectionId, ComponentId, CorrelationId, FileId};
use pillarbox_settings::{Repository, Timeouts};
use tokio::sync::{mpsc, oneshot};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::{Instrument, info_span};

use crate::{
    conversation::{
        Context, Conversation, Procedure, get_checksums::GetChecksumsProcedure,
        get_file::GetFileProcedure, get_file_ids::GetFileIdsProcedure, paging::Walks,
        put_file::PutFileProcedure,
    },
    digests::{plain_spec, same_spec},
    error::ClientError,
    mediator::{INBOX_MESSAGES, Mediator, Registration},
    options::ClientOptions,
    request::{GetChecksums, GetFile, GetFileIds, PutFile, Source},
    running::Running,
    source,
    task::{Cargo, ConversationTask, EVENTS_WAITING, Surroundings},
    terms::{Terms, limits, millis},
};

/// A client of a repository. Clones share everything.
///
/// Operations go on when the client is dropped; [`Client::close`] ends them.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
}

struct Shared {
    component: Component,
    exchange: ExchangeClient,
    offers: Option<OfferSpace>,
    named: bool,
    sla: Option<String>,
    timeouts: Option<Timeouts>,
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

    /// Puts a file on the pillars of a collection. Returns when the operation has started; the file is read for
    /// its checksum meanwhile, if none was given.
    ///
    /// # Errors
    /// What [`PutFile::validate`] finds; no exchange; a bus that can't be subscribed to; the same file is being
    /// put by this client already.
    pub async fn put_file(&self, request: PutFile) -> Result<Running, ClientError> {
        request.validate(self.repository())?;
        let terms = self.terms(&request.collection)?;
        let default_spec = plain_spec(self.repository().default_checksum);
        let mut procedure = PutFileProcedure {
            checksum: request.checksum,
            request_checksum: request.request_checksum,
            partial_allowed: request.partial_allowed,
            retries: request.retries,
            audit_trail_information: request.audit_trail_information,
            ..PutFileProcedure::new(request.file_id.clone(), default_spec)
        };
        let cargo = match request.source {
            Source::Address { address, size } => {
                procedure.size = size.unwrap_or_default();
                procedure.address = address;
                Cargo::Nothing
            }
            Source::Path(path) => self.outbound(&path, &mut procedure).await?,
        };
        self.start(procedure, terms, Some(request.file_id), cargo, true)
            .await
    }

    /// Prepares a file to be offered.
    async fn outbound(
        &self,
        path: &Path,
        procedure: &mut PutFileProcedure,
    ) -> Result<Cargo, ClientError> {
        let address = self.offer_address(&procedure.file)?;
        let given = procedure
            .checksum
            .as_ref()
            .map(|given| &given.checksum_spec);
        let needed = given.is_none_or(|given| !same_spec(given, &procedure.default_spec));
        let spec = needed.then(|| procedure.default_spec.clone());
        let opened = source::open(path, spec.as_ref()).await?;
        procedure.size = opened.size;
        procedure.address.clone_from(&address);
        procedure.offer = true;
        procedure.examining = needed;
        if let Some((spec, value)) = spec.clone().zip(opened.checksum) {
            procedure.examined(ChecksumData {
                checksum_spec: spec,
                checksum_value: value,
                calculation_timestamp: self.shared.component.timestamp(),
            });
        }
        Ok(Cargo::Outbound {
            file: opened.file,
            size: opened.size,
            content: opened.content,
            address,
            examine: spec.filter(|_| procedure.examining),
        })
    }

    /// Fetches a file.
    ///
    /// # Errors
    /// What [`GetFile::validate`] finds; no exchange; a bus that can't be subscribed to.
    pub async fn get_file(&self, request: GetFile) -> Result<Running, ClientError> {
        request.validate(self.repository())?;
        let mut terms = self.terms(&request.collection)?;
        if let Some(pillar) = request.pillar {
            terms.pillars = BTreeSet::from([pillar]);
        }
        let address = self.offer_address(&request.file_id)?;
        let procedure = GetFileProcedure::new(
            request.file_id.clone(),
            address.clone(),
            request.audit_trail_information,
        );
        let cargo = Cargo::Inbound {
            address,
            target: request.target,
        };
        self.start(procedure, terms, Some(request.file_id), cargo, false)
            .await
    }

    /// Asks which files the pillars have. The items come in events.
    ///
    /// # Errors
    /// What [`GetFileIds::validate`] finds; a bus that can't be subscribed to.
    pub async fn get_file_ids(&self, request: GetFileIds) -> Result<Running, ClientError> {
        request.validate(self.repository())?;
        let mut terms = self.terms(&request.collection)?;
        if let Some(pillars) = request.pillars {
            terms.pillars = pillars.into_iter().collect();
        }
        let procedure = GetFileIdsProcedure {
            file: request.file_id.clone(),
            audit_trail_information: request.audit_trail_information,
            walks: Walks::new(request.page_size),
        };
        self.start(procedure, terms, request.file_id, Cargo::Nothing, false)
            .await
    }

    /// Asks for the checksums of the pillars' files. The items come in events.
    ///
    /// # Errors
    /// What [`GetChecksums::validate`] finds; a bus that can't be subscribed to.
    pub async fn get_checksums(&self, request: GetChecksums) -> Result<Running, ClientError> {
        request.validate(self.repository())?;
        let mut terms = self.terms(&request.collection)?;
        if let Some(pillars) = request.pillars {
            terms.pillars = pillars.into_iter().collect();
        }
        let default_checksum = self.repository().default_checksum;
        let procedure = GetChecksumsProcedure {
            file: request.file_id.clone(),
            spec: request
                .checksum
                .unwrap_or_else(|| plain_spec(default_checksum)),
            audit_trail_information: request.audit_trail_information,
            walks: Walks::new(request.page_size),
        };
        self.start(procedure, terms, request.file_id, Cargo::Nothing, false)
            .await
    }

    /// Ends every operation and waits until all is cleaned up. The bus stays open.
    pub async fn close(&self) {
        self.shared.cancel.cancel();
        self.shared.conversations.close();
        self.shared.conversations.wait().await;
    }

    fn offer_address(&self, file: &FileId) -> Result<String, ClientError> {
        let offers = self.shared.offers.as_ref().ok_or(ClientError::NoExchange)?;
        Ok(offers.address_for(file.as_str()))
    }

    fn terms(&self, collection: &CollectionId) -> Result<Terms, ClientError> {
        let mut terms = Terms::of(
            self.repository(),
            collection,
            self.id(),
            self.shared.sla.as_deref(),
        )?;
        terms.timeouts = limits(self.shared.timeouts.unwrap_or(terms.timeouts));
        Ok(terms)
    }

    async fn start<P: Procedure>(
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
        if terms.pillars.is_empty() {
            return Err(ClientError::NoContributors(terms.collection));
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
                    .file
                    .clone()
                    .filter(|_| changes)
                    .map(|file| (context.collection.clone(), file)),
            })
            .await?;
        let cancel = self.shared.cancel.child_token();
        let (sender, events) = mpsc::channel(EVENTS_WAITING);
        let (result, outcome) = oneshot::channel();
        let span = info_span!(
            "conversation",
            component = self.shared.component.id().as_str(),
            correlation = %correlation,
            collection = %context.collection,
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
            reply_to: component.address(Some(&terms.collection)),
            identify_at: self
                .repository()
                .destinations(&terms.collection)
                .collection(),
            collection: terms.collection,
            file,
            from: component.id().clone(),
            expected: terms.pillars,
            identification_timeout_ms: millis(terms.timeouts.identification),
            operation_timeout_ms: millis(terms.timeouts.operation),
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("id", self.id())
            .finish_non_exhaustive()
    }
}
