//! What asks this process to stop.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::Failure;

/// Hears Ctrl-C and SIGTERM from when it is made: none is lost between two waits.
#[derive(Debug)]
pub(crate) struct Stop {
    interrupt: Signal,
    terminate: Signal,
}

impl Stop {
    /// Starts to listen.
    ///
    /// # Errors
    /// If the system has no handler to give.
    pub(crate) fn listen() -> Result<Self, Failure> {
        let handler =
            |kind| signal(kind).map_err(|error| Failure::operation(format!("signals: {error}")));
        Ok(Self {
            interrupt: handler(SignalKind::interrupt())?,
            terminate: handler(SignalKind::terminate())?,
        })
    }

    /// Returns once the process has been asked to stop.
    pub(crate) async fn asked(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
