//! One module per subcommand.

mod alarms;
mod demo;
mod get_checksums;
mod get_file;
mod get_file_ids;
mod node;
mod put_file;
mod up;

use pillarbox_client::{ComponentResult, Event, EventKind};
use pillarbox_messages::{CollectionId, ComponentId};
use pillarbox_settings::Repository;
use tracing::Level;

use crate::{
    args::{AlarmsCommand, Cli, Command},
    failure::Failure,
    logging,
};

/// Runs the subcommand to its end.
pub(crate) async fn run(cli: Cli) -> Result<(), Failure> {
    // What stays up tells its life cycle; what ends tells its result.
    let level = match &cli.command {
        Command::Node(_) | Command::Up(_) => Level::INFO,
        _ if cli.log == crate::args::LogFormat::Json => Level::INFO,
        _ => Level::ERROR,
    };
    logging::start(cli.log, level);
    match cli.command {
        Command::Demo(args) => demo::run(args).await,
        Command::Up(args) => up::run(args).await,
        Command::Node(args) => node::run(args).await,
        Command::PutFile(args) => put_file::run(args).await,
        Command::GetFile(args) => get_file::run(args).await,
        Command::GetFileIds(args) => get_file_ids::run(args).await,
        Command::GetChecksums(args) => get_checksums::run(args).await,
        Command::Alarms(AlarmsCommand::List(args)) => alarms::list(&args),
    }
}

/// How many pillars a listing is asked of.
fn pillars_asked(
    repository: &Repository,
    collection: &CollectionId,
    named: Option<&[ComponentId]>,
) -> usize {
    let all = || {
        repository
            .collection(collection)
            .map_or(0, |known| known.pillars.len())
    };
    named.map_or_else(all, <[ComponentId]>::len)
}

/// What one contributor gave, page or whole, if the event is about that.
fn result_of(event: &Event) -> Option<(&ComponentId, &ComponentResult)> {
    match &event.kind {
        EventKind::Progress {
            contributor,
            result,
        } => result.as_ref().map(|result| (contributor, result)),
        EventKind::ComponentComplete {
            contributor,
            result,
        } => Some((contributor, result)),
        _ => None,
    }
}
