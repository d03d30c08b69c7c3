//! What is sent, watched while it is.

use pillarbox_messages::wording::count;
use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use futures_util::Stream;
use tokio::sync::watch;

/// A stream of bytes to send. It notes how far it is, and keeps its own failure apart from those of
/// the other side.
pub(crate) struct Source {
    inner: Pin<Box<dyn Stream<Item = io::Result<Bytes>> + Send>>,
    /// What has come and isn't handed over yet: large pieces are cut, so that progress shows.
    rest: Bytes,
    length: Option<u64>,
    position: watch::Sender<Position>,
    /// Short critical sections only, never across an await.
    failure: Arc<Mutex<Option<io::Error>>>,
}

/// The largest piece handed over at a time.
const PIECE_BYTES: usize = 256 * 1024;

/// How far a source is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Position {
    /// The number of bytes handed over.
    pub(crate) sent: u64,
    /// Whether the bytes to come are being waited for; the other side isn't to blame then.
    pub(crate) waiting: bool,
}

/// Where a source can be watched from.
#[derive(Debug)]
pub(crate) struct Progress {
    position: watch::Receiver<Position>,
    failure: Arc<Mutex<Option<io::Error>>>,
}

impl Source {
    pub(crate) fn new(
        inner: impl Stream<Item = io::Result<Bytes>> + Send + 'static,
        length: Option<u64>,
    ) -> Self {
        Self {
            inner: Box::pin(inner),
            rest: Bytes::new(),
            length,
            position: watch::channel(Position::default()).0,
            failure: Arc::default(),
        }
    }

    pub(crate) fn progress(&self) -> Progress {
        Progress {
            position: self.position.subscribe(),
            failure: Arc::clone(&self.failure),
        }
    }

    pub(crate) fn length(&self) -> Option<u64> {
        self.length
    }

    fn note(&self, more: u64, waiting: bool) {
        self.position.send_modify(|position| {
            position.sent += more;
            position.waiting = waiting;
        });
    }

    /// Compares what comes with what was announced. Nothing of it has been handed over yet.
    fn check(&self, next: Option<&Bytes>) -> io::Result<()> {
        let Some(length) = self.length else {
            return Ok(());
        };
        let sent = self.position.borrow().sent + next.map_or(0, |next| next.len() as u64);
        if sent > length || (next.is_none() && sent < length) {
            let text = format!("{} instead of {length}", count(sent, "byte"));
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        Ok(())
    }

    /// The next piece of what has come.
    fn cut(&mut self) -> Bytes {
        let piece = self.rest.split_to(self.rest.len().min(PIECE_BYTES));
        self.note(piece.len() as u64, false);
        piece
    }

    /// Keeps the failure, and gives the transport one of its kind.
    fn fail(&self, failure: io::Error) -> io::Error {
        let kind = failure.kind();
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure);
        kind.into()
    }
}

impl Stream for Source {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if !self.rest.is_empty() {
            return Poll::Ready(Some(Ok(self.cut())));
        }
        let next = self.inner.as_mut().poll_next(context);
        if next.is_pending() {
            self.note(0, true);
        }
        let next = match ready!(next).transpose() {
            Ok(next) => self.check(next.as_ref()).map(|()| next),
            Err(failure) => Err(failure),
        };
        Poll::Ready(match next {
            Ok(Some(next)) => {
                self.rest = next;
                Some(Ok(self.cut()))
            }
            Ok(None) => {
                self.note(0, false);
                None
            }
            Err(failure) => Some(Err(self.fail(failure))),
        })
    }
}

impl std::fmt::Debug for Source {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Source")
            .field("length", &self.length)
            .finish_non_exhaustive()
    }
}

impl Progress {
    /// The position, from now on only [`Self::changed`] if it moves again.
    pub(crate) fn position(&mut self) -> Position {
        *self.position.borrow_and_update()
    }

    /// Until something moves; false if nothing will any more.
    pub(crate) async fn changed(&mut self) -> bool {
        self.position.changed().await.is_ok()
    }

    pub(crate) fn sent(&self) -> u64 {
        self.position.borrow().sent
    }

    pub(crate) fn take_failure(&self) -> Option<io::Error> {
        self.failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{StreamExt, stream};

    use super::*;

    async fn drain(
        chunks: Vec<io::Result<Bytes>>,
        length: Option<u64>,
    ) -> (u64, Option<io::Error>) {
        let mut source = Source::new(stream::iter(chunks), length);
        let progress = source.progress();
        while let Some(Ok(_)) = source.next().await {}
        (progress.sent(), progress.take_failure())
    }

    fn chunk() -> io::Result<Bytes> {
        Ok(Bytes::from_static(b"four"))
    }

    #[tokio::test]
    async fn counts_and_compares_with_the_announced_length() {
        assert!(matches!(
            drain(vec![chunk(), chunk()], None).await,
            (8, None)
        ));
        assert!(matches!(
            drain(vec![chunk(), chunk()], Some(8)).await,
            (8, None)
        ));
        assert!(matches!(drain(vec![], Some(0)).await, (0, None)));
        assert!(matches!(drain(vec![chunk()], Some(8)).await, (4, Some(_))));
        assert!(matches!(
            drain(vec![chunk(), chunk()], Some(7)).await,
            (4, Some(_))
        ));
    }

    #[tokio::test]
    async fn large_pieces_are_cut() {
        let large = Bytes::from(vec![7; 2 * PIECE_BYTES + 1]);
        let source = Source::new(stream::iter([Ok(large)]), None);
        let sizes: Vec<_> = source.map(|piece| piece.unwrap().len()).collect().await;
        assert_eq!(sizes, [PIECE_BYTES, PIECE_BYTES, 1]);
    }

    #[tokio::test]
    async fn keeps_its_own_failure() {
        let full = Err(io::ErrorKind::StorageFull.into());
        let (sent, failure) = drain(vec![chunk(), full], None).await;
        assert_eq!(
            (sent, failure.unwrap().kind()),
            (4, io::ErrorKind::StorageFull)
        );
    }
}
