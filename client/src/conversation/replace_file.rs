//! ReplaceFile: one pillar puts a new file in the place of the one that it has.

use pillarbox_messages::{
    ChecksumData, ChecksumSpec, ComponentId, FileId, Header, IdentifyPillarsForReplaceFileRequest,
    Message, MessageType, Operation, ReplaceFileRequest, ResponseCode,
};
use serde::{Deserialize, Serialize};

use super::{
    Conversation, Resumable,
    new_file::{Existing, NewFile},
    procedure::{Completion, Failing, Procedure, Refusal},
    put_file::{ALREADY_THERE, ANOTHER_STORED},
};
use crate::{
    digests::same_spec,
    event::{ComponentResult, Replaced},
};

/// A replacement and where it stands.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReplaceFileProcedure {
    /// The file.
    pub file: FileId,
    /// What is known of the new file's bytes.
    pub new: NewFile,
    /// The old file's checksum, without which a pillar may refuse.
    pub existing_checksum: Option<ChecksumData>,
    /// The checksum of the old file that the pillar is asked to answer with.
    pub request_existing_checksum: Option<ChecksumSpec>,
    /// The checksum of the new file that the pillar is asked to answer with.
    pub request_checksum: Option<ChecksumSpec>,
    /// Whether the pillar keeps checksums only.
    pub checksum_pillar: bool,
    /// Schema element `AuditTrailInformation`.
    pub audit_trail_information: Option<String>,
}

impl ReplaceFileProcedure {
    fn answerable(&self, asked: Option<&ChecksumSpec>) -> Option<ChecksumSpec> {
        self.new.answerable(asked, self.checksum_pillar)
    }

    /// The checksums of the old and of the new file that the pillar is asked for, of one kind unless the caller wants
    /// two: where they are equal, there was nothing to replace, which a final response does not tell otherwise.
    fn asked(&self) -> (ChecksumSpec, ChecksumSpec) {
        let existing = self.answerable(self.request_existing_checksum.as_ref());
        let new = self.answerable(self.request_checksum.as_ref());
        let one = || self.new.default_spec.clone();
        match (existing, new) {
            (None, None) => (one(), one()),
            (Some(one), None) | (None, Some(one)) => (one.clone(), one),
            (Some(existing), Some(new)) => (existing, new),
        }
    }
}

impl Procedure for ReplaceFileProcedure {
    const OPERATION: Operation = Operation::ReplaceFile;
    const IDENTIFY_RESPONSE: MessageType = MessageType::IdentifyPillarsForReplaceFileResponse;
    const PROGRESS: MessageType = MessageType::ReplaceFileProgressResponse;
    const FINAL: MessageType = MessageType::ReplaceFileFinalResponse;

    /// With the size, so that a pillar without room for it says so before the file is offered.
    fn resumable(conversation: &Conversation<Self>) -> Option<Resumable> {
        Some(Resumable::Replace(conversation.clone()))
    }

    fn identify_request(&self, header: Header) -> Message {
        IdentifyPillarsForReplaceFileRequest {
            header,
            audit_trail_information: self.audit_trail_information.clone(),
            file_id: self.file.clone(),
            file_size: Some(self.new.size),
        }
        .into()
    }

    fn identified(&mut self, _from: &ComponentId, response: &Message) {
        if let Message::IdentifyPillarsForReplaceFileResponse(response) = response {
            self.checksum_pillar = response.pillar_checksum_spec.is_some();
        }
    }

    fn awaits_checksum(&self) -> bool {
        self.new.examining
    }

    fn examined(&mut self, checksum: ChecksumData) {
        self.new.examined(checksum);
    }

    fn refused(&self, response: &Message, _code: ResponseCode) -> Refusal {
        Refusal::refused_by(response)
    }

    fn may_perform(&self, _selected: usize, silent: usize) -> bool {
        silent == 0
    }

    fn offers_file(&self) -> bool {
        self.new.offer
    }

    fn request(&self, header: Header, contributor: &ComponentId) -> Message {
        let (existing, new) = self.asked();
        ReplaceFileRequest {
            header,
            audit_trail_information: self.audit_trail_information.clone(),
            pillar_id: Some(contributor.clone()),
            file_id: self.file.clone(),
            checksum_data_for_existing_file: self.existing_checksum.clone(),
            checksum_request_for_existing_file: Some(existing),
            file_address: self.new.address.clone(),
            file_size: self.new.size,
            checksum_data_for_new_file: self.new.checksum.clone(),
            checksum_request_for_new_file: Some(new),
        }
        .into()
    }

    fn completed(&mut self, _from: &ComponentId, response: Message) -> Completion {
        let Message::ReplaceFileFinalResponse(response) = response else {
            return Completion::Stale;
        };
        let existing = response.checksum_data_for_existing_file;
        let new = response.checksum_data_for_new_file;
        if self.new.compare(new.as_ref()) == Existing::Different {
            return Completion::Unusable(ANOTHER_STORED.to_owned());
        }
        let already_there = are_equal(existing.as_ref(), new.as_ref());
        let wanted = |asked: Option<&ChecksumSpec>| self.answerable(asked).is_some();
        Completion::Done(ComponentResult::Replaced(Replaced {
            existing: existing.filter(|_| wanted(self.request_existing_checksum.as_ref())),
            new: new.filter(|_| wanted(self.request_checksum.as_ref())),
            already_there,
            checksums_only: self.checksum_pillar,
        }))
    }

    /// A pillar whose file is not the expected old one may have the new one already, from an earlier attempt whose
    /// end nobody heard of. Only its word on its own file tells: identification responses say nothing of it, and an
    /// equal value of another kind of checksum means nothing.
    fn failed(&mut self, _from: &ComponentId, response: &Message, code: ResponseCode) -> Failing {
        let Message::ReplaceFileFinalResponse(response) = response else {
            return Failing::Failed;
        };
        if code != ResponseCode::ExistingFileChecksumFailure {
            return Failing::Failed;
        }
        match self
            .new
            .compare(response.checksum_data_for_existing_file.as_ref())
        {
            Existing::Same(existing) => {
                let result = ComponentResult::Replaced(Replaced {
                    existing: None,
                    new: Some(existing),
                    already_there: Some(true),
                    checksums_only: self.checksum_pillar,
                });
                Failing::Complete(result, ALREADY_THERE.to_owned())
            }
            Existing::Different | Existing::Unknown => Failing::Failed,
        }
    }
}

/// Whether two checksums are of the same bytes; none if they are not of one kind.
fn are_equal(one: Option<&ChecksumData>, other: Option<&ChecksumData>) -> Option<bool> {
    let (one, other) = one.zip(other)?;
    let comparable = same_spec(&one.checksum_spec, &other.checksum_spec);
    comparable.then(|| one.checksum_value == other.checksum_value)
}
