//! `xmllint` as judge: many documents in one call.

use std::{collections::BTreeSet, fs, path::Path, process::Command};

use super::corpus::{Document, Family};

/// Documents lying in a directory, ready to be judged.
pub(crate) struct Judge<'d> {
    documents: &'d [Document],
    directory: tempfile::TempDir,
}

impl<'d> Judge<'d> {
    pub(crate) fn new(documents: &'d [Document]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        for (number, document) in documents.iter().enumerate() {
            fs::write(
                directory.path().join(format!("{number}.xml")),
                &document.text,
            )
            .unwrap();
        }
        Self {
            documents,
            directory,
        }
    }

    /// For each document, whether the schemas in the directory accept it.
    pub(crate) fn accepts(&self, schemas: &Path) -> Vec<bool> {
        let mut accepted = BTreeSet::new();
        for (family, schema) in [
            (Family::Messages, "BitRepositoryMessages.xsd"),
            (Family::Data, "BitRepositoryData.xsd"),
        ] {
            let numbers = self.documents.iter().enumerate();
            let files: Vec<String> = numbers
                .filter(|(_, document)| document.family == family)
                .map(|(number, _)| format!("{number}.xml"))
                .collect();
            for batch in files.chunks(FILES_PER_CALL) {
                accepted.extend(self.accepted_of(&schemas.join(schema), batch));
            }
        }
        (0..self.documents.len())
            .map(|number| accepted.contains(&number))
            .collect()
    }

    /// The numbers of the files that the schema accepts.
    fn accepted_of(&self, schema: &Path, files: &[String]) -> Vec<usize> {
        let output = Command::new("xmllint")
            .args(["--noout", "--nonet", "--schema"])
            .arg(schema)
            .args(files)
            .current_dir(self.directory.path())
            .output()
            .expect("xmllint runs (Debian package libxml2-utils)");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!said.contains("failed to compile"), "{said}");
        let verdicts = said
            .lines()
            .filter_map(|line| line.strip_suffix(".xml validates"));
        verdicts.filter_map(|number| number.parse().ok()).collect()
    }
}

/// Few enough for one command line.
const FILES_PER_CALL: usize = 2000;
