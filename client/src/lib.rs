//! The client: conversations with the components of a repository, one async method per operation, typed events.
//!
//! Owns: what a client asks and in which order ([`conversation`]), hearing the answers, laying files on the exchange
//! and fetching them from there, and what can be checked before anything is sent ([`validate`]).
//!
//! Refuses: to start an operation that is known to fail; to go on with two changes of one file at a time; to decide
//! what to do about a failure, which is the caller's business.
//!
//! Invariants
//! * Every operation that has started ends with exactly one event [`EventKind::Complete`] or [`EventKind::Failed`],
//!   whatever arrives, is repeated or stays away.
//! * Nobody is asked to perform who did not say that it is ready, and everybody is asked where it said.
//! * A file lies on the exchange only while a pillar may need it; none is left there.
//! * A fetched file is at its target complete and compared with what the pillar told of it before its final
//!   response, or not at all. If no checksum was told by then, or none that can be computed here, the pillar is asked
//!   for it, then the others; if nobody tells one, an event [`EventKind::Warning`] says so.
//! * A named client with a journal: an operation whose first message has left ends, and its end is told, though the
//!   process is killed at any moment, by the next one that resumes. What an answer says is on the disk before the
//!   answer is acknowledged; a request is there before it leaves.
//! * One conversation, one task; no conversation waits for another or for another's reader.
//!
//! Modules
//! * [`client`]: [`Client`]; [`options`]: what it is made from; `operations`: its methods, one per operation
//! * [`request`]: the operations' parameters
//! * [`event`]: what a caller hears; [`running`]: the handle it holds meanwhile
//! * [`validate`], [`error`]: what keeps an operation from starting
//! * [`conversation`]: the state machines
//! * [`journal`]: what a named client has begun; [`resume`]: going on with it in another process
//! * [`digests`] computes checksums
//! * [`listing`]: putting together what several pillars list
//! * `asking`: the checksum of a file that was delivered without one
//! * `task`, `mediator`, `terms`, `cargo`, `source`, `transfer`, `meter`: the machines' surroundings

mod asking;
mod cargo;
pub mod client;
pub mod conversation;
pub mod digests;
pub mod error;
pub mod event;
pub mod journal;
pub mod listing;
mod mediator;
mod meter;
mod operations;
pub mod options;
pub mod request;
pub mod resume;
pub mod running;
mod source;
mod task;
mod terms;
#[cfg(test)]
mod tests;
mod transfer;
pub mod validate;

pub use crate::{
    client::Client,
    error::ClientError,
    event::{
        ChecksumPage, Completed, ComponentFailure, ComponentResult, Concern, Deleted, Delivered,
        Event, EventKind, Outcome, Page, Replaced, Stored,
    },
    journal::{Journal, JournalError},
    meter::Transferred,
    options::{ClientOptions, passing_id, process_id},
    request::{
        DeleteFile, GetAuditTrails, GetChecksums, GetFile, GetFileIds, GetStatus, PutFile,
        ReplaceFile, Source,
    },
    resume::{Resumed, Resuming},
    running::{Running, Telling},
};
