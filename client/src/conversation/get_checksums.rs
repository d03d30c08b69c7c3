//! GetChecksums: the checksums of the files that the pillars have.

use std::{collections::BTreeMap, num::NonZeroU64};

use pillarbox_messages::{
    ChecksumDataItem, ChecksumSpec, ComponentId, FileId, GetChecksumsRequest, Header,
    IdentifyPillarsForGetChecksumsRequest, Message, MessageType, Operation, ResultingChecksums,
};

use super::{
    get_file_ids::{NOT_INLINE, file_ids},
    paging::{Listed, Turned, Walk},
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
    /// How many items a page may have.
    pub page_size: NonZeroU64,
    /// Schema element `AuditTrailInformation`.
    pub audit_trail_information: Option<String>,
    /// Where each contributor's listing stands.
    pub walks: BTreeMap<ComponentId, Walk>,
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
        let fresh = Walk::new(self.page_size);
        let walk = self.walks.get(contributor).unwrap_or(&fresh);
        GetChecksumsRequest {
            header,
            audit_trail_information: self.audit_trail_information.clone(),
            pillar_id: Some(contributor.clone()),
            file_ids: file_ids(self.file.as_ref()),
            min_timestamp: Some(walk.min_timestamp()),
            max_timestamp: None,
            max_number_of_results: Some(walk.page_size()),
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
        let size = self.page_size;
        let walk = self
            .walks
            .entry(from.clone())
            .or_insert_with(|| Walk::new(size));
        let result = |page| {
            ComponentResult::Checksums(ChecksumPage {
                spec: self.spec.clone(),
                page,
            })
        };
        match walk.turn(items, response.partial_result.unwrap_or(false)) {
            Turned::Page(page) if page.partial => Completion::Again(result(page)),
            Turned::Page(page) => Completion::Done(result(page)),
            Turned::Stale => Completion::Stale,
            Turned::Stuck(reason) => Completion::Unusable(reason.to_owned()),
        }
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
