//! The frame codec that client and server share: STOMP 1.2 bytes to frames and back.
//!
//! The decoder takes the stream in any pieces, remembers how far it has looked, and refuses what exceeds its
//! limits while reading, before anything is allocated for it.

mod error;
#[cfg(test)]
mod tests;

use std::mem;

use bytes::{Buf, Bytes, BytesMut};
use memchr::memchr;

pub use self::error::FrameError;
use super::frame::{CONTENT_LENGTH, Frame, FrameWriter, StompCommand};

/// How large a frame may be. All sizes in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameLimits {
    /// The command line, without its line end.
    pub command: usize,
    /// One header line, without its line end.
    pub header_line: usize,
    /// Number of header lines.
    pub headers: usize,
    /// All header lines together.
    pub head: usize,
    /// The body.
    pub body: usize,
}

impl FrameLimits {
    /// What a peer may send before its `CONNECT` is accepted: 16 KiB in all.
    #[must_use]
    pub const fn before_connect() -> Self {
        Self {
            command: 32,
            header_line: 12 << 10,
            headers: 64,
            head: 12 << 10,
            body: 4 << 10,
        }
    }
}

impl Default for FrameLimits {
    fn default() -> Self {
        Self {
            command: 32,
            header_line: 64 << 10,
            headers: 256,
            head: 256 << 10,
            body: 16 << 20,
        }
    }
}

/// The codec. One per direction of a connection, or one for both.
#[derive(Debug)]
pub struct StompCodec {
    limits: FrameLimits,
    state: State,
    /// How many bytes at the front of the buffer are known to hold no end of line or body.
    scanned: usize,
}

#[derive(Debug, Default)]
enum State {
    /// Between frames, or in a command line.
    #[default]
    Idle,
    Head(Head),
    Body(Head),
}

#[derive(Debug)]
struct Head {
    command: StompCommand,
    headers: Vec<(String, String)>,
    content_length: Option<usize>,
    lines: usize,
    bytes: usize,
}

impl StompCodec {
    /// A codec with these limits.
    #[must_use]
    pub fn new(limits: FrameLimits) -> Self {
        Self {
            limits,
            state: State::Idle,
            scanned: 0,
        }
    }

    /// Changes the limits, from the next frame on.
    pub const fn set_limits(&mut self, limits: FrameLimits) {
        self.limits = limits;
    }

    /// Whether a frame has begun that has not ended; `rest` is what is left of the buffer.
    #[must_use]
    pub fn in_frame(&self, rest: &[u8]) -> bool {
        !matches!(self.state, State::Idle) || !rest.is_empty()
    }

    /// The next whole frame. Line ends between frames (heart-beats) are skipped.
    ///
    /// # Errors
    /// What is wrong with the stream. Nothing after it can be read.
    pub fn decode(&mut self, src: &mut BytesMut) -> Result<Option<Frame>, FrameError> {
        loop {
            match mem::take(&mut self.state) {
                State::Idle => match self.command(src)? {
                    Some(head) => self.state = State::Head(head),
                    None => return Ok(None),
                },
                State::Head(mut head) => {
                    if self.headers(&mut head, src)? {
                        self.state = State::Body(head);
                    } else {
                        self.state = State::Head(head);
                        return Ok(None);
                    }
                }
                State::Body(head) => match self.body(&head, src)? {
                    Some(body) => {
                        let Head {
                            command, headers, ..
                        } = head;
                        return Ok(Some(Frame {
                            command,
                            headers,
                            body,
                        }));
                    }
                    None => {
                        self.state = State::Body(head);
                        return Ok(None);
                    }
                },
            }
        }
    }

    /// Appends a frame, with `content-length` if its command may have a body.
    ///
    /// # Errors
    /// If STOMP can't say this. Then nothing is appended.
    pub fn encode(frame: &Frame, out: &mut BytesMut) -> Result<(), FrameError> {
        if !frame.body.is_empty() && !frame.command.has_body() {
            return Err(FrameError::BodyNotAllowed(frame.command));
        }
        for (name, value) in &frame.headers {
            check_writable(frame.command, name, value)?;
        }
        let mut writer = FrameWriter::new(out, frame.command);
        for (name, value) in &frame.headers {
            writer.header(name, value);
        }
        writer.finish(&frame.body);
        Ok(())
    }

    /// The length of the next line if its end is there. `limit` is without the line end.
    fn line(&mut self, src: &[u8], limit: usize) -> Result<Option<usize>, TooLong> {
        let found = src.get(self.scanned..).and_then(|rest| memchr(b'\n', rest));
        let length = found.map_or(src.len(), |at| self.scanned + at);
        // One more for the CR of a CRLF.
        if length > limit + 1 {
            return Err(TooLong);
        }
        self.scanned = if found.is_some() { 0 } else { src.len() };
        Ok(found.map(|_| length))
    }

    fn command(&mut self, src: &mut BytesMut) -> Result<Option<Head>, FrameError> {
        let limit = self.limits.command;
        loop {
            let length = self
                .line(src, limit)
                .map_err(|_| FrameError::CommandTooLong { limit })?;
            let Some(length) = length else {
                return Ok(None);
            };
            let line = without_cr(src, length);
            if line.is_empty() {
                // A line end between frames: a heart-beat.
                src.advance(length + 1);
                continue;
            }
            let command = StompCommand::from_line(line)
                .ok_or_else(|| FrameError::UnknownCommand(printable(line)))?;
            src.advance(length + 1);
            return Ok(Some(Head {
                command,
                headers: Vec::new(),
                content_length: None,
                lines: 0,
                bytes: 0,
            }));
        }
    }

