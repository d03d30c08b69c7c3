//! `pillarbox bus queue`.

use pillarbox_bus::admin::{
    Answer, Attributes, ConsumerRow, LaneRow, QueueDetail, QueueRow, Request, SubscriptionRow,
};
use pillarbox_messages::wording::count;

use super::{Operator, line, message::table, or_none, short, time_or_none, unexpected};
use crate::{
    args::bus::{QueueListArgs, QueueShowArgs},
    failure::Failure,
    output::{one_line, print_done, say},
};

/// `bus queue list`.
pub(super) async fn list(args: &QueueListArgs) -> Result<(), Failure> {
    let mut operator = Operator::connect(&args.bus).await?;
    let rows = all(&mut operator).await;
    operator.close().await;
    let mut rows = rows?;
    rows.sort_by(|one, other| (one.kind, &one.name).cmp(&(other.kind, &other.name)));
    let text: String = match args.bus.json {
        true => rows.iter().map(line).collect(),
        false => std::iter::once(HEADING.to_owned())
            .chain(rows.iter().map(row))
            .collect(),
    };
    print_done(&text)?;
    let messages: u64 = rows.iter().map(|row| row.messages).sum();
    say(&format!(
        "{} in {}",
        count(messages, "message"),
        count(rows.len() as u64, "queue")
    ));
    Ok(())
}

async fn all(operator: &mut Operator) -> Result<Vec<QueueRow>, Failure> {
    let (mut rows, mut after) = (Vec::new(), None);
    loop {
        let limit = Some(usize::MAX);
        let Answer::Queues(page) = operator.ask(Request::QueueList { after, limit }).await? else {
            return Err(unexpected());
        };
        // Nobody wants to know of those who ask.
        let others = page.queues.into_iter();
        rows.extend(others.filter(|row| !row.is_for_answers()));
        after = page.after;
        if after.is_none() {
            return Ok(rows);
        }
    }
}

fn row(row: &QueueRow) -> String {
    format!(
        "{} \t{} \t{} \t{} \t{} \t{} \t{} \t{} \t{} \t{} \t{} \t{}\n",
        one_line(short(&row.name)),
        row.kind.as_str(),
        row.messages,
        row.ready,
        row.scheduled,
        row.in_flight,
        row.bytes,
        row.consumers,
        number(row.lanes),
        row.oldest_age_ms.map_or_else(|| "-".to_owned(), age),
        or_none(row.backout_queue.as_deref().map(short)),
        row.backed_out,
    )
}

const HEADING: &str = "Queue: \tKind: \tMessages: \tReady: \tScheduled: \tIn flight: \tBytes: \tConsumers: \t\
                       Lanes: \tOldest: \tBackout queue: \tBacked out:\n";

fn number(number: Option<u64>) -> String {
    number.map_or_else(|| "-".to_owned(), |number| number.to_string())
}

