//! One STOMP connection's bytes: frames in, frames out, heart-beats and deadlines. The same for client and server.

use std::{io, time::Duration};

use bytes::BytesMut;
use futures_util::FutureExt;
use rustix::net::sockopt;
use thiserror::Error;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf},
    net::TcpStream,
    time::{Instant, sleep_until, timeout_at},
};

use super::{
    codec::{FrameError, FrameLimits, StompCodec},
    frame::Frame,
    heart_beat::Beats,
};

/// While this many bytes wait to be written, nothing more should be added that can wait.
pub(crate) const HIGH_WATER: usize = 256 << 10;
/// How much is read at once, at most, while no large frame is under way.
const READ_CHUNK: usize = 32 << 10;
/// An empty buffer larger than this is given back: most connections see a large frame once in a while only.
const KEPT_BUFFER: usize = 2 * HIGH_WATER;
/// A silent peer is given up after this many heart-beat intervals.
const MISSED_INTERVALS: u32 = 2;

/// A peer that is silent this long is asked by the operating system whether it is still there.
const KEEP_ALIVE: Duration = Duration::from_secs(60);
/// How long it may take to answer, and how often it is asked.
const KEEP_ALIVE_ANSWER: Duration = Duration::from_secs(10);
const KEEP_ALIVE_ASKED: u32 = 6;

/// Readies a socket: small frames don't wait for each other, and a peer that is gone without a word is noticed
/// even if it had offered no heart-beats.
pub(crate) fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    sockopt::set_tcp_keepidle(stream, KEEP_ALIVE)?;
    sockopt::set_tcp_keepintvl(stream, KEEP_ALIVE_ANSWER)?;
    sockopt::set_tcp_keepcnt(stream, KEEP_ALIVE_ASKED)?;
    sockopt::set_socket_keepalive(stream, true)?;
    Ok(())
}

/// How long a peer may stand still.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StallLimits {
    /// Without a byte, within a frame that has begun.
    pub(crate) read: Duration,
    /// Without taking a byte, while some wait.
    pub(crate) write: Duration,
}

/// Why a connection has ended.
#[derive(Debug, Error)]
pub(crate) enum WireError {
    /// The peer closed it.
    #[error("the peer closed the connection")]
    Closed,
    /// The socket failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The peer sent what is no frame.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// No heart-beat came.
    #[error("nothing heard for {0} ms")]
    Silent(u128),
    /// A frame was begun and not ended.
    #[error("a frame was begun and nothing came for {0} ms")]
    ReadStalled(u128),
    /// The peer takes nothing.
    #[error("the peer has read nothing for {0} ms")]
    WriteStalled(u128),
    /// The owner's deadline has passed.
    #[error("not done in time")]
    Deadline,
}

/// A connection. Nothing happens but in [`Wire::turn`].
#[derive(Debug)]
pub(crate) struct Wire<S> {
    reader: ReadHalf<S>,
    writer: WriteHalf<S>,
    codec: StompCodec,
    input: BytesMut,
    /// What is to be written; [`FrameWriter`](super::frame::FrameWriter) appends here.
    pub(crate) output: BytesMut,
    stalls: StallLimits,
    beats: Beats,
    deadline: Option<Instant>,
    last_read: Instant,
    last_write: Instant,
    /// Since when output waits without any of it being taken.
    waiting_since: Option<Instant>,
}

impl<S: AsyncRead + AsyncWrite> Wire<S> {
    pub(crate) fn new(stream: S, codec: StompCodec, stalls: StallLimits) -> Self {
        let (reader, writer) = tokio::io::split(stream);
        let now = Instant::now();
        Self {
            reader,
            writer,
            codec,
            input: BytesMut::new(),
            output: BytesMut::new(),
            stalls,
            beats: Beats::default(),
            deadline: None,
            last_read: now,
            last_write: now,
            waiting_since: None,
        }
    }

    /// Changes to what holds once a session is open.
    pub(crate) const fn open(&mut self, limits: FrameLimits, beats: Beats) {
        self.codec.set_limits(limits);
        self.beats = beats;
    }

    /// Sets a time at which [`Wire::turn`] fails with [`WireError::Deadline`].
    pub(crate) const fn set_deadline(&mut self, deadline: Option<Instant>) {
        self.deadline = deadline;
    }

    /// What has been read and is no part of a frame that was taken; behind a fault, from where it could not be read.
    pub(crate) fn unread(&self) -> &[u8] {
        &self.input
    }

    /// The next whole frame of what has been read.
    pub(crate) fn frame(&mut self) -> Result<Option<Frame>, FrameError> {
        self.codec.decode(&mut self.input)
    }

