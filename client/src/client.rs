//! [`Client`]: one async method per operation.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
    time::Duration,
};

use pillarbox_bus::Bus;
use pillarbox_component::{Component, ComponentOptions};
use pillarbox_exchange::{ExchangeClient, OfferSpace};
use pillarbox_messages::{
    ChecksumData, CollectionId, ComponentId, CorrelationId, FileId, Timestamp, clock::SharedClock,
};
use pillarbox_settings::{Collection, Repository, Sla, Timeouts};
use tokio::sync::{mpsc, oneshot};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::{Instrument, info_span};

use crate::{
    conversation::{
        Context, Conversation, Procedure, get_checksums::GetChecksumsProcedure,
        get_file::GetFileProcedure, get_file_ids::GetFileIdsProcedure, put_file::PutFileProcedure,
    },
    digests::plain_spec,
    error::ClientError,
    mediator::{INBOX_MESSAGES, Mediator, Registration},
    request::{GetChecksums, GetFile, GetFileIds, PutFile, Source},
    running::Running,
    source::examine,
    task::{Cargo, ConversationTask, EVENTS_WAITING, FOREVER, Surroundings},
    validate,
};

/// What a client is made from.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// The repository that it works with.
    pub repository: Arc<Repository>,
    /// Its connection, whose client id is its own id.
    pub bus: Bus,
    /// How it moves files.
    pub exchange: ExchangeClient,
    /// Base URL of the exchange that it offers files on; none: the repository's own.
    pub exchange_base: Option<String>,
    /// Its id: see [`passing_id`].
    pub id: ComponentId,
    /// Whether answers wait for it while it is away: its subscriptions are durable then. A passing client leaves
    /// nothing behind.
    pub named: bool,
    /// The service level agreement that it works under.
    pub sla: Option<String>,
    /// Its time.
    pub clock: SharedClock,
    /// How long it waits, if not as long as the settings say. Zero: without limit.
    pub timeouts: Option<Timeouts>,
}

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
        let mut component = ComponentOptions::client(id, sla.as_deref(), repository, bus, clock);
        component.timeouts = limits(timeouts.unwrap_or(component.timeouts));
        let component = Component::new(component);
        Ok(Self {
            shared: Arc::new(Shared {
                mediator: Mediator::start(component.clone(), named),
                component,
                exchange,
                offers: base.map(|base| OfferSpace::new(&base)),
                named,
                sla,
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

    /// Puts a file on the pillars of a collection. Returns when the file has been read for its checksum, if none
    /// was given, and the operation has started.
    ///
    /// # Errors
    /// What [`PutFile::validate`] finds; no exchange; a bus that can't be subscribed to; the same file is being
    /// put by this client already.
    pub async fn put_file(&self, request: PutFile) -> Result<Running, ClientError> {
        request.validate(self.repository())?;
        let collection = self.terms(&request.collection)?;
        let default_spec = plain_spec(self.repository().default_checksum);
        let mut procedure = PutFileProcedure {
            file: request.file_id.clone(),
            size: 0,
            address: String::new(),
            offer: false,
            checksum: request.checksum,
            request_checksum: request.request_checksum,
            default_spec: default_spec.clone(),
            partial_allowed: request.partial_allowed,
            retries: request.retries,
            checksum_pillars: BTreeSet::new(),
            retried: BTreeMap::new(),
            audit_trail_information: request.audit_trail_information,
        };
        let cargo = match request.source {
            Source::Address { address, size } => {
                procedure.size = size.unwrap_or_default();
                procedure.address = address;
                Cargo::Nothing
            }
            Source::Path(path) => {
                let address = self.offer_address(&request.file_id)?;
                let spec = procedure.checksum.is_none().then(|| default_spec.clone());
                let examined = examine(&path, spec).await?;
                procedure.size = examined.size;
                procedure.address.clone_from(&address);
                procedure.offer = true;
                if let Some(checksum_value) = examined.checksum {
                    procedure.checksum = Some(ChecksumData {
                        checksum_spec: default_spec,
                        checksum_value,
                        calculation_timestamp: Timestamp::from(self.shared.component.clock().now()),
                    });
                }
                Cargo::Outbound {
                    file: examined.file,
                    size: examined.size,
                    address,
                }
            }
        };
        let file = Some(request.file_id);
        self.start(procedure, collection, file, cargo, true).await
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
            page_size: request.page_size,
            audit_trail_information: request.audit_trail_information,
            walks: BTreeMap::new(),
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
            page_size: request.page_size,
            audit_trail_information: request.audit_trail_information,
            walks: BTreeMap::new(),
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
        let collection = validate::collection(self.repository(), collection)?;
        let sla = agreement(collection, self.id(), self.shared.sla.as_deref())?;
        let pillars = sla.map_or(&collection.pillars, |sla| &sla.pillars);
        Ok(Terms {
            collection: collection.id.clone(),
            pillars: pillars.iter().cloned().collect(),
        })
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
        let timeouts = component.timeouts();
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
            identification_timeout_ms: millis(timeouts.identification),
            operation_timeout_ms: millis(timeouts.operation),
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

/// Whom a client asks in a collection.
struct Terms {
    collection: CollectionId,
    pillars: BTreeSet<ComponentId>,
}

/// The agreement that a client works under in a collection: the one it names, else the one that lists it.
fn agreement<'a>(
    collection: &'a Collection,
    client: &ComponentId,
    named: Option<&str>,
) -> Result<Option<&'a Sla>, ClientError> {
    match named {
        None => Ok(collection.sla_of_client(client)),
        Some(id) => collection
            .sla(id)
            .map(Some)
            .ok_or_else(|| ClientError::UnknownSla {
                sla: id.to_owned(),
                place: format!("the collection '{}'", collection.id),
            }),
    }
}

/// An id for a client that comes by once: host, user and something random, so that no two are alike.
#[must_use]
pub fn passing_id() -> ComponentId {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let host = host.or_else(|| std::env::var("HOSTNAME").ok());
    let user = std::env::var("USER")
        .or_else(|_| std::env::var("LOGNAME"))
        .ok();
    let random = CorrelationId::random();
    ComponentId::from(format!("{}-{}-{}", word(host), word(user), random.short()))
}

/// A part of an id that means nothing to any kind of bus, at most 32 characters.
fn word(text: Option<String>) -> String {
    let text = text.unwrap_or_default();
    let plain = |it: char| {
        if it.is_ascii_alphanumeric() || it == '_' {
            it
        } else {
            '-'
        }
    };
    let word: String = text.trim().chars().take(32).map(plain).collect();
    if word.is_empty() {
        "client".to_owned()
    } else {
        word
    }
}

/// Zero means without limit, and a message may wait as long as its sender.
fn limits(timeouts: Timeouts) -> Timeouts {
    let limit = |it: Duration| {
        if it.is_zero() {
            FOREVER
        } else {
            it.min(FOREVER)
        }
    };
    Timeouts {
        identification: limit(timeouts.identification),
        operation: limit(timeouts.operation),
    }
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
