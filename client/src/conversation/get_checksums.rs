//! GetChecksums: the checksums of the files that the pillars have.

use pillarbox_messages::{
    ChecksumDataItem, ChecksumSpec, ComponentId, FileId, GetChecksumsRequest, Header,
    IdentifyPillarsForGetChecksumsRequest, Message, MessageType, Operation, ResultingChecksums,
};

use super::{
    paging::{Listed, NOT_INLINE, Walks, file_ids},
    procedure::{Completion, Procedure},
};
use crate::{
    digests::same_spec,
    event::{ChecksumPage, ComponentResult},
};

/// A listing of checksums and where it stands.
#[derive(Clone, Debug)]
pub struct GetChecksumsProcedure {
    /// The file asked for; none: all.
    pub file: Option<FileId>,
    /// How the checksums are to be computed.
    pub spec: ChecksumSpec,
    /// Schema element `AuditTrailInformation`.
    pub audit_trail_information: Option<String>,
    /// Where each contributor's listing stands.
    pub walks: Walks,
}

impl Procedure for GetChecksumsProcedure {
    const OPERATION: Operation = Operation::GetChecksums;
    const IDENTIFY_RESPONSE: MessageType = MessageType::IdentifyPillarsForGetChecksumsResponse;
    const PROGRESS: MessageType = MessageType::GetChecksumsProgressResponse;
    const FINAL: MessageType = MessageType::GetChecksumsFinalResponse;

    fn identify_request(&self, header: Header) -> Message {
        IdentifyPillarsForGetChecksumsRequest {
            header,
            audit_trail_information: self.audit_trail_information.clone(),
            file_ids: file_ids(self.file.as_ref()),
            checksum_request_for_existing_file: Some(self.spec.clone()),
        }
        .into()
    }

    fn request(&self, header: Header, contributor: &ComponentId) -> Message {
        let (min_timestamp, page_size) = self.walks.next(contributor);
        GetChecksumsRequest {
            header,
            audit_trail_information: self.audit_trail_information.clone(),
            pillar_id: Some(contributor.clone()),
            file_ids: file_ids(self.file.as_ref()),
            min_timestamp: Some(min_timestamp),
            max_timestamp: None,
            max_number_of_results: Some(page_size),
            checksum_request_for_existing_file: Some(self.spec.clone()),
            result_address: None,
        }
        .into()
    }

    fn completed(&mut self, from: &ComponentId, response: Message) -> Completion {
        let Message::GetChecksumsFinalResponse(response) = response else {
            return Completion::Stale;
        };
        let told = response.checksum_request_for_existing_file.as_ref();
        if told.is_some_and(|told| !same_spec(told, &self.spec)) {
            return Completion::Unusable("sent checksums of another kind".to_owned());
        }
        let items = match response.resulting_checksums {
            Some(ResultingChecksums::Items(items)) => items,
            None => Vec::new(),
            Some(ResultingChecksums::Address(_)) => {
                return Completion::Unusable(NOT_INLINE.to_owned());
            }
        };
        let spec = self.spec.clone();
        let result = |page| ComponentResult::Checksums(ChecksumPage { spec, page });
        let partial = response.partial_result.unwrap_or(false);
        self.walks.turn(from, items, partial, result)
    }
}

impl Listed for ChecksumDataItem {
    fn file(&self) -> &FileId {
        &self.file_id
    }

    fn time_ms(&self) -> i64 {
        self.calculation_timestamp.millis()
    }
}
