//! Connections: accepted up to a number, served until they end, stall or are told to.

use std::{
    io::{self, IoSlice},
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::{Sleep, sleep},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// How many connections are served at a time; more wait to be accepted.
const MAXIMUM_CONNECTIONS: usize = 256;

/// How much of a connection is read ahead, in bytes.
const READ_AHEAD_BYTES: usize = 256 * 1024;

/// How long nothing is accepted after accepting failed, as it does without free file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Takes connections and serves them.
#[derive(Clone, Debug)]
pub(crate) struct Acceptor {
    pub(crate) router: Router,
    pub(crate) idle_timeout: Duration,
    /// No new requests.
    pub(crate) stop: CancellationToken,
    /// Nothing more at all.
    pub(crate) cut: CancellationToken,
    pub(crate) tasks: TaskTracker,
}

impl Acceptor {
    /// Accepts until it is told to stop.
    pub(crate) async fn accept(self, listener: TcpListener) {
        tokio::select! {
            () = self.stop.cancelled() => {}
            () = self.cut.cancelled() => {}
            () = self.accept_all(&listener) => {}
        }
    }

    async fn accept_all(&self, listener: &TcpListener) {
        let permits = Arc::new(Semaphore::new(MAXIMUM_CONNECTIONS));
        while let Ok(permit) = Arc::clone(&permits).acquire_owned().await {
            match listener.accept().await {
                Ok((stream, peer)) => {
                    let acceptor = self.clone();
                    self.tasks.spawn(async move {
                        acceptor.serve_tcp(stream).await;
                        tracing::trace!(%peer, "exchange connection closed");
                        drop(permit);
                    });
                }
                Err(error) => {
                    tracing::error!(%error, "the file exchange can't accept a connection");
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    async fn serve_tcp(&self, stream: TcpStream) {
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "connection lost before it was served");
            return;
        }
        self.serve(stream).await;
    }

    /// Serves the requests of one connection.
    pub(crate) async fn serve(&self, stream: impl AsyncRead + AsyncWrite + Send + Unpin) {
        let stream = TokioIo::new(PatientWriter::new(stream, self.idle_timeout));
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.idle_timeout)
            .max_buf_size(READ_AHEAD_BYTES)
            .serve_connection(stream, TowerToHyperService::new(self.router.clone()));
        let mut connection = pin!(connection);
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = self.cut.cancelled() => return,
            () = self.stop.cancelled() => {
                connection.as_mut().graceful_shutdown();
                tokio::select! {
                    ended = connection.as_mut() => ended,
                    () = self.cut.cancelled() => return,
                }
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "exchange connection failed");
        }
    }
}

/// A connection that fails when the other side takes nothing for too long.
#[derive(Debug)]
struct PatientWriter<S> {
    stream: S,
    limit: Duration,
    /// Runs while something waits to be written.
    patience: Option<Pin<Box<Sleep>>>,
}

impl<S> PatientWriter<S> {
    fn new(stream: S, limit: Duration) -> Self {
        Self {
            stream,
            limit,
            patience: None,
        }
    }

    /// Passes an outcome on, unless it has been awaited for too long.
    fn bound<T>(
        &mut self,
        context: &mut Context<'_>,
        outcome: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            self.patience = None;
            return outcome;
        }
        let limit = self.limit;
        let patience = self.patience.get_or_insert_with(|| Box::pin(sleep(limit)));
        patience
            .as_mut()
            .poll(context)
            .map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for PatientWriter<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for PatientWriter<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(context, buffer);
        self.bound(context, outcome)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(context, buffers);
        self.bound(context, outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_flush(context);
        self.bound(context, outcome)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_shutdown(context);
        self.bound(context, outcome)
    }
}
