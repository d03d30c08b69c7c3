//! ERROR: why a connection ends.

use bytes::BytesMut;

use crate::{
    error::BusError,
    stomp::{
        codec::FrameError,
        frame::{Frame, FrameWriter, StompCommand},
    },
};

/// Why the connection ends with an ERROR frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    /// The error's short name.
    pub(super) name: String,
    /// The error in words.
    pub(super) detail: String,
    /// The receipt that the refused frame asked for.
    pub(super) receipt: Option<String>,
}

impl Refusal {
    pub(super) fn new(name: impl Into<String>, detail: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            detail: detail.into(),
            receipt: None,
        }
    }

    pub(super) fn invalid(detail: impl Into<String>) -> Self {
        Self::new("INVALID", detail)
    }

    /// This refusal as the answer to `frame`.
    pub(super) fn answering(mut self, frame: &Frame) -> Self {
        self.receipt = frame.header("receipt").map(str::to_owned);
        self
    }

    /// Whether the bus, or a subscription, is full, and so nothing that the client is to blame for.
    pub(super) fn is_for_lack_of_room(&self) -> bool {
        matches!(self.name.as_str(), "NO-SPACE" | "SUBSCRIPTION-FULL")
    }

    /// Writes the ERROR frame. `version` is added where the client's versions don't fit.
    pub(super) fn write(&self, out: &mut BytesMut, version: &str) {
        let mut frame = FrameWriter::new(out, StompCommand::Error);
        frame.header("message", &self.name);
        if self.name == "VERSION" {
            frame.header("version", version);
        }
        if let Some(receipt) = &self.receipt {
            frame.header("receipt-id", receipt);
        }
        frame.header("content-type", "text/plain");
        frame.finish(self.detail.as_bytes());
    }
}

impl From<BusError> for Refusal {
    fn from(error: BusError) -> Self {
        let detail = match &error {
            BusError::Refused { detail, .. } => detail.clone(),
            other => other.to_string(),
        };
        Self::new(error.name(), detail)
    }
}

impl From<FrameError> for Refusal {
    fn from(error: FrameError) -> Self {
        let name = if error.is_limit() { "LIMIT" } else { "INVALID" };
        Self::new(name, error.to_string())
    }
}
