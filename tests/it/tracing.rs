//! The log lines of one put, from four kinds of processes, joined by its correlation id.

use std::process::Command;

use serde_json::Value;

use crate::support::{
    noise,
    process::{self, Running},
    site::Site,
};

/// A process that logs everything of ours as JSON.
fn logging(mut command: Command) -> Running {
    command.args(["--log", "json"]);
    command.env(
        "PILLARBOX_LOG",
        "pillarbox=debug,pillarbox_bus=debug,pillarbox_client=debug,pillarbox_pillar=debug",
    );
    Running::spawn(command)
}

fn node(site: &Site, part: &str) -> Running {
    let settings = site.part(part);
    let args = ["node".as_ref(), "-s".as_ref(), settings.as_os_str()];
    let mut node = logging(process::pillarbox(args));
    node.wait_for("ready");
    node
}

/// A line's field, wherever it stands: with the event or in a span around it.
fn field<'a>(line: &'a Value, name: &str) -> Option<&'a str> {
    let spans = line["spans"].as_array().into_iter().flatten();
    std::iter::once(&line["fields"])
        .chain(spans)
        .find_map(|fields| fields[name].as_str())
}

/// What an ended process has logged.
fn lines(process: &mut Running) -> Vec<Value> {
    let lines = process.errors().iter();
    lines
        .filter(|line| line.starts_with('{'))
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The lines of one conversation.
fn joined(process: &mut Running, correlation: &str) -> Vec<Value> {
    process.terminate();
    process.wait_for_success();
    let mut lines = lines(process);
    lines.retain(|line| field(line, "correlation") == Some(correlation));
    lines
}

#[track_caller]
fn assert_said(lines: &[Value], fields: &[(&str, &str)]) {
    let fits = |line: &Value| {
        fields
            .iter()
            .all(|(name, value)| field(line, name) == Some(value))
    };
    assert!(
        lines.iter().any(fits),
        "no line with {fields:?} in {lines:#?}"
    );
}

#[test]
fn the_lines_of_one_put_are_joined_by_its_correlation_id() {
    let site = Site::new(&["north", "south"]);
    let mut hub = node(&site, "hub");
    let mut pillars = ["north", "south"].map(|pillar| (pillar, node(&site, pillar)));
    for name in ["other.bin", "traced.bin"] {
        site.file(name, &noise(50, 500));
    }
    process::succeed(&site.run("put-file", ["-f", "other.bin"]));
    let args = ["-f", "traced.bin", "--client-id", "ingest-1"];
    let mut client = logging(site.prepare("put-file", args));
    client.wait_for_success();

    let told = lines(&mut client);
    let finished = told
        .iter()
        .find(|line| field(line, "message") == Some("operation finished"));
    let correlation = field(finished.unwrap(), "correlation").unwrap().to_owned();
    let put = [
        ("correlation", &*correlation),
        ("collection", "books"),
        ("file", "traced.bin"),
    ];
    let with = |more: &[(&'static str, &'static str)]| [&put[..], more].concat();
    assert_said(
        &told,
        &with(&[
            ("component", "ingest-1"),
            ("op", "PutFile"),
            ("result", "COMPLETE"),
        ]),
    );

    for (pillar, process) in &mut pillars {
        let lines = joined(process, &correlation);
        assert_said(
            &lines,
            &with(&[
                ("pillar", pillar),
                ("op", "IdentifyPillarsForPutFileRequest"),
                ("from", "ingest-1"),
            ]),
        );
        assert_said(
            &lines,
            &with(&[
                ("pillar", pillar),
                ("op", "PutFileRequest"),
                ("code", "OPERATION_COMPLETED"),
            ]),
        );
        assert!(
            lines
                .iter()
                .all(|line| field(line, "file") == Some("traced.bin")),
            "{lines:#?}"
        );
    }
    let lines = joined(&mut hub, &correlation);
    for (client, op) in [
        ("ingest-1", "PutFileRequest"),
        ("north", "PutFileFinalResponse"),
        ("south", "PutFileFinalResponse"),
    ] {
        assert_said(
            &lines,
            &[
                ("correlation", &correlation),
                ("collection", "books"),
                ("client", client),
                ("op", op),
            ],
        );
    }
}
