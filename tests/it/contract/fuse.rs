//! A connection that breaks in the moment in which a client has sent its messages and not yet acknowledged any.

use tokio::{
    io::{self, AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
    time::timeout,
};

use super::Broken;
use crate::support::PATIENCE;

/// Lets one client through to a bus, until its first ACK frame; then both ends are cut off, for good.
#[derive(Debug)]
pub(super) struct Fuse {
    port: u16,
    blows: JoinHandle<io::Result<()>>,
}

/// Why a connection has ended.
enum Ended {
    /// Before the first ACK.
    Cut,
    /// By one of its ends.
    Closed,
}

impl Fuse {
    /// In front of the bus at this port.
    pub(super) async fn lay(bus: u16) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let port = listener.local_addr()?.port();
        let blows = tokio::spawn(async move {
            loop {
                // A client may be refused, and try once more in other words.
                let (client, _) = listener.accept().await?;
                let bus = TcpStream::connect(("127.0.0.1", bus)).await?;
                if let Ended::Cut = carry(client, bus).await? {
                    return Ok(());
                }
            }
        });
        Ok(Self { port, blows })
    }

    /// Where the client finds it.
    pub(super) const fn port(&self) -> u16 {
        self.port
    }

    /// Waits until the connection is cut.
    pub(super) async fn blown(self) -> Result<(), Broken> {
        match timeout(PATIENCE, self.blows).await {
            Ok(Ok(cut)) => Ok(cut?),
            other => Err(format!("the client has acknowledged nothing: {other:?}").into()),
        }
    }
}

/// Carries bytes from end to end, from the client only whole frames and none from an ACK on.
async fn carry(mut client: TcpStream, mut bus: TcpStream) -> io::Result<Ended> {
    let (mut from_client, mut to_client) = client.split();
    let (mut from_bus, mut to_bus) = bus.split();
    let there = async {
        let mut begun = Vec::new();
        while from_client.read_buf(&mut begun).await? > 0 {
            while let Some(end) = begun.iter().position(|&byte| byte == 0) {
                let frame: Vec<u8> = begun.drain(..=end).collect();
                if frame.trim_ascii_start().starts_with(b"ACK\n") {
                    return Ok(Ended::Cut);
                }
                to_bus.write_all(&frame).await?;
            }
        }
        Ok(Ended::Closed)
    };
    tokio::select! {
        ended = there => ended,
        carried = io::copy(&mut from_bus, &mut to_client) => carried.map(|_| Ended::Closed),
    }
}
