//! The one thread that writes.
//!
//! It takes what waits in its queue, does all of it in one transaction, and answers after the commit:
//! under load many requests share one sync, without load nobody waits for company.

use std::{path::PathBuf, thread};

use pillarbox_messages::{CollectionId, FileId, clock::SharedClock};
use tokio::sync::{mpsc, oneshot};

use super::{
    Adopted, Adoption, AuditEntry, DeleteRecord, Done, FileRow, IndexError, Observation,
    OpenOperation, Place, PutRecord, Trouble, ledger::Ledger, writing::Writing,
};

/// What the writer can be asked to do.
#[derive(Debug)]
pub(super) enum Job {
    Put(Box<PutRecord>, Reply<Done>),
    Replace(Box<PutRecord>, Reply<Done>),
    Delete(Box<DeleteRecord>, Reply<Done>),
    Open(Box<OpenOperation>, Reply<()>),
    Drop(CollectionId, FileId, Reply<()>),
    Append(CollectionId, Box<AuditEntry>, Reply<u64>),
    MarkMissing(CollectionId, Box<FileRow>, Reply<bool>),
    Told(CollectionId, Box<Trouble>, Reply<()>),
    Introduce(CollectionId, Reply<()>),
    Relocate(CollectionId, [PathBuf; 2], Reply<()>),
    Observe(CollectionId, Vec<Observation>, Reply<Vec<bool>>),
    Adopt(CollectionId, Vec<Adoption>, Reply<Vec<Adopted>>),
    Progress(&'static str, CollectionId, Option<Place>, Reply<()>),
    Trial(usize, Reply<()>),
    Close(Reply<()>),
}

type Reply<T> = oneshot::Sender<Result<T, IndexError>>;

/// Answers one request, once it is known whether the transaction is on the disk.
type Answer = Box<dyn FnOnce(Result<(), IndexError>)>;

/// Starts the writer. It ends when closed, or when nobody can reach it any more.
pub(super) fn start(
    ledger: Ledger,
    clock: SharedClock,
    writing: Writing,
) -> Result<mpsc::Sender<Job>, IndexError> {
    let (sender, jobs) = mpsc::channel(QUEUE);
    let writer = Writer {
        ledger,
        clock,
        jobs,
        writing,
    };
    let thread = thread::Builder::new().name("index".to_owned());
    match thread.spawn(move || writer.run()) {
        Ok(_) => Ok(sender),
        Err(error) => {
            tracing::error!(%error, "no thread for the index");
            Err(IndexError::Closed)
        }
    }
}

pub(super) struct Writer {
    pub(super) ledger: Ledger,
    pub(super) clock: SharedClock,
    pub(super) jobs: mpsc::Receiver<Job>,
    pub(super) writing: Writing,
}

impl Writer {
    fn run(mut self) {
        let mut group = Vec::with_capacity(GROUP);
        while self.jobs.blocking_recv_many(&mut group, GROUP) > 0 {
            if let Some(reply) = self.perform(&mut group) {
                self.ledger.checkpoint();
                drop(self.ledger);
                // Nobody may be waiting.
                _ = reply.send(Ok(()));
                return;
            }
        }
        self.ledger.checkpoint();
    }

    /// Performs a group of jobs; gives the reply to a request to close, if that was among them.
    pub(super) fn perform(&mut self, group: &mut Vec<Job>) -> Option<Reply<()>> {
        let begun = self.ledger.begin();
        let mut answers = Vec::with_capacity(group.len());
        let mut closing = None;
        for job in group.drain(..) {
            match job {
                Job::Close(reply) => closing = Some(reply),
                job if begun.is_ok() && self.ledger.is_in_transaction() => {
                    answers.push(self.perform_one(job));
                }
                job => answers.push(job.unperformed()),
            }
        }
        let outcome = begun.and_then(|()| self.ledger.commit());
        if let Err(error) = &outcome {
            tracing::error!(%error, requests = answers.len(), "index: nothing was written");
            if error.is_no_space() {
                // The log may be most of what is on the disk.
                self.ledger.checkpoint();
            }
        }
        self.writing.note(self.ledger.written(&outcome));
        for answer in answers {
            answer(outcome.clone());
        }
        closing
    }

