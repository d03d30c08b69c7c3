//! What becomes of a request that was taken: answer, acknowledgement, log line, alarm.

use std::sync::Arc;

use pillarbox_bus::{BusError, Delivery};
use pillarbox_component::{Component, Received, dispatch::catch};
use pillarbox_messages::Message;
use tracing::{debug, error, info, warn};

use crate::{
    context::Context,
    handlers::{self, Answer, Progress},
};

/// A request as the bus has delivered it.
pub(super) struct Served {
    pub(super) delivery: Delivery,
    pub(super) received: Received,
    /// Whether it comes again if the connection breaks before it is acknowledged.
    pub(super) comes_again: bool,
}

/// Handles one request to its end: answer, acknowledgement, alarm.
pub(super) async fn serve(context: Arc<Context>, served: Served) {
    let Served {
        delivery,
        received,
        comes_again,
    } = served;
    let request = &received.message;
    let kind = request.message_type();
    let progress = BusProgress {
        component: &context.component,
        received: &received,
    };
    let handled = catch(async {
        if kind.is_identify_request() {
            handlers::identify(&context, request).await
        } else {
            handlers::operate(&context, &received, &progress).await
        }
    })
    .await;
    let answer = handled.unwrap_or_else(|panicked| {
        error!(%panicked, "handler panicked");
        handlers::crashed(&context, request, &panicked.to_string())
    });
    let Some(answer) = answer else {
        if kind.is_request() && !kind.is_identify_request() {
            warn!("no handler for this request");
        }
        acknowledge(delivery).await;
        return;
    };
    let mut sent = finish(&context, delivery, &received, &answer).await;
    if let Err(error) = &sent
        && !comes_again
        && *error != BusError::Closed
        && !request.message_type().is_identify_request()
    {
        debug!(%error, "the request does not come again; its answer is sent by itself");
        sent = send_alone(&context, &received, &answer).await;
    }
    match sent {
        Ok(()) => report(&context, request, answer).await,
        // Where the request comes again, it is then answered from what was remembered.
        Err(error) => warn!(%error, "the answer could not be sent"),
    }
}

/// Answers and acknowledges: in one for an operation, so that it comes again if its answer was not taken. An
/// answer to an identify request is not worth that: it comes from the topic as a rule, and from a queue only by
/// mistake.
async fn finish(
    context: &Context,
    delivery: Delivery,
    received: &Received,
    answer: &Answer,
) -> Result<(), BusError> {
    let component = &context.component;
    let outgoing = component.outgoing_reply(&answer.message, received.reply_address.as_deref());
    if received.message.message_type().is_identify_request() {
        let sent = component.bus().publish(outgoing).await;
        acknowledge(delivery).await;
        return sent;
    }
    let mut transaction = component.bus().transaction();
    transaction.send(outgoing);
    transaction.ack(delivery);
    transaction.commit().await
}

/// Sends an answer, again if need be, until the bus has it.
async fn send_alone(
    context: &Context,
    received: &Received,
    answer: &Answer,
) -> Result<(), BusError> {
    let component = &context.component;
    let outgoing = component.outgoing_reply(&answer.message, received.reply_address.as_deref());
    component.bus().publish(outgoing).await
}

/// The log line and, after the answer, the alarm.
async fn report(context: &Context, request: &Message, answer: Answer) {
    let code = answer
        .message
        .response_info()
        .map(|info| info.response_code.as_str());
    let identify = request.message_type().is_identify_request();
    let Some(refusal) = answer.refusal else {
        if identify {
            debug!(code, "identified");
        } else {
            info!(code, "operation finished");
        }
        return;
    };
    let text = refusal.alarm_text();
    info!(code, reason = text, "request refused");
    if refusal.existing.is_some() && identify {
        // A duplicate found at identification is an ordinary answer.
        return;
    }
    let header = request.header();
    let collection = header
        .collection_id
        .as_ref()
        .filter(|id| context.component.serves(id));
    let (_, alarm) = pillarbox_component::alarms::for_failure(
        refusal.kind,
        &text,
        collection,
        request.file_id(),
    );
    let alarms = context.component.alarms();
    alarms.raise_about(alarm, Some(&header.from)).await;
}

pub(super) async fn acknowledge(delivery: Delivery) {
    if let Err(error) = delivery.ack().await {
        debug!(%error, "not acknowledged; the message comes again");
    }
}

/// Sends progress responses to the requester. The final response follows on the same connection, and so after them
/// without waiting until the bus has them.
struct BusProgress<'a> {
    component: &'a Component,
    received: &'a Received,
}

impl Progress for BusProgress<'_> {
    async fn send(&self, message: Message) {
        let sent = self
            .component
            .reply_soon(&message, self.received.reply_address.as_deref())
            .await;
        if let Err(error) = sent {
            debug!(%error, "progress response not sent");
        }
    }
}
