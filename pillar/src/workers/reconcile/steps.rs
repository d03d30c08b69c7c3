//! The parts of the work in a collection, and where it goes on after a restart.

use std::path::PathBuf;

use crate::{archive::Tree, index::Place};

/// A part of the work in a collection.
pub(super) enum Step {
    Rows,
    Tree(Tree),
}

impl Step {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Rows => "rows",
            Self::Tree(tree) => tree.kind.name(),
        }
    }

    fn directory(&self) -> PathBuf {
        match self {
            Self::Rows => PathBuf::new(),
            Self::Tree(tree) => tree.directory.clone(),
        }
    }

    /// After this file; `incomplete` if something was left out on the way there.
    pub(super) fn place(&self, path: &str, incomplete: bool) -> Place {
        let name = self.name();
        let step = match incomplete {
            true => format!("{name}{INCOMPLETE}"),
            false => name.to_owned(),
        };
        Place {
            step,
            directory: self.directory(),
            path: path.to_owned(),
        }
    }
}

/// Where to go on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Start {
    /// In which step.
    pub(super) step: usize,
    /// After which file.
    pub(super) after: String,
    /// Something was left out before.
    pub(super) incomplete: bool,
}

/// The start that a saved place stands for; the beginning, if its step is none of these.
pub(super) fn resume(steps: &[Step], place: Option<Place>) -> Start {
    let Some(place) = place else {
        return Start::default();
    };
    let (name, incomplete) = match place.step.strip_suffix(INCOMPLETE) {
        Some(name) => (name, true),
        None => (place.step.as_str(), false),
    };
    let is_it = |step: &Step| step.name() == name && step.directory() == place.directory;
    match steps.iter().position(is_it) {
        Some(step) => Start {
            step,
            after: place.path,
            incomplete,
        },
        None => Start::default(),
    }
}

/// What is added to a step's name.
const INCOMPLETE: &str = ", incomplete";

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::archive::TreeKind;

    fn tree(directory: &str, kind: TreeKind) -> Step {
        Step::Tree(Tree::new(Path::new(directory), Path::new("/x"), kind))
    }

    #[test]
    fn it_goes_on_in_the_step_and_directory_where_it_was() {
        let steps = [
            Step::Rows,
            tree("/a", TreeKind::Files),
            tree("/a", TreeKind::Folders),
            tree("/b", TreeKind::Files),
        ];
        for (at, step) in steps.iter().enumerate() {
            for incomplete in [false, true] {
                let place = step.place("n/x1", incomplete);
                let start = Start {
                    step: at,
                    after: "n/x1".to_owned(),
                    incomplete,
                };
                assert_eq!(resume(&steps, Some(place)), start);
            }
        }
        // As earlier versions wrote it.
        let place = Place {
            step: "folderDir".to_owned(),
            directory: "/a".into(),
            path: "n/x1".to_owned(),
        };
        assert_eq!(resume(&steps, Some(place)).step, 2);
        assert_eq!(resume(&steps, None), Start::default());
        // The directory is not configured any more, or not there.
        let gone = tree("/c", TreeKind::Files).place("x1", true);
        assert_eq!(resume(&steps, Some(gone)), Start::default());
    }
}
