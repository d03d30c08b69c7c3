//! The words of the client's operations.

use std::{num::NonZeroU64, path::PathBuf};

use clap::Args;
use pillarbox_messages::{FilePart, Timestamp};

/// A part of a file as the command line gives it: two numbers of bytes in decimal digits.
fn part(text: &str) -> Result<FilePart, String> {
    let number = |digits: &str| {
        let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        digits.parse().ok().filter(|_| plain)
    };
    let (offset, length) = text.split_once(':').unwrap_or_default();
    match (number(offset), number(length)) {
        (Some(_), Some(0)) => Err("a part has at least one byte".to_owned()),
        (Some(part_offset), Some(part_length)) => Ok(FilePart {
            part_offset,
            part_length,
        }),
        _ => Err("give two numbers of bytes from 0 to below 2^64, like 0:1024".to_owned()),
    }
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

    /// Work as the client of this name, with a durable reply topic (default: node.toml's, else a passing one)
    #[arg(long, value_name = "ID")]
    pub client_id: Option<String>,

    /// Print one JSON object per line instead of a table
    #[arg(long)]
    pub json: bool,

    /// Give a pillar that says that it is at work its full time again, for pillars whose media are slow
    #[arg(long)]
    pub extend_on_progress: bool,
}

/// What every client command about a collection takes.
#[derive(Debug, Args)]
pub struct CollectionArgs {
    /// What every client command takes.
    #[command(flatten)]
    pub client: ClientArgs,

    /// The collection
    #[arg(short = 'c', long, value_name = "ID")]
    pub collection: String,
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

impl ChecksumArgs {
    /// Whether one was asked for.
    #[must_use]
    pub const fn is_given(&self) -> bool {
        self.checksum_type.is_some() || self.salt.is_some()
    }
}

/// Where a new file is.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct SourceArgs {
    /// The file to store
    #[arg(short = 'f', long, value_name = "PATH", allow_hyphen_values = true)]
    pub file: Option<PathBuf>,

    /// Address of the file, if it lies on an exchange already
    #[arg(short = 'u', long, value_name = "URL")]
    pub url: Option<String>,
}

/// `pillarbox put-file`.
#[derive(Debug, Args)]
pub struct PutFileArgs {
    /// What every client command about a collection takes.
    #[command(flatten)]
    pub collection: CollectionArgs,

    /// File id (default: the file's name; needed with -u)
    #[arg(short = 'i', long, value_name = "ID", allow_hyphen_values = true)]
    pub file_id: Option<String>,

    /// The file.
    #[command(flatten)]
    pub source: SourceArgs,

    /// Checksum in hex, of the collection's default type, that the file must have; needed with -u
    #[arg(short = 'C', long, value_name = "HEX")]
    pub checksum: Option<String>,

    /// The checksum that the pillars send back.
    #[command(flatten)]
    pub request: ChecksumArgs,

    /// Delete the file from the exchange once it is stored (what -f lays there is always taken back)
    #[arg(short = 'd', long)]
    pub delete: bool,

    /// Ask a pillar again, up to N times, after its transfer has failed
    #[arg(
        long,
        value_name = "N",
        default_value_t = 0,
        allow_negative_numbers = true
    )]
    pub retries: u32,

    /// Store nothing unless every pillar has answered
    #[arg(long)]
    pub no_partial: bool,
}

/// `pillarbox get-file`.
#[derive(Debug, Args)]
pub struct GetFileArgs {
    /// What every client command about a collection takes.
    #[command(flatten)]
    pub collection: CollectionArgs,

    /// File id
    #[arg(short = 'i', long, value_name = "ID", allow_hyphen_values = true)]
    pub file_id: String,

    /// Get it from this pillar (default: the fastest)
    #[arg(short = 'p', long, value_name = "ID")]
    pub pillar: Option<String>,

    /// Directory or file to write to; an existing file is replaced (default: here, named by the last part of its id)
    #[arg(short = 'l', long, value_name = "PATH", allow_hyphen_values = true)]
    pub location: Option<PathBuf>,

    /// Get only LENGTH bytes from OFFSET (from 0) on, or those that the file has of them
    #[arg(long, value_name = "OFFSET:LENGTH", value_parser = part, allow_hyphen_values = true)]
    pub part: Option<FilePart>,
}

/// `pillarbox get-file-ids`.
#[derive(Debug, Args)]
pub struct GetFileIdsArgs {
    /// What every client command about a collection takes.
    #[command(flatten)]
    pub collection: CollectionArgs,

    /// File id (default: all files)
    #[arg(short = 'i', long, value_name = "ID", allow_hyphen_values = true)]
    pub file_id: Option<String>,

