//! One module per subcommand.

mod alarms;
mod bus;
mod delete_file;
mod demo;
mod get_audit_trails;
mod get_checksums;
mod get_file;
mod get_file_ids;
mod get_status;
mod listing;
mod new_file;
mod node;
mod put_file;
mod rehearsal;
mod replace_file;
mod resume;
mod up;

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
        Command::ReplaceFile(args) => replace_file::run(args).await,
        Command::DeleteFile(args) => delete_file::run(args).await,
        Command::GetAuditTrails(args) => get_audit_trails::run(args).await,
        Command::GetStatus(args) => get_status::run(args).await,
        Command::Resume(args) => resume::run(args).await,
        Command::Alarms(AlarmsCommand::List(args)) => alarms::list(&args),
        Command::Bus(command) => bus::run(command).await,
    }
}
