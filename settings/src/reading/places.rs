//! Where in a file every key stands.

use std::{collections::BTreeMap, ops::Range};

use toml::de::{DeTable, DeValue};

use crate::{environment::Override, problem::Origin};

/// Where each value was given: by path, `collections.0.pillars.1`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lines {
    file: String,
    /// Byte offsets at which lines start.
    starts: Vec<usize>,
    places: BTreeMap<String, Place>,
    /// Paths that the environment has set, with the variable.
    overridden: BTreeMap<String, String>,
}

#[derive(Clone, Debug)]
struct Place {
    line: usize,
    value: Range<usize>,
}

impl Lines {
    pub(crate) fn new(text: &str, file: &str, table: &DeTable<'_>) -> Self {
        let line_ends = text.match_indices('\n').map(|(at, _)| at + 1);
        let starts = std::iter::once(0).chain(line_ends).collect();
        let mut lines = Self {
            file: file.to_owned(),
            starts,
            ..Self::default()
        };
        lines.enter_table("", table);
        lines
    }

    /// Notes which values come from the environment.
    pub(crate) fn override_with(&mut self, overrides: Vec<Override>) {
        self.overridden.extend(
            overrides
                .into_iter()
                .map(|it| (it.path.to_owned(), it.variable)),
        );
    }

    /// Where the value at this path was given, or the nearest table around it.
    pub(crate) fn origin(&self, path: &str) -> Origin {
        let mut path = path;
        loop {
            if let Some(variable) = self.overridden.get(path) {
                return Origin::Environment {
                    variable: variable.clone(),
                };
            }
            if let Some(place) = self.places.get(path) {
                return self.at_line(Some(place.line));
            }
            match path.rsplit_once('.') {
                Some((parent, _)) => path = parent,
                None => return self.at_line(None),
            }
        }
    }

    pub(crate) fn origin_of_span(&self, span: Option<Range<usize>>) -> Origin {
        self.at_line(span.map(|span| self.line(span.start)))
    }

    /// The key whose value holds this span, without list positions.
    pub(crate) fn key_at(&self, span: &Range<usize>) -> Option<String> {
        let holding = self
            .places
            .iter()
            .filter(|(_, place)| holds(&place.value, span));
        let (path, _) = holding.min_by_key(|(_, place)| place.value.len())?;
        let names: Vec<&str> = path
            .split('.')
            .filter(|part| part.parse::<usize>().is_err())
            .collect();
        Some(names.join("."))
    }

    fn at_line(&self, line: Option<usize>) -> Origin {
        Origin::File {
            file: self.file.clone(),
            line,
        }
    }

    fn line(&self, offset: usize) -> usize {
        self.starts.partition_point(|start| *start <= offset)
    }

    fn enter_table(&mut self, path: &str, table: &DeTable<'_>) {
        for (key, value) in table {
            let path = join(path, key.get_ref());
            self.enter(&path, key.span().start, value.span(), value.get_ref());
        }
    }

    fn enter(&mut self, path: &str, start: usize, span: Range<usize>, value: &DeValue<'_>) {
        self.places.insert(
            path.to_owned(),
            Place {
                line: self.line(start),
                value: span,
            },
        );
        match value {
            DeValue::Table(table) => self.enter_table(path, table),
            DeValue::Array(array) => {
                for (at, element) in array.iter().enumerate() {
                    let path = join(path, &at.to_string());
                    self.enter(
                        &path,
                        element.span().start,
                        element.span(),
                        element.get_ref(),
                    );
                }
            }
            _ => {}
        }
    }
}

/// A path one step longer.
pub(crate) fn join(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}

/// Takes out the innermost key whose value holds this span; list positions stay as they are. Whether there
/// was one.
pub(crate) fn remove_value(table: &mut DeTable<'_>, span: &Range<usize>) -> bool {
    let mut holder = None;
    for (key, value) in table.iter_mut() {
        if remove_within(value.get_mut(), span) {
            return true;
        }
        if holds(&value.span(), span) {
            holder = Some(key.get_ref().to_string());
        }
    }
    holder.is_some_and(|key| table.remove(key.as_str()).is_some())
}

fn remove_within(value: &mut DeValue<'_>, span: &Range<usize>) -> bool {
    match value {
        DeValue::Table(table) => remove_value(table, span),
        DeValue::Array(array) => array
            .iter_mut()
            .any(|element| remove_within(element.get_mut(), span)),
        _ => false,
    }
}

/// Keeps the values that `keep` says yes to. It is asked about each key's value with the key's path, without
/// list positions, and with the span of the key, from the outside in.
pub(crate) fn retain_values(
    table: &mut DeTable<'_>,
    path: &[&str],
    keep: &mut impl FnMut(&[&str], Range<usize>, &DeValue<'_>) -> bool,
) {
    let mut refused = Vec::new();
    for (key, value) in table.iter_mut() {
        let path: Vec<&str> = path
            .iter()
            .copied()
            .chain([key.get_ref().as_ref()])
            .collect();
        if !keep(&path, key.span(), value.get_ref()) {
            refused.push(key.get_ref().to_string());
            continue;
        }
        match value.get_mut() {
            DeValue::Table(inner) => retain_values(inner, &path, keep),
            DeValue::Array(array) => {
                for element in array.iter_mut() {
                    if let DeValue::Table(inner) = element.get_mut() {
                        retain_values(inner, &path, keep);
                    }
                }
            }
            _ => {}
        }
    }
    for key in refused {
        table.remove(key.as_str());
    }
}

fn holds(outer: &Range<usize>, inner: &Range<usize>) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}
