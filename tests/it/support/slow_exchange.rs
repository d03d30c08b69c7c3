//! A file exchange that the test plays: it delivers a file, or stops in the middle of it.

use std::{
    io::{BufRead, BufReader, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::mpsc::{self, Receiver, Sender},
    thread,
};

use super::PATIENCE;

/// Serves one file over HTTP. The first requests are served as told, all later ones whole.
#[derive(Debug)]
pub(crate) struct SlowExchange {
    address: SocketAddr,
    stalled: Receiver<Stalled>,
}

/// A request that has got a part of the file; its connection stays open as long as this is kept.
#[derive(Debug)]
pub(crate) struct Stalled {
    connection: TcpStream,
    rest: Vec<u8>,
}

impl SlowExchange {
    /// The first requests each get this many bytes of the file, and the rest only on demand.
    pub(crate) fn start(content: Vec<u8>, stalls: &[usize]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        let (sender, stalled) = mpsc::channel();
        let stalls = stalls.to_vec();
        thread::spawn(move || serve(&listener, &content, &stalls, &sender));
        Self { address, stalled }
    }

    /// `host:port`.
    pub(crate) fn host(&self) -> String {
        self.address.to_string()
    }

    /// Where the file is.
    pub(crate) fn file_address(&self) -> String {
        format!("http://{}/the-file", self.address)
    }

    /// Waits until a request has got all it gets for now.
    #[track_caller]
    pub(crate) fn stalled(&self) -> Stalled {
        self.stalled
            .recv_timeout(PATIENCE)
            .expect("somebody fetches the file")
    }
}

impl Stalled {
    /// Delivers the rest to whoever still reads.
    pub(crate) fn deliver_in_vain(mut self) {
        let _ = self.connection.write_all(&self.rest);
    }

    /// Delivers the rest.
    pub(crate) fn deliver(mut self) {
        self.connection
            .write_all(&self.rest)
            .expect("somebody reads");
    }
}

fn serve(listener: &TcpListener, content: &[u8], stalls: &[usize], stalled: &Sender<Stalled>) {
    let mut stalls = stalls.iter();
    for connection in listener.incoming().map_while(Result::ok) {
        let count = stalls.next().copied().unwrap_or(content.len());
        let rest = content[count..].to_vec();
        if answer(&connection, content, count).is_ok() && !rest.is_empty() {
            // Without a test that waits for it, the connection just ends.
            let _ = stalled.send(Stalled { connection, rest });
        }
    }
}

/// Sends the head and `count` bytes.
fn answer(mut connection: &TcpStream, content: &[u8], count: usize) -> std::io::Result<()> {
    for line in BufReader::new(connection).lines() {
        if line?.is_empty() {
            break;
        }
    }
    let length = content.len();
    write!(
        connection,
        "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    )?;
    connection.write_all(&content[..count])
}