    /// Waits until something was read (if `reading`) or written, or a heart-beat was due. Cancel-safe.
    pub(crate) async fn turn(&mut self, reading: bool) -> Result<(), WireError> {
        if !reading {
            // It is this side that keeps the peer waiting.
            self.last_read = Instant::now();
        }
        let writing = !self.output.is_empty();
        if writing && self.waiting_since.is_none() {
            self.waiting_since = Some(Instant::now());
        }
        let timer = self.next_timer();
        give_back(&mut self.input);
        give_back(&mut self.output);
        if self.input.capacity() - self.input.len() < READ_CHUNK / 2 {
            self.input.reserve(READ_CHUNK);
        }
        tokio::select! {
            read = self.reader.read_buf(&mut self.input), if reading => {
                if read? == 0 {
                    return Err(WireError::Closed);
                }
                self.last_read = Instant::now();
            }
            written = self.writer.write_buf(&mut self.output), if writing => {
                if written? == 0 {
                    return Err(io::Error::from(io::ErrorKind::WriteZero).into());
                }
                self.last_write = Instant::now();
                self.waiting_since = None;
            }
            () = sleep_until(timer.unwrap_or_else(Instant::now)), if timer.is_some() => {
                let now = Instant::now();
                self.catch_up(reading, now)?;
                self.on_timer(now)?;
            }
            // Nothing is to be done here; the caller waits for something else.
            else => std::future::pending().await,
        }
        Ok(())
    }

    /// If this side stood still itself, the peer may have done meanwhile what it is now waited for.
    fn catch_up(&mut self, reading: bool, now: Instant) -> Result<(), WireError> {
        let passed = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        let overdue = passed(self.silent_at()) || passed(self.read_stalled_at());
        if overdue && (!reading || self.has_more()?) {
            self.last_read = now;
        }
        if passed(self.write_stalled_at()) && self.takes_more()? {
            self.last_write = now;
            self.waiting_since = None;
        }
        Ok(())
    }

    /// Writes what the peer takes already, if it takes anything.
    fn takes_more(&mut self) -> Result<bool, WireError> {
        match self.writer.write_buf(&mut self.output).now_or_never() {
            None | Some(Ok(0)) => Ok(false),
            Some(written) => Ok(written.map(|_| true)?),
        }
    }

    /// Reads what has come already, if anything has.
    fn has_more(&mut self) -> Result<bool, WireError> {
        match self.reader.read_buf(&mut self.input).now_or_never() {
            None => Ok(false),
            Some(Ok(0)) => Err(WireError::Closed),
            Some(read) => Ok(read.map(|_| true)?),
        }
    }

    /// Writes what waits, ends this side, and reads away what still comes, so that the peer can read to the end.
    pub(crate) async fn linger(mut self, at_most: Duration) {
        let deadline = Instant::now() + at_most;
        let ended = async {
            while !self.output.is_empty() {
                self.writer.write_buf(&mut self.output).await?;
            }
            self.writer.shutdown().await?;
            loop {
                self.input.clear();
                self.input.reserve(READ_CHUNK);
                if self.reader.read_buf(&mut self.input).await? == 0 {
                    return io::Result::Ok(());
                }
            }
        };
        // However it ends, the connection is given up now.
        let _ = timeout_at(deadline, ended).await;
    }

    fn next_timer(&self) -> Option<Instant> {
        [
            self.deadline,
            self.silent_at(),
            self.beat_at(),
            self.read_stalled_at(),
            self.write_stalled_at(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    fn silent_at(&self) -> Option<Instant> {
        self.beats
            .expect
            .map(|interval| self.last_read + interval * MISSED_INTERVALS)
    }

    /// Half the interval after the last byte; not while bytes wait anyway.
    fn beat_at(&self) -> Option<Instant> {
        let interval = self.beats.send.filter(|_| self.output.is_empty())?;
        Some(self.last_write + interval / 2)
    }

    fn read_stalled_at(&self) -> Option<Instant> {
        self.codec
            .in_frame(&self.input)
            .then(|| self.last_read + self.stalls.read)
    }

    fn write_stalled_at(&self) -> Option<Instant> {
        self.waiting_since.map(|since| since + self.stalls.write)
    }

    fn on_timer(&mut self, now: Instant) -> Result<(), WireError> {
        let passed = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if passed(self.deadline) {
            return Err(WireError::Deadline);
        }
        if passed(self.silent_at()) {
            return Err(WireError::Silent((now - self.last_read).as_millis()));
        }
        if passed(self.read_stalled_at()) {
            return Err(WireError::ReadStalled(self.stalls.read.as_millis()));
        }
        if passed(self.write_stalled_at()) {
            return Err(WireError::WriteStalled(self.stalls.write.as_millis()));
        }
        if passed(self.beat_at()) {
            self.output.extend_from_slice(b"\n");
        }
        Ok(())
    }
}

fn give_back(buffer: &mut BytesMut) {
    // Also what lies before the front of the buffer.
    if buffer.is_empty() && buffer.try_reclaim(KEPT_BUFFER + 1) {
        *buffer = BytesMut::new();
    }
}

#[cfg(test)]
mod tests;
