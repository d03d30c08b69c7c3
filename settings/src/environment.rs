//! Settings from the environment: `PILLARBOX__CLIENT__ID` sets `client.id`.

use std::collections::BTreeMap;

use crate::{
    problem::{Origin, Problem},
    reading::did_you_mean,
};

const PREFIX: &str = "PILLARBOX__";

/// The variables that are meant for settings. Some are secrets, so that this has no `Debug`.
#[derive(Clone, Default)]
pub(crate) struct Environment {
    variables: BTreeMap<String, String>,
}

/// One value that overrides a file's.
#[derive(Clone)]
pub(crate) struct Override {
    pub(crate) variable: String,
    pub(crate) path: &'static str,
    pub(crate) value: config::Value,
}

impl Environment {
    pub(crate) fn empty() -> Self {
        Self::default()
    }

    pub(crate) fn of_process() -> Self {
        let texts = std::env::vars_os().map(|(name, value)| {
            (
                name.to_string_lossy().into_owned(),
                value.to_string_lossy().into_owned(),
            )
        });
        Self::of(texts)
    }

    pub(crate) fn of(variables: impl Iterator<Item = (String, String)>) -> Self {
        Self {
            variables: variables
                .filter(|(name, _)| name.starts_with(PREFIX))
                .collect(),
        }
    }

    /// The values for these keys, and a problem for every variable that sets none of them. A list's values
    /// are separated by commas.
    pub(crate) fn overrides(
        &self,
        keys: &'static [(&'static str, bool)],
    ) -> (Vec<Override>, Vec<Problem>) {
        let (mut overrides, mut problems) = (Vec::new(), Vec::new());
        for (variable, text) in &self.variables {
            match keys
                .iter()
                .find(|(path, _)| variable_name(path) == *variable)
            {
                Some((path, list)) => {
                    let value = if *list {
                        list_value(text)
                    } else {
                        text.as_str().into()
                    };
                    overrides.push(Override {
                        variable: variable.clone(),
                        path,
                        value,
                    });
                }
                None => problems.push(unknown(variable, keys)),
            }
        }
        (overrides, problems)
    }
}

fn list_value(text: &str) -> config::Value {
    let values = text
        .split(',')
        .map(str::trim)
        .filter(|value| !value.is_empty());
    values.map(str::to_owned).collect::<Vec<_>>().into()
}

fn variable_name(path: &str) -> String {
    format!("{PREFIX}{}", path.replace('.', "__").to_uppercase())
}

fn unknown(variable: &str, keys: &[(&str, bool)]) -> Problem {
    let names: Vec<String> = keys.iter().map(|(path, _)| variable_name(path)).collect();
    let next_step = if variable.starts_with("PILLARBOX__PILLARS") {
        "set pillars in node.toml, since lists of tables can't be set by the environment".to_owned()
    } else {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        did_you_mean(variable, &names)
    };
    Problem {
        origin: Origin::Environment {
            variable: variable.to_owned(),
        },
        cause: "sets no known key of node.toml".to_owned(),
        next_step,
    }
}
