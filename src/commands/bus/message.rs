//! `pillarbox bus msg list` and `show`.

use std::fmt::Display;

use pillarbox_bus::admin::{Answer, Body, Filter, MessageDetail, MessageRow, Request};
use pillarbox_messages::wording::count;

use super::{Operator, line, or_none, short, time, time_or_none, unexpected};
use crate::{
    args::bus::{FilterArgs, MsgListArgs, MsgShowArgs},
    failure::Failure,
    output::{one_line, print, print_done, say},
};

/// Which messages these arguments mean.
pub(super) fn filter(args: &FilterArgs) -> Filter {
    Filter {
        key: args.key.clone(),
        correlation_id: args.correlation_id.clone(),
        reason: args.reason,
    }
}

/// `bus msg list`.
pub(super) async fn list(args: &MsgListArgs) -> Result<(), Failure> {
    let mut operator = Operator::connect(&args.bus).await?;
    let listed = pages(args, &mut operator).await;
    operator.close().await;
    let (shown, more) = listed?;
    let more = if more { "; --limit shows more" } else { "" };
    say(&format!("{}{more}", count(shown, "message")));
    Ok(())
}

/// Prints page after page; returns how many messages there were, and whether there may be more.
async fn pages(args: &MsgListArgs, operator: &mut Operator) -> Result<(u64, bool), Failure> {
    let (mut left, mut after) = (args.limit, None);
    let mut heading = if args.bus.json { "" } else { HEADING };
    loop {
        let limit = usize::try_from(left).unwrap_or(usize::MAX);
        let request = Request::MsgList {
            queue: args.queue.clone(),
            filter: filter(&args.filter),
            after,
            limit: Some(limit),
        };
        let Answer::Messages(page) = operator.ask(request).await? else {
            return Err(unexpected());
        };
        let show = |it| if args.bus.json { line(it) } else { row(it) };
        let rows: String = page.messages.iter().map(show).collect();
        print(&(std::mem::take(&mut heading).to_owned() + &rows))?;
        left = left.saturating_sub(page.messages.len() as u64);
        after = page.after;
        if left == 0 || after.is_none() {
            return Ok((args.limit - left, after.is_some()));
        }
    }
}

fn row(row: &MessageRow) -> String {
    format!(
        "{} \t{} \t{} \t{} \t{} \t{} \t{} \t{} \t{} \t{} \t{} \t{}\n",
        row.id,
        row.state.as_str(),
        time(row.sent_at),
        or_none(row.key.as_deref()),
        or_none(row.correlation_id.as_deref()),
        row.body_bytes,
        row.deliveries,
        row.backouts,
        or_none(row.original_destination.as_deref().map(short)),
        or_none(row.reason.map(|it| it.as_str())),
        or_none(row.cause.map(|it| it.as_str())),
        time_or_none(row.failed_at),
    )
}

const HEADING: &str = "ID: \tState: \tSent: \tKey: \tCorrelation: \tBytes: \tDeliveries: \tBackouts: \tFrom: \t\
                       Reason: \tCause: \tFailed:\n";

/// `bus msg show`.
pub(super) async fn show(args: &MsgShowArgs) -> Result<(), Failure> {
    let mut operator = Operator::connect(&args.bus).await?;
    let request = Request::MsgShow {
        queue: args.queue.clone(),
        id: args.id,
        body: None,
    };
    let answer = operator.ask(request).await;
    operator.close().await;
    let Answer::Message(shown) = answer? else {
        return Err(unexpected());
    };
    if args.bus.json {
        return print_done(&line(&shown));
    }
    print_done(&(detail(&shown) + "\n" + &body(&shown.body)))?;
    if shown.body.cut {
        let all = count(shown.message.body_bytes, "byte");
        say(&format!("the body has {all}, of which the first are shown"));
    }
    Ok(())
}

fn detail(shown: &MessageDetail) -> String {
    let row = &shown.message;
    let origin = Some(row.origin.as_str()).filter(|origin| !origin.is_empty());
    let fields = [
        ("ID", row.id.to_string()),
        ("Queue", one_line(short(&shown.queue))),
        ("State", row.state.as_str().to_owned()),
        ("Waits until", time_or_none(row.waits_until)),
        ("In hand of", or_none(shown.holder.as_deref())),
        (
            "From",
            or_none(row.original_destination.as_deref().map(short)),
        ),
        ("Reason", or_none(row.reason.map(|it| it.as_str()))),
        ("Cause", or_none(row.cause.map(|it| it.as_str()))),
        ("Failed", time_or_none(row.failed_at)),
        ("Deliveries", row.deliveries.to_string()),
        ("Backouts", row.backouts.to_string()),
        ("Sent", time(row.sent_at)),
        ("Sent by", or_none(origin)),
        ("Sent to", one_line(&shown.destination)),
        ("Reply to", or_none(shown.reply_to.as_deref())),
        ("Correlation", or_none(row.correlation_id.as_deref())),
        ("Key", or_none(row.key.as_deref())),
        ("Priority", row.priority.to_string()),
        (
            "Persistent",
            if row.persistent { "yes" } else { "no" }.to_owned(),
        ),
        ("Not before", time_or_none(shown.not_before)),
        ("Expires", time_or_none(row.expires_at)),
        ("Bytes", row.body_bytes.to_string()),
    ];
    let headers = shown.headers.iter();
    let headers = headers.map(|(name, value)| (one_line(name), one_line(value)));
    table(fields) + &table(headers)
}

/// What is told of one thing, a line each.
pub(super) fn table(fields: impl IntoIterator<Item = (impl Display, String)>) -> String {
    let fields = fields.into_iter();
    fields
        .map(|(name, value)| format!("{name}: \t{value}\n"))
        .collect()
}

/// A body for people: its lines, or its bytes in hex, 32 to a line.
fn body(body: &Body) -> String {
    if let Some(text) = &body.text {
        let lines = text.lines();
        // A tab does no harm.
        let lines = lines.map(|line| {
            line.split('\t')
                .map(one_line)
                .collect::<Vec<_>>()
                .join("\t")
        });
        return lines.map(|line| line + "\n").collect();
    }
    let mut text = String::new();
    for (at, digit) in body.hex.as_deref().unwrap_or_default().chars().enumerate() {
        if at > 0 && at.is_multiple_of(64) {
            text.push('\n');
        }
        text.push(digit);
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_make_no_mischief() {
        let of = |text: Option<&str>, hex: Option<String>| {
            body(&Body {
                text: text.map(str::to_owned),
                hex,
                cut: false,
            })
        };
        assert_eq!(
            of(Some("a\tb\r\nc\x1b[1m\rd"), None),
            "a\tb\nc\\u{1b}[1m\\rd\n"
        );
        let hex = of(None, Some("00".repeat(33)));
        assert_eq!(hex, format!("{}\n00\n", "00".repeat(32)));
    }
}
