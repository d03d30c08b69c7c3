//! GetAuditTrails: what was done to files, as contributors have noted it.

use std::{collections::BTreeMap, num::NonZeroU64};

use pillarbox_messages::{
    AuditTrailEvent, ComponentId, FileId, GetAuditTrailsRequest, Header,
    IdentifyContributorsForGetAuditTrailsRequest, Message, MessageType, Operation,
    ResultingAuditTrails, Timestamp,
};

use super::{
    paging::NOT_INLINE,
    procedure::{Completion, Procedure},
};
use crate::event::{ComponentResult, Page};

/// A listing of audit trail events and where it stands.
#[derive(Clone, Debug)]
pub struct GetAuditTrailsProcedure {
    /// Only events of this file; none: of all.
    pub file: Option<FileId>,
    /// Nothing numbered lower than this.
    pub first: Option<NonZeroU64>,
    /// Nothing numbered higher than this.
    pub last: Option<NonZeroU64>,
    /// Nothing older than this.
    pub min_time: Option<Timestamp>,
    /// Nothing younger than this.
    pub max_time: Option<Timestamp>,
    /// How many events a page has.
    pub page_size: NonZeroU64,
    /// Where each contributor's listing stands, once its first page is in.
    pub trails: BTreeMap<ComponentId, Trail>,
}

/// Where one contributor's listing stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trail {
    /// The lowest number of the next page.
    next: NonZeroU64,
    /// How many events have come.
    total: u64,
}

impl GetAuditTrailsProcedure {
    /// The lowest number that a contributor is asked for.
    fn lowest(&self, contributor: &ComponentId) -> Option<NonZeroU64> {
        let trail = self.trails.get(contributor);
        trail.map(|trail| trail.next).or(self.first)
    }

    /// Takes a page and moves on. Numbers only grow, so that a page which begins below what was asked for has come
    /// before.
    fn turn(
        &mut self,
        from: &ComponentId,
        events: Vec<AuditTrailEvent>,
        partial: bool,
    ) -> Completion {
        let asked = self.lowest(from);
        let numbers = || events.iter().map(|event| event.sequence_number);
        if numbers().min() < asked && !events.is_empty() {
            return match self.trails.get(from) {
                Some(_) => Completion::Stale,
                None => Completion::Unusable(
                    "sent events numbered lower than those asked for".to_owned(),
                ),
            };
        }
        let Some(newest) = numbers().max() else {
            return if partial {
                Completion::Unusable("said that there is more, but sent nothing".to_owned())
            } else {
                let total = self.trails.get(from).map_or(0, |trail| trail.total);
                Completion::Done(page(events, total, false))
            };
        };
        let before = self.trails.get(from).map_or(0, |trail| trail.total);
        let count = u64::try_from(events.len()).unwrap_or(u64::MAX);
        let total = before.saturating_add(count);
        let next = newest.saturating_add(1);
        self.trails.insert(from.clone(), Trail { next, total });
        // Nothing can come after the last number there is, or the last that was asked for.
        let over = next == newest || self.last.is_some_and(|last| newest >= last);
        if partial && !over {
            Completion::Again(page(events, total, true))
        } else {
            Completion::Done(page(events, total, false))
        }
    }
}

impl Procedure for GetAuditTrailsProcedure {
    const OPERATION: Operation = Operation::GetAuditTrails;
    const IDENTIFY_RESPONSE: MessageType =
        MessageType::IdentifyContributorsForGetAuditTrailsResponse;
    const PROGRESS: MessageType = MessageType::GetAuditTrailsProgressResponse;
    const FINAL: MessageType = MessageType::GetAuditTrailsFinalResponse;

    fn identify_request(&self, header: Header) -> Message {
        IdentifyContributorsForGetAuditTrailsRequest {
            header,
            audit_trail_information: None,
        }
        .into()
    }

    fn request(&self, header: Header, contributor: &ComponentId) -> Message {
        GetAuditTrailsRequest {
            header,
            audit_trail_information: None,
            contributor: Some(contributor.clone()),
            file_id: self.file.clone(),
            min_sequence_number: self.lowest(contributor),
            max_sequence_number: self.last,
            min_timestamp: self.min_time,
            max_timestamp: self.max_time,
            max_number_of_results: Some(self.page_size),
            result_address: None,
        }
        .into()
    }

    fn completed(&mut self, from: &ComponentId, response: Message) -> Completion {
        let Message::GetAuditTrailsFinalResponse(response) = response else {
            return Completion::Stale;
        };
        let events = match response.resulting_audit_trails {
            Some(ResultingAuditTrails::Events(events)) => events,
            None => Vec::new(),
            Some(ResultingAuditTrails::Address(_)) => {
                return Completion::Unusable(NOT_INLINE.to_owned());
            }
        };
        self.turn(from, events, response.partial_result.unwrap_or(false))
    }
}

const fn page(items: Vec<AuditTrailEvent>, total: u64, partial: bool) -> ComponentResult {
    ComponentResult::AuditTrails(Page {
        items,
        total,
        partial,
    })
}