/// How long ago something was, in its largest unit.
fn age(ms: i64) -> String {
    let seconds = ms.max(0) / 1_000;
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// `bus queue show`.
pub(super) async fn show(args: &QueueShowArgs) -> Result<(), Failure> {
    let mut operator = Operator::connect(&args.bus).await?;
    let queue = args.queue.clone();
    let answer = operator.ask(Request::QueueShow { queue }).await;
    operator.close().await;
    let Answer::Queue(shown) = answer? else {
        return Err(unexpected());
    };
    if args.bus.json {
        return print_done(&line(&shown));
    }
    print_done(&detail(&shown))?;
    for (more, what) in [
        (shown.more_lanes, "lane"),
        (shown.more_consumers, "consumer"),
    ] {
        if more > 0 {
            say(&format!("and {} more", count(more, what)));
        }
    }
    Ok(())
}

fn detail(shown: &QueueDetail) -> String {
    let QueueRow {
        name,
        kind,
        topic,
        lasting,
        messages,
        ready,
        scheduled,
        in_flight,
        bytes,
        oldest_age_ms,
        backout_limit,
        backout_queue,
        backed_out,
        expired,
        ..
    } = &shown.queue;
    let limit = backout_limit.map(u64::from);
    let fields = [
        ("Queue", one_line(short(name))),
        ("Kind", kind.as_str().to_owned()),
        ("Topic", or_none(topic.as_deref())),
        ("Outlives a restart", yes(*lasting)),
        ("Messages", messages.to_string()),
        ("Ready", ready.to_string()),
        ("Scheduled", scheduled.to_string()),
        ("In flight", in_flight.to_string()),
        ("Bytes", bytes.to_string()),
        ("Oldest", oldest_age_ms.map_or_else(|| "-".to_owned(), age)),
        ("Backout limit", number(limit)),
        (
            "Backout queue",
            or_none(backout_queue.as_deref().map(short)),
        ),
        ("Backed out", backed_out.to_string()),
        ("Expired", expired.to_string()),
    ];
    let mut text = table(fields) + &table(attributes(&shown.attributes));
    if let Some(drain) = &shown.drain {
        let left = count(drain.messages, "message");
        let lanes = one_line(&drain.lanes);
        text.push_str(&format!("Emptied first: \t{left} with lanes {lanes}\n"));
    }
    let subscription = shown.subscription.iter();
    text.extend(subscription.map(|it| table(limits(it))));
    if !shown.lanes.is_empty() {
        text.push_str("\nLane: \tMessages: \tIn flight: \tRetrying: \tOwner:\n");
        text.extend(shown.lanes.iter().map(lane));
    }
    if !shown.consumers.is_empty() {
        text.push_str("\nConsumer: \tConnection: \tPrefetch: \tIn flight: \tSelector:\n");
        text.extend(shown.consumers.iter().map(consumer));
    }
    text
}

fn limits(of: &SubscriptionRow) -> [(&'static str, String); 7] {
    let longest = of.max_offline_ms.map(|ms| format!("{ms} ms"));
    [
        ("Most messages", number(of.max_messages)),
        ("Most bytes", of.max_bytes.to_string()),
        ("Longest away", longest.unwrap_or_else(|| "-".to_owned())),
        ("On limit", one_line(&of.on_limit)),
        ("Away since", time_or_none(of.away_since)),
        ("Missed", of.missed.to_string()),
        ("Missed since", time_or_none(of.missed_since)),
    ]
}

fn yes(yes: bool) -> String {
    if yes { "yes" } else { "no" }.to_owned()
}

fn attributes(of: &Attributes) -> [(&'static str, String); 9] {
    let words = |words: &[String]| match words {
        [] => "-".to_owned(),
        words => one_line(words.join(", ")),
    };
    [
        ("Order", words(&of.order)),
        ("Out of order", words(&of.out_of_order)),
        ("Lanes", one_line(&of.lanes)),
        ("Lane hash", or_none(of.lane_hash.as_deref())),
        ("Require key", yes(of.require_key)),
        ("On lane poison", one_line(&of.on_lane_poison)),
        ("Retry delay", format!("{} ms", of.retry_delay_ms)),
        (
            "Longest retry delay",
            format!("{} ms", of.retry_delay_max_ms),
        ),
        (
            "Expiry queue",
            or_none(of.expiry_queue.as_deref().map(short)),
        ),
    ]
}

fn lane(lane: &LaneRow) -> String {
    format!(
        "{} \t{} \t{} \t{} \t{}\n",
        one_line(&lane.lane),
        lane.messages,
        lane.in_flight,
        lane.retrying,
        or_none(lane.owner.as_deref())
    )
}

fn consumer(consumer: &ConsumerRow) -> String {
    let client = Some(consumer.client.as_str()).filter(|client| !client.is_empty());
    format!(
        "{} \t{} \t{} \t{} \t{}\n",
        or_none(client),
        consumer.connection,
        consumer.prefetch,
        consumer.in_flight,
        or_none(consumer.selector.as_deref())
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages() {
        for (ms, told) in [
            (-5, "0 s"),
            (119_999, "119 s"),
            (120_000, "2 min"),
            (7_199_999, "119 min"),
            (7_200_000, "2 h"),
            (172_800_000, "2 d"),
        ] {
            assert_eq!(age(ms), told);
        }
    }
}
