//! Any message: one type for all of the protocol's root elements, read and written here.

use crate::{
    alarm::AlarmMessage,
    delete_file::{
        DeleteFileFinalResponse, DeleteFileProgressResponse, DeleteFileRequest,
        IdentifyPillarsForDeleteFileRequest, IdentifyPillarsForDeleteFileResponse,
    },
    get_audit_trails::{
        GetAuditTrailsFinalResponse, GetAuditTrailsProgressResponse, GetAuditTrailsRequest,
        IdentifyContributorsForGetAuditTrailsRequest,
        IdentifyContributorsForGetAuditTrailsResponse,
    },
    get_checksums::{
        GetChecksumsFinalResponse, GetChecksumsProgressResponse, GetChecksumsRequest,
        IdentifyPillarsForGetChecksumsRequest, IdentifyPillarsForGetChecksumsResponse,
    },
    get_file::{
        GetFileFinalResponse, GetFileProgressResponse, GetFileRequest,
        IdentifyPillarsForGetFileRequest, IdentifyPillarsForGetFileResponse,
    },
    get_file_ids::{
        GetFileIdsFinalResponse, GetFileIdsProgressResponse, GetFileIdsRequest,
        IdentifyPillarsForGetFileIdsRequest, IdentifyPillarsForGetFileIdsResponse,
    },
    get_status::{
        GetStatusFinalResponse, GetStatusProgressResponse, GetStatusRequest,
        IdentifyContributorsForGetStatusRequest, IdentifyContributorsForGetStatusResponse,
    },
    put_file::{
        IdentifyPillarsForPutFileRequest, IdentifyPillarsForPutFileResponse, PutFileFinalResponse,
        PutFileProgressResponse, PutFileRequest,
    },
    replace_file::{
        IdentifyPillarsForReplaceFileRequest, IdentifyPillarsForReplaceFileResponse,
        ReplaceFileFinalResponse, ReplaceFileProgressResponse, ReplaceFileRequest,
    },
};
use crate::{
    enums::UnknownValue,
    error::{DecodeError, DecodeReason, shown},
    header::{Header, ResponseInfo},
    ids::FileId,
    limits::MAX_MESSAGE_BYTES,
    operation::{MessageKind, Operation},
    timestamp::Zone,
    version::ProtocolVersion,
    xml::{
        self,
        reader::{Read, Reader},
        writer::Writer,
    },
};

/// How much more than the schema allows is read.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadOptions {
    /// What a date and time without an offset from UTC is taken for: local time there. Without a zone it is refused.
    /// Components of protocol versions before 29 write such dates.
    pub zone: Option<Zone>,
}

