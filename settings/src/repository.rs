//! What all components of a repository share: `repository.toml`.

mod check;
mod raw;

use std::{collections::BTreeMap, path::Path, time::Duration};

use pillarbox_messages::{
    ChecksumType, CollectionId, ComponentId, Operation, file_id::FileIdPattern,
};

use crate::{
    bus_url::BusAddress,
    environment::Environment,
    naming::{CollectionDestinations, Naming, Templates},
    problem::SettingsError,
    reading::{Document, read_text},
    template::Template,
};

pub(crate) use raw::RawRepository;

/// A repository: its bus, its protocol rules and its collections.
#[derive(Clone, Debug)]
pub struct Repository {
    /// The repository's name, for people.
    pub name: String,
    /// The checksum type that pillars compute for every file; neither HMAC nor OTHER.
    pub default_checksum: ChecksumType,
    /// What file ids must look like, beyond the built-in limit that always holds.
    pub file_id_pattern: Option<FileIdPattern>,
    /// What requests must carry.
    pub require: Requirements,
    /// Who tells how it is besides the pillars (`GetStatusSettings/NonPillarContributorIDs`).
    pub status_contributors: Vec<ComponentId>,
    /// Who has an audit trail besides the pillars (`GetAuditTrailSettings/NonPillarContributorIDs`).
    pub audit_contributors: Vec<ComponentId>,
    /// Where the components meet.
    pub bus: BusAddress,
    /// How long clients wait, where no agreement says otherwise.
    pub timeouts: Timeouts,
    /// Base URL of the repository's own file exchange: where clients offer files unless they say otherwise.
    pub exchange_url: Option<String>,
    /// The collections, at least one.
    pub collections: Vec<Collection>,
    /// What to tell people at start: settings that are read but not yet acted upon.
    pub warnings: Vec<String>,
    pub(crate) naming: Naming,
    pub(crate) templates: Templates,
}

/// What requests must carry (schema elements `RequireChecksumForNewFileRequests` and its like).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Requirements {
    /// `PutFile` and `ReplaceFile` carry the new file's checksum.
    pub checksum_for_new_file: bool,
    /// `DeleteFile` and `ReplaceFile` carry the old file's checksum.
    pub checksum_for_destructive: bool,
    /// Messages are signed.
    pub message_authentication: bool,
    /// Signers have permission for what they ask.
    pub operation_authorization: bool,
}

/// How long a client waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// For the answers to an identification.
    pub identification: Duration,
    /// For the final responses of an operation.
    pub operation: Duration,
    /// For a whole conversation, however often its parts are given more time. It counts for at least as much as the
    /// other two together.
    pub conversation: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            identification: Duration::from_secs(180),
            operation: Duration::from_secs(3600),
            conversation: Duration::from_secs(24 * 3600),
        }
    }
}

/// A collection: files that the same pillars keep.
#[derive(Clone, Debug)]
pub struct Collection {
    /// Its id in messages and in archive directories.
    pub id: CollectionId,
    /// Its name, for people.
    pub name: Option<String>,
    /// Its pillars, at least one.
    pub pillars: Vec<ComponentId>,
    /// Its service level agreements; none: everybody may do everything.
    pub slas: Vec<Sla>,
    pub(crate) templates: Templates,
    pub(crate) pillar_templates: BTreeMap<ComponentId, Template>,
}

impl Collection {
    /// The agreement of this id.
    #[must_use]
    pub fn sla(&self, id: &str) -> Option<&Sla> {
        self.slas.iter().find(|sla| sla.id == id)
    }

    /// The agreement that lists this client; the first if several do.
    #[must_use]
    pub fn sla_of_client(&self, client: &ComponentId) -> Option<&Sla> {
        self.slas.iter().find(|sla| sla.clients.contains(client))
    }
}

/// A service level agreement: who may ask what of a collection, and what they are promised.
#[derive(Clone, Debug)]
pub struct Sla {
    /// Its id, unique within the repository.
    pub id: String,
    /// The clients it is made with.
    pub clients: Vec<ComponentId>,
    /// The pillars that serve it, and so its clients' expected contributors.
    pub pillars: Vec<ComponentId>,
    /// What its clients may ask.
    pub operations: Vec<Operation>,
    /// Instead of the repository's identification timeout.
    pub identification_timeout: Option<Duration>,
    /// Instead of the repository's operation timeout.
    pub operation_timeout: Option<Duration>,
    /// A put is complete with this many full copies.
    pub min_copies: Option<usize>,
    /// What a pillar promises for `GetFile`.
    pub time_to_deliver: Option<Duration>,
    /// How old a checksum may be when it is reported.
    pub max_checksum_age: Option<Duration>,
    /// Receivers of the alarm service.
    pub alarm_to: Vec<String>,
    pub(crate) client_template: Option<Template>,
    pub(crate) alarms_template: Option<Template>,
}

impl Repository {
    /// Reads `repository.toml`.
    ///
    /// # Errors
    /// Everything that is wrong with the file, each with its line.
    pub fn load(path: &Path) -> Result<Self, SettingsError> {
        let file = path.display().to_string();
        Self::from_toml_str(&read_text(path)?, &file)
    }

    /// Reads settings from text; `name` stands for the file in errors.
    ///
    /// # Errors
    /// Everything that is wrong with the text, each with its line.
    pub fn from_toml_str(text: &str, name: &str) -> Result<Self, SettingsError> {
        let document: Document<RawRepository> = Document::read(text, name, &Environment::empty())?;
        check::repository(&document)
    }

    /// The collection of this id.
    #[must_use]
    pub fn collection(&self, id: &CollectionId) -> Option<&Collection> {
        self.collections
            .iter()
            .find(|collection| collection.id == *id)
    }

    /// The agreement of this id, with its collection.
    #[must_use]
    pub fn sla(&self, id: &str) -> Option<(&Collection, &Sla)> {
        self.collections
            .iter()
            .find_map(|collection| Some((collection, collection.sla(id)?)))
    }

    /// The collections that this pillar keeps.
    pub fn collections_of_pillar(&self, pillar: &ComponentId) -> impl Iterator<Item = &Collection> {
        self.collections
            .iter()
            .filter(move |collection| collection.pillars.contains(pillar))
    }

    /// How long a client waits that works under this agreement, or under none.
    #[must_use]
    pub fn timeouts_for(&self, sla: Option<&str>) -> Timeouts {
        let sla = sla.and_then(|id| self.sla(id)).map(|(_, sla)| sla);
        Timeouts {
            identification: sla
                .and_then(|sla| sla.identification_timeout)
                .unwrap_or(self.timeouts.identification),
            operation: sla
                .and_then(|sla| sla.operation_timeout)
                .unwrap_or(self.timeouts.operation),
            conversation: self.timeouts.conversation,
        }
    }

    /// How long a request about a collection may wait for its pillar at most: then it has expired, or nobody waits for
    /// its answer any more.
    #[must_use]
    pub fn longest_wait_for_pillar(&self, collection: &CollectionId) -> Duration {
        let slas = self
            .collection(collection)
            .into_iter()
            .flat_map(|it| &it.slas);
        let longest = slas
            .filter_map(|sla| sla.operation_timeout)
            .fold(self.timeouts.operation, Duration::max);
        if self.has_reference_naming() {
            // Nothing expires.
            longest.max(self.timeouts.conversation)
        } else {
            longest
        }
    }

    /// The names of a collection's destinations. For an id that is no collection of this repository
    /// they follow the repository's general templates.
    #[must_use]
    pub fn destinations(&self, collection: &CollectionId) -> CollectionDestinations<'_> {
        CollectionDestinations::new(self, collection)
    }
}
