//! For tests: the other end of a connection, frame by frame.

use std::{net::SocketAddr, time::Duration};

use bytes::{Bytes, BytesMut};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::timeout,
};

use super::{
    codec::StompCodec,
    frame::{Frame, StompCommand},
};

/// Longer than anything takes that works.
pub(crate) const DEADLINE: Duration = Duration::from_secs(20);

/// A socket that speaks STOMP when told to.
#[derive(Debug)]
pub(crate) struct Peer {
    stream: TcpStream,
    codec: StompCodec,
    input: BytesMut,
}

impl Peer {
    pub(crate) async fn dial(address: SocketAddr) -> Self {
        Self::over(TcpStream::connect(address).await.unwrap())
    }

    pub(crate) async fn accept(listener: &TcpListener) -> Self {
        let (stream, _) = timeout(DEADLINE, listener.accept()).await.unwrap().unwrap();
        Self::over(stream)
    }

    fn over(stream: TcpStream) -> Self {
        Self {
            stream,
            codec: StompCodec::default(),
            input: BytesMut::new(),
        }
    }

    /// Writes bytes; a peer that has closed is no error.
    pub(crate) async fn raw(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes).await;
    }

    pub(crate) async fn send(&mut self, frame: Frame) {
        let mut out = BytesMut::new();
        StompCodec::encode(&frame, &mut out).unwrap();
        self.stream.write_all(&out).await.unwrap();
    }

    /// The next frame; `None` when the other side has closed.
    pub(crate) async fn next(&mut self) -> Option<Frame> {
        timeout(DEADLINE, self.read())
            .await
            .expect("no frame in time")
    }

    async fn read(&mut self) -> Option<Frame> {
        loop {
            if let Some(frame) = self.codec.decode(&mut self.input).unwrap() {
                return Some(frame);
            }
            match self.stream.read_buf(&mut self.input).await {
                Ok(0) | Err(_) => return None,
                Ok(_) => {}
            }
        }
    }

    /// The next frame, which must be of this command.
    pub(crate) async fn expect(&mut self, command: StompCommand) -> Frame {
        let frame = self.next().await.expect("the other side has closed");
        assert_eq!(frame.command, command, "{frame:?}");
        frame
    }

    /// The bytes of the next frame, which must have no NUL but its last.
    pub(crate) async fn raw_frame(&mut self) -> Vec<u8> {
        let mut bytes = self.input.split().to_vec();
        while bytes.last() != Some(&0) {
            bytes.push(
                timeout(DEADLINE, self.stream.read_u8())
                    .await
                    .expect("no byte in time")
                    .unwrap(),
            );
        }
        bytes
    }

    /// The next byte, whatever it is.
    pub(crate) async fn byte(&mut self) -> u8 {
        assert!(self.input.is_empty());
        timeout(DEADLINE, self.stream.read_u8())
            .await
            .expect("no byte in time")
            .unwrap()
    }

    /// That nothing comes for a while.
    pub(crate) async fn expect_nothing(&mut self, within: Duration) {
        if let Ok(frame) = timeout(within, self.read()).await {
            panic!("unexpected: {frame:?}");
        }
    }

    /// As a server: the CONNECT frame, answered without heart-beats.
    pub(crate) async fn welcome(&mut self) -> Frame {
        self.welcome_as("Pillarbox/0").await
    }

    /// As [`Peer::welcome`], as a server of this name.
    pub(crate) async fn welcome_as(&mut self, server: &str) -> Frame {
        let connect = self.expect(StompCommand::Connect).await;
        let connected = Frame::new(StompCommand::Connected)
            .with("version", "1.2")
            .with("server", server);
        self.send(connected).await;
        connect
    }

    /// As a server: confirms a frame.
    pub(crate) async fn confirm(&mut self, frame: &Frame) {
        let receipt = frame.header("receipt").expect("it asks for no receipt");
        self.send(Frame::new(StompCommand::Receipt).with("receipt-id", receipt))
            .await;
    }

    /// As a server: refuses a frame and closes.
    pub(crate) async fn refuse(mut self, name: &str, frame: Option<&Frame>) {
        let mut error = Frame::new(StompCommand::Error).with("message", name);
        if let Some(receipt) = frame.and_then(|frame| frame.header("receipt")) {
            error = error.with("receipt-id", receipt);
        }
        error.body = Bytes::from_static(b"because; of that");
        self.send(error).await;
        let _ = self.stream.shutdown().await;
    }

    /// As a client: opens a session.
    pub(crate) async fn connect(address: SocketAddr, client_id: &str) -> Self {
        let mut peer = Self::dial(address).await;
        let mut connect = Frame::new(StompCommand::Connect).with("accept-version", "1.2");
        if !client_id.is_empty() {
            connect = connect.with("client-id", client_id);
        }
        peer.send(connect).await;
        peer.expect(StompCommand::Connected).await;
        peer
    }

    /// As a client: sends a frame and waits for its receipt.
    pub(crate) async fn ask(&mut self, frame: Frame) -> Frame {
        self.send(frame.with("receipt", "asked")).await;
        let receipt = self.expect(StompCommand::Receipt).await;
        assert_eq!(receipt.header("receipt-id"), Some("asked"));
        receipt
    }

    /// As a client: that an ERROR of this name comes, and then the end.
    pub(crate) async fn expect_error(&mut self, name: &str) -> Frame {
        let error = self.expect(StompCommand::Error).await;
        assert_eq!(error.header("message"), Some(name), "{error:?}");
        assert_eq!(self.next().await, None);
        error
    }
}
