//! The frame codec that client and server share: STOMP 1.2 bytes to frames and back.
//!
//! The decoder takes the stream in any pieces, remembers how far it has looked, and refuses what exceeds its
//! limits while reading, before anything is allocated for it. Where it reads what others have sent through a broker
//! that allows more, it leaves that out instead: [`StompCodec::forgiving`].

mod error;
mod head;
#[cfg(test)]
mod tests;

use std::mem;

use bytes::{Buf, Bytes, BytesMut};
use memchr::memchr;

pub use self::error::FrameError;
use self::head::{Head, printable};
use super::frame::{Frame, FrameWriter, StompCommand};

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
    /// Whether what is too much is left out, rather than the end of the stream.
    forgiving: bool,
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
    /// In a body that is not kept.
    LeftOut(Head, LeftOut),
}

/// How much of a body has been passed over.
#[derive(Clone, Copy, Debug)]
struct LeftOut {
    passed: usize,
    /// From its announced length; without one the body ends at the first NUL.
    left: Option<usize>,
}

impl StompCodec {
    /// A codec with these limits.
    #[must_use]
    pub fn new(limits: FrameLimits) -> Self {
        Self {
            limits,
            forgiving: false,
            state: State::Idle,
            scanned: 0,
        }
    }

    /// A codec for what a broker delivers. A body above the limit is passed over, and the frame says so
    /// ([`Frame::left_out`]). Of too many or too long headers those are kept that a message can't do without; one that
    /// can't be decoded is taken as it is, or left out.
    ///
    /// A broker of others allows more than these limits, and would deliver again and again what ends the connection.
    #[must_use]
    pub fn forgiving(limits: FrameLimits) -> Self {
        Self {
            forgiving: true,
            ..Self::new(limits)
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
                State::Body(head) => match self.body(&head, src) {
                    Ok(Some(body)) => return Ok(Some(head.into_frame(body, None))),
                    Ok(None) => {
                        self.state = State::Body(head);
                        return Ok(None);
                    }
                    Err(FrameError::BodyTooLarge { .. }) if self.forgiving => {
                        let left_out = LeftOut {
                            passed: 0,
                            left: head.content_length,
                        };
                        self.state = State::LeftOut(head, left_out);
                    }
                    Err(error) => return Err(error),
                },
                State::LeftOut(head, mut left_out) => {
                    let Some(bytes) = self.pass_over(&mut left_out, src)? else {
                        self.state = State::LeftOut(head, left_out);
                        return Ok(None);
                    };
                    return Ok(Some(head.into_frame(Bytes::new(), Some(bytes))));
                }
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
            return Ok(Some(Head::new(command)));
        }
    }

    /// Reads header lines; true at the empty line after them.
    fn headers(&mut self, head: &mut Head, src: &mut BytesMut) -> Result<bool, FrameError> {
        loop {
            if head.in_long_line && !self.pass_over_line(head, src) {
                return Ok(false);
            }
            let limit = self.line_limit(head);
            let length = match self.line(src, limit) {
                Ok(Some(length)) => length,
                Ok(None) => return Ok(false),
                Err(TooLong) if self.forgiving => {
                    head.in_long_line = true;
                    continue;
                }
                Err(TooLong) => return Err(self.too_long(limit)),
            };
            let line = without_cr(src, length);
            if line.is_empty() {
                src.advance(length + 1);
                return Ok(true);
            }
            head.lines += 1;
            let all = self.limits.headers;
            let full = head.lines > all || head.bytes + length >= self.limits.head;
            if head.lines > all && !self.forgiving {
                return Err(FrameError::TooManyHeaders { limit: all });
            }
            head.bytes += length + 1;
            if self.forgiving {
                head.add_forgiving(line, full)?;
            } else {
                head.add(line, self.limits.body)?;
            }
            src.advance(length + 1);
        }
    }

    /// How long the next header line may be.
    fn line_limit(&self, head: &Head) -> usize {
        let FrameLimits {
            header_line,
            head: all,
            ..
        } = self.limits;
        if self.forgiving {
            header_line
        } else {
            header_line.min(all.saturating_sub(head.bytes))
        }
    }

    const fn too_long(&self, limit: usize) -> FrameError {
        if limit < self.limits.header_line {
            FrameError::HeadTooLarge {
                limit: self.limits.head,
            }
        } else {
            FrameError::HeaderTooLong {
                limit: self.limits.header_line,
            }
        }
    }

    /// Passes over the rest of a line that is too long; false if its end is not there yet.
    fn pass_over_line(&mut self, head: &mut Head, src: &mut BytesMut) -> bool {
        self.scanned = 0;
        let end = memchr(b'\n', src);
        src.advance(end.map_or(src.len(), |at| at + 1));
        head.in_long_line = end.is_none();
        end.is_some()
    }

    /// Passes over what is there of a body; its length, once its end is there.
    fn pass_over(
        &mut self,
        left_out: &mut LeftOut,
        src: &mut BytesMut,
    ) -> Result<Option<usize>, FrameError> {
        self.scanned = 0;
        let Some(left) = &mut left_out.left else {
            let end = memchr(0, src);
            let passed = end.unwrap_or(src.len());
            left_out.passed = left_out.passed.saturating_add(passed);
            src.advance(passed + usize::from(end.is_some()));
            return Ok(end.map(|_| left_out.passed));
        };
        let passed = src.len().min(*left);
        src.advance(passed);
        *left -= passed;
        left_out.passed = left_out.passed.saturating_add(passed);
        match src.first() {
            Some(0) if *left == 0 => {
                src.advance(1);
                Ok(Some(left_out.passed))
            }
            Some(_) if *left == 0 => Err(FrameError::WrongContentLength {
                length: left_out.passed,
            }),
            _ => Ok(None),
        }
    }

    fn body(&mut self, head: &Head, src: &mut BytesMut) -> Result<Option<Bytes>, FrameError> {
        let length = match head.content_length {
            Some(length) if length > self.limits.body => {
                return Err(FrameError::BodyTooLarge {
                    limit: self.limits.body,
                });
            }
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

struct TooLong;

fn without_cr(src: &[u8], length: usize) -> &[u8] {
    let line = src.get(..length).unwrap_or_default();
    line.strip_suffix(b"\r").unwrap_or(line)
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
