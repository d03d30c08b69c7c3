//! GetAuditTrails: what was done to the files of a collection, in the order in which it was done.

use std::num::NonZeroU64;

use pillarbox_messages::{
    AuditTrailEvent, CollectionId, GetAuditTrailsFinalResponse, GetAuditTrailsProgressResponse,
    GetAuditTrailsRequest, IdentifyContributorsForGetAuditTrailsRequest,
    IdentifyContributorsForGetAuditTrailsResponse, Message, ResultingAuditTrails, Timestamp,
    results::AuditTrailsWriter,
};

use super::{Checked, Handler, Origin};
use crate::{
    checks::{self, asked_address},
    context::{Context, accepted, completed, identified},
    index::{AuditEvent, AuditQuery},
    refusal::Refusal,
    result_document,
    walk::{ESCAPED_BYTE, Source, Walk},
};

/// Always ready.
pub(super) fn identify(
    context: &Context,
    request: &IdentifyContributorsForGetAuditTrailsRequest,
) -> Message {
    IdentifyContributorsForGetAuditTrailsResponse {
        header: context.response_header(&request.header),
        response_info: identified(),
    }
    .into()
}

/// The operation.
pub(super) struct GetAuditTrails;

/// The events that were asked for.
#[derive(Debug)]
pub(super) struct Events {
    query: AuditQuery,
    next: Next,
}

/// Where the next portion comes from.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    Start,
    Query,
    Nowhere,
}

impl Events {
    fn asked(collection: &CollectionId, request: &GetAuditTrailsRequest) -> Self {
        Self {
            query: AuditQuery {
                collection: collection.clone(),
                file_id: request.file_id.clone(),
                first: request.min_sequence_number.map_or(1, NonZeroU64::get),
                last: request.max_sequence_number.map(NonZeroU64::get),
                min_ms: request.min_timestamp.as_ref().map(|it| it.millis()),
                max_ms: request.max_timestamp.as_ref().map(|it| it.millis()),
                limit: None,
            },
            next: Next::Start,
        }
    }
}

impl Source for Events {
    type Item = AuditEvent;

    async fn portion(
        &mut self,
        context: &Context,
        limit: Option<NonZeroU64>,
    ) -> Result<Vec<AuditEvent>, Refusal> {
        if self.next == Next::Start {
            self.next = match context.index.narrow(self.query.clone()).await? {
                Some(query) => {
                    self.query = query;
                    Next::Query
                }
                None => Next::Nowhere,
            };
        }
        if self.next == Next::Nowhere {
            return Ok(Vec::new());
        }
        self.query.limit = limit;
        let events = context.index.audit(self.query.clone()).await?;
        match events.last() {
            Some(last) => self.query.first = last.number.saturating_add(1),
            None => self.next = Next::Nowhere,
        }
        Ok(events)
    }

    fn inline_size(event: &AuditEvent) -> usize {
        event.entry.length() * ESCAPED_BYTE + EVENT_BYTES
    }
}

impl Handler for GetAuditTrails {
    type Request = GetAuditTrailsRequest;
    type Accepted = Walk<Events>;

    async fn check(
        context: &Context,
        request: &GetAuditTrailsRequest,
    ) -> Result<Checked<Walk<Events>>, Refusal> {
        let collection = checks::collection(context, &request.header)?;
        checks::contributor(context, request.contributor.as_ref())?;
        checks::result_address(context, request.result_address.as_deref())?;
        let events = Events::asked(collection, request);
        Ok(Checked::Accepted(Walk::new(
            events,
            request.max_number_of_results,
        )))
    }

    fn progress(
        context: &Context,
        request: &GetAuditTrailsRequest,
        _walk: &Walk<Events>,
    ) -> Message {
        GetAuditTrailsProgressResponse {
            header: context.response_header(&request.header),
            response_info: accepted("started to collect the audit trail"),
            contributor: Some(context.component.id().clone()),
            result_address: request.result_address.clone(),
        }
        .into()
    }

    async fn perform(
        context: &Context,
        _origin: &Origin,
        request: &GetAuditTrailsRequest,
        mut walk: Walk<Events>,
    ) -> Result<Message, Refusal> {
        let resulting = match asked_address(request.result_address.as_deref()) {
            Some(address) => {
                deliver(context, &mut walk, address).await?;
                ResultingAuditTrails::Address(address.to_owned())
            }
            None => ResultingAuditTrails::Events(inline(context, &mut walk).await?),
        };
        Ok(GetAuditTrailsFinalResponse {
            header: context.response_header(&request.header),
            response_info: completed("the audit trail is collected"),
            contributor: Some(context.component.id().clone()),
            resulting_audit_trails: Some(resulting),
            partial_result: Some(walk.more()),
        }
        .into())
    }
}

async fn inline(
    context: &Context,
    walk: &mut Walk<Events>,
) -> Result<Vec<AuditTrailEvent>, Refusal> {
    let mut events = Vec::new();
    while let Some(event) = walk.next_inline(context).await? {
        events.extend(told(context, event));
    }
    Ok(events)
}

/// Writes the result document and sends it where the client asked for it.
async fn deliver(context: &Context, walk: &mut Walk<Events>, address: &str) -> Result<(), Refusal> {
    let document = context.results.begin().await?;
    let mut writer = AuditTrailsWriter::start(document.writer(), &walk.source.query.collection)
        .map_err(result_document::failed)?;
    while let Some(event) = walk.next(context).await? {
        if let Some(event) = told(context, event) {
            writer.item(&event).map_err(result_document::failed)?;
            document.write_out().await?;
        }
    }
    writer.finish().map_err(result_document::failed)?;
    document.send(context, address).await
}

/// An event as messages carry it. Peers expect the certificate and the client's words even where there are none.
/// There is no event with the number 0.
fn told(context: &Context, event: AuditEvent) -> Option<AuditTrailEvent> {
    let AuditEvent {
        number,
        time_ms,
        entry,
    } = event;
    Some(AuditTrailEvent {
        sequence_number: NonZeroU64::new(number)?,
        file_id: entry.file_id,
        reporting_component: context.component.id().clone(),
        actor_on_file: entry.actor.to_string(),
        action_on_file: entry.action,
        action_date_time: Timestamp::from_millis(time_ms),
        info: entry.info,
        operation_id: entry.operation_id.map(|id| id.to_string()),
        certificate_id: Some(entry.certificate_id.unwrap_or_default()),
        audit_trail_information: Some(entry.audit_trail_information.unwrap_or_default()),
    })
}

/// Element names and the other values of an event: more than any event has.
const EVENT_BYTES: usize = 640;
