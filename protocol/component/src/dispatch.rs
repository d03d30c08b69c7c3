//! Jobs with a key: one at a time per key in the order they came, different keys side by side.
//!
//! The number of jobs that run and the number that are held are both bounded; who submits waits for room,
//! and so does the bus behind it. A job that panics ends alone and its [`Ticket`] says so.

mod queue;

use std::{
    any::Any,
    fmt::{self, Debug},
    future::Future,
    panic::AssertUnwindSafe,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use futures_util::FutureExt as _;
use thiserror::Error;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, oneshot, watch};

use self::queue::KeyedQueue;

/// How much a [`KeyedWorkers`] takes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerLimits {
    /// Jobs that run at once, of different keys. At least one.
    pub parallel: usize,
    /// Jobs held at once, running ones included. At least as many as run.
    pub held: usize,
}

impl Default for WorkerLimits {
    fn default() -> Self {
        Self {
            parallel: DEFAULT_PARALLEL,
            held: DEFAULT_HELD,
        }
    }
}

/// What became of a job.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome<T> {
    /// It ran to its end.
    Done(T),
    /// It panicked.
    Panicked(Panicked),
    /// It was stopped, or never started, because the workers were drained.
    Abandoned,
}

/// A job panicked.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("panicked: {message}")]
pub struct Panicked {
    /// What the panic said.
    pub message: String,
}

impl Panicked {
    /// What was caught, as [`catch_unwind`](std::panic::catch_unwind) gives it.
    #[must_use]
    pub fn of(panic: &(dyn Any + Send)) -> Self {
        Self {
            message: text_of(panic),
        }
    }
}

/// The workers take no more jobs: they are being drained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the workers are shutting down")]
pub struct Draining;

/// What is left of the jobs after [`KeyedWorkers::drain`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drained<K> {
    /// Keys of jobs that were running when the time was up, and were stopped.
    pub stopped: Vec<K>,
    /// Keys of jobs that had not started, one entry per job.
    pub unstarted: Vec<K>,
}

/// A future for the [`Outcome`] of one job. Dropping it does not stop the job.
#[derive(Debug)]
pub struct Ticket<T>(oneshot::Receiver<Outcome<T>>);

impl<T> Future for Ticket<T> {
    type Output = Outcome<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Outcome<T>> {
        self.0
            .poll_unpin(context)
            .map(|answer| answer.unwrap_or(Outcome::Abandoned))
    }
}

/// Runs the future; a panic in it becomes an error.
///
/// For a job that has to answer for its own panic while it still holds its key.
///
/// # Errors
/// [`Panicked`] with the panic's message.
pub async fn catch<T>(future: impl Future<Output = T> + Send) -> Result<T, Panicked> {
    AssertUnwindSafe(future)
        .catch_unwind()
        .await
        .map_err(|panic| Panicked::of(&*panic))
}

/// Workers that run jobs by key; clones share them.
pub struct KeyedWorkers<K> {
    shared: Arc<Shared<K>>,
}

type Job = Pin<Box<dyn Future<Output = ()> + Send>>;

struct Shared<K> {
    /// Short critical sections only, never held across an await.
    state: Mutex<State<K>>,
    room: Arc<Semaphore>,
    idle: Notify,
    /// Turns true when running jobs have to stop.
    abandoned: watch::Sender<bool>,
}

type State<K> = KeyedQueue<K, (Job, OwnedSemaphorePermit)>;

