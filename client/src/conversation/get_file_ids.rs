//! GetFileIDs: which files the pillars have.

use std::{collections::BTreeMap, num::NonZeroU64};

use pillarbox_messages::{
    ComponentId, FileId, FileIds, FileIdsDataItem, GetFileIdsRequest, Header,
    IdentifyPillarsForGetFileIdsRequest, Message, MessageType, Operation, ResultingFileIds,
};

use super::{
    paging::{Listed, Turned, Walk},
    procedure::{Completion, Procedure},
};
use crate::event::ComponentResult;

/// A listing of file ids and where it stands.
#[derive(Clone, Debug)]
pub struct GetFileIdsProcedure {
    /// The file asked for; none: all.
    pub file: Option<FileId>,
    /// How many items a page may have.
    pub page_size: NonZeroU64,
    /// Schema element `AuditTrailInformation`.
    pub audit_trail_information: Option<String>,
    /// Where each contributor's listing stands.
    pub walks: BTreeMap<ComponentId, Walk>,
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
        let fresh = Walk::new(self.page_size);
        let walk = self.walks.get(contributor).unwrap_or(&fresh);
        GetFileIdsRequest {
            header,
            audit_trail_information: self.audit_trail_information.clone(),
            pillar_id: Some(contributor.clone()),
            file_ids: file_ids(self.file.as_ref()),
            min_timestamp: Some(walk.min_timestamp()),
            max_timestamp: None,
            max_number_of_results: Some(walk.page_size()),
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
        let size = self.page_size;
        let walk = self
            .walks
            .entry(from.clone())
            .or_insert_with(|| Walk::new(size));
        match walk.turn(items, response.partial_result.unwrap_or(false)) {
            Turned::Page(page) if page.partial => Completion::Again(ComponentResult::FileIds(page)),
            Turned::Page(page) => Completion::Done(ComponentResult::FileIds(page)),
            Turned::Stale => Completion::Stale,
            Turned::Stuck(reason) => Completion::Unusable(reason.to_owned()),
        }
    }
}

/// Why a result that lies somewhere else is not taken.
pub(super) const NOT_INLINE: &str = "sent an address although the results were asked for inline";

/// One file or all.
pub(super) fn file_ids(file: Option<&FileId>) -> FileIds {
    file.map_or(FileIds::All, |file| FileIds::File(file.clone()))
}

impl Listed for FileIdsDataItem {
    fn file(&self) -> &FileId {
        &self.file_id
    }

    fn time_ms(&self) -> i64 {
        self.last_modification_time.millis()
    }
}
