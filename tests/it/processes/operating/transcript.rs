//! What is typed and shown, with what differs from run to run replaced.

use std::process::Command;

use crate::support::{
    process::{stderr, stdout},
    site::Site,
};

/// A sequence of commands with what they have shown.
pub(super) struct Transcript {
    hidden: Vec<(String, &'static str)>,
    text: String,
}

impl Transcript {
    pub(super) fn of(site: &Site) -> Self {
        let program = env!("CARGO_BIN_EXE_pillarbox").to_owned();
        let site = site.path().display().to_string();
        Self {
            hidden: vec![(program, "pillarbox"), (site, "SITE")],
            text: String::new(),
        }
    }

    /// Whatever this is, it is written as that.
    pub(super) fn hide(&mut self, what: &str, name: &'static str) {
        self.hidden.push((what.to_owned(), name));
    }

    /// Runs a command that is written as it stands in the transcript, and returns its standard output.
    pub(super) fn run(&mut self, command: &str) -> String {
        let mut line = command.to_owned();
        for (what, name) in &self.hidden {
            line = line.replace(name, what);
        }
        self.run_as_written(&line)
    }

    /// Gives this line to a shell.
    pub(super) fn run_as_written(&mut self, line: &str) -> String {
        let shell = Command::new("sh").args(["-c", line]).output();
        let output = shell.expect("there is a shell");
        let (shown, told) = (stdout(&output), stderr(&output));
        self.text.push_str(&format!("$ {line}\n{shown}"));
        self.text
            .extend(told.lines().map(|line| format!("! {line}\n")));
        if !output.status.success() {
            self.text.push_str(&format!("? {}\n", output.status));
        }
        shown
    }

    /// Compares line by line.
    #[track_caller]
    pub(super) fn compare(&self, expected: &str) {
        let mut text = without_times(&self.text);
        // What was hidden later may contain what was hidden before.
        for (what, name) in self.hidden.iter().rev() {
            text = text.replace(&without_times(what), name);
        }
        let seen = without_sizes(&text);
        for (number, (seen, expected)) in seen.lines().zip(expected.lines()).enumerate() {
            assert_eq!(seen, expected, "line {}", number + 1);
        }
        assert_eq!(seen.lines().count(), expected.lines().count(), "{seen}");
    }
}

/// Times look like `2026-01-31T12:00:00.000Z`.
fn without_times(text: &str) -> String {
    let shape = "dddd-dd-ddTdd:dd:dd.dddZ".as_bytes();
    let bytes = text.as_bytes();
    let fits = |at: usize| {
        let found = bytes.get(at..at + shape.len());
        found.is_some_and(|found| {
            let mut pairs = found.iter().zip(shape);
            pairs.all(|(byte, wanted)| match wanted {
                b'd' => byte.is_ascii_digit(),
                other => byte == other,
            })
        })
    };
    let mut seen = String::new();
    let mut skipped_to = 0;
    for (at, char) in text.char_indices() {
        if at < skipped_to {
            continue;
        }
        if fits(at) {
            seen.push_str("TIME");
            skipped_to = at + shape.len();
        } else {
            seen.push(char);
        }
    }
    seen
}

/// Of messages and queues, and how old they are: in their columns and lines.
fn without_sizes(text: &str) -> String {
    let mut columns: Vec<bool> = Vec::new();
    let mut seen = String::new();
    for line in text.lines() {
        let cells: Vec<&str> = line.split(" \t").collect();
        let volatile = |name: &str| ["Bytes:", "Oldest:"].contains(&name);
        if cells.len() > 2 && cells.iter().all(|cell| cell.ends_with(':')) {
            columns = cells.iter().map(|cell| volatile(cell)).collect();
        }
        let is_row = cells.len() == columns.len() && !cells[0].ends_with(':');
        let shown = cells.iter().enumerate().map(|(at, cell)| {
            let hidden = is_row && columns[at] || cells.len() == 2 && at == 1 && volatile(cells[0]);
            if hidden && *cell != "0" && *cell != "-" {
                "N"
            } else {
                cell
            }
        });
        seen.push_str(&shown.collect::<Vec<_>>().join(" \t"));
        seen.push('\n');
    }
    seen
}
