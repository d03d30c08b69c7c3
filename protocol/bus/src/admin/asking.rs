//! Asking: in process at once, over STOMP with a message and its answer.

use std::time::Duration;

use pillarbox_messages::{Destination, DestinationKind};
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

use super::{Answer, Kind, QUEUE, QueueRow, Request};
use crate::{
    error::BusError,
    handle::{AckMode, Bus, Outgoing, SubscribeRequest, Subscription},
};

/// How long an answer may take: the bus may have much to write before it.
const PATIENCE: Duration = Duration::from_secs(30);
/// The name of the temporary queue for answers.
const ANSWERS: &str = "administration";

impl QueueRow {
    /// Whether it is the queue of somebody who asks as [`Administration`] does, for his answers.
    #[must_use]
    pub fn is_for_answers(&self) -> bool {
        let own = self.name.strip_suffix(ANSWERS);
        self.kind == Kind::Temporary && own.is_some_and(|start| start.ends_with('.'))
    }
}

/// Somebody who asks the queue manager, one request after the other.
#[derive(Debug)]
pub struct Administration {
    bus: Bus,
    /// Where answers come, if they come as messages.
    answers: Option<Subscription>,
}

impl Administration {
    pub(crate) async fn over(bus: Bus) -> Result<Self, BusError> {
        let answers = match bus.administers()? {
            true => None,
            false => Some(bus.subscribe(answers()).await?),
        };
        Ok(Self { bus, answers })
    }

    /// Asks, and waits for the answer, which is never an [`Answer::Error`].
    ///
    /// # Errors
    /// What the queue manager has against it, with the names of [`BusError::name`]; the bus does not answer.
    pub async fn ask(&mut self, request: Request) -> Result<Answer, BusError> {
        let answer = match &mut self.answers {
            None => self.bus.administer(request).await?,
            Some(answers) => ask_by_message(&self.bus, answers, &request).await?,
        };
        match answer {
            Answer::Error { name, text } => Err(BusError::Refused { name, detail: text }),
            answer => Ok(answer),
        }
    }
}

fn own_queue() -> Destination {
    Destination::new(DestinationKind::TemporaryQueue, ANSWERS)
}

fn answers() -> SubscribeRequest {
    SubscribeRequest {
        ack_timeout: None,
        destination: own_queue(),
        durable: None,
        ack: AckMode::Auto,
        prefetch: 1,
    }
}

async fn ask_by_message(
    bus: &Bus,
    answers: &mut Subscription,
    request: &Request,
) -> Result<Answer, BusError> {
    let deadline = Instant::now() + PATIENCE;
    let correlation = Uuid::new_v4().to_string();
    let message = Outgoing {
        correlation_id: Some(correlation.clone()),
        reply_to: Some(own_queue()),
        // Nobody waits for it any longer.
        ttl: Some(PATIENCE),
        ..Outgoing::new(Destination::queue(QUEUE), request.write())
    };
    bus.publish(message).await?;
    loop {
        let Ok(answer) = timeout_at(deadline, answers.next()).await else {
            return Err(silent());
        };
        let answer = answer.ok_or(BusError::Closed)?.message;
        // Anything else is the answer to a request that was given up.
        if answer.correlation_id.as_deref() == Some(correlation.as_str()) {
            return serde_json::from_slice(&answer.body)
                .map_err(|error| BusError::invalid(format!("the bus's answer: {error}")));
        }
    }
}

fn silent() -> BusError {
    BusError::Refused {
        name: "TIMEOUT".to_owned(),
        detail: format!(
            "the bus has not answered within {} s; what was asked for may have been done",
            PATIENCE.as_secs()
        ),
    }
}
