//! Raising alarms: the one function that does it, and the table that says which failure is worth which.

mod limiter;
mod table;

use pillarbox_bus::Outgoing;
use pillarbox_messages::{
    Alarm, AlarmCode, AlarmMessage, CollectionId, ComponentId, CorrelationId, Destination, FileId,
    Header, ProtocolVersion, Timestamp,
};
use pillarbox_settings::AlarmLevel;
use sha2::{Digest as _, Sha256};
use tracing::{debug, error, info, warn};

use crate::component::Component;

pub(crate) use self::limiter::{Admission, Limiter};
pub use self::table::{FailureKind, FailureRow, for_failure};

/// An alarm to raise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlarmRequest {
    /// How grave it is; not on the wire, it decides whether the alarm is sent at all.
    pub level: AlarmLevel,
    /// `AlarmCode`.
    pub code: AlarmCode,
    /// `AlarmText`: what happened, for people.
    pub text: String,
    /// The collection it is about; none: it goes to every collection that the component serves.
    pub collection: Option<CollectionId>,
    /// The file it is about.
    pub file: Option<FileId>,
}

impl AlarmRequest {
    /// Equal for identical alarms of one component.
    fn fingerprint(&self) -> [u8; 32] {
        digest_of(&[
            Some(self.code.as_str()),
            Some(self.text.as_str()),
            self.collection.as_ref().map(CollectionId::as_str),
            self.file.as_ref().map(FileId::as_str),
        ])
    }

    /// Alarms that any stranger can cause with a single message.
    const fn is_limited(&self) -> bool {
        matches!(
            self.code,
            AlarmCode::InvalidMessage | AlarmCode::InvalidMessageVersion
        )
    }
}

/// SHA-256 over the fields, each after its length, so that no two lists of fields give the same bytes.
#[must_use]
pub fn digest_of(fields: &[Option<&str>]) -> [u8; 32] {
    let mut digest = Sha256::new();
    for field in fields {
        digest.update(
            field
                .map_or(u64::MAX, |text| text.len() as u64)
                .to_be_bytes(),
        );
        digest.update(field.unwrap_or_default());
    }
    digest.finalize().into()
}

/// What became of an alarm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Raised {
    /// It was sent to this many destinations.
    Sent(usize),
    /// It is below the component's alarm level, and was only logged.
    BelowLevel,
    /// One like it was raised a moment ago, or too many of other kinds.
    HeldBack,
    /// The bus did not take it; the error is logged.
    Failed,
}

/// Raises a component's alarms. Clones share everything.
#[derive(Clone, Debug)]
pub struct AlarmSender {
    component: Component,
}

impl AlarmSender {
    pub(crate) const fn new(component: Component) -> Self {
        Self { component }
    }

    /// Whether alarms of this level are sent; others are only logged.
    #[must_use]
    pub fn sends(&self, level: AlarmLevel) -> bool {
        level >= self.component.alarm_level()
    }

    /// The one function by which a component raises an alarm.
    ///
    /// The response that goes with it must have been sent before. An alarm about a collection goes to that
    /// collection's alarm destinations, one about none to those of every collection that the component
    /// serves, everywhere with the same correlation id. Never fails: an alarm that can't be sent is logged.
    pub async fn raise(&self, request: AlarmRequest) -> Raised {
        self.raise_about(request, None).await
    }

    /// As [`AlarmSender::raise`], about a message of this sender: one sender's bad messages don't hold back the
    /// alarms about those of others.
    pub async fn raise_about(&self, request: AlarmRequest, sender: Option<&ComponentId>) -> Raised {
        if !self.sends(request.level) {
            info!(
                code = request.code.as_str(),
                level = ?request.level,
                collection = request.collection.as_ref().map(CollectionId::as_str),
                file = request.file.as_ref().map(FileId::as_str),
                text = request.text,
                "alarm below the alarm level, not sent"
            );
            return Raised::BelowLevel;
        }
        if request.is_limited() {
            match self.component.admit(&request, sender) {
                Admission::HoldBack => {
                    debug!(text = request.text, "alarm held back");
                    return Raised::HeldBack;
                }
                Admission::Raise { held_back: 0 } => {}
                Admission::Raise { held_back } => {
                    warn!(
                        held_back,
                        text = request.text,
                        "identical alarms were held back"
                    );
                }
            }
        }
        self.send(&request).await
    }

    async fn send(&self, request: &AlarmRequest) -> Raised {
        let messages = self.messages(request);
        let count = messages.len();
        let published = self.component.bus().publish_all(messages).await;
        let (code, text) = (request.code.as_str(), request.text.as_str());
        let collection = request.collection.as_ref().map(CollectionId::as_str);
        let file = request.file.as_ref().map(FileId::as_str);
        match published {
            Ok(()) => {
                warn!(code, level = ?request.level, collection, file, text, "alarm raised");
                Raised::Sent(count)
            }
            Err(error) => {
                error!(%error, code, collection, file, text, "alarm could not be sent");
                Raised::Failed
            }
        }
    }

    fn messages(&self, request: &AlarmRequest) -> Vec<Outgoing> {
        let correlation_id = CorrelationId::random();
        let alarm = Alarm {
            orig_date_time: Timestamp::from(self.component.clock().now()),
            alarm_code: request.code,
            alarm_raiser: self.component.id().clone(),
            alarm_text: request.text.clone(),
            file_id: request.file.clone(),
            collection_id: request.collection.clone(),
        };
        let destinations = self.destinations(request.collection.as_ref());
        let message = |destination: Destination| {
            let header = Header {
                version: ProtocolVersion::CURRENT,
                correlation_id: correlation_id.clone(),
                collection_id: request.collection.clone(),
                destination,
                reply_to: self.component.address(request.collection.as_ref()),
                from: self.component.id().clone(),
                to: None,
            };
            self.component.outgoing(
                &AlarmMessage {
                    header,
                    alarm: alarm.clone(),
                }
                .into(),
            )
        };
        destinations.into_iter().map(message).collect()
    }

    fn destinations(&self, collection: Option<&CollectionId>) -> Vec<Destination> {
        let repository = self.component.repository();
        // A collection that a stranger made up has no alarm destination: then all of ours hear of it.
        let known = collection.filter(|id| repository.collection(id).is_some());
        let mut found: Vec<Destination> = Vec::new();
        let of = |id: &CollectionId| repository.destinations(id).alarms();
        match known {
            Some(id) => found.extend(of(id)),
            None => found.extend(self.component.collections().iter().flat_map(of)),
        }
        let mut unique = Vec::with_capacity(found.len());
        for destination in found {
            if !unique.contains(&destination) {
                unique.push(destination);
            }
        }
        unique
    }
}
