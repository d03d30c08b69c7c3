//! The connection to the bus, as far as a conversation looks at it.

use pillarbox_bus::{Bus, BusState};
use tokio::sync::watch;

/// The bus connection's state, as far as it was looked at.
#[derive(Debug)]
pub(crate) struct Link {
    state: watch::Receiver<BusState>,
    away: bool,
}

impl Link {
    pub(crate) fn new(bus: &Bus) -> Self {
        let mut state = bus.state();
        let away = *state.borrow_and_update() != BusState::Connected;
        Self { state, away }
    }

    /// Returns when the bus is there again after it was away.
    pub(crate) async fn connected_again(&mut self) {
        loop {
            match self.state.changed().await {
                Ok(()) => {}
                // The connection is closed for good; nothing comes any more.
                Err(_) => return std::future::pending().await,
            }
            let connected = *self.state.borrow_and_update() == BusState::Connected;
            if connected && std::mem::replace(&mut self.away, false) {
                return;
            }
            self.away |= !connected;
        }
    }
}
