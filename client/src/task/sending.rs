//! What leaves for the bus: messages, and acknowledgements of those that came.

use pillarbox_bus::{BusError, Outgoing};
use pillarbox_messages::{ComponentId, Message};
use pillarbox_settings::Timeouts;

use super::ConversationTask;
use crate::{
    conversation::{Input, Procedure},
    mediator::Receipt,
};

impl<P: Procedure> ConversationTask<P> {
    pub(super) fn release(&mut self, (messages, acknowledgements): (usize, usize)) {
        let messages = self.unsent.drain(..messages).collect();
        self.send_all(messages);
        let taken: Vec<Receipt> = self.unacknowledged.drain(..acknowledgements).collect();
        taken.into_iter().for_each(|it| self.acknowledge(it));
    }

    pub(super) fn acknowledge(&mut self, receipt: Receipt) {
        if self.surroundings.acknowledges {
            self.acknowledgements.spawn(receipt.acknowledge());
        }
        while self.acknowledgements.try_join_next().is_some() {}
    }

    pub(super) fn send(
        &mut self,
        message: &Message,
        reply_address: Option<&str>,
        contributor: Option<ComponentId>,
    ) {
        let component = self.surroundings.component.clone();
        let mut outgoing = component.outgoing_reply(message, reply_address);
        // A request may wait as long as this conversation does.
        let Timeouts {
            identification,
            operation,
            ..
        } = self.surroundings.timeouts;
        let limit = if contributor.is_some() {
            operation
        } else {
            identification
        };
        outgoing.ttl = outgoing.ttl.map(|_| limit);
        self.unsent.push((outgoing, contributor));
    }

    /// Sends a step's messages together: the bus makes them last with one sync. One that it does not take is no
    /// harm to the others.
    fn send_all(&mut self, messages: Vec<(Outgoing, Option<ComponentId>)>) {
        if messages.is_empty() {
            return;
        }
        let bus = self.surroundings.component.bus().clone();
        let (messages, contributors): (Vec<_>, Vec<_>) = messages.into_iter().unzip();
        self.sends.spawn(async move {
            let sent = bus.publish_each(messages).await.into_iter();
            let told = |(contributor, sent): (Option<ComponentId>, Result<(), BusError>)| match sent
            {
                Ok(()) => contributor.map(|contributor| Input::Sent { contributor }),
                Err(error) => Some(Input::SendFailed {
                    contributor,
                    text: error.to_string(),
                }),
            };
            contributors
                .into_iter()
                .zip(sent)
                .filter_map(told)
                .collect()
        });
    }
}