    fn perform_one(&mut self, job: Job) -> Answer {
        let now_ms = self.clock.now_ms();
        let ledger = &mut self.ledger;
        match job {
            Job::Put(record, reply) => {
                let collection = record.collection.clone();
                answer(
                    ledger.attempt(&collection, |ledger| ledger.put(*record, now_ms)),
                    reply,
                )
            }
            Job::Replace(record, reply) => {
                let collection = record.collection.clone();
                answer(
                    ledger.attempt(&collection, |ledger| ledger.replace(*record, now_ms)),
                    reply,
                )
            }
            Job::Delete(record, reply) => {
                let collection = record.collection.clone();
                answer(
                    ledger.attempt(&collection, |ledger| ledger.delete(*record, now_ms)),
                    reply,
                )
            }
            Job::Open(operation, reply) => {
                let open = |ledger: &mut Ledger| ledger.open_operation(&operation);
                answer(ledger.attempt(&operation.key.collection, open), reply)
            }
            Job::Drop(collection, file_id, reply) => {
                let drop = |ledger: &mut Ledger| ledger.drop_operation(&collection, &file_id);
                answer(ledger.attempt(&collection, drop), reply)
            }
            Job::Append(collection, entry, reply) => {
                let key = collection.clone();
                let append = |ledger: &mut Ledger| ledger.append(collection, &entry, now_ms);
                answer(ledger.attempt(&key, append), reply)
            }
            Job::MarkMissing(collection, row, reply) => {
                let mark = |ledger: &mut Ledger| ledger.mark_missing(&collection, &row);
                answer(ledger.attempt(&collection, mark), reply)
            }
            Job::Told(collection, trouble, reply) => {
                let told = |ledger: &mut Ledger| ledger.told(&collection, &trouble);
                answer(ledger.attempt(&collection, told), reply)
            }
            Job::Introduce(collection, reply) => {
                let key = collection.clone();
                answer(
                    ledger.attempt(&key, |ledger| ledger.introduce(collection)),
                    reply,
                )
            }
            Job::Relocate(collection, [from, to], reply) => {
                let relocate = |ledger: &mut Ledger| ledger.relocate(&collection, &from, &to);
                answer(ledger.attempt(&collection, relocate), reply)
            }
            Job::Observe(collection, seen, reply) => {
                let key = collection.clone();
                let observe = |ledger: &mut Ledger| ledger.observe(collection, seen, now_ms);
                answer(ledger.attempt(&key, observe), reply)
            }
            Job::Adopt(collection, found, reply) => {
                let key = collection.clone();
                let adopt = |ledger: &mut Ledger| ledger.adopt(collection, found, now_ms);
                answer(ledger.attempt(&key, adopt), reply)
            }
            Job::Progress(worker, collection, place, reply) => {
                let save = |ledger: &mut Ledger| {
                    ledger.save_progress(worker, &collection, place.as_ref(), now_ms)
                };
                answer(ledger.attempt(&collection, save), reply)
            }
            Job::Trial(bytes, reply) => answer(ledger.write_trial(bytes), reply),
            Job::Close(reply) => answer(Ok(()), reply),
        }
    }
}

impl Job {
    /// The transaction is lost, and why is about to be known.
    fn unperformed(self) -> Answer {
        match self {
            Self::Put(_, reply) | Self::Replace(_, reply) | Self::Delete(_, reply) => {
                answer(Err(IndexError::Closed), reply)
            }
            Self::Append(_, _, reply) => answer(Err(IndexError::Closed), reply),
            Self::MarkMissing(_, _, reply) => answer(Err(IndexError::Closed), reply),
            Self::Observe(_, _, reply) => answer(Err(IndexError::Closed), reply),
            Self::Adopt(_, _, reply) => answer(Err(IndexError::Closed), reply),
            Self::Open(_, reply)
            | Self::Drop(_, _, reply)
            | Self::Told(_, _, reply)
            | Self::Introduce(_, reply)
            | Self::Relocate(_, _, reply)
            | Self::Progress(_, _, _, reply)
            | Self::Trial(_, reply)
            | Self::Close(reply) => answer(Err(IndexError::Closed), reply),
        }
    }
}

fn answer<T: Send + 'static>(result: Result<T, IndexError>, reply: Reply<T>) -> Answer {
    Box::new(move |committed: Result<(), IndexError>| {
        // Whoever asked may have gone away.
        _ = reply.send(committed.and(result));
    })
}

/// Requests that may wait; more make their senders wait.
const QUEUE: usize = 256;
/// Requests in one transaction.
const GROUP: usize = 256;
