//! The command line of Pillarbox, and the node that it starts.
//!
//! Wiring only: it reads arguments and settings, puts the parts together, and shows people what they do. It
//! decides nothing about the protocol, the bus or the archive.
//!
//! Modules: [`args`] the words of the command line; [`node`] the roles of one process; [`failure`] how a command
//! fails; [`data_directory`] the lock on what a process keeps; internally `commands` (one per subcommand),
//! `connecting`, `checksum_args`, `client_setup`, `json`, `logging`, `output`, `progress`, `signals`, `starter` and `tables`.

pub mod args;
mod checksum_args;
mod client_setup;
mod commands;
mod connecting;
pub mod data_directory;
pub mod failure;
mod json;
mod logging;
pub mod node;
mod output;
mod progress;
mod signals;
mod starter;
mod tables;

use std::{ffi::OsString, process::ExitCode, time::Duration};

use clap::{Parser as _, error::ErrorKind};

use crate::{args::Cli, failure::Failure};

/// Runs the program with these arguments, the first of which is its name.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .max_blocking_threads(BLOCKING_THREADS)
        .enable_all()
        .build();
    let result = match runtime {
        Ok(runtime) => {
            let result = runtime.block_on(commands::run(cli));
            // A thread that hangs on a disk doesn't keep the program.
            runtime.shutdown_timeout(LAST_WAIT);
            result
        }
        Err(error) => Err(Failure::operation(format!("no threads to run on: {error}"))),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// More than peers that stall can hold: each transfer of the exchange and of a pillar may take one.
const BLOCKING_THREADS: usize = 2048;

/// How long the end of the program waits for threads that are busy.
const LAST_WAIT: Duration = Duration::from_secs(1);

/// Help and version as asked for; a mistake in one line.
fn refuse(error: &clap::Error) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            // A closed pipe is no failure of ours.
            let _ = error.print();
            ExitCode::SUCCESS
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand => {
            Failure::usage(format!("a command is missing; {HELP}")).report()
        }
        _ => Failure::usage(format!("{}; {HELP}", cause_of(error))).report(),
    }
}

/// The next step of whoever can't find the words.
const HELP: &str = "see 'pillarbox --help' or 'pillarbox COMMAND --help'";

/// What is wrong, without the usage that clap prints below it.
fn cause_of(error: &clap::Error) -> String {
    let text = error.to_string();
    let cause: Vec<&str> = text
        .lines()
        .map(str::trim)
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more information"))
        .filter(|line| !line.is_empty())
        .collect();
    let cause = cause.join(" ");
    cause.strip_prefix("error: ").unwrap_or(&cause).to_owned()
}
