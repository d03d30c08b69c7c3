//! The protocol's operations, and the parts that messages play in them.

enumeration! {
    /// What can be asked of a component.
    Operation, "an operation" {
        /// Fetching a file.
        GetFile = "GetFile",
        /// Storing a new file.
        PutFile = "PutFile",
        /// Replacing a file.
        ReplaceFile = "ReplaceFile",
        /// Deleting a file.
        DeleteFile = "DeleteFile",
        /// Asking which files there are.
        GetFileIds = "GetFileIDs",
        /// Asking for checksums.
        GetChecksums = "GetChecksums",
        /// Asking what was done to files.
        GetAuditTrails = "GetAuditTrails",
        /// Asking how a component is.
        GetStatus = "GetStatus",
    }
}

impl Operation {
    /// Its name in events, logs and audit trails: `PUT_FILE`, `GET_FILE_IDS`.
    #[must_use]
    pub const fn event_name(self) -> &'static str {
        match self {
            Self::GetFile => "GET_FILE",
            Self::PutFile => "PUT_FILE",
            Self::ReplaceFile => "REPLACE_FILE",
            Self::DeleteFile => "DELETE_FILE",
            Self::GetFileIds => "GET_FILE_IDS",
            Self::GetChecksums => "GET_CHECKSUMS",
            Self::GetAuditTrails => "GET_AUDIT_TRAILS",
            Self::GetStatus => "GET_STATUS",
        }
    }
}

/// The part that a message type plays in a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MessageKind {
    /// Asks who is ready for an operation.
    IdentifyRequest,
    /// Says whether one is.
    IdentifyResponse,
    /// Asks one component to perform the operation.
    Request,
    /// Says that the work has begun or goes on.
    ProgressResponse,
    /// Says how it ended.
    FinalResponse,
    /// Tells operators of something, outside any conversation.
    Alarm,
}
