//! Collecting problems while settings are checked.

use std::fmt::Display;

use crate::{
    bus_url::{BusAddress, WrittenUrl},
    naming::id_problem,
    problem::Problem,
    reading::{Lines, did_you_mean},
};

/// What was found wrong so far, and where things stand.
#[derive(Debug)]
pub(crate) struct Checker<'a> {
    lines: &'a Lines,
    problems: Vec<Problem>,
}

impl<'a> Checker<'a> {
    pub(crate) const fn new(lines: &'a Lines) -> Self {
        Self {
            lines,
            problems: Vec::new(),
        }
    }

    pub(crate) fn finish(self) -> Vec<Problem> {
        self.problems
    }

    /// Notes that the value at this path is wrong.
    pub(crate) fn problem(&mut self, path: &str, cause: String, next_step: impl Into<String>) {
        let origin = self.lines.origin(path);
        self.problems.push(Problem {
            origin,
            cause,
            next_step: next_step.into(),
        });
    }

    pub(crate) const fn has_problems(&self) -> bool {
        !self.problems.is_empty()
    }

    /// Notes that the value at this path is wrong, unless something is already wrong in its line.
    pub(crate) fn first_problem(&mut self, path: &str, cause: String, next_step: &str) {
        let origin = self.lines.origin(path);
        if self.problems.iter().all(|problem| problem.origin != origin) {
            self.problem(path, cause, next_step);
        }
    }

    /// The value, or a problem if it is not what it should be. The error's text says behind a semicolon what
    /// to do.
    pub(crate) fn accept<T, E: Display>(&mut self, path: &str, value: Result<T, E>) -> Option<T> {
        match value {
            Ok(value) => Some(value),
            Err(error) => {
                let text = error.to_string();
                let (cause, next_step) = text.split_once("; ").unwrap_or((&text, "correct it"));
                self.problem(path, cause.to_owned(), next_step);
                None
            }
        }
    }

    /// The value, or a problem if there is none.
    pub(crate) fn require<'v, T>(
        &mut self,
        path: &str,
        value: Option<&'v T>,
        example: &str,
    ) -> Option<&'v T> {
        if value.is_none() {
            self.problem(
                path,
                format!("`{}` is missing", named(path)),
                format!("add {example}"),
            );
        }
        value
    }

    /// An id that can stand in destination names and in directory names.
    pub(crate) fn id(&mut self, path: &str, what: &str, id: &str) {
        let Some(next_step) = id_problem(id) else {
            return;
        };
        let shown: String = id.chars().take(40).collect();
        let cause = format!(
            "the {what} id `{}` can't be used in names",
            shown.escape_debug()
        );
        self.problem(path, cause, next_step);
    }

    /// A bus address with its place; refused if TLS would be needed.
    pub(crate) fn bus_address(&mut self, path: &str, written: &WrittenUrl) -> BusAddress {
        if written.url.uses_tls() {
            let cause = "TLS to the bus (stomp+ssl://) is not supported by this version".to_owned();
            self.problem(path, cause, "use stomp:// within a trusted network");
        }
        written.clone().at(self.lines.origin(path))
    }

    /// A name that must be one of the known ones.
    pub(crate) fn known(&mut self, path: &str, what: &str, name: &str, known: &[&str]) {
        if !known.contains(&name) {
            self.problem(
                path,
                format!("unknown {what} `{name}`"),
                did_you_mean(name, known),
            );
        }
    }

    /// A problem for every name in the list at this path that stands there before.
    pub(crate) fn once(&mut self, path: &str, what: &str, names: &[String]) {
        for (at, name) in names.iter().enumerate() {
            if names.iter().take(at).any(|earlier| earlier == name) {
                let cause = format!("the {what} `{name}` is named twice");
                self.problem(&format!("{path}.{at}"), cause, "name it once");
            }
        }
    }
}

/// A path without list positions.
fn named(path: &str) -> String {
    let names: Vec<&str> = path
        .split('.')
        .filter(|part| part.parse::<usize>().is_err())
        .collect();
    names.join(".")
}
