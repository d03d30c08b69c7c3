//! DeleteFile: one pillar deletes a file. A file that is not there counts as deleted.

use pillarbox_messages::{
    ChecksumData, ChecksumSpec, ComponentId, DeleteFileRequest, FileId, Header,
    IdentifyPillarsForDeleteFileRequest, Message, MessageType, Operation, ResponseCode,
};
use serde::{Deserialize, Serialize};

use super::{
    Conversation, Resumable,
    new_file::answerable,
    procedure::{Completion, Failing, Procedure, Refusal},
};
use crate::event::{ComponentResult, Deleted};

/// A deletion and where it stands.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DeleteFileProcedure {
    /// The file.
    pub file: FileId,
    /// Its checksum, without which a pillar may refuse.
    pub existing_checksum: Option<ChecksumData>,
    /// The checksum that the pillar is asked to answer with.
    pub request_checksum: Option<ChecksumSpec>,
    /// The repository's default, the only one that a checksum pillar knows.
    pub default_spec: ChecksumSpec,
    /// Whether the pillar keeps checksums only.
    pub checksum_pillar: bool,
    /// Schema element `AuditTrailInformation`.
    pub audit_trail_information: Option<String>,
}

impl Procedure for DeleteFileProcedure {
    const OPERATION: Operation = Operation::DeleteFile;
    const IDENTIFY_RESPONSE: MessageType = MessageType::IdentifyPillarsForDeleteFileResponse;
    const PROGRESS: MessageType = MessageType::DeleteFileProgressResponse;
    const FINAL: MessageType = MessageType::DeleteFileFinalResponse;

    fn resumable(conversation: &Conversation<Self>) -> Option<Resumable> {
        Some(Resumable::Delete(conversation.clone()))
    }

    fn identify_request(&self, header: Header) -> Message {
        IdentifyPillarsForDeleteFileRequest {
            header,
            audit_trail_information: self.audit_trail_information.clone(),
            file_id: self.file.clone(),
        }
        .into()
    }

    fn identified(&mut self, _from: &ComponentId, response: &Message) {
        if let Message::IdentifyPillarsForDeleteFileResponse(response) = response {
            self.checksum_pillar = response.pillar_checksum_spec.is_some();
        }
    }

    fn refused(&self, response: &Message, code: ResponseCode) -> Refusal {
        if code == ResponseCode::FileNotFoundFailure {
            return Refusal::Needless(already_absent(), ALREADY_ABSENT.to_owned());
        }
        Refusal::refused_by(response)
    }

    fn may_perform(&self, _selected: usize, silent: usize) -> bool {
        silent == 0
    }

    fn request(&self, header: Header, contributor: &ComponentId) -> Message {
        let asked = self.request_checksum.as_ref();
        DeleteFileRequest {
            header,
            audit_trail_information: self.audit_trail_information.clone(),
            pillar_id: Some(contributor.clone()),
            file_id: self.file.clone(),
            checksum_data_for_existing_file: self.existing_checksum.clone(),
            checksum_request_for_existing_file: answerable(
                asked,
                self.checksum_pillar,
                &self.default_spec,
            ),
        }
        .into()
    }

    fn completed(&mut self, _from: &ComponentId, response: Message) -> Completion {
        let Message::DeleteFileFinalResponse(response) = response else {
            return Completion::Stale;
        };
        Completion::Done(ComponentResult::Deleted(Deleted {
            checksum: response.checksum_data_for_existing_file,
            already_absent: false,
        }))
    }

    fn failed(&mut self, _from: &ComponentId, _response: &Message, code: ResponseCode) -> Failing {
        // Gone since the identification, or by this very request, whose answer got lost.
        if code == ResponseCode::FileNotFoundFailure {
            return Failing::Complete(already_absent(), ALREADY_ABSENT.to_owned());
        }
        Failing::Failed
    }
}

const ALREADY_ABSENT: &str = "already absent";

const fn already_absent() -> ComponentResult {
    ComponentResult::Deleted(Deleted {
        checksum: None,
        already_absent: true,
    })
}
