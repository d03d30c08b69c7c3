//! The file that a conversation moves.

use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
};

use bytes::Bytes;
use pillarbox_messages::{ChecksumSpec, CorrelationId};

use crate::{
    conversation::Resumable,
    journal::{KeptCargo, KeptPath, modified_ns},
    source,
    transfer::Place,
};

/// The file that a conversation moves, if it does.
#[derive(Debug)]
pub(crate) enum Cargo {
    /// None, or one that is on an exchange already and stays there.
    Nothing,
    /// A file to be offered.
    Outbound {
        path: PathBuf,
        file: File,
        size: u64,
        /// All of it, if it is small.
        content: Option<Bytes>,
        address: String,
        /// The checksum that is yet to be computed.
        examine: Option<ChecksumSpec>,
    },
    /// A file that was offered by another process of this client.
    Offered { address: String },
    /// A file to be fetched.
    Inbound { address: String, target: PathBuf },
}

impl Cargo {
    /// Where the file is on the exchange.
    pub(crate) fn address(&self) -> Option<&str> {
        match self {
            Self::Nothing => None,
            Self::Outbound { address, .. }
            | Self::Offered { address }
            | Self::Inbound { address, .. } => Some(address),
        }
    }

    /// Where a file that is fetched gets to.
    pub(crate) fn target(&self) -> Option<&Path> {
        match self {
            Self::Inbound { target, .. } => Some(target),
            Self::Nothing | Self::Outbound { .. } | Self::Offered { .. } => None,
        }
    }

    /// What another process needs to know of it.
    pub(crate) fn kept(&self) -> io::Result<KeptCargo> {
        Ok(match self {
            Self::Nothing | Self::Offered { .. } => KeptCargo::Nothing,
            Self::Outbound {
                path,
                file,
                size,
                address,
                ..
            } => KeptCargo::Outbound {
                path: KeptPath::of(path),
                size: *size,
                modified_ns: modified_ns(&file.metadata()?),
                address: address.clone(),
            },
            Self::Inbound { address, target } => KeptCargo::Inbound {
                address: address.clone(),
                target: KeptPath::of(target),
            },
        })
    }
}

impl KeptCargo {
    /// What is left of it without a conversation that needs it: where it may lie.
    pub(crate) fn remains(&self, correlation: &CorrelationId) -> Cargo {
        match self {
            Self::Nothing => Cargo::Nothing,
            Self::Outbound { address, .. } => Cargo::Offered {
                address: address.clone(),
            },
            Self::Inbound { address, target } => {
                let target = target.path();
                Place::new(&target, correlation).clear();
                Cargo::Inbound {
                    address: address.clone(),
                    target,
                }
            }
        }
    }

    /// The file for a conversation that goes on.
    ///
    /// # Errors
    /// It is to be offered and can't be, or has changed.
    pub(crate) async fn taken_up(&self, conversation: &Resumable) -> Result<Cargo, String> {
        let Self::Outbound {
            path,
            size,
            modified_ns: modified,
            address,
        } = self
        else {
            return Ok(self.remains(&conversation.context().correlation));
        };
        let Some(new) = conversation.file_to_offer() else {
            return Ok(self.remains(&conversation.context().correlation));
        };
        let path = path.path();
        let opened = source::open(&path, None).await;
        let opened = opened.map_err(|error| error.to_string())?;
        let now = opened.file.metadata().map(|it| modified_ns(&it));
        if opened.size != *size || now.ok() != Some(*modified) {
            return Err(format!(
                "'{}' has changed since the operation began",
                path.display()
            ));
        }
        Ok(Cargo::Outbound {
            path,
            file: opened.file,
            size: opened.size,
            content: opened.content,
            address: address.clone(),
            examine: new.examining.then(|| new.default_spec.clone()),
        })
    }
}
