//! The schema's closed enumerations.

use thiserror::Error;

use crate::{error::shown, xml::value::Value};

/// A text that is none of an enumeration's values.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("'{text}' is not {expected}")]
pub struct UnknownValue {
    /// The text, cut short if it is long.
    pub text: Box<str>,
    /// Which enumeration it should be of.
    pub expected: &'static str,
}

impl UnknownValue {
    pub(crate) fn new(text: &str, expected: &'static str) -> Self {
        Self {
            text: shown(text),
            expected,
        }
    }
}

macro_rules! wire_enumerations {
    ($( $(#[$doc:meta])* $name:ident, $expected:literal { $($body:tt)* } )*) => {$(
        enumeration! { $(#[$doc])* $name, $expected { $($body)* } }

        impl Value for $name {
            const EXPECTED: &'static str = $expected;

            fn from_text(text: &str) -> Option<Self> {
                text.parse().ok()
            }

            fn write(&self, out: &mut String) {
                out.push_str(self.as_str());
            }
        }
    )*};
}

wire_enumerations! {
    /// The outcome or progress of an operation (schema type `ResponseCode`).
    ResponseCode, "a response code" {
        /// Ready to perform the operation.
        IdentificationPositive = "IDENTIFICATION_POSITIVE",
        /// Not able to perform it; other codes say why, so this one is only received.
        IdentificationNegative = "IDENTIFICATION_NEGATIVE",
        /// Still at work.
        OperationProgress = "OPERATION_PROGRESS",
        /// The request is accepted, the work begins.
        OperationAcceptedProgress = "OPERATION_ACCEPTED_PROGRESS",
        /// Done.
        OperationCompleted = "OPERATION_COMPLETED",
        /// Failed for a reason without a code of its own.
        Failure = "FAILURE",
        /// A file of this id is already there.
        DuplicateFileFailure = "DUPLICATE_FILE_FAILURE",
        /// There is no file of this id.
        FileNotFoundFailure = "FILE_NOT_FOUND_FAILURE",
        /// The checksum of the new file is missing or differs.
        NewFileChecksumFailure = "NEW_FILE_CHECKSUM_FAILURE",
        /// The checksum of the file that is there is missing or differs.
        ExistingFileChecksumFailure = "EXISTING_FILE_CHECKSUM_FAILURE",
        /// The file could not be fetched or delivered.
        FileTransferFailure = "FILE_TRANSFER_FAILURE",
        /// The request makes no sense.
        RequestNotUnderstoodFailure = "REQUEST_NOT_UNDERSTOOD_FAILURE",
        /// This component does not do such things; no failure in itself.
        RequestNotSupported = "REQUEST_NOT_SUPPORTED",
    }

    /// What kind of alarm (schema type `AlarmCode`).
    AlarmCode, "an alarm code" {
        /// Something inside the component failed.
        ComponentFailure = "COMPONENT_FAILURE",
        /// A request contradicts what the component knows.
        InconsistentRequest = "INCONSISTENT_REQUEST",
        /// A checksum differs.
        ChecksumAlarm = "CHECKSUM_ALARM",
        /// A file transfer failed.
        FailedTransfer = "FAILED_TRANSFER",
        /// An operation failed.
        FailedOperation = "FAILED_OPERATION",
        /// A message could not be read or was refused.
        InvalidMessage = "INVALID_MESSAGE",
        /// A message of a protocol version that does not fit.
        InvalidMessageVersion = "INVALID_MESSAGE_VERSION",
        /// Something took too long.
        Timeout = "TIMEOUT",
        /// The pillars disagree about a file.
        IntegrityIssue = "INTEGRITY_ISSUE",
    }

    /// What was done to a file, in an audit trail (schema type `FileAction`).
    FileAction, "a file action" {
        /// Delivered.
        GetFile = "GET_FILE",
        /// Stored.
        PutFile = "PUT_FILE",
        /// Deleted.
        DeleteFile = "DELETE_FILE",
        /// Replaced.
        ReplaceFile = "REPLACE_FILE",
        /// Its checksum was asked for.
        GetChecksums = "GET_CHECKSUMS",
        /// Its id was asked for.
        GetFileId = "GET_FILEID",
        /// Its checksum was calculated.
        ChecksumCalculated = "CHECKSUM_CALCULATED",
        /// Moved to other storage.
        FileMoved = "FILE_MOVED",
        /// Checked.
        IntegrityCheck = "INTEGRITY_CHECK",
        /// Found to differ.
        Inconsistency = "INCONSISTENCY",
        /// Something failed.
        Failure = "FAILURE",
        /// Anything else.
        Other = "OTHER",
    }

    /// How a checksum is calculated (schema type `ChecksumType`).
    ChecksumType, "a checksum type" {
        /// MD5.
        Md5 = "MD5",
        /// SHA-1.
        Sha1 = "SHA1",
        /// SHA-256.
        Sha256 = "SHA256",
        /// SHA-384.
        Sha384 = "SHA384",
        /// SHA-512.
        Sha512 = "SHA512",
        /// HMAC with MD5, the salt being the key.
        HmacMd5 = "HMAC_MD5",
        /// HMAC with SHA-1, the salt being the key.
        HmacSha1 = "HMAC_SHA1",
        /// HMAC with SHA-256, the salt being the key.
        HmacSha256 = "HMAC_SHA256",
        /// HMAC with SHA-384, the salt being the key.
        HmacSha384 = "HMAC_SHA384",
        /// HMAC with SHA-512, the salt being the key.
        HmacSha512 = "HMAC_SHA512",
        /// Another one, named beside it.
        Other = "OTHER",
    }

    /// How a component is (schema type `StatusCode`).
    StatusCode, "a status code" {
        /// Well.
        Ok = "OK",
        /// Working, with something to look at.
        Warning = "WARNING",
        /// Not working as it should.
        Error = "ERROR",
    }

    /// The unit of a time measure (schema type `TimeMeasureUnit`).
    TimeMeasureUnit, "a unit of time" {
        /// Milliseconds.
        Milliseconds = "MILLISECONDS",
        /// Hours.
        Hours = "HOURS",
    }
}
