//! GetFile: one pillar lays the file on the exchange, the fastest one first.

use std::collections::BTreeMap;

use pillarbox_messages::{
    ComponentId, FileId, FilePart, GetFileRequest, Header, IdentifyPillarsForGetFileRequest,
    Message, MessageType, Operation,
};
use serde::{Deserialize, Serialize};

use super::{
    Conversation, Expected, Resumable,
    procedure::{Completion, Procedure},
};

/// A get and where it stands.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GetFileProcedure {
    /// The file.
    pub file: FileId,
    /// The part of it that is wanted; none: the whole.
    pub part: Option<FilePart>,
    /// Where the pillar lays it.
    pub address: String,
    /// Schema element `AuditTrailInformation`.
    pub audit_trail_information: Option<String>,
    /// Milliseconds that each ready pillar says it needs.
    pub times: BTreeMap<ComponentId, u64>,
    /// The ready pillars that were not asked yet, the fastest last.
    pub others: Vec<ComponentId>,
    /// What the pillar at work told of the file.
    pub expected: Expected,
}

impl GetFileProcedure {
    /// A get that has not begun.
    #[must_use]
    pub fn new(file: FileId, address: String) -> Self {
        Self {
            file,
            part: None,
            address,
            audit_trail_information: None,
            times: BTreeMap::new(),
            others: Vec::new(),
            expected: Expected::default(),
        }
    }
}

impl Procedure for GetFileProcedure {
    const OPERATION: Operation = Operation::GetFile;
    const IDENTIFY_RESPONSE: MessageType = MessageType::IdentifyPillarsForGetFileResponse;
    const PROGRESS: MessageType = MessageType::GetFileProgressResponse;
    const FINAL: MessageType = MessageType::GetFileFinalResponse;
    const ONE_IS_ENOUGH: bool = true;

    fn resumable(conversation: &Conversation<Self>) -> Option<Resumable> {
        Some(Resumable::Get(conversation.clone()))
    }

    fn identify_request(&self, header: Header) -> Message {
        IdentifyPillarsForGetFileRequest {
            header,
            audit_trail_information: self.audit_trail_information.clone(),
            file_id: self.file.clone(),
        }
        .into()
    }

    fn identified(&mut self, from: &ComponentId, response: &Message) {
        if let Message::IdentifyPillarsForGetFileResponse(response) = response {
            let time = response
                .time_to_deliver
                .as_ref()
                .map_or(u64::MAX, |time| time.millis());
            self.times.insert(from.clone(), time);
        }
    }

    /// The fastest; of equally fast ones, the last that answered.
    fn choose(&mut self, selected: Vec<ComponentId>) -> Vec<ComponentId> {
        self.others = selected;
        let times = &self.times;
        let time = |pillar: &ComponentId| times.get(pillar).copied().unwrap_or(u64::MAX);
        // A stable sort, slowest first, keeps the order of the answers among equals.
        self.others
            .sort_by_key(|pillar| std::cmp::Reverse(time(pillar)));
        self.others.pop().into_iter().collect()
    }

    fn receives_file(&self) -> bool {
        true
    }

    fn request(&self, header: Header, contributor: &ComponentId) -> Message {
        GetFileRequest {
            header,
            audit_trail_information: self.audit_trail_information.clone(),
            pillar_id: Some(contributor.clone()),
            file_id: self.file.clone(),
            file_part: self.part.clone(),
            file_address: self.address.clone(),
        }
        .into()
    }

    fn progress(&mut self, _from: &ComponentId, response: &Message) {
        let Message::GetFileProgressResponse(response) = response else {
            return;
        };
        if response.file_part.is_some() && response.file_part != self.part {
            // Not about what was asked for.
            return;
        }
        self.expected.file_size = response.file_size.or(self.expected.file_size);
        if response.checksum_data_for_existing_file.is_some() {
            self.expected
                .checksum
                .clone_from(&response.checksum_data_for_existing_file);
        }
    }

    fn completed(&mut self, _from: &ComponentId, response: Message) -> Completion {
        match response {
            Message::GetFileFinalResponse(response)
                if response.file_part.is_some() && response.file_part != self.part =>
            {
                Completion::Unusable("delivered another part than the one asked for".to_owned())
            }
            Message::GetFileFinalResponse(_) => Completion::Fetch(Expected {
                part: self.part.clone(),
                ..self.expected.clone()
            }),
            _ => Completion::Stale,
        }
    }

    fn told(&self) -> usize {
        let Expected {
            file_size,
            checksum,
            ..
        } = &self.expected;
        usize::from(file_size.is_some()) + usize::from(checksum.is_some())
    }

    fn next(&mut self) -> Option<ComponentId> {
        self.expected = Expected::default();
        self.others.pop()
    }
}
