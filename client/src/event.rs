//! What a conversation tells its caller while it runs, and what it ends with.

use std::fmt;

use pillarbox_messages::{
    AuditTrailEvent, ChecksumData, ChecksumDataItem, ChecksumSpec, CollectionId, ComponentId,
    CorrelationId, FileId, FileIdsDataItem, Operation, ResponseCode, ResultingStatus,
};
use serde::{Deserialize, Serialize};

/// One event of one conversation.
///
/// The order is always: the identification's events, [`EventKind::IdentificationComplete`], the performing's
/// events, and exactly one of [`EventKind::Complete`] and [`EventKind::Failed`], after which nothing comes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// The conversation.
    pub correlation: CorrelationId,
    /// What the conversation does.
    pub operation: Operation,
    /// The collection that it is about; none if about no one collection.
    pub collection: Option<CollectionId>,
    /// The file that it is about, exactly as the caller gave it; none if about all files.
    pub file: Option<FileId>,
    /// What happened.
    pub kind: EventKind,
    /// What is to be said about it, for people.
    pub info: Option<String>,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EventKind {
    /// The identify request is on its way.
    IdentifyRequestSent,
    /// A contributor is ready to perform.
    ComponentIdentified {
        /// Who.
        contributor: ComponentId,
    },
    /// The identification's time is over and not everybody has answered.
    IdentifyTimeout {
        /// Who did not answer.
        silent: Vec<ComponentId>,
    },
    /// The identification is over and the operation goes on.
    IdentificationComplete {
        /// Who takes part; empty if nobody needs to do anything.
        selected: Vec<ComponentId>,
        /// Who said that it does not do such a thing at all, and why: no failures, but their results are not to come.
        #[serde(default)]
        unsupported: Vec<ComponentFailure>,
    },
    /// The operation requests are on their way.
    RequestSent {
        /// To whom.
        contributors: Vec<ComponentId>,
    },
    /// A contributor is at work, or has sent one page of several.
    Progress {
        /// Who.
        contributor: ComponentId,
        /// The page, if this is one.
        result: Option<ComponentResult>,
    },
    /// A contributor has done its part.
    ComponentComplete {
        /// Who.
        contributor: ComponentId,
        /// Its result; of a listing, the last page.
        result: ComponentResult,
    },
    /// A contributor has failed, or has not answered in time.
    ComponentFailed {
        /// Who.
        contributor: ComponentId,
        /// What it answered; none if it did not answer, or could not be asked.
        code: Option<ResponseCode>,
    },
    /// Something odd that does not end the conversation.
    Warning {
        /// Whom it is about, if anybody.
        contributor: Option<ComponentId>,
        /// What it is about.
        concern: Concern,
    },
    /// The last event of an operation that succeeded.
    Complete {
        /// Everything that was done.
        results: Vec<Completed>,
        /// Who failed all the same; only where one success is enough.
        failures: Vec<ComponentFailure>,
    },
    /// The last event of an operation that failed.
    Failed {
        /// What was done all the same.
        results: Vec<Completed>,
        /// Who failed and why.
        failures: Vec<ComponentFailure>,
    },
}

/// What a warning is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Concern {
    /// What a contributor has sent. If it does harm, more is told of it.
    Contributor,
    /// The fetched bytes: they could not be compared with a checksum.
    Comparison,
    /// The journal: how the operation stands is not in it.
    Journal,
}

/// A contributor's part that was done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Completed {
    /// Who.
    pub contributor: ComponentId,
    /// Its result; the items of a listing are in the page events only.
    pub result: ComponentResult,
}

/// A contributor's part that was not done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComponentFailure {
    /// Who.
    pub contributor: ComponentId,
    /// What it answered; none if it did not answer, or could not be asked.
    pub code: Option<ResponseCode>,
    /// Why, for people.
    pub text: String,
}

/// What one contributor gave.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ComponentResult {
    /// The file is stored.
    Stored(Stored),
    /// The file has been delivered.
    Delivered(Delivered),
    /// File ids.
    FileIds(Page<FileIdsDataItem>),
    /// Checksums.
    Checksums(ChecksumPage),
    /// The file is replaced.
    Replaced(Replaced),
    /// The file is deleted.
    Deleted(Deleted),
    /// Audit trail events.
    AuditTrails(Page<AuditTrailEvent>),
    /// How a component is.
    Status(ResultingStatus),
}

