//! A pillar of the simulation: the real one, without a bus; it can be silent, crash and come back.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use pillarbox_bus::{Broker, Bus, ConnectOptions};
use pillarbox_component::Received;
use pillarbox_exchange::{AddressPolicy, ClientOptions, ExchangeClient};
use pillarbox_messages::{Message, clock::SharedClock};
use pillarbox_pillar::{
    Desk, PillarOptions,
    index::{AuditQuery, ListQuery},
};
use pillarbox_settings::{Node, Repository};

use super::COLLECTION;

/// Everything that pillars of one run share.
pub(super) struct Surroundings {
    pub(super) broker: Broker,
    pub(super) repository: Arc<Repository>,
    pub(super) clock: SharedClock,
    /// Below this lie the archives and the exchange.
    pub(super) directory: PathBuf,
}

impl Surroundings {
    pub(super) fn exchange(&self) -> PathBuf {
        self.directory.join("exchange")
    }

    /// The address of a file on the exchange.
    pub(super) fn address(&self, name: &str) -> String {
        format!("file://{}", self.exchange().join(name).display())
    }
}

/// One pillar.
pub(super) struct Station {
    pub(super) name: &'static str,
    directory: PathBuf,
    /// None while it is down.
    desk: Option<Desk>,
    /// It hears everything and says nothing.
    pub(super) mute: bool,
    /// Requests that wait in its queue while it is down.
    pub(super) waiting: Vec<Message>,
}

impl Station {
    pub(super) async fn open(name: &'static str, around: &Surroundings) -> Self {
        let mut station = Self {
            name,
            directory: around.directory.join(name),
            desk: None,
            mute: false,
            waiting: Vec::new(),
        };
        station.start(around).await;
        station
    }

    pub(super) async fn start(&mut self, around: &Surroundings) {
        let archive = self.directory.join("archive");
        let node = format!(
            "[[pillars]]\nid = {:?}\ndirectories = [{archive:?}]\nminimum_size_left = \"0\"",
            self.name
        );
        let policy = AddressPolicy {
            hosts: Vec::new(),
            file_roots: vec![around.exchange()],
        };
        let client_id = self.name.to_owned();
        let desk = Desk::open(PillarOptions {
            settings: Node::from_toml_str(&node, "simulation")
                .unwrap()
                .pillars
                .remove(0),
            repository: Arc::clone(&around.repository),
            bus: Bus::embedded(&around.broker, ConnectOptions { client_id }).unwrap(),
            exchange: ExchangeClient::new(&ClientOptions::new(policy)).unwrap(),
            data: self.directory.join("data"),
            clock: Arc::clone(&around.clock),
        });
        self.desk = Some(desk.await.unwrap());
    }

    pub(super) async fn stop(&mut self) {
        if let Some(desk) = self.desk.take() {
            desk.close().await;
        }
    }

    pub(super) const fn is_up(&self) -> bool {
        self.desk.is_some()
    }

    /// All responses to a request, the final one last.
    pub(super) async fn answer(&self, request: &Message) -> Vec<Message> {
        let received = Received {
            message: across(request),
            certificate: None,
            reply_address: None,
        };
        match &self.desk {
            Some(desk) => desk.answer(&received).await,
            None => Vec::new(),
        }
    }

    /// The bytes at the place of a file.
    pub(super) fn on_disk(&self, file: &str) -> Option<Vec<u8>> {
        fs::read(self.files().join(file)).ok()
    }

    /// The names in the archive.
    pub(super) fn names_on_disk(&self) -> Vec<String> {
        names(&self.files())
    }

    fn files(&self) -> PathBuf {
        self.directory
            .join("archive")
            .join(COLLECTION)
            .join("fileDir")
    }

    /// File ids and expected checksums (lower-case hex) that the index lists; only while it is up.
    pub(super) async fn in_index(&self) -> Vec<(String, String)> {
        let desk = self.desk.as_ref().expect("the pillar is up");
        let page = desk
            .index()
            .list_by_modified(ListQuery::all(COLLECTION.into()));
        let rows = page.await.unwrap().rows.into_iter();
        let mut listed: Vec<_> = rows
            .map(|row| {
                assert_eq!(row.expected, row.observed, "{:?}", row.file_id);
                (row.file_id.to_string(), row.expected.to_string())
            })
            .collect();
        listed.sort();
        listed
    }

    /// The numbers of the audit trail.
    pub(super) async fn audit_numbers(&self) -> Vec<u64> {
        let desk = self.desk.as_ref().expect("the pillar is up");
        let events = desk
            .index()
            .audit(AuditQuery::from_number(COLLECTION.into(), 1))
            .await
            .unwrap();
        events.into_iter().map(|event| event.number).collect()
    }
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// A message as its receiver reads it.
pub(super) fn across(message: &Message) -> Message {
    let text = message.to_xml();
    Message::from_xml(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}
