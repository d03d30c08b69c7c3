//! Conversations of the Java system as they were recorded, one directory each.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::messages::corpus;

/// A recorded conversation.
#[derive(Clone, Debug)]
pub(crate) struct Capture {
    pub(crate) name: String,
    /// In the order in which the bus had them.
    pub(crate) messages: Vec<Captured>,
}

/// A recorded message.
#[derive(Clone, Debug)]
pub(crate) struct Captured {
    /// As the property says.
    pub(crate) kind: String,
    pub(crate) from: Sender,
    /// With its scheme, as in the document.
    pub(crate) destination: String,
    pub(crate) correlation: String,
    pub(crate) reply_to: String,
    pub(crate) delivery: String,
    /// The properties by their names; a JMS null is the text `null`, as it is to whoever receives over STOMP.
    pub(crate) properties: Vec<(String, String)>,
    /// The document, to the byte.
    pub(crate) text: String,
}

/// Who sent a message.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Sender {
    /// Whoever asks, or sends what only a component should send.
    Client,
    /// A pillar or service.
    Component(String),
}

/// Ids of the recorded repository.
pub(crate) const CHECKSUM: &str = "checksum-pillar";
pub(crate) const FILE1: &str = "file1-pillar";
pub(crate) const FILE2: &str = "file2-pillar";
pub(crate) const ALARMS: &str = "alarm-service";
pub(crate) const PILLARS: [&str; 3] = [CHECKSUM, FILE1, FILE2];

/// All conversations without authentication; says loudly that a test is skipped without them.
pub(crate) fn all(test: &str) -> Option<Vec<Capture>> {
    let wire = directory(test)?;
    let mut directories: Vec<PathBuf> = fs::read_dir(wire)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    directories.sort();
    let conversations = directories.iter().filter(|path| {
        let name = name_of(path);
        !name.starts_with('_') && !name.starts_with("sec-") && name != LISTINGS
    });
    Some(conversations.map(|path| Capture::read(path)).collect())
}

/// Where the recordings are.
pub(crate) fn directory(test: &str) -> Option<PathBuf> {
    Some(corpus::shared(test)?.join("wire"))
}

/// The directory of two recorded listings of 10,000 files, which is no conversation.
pub(crate) const LISTINGS: &str = "listing-10k";

impl Capture {
    fn read(directory: &Path) -> Self {
        let mut documents: Vec<PathBuf> = fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "xml"))
            .collect();
        documents.sort();
        Self {
            name: name_of(directory),
            messages: documents.iter().map(|path| Captured::read(path)).collect(),
        }
    }

    /// What the client sent.
    pub(crate) fn asked(&self) -> impl Iterator<Item = &Captured> {
        let of_client = |message: &&Captured| message.from == Sender::Client;
        self.messages.iter().filter(of_client)
    }

    /// What pillars and services sent.
    pub(crate) fn answered(&self) -> impl Iterator<Item = &Captured> {
        let of_client = |message: &&Captured| message.from != Sender::Client;
        self.messages.iter().filter(of_client)
    }
}

impl Captured {
    fn read(document: &Path) -> Self {
        let text = fs::read_to_string(document).unwrap();
        let headers = fs::read_to_string(document.with_extension("headers")).unwrap();
        let header = |name: &str| {
            let lines = headers.lines().filter_map(|line| line.split_once(": "));
            let mut values = lines.filter(|(known, _)| *known == name);
            values.next().map_or("", |(_, value)| value).to_owned()
        };
        let properties: Vec<(String, String)> = headers.lines().filter_map(property).collect();
        let kind = value(&properties, TYPE).unwrap_or_default().to_owned();
        Self {
            kind,
            from: Sender::of(&text),
            destination: header("JMSDestination"),
            correlation: header("JMSCorrelationID"),
            reply_to: header("JMSReplyTo"),
            delivery: header("JMSDeliveryMode"),
            properties,
            text,
        }
    }

    /// A message of which only the document was recorded.
    pub(crate) fn of_document(kind: &str, text: String) -> Self {
        let said = |name: &str| element(&text, name).unwrap_or_default().to_owned();
        let property = |name: &str, value| (format!("org.bitrepository.messages.{name}"), value);
        Self {
            kind: kind.to_owned(),
            from: Sender::of(&text),
            destination: said("Destination"),
            correlation: said("CorrelationID"),
            reply_to: said("ReplyTo"),
            delivery: "NON_PERSISTENT(1)".to_owned(),
            properties: vec![
                property("type", kind.to_owned()),
                property("collectionid", said("CollectionID")),
                property("to", said("To")),
            ],
            text,
        }
    }

    /// A property's value; a null is none.
    pub(crate) fn property(&self, name: &str) -> Option<&str> {
        value(&self.properties, name).filter(|value| *value != "null")
    }

    /// The text of the first element of this name, as it is written.
    pub(crate) fn element(&self, name: &str) -> Option<&str> {
        element(&self.text, name)
    }
}

/// `property NAME (TYPE): VALUE`
fn property(line: &str) -> Option<(String, String)> {
    let (name, rest) = line.strip_prefix("property ")?.split_once(" (")?;
    let (_, value) = rest.split_once("): ")?;
    Some((name.to_owned(), value.to_owned()))
}

/// A property's value.
pub(crate) fn value<'a>(properties: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let mut of_name = properties.iter().filter(|(known, _)| known == name);
    of_name.next().map(|(_, value)| value.as_str())
}

/// The text of the first element of this name, as it is written.
pub(crate) fn element<'a>(xml: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = xml.split_once(&format!("<{name}>"))?;
    rest.split_once(&format!("</{name}>")).map(|(text, _)| text)
}

/// The document with the text of every element of this name written anew.
pub(crate) fn edit(xml: &str, name: &str, mut change: impl FnMut(&str) -> String) -> String {
    let (start, end) = (format!("<{name}>"), format!("</{name}>"));
    let mut edited = String::new();
    let mut rest = xml;
    while let Some((before, after)) = rest.split_once(&start) {
        let (text, after) = after.split_once(&end).expect("the element ends");
        edited += &format!("{before}{start}{}{end}", change(text));
        rest = after;
    }
    edited + rest
}

pub(crate) const TYPE: &str = "org.bitrepository.messages.type";

impl Sender {
    pub(crate) fn of(text: &str) -> Self {
        match element(text, "From") {
            Some(from) if PILLARS.contains(&from) || from == ALARMS => {
                Self::Component(from.to_owned())
            }
            _ => Self::Client,
        }
    }
}

fn name_of(path: &Path) -> String {
    let name = path.file_name().and_then(|name| name.to_str());
    name.expect("a name").to_owned()
}