/// A file that is stored at a pillar.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stored {
    /// The checksum that the pillar told, if it told one.
    pub checksum: Option<ChecksumData>,
    /// Whether the pillar had the identical file before.
    pub already_there: bool,
    /// Whether the pillar says that it keeps checksums only: it has those of one kind, and computes no others.
    #[serde(default)]
    pub checksums_only: bool,
}

/// A file that was replaced at a pillar.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replaced {
    /// The old file's checksum as the pillar told it, if it was asked for and did.
    pub existing: Option<ChecksumData>,
    /// The new file's checksum as the pillar told it, if it was asked for and did.
    pub new: Option<ChecksumData>,
    /// Whether the pillar had the new file already: so if it tells the same checksum of the old and of the new one.
    /// None if it tells none that can be compared.
    pub already_there: Option<bool>,
    /// Whether the pillar says that it keeps checksums only: it has those of one kind, and computes no others.
    #[serde(default)]
    pub checksums_only: bool,
}

/// A file that is no more at a pillar.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deleted {
    /// Its checksum as the pillar told it, if it did.
    pub checksum: Option<ChecksumData>,
    /// Whether it was not there in the first place.
    pub already_absent: bool,
}

/// A file that a pillar has delivered and that is at its target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivered {
    /// Its length in bytes.
    pub size: u64,
    /// Whether it took the place of a file that was at its target before.
    #[serde(default)]
    pub replaced: bool,
    /// The checksum that the bytes were compared with, as the pillar told it or, if it did not, as others told it;
    /// none if nobody told one that can be computed here: a warning came before then.
    pub checksum: Option<ChecksumData>,
}

/// One page of a listing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page<T> {
    /// The items, without those of the pages before.
    pub items: Vec<T>,
    /// How many items the contributor has sent so far, this page included.
    pub total: u64,
    /// Whether there are more.
    pub partial: bool,
}

/// One page of checksums.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChecksumPage {
    /// How the checksums were computed.
    pub spec: ChecksumSpec,
    /// The items.
    pub page: Page<ChecksumDataItem>,
}

/// How a conversation ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Whether the operation succeeded: the last event was [`EventKind::Complete`].
    pub complete: bool,
    /// The last event's text.
    pub info: Option<String>,
    /// What was done.
    pub results: Vec<Completed>,
    /// Who failed and why. A GetFile that succeeded may have failures too.
    pub failures: Vec<ComponentFailure>,
    /// The last event, as people read it.
    pub last_event: String,
}

impl ComponentFailure {
    pub(crate) const fn new(
        contributor: ComponentId,
        code: Option<ResponseCode>,
        text: String,
    ) -> Self {
        Self {
            contributor,
            code,
            text,
        }
    }
}

impl Event {
    /// Whether this is the last event of its conversation.
    #[must_use]
    pub const fn is_final(&self) -> bool {
        matches!(
            self.kind,
            EventKind::Complete { .. } | EventKind::Failed { .. }
        )
    }
}

impl EventKind {
    /// The event's name as the users of the protocol's clients know it.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::IdentifyRequestSent => "IDENTIFY_REQUEST_SENT",
            Self::ComponentIdentified { .. } => "COMPONENT_IDENTIFIED",
            Self::IdentifyTimeout { .. } => "IDENTIFY_TIMEOUT",
            Self::IdentificationComplete { .. } => "IDENTIFICATION_COMPLETE",
            Self::RequestSent { .. } => "REQUEST_SENT",
            Self::Progress { .. } => "PROGRESS",
            Self::ComponentComplete { .. } => "COMPONENT_COMPLETE",
            Self::ComponentFailed { .. } => "COMPONENT_FAILED",
            Self::Warning { .. } => "WARNING",
            Self::Complete { .. } => "COMPLETE",
            Self::Failed { .. } => "FAILED",
        }
    }

    /// Whom the event is about, if it is one contributor.
    #[must_use]
    pub const fn contributor(&self) -> Option<&ComponentId> {
        match self {
            Self::ComponentIdentified { contributor }
            | Self::Progress { contributor, .. }
            | Self::ComponentComplete { contributor, .. }
            | Self::ComponentFailed { contributor, .. } => Some(contributor),
            Self::Warning { contributor, .. } => contributor.as_ref(),
            _ => None,
        }
    }
}

