//! A socket that tells its peer at once what it has received.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use rustix::net::sockopt::set_tcp_quickack;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};

/// A TCP connection whose received bytes are acknowledged without delay (tcp(7), `TCP_QUICKACK`).
///
/// ActiveMQ Classic leaves Nagle's algorithm on: its second frame waits until the first one is acknowledged, which the
/// operating system may put off for 40 ms.
#[derive(Debug)]
pub(super) struct PromptStream(pub(super) TcpStream);

impl AsyncRead for PromptStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = ready!(Pin::new(&mut self.0).poll_read(context, buffer));
        if read.is_ok() {
            // Holds for a while only, so it is said each time. Without it everything is slower, and right.
            let _ = set_tcp_quickack(&self.0, true);
        }
        Poll::Ready(read)
    }
}

impl AsyncWrite for PromptStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
