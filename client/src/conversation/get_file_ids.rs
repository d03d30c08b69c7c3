//! GetFileIDs: which files the pillars have.

use pillarbox_messages::{
    ComponentId, FileId, FileIdsDataItem, GetFileIdsRequest, Header,
    IdentifyPillarsForGetFileIdsRequest, Message, MessageType, Operation, ResultingFileIds,
};

use super::{
    paging::{Listed, NOT_INLINE, Walks, file_ids},
    procedure::{Completion, Procedure},
};
use crate::event::ComponentResult;

/// A listing of file ids and where it stands.
#[derive(Clone, Debug)]
pub struct GetFileIdsProcedure {
    /// The file asked for; none: all.
    pub file: Option<FileId>,
    /// Schema element `AuditTrailInformation`.
    pub audit_trail_information: Option<String>,
    /// Where each contributor's listing stands.
    pub walks: Walks,
}

impl Procedure for GetFileIdsProcedure {
    const OPERATION: Operation = Operation::GetFileIds;
    const IDENTIFY_RESPONSE: MessageType = MessageType::IdentifyPillarsForGetFileIdsResponse;
    const PROGRESS: MessageType = MessageType::GetFileIdsProgressResponse;
    const FINAL: MessageType = MessageType::GetFileIdsFinalResponse;

    fn identify_request(&self, header: Header) -> Message {
        IdentifyPillarsForGetFileIdsRequest {
            header,
            audit_trail_information: self.audit_trail_information.clone(),
            file_ids: Some(file_ids(self.file.as_ref())),
        }
        .into()
    }

    fn request(&self, header: Header, contributor: &ComponentId) -> Message {
        let (min_timestamp, page_size) = self.walks.next(contributor);
        GetFileIdsRequest {
            header,
            audit_trail_information: self.audit_trail_information.clone(),
            pillar_id: Some(contributor.clone()),
            file_ids: file_ids(self.file.as_ref()),
            min_timestamp: Some(min_timestamp),
            max_timestamp: None,
            max_number_of_results: Some(page_size),
            result_address: None,
        }
        .into()
    }

    fn completed(&mut self, from: &ComponentId, response: Message) -> Completion {
        let Message::GetFileIdsFinalResponse(response) = response else {
            return Completion::Stale;
        };
        let items = match response.resulting_file_ids {
            Some(ResultingFileIds::Data(data)) => data.items,
            Some(ResultingFileIds::Empty) | None => Vec::new(),
            Some(ResultingFileIds::Address(_)) => {
                return Completion::Unusable(NOT_INLINE.to_owned());
            }
        };
        let partial = response.partial_result.unwrap_or(false);
        self.walks
            .turn(from, items, partial, ComponentResult::FileIds)
    }
}

impl Listed for FileIdsDataItem {
    fn file(&self) -> &FileId {
        &self.file_id
    }

    fn time_ms(&self) -> i64 {
        self.last_modification_time.millis()
    }
}
