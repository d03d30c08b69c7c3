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

    /// Answer, alarm code, level, whether the collection is named, whether the file is.
    type Row = (ResponseCode, AlarmCode, AlarmLevel, bool, bool);

    fn row(kind: FailureKind) -> Row {
        let (collection, file) = (CollectionId::from("books"), FileId::from("a"));
        let (answer, alarm) = for_failure(kind, "why", Some(&collection), Some(&file));
        assert_eq!(alarm.text, "why");
        (
            answer,
            alarm.code,
            alarm.level,
            alarm.collection.is_some(),
            alarm.file.is_some(),
        )
    }

    #[test]
    fn the_table() {
        use AlarmCode::{ChecksumAlarm, ComponentFailure, FailedOperation, InvalidMessage};
        use AlarmLevel::{Error, Warning};
        use ResponseCode as Code;
        let refused = FailureKind::rejection;
        let illegal = FailureKind::illegal_operation;

        let bad = Code::RequestNotUnderstoodFailure;
        let argument = row(FailureKind::IllegalArgument);
        assert_eq!(
            argument,
            (bad, AlarmCode::InconsistentRequest, Warning, false, false)
        );
        assert_eq!(
            row(refused(bad)),
            (bad, InvalidMessage, Warning, true, false)
        );
        assert_eq!(row(illegal(bad)), (bad, InvalidMessage, Error, true, false));
        for code in [
            Code::ExistingFileChecksumFailure,
            Code::NewFileChecksumFailure,
        ] {
            assert_eq!(
                row(refused(code)),
                (code, ChecksumAlarm, Warning, true, false)
            );
            assert_eq!(row(illegal(code)), (code, ChecksumAlarm, Error, true, true));
        }
        for code in [
            Code::FileNotFoundFailure,
            Code::DuplicateFileFailure,
            Code::FileTransferFailure,
            Code::RequestNotSupported,
            Code::Failure,
        ] {
            assert_eq!(
                row(refused(code)),
                (code, FailedOperation, Warning, true, false)
            );
        }
        let unexpected = row(FailureKind::Unexpected);
        assert_eq!(
            unexpected,
            (Code::Failure, ComponentFailure, Error, false, false)
        );
    }
}
