//! The table of failures: what a refused or failed request answers, and which alarm it raises.

use pillarbox_messages::{AlarmCode, CollectionId, FileId, ResponseCode};
use pillarbox_settings::AlarmLevel;

use super::AlarmRequest;

/// Why a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// An argument that no request may have: no collection, another pillar's id, an unsupported URL scheme.
    IllegalArgument,
    /// The handler refused the request with this code.
    Rejection {
        /// What is answered.
        code: ResponseCode,
        /// The request would have damaged the archive had it been carried out.
        illegal_operation: bool,
    },
    /// A fault of ours that nobody foresaw, a caught panic included.
    Unexpected,
}

impl FailureKind {
    /// A refusal with this code, of an operation that is legal as such.
    #[must_use]
    pub const fn rejection(code: ResponseCode) -> Self {
        Self::Rejection {
            code,
            illegal_operation: false,
        }
    }

    /// A refusal with this code, of an operation that would have done damage.
    #[must_use]
    pub const fn illegal_operation(code: ResponseCode) -> Self {
        Self::Rejection {
            code,
            illegal_operation: true,
        }
    }

    /// The kind's row of the table.
    #[must_use]
    pub const fn row(self) -> FailureRow {
        use AlarmLevel::{Error, Warning};
        use ResponseCode as Code;
        match self {
            Self::IllegalArgument => FailureRow {
                response: Code::RequestNotUnderstoodFailure,
                alarm: AlarmCode::InconsistentRequest,
                level: Warning,
                names_collection: false,
                names_file: false,
            },
            Self::Rejection {
                code,
                illegal_operation,
            } => {
                let checksum = matches!(
                    code,
                    Code::ExistingFileChecksumFailure | Code::NewFileChecksumFailure
                );
                let not_understood = matches!(code, Code::RequestNotUnderstoodFailure);
                FailureRow {
                    response: code,
                    alarm: if checksum {
                        AlarmCode::ChecksumAlarm
                    } else if not_understood {
                        AlarmCode::InvalidMessage
                    } else {
                        AlarmCode::FailedOperation
                    },
                    level: if illegal_operation && (checksum || not_understood) {
                        Error
                    } else {
                        Warning
                    },
                    names_collection: true,
                    names_file: checksum && illegal_operation,
                }
            }
            Self::Unexpected => FailureRow {
                response: Code::Failure,
                alarm: AlarmCode::ComponentFailure,
                level: Error,
                names_collection: false,
                names_file: false,
            },
        }
    }
}

/// A row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailureRow {
    /// What the response says.
    pub response: ResponseCode,
    /// The alarm's code.
    pub alarm: AlarmCode,
    /// The alarm's level: whether it is sent depends on the component's.
    pub level: AlarmLevel,
    /// Whether the alarm names the request's collection.
    pub names_collection: bool,
    /// Whether the alarm names the request's file.
    pub names_file: bool,
}

/// What a failed request answers, and the alarm to raise after that answer is sent.
#[must_use]
pub fn for_failure(
    kind: FailureKind,
    text: &str,
    collection: Option<&CollectionId>,
    file: Option<&FileId>,
) -> (ResponseCode, AlarmRequest) {
    let row = kind.row();
    let request = AlarmRequest {
        level: row.level,
        code: row.alarm,
        text: text.to_owned(),
        collection: collection.filter(|_| row.names_collection).cloned(),
        file: file.filter(|_| row.names_file).cloned(),
    };
    (row.response, request)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table() {
        use AlarmCode as Alarm;
        use AlarmLevel::{Error, Warning};
        use ResponseCode as Code;
        let not_understood = Code::RequestNotUnderstoodFailure;
        let existing = Code::ExistingFileChecksumFailure;
        let rows = [
            (
                FailureKind::IllegalArgument,
                not_understood,
                Alarm::InconsistentRequest,
                Warning,
                false,
                false,
            ),
            (
                FailureKind::rejection(not_understood),
                not_understood,
                Alarm::InvalidMessage,
                Warning,
                true,
                false,
            ),
            (
                FailureKind::illegal_operation(not_understood),
                not_understood,
                Alarm::InvalidMessage,
                Error,
                true,
                false,
            ),
            (
                FailureKind::rejection(existing),
                existing,
                Alarm::ChecksumAlarm,
                Warning,
                true,
                false,
            ),
            (
                FailureKind::illegal_operation(existing),
                existing,
                Alarm::ChecksumAlarm,
                Error,
                true,
                true,
            ),
            (
                FailureKind::illegal_operation(Code::NewFileChecksumFailure),
                Code::NewFileChecksumFailure,
                Alarm::ChecksumAlarm,
                Error,
                true,
                true,
            ),
            (
                FailureKind::rejection(Code::FileNotFoundFailure),
                Code::FileNotFoundFailure,
                Alarm::FailedOperation,
                Warning,
                true,
                false,
            ),
            (
                FailureKind::rejection(Code::Failure),
                Code::Failure,
                Alarm::FailedOperation,
                Warning,
                true,
                false,
            ),
            (
                FailureKind::Unexpected,
                Code::Failure,
                Alarm::ComponentFailure,
                Error,
                false,
                false,
            ),
        ];
        let (collection, file) = (CollectionId::from("books"), FileId::from("a"));
        for (kind, response, code, level, names_collection, names_file) in rows {
            let (answer, alarm) = for_failure(kind, "why", Some(&collection), Some(&file));
            assert_eq!(answer, response, "{kind:?}");
            assert_eq!((alarm.code, alarm.level), (code, level), "{kind:?}");
            assert_eq!(alarm.collection.is_some(), names_collection, "{kind:?}");
            assert_eq!(alarm.file.is_some(), names_file, "{kind:?}");
        }
    }
}