impl EventKind {
    /// What stands between an event's name and its text, if anything does.
    fn extra(&self) -> Option<String> {
        match self {
            Self::IdentifyTimeout { silent: ids }
            | Self::IdentificationComplete { selected: ids, .. }
            | Self::RequestSent { contributors: ids } => Some(format!("[{}]", join(ids))),
            Self::ComponentFailed {
                contributor,
                code: Some(code),
            } => Some(format!("ContributorID {contributor} ResponseCode: {code}")),
            kind => kind
                .contributor()
                .map(|contributor| format!("ContributorID {contributor}")),
        }
    }
}

impl ComponentResult {
    /// The same without a listing's items: what is kept to the end.
    #[must_use]
    pub(crate) fn summary(&self) -> Self {
        match self {
            Self::FileIds(page) => Self::FileIds(page.emptied()),
            Self::Checksums(checksums) => Self::Checksums(ChecksumPage {
                spec: checksums.spec.clone(),
                page: checksums.page.emptied(),
            }),
            Self::AuditTrails(page) => Self::AuditTrails(page.emptied()),
            Self::Stored(_)
            | Self::Delivered(_)
            | Self::Replaced(_)
            | Self::Deleted(_)
            | Self::Status(_) => self.clone(),
        }
    }
}

impl<T> Page<T> {
    const fn emptied(&self) -> Self {
        Self {
            items: Vec::new(),
            total: self.total,
            partial: self.partial,
        }
    }
}

/// `<short id>: <OPERATION>[ for file <id>]: <EVENT>[: <extra>][, <info>]`; the text follows a colon where there is
/// nothing else.
impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {}",
            self.correlation.short(),
            self.operation.event_name()
        )?;
        if let Some(file) = &self.file {
            write!(f, " for file {file}")?;
        }
        write!(f, ": {}", self.kind.name())?;
        let parts = [self.kind.extra(), self.info.clone()];
        let mut between = ": ";
        for part in parts.into_iter().flatten() {
            write!(f, "{between}{part}")?;
            between = ", ";
        }
        Ok(())
    }
}

/// `north: FILE_TRANSFER_FAILURE, cause`.
impl fmt::Display for ComponentFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.code {
            Some(code) => write!(f, "{}: {code}, {}", self.contributor, self.text),
            None => write!(f, "{}: {}", self.contributor, self.text),
        }
    }
}

/// Ids as people read a list.
pub(crate) fn join(ids: &[ComponentId]) -> String {
    let ids: Vec<&str> = ids.iter().map(ComponentId::as_str).collect();
    ids.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: EventKind, file: Option<&str>, info: Option<&str>) -> Event {
        Event {
            correlation: "5c1e7a90-5b1a-4e68-8c93-2a9e6b0f1d35".into(),
            operation: Operation::DeleteFile,
            collection: Some("books".into()),
            file: file.map(FileId::from),
            kind,
            info: info.map(str::to_owned),
        }
    }

    #[test]
    fn printed_as_people_read_it() {
        let failed = EventKind::ComponentFailed {
            contributor: "east-pillar".into(),
            code: Some(ResponseCode::ExistingFileChecksumFailure),
        };
        assert_eq!(
            event(failed, Some("hello.txt"), Some("Cannot delete file.")).to_string(),
            "5c1e7a90: DELETE_FILE for file hello.txt: COMPONENT_FAILED: ContributorID east-pillar \
             ResponseCode: EXISTING_FILE_CHECKSUM_FAILURE, Cannot delete file."
        );
        let sent = EventKind::RequestSent {
            contributors: vec!["a".into(), "b".into()],
        };
        assert_eq!(
            event(sent, None, None).to_string(),
            "5c1e7a90: DELETE_FILE: REQUEST_SENT: [a, b]"
        );
        let failed = |info| {
            let kind = EventKind::Failed {
                results: Vec::new(),
                failures: Vec::new(),
            };
            event(kind, None, info).to_string()
        };
        assert_eq!(failed(Some("why")), "5c1e7a90: DELETE_FILE: FAILED: why");
        assert_eq!(failed(None), "5c1e7a90: DELETE_FILE: FAILED");
    }
}