/// What every message type does.
pub(crate) trait Body: Sized {
    /// Reads what follows the header, up to the root's end tag.
    fn read(reader: &mut Reader<'_>, header: Header) -> Read<Self>;

    /// Writes everything inside the root.
    fn write(&self, writer: &mut Writer);

    /// How it went, if this is a response.
    fn response_info(&self) -> Option<&ResponseInfo>;

    /// The one file that the message is about.
    fn file_id(&self) -> Option<&FileId>;
}

macro_rules! message_types {
    ($( $name:ident = $element:literal, $kind:ident, $operation:expr; )*) => {
        enumeration! {
            /// The type of a message: the local name of its root element.
            MessageType, "a message type" {
                $( #[doc = concat!("Root element `", $element, "`.")] $name = $element, )*
            }
        }

        impl MessageType {
            /// Its part in a conversation.
            #[must_use]
            pub const fn kind(self) -> MessageKind {
                match self {
                    $( Self::$name => MessageKind::$kind, )*
                }
            }

            /// The operation it belongs to; an alarm belongs to none.
            #[must_use]
            pub const fn operation(self) -> Option<Operation> {
                match self {
                    $( Self::$name => $operation, )*
                }
            }
        }

        /// Any message of the protocol.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Message {
            $( #[doc = concat!("Root element `", $element, "`.")] $name($name), )*
        }

        impl Message {
            /// Its type.
            #[must_use]
            pub const fn message_type(&self) -> MessageType {
                match self {
                    $( Self::$name(_) => MessageType::$name, )*
                }
            }

            /// What every message has.
            #[must_use]
            pub const fn header(&self) -> &Header {
                match self {
                    $( Self::$name(message) => &message.header, )*
                }
            }

            /// What every message has, to change.
            pub const fn header_mut(&mut self) -> &mut Header {
                match self {
                    $( Self::$name(message) => &mut message.header, )*
                }
            }

            /// How it went, if this is a response.
            #[must_use]
            pub fn response_info(&self) -> Option<&ResponseInfo> {
                match self {
                    $( Self::$name(message) => message.response_info(), )*
                }
            }

            /// The file that this message is about, if it is exactly one.
            #[must_use]
            pub fn file_id(&self) -> Option<&FileId> {
                match self {
                    $( Self::$name(message) => message.file_id(), )*
                }
            }

            fn read_body(kind: MessageType, reader: &mut Reader<'_>, header: Header) -> Read<Self> {
                match kind {
                    $( MessageType::$name => Ok(Self::$name(Body::read(reader, header)?)), )*
                }
            }

            fn write_body(&self, writer: &mut Writer) {
                match self {
                    $( Self::$name(message) => message.write(writer), )*
                }
            }
        }

        #[cfg(test)]
        impl Message {
            /// A random message of the type.
            fn sample_of(kind: MessageType, source: &mut crate::sample::Source) -> Self {
                match kind {
                    $( MessageType::$name => Self::$name(crate::sample::required(source)), )*
                }
            }
        }

        $(impl From<$name> for Message {
            fn from(message: $name) -> Self {
                Self::$name(message)
            }
        })*
    };
}

message_types! {
    IdentifyPillarsForGetFileRequest = "IdentifyPillarsForGetFileRequest", IdentifyRequest, Some(Operation::GetFile);
    IdentifyPillarsForGetFileResponse = "IdentifyPillarsForGetFileResponse", IdentifyResponse, Some(Operation::GetFile);
    GetFileRequest = "GetFileRequest", Request, Some(Operation::GetFile);
    GetFileProgressResponse = "GetFileProgressResponse", ProgressResponse, Some(Operation::GetFile);
    GetFileFinalResponse = "GetFileFinalResponse", FinalResponse, Some(Operation::GetFile);
    IdentifyPillarsForPutFileRequest = "IdentifyPillarsForPutFileRequest", IdentifyRequest, Some(Operation::PutFile);
    IdentifyPillarsForPutFileResponse = "IdentifyPillarsForPutFileResponse", IdentifyResponse, Some(Operation::PutFile);
    PutFileRequest = "PutFileRequest", Request, Some(Operation::PutFile);
    PutFileProgressResponse = "PutFileProgressResponse", ProgressResponse, Some(Operation::PutFile);
    PutFileFinalResponse = "PutFileFinalResponse", FinalResponse, Some(Operation::PutFile);
    IdentifyPillarsForDeleteFileRequest = "IdentifyPillarsForDeleteFileRequest", IdentifyRequest, Some(Operation::DeleteFile);
    IdentifyPillarsForDeleteFileResponse = "IdentifyPillarsForDeleteFileResponse", IdentifyResponse, Some(Operation::DeleteFile);
    DeleteFileRequest = "DeleteFileRequest", Request, Some(Operation::DeleteFile);
    DeleteFileProgressResponse = "DeleteFileProgressResponse", ProgressResponse, Some(Operation::DeleteFile);
    DeleteFileFinalResponse = "DeleteFileFinalResponse", FinalResponse, Some(Operation::DeleteFile);
    IdentifyPillarsForReplaceFileRequest = "IdentifyPillarsForReplaceFileRequest", IdentifyRequest, Some(Operation::ReplaceFile);
    IdentifyPillarsForReplaceFileResponse = "IdentifyPillarsForReplaceFileResponse", IdentifyResponse, Some(Operation::ReplaceFile);
    ReplaceFileRequest = "ReplaceFileRequest", Request, Some(Operation::ReplaceFile);
    ReplaceFileProgressResponse = "ReplaceFileProgressResponse", ProgressResponse, Some(Operation::ReplaceFile);
    ReplaceFileFinalResponse = "ReplaceFileFinalResponse", FinalResponse, Some(Operation::ReplaceFile);
    IdentifyPillarsForGetChecksumsRequest = "IdentifyPillarsForGetChecksumsRequest", IdentifyRequest, Some(Operation::GetChecksums);
    IdentifyPillarsForGetChecksumsResponse = "IdentifyPillarsForGetChecksumsResponse", IdentifyResponse, Some(Operation::GetChecksums);
    GetChecksumsRequest = "GetChecksumsRequest", Request, Some(Operation::GetChecksums);
    GetChecksumsProgressResponse = "GetChecksumsProgressResponse", ProgressResponse, Some(Operation::GetChecksums);
    GetChecksumsFinalResponse = "GetChecksumsFinalResponse", FinalResponse, Some(Operation::GetChecksums);
    IdentifyPillarsForGetFileIdsRequest = "IdentifyPillarsForGetFileIDsRequest", IdentifyRequest, Some(Operation::GetFileIds);
    IdentifyPillarsForGetFileIdsResponse = "IdentifyPillarsForGetFileIDsResponse", IdentifyResponse, Some(Operation::GetFileIds);
    GetFileIdsRequest = "GetFileIDsRequest", Request, Some(Operation::GetFileIds);
    GetFileIdsProgressResponse = "GetFileIDsProgressResponse", ProgressResponse, Some(Operation::GetFileIds);
    GetFileIdsFinalResponse = "GetFileIDsFinalResponse", FinalResponse, Some(Operation::GetFileIds);
    IdentifyContributorsForGetStatusRequest = "IdentifyContributorsForGetStatusRequest", IdentifyRequest, Some(Operation::GetStatus);
    IdentifyContributorsForGetStatusResponse = "IdentifyContributorsForGetStatusResponse", IdentifyResponse, Some(Operation::GetStatus);
    GetStatusRequest = "GetStatusRequest", Request, Some(Operation::GetStatus);
    GetStatusProgressResponse = "GetStatusProgressResponse", ProgressResponse, Some(Operation::GetStatus);
    GetStatusFinalResponse = "GetStatusFinalResponse", FinalResponse, Some(Operation::GetStatus);
    IdentifyContributorsForGetAuditTrailsRequest = "IdentifyContributorsForGetAuditTrailsRequest", IdentifyRequest, Some(Operation::GetAuditTrails);
    IdentifyContributorsForGetAuditTrailsResponse = "IdentifyContributorsForGetAuditTrailsResponse", IdentifyResponse, Some(Operation::GetAuditTrails);
    GetAuditTrailsRequest = "GetAuditTrailsRequest", Request, Some(Operation::GetAuditTrails);
    GetAuditTrailsProgressResponse = "GetAuditTrailsProgressResponse", ProgressResponse, Some(Operation::GetAuditTrails);
    GetAuditTrailsFinalResponse = "GetAuditTrailsFinalResponse", FinalResponse, Some(Operation::GetAuditTrails);
    AlarmMessage = "AlarmMessage", Alarm, None;
}

impl MessageType {
    /// Whether it asks who is ready for an operation.
    #[must_use]
    pub const fn is_identify_request(self) -> bool {
        matches!(self.kind(), MessageKind::IdentifyRequest)
    }

    /// Whether it asks for something: who is ready, or the operation itself.
    #[must_use]
    pub const fn is_request(self) -> bool {
        matches!(
            self.kind(),
            MessageKind::IdentifyRequest | MessageKind::Request
        )
    }

    /// Whether it answers a request.
    #[must_use]
    pub const fn is_response(self) -> bool {
        matches!(
            self.kind(),
            MessageKind::IdentifyResponse
                | MessageKind::ProgressResponse
                | MessageKind::FinalResponse
        )
    }

    /// Whether it is the last answer to an operation request.
    #[must_use]
    pub const fn is_final_response(self) -> bool {
        matches!(self.kind(), MessageKind::FinalResponse)
    }
}

impl Message {
    /// Reads a message of at most [`MAX_MESSAGE_BYTES`], as strictly as the schema has it: the local name of
    /// the root decides the type; every element in its place and namespace, nothing missing, nothing else.
    ///
    /// Stricter than the schema in few things, none of which the Java components write: no document type
    /// declaration, no processing instruction after the prolog, no `xsi:type`, no declared encoding but UTF-8, no
    /// XML version but 1.0; `Destination` and `ReplyTo` name a place of a known kind; dates are within what
    /// [`Timestamp`](crate::Timestamp) holds. More lenient in none. Numbers without upper bound in the schema
    /// are cut to what fits.
    ///
    /// # Errors
    ///
    /// If the text is not well-formed, not such a message, or too large. The version is not judged; see
    /// [`ProtocolVersion::check`].
    pub fn from_xml(text: &str) -> Result<Self, DecodeError> {
        Self::from_xml_with(text, ReadOptions::default())
    }

    /// As [`Message::from_xml`], but as lenient as the options say.
    ///
    /// # Errors
    ///
    /// As [`Message::from_xml`].
    pub fn from_xml_with(text: &str, options: ReadOptions) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(text, MAX_MESSAGE_BYTES)?;
        reader.set_options(options);
        Self::read(&mut reader).map_err(|reason| reader.into_error(*reason))
    }

    /// The message as XML, in one line, in the shape that the Java components write. Characters that XML 1.0
    /// does not have become U+FFFD.
    #[must_use]
    pub fn to_xml(&self) -> String {
        let name = self.message_type().as_str();
        let ProtocolVersion {
            version,
            min_version,
        } = self.header().version;
        let mut writer = Writer::new();
        writer.open_root(xml::MESSAGES, name, version, min_version);
        self.write_body(&mut writer);
        writer.close_root(name);
        writer.into_string()
    }

    fn read(reader: &mut Reader<'_>) -> Read<Self> {
        let root = reader.root(xml::MESSAGES)?;
        let kind: MessageType = root
            .name
            .parse()
            .map_err(|_: UnknownValue| Box::new(DecodeReason::UnknownRoot(shown(&root.name))))?;
        let version = root.version.as_ref().copied().unwrap_or_default();
        let header = Header::read(reader, version)?;
        // Later, so that whoever is told of it is known.
        if let Err(fault) = root.version {
            return Err(reader.fail(fault));
        }
        let message = Self::read_body(kind, reader, header)?;
        reader.finish()?;
        Ok(message)
    }
}

#[cfg(test)]
mod tests;
