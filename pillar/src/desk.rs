//! A pillar's desk: requests are answered one at a time, for whoever brings them. Nothing is subscribed to.
//!
//! [`Pillar`](crate::Pillar) serves what the bus delivers. Whoever wants to decide which request comes when brings
//! them here.

use std::sync::Mutex;

use pillarbox_component::Received;
use pillarbox_messages::Message;

use crate::{
    PillarError, PillarOptions,
    context::Context,
    handlers::{self, Progress},
    index::Index,
    service,
};

/// An open pillar that hears nothing by itself.
#[derive(Debug)]
pub struct Desk {
    context: Context,
}

impl Desk {
    /// Opens archive and index, and cleans what an earlier run left behind.
    ///
    /// # Errors
    /// Settings that can't be honored; a directory or database that can't be used.
    pub async fn open(options: PillarOptions) -> Result<Self, PillarError> {
        let opened = tokio::task::spawn_blocking(move || {
            let component = service::component(&options);
            service::open(options, component)
        })
        .await;
        let context = opened.unwrap_or(Err(PillarError::Interrupted))?;
        Ok(Self { context })
    }

    /// Does what a request asks for, and gives all responses in the order in which they leave, the final one last.
    /// Nothing for a message that is not for a pillar. Alarms are raised by the pillar's connection.
    pub async fn answer(&self, received: &Received) -> Vec<Message> {
        let request = &received.message;
        let progress = Collected::default();
        let answer = if request.message_type().is_identify_request() {
            handlers::identify(&self.context, request).await
        } else {
            handlers::operate(&self.context, received, &progress).await
        };
        let mut responses = progress.into_messages();
        responses.extend(answer.map(|answer| answer.message));
        responses
    }

    /// What the pillar knows about its files.
    #[must_use]
    pub const fn index(&self) -> &Index {
        &self.context.index
    }

    /// Closes the database and the connection to the bus.
    pub async fn close(self) {
        // It may have ended before.
        _ = self.context.component.bus().close().await;
        self.context.index.close().await;
    }
}

/// Keeps the progress responses.
#[derive(Default)]
struct Collected(Mutex<Vec<Message>>);

impl Collected {
    fn into_messages(self) -> Vec<Message> {
        self.0.into_inner().unwrap_or_default()
    }
}

impl Progress for Collected {
    async fn send(&self, message: Message) {
        if let Ok(mut messages) = self.0.lock() {
            messages.push(message);
        }
    }
}
