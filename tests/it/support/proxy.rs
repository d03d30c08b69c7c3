//! A way to a bus, or to any other server, that the test can cut.

use std::{
    io,
    net::{Shutdown, TcpListener, TcpStream},
    sync::{Arc, Mutex, MutexGuard},
    thread,
};

/// Carries connections to a server of this machine until they are cut. Its port stays as long as the test process
/// lives.
#[derive(Debug)]
pub(crate) struct Proxy {
    port: u16,
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    open: bool,
    /// How many have been let through so far.
    carried: usize,
    /// Both ends of what is being carried.
    ends: Vec<TcpStream>,
}

impl Proxy {
    /// In front of the server at this port.
    pub(crate) fn before(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let state = Arc::new(Mutex::new(State {
            open: true,
            carried: 0,
            ends: Vec::new(),
        }));
        let kept = Arc::clone(&state);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                // A server that is away, and a way that is closed, look the same.
                let _ = let_through(&kept, client, server);
            }
        });
        Self { port, state }
    }

    pub(crate) const fn port(&self) -> u16 {
        self.port
    }

    /// How many connections it has let through so far.
    pub(crate) fn carried(&self) -> usize {
        self.state().carried
    }

    /// Cuts what is being carried; whoever connects again gets through.
    pub(crate) fn cut(&self) {
        for end in self.state().ends.drain(..) {
            // It may have ended by itself.
            let _ = end.shutdown(Shutdown::Both);
        }
    }

    /// Cuts what is being carried, and lets nobody through until it is opened.
    pub(crate) fn close(&self) {
        self.state().open = false;
        self.cut();
    }

    pub(crate) fn open(&self) {
        self.state().open = true;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().expect("nobody panics with it")
}

fn let_through(state: &Mutex<State>, client: TcpStream, server: u16) -> io::Result<()> {
    let server = TcpStream::connect(("127.0.0.1", server))?;
    let mut state = lock(state);
    if !state.open {
        return Ok(());
    }
    state.carried += 1;
    state.ends.push(client.try_clone()?);
    state.ends.push(server.try_clone()?);
    carry(client.try_clone()?, server.try_clone()?);
    carry(server, client);
    Ok(())
}

/// Carries what one end sends until either ends.
fn carry(mut from: TcpStream, mut to: TcpStream) {
    thread::spawn(move || {
        let _ = io::copy(&mut from, &mut to);
        let _ = from.shutdown(Shutdown::Both);
        let _ = to.shutdown(Shutdown::Both);
    });
}
