//! `pillarbox node`: plays the roles of a node.toml until it is told to stop.

use std::{path::Path, sync::Arc, time::Duration};

use pillarbox_alarms::AlarmServiceError;
use pillarbox_bus::BusError;
use pillarbox_pillar::PillarError;
use tokio::time::timeout;
use tracing::{info, warn};

use crate::{
    args::NodeArgs,
    client_setup::load_settings,
    failure::Failure,
    node::{NodeError, RunningNode},
    output::print_done,
    signals::Stop,
};

pub(super) async fn run(args: NodeArgs) -> Result<(), Failure> {
    let mut stop = Stop::listen()?;
    let Some(running) = start_from(&args.settings, &mut stop).await? else {
        return Ok(());
    };
    stay(running, "ready\n", &mut stop).await
}

/// Says that it is there, and stays until the process is asked to stop, or has nothing left to do.
///
/// # Errors
/// Standard output can't be written; a role lost its bus for good.
pub(super) async fn stay(
    node: RunningNode,
    greeting: &str,
    stop: &mut Stop,
) -> Result<(), Failure> {
    let result = match print_done(greeting) {
        Ok(()) => tokio::select! {
            () = stop.asked() => Ok(()),
            error = node.lost() => Err(Failure::operation(format!(
                "the bus is lost: {error}; start the node again once that is mended"
            ))),
        },
        Err(failure) => Err(failure),
    };
    info!("stopping");
    shut_down(node).await;
    result
}

/// Stops the roles. What doesn't stop in time is cut off, as a crash would; all of it can stand that.
pub(super) async fn shut_down(node: RunningNode) {
    if timeout(LAST_WAIT, node.shutdown(GRACE)).await.is_err() {
        warn!("the node took too long to stop and is cut off");
    }
}

/// Starts the roles of a settings directory; `None` if the process was told to stop meanwhile.
///
/// # Errors
/// Settings that are wrong, or a role that can't start.
pub(super) async fn start_from(
    directory: &Path,
    stop: &mut Stop,
) -> Result<Option<RunningNode>, Failure> {
    let (repository, node) = load_settings(directory)?;
    tokio::select! {
        started = RunningNode::start(Arc::new(repository), &node, directory) => {
            started.map(Some).map_err(not_started)
        }
        () = stop.asked() => Ok(None),
    }
}

/// What a bus said once it was reached is a failed operation; all else can be put right in the settings or on
/// this machine.
fn not_started(error: NodeError) -> Failure {
    match &error {
        NodeError::Pillar(PillarError::Bus { .. })
        | NodeError::Alarms(AlarmServiceError::Subscribe { .. })
        | NodeError::Bus(BusError::Unreachable { .. } | BusError::Refused { .. }) => {
            Failure::operation(error)
        }
        NodeError::Bus(BusError::ClientIdInUse(_)) => Failure::operation(format!(
            "{error}; stop that process, or give this one another id"
        )),
        _ => Failure::usage(error),
    }
}

/// How long requests in hand may take when the process is told to stop.
const GRACE: Duration = Duration::from_millis(1500);
/// How long all of it may take: a bus or a disk may hang.
const LAST_WAIT: Duration = Duration::from_secs(5);
