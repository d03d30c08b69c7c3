//! Events on their way to the reader.

use std::collections::VecDeque;

use tokio::sync::mpsc;

use super::EVENTS_PILED;
use crate::event::Event;

/// Events on their way to the reader.
#[derive(Debug)]
pub(super) struct Outbox {
    events: mpsc::Sender<Event>,
    /// Those that the channel had no room for.
    piled: VecDeque<Event>,
}

impl Outbox {
    pub(super) const fn new(events: mpsc::Sender<Event>) -> Self {
        Self {
            events,
            piled: VecDeque::new(),
        }
    }

    pub(super) fn has_room(&self) -> bool {
        self.piled.len() < EVENTS_PILED
    }

    pub(super) fn put(&mut self, event: Event) {
        if self.events.is_closed() {
            return self.piled.clear();
        }
        if !self.piled.is_empty() {
            return self.piled.push_back(event);
        }
        if let Err(mpsc::error::TrySendError::Full(event)) = self.events.try_send(event) {
            self.piled.push_back(event);
        }
    }

    /// Waits until the reader takes one of the piled events; for ever if there are none.
    pub(super) async fn pass_on(&mut self) {
        if self.piled.is_empty() {
            return std::future::pending().await;
        }
        match self.events.reserve().await {
            Ok(room) => {
                if let Some(event) = self.piled.pop_front() {
                    room.send(event);
                }
            }
            Err(_) => self.piled.clear(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.piled.is_empty()
    }

    /// Waits until the reader has got everything, or is gone.
    pub(super) async fn empty(mut self) {
        while !self.piled.is_empty() {
            self.pass_on().await;
        }
    }
}
