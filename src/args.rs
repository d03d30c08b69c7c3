//! The words of the command line: subcommands and options, with the single letters that users of the Java
//! clients know.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

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
    /// What the alarm service has collected
    #[command(subcommand)]
    Alarms(AlarmsCommand),
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

/// What every client command takes.
#[derive(Debug, Args)]
pub struct ClientArgs {
    /// Directory with repository.toml and node.toml
    #[arg(short = 's', long, value_name = "DIR")]
    pub settings: PathBuf,

    /// Key file (accepted for the Java clients' command lines; nothing is signed yet)
    #[arg(short = 'k', long, value_name = "FILE")]
    pub key: Option<PathBuf>,

    /// Say what happens, on standard error
    #[arg(short = 'v', long)]
    pub verbose: bool,

    /// The collection
    #[arg(short = 'c', long, value_name = "ID")]
    pub collection: String,

    /// Work as the client of this name, with a durable reply topic (default: node.toml's, else a passing one)
    #[arg(long, value_name = "ID")]
    pub client_id: Option<String>,

    /// Print one JSON object per line instead of a table
    #[arg(long)]
    pub json: bool,
}

/// Which checksum a pillar is asked for.
#[derive(Debug, Args)]
pub struct ChecksumArgs {
    /// Checksum type to ask for: MD5, SHA1, SHA256, SHA384, SHA512, or one of them with HMAC_ before it
    #[arg(short = 'R', long, value_name = "TYPE")]
    pub checksum_type: Option<String>,

    /// Salt in hex; makes the checksum an HMAC with the salt as key
    #[arg(short = 'S', long, value_name = "HEX")]
    pub salt: Option<String>,
}

/// `pillarbox put-file`.
#[derive(Debug, Args)]
pub struct PutFileArgs {
    /// What every client command takes.
    #[command(flatten)]
    pub client: ClientArgs,

    /// File id (default: the file's name)
    #[arg(short = 'i', long, value_name = "ID")]
    pub file_id: Option<String>,

    /// The file to store
    #[arg(short = 'f', long, value_name = "PATH")]
    pub file: PathBuf,

    /// Checksum in hex, of the collection's default type, that the file must have
    #[arg(short = 'C', long, value_name = "HEX")]
    pub checksum: Option<String>,

    /// The checksum that the pillars send back.
    #[command(flatten)]
    pub request: ChecksumArgs,
}

/// `pillarbox get-file`.
#[derive(Debug, Args)]
pub struct GetFileArgs {
    /// What every client command takes.
    #[command(flatten)]
    pub client: ClientArgs,

    /// File id
    #[arg(short = 'i', long, value_name = "ID")]
    pub file_id: String,

    /// Get it from this pillar (default: the fastest)
    #[arg(short = 'p', long, value_name = "ID")]
    pub pillar: Option<String>,

    /// Directory or file to write to; an existing file is replaced (default: here, named by the last part of its id)
    #[arg(short = 'l', long, value_name = "PATH")]
    pub location: Option<PathBuf>,
}

/// `pillarbox get-file-ids`.
#[derive(Debug, Args)]
pub struct GetFileIdsArgs {
    /// What every client command takes.
    #[command(flatten)]
    pub client: ClientArgs,

    /// File id (default: all files)
    #[arg(short = 'i', long, value_name = "ID")]
    pub file_id: Option<String>,

    /// Ask this pillar only (default: all)
    #[arg(short = 'p', long, value_name = "ID")]
    pub pillar: Option<String>,
}

/// `pillarbox get-checksums`.
#[derive(Debug, Args)]
pub struct GetChecksumsArgs {
    /// What every client command takes.
    #[command(flatten)]
    pub client: ClientArgs,

    /// File id (default: all files)
    #[arg(short = 'i', long, value_name = "ID")]
    pub file_id: Option<String>,

    /// Ask this pillar only (default: all)
    #[arg(short = 'p', long, value_name = "ID")]
    pub pillar: Option<String>,

    /// The checksum to compare.
    #[command(flatten)]
    pub request: ChecksumArgs,
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
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub limit: u32,

    /// Print one JSON object per line instead of a table
    #[arg(long)]
    pub json: bool,
}
