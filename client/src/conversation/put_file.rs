//! PutFile: the file goes to every pillar of the collection that has not got it.

use std::collections::{BTreeMap, BTreeSet};

use pillarbox_messages::{
    ChecksumData, ChecksumSpec, ComponentId, FileId, Header, IdentifyPillarsForPutFileRequest,
    Message, MessageType, Operation, PutFileRequest, ResponseCode,
};

use super::procedure::{Completion, Failing, Procedure, Refusal};
use crate::{
    digests::same_spec,
    event::{ComponentResult, Stored},
};

/// A put and where it stands.
#[derive(Clone, Debug)]
pub struct PutFileProcedure {
    /// The file.
    pub file: FileId,
    /// Its length in bytes; zero if unknown.
    pub size: u64,
    /// Where pillars fetch it.
    pub address: String,
    /// Whether it must be laid there first.
    pub offer: bool,
    /// Its checksum, which pillars compare with what they received.
    pub checksum: Option<ChecksumData>,
    /// The checksum that pillars are asked to answer with.
    pub request_checksum: Option<ChecksumSpec>,
    /// The repository's default, the only one that a checksum pillar knows.
    pub default_spec: ChecksumSpec,
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
    /// Whether a pillar's existing file is the one being put: same checksum, computed the same way.
    fn is_same(&self, existing: &ChecksumData) -> bool {
        self.checksum.as_ref().is_some_and(|ours| {
            ours.checksum_value == existing.checksum_value
                && same_spec(&ours.checksum_spec, &existing.checksum_spec)
        })
    }

    /// A checksum pillar is only asked for the default checksum: it has no other.
    fn checksum_request(&self, pillar: &ComponentId) -> Option<ChecksumSpec> {
        let asked = self.request_checksum.as_ref()?;
        let possible =
            !self.checksum_pillars.contains(pillar) || same_spec(asked, &self.default_spec);
        possible.then(|| asked.clone())
    }
}

impl Procedure for PutFileProcedure {
    const OPERATION: Operation = Operation::PutFile;
    const IDENTIFY_RESPONSE: MessageType = MessageType::IdentifyPillarsForPutFileResponse;
    const PROGRESS: MessageType = MessageType::PutFileProgressResponse;
    const FINAL: MessageType = MessageType::PutFileFinalResponse;

    fn identify_request(&self, header: Header) -> Message {
        IdentifyPillarsForPutFileRequest {
            header,
            audit_trail_information: self.audit_trail_information.clone(),
            file_id: Some(self.file.clone()),
            file_size: Some(self.size),
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

    fn refused(&self, response: &Message, code: ResponseCode) -> Refusal {
        let Message::IdentifyPillarsForPutFileResponse(response) = response else {
            return Refusal::Failed;
        };
        if code != ResponseCode::DuplicateFileFailure {
            return Refusal::Failed;
        }
        match &response.checksum_data_for_existing_file {
            Some(existing) if self.is_same(existing) => {
                Refusal::Complete(already_there(existing), ALREADY_THERE.to_owned())
            }
            Some(_) => Refusal::Abort(format!("{DIFFERENT} at {}", response.header.from)),
            None => Refusal::Abort(format!("{UNKNOWN} at {}", response.header.from)),
        }
    }

    fn may_perform(&self, selected: usize, silent: usize) -> bool {
        silent == 0 || (self.partial_allowed && selected > 0)
    }

    fn offers_file(&self) -> bool {
        self.offer
    }

    fn request(&self, header: Header, contributor: &ComponentId) -> Message {
        PutFileRequest {
            header,
            audit_trail_information: self.audit_trail_information.clone(),
            pillar_id: Some(contributor.clone()),
            file_id: self.file.clone(),
            file_address: self.address.clone(),
            file_size: Some(self.size),
            checksum_data_for_new_file: self.checksum.clone(),
            checksum_request_for_new_file: self.checksum_request(contributor),
        }
        .into()
    }

    fn completed(&mut self, _from: &ComponentId, response: Message) -> Completion {
        let Message::PutFileFinalResponse(response) = response else {
            return Completion::Stale;
        };
        Completion::Done(ComponentResult::Stored(Stored {
            checksum: response.checksum_data_for_new_file,
            already_there: false,
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
                Failing::Retry
            }
            (ResponseCode::DuplicateFileFailure, Message::PutFileFinalResponse(response)) => {
                match &response.checksum_data_for_existing_file {
                    Some(existing) if self.is_same(existing) => {
                        Failing::Complete(already_there(existing), ALREADY_THERE.to_owned())
                    }
                    Some(_) => Failing::Because(DIFFERENT.to_owned()),
                    None => Failing::Because(UNKNOWN.to_owned()),
                }
            }
            _ => Failing::Failed,
        }
    }
}

const ALREADY_THERE: &str = "the identical file was there already";
const DIFFERENT: &str = "a different file with this id exists";
const UNKNOWN: &str = "a file with this id exists and its checksum was not told";

fn already_there(existing: &ChecksumData) -> ComponentResult {
    ComponentResult::Stored(Stored {
        checksum: Some(existing.clone()),
        already_there: true,
    })
}
