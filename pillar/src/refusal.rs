//! Why a handler does not do what it was asked for: what the peer is told, and what stays with us.

use std::fmt;

use pillarbox_component::alarms::FailureKind;
use pillarbox_exchange::ExchangeError;
use pillarbox_messages::{ChecksumData, FileIdError, ResponseCode};

use crate::{
    archive::ArchiveError, digests::SpecError, index::IndexError, shortage::Lacking, text::cut,
};

/// A refused or failed request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// The row of the failure table: response code, alarm and level.
    pub(crate) kind: FailureKind,
    /// What the peer is told; nothing about the inside of this node.
    pub(crate) answer: String,
    /// What the log and the alarm say beyond that.
    pub(crate) detail: Option<String>,
    /// The checksum of the file that is there already, for a duplicate.
    pub(crate) existing: Option<Box<ChecksumData>>,
    /// What there was no room for, if that is why.
    pub(crate) lacking: Option<Lacking>,
}

impl Refusal {
    pub(crate) fn new(kind: FailureKind, answer: impl fmt::Display) -> Self {
        Self {
            kind,
            answer: cut(&answer.to_string(), LONGEST_TEXT).into_owned(),
            detail: None,
            existing: None,
            lacking: None,
        }
    }

    /// An argument that no request may have.
    pub(crate) fn illegal_argument(answer: impl fmt::Display) -> Self {
        Self::new(FailureKind::IllegalArgument, answer)
    }

    /// A refusal of an operation that is legal as such.
    pub(crate) fn rejection(code: ResponseCode, answer: impl fmt::Display) -> Self {
        Self::new(FailureKind::rejection(code), answer)
    }

    /// A refusal of an operation that would do damage.
    pub(crate) fn illegal_operation(code: ResponseCode, answer: impl fmt::Display) -> Self {
        Self::new(FailureKind::illegal_operation(code), answer)
    }

    /// A fault of this node.
    pub(crate) fn unexpected(detail: impl fmt::Display) -> Self {
        Self::new(
            FailureKind::Unexpected,
            "the pillar could not do this because of a fault of its own",
        )
        .with_detail(detail)
    }

    /// No more room; an answer like any other, not a fault.
    pub(crate) fn disk_full(detail: impl fmt::Display) -> Self {
        Self::rejection(ResponseCode::Failure, "the pillar's disk is full").with_detail(detail)
    }

    /// The file isn't here.
    pub(crate) fn not_found() -> Self {
        Self::rejection(
            ResponseCode::FileNotFoundFailure,
            "the pillar has no file of this id",
        )
    }

    /// The file is here already.
    pub(crate) fn duplicate(existing: ChecksumData) -> Self {
        let mut refusal = Self::rejection(
            ResponseCode::DuplicateFileFailure,
            "the pillar has a file of this id",
        );
        refusal.existing = Some(Box::new(existing));
        refusal
    }

    pub(crate) fn lacking(mut self, lacking: Lacking) -> Self {
        self.lacking = Some(lacking);
        self
    }

    pub(crate) fn with_detail(mut self, detail: impl fmt::Display) -> Self {
        self.detail = Some(cut(&detail.to_string(), LONGEST_TEXT).into_owned());
        self
    }

    /// What the log and the alarm say.
    pub(crate) fn alarm_text(&self) -> String {
        match &self.detail {
            Some(detail) => format!("{}: {detail}", self.answer),
            None => self.answer.clone(),
        }
    }
}

impl From<FileIdError> for Refusal {
    fn from(error: FileIdError) -> Self {
        Self::rejection(ResponseCode::RequestNotUnderstoodFailure, error)
    }
}

impl From<SpecError> for Refusal {
    fn from(error: SpecError) -> Self {
        Self::rejection(ResponseCode::RequestNotUnderstoodFailure, error)
    }
}

impl From<IndexError> for Refusal {
    fn from(error: IndexError) -> Self {
        match error {
            IndexError::NotPresent(_) => Self::not_found(),
            IndexError::FolderInTheWay(_) | IndexError::FileInTheWay(_) => {
                Self::rejection(ResponseCode::RequestNotUnderstoodFailure, error)
            }
            error if error.is_no_space() => Self::disk_full(error),
            error => Self::unexpected(error),
        }
    }
}

impl From<ArchiveError> for Refusal {
    fn from(error: ArchiveError) -> Self {
        match &error {
            ArchiveError::NoSpace(numbers) => {
                let needed = Lacking::Room(numbers.needed);
                Self::rejection(ResponseCode::Failure, numbers).lacking(needed)
            }
            ArchiveError::DiskFull { .. } => Self::disk_full(error).lacking(Lacking::Disk),
            ArchiveError::FolderInTheWay(_) | ArchiveError::FileInTheWay(_) => {
                Self::rejection(ResponseCode::RequestNotUnderstoodFailure, &error)
            }
            ArchiveError::Busy { .. } => Self::rejection(ResponseCode::Failure, &error),
            _ => Self::unexpected(error),
        }
    }
}

/// A failure to fetch from, or to deliver to, an address that a peer named.
impl From<ExchangeError> for Refusal {
    fn from(error: ExchangeError) -> Self {
        match &error {
            ExchangeError::NotAllowed { .. } | ExchangeError::UnsupportedScheme { .. } => {
                Self::illegal_argument(error)
            }
            ExchangeError::Local { .. } => Self::unexpected(error),
            _ => {
                let text = "the file could not be transferred";
                let answer = match error.told_to_peer() {
                    Some(reason) => format!("{text}: {reason}"),
                    None => text.to_owned(),
                };
                // With the address.
                Self::rejection(ResponseCode::FileTransferFailure, answer).with_detail(error)
            }
        }
    }
}

/// Bytes of what is said of a refusal: it may repeat what the peer wrote, in an answer, an alarm and the audit trail.
const LONGEST_TEXT: usize = 4 << 10;