    /// Reads header lines; true at the empty line after them.
    fn headers(&mut self, head: &mut Head, src: &mut BytesMut) -> Result<bool, FrameError> {
        let limits = self.limits;
        loop {
            let left = limits.head.saturating_sub(head.bytes);
            let limit = limits.header_line.min(left);
            let length = self.line(src, limit).map_err(|_| {
                if left < limits.header_line {
                    FrameError::HeadTooLarge { limit: limits.head }
                } else {
                    FrameError::HeaderTooLong {
                        limit: limits.header_line,
                    }
                }
            })?;
            let Some(length) = length else {
                return Ok(false);
            };
            let line = without_cr(src, length);
            if line.is_empty() {
                src.advance(length + 1);
                return Ok(true);
            }
            head.lines += 1;
            if head.lines > limits.headers {
                return Err(FrameError::TooManyHeaders {
                    limit: limits.headers,
                });
            }
            head.bytes += length + 1;
            head.add(line, limits.body)?;
            src.advance(length + 1);
        }
    }

    fn body(&mut self, head: &Head, src: &mut BytesMut) -> Result<Option<Bytes>, FrameError> {
        let length = match head.content_length {
            Some(length) => {
                let Some(end) = src.get(length) else {
                    return Ok(None);
                };
                if *end != 0 {
                    return Err(FrameError::WrongContentLength { length });
                }
                length
            }
            None => match self.find_nul(head, src)? {
                Some(length) => length,
                None => return Ok(None),
            },
        };
        // Copied out: a message that is kept must not keep the whole read buffer.
        let body = Bytes::copy_from_slice(src.get(..length).unwrap_or_default());
        src.advance(length + 1);
        self.scanned = 0;
        Ok(Some(body))
    }

    fn find_nul(&mut self, head: &Head, src: &[u8]) -> Result<Option<usize>, FrameError> {
        let found = src.get(self.scanned..).and_then(|rest| memchr(0, rest));
        let length = found.map_or(src.len(), |at| self.scanned + at);
        if length > 0 && !head.command.has_body() {
            return Err(FrameError::BodyNotAllowed(head.command));
        }
        if length > self.limits.body {
            return Err(FrameError::BodyTooLarge {
                limit: self.limits.body,
            });
        }
        self.scanned = length;
        Ok(found.map(|_| length))
    }
}

impl Default for StompCodec {
    fn default() -> Self {
        Self::new(FrameLimits::default())
    }
}

impl Head {
    /// Takes in one header line. The first of several equal names wins.
    fn add(&mut self, line: &[u8], max_body: usize) -> Result<(), FrameError> {
        let colon = memchr(b':', line).filter(|at| *at > 0);
        let (name, value) = colon
            .and_then(|at| line.split_at_checked(at))
            .and_then(|(name, value)| Some((name, value.split_first()?.1)))
            .ok_or_else(|| FrameError::MalformedHeader(printable(line)))?;
        if memchr(0, line).is_some() {
            return Err(FrameError::NulInHeader);
        }
        let escapes = self.command.escapes();
        let name = text(name, escapes, line)?;
        if name == CONTENT_LENGTH {
            if self.content_length.is_none() {
                self.content_length = Some(self.length(value, max_body)?);
            }
            return Ok(());
        }
        let value = text(value, escapes, line)?;
        if !self.headers.iter().any(|(known, _)| *known == name) {
            self.headers.push((name, value));
        }
        Ok(())
    }

    fn length(&self, digits: &[u8], limit: usize) -> Result<usize, FrameError> {
        if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
            return Err(FrameError::BadContentLength(printable(digits)));
        }
        // A number too large for usize is too large for any limit as well.
        let length = str::from_utf8(digits)
            .ok()
            .and_then(|digits| digits.parse().ok());
        match length.unwrap_or(usize::MAX) {
            0 => Ok(0),
            _ if !self.command.has_body() => Err(FrameError::BodyNotAllowed(self.command)),
            length if length > limit => Err(FrameError::BodyTooLarge { limit }),
            length => Ok(length),
        }
    }
}

struct TooLong;

fn without_cr(src: &[u8], length: usize) -> &[u8] {
    let line = src.get(..length).unwrap_or_default();
    line.strip_suffix(b"\r").unwrap_or(line)
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
fn printable(bytes: &[u8]) -> String {
    const SHOWN: usize = 64;
    bytes
        .get(..SHOWN)
        .unwrap_or(bytes)
        .escape_ascii()
        .to_string()
}

fn check_writable(command: StompCommand, name: &str, value: &str) -> Result<(), FrameError> {
    if memchr(0, name.as_bytes())
        .or_else(|| memchr(0, value.as_bytes()))
        .is_some()
    {
        return Err(FrameError::NulInHeader);
    }
    if name.is_empty() {
        return Err(FrameError::MalformedHeader(format!(":{value}")));
    }
    let breaks = |text: &str| text.contains(['\r', '\n']);
    if !command.escapes() && (name.contains(':') || breaks(name) || breaks(value)) {
        return Err(FrameError::Unescapable(name.to_owned()));
    }
    Ok(())
}
