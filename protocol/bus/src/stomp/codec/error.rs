//! What is wrong with a stream of frames.

use pillarbox_messages::wording::count;
use thiserror::Error;

use crate::stomp::frame::StompCommand;

/// Why bytes are no frame, or a frame can't be written. Nothing after it in the stream can be trusted.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FrameError {
    /// The command line is too long.
    #[error("command line longer than {limit} bytes")]
    CommandTooLong {
        /// The most that is allowed.
        limit: usize,
    },
    /// No command of STOMP 1.2.
    #[error("unknown command '{0}'")]
    UnknownCommand(String),
    /// A header line is too long.
    #[error("header line longer than {limit} bytes")]
    HeaderTooLong {
        /// The most that is allowed.
        limit: usize,
    },
    /// Too many header lines.
    #[error("more than {limit} headers")]
    TooManyHeaders {
        /// The most that are allowed.
        limit: usize,
    },
    /// All headers together are too long.
    #[error("headers longer than {limit} bytes in all")]
    HeadTooLarge {
        /// The most that is allowed.
        limit: usize,
    },
    /// A header line without a colon, or without a name.
    #[error("header line '{0}' is not name:value")]
    MalformedHeader(String),
    /// A NUL in a header, which STOMP can't express.
    #[error("NUL in a header")]
    NulInHeader,
    /// A backslash followed by something other than `r`, `n`, `c` or a backslash.
    #[error("undefined escape sequence in header line '{0}'")]
    BadEscape(String),
    /// A header is not UTF-8.
    #[error("header line is not UTF-8")]
    NotUtf8,
    /// `content-length` is not a number.
    #[error("content-length '{0}' is not a number of bytes")]
    BadContentLength(String),
    /// The body is too long, or is announced as too long.
    #[error("body longer than {limit} bytes")]
    BodyTooLarge {
        /// The most that is allowed.
        limit: usize,
    },
    /// A body where the command has none.
    #[error("{0} frames have no body")]
    BodyNotAllowed(StompCommand),
    /// No NUL after `content-length` bytes of body.
    #[error("no NUL after a body of {}", count(*.length, "byte"))]
    WrongContentLength {
        /// The announced length.
        length: usize,
    },
    /// A line end or colon in a header of CONNECT or CONNECTED, whose headers have no escapes.
    #[error("header '{0}' can't be written in a CONNECT frame")]
    Unescapable(String),
}

impl FrameError {
    /// Whether a limit was exceeded, rather than the syntax broken.
    #[must_use]
    pub const fn is_limit(&self) -> bool {
        matches!(
            self,
            Self::CommandTooLong { .. }
                | Self::HeaderTooLong { .. }
                | Self::TooManyHeaders { .. }
                | Self::HeadTooLarge { .. }
                | Self::BodyTooLarge { .. }
        )
    }
}
