//! Subscribing, and reading what comes.

use pillarbox_bus::{SubscribeRequest, Subscription};
use pillarbox_component::{Component, Refusal, Rejection};
use tokio::sync::mpsc;
use tracing::{debug, warn};

use super::{Arrived, Heard, Receipt};

/// Subscribes and passes on what comes.
pub(super) async fn listen(
    component: Component,
    request: SubscribeRequest,
    heard: mpsc::Sender<Heard>,
) {
    let destination = request.destination.clone();
    let (result, subscription) = match component.bus().subscribe(request).await {
        Ok(subscription) => (Ok(()), Some(subscription)),
        Err(error) => (Err(error), None),
    };
    if heard
        .send(Heard::Subscribed(destination.clone(), result))
        .await
        .is_err()
    {
        return;
    }
    if let Some(subscription) = subscription {
        pass_on(&component, subscription, &heard).await;
        let _ = heard.send(Heard::Ended(destination)).await;
    }
}

async fn pass_on(
    component: &Component,
    mut subscription: Subscription,
    heard: &mpsc::Sender<Heard>,
) {
    while let Some(delivery) = subscription.next().await {
        let content = match component.receive(&delivery.message) {
            Ok(received) => Ok(received),
            Err(Refusal::Rejected(rejection)) => {
                log_rejection(&rejection);
                Err(rejection)
            }
            Err(Refusal::NotOurs) => {
                debug!("a request for somebody else");
                Receipt::new(delivery).acknowledge().await;
                continue;
            }
        };
        let receipt = Receipt::new(delivery);
        let arrived = Box::new(Arrived { content, receipt });
        if heard.send(Heard::Message(arrived)).await.is_err() {
            return;
        }
    }
}

/// A client answers nobody and raises no alarms: what it can't read is the sender's fault. It is logged, and told to
/// the conversation that it names.
fn log_rejection(rejection: &Rejection) {
    let from = rejection.from.as_ref().map(|id| id.as_str());
    let correlation = rejection.correlation_id.as_ref().map(|id| id.as_str());
    let op = rejection.message_type.as_deref();
    warn!(correlation, from, op, reason = %rejection.reason, "an unreadable message");
}
