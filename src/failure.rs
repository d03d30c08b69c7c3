//! How a command fails: one line for a person, one exit code for a program.

use std::{fmt, process::ExitCode};

/// What the exit code tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// Arguments or settings are wrong; nothing was connected to yet. Exit code 1.
    Usage,
    /// The operation failed. Exit code 255.
    Operation,
    /// The user stopped it. Exit code 130.
    Interrupted,
}

impl FailureKind {
    /// The process's exit code.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Usage => 1,
            Self::Operation => 255,
            Self::Interrupted => 130,
        }
    }
}

/// Why a command ends without success.
#[derive(Clone, Debug)]
pub struct Failure {
    kind: FailureKind,
    text: String,
}

impl Failure {
    /// Arguments or settings are wrong.
    pub fn usage(cause: impl fmt::Display) -> Self {
        Self {
            kind: FailureKind::Usage,
            text: cause.to_string(),
        }
    }

    /// The operation failed.
    pub fn operation(cause: impl fmt::Display) -> Self {
        Self {
            kind: FailureKind::Operation,
            text: cause.to_string(),
        }
    }

    /// The user stopped it.
    #[must_use]
    pub fn interrupted() -> Self {
        Self {
            kind: FailureKind::Interrupted,
            text: "interrupted".to_owned(),
        }
    }

    /// What the exit code tells.
    #[must_use]
    pub const fn kind(&self) -> FailureKind {
        self.kind
    }

    /// Tells the person on standard error and gives the process's exit code.
    #[expect(clippy::print_stderr, reason = "the command line's own error line")]
    #[must_use]
    pub fn report(&self) -> ExitCode {
        if !self.text.is_empty() {
            eprintln!("pillarbox: {}", self.text);
        }
        ExitCode::from(self.kind.code())
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
    }
}
