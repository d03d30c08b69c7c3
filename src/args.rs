//! The words of the command line: subcommands and options, with the single letters that users of the Java
//! clients know. [`operations`] has those of the client's operations, [`bus`] those of the bus's administration.

pub mod bus;
pub mod operations;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use self::bus::BusCommand;
use self::operations::{
    ClientArgs, DeleteFileArgs, GetAuditTrailsArgs, GetChecksumsArgs, GetFileArgs, GetFileIdsArgs,
    GetStatusArgs, PutFileArgs, ReplaceFileArgs,
};

/// A BitRepository collection node: pillars, clients, alarm service, bus and file exchange in one program.
#[derive(Debug, Parser)]
#[command(name = "pillarbox", version, max_term_width = 100)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,

    /// How log lines are written to standard error
    #[arg(long, global = true, value_enum, default_value_t = LogFormat::Text, value_name = "FORMAT")]
    pub log: LogFormat,
}

/// How log lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object per line.
    Json,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Store FILE on three pillars of a temporary repository and get it back, with proof
    Demo(DemoArgs),
    /// Run a whole repository on this machine: bus, exchange, three pillars, alarm service
    Up(UpArgs),
    /// Play the roles of a settings directory's node.toml
    Node(NodeArgs),
    /// Store a file on the pillars of a collection
    PutFile(PutFileArgs),
    /// Get a file from the fastest pillar, or from one pillar
    GetFile(GetFileArgs),
    /// List the files of a collection
    GetFileIds(GetFileIdsArgs),
    /// Compare the checksums that the pillars have of a collection's files
    GetChecksums(GetChecksumsArgs),
    /// Replace a file at one pillar
    ReplaceFile(ReplaceFileArgs),
    /// Delete a file from one pillar
    DeleteFile(DeleteFileArgs),
    /// What the pillars have noted down of what was done to files
    GetAuditTrails(GetAuditTrailsArgs),
    /// How the pillars are
    GetStatus(GetStatusArgs),
    /// Go on with what a killed process of a named client had begun, and tell how each operation ends
    Resume(ResumeArgs),
    /// What the alarm service has collected
    #[command(subcommand)]
    Alarms(AlarmsCommand),
    /// Look after the built-in bus: its queues, and messages that have failed
    #[command(subcommand)]
    Bus(BusCommand),
}

/// `pillarbox demo`.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// The file to send round; without one, a small text made for the purpose
    pub file: Option<PathBuf>,

    /// Keep the repository in this new directory instead of a temporary one
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
}

/// `pillarbox up`.
#[derive(Debug, Args)]
pub struct UpArgs {
    /// Where the repository lives; without it, in a temporary directory that goes when the command ends
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

/// `pillarbox node`.
#[derive(Debug, Args)]
pub struct NodeArgs {
    /// Directory with repository.toml and node.toml
    #[arg(short = 's', long, value_name = "DIR")]
    pub settings: PathBuf,
}

/// `pillarbox resume`.
#[derive(Debug, Args)]
pub struct ResumeArgs {
    /// What every client command takes.
    #[command(flatten)]
    pub client: ClientArgs,
}

/// `pillarbox alarms`.
#[derive(Debug, Subcommand)]
pub enum AlarmsCommand {
    /// List the alarms, oldest first
    List(AlarmsListArgs),
}

/// `pillarbox alarms list`.
#[derive(Debug, Args)]
pub struct AlarmsListArgs {
    /// Settings directory of the process that plays the alarm service
    #[arg(short = 's', long, value_name = "DIR")]
    pub settings: PathBuf,

    /// Only alarms about this collection
    #[arg(short = 'c', long, value_name = "ID")]
    pub collection: Option<String>,

    /// The newest N at most
    #[arg(
        long,
        value_name = "N",
        default_value_t = 100,
        allow_negative_numbers = true
    )]
    pub limit: u32,

    /// Print one JSON object per line instead of a table
    #[arg(long)]
    pub json: bool,
}
