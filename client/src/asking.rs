//! The checksum of a file that a pillar has delivered without one: the pillar is asked for it, then the others.

use std::time::Duration;

use pillarbox_messages::{ChecksumData, CollectionId, ComponentId, FileId, HexBinary};
use tokio::time::timeout;

use crate::{
    client::Client,
    conversation::{
        Context,
        get_checksums::GetChecksumsProcedure,
        paging::{PAGE_SIZE, Walks},
    },
    digests::plain_spec,
    event::{ComponentResult, EventKind},
};

/// How long asking may take, and at most half of the time that an operation has: the rest is for the fetching.
const LONGEST: Duration = Duration::from_secs(30);

/// What is to be asked for, if anything.
#[derive(Debug)]
pub(crate) struct Asking {
    client: Client,
    file: Option<(CollectionId, FileId)>,
    pillar: ComponentId,
    longest: Duration,
}

impl Asking {
    /// The checksum of the conversation's file, which this pillar has delivered; nothing unless it is `needed`.
    pub(crate) fn new(client: &Client, about: &Context, pillar: ComponentId, needed: bool) -> Self {
        let operation_ms = u64::try_from(about.operation_timeout_ms).unwrap_or_default();
        let half = Duration::from_millis(operation_ms / 2);
        let file = about.collection.clone().zip(about.file.clone());
        Self {
            client: client.clone(),
            file: file.filter(|_| needed),
            pillar,
            longest: if half.is_zero() {
                LONGEST
            } else {
                half.min(LONGEST)
            },
        }
    }

    /// The file's default checksum as the pillar tells it, else as those of the others do that tell it; none if
    /// nobody does in time, or they contradict each other.
    pub(crate) async fn ask(self) -> Option<ChecksumData> {
        let (collection, file) = self.file.as_ref()?;
        let asking = async {
            let own = self.ask_of(collection, file, vec![self.pillar.clone()]);
            if let Some(told) = own.await {
                return Some(told);
            }
            let all = self
                .client
                .repository()
                .collection(collection)?
                .pillars
                .iter();
            let others = all.filter(|it| **it != self.pillar).cloned();
            self.ask_of(collection, file, others.collect()).await
        };
        timeout(self.longest, asking).await.ok().flatten()
    }

    async fn ask_of(
        &self,
        collection: &CollectionId,
        file: &FileId,
        pillars: Vec<ComponentId>,
    ) -> Option<ChecksumData> {
        let spec = plain_spec(self.client.repository().default_checksum);
        let procedure = GetChecksumsProcedure {
            file: Some(file.clone()),
            spec: spec.clone(),
            audit_trail_information: None,
            walks: Walks::new(PAGE_SIZE),
        };
        let terms = self.client.terms(collection).ok()?.only(Some(pillars));
        let started = self
            .client
            .start_aside(procedure, terms, Some(file.clone()));
        let mut running = started.await.ok()?;
        let _ends_with_this = running.cancel.clone().drop_guard();
        let mut told = Told::Nothing;
        while let Some(event) = running.next_event().await {
            if let EventKind::Progress {
                result: Some(ComponentResult::Checksums(checksums)),
                ..
            }
            | EventKind::ComponentComplete {
                result: ComponentResult::Checksums(checksums),
                ..
            } = event.kind
            {
                let items = checksums.page.items.into_iter();
                let values = items.filter(|item| item.file_id == *file);
                told = values.fold(told, |told, item| told.and(item.checksum_value));
            }
        }
        match told {
            Told::One(checksum_value) => Some(ChecksumData {
                checksum_spec: spec,
                checksum_value,
                calculation_timestamp: self.client.shared.component.timestamp(),
            }),
            Told::Nothing | Told::Different => None,
        }
    }
}

/// What was told of a file's checksum so far.
#[derive(Debug)]
enum Told {
    Nothing,
    One(HexBinary),
    Different,
}

impl Told {
    fn and(self, value: HexBinary) -> Self {
        match self {
            Self::Nothing => Self::One(value),
            Self::One(told) if told == value => Self::One(told),
            Self::One(_) | Self::Different => Self::Different,
        }
    }
}
