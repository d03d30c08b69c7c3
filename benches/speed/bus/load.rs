//! Load over STOMP that costs as little as possible itself: frames are made beforehand, and of answers only the
//! ends are looked for. Bodies have no NUL.

use std::{
    io::{Read, Write},
    net::TcpStream,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::Duration,
};

use super::BODY;

/// How far the sender may be ahead of the slowest subscriber.
const AHEAD: usize = 2000;
/// So many messages go at once.
const AT_ONCE: usize = 50;

/// A SEND of a whole body.
pub(super) fn send_frame(to: &str, persistent: bool, confirmed: bool) -> Vec<u8> {
    frame_of(to, persistent, confirmed, &[b'x'; BODY])
}

pub(super) fn frame_of(to: &str, persistent: bool, confirmed: bool, body: &[u8]) -> Vec<u8> {
    let receipt = if confirmed { "receipt:r\n" } else { "" };
    let length = body.len();
    let head = format!(
        "SEND\ndestination:{to}\npersistent:{persistent}\n{receipt}content-length:{length}\n\n"
    );
    [head.as_bytes(), body, b"\0"].concat()
}

/// A connection.
pub(super) struct Client {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Client {
    pub(super) fn connect(port: u16, client_id: Option<&str>) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_nodelay(true).unwrap();
        let buffer = vec![0; 64 << 10];
        let mut client = Self { stream, buffer };
        let id = client_id.map_or_else(String::new, |id| format!("client-id:{id}\n"));
        client.ask(format!("CONNECT\naccept-version:1.2\nhost:/\n{id}\n\0").as_bytes());
        client
    }

    pub(super) fn write(&mut self, frames: &[u8]) {
        self.stream.write_all(frames).unwrap();
    }

    /// Sends a frame, and waits for the one that answers it.
    pub(super) fn ask(&mut self, frame: &[u8]) {
        self.write(frame);
        assert_eq!(self.read(), 1);
    }

    /// Waits for the end of at least one frame, and gives how many ended.
    pub(super) fn read(&mut self) -> usize {
        loop {
            let read = self.stream.read(&mut self.buffer).unwrap();
            let bytes = &self.buffer[..read];
            assert!(
                read > 0 && !bytes.starts_with(b"ERROR"),
                "the broker closed the connection: {}",
                String::from_utf8_lossy(bytes)
            );
            let ends = bytes.iter().filter(|byte| **byte == 0).count();
            if ends > 0 {
                return ends;
            }
        }
    }

    fn subscribe(&mut self, topic: &str, more: &str) {
        let frame = format!("SUBSCRIBE\nid:1\ndestination:{topic}\nreceipt:s\n{more}\n\0");
        self.ask(frame.as_bytes());
    }

    fn end(mut self) {
        self.ask(b"DISCONNECT\nreceipt:bye\n\n\0");
    }
}

const DURABLE: &str = "ack:client-individual\nactivemq.subscriptionName:kept\n";

/// From now on the topic's messages are kept for a client that is not there.
pub(super) fn make_durable_subscription(port: u16, topic: &str) {
    let mut client = Client::connect(port, Some("kept"));
    client.subscribe(topic, DURABLE);
    client.end();
}

pub(super) fn end_durable_subscription(port: u16, topic: &str) {
    let mut client = Client::connect(port, Some("kept"));
    let frame = format!(
        "UNSUBSCRIBE\nid:1\ndestination:{topic}\nactivemq.subscriptionName:kept\nreceipt:u\n\n\0"
    );
    client.ask(frame.as_bytes());
    client.end();
}

/// Senders that each wait for one receipt after the other.
pub(super) struct Producers {
    clients: Vec<Client>,
    frame: Vec<u8>,
}

impl Producers {
    pub(super) fn connect(port: u16, to: &str, count: usize) -> Self {
        let clients = (0..count).map(|_| Client::connect(port, None)).collect();
        let frame = send_frame(to, true, true);
        Self { clients, frame }
    }

    /// Each sends so many.
    pub(super) fn send(&mut self, each: usize) {
        let frame = &self.frame;
        thread::scope(|scope| {
            for client in &mut self.clients {
                scope.spawn(move || {
                    for _ in 0..each {
                        client.ask(frame);
                    }
                });
            }
        });
    }
}

/// A sender and plain subscribers of a topic.
pub(super) struct FanOut {
    sender: Client,
    subscribers: Vec<Client>,
    frames: Vec<u8>,
}

impl FanOut {
    pub(super) fn connect(port: u16, topic: &str, count: usize) -> Self {
        let subscribers = (0..count).map(|_| {
            let mut client = Client::connect(port, None);
            client.subscribe(topic, "ack:auto\n");
            client
        });
        Self {
            subscribers: subscribers.collect(),
            sender: Client::connect(port, None),
            frames: send_frame(topic, false, false).repeat(AT_ONCE),
        }
    }

    /// Sends so many; returns when every subscriber has all of them.
    pub(super) fn send(&mut self, messages: usize) {
        let received: Vec<AtomicUsize> = self
            .subscribers
            .iter()
            .map(|_| AtomicUsize::new(0))
            .collect();
        let slowest = || received.iter().map(|it| it.load(Ordering::Relaxed)).min();
        thread::scope(|scope| {
            for (client, received) in self.subscribers.iter_mut().zip(&received) {
                scope.spawn(move || {
                    let mut count = 0;
                    while count < messages {
                        count += client.read();
                        received.store(count, Ordering::Relaxed);
                    }
                    assert_eq!(count, messages);
                });
            }
            for sent in (0..messages).step_by(AT_ONCE) {
                while slowest().unwrap_or(sent) + AHEAD < sent {
                    thread::park_timeout(Duration::from_micros(50));
                }
                self.sender.write(&self.frames);
            }
        });
    }
}
