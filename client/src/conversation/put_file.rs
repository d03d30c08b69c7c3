//! PutFile: the file goes to every pillar of the collection that has not got it.

use std::collections::{BTreeMap, BTreeSet};

use pillarbox_messages::{
    ChecksumData, ChecksumSpec, ComponentId, FileId, Header, IdentifyPillarsForPutFileRequest,
    Message, MessageType, Operation, PutFileRequest, ResponseCode,
};
use serde::{Deserialize, Serialize};

use super::{
    Conversation, Resumable,
    new_file::{Existing, NewFile},
    procedure::{Completion, Failing, Procedure, Refusal},
};
use crate::event::{ComponentResult, Stored};

/// A put and where it stands.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PutFileProcedure {
    /// The file.
    pub file: FileId,
    /// What is known of its bytes.
    pub new: NewFile,
    /// The checksum that pillars are asked to answer with.
    pub request_checksum: Option<ChecksumSpec>,
    /// Whether a pillar that does not answer leaves the put to the others.
    pub partial_allowed: bool,
    /// How often a pillar is asked again after a failed transfer.
    pub retries: u32,
    /// The pillars that keep checksums only.
    pub checksum_pillars: BTreeSet<ComponentId>,
    /// How often pillars were asked again.
    pub retried: BTreeMap<ComponentId, u32>,
    /// Schema element `AuditTrailInformation`.
    pub audit_trail_information: Option<String>,
}

impl PutFileProcedure {
    /// A put of this file without any options.
    #[must_use]
    pub const fn new(file: FileId, new: NewFile) -> Self {
        Self {
            file,
            new,
            request_checksum: None,
            partial_allowed: true,
            retries: 0,
            checksum_pillars: BTreeSet::new(),
            retried: BTreeMap::new(),
            audit_trail_information: None,
        }
    }

    /// A checksum pillar is only asked for the default checksum: it has no other.
    fn checksum_request(&self, pillar: &ComponentId) -> Option<ChecksumSpec> {
        let checksum_pillar = self.checksum_pillars.contains(pillar);
        self.new
            .answerable(self.request_checksum.as_ref(), checksum_pillar)
    }
}

impl Procedure for PutFileProcedure {
    const OPERATION: Operation = Operation::PutFile;
    const IDENTIFY_RESPONSE: MessageType = MessageType::IdentifyPillarsForPutFileResponse;
    const PROGRESS: MessageType = MessageType::PutFileProgressResponse;
    const FINAL: MessageType = MessageType::PutFileFinalResponse;

    fn resumable(conversation: &Conversation<Self>) -> Option<Resumable> {
        Some(Resumable::Put(conversation.clone()))
    }

    fn identify_request(&self, header: Header) -> Message {
        IdentifyPillarsForPutFileRequest {
            header,
            audit_trail_information: self.audit_trail_information.clone(),
            file_id: Some(self.file.clone()),
            file_size: Some(self.new.size),
        }
        .into()
    }

    fn identified(&mut self, from: &ComponentId, response: &Message) {
        if let Message::IdentifyPillarsForPutFileResponse(response) = response
            && response.pillar_checksum_spec.is_some()
        {
            self.checksum_pillars.insert(from.clone());
        }
    }

    fn awaits_checksum(&self) -> bool {
        self.new.examining
    }

    fn examined(&mut self, checksum: ChecksumData) {
        self.new.examined(checksum);
    }

    fn refused(&self, response: &Message, code: ResponseCode) -> Refusal {
        let Message::IdentifyPillarsForPutFileResponse(response) = response else {
            return Refusal::Failed;
        };
        if code != ResponseCode::DuplicateFileFailure {
            return Refusal::Failed;
        }
        match self
            .new
            .compare(response.checksum_data_for_existing_file.as_ref())
        {
            Existing::Same(existing) => {
                let checksums_only = response.pillar_checksum_spec.is_some();
                let stored = already_there(existing, checksums_only);
                Refusal::Complete(stored, ALREADY_THERE.to_owned())
            }
            Existing::Different => Refusal::Abort(DIFFERENT.to_owned()),
            Existing::Unknown => Refusal::Abort(UNKNOWN.to_owned()),
        }
    }

    fn may_perform(&self, selected: usize, silent: usize) -> bool {
        silent == 0 || (self.partial_allowed && selected > 0)
    }

    fn offers_file(&self) -> bool {
        self.new.offer
    }

    fn request(&self, header: Header, contributor: &ComponentId) -> Message {
        PutFileRequest {
            header,
            audit_trail_information: self.audit_trail_information.clone(),
            pillar_id: Some(contributor.clone()),
            file_id: self.file.clone(),
            file_address: self.new.address.clone(),
            file_size: Some(self.new.size),
            checksum_data_for_new_file: self.new.checksum.clone(),
            checksum_request_for_new_file: self.checksum_request(contributor),
        }
        .into()
    }

    fn completed(&mut self, from: &ComponentId, response: Message) -> Completion {
        let Message::PutFileFinalResponse(response) = response else {
            return Completion::Stale;
        };
        let checksum = response.checksum_data_for_new_file.as_ref();
        if self.new.compare(checksum) == Existing::Different {
            return Completion::Unusable(ANOTHER_STORED.to_owned());
        }
        Completion::Done(ComponentResult::Stored(Stored {
            checksum: response.checksum_data_for_new_file,
            already_there: false,
            checksums_only: self.checksum_pillars.contains(from),
        }))
    }

    fn failed(&mut self, from: &ComponentId, response: &Message, code: ResponseCode) -> Failing {
        match (code, response) {
            (ResponseCode::FileTransferFailure, _) => {
                let tried = self.retried.entry(from.clone()).or_default();
                if *tried >= self.retries {
                    return Failing::Failed;
                }
                *tried += 1;
                Failing::Retry(*tried)
            }
            (ResponseCode::DuplicateFileFailure, Message::PutFileFinalResponse(response)) => {
                match self
                    .new
                    .compare(response.checksum_data_for_existing_file.as_ref())
                {
                    Existing::Same(existing) => {
                        let checksums_only = self.checksum_pillars.contains(from);
                        let stored = already_there(existing, checksums_only);
                        Failing::Complete(stored, ALREADY_THERE.to_owned())
                    }
                    Existing::Different => Failing::Because(DIFFERENT.to_owned()),
                    Existing::Unknown => Failing::Because(UNKNOWN.to_owned()),
                }
            }
            _ => Failing::Failed,
        }
    }
}

pub(super) const ALREADY_THERE: &str = "the identical file was there already";
pub(super) const ANOTHER_STORED: &str = "tells a checksum that is not that of the file";
const DIFFERENT: &str = "a different file with this id exists";
const UNKNOWN: &str = "a file with this id exists, and no checksum tells whether it is the same";

const fn already_there(existing: ChecksumData, checksums_only: bool) -> ComponentResult {
    ComponentResult::Stored(Stored {
        checksum: Some(existing),
        already_there: true,
        checksums_only,
    })
}
