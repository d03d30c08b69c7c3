//! What the recorded client's command was, and what came of it.

use std::fs;

use super::capture::{self, Capture};

/// A recorded run of the command line client.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) arguments: Vec<String>,
    pub(crate) exit_code: i32,
    pub(crate) stdout: String,
}

impl Run {
    /// The run that made a recorded conversation; none if another program did.
    pub(crate) fn of(capture: &Capture) -> Option<Self> {
        let wire = capture::directory("a recorded run")?;
        let text = fs::read_to_string(wire.join(&capture.name).join("cli.txt")).unwrap();
        Self::parse(&text)
    }

    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let arguments = lines.next()?.strip_prefix("$ bin/bitmag.sh ")?;
        let code = lines.next()?.strip_prefix("exit code: ")?.split(' ').next();
        let (_, output) = text.split_once("--- stdout\n")?;
        let (stdout, _) = output.split_once("--- stderr\n")?;
        Some(Self {
            arguments: arguments.split(' ').map(str::to_owned).collect(),
            exit_code: code?.parse().expect("an exit code"),
            stdout: stdout.to_owned(),
        })
    }

    /// The outcome, line by line.
    pub(crate) fn outcome(&self) -> Vec<String> {
        outcome(self.exit_code, &self.stdout)
    }
}

/// Exit code and standard output, line by line.
pub(crate) fn outcome(exit_code: i32, stdout: &str) -> Vec<String> {
    let lines = stdout.lines().map(|line| format!("stdout {line}"));
    std::iter::once(format!("exit code {exit_code}"))
        .chain(lines)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_read() {
        let text = "$ bin/bitmag.sh get-file -c books -v\nexit code: 255   wall: 1.0 s   MODE=plain\n\
                    --- stdout\na\tb\n--- stderr\nFailure: c\n";
        let run = Run::parse(text).unwrap();
        assert_eq!(run.arguments, ["get-file", "-c", "books", "-v"]);
        assert_eq!(run.outcome(), ["exit code 255", "stdout a\tb"]);
        assert!(Run::parse(&text.replace("bitmag", "labclient")).is_none());
    }
}
