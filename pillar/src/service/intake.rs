//! What arrives is read and handed to its worker.

use std::{sync::Arc, time::Duration};

use pillarbox_bus::{Delivery, SubscribeRequest, Subscription};
use pillarbox_component::{KeyedWorkers, Received, dispatch::WorkerLimits, incoming};
use pillarbox_messages::{CollectionId, ComponentId, CorrelationId, FileId, Message, Operation};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, debug, info_span};

use super::serving::{Served, acknowledge, serve};
use crate::context::Context;

/// Messages of one key are handled in the order in which they came.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    /// Changes of one file of one collection.
    File(Option<CollectionId>, FileId),
    /// What one conversation asks for without changing anything. A file that goes out to a slow client keeps
    /// nobody else from it; a request that comes again waits for its first copy.
    Conversation(ComponentId, CorrelationId),
}

impl Key {
    pub(super) fn of(message: &Message) -> Self {
        let (kind, header) = (message.message_type(), message.header());
        let changes = !kind.is_identify_request()
            && matches!(
                kind.operation(),
                Some(Operation::PutFile | Operation::ReplaceFile | Operation::DeleteFile)
            );
        match message.file_id().filter(|_| changes) {
            Some(file) => Self::File(header.collection_id.clone(), file.clone()),
            None => Self::Conversation(header.from.clone(), header.correlation_id.clone()),
        }
    }
}

/// Who does the work. Identify requests have workers of their own: however many operations there are and
/// however long they take, a pillar says at once what it is ready for.
#[derive(Clone, Debug)]
pub(super) struct Workers {
    identifications: KeyedWorkers<Key>,
    operations: KeyedWorkers<Key>,
}

impl Workers {
    pub(super) fn new() -> Self {
        Self {
            identifications: KeyedWorkers::new(IDENTIFICATIONS),
            operations: KeyedWorkers::new(OPERATIONS),
        }
    }

    fn of(&self, message: &Message) -> &KeyedWorkers<Key> {
        if message.message_type().is_identify_request() {
            &self.identifications
        } else {
            &self.operations
        }
    }

    /// Takes nothing more; tells how many jobs were stopped, and how many never started.
    pub(super) async fn drain(&self, grace: Duration) -> [usize; 2] {
        let drained = tokio::join!(
            self.identifications.drain(grace),
            self.operations.drain(grace)
        );
        [
            drained.0.stopped.len() + drained.1.stopped.len(),
            drained.0.unstarted.len() + drained.1.unstarted.len(),
        ]
    }

    async fn idle(&self) {
        self.identifications.idle().await;
        self.operations.idle().await;
    }
}

/// What takes messages from one subscription.
pub(super) struct Intake {
    pub(super) request: SubscribeRequest,
    pub(super) context: Arc<Context>,
    pub(super) workers: Workers,
    pub(super) stop: CancellationToken,
}

impl Intake {
    pub(super) async fn run(self, mut subscription: Subscription) {
        while self.take_all(&mut subscription).await == Ended::ByTheBus {
            match self.subscribe_again().await {
                Some(again) => subscription = again,
                None => break,
            }
        }
        // The bus connection is closed after the workers are done; the subscription must live until then, since
        // its end gives back what is being worked on.
        self.workers.idle().await;
    }

    /// Takes messages until there are no more. One that is being taken when the pillar stops goes back.
    async fn take_all(&self, subscription: &mut Subscription) -> Ended {
        let take_all = async {
            while let Some(delivery) = subscription.next().await {
                self.take(delivery).await;
            }
        };
        tokio::select! {
            biased;
            () = self.stop.cancelled() => Ended::ByUs,
            () = take_all => Ended::ByTheBus,
        }
    }

    /// The bus ends a subscription that does not keep up. The pillar must not be deaf from then on.
    async fn subscribe_again(&self) -> Option<Subscription> {
        let bus = self.context.component.bus();
        let again = self.context.link.subscribe_again(bus, &self.request);
        self.stop.run_until_cancelled(again).await.flatten()
    }

    async fn take(&self, delivery: Delivery) {
        match self.context.component.receive(&delivery.message) {
            Ok(received) => self.hand_over(delivery, received).await,
            Err(incoming::Refusal::NotOurs) => acknowledge(delivery).await,
            Err(incoming::Refusal::Rejected(rejection)) => {
                // First, since the bus may close the connection over the answer, and then it would come for ever.
                acknowledge(delivery).await;
                self.context.component.reject(&rejection).await;
            }
        }
    }

    async fn hand_over(&self, delivery: Delivery, received: Received) {
        let key = Key::of(&received.message);
        let workers = self.workers.of(&received.message);
        let span = span_of(self.context.component.id(), &received.message);
        // On the heap once, instead of moved through every layer of the workers.
        let served = Served {
            delivery,
            received,
            comes_again: self.request.redelivers(),
        };
        let job = Box::pin(serve(Arc::clone(&self.context), served)).instrument(span);
        if workers.submit(key, job).await.is_err() {
            debug!("a message came while stopping; it goes back to its queue");
        }
    }
}

/// Why no more messages are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    ByUs,
    ByTheBus,
}

/// Everything that is logged while a message is handled carries these.
fn span_of(pillar: &ComponentId, message: &Message) -> tracing::Span {
    let header = message.header();
    info_span!(
        "request",
        pillar = pillar.as_str(),
        op = message.message_type().as_str(),
        correlation = header.correlation_id.as_str(),
        collection = header.collection_id.as_ref().map(AsRef::as_ref),
        from = header.from.as_str(),
        file = message.file_id().map(AsRef::as_ref),
    )
}

/// Identify requests in hand: each is a look into the index.
const IDENTIFICATIONS: WorkerLimits = WorkerLimits {
    parallel: 32,
    held: 256,
};

/// Operations in hand, of all subscriptions together: files on their way in and out.
pub(super) const OPERATIONS: WorkerLimits = WorkerLimits {
    parallel: 32,
    held: 256,
};
