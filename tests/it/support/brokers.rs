//! Brokers of others as real processes: ActiveMQ Classic and RabbitMQ, of the Debian packages `activemq` and
//! `rabbitmq-server`.
//!
//! A broker takes seconds and both cores to start. A test that does not kill it uses the one that all tests of the
//! process share, with names of its own for destinations and clients; whoever kills a broker starts his own.

mod activemq;
mod guarded;
mod rabbitmq;
#[cfg(test)]
mod tests;

use std::{
    fs,
    net::TcpListener,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use self::guarded::{Directory, Guarded};
pub(crate) use self::{activemq::ActiveMq, rabbitmq::RabbitMq};
use super::{
    PATIENCE, pause,
    site::free_port,
    stomp::{Next, Stomp},
};

/// How long a broker may take to start, on a machine that does much else.
pub(crate) const START: Duration = Duration::from_secs(180);
/// How long a broker that has begun to listen may take to answer; it is asked again then.
const ANSWER: Duration = Duration::from_secs(5);

/// A broker that speaks STOMP at a port of 127.0.0.1, and anybody may connect to.
///
/// Dropping it kills it and removes all that it has stored. If the test process itself is killed, its brokers are,
/// too.
#[derive(Debug)]
pub(crate) struct Broker {
    name: &'static str,
    port: u16,
    command: Command,
    running: Option<Guarded>,
    /// After what writes there, so that it goes last.
    directory: Directory,
}

impl Broker {
    /// Prepares a directory for a broker that speaks STOMP at a port, runs the command that comes of it, and returns
    /// once the broker answers.
    #[track_caller]
    fn start(name: &'static str, prepare: impl FnOnce(&Path, u16) -> Command) -> Self {
        let directory = Directory::new();
        let port = free_port();
        let mut broker = Self {
            name,
            port,
            command: prepare(directory.path(), port),
            running: None,
            directory,
        };
        broker.restart();
        broker
    }

    /// Where it speaks STOMP.
    pub(crate) const fn port(&self) -> u16 {
        self.port
    }

    /// kill -9 for all its processes at once; returns when they are gone. What it has stored stays.
    #[track_caller]
    pub(crate) fn kill(&mut self) {
        assert!(self.end(), "{} is killed and still listens", self.name);
    }

    /// Whether it is gone then.
    fn end(&mut self) -> bool {
        if let Some(running) = self.running.take() {
            running.kill();
        }
        let deadline = Instant::now() + PATIENCE;
        let listens = || TcpListener::bind(("127.0.0.1", self.port)).is_err();
        while listens() && Instant::now() < deadline {
            pause(Duration::from_millis(5));
        }
        !listens()
    }

    /// Starts it again after [`Broker::kill`], with what it has stored and at the same port; returns once it answers.
    #[track_caller]
    pub(crate) fn restart(&mut self) {
        assert!(self.running.is_none(), "{} runs already", self.name);
        let mut running = Guarded::start(&self.command, &self.directory.path().join(LOG));
        let deadline = Instant::now() + START;
        while !answers(self.port) {
            let lives = running.lives() && Instant::now() < deadline;
            assert!(lives, "{} does not start\n{}", self.name, self.log());
            pause(Duration::from_millis(50));
        }
        self.running = Some(running);
    }

    /// What it has written to standard output and standard error.
    pub(crate) fn log(&self) -> String {
        let log = fs::read(self.directory.path().join(LOG)).unwrap_or_default();
        String::from_utf8_lossy(&log).into_owned()
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.end();
    }
}

/// What a broker writes, in its directory.
const LOG: &str = "out.log";

/// Whether a broker at this port accepts a client without a name.
fn answers(port: u16) -> bool {
    let Ok(mut stomp) = Stomp::try_open(port) else {
        return false;
    };
    let connect = b"CONNECT\naccept-version:1.2\nhost:/\n\n\0";
    stomp.write(connect).is_ok()
        && matches!(stomp.next(ANSWER), Next::Frame(frame) if frame.command == "CONNECTED")
}
