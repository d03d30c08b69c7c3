//! What is written down of a conversation.

use std::{
    ffi::OsString,
    fs::Metadata,
    os::unix::{
        ffi::{OsStrExt as _, OsStringExt as _},
        fs::MetadataExt as _,
    },
    path::{Path, PathBuf},
};

use pillarbox_messages::{ComponentId, CorrelationId, HexBinary};
use serde::{Deserialize, Serialize};

use crate::{
    conversation::{Context, Resumable},
    event::Event,
};

/// One conversation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// Whose it is.
    pub(crate) client: ComponentId,
    /// Whether no other operation on its file may go on beside it.
    pub(crate) changes: bool,
    pub(crate) cargo: KeptCargo,
    pub(crate) state: State,
}

/// Where a conversation stands.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum State {
    /// It goes on where it was.
    Open(Box<Resumable>),
    /// It can't go on: its results went to the process that began it. What is told of its end.
    Lost(Box<Event>),
    /// It has ended, and this is still to be told.
    Ended(Box<Event>),
}

/// The file that a conversation moves, if it does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum KeptCargo {
    /// None, or one that is not this client's to lay on an exchange.
    Nothing,
    /// A file to be offered.
    Outbound {
        path: KeptPath,
        size: u64,
        /// When its content was changed last, in nanoseconds since 1970.
        modified_ns: i128,
        address: String,
    },
    /// A file to be fetched.
    Inbound { address: String, target: KeptPath },
}

/// A path as it is written down: as text if it is text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum KeptPath {
    Text(String),
    Bytes(HexBinary),
}

impl Entry {
    pub(crate) fn correlation(&self) -> &CorrelationId {
        match &self.state {
            State::Open(open) => &open.context().correlation,
            State::Lost(event) | State::Ended(event) => &event.correlation,
        }
    }

    /// Where it can still be asked: nowhere, once it is over.
    pub(crate) fn context(&self) -> Option<&Context> {
        match &self.state {
            State::Open(open) => Some(open.context()),
            State::Lost(_) | State::Ended(_) => None,
        }
    }

    /// Whose it is; none if it contradicts itself.
    pub(crate) fn client(&self) -> Option<&ComponentId> {
        let from = self.context().map_or(&self.client, |context| &context.from);
        (*from == self.client).then_some(from)
    }
}

impl KeptPath {
    /// Whatever the current directory will be by then.
    pub(crate) fn of(path: &Path) -> Self {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        match path.to_str() {
            Some(text) => Self::Text(text.to_owned()),
            None => Self::Bytes(path.as_os_str().as_bytes().into()),
        }
    }

    pub(crate) fn path(&self) -> PathBuf {
        match self {
            Self::Text(text) => PathBuf::from(text),
            Self::Bytes(bytes) => OsString::from_vec(bytes.as_bytes().to_vec()).into(),
        }
    }
}

/// When a file's content was changed last, in nanoseconds since 1970.
pub(crate) fn modified_ns(metadata: &Metadata) -> i128 {
    i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec())
}
