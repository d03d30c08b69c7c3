//! What asks this process to stop.

use tokio::signal::unix::{SignalKind, signal};

use crate::failure::Failure;

/// Returns at Ctrl-C or SIGTERM.
///
/// # Errors
/// If the system has no handler to give.
pub(crate) async fn stop() -> Result<(), Failure> {
    let handler =
        |kind| signal(kind).map_err(|error| Failure::operation(format!("signals: {error}")));
    let mut interrupt = handler(SignalKind::interrupt())?;
    let mut terminate = handler(SignalKind::terminate())?;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    Ok(())
}
