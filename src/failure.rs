//! How a command fails: one line for a person, one exit code for a program.

use std::{fmt, process::ExitCode};

use pillarbox_client::Telling;

use crate::output::{one_line, say};

/// What the exit code tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// Arguments or settings are wrong; nothing was connected to yet. Exit code 1.
    Usage,
    /// The operation failed. Exit code 255.
    Operation,
    /// The user stopped it. Exit code 130.
    Interrupted,
    /// Whoever read the results has gone, and nothing had failed until then. Exit code 0.
    Unheard,
}

impl FailureKind {
    /// The process's exit code.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Usage => 1,
            Self::Operation => 255,
            Self::Interrupted => 130,
            Self::Unheard => 0,
        }
    }
}

/// Why a command ends without success.
#[derive(Debug)]
pub struct Failure {
    kind: FailureKind,
    text: String,
    /// The operation whose end this is. Until it is reported, that counts as not told.
    telling: Option<Telling>,
}

impl Failure {
    const fn new(kind: FailureKind, text: String) -> Self {
        Self {
            kind,
            text,
            telling: None,
        }
    }

    /// Arguments are wrong.
    pub fn usage(cause: impl fmt::Display) -> Self {
        Self::new(FailureKind::Usage, one_line(cause))
    }

    /// Settings are wrong, perhaps in several places: one line each.
    pub fn settings(problems: impl IntoIterator<Item = impl fmt::Display>) -> Self {
        let lines: Vec<String> = problems.into_iter().map(one_line).collect();
        Self::new(FailureKind::Usage, lines.join("\n"))
    }

    /// The operation failed.
    pub fn operation(cause: impl fmt::Display) -> Self {
        Self::new(FailureKind::Operation, one_line(cause))
    }

    /// Whoever read the results has seen enough: there is nothing to say about that.
    #[must_use]
    pub const fn unheard() -> Self {
        Self::new(FailureKind::Unheard, String::new())
    }

    /// The user stopped it.
    #[must_use]
    pub fn interrupted() -> Self {
        Self::new(FailureKind::Interrupted, "interrupted".to_owned())
    }

    /// This is the end of the operation, which is told when this is reported.
    pub(crate) fn of(mut self, telling: Telling) -> Self {
        self.telling = Some(telling);
        self
    }

    /// Nobody needs to know.
    pub(crate) fn pass_over(self) {
        if let Some(telling) = self.telling {
            telling.told();
        }
    }

    /// Whether nobody reads the results any more.
    #[must_use]
    pub const fn is_unheard(&self) -> bool {
        matches!(self.kind, FailureKind::Unheard)
    }

    /// Tells the person on standard error and gives the process's exit code.
    #[must_use]
    pub fn report(self) -> ExitCode {
        for line in self.text.lines() {
            say(&format!("pillarbox: {line}"));
        }
        let code = ExitCode::from(self.kind.code());
        self.pass_over();
        code
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes() {
        assert_eq!(FailureKind::Usage.code(), 1);
        assert_eq!(FailureKind::Operation.code(), 255);
        assert_eq!(FailureKind::Interrupted.code(), 130);
        assert_eq!(FailureKind::Unheard.code(), 0);
    }

    #[test]
    fn one_line_each() {
        assert_eq!(Failure::usage("a\nb\x1b[1m").to_string(), "a\\nb\\u{1b}[1m");
        assert_eq!(
            Failure::settings(["a\r", "\u{e6}"]).to_string(),
            "a\\r\n\u{e6}"
        );
    }
}