    /// Ask this pillar only (default: all)
    #[arg(short = 'p', long, value_name = "ID")]
    pub pillar: Option<String>,
}

/// `pillarbox get-checksums`.
#[derive(Debug, Args)]
pub struct GetChecksumsArgs {
    /// What every client command about a collection takes.
    #[command(flatten)]
    pub collection: CollectionArgs,

    /// File id (default: all files)
    #[arg(short = 'i', long, value_name = "ID", allow_hyphen_values = true)]
    pub file_id: Option<String>,

    /// Ask this pillar only (default: all)
    #[arg(short = 'p', long, value_name = "ID")]
    pub pillar: Option<String>,

    /// The checksum to compare.
    #[command(flatten)]
    pub request: ChecksumArgs,
}

/// `pillarbox replace-file`.
#[derive(Debug, Args)]
pub struct ReplaceFileArgs {
    /// What every client command about a collection takes.
    #[command(flatten)]
    pub collection: CollectionArgs,

    /// File id (default: the file's name; needed with -u)
    #[arg(short = 'i', long, value_name = "ID", allow_hyphen_values = true)]
    pub file_id: Option<String>,

    /// The pillar to replace it at
    #[arg(short = 'p', long, value_name = "ID")]
    pub pillar: String,

    /// The new file.
    #[command(flatten)]
    pub source: SourceArgs,

    /// Checksum in hex, of the collection's default type, of the file that is there now
    #[arg(short = 'C', long, value_name = "HEX")]
    pub checksum: Option<String>,

    /// Checksum in hex, of the collection's default type, that the new file must have; needed with -u
    #[arg(short = 'r', long, value_name = "HEX")]
    pub new_checksum: Option<String>,

    /// The checksums that the pillar sends back, of the old and of the new file.
    #[command(flatten)]
    pub request: ChecksumArgs,

    /// Delete the new file from the exchange once it is stored (what -f lays there is always taken back)
    #[arg(short = 'd', long)]
    pub delete: bool,

    /// Change nothing: ask the pillar for the file's checksum and say what would be done
    #[arg(long)]
    pub dry_run: bool,
}

/// `pillarbox delete-file`.
#[derive(Debug, Args)]
pub struct DeleteFileArgs {
    /// What every client command about a collection takes.
    #[command(flatten)]
    pub collection: CollectionArgs,

    /// File id
    #[arg(short = 'i', long, value_name = "ID", allow_hyphen_values = true)]
    pub file_id: String,

    /// The pillar to delete it from
    #[arg(short = 'p', long, value_name = "ID")]
    pub pillar: String,

    /// Checksum in hex, of the collection's default type, of the file that is there now
    #[arg(short = 'C', long, value_name = "HEX")]
    pub checksum: String,

    /// The checksum that the pillar sends back.
    #[command(flatten)]
    pub request: ChecksumArgs,

    /// Change nothing: ask the pillar for the file's checksum and say what would be done
    #[arg(long)]
    pub dry_run: bool,
}

/// `pillarbox get-audit-trails`.
#[derive(Debug, Args)]
pub struct GetAuditTrailsArgs {
    /// What every client command about a collection takes.
    #[command(flatten)]
    pub collection: CollectionArgs,

    /// Only events of this file (default: of all files)
    #[arg(short = 'i', long, value_name = "ID", allow_hyphen_values = true)]
    pub file_id: Option<String>,

    /// Ask this pillar (may be given several times; default: all)
    #[arg(short = 'p', long, value_name = "ID")]
    pub pillar: Vec<String>,

    /// Nothing numbered lower than this by its pillar
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub first: Option<NonZeroU64>,

    /// Nothing numbered higher than this by its pillar
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub last: Option<NonZeroU64>,

    /// Nothing older than this, like 2025-01-31T00:00:00Z
    #[arg(long, value_name = "TIME")]
    pub min_time: Option<Timestamp>,

    /// Nothing younger than this, like 2025-01-31T23:59:59.999+01:00
    #[arg(long, value_name = "TIME")]
    pub max_time: Option<Timestamp>,

    /// How many events a pillar sends at once
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub max_page_size: Option<NonZeroU64>,
}

/// `pillarbox get-status`.
#[derive(Debug, Args)]
pub struct GetStatusArgs {
    /// What every client command takes.
    #[command(flatten)]
    pub client: ClientArgs,

    /// Ask this pillar or service (may be given several times; default: all of all collections)
    #[arg(short = 'p', long, value_name = "ID")]
    pub pillar: Vec<String>,
}
