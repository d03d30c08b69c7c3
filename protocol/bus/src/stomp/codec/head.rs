//! A frame's command and headers while they are read.

use bytes::Bytes;
use memchr::memchr;
use pillarbox_messages::properties;

use super::error::FrameError;
use crate::stomp::frame::{CONTENT_LENGTH, Frame, StompCommand};

/// What a message can't do without: how it is delivered and acknowledged, and what it says of itself.
const NEEDED: [&str; 14] = [
    "subscription",
    "message-id",
    "ack",
    "destination",
    "redelivered",
    "persistent",
    "correlation-id",
    "reply-to",
    "receipt-id",
    "message",
    properties::TYPE,
    properties::TO,
    properties::COLLECTION_ID,
    properties::SIGNATURE,
];

/// What has been read of a frame before its body.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) command: StompCommand,
    headers: Vec<(String, String)>,
    pub(super) content_length: Option<usize>,
    pub(super) lines: usize,
    /// In all lines so far, line ends included.
    pub(super) bytes: usize,
    /// Within a line that is too long to be kept.
    pub(super) in_long_line: bool,
}

impl Head {
    pub(super) const fn new(command: StompCommand) -> Self {
        Self {
            command,
            headers: Vec::new(),
            content_length: None,
            lines: 0,
            bytes: 0,
            in_long_line: false,
        }
    }

    /// Takes in one header line. The first of several equal names wins.
    pub(super) fn add(&mut self, line: &[u8], max_body: usize) -> Result<(), FrameError> {
        let (name, value) = split(line)?;
        if memchr(0, line).is_some() {
            return Err(FrameError::NulInHeader);
        }
        let escapes = self.command.escapes();
        let name = text(name, escapes, line)?;
        if name == CONTENT_LENGTH {
            return self.measure(value, Some(max_body));
        }
        let value = text(value, escapes, line)?;
        self.keep(name, value);
        Ok(())
    }

    /// Takes in one header line as far as possible; if there is no more room, only what is needed.
    pub(super) fn add_forgiving(&mut self, line: &[u8], full: bool) -> Result<(), FrameError> {
        let Ok((name, value)) = split(line) else {
            return Ok(());
        };
        let escapes = self.command.escapes();
        let readable = |raw: &[u8]| {
            text(raw, escapes, line).unwrap_or_else(|_| String::from_utf8_lossy(raw).into_owned())
        };
        let name = readable(name);
        if name == CONTENT_LENGTH {
            return self.measure(value, None);
        }
        if !full || NEEDED.contains(&name.as_str()) {
            self.keep(name, readable(value));
        }
        Ok(())
    }

    pub(super) fn into_frame(self, body: Bytes, left_out: Option<usize>) -> Frame {
        Frame {
            command: self.command,
            headers: self.headers,
            body,
            left_out,
        }
    }

    fn keep(&mut self, name: String, value: String) {
        if !self.headers.iter().any(|(known, _)| *known == name) {
            self.headers.push((name, value));
        }
    }

    /// Takes in the length of the body, which must not be above `limit`.
    fn measure(&mut self, digits: &[u8], limit: Option<usize>) -> Result<(), FrameError> {
        if self.content_length.is_none() {
            self.content_length = Some(self.length(digits, limit)?);
        }
        Ok(())
    }

    fn length(&self, digits: &[u8], limit: Option<usize>) -> Result<usize, FrameError> {
        if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
            return Err(FrameError::BadContentLength(printable(digits)));
        }
        // A number too large for usize is too large for any limit as well.
        let length = str::from_utf8(digits)
            .ok()
            .and_then(|digits| digits.parse().ok());
        match (length.unwrap_or(usize::MAX), limit) {
            (0, _) => Ok(0),
            _ if !self.command.has_body() => Err(FrameError::BodyNotAllowed(self.command)),
            (length, Some(limit)) if length > limit => Err(FrameError::BodyTooLarge { limit }),
            (length, _) => Ok(length),
        }
    }
}

fn split(line: &[u8]) -> Result<(&[u8], &[u8]), FrameError> {
    memchr(b':', line)
        .filter(|at| *at > 0)
        .and_then(|at| line.split_at_checked(at))
        .and_then(|(name, value)| Some((name, value.split_first()?.1)))
        .ok_or_else(|| FrameError::MalformedHeader(printable(line)))
}

/// The text of a header's name or value. An unescaped colon is let pass.
fn text(raw: &[u8], escapes: bool, line: &[u8]) -> Result<String, FrameError> {
    if !escapes || memchr(b'\\', raw).is_none() {
        return String::from_utf8(raw.to_vec()).map_err(|_| FrameError::NotUtf8);
    }
    let mut decoded = Vec::with_capacity(raw.len());
    let mut bytes = raw.iter();
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'\\' => match bytes.next() {
                Some(b'r') => b'\r',
                Some(b'n') => b'\n',
                Some(b'c') => b':',
                Some(b'\\') => b'\\',
                _ => return Err(FrameError::BadEscape(printable(line))),
            },
            other => *other,
        });
    }
    String::from_utf8(decoded).map_err(|_| FrameError::NotUtf8)
}

/// The start of a peer's bytes, fit for a message to people.
pub(super) fn printable(bytes: &[u8]) -> String {
    const SHOWN: usize = 64;
    bytes
        .get(..SHOWN)
        .unwrap_or(bytes)
        .escape_ascii()
        .to_string()
}
