//! What is left to do when a conversation is over.

use std::time::Duration;

use pillarbox_exchange::ExchangeClient;
use tokio::{
    sync::mpsc,
    time::{sleep, timeout},
};
use tracing::{info, warn};

use super::{ConversationTask, written};
use crate::{cargo::Cargo, conversation::Procedure, event::Outcome, mediator::Arrived};

/// How long cleaning up may take.
const CLEANUP_TIME: Duration = Duration::from_secs(10);
/// How long a file is waited for that may yet come to where nobody wants it any more.
const LATE_DELIVERY: Duration = Duration::from_secs(5);
/// How many milliseconds it is waited each time before the end is written down that could not be.
const LAST_PAUSES_MS: [u64; 3] = [100, 200, 400];

impl<P: Procedure> ConversationTask<P> {
    /// Ends what still goes on, and leaves nothing on the exchange, nor a message that nobody acknowledges.
    pub(super) async fn clean_up(&mut self, mut inbox: mpsc::Receiver<Arrived>) {
        self.stop.cancel();
        self.unsent.clear();
        self.settle_entry().await;
        if let Some(event) = &self.last_event {
            self.outbox.put(event.clone());
        }
        self.sends.shutdown().await;
        let work = async {
            while self.transfer.join_next().await.is_some() {}
            if self.leftover {
                self.remove_offer(&mut inbox).await;
            }
        };
        if timeout(CLEANUP_TIME, work).await.is_err() {
            warn!("cleaning up took too long; the file may still lie on the exchange");
        }
        // What comes from here on the mediator acknowledges.
        inbox.close();
        while let Some(arrived) = inbox.recv().await {
            self.acknowledge(arrived.receipt);
        }
        let acknowledged = async { while self.acknowledgements.join_next().await.is_some() {} };
        if timeout(CLEANUP_TIME, acknowledged).await.is_err() {
            warn!("the bus does not take acknowledgements");
        }
        let correlation = self.conversation.context().correlation.clone();
        self.surroundings.mediator.deregister(correlation).await;
    }

    /// Removes from the exchange what lies there, and sees to it that nothing comes that may yet come.
    async fn remove_offer(&mut self, inbox: &mut mpsc::Receiver<Arrived>) {
        let may_come = self.conversation.is_owed();
        let over = remove_offer(&self.surroundings.exchange, &self.cargo, may_come).await;
        let complete = self.last_event.as_ref().and_then(Outcome::of);
        if over || !may_come || !complete.is_some_and(|outcome| outcome.complete) {
            return;
        }
        // This exchange takes a late file: it is waited for, since the pillar is at work as it seems.
        let stopped = self.surroundings.cancel.clone();
        let coming = async {
            while self.conversation.is_owed()
                && let Some(arrived) = inbox.recv().await
            {
                self.take(arrived);
            }
        };
        let waiting = timeout(LATE_DELIVERY, coming);
        let _ = stopped.run_until_cancelled(waiting).await;
        remove_offer(&self.surroundings.exchange, &self.cargo, true).await;
    }

    /// Waits until the end is written down: what follows takes away what it was made from. If that can't be, it is
    /// said, and the operation is over all the same.
    async fn settle_entry(&mut self) {
        self.waiting.0 = 0;
        self.leave();
        let mut pauses = LAST_PAUSES_MS.into_iter();
        let mut cause = None;
        loop {
            while self.is_writing() {
                let result = written(&mut self.keeping).await;
                cause = result.as_ref().err().map(ToString::to_string);
                self.written(result);
            }
            let Some(keeping) = self.keeping.as_mut().filter(|it| it.is_refused()) else {
                return;
            };
            let Some(pause) = pauses.next() else { break };
            keeping.hurry();
            sleep(Duration::from_millis(pause)).await;
            self.leave();
        }
        if let Some(text) = cause {
            self.outbox.put(self.conversation.not_kept(&text));
        }
    }

    pub(super) fn log(&self, outcome: &Outcome) {
        let elapsed_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let result = if outcome.complete {
            "COMPLETE"
        } else {
            "FAILED"
        };
        info!(
            result,
            elapsed_ms,
            info = outcome.info.as_deref(),
            "operation finished"
        );
    }
}

/// Removes from the exchange what was laid there for a conversation; if more `may_come`, asks that nothing be taken
/// there any more, and gives whether the exchange sees to it.
pub(crate) async fn remove_offer(exchange: &ExchangeClient, cargo: &Cargo, may_come: bool) -> bool {
    let Some(address) = cargo.address() else {
        return true;
    };
    let removed = if may_come {
        exchange.end_offer(address).await
    } else {
        exchange.delete(address).await.map(|_existed| false)
    };
    removed.unwrap_or_else(|error| {
        warn!(%error, "the file may still lie on the exchange");
        false
    })
}
