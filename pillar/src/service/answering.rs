//! How an answer gets to the bus, and what becomes of a request whose answer never does.

use pillarbox_bus::{BusError, Delivery, Outgoing};
use pillarbox_component::{AlarmRequest, Received};
use pillarbox_messages::{AlarmCode, ComponentId, Message};
use pillarbox_settings::AlarmLevel;
use tracing::{debug, error};

use super::serving::acknowledge;
use crate::{
    context::Context,
    handlers::{self, Answer},
};

/// What an answer is sent with.
pub(super) struct Answering<'a> {
    pub(super) context: &'a Context,
    pub(super) received: &'a Received,
    /// Whether the request comes again if the connection breaks before it is acknowledged.
    pub(super) comes_again: bool,
    /// Whether the bus has not taken an answer to it before: it may be this one that it refuses.
    pub(super) alone: bool,
}

impl Answering<'_> {
    /// The answer and its message, which is written once; a failure in its place if no message of its size gets to the
    /// bus, now or later.
    pub(super) fn written(&self, answer: Answer) -> (Answer, Outgoing) {
        let outgoing = self.outgoing(&answer);
        let accepted = self.context.component.bus().accepts(&outgoing);
        let Err(error @ BusError::TooLarge { .. }) = accepted else {
            return (answer, outgoing);
        };
        match handlers::unsendable(self.context, &self.received.message, &error) {
            Some(failed) => {
                let outgoing = self.outgoing(&failed);
                (failed, outgoing)
            }
            None => (answer, outgoing),
        }
    }

    /// Answers and acknowledges: in one for an operation, so that it comes again if its answer was not taken. An
    /// answer to an identify request is not worth that: it comes from the topic as a rule, and from a queue only by
    /// mistake.
    pub(super) async fn send(
        &self,
        delivery: Delivery,
        outgoing: Outgoing,
    ) -> Result<(), BusError> {
        let bus = self.context.component.bus();
        if self.received.message.message_type().is_identify_request() {
            acknowledge(delivery).await;
            return bus.publish(outgoing).await;
        }
        if self.alone {
            bus.publish(outgoing).await?;
            acknowledge(delivery).await;
            return Ok(());
        }
        let alone = (!self.comes_again).then(|| outgoing.clone());
        let mut transaction = bus.transaction();
        transaction.send(outgoing);
        transaction.ack(delivery);
        match (transaction.commit().await, alone) {
            (Err(error), Some(alone)) if error != BusError::Closed => {
                debug!(%error, "the request does not come again; its answer is sent by itself");
                // Again, if need be, until the bus has it.
                bus.publish(alone).await
            }
            (committed, _) => committed,
        }
    }

    fn outgoing(&self, answer: &Answer) -> Outgoing {
        let reply_address = self.received.reply_address.as_deref();
        let component = &self.context.component;
        component.outgoing_reply(&answer.message, reply_address)
    }
}

/// Acknowledges a request that can't be answered: it would come again for ever.
pub(super) async fn give_up(
    context: &Context,
    delivery: Delivery,
    request: &Message,
    because: &str,
) {
    let text = delivery.message.body.clone();
    if let Err(error) = delivery.ack().await {
        debug!(%error, "not acknowledged; it is given up when it comes again");
        return;
    }
    context.unanswered.forget(&text);
    tell(context, request, because).await;
}

/// Tells people of a request that has no answer.
pub(super) async fn tell(context: &Context, request: &Message, because: &str) {
    let header = request.header();
    let kind = request.message_type().as_str();
    error!(
        because,
        "the bus refuses the answer; the request is given up"
    );
    let alarm = AlarmRequest {
        level: AlarmLevel::Error,
        code: AlarmCode::ComponentFailure,
        text: format!(
            "the bus refuses the answer to {kind} {} of '{}', which stays unanswered: {because}",
            header.correlation_id, header.from
        ),
        collection: header
            .collection_id
            .clone()
            .filter(|id| context.component.serves(id)),
        file: request.file_id().cloned(),
    };
    let from: &ComponentId = &header.from;
    context
        .component
        .alarms()
        .raise_about(alarm, Some(from))
        .await;
}
