//! Reading a settings file twice: strictly, with the place of every key, so that errors name lines; and
//! layered, defaults below the file below the environment, for the values that count.

mod fields;
mod places;

use std::{fs, path::Path};

use config::{Config, File, FileFormat};
use serde::de::DeserializeOwned;
use toml::{
    Spanned,
    de::{DeTable, DeValue, Deserializer},
};

use crate::{
    environment::{Environment, Override},
    problem::{Origin, Problem, SettingsError},
};

pub(crate) use fields::field_names;
pub(crate) use places::Lines;

/// The shape of a settings file.
pub(crate) trait Shape: DeserializeOwned {
    /// Values of keys that are left out.
    const DEFAULTS: &'static str;
    /// The keys that the environment can set; `true` for lists.
    const ENVIRONMENT: &'static [(&'static str, bool)];

    /// Keys that people take for this file's but that belong in `node.toml`.
    const ELSEWHERE: &'static [&'static str] = &[];

    /// The lists of tables, without list positions.
    const LISTS: &'static [&'static [&'static str]];

    /// The keys that the table at this path can have; list positions are left out of the path.
    fn keys(path: &[&str]) -> &'static [&'static str];
}

/// A settings file that was read without finding anything wrong in its form.
#[derive(Clone, Debug)]
pub(crate) struct Document<T> {
    pub(crate) values: T,
    pub(crate) lines: Lines,
}

impl<T: Shape> Document<T> {
    /// Reads `text`; `name` stands for the file in errors.
    pub(crate) fn read(
        text: &str,
        name: &str,
        environment: &Environment,
    ) -> Result<Self, SettingsError> {
        let (table, errors) = DeTable::parse_recoverable(text);
        let mut lines = Lines::new(text, name, table.get_ref());
        if !errors.is_empty() {
            let problems = errors.iter().map(|error| syntax_problem(error, &lines));
            return Err(SettingsError::new(problems.collect()));
        }
        let (_, mut problems) = read_strictly::<T>(table, &lines);
        let (overrides, wrong) = environment.overrides(T::ENVIRONMENT);
        problems.extend(wrong);
        problems.extend(overrides.iter().filter_map(override_problem::<T>));
        SettingsError::unless_empty(problems, ())?;
        let values = layered(T::DEFAULTS, text, &overrides)
            .map_err(|error| SettingsError::of_file(name, error.to_string(), LAYERS))?;
        lines.override_with(overrides);
        Ok(Self { values, lines })
    }
}

/// The text of a settings file.
pub(crate) fn read_text(path: &Path) -> Result<String, SettingsError> {
    let file = path.display().to_string();
    fs::read_to_string(path).map_err(|error| {
        let next_step = match error.kind() {
            std::io::ErrorKind::NotFound => "write it, or name another settings directory",
            std::io::ErrorKind::InvalidData => "save it as UTF-8",
            _ => "make it readable",
        };
        SettingsError::of_file(&file, format!("can't be read: {error}"), next_step)
    })
}

/// What to write instead of `word`: the nearest of the known ones, or all of them.
pub(crate) fn did_you_mean(word: &str, known: &[&str]) -> String {
    let farthest = 1 + word.chars().count() / 4;
    let lower = word.to_lowercase();
    let distance = |it: &str| strsim::damerau_levenshtein(&lower, &it.to_lowercase());
    let distances = known.iter().map(|it| (distance(it), it));
    if let Some((_, nearest)) = distances
        .min()
        .filter(|(distance, _)| *distance <= farthest)
    {
        return format!("did you mean `{nearest}`?");
    }
    if known.is_empty() {
        return "remove it".to_owned();
    }
    let all: Vec<String> = known.iter().map(|word| format!("`{word}`")).collect();
    format!("use {}", all.join(", "))
}

/// Reads the values as they stand in the file. After an error the value in question is taken out and the
/// rest is read again, so that all errors are found at once.
fn read_strictly<T: Shape>(
    mut table: Spanned<DeTable<'_>>,
    lines: &Lines,
) -> (Option<T>, Vec<Problem>) {
    let mut problems = misshapen::<T>(&mut table, lines);
    loop {
        let mut unknown = Vec::new();
        let deserializer = Deserializer::from(table.clone());
        let read = serde_ignored::deserialize(deserializer, |path| unknown.push(path_text(&path)));
        let error: toml::de::Error = match read {
            Ok(values) => {
                problems.extend(unknown.iter().map(|path| unknown_key::<T>(path, lines)));
                return (Some(values), problems);
            }
            Err(error) => error,
        };
        problems.push(value_problem(&error, lines));
        if !error
            .span()
            .is_some_and(|span| places::remove_value(table.get_mut(), &span))
        {
            return (None, problems);
        }
    }
}

/// Takes out what is a table instead of a list of tables or the other way round, which serde would partly
/// let pass: it reads a list as the fields of a table in their order.
fn misshapen<T: Shape>(table: &mut Spanned<DeTable<'_>>, lines: &Lines) -> Vec<Problem> {
    let mut problems = Vec::new();
    places::retain_values(table.get_mut(), &[], &mut |path, span, value| {
        let list = T::LISTS.contains(&path);
        let fits = match value {
            _ if T::keys(path).is_empty() => true,
            DeValue::Table(_) => !list,
            DeValue::Array(elements) => list && elements.iter().all(|it| it.get_ref().is_table()),
            _ => false,
        };
        if !fits {
            let name = path.join(".");
            let (cause, next_step) = if list {
                (
                    format!("`{name}` is no list of tables"),
                    format!("write each as [[{name}]]"),
                )
            } else {
                (
                    format!("`{name}` is no table"),
                    format!("write it as [{name}]"),
                )
            };
            problems.push(Problem {
                origin: lines.origin_of_span(Some(span)),
                cause,
                next_step,
            });
        }
        fits
    });
    problems
}

