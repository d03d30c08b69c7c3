//! What is wrong with settings: where, why, and what to do about it.

use std::fmt;

use thiserror::Error;

/// Where a setting was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// In a file.
    File {
        /// The file's name as it was given to the reader.
        file: String,
        /// The line, counted from 1; none if the problem concerns the whole file.
        line: Option<usize>,
    },
    /// In the environment.
    Environment {
        /// The variable's name.
        variable: String,
    },
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File {
                file,
                line: Some(line),
            } => write!(f, "{file}:{line}"),
            Self::File { file, line: None } => f.write_str(file),
            Self::Environment { variable } => write!(f, "environment variable {variable}"),
        }
    }
}

/// One thing that is wrong; [`fmt::Display`] writes it as one line, `FILE:LINE: cause; next step`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where the setting was given.
    pub origin: Origin,
    /// What is wrong.
    pub cause: String,
    /// What to do about it.
    pub next_step: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.origin, self.cause, self.next_step)
    }
}

/// Settings that can't be used, with everything that is wrong with them at once.
///
/// [`fmt::Display`] writes one line per problem.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}", lines(problems))]
pub struct SettingsError {
    problems: Vec<Problem>,
}

impl SettingsError {
    /// What is wrong, in the order of the files.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// An error about a whole file.
    pub(crate) fn of_file(file: &str, cause: String, next_step: &str) -> Self {
        let origin = Origin::File {
            file: file.to_owned(),
            line: None,
        };
        Self {
            problems: vec![Problem {
                origin,
                cause,
                next_step: next_step.to_owned(),
            }],
        }
    }

    /// `value`, unless there are problems.
    pub(crate) fn unless_empty<T>(problems: Vec<Problem>, value: T) -> Result<T, Self> {
        if problems.is_empty() {
            Ok(value)
        } else {
            Err(Self::new(problems))
        }
    }

    /// These problems, those of a file in the order of its lines.
    pub(crate) fn new(mut problems: Vec<Problem>) -> Self {
        problems.sort_by_key(|problem| match &problem.origin {
            Origin::File { line, .. } => line.unwrap_or_default(),
            Origin::Environment { .. } => usize::MAX,
        });
        Self { problems }
    }

    /// Both errors' problems, these first.
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.problems.extend(other.problems);
        self
    }
}

fn lines(problems: &[Problem]) -> String {
    let lines: Vec<String> = problems.iter().map(Problem::to_string).collect();
    lines.join("\n")
}
