//! The client's half: its machines against peers that say what a script says.
//!
//! Each row is a rule of the protocol: a conversation, what arrives, and the events that must come of it, in order and
//! to the last. Where the rule is about requests, they are looked at too. The table is printed; rows that differ are
//! named.

mod identifying;
mod model;
mod operations;
mod peers;
mod performing;
mod play;
mod suite;

use play::Play;

/// A rule and how it shows.
struct Row {
    /// What the rule says.
    rule: &'static str,
    /// The conversation: its operation, the pillars asked, and options.
    conversation: &'static str,
    /// What arrives, in order.
    arrivals: &'static str,
    /// The events, in order, without the first one (`IDENTIFY_REQUEST_SENT`).
    events: &'static str,
    /// The operation requests and what they have (`+`) and have not (`-`); not looked at if empty.
    requests: &'static str,
}

const fn row(
    rule: &'static str,
    conversation: &'static str,
    arrivals: &'static str,
    events: &'static str,
) -> Row {
    Row {
        rule,
        conversation,
        arrivals,
        events,
        requests: "",
    }
}

impl Row {
    const fn asking(mut self, requests: &'static str) -> Self {
        self.requests = requests;
        self
    }

    /// What differs; none if all is as the rule says.
    fn difference(&self) -> Option<String> {
        let mut play = Play::begin(self.conversation);
        for arrival in parts(self.arrivals) {
            play.arrive(arrival);
        }
        let events = play.events();
        let expected: Vec<&str> = parts(self.events).collect();
        if events != expected {
            return Some(format!("events: {events:?}\n    instead: {expected:?}"));
        }
        let requests = (!self.requests.is_empty()).then(|| play.requests_differ(self.requests));
        requests.flatten()
    }
}

/// What semicolons separate.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split(';').map(str::trim).filter(|it| !it.is_empty())
}

/// Rules without a row, and why.
const LEFT_OUT: &[(&str, &str)] = &[
    (
        "ResultAddress is made from the URL and the pillar's id",
        "this client has listings sent inline and never names a result address",
    ),
    (
        "a listing's first page may be asked for without limits",
        "this client always pages: MinTimestamp and MaxNumberOfResults are in every request",
    ),
    (
        "ended conversations stay known until the next cleaning",
        "a conversation is forgotten when it ends; what comes later finds none",
    ),
    (
        "an event handler that panics breaks nothing",
        "shown over the real client: u49",
    ),
    (
        "blocking calls return once the last event is out",
        "shown over the real client by everything that awaits an outcome",
    ),
    (
        "a conversation is known before its identify request is sent",
        "shown over the real client by everything that gets an answer",
    ),
    (
        "a printed event: short id, operation, file, name, extra, text",
        "shown beside the type, text for text",
    ),
    (
        "contributors that are no pillars (GetAuditTrails, GetStatus)",
        "the settings have none",
    ),
    (
        "a delete that nobody supports is complete",
        "deliberately not: nothing was deleted, so it is FAILED (see the row)",
    ),
    (
        "a put to nobody is complete",
        "deliberately not: nothing was stored, so it is FAILED (see the row)",
    ),
    (
        "the first failure of a GetFile ends it",
        "deliberately not: the next fastest pillar is asked (see the rows)",
    ),
];

#[test]
fn every_rule_of_the_clients_conversations() {
    let tables = [
        ("all conversations", model::ROWS),
        ("identifying", identifying::ROWS),
        ("performing", performing::ROWS),
        ("operations", operations::ROWS),
        ("the suite of the Java clients", suite::ROWS),
    ];
    let mut differing = Vec::new();
    for (title, rows) in tables {
        println!("== {title}");
        for row in rows {
            let difference = row.difference();
            let verdict = if difference.is_none() {
                "ok"
            } else {
                "DIFFERS"
            };
            println!("{verdict:8}{} | {}", row.rule, row.conversation);
            println!("        < {}", row.arrivals);
            println!("        > {}", row.events);
            let named = |it| format!("{title}: {} | {}\n    {it}", row.rule, row.conversation);
            differing.extend(difference.map(named));
        }
    }
    println!("== left out");
    for (rule, reason) in LEFT_OUT {
        println!("        {rule}: {reason}");
    }
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}

/// A table that takes everything for right shows nothing.
#[test]
fn a_row_that_is_wrong_is_noticed() {
    let right = row(
        "a file is deleted",
        "DeleteFile north",
        "identify north POSITIVE; final north COMPLETED",
        "COMPONENT_IDENTIFIED north; IDENTIFICATION_COMPLETE [north]; REQUEST_SENT [north]; \
         COMPONENT_COMPLETE north; COMPLETE [north]",
    );
    let asking = |requests| {
        row(right.rule, right.conversation, right.arrivals, right.events).asking(requests)
    };
    assert_eq!(right.difference(), None);
    assert_eq!(
        asking("DeleteFileRequest north +PillarID").difference(),
        None
    );
    let wrong = [
        asking("DeleteFileRequest south"),
        asking("DeleteFileRequest north -PillarID"),
        asking("DeleteFileRequest north; DeleteFileRequest north"),
        row(
            right.rule,
            right.conversation,
            right.arrivals,
            "COMPLETE []",
        ),
        row(
            right.rule,
            right.conversation,
            "identify north POSITIVE; final north FAILURE",
            right.events,
        ),
    ];
    for row in wrong {
        assert!(row.difference().is_some());
    }
}
