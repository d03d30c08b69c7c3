//! STOMP 1.2 frames: a command, headers in order, and a body.

use std::fmt;

use bytes::{BufMut, Bytes, BytesMut};

/// A command of STOMP 1.2. Spelling is case-sensitive; `STOMP` is another spelling of `CONNECT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StompCommand {
    /// `CONNECT` or `STOMP`: opens a session.
    Connect,
    /// `CONNECTED`: the session is open.
    Connected,
    /// `SEND`: a message for a destination.
    Send,
    /// `SUBSCRIBE`.
    Subscribe,
    /// `UNSUBSCRIBE`.
    Unsubscribe,
    /// `ACK`: a message is consumed.
    Ack,
    /// `NACK`: a message could not be consumed.
    Nack,
    /// `BEGIN`: opens a transaction.
    Begin,
    /// `COMMIT`.
    Commit,
    /// `ABORT`.
    Abort,
    /// `DISCONNECT`: the session ends in good order.
    Disconnect,
    /// `MESSAGE`: a message for a subscription.
    Message,
    /// `RECEIPT`: the frame that asked for it is done.
    Receipt,
    /// `ERROR`: the last frame of a connection.
    Error,
}

impl StompCommand {
    const ALL: [Self; 14] = [
        Self::Connect,
        Self::Connected,
        Self::Send,
        Self::Subscribe,
        Self::Unsubscribe,
        Self::Ack,
        Self::Nack,
        Self::Begin,
        Self::Commit,
        Self::Abort,
        Self::Disconnect,
        Self::Message,
        Self::Receipt,
        Self::Error,
    ];

    /// The command's spelling on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Connect => "CONNECT",
            Self::Connected => "CONNECTED",
            Self::Send => "SEND",
            Self::Subscribe => "SUBSCRIBE",
            Self::Unsubscribe => "UNSUBSCRIBE",
            Self::Ack => "ACK",
            Self::Nack => "NACK",
            Self::Begin => "BEGIN",
            Self::Commit => "COMMIT",
            Self::Abort => "ABORT",
            Self::Disconnect => "DISCONNECT",
            Self::Message => "MESSAGE",
            Self::Receipt => "RECEIPT",
            Self::Error => "ERROR",
        }
    }

    /// The command that a command line spells.
    #[must_use]
    pub fn from_line(line: &[u8]) -> Option<Self> {
        if line == b"STOMP" {
            return Some(Self::Connect);
        }
        Self::ALL
            .into_iter()
            .find(|command| command.as_str().as_bytes() == line)
    }

    /// Whether frames of this command may carry a body.
    #[must_use]
    pub const fn has_body(self) -> bool {
        matches!(self, Self::Send | Self::Message | Self::Error)
    }

    /// Whether the headers of this command's frames are escaped: all but those of `CONNECT` and `CONNECTED`.
    #[must_use]
    pub const fn escapes(self) -> bool {
        !matches!(self, Self::Connect | Self::Connected)
    }
}

impl fmt::Display for StompCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One frame.
///
/// Headers are decoded text, in order, each name once. `content-length` belongs to the framing and is
/// not among them: it is derived from the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// What the frame is.
    pub command: StompCommand,
    /// Names and values in order.
    pub headers: Vec<(String, String)>,
    /// The body; empty except in `SEND`, `MESSAGE` and `ERROR`.
    pub body: Bytes,
    /// How many bytes the body had, if it was too long to be taken in and is left out; see
    /// [`StompCodec::forgiving`](super::codec::StompCodec::forgiving). Never written.
    pub left_out: Option<usize>,
}

impl Frame {
    /// A frame without headers and body.
    #[must_use]
    pub const fn new(command: StompCommand) -> Self {
        Self {
            command,
            headers: Vec::new(),
            body: Bytes::new(),
            left_out: None,
        }
    }

    /// This frame with one more header.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    /// The value of a header.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }
}

/// With this header CONNECTED says that there is an administration to ask.
pub(super) const ADMINISTRATION: &str = "q-admin";

/// The header that says where a body ends.
pub(super) const CONTENT_LENGTH: &str = "content-length";

/// Writes one frame without building it first.
///
/// STOMP has no spelling for NUL in a header: it is written as U+FFFD.
#[derive(Debug)]
pub struct FrameWriter<'a> {
    out: &'a mut BytesMut,
    command: StompCommand,
}

impl<'a> FrameWriter<'a> {
    /// Starts a frame at the end of `out`.
    pub fn new(out: &'a mut BytesMut, command: StompCommand) -> Self {
        out.put_slice(command.as_str().as_bytes());
        out.put_u8(b'\n');
        Self { out, command }
    }

    /// Adds a header. `content-length` is left out: it belongs to the framing, see [`FrameWriter::finish`].
    pub fn header(&mut self, name: &str, value: &str) -> &mut Self {
        if name == CONTENT_LENGTH {
            return self;
        }
        self.text(name);
        self.out.put_u8(b':');
        self.text(value);
        self.out.put_u8(b'\n');
        self
    }

    /// Adds a header whose value needs no escaping.
    pub fn plain(&mut self, name: &str, value: impl fmt::Display) -> &mut Self {
        use fmt::Write as _;
        // Writing to memory can't fail; a `Display` that fails leaves a short value.
        let _ = writeln!(self.out, "{name}:{value}");
        self
    }

    /// Ends the frame with its body and, if its command has one, the body's length.
    pub fn finish(mut self, body: &[u8]) {
        if self.command.has_body() {
            self.plain(CONTENT_LENGTH, body.len());
        }
        self.finish_unmeasured(body);
    }

    /// Ends the frame with a body whose length is not told: it ends at the first NUL.
    pub fn finish_unmeasured(self, body: &[u8]) {
        self.out.reserve(body.len() + 2);
        self.out.put_u8(b'\n');
        self.out.put_slice(body);
        self.out.put_u8(0);
    }

    fn text(&mut self, text: &str) {
        let mut rest = text.as_bytes();
        let escapes = self.command.escapes();
        while let Some(at) = rest.iter().position(|byte| needs_escape(*byte, escapes)) {
            let (before, after) = rest.split_at(at);
            self.out.put_slice(before);
            let Some((special, after)) = after.split_first() else {
                return;
            };
            self.out.put_slice(escape(*special));
            rest = after;
        }
        self.out.put_slice(rest);
    }
}

/// How many bytes a header's name or value takes on the wire, outside of CONNECT.
pub(super) fn escaped_length(text: &str) -> usize {
    let escapes = text.bytes().filter(|byte| needs_escape(*byte, true));
    text.len() + escapes.map(|byte| escape(byte).len() - 1).sum::<usize>()
}

const fn needs_escape(byte: u8, escapes: bool) -> bool {
    match byte {
        0 => true,
        b'\\' | b'\r' | b'\n' | b':' => escapes,
        _ => false,
    }
}

const fn escape(byte: u8) -> &'static [u8] {
    match byte {
        b'\\' => b"\\\\",
        b'\r' => b"\\r",
        b'\n' => b"\\n",
        b':' => b"\\c",
        _ => "\u{FFFD}".as_bytes(),
    }
}
