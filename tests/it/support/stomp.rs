//! STOMP by hand: what anybody with a socket can send to a bus, right or wrong.

use std::{
    collections::VecDeque,
    io::{self, ErrorKind, Read, Write},
    net::{Shutdown, TcpStream},
    time::{Duration, Instant},
};

use super::PATIENCE;

/// A frame that the bus sent.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) command: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Frame {
    /// The first header of this name.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let (_, value) = self.headers.iter().find(|(known, _)| known == name)?;
        Some(value)
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// What came of waiting for the bus.
#[derive(Clone, Debug)]
pub(crate) enum Next {
    Frame(Frame),
    /// The bus closed the connection.
    Closed,
    /// The time was up.
    Nothing,
}

/// A connection to a bus.
pub(crate) struct Stomp {
    stream: TcpStream,
    input: Vec<u8>,
    messages: VecDeque<Frame>,
    receipts: u32,
    subscriptions: u32,
}

impl Stomp {
    /// A socket, and not a byte sent.
    pub(crate) fn open(port: u16) -> Self {
        Self::try_open(port).expect("the bus listens")
    }

    /// The same, if somebody listens.
    pub(crate) fn try_open(port: u16) -> io::Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        // A bus that stops reading must not keep the test from seeing why.
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self {
            stream,
            input: Vec::new(),
            messages: VecDeque::new(),
            receipts: 0,
            subscriptions: 0,
        })
    }

    /// A connection in order.
    pub(crate) fn connect(port: u16, client_id: Option<&str>) -> Self {
        let mut stomp = Self::open(port);
        let mut connect = String::from("CONNECT\naccept-version:1.2\nhost:/\n");
        if let Some(id) = client_id {
            connect.push_str(&format!("client-id:{id}\n"));
        }
        connect.push_str("\n\0");
        stomp.write(connect.as_bytes()).expect("the bus reads");
        match stomp.next(PATIENCE) {
            Next::Frame(frame) if frame.command == "CONNECTED" => stomp,
            other => panic!("not connected: {other:?}"),
        }
    }

    /// These bytes as they are.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// No more from this side.
    pub(crate) fn end_of_input(&self) {
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// One frame in order, with `content-length` if there is a body.
    pub(crate) fn frame(
        &mut self,
        command: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> io::Result<()> {
        let mut bytes = format!("{command}\n").into_bytes();
        for (name, value) in headers {
            bytes.extend(format!("{}:{}\n", escape(name), escape(value)).bytes());
        }
        if !body.is_empty() {
            bytes.extend(format!("content-length:{}\n", body.len()).bytes());
        }
        bytes.push(b'\n');
        bytes.extend(body);
        bytes.push(0);
        self.write(&bytes)
    }

    /// Sends a message, and returns once the bus has it.
    #[track_caller]
    pub(crate) fn send(&mut self, destination: &str, headers: &[(&str, &str)], body: &[u8]) {
        let receipt = self.receipt();
        let mut all = vec![("destination", destination), ("receipt", &receipt)];
        all.extend(headers);
        self.frame("SEND", &all, body).expect("the bus reads");
        self.await_receipt(&receipt);
    }

    /// Subscribes, with automatic acknowledgement, and returns once the subscription is there.
    #[track_caller]
    pub(crate) fn subscribe(&mut self, destination: &str) {
        self.subscriptions += 1;
        let id = format!("s{}", self.subscriptions);
        let receipt = self.receipt();
        let headers = [
            ("destination", destination),
            ("id", &id),
            ("ack", "auto"),
            ("receipt", &receipt),
        ];
        self.frame("SUBSCRIBE", &headers, b"")
            .expect("the bus reads");
        self.await_receipt(&receipt);
    }

    fn receipt(&mut self) -> String {
        self.receipts += 1;
        format!("r{}", self.receipts)
    }

    #[track_caller]
    fn await_receipt(&mut self, receipt: &str) {
        loop {
            match self.next(PATIENCE) {
                Next::Frame(frame) if frame.command == "MESSAGE" => self.messages.push_back(frame),
                Next::Frame(frame) if frame.header("receipt-id") == Some(receipt) => return,
                other => panic!("instead of the receipt {receipt}: {other:?}"),
            }
        }
    }

    /// The next message, or nothing if none comes in time.
    #[track_caller]
    pub(crate) fn message(&mut self, within: Duration) -> Option<Frame> {
        if let Some(message) = self.messages.pop_front() {
            return Some(message);
        }
        match self.next(within) {
            Next::Frame(frame) if frame.command == "MESSAGE" => Some(frame),
            Next::Nothing => None,
            other => panic!("instead of a message: {other:?}"),
        }
    }

    /// The next frame.
    pub(crate) fn next(&mut self, within: Duration) -> Next {
        let deadline = Instant::now() + within;
        loop {
            if let Some(frame) = self.take() {
                return Next::Frame(frame);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Next::Nothing;
            }
            self.stream.set_read_timeout(Some(left)).expect("a socket");
            let mut piece = [0; 16 << 10];
            match self.stream.read(&mut piece) {
                Ok(0) => return Next::Closed,
                Ok(read) => self.input.extend_from_slice(&piece[..read]),
                Err(error) if is_timeout(&error) => return Next::Nothing,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Next::Closed,
            }
        }
    }

    /// Waits until the bus closes the connection, and gives the ERROR that it sent before, if it did.
    #[track_caller]
    pub(crate) fn closed(&mut self, within: Duration) -> Option<Frame> {
        let deadline = Instant::now() + within;
        let mut error = None;
        loop {
            match self.next(deadline.saturating_duration_since(Instant::now())) {
                Next::Frame(frame) if frame.command == "ERROR" => error = Some(frame),
                Next::Frame(_) => {}
                Next::Closed => return error,
                Next::Nothing => panic!("still open after {within:?}; ERROR: {error:?}"),
            }
        }
    }

    /// The first whole frame of the input, if there is one.
    fn take(&mut self) -> Option<Frame> {
        let start = self
            .input
            .iter()
            .position(|byte| !matches!(byte, b'\n' | b'\r'))?;
        let input = &self.input[start..];
        let head_end = input.windows(2).position(|pair| pair == b"\n\n")?;
        let head = String::from_utf8(input[..head_end].to_vec()).expect("UTF-8 in headers");
        let mut lines = head.split('\n');
        let command = lines.next().unwrap_or_default().to_owned();
        let escapes = command != "CONNECTED";
        let headers: Vec<(String, String)> = lines
            .map(|line| line.split_once(':').expect("a colon in a header"))
            .map(|(name, value)| match escapes {
                true => (unescape(name), unescape(value)),
                false => (name.to_owned(), value.to_owned()),
            })
            .collect();
        let body = &input[head_end + 2..];
        let announced = headers.iter().find(|(name, _)| name == "content-length");
        let length = match announced {
            Some((_, length)) => length.parse().expect("a length"),
            None => body.iter().position(|&byte| byte == 0)?,
        };
        if body.len() <= length {
            return None;
        }
        assert_eq!(body[length], 0, "no NUL after the body");
        let body = body[..length].to_vec();
        let end = start + head_end + 2 + length + 1;
        self.input.drain(..end);
        Some(Frame {
            command,
            headers,
            body,
        })
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

fn escape(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('\r', "\\r")
        .replace('\n', "\\n")
        .replace(':', "\\c")
}

fn unescape(text: &str) -> String {
    let mut plain = String::new();
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        plain.push(match char {
            '\\' => match chars.next() {
                Some('r') => '\r',
                Some('n') => '\n',
                Some('c') => ':',
                Some('\\') => '\\',
                other => panic!("the bus wrote an undefined escape: {other:?}"),
            },
            other => other,
        });
    }
    plain
}
