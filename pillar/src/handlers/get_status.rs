//! GetStatus: how the pillar is.

use pillarbox_messages::{
    GetStatusFinalResponse, GetStatusProgressResponse, GetStatusRequest,
    IdentifyContributorsForGetStatusRequest, IdentifyContributorsForGetStatusResponse, Message,
    ResultingStatus,
};

use super::{Checked, Handler, Origin};
use crate::{
    checks,
    context::{Context, accepted, completed, identified},
    health,
    refusal::Refusal,
};

/// Always ready. The request is about no collection and comes on the topic of each: it is answered on one.
pub(super) fn identify(
    context: &Context,
    request: &IdentifyContributorsForGetStatusRequest,
) -> Option<Message> {
    if !context.asked.is_first(&request.header) {
        return None;
    }
    let response = IdentifyContributorsForGetStatusResponse {
        header: context.response_header(&request.header),
        response_info: identified(),
        contributor: context.component.id().clone(),
        time_to_deliver: None,
    };
    Some(response.into())
}

/// The operation.
pub(super) struct GetStatus;

impl Handler for GetStatus {
    type Request = GetStatusRequest;
    type Accepted = ();

    async fn check(context: &Context, request: &GetStatusRequest) -> Result<Checked<()>, Refusal> {
        checks::contributor(context, request.contributor.as_ref())?;
        Ok(Checked::Accepted(()))
    }

    fn progress(context: &Context, request: &GetStatusRequest, (): &()) -> Message {
        GetStatusProgressResponse {
            header: context.response_header(&request.header),
            response_info: accepted("started to look"),
            contributor: Some(context.component.id().clone()),
        }
        .into()
    }

    async fn perform(
        context: &Context,
        _origin: &Origin,
        request: &GetStatusRequest,
        (): (),
    ) -> Result<Message, Refusal> {
        let status_info = health::look(context).await.status();
        Ok(GetStatusFinalResponse {
            header: context.response_header(&request.header),
            response_info: completed("the status is told"),
            contributor: Some(context.component.id().clone()),
            resulting_status: ResultingStatus {
                status_info,
                status_timestamp: context.component.timestamp(),
            },
        }
        .into())
    }
}
