//! The documents to try: examples that come with the reference schemas, and captured traffic.

use std::{
    fs,
    path::{Path, PathBuf},
};

use pillarbox_messages::{DecodeError, Message, ResultDocument};

/// Which of the two schemas a document is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    Messages,
    Data,
}

/// A document with where it comes from.
#[derive(Clone, Debug)]
pub(crate) struct Document {
    pub(crate) name: String,
    pub(crate) family: Family,
    pub(crate) text: String,
}

/// What our reader makes of a document.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Decoded {
    Message(Box<Message>),
    Data(Box<ResultDocument>),
}

impl Decoded {
    pub(crate) fn to_xml(&self) -> String {
        match self {
            Self::Message(message) => message.to_xml(),
            Self::Data(document) => document.to_xml(),
        }
    }
}

impl Document {
    pub(crate) fn decode(&self) -> Result<Decoded, DecodeError> {
        match self.family {
            Family::Messages => Message::from_xml(&self.text)
                .map(Box::new)
                .map(Decoded::Message),
            Family::Data => ResultDocument::from_xml(&self.text)
                .map(Box::new)
                .map(Decoded::Data),
        }
    }
}

/// The directory of reference material beside the repository; says loudly that a test is skipped without it.
pub(crate) fn shared(test: &str) -> Option<PathBuf> {
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared");
    if shared.join("schemas-ref").is_dir() && shared.join("wire").is_dir() {
        return Some(shared);
    }
    eprintln!(
        "SKIPPED {test}: no reference material in {}",
        shared.display()
    );
    None
}

/// Our own schemas.
pub(crate) fn own_schemas() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas")
}

/// The examples of the reference schemas.
pub(crate) fn examples(shared: &Path) -> Vec<Document> {
    documents_below(&shared.join("schemas-ref/examples"))
}

/// The captured traffic.
pub(crate) fn captured(shared: &Path) -> Vec<Document> {
    documents_below(&shared.join("wire"))
}

fn documents_below(directory: &Path) -> Vec<Document> {
    let mut documents = Vec::new();
    let mut entries: Vec<PathBuf> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            documents.extend(documents_below(&path));
        } else if path.extension().is_some_and(|extension| extension == "xml") {
            let text = fs::read_to_string(&path).unwrap();
            documents.extend(family(&text).map(|family| Document {
                name: path.display().to_string(),
                family,
                text,
            }));
        }
    }
    documents
}

/// Settings files lie among the captures; they are for other schemas.
fn family(text: &str) -> Option<Family> {
    if text.contains("http://bitrepository.org/settings/") {
        None
    } else if text.contains("http://bitrepository.org/BitRepositoryData.xsd") {
        Some(Family::Data)
    } else {
        Some(Family::Messages)
    }
}
