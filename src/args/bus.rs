//! The words of the administration of the bus.

use std::path::PathBuf;

use clap::{
    Args, Subcommand,
    builder::{PossibleValuesParser, TypedValueParser},
};
use pillarbox_bus::admin::{MessageId, Reason};

/// `pillarbox bus`.
#[derive(Debug, Subcommand)]
pub enum BusCommand {
    /// The queues of the built-in bus, those behind subscriptions included
    #[command(subcommand)]
    Queue(QueueCommand),
    /// The messages in a queue of the built-in bus
    #[command(subcommand)]
    Msg(MsgCommand),
}

/// `pillarbox bus queue`.
#[derive(Debug, Subcommand)]
pub enum QueueCommand {
    /// List the queues with their figures
    List(QueueListArgs),
    /// Show one queue: what it is like, its lanes, and who takes from it
    Show(QueueShowArgs),
}

/// `pillarbox bus msg`.
#[derive(Debug, Subcommand)]
pub enum MsgCommand {
    /// List messages of a queue, the oldest first; nothing changes
    List(MsgListArgs),
    /// Show one message: all its headers, and its body
    Show(MsgShowArgs),
    /// Send messages that were moved aside back to where they came from, as if nothing had happened to them
    Retry(MsgChangeArgs),
    /// Delete messages for good
    Delete(MsgDeleteArgs),
}

/// What every command about the bus takes.
#[derive(Debug, Args)]
pub struct BusArgs {
    /// Directory with repository.toml and node.toml; those of the process that serves the bus will do
    #[arg(short = 's', long, value_name = "DIR")]
    pub settings: PathBuf,

    /// Print one JSON object per line instead of a table
    #[arg(long)]
    pub json: bool,
}

/// `pillarbox bus queue list`.
#[derive(Debug, Args)]
pub struct QueueListArgs {
    /// What every command about the bus takes.
    #[command(flatten)]
    pub bus: BusArgs,
}

/// `pillarbox bus queue show`.
#[derive(Debug, Args)]
pub struct QueueShowArgs {
    /// What every command about the bus takes.
    #[command(flatten)]
    pub bus: BusArgs,

    /// The queue; a durable subscription is ~sub.CLIENT.NAME
    #[arg(value_name = "QUEUE", value_parser = queue_name)]
    pub queue: String,
}

/// Which messages.
#[derive(Debug, Args)]
pub struct FilterArgs {
    /// Only messages of this message group
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    pub key: Option<String>,

    /// Only messages with this correlation id
    #[arg(long, value_name = "ID", allow_hyphen_values = true)]
    pub correlation_id: Option<String>,

    /// Only messages that were moved here for this reason
    #[arg(long, value_name = "REASON", value_parser = reasons())]
    pub reason: Option<Reason>,
}

/// `pillarbox bus msg list`.
#[derive(Debug, Args)]
pub struct MsgListArgs {
    /// What every command about the bus takes.
    #[command(flatten)]
    pub bus: BusArgs,

    /// The queue; a durable subscription is ~sub.CLIENT.NAME
    #[arg(value_name = "QUEUE", value_parser = queue_name)]
    pub queue: String,

    /// Which messages.
    #[command(flatten)]
    pub filter: FilterArgs,

    /// The oldest N at most
    #[arg(
        long,
        value_name = "N",
        default_value_t = 100,
        value_parser = clap::value_parser!(u64).range(1..),
        allow_negative_numbers = true
    )]
    pub limit: u64,
}

/// `pillarbox bus msg show`.
#[derive(Debug, Args)]
pub struct MsgShowArgs {
    /// What every command about the bus takes.
    #[command(flatten)]
    pub bus: BusArgs,

    /// The queue; a durable subscription is ~sub.CLIENT.NAME
    #[arg(value_name = "QUEUE", value_parser = queue_name)]
    pub queue: String,

    /// The message's id, as 'bus msg list' shows it
    #[arg(value_name = "ID", value_parser = message_id)]
    pub id: MessageId,
}

/// `pillarbox bus msg retry`, and what `pillarbox bus msg delete` has of it.
#[derive(Debug, Args)]
pub struct MsgChangeArgs {
    /// What every command about the bus takes.
    #[command(flatten)]
    pub bus: BusArgs,

    /// The queue; a durable subscription is ~sub.CLIENT.NAME
    #[arg(value_name = "QUEUE", value_parser = queue_name)]
    pub queue: String,

    /// The messages' ids, as 'bus msg list' shows them
    #[arg(value_name = "ID", value_parser = message_id)]
    pub ids: Vec<MessageId>,

    /// Which messages.
    #[command(flatten)]
    pub filter: FilterArgs,

    /// All messages of the queue
    #[arg(long)]
    pub all: bool,
}

/// `pillarbox bus msg delete`.
#[derive(Debug, Args)]
pub struct MsgDeleteArgs {
    /// Which messages, and where.
    #[command(flatten)]
    pub change: MsgChangeArgs,

    /// Don't ask before many messages are deleted
    #[arg(long)]
    pub yes: bool,
}

fn queue_name(text: &str) -> Result<String, String> {
    match text.is_empty() {
        true => Err("a queue's name is not empty; 'bus queue list' shows them".to_owned()),
        false => Ok(text.to_owned()),
    }
}

fn message_id(text: &str) -> Result<MessageId, String> {
    text.parse()
        .map_err(|_| "a message's id looks like 3-17; 'bus msg list' shows them".to_owned())
}

fn reasons() -> impl TypedValueParser<Value = Reason> {
    let names = Reason::ALL.map(Reason::as_str);
    PossibleValuesParser::new(names).map(|name| {
        let mut all = Reason::ALL.into_iter();
        let found = all.find(|reason| reason.as_str() == name);
        // No other name gets this far.
        found.unwrap_or(Reason::Admin)
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use crate::args::Cli;

    fn fits(words: &[&str]) -> bool {
        let words = ["pillarbox", "bus"].iter().chain(words);
        Cli::try_parse_from(words).is_ok()
    }

    #[test]
    fn a_queue_has_a_name() {
        for (words, id) in [
            (["queue", "show"], None),
            (["msg", "list"], None),
            (["msg", "show"], Some("3-1")),
            (["msg", "retry"], Some("3-1")),
            (["msg", "delete"], Some("3-1")),
        ] {
            for (queue, right) in [("q", true), ("", false)] {
                let mut all = [&words[..], &["-s", "d", queue]].concat();
                all.extend(id);
                assert_eq!(fits(&all), right, "{all:?}");
            }
        }
    }

    #[test]
    fn only_what_deletes_asks() {
        assert!(fits(&["msg", "delete", "-s", "d", "q", "--all", "--yes"]));
        assert!(fits(&["msg", "retry", "-s", "d", "q", "--all"]));
        assert!(!fits(&["msg", "retry", "-s", "d", "q", "--all", "--yes"]));
    }
}
