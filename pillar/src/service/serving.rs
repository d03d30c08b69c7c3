//! What becomes of a request that was taken: answer, acknowledgement, log line, alarm.

use std::sync::Arc;

use pillarbox_bus::Delivery;
use pillarbox_component::{Component, Received, dispatch::catch};
use pillarbox_messages::Message;
use tracing::{debug, error, info, warn};

use super::{
    answering::{self, Answering},
    unanswered::is_refusal,
};
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
    let incoming = Arc::clone(&delivery.message);
    let attempts = context.unanswered.attempts(&incoming.body);
    if let Some(because) = attempts.hopeless() {
        return answering::give_up(&context, delivery, request, because).await;
    }
    let progress = BusProgress {
        component: &context.component,
        received: &received,
        silent: attempts.goes_silently(),
    };
    let handled = catch(async {
        if kind.is_identify_request() {
            handlers::identify(&context, request).await
        } else {
            Box::pin(handlers::operate(&context, &received, &progress)).await
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
    let answering = Answering {
        context: &context,
        received: &received,
        comes_again,
        alone: attempts.goes_alone(),
    };
    let (answer, outgoing) = answering.written(answer);
    match answering.send(delivery, outgoing).await {
        Ok(()) => {
            context.unanswered.forget(&incoming.body);
            report(&context, request, answer).await;
        }
        Err(error) => {
            warn!(%error, "the answer could not be sent");
            if comes_again {
                // It is then answered from what was remembered, or carried out again.
                context.unanswered.note(&incoming.body, &error);
            } else if is_refusal(&error) {
                answering::tell(&context, request, &error.to_string()).await;
            }
        }
    }
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
    // What is not sent is in the log already.
    if alarms.sends(alarm.level) {
        alarms.raise_about(alarm, Some(&header.from)).await;
    }
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
    /// Nothing is said.
    silent: bool,
}

impl Progress for BusProgress<'_> {
    async fn send(&self, message: Message) {
        if self.silent {
            return;
        }
        let sent = self
            .component
            .reply_soon(&message, self.received.reply_address.as_deref())
            .await;
        if let Err(error) = sent {
            debug!(%error, "progress response not sent");
        }
    }
}
