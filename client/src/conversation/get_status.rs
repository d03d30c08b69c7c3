//! GetStatus: how components are. It is about no collection.

use pillarbox_messages::{
    ComponentId, GetStatusRequest, Header, IdentifyContributorsForGetStatusRequest, Message,
    MessageType, Operation,
};

use super::procedure::{Completion, Procedure};
use crate::event::ComponentResult;

/// A question after how components are.
#[derive(Clone, Debug, Default)]
pub struct GetStatusProcedure;

impl Procedure for GetStatusProcedure {
    const OPERATION: Operation = Operation::GetStatus;
    const IDENTIFY_RESPONSE: MessageType = MessageType::IdentifyContributorsForGetStatusResponse;
    const PROGRESS: MessageType = MessageType::GetStatusProgressResponse;
    const FINAL: MessageType = MessageType::GetStatusFinalResponse;

    fn identify_request(&self, header: Header) -> Message {
        IdentifyContributorsForGetStatusRequest {
            header,
            audit_trail_information: Some(String::new()),
        }
        .into()
    }

    fn request(&self, header: Header, contributor: &ComponentId) -> Message {
        GetStatusRequest {
            header,
            audit_trail_information: Some(String::new()),
            contributor: Some(contributor.clone()),
        }
        .into()
    }

    fn completed(&mut self, _from: &ComponentId, response: Message) -> Completion {
        let Message::GetStatusFinalResponse(response) = response else {
            return Completion::Stale;
        };
        Completion::Done(ComponentResult::Status(response.resulting_status))
    }
}