impl<K: Ord + Clone + Debug + Send + 'static> KeyedWorkers<K> {
    /// Workers with these limits; a limit of zero counts as one.
    #[must_use]
    pub fn new(limits: WorkerLimits) -> Self {
        let parallel = limits.parallel.max(1);
        let held = limits.held.clamp(parallel, Semaphore::MAX_PERMITS);
        Self {
            shared: Arc::new(Shared {
                state: Mutex::new(KeyedQueue::new(parallel)),
                room: Arc::new(Semaphore::new(held)),
                idle: Notify::new(),
                abandoned: watch::Sender::new(false),
            }),
        }
    }

    /// Hands in a job; waits while the workers hold as much as they may. Once this returns, the job's place
    /// among those of its key is fixed. Cancelling the wait leaves nothing behind.
    ///
    /// # Errors
    /// [`Draining`] after [`KeyedWorkers::drain`] was called; the job is dropped unrun.
    pub async fn submit<T: Send + 'static>(
        &self,
        key: K,
        job: impl Future<Output = T> + Send + 'static,
    ) -> Result<Ticket<T>, Draining> {
        let permit = Arc::clone(&self.shared.room)
            .acquire_owned()
            .await
            .map_err(|_| Draining)?;
        let (answer, ticket) = oneshot::channel();
        let job: Job = Box::pin(async move {
            let outcome = catch(job)
                .await
                .map_or_else(Outcome::Panicked, Outcome::Done);
            // Nobody has to wait for the outcome.
            let _ = answer.send(outcome);
        });
        self.shared.lock().push(key, (job, permit));
        if *self.shared.abandoned.borrow() {
            // Came in while the others were being given up: none may stay behind.
            self.shared.give_up_waiting();
            return Err(Draining);
        }
        self.shared.start();
        Ok(Ticket(ticket))
    }

    /// Takes no more jobs, finishes what can be finished until the deadline, then stops the rest and says
    /// which those were. Their tickets answer [`Outcome::Abandoned`].
    pub async fn drain(&self, deadline: Duration) -> Drained<K> {
        self.shared.room.close();
        // What is left at the deadline is given up, and so is a job that was being handed in meanwhile.
        let _ = tokio::time::timeout(deadline, self.idle()).await;
        let (stopped, unstarted) = self.shared.abandon();
        self.idle().await;
        Drained { stopped, unstarted }
    }

    /// Until nothing runs and nothing waits.
    pub async fn idle(&self) {
        loop {
            let mut notified = std::pin::pin!(self.shared.idle.notified());
            // Registered before the look, so that an end in between is not missed.
            notified.as_mut().enable();
            if self.shared.lock().is_idle() {
                return;
            }
            notified.await;
        }
    }
}

impl<K: Ord + Clone + Debug + Send + 'static> Shared<K> {
    fn lock(&self) -> MutexGuard<'_, State<K>> {
        // No code that can panic runs under the lock, so a poisoned one is still in order.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts what may start. Spawns outside the lock: a runtime that is going down drops the task at once,
    /// and with it the slot, which takes the lock.
    fn start(self: &Arc<Self>) {
        while let Some((key, (job, permit))) = self.next() {
            let slot = Slot {
                shared: Arc::clone(self),
                key,
                _permit: permit,
            };
            let mut abandoned = self.abandoned.subscribe();
            tokio::spawn(async move {
                let _slot = slot;
                tokio::select! {
                    biased;
                    () = job => {}
                    _ = abandoned.wait_for(|abandoned| *abandoned) => {}
                }
            });
        }
    }

    fn next(&self) -> Option<(K, (Job, OwnedSemaphorePermit))> {
        self.lock().start_next()
    }

    fn abandon(&self) -> (Vec<K>, Vec<K>) {
        self.abandoned.send_replace(true);
        let stopped = self.lock().running();
        (stopped, self.give_up_waiting())
    }

    fn give_up_waiting(&self) -> Vec<K> {
        let (waiting, idle) = {
            let mut state = self.lock();
            (state.take_waiting(), state.is_idle())
        };
        if idle {
            self.idle.notify_waiters();
        }
        waiting.into_iter().map(|(key, _)| key).collect()
    }
}

/// Gives a key free when its job ends in whatever way, an abort included.
struct Slot<K: Ord + Clone + Debug + Send + 'static> {
    shared: Arc<Shared<K>>,
    key: K,
    _permit: OwnedSemaphorePermit,
}

impl<K: Ord + Clone + Debug + Send + 'static> Drop for Slot<K> {
    fn drop(&mut self) {
        let idle = {
            let mut state = self.shared.lock();
            state.finished(&self.key);
            state.is_idle()
        };
        if idle {
            self.shared.idle.notify_waiters();
        } else if tokio::runtime::Handle::try_current().is_ok() {
            self.shared.start();
        }
    }
}

impl<K> Clone for KeyedWorkers<K> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<K> Debug for KeyedWorkers<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyedWorkers")
            .field("room", &self.shared.room.available_permits())
            .finish()
    }
}

fn text_of(panic: &(dyn Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_owned())
}

const DEFAULT_PARALLEL: usize = 16;
const DEFAULT_HELD: usize = 256;

#[cfg(test)]
mod tests;
