//! `pillarbox bus msg retry` and `delete`.

use std::{
    collections::BTreeSet,
    io::{self, BufRead as _, IsTerminal as _, Write as _},
};

use pillarbox_bus::admin::{Answer, Done, Filter, MAX_IDS, MessageId, Request, Skipped};
use pillarbox_messages::wording::count;

use super::{Operator, line, message::filter, short, unexpected, unless_stopped};
use crate::{
    args::bus::{MsgChangeArgs, MsgDeleteArgs},
    failure::Failure,
    output::{one_line, print_done, say},
};

/// What is done to the messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Retry,
    Delete,
}

impl Change {
    const fn done(self) -> &'static str {
        match self {
            Self::Retry => "sent back from",
            Self::Delete => "deleted from",
        }
    }
}

/// Which messages are meant.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Which {
    Ids(Vec<MessageId>),
    Fitting(Filter),
}

/// `bus msg retry`.
pub(super) async fn retry(args: &MsgChangeArgs) -> Result<(), Failure> {
    run(Change::Retry, args, false).await
}

/// `bus msg delete`.
pub(super) async fn delete(args: &MsgDeleteArgs) -> Result<(), Failure> {
    run(Change::Delete, &args.change, !args.yes).await
}

/// `cautious`: a person is asked first, unless the messages are named.
async fn run(change: Change, args: &MsgChangeArgs, cautious: bool) -> Result<(), Failure> {
    let which = which(args)?;
    let asks = cautious && matches!(which, Which::Fitting(_));
    if asks && !io::stdin().is_terminal() {
        return Err(Failure::usage(
            "what is deleted is gone: give --yes, since there is no terminal to ask on",
        ));
    }
    let mut operator = Operator::connect(&args.bus).await?;
    let done = match asks {
        true => ask_and_change(change, args, which, &mut operator).await,
        false => change_all(change, args, which, &mut operator).await,
    };
    operator.close().await;
    let Some(done) = done? else {
        say("nothing was deleted");
        return Ok(());
    };
    if args.bus.json {
        print_done(&line(&done))?;
    }
    let told = format!(
        "{} {} {}",
        count(done.done, "message"),
        change.done(),
        one_line(short(&args.queue))
    );
    match left_alone(done.skipped) {
        None => {
            say(&told);
            Ok(())
        }
        Some(left) => Err(Failure::operation(format!("{told}; left alone: {left}"))),
    }
}

/// Which messages these arguments mean.
fn which(args: &MsgChangeArgs) -> Result<Which, Failure> {
    let filter = filter(&args.filter);
    match (args.ids.is_empty(), filter.is_empty(), args.all) {
        (true, true, false) => Err(Failure::usage(
            "no message is named: give ids as 'bus msg list' shows them, or --key, --correlation-id or --reason, or \
             --all",
        )),
        (false, true, false) => {
            let mut seen = BTreeSet::new();
            let ids = args.ids.iter().copied();
            Ok(Which::Ids(ids.filter(|id| seen.insert(*id)).collect()))
        }
        (true, false, false) | (true, true, true) => Ok(Which::Fitting(filter)),
        _ => Err(Failure::usage(
            "give ids, or --key, --correlation-id and --reason, or --all: only one of these",
        )),
    }
}

/// Asks the person; `None` if he does not want it.
async fn ask_and_change(
    change: Change,
    args: &MsgChangeArgs,
    which: Which,
    operator: &mut Operator,
) -> Result<Option<Done>, Failure> {
    let Which::Fitting(filter) = &which else {
        return Err(unexpected());
    };
    let request = Request::MsgList {
        queue: args.queue.clone(),
        filter: filter.clone(),
        after: None,
        limit: Some(usize::MAX),
    };
    let Answer::Messages(page) = operator.ask(request).await? else {
        return Err(unexpected());
    };
    let more = if page.after.is_some() { " or more" } else { "" };
    let question = format!(
        "Delete {}{more} from {} for good? [y/N] ",
        count(page.messages.len() as u64, "message"),
        one_line(short(&args.queue))
    );
    let answer = tokio::task::spawn_blocking(move || ask(&question));
    match unless_stopped(&mut operator.stop, answer).await? {
        Ok(true) => change_all(change, args, which, operator).await,
        _ => Ok(None),
    }
}

