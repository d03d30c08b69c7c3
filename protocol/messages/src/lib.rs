//! Message types, XML codec, versions, identifiers and destinations of the BitRepository protocol.
//!
//! Owns the form of everything that travels as XML: the 41 message types ([`Message`]), the five result
//! documents ([`results`]), and the text forms of their values. It knows no transport, no file system and no
//! settings, keeps no state and never reads the time (except [`clock::SystemClock`], for whoever wants it).
//!
//! Invariants:
//!
//! * What is read is what the schema allows, no less strict: element order, number, namespace, attributes,
//!   value spaces. The few differences are named at [`Message::from_xml`].
//! * Reading hostile text ends in a typed [`DecodeError`], in bounded memory and linear time ([`limits`]).
//! * What is written can be read again and is equal, except for characters that XML does not have.
//! * Reading judges form only. Whether a file id is acceptable ([`file_id`]) or a version speaks to ours
//!   ([`ProtocolVersion::check`]) is asked by whoever can answer the sender.
//!
//! Modules: one per operation with its message types ([`get_file`], [`put_file`], [`delete_file`],
//! [`replace_file`], [`get_checksums`], [`get_file_ids`], [`get_status`], [`get_audit_trails`]) and [`alarm`];
//! what they share in [`elements`], [`enums`], [`header`], [`hex_binary`], [`timestamp`], [`version`];
//! [`message`] and [`operation`] sort them; [`ids`], [`destination`], [`file_id`] name things; [`properties`]
//! are the names beside a message on the bus; [`wording`] has what texts for people need.

#[macro_use]
mod macros;

pub mod alarm;
pub mod clock;
pub mod delete_file;
pub mod destination;
pub mod elements;
pub mod enums;
pub mod error;
pub mod file_id;
pub mod get_audit_trails;
pub mod get_checksums;
pub mod get_file;
pub mod get_file_ids;
pub mod get_status;
pub mod header;
pub mod hex_binary;
pub mod ids;
pub mod limits;
pub mod message;
pub mod operation;
pub mod properties;
pub mod put_file;
pub mod replace_file;
pub mod results;
#[cfg(test)]
mod sample;
pub mod timestamp;
pub mod version;
pub mod wording;
mod xml;

pub use alarm::AlarmMessage;
pub use delete_file::{
    DeleteFileFinalResponse, DeleteFileProgressResponse, DeleteFileRequest,
    IdentifyPillarsForDeleteFileRequest, IdentifyPillarsForDeleteFileResponse,
};
pub use destination::{Destination, DestinationError, DestinationKind};
pub use elements::{
    Alarm, AuditTrailEvent, AuditTrailEvents, ChecksumData, ChecksumDataItem, ChecksumSpec,
    FileIds, FileIdsData, FileIdsDataItem, FilePart, ResultingAuditTrails, ResultingChecksums,
    ResultingFileIds, ResultingStatus, StatusInfo, TimeToDeliver,
};
pub use enums::{
    AlarmCode, ChecksumType, FileAction, ResponseCode, StatusCode, TimeMeasureUnit, UnknownValue,
};
pub use error::{DecodeError, DecodeReason, KnownHeader};
pub use file_id::{ArchiveFileId, FileIdError, FileIdPattern, PatternError};
pub use get_audit_trails::{
    GetAuditTrailsFinalResponse, GetAuditTrailsProgressResponse, GetAuditTrailsRequest,
    IdentifyContributorsForGetAuditTrailsRequest, IdentifyContributorsForGetAuditTrailsResponse,
};
pub use get_checksums::{
    GetChecksumsFinalResponse, GetChecksumsProgressResponse, GetChecksumsRequest,
    IdentifyPillarsForGetChecksumsRequest, IdentifyPillarsForGetChecksumsResponse,
};
pub use get_file::{
    GetFileFinalResponse, GetFileProgressResponse, GetFileRequest,
    IdentifyPillarsForGetFileRequest, IdentifyPillarsForGetFileResponse,
};
pub use get_file_ids::{
    GetFileIdsFinalResponse, GetFileIdsProgressResponse, GetFileIdsRequest,
    IdentifyPillarsForGetFileIdsRequest, IdentifyPillarsForGetFileIdsResponse,
};
pub use get_status::{
    GetStatusFinalResponse, GetStatusProgressResponse, GetStatusRequest,
    IdentifyContributorsForGetStatusRequest, IdentifyContributorsForGetStatusResponse,
};
pub use header::{Header, ResponseInfo};
pub use hex_binary::{HexBinary, HexBinaryError};
pub use ids::{CollectionId, ComponentId, CorrelationId, FileId};
pub use message::{Message, MessageType, ReadOptions};
pub use operation::{MessageKind, Operation};
pub use put_file::{
    IdentifyPillarsForPutFileRequest, IdentifyPillarsForPutFileResponse, PutFileFinalResponse,
    PutFileProgressResponse, PutFileRequest,
};
pub use replace_file::{
    IdentifyPillarsForReplaceFileRequest, IdentifyPillarsForReplaceFileResponse,
    ReplaceFileFinalResponse, ReplaceFileProgressResponse, ReplaceFileRequest,
};
pub use results::ResultDocument;
pub use timestamp::{Timestamp, TimestampError, Zone};
pub use version::{ProtocolVersion, VersionError};