/// The effective values: defaults, overridden by the file, overridden by the environment.
fn layered<T: DeserializeOwned>(
    defaults: &str,
    text: &str,
    overrides: &[Override],
) -> Result<T, config::ConfigError> {
    let mut builder = Config::builder()
        .add_source(File::from_str(defaults, FileFormat::Toml))
        .add_source(File::from_str(text, FileFormat::Toml));
    for it in overrides {
        builder = builder.set_override(it.path, it.value.clone())?;
    }
    builder.build()?.try_deserialize()
}

fn override_problem<T: Shape>(it: &Override) -> Option<Problem> {
    let error = layered::<T>("", "", std::slice::from_ref(it)).err()?;
    let message = match &error {
        config::ConfigError::At { error, .. } => error.to_string(),
        error => error.to_string(),
    };
    let message = message.split(" for key `").next().unwrap_or_default();
    let (cause, next_step) = cause_and_next_step(message);
    Some(Problem {
        origin: Origin::Environment {
            variable: it.variable.clone(),
        },
        cause,
        next_step,
    })
}

fn syntax_problem(error: &toml::de::Error, lines: &Lines) -> Problem {
    let cause = error.message().replace('\n', ", ");
    let origin = lines.origin_of_span(error.span());
    Problem {
        origin,
        cause,
        next_step: "correct the TOML".to_owned(),
    }
}

fn value_problem(error: &toml::de::Error, lines: &Lines) -> Problem {
    let (cause, next_step) = cause_and_next_step(error.message());
    let key = error.span().and_then(|span| lines.key_at(&span));
    let cause = match key {
        Some(key) => format!("`{key}`: {cause}"),
        None => cause,
    };
    Problem {
        origin: lines.origin_of_span(error.span()),
        cause,
        next_step,
    }
}

/// Our own errors say what to do behind a semicolon; for the deserializer's we know what it expected.
fn cause_and_next_step(message: &str) -> (String, String) {
    let message = message.trim().replace('\n', ", ");
    if let Some((cause, next_step)) = message.split_once("; ") {
        return (cause.to_owned(), next_step.to_owned());
    }
    let next_step = match message
        .rsplit_once("expected ")
        .map(|(_, expected)| expected)
    {
        Some("a string" | "path string") => "put it in quotes",
        Some("a sequence") => "put it in square brackets",
        Some("a boolean") => "write true or false",
        Some("u32" | "u64" | "a nonzero u64") => "write a whole number above 0",
        Some(expected) if expected.starts_with("struct ") || expected == "a map" => {
            "make it a table"
        }
        _ => "correct the value",
    };
    (message, next_step.to_owned())
}

fn unknown_key<T: Shape>(path: &str, lines: &Lines) -> Problem {
    let names: Vec<&str> = path
        .split('.')
        .filter(|part| part.parse::<usize>().is_err())
        .collect();
    let (key, parents) = names
        .split_last()
        .map_or(("", &[][..]), |(key, parents)| (*key, parents));
    let name = names.join(".");
    let next_step = match T::ELSEWHERE.contains(&name.as_str()) {
        true => "write it in node.toml, which is of one process".to_owned(),
        false => did_you_mean(key, T::keys(parents)),
    };
    Problem {
        origin: lines.origin(path),
        cause: format!("unknown key `{name}`"),
        next_step,
    }
}

/// The path as text, without the steps that serde makes through options and newtypes.
fn path_text(path: &serde_ignored::Path<'_>) -> String {
    use serde_ignored::Path as Step;
    let (parent, name) = match path {
        Step::Root => return String::new(),
        Step::Seq { parent, index } => (parent, index.to_string()),
        Step::Map { parent, key } => (parent, key.clone()),
        Step::Some { parent }
        | Step::NewtypeStruct { parent }
        | Step::NewtypeVariant { parent } => return path_text(parent),
    };
    places::join(&path_text(parent), &name)
}

const LAYERS: &str = "write the value in the form that settings/examples shows";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{node::RawNode, repository::RawRepository};

    fn both<T: Shape>(text: &str) -> (T, T) {
        let (table, errors) = DeTable::parse_recoverable(text);
        assert!(errors.is_empty(), "{errors:?}");
        let lines = Lines::new(text, "f.toml", table.get_ref());
        let (strict, problems) = read_strictly::<T>(table, &lines);
        assert!(problems.is_empty(), "{problems:?}");
        (strict.unwrap(), layered::<T>("", text, &[]).unwrap())
    }

    #[test]
    fn defaults_are_written_as_in_a_file() {
        both::<RawRepository>(RawRepository::DEFAULTS);
        both::<RawNode>(RawNode::DEFAULTS);
    }

    #[test]
    fn both_readings_agree() {
        for text in [
            include_str!("../examples/repository.toml"),
            include_str!("../testdata/repository-full.toml"),
            include_str!("../testdata/repository-reference.toml"),
        ] {
            let (strict, layered) = both::<RawRepository>(text);
            assert_eq!(strict, layered);
        }
        for text in [
            include_str!("../examples/node.toml"),
            include_str!("../testdata/node-full.toml"),
        ] {
            let (strict, layered) = both::<RawNode>(text);
            assert_eq!(strict, layered);
        }
    }
}