fn ask(question: &str) -> bool {
    let mut errors = io::stderr().lock();
    // A question that nobody sees is not answered with yes.
    let asked = errors.write_all(question.as_bytes());
    let asked = asked.and_then(|()| errors.flush());
    let mut answer = String::new();
    let read = asked.and_then(|()| io::stdin().lock().read_line(&mut answer));
    read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes" | "Yes")
}

async fn change_all(
    change: Change,
    args: &MsgChangeArgs,
    which: Which,
    operator: &mut Operator,
) -> Result<Option<Done>, Failure> {
    let parts: Vec<(Option<Vec<MessageId>>, Option<Filter>)> = match which {
        Which::Ids(ids) => {
            let chunks = ids.chunks(MAX_IDS);
            chunks.map(|ids| (Some(ids.to_vec()), None)).collect()
        }
        Which::Fitting(filter) => vec![(None, Some(filter))],
    };
    let mut all = Done::default();
    for (ids, filter) in parts {
        let mut after = None;
        loop {
            let (queue, ids, filter) = (args.queue.clone(), ids.clone(), filter.clone());
            let request = match change {
                Change::Retry => Request::MsgRetry {
                    queue,
                    ids,
                    filter,
                    after,
                },
                Change::Delete => Request::MsgDelete {
                    queue,
                    ids,
                    filter,
                    after,
                },
            };
            let Answer::Done(done) = operator.ask(request).await? else {
                return Err(unexpected());
            };
            all.done += done.done;
            all.skipped = all.skipped.plus(done.skipped);
            after = done.after;
            if after.is_none() {
                break;
            }
        }
    }
    Ok(Some(all))
}

/// What was left alone, in words.
fn left_alone(skipped: Skipped) -> Option<String> {
    let reasons = [
        (skipped.in_hand, "in a consumer's hands"),
        (skipped.not_there, "not there"),
        (skipped.not_moved, "not moved there from anywhere"),
        (skipped.no_way_back, "whose queue is not there any more"),
    ];
    let told = reasons.iter().filter(|(number, _)| *number > 0);
    let told: Vec<String> = told
        .map(|(number, why)| format!("{} {why}", count(*number, "message")))
        .collect();
    (!told.is_empty()).then(|| told.join(", "))
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::{
        Cli, Command,
        bus::{BusCommand, MsgCommand},
    };

    fn args(words: &str) -> MsgChangeArgs {
        let words = "pillarbox bus msg delete -s d q ".to_owned() + words;
        let cli = Cli::try_parse_from(words.split_whitespace()).unwrap();
        match cli.command {
            Command::Bus(BusCommand::Msg(MsgCommand::Delete(args))) => args.change,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn messages_are_named_in_one_way() {
        for words in ["", "--yes"] {
            let told = which(&args(words)).unwrap_err().to_string();
            assert!(
                told.contains("--all") && told.contains("bus msg list"),
                "{told}"
            );
        }
        for words in ["3-1 --all", "3-1 --key k", "--key k --all"] {
            let told = which(&args(words)).unwrap_err().to_string();
            assert!(told.contains("only one"), "{told}");
        }
        let id = |seq| MessageId { boot: 3, seq };
        let named = which(&args("3-2 3-1 3-2")).unwrap();
        assert_eq!(named, Which::Ids(vec![id(2), id(1)]));
        assert_eq!(
            which(&args("--all")).unwrap(),
            Which::Fitting(Filter::default())
        );
        let Which::Fitting(filter) = which(&args("--key -k --reason expired")).unwrap() else {
            panic!("no filter");
        };
        assert_eq!(filter.key.as_deref(), Some("-k"));
    }

    #[test]
    fn what_was_left_alone_is_told() {
        assert_eq!(left_alone(Skipped::default()), None);
        let skipped = Skipped {
            in_hand: 1,
            no_way_back: 2,
            ..Skipped::default()
        };
        let told = left_alone(skipped).unwrap();
        assert_eq!(
            told,
            "1 message in a consumer's hands, 2 messages whose queue is not there any more"
        );
    }
}
